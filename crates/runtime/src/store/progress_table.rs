//! Lines that running attempts print. They may lose their tail in a crash, and their middle when
//! there are very many; nothing is decided on them.

use std::collections::BTreeMap;

use engine::ids::{ExecutionId, Instance};
use engine::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::runner::{ProgressLine, ProgressStream};
use crate::store::column::named;
use crate::store::error::StoreError;
use crate::store::node_result_table::iteration_text;
use crate::store::queue::Progress;
use crate::store::{Store, execution_table};

pub(super) const CREATE: &str = "
-- The attempts that printed something.
CREATE TABLE progress (
    key       INTEGER PRIMARY KEY,
    execution INTEGER NOT NULL REFERENCES execution (key) ON DELETE CASCADE,
    node      TEXT NOT NULL,
    iteration TEXT NOT NULL,
    epoch     INTEGER NOT NULL,
    attempt   INTEGER NOT NULL,
    n_lines   INTEGER NOT NULL, -- printed, kept or not
    UNIQUE (execution, node, iteration, epoch, attempt)
) STRICT;

CREATE TABLE progress_line (
    progress INTEGER NOT NULL REFERENCES progress (key) ON DELETE CASCADE,
    n        INTEGER NOT NULL, -- from 1
    at_ms    INTEGER NOT NULL,
    stream   TEXT NOT NULL,
    text     TEXT NOT NULL,
    PRIMARY KEY (progress, n)
) STRICT, WITHOUT ROWID;
";

/// So many of an attempt's first lines are kept.
pub const HEAD_LINES_MAX: u64 = 2_000;
/// So many of an attempt's last lines are kept.
pub const TAIL_LINES_MAX: u64 = 2_000;

/// Names one attempt of one node instance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AttemptKey {
    /// The execution.
    pub execution: ExecutionId,
    /// The node instance.
    pub instance: Instance,
    /// The attempt, from 1.
    pub attempt: u32,
}

/// Lines that an attempt printed one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgressBatch {
    /// Which attempt.
    pub attempt: AttemptKey,
    /// When they arrived.
    pub at: Timestamp,
    /// The lines, in order.
    pub lines: Vec<ProgressLine>,
}

/// A line that was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptLine {
    /// Its number among all lines of the attempt, from 1.
    pub n: u64,
    /// When it arrived.
    pub at: Timestamp,
    /// The line.
    pub line: ProgressLine,
}

/// What is left of an attempt's lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptProgress {
    /// In order; gaps in the numbers are lines that were dropped.
    pub lines: Vec<KeptLine>,
    /// How many lines were dropped.
    pub n_dropped: u64,
}

fn stream_name(stream: ProgressStream) -> &'static str {
    match stream {
        ProgressStream::Stdout => "stdout",
        ProgressStream::Stderr => "stderr",
        ProgressStream::Runner => "runner",
    }
}

fn stream_from_name(name: &str) -> Option<ProgressStream> {
    [ProgressStream::Stdout, ProgressStream::Stderr, ProgressStream::Runner]
        .into_iter()
        .find(|stream| stream_name(*stream) == name)
}

/// The key and the number of lines of an attempt that has a row.
fn find(conn: &Connection, attempt: &AttemptKey) -> rusqlite::Result<Option<(i64, u64)>> {
    let Some(execution) = execution_table::key(conn, attempt.execution)? else { return Ok(None) };
    conn.prepare_cached(
        "SELECT key, n_lines FROM progress WHERE execution = ?1 AND node = ?2 AND iteration = ?3
             AND epoch = ?4 AND attempt = ?5",
    )?
    .query_row(attempt_columns(execution, attempt), |row| {
        Ok((row.get(0)?, row.get::<_, i64>(1)? as u64))
    })
    .optional()
}

fn attempt_columns(execution: i64, attempt: &AttemptKey) -> (i64, String, String, u32, u32) {
    let instance = &attempt.instance;
    let node = instance.node.as_str().to_owned();
    (execution, node, iteration_text(instance), instance.epoch, attempt.attempt)
}

fn find_or_add(conn: &Connection, attempt: &AttemptKey) -> rusqlite::Result<Option<(i64, u64)>> {
    if let Some(found) = find(conn, attempt)? {
        return Ok(Some(found));
    }
    let Some(execution) = execution_table::key(conn, attempt.execution)? else { return Ok(None) };
    let key = conn
        .prepare_cached(
            "INSERT INTO progress (execution, node, iteration, epoch, attempt, n_lines)
             VALUES (?1, ?2, ?3, ?4, ?5, 0)",
        )?
        .insert(attempt_columns(execution, attempt))?;
    Ok(Some((key, 0)))
}

/// Writes the progress that waited, attempt by attempt, and drops what is neither head nor tail.
/// Lines of executions that do not exist are dropped.
pub(super) fn write(conn: &Connection, progress: &Progress) -> rusqlite::Result<()> {
    let mut by_attempt: BTreeMap<&AttemptKey, (Vec<&ProgressBatch>, u64)> = BTreeMap::new();
    for batch in &progress.batches {
        by_attempt.entry(&batch.attempt).or_default().0.push(batch);
    }
    for (attempt, n_dropped) in &progress.dropped {
        by_attempt.entry(attempt).or_default().1 += n_dropped;
    }
    for (attempt, (batches, n_dropped)) in by_attempt {
        if let Some((key, n_lines)) = find_or_add(conn, attempt)? {
            write_attempt(conn, key, n_lines, &batches, n_dropped)?;
        }
    }
    Ok(())
}

fn write_attempt(
    conn: &Connection,
    key: i64,
    n_before: u64,
    batches: &[&ProgressBatch],
    n_dropped: u64,
) -> rusqlite::Result<()> {
    let n_new: u64 = batches.iter().map(|batch| batch.lines.len() as u64).sum();
    let n_after = n_before + n_new + n_dropped;
    // The number of the first line of the tail, counting the dropped ones as the last.
    let tail = (n_after + 1).saturating_sub(TAIL_LINES_MAX).max(HEAD_LINES_MAX + 1);
    let mut n = n_before;
    for batch in batches {
        for line in &batch.lines {
            n += 1;
            if n <= HEAD_LINES_MAX || n >= tail {
                conn.prepare_cached(
                    "INSERT INTO progress_line (progress, n, at_ms, stream, text)
                     VALUES (?1, ?2, ?3, ?4, ?5)",
                )?
                .execute(params![
                    key,
                    n as i64,
                    batch.at.0,
                    stream_name(line.stream),
                    line.text
                ])?;
            }
        }
    }
    conn.prepare_cached("DELETE FROM progress_line WHERE progress = ?1 AND n > ?2 AND n < ?3")?
        .execute(params![key, HEAD_LINES_MAX as i64, tail as i64])?;
    conn.prepare_cached("UPDATE progress SET n_lines = ?2 WHERE key = ?1")?
        .execute(params![key, n_after as i64])?;
    Ok(())
}

fn line_from(row: &Row<'_>) -> rusqlite::Result<KeptLine> {
    Ok(KeptLine {
        n: row.get::<_, i64>("n")? as u64,
        at: Timestamp(row.get("at_ms")?),
        line: ProgressLine {
            stream: named(row, "stream", stream_from_name)?,
            text: row.get("text")?,
        },
    })
}

fn kept(conn: &Connection, attempt: &AttemptKey) -> rusqlite::Result<KeptProgress> {
    let Some((key, n_lines)) = find(conn, attempt)? else { return Ok(KeptProgress::default()) };
    let lines = conn
        .prepare_cached("SELECT * FROM progress_line WHERE progress = ?1 ORDER BY n")?
        .query_map([key], line_from)?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    let n_dropped = n_lines.saturating_sub(lines.len() as u64);
    Ok(KeptProgress { lines, n_dropped })
}

impl Store {
    /// Hands over lines of progress. Never waits: they are written when there is time, and
    /// dropped and counted when too many wait.
    pub fn append_progress(&self, batch: ProgressBatch) {
        self.queue().push_progress(batch);
    }

    /// What is left of an attempt's lines.
    pub fn progress(&self, attempt: &AttemptKey) -> Result<KeptProgress, StoreError> {
        self.read(|conn| Ok(kept(conn, attempt)?))
    }
}
