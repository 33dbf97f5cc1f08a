//! Immutable plans by digest, each with the definition it was compiled from.

use engine::ids::Digest;
use rusqlite::{Connection, OptionalExtension, params};

use crate::store::Store;
use crate::store::blob_table;
use crate::store::column::parsed;
use crate::store::error::StoreError;

pub(super) const CREATE: &str = "
CREATE TABLE plan (
    digest           TEXT PRIMARY KEY CHECK (length(digest) = 64),
    document         INTEGER NOT NULL REFERENCES blob (key),
    compiler_version INTEGER NOT NULL,
    diagnostics      TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- For the reference when a blob is removed.
CREATE INDEX plan_by_document ON plan (document);
";

/// What is known about a plan beside its definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanRow {
    /// The digest of the plan's meaning.
    pub digest: Digest,
    /// The digest of the definition's text. Several texts may mean the same plan; a stored row
    /// names the first.
    pub document: Digest,
    /// The version of the compiler that made it.
    pub compiler_version: u32,
    /// What the compiler had to say, as JSON.
    pub diagnostics: String,
}

/// Stores a definition, and the plan it means unless that is there. Gives the definition's key.
pub(super) fn put(conn: &Connection, plan: &PlanRow, document: &str) -> rusqlite::Result<i64> {
    let blob = blob_table::put(conn, plan.document, document)?;
    conn.prepare_cached(
        "INSERT OR IGNORE INTO plan (digest, document, compiler_version, diagnostics)
         VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute(params![
        plan.digest.to_string(),
        blob,
        plan.compiler_version,
        plan.diagnostics
    ])?;
    Ok(blob)
}

/// Removes a plan unless something needs it, and gives the key of its definition if it did.
pub(super) fn remove_if_unused(conn: &Connection, digest: &str) -> rusqlite::Result<Option<i64>> {
    conn.prepare_cached(
        "DELETE FROM plan WHERE digest = ?1
             AND NOT EXISTS (SELECT 1 FROM execution WHERE plan = ?1)
             AND NOT EXISTS (SELECT 1 FROM workflow WHERE published_plan = ?1)
         RETURNING document",
    )?
    .query_row([digest], |row| row.get(0))
    .optional()
}

fn get(conn: &Connection, digest: Digest) -> rusqlite::Result<Option<PlanRow>> {
    conn.prepare_cached(
        "SELECT plan.digest, blob.digest AS document, compiler_version, diagnostics
         FROM plan JOIN blob ON blob.key = plan.document WHERE plan.digest = ?1",
    )?
    .query_row([digest.to_string()], |row| {
        Ok(PlanRow {
            digest: parsed(row, "digest")?,
            document: parsed(row, "document")?,
            compiler_version: row.get("compiler_version")?,
            diagnostics: row.get("diagnostics")?,
        })
    })
    .optional()
}

impl Store {
    /// The plan of a digest, if there is one.
    pub fn plan(&self, digest: Digest) -> Result<Option<PlanRow>, StoreError> {
        self.read(|conn| Ok(get(conn, digest)?))
    }

    /// The text of a digest: a definition as drawn, a pinned agent, a long payload.
    pub fn text(&self, digest: Digest) -> Result<String, StoreError> {
        self.read(|conn| blob_table::load(conn, digest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::schema::tests::empty_database;

    #[test]
    fn a_plan_keeps_its_first_definition_and_the_other_is_stored_beside_it() {
        let conn = empty_database();
        let plan = |document: &str| PlanRow {
            digest: Digest::of(b"meaning"),
            document: Digest::of(document.as_bytes()),
            compiler_version: 3,
            diagnostics: "[]".to_owned(),
        };
        put(&conn, &plan("drawn here"), "drawn here").unwrap();
        put(&conn, &plan("drawn there"), "drawn there").unwrap();
        assert_eq!(get(&conn, Digest::of(b"meaning")).unwrap(), Some(plan("drawn here")));
        assert_eq!(blob_table::load(&conn, Digest::of(b"drawn there")).unwrap(), "drawn there");
    }

    #[test]
    fn an_unknown_plan_is_absent() {
        assert_eq!(get(&empty_database(), Digest::of(b"?")).unwrap(), None);
    }
}
