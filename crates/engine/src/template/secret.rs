//! `{{secret:KEY}}`, which is recognised before the engine sees the template (SPEC 8.1).

use std::ops::Range;

/// A placeholder in the source of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placeholder {
    /// Where it stands, braces included, in bytes.
    pub(super) range: Range<usize>,
    /// The key.
    pub(super) key: String,
}

/// Finds every placeholder: `{{secret:KEY}}`, with or without white space inside the braces. A key
/// consists of ASCII letters, digits, `_`, `-` and `.`.
pub(super) fn find(source: &str) -> Vec<Placeholder> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = source[at..].find("{{").map(|start| at + start) {
        match placeholder_at(source, start) {
            Some(placeholder) => {
                at = placeholder.range.end;
                found.push(placeholder);
            }
            None => at = start + 1,
        }
    }
    found
}

/// The source with each placeholder's inside replaced by a name of the same length, so that the
/// engine can read it and every position stays what it was.
pub(super) fn mask(source: &str, placeholders: &[Placeholder]) -> String {
    let mut masked = String::with_capacity(source.len());
    let mut at = 0;
    for Placeholder { range, .. } in placeholders {
        masked.push_str(&source[at..range.start]);
        masked.push_str("{{");
        masked.extend(std::iter::repeat_n('_', range.len() - 4));
        masked.push_str("}}");
        at = range.end;
    }
    masked.push_str(&source[at..]);
    masked
}

/// How a placeholder is written.
pub(super) fn written(key: &str) -> String {
    format!("{{{{secret:{key}}}}}")
}

fn placeholder_at(source: &str, start: usize) -> Option<Placeholder> {
    let inside = source[start..].strip_prefix("{{")?.trim_start();
    let rest = inside.strip_prefix("secret:")?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let key = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
    let rest = rest[key.len()..].trim_start().strip_prefix("}}")?;
    let range = start..source.len() - rest.len();
    (!key.is_empty()).then(|| Placeholder { range, key: key.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_found_and_masked_without_moving_anything() {
        let source =
            "ä {{secret:KEY}} {{ secret:a.b-C_1\n}} {{{secret:X}} {{secret:}} {{ secret }}";
        let found = find(source);
        let keys: Vec<_> = found.iter().map(|placeholder| placeholder.key.as_str()).collect();
        assert_eq!(keys, ["KEY", "a.b-C_1", "X"]);
        assert_eq!(&source[found[0].range.clone()], "{{secret:KEY}}");
        let masked = mask(source, &found);
        assert_eq!(masked.len(), source.len());
        assert!(masked.starts_with("ä {{__________}} {{"), "{masked}");
        assert!(masked.ends_with("{{secret:}} {{ secret }}"), "{masked}");
    }

    #[test]
    fn what_is_not_closed_is_no_placeholder() {
        for source in
            ["{{secret:KEY", "{{secret:KEY}", "{{secret:K E Y}}", "{{secret:é}}", "secret:K"]
        {
            assert_eq!(find(source), [], "{source}");
        }
    }
}
