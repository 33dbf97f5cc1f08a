//! Exit codes: what a script can rely on.

use engine::projection::ExecutionStatus;

/// How a command ended, in the order of the codes: of several, the highest counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// It did what it was asked to; the execution completed.
    Completed = 0,
    /// The execution failed.
    Failed = 1,
    /// The command line, a file or an input is wrong. Nothing was run.
    Invalid = 2,
    /// The execution was cancelled.
    Cancelled = 3,
    /// The execution failed because its own timeout ran out.
    TimedOut = 4,
    /// The execution waits for a person, or was left to be resumed.
    Unfinished = 5,
    /// The data folder cannot be used.
    StoreUnavailable = 6,
}

/// The table that `--help` shows.
pub const TABLE: &str = "\
Exit codes:
  0  completed
  1  failed
  2  wrong usage, or an error in a file or an input; nothing was run
  3  cancelled
  4  timed out: the execution's own timeout ran out
  5  waits for a person, or was left to be resumed
  6  the data folder cannot be used
Of several, the highest.";

impl Exit {
    /// The code for the operating system.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The code of an execution that stands as it is. `timed_out`: whether its own timeout ended
    /// it.
    pub fn of(status: ExecutionStatus, timed_out: TimedOut) -> Exit {
        match (status, timed_out) {
            (ExecutionStatus::Completed, _) => Exit::Completed,
            (ExecutionStatus::Failed, TimedOut::Yes) => Exit::TimedOut,
            (ExecutionStatus::Failed, TimedOut::No) => Exit::Failed,
            (ExecutionStatus::Cancelled, _) => Exit::Cancelled,
            (ExecutionStatus::Pending | ExecutionStatus::Running, _) => Exit::Unfinished,
        }
    }
}

/// Whether an execution's own timeout ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimedOut {
    Yes,
    No,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_every_code_once_and_in_order() {
        let codes: Vec<u8> = TABLE
            .lines()
            .filter_map(|line| line.strip_prefix("  ")?.chars().next()?.to_digit(10))
            .map(|code| code as u8)
            .collect();
        assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(Exit::StoreUnavailable.code(), 6);
        assert_eq!([Exit::Failed, Exit::Unfinished].into_iter().max(), Some(Exit::Unfinished));
    }
}
