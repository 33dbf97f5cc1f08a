//! Ends what outlived the Cyanotype process that had started it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use engine::ids::OwnerId;

use super::group::Mark;
use super::identity::{self, ProcessIdentity};
use super::registry::{Entry, Recorded, folder_of};

/// How long killed processes are waited for.
const ROUNDS_MAX: u32 = 200;
const ROUND_WAIT: Duration = Duration::from_millis(10);

/// What became of one recorded program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The attempt it ran for.
    pub entry: Entry,
    /// What was found, and done.
    pub fate: Fate,
}

/// See [`Ended`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nothing of it ran any more.
    WasGone,
    /// Something of it ran and was killed.
    Killed,
    /// Something of it was killed and yet is still there. The record stays.
    Outlives,
    /// A group of its number runs, but nothing shows that it is this program's; it was left alone.
    Unproven,
}

/// Ends the programs that a dead owner had started, with everything they had started, and removes
/// their records. Blocks for at most a few seconds.
///
/// A number alone is not believed, since the system gives it to other processes later. A group is
/// ended if its leader has the recorded start time in the recorded boot, or if a member carries
/// the variables of the attempt.
///
/// * `processes`: the folder of all owners' registries, `<home>/processes`.
/// * `owner`: one that is certainly dead.
///
/// # Errors
/// If the records cannot be listed. No records at all is no error.
pub fn end_survivors(processes: &Path, owner: OwnerId) -> io::Result<Vec<Ended>> {
    let folder = folder_of(processes, owner);
    let files = match fs::read_dir(&folder) {
        Ok(files) => files,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut ended = Vec::new();
    for file in files {
        let path = file?.path();
        match read(&path) {
            Some(Recorded { process, entry }) => {
                let fate = end(&process, &entry);
                if fate != Fate::Outlives {
                    forget(&path);
                }
                ended.push(Ended { entry, fate });
            }
            // Half written when its owner died. The program's parent-death signal covers that gap.
            None => forget(&path),
        }
    }
    // Fails if something outlives, which is right.
    let _ = fs::remove_dir(&folder);
    Ok(ended)
}

fn read(path: &PathBuf) -> Option<Recorded> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn forget(path: &PathBuf) {
    if let Err(error) = fs::remove_file(path) {
        tracing::warn!(path = %path.display(), %error, "a process record stays behind");
    }
}

fn end(process: &ProcessIdentity, entry: &Entry) -> Fate {
    if identity::boot_id().as_deref() != Some(process.boot_id.as_str()) {
        return Fate::WasGone;
    }
    let mark = Mark { idempotency_key: entry.idempotency_key, attempt: entry.attempt };
    let mut fate = Fate::WasGone;
    let mut quiet_rounds = 0;
    for _ in 0..ROUNDS_MAX {
        quiet_rounds += 1;
        match find(process, &mark) {
            // Looked at twice, because a process that is just being replaced by another program
            // shows no variables for a moment.
            Found::Nothing if quiet_rounds > 1 => return fate,
            Found::Stranger if quiet_rounds > 1 && fate == Fate::WasGone => return Fate::Unproven,
            Found::Stranger if quiet_rounds > 1 => return fate,
            Found::Nothing | Found::Stranger => {}
            Found::Running(kill) => {
                kill();
                fate = Fate::Killed;
                quiet_rounds = 0;
            }
        }
        std::thread::sleep(ROUND_WAIT);
    }
    Fate::Outlives
}

#[cfg_attr(windows, allow(dead_code, reason = "nothing survives there"))]
enum Found {
    Nothing,
    Running(Box<dyn FnOnce()>),
    Stranger,
}

#[cfg(target_os = "linux")]
fn find(process: &ProcessIdentity, mark: &Mark) -> Found {
    use super::linux;
    use rustix::process::{Pid, Signal, getpgrp, getpid};

    let Ok(pgid) = i32::try_from(process.pgid) else { return Found::Nothing };
    if getpgrp().as_raw_nonzero().get() == pgid {
        // This process is itself what an attempt had started; it does not end itself.
        return Found::Stranger;
    }
    let this = getpid().as_raw_nonzero().get();
    let living: Vec<linux::Stat> =
        linux::all().into_iter().filter(|p| !p.is_zombie && p.pid != this).collect();
    let leads = living.iter().any(|p| p.pid == pgid && p.start_time == process.start_time);
    let marked: Vec<linux::Stat> = living
        .iter()
        .filter(|p| p.start_time >= process.start_time && linux::has_mark(p.pid, mark))
        .copied()
        .collect();
    // While a member of the old group lives, its number cannot be taken by another one.
    let is_ours = leads || marked.iter().any(|p| p.group == pgid);
    if is_ours || !marked.is_empty() {
        return Found::Running(Box::new(move || {
            if let Some(group) = Pid::from_raw(pgid).filter(|_| is_ours) {
                let _ = rustix::process::kill_process_group(group, Signal::KILL);
            }
            for process in marked {
                linux::signal_exactly(process.pid, process.start_time, Signal::KILL);
            }
        }));
    }
    // If another process has the number, all of the old group is gone.
    let is_reused = living.iter().any(|p| p.pid == pgid);
    let has_members = living.iter().any(|p| p.group == pgid);
    if has_members && !is_reused { Found::Stranger } else { Found::Nothing }
}

#[cfg(all(unix, not(target_os = "linux")))]
fn find(process: &ProcessIdentity, _mark: &Mark) -> Found {
    use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

    let Some(group) = i32::try_from(process.pgid).ok().and_then(Pid::from_raw) else {
        return Found::Nothing;
    };
    match identity::start_time(process.pgid) {
        Some(start_time) if start_time == process.start_time => {
            Found::Running(Box::new(move || {
                let _ = kill_process_group(group, Signal::KILL);
            }))
        }
        // Another process has the number, so the old group is gone.
        Some(_) => Found::Nothing,
        None if test_kill_process_group(group).is_ok() => Found::Stranger,
        None => Found::Nothing,
    }
}

#[cfg(windows)]
fn find(_process: &ProcessIdentity, _mark: &Mark) -> Found {
    // A job object ends with the process that made it.
    Found::Nothing
}
