//! Workflows and blueprints: what people edit.

use std::collections::BTreeSet;

use engine::ids::{Digest, WorkflowId};
use engine::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::store::column::{named, parsed, parsed_if_any};
use crate::store::error::StoreError;
use crate::store::plan_table::{self, PlanRow};
use crate::store::{Store, blob_table};

pub(super) const CREATE: &str = "
CREATE TABLE workflow (
    id                 TEXT PRIMARY KEY,
    workspace          TEXT NOT NULL,
    name               TEXT NOT NULL,
    status             TEXT NOT NULL,
    is_blueprint       INTEGER NOT NULL,
    version            INTEGER NOT NULL, -- counts the changes
    published_plan     TEXT REFERENCES plan (digest),
    published_document INTEGER REFERENCES blob (key),
    origin             TEXT, -- the shipped file it came from
    content_version    INTEGER CHECK ((content_version IS NULL) = (origin IS NULL)),
    created_ms         INTEGER NOT NULL,
    updated_ms         INTEGER NOT NULL,
    definition         TEXT NOT NULL, -- last, so that lists need not read past it
    CHECK ((published_plan IS NULL) = (published_document IS NULL))
) STRICT;

-- For `list` and `names_taken` of one workspace.
CREATE INDEX workflow_by_workspace ON workflow (workspace, updated_ms);

-- For `list` of the blueprints, which all workspaces share.
CREATE INDEX workflow_by_kind ON workflow (is_blueprint, updated_ms);

-- For `by_origin`.
CREATE UNIQUE INDEX workflow_by_origin ON workflow (origin) WHERE origin IS NOT NULL;

-- For the reference when a plan is removed.
CREATE INDEX workflow_by_plan ON workflow (published_plan);

-- For the reference when a blob is removed.
CREATE INDEX workflow_by_document ON workflow (published_document);
";

/// Whether a workflow can be run as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkflowStatus {
    /// Only test runs.
    Draft,
    /// It has a published version.
    Published,
}

impl WorkflowStatus {
    /// The spelling in rows, files and events.
    pub fn as_str(self) -> &'static str {
        match self {
            WorkflowStatus::Draft => "DRAFT",
            WorkflowStatus::Published => "PUBLISHED",
        }
    }

    /// The status of this spelling, if it is one.
    pub fn from_name(name: &str) -> Option<WorkflowStatus> {
        [WorkflowStatus::Draft, WorkflowStatus::Published].into_iter().find(|s| s.as_str() == name)
    }
}

/// What a published version consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// The plan that runs.
    pub plan: Digest,
    /// The definition as it was drawn when it was published.
    pub document: Digest,
}

/// Which shipped file a blueprint came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shipped {
    /// The file's name.
    pub origin: String,
    /// The version of the file's content.
    pub content_version: u32,
}

/// Everything about a workflow but its definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkflowHeader {
    /// Names it.
    pub id: WorkflowId,
    /// The workspace it belongs to.
    pub workspace: String,
    /// For people.
    pub name: String,
    /// Whether it can be run as it is.
    pub status: WorkflowStatus,
    /// Whether it is a template for others.
    pub is_blueprint: bool,
    /// Counts the changes, from 1; a change names the version that it changes.
    pub version: u64,
    /// What runs, if it was published.
    pub published: Option<Published>,
    /// Where it came from, if it was shipped.
    pub shipped: Option<Shipped>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// A workflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkflowRecord {
    /// Everything but the definition.
    pub header: WorkflowHeader,
    /// The definition's text.
    pub definition: String,
}

/// What a workflow should say after a change, or from the beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkflowContent {
    /// The workspace it belongs to.
    pub workspace: String,
    /// For people.
    pub name: String,
    /// Whether it can be run as it is.
    pub status: WorkflowStatus,
    /// Whether it is a template for others.
    pub is_blueprint: bool,
    /// What runs, if it was published. Its plan and its document are stored already, or are those
    /// of `publishes`.
    pub published: Option<Published>,
    /// The plan that the change publishes, with the definition's text.
    pub publishes: Option<(PlanRow, String)>,
    /// Where it came from, if it was shipped.
    pub shipped: Option<Shipped>,
    /// The definition's text.
    pub definition: String,
}

/// Which workflows a list shows. An absent field does not narrow it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkflowFilter {
    /// Those of one workspace.
    pub workspace: Option<String>,
    /// Those with one status.
    pub status: Option<WorkflowStatus>,
    /// Only blueprints, or only workflows.
    pub is_blueprint: Option<bool>,
}

/// Why a workflow was not changed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WorkflowError {
    /// Somebody else changed it first. Nothing was written.
    #[error("Conflict: workflow was modified concurrently. Please retry.")]
    Conflict {
        /// Which.
        id: WorkflowId,
        /// The version that the change was made on.
        expected: u64,
        /// The version that there is.
        actual: u64,
    },
    /// It was deleted, or never existed.
    #[error("Workflow not found")]
    NotFound {
        /// Which.
        id: WorkflowId,
    },
    /// The store could not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<rusqlite::Error> for WorkflowError {
    fn from(error: rusqlite::Error) -> Self {
        WorkflowError::Store(error.into())
    }
}

const HEADER: &str = "SELECT workflow.id, workspace, name, status, is_blueprint, version,
         published_plan, blob.digest AS published_document_digest, origin, content_version,
         created_ms, updated_ms
     FROM workflow LEFT JOIN blob ON blob.key = published_document";

fn header_from(row: &Row<'_>) -> rusqlite::Result<WorkflowHeader> {
    let plan = parsed_if_any(row, "published_plan")?;
    let document = parsed_if_any(row, "published_document_digest")?;
    let origin: Option<String> = row.get("origin")?;
    let content_version: Option<u32> = row.get("content_version")?;
    Ok(WorkflowHeader {
        id: parsed(row, "id")?,
        workspace: row.get("workspace")?,
        name: row.get("name")?,
        status: named(row, "status", WorkflowStatus::from_name)?,
        is_blueprint: row.get("is_blueprint")?,
        version: row.get::<_, i64>("version")? as u64,
        published: plan.zip(document).map(|(plan, document)| Published { plan, document }),
        shipped: origin
            .zip(content_version)
            .map(|(origin, content_version)| Shipped { origin, content_version }),
        created_at: Timestamp(row.get("created_ms")?),
        updated_at: Timestamp(row.get("updated_ms")?),
    })
}

fn header(conn: &Connection, id: WorkflowId) -> rusqlite::Result<Option<WorkflowHeader>> {
    conn.prepare_cached(&format!("{HEADER} WHERE workflow.id = ?1"))?
        .query_row([id.to_string()], header_from)
        .optional()
}

fn get(conn: &Connection, id: WorkflowId) -> rusqlite::Result<Option<WorkflowRecord>> {
    let Some(header) = header(conn, id)? else { return Ok(None) };
    let definition = conn
        .prepare_cached("SELECT definition FROM workflow WHERE id = ?1")?
        .query_row([id.to_string()], |row| row.get(0))?;
    Ok(Some(WorkflowRecord { header, definition }))
}

/// The blueprint that came from a shipped file and still is as it was shipped, with its version.
pub(super) fn by_origin(
    conn: &Connection,
    origin: &str,
) -> rusqlite::Result<Option<(WorkflowId, u64)>> {
    conn.prepare_cached("SELECT id, version FROM workflow WHERE origin = ?1")?
        .query_row([origin], |row| Ok((parsed(row, "id")?, row.get::<_, i64>("version")? as u64)))
        .optional()
}

fn list(conn: &Connection, filter: &WorkflowFilter) -> rusqlite::Result<Vec<WorkflowHeader>> {
    conn.prepare_cached(&list_sql(filter))?
        .query_map(
            params![
                filter.workspace,
                filter.status.map(WorkflowStatus::as_str),
                filter.is_blueprint
            ],
            header_from,
        )?
        .collect()
}

/// One text per set of conditions, so that each gets the index that was made for it.
fn list_sql(filter: &WorkflowFilter) -> String {
    let workspace = if filter.workspace.is_some() { "workspace = ?1" } else { "?1 IS NULL" };
    let status = if filter.status.is_some() { "status = ?2" } else { "?2 IS NULL" };
    let kind = if filter.is_blueprint.is_some() { "is_blueprint = ?3" } else { "?3 IS NULL" };
    format!("{HEADER} WHERE {workspace} AND {status} AND {kind} ORDER BY updated_ms DESC, id DESC")
}

fn names_taken(conn: &Connection, workspace: &str) -> rusqlite::Result<BTreeSet<String>> {
    conn.prepare_cached("SELECT name FROM workflow WHERE workspace = ?1")?
        .query_map([workspace], |row| row.get(0))?
        .collect()
}

/// The published document's key. What is published now is stored first.
fn published_document(
    conn: &Connection,
    content: &WorkflowContent,
) -> Result<Option<i64>, StoreError> {
    if let Some((plan, document)) = &content.publishes {
        plan_table::put(conn, plan, document)?;
    }
    let Some(published) = content.published else { return Ok(None) };
    let key = blob_table::key(conn, published.document)?;
    key.map(Some).ok_or_else(|| StoreError::Damaged {
        what: format!("the published definition {} is missing", published.document),
    })
}

/// Adds a workflow, at version 1.
pub(super) fn insert(
    conn: &Connection,
    id: WorkflowId,
    content: &WorkflowContent,
    at: Timestamp,
) -> Result<(), StoreError> {
    conn.prepare_cached(
        "INSERT INTO workflow (id, workspace, name, status, is_blueprint, version, published_plan,
             published_document, origin, content_version, created_ms, updated_ms, definition)
         VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6, ?7, ?8, ?9, ?10, ?10, ?11)",
    )?
    .execute(params![
        id.to_string(),
        content.workspace,
        content.name,
        content.status.as_str(),
        content.is_blueprint,
        content.published.map(|published| published.plan.to_string()),
        published_document(conn, content)?,
        content.shipped.as_ref().map(|shipped| &shipped.origin),
        content.shipped.as_ref().map(|shipped| shipped.content_version),
        at.0,
        content.definition,
    ])?;
    Ok(())
}

/// Fails unless the workflow is at the version that a change was made on.
fn expect_version(conn: &Connection, id: WorkflowId, expected: u64) -> Result<(), WorkflowError> {
    let header = header(conn, id)?.ok_or(WorkflowError::NotFound { id })?;
    if header.version != expected {
        return Err(WorkflowError::Conflict { id, expected, actual: header.version });
    }
    Ok(())
}

/// Changes a workflow that is still at version `expected`, and gives its new version.
pub(super) fn update(
    conn: &Connection,
    id: WorkflowId,
    expected: u64,
    content: &WorkflowContent,
    at: Timestamp,
) -> Result<u64, WorkflowError> {
    expect_version(conn, id, expected)?;
    conn.prepare_cached(
        "UPDATE workflow SET workspace = ?2, name = ?3, status = ?4, is_blueprint = ?5,
             version = version + 1, published_plan = ?6, published_document = ?7, origin = ?8,
             content_version = ?9, updated_ms = ?10, definition = ?11
         WHERE id = ?1",
    )?
    .execute(params![
        id.to_string(),
        content.workspace,
        content.name,
        content.status.as_str(),
        content.is_blueprint,
        content.published.map(|published| published.plan.to_string()),
        published_document(conn, content)?,
        content.shipped.as_ref().map(|shipped| &shipped.origin),
        content.shipped.as_ref().map(|shipped| shipped.content_version),
        at.0,
        content.definition,
    ])?;
    Ok(expected + 1)
}

fn delete(conn: &Connection, id: WorkflowId, expected: u64) -> Result<(), WorkflowError> {
    expect_version(conn, id, expected)?;
    conn.prepare_cached("DELETE FROM workflow WHERE id = ?1")?.execute([id.to_string()])?;
    Ok(())
}

impl Store {
    /// Adds a workflow, at version 1.
    pub async fn create_workflow(
        &self,
        id: WorkflowId,
        content: WorkflowContent,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        self.write(move |conn| insert(conn, id, &content, at)).await
    }

    /// Adds workflows to a workspace, at version 1, all or none. `make` is told which names the
    /// workspace's workflows have, and may be called again.
    pub async fn create_workflows(
        &self,
        workspace: String,
        mut make: impl FnMut(&BTreeSet<String>) -> Vec<(WorkflowId, WorkflowContent)> + Send + 'static,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        self.write(move |conn| {
            let made = make(&names_taken(conn, &workspace)?);
            made.iter().try_for_each(|(id, content)| insert(conn, *id, content, at))
        })
        .await
    }

    /// Changes a workflow that is still at version `expected`, and gives its new version.
    pub async fn update_workflow(
        &self,
        id: WorkflowId,
        expected: u64,
        content: WorkflowContent,
        at: Timestamp,
    ) -> Result<u64, WorkflowError> {
        self.write(move |conn| update(conn, id, expected, &content, at)).await
    }

    /// Removes a workflow that is still at version `expected`. Its executions stay.
    pub async fn delete_workflow(
        &self,
        id: WorkflowId,
        expected: u64,
    ) -> Result<(), WorkflowError> {
        self.write(move |conn| delete(conn, id, expected)).await
    }

    /// A workflow, if it exists.
    pub fn workflow(&self, id: WorkflowId) -> Result<Option<WorkflowRecord>, StoreError> {
        self.read(|conn| Ok(get(conn, id)?))
    }

    /// Workflows without their definitions, the last changed first.
    pub fn workflows(&self, filter: &WorkflowFilter) -> Result<Vec<WorkflowHeader>, StoreError> {
        self.read(|conn| Ok(list(conn, filter)?))
    }

    /// The names that the workflows of a workspace have.
    pub fn workflow_names(&self, workspace: &str) -> Result<BTreeSet<String>, StoreError> {
        self.read(|conn| Ok(names_taken(conn, workspace)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::fixture::{new_store, reopen};
    use crate::store::schema::tests::empty_database;
    use uuid::Uuid;

    fn id(n: u128) -> WorkflowId {
        WorkflowId(Uuid::from_u128(n))
    }

    fn draft(name: &str) -> WorkflowContent {
        WorkflowContent {
            workspace: "Personal".to_owned(),
            name: name.to_owned(),
            status: WorkflowStatus::Draft,
            is_blueprint: false,
            published: None,
            publishes: None,
            shipped: None,
            definition: format!("{{\"name\": {name:?}}}"),
        }
    }

    fn published(name: &str) -> WorkflowContent {
        let draft = draft(name);
        let row = PlanRow {
            digest: Digest::of(b"plan"),
            document: Digest::of(draft.definition.as_bytes()),
            compiler_version: 1,
            diagnostics: "[]".to_owned(),
        };
        WorkflowContent {
            status: WorkflowStatus::Published,
            published: Some(Published { plan: row.digest, document: row.document }),
            publishes: Some((row, draft.definition.clone())),
            ..draft
        }
    }

    #[tokio::test]
    async fn a_workflow_reads_back_as_it_was_written() {
        let (folder, store) = new_store();
        let content = WorkflowContent {
            is_blueprint: true,
            shipped: Some(Shipped { origin: "echo.json".to_owned(), content_version: 3 }),
            ..published("Échö")
        };
        store.create_workflow(id(1), content.clone(), Timestamp(5)).await.unwrap();
        let record = reopen(&folder).workflow(id(1)).unwrap().unwrap();
        let header = WorkflowHeader {
            id: id(1),
            workspace: content.workspace,
            name: content.name,
            status: WorkflowStatus::Published,
            is_blueprint: true,
            version: 1,
            published: content.published,
            shipped: content.shipped,
            created_at: Timestamp(5),
            updated_at: Timestamp(5),
        };
        assert_eq!(record, WorkflowRecord { header, definition: content.definition.clone() });
        let document = content.published.unwrap().document;
        assert_eq!(store.text(document).unwrap(), content.definition);
        assert_eq!(store.workflow(id(2)).unwrap(), None);
    }

    #[tokio::test]
    async fn several_workflows_are_added_together_or_not_at_all() {
        let (_folder, store) = new_store();
        store.create_workflow(id(1), draft("a"), Timestamp(5)).await.unwrap();
        let seen = |names: &BTreeSet<String>| format!("after {names:?}");
        let make =
            move |names: &BTreeSet<String>| vec![(id(2), draft(&seen(names))), (id(3), draft("c"))];
        store.create_workflows("Personal".to_owned(), make, Timestamp(6)).await.unwrap();
        let second = store.workflow(id(2)).unwrap().unwrap();
        assert_eq!(second.header.name, "after {\"a\"}");
        let make = |_: &BTreeSet<String>| vec![(id(4), draft("d")), (id(3), draft("again"))];
        store.create_workflows("Personal".to_owned(), make, Timestamp(7)).await.unwrap_err();
        assert_eq!(store.workflow(id(4)).unwrap(), None);
    }

    #[tokio::test]
    async fn a_change_made_on_an_older_version_is_a_conflict_and_writes_nothing() {
        let (_folder, store) = new_store();
        store.create_workflow(id(1), draft("a"), Timestamp(5)).await.unwrap();
        let version = store.update_workflow(id(1), 1, draft("b"), Timestamp(6)).await.unwrap();
        assert_eq!(version, 2);
        let late = store.update_workflow(id(1), 1, published("c"), Timestamp(7)).await.unwrap_err();
        assert!(matches!(late, WorkflowError::Conflict { expected: 1, actual: 2, .. }), "{late:?}");
        assert_eq!(late.to_string(), "Conflict: workflow was modified concurrently. Please retry.");
        let record = store.workflow(id(1)).unwrap().unwrap();
        assert_eq!((record.header.name.as_str(), record.header.version), ("b", 2));
        assert_eq!(
            (record.header.created_at, record.header.updated_at),
            (Timestamp(5), Timestamp(6))
        );
        assert_eq!(store.plan(Digest::of(b"plan")).unwrap(), None);
    }

    #[tokio::test]
    async fn of_two_windows_that_save_at_once_one_wins() {
        let (folder, store) = new_store();
        store.create_workflow(id(1), draft("a"), Timestamp(5)).await.unwrap();
        let other = reopen(&folder);
        let saves = (0..20).map(|n| {
            let store = if n % 2 == 0 { store.clone() } else { other.clone() };
            tokio::spawn(async move {
                store.update_workflow(id(1), 1, draft(&format!("save {n}")), Timestamp(6)).await
            })
        });
        let mut n_saved = 0;
        for save in saves.collect::<Vec<_>>() {
            n_saved += usize::from(save.await.unwrap().is_ok());
        }
        assert_eq!(n_saved, 1);
    }

    #[tokio::test]
    async fn a_workflow_that_is_not_there_can_be_neither_changed_nor_deleted() {
        let (_folder, store) = new_store();
        let change = store.update_workflow(id(1), 1, draft("a"), Timestamp(5)).await.unwrap_err();
        assert!(matches!(change, WorkflowError::NotFound { .. }), "{change:?}");
        assert_eq!(change.to_string(), "Workflow not found");
        let delete = store.delete_workflow(id(1), 1).await.unwrap_err();
        assert!(matches!(delete, WorkflowError::NotFound { .. }), "{delete:?}");
    }

    #[tokio::test]
    async fn a_delete_names_the_version_it_deletes() {
        let (_folder, store) = new_store();
        store.create_workflow(id(1), draft("a"), Timestamp(5)).await.unwrap();
        let other = store.delete_workflow(id(1), 2).await.unwrap_err();
        assert!(matches!(other, WorkflowError::Conflict { .. }), "{other:?}");
        store.delete_workflow(id(1), 1).await.unwrap();
        assert_eq!(store.workflow(id(1)).unwrap(), None);
    }

    #[tokio::test]
    async fn what_was_published_stays_while_the_draft_changes() {
        let (_folder, store) = new_store();
        let first = published("a");
        store.create_workflow(id(1), first.clone(), Timestamp(5)).await.unwrap();
        let edited = WorkflowContent {
            definition: "{\"name\": \"edited\"}".to_owned(),
            publishes: None,
            ..first.clone()
        };
        store.update_workflow(id(1), 1, edited.clone(), Timestamp(6)).await.unwrap();
        let record = store.workflow(id(1)).unwrap().unwrap();
        assert_eq!(record.definition, edited.definition);
        let document = record.header.published.unwrap().document;
        assert_eq!(store.text(document).unwrap(), first.definition);
    }

    #[test]
    fn lists_are_narrowed_by_each_filter_and_the_last_changed_comes_first() {
        let conn = empty_database();
        for (n, workspace, status, is_blueprint) in [
            (1, "Personal", WorkflowStatus::Draft, false),
            (2, "Personal", WorkflowStatus::Published, true),
            (3, "Team", WorkflowStatus::Published, false),
            (4, "Team", WorkflowStatus::Draft, true),
        ] {
            let content = WorkflowContent {
                workspace: workspace.to_owned(),
                status,
                is_blueprint,
                ..draft(&format!("w{n}"))
            };
            insert(&conn, id(n), &content, Timestamp(100 - n as i64)).unwrap();
        }
        update(&conn, id(4), 1, &draft("w4"), Timestamp(200)).unwrap();
        let names = |workspace: Option<&str>, status, is_blueprint| -> Vec<String> {
            let workspace = workspace.map(str::to_owned);
            let filter = WorkflowFilter { workspace, status, is_blueprint };
            list(&conn, &filter).unwrap().into_iter().map(|header| header.name).collect()
        };
        assert_eq!(names(None, None, None), ["w4", "w1", "w2", "w3"]);
        assert_eq!(names(Some("Personal"), None, None), ["w4", "w1", "w2"]);
        assert_eq!(names(None, Some(WorkflowStatus::Published), None), ["w2", "w3"]);
        assert_eq!(names(None, None, Some(true)), ["w2"]);
        assert_eq!(names(Some("Team"), Some(WorkflowStatus::Published), Some(false)), ["w3"]);
        assert_eq!(names_taken(&conn, "Team").unwrap(), BTreeSet::from(["w3".to_owned()]));
    }

    #[test]
    fn lists_are_read_in_order_by_the_index_made_for_them() {
        let conn = empty_database();
        let workspace = || Some("Personal".to_owned());
        for (filter, index) in [
            (WorkflowFilter { workspace: workspace(), ..Default::default() }, "by_workspace"),
            (WorkflowFilter { is_blueprint: Some(true), ..Default::default() }, "by_kind"),
        ] {
            let sql = format!("EXPLAIN QUERY PLAN {}", list_sql(&filter));
            let plan: String = conn.query_row(&sql, [0, 0, 0], |row| row.get(3)).unwrap();
            assert!(plan.contains(&format!("workflow_{index}")), "{filter:?} is read by {plan}");
        }
    }
}
