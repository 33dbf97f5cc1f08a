//! Between values and serde, by way of JSON text: that keeps every digit, and serde_json keeps a
//! [`Value`] inside a type as the text it is.

use serde::de::{DeserializeOwned, Error as _};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::{BridgeError, Number, Object, Value, writer};

pub(super) fn to_value<T: Serialize + ?Sized>(source: &T) -> Result<Value, BridgeError> {
    let text = serde_json::to_string(source).map_err(BridgeError::Serialize)?;
    Value::parse(&text).map_err(BridgeError::Refused)
}

pub(super) fn from_value<T: DeserializeOwned>(value: &Value) -> Result<T, BridgeError> {
    serde_json::from_str(&value.to_json()).map_err(|error| {
        // The position is one in a text that nobody has seen.
        let message = error.to_string();
        let end = message.rfind(" at line ").unwrap_or(message.len());
        BridgeError::Shape { message: message[..end].to_owned() }
    })
}

pub(super) fn to_serde_json(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(integer), _) => integer.into(),
            (None, Some(integer)) => integer.into(),
            (None, None) => number.to_f64().into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => items.iter().map(to_serde_json).collect(),
        Value::Object(object) => {
            object.iter().map(|(key, value)| (key.clone(), to_serde_json(value))).collect()
        }
    }
}

/// Writes the JSON text as it is. Only for serde_json's text formats.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_text(self.to_json(), serializer)
    }
}

/// Reads JSON text with our own reader. Only from serde_json's text formats, and never inside an
/// internally tagged, untagged or flattened type: those read numbers as doubles first, which is
/// refused here rather than losing digits.
impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        Value::parse(text.get()).map_err(D::Error::custom)
    }
}

/// As for [`Value`].
impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = String::new();
        writer::write_object(self, writer::Style::Compact, &mut text);
        serialize_text(text, serializer)
    }
}

/// As for [`Value`].
impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Object(object) => Ok(object),
            other => Err(expected::<D>("an object", &other)),
        }
    }
}

/// As for [`Value`].
impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_text(self.as_str().to_owned(), serializer)
    }
}

/// As for [`Value`].
impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Number, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Number(number) => Ok(number),
            other => Err(expected::<D>("a number", &other)),
        }
    }
}

fn serialize_text<S: Serializer>(text: String, serializer: S) -> Result<S::Ok, S::Error> {
    RawValue::from_string(text).map_err(S::Error::custom)?.serialize(serializer)
}

fn expected<'de, D: Deserializer<'de>>(what: &str, found: &Value) -> D::Error {
    D::Error::custom(format_args!("expected {what}, found {}", found.kind()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::{from_value, to_serde_json, to_value};
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Holder {
        id: u64,
        share: f64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
        payload: Value,
        settings: Object,
        exact: Number,
    }

    fn value(text: &str) -> Value {
        Value::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn types_with_values_inside_keep_every_digit_both_ways() {
        let text = concat!(
            r#"{"id":18446744073709551615,"share":0.1,"#,
            r#""payload":{"n":123456789012345678901234567890,"m":1.0},"#,
            r#""settings":{"b":1e5,"a":[]},"exact":1.50}"#
        );
        let holder: Holder = from_value(value(text)).unwrap();
        assert_eq!(holder.id, u64::MAX);
        assert_eq!(holder.payload.to_json(), r#"{"n":123456789012345678901234567890,"m":1.0}"#);
        assert_eq!(to_value(&holder).unwrap().to_json(), text);
        assert_eq!(serde_json::to_string(&holder).unwrap(), text);
        assert_eq!(serde_json::from_str::<Holder>(text).unwrap(), holder);
    }

    #[test]
    fn a_value_that_does_not_fit_says_what_was_expected() {
        let error = from_value::<Holder>(value(r#"{"id":"x"}"#)).unwrap_err();
        assert_eq!(error.to_string(), "invalid type: string \"x\", expected u64");
        let error = from_value::<Object>(value("[1]")).unwrap_err();
        assert_eq!(error.to_string(), "expected an object, found list");
        let error = from_value::<Number>(value("\"1\"")).unwrap_err();
        assert_eq!(error.to_string(), "expected a number, found text");
    }

    #[test]
    fn a_value_inside_serde_text_is_held_to_the_same_rules() {
        for text in [r#"{"a":1,"a":2}"#, "[1e400]", r#"["\ud800"]"#] {
            let error = serde_json::from_str::<Value>(text).unwrap_err().to_string();
            assert!(error.contains("line 1, column "), "{error}");
        }
    }

    #[test]
    fn a_value_inside_a_buffered_type_is_refused_and_not_rounded() {
        #[derive(Debug, Deserialize)]
        #[serde(tag = "kind")]
        enum Tagged {
            #[allow(dead_code, reason = "only deserialized")]
            Some { payload: Value },
        }
        let text = r#"{"kind":"Some","payload":123456789012345678901234567890}"#;
        assert!(serde_json::from_str::<Tagged>(text).is_err());
    }

    #[test]
    fn types_that_are_not_json_are_refused() {
        let keys = BTreeMap::from([((1, 2), 3)]);
        assert!(matches!(to_value(&keys), Err(BridgeError::Serialize(_))));
        let mut deep = serde_json::Value::Null;
        for _ in 0..200 {
            deep = serde_json::Value::Array(vec![deep]);
        }
        assert!(matches!(to_value(&deep), Err(BridgeError::Refused(_))));
    }

    #[test]
    fn schema_checks_see_exact_integers_and_rounded_rest() {
        let text =
            r#"{"a":1.0,"b":18446744073709551615,"c":-5,"d":0.1,"e":1e30,"f":[null,true,"x"]}"#;
        let expected = serde_json::json!({
            "a": 1, "b": u64::MAX, "c": -5, "d": 0.1, "e": 1e30, "f": [null, true, "x"]
        });
        assert_eq!(to_serde_json(&value(text)), expected);
    }
}
