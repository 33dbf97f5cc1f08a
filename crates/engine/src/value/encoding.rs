//! From the bytes of a file to text.

use std::borrow::Cow;

use super::{EncodingError, syntax};

/// How files begin that a person may have taken for JSON.
const OTHER_FILES: &[(&[u8], &str)] = &[
    (b"\x89PNG\r\n\x1a\n", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF87a", "a GIF picture"),
    (b"GIF89a", "a GIF picture"),
    (b"RIFF", "a WebP picture, a sound or a film"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive or an office document"),
    (b"PK\x05\x06", "an empty ZIP archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"{\\rtf", "a rich text document"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\x7fELF", "a program"),
    (b"bplist00", "a binary property list"),
    (b"\xd0\xcf\x11\xe0", "an old office document"),
];

pub(super) fn decode(bytes: &[u8]) -> Result<Cow<'_, str>, EncodingError> {
    if bytes.is_empty() {
        return Err(EncodingError::Empty);
    }
    if let Some((_, what)) = OTHER_FILES.iter().find(|(start, _)| bytes.starts_with(start)) {
        return Err(EncodingError::OtherFile { what });
    }
    // The mark of UTF-32LE begins like that of UTF-16LE.
    match bytes {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => other_encoding("UTF-32"),
        [0xff, 0xfe, rest @ ..] => decode_utf16(rest, u16::from_le_bytes).map(Cow::Owned),
        [0xfe, 0xff, rest @ ..] => decode_utf16(rest, u16::from_be_bytes).map(Cow::Owned),
        [0, 0, 0, _, ..] | [_, 0, 0, 0, ..] => other_encoding("UTF-32"),
        [0, _, ..] => other_encoding("UTF-16 (big-endian) without a byte-order mark"),
        [_, 0, ..] => other_encoding("UTF-16 (little-endian) without a byte-order mark"),
        _ => decode_utf8(bytes).map(Cow::Borrowed),
    }
}

fn other_encoding<T>(encoding: &'static str) -> Result<T, EncodingError> {
    Err(EncodingError::OtherEncoding { encoding })
}

fn decode_utf8(bytes: &[u8]) -> Result<&str, EncodingError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let offset = error.valid_up_to();
        let before = std::str::from_utf8(&bytes[..offset]).expect("valid up to here");
        let (line, column) = syntax::position(before, offset);
        EncodingError::InvalidUtf8 { line, column, byte: bytes[offset], offset }
    })?;
    Ok(text.strip_prefix(syntax::MARK).unwrap_or(text))
}

/// * `bytes`: what follows the mark.
fn decode_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, EncodingError> {
    const MARK_LEN: usize = 2;
    let (pairs, rest) = bytes.as_chunks::<2>();
    let mut text = String::with_capacity(bytes.len());
    let mut offset = MARK_LEN;
    for decoded in char::decode_utf16(pairs.iter().map(|pair| unit(*pair))) {
        let Ok(character) = decoded else {
            return Err(invalid_utf16(&text, offset));
        };
        text.push(character);
        offset += 2 * character.len_utf16();
    }
    if rest.is_empty() { Ok(text) } else { Err(invalid_utf16(&text, offset)) }
}

fn invalid_utf16(before: &str, offset: usize) -> EncodingError {
    let (line, column) = syntax::position(before, before.len());
    EncodingError::InvalidUtf16 { line, column, offset }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(bytes).collect()
    }

    #[test]
    fn o_i01_marks_are_dropped_and_line_ends_kept() {
        let plain = "{\r\n  \"ключ\": \"😀\"\r\n}\r\n";
        let marked = ["\u{feff}".as_bytes(), plain.as_bytes()].concat();
        assert_eq!(decode(plain.as_bytes()).unwrap(), plain);
        assert_eq!(decode(&marked).unwrap(), plain);
        assert_eq!(decode(&utf16(plain, u16::to_le_bytes)).unwrap(), plain);
        assert_eq!(decode(&utf16(plain, u16::to_be_bytes)).unwrap(), plain);
    }

    #[test]
    fn o_i01_other_files_are_named() {
        let said = |bytes: &[u8]| decode(bytes).unwrap_err().to_string();
        assert_eq!(said(b""), "the file is empty");
        assert_eq!(said(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"), "this is a PNG picture, not JSON");
        assert!(said(b"PK\x03\x04abc").contains("ZIP"));
        assert!(said(b"{\\rtf1\\ansi").contains("rich text"));
        assert!(said(b"{\0\"\0a\0").contains("UTF-16 (little-endian) without"));
        assert!(said(b"\0{\0\"\0a").contains("UTF-16 (big-endian) without"));
        assert!(said(b"\xff\xfe\0\0{\0\0\0").contains("UTF-32"));
        assert!(said(b"\0\0\0{").contains("UTF-32"));
    }

    #[test]
    fn the_first_byte_that_is_not_text_is_named() {
        let error = decode(b"{\n\"a\":\"\xff\xfe\"}").unwrap_err();
        assert_eq!(error, EncodingError::InvalidUtf8 { line: 2, column: 6, byte: 0xff, offset: 7 });
        assert_eq!(
            error.to_string(),
            "line 2, column 6: byte 0xff at offset 7 is not UTF-8; save the file as UTF-8"
        );
        // A character cut off at the end, an overlong form, a surrogate in UTF-8.
        for bytes in [&b"\"\xe2\x89"[..], b"\"\xc0\xaf\"", b"\"\xed\xa0\x80\""] {
            let error = decode(bytes).unwrap_err();
            assert!(matches!(error, EncodingError::InvalidUtf8 { offset: 1, .. }), "{error}");
        }
    }

    #[test]
    fn damaged_utf16_is_refused_with_its_offset() {
        let mut odd = utf16("{\n}", u16::to_le_bytes);
        odd.push(b'x');
        assert_eq!(
            decode(&odd),
            Err(EncodingError::InvalidUtf16 { line: 2, column: 2, offset: 8 })
        );
        let lone = b"\xfe\xff\0\"\xd8\0\0\"";
        assert_eq!(
            decode(lone),
            Err(EncodingError::InvalidUtf16 { line: 1, column: 2, offset: 4 })
        );
    }
}
