//! JSON that means one thing only: an object key twice is an error, at any depth.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Parses `text`, UTF-8, as exactly one JSON value without duplicate keys. Nesting beyond 128 levels is an error of the parser.
///
/// # Errors
/// The parser's error: its text names line, column and what was wrong, and of the input at most a key.
pub(crate) fn parse_strict(text: impl AsRef<[u8]>) -> Result<Value, serde_json::Error> {
    serde_json::from_slice::<Strict>(text.as_ref()).map(|strict| strict.0)
}

/// Whether `text` is one JSON object without duplicate keys.
pub(crate) fn is_object(text: &str) -> bool {
    parse_strict(text).is_ok_and(|value| value.is_object())
}

struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Self)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Strict(value)) = access.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let Strict(value) = access.next_value()?;
            if object.contains_key(&key) {
                let shown: String = key.chars().take(64).flat_map(char::escape_debug).collect();
                return Err(A::Error::custom(format_args!("the key \"{shown}\" twice")));
            }
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_key_twice_is_refused_at_any_depth() {
        for text in [
            r#"{"command":"ls","command":"rm"}"#,
            r#"{"a":[{"b":1,"b":1}]}"#,
            r#"{"a":{"b":{"c":1,"\u0063":2}}}"#,
        ] {
            assert!(parse_strict(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_cut_or_has_a_tail_is_refused() {
        for text in
            ["", "{", r#"{"a":"#, r#"{"a":1}}"#, r#"{"a":1} {"b":2}"#, "{'a':1}", r#"{"a":1,}"#, "NaN"]
        {
            assert!(parse_strict(text).is_err(), "{text}");
        }
        assert!(parse_strict("[".repeat(100_000)).is_err());
        assert!(parse_strict(b"\"\xff\"").is_err());
    }

    proptest! {
        #[test]
        fn no_beginning_of_an_object_is_an_object(text in "[a-z \"\\\\{}:,\u{e9}]{0,20}", cut in 1usize..40) {
            let whole = serde_json::json!({"command": text, "n": [1, {"x": text}]}).to_string();
            prop_assert!(parse_strict(&whole).is_ok());
            let cut = whole.char_indices().map(|(at, _)| at).nth(cut.min(whole.chars().count() - 1)).unwrap_or(0);
            prop_assert!(parse_strict(&whole[..cut]).is_err());
        }
    }
}
