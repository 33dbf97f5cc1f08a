//! Long texts by digest: payloads that do not fit a record, definitions as drawn, pinned agents.

use engine::ids::Digest;
use rusqlite::{Connection, OptionalExtension, params};

use crate::store::error::StoreError;

pub(super) const CREATE: &str = "
CREATE TABLE blob (
    key    INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE CHECK (length(digest) = 64),
    body   TEXT NOT NULL
) STRICT;

-- Which execution needs which blob, so that a blob nobody needs can be told.
CREATE TABLE blob_use (
    execution INTEGER NOT NULL REFERENCES execution (key) ON DELETE CASCADE,
    blob      INTEGER NOT NULL REFERENCES blob (key),
    PRIMARY KEY (execution, blob)
) STRICT, WITHOUT ROWID;

-- For `remove_if_unused`, and for the reference when a blob is removed.
CREATE INDEX blob_use_by_blob ON blob_use (blob);
";

/// Stores a text unless it is there, and gives its key. Whoever calls says what its digest is.
pub(super) fn put(conn: &Connection, digest: Digest, body: &str) -> rusqlite::Result<i64> {
    // Looked up first: binding a text copies it, and most texts are there already.
    if let Some(key) = key(conn, digest)? {
        return Ok(key);
    }
    conn.prepare_cached("INSERT INTO blob (digest, body) VALUES (?1, ?2)")?
        .insert(params![digest.to_string(), body])
}

/// The key of a text, if it is stored.
pub(super) fn key(conn: &Connection, digest: Digest) -> rusqlite::Result<Option<i64>> {
    conn.prepare_cached("SELECT key FROM blob WHERE digest = ?1")?
        .query_row([digest.to_string()], |row| row.get(0))
        .optional()
}

/// Notes that an execution needs a blob. Noting it again changes nothing.
pub(super) fn note_use(conn: &Connection, execution: i64, blob: i64) -> rusqlite::Result<()> {
    conn.prepare_cached("INSERT OR IGNORE INTO blob_use (execution, blob) VALUES (?1, ?2)")?
        .execute([execution, blob])?;
    Ok(())
}

/// The keys of the blobs that an execution needs.
pub(super) fn used_by(conn: &Connection, execution: i64) -> rusqlite::Result<Vec<i64>> {
    conn.prepare_cached("SELECT blob FROM blob_use WHERE execution = ?1")?
        .query_map([execution], |row| row.get(0))?
        .collect()
}

/// Removes a blob unless something needs it.
pub(super) fn remove_if_unused(conn: &Connection, blob: i64) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "DELETE FROM blob WHERE key = ?1
             AND NOT EXISTS (SELECT 1 FROM blob_use WHERE blob = ?1)
             AND NOT EXISTS (SELECT 1 FROM plan WHERE document = ?1)
             AND NOT EXISTS (SELECT 1 FROM execution WHERE document = ?1)
             AND NOT EXISTS (SELECT 1 FROM workflow WHERE published_document = ?1)",
    )?
    .execute([blob])?;
    Ok(())
}

/// The text of a digest. A text that is missing, or is not what its digest says, is damage.
pub(super) fn load(conn: &Connection, digest: Digest) -> Result<String, StoreError> {
    let body: Option<String> = conn
        .prepare_cached("SELECT body FROM blob WHERE digest = ?1")?
        .query_row([digest.to_string()], |row| row.get(0))
        .optional()?;
    let damaged = |what: &str| StoreError::Damaged { what: format!("blob {digest} {what}") };
    let body = body.ok_or_else(|| damaged("is missing"))?;
    if Digest::of(body.as_bytes()) != digest {
        return Err(damaged("does not hold the text it was stored with"));
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::schema::tests::empty_database;

    #[test]
    fn a_text_is_stored_once_and_read_back() {
        let conn = empty_database();
        let digest = Digest::of(b"text");
        let key = put(&conn, digest, "text").unwrap();
        assert_eq!(put(&conn, digest, "text").unwrap(), key);
        assert_eq!(load(&conn, digest).unwrap(), "text");
    }

    #[test]
    fn a_missing_text_is_named() {
        let conn = empty_database();
        let digest = Digest::of(b"text");
        let error = load(&conn, digest).unwrap_err();
        assert!(error.to_string().contains(&format!("blob {digest} is missing")), "{error}");
    }

    #[test]
    fn a_text_that_was_changed_is_named_and_left_alone() {
        let conn = empty_database();
        let digest = Digest::of(b"text");
        put(&conn, digest, "text").unwrap();
        conn.execute("UPDATE blob SET body = 'other'", []).unwrap();
        let error = load(&conn, digest).unwrap_err();
        assert!(error.to_string().contains("does not hold the text"), "{error}");
        let body: String = conn.query_row("SELECT body FROM blob", [], |row| row.get(0)).unwrap();
        assert_eq!(body, "other");
    }
}
