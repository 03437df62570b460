//! Names and ids as types. The API server has checked them by the rules here before anything else reads them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rule::rules;

const DNS_SUBDOMAIN: (&str, &str) = (
    "!format.dns1123Subdomain().validate(self).hasValue()",
    "must be a name as Kubernetes objects have: lower-case letters, digits, '-' and '.'",
);

macro_rules! text {
    ($(#[$attribute:meta])* $name:ident) => {
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        $(#[$attribute])*
        pub struct $name(String);

        impl $name {
            /// The text as it is on the wire.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text! {
    /// A Kubernetes user name, 1 to 253 characters.
    #[schemars(extend("minLength" = 1, "maxLength" = 253))]
    UserName
}

text! {
    /// The name of another object in the same namespace, 1 to 253 characters.
    #[schemars(extend("minLength" = 1, "maxLength" = 253, "x-kubernetes-validations" = rules(&[DNS_SUBDOMAIN])))]
    ObjectName
}

text! {
    /// The UID of an object, as the API server gave it.
    #[schemars(extend("minLength" = 1, "maxLength" = 64))]
    Uid
}
