//! What can be shown where the output goes: whether it is a terminal, its size, colours, glyphs.

use std::io::IsTerminal;

use crate::args::ColorChoice;

/// What the standard output can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Whether lines that were printed can be printed over.
    pub redraws: bool,
    /// How text may look.
    pub style: Style,
}

/// How text may look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    color: Color,
    /// Which marks to use.
    pub glyphs: Glyphs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Color {
    On,
    Off,
}

/// Which characters marks are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Glyphs {
    /// The terminal's encoding is a Unicode one, or nothing says otherwise.
    Unicode,
    /// It is known to be another one.
    Ascii,
}

/// A colour or weight. What it says is always said in words too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    Plain,
    Bold,
    Quiet,
    Active,
    Good,
    Bad,
    Attention,
}

/// How large the terminal is, in columns and lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub columns: usize,
    pub lines: usize,
}

impl Terminal {
    /// Looks at the standard output and the environment.
    pub fn detect(choice: ColorChoice) -> Terminal {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let is_terminal = std::io::stdout().is_terminal();
        let is_dumb = set("TERM").is_some_and(|term| term == "dumb");
        let redraws = is_terminal && !is_dumb && understands_escapes();
        let is_colored = match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => redraws && set("NO_COLOR").is_none(),
        };
        let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
        let color = if is_colored { Color::On } else { Color::Off };
        Terminal { redraws, style: Style { color, glyphs: glyphs_of(locale.as_deref()) } }
    }

    /// The size now; it may change at any time.
    pub fn size() -> Size {
        match terminal_size::terminal_size() {
            Some((width, height)) => {
                Size { columns: usize::from(width.0).max(20), lines: usize::from(height.0).max(6) }
            }
            None => Size { columns: 80, lines: 24 },
        }
    }
}

#[cfg(windows)]
fn understands_escapes() -> bool {
    anstyle_query::windows::enable_ansi_colors().unwrap_or(true)
}

#[cfg(not(windows))]
fn understands_escapes() -> bool {
    anstyle_query::term_supports_ansi_color()
}

fn glyphs_of(locale: Option<&str>) -> Glyphs {
    let is_unicode = |locale: &str| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    };
    match locale {
        Some(locale) if !is_unicode(locale) => Glyphs::Ascii,
        _ => Glyphs::Unicode,
    }
}

impl Style {
    /// Text without any colour, for pipes and tests.
    #[cfg(test)]
    pub const PLAIN: Style = Style { color: Color::Off, glyphs: Glyphs::Unicode };

    /// The text in an ink.
    pub fn paint(self, ink: Ink, text: &str) -> String {
        let code = match ink {
            Ink::Plain => return text.to_owned(),
            Ink::Bold => "1",
            Ink::Quiet => "2",
            Ink::Active => "34",
            Ink::Good => "32",
            Ink::Bad => "31",
            Ink::Attention => "33",
        };
        match self.color {
            Color::On => format!("\x1b[{code}m{text}\x1b[0m"),
            Color::Off => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_ascii_only_where_the_locale_says_so() {
        assert_eq!(glyphs_of(None), Glyphs::Unicode);
        assert_eq!(glyphs_of(Some("de_DE.UTF-8")), Glyphs::Unicode);
        assert_eq!(glyphs_of(Some("C.utf8")), Glyphs::Unicode);
        assert_eq!(glyphs_of(Some("C")), Glyphs::Ascii);
        assert_eq!(glyphs_of(Some("de_DE.ISO-8859-1")), Glyphs::Ascii);
    }

    #[test]
    fn without_colour_text_is_left_alone() {
        assert_eq!(Style::PLAIN.paint(Ink::Bad, "x"), "x");
        let style = Style { color: Color::On, glyphs: Glyphs::Unicode };
        assert_eq!(style.paint(Ink::Bad, "x"), "\x1b[31mx\x1b[0m");
        assert_eq!(style.paint(Ink::Plain, "x"), "x");
    }
}
