//! Executions at a glance: a projection, written with the records it is folded from, and who owns
//! each.

use engine::ids::{Digest, ExecutionId, OwnerId, Seq, WorkflowId};
use engine::projection::{ExecutionStatus, ExecutionSummary, WaitReason};
use engine::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::store::Store;
use crate::store::column::{
    instant_if_any, json, json_if_any, named, named_if_any, parsed, parsed_if_any, to_json,
};
use crate::store::create::Idempotency;
use crate::store::error::StoreError;

pub(super) const CREATE: &str = "
CREATE TABLE execution (
    -- AUTOINCREMENT: the key of a deleted execution is never used again, and keys tell the age.
    key             INTEGER PRIMARY KEY AUTOINCREMENT,
    id              TEXT NOT NULL UNIQUE,
    workspace       TEXT NOT NULL,
    workflow        TEXT, -- no reference: history outlives the workflow
    source          TEXT,
    trigger_json    TEXT NOT NULL,
    plan            TEXT NOT NULL REFERENCES plan (digest),
    document        INTEGER NOT NULL REFERENCES blob (key),
    owner           TEXT NOT NULL, -- no reference: a dead owner's row goes, its name stays
    idempotency_key TEXT,
    input           TEXT CHECK ((input IS NULL) = (idempotency_key IS NULL)), -- a digest
    status          TEXT NOT NULL,
    waiting_for     TEXT,
    started_ms      INTEGER NOT NULL,
    ended_ms        INTEGER,
    nodes_total     INTEGER NOT NULL,
    nodes_decided   INTEGER NOT NULL,
    error           TEXT,
    failure         TEXT,
    output_seq      INTEGER,
    is_settled      INTEGER NOT NULL,
    seq             INTEGER NOT NULL
) STRICT;

-- For `by_idempotency_key`: a key names one execution of a workspace.
CREATE UNIQUE INDEX execution_by_idempotency_key ON execution (workspace, idempotency_key)
    WHERE idempotency_key IS NOT NULL;

-- For `page`: one workspace's history, newest first (every index ends in the key).
CREATE INDEX execution_by_workspace ON execution (workspace);

-- For `page` with a status.
CREATE INDEX execution_by_status ON execution (status, workspace);

-- For `page` with a workflow.
CREATE INDEX execution_by_workflow ON execution (workflow);

-- For `owner_table::unsettled_of_others` and the heartbeat: there are few.
CREATE INDEX execution_unsettled ON execution (owner) WHERE NOT is_settled;

-- For `retention::expired`.
CREATE INDEX execution_settled ON execution (ended_ms) WHERE is_settled;

-- For the reference when a plan is removed.
CREATE INDEX execution_by_plan ON execution (plan);

-- For the reference when a blob is removed.
CREATE INDEX execution_by_document ON execution (document);
";

/// How many executions one page holds.
pub const PAGE_ROWS: usize = 50;

/// Which executions a list shows. An absent field does not narrow it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecutionFilter {
    /// Those of one workspace.
    pub workspace: Option<String>,
    /// Those with one status.
    pub status: Option<ExecutionStatus>,
    /// Those of one workflow.
    pub workflow: Option<WorkflowId>,
}

/// Where the next page of a list begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutionCursor(i64);

/// A part of a list of executions, newest first.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutionPage {
    /// At most [`PAGE_ROWS`].
    pub executions: Vec<ExecutionSummary>,
    /// Where to go on, if there is more.
    pub next: Option<ExecutionCursor>,
}

/// What an execution is and what has become of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutionRow {
    /// Folded from its journal.
    pub summary: ExecutionSummary,
    /// The definition as it was drawn when the execution started.
    pub document: Digest,
    /// Who may append to its journal.
    pub owner: OwnerId,
}

/// What is fixed when an execution is created.
pub(super) struct Origin<'a> {
    pub(super) document: i64,
    pub(super) owner: OwnerId,
    pub(super) idempotency: Option<&'a Idempotency>,
}

/// Adds an execution and gives its key.
pub(super) fn insert(
    conn: &Connection,
    origin: &Origin<'_>,
    summary: &ExecutionSummary,
) -> rusqlite::Result<i64> {
    let key = conn
        .prepare_cached(
            "INSERT INTO execution (id, workspace, workflow, source, trigger_json, plan, document,
                 owner, idempotency_key, input, started_ms, nodes_total, status, nodes_decided,
                 is_settled, seq)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, 'pending', 0, 0, 0)",
        )?
        .insert(params![
            summary.id.to_string(),
            summary.workspace,
            summary.workflow.map(|workflow| workflow.to_string()),
            summary.source,
            to_json(&summary.trigger),
            summary.plan.to_string(),
            origin.document,
            origin.owner.to_string(),
            origin.idempotency.map(|idempotency| &idempotency.key),
            origin.idempotency.map(|idempotency| idempotency.input.to_string()),
            summary.started_at.0,
            summary.nodes_total,
        ])?;
    update(conn, key, summary)?;
    Ok(key)
}

/// Writes what has become of an execution.
pub(super) fn update(
    conn: &Connection,
    key: i64,
    summary: &ExecutionSummary,
) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "UPDATE execution SET status = ?2, waiting_for = ?3, ended_ms = ?4, nodes_decided = ?5,
             error = ?6, failure = ?7, output_seq = ?8, is_settled = ?9, seq = ?10
         WHERE key = ?1",
    )?
    .execute(params![
        key,
        summary.status.as_str(),
        summary.waiting_for.map(WaitReason::as_str),
        summary.ended_at.map(|at| at.0),
        summary.nodes_decided,
        summary.error,
        summary.failure.as_ref().map(to_json),
        summary.output_seq.map(|seq| seq.0 as i64),
        summary.is_settled,
        summary.seq.0 as i64,
    ])?;
    Ok(())
}

/// The key of an execution, if it exists.
pub(super) fn key(conn: &Connection, id: ExecutionId) -> rusqlite::Result<Option<i64>> {
    conn.prepare_cached("SELECT key FROM execution WHERE id = ?1")?
        .query_row([id.to_string()], |row| row.get(0))
        .optional()
}

/// The key of an execution, if it exists and is settled.
pub(super) fn settled_key(conn: &Connection, id: ExecutionId) -> rusqlite::Result<Option<i64>> {
    conn.prepare_cached("SELECT key FROM execution WHERE id = ?1 AND is_settled")?
        .query_row([id.to_string()], |row| row.get(0))
        .optional()
}

/// The key and the owner of an execution, if it exists.
pub(super) fn key_and_owner(
    conn: &Connection,
    id: ExecutionId,
) -> rusqlite::Result<Option<(i64, OwnerId)>> {
    conn.prepare_cached("SELECT key, owner FROM execution WHERE id = ?1")?
        .query_row([id.to_string()], |row| Ok((row.get("key")?, parsed(row, "owner")?)))
        .optional()
}

/// The execution that a workspace's key already names: its id, plan, and input.
pub(super) fn by_idempotency_key(
    conn: &Connection,
    workspace: &str,
    key: &str,
) -> rusqlite::Result<Option<(ExecutionId, Digest, Digest)>> {
    conn.prepare_cached(
        "SELECT id, plan, input FROM execution WHERE workspace = ?1 AND idempotency_key = ?2",
    )?
    .query_row([workspace, key], |row| {
        Ok((parsed(row, "id")?, parsed(row, "plan")?, parsed(row, "input")?))
    })
    .optional()
}

fn summary_from(row: &Row<'_>) -> rusqlite::Result<ExecutionSummary> {
    Ok(ExecutionSummary {
        id: parsed(row, "id")?,
        workflow: parsed_if_any(row, "workflow")?,
        workspace: row.get("workspace")?,
        source: row.get("source")?,
        trigger: json(row, "trigger_json")?,
        plan: parsed(row, "plan")?,
        status: named(row, "status", ExecutionStatus::from_name)?,
        waiting_for: named_if_any(row, "waiting_for", WaitReason::from_name)?,
        started_at: Timestamp(row.get("started_ms")?),
        ended_at: instant_if_any(row, "ended_ms")?,
        nodes_total: row.get("nodes_total")?,
        nodes_decided: row.get("nodes_decided")?,
        error: row.get("error")?,
        failure: json_if_any(row, "failure")?,
        output_seq: row.get::<_, Option<i64>>("output_seq")?.map(|seq| Seq(seq as u64)),
        is_settled: row.get("is_settled")?,
        seq: Seq(row.get::<_, i64>("seq")? as u64),
    })
}

fn get(conn: &Connection, id: ExecutionId) -> rusqlite::Result<Option<ExecutionRow>> {
    conn.prepare_cached(
        "SELECT execution.*, blob.digest AS document_digest
         FROM execution JOIN blob ON blob.key = document WHERE id = ?1",
    )?
    .query_row([id.to_string()], |row| {
        Ok(ExecutionRow {
            summary: summary_from(row)?,
            document: parsed(row, "document_digest")?,
            owner: parsed(row, "owner")?,
        })
    })
    .optional()
}

fn page(
    conn: &Connection,
    filter: &ExecutionFilter,
    from: Option<ExecutionCursor>,
) -> rusqlite::Result<ExecutionPage> {
    let mut statement = conn.prepare_cached(&page_sql(filter))?;
    let rows = statement.query_map(
        params![
            from.map_or(i64::MAX, |cursor| cursor.0),
            filter.workspace,
            filter.status.map(ExecutionStatus::as_str),
            filter.workflow.map(|workflow| workflow.to_string()),
            PAGE_ROWS as i64 + 1,
        ],
        |row| Ok((row.get::<_, i64>("key")?, summary_from(row)?)),
    )?;
    let mut rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    let has_more = rows.len() > PAGE_ROWS;
    rows.truncate(PAGE_ROWS);
    let next = rows.last().filter(|_| has_more).map(|(key, _)| ExecutionCursor(*key));
    Ok(ExecutionPage { executions: rows.into_iter().map(|(_, summary)| summary).collect(), next })
}

/// One text per set of conditions, so that each gets the index that was made for it.
fn page_sql(filter: &ExecutionFilter) -> String {
    let workspace = if filter.workspace.is_some() { "workspace = ?2" } else { "?2 IS NULL" };
    let status = if filter.status.is_some() { "status = ?3" } else { "?3 IS NULL" };
    let workflow = if filter.workflow.is_some() { "workflow = ?4" } else { "?4 IS NULL" };
    format!(
        "SELECT * FROM execution WHERE key < ?1 AND {workspace} AND {status} AND {workflow}
         ORDER BY key DESC LIMIT ?5"
    )
}

impl Store {
    /// An execution's row, if it exists.
    pub fn execution(&self, id: ExecutionId) -> Result<Option<ExecutionRow>, StoreError> {
        self.read(|conn| Ok(get(conn, id)?))
    }

    /// A page of executions, newest first: the first, or the one that a cursor names.
    pub fn executions(
        &self,
        filter: &ExecutionFilter,
        from: Option<ExecutionCursor>,
    ) -> Result<ExecutionPage, StoreError> {
        self.read(|conn| Ok(page(conn, filter, from)?))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::store::plan_table::{self, PlanRow};
    use crate::store::schema::tests::empty_database;
    use engine::failure::{Failure, FailureClass};
    use engine::scheduler::event::Trigger;
    use uuid::Uuid;

    /// A summary that says as little as possible.
    pub(in crate::store) fn any_summary(n: u128) -> ExecutionSummary {
        ExecutionSummary {
            id: ExecutionId(Uuid::from_u128(n)),
            workflow: None,
            workspace: "Personal".to_owned(),
            source: None,
            trigger: Trigger::Manual,
            plan: Digest::of(b"plan"),
            status: ExecutionStatus::Running,
            waiting_for: None,
            started_at: Timestamp(1_000),
            ended_at: None,
            nodes_total: 1,
            nodes_decided: 0,
            error: None,
            failure: None,
            output_seq: None,
            is_settled: false,
            seq: Seq(1),
        }
    }

    fn insert_summary(conn: &Connection, summary: &ExecutionSummary) -> i64 {
        let plan = PlanRow {
            digest: summary.plan,
            document: Digest::of(b"{}"),
            compiler_version: 1,
            diagnostics: "[]".to_owned(),
        };
        let document = plan_table::put(conn, &plan, "{}").unwrap();
        let origin = Origin { document, owner: OwnerId(Uuid::nil()), idempotency: None };
        insert(conn, &origin, summary).unwrap()
    }

    /// Adds an execution that a test needs for its references only, and gives its key.
    pub(in crate::store) fn insert_any(conn: &Connection, n: u128) -> i64 {
        insert_summary(conn, &any_summary(n))
    }

    #[test]
    fn a_full_row_reads_back_as_it_was_written() {
        let conn = empty_database();
        let summary = ExecutionSummary {
            workflow: Some(WorkflowId(Uuid::from_u128(77))),
            source: Some("flow.json".to_owned()),
            trigger: Trigger::TestRun,
            status: ExecutionStatus::Failed,
            waiting_for: Some(WaitReason::Lost),
            ended_at: Some(Timestamp(2_000)),
            nodes_decided: 1,
            error: Some("a failed".to_owned()),
            failure: Some(Failure::new(FailureClass::Timeout, "too slow")),
            output_seq: Some(Seq(8)),
            is_settled: true,
            seq: Seq(9),
            ..any_summary(5)
        };
        insert_summary(&conn, &summary);
        let row = get(&conn, summary.id).unwrap().unwrap();
        assert_eq!(row.summary, summary);
        assert_eq!(row.document, Digest::of(b"{}"));
        assert_eq!(get(&conn, ExecutionId(Uuid::nil())).unwrap(), None);
    }

    #[test]
    fn pages_follow_each_other_newest_first_although_executions_are_added_in_between() {
        let conn = empty_database();
        for n in 0..120 {
            insert_any(&conn, n);
        }
        let filter = ExecutionFilter::default();
        let ids = |page: &ExecutionPage| -> Vec<u128> {
            page.executions.iter().map(|summary| summary.id.0.as_u128()).collect()
        };
        let first = page(&conn, &filter, None).unwrap();
        assert_eq!(ids(&first), (70..120).rev().collect::<Vec<_>>());
        insert_any(&conn, 1_000);
        let second = page(&conn, &filter, first.next).unwrap();
        assert_eq!(ids(&second), (20..70).rev().collect::<Vec<_>>());
        let third = page(&conn, &filter, second.next).unwrap();
        assert_eq!(ids(&third), (0..20).rev().collect::<Vec<_>>());
        assert_eq!(third.next, None);
    }

    #[test]
    fn every_filter_narrows_and_uses_its_index() {
        let conn = empty_database();
        let flow = WorkflowId(Uuid::from_u128(7));
        for n in 0..40 {
            insert_summary(
                &conn,
                &ExecutionSummary {
                    workspace: if n % 2 == 0 { "even" } else { "odd" }.to_owned(),
                    workflow: (n % 5 == 0).then_some(flow),
                    status: if n < 10 { ExecutionStatus::Failed } else { ExecutionStatus::Running },
                    ..any_summary(n)
                },
            );
        }
        let workspace = Some("even".to_owned());
        let status = Some(ExecutionStatus::Failed);
        let filter = |workspace, status, workflow| ExecutionFilter { workspace, status, workflow };
        for (filter, n_expected, index) in [
            (filter(workspace.clone(), None, None), 20, "execution_by_workspace"),
            (filter(None, status, None), 10, "execution_by_status"),
            (filter(workspace.clone(), status, None), 5, "execution_by_status"),
            (filter(None, None, Some(flow)), 8, "execution_by_workflow"),
            (filter(workspace, status, Some(flow)), 1, "execution_by_"),
        ] {
            assert_eq!(page(&conn, &filter, None).unwrap().executions.len(), n_expected);
            let sql = page_sql(&filter);
            let plan: String = conn
                .query_row(&format!("EXPLAIN QUERY PLAN {sql}"), [0, 0, 0, 0, 0], |row| row.get(3))
                .unwrap();
            assert!(plan.contains(index), "{filter:?} is read by {plan}");
        }
    }
}
