//! Reads an agent's settings: which keys it needs, of which type, and what to say if they are not
//! there. Keys that nobody asks for are left alone, so that settings of a later version still run.

use std::collections::BTreeMap;

use engine::failure::{Failure, FailureClass};
use engine::ids::AgentId;
use engine::value::{Object, Value};

/// The `errorType` of an attempt that could not begin because of its agent's settings.
pub const INVALID_SETTINGS: &str = "invalidSettings";

/// Why settings cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// They are not an object.
    #[error("the settings must be an object, not {found}")]
    NotAnObject {
        /// What they are.
        found: String,
    },
    /// A key is missing.
    #[error("`{key}` is missing; {hint}")]
    Missing {
        /// The key.
        key: &'static str,
        /// What to write.
        hint: &'static str,
    },
    /// A value has the wrong type.
    #[error("`{place}` must be {expected}, not {found}")]
    WrongType {
        /// The key, with an index or a second key where the value is inside a container.
        place: String,
        /// What it should be.
        expected: &'static str,
        /// What it is.
        found: String,
    },
    /// A value has the right type but cannot be used.
    #[error("`{place}` cannot be used: {reason}")]
    Unusable {
        /// The key, with an index or a second key where the value is inside a container.
        place: String,
        /// Why, and what to do.
        reason: String,
    },
    /// Two keys contradict each other.
    #[error("`{first}` and `{second}` cannot stand together; keep one of them")]
    Conflict {
        /// One key.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
}

impl SettingsError {
    /// The failure of an attempt of this agent.
    pub fn into_failure(self, agent: &AgentId) -> Failure {
        Failure::typed(
            FailureClass::AgentError,
            INVALID_SETTINGS,
            format!("agent `{agent}` has settings that cannot be used: {self}"),
        )
    }
}

/// The settings of one agent, while they are read.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    object: &'a Object,
}

impl<'a> Settings<'a> {
    /// Takes a look at settings.
    ///
    /// # Errors
    /// If they are not an object.
    pub fn new(value: &'a Value) -> Result<Settings<'a>, SettingsError> {
        match value {
            Value::Object(object) => Ok(Settings { object }),
            other => Err(SettingsError::NotAnObject { found: named(other) }),
        }
    }

    /// The value of a key, whatever it is; absent keys only are `None`.
    pub fn any(self, key: &str) -> Option<&'a Value> {
        self.object.get(key)
    }

    /// A text; absent and `null` are `None`.
    pub fn text(self, key: &'static str) -> Result<Option<&'a str>, SettingsError> {
        self.present(key)
            .map(|value| value.as_str().ok_or_else(|| wrong(key, "a text", value)))
            .transpose()
    }

    /// A whole number of at least 0; absent and `null` are `None`.
    pub fn whole_number(self, key: &'static str) -> Result<Option<u64>, SettingsError> {
        let expected = "a whole number of at least 0";
        self.present(key)
            .map(|value| value.as_u64().ok_or_else(|| wrong(key, expected, value)))
            .transpose()
    }

    /// `true` or `false`; absent and `null` are `None`.
    pub fn flag(self, key: &'static str) -> Result<Option<bool>, SettingsError> {
        self.present(key)
            .map(|value| value.as_bool().ok_or_else(|| wrong(key, "true or false", value)))
            .transpose()
    }

    /// A list of texts; absent and `null` are an empty one. Anything else in it counts as its JSON
    /// text: a template that stands alone keeps its type, and an argument is text in the end.
    pub fn texts(self, key: &'static str) -> Result<Vec<String>, SettingsError> {
        let Some(value) = self.present(key) else { return Ok(Vec::new()) };
        let items = value.as_array().ok_or_else(|| wrong(key, "a list of texts", value))?;
        Ok(items.iter().map(text_of).collect())
    }

    /// An object of texts; absent and `null` are an empty one. Anything else in it counts as its
    /// JSON text.
    pub fn text_map(self, key: &'static str) -> Result<BTreeMap<String, String>, SettingsError> {
        let Some(value) = self.present(key) else { return Ok(BTreeMap::new()) };
        let object = value.as_object().ok_or_else(|| wrong(key, "an object of texts", value))?;
        Ok(object.iter().map(|(name, item)| (name.clone(), text_of(item))).collect())
    }

    fn present(self, key: &str) -> Option<&'a Value> {
        self.object.get(key).filter(|value| !value.is_null())
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_json(), str::to_owned)
}

fn wrong(place: &str, expected: &'static str, found: &Value) -> SettingsError {
    SettingsError::WrongType { place: place.to_owned(), expected, found: named(found) }
}

/// A value as it is told to people: small ones in full, others by their kind.
fn named(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_json(),
        Value::String(_) => "a text".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        Value::parse(text).unwrap()
    }

    #[test]
    fn a_wrong_type_is_told_with_its_place() {
        let object = value(r#"{"args": "a", "env": [], "takes": -1}"#);
        let settings = Settings::new(&object).unwrap();
        let message = |error: SettingsError| error.to_string();
        assert_eq!(
            message(settings.texts("args").unwrap_err()),
            "`args` must be a list of texts, not a text"
        );
        assert_eq!(
            message(settings.text_map("env").unwrap_err()),
            "`env` must be an object of texts, not a list"
        );
        assert_eq!(
            message(settings.whole_number("takes").unwrap_err()),
            "`takes` must be a whole number of at least 0, not -1"
        );
        let list = value("[]");
        assert_eq!(
            message(Settings::new(&list).unwrap_err()),
            "the settings must be an object, not a list"
        );
    }

    #[test]
    fn numbers_in_lists_of_texts_keep_their_digits() {
        let object = value(r#"{"args": [18446744073709551616, 1.0, true, {"a": []}, "x"]}"#);
        let texts = Settings::new(&object).unwrap().texts("args").unwrap();
        assert_eq!(texts, ["18446744073709551616", "1.0", "true", r#"{"a":[]}"#, "x"]);
    }

    #[test]
    fn null_counts_as_absent() {
        let object = value(r#"{"cwd": null, "args": null}"#);
        let settings = Settings::new(&object).unwrap();
        assert_eq!(settings.text("cwd"), Ok(None));
        assert_eq!(settings.texts("args"), Ok(Vec::new()));
    }
}
