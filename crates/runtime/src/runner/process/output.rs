//! An agent's standard output: collected in bounded memory, shown line by line while it comes,
//! and read as a result when it is over.

use std::ops::Range;

use engine::failure::{Failure, FailureClass};
use engine::payload::Payload;
use engine::value::{SyntaxError, Value};

use super::candidate::{Candidate, Candidates};
use super::lines::shown;
use super::settings::OutputKind;

/// The `errorType` of an output that is longer than the limit.
pub const OUTPUT_TOO_LONG: &str = "outputTooLong";
/// The `errorType` of a result that is not UTF-8.
pub const INVALID_UTF8: &str = "invalidUtf8";

/// How many characters of an output that cannot be read are quoted.
const EXCERPT_CHARS_MAX: usize = 200;

/// The standard output of one attempt.
#[derive(Debug)]
pub struct Output {
    kind: OutputKind,
    bytes_max: usize,
    bytes: Vec<u8>,
    candidates: Candidates,
    /// Up to where a text output has been shown.
    shown_to: usize,
}

/// The output is longer than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// The limit.
    pub bytes_max: usize,
}

/// What an output says.
#[derive(Debug)]
pub struct Read {
    /// The result.
    pub result: Result<Payload, Unreadable>,
    /// The bytes it was read from, if they are not UTF-8.
    pub not_utf8: Option<Vec<u8>>,
    /// Lines that turned out to be progress only now.
    pub progress: Vec<String>,
}

/// Why an output is not the result that was promised.
#[derive(Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// Its result is not UTF-8.
    NotUtf8 {
        /// The first bad byte, counted from the start of the output.
        offset: usize,
        /// The start of it.
        excerpt: String,
    },
    /// It is no JSON, or none that can be kept.
    NotJson {
        /// Why, with line and column in the output.
        reason: String,
        /// The start of it.
        excerpt: String,
    },
}

impl Unreadable {
    /// The failure of the attempt.
    ///
    /// * `program`: who wrote it.
    /// * `kept`: where the raw bytes are, for people.
    pub fn into_failure(self, program: &str, kept: Option<&str>) -> Failure {
        match self {
            Unreadable::NotUtf8 { offset, excerpt } => {
                let kept = kept.map(|place| format!(" {place}")).unwrap_or_default();
                let message = format!(
                    "the output of `{program}` is not UTF-8 from byte {offset} on, so it cannot \
                     be read as JSON; it begins: {excerpt}{kept}"
                );
                Failure::typed(FailureClass::InvalidOutput, INVALID_UTF8, message)
            }
            Unreadable::NotJson { reason, excerpt } => {
                let message = format!(
                    "the output of `{program}` is not JSON: {reason}; it begins: {excerpt}"
                );
                Failure::new(FailureClass::InvalidOutput, message)
            }
        }
    }
}

impl Output {
    /// Nothing has come yet.
    pub fn new(kind: OutputKind, bytes_max: usize) -> Output {
        Output {
            kind,
            bytes_max,
            bytes: Vec::new(),
            candidates: Candidates::new(4 * bytes_max),
            shown_to: 0,
        }
    }

    /// How many bytes have come.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Takes the next piece, and gives the lines that are certainly progress.
    pub fn push(&mut self, piece: &[u8], line: impl FnMut(String)) -> Result<(), TooLong> {
        if self.bytes.len() + piece.len() > self.bytes_max {
            return Err(TooLong { bytes_max: self.bytes_max });
        }
        self.bytes.extend_from_slice(piece);
        match self.kind {
            OutputKind::Json => {
                let mut released = Vec::new();
                self.candidates.advance(&self.bytes, &mut released);
                give_lines(&self.bytes, released, line);
            }
            // The whole of it is the result, and yet a person wants to see it grow.
            OutputKind::Text => {
                let complete = piece.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
                if complete > 0 {
                    let end = self.bytes.len() - piece.len() + complete;
                    give_lines(&self.bytes, std::iter::once(self.shown_to..end), line);
                    self.shown_to = end;
                }
            }
        }
        Ok(())
    }

    /// Reads the output when it is over.
    pub fn finish(self) -> Read {
        match self.kind {
            OutputKind::Json => self.finish_json(),
            OutputKind::Text => self.finish_text(),
        }
    }

    fn finish_json(self) -> Read {
        let mut released = Vec::new();
        let candidate = self.candidates.finish(&self.bytes, &mut released);
        let mut progress = Vec::new();
        give_lines(&self.bytes, released, |line| progress.push(line));
        let result = match &candidate {
            Some(candidate) => read_candidate(&self.bytes, candidate),
            None => read_whole(&self.bytes),
        };
        let is_utf8 = !matches!(result, Err(Unreadable::NotUtf8 { .. }));
        Read { result, not_utf8: (!is_utf8).then_some(self.bytes), progress }
    }

    fn finish_text(self) -> Read {
        let mut progress = Vec::new();
        let rest = self.shown_to..self.bytes.len();
        give_lines(&self.bytes, std::iter::once(rest), |line| progress.push(line));
        let (mut text, not_utf8) = match String::from_utf8(self.bytes) {
            Ok(text) => (text, None),
            Err(error) => {
                let bytes = error.into_bytes();
                (String::from_utf8_lossy(&bytes).into_owned(), Some(bytes))
            }
        };
        if text.ends_with('\n') {
            text.pop();
            if text.ends_with('\r') {
                text.pop();
            }
        }
        Read { result: Ok(Payload::new(Value::String(text))), not_utf8, progress }
    }
}

fn read_candidate(bytes: &[u8], candidate: &Candidate) -> Result<Payload, Unreadable> {
    let start = candidate.json.start;
    let text = utf8(bytes, candidate.json.clone())?;
    Value::parse(text).map(Payload::new).map_err(|error| {
        let before = String::from_utf8_lossy(&bytes[..start]);
        let line = error.line + count_line_ends(&before);
        not_json(bytes, &SyntaxError { line, ..error })
    })
}

fn read_whole(bytes: &[u8]) -> Result<Payload, Unreadable> {
    let text = utf8(bytes, 0..bytes.len())?;
    let trimmed = text.trim_start_matches('\u{feff}').trim_ascii();
    if trimmed.is_empty() {
        return Ok(Payload::null());
    }
    Value::parse(text).map(Payload::new).map_err(|error| {
        if trimmed.starts_with(['{', '[']) {
            return not_json(bytes, &error);
        }
        Unreadable::NotJson {
            reason: "no line and no fenced block of it is a JSON value".to_owned(),
            excerpt: excerpt(bytes),
        }
    })
}

fn utf8(bytes: &[u8], range: Range<usize>) -> Result<&str, Unreadable> {
    let start = range.start;
    std::str::from_utf8(&bytes[range]).map_err(|error| Unreadable::NotUtf8 {
        offset: start + error.valid_up_to(),
        excerpt: excerpt(bytes),
    })
}

fn not_json(bytes: &[u8], error: &SyntaxError) -> Unreadable {
    Unreadable::NotJson { reason: error.to_string(), excerpt: excerpt(bytes) }
}

/// The start of an output on one line, in backticks.
fn excerpt(bytes: &[u8]) -> String {
    let start = &bytes[..bytes.len().min(4 * EXCERPT_CHARS_MAX)];
    let text = String::from_utf8_lossy(start);
    let words: Vec<&str> = text.split_whitespace().collect();
    let line: String = words.join(" ").chars().take(EXCERPT_CHARS_MAX).collect();
    let is_all = start.len() == bytes.len() && line.chars().count() < EXCERPT_CHARS_MAX;
    format!("`{line}{}`", if is_all { "" } else { "…" })
}

fn count_line_ends(text: &str) -> usize {
    let returns = text.matches('\r').count();
    returns + text.matches('\n').count() - text.matches("\r\n").count()
}

fn give_lines(
    bytes: &[u8],
    ranges: impl IntoIterator<Item = Range<usize>>,
    mut line: impl FnMut(String),
) {
    for range in ranges {
        let lines = bytes[range].split(|&b| matches!(b, b'\n' | b'\r'));
        lines.filter(|bytes| !bytes.is_empty()).for_each(|bytes| line(shown(bytes)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1024 * 1024;

    fn read(kind: OutputKind, bytes: &[u8]) -> (Read, Vec<String>) {
        let mut output = Output::new(kind, MIB);
        let mut live = Vec::new();
        for piece in bytes.chunks(3) {
            output.push(piece, |line| live.push(line)).unwrap();
        }
        let read = output.finish();
        live.extend(read.progress.iter().cloned());
        (read, live)
    }

    fn check(bytes: &[u8], result: &str) {
        let (read, _) = read(OutputKind::Json, bytes);
        match read.result {
            Ok(payload) => assert_eq!(payload.text(), result),
            Err(error) => {
                let message = error.into_failure("tool", None).message;
                assert_eq!(message, result);
            }
        }
    }

    #[test]
    fn nothing_and_white_space_are_null() {
        check(b"", "null");
        check(b" \r\n\n", "null");
        check(b"\xEF\xBB\xBF\n", "null");
    }

    #[test]
    fn numbers_keep_every_digit() {
        check(
            b"progress\n[18446744073709551616, 1.0, 0.1000]\n",
            "[18446744073709551616,1.0,0.1000]",
        );
        check(b"  42  \n", "42");
    }

    #[test]
    fn what_cannot_be_read_is_told_with_its_place_and_start() {
        check(
            b"{\n \"a\": 1,\n \"b\": nope\n}\n",
            "the output of `tool` is not JSON: line 3, column 7: `nope` is not JSON; put text in \
             double quotes, or write true, false or null; it begins: `{ \"a\": 1, \"b\": nope }`",
        );
        check(
            b"Hello there\n",
            "the output of `tool` is not JSON: no line and no fenced block of it is a JSON value; \
             it begins: `Hello there`",
        );
    }

    #[test]
    fn the_last_value_must_be_one_that_can_be_kept() {
        let (read, _) = read(OutputKind::Json, b"{\"n\":1}\r\nx\n{\"a\":1,\"a\":2}\n");
        let message = read.result.unwrap_err().into_failure("tool", None).message;
        assert!(message.contains("line 3, column 8"), "{message}");
    }

    #[test]
    fn json_that_is_not_utf8_fails_and_its_bytes_are_kept() {
        let bytes = b"x\n{\"a\":\"\xFF\xFE\"}\n";
        let (read, live) = read(OutputKind::Json, bytes);
        assert_eq!(read.not_utf8.as_deref(), Some(&bytes[..]));
        let failure = read.result.unwrap_err().into_failure("tool", Some("All of it is in f."));
        assert_eq!(failure.class, FailureClass::InvalidOutput);
        assert_eq!(failure.error_type, INVALID_UTF8);
        assert!(failure.message.contains("from byte 8 on"), "{}", failure.message);
        assert!(failure.message.ends_with("All of it is in f."), "{}", failure.message);
        assert_eq!(live, ["x"]);
    }

    #[test]
    fn bad_bytes_in_progress_do_not_spoil_the_result() {
        let (read, live) = read(OutputKind::Json, b"\xFF\n[1]\n");
        assert_eq!(read.result.unwrap().text(), "[1]");
        assert_eq!(live, ["\u{fffd}"]);
    }

    #[test]
    fn text_loses_one_line_end_and_is_shown_as_it_comes() {
        for (bytes, text) in [
            (&b"a\nb\n"[..], "\"a\\nb\""),
            (b"a\r\n", "\"a\""),
            (b"a\n\n", "\"a\\n\""),
            (b"", "\"\""),
            ("≤".as_bytes(), "\"≤\""),
        ] {
            let (read, _) = read(OutputKind::Text, bytes);
            assert_eq!(read.result.unwrap().text(), text);
            assert!(read.not_utf8.is_none());
        }
        let (read, live) = read(OutputKind::Text, b"one\ntwo \xFF\nthree");
        assert_eq!(live, ["one", "two \u{fffd}", "three"]);
        assert!(read.not_utf8.is_some());
        assert_eq!(read.result.unwrap().text(), "\"one\\ntwo \u{fffd}\\nthree\"");
    }

    #[test]
    fn an_output_beyond_the_limit_is_refused() {
        let mut output = Output::new(OutputKind::Json, 10);
        assert_eq!(output.push(b"0123456789", |_| {}), Ok(()));
        assert_eq!(output.push(b"x", |_| {}), Err(TooLong { bytes_max: 10 }));
    }
}
