//! Which versions of the shipped blueprints and agents were put into the library, so that what a
//! person has changed or removed since is left alone.

use engine::ids::{AgentId, Digest, WorkflowId};
use engine::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use crate::store::agent_table::{self, AgentRow};
use crate::store::error::StoreError;
use crate::store::workflow_table::{self, WorkflowContent, WorkflowError};
use crate::store::{Store, column};

pub(super) const CREATE: &str = "
CREATE TABLE shipped (
    name            TEXT PRIMARY KEY, -- the file of a blueprint, the id of an agent
    content_version INTEGER NOT NULL,
    digest          TEXT -- of the agent that was put there
) STRICT, WITHOUT ROWID;
";

/// A blueprint that the program brings along.
#[derive(Clone, Debug)]
pub struct ShippedBlueprint {
    /// Its record, if it becomes a new one.
    pub id: WorkflowId,
    /// What it says; `shipped` is set.
    pub content: WorkflowContent,
}

/// An agent that the program brings along.
#[derive(Clone, Debug)]
pub struct ShippedAgent {
    /// The record.
    pub row: AgentRow,
    /// The version of its content.
    pub content_version: u32,
}

/// What was put into the library under a name.
struct Earlier {
    content_version: u32,
    digest: Option<Digest>,
}

fn earlier(conn: &Connection, name: &str) -> rusqlite::Result<Option<Earlier>> {
    conn.prepare_cached("SELECT content_version, digest FROM shipped WHERE name = ?1")?
        .query_row([name], |row| {
            Ok(Earlier {
                content_version: row.get("content_version")?,
                digest: column::parsed_if_any(row, "digest")?,
            })
        })
        .optional()
}

fn note(
    conn: &Connection,
    name: &str,
    content_version: u32,
    digest: Option<Digest>,
) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT INTO shipped (name, content_version, digest) VALUES (?1, ?2, ?3)
         ON CONFLICT DO UPDATE SET content_version = ?2, digest = ?3",
    )?
    .execute(params![name, content_version, digest.map(|digest| digest.to_string())])?;
    Ok(())
}

fn unload_blueprint(
    conn: &Connection,
    blueprint: &ShippedBlueprint,
    at: Timestamp,
) -> Result<(), StoreError> {
    let content = &blueprint.content;
    let shipped = content.shipped.as_ref().expect("a shipped blueprint says where it came from");
    let earlier = earlier(conn, &shipped.origin)?;
    if earlier.as_ref().is_some_and(|there| there.content_version >= shipped.content_version) {
        return Ok(());
    }
    match (workflow_table::by_origin(conn, &shipped.origin)?, earlier) {
        (Some((id, version)), _) => {
            workflow_table::update(conn, id, version, content, at).map_err(
                |error| match error {
                    WorkflowError::Store(error) => error,
                    WorkflowError::Conflict { .. } | WorkflowError::NotFound { .. } => {
                        unreachable!("the row was read in the same transaction")
                    }
                },
            )?;
        }
        (None, None) => workflow_table::insert(conn, blueprint.id, content, at)?,
        // A person removed it, or made it their own.
        (None, Some(_)) => {}
    }
    Ok(note(conn, &shipped.origin, shipped.content_version, None)?)
}

fn unload_agent(conn: &Connection, agent: &ShippedAgent) -> Result<(), StoreError> {
    let id: &AgentId = &agent.row.id;
    let earlier = earlier(conn, id.as_str())?;
    if earlier.as_ref().is_some_and(|there| there.content_version >= agent.content_version) {
        return Ok(());
    }
    let there = agent_table::get(conn, id)?.map(|row| row.digest);
    // Otherwise a person removed it, or has one of their own under this id.
    if there == earlier.and_then(|earlier| earlier.digest) {
        agent_table::put(conn, &agent.row)?;
    }
    Ok(note(conn, id.as_str(), agent.content_version, Some(agent.row.digest))?)
}

impl Store {
    /// Whether each of these contents, by name and version, was put into the library before.
    pub fn has_shipped<'a>(
        &self,
        mut contents: impl Iterator<Item = (&'a str, u32)>,
    ) -> Result<bool, StoreError> {
        self.read(|conn| {
            contents.try_fold(true, |all, (name, version)| {
                let there = earlier(conn, name)?;
                Ok(all && there.is_some_and(|there| there.content_version >= version))
            })
        })
    }

    /// Puts what the program brings along into the library, in one transaction.
    pub async fn unload(
        &self,
        blueprints: Vec<ShippedBlueprint>,
        agents: Vec<ShippedAgent>,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        self.write(move |conn| {
            blueprints.iter().try_for_each(|blueprint| unload_blueprint(conn, blueprint, at))?;
            agents.iter().try_for_each(|agent| unload_agent(conn, agent))
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::schema::tests::empty_database;
    use crate::store::workflow_table::{Shipped, WorkflowStatus};
    use uuid::Uuid;

    fn blueprint(n: u128, content_version: u32) -> ShippedBlueprint {
        ShippedBlueprint {
            id: WorkflowId(Uuid::from_u128(n)),
            content: WorkflowContent {
                workspace: String::new(),
                name: format!("version {content_version}"),
                status: WorkflowStatus::Draft,
                is_blueprint: true,
                published: None,
                publishes: None,
                shipped: Some(Shipped { origin: "a.json".to_owned(), content_version }),
                definition: "{}".to_owned(),
            },
        }
    }

    fn agent(text: &str, content_version: u32) -> ShippedAgent {
        let row = AgentRow {
            id: "a".into(),
            digest: Digest::of(text.as_bytes()),
            updated_at: Timestamp(0),
            body: text.to_owned(),
        };
        ShippedAgent { row, content_version }
    }

    fn names(conn: &Connection) -> Vec<String> {
        let mut statement = conn.prepare("SELECT name FROM workflow ORDER BY name").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn a_blueprint_is_added_once_and_follows_its_newer_versions() {
        let conn = empty_database();
        for (n, version) in [(1, 1), (2, 1), (3, 2), (4, 1)] {
            unload_blueprint(&conn, &blueprint(n, version), Timestamp(5)).unwrap();
        }
        assert_eq!(names(&conn), ["version 2"]);
        let id = WorkflowId(Uuid::from_u128(1));
        assert_eq!(workflow_table::by_origin(&conn, "a.json").unwrap(), Some((id, 2)));
    }

    #[test]
    fn a_blueprint_that_a_person_changed_or_removed_is_left_alone() {
        let conn = empty_database();
        unload_blueprint(&conn, &blueprint(1, 1), Timestamp(5)).unwrap();
        let own =
            WorkflowContent { shipped: None, name: "own".to_owned(), ..blueprint(1, 1).content };
        let id = WorkflowId(Uuid::from_u128(1));
        workflow_table::update(&conn, id, 1, &own, Timestamp(6)).unwrap();
        unload_blueprint(&conn, &blueprint(2, 2), Timestamp(7)).unwrap();
        assert_eq!(names(&conn), ["own"]);
        conn.execute("DELETE FROM workflow", []).unwrap();
        unload_blueprint(&conn, &blueprint(3, 3), Timestamp(8)).unwrap();
        assert!(names(&conn).is_empty());
    }

    #[test]
    fn an_agent_follows_its_newer_versions_until_a_person_changes_it() {
        let conn = empty_database();
        let body = || agent_table::get(&conn, &"a".into()).unwrap().map(|row| row.body);
        unload_agent(&conn, &agent("one", 1)).unwrap();
        unload_agent(&conn, &agent("two", 2)).unwrap();
        assert_eq!(body().as_deref(), Some("two"));
        agent_table::put(&conn, &agent("own", 0).row).unwrap();
        unload_agent(&conn, &agent("three", 3)).unwrap();
        assert_eq!(body().as_deref(), Some("own"));
        unload_agent(&conn, &agent("four", 4)).unwrap();
        assert_eq!(body().as_deref(), Some("own"));
    }

    #[test]
    fn an_agent_that_a_person_has_already_is_not_replaced() {
        let conn = empty_database();
        agent_table::put(&conn, &agent("own", 0).row).unwrap();
        unload_agent(&conn, &agent("one", 1)).unwrap();
        let row = agent_table::get(&conn, &"a".into()).unwrap().unwrap();
        assert_eq!(row.body, "own");
    }
}
