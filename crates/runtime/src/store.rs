//! The store: journals, the projections folded from them, and what people edit, in one SQLite
//! database. It knows rows and their order, and nothing of what they mean.
//!
//! One thread writes. It takes everything that waits, writes it in one transaction, and only then
//! says so; whoever appends gets a [`ticket::Ticket`] at once and waits for it only where something
//! is about to leave the process. Reads are short and go on beside it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;

use crate::store::checkpoint::Checkpoints;
use crate::store::error::StoreError;
use crate::store::open::{BUSY_TIMEOUT, DATABASE, OpenError, StoreOptions, wal_of};
use crate::store::queue::{Queue, Stats, Weight};
use crate::store::reader::Readers;
use crate::store::writer::{ClosureJob, Session, Writer};

pub mod agent_table;
pub mod append;
pub mod consent_table;
pub mod create;
pub mod error;
pub mod execution_table;
pub mod open;
pub mod owner_table;
pub mod ownership;
pub mod plan_table;
pub mod progress_table;
pub mod queue;
pub mod retention;
pub mod shipped_table;
pub mod signal_table;
pub mod ticket;
pub mod workflow_table;

mod blob_table;
mod checkpoint;
mod column;
mod lock;
mod node_result_table;
mod reader;
mod record_table;
mod schema;
mod writer;

#[cfg(test)]
mod checkpoint_tests;
#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

/// A handle on the store. Cheap to clone. When the last one is dropped the store is closed.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    folder: PathBuf,
    queue: Arc<Queue>,
    readers: Readers,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl Store {
    /// Opens the store of a folder, which is created if absent.
    pub fn open(options: StoreOptions) -> Result<Store, OpenError> {
        let conn = open::open(&options)?;
        let database = options.folder.join(DATABASE);
        let sqlite = |source| OpenError::Sqlite { path: database.clone(), source };
        let readers = Readers::open(&database).map_err(sqlite)?;
        let queue = Arc::new(Queue::default());
        let checkpoints = Checkpoints::new(wal_of(&database), BUSY_TIMEOUT);
        let writer = Writer::new(queue.clone(), conn, checkpoints, options.wall_clock);
        let thread = std::thread::Builder::new()
            .name("store writer".to_owned())
            .spawn(move || writer.run())
            .expect("the system has room for one more thread");
        let writer = Mutex::new(Some(thread));
        let inner = Inner { folder: options.folder, queue, readers, writer };
        Ok(Store { inner: Arc::new(inner) })
    }

    /// Writes everything that waits, cuts the write-ahead log, and refuses all further writes.
    /// Blocks until that is done; calling it again changes nothing.
    pub fn close(&self) {
        self.inner.close();
    }

    /// The data folder.
    pub fn folder(&self) -> &Path {
        &self.inner.folder
    }

    /// What the writer has done so far.
    pub fn stats(&self) -> Stats {
        self.inner.queue.stats()
    }

    /// Everything SQLite finds wrong with the database file, and rows that point nowhere. Empty if
    /// all is well. Reads the whole file; blocks.
    pub fn integrity(&self) -> Result<Vec<String>, StoreError> {
        self.read(|conn| {
            let mut check = conn.prepare("PRAGMA integrity_check")?;
            let found: Vec<String> =
                check.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
            let mut findings: Vec<String> = found.into_iter().filter(|line| line != "ok").collect();
            let mut keys = conn.prepare("PRAGMA foreign_key_check")?;
            let dangling = keys.query_map([], |row| {
                let (table, parent): (String, String) = (row.get(0)?, row.get(2)?);
                Ok(format!("a row of {table} points to a row of {parent} that is not there"))
            })?;
            for finding in dangling {
                findings.push(finding?);
            }
            Ok(findings)
        })
    }

    /// Runs blocking work on the store on a thread that may block.
    pub async fn off_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> T + Send + 'static,
    ) -> T {
        let store = self.clone();
        match tokio::task::spawn_blocking(move || work(&store)).await {
            Ok(value) => value,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }

    fn queue(&self) -> &Queue {
        &self.inner.queue
    }

    /// Reads within one short transaction. Blocks; see [`Store::off_thread`].
    fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.inner.readers.read(read)
    }

    /// Writes in the order of all writes, and answers when it is on disk. An error leaves nothing
    /// behind. `write` may be called again after a roll-back.
    async fn write<T, E>(
        &self,
        mut write: impl FnMut(&Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        self.write_with(move |session| write(session.conn())).await
    }

    async fn write_with<T, E>(
        &self,
        write: impl FnMut(&mut Session) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let (job, answer) = ClosureJob::new(write);
        let weight = Weight { records: 1, bytes: 0 };
        if self.queue().push(Box::new(job), weight).await.is_err() {
            return Err(StoreError::Closed.into());
        }
        answer.await.unwrap_or_else(|_| Err(StoreError::Closed.into()))
    }
}

impl Inner {
    fn close(&self) {
        self.queue.close();
        let thread = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the store's writer has panicked");
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.close();
    }
}
