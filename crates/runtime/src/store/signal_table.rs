//! Signals: what other processes and people want of an execution, on its way to the owner.

use std::fmt;

use engine::ids::{ExecutionId, OwnerId, Seq};
use engine::time::Timestamp;
use rusqlite::{Connection, Row, params};
use serde_json::value::RawValue;

use crate::store::column::parsed;
use crate::store::error::StoreError;
use crate::store::{Store, execution_table};

pub(super) const CREATE: &str = "
CREATE TABLE signal (
    id           INTEGER PRIMARY KEY AUTOINCREMENT, -- tells the order, and is never used again
    execution    INTEGER NOT NULL REFERENCES execution (key) ON DELETE CASCADE,
    kind         TEXT NOT NULL,
    body         TEXT NOT NULL,
    written_ms   INTEGER NOT NULL,
    consumed_seq INTEGER -- the last record of the decision that acted on it
) STRICT;

-- For `waiting_for`, several times a second: there are hardly ever any.
CREATE INDEX signal_waiting ON signal (execution) WHERE consumed_seq IS NULL;

-- For the reference when an execution is removed.
CREATE INDEX signal_by_execution ON signal (execution);
";

/// Names one signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SignalId(i64);

impl fmt::Display for SignalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A signal that nobody has acted on yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Names it, for the append that acts on it.
    pub id: SignalId,
    /// For whom it is.
    pub execution: ExecutionId,
    /// What is wanted; whoever writes and whoever reads agree on the words.
    pub kind: String,
    /// What belongs to it, as JSON.
    pub body: String,
    /// When it was written.
    pub written_at: Timestamp,
}

/// Whether a signal is the execution's and was not acted on.
pub(super) fn is_waiting(
    conn: &Connection,
    execution: i64,
    signal: SignalId,
) -> rusqlite::Result<bool> {
    conn.prepare_cached(
        "SELECT 1 FROM signal WHERE id = ?1 AND execution = ?2 AND consumed_seq IS NULL",
    )?
    .exists([signal.0, execution])
}

/// Notes that a signal was acted on.
pub(super) fn consume(conn: &Connection, signal: SignalId, seq: Seq) -> rusqlite::Result<()> {
    conn.prepare_cached("UPDATE signal SET consumed_seq = ?2 WHERE id = ?1")?
        .execute([signal.0, seq.0 as i64])?;
    Ok(())
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<Signal> {
    Ok(Signal {
        id: SignalId(row.get("id")?),
        execution: parsed(row, "execution_id")?,
        kind: row.get("kind")?,
        body: row.get("body")?,
        written_at: Timestamp(row.get("written_ms")?),
    })
}

// In this order: the waiting signals are few, the executions of an owner may be many.
const WAITING_FOR: &str = "SELECT signal.id, execution.id AS execution_id, kind, body, written_ms
     FROM signal INDEXED BY signal_waiting
     CROSS JOIN execution ON execution.key = signal.execution
     WHERE consumed_seq IS NULL AND execution.owner = ?1 ORDER BY signal.id";

fn waiting_for(conn: &Connection, owner: OwnerId) -> rusqlite::Result<Vec<Signal>> {
    conn.prepare_cached(WAITING_FOR)?.query_map([owner.to_string()], from_row)?.collect()
}

impl Store {
    /// Writes a signal; anybody may. The execution's owner sees it at its next look.
    pub async fn write_signal(
        &self,
        execution: ExecutionId,
        kind: String,
        body: Box<RawValue>,
        at: Timestamp,
    ) -> Result<SignalId, StoreError> {
        self.write(move |conn| {
            let key = execution_table::key(conn, execution)?
                .ok_or(StoreError::UnknownExecution { execution })?;
            let id = conn
                .prepare_cached(
                    "INSERT INTO signal (execution, kind, body, written_ms)
                     VALUES (?1, ?2, ?3, ?4)",
                )?
                .insert(params![key, kind, body.get(), at.0])?;
            Ok(SignalId(id))
        })
        .await
    }

    /// Whether somebody has acted on a signal. One that is gone was acted on.
    pub fn is_signal_consumed(&self, signal: SignalId) -> Result<bool, StoreError> {
        self.read(|conn| {
            let is_waiting = conn
                .prepare_cached("SELECT 1 FROM signal WHERE id = ?1 AND consumed_seq IS NULL")?
                .exists([signal.0])?;
            Ok(!is_waiting)
        })
    }

    /// The signals for the executions of an owner that nobody has acted on, oldest first.
    /// Cheap enough to be asked several times a second.
    pub fn signals_for(&self, owner: OwnerId) -> Result<Vec<Signal>, StoreError> {
        self.read(|conn| Ok(waiting_for(conn, owner)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::append::{Append, AppendError};
    use crate::store::fixture::{
        ME, append, create, execution_id, new_store, owner_id, reopen, started,
    };

    async fn write(store: &Store, n: u128, body: &str) -> SignalId {
        let body = RawValue::from_string(body.to_owned()).unwrap();
        let kind = "cancel".to_owned();
        store.write_signal(execution_id(n), kind, body, Timestamp(4)).await.unwrap()
    }

    #[tokio::test]
    async fn a_signal_of_another_process_reaches_the_owner_and_nobody_else() {
        let (folder, store) = new_store();
        create(&store, started(1)).await.durable().await.unwrap();
        let other_process = reopen(&folder);
        let id = write(&other_process, 1, r#"{"by":"the command line"}"#).await;
        let expected = Signal {
            id,
            execution: execution_id(1),
            kind: "cancel".to_owned(),
            body: r#"{"by":"the command line"}"#.to_owned(),
            written_at: Timestamp(4),
        };
        assert_eq!(store.signals_for(ME).unwrap(), [expected]);
        assert_eq!(store.signals_for(owner_id(2)).unwrap(), []);
    }

    #[tokio::test]
    async fn a_signal_is_consumed_by_the_append_that_acts_on_it_and_only_once() {
        let (_folder, store) = new_store();
        create(&store, started(1)).await;
        let id = write(&store, 1, "{}").await;
        let acting = Append { consumes: vec![id], ..append(1, 1, 1) };
        store.append(acting).await.durable().await.unwrap();
        assert_eq!(store.signals_for(ME).unwrap(), []);
        let again = Append { consumes: vec![id], ..append(1, 2, 1) };
        let result = store.append(again).await.durable().await;
        assert!(
            matches!(result, Err(AppendError::SignalConsumed { signal, .. }) if signal == id),
            "{result:?}"
        );
        assert_eq!(store.journal(execution_id(1)).unwrap().len(), 2);
    }

    #[tokio::test]
    async fn a_signal_is_not_consumed_by_an_append_that_is_refused() {
        let (_folder, store) = new_store();
        create(&store, started(1)).await;
        let id = write(&store, 1, "{}").await;
        let stale = Append { consumes: vec![id], ..append(1, 9, 1) };
        assert!(store.append(stale).await.durable().await.is_err());
        assert_eq!(store.signals_for(ME).unwrap().len(), 1);
    }

    #[tokio::test]
    async fn a_signal_that_leads_to_nothing_is_consumed_without_a_record() {
        let (_folder, store) = new_store();
        create(&store, started(1)).await;
        let id = write(&store, 1, "{}").await;
        let nothing = Append { consumes: vec![id], ..append(1, 1, 0) };
        store.append(nothing).await.durable().await.unwrap();
        assert_eq!(store.signals_for(ME).unwrap(), []);
        assert_eq!(store.journal(execution_id(1)).unwrap().len(), 1);
    }

    #[tokio::test]
    async fn a_signal_of_another_execution_cannot_be_consumed() {
        let (_folder, store) = new_store();
        create(&store, started(1)).await;
        create(&store, started(2)).await;
        let id = write(&store, 1, "{}").await;
        let wrong = Append { consumes: vec![id], ..append(2, 1, 1) };
        assert!(store.append(wrong).await.durable().await.is_err());
        assert_eq!(store.signals_for(ME).unwrap().len(), 1);
    }

    #[tokio::test]
    async fn an_unknown_execution_takes_no_signal() {
        let (_folder, store) = new_store();
        let body = RawValue::from_string("{}".to_owned()).unwrap();
        let kind = "cancel".to_owned();
        let result = store.write_signal(execution_id(1), kind, body, Timestamp(4)).await;
        assert!(matches!(result, Err(StoreError::UnknownExecution { .. })), "{result:?}");
    }

    #[tokio::test]
    async fn looking_for_signals_reads_the_waiting_ones_only() {
        let (_folder, store) = new_store();
        create(&store, started(1)).await.durable().await.unwrap();
        let plan: Vec<String> = store
            .read(|conn| {
                let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {WAITING_FOR}"))?;
                let rows = statement.query_map([ME.to_string()], |row| row.get(3))?;
                Ok(rows.collect::<rusqlite::Result<_>>()?)
            })
            .unwrap();
        assert!(plan[0].contains("USING INDEX signal_waiting"), "{plan:?}");
    }
}
