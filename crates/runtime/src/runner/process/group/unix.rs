//! Process groups. See [`super`].

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};
use tokio::process::{Child, Command};

use super::{Insistence, Launch, LaunchError, Launched, Mark};
use crate::runner::process::identity::ProcessIdentity;
use crate::runner::process::registry::Registration;
#[cfg(target_os = "linux")]
use crate::runner::process::{death_signal, linux};

/// See [`super::KNOWS_MEMBERS`].
pub const KNOWS_MEMBERS: bool = true;

/// How often a start is tried again while somebody still writes the program's file.
const BUSY_TRIES_MAX: u32 = 10;
const BUSY_WAIT: Duration = Duration::from_millis(20);
/// How long a group that was dropped is looked after.
const SWEEP_ROUNDS_MAX: u32 = 250;
const SWEEP_WAIT: Duration = Duration::from_millis(20);

/// See [`super::Group`].
#[derive(Debug)]
pub struct Group {
    child: Child,
    /// Taken when the last member is gone.
    members: Option<Members>,
}

/// The processes of a group.
#[derive(Debug)]
struct Members {
    /// The group's id, which is that of its leader.
    id: Pid,
    leader: Leader,
    registration: Option<Registration>,
    #[cfg(target_os = "linux")]
    escaped: linux::Escaped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leader {
    /// Its number cannot be taken by another process, so it is safe to signal the group.
    NotReaped,
    /// Only the other members keep the group's number from being taken.
    Reaped,
    /// No member is left; the number means nothing any more.
    GroupGone,
}

/// See [`super::launch`].
pub fn launch(launch: &Launch) -> Result<Launched, LaunchError> {
    let mut child = spawn(launch).map_err(LaunchError::Spawn)?;
    let pid = child.id().and_then(|pid| Pid::from_raw(pid as i32));
    let id = pid.expect("a child that was not waited for has a number");
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    // From here on the group is ended if anything fails.
    let mut group = Group { child, members: Some(Members::new(id, launch.mark)) };
    if let Some((registry, entry)) = &launch.record
        && let Some(identity) = ProcessIdentity::of(id.as_raw_nonzero().get().unsigned_abs())
    {
        let registration = registry.record(&identity, entry).map_err(LaunchError::Record)?;
        if let Some(members) = &mut group.members {
            members.registration = Some(registration);
        }
    }
    match (stdin, stdout, stderr) {
        (Some(stdin), Some(stdout), Some(stderr)) => Ok(Launched { group, stdin, stdout, stderr }),
        _ => unreachable!("all three were asked for as pipes"),
    }
}

fn spawn(launch: &Launch) -> io::Result<Child> {
    let mut command = Command::new(&launch.program);
    command
        .args(&launch.args)
        .env_clear()
        .envs(&launch.environment)
        .current_dir(&launch.working_folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    #[cfg(target_os = "linux")]
    death_signal::die_with_this_process(&mut command);
    let mut tries = 1;
    loop {
        match command.spawn() {
            // A file that is being written while another thread forks stays open in that child
            // for a moment.
            Err(error)
                if error.kind() == io::ErrorKind::ExecutableFileBusy && tries < BUSY_TRIES_MAX =>
            {
                tries += 1;
                std::thread::sleep(BUSY_WAIT);
            }
            other => return other,
        }
    }
}

impl Group {
    /// Waits until the program itself has ended. What it started may still run.
    pub async fn leader_ended(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await;
        if let Some(members) = &mut self.members {
            members.leader_is_reaped();
        }
        status
    }

    /// Tells everything to end.
    pub fn tell_to_end(&mut self, insistence: Insistence) {
        if let Some(members) = &mut self.members {
            members.signal(match insistence {
                Insistence::Polite => Signal::TERM,
                Insistence::Hard => Signal::KILL,
            });
        }
    }

    /// Whether nothing of it runs any more.
    pub fn is_gone(&mut self) -> bool {
        let Some(members) = &mut self.members else { return true };
        if members.leader == Leader::NotReaped {
            match self.child.try_wait() {
                Ok(Some(_)) => members.leader_is_reaped(),
                _ => return false,
            }
        }
        if !members.are_gone() {
            return false;
        }
        if let Some(registration) = members.registration.take() {
            registration.remove();
        }
        self.members = None;
        true
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let Some(mut members) = self.members.take() else { return };
        members.signal(Signal::KILL);
        // Killed processes must still be reaped and their record removed, and dropping cannot
        // wait. If no thread can be had, the record stays and the next start looks after it.
        let _ = std::thread::Builder::new()
            .name("cyanotype-sweep".to_owned())
            .spawn(move || members.sweep());
    }
}

impl Members {
    fn new(id: Pid, mark: Mark) -> Members {
        #[cfg(target_os = "linux")]
        let escaped = linux::Escaped::new(id.as_raw_nonzero().get(), mark);
        #[cfg(not(target_os = "linux"))]
        let _ = mark;
        Members {
            id,
            leader: Leader::NotReaped,
            registration: None,
            #[cfg(target_os = "linux")]
            escaped,
        }
    }

    fn leader_is_reaped(&mut self) {
        if self.leader == Leader::NotReaped {
            self.leader = Leader::Reaped;
            #[cfg(target_os = "linux")]
            self.escaped.leader_is_reaped();
        }
    }

    fn signal(&mut self, signal: Signal) {
        #[cfg(target_os = "linux")]
        self.escaped.signal(signal);
        if self.leader != Leader::GroupGone {
            let told = rustix::process::kill_process_group(self.id, signal);
            if told == Err(Errno::SRCH) && self.leader == Leader::Reaped {
                self.leader = Leader::GroupGone;
            }
        }
    }

    /// Whether no member is left. Reaps those that came to this process as orphans.
    fn are_gone(&mut self) -> bool {
        if self.leader == Leader::Reaped && is_group_gone(self.id) {
            self.leader = Leader::GroupGone;
        }
        #[cfg(target_os = "linux")]
        let none_escaped = self.escaped.are_gone();
        #[cfg(not(target_os = "linux"))]
        let none_escaped = true;
        self.leader == Leader::GroupGone && none_escaped
    }

    /// Looks after a killed group whose handle was dropped, until it is gone.
    fn sweep(mut self) {
        // Nobody else waits for the leader any more.
        self.leader_is_reaped();
        for _ in 0..SWEEP_ROUNDS_MAX {
            if self.are_gone() {
                if let Some(registration) = self.registration.take() {
                    registration.remove();
                }
                return;
            }
            self.signal(Signal::KILL);
            std::thread::sleep(SWEEP_WAIT);
        }
    }
}

fn is_group_gone(id: Pid) -> bool {
    while let Ok(Some(_)) = rustix::process::waitpgid(id, WaitOptions::NOHANG) {}
    match rustix::process::test_kill_process_group(id) {
        Err(Errno::SRCH) => true,
        // Members that are dead and that only their parent can reap do nothing any more.
        #[cfg(target_os = "linux")]
        Ok(()) => !linux::has_living_member(id.as_raw_nonzero().get()),
        _ => false,
    }
}
