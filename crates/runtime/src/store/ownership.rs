//! Who may append to which journal. An owner is a process start that holds the operating system's
//! lock on a file of its own: when the process dies, however it dies, the lock is free.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use engine::ids::{ExecutionId, OwnerId};
use engine::time::Timestamp;

use crate::store::Store;
use crate::store::error::StoreError;
use crate::store::lock::{LockError, lock_within};
use crate::store::owner_table::{self, Unsettled};

/// The folder of the lock files, within the data folder.
const FOLDER: &str = "owners";
/// Held while a lock file is made or removed, so that none is removed before it is locked.
const FOLDER_LOCK: &str = "folder.lock";
/// How long other processes may take for that.
const FOLDER_PATIENCE: Duration = Duration::from_secs(10);

/// Why a process start could not become an owner.
#[derive(Debug, thiserror::Error)]
pub enum OwnerError {
    /// The lock file could not be made.
    #[error(
        "cannot lock {}; make the folder writable, and keep it on a disk of this machine",
        path.display()
    )]
    Lock {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Another process keeps the folder of lock files.
    #[error("another process has kept {} for too long; end it, then try again", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The store could not note it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// This process start as an owner. It lives until it is dropped or the process ends.
#[derive(Debug)]
pub struct Owner {
    id: OwnerId,
    path: PathBuf,
    lock: Option<File>,
}

/// What became of an attempt to take an execution over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It is ours now.
    Taken,
    /// Somebody else was faster, or it has ended.
    Missed,
}

impl Owner {
    /// Makes this process start an owner.
    ///
    /// * `id`: never used before.
    /// * `program`: what is running, for people.
    pub async fn register(
        store: &Store,
        id: OwnerId,
        program: String,
        now: Timestamp,
    ) -> Result<Owner, OwnerError> {
        // Locked before the row exists: whoever finds the row can rely on the lock.
        let owner = store.off_thread(move |store| lock_own(store, id)).await?;
        let noted: Result<(), StoreError> = store
            .write_with(move |session| {
                owner_table::insert(session.conn(), id, &program, now)?;
                session.owner = Some(id);
                Ok(())
            })
            .await;
        noted?;
        Ok(owner)
    }

    /// Names this process start.
    pub fn id(&self) -> OwnerId {
        self.id
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // In this order: Windows removes no file that is open.
        drop(self.lock.take());
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::debug!(%error, "an owner's lock file is left for the next sweep");
        }
    }
}

fn lock_own(store: &Store, id: OwnerId) -> Result<Owner, OwnerError> {
    let folder = store.folder().join(FOLDER);
    let path = lock_path(store.folder(), id);
    let failed = |source| OwnerError::Lock { path: path.clone(), source };
    fs::create_dir_all(&folder).map_err(failed)?;
    let folder_lock = folder.join(FOLDER_LOCK);
    let _held = lock_within(&folder_lock, FOLDER_PATIENCE).map_err(|error| match error {
        LockError::Busy => OwnerError::Busy { path: folder_lock.clone() },
        LockError::Io(source) => OwnerError::Lock { path: folder_lock.clone(), source },
    })?;
    let lock = File::options().create_new(true).write(true).open(&path).map_err(failed)?;
    lock.try_lock().map_err(|error| failed(error.into()))?;
    Ok(Owner { id, path, lock: Some(lock) })
}

fn lock_path(folder: &Path, owner: OwnerId) -> PathBuf {
    folder.join(FOLDER).join(format!("{owner}.lock"))
}

/// Whether somebody holds the lock of a file.
fn is_locked(path: &Path) -> io::Result<bool> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    // Shared: two processes that look at the same time must not see each other.
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

impl Store {
    /// Whether an owner lives: a free or missing lock means that it does not. Where that cannot be
    /// told it counts as alive, since nothing may be taken from a living owner.
    pub fn is_alive(&self, owner: OwnerId) -> bool {
        is_locked(&lock_path(self.folder(), owner)).unwrap_or_else(|error| {
            tracing::warn!(%error, %owner, "an owner's lock cannot be examined");
            true
        })
    }

    /// The unsettled executions of other, dead owners, oldest first. Each has to be claimed.
    pub fn adoptable(&self, me: OwnerId) -> Result<Vec<Unsettled>, StoreError> {
        let mut unsettled = self.read(|conn| Ok(owner_table::unsettled_of_others(conn, me)?))?;
        let mut is_alive = BTreeMap::new();
        unsettled.retain(|found| {
            !*is_alive.entry(found.owner).or_insert_with(|| self.is_alive(found.owner))
        });
        Ok(unsettled)
    }

    /// Takes an unsettled execution over if it still belongs to `from`: of several claims one wins.
    pub async fn claim(
        &self,
        execution: ExecutionId,
        from: OwnerId,
        to: OwnerId,
    ) -> Result<Claim, StoreError> {
        self.write(move |conn| {
            let is_ours = owner_table::hand_over(conn, execution, from, to)?;
            Ok(if is_ours { Claim::Taken } else { Claim::Missed })
        })
        .await
    }

    /// Removes what dead owners left: their lock files, and the rows of those that nothing
    /// unsettled belongs to.
    pub async fn forget_dead_owners(&self, me: OwnerId) -> Result<(), StoreError> {
        let others = self
            .off_thread(move |store| {
                remove_free_locks(&store.folder().join(FOLDER));
                store.read(|conn| Ok(owner_table::others(conn, me)?))
            })
            .await?;
        let dead: Vec<OwnerId> =
            others.into_iter().filter(|owner| !self.is_alive(*owner)).collect();
        if dead.is_empty() {
            return Ok(());
        }
        self.write(move |conn| {
            dead.iter().try_for_each(|owner| Ok(owner_table::remove_if_idle(conn, *owner)?))
        })
        .await
    }
}

/// Removes the lock files that nobody holds. What cannot be removed stays for the next time.
fn remove_free_locks(folder: &Path) {
    let Ok(_held) = lock_within(&folder.join(FOLDER_LOCK), Duration::ZERO) else { return };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_owner = path.extension().is_some_and(|extension| extension == "lock")
            && path.file_stem().is_some_and(|stem| {
                stem.to_str().is_some_and(|stem| stem.parse::<OwnerId>().is_ok())
            });
        if is_owner && matches!(is_locked(&path), Ok(false)) {
            let _ = fs::remove_file(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::fixture::{
        ME, append, create, execution_id, new_store, owner_id, reopen, settling, started,
    };
    use std::collections::BTreeSet;

    async fn register(store: &Store, id: OwnerId) -> Owner {
        Owner::register(store, id, "test".to_owned(), Timestamp(3_000)).await.unwrap()
    }

    /// Ends an owner as the death of its process does: the lock is free, the file is there.
    fn die(mut owner: Owner) {
        drop(owner.lock.take());
        std::mem::forget(owner);
    }

    #[tokio::test]
    async fn an_owner_lives_as_long_as_it_holds_its_lock() {
        let (folder, store) = new_store();
        let owner = register(&store, ME).await;
        let other_process = reopen(&folder);
        assert!(store.is_alive(ME) && other_process.is_alive(ME));
        die(owner);
        assert!(!store.is_alive(ME) && !other_process.is_alive(ME));
        assert!(!store.is_alive(owner_id(404)), "an owner without a file is dead");
    }

    #[tokio::test]
    async fn an_owner_that_ends_in_order_takes_its_file_along() {
        let (folder, store) = new_store();
        drop(register(&store, ME).await);
        assert!(!lock_path(folder.path(), ME).exists());
        assert!(!store.is_alive(ME));
    }

    #[tokio::test]
    async fn two_looks_at_the_same_time_do_not_take_each_other_for_the_owner() {
        let (folder, store) = new_store();
        die(register(&store, ME).await);
        let path = lock_path(folder.path(), ME);
        let looking = File::open(&path).unwrap();
        looking.try_lock_shared().unwrap();
        assert!(!store.is_alive(ME));
    }

    #[tokio::test]
    async fn only_unsettled_executions_of_dead_owners_are_adoptable() {
        let (_folder, store) = new_store();
        let (dead, living) = (owner_id(1), owner_id(2));
        let dying = register(&store, dead).await;
        let _living = register(&store, living).await;
        for (n, owner) in [(1, dead), (2, living), (3, ME), (4, dead)] {
            let mut new = started(n);
            new.first.owner = owner;
            create(&store, new).await.durable().await.unwrap();
        }
        let mut last = settling(append(4, 1, 1));
        last.owner = dead;
        store.append(last).await.durable().await.unwrap();
        die(dying);
        let _me = register(&store, ME).await;
        let found = store.adoptable(ME).unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].execution, found[0].owner), (execution_id(1), dead));
    }

    #[tokio::test]
    async fn whoever_lost_an_execution_can_append_no_more_and_the_new_owner_can() {
        let (_folder, store) = new_store();
        create(&store, started(1)).await.durable().await.unwrap();
        let heir = owner_id(5);
        assert_eq!(store.claim(execution_id(1), ME, heir).await.unwrap(), Claim::Taken);
        let late = store.append(append(1, 1, 1)).await.durable().await;
        assert!(late.is_err(), "{late:?}");
        let mut mine = append(1, 1, 1);
        mine.owner = heir;
        store.append(mine).await.durable().await.unwrap();
    }

    #[tokio::test]
    async fn what_dead_owners_left_goes_once_nothing_belongs_to_them() {
        let (folder, store) = new_store();
        let dead = owner_id(1);
        let dying = register(&store, dead).await;
        let _me = register(&store, ME).await;
        let mut new = started(1);
        new.first.owner = dead;
        create(&store, new).await.durable().await.unwrap();
        die(dying);
        let rows = || store.read(|conn| Ok(owner_table::others(conn, owner_id(0))?)).unwrap();
        store.forget_dead_owners(ME).await.unwrap();
        assert!(!lock_path(folder.path(), dead).exists());
        assert_eq!(rows(), [dead, ME], "its heartbeat is still of use");
        store.claim(execution_id(1), dead, ME).await.unwrap();
        store.forget_dead_owners(ME).await.unwrap();
        assert_eq!(rows(), [ME]);
        assert!(store.is_alive(ME));
    }

    /// One sweep of one process: takes over what it can.
    async fn sweep(store: Store, me: OwnerId) -> Vec<ExecutionId> {
        let mut taken = Vec::new();
        let found = store.off_thread(move |store| store.adoptable(me)).await.unwrap();
        for unsettled in found {
            let claim = store.claim(unsettled.execution, unsettled.owner, me).await.unwrap();
            if claim == Claim::Taken {
                taken.push(unsettled.execution);
            }
        }
        store.forget_dead_owners(me).await.unwrap();
        taken
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn o_k01_racing_sweeps_adopt_each_interrupted_execution_once_and_no_new_one() {
        let (folder, first) = new_store();
        let dying = register(&first, ME).await;
        for n in 0..50 {
            create(&first, started(n)).await.durable().await.unwrap();
        }
        die(dying);
        let second = reopen(&folder);
        let (a, b) = (owner_id(1), owner_id(2));
        let _a = register(&first, a).await;
        let _b = register(&second, b).await;
        let starts = tokio::spawn({
            let first = first.clone();
            async move {
                for n in 100..150 {
                    let mut new = started(n);
                    new.first.owner = a;
                    create(&first, new).await;
                }
            }
        });
        let sweeps = [
            tokio::spawn(sweep(first.clone(), a)),
            tokio::spawn(sweep(second.clone(), b)),
            tokio::spawn(sweep(second.clone(), b)),
        ];
        let mut adopted = Vec::new();
        for sweep in sweeps {
            adopted.extend(sweep.await.unwrap());
        }
        starts.await.unwrap();
        assert_eq!(adopted.len(), 50, "each is adopted once");
        let adopted: BTreeSet<_> = adopted.into_iter().collect();
        assert_eq!(adopted, (0..50).map(execution_id).collect());
        assert_eq!(first.adoptable(a).unwrap(), []);
    }
}
