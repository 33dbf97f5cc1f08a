//! The filters that authors may use.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use minijinja::filters as builtin;
use minijinja::value::{Kwargs, Rest, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, State, Value as EngineValue};

use super::convert::{
    charge, charge_element, json, kind, number, refuse, resolved, text, to_value,
};
use super::decimal::{Decimal, Rounding};
use super::operators::{add, compare, to_engine};
use super::scope::engine_number;
use crate::value::{Number, Value};

/// The filters an author may use, sorted.
pub(super) const FILTERS: [&str; 46] = [
    "abs",
    "attr",
    "batch",
    "bool",
    "capitalize",
    "count",
    "d",
    "default",
    "e",
    "escape",
    "first",
    "float",
    "indent",
    "int",
    "items",
    "join",
    "last",
    "length",
    "lines",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "round",
    "select",
    "selectattr",
    "slice",
    "slugify",
    "sort",
    "split",
    "string",
    "sum",
    "title",
    "tojson",
    "trim",
    "truncate",
    "unique",
    "upper",
    "urlencode",
    "xml_escape",
    "zip",
];

/// The engine's filters that authors may not use: they write Python's texts, or compare numbers
/// as doubles.
const REMOVED: [&str; 6] = ["chain", "dictsort", "format", "groupby", "pprint", "safe"];

/// Adds the filters to an environment that has the engine's own.
pub(super) fn install(env: &mut Environment<'static>) {
    for name in REMOVED {
        env.remove_filter(name);
    }
    over_text(env, "upper", EngineValue::from_function(builtin::upper));
    over_text(env, "lower", EngineValue::from_function(builtin::lower));
    over_text(env, "title", EngineValue::from_function(builtin::title));
    over_text(env, "capitalize", EngineValue::from_function(builtin::capitalize));
    over_text(env, "trim", EngineValue::from_function(builtin::trim));
    over_text(env, "split", EngineValue::from_function(builtin::split));
    over_text(env, "lines", EngineValue::from_function(builtin::lines));
    over_text(env, "indent", EngineValue::from_function(builtin::indent));
    env.add_filter("replace", replace);
    env.add_filter("string", text);
    env.add_filter("join", join);
    env.add_filter("truncate", truncate);
    type Convert = fn(&str) -> String;
    let to_text: [(&str, Convert); 5] = [
        ("slugify", slug),
        ("urlencode", percent),
        ("xml_escape", escape_xml),
        ("escape", escape_xml),
        ("e", escape_xml),
    ];
    for (name, convert) in to_text {
        env.add_filter(name, move |state: &State, value: &EngineValue| {
            text(state, value).map(|text| convert(&text))
        });
    }
    env.add_filter("tojson", to_json);
    env.add_filter("bool", |value: &EngineValue| resolved(value).map(EngineValue::is_true));
    install_numeric(env);
}

fn install_numeric(env: &mut Environment<'static>) {
    env.add_filter("abs", |value: &EngineValue| {
        to_engine(Decimal::of(&wanted_number("abs", value)?).and_then(Decimal::abs))
    });
    env.add_filter("round", round);
    env.add_filter("int", |value: &EngineValue, default: Option<EngineValue>, kwargs: Kwargs| {
        let default = optional(default, &kwargs, "default")?;
        match parsed(value)? {
            Some(number) => to_engine(Decimal::of(&number).and_then(Decimal::truncate)),
            None => default.ok_or_else(|| not_a_number(value)),
        }
    });
    env.add_filter("float", |value: &EngineValue, default: Option<EngineValue>, kwargs: Kwargs| {
        let default = optional(default, &kwargs, "default")?;
        match parsed(value)? {
            Some(number) => Ok(engine_number(&number)),
            None => default.ok_or_else(|| not_a_number(value)),
        }
    });
    env.add_filter("sum", sum);
    env.add_filter("sort", sort);
    env.add_filter("unique", unique);
    env.add_filter("min", |state: &State, list: &EngineValue, kwargs: Kwargs| {
        extreme(state, list, kwargs, Ordering::Less)
    });
    env.add_filter("max", |state: &State, list: &EngineValue, kwargs: Kwargs| {
        extreme(state, list, kwargs, Ordering::Greater)
    });
}

/// Adds one of the engine's filters on texts so that it sees our text of any other value.
fn over_text(env: &mut Environment<'static>, name: &'static str, filter: EngineValue) {
    env.add_filter(
        name,
        move |state: &mut State, value: &EngineValue, rest: Rest<ValueOrKwargs>| {
            let mut args = vec![EngineValue::from(text(state, value)?)];
            args.extend(rest.into_values());
            filter.call(state, &args)
        },
    );
}

fn replace(
    state: &State,
    value: &EngineValue,
    from: &EngineValue,
    to: &EngineValue,
    count: Option<usize>,
) -> Result<String, Error> {
    let (value, from, to) = (text(state, value)?, text(state, from)?, text(state, to)?);
    let count = count.unwrap_or(usize::MAX);
    let n_matches = value.matches(&from).take(count).count();
    charge(state, n_matches.saturating_mul(to.len()).saturating_add(value.len()))?;
    Ok(value.replacen(&from, &to, count))
}

fn join(
    state: &State,
    list: &EngineValue,
    separator: Option<EngineValue>,
    kwargs: Kwargs,
) -> Result<String, Error> {
    let path: Option<String> = kwargs.get("attribute")?;
    let separator = optional(separator, &kwargs, "d")?;
    let separator = separator.as_ref().map(|d| text(state, d)).transpose()?.unwrap_or_default();
    let mut joined = String::new();
    for (position, item) in items("join", list)?.enumerate() {
        let part = text(state, &attribute(item?, path.as_deref())?)?;
        charge_element(state)?;
        charge(state, separator.len() + part.len())?;
        if position > 0 {
            joined.push_str(&separator);
        }
        joined.push_str(&part);
    }
    Ok(joined)
}

/// The first `n` code points; if something is cut off, `end` replaces the last of them.
fn truncate(state: &State, value: &EngineValue, n: usize, kwargs: Kwargs) -> Result<String, Error> {
    let end: String = kwargs.get::<Option<String>>("end")?.unwrap_or_default();
    kwargs.assert_all_used()?;
    let mut cut = text(state, value)?;
    if cut.char_indices().nth(n).is_none() {
        return Ok(cut);
    }
    let n_kept = n.saturating_sub(end.chars().count());
    let n_bytes = cut.char_indices().nth(n_kept).map_or(cut.len(), |(at, _)| at);
    cut.truncate(n_bytes);
    cut.extend(end.chars().take(n));
    Ok(cut)
}

/// Letters and digits in lower case, everything between them as one hyphen.
fn slug(value: &str) -> String {
    let mut slug = String::with_capacity(value.len());
    for c in value.chars() {
        if c.is_alphanumeric() {
            slug.extend(c.to_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.truncate(slug.trim_end_matches('-').len());
    slug
}

/// Percent-encodes everything but the unreserved characters of RFC 3986.
fn percent(value: &str) -> String {
    let mut encoded = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

fn escape_xml(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(c),
        }
    }
    escaped
}

/// Compact JSON, or JSON indented by two spaces if `indent` is anything true.
fn to_json(
    state: &State,
    value: &EngineValue,
    indent: Option<EngineValue>,
    kwargs: Kwargs,
) -> Result<String, Error> {
    let indent = optional(indent, &kwargs, "indent")?;
    let is_indented = indent.is_some_and(|indent| indent.is_true());
    json(state, value, if is_indented { Value::to_json_pretty } else { Value::to_json })
}

fn round(
    value: &EngineValue,
    places: Option<i32>,
    method: Option<String>,
    kwargs: Kwargs,
) -> Result<EngineValue, Error> {
    let places = places.or(kwargs.get("precision")?).unwrap_or(0);
    let method = method.or(kwargs.get("method")?);
    kwargs.assert_all_used()?;
    let rounding = match method.as_deref() {
        None | Some("common") => Rounding::Nearest,
        Some("ceil") => Rounding::Ceiling,
        Some("floor") => Rounding::Floor,
        Some(other) => {
            return Err(refuse(format!("round knows common, ceil and floor, not `{other}`")));
        }
    };
    let number = wanted_number("round", value)?;
    to_engine(Decimal::of(&number).and_then(|number| number.round(places, rounding)))
}

fn sum(state: &State, list: &EngineValue, kwargs: Kwargs) -> Result<EngineValue, Error> {
    let path: Option<String> = kwargs.get("attribute")?;
    let start: Option<EngineValue> = kwargs.get("start")?;
    kwargs.assert_all_used()?;
    let mut total = start.unwrap_or_else(|| EngineValue::from(0));
    for item in items("sum", list)? {
        charge_element(state)?;
        total = add(state, &total, &attribute(item?, path.as_deref())?)?;
    }
    Ok(total)
}

/// Smallest first; equal ones stay in order. Texts are compared without regard to case unless
/// `case_sensitive` is true.
fn sort(state: &State, list: &EngineValue, kwargs: Kwargs) -> Result<Vec<EngineValue>, Error> {
    let is_reverse = kwargs.get::<Option<bool>>("reverse")?.unwrap_or(false);
    let mut keyed = keyed(state, "sort", list, &kwargs)?;
    kwargs.assert_all_used()?;
    // Every pair has an order once each key has one with the first.
    if let Some((first, _)) = keyed.first() {
        for (key, _) in &keyed {
            compare(state, first, key)?;
        }
    }
    let mut failure = None;
    keyed.sort_by(|(left, _), (right, _)| {
        if failure.is_some() {
            return Ordering::Equal;
        }
        match compare(state, left, right) {
            Ok(order) if is_reverse => order.reverse(),
            Ok(order) => order,
            Err(error) => {
                failure = Some(error);
                Ordering::Equal
            }
        }
    });
    match failure {
        Some(error) => Err(error),
        None => Ok(keyed.into_iter().map(|(_, item)| item).collect()),
    }
}

/// The first of each group of equal elements.
fn unique(state: &State, list: &EngineValue, kwargs: Kwargs) -> Result<Vec<EngineValue>, Error> {
    let keyed = keyed(state, "unique", list, &kwargs)?;
    kwargs.assert_all_used()?;
    let mut seen = BTreeSet::new();
    let mut kept = Vec::new();
    for (key, item) in keyed {
        let key = to_value(&key)?.to_canonical();
        charge(state, key.len())?;
        if seen.insert(key) {
            kept.push(item);
        }
    }
    Ok(kept)
}

fn extreme(
    state: &State,
    list: &EngineValue,
    kwargs: Kwargs,
    wanted: Ordering,
) -> Result<EngineValue, Error> {
    let name = if wanted == Ordering::Less { "min" } else { "max" };
    let mut best: Option<(EngineValue, EngineValue)> = None;
    for (key, item) in keyed(state, name, list, &kwargs)? {
        let is_better = match &best {
            Some((best, _)) => compare(state, &key, best)? == wanted,
            None => true,
        };
        if is_better {
            best = Some((key, item));
        }
    }
    kwargs.assert_all_used()?;
    Ok(best.map(|(_, item)| item).unwrap_or_default())
}

/// The elements of a list together with what they are compared by.
fn keyed(
    state: &State,
    filter: &str,
    list: &EngineValue,
    kwargs: &Kwargs,
) -> Result<Vec<(EngineValue, EngineValue)>, Error> {
    let path: Option<String> = kwargs.get("attribute")?;
    let is_case_sensitive = kwargs.get::<Option<bool>>("case_sensitive")?.unwrap_or(false);
    let mut keyed = Vec::new();
    for item in items(filter, list)? {
        let item = item?;
        let key = attribute(item.clone(), path.as_deref())?;
        charge_element(state)?;
        charge(state, key.as_str().map_or(0, str::len))?;
        let key = match key.as_str() {
            Some(text) if !is_case_sensitive => EngineValue::from(text.to_lowercase()),
            _ => key,
        };
        keyed.push((key, item));
    }
    Ok(keyed)
}

/// The elements of a list.
fn items(
    filter: &str,
    list: &EngineValue,
) -> Result<impl Iterator<Item = Result<EngineValue, Error>> + use<>, Error> {
    match resolved(list)?.kind() {
        ValueKind::Seq | ValueKind::Iterable => Ok(list.try_iter()?.checked()),
        _ => Err(refuse(format!("{filter} needs a list, found {}", kind(list)))),
    }
}

/// What stands at a dotted path below an element; the element itself without a path.
fn attribute(item: EngineValue, path: Option<&str>) -> Result<EngineValue, Error> {
    let mut value = item;
    for key in path.into_iter().flat_map(|path| path.split('.')) {
        value = match key.parse::<usize>() {
            Ok(position) if value.kind() != ValueKind::Map => value.get_item_by_index(position)?,
            _ => value.get_attr(key)?,
        };
        resolved(&value)?;
    }
    Ok(value)
}

/// A parameter that is given by position or by name. No other names may be given.
fn optional(
    by_position: Option<EngineValue>,
    kwargs: &Kwargs,
    name: &str,
) -> Result<Option<EngineValue>, Error> {
    // Asking for an optional value would take null for absent.
    let by_name = if kwargs.has(name) { Some(kwargs.get::<EngineValue>(name)?) } else { None };
    kwargs.assert_all_used()?;
    Ok(by_position.or(by_name))
}

fn wanted_number(filter: &str, value: &EngineValue) -> Result<Number, Error> {
    number(resolved(value)?)
        .ok_or_else(|| refuse(format!("{filter} needs a number, found {}", kind(value))))
}

/// The number that a value is or says.
fn parsed(value: &EngineValue) -> Result<Option<Number>, Error> {
    if let Some(text) = resolved(value)?.as_str() {
        return Ok(Number::parse(text.trim()).ok());
    }
    if value.kind() == ValueKind::Bool {
        return Ok(Some(Number::from(i32::from(value.is_true()))));
    }
    Ok(number(value))
}

fn not_a_number(value: &EngineValue) -> Error {
    let shown = match value.as_str() {
        Some(text) => Value::from(slice_of(text)).to_json(),
        None => kind(value).to_owned(),
    };
    refuse(format!("{shown} is not a number; a default can be given, as in int(0)"))
}

/// The beginning of a text, for a message.
fn slice_of(text: &str) -> &str {
    text.char_indices().nth(40).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::{Scope, Template};

    fn outcome(source: &str) -> String {
        let value = r#"{"t": "Größe <1> & \"2\"", "n": 1.50, "no": null,
            "o": {"b": 1.0, "a": [true]}, "l": [3, 1.50, 2],
            "people": [{"name": "bea", "age": 40.0}, {"name": "Al", "age": 9}]}"#;
        let scope = Scope::new().with("v", Value::parse(value).unwrap());
        let template = Template::parse(&format!("{{{{ {source} }}}}"));
        let template = template.unwrap_or_else(|error| panic!("{source}: {error}"));
        match template.render(&scope) {
            Ok(rendered) => rendered.value.to_json(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn the_filters_are_sorted_and_installed() {
        assert!(FILTERS.is_sorted());
        let env = super::super::environment::shared();
        let state = &mut env.empty_state();
        for name in FILTERS {
            if let Err(error) = state.apply_filter(name, &[EngineValue::from(1)]) {
                assert_ne!(error.kind(), minijinja::ErrorKind::UnknownFilter, "{name}");
            }
        }
        for name in REMOVED {
            let error = state.apply_filter(name, &[EngineValue::from(1)]).unwrap_err();
            assert_eq!(error.kind(), minijinja::ErrorKind::UnknownFilter, "{name}");
        }
    }

    #[test]
    fn filters_on_text_see_our_text_of_every_value() {
        let table = [
            ("v.o | tojson", r#""{\"b\":1.0,\"a\":[true]}""#),
            ("[v.n] | tojson(indent=2)", r#""[\n  1.50\n]""#),
            ("v.t | tojson", r#""\"Größe <1> & \\\"2\\\"\"""#),
            ("v.t | truncate(5)", r#""Größe""#),
            ("v.t | truncate(5, end='…')", r#""Größ…""#),
            ("'abc' | truncate(3, end='…')", r#""abc""#),
            ("'👍🏽ab' | truncate(1)", r#""👍""#),
            ("'abc' | truncate(0)", r#""""#),
            ("v.t | xml_escape", r#""Größe &lt;1&gt; &amp; &quot;2&quot;""#),
            ("\"it's\" | e", r#""it&#39;s""#),
            ("v.t | slugify", r#""größe-1-2""#),
            ("'--A  b_c!' | slugify", r#""a-b-c""#),
            ("'ä b/c~' | urlencode", r#""%C3%A4%20b%2Fc~""#),
            ("v.no | upper", r#""NULL""#),
            ("true | string", r#""true""#),
            ("v.n | string", r#""1.50""#),
            ("v.n | replace(5, null)", r#""1.null0""#),
            ("'aaa' | replace('a', 'b', 2)", r#""bba""#),
            ("[null, true, v.n, v.o] | join('|')", r#""null|true|1.50|{\"b\":1.0,\"a\":[true]}""#),
            ("v.people | join(', ', attribute='name')", r#""bea, Al""#),
            ("[1, 2] | join", r#""12""#),
            ("' a ' | trim", r#""a""#),
            ("'xax' | trim('x')", r#""a""#),
            ("'a b' | title", r#""A B""#),
            ("'aB' | capitalize", r#""Ab""#),
            ("'a,b' | split(',')", r#"["a","b"]"#),
            ("'a\nb' | lines", r#"["a","b"]"#),
            ("'a\nb' | indent(2)", r#""a\n  b""#),
            ("[null, 1.0] | map('upper') | list", r#"["NULL","1.0"]"#),
        ];
        for (source, expected) in table {
            assert_eq!(outcome(source), expected, "{source}");
        }
    }

    #[test]
    fn filters_on_numbers_and_lists_keep_digits() {
        let table = [
            ("-1.50 | abs", "1.5"),
            ("2.5 | round", "3"),
            ("2.345 | round(2)", "2.35"),
            ("2.1 | round(method='ceil')", "3"),
            ("1234 | round(-2)", "1200"),
            ("v.n | int", "1"),
            ("' 42 ' | int", "42"),
            ("'1.50' | float", "1.50"),
            ("'x' | int(0)", "0"),
            ("'x' | float(default=null)", "null"),
            ("true | int", "1"),
            ("v.l | sum", "6.5"),
            ("v.people | sum(attribute='age')", "49"),
            ("v.l | sort", "[1.50,2,3]"),
            ("v.l | sort(reverse=true)", "[3,2,1.50]"),
            ("v.people | sort(attribute='age') | map(attribute='name') | list", r#"["Al","bea"]"#),
            ("v.people | sort(attribute='name') | map(attribute='age') | list", "[9,40.0]"),
            ("['b', 'A'] | sort(case_sensitive=true)", r#"["A","b"]"#),
            ("v.l | min", "1.50"),
            ("v.l | max", "3"),
            ("v.people | max(attribute='age')", r#"{"name":"bea","age":40.0}"#),
            ("[1, 1.0, 'a', 'A', [1], [1.0]] | unique", r#"[1,"a",[1]]"#),
            ("v.l | first", "3"),
            ("v.l | last", "2"),
            ("v.l | reverse | list", "[2,1.50,3]"),
            ("v.l | length", "3"),
            ("'äö' | length", "2"),
            ("v.o | length", "2"),
            ("v.o | list", r#"["b","a"]"#),
            ("v.o | items | list", r#"[["b",1.0],["a",[true]]]"#),
            ("v.l | batch(2)", "[[3,1.50],[2]]"),
            ("v.l | slice(2)", "[[3,1.50],[2]]"),
            ("[1, 2] | zip(v.l) | list", "[[1,3],[2,1.50]]"),
            ("v.l | select('gt', 1.5) | list", "[3,2]"),
            ("v.people | rejectattr('age', 'odd') | map(attribute='age') | list", "[40.0]"),
            ("v.o | attr('b')", "1.0"),
            ("0.0 | bool", "false"),
        ];
        for (source, expected) in table {
            assert_eq!(outcome(source), expected, "{source}");
        }
    }

    #[test]
    fn filters_say_what_they_need() {
        let table = [
            ("v.t | round", "round needs a number, found a text"),
            ("v.n | round(method='up')", "round knows common, ceil and floor, not `up`"),
            ("v.t | int", "is not a number; a default can be given"),
            ("5 | join", "join needs a list, found a number"),
            ("[1, 'a'] | sort", "cannot compare a number with a text"),
            ("[null] | sum", "`+` cannot add a number and null"),
            ("v.people | sort(attribute='nope')", "unresolved"),
            ("v.t | truncate(-1)", "line 1"),
            ("v.t | upper(1)", "line 1"),
            ("v.t | truncate(5, ende='')", "line 1"),
        ];
        for (source, expected) in table {
            assert!(outcome(source).contains(expected), "{source}: {}", outcome(source));
        }
    }
}
