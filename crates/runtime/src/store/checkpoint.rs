//! Keeping the write-ahead log short.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rusqlite::Connection;

/// Beyond this many bytes the log is written back and cut, even while there is work.
pub(super) const WAL_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Without work for so long, the log is written back and cut.
const IDLE_BEFORE: Duration = Duration::from_secs(1);
/// After a reader was in the way, it is tried again so much later.
const RETRY_AFTER: Duration = Duration::from_secs(2);
/// A reader in the way is waited for so long: appends wait meanwhile.
const READER_PATIENCE: Duration = Duration::from_millis(50);
/// At the end nobody waits for the writer any more.
const READER_PATIENCE_AT_CLOSE: Duration = Duration::from_secs(1);

/// When the log was last cut and when to try next.
pub(super) struct Checkpoints {
    wal: PathBuf,
    busy_timeout: Duration,
    /// Set while the log may hold something.
    idle_from: Option<Instant>,
    retry_from: Instant,
}

impl Checkpoints {
    /// * `wal`: the log's file.
    /// * `busy_timeout`: what the connection waits for other writers otherwise.
    pub(super) fn new(wal: PathBuf, busy_timeout: Duration) -> Checkpoints {
        let now = Instant::now();
        Checkpoints { wal, busy_timeout, idle_from: Some(now + IDLE_BEFORE), retry_from: now }
    }

    /// When the log should be cut if there is no work until then.
    pub(super) fn idle_from(&self) -> Option<Instant> {
        self.idle_from
    }

    /// Cuts the log if it has grown too long. SQLite itself writes it back every 2,000 pages but
    /// begins it anew only when no reader uses it, and never makes the file shorter.
    pub(super) fn after_commit(&mut self, conn: &Connection) {
        let now = Instant::now();
        self.idle_from = Some(now + IDLE_BEFORE);
        if now >= self.retry_from && self.wal_bytes() > WAL_BYTES_MAX {
            self.cut(conn, READER_PATIENCE);
        }
    }

    /// Cuts the log.
    pub(super) fn when_idle(&mut self, conn: &Connection) {
        if self.wal_bytes() == 0 || self.cut(conn, READER_PATIENCE) {
            self.idle_from = None;
        } else {
            self.idle_from = Some(self.retry_from);
        }
    }

    /// Cuts the log for the last time.
    pub(super) fn at_close(&mut self, conn: &Connection) {
        let optimized = conn
            .busy_timeout(READER_PATIENCE_AT_CLOSE)
            .and_then(|()| conn.execute_batch("PRAGMA optimize"));
        if let Err(error) = optimized {
            tracing::debug!(%error, "statistics were not renewed");
        }
        self.cut(conn, READER_PATIENCE_AT_CLOSE);
    }

    fn wal_bytes(&self) -> u64 {
        std::fs::metadata(&self.wal).map_or(0, |metadata| metadata.len())
    }

    /// Whether the log is empty now; `false` if a reader or another writer was in the way.
    fn cut(&mut self, conn: &Connection, patience: Duration) -> bool {
        let cut = conn
            .busy_timeout(patience)
            .and_then(|()| conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)));
        if let Err(error) = conn.busy_timeout(self.busy_timeout) {
            tracing::warn!(%error, "the busy timeout could not be set back");
        }
        match cut {
            Ok(0) => return true,
            Ok(busy) => tracing::debug!(busy, "a reader keeps the write-ahead log in use"),
            Err(error) => tracing::warn!(%error, "the write-ahead log could not be written back"),
        }
        self.retry_from = Instant::now() + RETRY_AFTER;
        let wal_bytes = self.wal_bytes();
        if wal_bytes > 2 * WAL_BYTES_MAX {
            tracing::warn!(wal_bytes, "the write-ahead log grows: something reads for very long");
        }
        false
    }
}
