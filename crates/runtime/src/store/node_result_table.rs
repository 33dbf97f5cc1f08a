//! What has become of each node instance: a projection, written with the records it is folded from.

use engine::ids::{ExecutionId, Instance, NodeId, Seq};
use engine::projection::{NodeStatus, NodeSummary, NotRunReason, WaitReason};
use rusqlite::{Connection, Row, params};

use crate::store::column::{instant_if_any, json, json_if_any, named, named_if_any, to_json};
use crate::store::error::StoreError;
use crate::store::{Store, execution_table};

pub(super) const CREATE: &str = "
-- Not WITHOUT ROWID, for the same reason as the records.
CREATE TABLE node_result (
    execution   INTEGER NOT NULL REFERENCES execution (key) ON DELETE CASCADE,
    node        TEXT NOT NULL,
    iteration   TEXT NOT NULL, -- JSON, from the outermost container inwards; [] at the top level
    epoch       INTEGER NOT NULL,
    status      TEXT NOT NULL,
    waiting_for TEXT,
    due_ms      INTEGER,
    attempts    INTEGER NOT NULL,
    reason      TEXT,
    origin      TEXT,
    failure     TEXT,
    started_ms  INTEGER,
    ended_ms    INTEGER,
    decided_seq INTEGER,
    UNIQUE (execution, node, iteration, epoch)
) STRICT;
";

/// The column `iteration` of an instance.
pub(super) fn iteration_text(instance: &Instance) -> String {
    if instance.iteration.is_empty() { "[]".to_owned() } else { to_json(&instance.iteration) }
}

/// The instance of a row that has the columns `node`, `iteration` and `epoch`.
pub(super) fn instance_from(row: &Row<'_>) -> rusqlite::Result<Instance> {
    Ok(Instance {
        node: NodeId::from(row.get::<_, String>("node")?),
        iteration: json(row, "iteration")?,
        epoch: row.get("epoch")?,
    })
}

/// Writes a row in place of the one before it.
pub(super) fn put(conn: &Connection, execution: i64, node: &NodeSummary) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT INTO node_result (execution, node, iteration, epoch, status, waiting_for, due_ms,
             attempts, reason, origin, failure, started_ms, ended_ms, decided_seq)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
         ON CONFLICT DO UPDATE SET status = ?5, waiting_for = ?6, due_ms = ?7, attempts = ?8,
             reason = ?9, origin = ?10, failure = ?11, started_ms = ?12, ended_ms = ?13,
             decided_seq = ?14",
    )?
    .execute(params![
        execution,
        node.instance.node.as_str(),
        iteration_text(&node.instance),
        node.instance.epoch,
        node.status.as_str(),
        node.waiting_for.map(WaitReason::as_str),
        node.due.map(|due| due.0),
        node.attempts,
        node.reason.map(NotRunReason::as_str),
        node.origin.as_ref().map(NodeId::as_str),
        node.failure.as_ref().map(to_json),
        node.started_at.map(|at| at.0),
        node.ended_at.map(|at| at.0),
        node.decided_seq.map(|seq| seq.0 as i64),
    ])?;
    Ok(())
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<NodeSummary> {
    Ok(NodeSummary {
        instance: instance_from(row)?,
        status: named(row, "status", NodeStatus::from_name)?,
        waiting_for: named_if_any(row, "waiting_for", WaitReason::from_name)?,
        due: instant_if_any(row, "due_ms")?,
        attempts: row.get("attempts")?,
        reason: named_if_any(row, "reason", NotRunReason::from_name)?,
        origin: row.get::<_, Option<String>>("origin")?.map(NodeId::from),
        failure: json_if_any(row, "failure")?,
        started_at: instant_if_any(row, "started_ms")?,
        ended_at: instant_if_any(row, "ended_ms")?,
        decided_seq: row.get::<_, Option<i64>>("decided_seq")?.map(|seq| Seq(seq as u64)),
    })
}

fn of_execution(conn: &Connection, execution: i64) -> rusqlite::Result<Vec<NodeSummary>> {
    conn.prepare_cached(
        "SELECT * FROM node_result WHERE execution = ?1 ORDER BY node, iteration, epoch",
    )?
    .query_map([execution], from_row)?
    .collect()
}

impl Store {
    /// The node rows of an execution, by node id; an instance that is pending and was never
    /// queued has none.
    pub fn node_results(&self, execution: ExecutionId) -> Result<Vec<NodeSummary>, StoreError> {
        self.read(|conn| {
            let key = execution_table::key(conn, execution)?
                .ok_or(StoreError::UnknownExecution { execution })?;
            Ok(of_execution(conn, key)?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::execution_table::tests::insert_any;
    use crate::store::schema::tests::empty_database;
    use engine::failure::{Failure, FailureClass};
    use engine::ids::IterationStep;
    use engine::time::Timestamp;

    fn waiting() -> NodeSummary {
        NodeSummary {
            instance: Instance {
                node: "a/[é]".into(),
                iteration: vec![IterationStep { container: "loop".into(), round: 2 }],
                epoch: 1,
            },
            status: NodeStatus::Waiting,
            waiting_for: Some(WaitReason::Retry),
            due: Some(Timestamp(9)),
            attempts: 2,
            reason: None,
            origin: Some("b".into()),
            failure: Some(Failure::new(FailureClass::Network, "refused")),
            started_at: Some(Timestamp(3)),
            ended_at: None,
            decided_seq: None,
        }
    }

    #[test]
    fn a_row_reads_back_as_it_was_written() {
        let conn = empty_database();
        let key = insert_any(&conn, 1);
        put(&conn, key, &waiting()).unwrap();
        assert_eq!(of_execution(&conn, key).unwrap(), [waiting()]);
    }

    #[test]
    fn a_later_row_replaces_every_column_of_the_one_before() {
        let conn = empty_database();
        let key = insert_any(&conn, 1);
        put(&conn, key, &waiting()).unwrap();
        let skipped = NodeSummary {
            status: NodeStatus::Skipped,
            waiting_for: None,
            due: None,
            attempts: 0,
            reason: Some(NotRunReason::AllEdgesDead),
            origin: None,
            failure: None,
            started_at: None,
            ended_at: Some(Timestamp(11)),
            decided_seq: Some(Seq(7)),
            ..waiting()
        };
        put(&conn, key, &skipped).unwrap();
        assert_eq!(of_execution(&conn, key).unwrap(), [skipped]);
    }

    #[test]
    fn a_row_with_an_unknown_spelling_is_damage_and_stays_as_it_is() {
        let conn = empty_database();
        let key = insert_any(&conn, 1);
        put(&conn, key, &waiting()).unwrap();
        conn.execute("UPDATE node_result SET status = 'dreaming'", []).unwrap();
        let error = StoreError::from(of_execution(&conn, key).unwrap_err());
        assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
        assert!(error.to_string().contains("column status holds \"dreaming\""), "{error}");
    }
}
