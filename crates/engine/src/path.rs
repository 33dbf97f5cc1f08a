//! Paths to a place inside a value: `result.items[0]["odd.key"]`.
//!
//! Dots separate keys, `["a.b"]` quotes a key with the escapes of JSON, `[0]` is an element of a
//! list, and the empty path is the whole value. A path means one place only: a dotted path never
//! matches a key that has a dot in it, and `a.0` never means an element of a list.

use std::fmt;
use std::str::FromStr;

use crate::value::{SyntaxErrorKind, Value};

/// Paths of more steps than this get no hints, whose search is quadratic in the steps.
const HINTED_STEPS_MAX: usize = 32;

/// A place inside a value.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    steps: Vec<Step>,
}

/// One step from a value into it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// The value of a key of an object.
    Key(String),
    /// An element of a list, from 0.
    Index(usize),
}

/// Why a text is not a path, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("character {column} of the path: {kind}")]
pub struct PathError {
    /// Position in code points, from 1.
    pub column: usize,
    /// What is wrong.
    pub kind: PathErrorKind,
}

/// What is wrong with a text that is not a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathErrorKind {
    /// The path begins with a dot.
    #[error("a path does not begin with a dot; remove it")]
    LeadingDot,
    /// The path ends with a dot.
    #[error("a key is missing after the dot; remove the dot, or write [\"\"] for the empty key")]
    TrailingDot,
    /// Two dots in a row.
    #[error("two dots in a row; remove one, or write [\"\"] for the empty key")]
    DoubleDot,
    /// A dot before an opening bracket.
    #[error("no dot stands before a bracket; remove it")]
    DotBeforeBracket,
    /// Something else than a dot or a bracket after a closing bracket.
    #[error("after `]` a dot or `[` is expected, found `{found}`")]
    AfterBracket {
        /// The character.
        found: char,
    },
    /// A bracket or a quote in a key without quotes.
    #[error("a key with `{found}` in it must be quoted, as in [\"a{}b\"]", Escaped(*.found))]
    UnquotedCharacter {
        /// The character.
        found: char,
    },
    /// A key without quotes that begins or ends with white space.
    #[error(
        "a key must not begin or end with white space; remove it, or quote the key: [{quoted}]"
    )]
    OuterSpace {
        /// The key with quotes.
        quoted: String,
    },
    /// A bracket that is not closed.
    #[error("this bracket is not closed; `]` is missing")]
    UnclosedBracket,
    /// Nothing between the brackets.
    #[error("the brackets are empty; write an index as in [0], or a key in quotes")]
    EmptyBrackets,
    /// A negative index.
    #[error("an index counts from 0 at the start of the list; it cannot be negative")]
    NegativeIndex,
    /// An index with leading zeros or too large for any list.
    #[error("`{index}` is not an index; write it like 0 or 12")]
    BadIndex {
        /// The digits.
        index: String,
    },
    /// A key in brackets without double quotes.
    #[error("a key in brackets stands in double quotes; write [{quoted}]")]
    UnquotedKey {
        /// The key with quotes.
        quoted: String,
    },
    /// A quoted key that is not a JSON string.
    #[error("{0}")]
    QuotedKey(SyntaxErrorKind),
}

impl Path {
    /// Reads a path.
    ///
    /// # Errors
    ///
    /// Everything outside the grammar, with its position: `a..b`, `items[-1]`, `items[0`, `.a`.
    pub fn parse(text: &str) -> Result<Path, PathError> {
        let mut reader = Reader { text, at: 0 };
        let mut steps = Vec::new();
        if text.starts_with('.') {
            return reader.fault(0, PathErrorKind::LeadingDot);
        }
        while let Some(next) = reader.next_char() {
            let step = match next {
                '[' => reader.brackets()?,
                '.' => reader.key_after_dot()?,
                _ if steps.is_empty() => reader.key()?,
                found => return reader.fault(reader.at, PathErrorKind::AfterBracket { found }),
            };
            steps.push(step);
        }
        Ok(Path { steps })
    }

    /// Returns the steps, outermost first; none for the whole value.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Returns whether this is the path of the whole value.
    pub fn is_whole(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns this path with one more step.
    #[must_use]
    pub fn join(&self, step: Step) -> Path {
        let mut steps = self.steps.clone();
        steps.push(step);
        Path { steps }
    }

    /// Returns the value at this place, if there is one.
    pub fn resolve<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        resolve(&self.steps, value)
    }

    /// Returns how to write a path that this one was perhaps meant to be, if this one leads
    /// nowhere: a key that has a dot in it, or a list's element written like a key.
    pub fn hint_for_missing(&self, value: &Value) -> Option<String> {
        if self.steps.len() > HINTED_STEPS_MAX || self.resolve(value).is_some() {
            return None;
        }
        let mut outer = value;
        for (start, step) in self.steps.iter().enumerate() {
            for end in (start + 1..=self.steps.len()).rev() {
                let Some(meant) = alternative(&self.steps[start..end]) else { continue };
                let inner = resolve(std::slice::from_ref(&meant), outer);
                if inner.and_then(|inner| resolve(&self.steps[end..], inner)).is_some() {
                    let steps = [&self.steps[..start], &[meant], &self.steps[end..]].concat();
                    return Some(format!("not found, but {} is there", Path { steps }));
                }
            }
            outer = resolve(std::slice::from_ref(step), outer)?;
        }
        None
    }
}

fn resolve<'v>(steps: &[Step], value: &'v Value) -> Option<&'v Value> {
    steps.iter().try_fold(value, |value, step| match (step, value) {
        (Step::Key(key), Value::Object(object)) => object.get(key),
        (Step::Index(index), Value::Array(items)) => items.get(*index),
        _ => None,
    })
}

/// The one step that these steps could have been meant to be.
fn alternative(steps: &[Step]) -> Option<Step> {
    match steps {
        [Step::Key(key)] => read_index(key).map(Step::Index),
        [Step::Index(index)] => Some(Step::Key(index.to_string())),
        _ => {
            let mut key = String::new();
            for step in steps {
                match step {
                    Step::Key(part) if key.is_empty() => key.push_str(part),
                    Step::Key(part) => key.extend([".", part]),
                    Step::Index(index) => key.push_str(&format!("[{index}]")),
                }
            }
            Some(Step::Key(key))
        }
    }
}

/// Digits without leading zeros that fit.
fn read_index(text: &str) -> Option<usize> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let is_short = text == "0" || !text.starts_with('0');
    if is_plain && is_short { text.parse().ok() } else { None }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl Reader<'_> {
    /// Reads the dot here and the key after it.
    fn key_after_dot(&mut self) -> Result<Step, PathError> {
        let dot_at = self.at;
        self.at += 1;
        match self.next_char() {
            None => self.fault(dot_at, PathErrorKind::TrailingDot),
            Some('.') => self.fault(self.at, PathErrorKind::DoubleDot),
            Some('[') => self.fault(dot_at, PathErrorKind::DotBeforeBracket),
            Some(_) => self.key(),
        }
    }

    /// Reads the key without quotes that begins here.
    fn key(&mut self) -> Result<Step, PathError> {
        let start = self.at;
        let rest = self.rest();
        let key = &rest[..rest.find(['.', '[']).unwrap_or(rest.len())];
        if let Some((at, found)) = key.match_indices(['"', ']']).next() {
            let found = found.chars().next().expect("a match of one character");
            return self.fault(start + at, PathErrorKind::UnquotedCharacter { found });
        }
        if key.trim() != key {
            let quoted = Value::from(key).to_json();
            return self.fault(start, PathErrorKind::OuterSpace { quoted });
        }
        let key = key.to_owned();
        self.at += key.len();
        Ok(Step::Key(key))
    }

    /// Reads the brackets that open here.
    fn brackets(&mut self) -> Result<Step, PathError> {
        let open_at = self.at;
        self.at += 1;
        let step = if self.next_char() == Some('"') {
            self.quoted_key(open_at)?
        } else {
            self.index(open_at)?
        };
        if self.next_char() != Some(']') {
            return self.fault(open_at, PathErrorKind::UnclosedBracket);
        }
        self.at += 1;
        Ok(step)
    }

    /// Reads the quoted key that begins here.
    fn quoted_key(&mut self, open_at: usize) -> Result<Step, PathError> {
        let rest = self.rest();
        let mut is_escaped = false;
        let close = rest.bytes().skip(1).position(|byte| {
            let closes = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            closes
        });
        let Some(close) = close else {
            return self.fault(open_at, PathErrorKind::UnclosedBracket);
        };
        let quoted = &rest[..close + 2];
        match Value::parse(quoted) {
            Ok(Value::String(key)) => {
                self.at += quoted.len();
                Ok(Step::Key(key))
            }
            Ok(_) => unreachable!("a value that begins with a quote is a text"),
            Err(error) => self.fault(self.at + error.offset, PathErrorKind::QuotedKey(error.kind)),
        }
    }

    /// Reads the index that begins here.
    fn index(&mut self, open_at: usize) -> Result<Step, PathError> {
        let rest = self.rest();
        let Some(end) = rest.find(']') else {
            return self.fault(open_at, PathErrorKind::UnclosedBracket);
        };
        let inside = &rest[..end];
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let kind = match inside.strip_prefix('-') {
            _ if inside.is_empty() => PathErrorKind::EmptyBrackets,
            Some(size) if is_digits(size) => PathErrorKind::NegativeIndex,
            _ if is_digits(inside) => match read_index(inside) {
                Some(index) => {
                    self.at += inside.len();
                    return Ok(Step::Index(index));
                }
                None => PathErrorKind::BadIndex { index: inside.to_owned() },
            },
            _ => {
                let key = inside.trim_matches('\'');
                PathErrorKind::UnquotedKey { quoted: Value::from(key).to_json() }
            }
        };
        self.fault(self.at, kind)
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn next_char(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn fault<T>(&self, offset: usize, kind: PathErrorKind) -> Result<T, PathError> {
        let column = self.text[..offset].chars().count() + 1;
        Err(PathError { column, kind })
    }
}

/// The shortest text that reads back as this path.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.steps.iter().enumerate() {
            match step {
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Key(key) if !is_plain(key) => {
                    write!(f, "[{}]", Value::from(key.as_str()))?;
                }
                Step::Key(key) if at == 0 => f.write_str(key)?,
                Step::Key(key) => write!(f, ".{key}")?,
            }
        }
        Ok(())
    }
}

/// Whether a key needs no quotes.
fn is_plain(key: &str) -> bool {
    !key.is_empty()
        && key.trim() == key
        && !key.contains(|c: char| matches!(c, '.' | '[' | ']' | '"') || c.is_control())
}

/// A character as it is written inside a quoted key.
struct Escaped(char);

impl fmt::Display for Escaped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == '"' { f.write_str("\\\"") } else { write!(f, "{}", self.0) }
    }
}

impl FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Path, PathError> {
        Path::parse(text)
    }
}

impl FromIterator<Step> for Path {
    fn from_iter<I: IntoIterator<Item = Step>>(steps: I) -> Path {
        Path { steps: steps.into_iter().collect() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::value::tests::any_value;

    fn value(text: &str) -> Value {
        Value::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn path(text: &str) -> Path {
        Path::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn o_c03_each_path_means_one_place() {
        let root = value(
            r#"{"a.b":1,"a":{"b":2},"items":[{"n":5}],"":{"x":3},"a/b":4,"ключ":6,"$failed":7}"#,
        );
        let table = [
            ("a.b", Some("2")),
            (r#"["a.b"]"#, Some("1")),
            ("items[0].n", Some("5")),
            ("items[9].n", None),
            (r#"[""].x"#, Some("3")),
            (r#"["a/b"]"#, Some("4")),
            ("a/b", Some("4")),
            ("ключ", Some("6")),
            (r#"["\u043a\u043b\u044e\u0447"]"#, Some("6")),
            ("$failed", Some("7")),
            ("items[0]", Some(r#"{"n":5}"#)),
            ("items.0.n", None),
            ("a.b.c", None),
            ("a[0]", None),
        ];
        for (text, expected) in table {
            let found = path(text).resolve(&root).map(Value::to_json);
            assert_eq!(found.as_deref(), expected, "{text}");
        }
        assert_eq!(path("").resolve(&root), Some(&root));
    }

    #[test]
    fn o_c03_bad_paths_are_refused_with_position_and_advice() {
        let table = [
            (
                "a..b",
                "character 3 of the path: two dots in a row; remove one, or write [\"\"] for \
                 the empty key",
            ),
            (".a", "character 1 of the path: a path does not begin with a dot; remove it"),
            (".", "character 1 of the path: a path does not begin with a dot; remove it"),
            (
                "ключ.",
                "character 5 of the path: a key is missing after the dot; remove the dot, or \
                 write [\"\"] for the empty key",
            ),
            (
                "items[-1]",
                "character 7 of the path: an index counts from 0 at the start of the list; it \
                 cannot be negative",
            ),
            ("items[0", "character 6 of the path: this bracket is not closed; `]` is missing"),
            ("items[", "character 6 of the path: this bracket is not closed; `]` is missing"),
            (
                "items[]",
                "character 7 of the path: the brackets are empty; write an index as in [0], or \
                 a key in quotes",
            ),
            ("items[007]", "character 7 of the path: `007` is not an index; write it like 0 or 12"),
            (
                "items[99999999999999999999]",
                "character 7 of the path: `99999999999999999999` is not an index; write it \
                 like 0 or 12",
            ),
            (
                "items[*]",
                "character 7 of the path: a key in brackets stands in double quotes; write [\"*\"]",
            ),
            (
                "a['b.c']",
                "character 3 of the path: a key in brackets stands in double quotes; write \
                 [\"b.c\"]",
            ),
            (
                "a[b]",
                "character 3 of the path: a key in brackets stands in double quotes; write [\"b\"]",
            ),
            ("a.[0]", "character 2 of the path: no dot stands before a bracket; remove it"),
            ("a[0]b", "character 5 of the path: after `]` a dot or `[` is expected, found `b`"),
            ("a]", "character 2 of the path: a key with `]` in it must be quoted, as in [\"a]b\"]"),
            (
                "a\"b",
                "character 2 of the path: a key with `\"` in it must be quoted, as in [\"a\\\"b\"]",
            ),
            (
                " a",
                "character 1 of the path: a key must not begin or end with white space; remove \
                 it, or quote the key: [\" a\"]",
            ),
            ("[\"a]", "character 1 of the path: this bracket is not closed; `]` is missing"),
            ("[\"a\"", "character 1 of the path: this bracket is not closed; `]` is missing"),
            (
                r#"["\x"]"#,
                r"character 3 of the path: `\x` is not an escape; write \\ for a backslash",
            ),
        ];
        for (text, message) in table {
            let error = Path::parse(text).expect_err(text);
            assert_eq!(error.to_string(), message, "{text}");
        }
    }

    #[test]
    fn o_c03_a_literal_dotted_key_is_hinted_at_but_never_matched() {
        let table = [
            (r#"{"a.b":1}"#, "a.b", Some(r#"not found, but ["a.b"] is there"#)),
            (r#"{"a.b":1,"a":{}}"#, "a.b", Some(r#"not found, but ["a.b"] is there"#)),
            (r#"{"r":{"a.b":{"c":1}}}"#, "r.a.b.c", Some(r#"not found, but r["a.b"].c is there"#)),
            (r#"{"a[0]":1}"#, "a[0]", Some(r#"not found, but ["a[0]"] is there"#)),
            (r#"{"items":[5]}"#, "items.0", Some("not found, but items[0] is there")),
            (r#"{"items":{"0":5}}"#, "items[0]", Some("not found, but items.0 is there")),
            (r#"{"a":{"c":1}}"#, "a.b", None),
            (r#"{"a.b":1,"a":{"b":2}}"#, "a.b", None),
            ("null", "a.b", None),
        ];
        for (root, text, hint) in table {
            assert_eq!(path(text).hint_for_missing(&value(root)).as_deref(), hint, "{root} {text}");
        }
        assert_eq!(path("a.b").resolve(&value(r#"{"a.b":1}"#)), None);
    }

    #[test]
    fn the_canonical_text_quotes_only_what_needs_it() {
        let table = [
            (r#"["a"]["b"][0].c"#, "a.b[0].c"),
            (r#"["a.b"]"#, r#"["a.b"]"#),
            (r#"x["\u0041"]"#, "x.A"),
            (r#"[""]"#, r#"[""]"#),
            (r#"["\n"]["\""][" a"]["a b"]"#, r#"["\n"]["\""][" a"].a b"#),
            ("", ""),
        ];
        for (text, canonical) in table {
            assert_eq!(path(text).to_string(), canonical);
            assert_eq!(path(canonical), path(text));
        }
    }

    fn any_path() -> impl Strategy<Value = Path> {
        let key = prop_oneof!["[a-c.\\[\\]\"\\\\ 0$]{0,3}", any::<String>()];
        let step = prop_oneof![key.prop_map(Step::Key), (0..3usize).prop_map(Step::Index)];
        prop::collection::vec(step, 0..6).prop_map(Path::from_iter)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn every_path_reads_back_from_its_text(path in any_path()) {
            prop_assert_eq!(Path::parse(&path.to_string()), Ok(path));
        }

        #[test]
        fn any_text_is_a_path_or_is_refused_at_a_place_inside_it(
            text in prop_oneof!["[a-b.\\[\\]\"\\\\'0\\- é]{0,10}", any::<String>()]
        ) {
            match Path::parse(&text) {
                Ok(path) => prop_assert_eq!(Path::parse(&path.to_string()), Ok(path)),
                Err(error) => {
                    prop_assert!((1..=text.chars().count()).contains(&error.column), "{}", error);
                }
            }
        }

        #[test]
        fn a_path_built_while_descending_resolves_to_where_it_leads(value in any_value()) {
            let mut pending = vec![(Path::default(), &value)];
            while let Some((path, inner)) = pending.pop() {
                prop_assert_eq!(path.resolve(&value), Some(inner));
                prop_assert_eq!(path.hint_for_missing(&value), None);
                for (index, item) in inner.as_array().unwrap_or_default().iter().enumerate() {
                    pending.push((path.join(Step::Index(index)), item));
                }
                for (key, value) in inner.as_object().into_iter().flatten() {
                    pending.push((path.join(Step::Key(key.clone())), value));
                }
            }
        }

        #[test]
        fn a_hint_names_a_path_that_is_there(path in any_path(), value in any_value()) {
            if let Some(hint) = path.hint_for_missing(&value) {
                prop_assert_eq!(path.resolve(&value), None);
                let meant = hint.strip_prefix("not found, but ").and_then(|h| h.strip_suffix(" is there"));
                let meant = Path::parse(meant.unwrap()).unwrap();
                prop_assert!(meant.resolve(&value).is_some(), "{}", hint);
            }
        }
    }
}
