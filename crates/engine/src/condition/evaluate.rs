//! What a condition comes to on an output.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::{Condition, Note, Operator, SEEN_CHARS_MAX, Test, TestTrace, Trace};
use crate::value::{Number, Value};

/// Evaluates every part. Recursion is bounded by [`super::CONDITION_DEPTH_MAX`].
pub(super) fn trace(condition: &Condition, output: &Value) -> Trace {
    let trace_all = |parts: &[Condition]| -> Vec<Trace> {
        parts.iter().map(|part| trace(part, output)).collect()
    };
    match condition {
        Condition::Test(test) => Trace::Test(trace_test(test, output)),
        Condition::All(parts) => {
            let parts = trace_all(parts);
            Trace::All { holds: parts.iter().all(Trace::holds), parts }
        }
        Condition::Any(parts) => {
            let parts = trace_all(parts);
            Trace::Any { holds: parts.iter().any(Trace::holds), parts }
        }
        Condition::Not(part) => {
            let part = trace(part, output);
            Trace::Not { holds: !part.holds(), part: Box::new(part) }
        }
    }
}

fn trace_test(test: &Test, output: &Value) -> TestTrace {
    let seen = test.field.resolve(output);
    let (holds, note) = match seen {
        Some(seen) => compare(seen, test.operator, &test.value),
        None => (test.operator == Operator::NotEquals, Some(Note::PathNotFound)),
    };
    let hint = match seen {
        Some(seen) => hint_for_types(seen, test),
        None => test.field.hint_for_missing(output),
    };
    TestTrace {
        field: test.field.to_string(),
        operator: test.operator,
        expected: (test.operator != Operator::Exists)
            .then(|| test.value.to_json_shortened(SEEN_CHARS_MAX)),
        seen: seen.map(|seen| seen.to_json_shortened(SEEN_CHARS_MAX)),
        holds,
        note,
        hint,
    }
}

/// Compares a value that is present.
fn compare(seen: &Value, operator: Operator, expected: &Value) -> (bool, Option<Note>) {
    match operator {
        Operator::Exists => (!seen.is_null(), None),
        Operator::Equals => (seen == expected, None),
        Operator::NotEquals => (seen != expected, None),
        Operator::Contains => match (seen, expected) {
            (Value::String(text), Value::String(part)) => (text.contains(part.as_str()), None),
            (Value::Array(items), _) => (items.contains(expected), None),
            _ => (false, Some(Note::TypeMismatch)),
        },
        Operator::GreaterThan => compare_order(seen, expected, Ordering::Greater),
        Operator::LessThan => compare_order(seen, expected, Ordering::Less),
    }
}

fn compare_order(seen: &Value, expected: &Value, wanted: Ordering) -> (bool, Option<Note>) {
    match (as_ordered(seen), as_ordered(expected)) {
        (Some(seen), Some(expected)) => (seen.cmp(&expected) == wanted, None),
        _ => (false, Some(Note::TypeMismatch)),
    }
}

/// A number, or the number that a text is exactly.
fn as_ordered(value: &Value) -> Option<Cow<'_, Number>> {
    match value {
        Value::Number(number) => Some(Cow::Borrowed(number)),
        Value::String(text) => Number::parse(text).ok().map(Cow::Owned),
        _ => None,
    }
}

/// Says so where two values of different type look the same on a screen.
fn hint_for_types(seen: &Value, test: &Test) -> Option<String> {
    let is_equality = matches!(test.operator, Operator::Equals | Operator::NotEquals);
    let looks_same = match (seen, &test.value) {
        (Value::String(text), other @ (Value::Null | Value::Bool(_) | Value::Number(_)))
        | (other @ (Value::Null | Value::Bool(_) | Value::Number(_)), Value::String(text)) => {
            *text == other.to_json()
        }
        _ => false,
    };
    (is_equality && looks_same)
        .then(|| format!("a {} is never equal to a {}", seen.kind(), test.value.kind()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Verdict;
    use super::*;
    use crate::path::Path;
    use crate::value::Object;
    use crate::value::tests::any_value;

    fn value(text: &str) -> Value {
        Value::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn condition(text: &str) -> Condition {
        Condition::parse(&value(text)).unwrap_or_else(|errors| panic!("{text}: {errors:?}"))
    }

    fn check(field: &str, operator: Operator, expected: &str, output: &str) -> TestTrace {
        let test = Test {
            field: Path::parse(field).unwrap_or_else(|error| panic!("{field}: {error}")),
            operator,
            value: value(expected),
        };
        let verdict = Condition::Test(test).evaluate(&value(output));
        match verdict.trace {
            Trace::Test(trace) => {
                assert_eq!(verdict.holds, trace.holds);
                trace
            }
            other => panic!("a test has the trace of a test, not {other:?}"),
        }
    }

    #[test]
    fn o_c01_numeric_strings_and_ordering() {
        use Operator::{Equals, GreaterThan, LessThan};
        let mismatch = Some(Note::TypeMismatch);
        let table = [
            ("0", LessThan, "\"0.95\"", true, None),
            ("1", GreaterThan, "\"0.95\"", true, None),
            ("\"10\"", GreaterThan, "\"9\"", true, None),
            ("\"1e3\"", GreaterThan, "999", true, None),
            ("10", GreaterThan, "\"9a\"", false, mismatch),
            ("\"\"", LessThan, "1", false, mismatch),
            ("\" 5\"", GreaterThan, "4", false, mismatch),
            ("\"0x10\"", GreaterThan, "1", false, mismatch),
            ("true", GreaterThan, "0", false, mismatch),
            ("[2]", GreaterThan, "1", false, mismatch),
            ("\"154\"", Equals, "154", false, None),
            ("1", Equals, "1.0", true, None),
            ("true", Equals, "\"true\"", false, None),
            ("1", Equals, "true", false, None),
        ];
        for (seen, operator, expected, holds, note) in table {
            let trace = check("", operator, expected, seen);
            assert_eq!((trace.holds, trace.note), (holds, note), "{seen} {operator:?} {expected}");
            let inside = check("f", operator, expected, &format!("{{\"f\":{seen}}}"));
            assert_eq!(
                (inside.holds, inside.note),
                (holds, note),
                "{seen} {operator:?} {expected}"
            );
        }
    }

    #[test]
    fn o_c02_whole_numbers_above_2_to_the_53() {
        use Operator::{Equals, GreaterThan, LessThan};
        let large = [
            ("17169973925117969", "17169973925117968"),
            ("18446744073709551615", "18446744073709551614"),
            ("123456789012345678901234567890", "123456789012345678901234567889"),
        ];
        for (id, other) in large {
            let output = format!("{{\"id\":{id}}}");
            assert!(!check("id", Equals, other, &output).holds);
            assert!(check("id", Equals, id, &output).holds);
            assert!(check("id", GreaterThan, other, &output).holds);
            assert!(!check("id", LessThan, other, &output).holds);
            assert!(check("id", GreaterThan, &format!("\"{other}\""), &output).holds);
            assert_eq!(check("id", Equals, other, &output).seen.as_deref(), Some(id));
        }
    }

    #[test]
    fn o_c03_a_dotted_path_never_matches_a_literal_key_and_says_so() {
        let trace = check("a.b", Operator::Equals, "1", r#"{"a.b":1}"#);
        assert_eq!((trace.holds, trace.note), (false, Some(Note::PathNotFound)));
        assert_eq!(trace.hint.as_deref(), Some(r#"not found, but ["a.b"] is there"#));
        let output = r#"{"a.b":1,"a":{"b":2},"items":[{"n":5}],"":{"x":3},"a/b":4,"ключ":6}"#;
        let table = [
            ("a.b", "2"),
            (r#"["a.b"]"#, "1"),
            ("items[0].n", "5"),
            (r#"[""].x"#, "3"),
            (r#"["a/b"]"#, "4"),
            ("ключ", "6"),
        ];
        for (field, expected) in table {
            assert!(check(field, Operator::Equals, expected, output).holds, "{field}");
        }
        let missing = check("items[9].n", Operator::Exists, "null", output);
        assert_eq!((missing.holds, missing.note), (false, Some(Note::PathNotFound)));
    }

    #[test]
    fn o_c04_missing_null_and_empty_are_three_different_things() {
        use Operator::{Contains, Equals, Exists, LessThan, NotEquals};
        let columns = [
            (Exists, "null"),
            (Equals, "null"),
            (NotEquals, "\"x\""),
            (Contains, "\"x\""),
            (LessThan, "1"),
        ];
        let table = [
            ("{}", [false, false, true, false, false]),
            (r#"{"f":null}"#, [false, true, true, false, false]),
            (r#"{"f":""}"#, [true, false, true, false, false]),
            (r#"{"f":0}"#, [true, false, true, false, true]),
            (r#"{"f":false}"#, [true, false, true, false, false]),
            (r#"{"f":[]}"#, [true, false, true, false, false]),
            (r#"{"f":["x"]}"#, [true, false, true, true, false]),
            (r#"{"f":"axb"}"#, [true, false, true, true, false]),
            ("null", [false, false, true, false, false]),
            ("[1]", [false, false, true, false, false]),
            ("\"text\"", [false, false, true, false, false]),
        ];
        for (output, expected) in table {
            for ((operator, constant), holds) in columns.into_iter().zip(expected) {
                let trace = check("f", operator, constant, output);
                assert_eq!(trace.holds, holds, "{output} {operator:?}");
                let is_missing = !output.contains("\"f\"");
                let says_missing = trace.note == Some(Note::PathNotFound);
                assert_eq!(says_missing, is_missing, "{output} {operator:?}");
                assert_eq!(trace.seen.is_none(), is_missing, "{output} {operator:?}");
            }
        }
    }

    #[test]
    fn o_c04_contains_is_a_substring_or_a_strictly_equal_element() {
        let mismatch = Some(Note::TypeMismatch);
        let table = [
            (r#""axb""#, r#""x""#, true, None),
            (r#""axb""#, r#""""#, true, None),
            (r#""axb""#, r#""X""#, false, None),
            (r#""a1b""#, "1", false, mismatch),
            ("[1.0]", "1", true, None),
            (r#"["1"]"#, "1", false, None),
            (r#"["axb"]"#, r#""x""#, false, None),
            (r#"[{"a":1,"b":[2]}]"#, r#"{"b":[2.0],"a":1e0}"#, true, None),
            ("[null]", "null", true, None),
            (r#"{"x":1}"#, r#""x""#, false, mismatch),
            ("null", r#""x""#, false, mismatch),
            ("12", "1", false, mismatch),
            ("true", "true", false, mismatch),
        ];
        for (seen, expected, holds, note) in table {
            let trace = check("", Operator::Contains, expected, seen);
            assert_eq!((trace.holds, trace.note), (holds, note), "{seen} contains {expected}");
        }
    }

    #[test]
    fn values_that_only_look_the_same_get_a_hint() {
        let hint = |seen, expected| check("", Operator::Equals, expected, seen).hint;
        assert_eq!(hint("\"154\"", "154").as_deref(), Some("a text is never equal to a number"));
        assert_eq!(hint("true", "\"true\"").as_deref(), Some("a boolean is never equal to a text"));
        assert_eq!(hint("\"155\"", "154"), None);
        assert_eq!(hint("1", "1.0"), None);
    }

    #[test]
    fn groups_combine_and_record_every_test() {
        let group = condition(
            r#"{"all":[
                {"any":[{"field":"a","operator":"equals","value":1},
                        {"field":"b","operator":"equals","value":1}]},
                {"not":{"field":"c","operator":"exists"}},
                {"field":"a","operator":"lessThan","value":0}]}"#,
        );
        let verdict = group.evaluate(&value(r#"{"a":1,"c":true}"#));
        assert!(!verdict.holds);
        let tests = verdict.trace.tests();
        let seen: Vec<(&str, bool)> =
            tests.iter().map(|test| (test.field.as_str(), test.holds)).collect();
        assert_eq!(seen, [("a", true), ("b", false), ("c", true), ("a", false)]);
        assert!(condition(r#"{"all":[]}"#).evaluate(&Value::Null).holds);
        assert!(!condition(r#"{"any":[]}"#).evaluate(&Value::Null).holds);
    }

    #[test]
    fn conditions_on_an_error_port_see_the_failure() {
        let failed = value(r#"{"$failed":{"class":"timeout","errorType":"T","message":"late"}}"#);
        let test = condition(r#"{"field":"$failed.class","operator":"equals","value":"timeout"}"#);
        assert!(test.evaluate(&failed).holds);
    }

    #[test]
    fn a_verdict_is_journaled_as_small_readable_json() {
        let group = condition(
            r#"{"not":{"all":[{"field":"a.b","operator":"contains","value":"x"},
                              {"field":"n","operator":"exists"}]}}"#,
        );
        let verdict = group.evaluate(&value(r#"{"a":{"b":7}}"#));
        let text = serde_json::to_string(&verdict).unwrap();
        assert_eq!(
            text,
            concat!(
                r#"{"holds":true,"trace":{"kind":"not","holds":true,"part":{"kind":"all","#,
                r#""holds":false,"parts":[{"kind":"test","field":"a.b","operator":"contains","#,
                r#""expected":"\"x\"","seen":"7","holds":false,"note":"type_mismatch"},"#,
                r#"{"kind":"test","field":"n","operator":"exists","holds":false,"#,
                r#""note":"path_not_found"}]}}}"#,
            )
        );
        assert_eq!(serde_json::from_str::<Verdict>(&text).unwrap(), verdict);
    }

    #[test]
    fn a_trace_repeats_only_the_beginning_of_large_values() {
        let output = Value::from("≤".repeat(1_000_000));
        let test = condition(r#"{"field":"","operator":"exists"}"#);
        let Trace::Test(trace) = test.evaluate(&output).trace else { panic!("a test") };
        let seen = trace.seen.expect("the output is present");
        assert_eq!(seen.chars().count(), SEEN_CHARS_MAX + 1);
        assert!(seen.ends_with("≤…"));
    }

    #[test]
    fn the_deepest_condition_gives_a_trace_that_can_be_read_again() {
        let n_groups = super::super::CONDITION_DEPTH_MAX - 2;
        let text =
            format!("{}{{\"all\":[]}}{}", "{\"not\":".repeat(n_groups), "}".repeat(n_groups));
        let verdict = condition(&text).evaluate(&Value::Null);
        let text = serde_json::to_string(&verdict).unwrap();
        assert_eq!(serde_json::from_str::<Verdict>(&text).unwrap(), verdict);
    }

    fn any_condition() -> impl Strategy<Value = Condition> {
        let field = prop_oneof!["", "a", "b", "[ab]\\.[ab]", "a\\[0\\]", "\\[\"a\\.b\"\\]"];
        let operator = prop::sample::select(Operator::ALL.to_vec());
        let test = (field, operator, any_value()).prop_map(|(field, operator, value)| {
            let value = if operator == Operator::Exists { Value::Null } else { value };
            Condition::Test(Test { field: Path::parse(&field).expect(&field), operator, value })
        });
        test.prop_recursive(4, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Condition::All),
                prop::collection::vec(inner.clone(), 0..4).prop_map(Condition::Any),
                inner.prop_map(|part| Condition::Not(Box::new(part))),
            ]
        })
    }

    /// The condition as it stands in a file.
    fn written(condition: &Condition) -> Value {
        let parts = |parts: &[Condition]| parts.iter().map(written).collect::<Value>();
        let object: Object = match condition {
            Condition::All(all) => [("all", parts(all))].into_iter().collect(),
            Condition::Any(any) => [("any", parts(any))].into_iter().collect(),
            Condition::Not(part) => [("not", written(part))].into_iter().collect(),
            Condition::Test(test) => [
                ("field", Value::from(test.field.to_string())),
                ("operator", test.operator.as_str().into()),
                ("value", test.value.clone()),
            ]
            .into_iter()
            .collect(),
        };
        object.into()
    }

    /// Whether the condition is true, decided once more without a trace.
    fn holds(condition: &Condition, output: &Value) -> bool {
        match condition {
            Condition::All(parts) => !parts.iter().any(|part| !holds(part, output)),
            Condition::Any(parts) => !parts.iter().all(|part| !holds(part, output)),
            Condition::Not(part) => !holds(part, output),
            Condition::Test(test) => match (test.field.resolve(output), test.operator) {
                (seen, Operator::Exists) => seen.is_some_and(|seen| *seen != Value::Null),
                (seen, Operator::Equals) => seen == Some(&test.value),
                (seen, Operator::NotEquals) => seen != Some(&test.value),
                (None, _) => false,
                (Some(seen), operator) => compare(seen, operator, &test.value).0,
            },
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn p3_a_condition_always_comes_to_the_same_verdict(
            condition in any_condition(), output in any_value()
        ) {
            let verdict = condition.evaluate(&output);
            prop_assert_eq!(&condition.clone().evaluate(&output.clone()), &verdict);
            prop_assert_eq!(verdict.holds, holds(&condition, &output));
            let again = Condition::parse(&written(&condition)).unwrap();
            prop_assert_eq!(&again, &condition);
            let text = serde_json::to_string(&verdict).unwrap();
            prop_assert_eq!(serde_json::from_str::<Verdict>(&text).unwrap(), verdict);
            prop_assert!(!condition.to_string().contains('\n'), "a label is one line");
        }

        #[test]
        fn any_value_is_a_condition_or_is_refused_with_reasons(value in any_value()) {
            match Condition::parse(&value) {
                Ok(condition) => {
                    condition.evaluate(&value);
                }
                Err(errors) => prop_assert!(!errors.is_empty()),
            }
        }
    }
}
