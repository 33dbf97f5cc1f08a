//! Reading beside the writer: two connections, each used for one short transaction at a time.

use std::path::Path;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::store::error::StoreError;

/// How many reads go on at the same time.
const CONNECTIONS: usize = 2;
/// Readers wait only while another process recovers the log.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The read connections that are not in use.
pub(super) struct Readers {
    idle: Mutex<Vec<Connection>>,
    returned: Condvar,
}

impl Readers {
    /// Opens the read connections of a database that exists.
    pub(super) fn open(database: &Path) -> rusqlite::Result<Readers> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut idle = Vec::with_capacity(CONNECTIONS);
        for _ in 0..CONNECTIONS {
            let conn = Connection::open_with_flags(database, flags)?;
            conn.busy_timeout(BUSY_TIMEOUT)?;
            conn.set_prepared_statement_cache_capacity(64);
            idle.push(conn);
        }
        Ok(Readers { idle: Mutex::new(idle), returned: Condvar::new() })
    }

    /// Reads within one transaction: everything `read` sees is of the same moment.
    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let conn = self.take();
        // Ended by its drop; it is short, so that the log can be cut.
        let transaction = conn.conn().unchecked_transaction()?;
        read(&transaction)
    }

    fn take(&self) -> Taken<'_> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(conn) = idle.pop() {
                return Taken { readers: self, conn: Some(conn) };
            }
            idle = self.returned.wait(idle).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A read connection in use; it goes back by itself.
struct Taken<'a> {
    readers: &'a Readers,
    conn: Option<Connection>,
}

impl Taken<'_> {
    fn conn(&self) -> &Connection {
        self.conn.as_ref().expect("the connection goes back in `drop` only")
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut idle = self.readers.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.extend(self.conn.take());
        self.readers.returned.notify_one();
    }
}
