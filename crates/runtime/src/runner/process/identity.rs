//! Who a process is, beyond its number, which the system gives to others later.

use serde::{Deserialize, Serialize};

/// Tells a process group from every other one, also after a restart of Cyanotype or the system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessIdentity {
    /// The id of the process group, which is the number of the process that leads it.
    pub pgid: u32,
    /// When that process was started; comparable only to other start times of the same boot.
    pub start_time: u64,
    /// Identifies the time from one start of the system to the next.
    pub boot_id: String,
}

impl ProcessIdentity {
    /// The identity of a living process that leads a group. `None` where the system does not tell;
    /// on Windows, where job objects make it needless; and if there is no such process.
    pub fn of(leader: u32) -> Option<ProcessIdentity> {
        Some(ProcessIdentity { pgid: leader, start_time: start_time(leader)?, boot_id: boot_id()? })
    }
}

/// When the process of this number was started, if there is one.
pub fn start_time(pid: u32) -> Option<u64> {
    #[cfg(target_os = "linux")]
    return super::linux::stat(i32::try_from(pid).ok()?).map(|process| process.start_time);
    #[cfg(target_os = "macos")]
    return super::darwin::start_time(pid);
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    {
        let _ = pid;
        None
    }
}

/// Identifies the time from the last start of the system to the next.
pub fn boot_id() -> Option<String> {
    #[cfg(target_os = "linux")]
    return super::linux::boot_id();
    #[cfg(target_os = "macos")]
    return super::darwin::boot_id();
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    None
}
