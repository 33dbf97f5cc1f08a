//! The tests that authors may write after `is`.

use std::cmp::Ordering;

use minijinja::value::ValueKind;
use minijinja::{Environment, Error, State, Value as EngineValue};

use super::convert::{number, resolved};
use super::decimal::Decimal;
use super::operators::{compare, contains, equal};

/// The tests an author may write, sorted; the signs only as names for `select` and its kin.
pub(super) const TESTS: [&str; 38] = [
    "!=",
    "<",
    "<=",
    "==",
    ">",
    ">=",
    "boolean",
    "defined",
    "divisibleby",
    "endingwith",
    "eq",
    "equalto",
    "even",
    "false",
    "float",
    "ge",
    "greaterthan",
    "gt",
    "in",
    "int",
    "integer",
    "iterable",
    "le",
    "lessthan",
    "lower",
    "lt",
    "mapping",
    "ne",
    "none",
    "null",
    "number",
    "odd",
    "sequence",
    "startingwith",
    "string",
    "true",
    "undefined",
    "upper",
];

/// The engine's tests that have no meaning here.
const REMOVED: [&str; 5] = ["escaped", "filter", "safe", "sameas", "test"];

/// Adds the tests to an environment that has the engine's own.
pub(super) fn install(env: &mut Environment<'static>) {
    for name in REMOVED {
        env.remove_test(name);
    }
    for name in ["none", "null"] {
        by_value(env, name, EngineValue::is_none);
    }
    by_value(env, "boolean", |value| value.kind() == ValueKind::Bool);
    by_value(env, "true", |value| value.kind() == ValueKind::Bool && value.is_true());
    by_value(env, "false", |value| value.kind() == ValueKind::Bool && !value.is_true());
    by_value(env, "string", |value| value.as_str().is_some());
    by_value(env, "mapping", |value| value.kind() == ValueKind::Map);
    by_value(env, "sequence", is_list);
    by_value(env, "iterable", |value| {
        is_list(value) || matches!(value.kind(), ValueKind::Map | ValueKind::String)
    });
    by_value(env, "lower", |value| value.as_str().is_some_and(|text| text == text.to_lowercase()));
    by_value(env, "upper", |value| value.as_str().is_some_and(|text| text == text.to_uppercase()));
    install_numeric(env);
    install_comparisons(env);
    env.add_test("startingwith", |value: &EngineValue, start: &str| {
        Ok::<_, Error>(resolved(value)?.as_str().is_some_and(|text| text.starts_with(start)))
    });
    env.add_test("endingwith", |value: &EngineValue, end: &str| {
        Ok::<_, Error>(resolved(value)?.as_str().is_some_and(|text| text.ends_with(end)))
    });
}

fn install_numeric(env: &mut Environment<'static>) {
    by_value(env, "number", |value| number(value).is_some());
    for name in ["integer", "int"] {
        by_value(env, name, |value| number(value).is_some_and(|number| number.is_integer()));
    }
    by_value(env, "float", |value| number(value).is_some_and(|number| !number.is_integer()));
    by_value(env, "odd", |value| remainder(value, 2) == Some(1));
    by_value(env, "even", |value| remainder(value, 2) == Some(0));
    env.add_test("divisibleby", |value: &EngineValue, divisor: i64| {
        Ok::<_, Error>(remainder(resolved(value)?, divisor) == Some(0))
    });
}

fn install_comparisons(env: &mut Environment<'static>) {
    for name in ["eq", "equalto", "=="] {
        env.add_test(name, |state: &State, left: &EngineValue, right: &EngineValue| {
            equal(state, left, right)
        });
    }
    for name in ["ne", "!="] {
        env.add_test(name, |state: &State, left: &EngineValue, right: &EngineValue| {
            equal(state, left, right).map(|is_equal| !is_equal)
        });
    }
    env.add_test("in", |state: &State, needle: &EngineValue, hay: &EngineValue| {
        contains(state, hay, needle)
    });
    type Holds = fn(Ordering) -> bool;
    let orders: [(&[&'static str], Holds); 4] = [
        (&["lt", "lessthan", "<"], Ordering::is_lt),
        (&["le", "<="], Ordering::is_le),
        (&["gt", "greaterthan", ">"], Ordering::is_gt),
        (&["ge", ">="], Ordering::is_ge),
    ];
    for (names, holds) in orders {
        for name in names {
            env.add_test(*name, move |state: &State, left: &EngineValue, right: &EngineValue| {
                compare(state, left, right).map(holds)
            });
        }
    }
}

/// Adds a test of a single value, which must have resolved.
fn by_value(
    env: &mut Environment<'static>,
    name: &'static str,
    holds: impl Fn(&EngineValue) -> bool + Send + Sync + 'static,
) {
    env.add_test(name, move |value: &EngineValue| resolved(value).map(&holds));
}

fn is_list(value: &EngineValue) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable)
}

/// What a whole number leaves when divided; `None` for other values and a division by zero.
fn remainder(value: &EngineValue, divisor: i64) -> Option<i128> {
    let divisor = i128::from(divisor);
    let integer = Decimal::of(&number(value)?).ok()?.to_integer()?;
    integer.checked_rem_euclid(divisor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::{Scope, Template};
    use crate::value::Value;

    #[test]
    fn the_tests_are_sorted_and_installed() {
        assert!(TESTS.is_sorted());
        let env = super::super::environment::shared();
        let state = &mut env.empty_state();
        for name in TESTS {
            let args = [EngineValue::from(1), EngineValue::from(1)];
            if let Err(error) = state.perform_test(name, &args) {
                assert_ne!(error.kind(), minijinja::ErrorKind::UnknownTest, "{name}");
            }
        }
    }

    #[test]
    fn tests_follow_the_kinds_of_json() {
        let scope = Scope::new()
            .with("n", Value::parse("1.50").unwrap())
            .with("w", Value::parse("3.0").unwrap())
            .with("l", Value::parse("[1, 1.0, 2.50]").unwrap())
            .with("o", Value::parse(r#"{"a": null}"#).unwrap());
        let holds = [
            "n is number",
            "n is float",
            "n is not integer",
            "w is integer",
            "w is odd",
            "4 is even",
            "n is not odd",
            "w is divisibleby(3)",
            "w is not divisibleby(0)",
            "o.a is none",
            "o.a is null",
            "o is mapping",
            "o is iterable",
            "l is sequence",
            "l[1:] is sequence",
            "'a' is string",
            "'a' is not sequence",
            "true is true",
            "1 is not true",
            "0 is not false",
            "1 is not boolean",
            "'abc' is startingwith('ab')",
            "'abc' is endingwith 'c'",
            "'abc' is lower",
            "'ÄB' is upper",
            "w is eq(3)",
            "n is gt(1)",
            "n is le(1.5)",
            "2.5 is in(l)",
            "(l | select('==', 1) | list) == [1, 1]",
            "(l | reject('<', 2) | list) == [2.5]",
            "([o] | selectattr('a', 'none') | list) == [o]",
        ];
        for source in holds {
            let template = Template::parse(&format!("{{{{ {source} }}}}")).expect(source);
            assert_eq!(template.render(&scope).expect(source).value, Value::Bool(true), "{source}");
        }
    }
}
