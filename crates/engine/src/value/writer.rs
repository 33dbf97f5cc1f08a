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
    let mut writer = Writer { style, text, len_max: usize::MAX };
    let outermost = writer.begin(value);
    writer.finish(outermost);
}

/// Appends the JSON text of an object.
pub(super) fn write_object(object: &Object, style: Style, text: &mut String) {
    let mut writer = Writer { style, text, len_max: usize::MAX };
    let outermost = writer.begin_object(object);
    writer.finish(Some(outermost));
}

/// Returns the compact text, or its first characters and an ellipsis. Long values cost no more
/// than short ones.
pub(super) fn shortened(value: &Value, chars_max: usize) -> String {
    let mut text = String::new();
    let len_max = chars_max.saturating_mul(char::MAX.len_utf8());
    let mut writer = Writer { style: Style::Compact, text: &mut text, len_max };
    let outermost = writer.begin(value);
    writer.finish(outermost);
    if let Some((end, _)) = text.char_indices().nth(chars_max) {
        text.truncate(end);
        text.push('…');
    }
    text
}

struct Writer<'t> {
    style: Style,
    text: &'t mut String,
    /// Once the text is longer than this in bytes, what follows does not matter.
    len_max: usize,
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

impl Writer<'_> {
    /// Writes a scalar, or the opening bracket of what still has to be written.
    fn begin<'v>(&mut self, value: &'v Value) -> Option<Open<'v>> {
        match value {
            Value::Null => self.text.push_str("null"),
            Value::Bool(true) => self.text.push_str("true"),
            Value::Bool(false) => self.text.push_str("false"),
            Value::Number(number) => self.number(number),
            Value::String(string) => self.string(string),
            Value::Array(items) => {
                self.text.push('[');
                let items = Items::Array(items.iter());
                return Some(Open { items, wrote_any: false, close: ']' });
            }
            Value::Object(object) => return Some(self.begin_object(object)),
        }
        None
    }

    fn begin_object<'v>(&mut self, object: &'v Object) -> Open<'v> {
        self.text.push('{');
        let items = if self.style == Style::Canonical {
            let mut sorted: Vec<_> = object.iter().collect();
            // UTF-8 sorts by code point.
            sorted.sort_unstable_by_key(|(key, _)| *key);
            Items::Sorted(sorted.into_iter())
        } else {
            Items::Object(object.iter())
        };
        Open { items, wrote_any: false, close: '}' }
    }

    /// Writes what is still missing of a value that was begun.
    fn finish(&mut self, outermost: Option<Open<'_>>) {
        let mut open = Vec::from_iter(outermost);
        while let Some(innermost) = open.last_mut() {
            if self.text.len() > self.len_max {
                return;
            }
            let Some((key, value)) = innermost.items.next() else {
                let Open { wrote_any, close, .. } = *innermost;
                open.pop();
                if wrote_any {
                    self.break_line(open.len());
                }
                self.text.push(close);
                continue;
            };
            if innermost.wrote_any {
                self.text.push(',');
            }
            innermost.wrote_any = true;
            self.break_line(open.len());
            if let Some(key) = key {
                self.string(key);
                self.text.push_str(if self.style == Style::Pretty { ": " } else { ":" });
            }
            open.extend(self.begin(value));
        }
    }

    fn number(&mut self, number: &Number) {
        match self.style {
            Style::Canonical => self.text.push_str(&number.to_canonical()),
            Style::Compact | Style::Pretty => self.text.push_str(number.as_str()),
        }
    }

    /// Writes a string with its quotes.
    fn string(&mut self, string: &str) {
        self.text.push('"');
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
                // Checked where a character begins, so that none is cut in half.
                _ if at > self.len_max && string.is_char_boundary(at) => {
                    self.text.push_str(&string[copied..at]);
                    return;
                }
                _ => continue,
            };
            self.text.push_str(&string[copied..at]);
            copied = at + 1;
            if escape.is_empty() {
                self.text.push_str(&format!("\\u{byte:04x}"));
            } else {
                self.text.push_str(escape);
            }
        }
        self.text.push_str(&string[copied..]);
        self.text.push('"');
    }

    fn break_line(&mut self, depth: usize) {
        if self.style != Style::Pretty {
            return;
        }
        self.text.push('\n');
        for _ in 0..depth {
            self.text.push_str("  ");
        }
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
    fn shortened_text_ends_with_an_ellipsis_only_if_something_is_missing() {
        let whole = value(r#"{"a":[1,"≤≤≤"]}"#);
        assert_eq!(shortened(&whole, 15), r#"{"a":[1,"≤≤≤"]}"#);
        assert_eq!(shortened(&whole, 14), r#"{"a":[1,"≤≤≤"]…"#);
        assert_eq!(shortened(&whole, 10), r#"{"a":[1,"≤…"#);
        assert_eq!(shortened(&Value::from("😀\n".repeat(1_000)), 4), r#""😀\n…"#);
        let many: Value = (0..1_000u32).map(Value::from).collect();
        assert_eq!(shortened(&many, 6), "[0,1,2…");
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
