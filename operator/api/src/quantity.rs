//! Amounts of memory, storage and processor time: Kubernetes' own type, with a schema that says what is refused.

pub use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use schemars::{Schema, SchemaGenerator, json_schema};

use crate::rule::rules;

const AMOUNT: (&str, &str) = (
    "isQuantity(string(self)) && quantity(string(self)).isGreaterThan(quantity('0'))",
    "must be a quantity above zero as Kubernetes writes them, such as 500m, 2 or 10Gi",
);

/// A quantity above zero, of at most 32 characters, as text or as a whole number.
pub(crate) fn schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "maxLength": 32,
        "x-kubernetes-validations": rules(&[AMOUNT]),
    })
}
