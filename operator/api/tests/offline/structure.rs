//! The bounds of a schema that are not rules. Says what the API server says, as far as it does not repeat the value.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::judge::Refusal;

/// Whether this complaint keeps the API server from running the rules.
pub(crate) fn is_of_shape(message: &str) -> bool {
    matches!(message, "must be of type" | "Required value" | "Too long" | "Too many" | "Unsupported value")
}

/// Every bound that the object breaks. Knows the keywords that our schemas use, and no others.
pub(crate) fn refusals(schema: &Value, object: &Value) -> Vec<Refusal> {
    let mut found = Vec::new();
    walk(schema, object, "", &mut found);
    found
}

fn walk(schema: &Value, value: &Value, path: &str, found: &mut Vec<Refusal>) {
    let mut refuse = |path: &str, message: &str| {
        found.push(Refusal { path: path.to_owned(), message: message.to_owned() });
    };
    if !is_of_type(schema, value) {
        refuse(path, "must be of type");
        return;
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        refuse(path, "Unsupported value");
    }
    match value {
        Value::String(text) => {
            let length = text.chars().count() as u64;
            if schema["maxLength"].as_u64().is_some_and(|most| length > most) {
                refuse(path, "Too long");
            }
            if schema["minLength"].as_u64().is_some_and(|least| length < least) {
                refuse(path, "should be at least");
            }
        }
        Value::Number(number) => {
            let number = number.as_f64().expect("a number");
            if schema["minimum"].as_f64().is_some_and(|least| number < least) {
                refuse(path, "should be greater than or equal to");
            }
            if schema["maximum"].as_f64().is_some_and(|most| number > most) {
                refuse(path, "should be less than or equal to");
            }
        }
        Value::Array(items) => list(schema, items, path, found),
        Value::Object(fields) => object(schema, fields, path, found),
        Value::Null | Value::Bool(_) => {}
    }
}

fn list(schema: &Value, items: &[Value], path: &str, found: &mut Vec<Refusal>) {
    let mut refuse = |path: &str, message: &str| {
        found.push(Refusal { path: path.to_owned(), message: message.to_owned() });
    };
    if schema["maxItems"].as_u64().is_some_and(|most| items.len() as u64 > most) {
        refuse(path, "Too many");
    }
    if schema["minItems"].as_u64().is_some_and(|least| (items.len() as u64) < least) {
        refuse(path, "should have at least");
    }
    let mut seen = BTreeSet::new();
    for (at, item) in items.iter().enumerate() {
        let key = match schema["x-kubernetes-list-type"].as_str() {
            Some("set") => item.to_string(),
            Some("map") => {
                let keys =
                    schema["x-kubernetes-list-map-keys"].as_array().expect("keys of a list of type map");
                keys.iter().map(|key| item[key.as_str().expect("a key")].to_string()).collect()
            }
            _ => at.to_string(),
        };
        if !seen.insert(key) {
            refuse(&format!("{path}[{at}]"), "Duplicate value");
        }
    }
    for (at, item) in items.iter().enumerate() {
        walk(&schema["items"], item, &format!("{path}[{at}]"), found);
    }
}

fn object(schema: &Value, fields: &Map<String, Value>, path: &str, found: &mut Vec<Refusal>) {
    let inner = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    if schema["maxProperties"].as_u64().is_some_and(|most| fields.len() as u64 > most) {
        found.push(Refusal { path: path.to_owned(), message: "Too many".to_owned() });
    }
    for required in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(required) {
            found.push(Refusal { path: inner(required), message: "Required value".to_owned() });
        }
    }
    for (key, value) in fields {
        let of_field = schema["properties"].get(key).unwrap_or(&schema["additionalProperties"]);
        if of_field.is_object() {
            walk(of_field, value, &inner(key), found);
        }
    }
}

fn is_of_type(schema: &Value, value: &Value) -> bool {
    if schema["x-kubernetes-int-or-string"] == Value::Bool(true) {
        return value.is_i64() || value.is_string();
    }
    match schema["type"].as_str() {
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        Some(other) => panic!("a type our schemas do not use: {other}"),
        None => true,
    }
}
