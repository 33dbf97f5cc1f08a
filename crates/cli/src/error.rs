//! Why a command did not do what it was asked to, for people, with the exit code it ends with.

use std::error::Error;
use std::fmt;
use std::path::Path;

use engine::definition::FileError;
use engine::plan::diagnostic::Diagnostic;
use runtime::app::OpenAppError;
use runtime::app::executions::ExecutionError;
use runtime::app::start::StartError;
use runtime::driver::load::LoadError;
use runtime::library::LibraryError;
use runtime::roster::RosterError;
use runtime::store::create::CreateError;
use runtime::store::error::StoreError;

use crate::exit::Exit;
use crate::text::lines;

/// What went wrong, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandError {
    /// The code to end with.
    pub exit: Exit,
    /// For people; may have several lines.
    pub message: String,
}

impl CommandError {
    /// The command line, a file or an input is wrong.
    pub fn invalid(message: impl Into<String>) -> CommandError {
        CommandError { exit: Exit::Invalid, message: message.into() }
    }

    /// The data folder cannot be used.
    pub fn store(message: impl Into<String>) -> CommandError {
        CommandError { exit: Exit::StoreUnavailable, message: message.into() }
    }

    /// The same with the file it is about.
    pub fn in_file(self, path: &Path) -> CommandError {
        let message = format!("{}: {}", path.display(), self.message);
        CommandError { message, ..self }
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cyanotype: {}", lines(&self.message))
    }
}

/// An error with its sources: `what: because of what`.
pub fn chain(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let said = error.to_string();
        if !message.ends_with(&said) {
            message = format!("{message}: {said}");
        }
        source = error.source();
    }
    message
}

/// Findings as a block of lines each, those that are errors first.
pub fn findings(diagnostics: &[Diagnostic]) -> String {
    let (errors, others): (Vec<&Diagnostic>, Vec<&Diagnostic>) =
        diagnostics.iter().partition(|diagnostic| diagnostic.is_error());
    let blocks = errors.into_iter().chain(others).map(Diagnostic::to_string);
    lines(&blocks.collect::<Vec<_>>().join("\n"))
}

/// The errors among findings, as a message's further lines.
fn errors(diagnostics: &[Diagnostic]) -> String {
    let errors: Vec<Diagnostic> =
        diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).cloned().collect();
    findings(&errors)
}

impl From<OpenAppError> for CommandError {
    fn from(error: OpenAppError) -> Self {
        CommandError::store(chain(&error))
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        CommandError::store(chain(&error))
    }
}

impl From<FileError> for CommandError {
    fn from(error: FileError) -> Self {
        CommandError::invalid(chain(&error))
    }
}

impl From<ExecutionError> for CommandError {
    fn from(error: ExecutionError) -> Self {
        let message = chain(&error);
        match error {
            ExecutionError::NotFound { execution } => CommandError::invalid(format!(
                "{message}: {execution}; `cyanotype list` shows those there are"
            )),
            ExecutionError::Rejected(_) => CommandError::invalid(message),
            ExecutionError::OwnerSilent { .. } => CommandError { exit: Exit::Unfinished, message },
            ExecutionError::Store(_) | ExecutionError::Load(_) | ExecutionError::NotRecorded(_) => {
                CommandError::store(message)
            }
        }
    }
}

impl From<LoadError> for CommandError {
    fn from(error: LoadError) -> Self {
        CommandError::store(chain(&error))
    }
}

impl From<StartError> for CommandError {
    fn from(error: StartError) -> Self {
        let message = chain(&error);
        match error {
            StartError::Invalid { diagnostics } => {
                CommandError::invalid(format!("{message}\n{}", errors(&diagnostics)))
            }
            StartError::BadInput { violations } => {
                let said: Vec<String> =
                    violations.iter().map(|violation| format!("  {violation}")).collect();
                CommandError::invalid(format!("{message}:\n{}", said.join("\n")))
            }
            StartError::BadSchema { .. } => CommandError::invalid(message),
            StartError::Create(CreateError::KeyUsedDifferently { .. }) => {
                CommandError::invalid(message)
            }
            StartError::ConsentNeeded { .. } => CommandError::invalid(message),
            StartError::Store(error) => error.into(),
            StartError::Create(CreateError::Store(_)) | StartError::Append(_) => {
                CommandError::store(message)
            }
        }
    }
}

impl From<LibraryError> for CommandError {
    fn from(error: LibraryError) -> Self {
        let message = chain(&error);
        match error {
            LibraryError::Start(error) => error.into(),
            LibraryError::Store(error) => error.into(),
            LibraryError::Invalid { diagnostics } => {
                CommandError::invalid(format!("{message}\n{}", errors(&diagnostics)))
            }
            LibraryError::NotPublished { id } => CommandError::invalid(format!(
                "{message}: publish it (`cyanotype publish {id}`), or try the draft with --draft"
            )),
            LibraryError::NotFound { id } | LibraryError::AccessDenied { id } => {
                CommandError::invalid(format!(
                    "{message}: {id}; `cyanotype list workflows` shows those of the workspace"
                ))
            }
            _ => CommandError::invalid(message),
        }
    }
}

impl From<RosterError> for CommandError {
    fn from(error: RosterError) -> Self {
        let message = chain(&error);
        match error {
            RosterError::Library(error) => error.into(),
            RosterError::Store(error) => error.into(),
            RosterError::NotFound { agent } => CommandError::invalid(format!(
                "{message}: {agent}; `cyanotype agents list` shows those there are"
            )),
            _ => CommandError::invalid(message),
        }
    }
}
