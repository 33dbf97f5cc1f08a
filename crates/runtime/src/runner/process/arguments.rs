//! Arguments that cannot be passed on, found before anything is started.

use std::ffi::OsStr;

use engine::failure::{Failure, FailureClass};
use engine::ids::AgentId;

use super::environment::Environment;

/// The `errorType` for an argument or variable with a character that cannot be passed on.
pub const ARGUMENT_REFUSED: &str = "argumentRefused";
/// The `errorType` for an argument, a variable or all of them together being too long.
pub const ARGUMENT_TOO_LONG: &str = "argumentTooLong";

/// The longest single argument or variable on this system, in bytes, where there is such a limit.
/// Linux: 32 pages, the final NUL included.
const SINGLE_BYTES_MAX: Option<usize> =
    if cfg!(target_os = "linux") { Some(32 * 4096 - 1) } else { None };

/// How much of an argument is quoted in a message, in characters.
const QUOTED_CHARS_MAX: usize = 24;

/// Why an argument list was refused. Nothing was started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    /// It contains a NUL character, which ends a text for the operating system.
    #[error("{place} contains a NUL character, which no program can be given")]
    Nul {
        /// Which.
        place: String,
    },
    /// It contains a line break, which would end the command of a batch file.
    #[error("{place} contains a line break, which cannot be passed to a batch file; {WAY_OUT}")]
    LineBreak {
        /// Which.
        place: String,
    },
    /// It contains a percent sign, which a batch file would replace.
    #[error(
        "{place} contains a percent sign, which a batch file would take for a variable; {WAY_OUT}"
    )]
    Percent {
        /// Which.
        place: String,
    },
    /// It is longer than the system allows for one argument.
    #[error("{place} is {bytes} bytes long; this system allows {bytes_max}. {USE_INPUT}")]
    TooLong {
        /// Which.
        place: String,
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        bytes_max: usize,
    },
    /// All of them together are longer than the system allows.
    #[error(
        "the arguments and variables are together longer than this system allows; the longest \
         is {place} with {bytes} bytes. {USE_INPUT}"
    )]
    ListTooLong {
        /// The longest.
        place: String,
        /// How long that is.
        bytes: usize,
    },
}

const WAY_OUT: &str = "pass it in the node's input, or name the program behind the batch file";
const USE_INPUT: &str = "Pass long values in the node's input, which arrives on standard input";

impl ArgumentError {
    /// The failure of the attempt.
    pub fn into_failure(self, agent: &AgentId) -> Failure {
        let error_type = match self {
            ArgumentError::Nul { .. }
            | ArgumentError::LineBreak { .. }
            | ArgumentError::Percent { .. } => ARGUMENT_REFUSED,
            ArgumentError::TooLong { .. } | ArgumentError::ListTooLong { .. } => ARGUMENT_TOO_LONG,
        };
        let message = format!("agent `{agent}` was not started: {self}");
        Failure::typed(FailureClass::AgentError, error_type, message)
    }
}

/// Names an argument for people.
///
/// * `index`: from 0.
pub fn argument_place(index: usize, argument: &str) -> String {
    let quoted: String = argument.chars().take(QUOTED_CHARS_MAX).collect();
    let dots = if quoted.len() < argument.len() { "…" } else { "" };
    format!("argument {} ({quoted:?}{dots})", index + 1)
}

/// Checks what every program on this system needs.
pub fn check(
    program: &str,
    args: &[String],
    environment: &Environment,
) -> Result<(), ArgumentError> {
    let place = || "the program's name".to_owned();
    check_one(place, program.as_ref(), 0)?;
    for (index, argument) in args.iter().enumerate() {
        check_one(|| argument_place(index, argument), argument.as_ref(), 0)?;
    }
    for (name, value) in environment {
        // The system counts `NAME=value` as one text.
        check_one(|| variable_place(name), value, name.len() + 1)?;
    }
    Ok(())
}

fn check_one(
    place: impl Fn() -> String,
    text: &OsStr,
    more_bytes: usize,
) -> Result<(), ArgumentError> {
    let bytes = text.as_encoded_bytes();
    if bytes.contains(&0) {
        return Err(ArgumentError::Nul { place: place() });
    }
    let length = bytes.len() + more_bytes;
    match SINGLE_BYTES_MAX {
        Some(bytes_max) if length > bytes_max => {
            Err(ArgumentError::TooLong { place: place(), bytes: length, bytes_max })
        }
        _ => Ok(()),
    }
}

/// Says which argument or variable is most to blame when the system refuses the whole list.
pub fn list_too_long(args: &[String], environment: &Environment) -> ArgumentError {
    let arguments = args
        .iter()
        .enumerate()
        .map(|(index, argument)| (argument.len(), argument_place(index, argument)));
    let variables = environment.iter().map(|(name, value)| (value.len(), variable_place(name)));
    let (bytes, place) = arguments
        .chain(variables)
        .max_by_key(|(bytes, _)| *bytes)
        .unwrap_or_else(|| (0, "the program's name".to_owned()));
    ArgumentError::ListTooLong { place, bytes }
}

fn variable_place(name: &OsStr) -> String {
    format!("the variable `{}`", name.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(list: &[&str]) -> Vec<String> {
        list.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn a_nul_is_refused_with_its_place() {
        let nothing = Environment::new();
        let error = check("p", &args(&["a", "b\0c"]), &nothing).unwrap_err();
        assert_eq!(
            error.to_string(),
            "argument 2 (\"b\\0c\") contains a NUL character, which no program can be given"
        );
        let environment = Environment::from([("V".into(), "\0".into())]);
        let error = check("p", &[], &environment).unwrap_err();
        assert_eq!(error, ArgumentError::Nul { place: "the variable `V`".to_owned() });
        assert!(matches!(check("p\0", &[], &nothing), Err(ArgumentError::Nul { .. })));
        assert_eq!(error.into_failure(&"a".into()).error_type, ARGUMENT_REFUSED);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn an_argument_longer_than_the_system_allows_is_named() {
        let long = "x".repeat(200_000);
        let error = check("p", &args(&[&long]), &Environment::new()).unwrap_err();
        let message = error.to_string();
        assert!(message.starts_with("argument 1 (\"xxxxxxxxxxxxxxxxxxxxxxxx\"…) is 200000 bytes"));
        assert_eq!(error.into_failure(&"a".into()).error_type, ARGUMENT_TOO_LONG);
        let environment = Environment::from([("CYANOTYPE_PARAMS".into(), long.into())]);
        let error = check("p", &[], &environment).unwrap_err();
        assert!(error.to_string().starts_with("the variable `CYANOTYPE_PARAMS` is 200017 bytes"));
    }

    #[test]
    fn the_longest_is_blamed_for_a_list_that_is_too_long() {
        let environment = Environment::from([("V".into(), "xx".into())]);
        let error = list_too_long(&args(&["a", "long one"]), &environment);
        assert!(error.to_string().contains("argument 2 (\"long one\") with 8 bytes"));
    }
}
