//! Process starts that may own executions.

use engine::ids::OwnerId;
use engine::time::Timestamp;
use rusqlite::{Connection, params};

pub(super) const CREATE: &str = "
CREATE TABLE owner (
    id           TEXT PRIMARY KEY,
    program      TEXT NOT NULL, -- for people
    process      INTEGER NOT NULL, -- for people
    started_ms   INTEGER NOT NULL,
    heartbeat_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
";

/// Notes that an owner lives, unless it owns nothing that anybody could miss.
pub(super) fn beat(conn: &Connection, owner: OwnerId, at: Timestamp) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "UPDATE owner SET heartbeat_ms = ?2 WHERE id = ?1
             AND EXISTS (SELECT 1 FROM execution WHERE owner = ?1 AND NOT is_settled)",
    )?
    .execute(params![owner.to_string(), at.0])?;
    Ok(())
}
