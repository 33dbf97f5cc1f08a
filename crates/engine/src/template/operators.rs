//! The operators of templates: JSON's equality, exact decimals, no silent conversions.
//!
//! The engine's own operators round to doubles, take true for 1 and write null as `None`. The
//! rewriter therefore turns every operator into one of these filters, whose names no author can
//! write.

use std::cmp::Ordering;

use minijinja::value::{Rest, ValueKind};
use minijinja::{Environment, Error, State, Value as EngineValue};

use super::convert::{charge, charge_element, kind, number, refuse, resolved, text};
use super::decimal::{ArithmeticError, Decimal};
use super::scope::engine_number;
use crate::value::{DEPTH_MAX, Number};

/// The internal names, one per operator and helper.
pub(super) mod name {
    pub(in super::super) const ADD: &str = "__add";
    pub(in super::super) const SUB: &str = "__sub";
    pub(in super::super) const MUL: &str = "__mul";
    pub(in super::super) const DIV: &str = "__div";
    pub(in super::super) const FLOOR_DIV: &str = "__floor_div";
    pub(in super::super) const REM: &str = "__rem";
    pub(in super::super) const POW: &str = "__pow";
    pub(in super::super) const NEG: &str = "__neg";
    pub(in super::super) const CONCAT: &str = "__concat";
    pub(in super::super) const EQ: &str = "__eq";
    pub(in super::super) const NE: &str = "__ne";
    pub(in super::super) const LT: &str = "__lt";
    pub(in super::super) const LE: &str = "__le";
    pub(in super::super) const GT: &str = "__gt";
    pub(in super::super) const GE: &str = "__ge";
    pub(in super::super) const IN: &str = "__in";
    /// A number literal, from its text.
    pub(in super::super) const NUMBER: &str = "__number";
    /// The text of a value, as it is written inside text.
    pub(in super::super) const TEXT: &str = "__text";
    /// Refuses what did not resolve.
    pub(in super::super) const RESOLVED: &str = "__resolved";
    /// Walks a path that may end early.
    pub(in super::super) const PATH: &str = "__path";
    /// Refuses what cannot be looped over.
    pub(in super::super) const EACH: &str = "__each";
}

/// Adds the operators to an environment.
pub(super) fn install(env: &mut Environment<'static>) {
    install_arithmetic(env);
    install_comparisons(env);
    env.add_filter(name::CONCAT, |state: &State, left: &EngineValue, right: &EngineValue| {
        Ok::<_, Error>(text(state, left)? + &text(state, right)?)
    });
    env.add_filter(name::NUMBER, |digits: &str| {
        Number::parse(digits)
            .map(|number| engine_number(&number))
            .map_err(|e| refuse(e.to_string()))
    });
    env.add_filter(name::TEXT, |state: &State, value: &EngineValue| {
        match resolved(value)?.as_str() {
            Some(_) => Ok(value.clone()),
            None => text(state, value).map(EngineValue::from),
        }
    });
    env.add_filter(name::RESOLVED, |value: &EngineValue| resolved(value).cloned());
    env.add_filter(name::PATH, path);
    env.add_filter(name::EACH, |value: &EngineValue| match resolved(value)?.kind() {
        ValueKind::Seq | ValueKind::Iterable | ValueKind::Map | ValueKind::String => {
            Ok(value.clone())
        }
        _ => Err(refuse(format!("a loop needs a list or an object, found {}", kind(value)))),
    });
}

fn install_arithmetic(env: &mut Environment<'static>) {
    type Operation = fn(Decimal, Decimal) -> Result<Decimal, ArithmeticError>;
    let operations: [(&str, &'static str, Operation); 6] = [
        (name::SUB, "-", Decimal::sub),
        (name::MUL, "*", Decimal::mul),
        (name::DIV, "/", Decimal::div),
        (name::FLOOR_DIV, "//", Decimal::floor_div),
        (name::REM, "%", Decimal::rem),
        (name::POW, "**", Decimal::pow),
    ];
    for (name, sign, operation) in operations {
        env.add_filter(name, move |left: &EngineValue, right: &EngineValue| {
            calculate(left, right, sign, operation)
        });
    }
    env.add_filter(name::ADD, add);
    env.add_filter(name::NEG, |value: &EngineValue| match number(resolved(value)?) {
        Some(number) => to_engine(Decimal::of(&number).and_then(Decimal::neg)),
        None => Err(refuse(format!("`-` needs a number, found {}", kind(value)))),
    });
}

fn install_comparisons(env: &mut Environment<'static>) {
    env.add_filter(name::EQ, |state: &State, left: &EngineValue, right: &EngineValue| {
        equal(state, left, right)
    });
    env.add_filter(name::NE, |state: &State, left: &EngineValue, right: &EngineValue| {
        equal(state, left, right).map(|is_equal| !is_equal)
    });
    type Holds = fn(Ordering) -> bool;
    let orders: [(&str, Holds); 4] = [
        (name::LT, Ordering::is_lt),
        (name::LE, Ordering::is_le),
        (name::GT, Ordering::is_gt),
        (name::GE, Ordering::is_ge),
    ];
    for (name, holds) in orders {
        env.add_filter(name, move |state: &State, left: &EngineValue, right: &EngineValue| {
            compare(state, left, right).map(holds)
        });
    }
    env.add_filter(name::IN, |state: &State, needle: &EngineValue, hay: &EngineValue| {
        contains(state, hay, needle)
    });
}

/// A number as the engine sees it, or why there is none.
pub(super) fn to_engine(result: Result<Decimal, ArithmeticError>) -> Result<EngineValue, Error> {
    let number = result.and_then(Decimal::to_number).map_err(|error| refuse(error.to_string()))?;
    Ok(engine_number(&number))
}

fn calculate(
    left: &EngineValue,
    right: &EngineValue,
    sign: &str,
    operation: impl Fn(Decimal, Decimal) -> Result<Decimal, ArithmeticError>,
) -> Result<EngineValue, Error> {
    match (number(resolved(left)?), number(resolved(right)?)) {
        (Some(left), Some(right)) => {
            to_engine(Decimal::of(&left).and_then(|left| operation(left, Decimal::of(&right)?)))
        }
        _ => {
            let (left, right) = (kind(left), kind(right));
            Err(refuse(format!("`{sign}` needs two numbers, found {left} and {right}")))
        }
    }
}

/// Sums of numbers, texts one after the other, lists one after the other.
pub(super) fn add(
    state: &State,
    left: &EngineValue,
    right: &EngineValue,
) -> Result<EngineValue, Error> {
    let is_list =
        |value: &EngineValue| matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable);
    if let (Some(left), Some(right)) = (left.as_str(), right.as_str()) {
        return Ok(EngineValue::from([left, right].concat()));
    }
    if is_list(left) && is_list(right) {
        let mut items = Vec::new();
        for item in left.try_iter()?.checked().chain(right.try_iter()?.checked()) {
            charge_element(state)?;
            items.push(item?);
        }
        return Ok(EngineValue::from(items));
    }
    if number(resolved(left)?).is_none() || number(resolved(right)?).is_none() {
        let (left, right) = (kind(left), kind(right));
        let hint = "to put texts together write them side by side, or use `~`";
        return Err(refuse(format!("`+` cannot add {left} and {right}; {hint}")));
    }
    calculate(left, right, "+", Decimal::add)
}

/// Whether two values are equal as JSON: numbers as exact decimals, objects in any order.
pub(super) fn equal(state: &State, left: &EngineValue, right: &EngineValue) -> Result<bool, Error> {
    let mut pending = vec![(resolved(left)?.clone(), resolved(right)?.clone(), 0)];
    while let Some((left, right, depth)) = pending.pop() {
        charge_element(state)?;
        charge(state, left.as_str().map_or(0, str::len))?;
        if depth > DEPTH_MAX {
            return Err(refuse(format!("values nested deeper than {DEPTH_MAX} levels")));
        }
        if !equal_outside(&left, &right)? {
            return Ok(false);
        }
        match left.kind() {
            ValueKind::Seq | ValueKind::Iterable => {
                let (mut lefts, mut rights) =
                    (left.try_iter()?.checked(), right.try_iter()?.checked());
                loop {
                    match (lefts.next().transpose()?, rights.next().transpose()?) {
                        (Some(left), Some(right)) => pending.push((left, right, depth + 1)),
                        (None, None) => break,
                        _ => return Ok(false),
                    }
                }
            }
            ValueKind::Map => {
                for key in left.try_iter()?.checked() {
                    let key = key?;
                    let (left, right) = (left.get_item(&key)?, right.get_item(&key)?);
                    if right.is_undefined() {
                        return Ok(false);
                    }
                    pending.push((left, right, depth + 1));
                }
            }
            _ => {}
        }
    }
    Ok(true)
}

/// Whether two values are equal as far as their outermost level shows.
fn equal_outside(left: &EngineValue, right: &EngineValue) -> Result<bool, Error> {
    if left.is_integer() && right.is_integer() {
        return Ok(left == right);
    }
    if let (Some(left), Some(right)) = (number(left), number(right)) {
        return Ok(left == right);
    }
    let is_list =
        |value: &EngineValue| matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable);
    Ok(match (left.kind(), right.kind()) {
        (ValueKind::None, ValueKind::None) => true,
        (ValueKind::Bool, ValueKind::Bool) => left.is_true() == right.is_true(),
        (ValueKind::String, ValueKind::String) => left.as_str() == right.as_str(),
        (ValueKind::Map, ValueKind::Map) => left.len() == right.len(),
        _ => is_list(left) && is_list(right),
    })
}

/// The order of two numbers or of two texts; other pairs have none.
pub(super) fn compare(
    state: &State,
    left: &EngineValue,
    right: &EngineValue,
) -> Result<Ordering, Error> {
    if let (Some(left), Some(right)) = (resolved(left)?.as_str(), resolved(right)?.as_str()) {
        charge(state, left.len().min(right.len()))?;
        return Ok(left.cmp(right));
    }
    match (number(left), number(right)) {
        (Some(left), Some(right)) => Ok(left.cmp(&right)),
        _ => {
            let (left, right) = (kind(left), kind(right));
            let rule = "only two numbers or two texts have an order";
            Err(refuse(format!("cannot compare {left} with {right}: {rule}")))
        }
    }
}

/// Whether a list has an equal element, an object such a key, a text such a part.
pub(super) fn contains(
    state: &State,
    hay: &EngineValue,
    needle: &EngineValue,
) -> Result<bool, Error> {
    match (resolved(hay)?.kind(), resolved(needle)?.as_str()) {
        (ValueKind::String, Some(part)) => {
            let text = hay.as_str().unwrap_or_default();
            charge(state, text.len())?;
            Ok(text.contains(part))
        }
        (ValueKind::Map, Some(key)) => {
            Ok(hay.as_object().is_some_and(|map| map.get_value_by_str(key).is_some()))
        }
        (ValueKind::Seq | ValueKind::Iterable, _) => {
            for item in hay.try_iter()?.checked() {
                if equal(state, &item?, needle)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        _ => {
            let (needle, hay) = (kind(needle), kind(hay));
            Err(refuse(format!("`in` cannot look for {needle} in {hay}")))
        }
    }
}

/// Follows a path as far as it goes; what is missing on the way makes the whole undefined.
fn path(start: &EngineValue, keys: Rest<EngineValue>) -> Result<EngineValue, Error> {
    let mut value = start.clone();
    for key in keys.iter() {
        resolved(key)?;
        if value.is_undefined() {
            break;
        }
        value = value.get_item(key)?;
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use crate::template::{Scope, Template};
    use crate::value::Value;

    fn scope() -> Scope {
        let value = r#"{"price": 1.50, "id": 17169973925117969, "one": 1.0, "t": "10", "no": null,
            "l": [1, {"a": [2.0]}], "m": [1.0, {"a": [2]}], "yes": true, "huge": 1e300}"#;
        Scope::new().with("v", Value::parse(value).unwrap())
    }

    fn outcome(source: &str) -> String {
        let template = Template::parse(&format!("{{{{ {source} }}}}")).expect(source);
        match template.render(&scope()) {
            Ok(rendered) => rendered.value.to_json(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn operators_calculate_exactly_and_compare_like_json() {
        let table = [
            ("v.id + 1", "17169973925117970"),
            ("v.id - 17169973925117968", "1"),
            ("0.1 + 0.2", "0.3"),
            ("v.price * 3", "4.5"),
            ("7 / 2", "3.5"),
            ("6 / 2", "3"),
            ("7 // 2", "3"),
            ("-7 % 3", "2"),
            ("2 ** 10", "1024"),
            ("-v.price", "-1.5"),
            ("1 + 2 * 3 - 4", "3"),
            ("(1 + 2) * 3", "9"),
            ("1.50", "1.50"),
            ("-1.50", "-1.50"),
            ("1_000", "1000"),
            ("0x10", "16"),
            ("'a' + 'b'", r#""ab""#),
            ("[1] + [2.50]", "[1,2.50]"),
            ("1 ~ null ~ true ~ [1.0] ~ 'x'", r#""1nulltrue[1.0]x""#),
            ("v.price > 1", "true"),
            ("v.price < 2 and v.price <= 1.5", "true"),
            ("v.one == 1", "true"),
            ("v.yes == 1", "false"),
            ("v.t == 10", "false"),
            ("v.no == none", "true"),
            ("v.no == ''", "false"),
            ("v.l == v.m", "true"),
            ("v.l != v.m", "false"),
            ("{'b': 1, 'a': 2} == {'a': 2.0, 'b': 1.0}", "true"),
            ("{'a': 1} == {'b': 1}", "false"),
            ("v.huge > v.id", "true"),
            ("'a' < 'b'", "true"),
            ("1.0 in v.l", "true"),
            ("'a' in 'cat'", "true"),
            ("'t' in v", "true"),
            ("'x' not in v", "true"),
            ("3 not in [1, 2]", "true"),
            ("not v.no", "true"),
            ("0.0 or 'b'", r#""b""#),
            ("v.price and 'b'", r#""b""#),
            ("'a' if v.yes else 'b'", r#""a""#),
            ("v.l[1].a[0]", "2.0"),
            ("[1, 2, 3][1:]", "[2,3]"),
            ("[1, 2, 3][-1]", "3"),
            ("'abc'[:2]", r#""ab""#),
            ("(1, 2)", "[1,2]"),
            ("{'b': 1.0, 'a': null}", r#"{"b":1.0,"a":null}"#),
            ("range(3)", "[0,1,2]"),
        ];
        for (source, expected) in table {
            assert_eq!(outcome(source), expected, "{source}");
        }
    }

    #[test]
    fn what_has_no_exact_answer_is_refused() {
        let table = [
            ("1 + 'a'", "`+` cannot add a number and a text"),
            ("v.no + 1", "`+` cannot add null and a number"),
            ("v.t * 2", "`*` needs two numbers, found a text and a number"),
            ("-v.t", "`-` needs a number, found a text"),
            ("v.huge + 1", "at most 38 digits"),
            ("v.huge * v.huge", "outside the range"),
            ("1 / 0", "division by zero"),
            ("v.t > 5", "cannot compare a text with a number"),
            ("v.no < 1", "cannot compare null with a number"),
            ("true < 2", "cannot compare a boolean with a number"),
            ("1 in 5", "`in` cannot look for a number in a number"),
            ("{1: 2}", "the keys of an object are texts, found a number"),
            ("v.t[0:1:0]", "step size"),
        ];
        for (source, expected) in table {
            assert!(outcome(source).contains(expected), "{source}: {}", outcome(source));
        }
        let loops = Template::parse("{% for x in v.yes %}{% endfor %}").unwrap();
        let error = loops.render(&scope()).unwrap_err().to_string();
        assert_eq!(error, "line 1: a loop needs a list or an object, found a boolean");
    }

    #[test]
    fn statements_work_as_in_jinja() {
        let table = [
            ("{% for x in v.l %}{{ loop.index }}:{{ x }};{% endfor %}", r#"1:1;2:{"a":[2.0]};"#),
            ("{% for k, x in {'b': 1, 'a': 2} | items %}{{ k }}{{ x }}{% endfor %}", "b1a2"),
            ("{% for k in v.l[1] %}{{ k }}{% endfor %}", "a"),
            ("{% for x in [] %}{% else %}none{% endfor %}", "none"),
            ("{% for x in [1, 2, 3] if x > 1.5 %}{{ x }}{% endfor %}", "23"),
            ("{% for (a, b), c in [[[1, 2], 3]] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "123"),
            ("{% for x in [1, 2] %}{{ loop.cycle('a', 'b') }}{% endfor %}", "ab"),
            ("{% if v.no %}a{% elif v.yes %}b{% else %}c{% endif %}", "b"),
            ("{% set x = v.price %}{{ x }}{% set x, y = [1, 2] %}{{ x }}{{ y }}", "1.5012"),
            ("{% set x %}a{{ v.no }}{% endset %}{{ x | upper }}", "ANULL"),
            ("{% set x | upper | trim %} a {% endset %}[{{ x }}]", "[A]"),
            ("{% filter upper | replace('A', 'b') %}a{{ v.yes }}{% endfilter %}", "bTRUE"),
            ("{% with a = 1.0, b = a %}{{ b }}{% endwith %}.", "1.0."),
            ("  {%- if true %} x {% endif -%}  y", " x y"),
            ("{% raw %}{{ v }}{% endraw %}{{ 1 }}{# {{ nope }} #}", "{{ v }}1"),
        ];
        for (source, expected) in table {
            let template = Template::parse(source).unwrap_or_else(|e| panic!("{source}: {e}"));
            let rendered = template.render(&scope()).unwrap_or_else(|e| panic!("{source}: {e}"));
            assert_eq!(rendered.value.as_str(), Some(expected), "{source}");
        }
    }
}
