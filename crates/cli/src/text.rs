//! Text on its way to a terminal: nothing in it may move the cursor, and widths are columns.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The text on one line: line ends and tabs become spaces, other control characters and those that
/// change the direction of writing are written as escapes.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.trim_end().chars() {
        match c {
            '\n' | '\t' => line.push(' '),
            '\r' => {}
            c => push_visibly(&mut line, c),
        }
    }
    line
}

/// The text with its line ends, made harmless like [`one_line`].
pub fn lines(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => shown.push('\n'),
            '\t' => shown.push_str("    "),
            '\r' => {}
            c => push_visibly(&mut shown, c),
        }
    }
    shown
}

fn push_visibly(text: &mut String, c: char) {
    let turns_direction = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if c.is_control() || turns_direction || matches!(c, '\u{2028}' | '\u{2029}') {
        text.extend(c.escape_unicode());
    } else {
        text.push(c);
    }
}

/// How many columns a text takes that came from [`one_line`].
pub fn width(text: &str) -> usize {
    text.width()
}

/// The text in at most `columns` columns, with `…` where something was cut off its end.
pub fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut cut = String::new();
    let mut taken = 0;
    for c in text.chars() {
        let next = taken + c.width().unwrap_or(0);
        if next + 1 > columns {
            break;
        }
        taken = next;
        cut.push(c);
    }
    if columns > 0 {
        cut.push('…');
    }
    cut
}

/// The text cut or filled up with spaces to exactly `columns` columns.
pub fn fit(text: &str, columns: usize) -> String {
    let mut fitted = cut(text, columns);
    let missing = columns.saturating_sub(width(&fitted));
    fitted.extend(std::iter::repeat_n(' ', missing));
    fitted
}

/// Each line of the text with `indent` before it; empty lines stay empty.
pub fn indented(text: &str, indent: &str) -> String {
    let lines = text.lines().map(|line| match line {
        "" => String::new(),
        line => format!("{indent}{line}"),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_moves_the_cursor_or_turns_the_text_reaches_the_terminal() {
        assert_eq!(one_line("a\x1b[2Jb\r\n\tc\u{9b}1m"), "a\\u{1b}[2Jb  c\\u{9b}1m");
        assert_eq!(one_line("x\u{202e}fdp.exe"), "x\\u{202e}fdp.exe");
        assert_eq!(lines("a\nb\x07"), "a\nb\\u{7}");
    }

    #[test]
    fn wide_characters_take_two_columns_and_are_never_cut_in_half() {
        assert_eq!(width("日本"), 4);
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(fit("日本語", 4), "日… ");
        assert_eq!(fit("ab", 4), "ab  ");
        assert_eq!(cut("abc", 0), "");
        assert_eq!(cut("abc", 3), "abc");
    }
}
