//! A condition in one line, as it stands beside an edge.

use std::fmt;

use super::{Condition, Operator, Test};
use crate::path::Path;
use crate::value::Value;

/// The most characters of a value that a label repeats.
const VALUE_CHARS_MAX: usize = 40;

/// One line: `result.status = approved`, `a > 1 and not (b exists or c = "")`.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Test(test) => write!(f, "{test}"),
            Condition::All(parts) if parts.is_empty() => f.write_str("always"),
            Condition::Any(parts) if parts.is_empty() => f.write_str("never"),
            Condition::All(parts) => fmt_parts(parts, " and ", f),
            Condition::Any(parts) => fmt_parts(parts, " or ", f),
            Condition::Not(part) => write!(f, "not ({part})"),
        }
    }
}

/// As in `score > 5` or `tags contains urgent`.
impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_whole() {
            f.write_str("output")?;
        } else {
            write!(f, "{}", self.field)?;
        }
        let sign = match self.operator {
            Operator::Exists => return f.write_str(" exists"),
            Operator::Equals => "=",
            Operator::NotEquals => "≠",
            Operator::Contains => "contains",
            Operator::GreaterThan => ">",
            Operator::LessThan => "<",
        };
        write!(f, " {sign} ")?;
        match &self.value {
            Value::String(text) if is_plain(text) => f.write_str(text),
            value => f.write_str(&value.to_json_shortened(VALUE_CHARS_MAX)),
        }
    }
}

/// The place of an error, as it begins a message.
pub(super) fn place(path: &Path) -> String {
    if path.is_whole() { String::new() } else { format!("{path}: ") }
}

fn fmt_parts(parts: &[Condition], between: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let is_group = |part: &Condition| match part {
        Condition::All(parts) | Condition::Any(parts) => parts.len() > 1,
        Condition::Test(_) | Condition::Not(_) => false,
    };
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            f.write_str(between)?;
        }
        if parts.len() > 1 && is_group(part) {
            write!(f, "({part})")?;
        } else {
            write!(f, "{part}")?;
        }
    }
    Ok(())
}

/// Whether a text can stand without quotes and be taken for nothing else.
fn is_plain(text: &str) -> bool {
    let is_short = text.chars().nth(VALUE_CHARS_MAX).is_none();
    let is_words = text.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_' | '/'));
    !text.is_empty()
        && is_short
        && is_words
        && text.trim() == text
        && !text.split(' ').any(|word| matches!(word, "and" | "or" | "not" | "exists"))
        && Value::parse(text).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_reads_as_one_line() {
        let table = [
            (
                r#"{"field":"result.status","operator":"equals","value":"approved"}"#,
                "result.status = approved",
            ),
            (r#"{"field":"","operator":"notEquals","value":null}"#, "output ≠ null"),
            (r#"{"field":"n","operator":"equals","value":"7"}"#, "n = \"7\""),
            (r#"{"field":"n","operator":"greaterThan","value":1.50}"#, "n > 1.50"),
            (
                r#"{"field":"[\"a.b\"]","operator":"lessThan","value":"in 2 days"}"#,
                "[\"a.b\"] < in 2 days",
            ),
            (
                r#"{"field":"t","operator":"contains","value":"two\nlines"}"#,
                r#"t contains "two\nlines""#,
            ),
            (r#"{"field":"t","operator":"equals","value":""}"#, "t = \"\""),
            (r#"{"field":"t","operator":"equals","value":"a and b"}"#, "t = \"a and b\""),
            (
                r#"{"all":[{"field":"a","operator":"exists"},{"any":[
                {"field":"b","operator":"exists"},{"not":{"field":"c","operator":"exists"}}]}]}"#,
                "a exists and (b exists or not (c exists))",
            ),
            (
                r#"{"any":[{"all":[{"field":"a","operator":"exists"}]},{"all":[]}]}"#,
                "a exists or always",
            ),
            (r#"{"any":[]}"#, "never"),
        ];
        for (text, label) in table {
            let value = Value::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let condition =
                Condition::parse(&value).unwrap_or_else(|errors| panic!("{text}: {errors:?}"));
            assert_eq!(condition.to_string(), label);
        }
    }
}
