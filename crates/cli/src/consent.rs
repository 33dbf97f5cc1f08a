//! Asking a person whether commands may be run.

use std::io::{self, BufRead, IsTerminal, Write};

use runtime::app::App;
use runtime::roster::ConsentQuestion;

use crate::error::CommandError;
use crate::text::{indented, lines};

/// How consent is come by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// It was given on the command line.
    Trusted,
    /// A person is asked, if there is one at the terminal.
    OnTerminal,
}

/// Makes sure that a person agrees to every command; notes it, so that the same content is not
/// asked about again.
pub async fn require(
    app: &App,
    questions: &[ConsentQuestion],
    asking: Asking,
) -> Result<(), CommandError> {
    if questions.is_empty() {
        return Ok(());
    }
    if asking == Asking::OnTerminal {
        ask(questions)?;
    }
    Ok(app.give_consent(questions).await?)
}

fn ask(questions: &[ConsentQuestion]) -> Result<(), CommandError> {
    let shown = shown(questions);
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(CommandError::invalid(format!(
            "nobody has agreed to run {}:\n\n{shown}\n\nLook at each of them. If you agree, add \
             --trust, or run this on a terminal to be asked. Nothing was run.",
            what(questions)
        )));
    }
    let mut stderr = io::stderr().lock();
    let _ = write!(
        stderr,
        "This runs {}:\n\n{shown}\n\nRun {}? [y/N] ",
        what(questions),
        it(questions)
    );
    let _ = stderr.flush();
    let mut answer = String::new();
    let _ = io::stdin().lock().read_line(&mut answer);
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(CommandError::invalid("not agreed to; nothing was run")),
    }
}

fn shown(questions: &[ConsentQuestion]) -> String {
    let blocks = questions.iter().map(|question| indented(&lines(&question.to_string()), "  "));
    blocks.collect::<Vec<_>>().join("\n\n")
}

fn what(questions: &[ConsentQuestion]) -> &'static str {
    if questions.len() == 1 { "this command" } else { "these commands" }
}

fn it(questions: &[ConsentQuestion]) -> &'static str {
    if questions.len() == 1 { "it" } else { "them" }
}
