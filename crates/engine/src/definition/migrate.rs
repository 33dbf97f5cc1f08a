//! The version of the file format. There is one major version so far; older ones will be upgraded
//! here.

use super::{Note, Problem};

/// The version that is written.
pub const FORMAT_VERSION: &str = "1.0.0";

/// The major version that is read.
const MAJOR: u64 = 1;

/// The minor version that is known.
const MINOR: u64 = 0;

/// Checks whether a document of this version can be read at all.
///
/// # Errors
///
/// If its major version is newer than this program.
pub fn check(version: &str) -> Result<(), Problem> {
    match parse(version) {
        Some((major, _)) if major > MAJOR => Err(Problem {
            place: "version".to_owned(),
            message: format!(
                "version {version:?} of the format is newer than this Cyanotype, which reads {MAJOR}.x"
            ),
            hint: "update Cyanotype, or export the workflow in the older format".to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Says how a document of this version is read, where that is not obvious.
pub fn note(version: Option<&str>) -> Option<Note> {
    let message = match version {
        None => format!("there is no version; the file is read as {FORMAT_VERSION}"),
        Some(version) => match parse(version) {
            None => format!("{version:?} is not a version; the file is read as {FORMAT_VERSION}"),
            Some((0, _)) => format!("version {version} is read as {FORMAT_VERSION}"),
            Some((MAJOR, minor)) if minor > MINOR => format!(
                "version {version} is newer than {FORMAT_VERSION}; what this Cyanotype does not \
                 know is kept but has no effect"
            ),
            Some(_) => return None,
        },
    };
    Some(Note { place: "version".to_owned(), message })
}

/// Major and minor version of `1`, `1.2` or `1.2.3`, with or without a suffix like `-beta`.
fn parse(version: &str) -> Option<(u64, u64)> {
    let numbers = version.trim().split(['-', '+']).next()?;
    let mut parts = numbers.split('.').map(|part| part.parse::<u64>().ok());
    let major = parts.next()??;
    let minor = parts.next().unwrap_or(Some(0))?;
    Some((major, minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_the_first_major_are_read() {
        for version in ["1.0.0", "1", "1.0", "1.4.2", "1.0.0-beta"] {
            assert_eq!(check(version), Ok(()), "{version}");
        }
        assert_eq!(note(Some("1.0.0")), None);
        assert!(note(Some("1.4.2")).unwrap().message.contains("newer than 1.0.0"));
    }

    #[test]
    fn a_newer_major_version_is_refused_by_name() {
        let problem = check("2.0.0").unwrap_err();
        assert_eq!(problem.place, "version");
        assert!(problem.message.contains("\"2.0.0\"") && problem.message.contains("reads 1.x"));
        assert!(check("99999").is_err());
    }

    #[test]
    fn an_absent_or_odd_version_is_read_with_a_note() {
        assert!(note(None).unwrap().message.contains("read as 1.0.0"));
        assert!(note(Some("draft")).unwrap().message.contains("\"draft\" is not a version"));
        assert!(note(Some("0.3")).unwrap().message.contains("read as 1.0.0"));
        assert_eq!(check("draft"), Ok(()));
    }
}
