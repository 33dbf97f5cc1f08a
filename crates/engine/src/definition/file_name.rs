//! File names from workflow names. The name inside the document is never changed.

/// What a workflow's file name ends with.
const EXTENSION: &str = ".cyanotype.json";

/// The longest name before the extension, in bytes. File systems allow 255 for the whole name; the
/// rest is for the extension, a number and what programs add to temporary copies.
const BYTES_MAX: usize = 180;

/// What Windows takes for a device, whatever follows the first dot.
const DEVICES: [&str; 7] = ["con", "prn", "aux", "nul", "clock$", "conin$", "conout$"];

/// See [`super::suggested_file_name`].
pub(super) fn suggest(name: &str) -> String {
    format!("{}{EXTENSION}", stem(name))
}

/// See [`super::free_file_name`].
pub(super) fn suggest_free(name: &str, mut is_taken: impl FnMut(&str) -> bool) -> String {
    let stem = stem(name);
    let mut file_name = format!("{stem}{EXTENSION}");
    let mut n = 2u64;
    while is_taken(&file_name) {
        file_name = format!("{stem} ({n}){EXTENSION}");
        n += 1;
    }
    file_name
}

/// A name in lower case with hyphens, for an id that nobody has chosen.
pub(super) fn slug(name: &str) -> String {
    let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let slug = words.collect::<Vec<_>>().join("-").to_lowercase();
    if slug.is_empty() { "workflow".to_owned() } else { slug }
}

fn stem(name: &str) -> String {
    let cleaned: String = name.chars().filter_map(clean).collect();
    let mut stem = trim(&cleaned);
    if stem.len() > BYTES_MAX {
        let ends = stem.char_indices().map(|(at, c)| at + c.len_utf8());
        let end = ends.take_while(|&end| end <= BYTES_MAX).last().unwrap_or(0);
        stem = trim(&stem[..end]);
    }
    match stem {
        "" => "workflow".to_owned(),
        device if is_device(device) => format!("_{device}"),
        plain => plain.to_owned(),
    }
}

/// No dots or white space at either end: hidden files, parent folders, and ends that Windows drops.
fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c == '.' || c.is_whitespace())
}

/// `None` for what is invisible; a hyphen for what some system forbids.
fn clean(c: char) -> Option<char> {
    match c {
        '/' | '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|' => Some('-'),
        '\t' | '\n' | '\r' => Some(' '),
        _ if c.is_control() => None,
        // Soft hyphen, zero-width and directional marks, line separators, byte-order mark.
        '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' => None,
        '\u{2060}'..='\u{2069}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' => None,
        '\u{fff9}'..='\u{ffff}' => None,
        _ => Some(c),
    }
}

fn is_device(name: &str) -> bool {
    let first = name.split('.').next().unwrap_or_default().trim_end().to_lowercase();
    let numbered = |prefix: &str| {
        let number = first.strip_prefix(prefix).unwrap_or_default();
        matches!(number, "¹" | "²" | "³")
            || number.len() == 1 && number.as_bytes()[0].is_ascii_digit()
    };
    DEVICES.contains(&first.as_str()) || numbered("com") || numbered("lpt")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn o_i04_a_name_never_becomes_a_path() {
        let long = "é".repeat(300);
        let combining = "e\u{301}".repeat(200);
        let names = [
            "../../etc/x",
            "Auction / Show",
            "C:\\temp\\x",
            "CON",
            "nul.json",
            "x.",
            " ",
            "",
            &long,
            "a\0b",
            "abc\u{202e}gpj.exe",
            "x",
            "..",
            ".hidden",
            "COM1",
            "lpt9.txt",
            "Com² .x",
            "a\nb",
            &combining,
            "*?<>|\"",
        ];
        let mut taken = BTreeSet::new();
        for name in names {
            let suggestion = suggest(name);
            let before = suggestion.strip_suffix(".json").unwrap();
            assert!(!before.is_empty() && before.len() <= 200, "{suggestion:?}");
            let stem = suggestion.strip_suffix(EXTENSION).unwrap();
            assert!(!stem.is_empty() && !stem.starts_with('.'), "{suggestion:?}");
            assert!(!stem.ends_with(['.', ' ']), "{suggestion:?}");
            assert!(!stem.contains(['/', '\\', ':', '\0', '\u{202e}']), "{suggestion:?}");
            assert!(!stem.chars().any(char::is_control), "{suggestion:?}");
            assert!(!is_device(&suggestion), "{suggestion:?}");
            let free = suggest_free(name, |taken_name| taken.contains(taken_name));
            assert!(taken.insert(free.clone()), "{free:?} is distinct");
            assert_eq!(std::path::Path::new(&free).components().count(), 1, "{free:?}");
        }
    }

    #[test]
    fn ordinary_names_stay_readable() {
        assert_eq!(suggest("Daily report (Copy 2)"), "Daily report (Copy 2).cyanotype.json");
        assert_eq!(suggest("Auction / Show"), "Auction - Show.cyanotype.json");
        assert_eq!(suggest("Отчёт 日報"), "Отчёт 日報.cyanotype.json");
        assert_eq!(suggest("CON"), "_CON.cyanotype.json");
        assert_eq!(suggest("  "), "workflow.cyanotype.json");
    }

    #[test]
    fn slugs_are_short_words_with_hyphens() {
        assert_eq!(slug("Daily / report!"), "daily-report");
        assert_eq!(slug("…"), "workflow");
    }
}
