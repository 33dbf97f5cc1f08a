//! Job objects. See [`super`].

use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use process_wrap::tokio::{ChildWrapper, CommandWrap, CreationFlags, JobObject, KillOnDrop};
use tokio::process::Command;
use windows::Win32::System::Threading::CREATE_NO_WINDOW;

use super::{Insistence, Launch, LaunchError, Launched};
use crate::runner::process::batch;
use crate::runner::process::environment::{self, Names};

/// See [`super::Group`].
#[derive(Debug)]
pub struct Group {
    child: Box<dyn ChildWrapper>,
    is_ended: bool,
}

/// See [`super::KNOWS_MEMBERS`].
pub const KNOWS_MEMBERS: bool = false;

/// See [`super::launch`].
pub fn launch(launch: &Launch) -> Result<Launched, LaunchError> {
    let mut command = command(launch).map_err(LaunchError::Spawn)?;
    command
        .env_clear()
        .envs(&launch.environment)
        .current_dir(&launch.working_folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = CommandWrap::from(command)
        .wrap(CreationFlags(CREATE_NO_WINDOW))
        .wrap(KillOnDrop)
        .wrap(JobObject)
        .spawn()
        .map_err(LaunchError::Spawn)?;
    let pipes = (child.stdin().take(), child.stdout().take(), child.stderr().take());
    let group = Group { child, is_ended: false };
    match pipes {
        (Some(stdin), Some(stdout), Some(stderr)) => Ok(Launched { group, stdin, stdout, stderr }),
        _ => unreachable!("all three were asked for as pipes"),
    }
}

fn command(launch: &Launch) -> io::Result<Command> {
    let program = launch.program.to_string_lossy();
    if !batch::is_batch(&program) {
        let mut command = Command::new(&launch.program);
        command.args(&launch.args);
        return Ok(command);
    }
    // The runner has made this line before and would have refused it then.
    let line = batch::command_line(&program, &launch.args).map_err(io::Error::other)?;
    let mut command = Command::new(command_processor(launch));
    command.raw_arg(line);
    Ok(command)
}

/// The command processor of the system, never one that happens to be in `PATH`.
fn command_processor(launch: &Launch) -> PathBuf {
    match environment::get(&launch.environment, "SystemRoot", Names::CaseInsensitive) {
        Some(root) => Path::new(root).join("System32").join("cmd.exe"),
        None => PathBuf::from(r"C:\Windows\System32\cmd.exe"),
    }
}

impl Group {
    /// Waits until the program itself has ended. What it started may still run.
    pub async fn leader_ended(&mut self) -> io::Result<ExitStatus> {
        // The wrapper itself would wait for the whole job.
        self.child.inner_mut().wait().await
    }

    /// Tells everything to end. Windows knows no polite way for programs without a window.
    pub fn tell_to_end(&mut self, _insistence: Insistence) {
        if self.child.start_kill().is_ok() {
            self.is_ended = true;
        }
    }

    /// Whether nothing of it runs any more. The system does not tell whether a job is empty without
    /// waiting for it, so one that has not been ended counts as running.
    pub fn is_gone(&mut self) -> bool {
        self.is_ended
    }
}
