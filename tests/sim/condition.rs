//! Conditions a second time, for the model: SPEC 5 without traces.

use std::cmp::Ordering;

use engine::value::{Number, Value};

/// Whether a condition holds for what a node emitted.
pub fn holds(condition: &Value, emitted: &Value) -> bool {
    let group = |key: &str| condition.get(key).and_then(Value::as_array);
    if let Some(parts) = group("all") {
        return parts.iter().all(|part| holds(part, emitted));
    }
    if let Some(parts) = group("any") {
        return parts.iter().any(|part| holds(part, emitted));
    }
    if let Some(part) = condition.get("not") {
        return !holds(part, emitted);
    }
    let text = |key: &str| condition.get(key).and_then(Value::as_str).expect("a text");
    let seen = find(emitted, text("field"));
    let wanted = condition.get("value");
    match text("operator") {
        "exists" => seen.is_some_and(|seen| *seen != Value::Null),
        "equals" => seen.is_some() && seen == wanted,
        "notEquals" => seen.is_none() || seen != wanted,
        "contains" => match (seen, wanted) {
            (Some(Value::String(text)), Some(Value::String(part))) => text.contains(part.as_str()),
            (Some(Value::Array(items)), Some(item)) => items.contains(item),
            _ => false,
        },
        "greaterThan" => order(seen, wanted) == Some(Ordering::Greater),
        "lessThan" => order(seen, wanted) == Some(Ordering::Less),
        other => panic!("no such operator: {other}"),
    }
}

/// Numbers, and texts that are exactly a JSON number.
fn order(seen: Option<&Value>, wanted: Option<&Value>) -> Option<Ordering> {
    let number = |value: Option<&Value>| match value? {
        Value::Number(number) => Some(number.clone()),
        Value::String(text) => Number::parse(text).ok(),
        _ => None,
    };
    number(seen)?.partial_cmp(&number(wanted)?)
}

/// Follows a path of names, `["quoted names"]` and `[positions]`.
fn find<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    let mut value = value;
    let mut rest = path;
    while !rest.is_empty() {
        rest = rest.strip_prefix('.').unwrap_or(rest);
        if let Some(quoted) = rest.strip_prefix("[\"") {
            let (name, after) = quoted.split_once("\"]").expect("a closed bracket");
            (value, rest) = (value.get(name)?, after);
        } else if let Some(position) = rest.strip_prefix('[') {
            let (position, after) = position.split_once(']').expect("a closed bracket");
            let position: usize = position.parse().expect("a position");
            (value, rest) = (value.as_array()?.get(position)?, after);
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            (value, rest) = (value.get(&rest[..end])?, &rest[end..]);
        }
    }
    Some(value)
}
