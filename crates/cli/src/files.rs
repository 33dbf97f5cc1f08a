//! Files and inputs that the command line names.

use std::io::{IsTerminal, Read};
use std::path::Path;

use engine::limits::FILE_BYTES_MAX;
use engine::value::{Value, decode};

use crate::error::CommandError;

/// The bytes of a file; `-` is the standard input. Reads no more than a file may have.
pub fn read(path: &Path) -> Result<Vec<u8>, CommandError> {
    if path == Path::new("-") {
        return read_stdin();
    }
    let read = std::fs::File::open(path).and_then(|file| {
        if file.metadata()?.is_dir() {
            return Err(std::io::Error::from(std::io::ErrorKind::IsADirectory));
        }
        let mut bytes = Vec::new();
        // One byte more than is allowed, so that a longer file is seen to be too long.
        file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    });
    read.map_err(|error| CommandError::invalid(format!("cannot read {}: {error}", path.display())))
}

/// A value given as JSON, as `@` and a file, or as `-` for the standard input.
pub fn value(given: &str) -> Result<Value, CommandError> {
    let (place, bytes) = match (given, given.strip_prefix('@')) {
        ("-", _) => ("the standard input".to_owned(), read_stdin()?),
        (_, Some(path)) => (path.to_owned(), read(Path::new(path))?),
        (text, None) => ("the argument".to_owned(), text.as_bytes().to_vec()),
    };
    let refused = |message: String| CommandError::invalid(format!("{place}: {message}"));
    let text = decode(&bytes).map_err(|error| refused(error.to_string()))?;
    Value::parse(&text).map_err(|error| refused(error.to_string()))
}

fn read_stdin() -> Result<Vec<u8>, CommandError> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        crate::output::notice("Reading the standard input; end it with Ctrl-D.");
    }
    let mut bytes = Vec::new();
    stdin.lock().take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(|error| {
        CommandError::invalid(format!("cannot read the standard input: {error}"))
    })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_keep_their_digits_and_mistakes_are_placed() {
        let value = value(r#"{"id": 123456789012345678901234567890}"#).unwrap();
        assert_eq!(value.to_json(), r#"{"id":123456789012345678901234567890}"#);
        let error = super::value("{\n \"a\": 1,\n}").unwrap_err();
        assert!(error.message.starts_with("the argument: line 2, column 8"), "{}", error.message);
        let error = super::value("@no/such/file").unwrap_err();
        assert!(error.message.contains("no/such/file"), "{}", error.message);
    }
}
