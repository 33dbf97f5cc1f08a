//! What Linux tells about processes in `/proc`, and the processes that left their group.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};

use super::group::Mark;

const EXEC_LOOKS_MAX: u32 = 3;
const EXEC_WAIT: Duration = Duration::from_millis(1);

/// The programs that this process has started and still has to reap, by number.
static LEADERS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

fn leaders() -> MutexGuard<'static, BTreeSet<i32>> {
    LEADERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One process, as `/proc/<pid>/stat` describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Its number.
    pub pid: i32,
    /// Whether it is dead and only waits to be reaped.
    pub is_zombie: bool,
    /// The number of its parent.
    pub parent: i32,
    /// The id of its process group.
    pub group: i32,
    /// When it was started, in clock ticks since the system was.
    pub start_time: u64,
}

impl Stat {
    fn parse(text: &str) -> Option<Stat> {
        let pid = text.split_once(' ')?.0.parse().ok()?;
        // The name in parentheses may itself contain spaces and parentheses.
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        Some(Stat {
            pid,
            is_zombie: matches!(*fields.first()?, "Z" | "X"),
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            start_time: fields.get(19)?.parse().ok()?,
        })
    }
}

/// The process of this number, if there is one.
pub fn stat(pid: i32) -> Option<Stat> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    Stat::parse(&String::from_utf8_lossy(&text))
}

/// Every process that can be seen.
pub fn all() -> Vec<Stat> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| stat(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// Whether a group has a member that is not dead.
pub fn has_living_member(group: i32) -> bool {
    all().iter().any(|process| process.group == group && !process.is_zombie)
}

/// Identifies the time from one start of the system to the next.
pub fn boot_id() -> Option<String> {
    Some(fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned())
}

/// Whether a process was started with the variables of an attempt. Processes of other users and
/// dead ones show nothing.
pub fn has_mark(pid: i32, mark: &Mark) -> bool {
    fs::read(format!("/proc/{pid}/environ")).is_ok_and(|variables| mark.is_on(&variables))
}

/// The same, patiently: a process that is just being replaced by another program (`exec`) shows no
/// variables for a moment.
fn has_mark_patiently(pid: i32, mark: &Mark) -> bool {
    for _ in 0..EXEC_LOOKS_MAX {
        match fs::read(format!("/proc/{pid}/environ")) {
            Ok(variables) if variables.is_empty() => std::thread::sleep(EXEC_WAIT),
            Ok(variables) => return mark.is_on(&variables),
            Err(_) => return false,
        }
    }
    false
}

/// Sends a signal to a process if its number still means the same process.
pub fn signal_exactly(pid: i32, start_time: u64, signal: Signal) {
    // The descriptor keeps meaning the process it was opened for, so the check comes after.
    let Some(number) = Pid::from_raw(pid) else { return };
    let Ok(descriptor) = rustix::process::pidfd_open(number, PidfdFlags::empty()) else { return };
    if stat(pid).is_some_and(|process| process.start_time == start_time) {
        let _ = rustix::process::pidfd_send_signal(descriptor, signal);
    }
}

/// Makes this process the parent of every orphan among its descendants.
pub fn adopt_orphans() {
    if let Err(error) = rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
        tracing::warn!(%error, "processes that leave their group will not be found");
    }
}

fn own_children() -> Vec<i32> {
    let this = rustix::process::getpid().as_raw_nonzero().get();
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return Vec::new() };
    let mut children = Vec::new();
    for thread in threads.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(list) => {
                children.extend(list.split_whitespace().filter_map(|n| n.parse::<i32>().ok()))
            }
            Err(error)
                if error.kind() == std::io::ErrorKind::NotFound && thread.path().exists() =>
            {
                // The kernel was built without these lists.
                let is_ours = |process: &Stat| process.parent == this;
                return all().iter().filter(|p| is_ours(p)).map(|p| p.pid).collect();
            }
            Err(_) => {}
        }
    }
    children
}

/// The processes of one attempt that left its group.
#[derive(Debug)]
pub struct Escaped {
    leader: i32,
    mark: Mark,
    /// By number: when they were started.
    known: BTreeMap<i32, u64>,
}

impl Escaped {
    /// None are known yet.
    ///
    /// * `leader`: the number of the program that leads the group, just started.
    pub fn new(leader: i32, mark: Mark) -> Escaped {
        leaders().insert(leader);
        Escaped { leader, mark, known: BTreeMap::new() }
    }

    /// The leader's number may mean another process from now on.
    pub fn leader_is_reaped(&mut self) {
        leaders().remove(&self.leader);
    }

    /// Signals those that can be found.
    pub fn signal(&mut self, signal: Signal) {
        self.note_orphans();
        self.note_descendants();
        for (&pid, &start_time) in &self.known {
            signal_exactly(pid, start_time, signal);
        }
    }

    /// Whether none that can be found is alive. Reaps the dead ones.
    pub fn are_gone(&mut self) -> bool {
        self.note_orphans();
        let this = rustix::process::getpid().as_raw_nonzero().get();
        self.known.retain(|&pid, start_time| match stat(pid) {
            Some(process) if process.start_time == *start_time && process.is_zombie => {
                if process.parent == this {
                    let _ = rustix::process::waitpid(Pid::from_raw(pid), WaitOptions::NOHANG);
                }
                false
            }
            Some(process) => process.start_time == *start_time,
            None => false,
        });
        self.known.is_empty()
    }

    /// Orphans that this process adopted.
    fn note_orphans(&mut self) {
        let started = leaders().clone();
        for pid in own_children().into_iter().filter(|pid| !started.contains(pid)) {
            if self.known.contains_key(&pid) {
                continue;
            }
            if let Some(process) = stat(pid)
                && process.group != self.leader
                && has_mark_patiently(pid, &self.mark)
            {
                self.known.insert(pid, process.start_time);
            }
        }
    }

    /// Those whose parents are still alive, whatever variables they have.
    fn note_descendants(&mut self) {
        let processes = all();
        let mut family: BTreeSet<i32> = self.known.keys().copied().collect();
        if leaders().contains(&self.leader) {
            family.insert(self.leader);
        }
        let mut grew = true;
        while grew {
            grew = false;
            for process in &processes {
                if family.contains(&process.parent) && family.insert(process.pid) {
                    grew = true;
                    if process.group != self.leader {
                        self.known.insert(process.pid, process.start_time);
                    }
                }
            }
        }
    }
}

impl Drop for Escaped {
    fn drop(&mut self) {
        leaders().remove(&self.leader);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_an_odd_name_is_read() {
        let text = "42 (a) b (c) S 1 40 39 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 123456 9 9";
        assert_eq!(
            Stat::parse(text),
            Some(Stat { pid: 42, is_zombie: false, parent: 1, group: 40, start_time: 123_456 })
        );
        assert_eq!(Stat::parse("42 (x) S 1"), None);
    }

    #[test]
    fn this_process_is_found_with_its_start_time() {
        let this = std::process::id() as i32;
        let found = stat(this).unwrap();
        assert!(all().contains(&found));
        assert!(boot_id().is_some_and(|id| id.len() == 36));
    }
}
