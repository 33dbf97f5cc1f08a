//! Which programs run for which attempt, kept in files, so that the next start can end what
//! outlived a crash of this one.
//!
//! `<home>/processes/<owner>/<process group>.json`: written right after a program was started,
//! removed when nothing of it runs any more. Not flushed to disk: the files matter after a crash
//! of this process, and after one of the system no program runs any more.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use engine::ids::{Digest, ExecutionId, Instance, OwnerId};
use serde::{Deserialize, Serialize};

use super::identity::ProcessIdentity;

/// Records the programs of one owner.
#[derive(Clone, Debug)]
pub struct ProcessRegistry {
    folder: PathBuf,
}

/// Which attempt a program runs for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// The execution.
    pub execution: ExecutionId,
    /// The node instance.
    pub instance: Instance,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The key that all attempts of the instance share.
    pub idempotency_key: Digest,
}

/// A record of a program that runs. Dropping it leaves the record.
#[derive(Debug)]
pub struct Registration {
    path: PathBuf,
}

/// What one file says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// The program and what it started.
    pub process: ProcessIdentity,
    /// What it runs for.
    #[serde(flatten)]
    pub entry: Entry,
}

impl ProcessRegistry {
    /// The registry of an owner.
    ///
    /// * `processes`: the folder of all owners' registries, `<home>/processes`.
    ///
    /// # Errors
    /// If the owner's folder cannot be made.
    pub fn open(processes: &Path, owner: OwnerId) -> io::Result<ProcessRegistry> {
        let folder = folder_of(processes, owner);
        fs::create_dir_all(&folder)?;
        Ok(ProcessRegistry { folder })
    }

    /// Records a program that was just started.
    pub fn record(&self, process: &ProcessIdentity, entry: &Entry) -> io::Result<Registration> {
        let path = self.folder.join(format!("{}.json", process.pgid));
        let recorded = Recorded { process: process.clone(), entry: entry.clone() };
        fs::write(&path, serde_json::to_vec(&recorded)?)?;
        Ok(Registration { path })
    }
}

impl Registration {
    /// Nothing of the program runs any more.
    pub fn remove(self) {
        if let Err(error) = fs::remove_file(&self.path) {
            // Harmless: the next start finds out that the process is gone.
            tracing::warn!(path = %self.path.display(), %error, "a process record stays behind");
        }
    }
}

/// The folder with an owner's records.
pub fn folder_of(processes: &Path, owner: OwnerId) -> PathBuf {
    processes.join(owner.to_string())
}
