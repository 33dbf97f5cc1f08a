//! The JSON reader: one pass over the text, everything outside the rules refused with its place.

use indexmap::IndexMap;
use indexmap::map::Entry;

use super::number::{self, shorten};
use super::{
    DEPTH_MAX, Number, Object, Opening, SyntaxError, SyntaxErrorKind as Kind, Value, syntax,
};

/// Reads a text that holds exactly one value.
pub(super) fn read(text: &str) -> Result<Value, SyntaxError> {
    let mut reader = Reader { text, bytes: text.as_bytes(), at: 0, open: Vec::new() };
    reader.document().map_err(|error| *error)
}

/// Errors are boxed: they are rare, and every value passes through a `Result`.
type Read<T> = Result<T, Box<SyntaxError>>;

struct Reader<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    /// Offsets of the brackets that are still open, at most [`DEPTH_MAX`].
    open: Vec<usize>,
}

impl Reader<'_> {
    fn document(&mut self) -> Read<Value> {
        if self.text.starts_with(syntax::MARK) {
            self.at = syntax::MARK.len_utf8();
        }
        self.skip_space();
        if self.peek().is_none() {
            return self.fault(self.at, Kind::Empty);
        }
        let value = self.value()?;
        self.skip_space();
        match self.next_char() {
            None => Ok(value),
            Some('/' | '#') if self.at_comment() => self.fault(self.at, Kind::Comment),
            Some(found) => self.fault(self.at, Kind::TrailingText { found }),
        }
    }

    /// Reads a value that begins here. Recursion is bounded by [`DEPTH_MAX`].
    fn value(&mut self) -> Read<Value> {
        match self.peek() {
            Some(b'"') => self.string().map(Value::String),
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$') => self.word(),
            _ => self.refuse("a value"),
        }
    }

    fn object(&mut self) -> Read<Value> {
        self.enter()?;
        let mut entries = IndexMap::new();
        // Where each key stands, by its index in `entries`.
        let mut offsets = Vec::new();
        self.skip_space();
        if self.peek() != Some(b'}') {
            loop {
                let key_at = self.at;
                let key = self.key()?;
                self.colon(&key)?;
                match entries.entry(key) {
                    Entry::Vacant(vacant) => {
                        offsets.push(key_at);
                        let value = self.value()?;
                        vacant.insert(value);
                    }
                    Entry::Occupied(occupied) => {
                        let (first_line, first_column) = self.position(offsets[occupied.index()]);
                        let key = shorten(occupied.key());
                        return self
                            .fault(key_at, Kind::DuplicateKey { key, first_line, first_column });
                    }
                }
                if !self.comma(b'}')? {
                    break;
                }
            }
        }
        self.leave();
        Ok(Value::Object(Object(Box::new(entries))))
    }

    fn array(&mut self) -> Read<Value> {
        self.enter()?;
        let mut items = Vec::new();
        self.skip_space();
        if self.peek() != Some(b']') {
            loop {
                items.push(self.value()?);
                if !self.comma(b']')? {
                    break;
                }
            }
        }
        self.leave();
        Ok(Value::Array(items))
    }

    fn enter(&mut self) -> Read<()> {
        if self.open.len() == DEPTH_MAX {
            return self.fault(self.at, Kind::TooDeep);
        }
        self.open.push(self.at);
        self.at += 1;
        Ok(())
    }

    fn leave(&mut self) {
        self.open.pop();
        self.at += 1;
    }

    fn key(&mut self) -> Read<String> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$') => {
                let key = shorten(self.bare_word());
                self.fault(self.at, Kind::UnquotedKey { key })
            }
            _ => self.refuse("a key in double quotes"),
        }
    }

    fn colon(&mut self, key: &str) -> Read<()> {
        self.skip_space();
        match self.peek() {
            Some(b':') => {
                self.at += 1;
                self.skip_space();
                Ok(())
            }
            None => self.refuse("a colon"),
            Some(_) if self.at_comment() => self.fault(self.at, Kind::Comment),
            Some(_) => self.fault(self.at, Kind::MissingColon { key: shorten(key) }),
        }
    }

    /// After an element: passes a comma and returns true, or stops at `close` and returns false.
    fn comma(&mut self, close: u8) -> Read<bool> {
        self.skip_space();
        match self.peek() {
            Some(b',') => {
                let comma_at = self.at;
                self.at += 1;
                self.skip_space();
                if self.peek() == Some(close) {
                    return self.fault(comma_at, Kind::TrailingComma);
                }
                Ok(true)
            }
            Some(byte) if byte == close => Ok(false),
            Some(b'"' | b'{' | b'[' | b'-' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z') => {
                self.fault(self.at, Kind::MissingComma)
            }
            _ if close == b']' => self.refuse("a comma or `]`"),
            _ => self.refuse("a comma or `}`"),
        }
    }

    fn number(&mut self) -> Read<Value> {
        match number::scan(&self.bytes[self.at..]) {
            Ok(len) => {
                let start = self.at;
                self.at += len;
                Ok(Value::Number(Number::from_scanned(&self.text[start..self.at])))
            }
            Err(error) => {
                let after_sign = &self.text[self.at..];
                let after_sign = after_sign.strip_prefix('-').unwrap_or(after_sign);
                if after_sign.starts_with("Inf") || after_sign.starts_with("NaN") {
                    let word = shorten(self.bare_word());
                    return self.fault(self.at, Kind::NotFinite { word });
                }
                self.fault(self.at, Kind::Number(error))
            }
        }
    }

    fn word(&mut self) -> Read<Value> {
        let word = self.bare_word();
        let value = match word {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "null" => Value::Null,
            _ => {
                let kind = unknown_word(word);
                return self.fault(self.at, kind);
            }
        };
        self.at += word.len();
        Ok(value)
    }

    /// Reads the string whose opening quote is here.
    fn string(&mut self) -> Read<String> {
        let quote_at = self.at;
        self.at += 1;
        let mut string = String::new();
        loop {
            let start = self.at;
            let rest = &self.bytes[start..];
            let len = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
            let Some(len) = len else {
                return self.fault(quote_at, Kind::UnclosedText);
            };
            self.at += len;
            let piece = &self.text[start..self.at];
            match self.bytes[self.at] {
                b'"' => {
                    self.at += 1;
                    if string.is_empty() {
                        return Ok(piece.to_owned());
                    }
                    string.push_str(piece);
                    return Ok(string);
                }
                b'\\' => {
                    string.push_str(piece);
                    string.push(self.escape(quote_at)?);
                }
                control => {
                    let found = char::from(control);
                    return self.fault(self.at, Kind::ControlCharacter { found });
                }
            }
        }
    }

    /// Reads the escape whose backslash is here.
    fn escape(&mut self, quote_at: usize) -> Read<char> {
        let start = self.at;
        self.at += 1;
        let character = match self.next_char() {
            Some(character @ ('"' | '\\' | '/')) => character,
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => return self.unicode_escape(start),
            Some(other) => {
                let escape = format!("\\{other}");
                return self.fault(start, Kind::UnknownEscape { escape });
            }
            None => return self.fault(quote_at, Kind::UnclosedText),
        };
        self.at += 1;
        Ok(character)
    }

    /// Reads `\uXXXX`, or the pair of them that makes one character.
    fn unicode_escape(&mut self, start: usize) -> Read<char> {
        let first = self.code_unit(start)?;
        if let Some(character) = char::from_u32(first) {
            return Ok(character);
        }
        let end = self.at;
        let is_high = (0xd800..0xdc00).contains(&first);
        if is_high && self.bytes[end..].starts_with(b"\\u") {
            let second = self.code_unit(end)?;
            if (0xdc00..0xe000).contains(&second) {
                let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(code).expect("a pair of surrogates is a character"));
            }
        }
        let escape = self.text[start..end].to_owned();
        self.fault(start, Kind::LoneSurrogate { escape })
    }

    /// Reads the `\uXXXX` at `start` and moves behind it.
    fn code_unit(&mut self, start: usize) -> Read<u32> {
        let digits = start + 2;
        let n_digits =
            self.bytes[digits..].iter().take(4).take_while(|byte| byte.is_ascii_hexdigit()).count();
        self.at = digits + n_digits;
        if n_digits < 4 {
            let escape = self.text[start..self.at].to_owned();
            return self.fault(start, Kind::UnknownEscape { escape });
        }
        Ok(u32::from_str_radix(&self.text[digits..self.at], 16).expect("four hex digits"))
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next_char(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn at_comment(&self) -> bool {
        let rest = &self.bytes[self.at..];
        rest.starts_with(b"//") || rest.starts_with(b"/*") || rest.starts_with(b"#")
    }

    /// The sign, letters, digits and marks here that a person reads as one word.
    fn bare_word(&self) -> &str {
        let rest = &self.text[self.at..];
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '-' | '.');
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        &rest[..end]
    }

    /// Refuses what stands here in place of `expected`.
    fn refuse<T>(&self, expected: &'static str) -> Read<T> {
        let kind = match self.next_char() {
            None => Kind::UnexpectedEnd { expected, open: self.innermost() },
            Some(_) if self.at_comment() => Kind::Comment,
            Some(found @ ('\'' | '\u{2018}'..='\u{201f}' | '\u{ab}' | '\u{bb}')) => {
                Kind::WrongQuote { found }
            }
            Some('+') => match number::scan(&self.bytes[self.at..]) {
                Ok(_) => unreachable!("no number begins with a plus sign"),
                Err(error) => Kind::Number(error),
            },
            Some('.') if self.bytes.get(self.at + 1).is_some_and(u8::is_ascii_digit) => {
                match number::scan(&self.bytes[self.at..]) {
                    Ok(_) => unreachable!("no number begins with a point"),
                    Err(error) => Kind::Number(error),
                }
            }
            Some(found @ (']' | '}')) => match self.innermost() {
                Some(open) if (open.bracket == '[') != (found == ']') => {
                    Kind::WrongBracket { found, open }
                }
                _ => Kind::UnexpectedCharacter { found, expected },
            },
            Some(found) => Kind::UnexpectedCharacter { found, expected },
        };
        self.fault(self.at, kind)
    }

    fn innermost(&self) -> Option<Opening> {
        let offset = *self.open.last()?;
        let (line, column) = self.position(offset);
        Some(Opening { bracket: char::from(self.bytes[offset]), line, column })
    }

    fn fault<T>(&self, offset: usize, kind: Kind) -> Read<T> {
        let (line, column) = self.position(offset);
        Err(Box::new(SyntaxError { line, column, offset, kind }))
    }

    /// Called once or twice for a text: it looks at everything before.
    fn position(&self, offset: usize) -> (usize, usize) {
        syntax::position(self.text, offset)
    }
}

fn unknown_word(word: &str) -> Kind {
    let meant = match word {
        "NaN" | "nan" | "Infinity" | "Inf" | "inf" => {
            return Kind::NotFinite { word: word.to_owned() };
        }
        "True" | "TRUE" | "yes" | "on" => Some("true"),
        "False" | "FALSE" | "no" | "off" => Some("false"),
        "None" | "NULL" | "Null" | "nil" | "undefined" => Some("null"),
        _ => None,
    };
    Kind::UnknownWord { word: shorten(word), meant }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        Value::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn refused(text: &str) -> SyntaxError {
        match Value::parse(text) {
            Ok(value) => panic!("{text} was read as {value}"),
            Err(error) => error,
        }
    }

    #[test]
    fn every_kind_of_value_is_read() {
        let read = value(" {\"a\" : [null, true, false, -1.50, \"x\"], \"b\":{}} \r\n");
        assert_eq!(read.to_json(), r#"{"a":[null,true,false,-1.50,"x"],"b":{}}"#);
        assert_eq!(value("\u{feff}[]"), Value::Array(Vec::new()));
        assert_eq!(
            value(r#""\"\\\/\b\f\n\r\t\u00e9\uD83D\uDE00""#).as_str(),
            Some("\"\\/\u{8}\u{c}\n\r\té😀")
        );
    }

    #[test]
    fn every_refusal_says_what_where_and_what_to_do() {
        let table = [
            ("", "line 1, column 1: the text is empty; a JSON value is expected"),
            (" \n \t", "line 2, column 3: the text is empty; a JSON value is expected"),
            (
                "{\n  \"a\": [1,\n",
                "line 3, column 1: the text ends here, but a value is expected; the list from \
                 line 2, column 8 is not closed",
            ),
            (
                "{\"a\":1",
                "line 1, column 7: the text ends here, but a comma or `}` is expected; the \
                 object from line 1, column 1 is not closed",
            ),
            (
                "[1}",
                "line 1, column 3: found `}`, but the list from line 1, column 1 is closed by `]`",
            ),
            (
                "{\"a\":1]",
                "line 1, column 7: found `]`, but the object from line 1, column 1 is closed \
                 by `}`",
            ),
            ("{} {}", "line 1, column 4: only one JSON value is expected, found `{` after it"),
            (
                "[1,\r\n2,\r\n]",
                "line 2, column 2: there is a comma after the last element; remove it",
            ),
            ("{\"a\":1,}", "line 1, column 7: there is a comma after the last element; remove it"),
            ("[1 2]", "line 1, column 4: a comma is missing between two elements"),
            ("[1,,2]", "line 1, column 4: a value is expected, found `,`"),
            ("{\"ключ\" 1}", "line 1, column 9: a colon is missing after the key \"ключ\""),
            ("[1, // one\n2]", "line 1, column 5: JSON has no comments; remove it"),
            ("[1 /* one */]", "line 1, column 4: JSON has no comments; remove it"),
            ("{} # end", "line 1, column 4: JSON has no comments; remove it"),
            ("['a']", "line 1, column 2: text stands in double quotes (\"), found `'`"),
            ("{“a”:1}", "line 1, column 2: text stands in double quotes (\"), found `“`"),
            ("{name: 1}", "line 1, column 2: keys stand in double quotes; write \"name\""),
            (
                "[NaN]",
                "line 1, column 2: NaN is not a number in JSON; use null, or quote it to keep \
                 it as text",
            ),
            (
                "[-Infinity]",
                "line 1, column 2: -Infinity is not a number in JSON; use null, or quote it to \
                 keep it as text",
            ),
            ("[True]", "line 1, column 2: `True` is not JSON; write true"),
            ("[None]", "line 1, column 2: `None` is not JSON; write null"),
            (
                "hello",
                "line 1, column 1: `hello` is not JSON; put text in double quotes, or write \
                 true, false or null",
            ),
            (
                "[007]",
                "line 1, column 2: `007` is not a number; leave out the leading zeros, or \
                 quote it to keep it as text",
            ),
            ("[+1]", "line 1, column 2: `+1` is not a number; leave out the plus sign"),
            (
                "[.5]",
                "line 1, column 2: `.5` is not a number; write a digit before the point, as in 0.5",
            ),
            (
                "[1.]",
                "line 1, column 2: `1.` is not a number; write a digit after the point, or \
                 leave the point out",
            ),
            (
                "[0x1F]",
                "line 1, column 2: `0x1F` is not a number; write it in decimal digits only, or \
                 quote it to keep it as text",
            ),
            (
                "[1e400]",
                "line 1, column 2: the number `1e400` is too large; the largest is about \
                 1.8e308, put it in quotes",
            ),
            (
                "[1e-400]",
                "line 1, column 2: the number `1e-400` is too close to zero; the smallest is \
                 about 5e-324, put it in quotes",
            ),
            (
                "[\"abc",
                "line 1, column 2: the text that begins here is not closed; a double quote \
                 (\") is missing",
            ),
            (
                "[\"a\nb\"]",
                "line 1, column 4: a line break inside a text; write \\n for it, or close the \
                 text with a double quote (\")",
            ),
            ("[\"a\tb\"]", "line 1, column 4: a tab inside a text; write \\t for it"),
            (
                "[\"\u{1}\"]",
                "line 1, column 3: the control character U+0001 inside a text; write \\u0001 \
                 for it",
            ),
            (
                r#"["C:\temp\x"]"#,
                r"line 1, column 10: `\x` is not an escape; write \\ for a backslash",
            ),
            (
                r#"["\u12g4"]"#,
                r"line 1, column 3: `\u12` is not an escape; write \\ for a backslash",
            ),
            (
                r#"["\ud800"]"#,
                r"line 1, column 3: `\ud800` is half of a character; the other half is missing",
            ),
            (
                r#"["é\udc00"]"#,
                r"line 1, column 4: `\udc00` is half of a character; the other half is missing",
            ),
            (
                r#"["\ud800\u0041"]"#,
                r"line 1, column 3: `\ud800` is half of a character; the other half is missing",
            ),
            (
                "{\"a\":1,\n \"b\":2,\n \"a\":3}",
                "line 3, column 2: the key \"a\" is already at line 1, column 2; keep one of them",
            ),
            (
                "<html>",
                "line 1, column 1: a value is expected, found `<`; this looks like HTML or XML",
            ),
            (
                "```json\n{}```",
                "line 1, column 1: a value is expected, found ```; this looks like a Markdown \
                 fence, remove it",
            ),
            (
                "[\u{a0}1]",
                "line 1, column 2: a value is expected, found U+00A0; remove this invisible \
                 character",
            ),
            (
                "\u{feff}[x]",
                "line 1, column 2: `x` is not JSON; put text in double quotes, or write true, \
                 false or null",
            ),
        ];
        for (text, message) in table {
            assert_eq!(refused(text).to_string(), message, "{text}");
        }
    }

    #[test]
    fn lines_end_with_lf_crlf_or_cr() {
        for end in ["\n", "\r\n", "\r"] {
            let error = refused(&["[", "1,", "  😀]"].join(end));
            assert_eq!((error.line, error.column), (3, 3), "{end:?}");
        }
    }

    #[test]
    fn o_i01_trailing_comma_is_reported_on_its_own_line() {
        let mut lines = vec!["{"];
        lines.extend(std::iter::repeat_n("", 10));
        lines.extend(["\"a\": 1,", "}"]);
        let error = refused(&lines.join("\r\n"));
        assert_eq!((error.line, error.kind), (12, Kind::TrailingComma));
    }

    #[test]
    fn nesting_is_accepted_up_to_the_limit_and_refused_beyond() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert_eq!(value(&nested(DEPTH_MAX)).depth(), DEPTH_MAX);
        let error = refused(&nested(DEPTH_MAX + 1));
        assert_eq!((error.kind, error.column), (Kind::TooDeep, DEPTH_MAX + 1));
        assert_eq!(refused(&"{\"a\":".repeat(200_000)).kind, Kind::TooDeep);
    }

    #[test]
    fn numbers_keep_every_digit() {
        let digits = "9".repeat(300);
        let text = format!("[1.0,0.10,-0,1E+2,17169973925117969,{digits}.{digits}]");
        assert_eq!(value(&text).to_json(), text);
        let too_long = format!("[{}]", "1".repeat(1_001));
        let error = refused(&too_long);
        assert_eq!(
            error.to_string(),
            "line 1, column 2: a number of 1001 digits is too long; at most 1000 digits are kept"
        );
    }

    #[test]
    fn many_keys_and_many_escapes_are_read_in_one_pass() {
        let keys: Vec<String> = (0..100_000).map(|n| format!("\"k{n}\":{n}")).collect();
        let text = format!("{{{}}}", keys.join(","));
        assert_eq!(value(&text).to_json(), text);
        let text = format!("\"{}\"", "\\n".repeat(500_000));
        assert_eq!(value(&text).to_json(), text);
    }
}
