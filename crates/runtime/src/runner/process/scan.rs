//! Tells, byte by byte, whether a text can still become one JSON value.
//!
//! The reader of [`engine::value`] wants the whole text; an agent's output comes in pieces, and
//! most of it is not JSON at all. This automaton knows the grammar of RFC 8259 and nothing else: it
//! builds nothing, looks at each byte once, and leaves it to the reader to refuse duplicate keys,
//! numbers out of range and bytes that are not UTF-8.

use engine::value::DEPTH_MAX;

/// What a text is so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Nothing, or the beginning of a value.
    Open,
    /// One value with nothing but white space around it.
    Complete,
    /// Not one value, whatever may follow.
    Broken,
}

/// The automaton.
#[derive(Clone, Debug)]
pub struct Scan {
    state: State,
    /// The open containers, innermost last.
    open: Vec<Container>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Container {
    Array,
    Object,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Value,
    FirstItem,
    FirstKey,
    Key,
    Colon,
    AfterValue,
    Text(Role),
    Escape(Role),
    Unicode(Role, u8),
    Word(&'static [u8]),
    Minus,
    Zero,
    Digits,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
    Broken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Key,
    Value,
}

impl Scan {
    /// An automaton that has seen nothing.
    pub fn new() -> Scan {
        Scan { state: State::Value, open: Vec::new() }
    }

    /// What a whole text is.
    pub fn of(text: &[u8]) -> Shape {
        let mut scan = Scan::new();
        scan.feed(text);
        scan.feed(b"\n");
        scan.shape()
    }

    /// Looks at the next piece of the text.
    pub fn feed(&mut self, mut piece: &[u8]) {
        while self.state != State::Broken {
            if matches!(self.state, State::Text(_)) {
                // Most of a long value is plain text; the automaton need not see it.
                let is_plain = |&byte: &u8| byte >= 0x20 && byte != b'"' && byte != b'\\';
                let end = piece.iter().position(|byte| !is_plain(byte)).unwrap_or(piece.len());
                piece = &piece[end..];
            }
            let Some((&byte, rest)) = piece.split_first() else { return };
            self.state = self.next(byte);
            piece = rest;
        }
    }

    /// What the text is so far. A number needs a byte after it to be complete.
    pub fn shape(&self) -> Shape {
        match self.state {
            State::Broken => Shape::Broken,
            State::AfterValue if self.open.is_empty() => Shape::Complete,
            _ => Shape::Open,
        }
    }

    fn next(&mut self, byte: u8) -> State {
        use State::*;
        let is_space = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        match (self.state, byte) {
            (Value | FirstItem | FirstKey | Key | Colon | AfterValue, _) if is_space => self.state,
            (FirstItem, b']') | (FirstKey, b'}') => self.close(byte),
            (Value | FirstItem, _) => self.value(byte),
            (FirstKey | Key, b'"') => Text(Role::Key),
            (Colon, b':') => Value,
            (AfterValue, _) => self.after_value(byte),
            (Text(Role::Key), b'"') => Colon,
            (Text(Role::Value), b'"') => AfterValue,
            (Text(role), b'\\') => Escape(role),
            (Escape(role), b'u') => Unicode(role, 4),
            (Escape(role), b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Text(role),
            (Unicode(role, 1), _) if byte.is_ascii_hexdigit() => Text(role),
            (Unicode(role, left), _) if byte.is_ascii_hexdigit() => Unicode(role, left - 1),
            (Word([expected]), _) if byte == *expected => AfterValue,
            (Word([expected, rest @ ..]), _) if byte == *expected => Word(rest),
            (Minus, b'0') => Zero,
            (Minus | Digits, b'0'..=b'9') => Digits,
            (Zero | Digits, b'.') => Point,
            (Point | Fraction, b'0'..=b'9') => Fraction,
            (Zero | Digits | Fraction, b'e' | b'E') => Exponent,
            (Exponent, b'+' | b'-') => ExponentSign,
            (Exponent | ExponentSign | ExponentDigits, b'0'..=b'9') => ExponentDigits,
            (Zero | Digits | Fraction | ExponentDigits, _) if is_space => AfterValue,
            (Zero | Digits | Fraction | ExponentDigits, _) => self.after_value(byte),
            _ => Broken,
        }
    }

    fn value(&mut self, byte: u8) -> State {
        match byte {
            b'{' => self.enter(Container::Object, State::FirstKey),
            b'[' => self.enter(Container::Array, State::FirstItem),
            b'"' => State::Text(Role::Value),
            b't' => State::Word(b"rue"),
            b'f' => State::Word(b"alse"),
            b'n' => State::Word(b"ull"),
            b'-' => State::Minus,
            b'0' => State::Zero,
            b'1'..=b'9' => State::Digits,
            _ => State::Broken,
        }
    }

    fn enter(&mut self, container: Container, state: State) -> State {
        if self.open.len() == DEPTH_MAX {
            return State::Broken;
        }
        self.open.push(container);
        state
    }

    fn after_value(&mut self, byte: u8) -> State {
        match (byte, self.open.last()) {
            (b',', Some(Container::Array)) => State::Value,
            (b',', Some(Container::Object)) => State::Key,
            (b']' | b'}', Some(_)) => self.close(byte),
            _ => State::Broken,
        }
    }

    fn close(&mut self, byte: u8) -> State {
        match (self.open.pop(), byte) {
            (Some(Container::Array), b']') | (Some(Container::Object), b'}') => State::AfterValue,
            _ => State::Broken,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::value::Value;
    use proptest::prelude::*;

    #[test]
    fn values_are_complete_and_beginnings_open() {
        let complete = [
            "0",
            "-1.5e+3",
            "\"a\\\"b\\u00e9\"",
            "[]",
            "{}",
            " [1, {\"a\": [null]}] ",
            "true",
            "{\"a\":\"\u{e9}\"}",
        ];
        for text in complete {
            assert_eq!(Scan::of(text.as_bytes()), Shape::Complete, "{text}");
        }
        for text in ["", "[", "{\"a\":", "[1,", "{\"a\":{}"] {
            assert_eq!(Scan::of(text.as_bytes()), Shape::Open, "{text}");
        }
        let broken = [
            "[INFO] starting",
            "{a:1}",
            "[1 2]",
            "01",
            "1 2",
            "[1,]",
            "{\"a\":1,}",
            "]",
            "tru",
            "\"a",
            "\"\\x\"",
            "[12:30:01]",
            "nulll",
            "-",
            "1.",
            "1e",
            "{}{}",
            "[}",
        ];
        for text in broken {
            assert_eq!(Scan::of(text.as_bytes()), Shape::Broken, "{text}");
        }
    }

    #[test]
    fn nesting_ends_where_the_reader_ends_it() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(Scan::of(nested(DEPTH_MAX).as_bytes()), Shape::Complete);
        assert_eq!(Scan::of(nested(DEPTH_MAX + 1).as_bytes()), Shape::Broken);
    }

    proptest! {
        #[test]
        fn whatever_the_reader_accepts_is_complete(text in r#"[\[\]{}:,"0-9eE.+\- tfn\\u]{0,12}"#) {
            if Value::parse(&text).is_ok() {
                prop_assert_eq!(Scan::of(text.as_bytes()), Shape::Complete);
            }
        }

        #[test]
        fn pieces_give_what_the_whole_gives(text in r#"[\[\]{}:,"0-9e. a]{0,24}"#, cut in 0usize..24) {
            let cut = cut.min(text.len());
            let mut scan = Scan::new();
            scan.feed(&text.as_bytes()[..cut]);
            scan.feed(&text.as_bytes()[cut..]);
            scan.feed(b"\n");
            prop_assert_eq!(scan.shape(), Scan::of(text.as_bytes()));
        }
    }
}
