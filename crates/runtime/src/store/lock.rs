//! Files that one process at a time may hold.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// Why a lock was not taken.
#[derive(Debug)]
pub(super) enum LockError {
    /// Another process held it all the time.
    Busy,
    /// The file could not be made or locked.
    Io(io::Error),
}

/// Takes the lock of a file, which is made if absent, within `patience`. It is free again when the
/// file is dropped, or when the process ends.
pub(super) fn lock_within(path: &Path, patience: Duration) -> Result<File, LockError> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(LockError::Io)?;
    let started = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(LockError::Io(error)),
            Err(TryLockError::WouldBlock) if started.elapsed() >= patience => {
                return Err(LockError::Busy);
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_by_one_and_free_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let held = lock_within(&path, Duration::ZERO).unwrap();
        assert!(matches!(lock_within(&path, Duration::ZERO), Err(LockError::Busy)));
        drop(held);
        lock_within(&path, Duration::ZERO).unwrap();
    }

    #[test]
    fn a_lock_file_that_cannot_be_made_is_an_error_not_a_wait() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("absent").join("lock");
        assert!(matches!(lock_within(&path, Duration::from_secs(60)), Err(LockError::Io(_))));
    }
}
