//! Finds, while an agent's output is still coming, the part of it that may be its result.
//!
//! A candidate is a JSON value that stands on lines of its own: on one line, on several, or in a
//! fenced block. The last one is the result. What cannot be the result any more is released as
//! progress at once, so that a person sees it while the agent works.
//!
//! * A number, a text or a word counts only if its line is not indented: indented ones are pieces
//!   of a broken list that was meant to be read as a whole.
//! * A block fenced as `json` counts whether it can be read or not, so that a broken result is an
//!   error and never replaced by an earlier line of progress. A fence without a language counts if
//!   it holds one JSON value. Other fences are ordinary text.

use std::ops::Range;

use super::scan::{Scan, Shape};

/// A part of the output that may be the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Where the JSON text stands.
    pub json: Range<usize>,
    /// The lines that belong to it, fences included.
    pub lines: Range<usize>,
}

/// Watches an output that grows.
#[derive(Debug)]
pub struct Candidates {
    /// Where the line begins that is looked at next.
    cursor: usize,
    /// Up to where there is no line end.
    searched: usize,
    block: Block,
    last: Option<Candidate>,
    /// Lines that are looked at again because a block turned out to be none are counted, so that
    /// an output made to be slow costs no more than a few times its length.
    rescan_bytes_left: usize,
}

/// Several lines that may belong together.
#[derive(Debug)]
enum Block {
    None,
    Value { start: usize, scan: Scan },
    Fence { start: usize, content: usize, ticks: usize, language: Language },
    OtherFence { ticks: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Json,
    Unsaid,
    Other,
}

/// A line that begins with three or more backticks.
struct FenceLine {
    ticks: usize,
    language: Language,
}

impl Candidates {
    /// Nothing has been seen yet.
    ///
    /// * `rescan_bytes_max`: how many bytes may be looked at more than once, in total.
    pub fn new(rescan_bytes_max: usize) -> Candidates {
        Candidates {
            cursor: 0,
            searched: 0,
            block: Block::None,
            last: None,
            rescan_bytes_left: rescan_bytes_max,
        }
    }

    /// Looks at the lines that are complete now.
    ///
    /// * `output`: all of it so far.
    /// * `released`: takes what is progress, in whole lines.
    pub fn advance(&mut self, output: &[u8], released: &mut Vec<Range<usize>>) {
        while let Some(length) = output[self.searched..].iter().position(|&b| is_line_end(b)) {
            self.line(output, self.searched + length, released);
        }
        self.searched = output.len();
    }

    /// Looks at the rest and returns the result's place, if there is one. It is not released.
    pub fn finish(mut self, output: &[u8], released: &mut Vec<Range<usize>>) -> Option<Candidate> {
        loop {
            self.advance(output, released);
            if self.cursor < output.len() {
                self.line(output, output.len(), released);
            }
            // Gives a block up, so that its lines are looked at again, or leaves nothing to do.
            if !self.close_block(output, released) {
                return self.last;
            }
        }
    }

    fn line(&mut self, output: &[u8], end: usize, released: &mut Vec<Range<usize>>) {
        let line = self.cursor..end;
        self.go_to((end + 1).min(output.len()));
        match std::mem::replace(&mut self.block, Block::None) {
            Block::None => self.plain_line(output, line, released),
            Block::Value { start, mut scan } => {
                scan.feed(&output[line.clone()]);
                scan.feed(b"\n");
                match scan.shape() {
                    Shape::Open => self.block = Block::Value { start, scan },
                    Shape::Complete => self.found(start..end, start..end, released),
                    Shape::Broken => self.give_up(output, start, released),
                }
            }
            Block::Fence { start, content, ticks, language } => {
                match fence_line(&output[line.clone()]) {
                    Some(fence) if fence.closes(ticks) => {
                        let json = content..line.start;
                        if language == Language::Json || is_value(&output[json.clone()]) {
                            self.found(json, start..end, released);
                        } else {
                            self.block = Block::OtherFence { ticks };
                            self.give_up(output, start, released);
                        }
                    }
                    Some(fence) if fence.language != Language::Unsaid => {
                        released.push(start..line.start);
                        self.plain_line(output, line, released);
                    }
                    _ => self.block = Block::Fence { start, content, ticks, language },
                }
            }
            Block::OtherFence { ticks } => match fence_line(&output[line.clone()]) {
                Some(fence) if fence.closes(ticks) => released.push(line),
                Some(fence) if fence.language != Language::Unsaid => {
                    self.plain_line(output, line, released);
                }
                _ => {
                    self.block = Block::OtherFence { ticks };
                    self.single_line(output, line, released);
                }
            },
        }
    }

    fn plain_line(&mut self, output: &[u8], line: Range<usize>, released: &mut Vec<Range<usize>>) {
        if let Some(FenceLine { ticks, language }) = fence_line(&output[line.clone()]) {
            if language == Language::Other {
                released.push(line);
                self.block = Block::OtherFence { ticks };
            } else {
                let content = self.cursor;
                self.block = Block::Fence { start: line.start, content, ticks, language };
            }
            return;
        }
        let start = line.start;
        if let Some(scan) = self.single_line(output, line, released) {
            self.block = Block::Value { start, scan };
        }
    }

    /// Takes a line by itself. Gives it back as the beginning of a value if it is one; inside a
    /// fence of another language nobody takes it.
    fn single_line(
        &mut self,
        output: &[u8],
        line: Range<usize>,
        released: &mut Vec<Range<usize>>,
    ) -> Option<Scan> {
        let text = without_mark(&output[line.clone()], line.start);
        let trimmed = text.trim_ascii();
        let first = *trimmed.first()?;
        let is_indented = text[0].is_ascii_whitespace();
        if !matches!(first, b'{' | b'[') && is_indented {
            released.push(line);
            return None;
        }
        let mut scan = Scan::new();
        scan.feed(text);
        scan.feed(b"\n");
        match scan.shape() {
            Shape::Complete => self.found(line.clone(), line, released),
            Shape::Broken => released.push(line),
            Shape::Open if matches!(self.block, Block::OtherFence { .. }) => released.push(line),
            Shape::Open => return Some(scan),
        }
        None
    }

    fn found(&mut self, json: Range<usize>, lines: Range<usize>, released: &mut Vec<Range<usize>>) {
        released.extend(self.last.replace(Candidate { json, lines }).map(|old| old.lines));
    }

    /// A block is none: releases its first line and looks at the others again.
    fn give_up(&mut self, output: &[u8], start: usize, released: &mut Vec<Range<usize>>) {
        let rest = &output[start..self.cursor];
        let first = rest.iter().position(|&b| is_line_end(b)).unwrap_or(rest.len());
        let again = (start + first + 1).min(self.cursor);
        let cost = self.cursor - again;
        if cost > self.rescan_bytes_left {
            released.push(start..self.cursor);
            self.block = Block::None;
            return;
        }
        self.rescan_bytes_left -= cost;
        released.push(start..start + first);
        self.go_to(again);
    }

    /// The output is over while a block is open. Returns whether there are lines to look at again.
    fn close_block(&mut self, output: &[u8], released: &mut Vec<Range<usize>>) -> bool {
        let end = output.len();
        match std::mem::replace(&mut self.block, Block::None) {
            Block::None | Block::OtherFence { .. } => return false,
            Block::Fence { start, content, .. } if is_value(&output[content..]) => {
                self.found(content..end, start..end, released);
                return false;
            }
            Block::Value { start, .. } | Block::Fence { start, .. } => {
                self.give_up(output, start, released);
            }
        }
        self.cursor < end
    }

    fn go_to(&mut self, cursor: usize) {
        self.cursor = cursor;
        self.searched = cursor;
    }
}

impl FenceLine {
    fn closes(&self, ticks: usize) -> bool {
        self.language == Language::Unsaid && self.ticks >= ticks
    }
}

fn fence_line(line: &[u8]) -> Option<FenceLine> {
    let line = line.trim_ascii();
    let ticks = line.iter().take_while(|&&b| b == b'`').count();
    if ticks < 3 {
        return None;
    }
    let language = match line[ticks..].trim_ascii() {
        b"" => Language::Unsaid,
        said if said.eq_ignore_ascii_case(b"json") => Language::Json,
        _ => Language::Other,
    };
    Some(FenceLine { ticks, language })
}

fn is_value(text: &[u8]) -> bool {
    Scan::of(text) == Shape::Complete
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

fn without_mark(line: &[u8], start: usize) -> &[u8] {
    if start > 0 { line } else { line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds an output in pieces of `piece` bytes; returns the result's text and the progress.
    fn find(output: &str, piece: usize) -> (Option<String>, Vec<String>) {
        let bytes = output.as_bytes();
        let mut candidates = Candidates::new(1 << 20);
        let mut released = Vec::new();
        for end in (0..bytes.len()).step_by(piece) {
            candidates.advance(&bytes[..end], &mut released);
        }
        let found = candidates.finish(bytes, &mut released);
        let text = |range: &Range<usize>| output[range.clone()].to_owned();
        let lines = |range: &Range<usize>| -> Vec<String> {
            let lines = output[range.clone()].split(['\n', '\r']).filter(|l| !l.is_empty());
            lines.map(str::to_owned).collect()
        };
        (found.map(|c| text(&c.json)), released.iter().flat_map(lines).collect())
    }

    fn check(output: &str, result: Option<&str>, progress: &[&str]) {
        for piece in [1, 3, 1000] {
            let (found, lines) = find(output, piece);
            assert_eq!(found.as_deref(), result, "result of {output:?} in pieces of {piece}");
            assert_eq!(lines, progress, "progress of {output:?} in pieces of {piece}");
        }
    }

    #[test]
    fn a_value_on_one_or_many_lines_is_the_result() {
        check("{\"a\":1}\n", Some("{\"a\":1}"), &[]);
        check("42", Some("42"), &[]);
        check("{\n  \"a\": [\n    1\n  ]\n}\n", Some("{\n  \"a\": [\n    1\n  ]\n}"), &[]);
        check("{\r\n\"a\":1}\r\n", Some("{\r\n\"a\":1}"), &[]);
    }

    #[test]
    fn earlier_lines_are_progress_and_the_last_value_is_the_result() {
        check(
            "start\n{\"n\":1}\nmore\n{\"n\":2}\n",
            Some("{\"n\":2}"),
            &["start", "more", "{\"n\":1}"],
        );
        check("{\"n\":2}\nbye\n", Some("{\"n\":2}"), &["bye"]);
        check("10%\r20%\r{\"ok\":1}\n", Some("{\"ok\":1}"), &["10%", "20%"]);
        check("[INFO] go\n[1,\n2]\n", Some("[1,\n2]"), &["[INFO] go"]);
    }

    #[test]
    fn whichever_of_line_and_fenced_block_comes_last_wins() {
        let fenced = "```json\n{\n \"a\": 1\n}\n```";
        check(&format!("{{\"n\":1}}\n{fenced}\n"), Some("{\n \"a\": 1\n}\n"), &["{\"n\":1}"]);
        check(
            &format!("{fenced}\n{{\"n\":1}}"),
            Some("{\"n\":1}"),
            &["```json", "{", " \"a\": 1", "}", "```"],
        );
        check("```\n[1]\n```\nthat is all\n", Some("[1]\n"), &["that is all"]);
        check("````JSON\n[1]\n````", Some("[1]\n"), &[]);
    }

    #[test]
    fn a_broken_json_block_is_the_result_all_the_same() {
        check("{\"n\":1}\n```json\n{oops}\n```\n", Some("{oops}\n"), &["{\"n\":1}"]);
    }

    #[test]
    fn fences_of_other_languages_are_text() {
        check("```sh\nls\n```\n[1]\n", Some("[1]"), &["```sh", "ls", "```"]);
        check("```\nls\n[2]\n```\nx", Some("[2]"), &["```", "ls", "```", "x"]);
        check("```sh\n[\n", None, &["```sh", "["]);
    }

    #[test]
    fn blocks_that_never_end_are_looked_at_line_by_line() {
        check("[\n{\"a\":1}\n", Some("{\"a\":1}"), &["["]);
        check("```json\n[1]\n", Some("[1]\n"), &[]);
        check("```json\n[1]\noh\n", Some("[1]"), &["```json", "oh"]);
        check("[\n1,\nx\n{\"a\":1}\n]\n", Some("{\"a\":1}"), &["[", "1,", "x", "]"]);
    }

    #[test]
    fn pieces_of_a_broken_list_are_no_result() {
        check("[\n  1,\n  2\n  oops]\n", None, &["[", "  1,", "  2", "  oops]"]);
    }

    #[test]
    fn a_byte_order_mark_does_not_hide_the_result() {
        check("\u{feff}{\"a\":1}\n", Some("\u{feff}{\"a\":1}"), &[]);
    }

    #[test]
    fn an_output_made_to_be_slow_costs_a_few_times_its_length() {
        // Every line opens a list that breaks only much later.
        let deep = format!("{}x\n", "[\n".repeat(100)).repeat(300);
        let bytes = deep.as_bytes();
        let mut released = Vec::new();
        let found = Candidates::new(bytes.len()).finish(bytes, &mut released);
        assert_eq!(found, None);
        let total: usize = released.iter().map(|range| deep[range.clone()].lines().count()).sum();
        assert_eq!(total, deep.lines().count(), "each line is released exactly once");
    }
}
