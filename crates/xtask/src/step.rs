//! A test run is a list of steps. Every step runs even after one has failed, and the end says how
//! each of them went.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Passed,
    Failed,
    /// Not done, with the reason.
    Skipped(String),
}

/// A step that is over.
#[derive(Debug)]
pub struct Step {
    pub name: &'static str,
    pub outcome: Outcome,
    pub took: Duration,
    /// What to add in the summary, such as how many tests ran.
    pub note: String,
}

impl Step {
    /// Shows the command, runs it with its output going to the terminal, and times it.
    pub fn run(name: &'static str, command: &mut Command) -> Step {
        Step::run_reading(name, command, |_| ())
    }

    /// The same; each line of the command's standard output is also given to `read`.
    pub fn run_reading(
        name: &'static str,
        command: &mut Command,
        mut read: impl FnMut(&str),
    ) -> Step {
        println!("\n── {name}: {}", shown(command));
        let begin = Instant::now();
        let outcome = match stream(command, &mut read) {
            Ok(true) => Outcome::Passed,
            Ok(false) => Outcome::Failed,
            Err(error) => {
                eprintln!("cannot run {:?}: {error}", command.get_program());
                Outcome::Failed
            }
        };
        Step { name, outcome, took: begin.elapsed(), note: String::new() }
    }

    /// A step that is not done on this machine.
    pub fn skipped(name: &'static str, reason: &str) -> Step {
        println!("\n── {name}: skipped, {reason}");
        Step {
            name,
            outcome: Outcome::Skipped(reason.into()),
            took: Duration::ZERO,
            note: String::new(),
        }
    }

    pub fn failed(&self) -> bool {
        self.outcome == Outcome::Failed
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, detail) = match &self.outcome {
            Outcome::Passed => ("passed", &self.note),
            Outcome::Failed => ("FAILED", &self.note),
            Outcome::Skipped(reason) => ("skipped", reason),
        };
        let line =
            format!("  {word:<8}{:<14}{:>7.1} s  {detail}", self.name, self.took.as_secs_f64());
        f.write_str(line.trim_end())
    }
}

/// Runs a command to its end, passing its lines on as they come. Nothing can wait for a keyboard.
fn stream(command: &mut Command, read: &mut impl FnMut(&str)) -> std::io::Result<bool> {
    std::io::stdout().flush()?;
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(child.stdout.take().expect("standard output is piped"));
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        std::io::stdout().write_all(&line)?;
        read(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
    Ok(child.wait()?.success())
}

fn shown(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let name = program.rsplit(['/', '\\']).next().unwrap_or(&program);
    let words = command.get_args().map(|arg| arg.to_string_lossy());
    std::iter::once(name.into()).chain(words).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_line_says_how_the_step_went() {
        let step = Step {
            name: "tests",
            outcome: Outcome::Failed,
            took: Duration::from_millis(2_340),
            note: "3 passed, 1 failed".into(),
        };
        assert_eq!(step.to_string(), "  FAILED  tests             2.3 s  3 passed, 1 failed");
    }

    #[test]
    fn a_command_that_does_not_exist_is_a_failed_step() {
        let step = Step::run("nothing", &mut Command::new("no-such-program-anywhere"));
        assert_eq!(step.outcome, Outcome::Failed);
    }
}
