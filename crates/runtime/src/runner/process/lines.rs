//! Text out of bytes that come in pieces: lines for people, and the last few of them.

use crate::runner::PROGRESS_LINE_BYTES_MAX;

/// Cuts a stream of bytes into lines, in bounded memory. A character that arrives in two pieces
/// stays whole, because a line is decoded only once it is complete.
#[derive(Debug, Default)]
pub struct LineSplitter {
    /// The beginning of the line that is not complete yet, with a few bytes more than are shown.
    line: Vec<u8>,
}

/// Bytes kept beyond what is shown, so that the last character shown is never cut.
const SPARE: usize = 4;

impl LineSplitter {
    /// Takes the next piece and gives each line that is complete now. Empty lines are left out; a
    /// carriage return ends a line too, as programs that show a percentage use it.
    pub fn push(&mut self, mut piece: &[u8], mut line: impl FnMut(String)) {
        while let Some(end) = piece.iter().position(|&b| matches!(b, b'\n' | b'\r')) {
            self.keep(&piece[..end]);
            self.give(&mut line);
            piece = &piece[end + 1..];
        }
        self.keep(piece);
    }

    /// Gives what is left when the stream has ended.
    pub fn finish(mut self, mut line: impl FnMut(String)) {
        self.give(&mut line);
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = (PROGRESS_LINE_BYTES_MAX + SPARE).saturating_sub(self.line.len());
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn give(&mut self, line: &mut impl FnMut(String)) {
        if !self.line.is_empty() {
            line(shown(&self.line));
            self.line.clear();
        }
    }
}

/// A line as it is shown: decoded, with replacement marks for bytes that are no text, and cut
/// between two characters if it is longer than [`PROGRESS_LINE_BYTES_MAX`].
pub fn shown(line: &[u8]) -> String {
    let start = &line[..line.len().min(PROGRESS_LINE_BYTES_MAX + SPARE)];
    let mut text = String::from_utf8_lossy(start).into_owned();
    text.truncate(floor_char_boundary(&text, PROGRESS_LINE_BYTES_MAX));
    text
}

/// The largest place at or before `at` that is between two characters.
fn floor_char_boundary(text: &str, at: usize) -> usize {
    if at >= text.len() {
        return text.len();
    }
    (0..=at).rev().find(|&place| text.is_char_boundary(place)).unwrap_or(0)
}

/// The last bytes of a stream.
#[derive(Debug)]
pub struct Tail {
    bytes_max: usize,
    bytes: Vec<u8>,
    cut: bool,
}

impl Tail {
    /// Keeps at most `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Tail {
        Tail { bytes_max, bytes: Vec::new(), cut: false }
    }

    /// Takes the next piece.
    pub fn push(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
        if self.bytes.len() > 2 * self.bytes_max {
            self.forget();
        }
    }

    /// The last bytes as text, beginning between two characters.
    pub fn into_text(mut self) -> String {
        if self.bytes.len() > self.bytes_max {
            self.forget();
        }
        let continues = |&&byte: &&u8| self.cut && byte & 0xC0 == 0x80;
        let skip = self.bytes.iter().take(SPARE - 1).take_while(continues).count();
        String::from_utf8_lossy(&self.bytes[skip..]).into_owned()
    }

    fn forget(&mut self) {
        self.bytes.drain(..self.bytes.len() - self.bytes_max);
        self.cut = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(pieces: &[&[u8]]) -> Vec<String> {
        let mut lines = Vec::new();
        let mut splitter = LineSplitter::default();
        for piece in pieces {
            splitter.push(piece, |line| lines.push(line));
        }
        splitter.finish(|line| lines.push(line));
        lines
    }

    #[test]
    fn a_character_that_comes_in_three_pieces_stays_whole() {
        assert_eq!(split(&[b"a \xE2", b"\x89", b"\xA4\nb"]), ["a ≤", "b"]);
    }

    #[test]
    fn every_kind_of_line_end_ends_a_line_once() {
        assert_eq!(split(&[b"a\r", b"\nb\rc\n\n\nd"]), ["a", "b", "c", "d"]);
    }

    #[test]
    fn bytes_that_are_no_text_become_replacement_marks() {
        assert_eq!(split(&[b"a\xFF\xFEb\n"]), ["a\u{fffd}\u{fffd}b"]);
    }

    #[test]
    fn a_long_line_is_cut_between_two_characters() {
        for offset in 0..4 {
            let long = format!("{}{}", "x".repeat(offset), "😀".repeat(PROGRESS_LINE_BYTES_MAX));
            let lines = split(&[long.as_bytes(), b"\nnext\n"]);
            assert_eq!(lines.len(), 2);
            assert!(lines[0].len() <= PROGRESS_LINE_BYTES_MAX);
            assert!(lines[0].len() > PROGRESS_LINE_BYTES_MAX - 4);
            assert!(long.starts_with(&lines[0]), "no replacement mark at the cut");
            assert_eq!(lines[1], "next");
        }
    }

    #[test]
    fn a_tail_keeps_the_last_bytes_and_begins_between_two_characters() {
        let mut tail = Tail::new(10);
        tail.push("äöü".repeat(100).as_bytes());
        tail.push(b"end");
        assert_eq!(tail.into_text(), "äöüend".to_owned());

        let mut short = Tail::new(10);
        short.push(b"\xBCx");
        assert_eq!(short.into_text(), "\u{fffd}x", "nothing was cut, so nothing is hidden");
    }

    #[test]
    fn memory_stays_bounded() {
        let mut tail = Tail::new(16);
        let mut splitter = LineSplitter::default();
        for _ in 0..1000 {
            tail.push(&[b'x'; 100]);
            splitter.push(&[b'x'; 100], |_| {});
        }
        assert!(tail.bytes.len() <= 132);
        assert!(splitter.line.len() <= PROGRESS_LINE_BYTES_MAX + SPARE);
    }
}
