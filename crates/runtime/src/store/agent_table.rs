//! The agents of this machine.

use engine::ids::{AgentId, Digest};
use engine::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::store::Store;
use crate::store::column::parsed;
use crate::store::error::StoreError;

pub(super) const CREATE: &str = "
CREATE TABLE agent (
    id         TEXT PRIMARY KEY,
    digest     TEXT NOT NULL CHECK (length(digest) = 64),
    updated_ms INTEGER NOT NULL,
    body       TEXT NOT NULL
) STRICT;
";

/// An agent record as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentRow {
    /// Names it.
    pub id: AgentId,
    /// The digest of the record.
    pub digest: Digest,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// The record as JSON.
    pub body: String,
}

/// Adds an agent, or replaces the one of the same id.
pub(super) fn put(conn: &Connection, agent: &AgentRow) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT INTO agent (id, digest, updated_ms, body) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT DO UPDATE SET digest = ?2, updated_ms = ?3, body = ?4",
    )?
    .execute(params![
        agent.id.as_str(),
        agent.digest.to_string(),
        agent.updated_at.0,
        agent.body
    ])?;
    Ok(())
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<AgentRow> {
    Ok(AgentRow {
        id: AgentId::from(row.get::<_, String>("id")?),
        digest: parsed(row, "digest")?,
        updated_at: Timestamp(row.get("updated_ms")?),
        body: row.get("body")?,
    })
}

/// An agent, if it exists.
pub(super) fn get(conn: &Connection, id: &AgentId) -> rusqlite::Result<Option<AgentRow>> {
    conn.prepare_cached("SELECT * FROM agent WHERE id = ?1")?
        .query_row([id.as_str()], from_row)
        .optional()
}

fn all(conn: &Connection) -> rusqlite::Result<Vec<AgentRow>> {
    conn.prepare_cached("SELECT * FROM agent ORDER BY id")?.query_map([], from_row)?.collect()
}

fn remove(conn: &Connection, id: &AgentId) -> rusqlite::Result<bool> {
    let n_rows = conn.prepare_cached("DELETE FROM agent WHERE id = ?1")?.execute([id.as_str()])?;
    Ok(n_rows == 1)
}

impl Store {
    /// Adds agents, or replaces those of the same ids; all or none.
    pub async fn put_agents(&self, agents: Vec<AgentRow>) -> Result<(), StoreError> {
        self.write(move |conn| {
            agents.iter().try_for_each(|agent| Ok::<_, StoreError>(put(conn, agent)?))
        })
        .await
    }

    /// Removes an agent. Gives whether there was one.
    pub async fn remove_agent(&self, id: AgentId) -> Result<bool, StoreError> {
        self.write(move |conn| Ok(remove(conn, &id)?)).await
    }

    /// An agent, if it exists.
    pub fn agent(&self, id: &AgentId) -> Result<Option<AgentRow>, StoreError> {
        self.read(|conn| Ok(get(conn, id)?))
    }

    /// All agents, by id.
    pub fn agents(&self) -> Result<Vec<AgentRow>, StoreError> {
        self.read(|conn| Ok(all(conn)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::schema::tests::empty_database;

    fn agent(id: &str, body: &str, at: i64) -> AgentRow {
        AgentRow {
            id: id.into(),
            digest: Digest::of(body.as_bytes()),
            updated_at: Timestamp(at),
            body: body.to_owned(),
        }
    }

    #[test]
    fn an_agent_is_replaced_by_the_next_of_its_id() {
        let conn = empty_database();
        put(&conn, &agent("b", "{\"n\":1}", 1)).unwrap();
        put(&conn, &agent("a", "{}", 2)).unwrap();
        put(&conn, &agent("b", "{\"n\":2}", 3)).unwrap();
        assert_eq!(all(&conn).unwrap(), [agent("a", "{}", 2), agent("b", "{\"n\":2}", 3)]);
        assert_eq!(get(&conn, &"b".into()).unwrap(), Some(agent("b", "{\"n\":2}", 3)));
    }

    #[test]
    fn an_agent_that_is_removed_is_gone_and_removing_it_again_says_so() {
        let conn = empty_database();
        put(&conn, &agent("a", "{}", 1)).unwrap();
        assert!(remove(&conn, &"a".into()).unwrap());
        assert_eq!(get(&conn, &"a".into()).unwrap(), None);
        assert!(!remove(&conn, &"a".into()).unwrap());
    }
}
