//! Process starts that may own executions.

use engine::ids::{ExecutionId, OwnerId};
use engine::time::Timestamp;
use rusqlite::{Connection, Row, params};

use crate::store::column::{instant_if_any, parsed};

pub(super) const CREATE: &str = "
CREATE TABLE owner (
    id           TEXT PRIMARY KEY,
    program      TEXT NOT NULL, -- for people
    process      INTEGER NOT NULL, -- for people
    started_ms   INTEGER NOT NULL,
    heartbeat_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
";

/// An execution that is not settled, and when somebody last worked on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsettled {
    /// Which.
    pub execution: ExecutionId,
    /// Whose it is.
    pub owner: OwnerId,
    /// The owner's last heartbeat, or the last record where that is later.
    pub last_seen: Timestamp,
}

pub(super) fn insert(
    conn: &Connection,
    owner: OwnerId,
    program: &str,
    at: Timestamp,
) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT INTO owner (id, program, process, started_ms, heartbeat_ms)
         VALUES (?1, ?2, ?3, ?4, ?4)",
    )?
    .execute(params![owner.to_string(), program, std::process::id(), at.0])?;
    Ok(())
}

/// Notes that an owner lives, unless it owns nothing that anybody could miss.
pub(super) fn beat(conn: &Connection, owner: OwnerId, at: Timestamp) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "UPDATE owner SET heartbeat_ms = ?2 WHERE id = ?1
             AND EXISTS (SELECT 1 FROM execution WHERE owner = ?1 AND NOT is_settled)",
    )?
    .execute(params![owner.to_string(), at.0])?;
    Ok(())
}

/// All owners but one.
pub(super) fn others(conn: &Connection, me: OwnerId) -> rusqlite::Result<Vec<OwnerId>> {
    conn.prepare_cached("SELECT id FROM owner WHERE id <> ?1")?
        .query_map([me.to_string()], |row| parsed(row, "id"))?
        .collect()
}

/// Removes the row of an owner that has no unsettled execution left.
pub(super) fn remove_if_idle(conn: &Connection, owner: OwnerId) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "DELETE FROM owner WHERE id = ?1
             AND NOT EXISTS (SELECT 1 FROM execution WHERE owner = ?1 AND NOT is_settled)",
    )?
    .execute([owner.to_string()])?;
    Ok(())
}

/// Every execution that is not settled and belongs to somebody else, oldest first.
pub(super) fn unsettled_of_others(
    conn: &Connection,
    me: OwnerId,
) -> rusqlite::Result<Vec<Unsettled>> {
    conn.prepare_cached(
        "SELECT execution.id, execution.owner, execution.started_ms, owner.heartbeat_ms,
             (SELECT at_ms FROM record WHERE record.execution = execution.key
              ORDER BY seq DESC LIMIT 1) AS recorded_ms
         FROM execution LEFT JOIN owner ON owner.id = execution.owner
         WHERE NOT is_settled AND execution.owner <> ?1 ORDER BY execution.key",
    )?
    .query_map([me.to_string()], unsettled_from)?
    .collect()
}

fn unsettled_from(row: &Row<'_>) -> rusqlite::Result<Unsettled> {
    let started = Timestamp(row.get("started_ms")?);
    let heartbeat = instant_if_any(row, "heartbeat_ms")?;
    let recorded = instant_if_any(row, "recorded_ms")?;
    Ok(Unsettled {
        execution: parsed(row, "id")?,
        owner: parsed(row, "owner")?,
        last_seen: started.max(heartbeat.unwrap_or(started)).max(recorded.unwrap_or(started)),
    })
}

/// Gives an unsettled execution to another owner if it still belongs to `from`. Gives whether it
/// did.
pub(super) fn hand_over(
    conn: &Connection,
    execution: ExecutionId,
    from: OwnerId,
    to: OwnerId,
) -> rusqlite::Result<bool> {
    let n_rows = conn
        .prepare_cached(
            "UPDATE execution SET owner = ?3 WHERE id = ?1 AND owner = ?2 AND NOT is_settled",
        )?
        .execute([execution.to_string(), from.to_string(), to.to_string()])?;
    Ok(n_rows == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::execution_table::tests::{any_summary, insert_any};
    use crate::store::fixture::owner_id;
    use crate::store::schema::tests::empty_database;
    use crate::store::{execution_table, fixture};
    use engine::projection::ExecutionSummary;

    /// What `insert_any` names as the owner.
    fn nobody() -> OwnerId {
        owner_id(0)
    }

    fn settle(conn: &Connection, key: i64, n: u128) {
        let settled = ExecutionSummary { is_settled: true, ..any_summary(n) };
        execution_table::update(conn, key, &settled).unwrap();
    }

    #[test]
    fn unsettled_executions_of_others_tell_when_they_were_last_worked_on() {
        let conn = empty_database();
        insert_any(&conn, 1);
        let settled = insert_any(&conn, 2);
        settle(&conn, settled, 2);
        let last_seen = |conn: &Connection| {
            let found = unsettled_of_others(conn, owner_id(9)).unwrap();
            assert_eq!(found.len(), 1);
            assert_eq!(found[0].execution, fixture::execution_id(1));
            found[0].last_seen
        };
        assert_eq!(last_seen(&conn), Timestamp(1_000), "the start, if nothing else is known");
        insert(&conn, nobody(), "test", Timestamp(2_000)).unwrap();
        assert_eq!(last_seen(&conn), Timestamp(2_000));
        beat(&conn, nobody(), Timestamp(7_000)).unwrap();
        assert_eq!(last_seen(&conn), Timestamp(7_000));
        assert_eq!(unsettled_of_others(&conn, nobody()).unwrap(), []);
    }

    #[test]
    fn an_owner_of_nothing_unsettled_has_no_heartbeat_and_is_removed() {
        let conn = empty_database();
        insert(&conn, nobody(), "test", Timestamp(2_000)).unwrap();
        let key = insert_any(&conn, 1);
        remove_if_idle(&conn, nobody()).unwrap();
        assert_eq!(others(&conn, owner_id(9)).unwrap(), [nobody()]);
        settle(&conn, key, 1);
        beat(&conn, nobody(), Timestamp(7_000)).unwrap();
        let heartbeat: i64 =
            conn.query_row("SELECT heartbeat_ms FROM owner", [], |row| row.get(0)).unwrap();
        assert_eq!(heartbeat, 2_000);
        remove_if_idle(&conn, nobody()).unwrap();
        assert_eq!(others(&conn, owner_id(9)).unwrap(), []);
    }

    #[test]
    fn an_execution_is_handed_over_once_and_only_while_unsettled() {
        let conn = empty_database();
        let key = insert_any(&conn, 1);
        let id = fixture::execution_id(1);
        assert!(hand_over(&conn, id, nobody(), owner_id(1)).unwrap());
        assert!(!hand_over(&conn, id, nobody(), owner_id(2)).unwrap());
        settle(&conn, key, 1);
        assert!(!hand_over(&conn, id, owner_id(1), owner_id(2)).unwrap());
    }
}
