//! Variables that commands start with.

use kube_derive::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::name::ObjectName;
use crate::rule::rules;

const SPELLING: (&str, &str) = (
    "self.matches('^[A-Za-z_][A-Za-z0-9_]*$')",
    "must be a variable's name: letters, digits and '_', not beginning with a digit",
);

/// The name of an environment variable, 1 to 128 letters, digits and `_`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("minLength" = 1, "maxLength" = 128, "x-kubernetes-validations" = rules(&[SPELLING])))]
pub struct VariableName(pub String);

/// A variable of a Session, from the manifest or from a Secret.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("has(self.value) != has(self.secret)").message("a variable has a value or a secret, one of them")
)]
#[serde(rename_all = "camelCase")]
pub struct Variable {
    /// The variable's name. One that looks like a secret of the product or of a provider is removed before a command starts.
    pub name: VariableName,
    /// The value itself, at most 4,096 characters. Not for secrets: whoever may read the Session reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub value: Option<String>,
    /// Where the value comes from instead: a Secret, which the operator reads. Whoever names it must be allowed to get it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretKey>,
}

/// One key of a Secret in the same namespace.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretKey {
    /// The Secret's name.
    pub name: ObjectName,
    /// The key in it, 1 to 253 characters.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

/// A variable that a class gives to every command.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlainVariable {
    /// The variable's name.
    pub name: VariableName,
    /// Its value, at most 4,096 characters. Never a secret: whoever may read the class reads it.
    #[schemars(length(max = 4096))]
    pub value: String,
}
