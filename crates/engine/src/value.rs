//! Cyanotype's own JSON: a tree that keeps number text digit by digit and keys in written order.
//!
//! * [`decode`] turns the bytes of a file into text, [`Value::parse`] text into a tree.
//! * [`Number`] is exact decimal text; nothing here rounds to a double unless asked to.
//! * [`to_value`] and [`from_value`] connect the tree with serde types.
//!
//! The types stand here, the work in `value/`. A tree that was read is at most [`DEPTH_MAX`] deep;
//! code that builds trees out of trees checks [`Value::depth`] before it keeps the result.

mod bridge;
mod encoding;
mod number;
mod reader;
mod syntax;
mod writer;

use std::borrow::{Borrow, Cow};
use std::fmt;

use indexmap::IndexMap;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The deepest nesting the reader accepts: lists and objects, the outermost counting as 1.
pub const DEPTH_MAX: usize = 128;

/// The most digits a number may be written with, those of its exponent included.
pub const DIGITS_MAX: usize = 1_000;

/// A JSON value.
///
/// Equality is that of JSON: numbers are compared as exact decimals (1 equals 1.0), objects
/// regardless of the order of their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Value {
    /// `null`.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as written.
    Number(Number),
    /// A text.
    String(String),
    /// A list.
    Array(Vec<Value>),
    /// An object.
    Object(Object),
}

/// A JSON number: the decimal text it was written with.
///
/// Equality and order are numeric and exact. The text has at most [`DIGITS_MAX`] digits, and the
/// number fits the range of a double: its double is finite, and zero only for zero.
#[derive(Clone)]
pub struct Number(number::Text);

/// A JSON object: unique keys in the order they were written.
// Boxed, so that a `Value` takes 32 bytes and not 72: most values are not objects.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Object(Box<IndexMap<String, Value>>);

/// Why a text is not a JSON number, or not one that can be kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    /// The text does not follow the grammar of JSON numbers.
    #[error("`{text}` is not a number; {hint}")]
    Malformed {
        /// The text, shortened if it is long.
        text: String,
        /// What to do about it.
        hint: &'static str,
    },
    /// More digits than [`DIGITS_MAX`].
    #[error("a number of {digits} digits is too long; at most {DIGITS_MAX} digits are kept")]
    TooLong {
        /// The digits counted, those of the exponent included.
        digits: usize,
    },
    /// A double would overflow.
    #[error("the number `{text}` is too large; the largest is about 1.8e308, put it in quotes")]
    TooLarge {
        /// The text, shortened if it is long.
        text: String,
    },
    /// A double would become zero.
    #[error(
        "the number `{text}` is too close to zero; the smallest is about 5e-324, put it in quotes"
    )]
    TooSmall {
        /// The text, shortened if it is long.
        text: String,
    },
}

/// Why a text is not one JSON value, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {kind}")]
pub struct SyntaxError {
    /// Line, from 1. A line ends with LF, CRLF or CR.
    pub line: usize,
    /// Column in code points, from 1. A byte-order mark counts as nothing.
    pub column: usize,
    /// Offset in bytes from the start of the text.
    pub offset: usize,
    /// What is wrong.
    pub kind: SyntaxErrorKind,
}

/// What is wrong with a text that is not one JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyntaxErrorKind {
    /// There is nothing, or nothing but white space.
    Empty,
    /// The text ends too early.
    UnexpectedEnd {
        /// What should have followed.
        expected: &'static str,
        /// The innermost list or object that is still open.
        open: Option<Opening>,
    },
    /// A character that cannot stand here.
    UnexpectedCharacter {
        /// The character.
        found: char,
        /// What should have stood here.
        expected: &'static str,
    },
    /// A list closed like an object, or the other way round.
    WrongBracket {
        /// The closing bracket.
        found: char,
        /// What it would have to close.
        open: Opening,
    },
    /// More text after the value.
    TrailingText {
        /// The first character of it.
        found: char,
    },
    /// A comma before a closing bracket.
    TrailingComma,
    /// A comma is missing between two elements.
    MissingComma,
    /// A colon is missing between key and value.
    MissingColon {
        /// The key.
        key: String,
    },
    /// A comment, which JSON does not have.
    Comment,
    /// Text in single or typographic quotes.
    WrongQuote {
        /// The quote.
        found: char,
    },
    /// A key without quotes.
    UnquotedKey {
        /// The key, shortened if it is long.
        key: String,
    },
    /// `NaN` or an infinity.
    NotFinite {
        /// The word.
        word: String,
    },
    /// A word that is none of `true`, `false` and `null`.
    UnknownWord {
        /// The word, shortened if it is long.
        word: String,
        /// What was probably meant.
        meant: Option<&'static str>,
    },
    /// A number that is malformed, too long or out of range.
    Number(NumberError),
    /// A text that is never closed; the position is that of its opening quote.
    UnclosedText,
    /// A character below U+0020 inside a text.
    ControlCharacter {
        /// The character.
        found: char,
    },
    /// A backslash that is followed by something else than an escape.
    UnknownEscape {
        /// The escape as written.
        escape: String,
    },
    /// Half of a surrogate pair.
    LoneSurrogate {
        /// The escape as written.
        escape: String,
    },
    /// A key that the same object already has.
    DuplicateKey {
        /// The key, shortened if it is long.
        key: String,
        /// Line of the first one, from 1.
        first_line: usize,
        /// Column of the first one, from 1.
        first_column: usize,
    },
    /// Lists and objects nested deeper than [`DEPTH_MAX`].
    TooDeep,
}

/// Where a list or an object begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// `[` or `{`.
    pub bracket: char,
    /// Line, from 1.
    pub line: usize,
    /// Column in code points, from 1.
    pub column: usize,
}

/// Why bytes are not text, and what they seem to be instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodingError {
    /// There are no bytes.
    #[error("the file is empty")]
    Empty,
    /// The bytes begin like another kind of file.
    #[error("this is {what}, not JSON")]
    OtherFile {
        /// The kind of file, with its article.
        what: &'static str,
    },
    /// An encoding that is not read here.
    #[error("this looks like {encoding}; save the file as UTF-8")]
    OtherEncoding {
        /// The encoding.
        encoding: &'static str,
    },
    /// A byte that is not part of any UTF-8 character.
    #[error(
        "line {line}, column {column}: byte {byte:#04x} at offset {offset} is not UTF-8; save the \
         file as UTF-8"
    )]
    InvalidUtf8 {
        /// Line, from 1.
        line: usize,
        /// Column in code points, from 1.
        column: usize,
        /// The first bad byte.
        byte: u8,
        /// Its offset in bytes, the mark included.
        offset: usize,
    },
    /// A text marked as UTF-16 that is damaged.
    #[error(
        "line {line}, column {column}: the UTF-16 text is damaged at byte offset {offset}; save \
         the file as UTF-8"
    )]
    InvalidUtf16 {
        /// Line, from 1.
        line: usize,
        /// Column in code points, from 1.
        column: usize,
        /// Offset in bytes, the mark included.
        offset: usize,
    },
}

/// Why a value and a Rust type do not fit each other.
#[derive(Debug, thiserror::Error)]
pub enum BridgeError {
    /// The type cannot be written as JSON.
    #[error("cannot be written as JSON")]
    Serialize(#[source] serde_json::Error),
    /// The type writes JSON that the reader refuses, such as a number out of range.
    #[error("writes JSON that cannot be kept")]
    Refused(#[source] SyntaxError),
    /// The value does not have the shape of the type.
    #[error("{message}")]
    Shape {
        /// What was expected and what was found.
        message: String,
    },
}

/// Returns the text of a file: UTF-8 with or without mark, or UTF-16 with one. The mark is dropped.
///
/// Line ends are untouched.
///
/// # Errors
///
/// Names what the bytes are instead: empty, a picture, an archive, UTF-16 without a mark, or
/// not UTF-8 from some byte on.
pub fn decode(bytes: &[u8]) -> Result<Cow<'_, str>, EncodingError> {
    encoding::decode(bytes)
}

/// Returns a serde type as a value.
///
/// Integers keep all their digits; floats become the shortest text that reads back as the same
/// float. A float that is not finite becomes null.
///
/// # Errors
///
/// If the type has map keys that are not text, duplicate keys, or is nested too deep.
pub fn to_value<T: Serialize + ?Sized>(source: &T) -> Result<Value, BridgeError> {
    bridge::to_value(source)
}

/// Returns a value as a serde type.
///
/// # Errors
///
/// If the value does not have the shape of the type.
pub fn from_value<T: DeserializeOwned>(value: impl Borrow<Value>) -> Result<T, BridgeError> {
    bridge::from_value(value.borrow())
}

/// Returns the value as serde_json's own, **for checking against a JSON Schema only**.
///
/// Integers that fit 64 bits are exact; every other number is rounded to a double.
pub fn to_serde_json(value: &Value) -> serde_json::Value {
    bridge::to_serde_json(value)
}

impl Value {
    /// Reads one JSON value. A leading byte-order mark is dropped.
    ///
    /// # Errors
    ///
    /// Everything outside RFC 8259, and: duplicate keys, nesting deeper than [`DEPTH_MAX`], numbers
    /// of more than [`DIGITS_MAX`] digits or outside the range of a double, halves of surrogate
    /// pairs. Each with line and column.
    pub fn parse(text: &str) -> Result<Value, SyntaxError> {
        reader::read(text)
    }

    /// Returns the JSON text without any white space. Non-ASCII characters stand for themselves.
    pub fn to_json(&self) -> String {
        let mut text = String::new();
        self.write_json(&mut text);
        text
    }

    /// Appends what [`Value::to_json`] returns.
    pub fn write_json(&self, text: &mut String) {
        writer::write(self, writer::Style::Compact, text);
    }

    /// Returns what [`Value::to_json`] returns, or its first `chars_max` characters and `…`.
    pub fn to_json_shortened(&self, chars_max: usize) -> String {
        writer::shortened(self, chars_max)
    }

    /// Returns the JSON text indented by two spaces, lines ending with LF, without a final newline.
    pub fn to_json_pretty(&self) -> String {
        let mut text = String::new();
        writer::write(self, writer::Style::Pretty, &mut text);
        text
    }

    /// Returns a text that is the same for equal values, **for digests only**: keys sorted by code
    /// point, numbers in one form (1, 1.0 and 1e0 give `1`).
    pub fn to_canonical(&self) -> String {
        let mut text = String::new();
        writer::write(self, writer::Style::Canonical, &mut text);
        text
    }

    /// Returns what a person calls this kind of value: `null`, `boolean`, `number`, `text`, `list`
    /// or `object`.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "text",
            Value::Array(_) => "list",
            Value::Object(_) => "object",
        }
    }

    /// Returns how deep lists and objects are nested: 0 for a scalar, 1 for `[]`.
    pub fn depth(&self) -> usize {
        let mut deepest = 0;
        let mut pending = vec![(self, 1)];
        while let Some((value, depth)) = pending.pop() {
            match value {
                Value::Array(items) => pending.extend(items.iter().map(|item| (item, depth + 1))),
                Value::Object(object) => {
                    pending.extend(object.values().map(|value| (value, depth + 1)));
                }
                _ => continue,
            }
            deepest = deepest.max(depth);
        }
        deepest
    }

    /// Returns whether this is null.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// Returns the boolean, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    /// Returns the number, if it is one.
    pub fn as_number(&self) -> Option<&Number> {
        match self {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    /// Returns the exact integer, if it is a number that is one and fits.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_number().and_then(Number::as_i64)
    }

    /// Returns the exact integer, if it is a number that is one and fits.
    pub fn as_u64(&self) -> Option<u64> {
        self.as_number().and_then(Number::as_u64)
    }

    /// Returns the text, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the list, if it is one.
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the list, if it is one, to change it.
    pub fn as_array_mut(&mut self) -> Option<&mut Vec<Value>> {
        match self {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the object, if it is one.
    pub fn as_object(&self) -> Option<&Object> {
        match self {
            Value::Object(object) => Some(object),
            _ => None,
        }
    }

    /// Returns the object, if it is one, to change it.
    pub fn as_object_mut(&mut self) -> Option<&mut Object> {
        match self {
            Value::Object(object) => Some(object),
            _ => None,
        }
    }

    /// Returns the value of a key, if this is an object that has it.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_object().and_then(|object| object.get(key))
    }
}

/// Compact JSON, as [`Value::to_json`].
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_json())
    }
}

impl std::str::FromStr for Value {
    type Err = SyntaxError;

    fn from_str(text: &str) -> Result<Value, SyntaxError> {
        Value::parse(text)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Value {
        Value::Bool(flag)
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Value {
        Value::Number(number)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Number(number.into())
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Value {
        Value::Number(number.into())
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Value {
        Value::Number(number.into())
    }
}

impl From<i32> for Value {
    fn from(number: i32) -> Value {
        Value::Number(number.into())
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Value {
        Value::Number(number.into())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::String(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::String(text)
    }
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Value {
        Value::Array(items)
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Value {
        Value::Object(object)
    }
}

impl FromIterator<Value> for Value {
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> Value {
        Value::Array(items.into_iter().collect())
    }
}

impl Object {
    /// Returns an object without keys.
    pub fn new() -> Object {
        Object::default()
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// Returns the value of a key, to change it.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.0.get_mut(key)
    }

    /// Sets a key and returns its old value. A new key goes to the end, an old one stays in place.
    pub fn insert(&mut self, key: impl Into<String>, value: impl Into<Value>) -> Option<Value> {
        self.0.insert(key.into(), value.into())
    }

    /// Removes a key and returns its value; the order of the others is kept.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.0.shift_remove(key)
    }

    /// Returns whether there is such a key, whatever its value.
    pub fn contains_key(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// Returns the position of a key, from 0.
    pub fn position(&self, key: &str) -> Option<usize> {
        self.0.get_index_of(key)
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns keys and values in order.
    pub fn iter(&self) -> indexmap::map::Iter<'_, String, Value> {
        self.0.iter()
    }

    /// Returns keys and values in order, the values to change them.
    pub fn iter_mut(&mut self) -> indexmap::map::IterMut<'_, String, Value> {
        self.0.iter_mut()
    }

    /// Returns the keys in order.
    pub fn keys(&self) -> indexmap::map::Keys<'_, String, Value> {
        self.0.keys()
    }

    /// Returns the values in order.
    pub fn values(&self) -> indexmap::map::Values<'_, String, Value> {
        self.0.values()
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<'a> IntoIterator for &'a Object {
    type Item = (&'a String, &'a Value);
    type IntoIter = indexmap::map::Iter<'a, String, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl IntoIterator for Object {
    type Item = (String, Value);
    type IntoIter = indexmap::map::IntoIter<String, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// A key that comes twice keeps its first place and its last value.
impl<K: Into<String>, V: Into<Value>> FromIterator<(K, V)> for Object {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Object {
        let entries = entries.into_iter().map(|(key, value)| (key.into(), value.into()));
        Object(Box::new(entries.collect()))
    }
}

impl<K: Into<String>, V: Into<Value>> Extend<(K, V)> for Object {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        self.0.extend(entries.into_iter().map(|(key, value)| (key.into(), value.into())));
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Number texts of every shape that is accepted.
    pub(crate) fn number_text() -> impl Strategy<Value = String> {
        prop_oneof![
            3 => "-?(0|[1-9][0-9]{0,6})(\\.[0-9]{1,6})?([eE][+-]?[0-9]{1,2})?",
            1 => "-?[1-9][0-9]{15,60}(\\.[0-9]{1,60})?",
            1 => any::<u64>().prop_map(|integer| integer.to_string()),
            1 => any::<f64>()
                .prop_filter("finite", |double| double.is_finite())
                .prop_map(|double| format!("{double:?}")),
        ]
    }

    /// Values of every kind, a few levels deep.
    pub(crate) fn any_value() -> impl Strategy<Value = Value> {
        let text = || prop_oneof!["[a-c.\\[\\]\"\\\\0]{0,3}", any::<String>()];
        let scalar = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            number_text().prop_map(|text| Number::parse(&text).expect(&text).into()),
            text().prop_map(Value::from),
        ];
        scalar.prop_recursive(5, 40, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
                prop::collection::vec((text(), inner), 0..6)
                    .prop_map(|entries| Value::Object(entries.into_iter().collect())),
            ]
        })
    }

    /// JSON text with pieces taken out, doubled and exchanged.
    fn damaged_text() -> impl Strategy<Value = String> {
        let edit =
            (any::<prop::sample::Index>(), "[\\[\\]{}:,\"'\\\\/0-9eE+.\\-nNtu \n\r\u{feff}é]?");
        (any_value(), prop::collection::vec(edit, 1..4)).prop_map(|(value, edits)| {
            let mut characters: Vec<char> = value.to_json_pretty().chars().collect();
            for (index, put) in edits {
                let at = index.index(characters.len() + 1);
                match put.chars().next() {
                    Some(character) => characters.insert(at, character),
                    None if at < characters.len() => drop(characters.remove(at)),
                    None => {}
                }
            }
            characters.into_iter().collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn what_is_written_is_read_back_to_the_byte(value in any_value()) {
            let compact = value.to_json();
            let pretty = value.to_json_pretty();
            let from_compact = Value::parse(&compact).unwrap();
            let from_pretty = Value::parse(&pretty).unwrap();
            prop_assert_eq!(&from_compact, &value);
            prop_assert_eq!(from_compact.to_json(), compact.as_str(), "digits and order are kept");
            prop_assert_eq!(from_pretty.to_json(), compact.as_str());
            prop_assert_eq!(from_compact.to_json_pretty(), pretty);
            prop_assert_eq!(Value::parse(&value.to_canonical()).unwrap(), value);
        }

        #[test]
        fn canonical_texts_are_equal_exactly_for_equal_values(
            left in any_value(), right in any_value()
        ) {
            let same = left.to_canonical() == right.to_canonical();
            prop_assert_eq!(left == right, same);
            let reversed = reversed(&left);
            prop_assert_eq!(reversed.to_canonical(), left.to_canonical());
            prop_assert_eq!(reversed, left);
        }

        #[test]
        fn damaged_text_is_read_or_refused_at_a_place_inside_it(text in damaged_text()) {
            match Value::parse(&text) {
                Ok(value) => prop_assert_eq!(Value::parse(&value.to_json()).unwrap(), value),
                Err(error) => {
                    prop_assert!(text.is_char_boundary(error.offset), "{}", error);
                    prop_assert!(error.line >= 1 && error.column >= 1, "{}", error);
                    let n_lines = text.matches(['\n', '\r']).count() + 1;
                    prop_assert!(error.line <= n_lines, "{}", error);
                    prop_assert_eq!(
                        error.kind == SyntaxErrorKind::Empty,
                        text.trim_start_matches(syntax::MARK).trim().is_empty()
                    );
                }
            }
        }

        #[test]
        fn what_the_reader_accepts_serde_json_accepts_too(text in damaged_text()) {
            let text = text.trim_start_matches(syntax::MARK);
            let ours = Value::parse(text);
            let theirs = serde_json::from_str::<serde_json::Value>(text);
            match (&ours, &theirs) {
                (Ok(ours), Ok(theirs)) => prop_assert_eq!(with_doubles(&to_serde_json(ours)), with_doubles(theirs)),
                (Ok(_), Err(error)) => prop_assert!(false, "only serde_json refuses: {}", error),
                (Err(error), Ok(_)) => {
                    let is_stricter = matches!(
                        error.kind,
                        SyntaxErrorKind::DuplicateKey { .. } | SyntaxErrorKind::Number(_)
                    );
                    prop_assert!(is_stricter, "only we refuse: {}", error);
                }
                (Err(_), Err(_)) => {}
            }
        }

        #[test]
        fn bytes_of_any_kind_are_decoded_or_refused(bytes in any::<Vec<u8>>()) {
            if let Ok(text) = decode(&bytes) {
                let is_marked = text.starts_with(syntax::MARK);
                prop_assert!(!is_marked || bytes.len() > text.len(), "the mark is dropped");
            }
        }

        #[test]
        fn values_pass_through_serde_unchanged(value in any_value()) {
            prop_assert_eq!(to_value(&value).unwrap().to_json(), value.to_json());
            prop_assert_eq!(from_value::<Value>(&value).unwrap().to_json(), value.to_json());
        }

        #[test]
        fn doubles_pass_through_serde_unchanged(double in any::<f64>()) {
            prop_assume!(double.is_finite());
            let value = to_value(&double).unwrap();
            let back: f64 = from_value(&value).unwrap();
            prop_assert_eq!(back.to_bits(), double.to_bits());
            prop_assert_eq!(value.as_number().unwrap().to_f64().to_bits(), double.to_bits());
        }

        #[test]
        fn shortened_text_is_a_beginning_of_the_whole(value in any_value(), chars_max in 0..60usize) {
            let whole = value.to_json();
            let short = value.to_json_shortened(chars_max);
            if whole.chars().count() <= chars_max {
                prop_assert_eq!(short, whole);
            } else {
                let start: String = whole.chars().take(chars_max).collect();
                prop_assert_eq!(short, start + "…");
            }
        }
    }

    /// The same value with the keys of every object in reverse order.
    fn reversed(value: &Value) -> Value {
        match value {
            Value::Array(items) => items.iter().map(reversed).collect(),
            Value::Object(object) => {
                let entries = object.iter().map(|(key, value)| (key.as_str(), reversed(value)));
                Value::Object(entries.rev().collect())
            }
            scalar => scalar.clone(),
        }
    }

    /// The same value with every number as a double, however it was held.
    fn with_doubles(value: &serde_json::Value) -> serde_json::Value {
        match value {
            serde_json::Value::Number(number) => number.as_f64().into(),
            serde_json::Value::Array(items) => items.iter().map(with_doubles).collect(),
            serde_json::Value::Object(object) => {
                object.iter().map(|(key, value)| (key.clone(), with_doubles(value))).collect()
            }
            scalar => scalar.clone(),
        }
    }
}
