//! Replaces the part of a document between two markers.

/// Puts `table` between the lines `<!-- NAME:begin -->` and `<!-- NAME:end -->` of `document`.
///
/// An error says which marker is missing; nothing else of the document changes.
pub fn replace(document: &str, name: &str, table: &str) -> Result<String, String> {
    let begin = format!("<!-- {name}:begin -->\n");
    let end = format!("<!-- {name}:end -->");
    let start = document.find(&begin).ok_or_else(|| format!("no line {:?}", begin.trim_end()))?;
    let inner = start + begin.len();
    let stop = document[inner..].find(&end).ok_or_else(|| format!("no line {end:?} after it"))?;
    Ok(format!("{}\n{}\n\n{}", &document[..inner], table.trim(), &document[inner + stop..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "# Speed\n<!-- t:begin -->\nold\n<!-- t:end -->\nafter\n";

    #[test]
    fn only_what_lies_between_the_markers_changes() {
        let replaced = replace(DOCUMENT, "t", "| new |\n").unwrap();
        assert_eq!(replaced, "# Speed\n<!-- t:begin -->\n\n| new |\n\n<!-- t:end -->\nafter\n");
        assert_eq!(replace(&replaced, "t", "| new |").unwrap(), replaced);
    }

    #[test]
    fn a_missing_marker_is_named() {
        assert_eq!(replace(DOCUMENT, "u", "x"), Err("no line \"<!-- u:begin -->\"".into()));
        assert_eq!(
            replace("<!-- t:begin -->\n", "t", "x"),
            Err("no line \"<!-- t:end -->\" after it".into())
        );
    }
}
