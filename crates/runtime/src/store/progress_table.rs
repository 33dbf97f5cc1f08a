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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::execution_table::tests::insert_any;
    use crate::store::fixture::{append, create, execution_id, new_store, started};
    use crate::store::queue::QUEUED_LINES_MAX;
    use crate::store::schema::tests::empty_database;

    fn attempt(n: u128) -> AttemptKey {
        let instance = Instance::top("a".into());
        AttemptKey { execution: execution_id(n), instance, attempt: 1 }
    }

    fn batch(n: u128, numbers: std::ops::Range<u64>) -> ProgressBatch {
        let lines = numbers
            .map(|n| ProgressLine { stream: ProgressStream::Stderr, text: format!("line {n}") })
            .collect();
        ProgressBatch { attempt: attempt(n), at: Timestamp(7), lines }
    }

    fn write_batches(conn: &Connection, batches: Vec<ProgressBatch>) {
        let mut progress = Progress::default();
        progress.batches.extend(batches);
        write(conn, &progress).unwrap();
    }

    fn texts(kept: &KeptProgress) -> Vec<&str> {
        kept.lines.iter().map(|kept| kept.line.text.as_str()).collect()
    }

    #[test]
    fn few_lines_are_kept_whole_and_in_order() {
        let conn = empty_database();
        insert_any(&conn, 1);
        write_batches(&conn, vec![batch(1, 1..3), batch(1, 3..4)]);
        let kept = kept(&conn, &attempt(1)).unwrap();
        assert_eq!(texts(&kept), ["line 1", "line 2", "line 3"]);
        assert_eq!(kept.n_dropped, 0);
        assert_eq!(kept.lines[2].n, 3);
        assert_eq!(kept.lines[2].line.stream, ProgressStream::Stderr);
        assert_eq!(kept.lines[2].at, Timestamp(7));
    }

    #[test]
    fn of_very_many_lines_the_first_and_the_last_are_kept_however_they_arrive() {
        for n_per_batch in [1, 999, 4_000, 10_000] {
            let conn = empty_database();
            insert_any(&conn, 1);
            let mut next = 1;
            while next <= 10_000 {
                let end = (next + n_per_batch).min(10_001);
                write_batches(&conn, vec![batch(1, next..end)]);
                next = end;
            }
            let kept = kept(&conn, &attempt(1)).unwrap();
            let numbers: Vec<u64> = kept.lines.iter().map(|kept| kept.n).collect();
            let expected: Vec<u64> = (1..=2_000).chain(8_001..=10_000).collect();
            assert_eq!(numbers, expected, "{n_per_batch} lines at a time");
            assert_eq!(kept.n_dropped, 6_000);
            assert_eq!(kept.lines[2_000].line.text, "line 8001");
        }
    }

    #[test]
    fn lines_that_there_was_no_room_for_are_counted() {
        let conn = empty_database();
        insert_any(&conn, 1);
        let mut progress = Progress::default();
        progress.batches.push_back(batch(1, 1..3));
        progress.dropped.insert(attempt(1), 40);
        write(&conn, &progress).unwrap();
        assert_eq!(kept(&conn, &attempt(1)).unwrap().n_dropped, 40);
    }

    #[test]
    fn lines_of_an_execution_that_does_not_exist_are_dropped() {
        let conn = empty_database();
        write_batches(&conn, vec![batch(1, 1..3)]);
        assert_eq!(kept(&conn, &attempt(1)).unwrap(), KeptProgress::default());
    }

    #[tokio::test]
    async fn progress_is_written_beside_records_and_by_itself() {
        let (_folder, store) = new_store();
        create(&store, started(1)).await;
        store.append_progress(batch(1, 1..3));
        store.append(append(1, 1, 1)).await.durable().await.unwrap();
        store.append_progress(batch(1, 3..5));
        store.close();
        let kept = store.progress(&attempt(1)).unwrap();
        assert_eq!(texts(&kept), ["line 1", "line 2", "line 3", "line 4"]);
    }

    #[tokio::test]
    async fn a_flood_of_lines_is_counted_and_delays_no_record() {
        let (_folder, store) = new_store();
        create(&store, started(1)).await.durable().await.unwrap();
        let n_lines = 20 * QUEUED_LINES_MAX as u64;
        for start in (0..n_lines).step_by(100) {
            store.append_progress(batch(1, start..start + 100));
        }
        store.append(append(1, 1, 1)).await.durable().await.unwrap();
        store.close();
        let kept = store.progress(&attempt(1)).unwrap();
        assert_eq!(kept.lines.len() as u64 + kept.n_dropped, n_lines);
        assert!(store.stats().lines_dropped > 0, "no reader is that fast");
    }
}
