//! A program together with everything it starts: begun as one, ended as one.
//!
//! * Unix: the program leads a process group of its own. A signal reaches all members; the group
//!   is over when the last member is.
//! * Linux, in addition: this process adopts orphans (child subreaper), so that a member that left
//!   the group (`setsid`) comes back as a child of ours and is known by the variables it was
//!   started with. The program is killed if this process dies (parent-death signal). What escapes
//!   both is a process that leaves the group *and* clears its environment *and* whose parent has
//!   ended before it is looked for.
//! * Windows: a job object, which ends with its last handle, so also when this process dies.

use std::io;
use std::path::PathBuf;

use engine::ids::Digest;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use super::environment::{self, Environment};
use super::registry::{Entry, ProcessRegistry};
use super::spawner;

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use self::unix as system;
#[cfg(windows)]
use self::windows as system;

/// A program and everything it started. Dropping it ends them hard.
pub type Group = system::Group;

/// Whether [`Group::is_gone`] knows about members before they are told to end.
pub const KNOWS_MEMBERS: bool = system::KNOWS_MEMBERS;

/// Starts a program.
///
/// # Errors
/// If the system refuses, or the running program cannot be recorded; then nothing runs any more.
pub async fn launch(launch: Launch) -> Result<Launched, LaunchError> {
    let runtime = tokio::runtime::Handle::current();
    let launched = spawner::run(move || {
        let _context = runtime.enter();
        system::launch(&launch)
    });
    launched.await.unwrap_or(Err(LaunchError::Closing))
}

/// Everything the system needs to know to start a program.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The file to run, absolute.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// All of its environment.
    pub environment: Environment,
    /// The folder it runs in.
    pub working_folder: PathBuf,
    /// What tells its processes from others.
    #[cfg_attr(windows, allow(dead_code, reason = "a job object knows its processes"))]
    pub mark: Mark,
    /// What is recorded about it, and where.
    #[cfg_attr(windows, allow(dead_code, reason = "a job object ends with this process"))]
    pub record: Option<(ProcessRegistry, Entry)>,
}

/// A program that runs, and the ends of its pipes.
#[derive(Debug)]
pub struct Launched {
    /// The program and what it starts.
    pub group: Group,
    /// What it reads.
    pub stdin: ChildStdin,
    /// What it writes.
    pub stdout: ChildStdout,
    /// What it complains about.
    pub stderr: ChildStderr,
}

/// Why a program does not run.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The system refused to start it.
    #[error("the system refused to start it")]
    Spawn(#[source] io::Error),
    /// It was started, but could not be recorded, and was ended again: without the record nobody
    /// could end it after a crash of this process.
    #[error("it could not be recorded as running and was ended again")]
    #[cfg_attr(windows, allow(dead_code, reason = "nothing is recorded there"))]
    Record(#[source] io::Error),
    /// Whoever starts programs is gone; this process is ending.
    #[error("Cyanotype is closing")]
    Closing,
}

impl LaunchError {
    /// What the system said, if it was asked.
    pub fn io(&self) -> Option<&io::Error> {
        match self {
            LaunchError::Spawn(error) | LaunchError::Record(error) => Some(error),
            LaunchError::Closing => None,
        }
    }
}

/// How insistently a group is told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insistence {
    /// It may tidy up first.
    Polite,
    /// It may not.
    Hard,
}

/// Two variables that every process of one attempt was started with, and no other process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The value of `CYANOTYPE_IDEMPOTENCY_KEY`.
    pub idempotency_key: Digest,
    /// The value of `CYANOTYPE_ATTEMPT`.
    pub attempt: u32,
}

impl Mark {
    /// Whether a process with these variables belongs to the attempt.
    ///
    /// * `variables`: `NAME=value`, each ended by a NUL.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux shows them"))]
    pub fn is_on(&self, variables: &[u8]) -> bool {
        let key = format!("{}={}", environment::IDEMPOTENCY_KEY, self.idempotency_key);
        let attempt = format!("{}={}", environment::ATTEMPT, self.attempt);
        let has = |wanted: &str| variables.split(|&b| b == 0).any(|v| v == wanted.as_bytes());
        has(&key) && has(&attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_recognised_by_both_of_its_variables() {
        let mark = Mark { idempotency_key: Digest::of(b"x"), attempt: 2 };
        let key = Digest::of(b"x");
        let variables = format!("A=1\0CYANOTYPE_ATTEMPT=2\0CYANOTYPE_IDEMPOTENCY_KEY={key}\0");
        assert!(mark.is_on(variables.as_bytes()));
        assert!(!mark.is_on(variables.replace("ATTEMPT=2", "ATTEMPT=21").as_bytes()));
        assert!(!mark.is_on(b"CYANOTYPE_ATTEMPT=2\0"));
    }
}
