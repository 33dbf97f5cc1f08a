//! Values as JSON text, without recursion.

use super::{Number, Object, Value};

/// How the text looks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Compact,
    Pretty,
    Canonical,
}

/// Appends the JSON text of a value.
pub(super) fn write(value: &Value, style: Style, text: &mut String) {
    let outermost = begin(value, style, text);
    finish(outermost, style, text);
}

/// Appends the JSON text of an object.
pub(super) fn write_object(object: &Object, style: Style, text: &mut String) {
    let outermost = begin_object(object, style, text);
    finish(Some(outermost), style, text);
}

/// Writes what is still missing of a value that was begun.
fn finish(outermost: Option<Open<'_>>, style: Style, text: &mut String) {
    let mut open = Vec::from_iter(outermost);
    while let Some(innermost) = open.last_mut() {
        let Some((key, value)) = innermost.items.next() else {
            let wrote_any = innermost.wrote_any;
            let close = innermost.close;
            open.pop();
            if wrote_any {
                break_line(style, open.len(), text);
            }
            text.push(close);
            continue;
        };
        if innermost.wrote_any {
            text.push(',');
        }
        innermost.wrote_any = true;
        break_line(style, open.len(), text);
        if let Some(key) = key {
            write_string(key, text);
            text.push_str(if style == Style::Pretty { ": " } else { ":" });
        }
        open.extend(begin(value, style, text));
    }
}

/// Appends a JSON string with its quotes.
pub(super) fn write_string(string: &str, text: &mut String) {
    text.push('"');
    let mut copied = 0;
    for (at, byte) in string.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0c => "\\f",
            0..0x20 => "",
            _ => continue,
        };
        text.push_str(&string[copied..at]);
        copied = at + 1;
        if escape.is_empty() {
            text.push_str(&format!("\\u{byte:04x}"));
        } else {
            text.push_str(escape);
        }
    }
    text.push_str(&string[copied..]);
    text.push('"');
}

/// A list or an object that is being written.
struct Open<'v> {
    items: Items<'v>,
    wrote_any: bool,
    close: char,
}

enum Items<'v> {
    Array(std::slice::Iter<'v, Value>),
    Object(indexmap::map::Iter<'v, String, Value>),
    Sorted(std::vec::IntoIter<(&'v String, &'v Value)>),
}

impl<'v> Items<'v> {
    fn next(&mut self) -> Option<(Option<&'v String>, &'v Value)> {
        match self {
            Items::Array(items) => items.next().map(|value| (None, value)),
            Items::Object(items) => items.next().map(|(key, value)| (Some(key), value)),
            Items::Sorted(items) => items.next().map(|(key, value)| (Some(key), value)),
        }
    }
}

/// Writes a scalar, or the opening bracket of what still has to be written.
fn begin<'v>(value: &'v Value, style: Style, text: &mut String) -> Option<Open<'v>> {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(true) => text.push_str("true"),
        Value::Bool(false) => text.push_str("false"),
        Value::Number(number) => write_number(number, style, text),
        Value::String(string) => write_string(string, text),
        Value::Array(items) => {
            text.push('[');
            return Some(Open { items: Items::Array(items.iter()), wrote_any: false, close: ']' });
        }
        Value::Object(object) => return Some(begin_object(object, style, text)),
    }
    None
}

fn begin_object<'v>(object: &'v Object, style: Style, text: &mut String) -> Open<'v> {
    text.push('{');
    let items = if style == Style::Canonical {
        let mut sorted: Vec<_> = object.iter().collect();
        // UTF-8 sorts by code point.
        sorted.sort_unstable_by_key(|(key, _)| *key);
        Items::Sorted(sorted.into_iter())
    } else {
        Items::Object(object.iter())
    };
    Open { items, wrote_any: false, close: '}' }
}

fn write_number(number: &Number, style: Style, text: &mut String) {
    match style {
        Style::Canonical => text.push_str(&number.to_canonical()),
        Style::Compact | Style::Pretty => text.push_str(number.as_str()),
    }
}

fn break_line(style: Style, depth: usize, text: &mut String) {
    if style != Style::Pretty {
        return;
    }
    text.push('\n');
    for _ in 0..depth {
        text.push_str("  ");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        Value::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn compact_text_has_no_white_space_and_keeps_order_and_digits() {
        let text = r#"{"b":[1.0,-0,1E5,[],{}],"a":{"ключ":"≤😀"},"":null,"t":[true,false]}"#;
        assert_eq!(value(&text.replace(',', " , \n")).to_json(), text);
        assert_eq!(value(text).to_string(), text);
    }

    #[test]
    fn pretty_text_is_indented_by_two_spaces_without_a_final_newline() {
        let text = "{\n  \"a\": [\n    1.0,\n    {\n      \"b\": []\n    }\n  ],\n  \"c\": {}\n}";
        assert_eq!(value(text).to_json_pretty(), text);
        assert_eq!(value("7").to_json_pretty(), "7");
    }

    #[test]
    fn canonical_text_sorts_keys_by_code_point_and_normalises_numbers() {
        let one = value(r#"{"b":1.0,"a":[1e0,-0,100],"😀":0,"z":1}"#);
        let other = value(r#"{"z":1e0,"😀":0.0,"a":[1,0,1e2],"b":1}"#);
        assert_eq!(one, other);
        assert_eq!(one.to_canonical(), other.to_canonical());
        assert_eq!(one.to_canonical(), r#"{"a":[1,0,1e2],"b":1,"z":1,"😀":0}"#);
    }

    #[test]
    fn control_characters_are_escaped_and_nothing_else_is() {
        let string: String =
            (0..0x20u8).map(char::from).chain("\u{7f}\u{2028}/\"\\".chars()).collect();
        let text = Value::from(string.as_str()).to_json();
        assert!(text.starts_with("\"\\u0000\\u0001"), "{text}");
        assert!(text.contains("\\b\\t\\n\\u000b\\f\\r\\u000e"), "{text}");
        assert!(text.ends_with("\\u001f\u{7f}\u{2028}/\\\"\\\\\""), "{text}");
        assert_eq!(value(&text).as_str(), Some(string.as_str()));
    }

    #[test]
    fn a_tree_deeper_than_the_reader_accepts_is_still_written() {
        let mut deep = Value::Null;
        for _ in 0..5_000 {
            deep = Value::Array(vec![deep]);
        }
        assert_eq!(deep.depth(), 5_000);
        assert_eq!(deep.to_json().len(), 10_004);
    }
}
