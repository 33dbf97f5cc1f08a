//! From JSON to a condition, with everything that is wrong at once.

use super::{CONDITION_DEPTH_MAX, Condition, ConditionError, Operator, Test};
use crate::path::{Path, Step};
use crate::value::{Object, Value};

const GROUPS: [&str; 3] = ["all", "any", "not"];

pub(super) fn parse(value: &Value) -> Result<Condition, Vec<ConditionError>> {
    if value.depth() > CONDITION_DEPTH_MAX {
        let message = format!(
            "the condition is nested deeper than {CONDITION_DEPTH_MAX} levels; split it over \
             several nodes"
        );
        return Err(vec![ConditionError { path: Path::default(), message }]);
    }
    let mut reader = Reader { errors: Vec::new() };
    match reader.condition(value, &Path::default()) {
        Some(condition) if reader.errors.is_empty() => Ok(condition),
        _ => Err(reader.errors),
    }
}

/// Each method returns `None` only after it has noted at least one error.
struct Reader {
    errors: Vec<ConditionError>,
}

impl Reader {
    /// Recursion is bounded by [`CONDITION_DEPTH_MAX`].
    fn condition(&mut self, value: &Value, at: &Path) -> Option<Condition> {
        let Some(object) = value.as_object() else {
            let found = value.kind();
            return self.refuse(at, format!("a condition must be an object, found {found}"));
        };
        let groups: Vec<&str> =
            GROUPS.into_iter().filter(|group| object.contains_key(group)).collect();
        let is_test = object.contains_key("field") || object.contains_key("operator");
        match (groups.as_slice(), is_test) {
            ([], _) => self.test(object, at),
            (["not"], false) => {
                let part = self.condition(object.get("not")?, &key(at, "not"))?;
                Some(Condition::Not(Box::new(part)))
            }
            ([group], false) => {
                let parts = self.parts(object.get(group)?, &key(at, group))?;
                Some(if *group == "all" { Condition::All(parts) } else { Condition::Any(parts) })
            }
            ([group], true) => self.refuse(
                at,
                format!("a condition is either a test or a group; remove \"{group}\" or the test"),
            ),
            ([first, second, ..], _) => self.refuse(
                at,
                format!(
                    "a condition has either \"{first}\" or \"{second}\"; put one into the other"
                ),
            ),
        }
    }

    fn parts(&mut self, value: &Value, at: &Path) -> Option<Vec<Condition>> {
        let Some(items) = value.as_array() else {
            let found = value.kind();
            return self.refuse(at, format!("must be a list of conditions, found {found}"));
        };
        let mut parts = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            parts.extend(self.condition(item, &at.join(Step::Index(index))));
        }
        (parts.len() == items.len()).then_some(parts)
    }

    fn test(&mut self, object: &Object, at: &Path) -> Option<Condition> {
        let field = self.field(object, at);
        let operator = self.operator(object, at);
        let value = match (operator, object.get("value")) {
            (Some(Operator::Exists), _) => Some(Value::Null),
            (_, Some(value)) => Some(value.clone()),
            (Some(operator), None) => {
                let operator = operator.as_str();
                let message = format!("is missing; {operator} needs a value to compare with");
                self.refuse(&key(at, "value"), message)
            }
            (None, None) => None,
        };
        Some(Condition::Test(Test { field: field?, operator: operator?, value: value? }))
    }

    fn field(&mut self, object: &Object, at: &Path) -> Option<Path> {
        let at = key(at, "field");
        match object.get("field") {
            Some(Value::String(text)) => match Path::parse(text) {
                Ok(path) => Some(path),
                Err(error) => self.refuse(&at, error.to_string()),
            },
            Some(other) => {
                let found = other.kind();
                self.refuse(&at, format!("must be a path in quotes, found {found}"))
            }
            None => self.refuse(&at, "is missing; \"\" is the whole output".to_owned()),
        }
    }

    fn operator(&mut self, object: &Object, at: &Path) -> Option<Operator> {
        let at = key(at, "operator");
        let known = || Operator::ALL.map(Operator::as_str).join(", ");
        match object.get("operator") {
            Some(Value::String(word)) => {
                let operator = Operator::ALL.into_iter().find(|known| known.as_str() == word);
                operator.or_else(|| {
                    let word = Value::from(word.as_str()).to_json_shortened(40);
                    self.refuse(&at, format!("{word} is unknown; use one of {}", known()))
                })
            }
            Some(other) => {
                let found = other.kind();
                self.refuse(&at, format!("must be one of {}, found {found}", known()))
            }
            None => self.refuse(&at, format!("is missing; use one of {}", known())),
        }
    }

    fn refuse<T>(&mut self, at: &Path, message: String) -> Option<T> {
        self.errors.push(ConditionError { path: at.clone(), message });
        None
    }
}

fn key(at: &Path, key: &str) -> Path {
    at.join(Step::Key(key.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusals(text: &str) -> Vec<String> {
        let value = Value::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        match Condition::parse(&value) {
            Ok(condition) => panic!("{text} was read as {condition}"),
            Err(errors) => errors.iter().map(ToString::to_string).collect(),
        }
    }

    fn accepted(text: &str) -> Condition {
        let value = Value::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        Condition::parse(&value).unwrap_or_else(|errors| panic!("{text}: {errors:?}"))
    }

    #[test]
    fn tests_and_groups_are_read() {
        let test = accepted(r#"{"field":"a","operator":"equals","value":null,"label":"kept"}"#);
        let expected = Test {
            field: Path::parse("a").unwrap(),
            operator: Operator::Equals,
            value: Value::Null,
        };
        assert_eq!(test, Condition::Test(expected));
        assert_eq!(accepted(r#"{"all":[]}"#), Condition::All(Vec::new()));
        assert_eq!(accepted(r#"{"any":[],"x":1}"#), Condition::Any(Vec::new()));
        let nested = accepted(
            r#"{"not":{"any":[{"field":"","operator":"exists"},{"all":[{"not":{"all":[]}}]}]}}"#,
        );
        assert!(matches!(nested, Condition::Not(part) if matches!(*part, Condition::Any(_))));
    }

    #[test]
    fn every_error_is_reported_at_its_place() {
        let operators = "equals, notEquals, contains, greaterThan, lessThan, exists";
        let table: [(&str, &[&str]); 12] = [
            ("[]", &["a condition must be an object, found list"]),
            (
                "{}",
                &[
                    "field: is missing; \"\" is the whole output",
                    "operator: is missing; use one of {}",
                ],
            ),
            (
                r#"{"field":"a","operator":"equals"}"#,
                &["value: is missing; equals needs a value to compare with"],
            ),
            (
                r#"{"field":"a","operator":"=","value":1}"#,
                &["operator: \"=\" is unknown; use one of {}"],
            ),
            (
                r#"{"field":7,"operator":true,"value":1}"#,
                &[
                    "field: must be a path in quotes, found number",
                    "operator: must be one of {}, found boolean",
                ],
            ),
            (
                r#"{"field":"a..b","operator":"exists"}"#,
                &["field: character 3 of the path: two dots in a row; remove one, or write \
                 [\"\"] for the empty key"],
            ),
            (r#"{"all":{}}"#, &["all: must be a list of conditions, found object"]),
            (
                r#"{"all":[{"field":"a","operator":"exists"},
                           {"field":"b","operator":"is","value":1}]}"#,
                &["all[1].operator: \"is\" is unknown; use one of {}"],
            ),
            (
                r#"{"not":{"any":[{"not":5},null]}}"#,
                &[
                    "not.any[0].not: a condition must be an object, found number",
                    "not.any[1]: a condition must be an object, found null",
                ],
            ),
            (
                r#"{"all":[],"any":[]}"#,
                &["a condition has either \"all\" or \"any\"; put one into the other"],
            ),
            (
                r#"{"not":{},"operator":"exists"}"#,
                &["a condition is either a test or a group; remove \"not\" or the test"],
            ),
            (
                r#"{"field":"items[-1]","operator":"less","value":1}"#,
                &[
                    "field: character 7 of the path: an index counts from 0 at the start of the \
                 list; it cannot be negative",
                    "operator: \"less\" is unknown; use one of {}",
                ],
            ),
        ];
        for (text, messages) in table {
            let messages: Vec<String> =
                messages.iter().map(|message| message.replace("{}", operators)).collect();
            assert_eq!(refusals(text), messages, "{text}");
        }
    }

    #[test]
    fn nesting_is_accepted_up_to_the_limit_and_refused_beyond() {
        let nested = |n_groups: usize| {
            format!("{}{{\"all\":[]}}{}", "{\"not\":".repeat(n_groups), "}".repeat(n_groups))
        };
        accepted(&nested(CONDITION_DEPTH_MAX - 2));
        let errors = refusals(&nested(CONDITION_DEPTH_MAX - 1));
        assert_eq!(
            errors,
            ["the condition is nested deeper than 100 levels; split it over several nodes"]
        );
    }
}
