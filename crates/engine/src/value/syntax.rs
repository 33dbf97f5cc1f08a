//! What is wrong with a text, in words for a person.

use std::fmt;

use super::{DEPTH_MAX, Opening, SyntaxErrorKind};

/// The byte-order mark, which editors do not show.
pub(super) const MARK: char = '\u{feff}';

/// Returns line and column from 1 as a person sees them: lines end with LF, CRLF or CR, columns
/// count code points, and a mark at the start counts as nothing.
pub(super) fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..offset];
    let is_crlf = |at: usize| before[at..].starts_with("\r\n");
    let ends = before.match_indices(['\n', '\r']).filter(|(at, _)| !is_crlf(*at));
    let (n_lines, line_start) = ends.fold((0, 0), |(n_lines, _), (at, _)| (n_lines + 1, at + 1));
    let line = &before[line_start..];
    let n_marks = usize::from(line_start == 0 && line.starts_with(MARK));
    (n_lines + 1, line.chars().count() - n_marks + 1)
}

impl fmt::Display for SyntaxErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use SyntaxErrorKind as Kind;
        match self {
            Kind::Empty => write!(f, "the text is empty; a JSON value is expected"),
            Kind::UnexpectedEnd { expected, open: None } => {
                write!(f, "the text ends here, but {expected} is expected")
            }
            Kind::UnexpectedEnd { expected, open: Some(open) } => {
                write!(f, "the text ends here, but {expected} is expected; {open} is not closed")
            }
            Kind::UnexpectedCharacter { found, expected } => {
                write!(f, "{expected} is expected, found {}", Shown(*found))?;
                fmt_hint(*found, f)
            }
            Kind::WrongBracket { found, open } => {
                let close = if open.bracket == '[' { ']' } else { '}' };
                write!(f, "found `{found}`, but {open} is closed by `{close}`")
            }
            Kind::TrailingText { found } => {
                write!(f, "only one JSON value is expected, found {} after it", Shown(*found))
            }
            Kind::TrailingComma => {
                write!(f, "there is a comma after the last element; remove it")
            }
            Kind::MissingComma => write!(f, "a comma is missing between two elements"),
            Kind::MissingColon { key } => write!(f, "a colon is missing after the key \"{key}\""),
            Kind::Comment => write!(f, "JSON has no comments; remove it"),
            Kind::WrongQuote { found } => {
                write!(f, "text stands in double quotes (\"), found {}", Shown(*found))
            }
            Kind::UnquotedKey { key } => {
                write!(f, "keys stand in double quotes; write \"{key}\"")
            }
            Kind::NotFinite { word } => write!(
                f,
                "{word} is not a number in JSON; use null, or quote it to keep it as text"
            ),
            Kind::UnknownWord { word, meant: Some(meant) } => {
                write!(f, "`{word}` is not JSON; write {meant}")
            }
            Kind::UnknownWord { word, meant: None } => write!(
                f,
                "`{word}` is not JSON; put text in double quotes, or write true, false or null"
            ),
            Kind::Number(error) => write!(f, "{error}"),
            Kind::UnclosedText => {
                write!(f, "the text that begins here is not closed; a double quote (\") is missing")
            }
            Kind::ControlCharacter { found: '\n' | '\r' } => write!(
                f,
                "a line break inside a text; write \\n for it, or close the text with a double \
                 quote (\")"
            ),
            Kind::ControlCharacter { found: '\t' } => {
                write!(f, "a tab inside a text; write \\t for it")
            }
            Kind::ControlCharacter { found } => write!(
                f,
                "the control character {} inside a text; write \\u{:04x} for it",
                Shown(*found),
                u32::from(*found)
            ),
            Kind::UnknownEscape { escape } => {
                write!(f, "`{escape}` is not an escape; write \\\\ for a backslash")
            }
            Kind::LoneSurrogate { escape } => {
                write!(f, "`{escape}` is half of a character; the other half is missing")
            }
            Kind::DuplicateKey { key, first_line, first_column } => write!(
                f,
                "the key \"{key}\" is already at line {first_line}, column {first_column}; keep \
                 one of them"
            ),
            Kind::TooDeep => {
                write!(f, "lists and objects are nested deeper than {DEPTH_MAX} levels")
            }
        }
    }
}

/// As in: "the list from line 3, column 5".
impl fmt::Display for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.bracket == '[' { "list" } else { "object" };
        write!(f, "the {what} from line {}, column {}", self.line, self.column)
    }
}

/// A character in words if it cannot be seen.
struct Shown(char);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_visible = !self.0.is_control() && !self.0.is_whitespace() && !is_invisible(self.0);
        if is_visible {
            write!(f, "`{}`", self.0)
        } else {
            write!(f, "U+{:04X}", u32::from(self.0))
        }
    }
}

fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
    )
}

fn fmt_hint(found: char, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match found {
        '<' => write!(f, "; this looks like HTML or XML"),
        '`' => write!(f, "; this looks like a Markdown fence, remove it"),
        '\0' => write!(f, "; this is not a text file"),
        _ if is_invisible(found) || found.is_whitespace() => {
            write!(f, "; remove this invisible character")
        }
        _ => Ok(()),
    }
}
