//! What is made of a program's end.
//!
//! | end | outcome |
//! | --- | --- |
//! | exit code 0 | its result, or `invalidOutput` |
//! | another exit code *n* | `agentError`, error type `exit:n` |
//! | killed by a signal | `agentError`, error type `signal:NAME` |
//! | either of these, with `{"errorType": …}` as its result | the agent's own error |
//!
//! An agent's own error may have a `message`, and a `class` out of [`CLASSES_OF_AGENTS`]; without a
//! class, an error type that names one of them stands for it.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use engine::failure::{Failure, FailureClass};
use engine::payload::Payload;
use engine::scheduler::event::Warning;
use engine::value::Value;

use super::attempt::{Ending, Finished, Leftovers, PipesAtEnd};
use super::output::{OUTPUT_TOO_LONG, Read};
use super::{PROGRAM_NOT_EXECUTABLE, PROGRAM_NOT_FOUND};
use crate::preflight::ProgramError;
use crate::runner::{AttemptOutcome, ProgressStream};

/// The `errorType` of an agent that was silent for too long.
pub const IDLE_TIMEOUT: &str = "idleTimeout";
/// The warning that something held the outputs open after the program had ended.
pub const OUTPUT_PIPE_HELD_OPEN: &str = "outputPipeHeldOpen";
/// The warning that the program had left processes running, which were ended.
pub const PROCESSES_LEFT_BEHIND: &str = "processesLeftBehind";
/// The warning that the program had to be ended after it had given its result.
pub const ENDED_AFTER_RESULT: &str = "endedAfterResult";
/// The warning that a text output was not UTF-8.
pub const INVALID_UTF8_REPLACED: &str = "invalidUtf8Replaced";

/// The classes that an agent may give to its own errors. The others are Cyanotype's to give.
pub const CLASSES_OF_AGENTS: [FailureClass; 7] = [
    FailureClass::AgentError,
    FailureClass::Timeout,
    FailureClass::Network,
    FailureClass::RateLimited,
    FailureClass::InvalidOutput,
    FailureClass::PolicyDenied,
    FailureClass::BudgetExceeded,
];

/// How many of the last lines of the error output a message repeats.
const LAST_LINES: usize = 3;
/// The most characters of each.
const LAST_LINE_CHARS_MAX: usize = 200;

/// What messages and files are about.
pub struct Context {
    /// The program, as written.
    pub program: String,
    /// Where an output is kept that is not UTF-8.
    pub raw_file: PathBuf,
}

/// The outcome of an attempt that was not stopped.
pub fn of(finished: Finished, context: &Context) -> AttemptOutcome {
    let Finished { ending, output, stderr, progress, pipes, leftovers } = finished;
    let bytes = output.len();
    let Read { result, not_utf8, progress: lines } = output.finish();
    lines.into_iter().for_each(|line| progress.line(ProgressStream::Stdout, line));
    let stderr = stderr.into_text();
    let mut warnings = warnings(context, pipes, leftovers);
    let failure = match ending {
        Ending::Stopped => return AttemptOutcome::Stopped,
        Ending::Exited(status) if status.success() => None,
        Ending::Exited(status) => {
            Some(exit_failure(context, status, result.as_ref().ok(), &stderr))
        }
        Ending::DoneButRunning => {
            let message = format!(
                "`{}` had closed its output but did not exit; it was ended and its result stands",
                context.program
            );
            warnings.push(warning(ENDED_AFTER_RESULT, message));
            None
        }
        Ending::Unknown(error) => {
            let message = format!("nobody can tell how `{}` ended: {error}", context.program);
            Some(Failure::new(FailureClass::Internal, message))
        }
        Ending::Idle(limit) => {
            let message = format!(
                "`{}` wrote nothing for {} s and was ended",
                context.program,
                limit.as_secs_f64()
            );
            Some(Failure::typed(FailureClass::Timeout, IDLE_TIMEOUT, message))
        }
        Ending::OutputTooLong(limit) => {
            let message = format!(
                "`{}` wrote more than {} and was ended; let it write large results to a file \
                 and print the file's name",
                context.program,
                size(limit.bytes_max)
            );
            Some(Failure::typed(FailureClass::InvalidOutput, OUTPUT_TOO_LONG, message))
        }
    };
    let failure = match (failure, result) {
        (Some(failure), _) => failure,
        (None, Ok(output)) => {
            if let Some(raw) = not_utf8 {
                warnings.push(replaced(context, &raw));
            }
            return AttemptOutcome::Completed { output, warnings };
        }
        (None, Err(unreadable)) => {
            let kept = not_utf8.map(|raw| keep(context, &raw, bytes));
            unreadable.into_failure(&context.program, kept.as_deref())
        }
    };
    let stderr = Some(stderr).filter(|text| !text.trim().is_empty());
    AttemptOutcome::Failed(Failure { stderr, ..failure })
}

/// The `errorType` for a program that cannot be run.
pub fn error_type_of(error: &ProgramError) -> &'static str {
    match error {
        ProgramError::NotFound { .. } => PROGRAM_NOT_FOUND,
        ProgramError::NotExecutable { .. } => PROGRAM_NOT_EXECUTABLE,
        ProgramError::Interpreter { because, .. } => error_type_of(because),
    }
}

fn warnings(context: &Context, pipes: PipesAtEnd, leftovers: Leftovers) -> Vec<Warning> {
    let program = &context.program;
    let mut warnings = Vec::new();
    if pipes == PipesAtEnd::HeldOpen {
        let message = format!(
            "`{program}` had ended, but something it had started held its output open; what was \
             written until then is the result"
        );
        warnings.push(warning(OUTPUT_PIPE_HELD_OPEN, message));
    }
    match leftovers {
        Leftovers::None => {}
        Leftovers::Ended if pipes == PipesAtEnd::HeldOpen => {}
        Leftovers::Ended => {
            let message = format!("`{program}` had left processes running; they were ended");
            warnings.push(warning(PROCESSES_LEFT_BEHIND, message));
        }
        Leftovers::Remain => {
            let message = format!("`{program}` had left processes running that could not be ended");
            warnings.push(warning(PROCESSES_LEFT_BEHIND, message));
        }
    }
    warnings
}

fn exit_failure(
    context: &Context,
    status: ExitStatus,
    result: Option<&Payload>,
    stderr: &str,
) -> Failure {
    let End { error_type, told } = end_of(status);
    let program = &context.program;
    let own = result.and_then(|result| own_error(result.value()));
    if let Some(own) = own {
        let message = own.message.unwrap_or_else(|| format!("`{program}` {told}"));
        return Failure::typed(own.class, own.error_type, message);
    }
    let lines: Vec<&str> = stderr.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
    let message = if last.is_empty() {
        format!("`{program}` {told} and wrote no error output")
    } else {
        let cut = |line: &&str| line.trim().chars().take(LAST_LINE_CHARS_MAX).collect();
        let last: Vec<String> = last.iter().map(cut).collect();
        format!("`{program}` {told}: {}", last.join(" | "))
    };
    Failure::typed(FailureClass::AgentError, error_type, message)
}

/// An error as the agent itself describes it.
#[derive(Debug, PartialEq, Eq)]
struct OwnError {
    class: FailureClass,
    error_type: String,
    message: Option<String>,
}

fn own_error(result: &Value) -> Option<OwnError> {
    let text = |key: &str| result.get(key).and_then(Value::as_str);
    let error_type = text("errorType").filter(|word| !word.trim().is_empty())?;
    let allowed = |name: &str| {
        FailureClass::from_name(name).filter(|class| CLASSES_OF_AGENTS.contains(class))
    };
    let class = text("class").and_then(allowed).or_else(|| allowed(error_type));
    Some(OwnError {
        class: class.unwrap_or(FailureClass::AgentError),
        error_type: error_type.to_owned(),
        message: text("message").filter(|m| !m.trim().is_empty()).map(str::to_owned),
    })
}

/// A program's end as error type and in words.
struct End {
    error_type: String,
    told: String,
}

fn end_of(status: ExitStatus) -> End {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        let name = signal_name(signal);
        return End { error_type: format!("signal:{name}"), told: format!("was killed by {name}") };
    }
    match status.code() {
        Some(code) => {
            End { error_type: format!("exit:{code}"), told: format!("ended with exit code {code}") }
        }
        None => End { error_type: "exit:unknown".to_owned(), told: format!("ended: {status}") },
    }
}

#[cfg(unix)]
fn signal_name(signal: i32) -> String {
    use rustix::process::Signal;
    let named = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::USR1, "SIGUSR1"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::USR2, "SIGUSR2"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::XFSZ, "SIGXFSZ"),
        (Signal::SYS, "SIGSYS"),
    ];
    let name = named.iter().find(|(known, _)| known.as_raw() == signal);
    name.map_or_else(|| signal.to_string(), |(_, name)| (*name).to_owned())
}

fn replaced(context: &Context, raw: &[u8]) -> Warning {
    let message = format!(
        "the output of `{}` is not UTF-8; replacement marks stand for what is no text. {}",
        context.program,
        keep(context, raw, raw.len())
    );
    warning(INVALID_UTF8_REPLACED, message)
}

/// Keeps an output that is not UTF-8, and says where.
fn keep(context: &Context, raw: &[u8], bytes: usize) -> String {
    let file = &context.raw_file;
    let folder = file.parent().map_or(Ok(()), fs::create_dir_all);
    let written: io::Result<()> = folder.and_then(|()| fs::write(file, raw));
    match written {
        Ok(()) => format!("(all {bytes} bytes of it are kept in {})", file.display()),
        Err(error) => format!("(it could not be kept in {}: {error})", file.display()),
    }
}

fn warning(code: &str, message: String) -> Warning {
    Warning { code: code.to_owned(), message }
}

fn size(bytes: usize) -> String {
    const MIB: usize = 1024 * 1024;
    if bytes >= MIB { format!("{} MiB", bytes / MIB) } else { format!("{bytes} bytes") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(text: &str) -> Option<(FailureClass, String)> {
        own_error(&Value::parse(text).unwrap()).map(|own| (own.class, own.error_type))
    }

    #[test]
    fn an_agent_may_say_its_own_error() {
        use FailureClass::*;
        let error = |class, word: &str| Some((class, word.to_owned()));
        assert_eq!(own(r#"{"errorType": "Quota"}"#), error(AgentError, "Quota"));
        assert_eq!(own(r#"{"errorType": "Q", "class": "network"}"#), error(Network, "Q"));
        assert_eq!(own(r#"{"errorType": "rateLimited"}"#), error(RateLimited, "rateLimited"));
        assert_eq!(own(r#"{"errorType": " "}"#), None);
        assert_eq!(own(r#"{"message": "x"}"#), None);
        assert_eq!(own("[1]"), None);
    }

    #[test]
    fn an_agent_cannot_claim_a_class_that_is_not_its_own() {
        for class in ["lost", "cancelled", "upstreamFailed", "internal", "nonsense"] {
            let text = format!(r#"{{"errorType": "X", "class": "{class}"}}"#);
            assert_eq!(own(&text), Some((FailureClass::AgentError, "X".to_owned())), "{class}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn ends_are_told_by_code_or_signal() {
        use std::os::unix::process::ExitStatusExt;
        let told = |raw| end_of(ExitStatus::from_raw(raw)).error_type;
        assert_eq!(told(3 << 8), "exit:3");
        assert_eq!(told(15), "signal:SIGTERM");
        assert_eq!(told(9), "signal:SIGKILL");
        assert_eq!(told(40), "signal:40");
    }

    #[test]
    fn sizes_are_told_in_words() {
        assert_eq!(size(64 * 1024 * 1024), "64 MiB");
        assert_eq!(size(1000), "1000 bytes");
    }
}
