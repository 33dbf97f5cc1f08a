//! The journal: every execution's records, the truth that all else is folded from.

use engine::ids::{ExecutionId, Seq};
use engine::journal::{self, Record};
use engine::payload::Payload;
use engine::time::Timestamp;
use rusqlite::{Connection, params};

use crate::store::error::StoreError;
use crate::store::{Store, blob_table, execution_table};

pub(super) const CREATE: &str = "
-- Not WITHOUT ROWID: rows of many executions then lie side by side in the order in which they are
-- written, so that a transaction changes few pages, and a body of some KiB needs no page of its own.
CREATE TABLE record (
    key       INTEGER PRIMARY KEY,
    execution INTEGER NOT NULL REFERENCES execution (key) ON DELETE CASCADE,
    seq       INTEGER NOT NULL,
    at_ms     INTEGER NOT NULL,
    kind      TEXT NOT NULL,
    body      TEXT NOT NULL,
    UNIQUE (execution, seq)
) STRICT;
";

/// A record as it is stored, with the texts that stand beside it.
pub(super) struct WrittenRecord {
    seq: Seq,
    at: Timestamp,
    kind: &'static str,
    body: String,
    pub(super) blobs: Vec<Payload>,
}

impl WrittenRecord {
    /// Writes a record down.
    pub(super) fn new(mut record: Record) -> WrittenRecord {
        let encoded = journal::encode(&record.event);
        let blobs = journal::payloads_mut(&mut record.event)
            .into_iter()
            .filter(|payload| payload.blob().is_some())
            .map(|payload| payload.clone())
            .collect();
        WrittenRecord {
            seq: record.seq,
            at: record.at,
            kind: encoded.kind,
            body: encoded.body,
            blobs,
        }
    }

    /// How many bytes it takes up while it waits.
    pub(super) fn bytes(&self) -> usize {
        let blobs: u64 = self.blobs.iter().map(Payload::bytes).sum();
        self.body.len() + blobs as usize
    }
}

/// Appends a record and the texts beside it.
pub(super) fn insert(
    conn: &Connection,
    execution: i64,
    record: &WrittenRecord,
) -> rusqlite::Result<()> {
    for payload in &record.blobs {
        let blob = blob_table::put(conn, payload.digest(), payload.text())?;
        blob_table::note_use(conn, execution, blob)?;
    }
    conn.prepare_cached(
        "INSERT INTO record (execution, seq, at_ms, kind, body) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(params![
        execution,
        record.seq.0 as i64,
        record.at.0,
        record.kind,
        record.body
    ])?;
    Ok(())
}

/// The position of an execution's last record; 0 if it has none.
pub(super) fn head(conn: &Connection, execution: i64) -> rusqlite::Result<Seq> {
    conn.prepare_cached("SELECT max(seq) FROM record WHERE execution = ?1")?
        .query_row([execution], |row| row.get::<_, Option<i64>>(0))
        .map(|seq| Seq(seq.unwrap_or(0) as u64))
}

/// At most `n_max` records after a position, in order, with their blobs.
fn load_after(
    conn: &Connection,
    execution: ExecutionId,
    after: Seq,
    n_max: i64,
) -> Result<Vec<Record>, StoreError> {
    let key =
        execution_table::key(conn, execution)?.ok_or(StoreError::UnknownExecution { execution })?;
    let mut statement = conn.prepare_cached(
        "SELECT seq, at_ms, kind, body FROM record
         WHERE execution = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
    )?;
    let mut rows = statement.query(params![key, after.0 as i64, n_max])?;
    let mut records = Vec::new();
    let mut seq = after;
    while let Some(row) = rows.next()? {
        seq = seq.next();
        let found = Seq(row.get::<_, i64>(0)? as u64);
        if found != seq {
            return Err(StoreError::Damaged {
                what: format!("record {seq} of execution {execution} is missing"),
            });
        }
        let (kind, body) = (row.get_ref(2)?.as_str(), row.get_ref(3)?.as_str());
        let kind = kind.map_err(|source| unreadable(execution, seq, &source))?;
        let body = body.map_err(|source| unreadable(execution, seq, &source))?;
        let event =
            journal::decode(kind, body).map_err(|source| unreadable(execution, seq, &source))?;
        records.push(Record { seq, at: Timestamp(row.get(1)?), event });
    }
    for record in &mut records {
        for payload in journal::payloads_mut(&mut record.event) {
            load_blob(conn, payload)?;
        }
    }
    Ok(records)
}

fn unreadable(execution: ExecutionId, seq: Seq, source: &dyn std::error::Error) -> StoreError {
    let what = format!("record {seq} of execution {execution} cannot be read: {source}");
    StoreError::Damaged { what }
}

fn load_blob(conn: &Connection, payload: &mut Payload) -> Result<(), StoreError> {
    if payload.is_unloaded() {
        let text = blob_table::load(conn, payload.digest())?;
        assert!(payload.load(text), "the text of a blob was compared with its digest");
    }
    Ok(())
}

impl Store {
    /// The whole journal of an execution as it is on disk, with its long payloads loaded.
    pub fn journal(&self, execution: ExecutionId) -> Result<Vec<Record>, StoreError> {
        self.read(|conn| load_after(conn, execution, Seq(0), -1))
    }

    /// At most `n_max` records after a position, in order, with their long payloads loaded.
    pub fn records_after(
        &self,
        execution: ExecutionId,
        after: Seq,
        n_max: u32,
    ) -> Result<Vec<Record>, StoreError> {
        self.read(|conn| load_after(conn, execution, after, i64::from(n_max)))
    }
}
