//! What a person has agreed to run: exact contents, by digest.

use engine::ids::Digest;
use engine::time::Timestamp;
use rusqlite::{Connection, Row, params};

use crate::store::Store;
use crate::store::column::parsed;
use crate::store::error::StoreError;

pub(super) const CREATE: &str = "
CREATE TABLE consent (
    digest   TEXT PRIMARY KEY CHECK (length(digest) = 64),
    subject  TEXT NOT NULL, -- for people
    given_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
";

/// A person's consent to one exact content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consent {
    /// The digest of the content. Any change of it needs a new consent.
    pub digest: Digest,
    /// What was agreed to, for people.
    pub subject: String,
    /// When.
    pub given_at: Timestamp,
}

fn give(conn: &Connection, consent: &Consent) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT OR IGNORE INTO consent (digest, subject, given_ms) VALUES (?1, ?2, ?3)",
    )?
    .execute(params![consent.digest.to_string(), consent.subject, consent.given_at.0])?;
    Ok(())
}

fn is_given(conn: &Connection, digest: Digest) -> rusqlite::Result<bool> {
    conn.prepare_cached("SELECT 1 FROM consent WHERE digest = ?1")?.exists([digest.to_string()])
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<Consent> {
    Ok(Consent {
        digest: parsed(row, "digest")?,
        subject: row.get("subject")?,
        given_at: Timestamp(row.get("given_ms")?),
    })
}

fn all(conn: &Connection) -> rusqlite::Result<Vec<Consent>> {
    conn.prepare_cached("SELECT * FROM consent ORDER BY given_ms DESC, digest")?
        .query_map([], from_row)?
        .collect()
}

fn revoke(conn: &Connection, digest: Digest) -> rusqlite::Result<bool> {
    let n_rows = conn
        .prepare_cached("DELETE FROM consent WHERE digest = ?1")?
        .execute([digest.to_string()])?;
    Ok(n_rows == 1)
}

impl Store {
    /// Notes a consent. One that was given before stands as it is.
    pub async fn give_consent(&self, consent: Consent) -> Result<(), StoreError> {
        self.write(move |conn| Ok(give(conn, &consent)?)).await
    }

    /// Takes a consent back. Gives whether there was one.
    pub async fn revoke_consent(&self, digest: Digest) -> Result<bool, StoreError> {
        self.write(move |conn| Ok(revoke(conn, digest)?)).await
    }

    /// Whether a person has agreed to this exact content.
    pub fn has_consent(&self, digest: Digest) -> Result<bool, StoreError> {
        self.read(|conn| Ok(is_given(conn, digest)?))
    }

    /// All consents, the last first.
    pub fn consents(&self) -> Result<Vec<Consent>, StoreError> {
        self.read(|conn| Ok(all(conn)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::schema::tests::empty_database;

    fn consent(content: &str, at: i64) -> Consent {
        let digest = Digest::of(content.as_bytes());
        Consent { digest, subject: format!("run {content}"), given_at: Timestamp(at) }
    }

    #[test]
    fn consent_is_to_one_content_and_to_no_other() {
        let conn = empty_database();
        give(&conn, &consent("rm -i", 1)).unwrap();
        assert!(is_given(&conn, Digest::of(b"rm -i")).unwrap());
        assert!(!is_given(&conn, Digest::of(b"rm -f")).unwrap());
    }

    #[test]
    fn a_consent_given_twice_keeps_the_time_it_was_first_given() {
        let conn = empty_database();
        give(&conn, &consent("a", 1)).unwrap();
        give(&conn, &consent("a", 2)).unwrap();
        give(&conn, &consent("b", 3)).unwrap();
        assert_eq!(all(&conn).unwrap(), [consent("b", 3), consent("a", 1)]);
    }

    #[test]
    fn a_revoked_consent_is_gone() {
        let conn = empty_database();
        give(&conn, &consent("a", 1)).unwrap();
        assert!(revoke(&conn, Digest::of(b"a")).unwrap());
        assert!(!is_given(&conn, Digest::of(b"a")).unwrap());
        assert!(!revoke(&conn, Digest::of(b"a")).unwrap());
    }
}
