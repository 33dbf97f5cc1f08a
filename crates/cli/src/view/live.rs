//! The live view: prints a frame over the one before.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// At most so often; more cannot be read, and less looks slow.
const REDRAW_EVERY: Duration = Duration::from_millis(80);

/// The lines on the terminal that are printed over.
#[derive(Debug, Default)]
pub struct Canvas {
    lines: Vec<String>,
    drawn_at: Option<Instant>,
}

impl Canvas {
    /// Whether it is time to draw again.
    pub fn is_due(&self) -> bool {
        self.drawn_at.is_none_or(|at| at.elapsed() >= REDRAW_EVERY)
    }

    /// Prints the lines over those that were drawn last.
    pub fn draw(&mut self, lines: Vec<String>, out: &mut impl Write) -> io::Result<()> {
        self.drawn_at = Some(Instant::now());
        if lines == self.lines {
            return Ok(());
        }
        let text = self.over(&lines);
        self.lines = lines;
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Takes away what was drawn, so that what follows stands in its place.
    pub fn clear(&mut self, out: &mut impl Write) -> io::Result<()> {
        self.draw(Vec::new(), out)
    }

    /// One text that brings the cursor back and prints the lines. Written in one go, so that the
    /// terminal shows no half a frame; auto-wrap is off meanwhile, so that a line that is too wide
    /// after the window shrank stays one line.
    fn over(&self, lines: &[String]) -> String {
        let mut text = String::from("\x1b[?7l");
        if !self.lines.is_empty() {
            let _ = write!(text, "\x1b[{}A", self.lines.len());
        }
        text.push('\r');
        for line in lines {
            text.push_str(line);
            text.push_str("\x1b[K\n");
        }
        text.push_str("\x1b[J\x1b[?7h");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a terminal of many columns shows after the bytes: enough of one to see frames.
    fn screen(bytes: &[u8]) -> Vec<String> {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let mut rows: Vec<String> = vec![String::new()];
        let (mut row, mut rest) = (0, text.as_str());
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            match c {
                '\n' => {
                    row += 1;
                    if row == rows.len() {
                        rows.push(String::new());
                    }
                }
                '\r' => {}
                '\x1b' => {
                    let end = rest.find(|c: char| c.is_ascii_alphabetic()).unwrap();
                    let code = &rest[1..end];
                    match rest.as_bytes()[end] {
                        b'A' => row -= code.parse::<usize>().unwrap(),
                        b'K' | b'h' | b'l' => {}
                        b'J' => rows.truncate(row + 1),
                        other => panic!("unexpected sequence ending in {other}"),
                    }
                    if rest.as_bytes()[end] == b'J' {
                        rows[row].clear();
                    }
                    rest = &rest[end + 1..];
                }
                c => {
                    // A new line of a frame replaces what stood there.
                    let start = rest.find("\x1b[K").unwrap_or(rest.len());
                    rows[row] = format!("{c}{}", &rest[..start]);
                    rest = &rest[start..];
                }
            }
        }
        rows.retain(|row| !row.is_empty());
        rows
    }

    #[test]
    fn a_frame_replaces_the_one_before_also_when_it_is_shorter() {
        let mut canvas = Canvas::default();
        let mut out = Vec::new();
        let lines = |texts: &[&str]| texts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>();
        canvas.draw(lines(&["one", "two", "three"]), &mut out).unwrap();
        assert_eq!(screen(&out), ["one", "two", "three"]);
        canvas.draw(lines(&["eins", "zwei"]), &mut out).unwrap();
        assert_eq!(screen(&out), ["eins", "zwei"]);
        let n_bytes = out.len();
        canvas.draw(lines(&["eins", "zwei"]), &mut out).unwrap();
        assert_eq!(out.len(), n_bytes, "a frame that is there already is not written again");
        canvas.clear(&mut out).unwrap();
        assert_eq!(screen(&out), [""; 0]);
    }
}
