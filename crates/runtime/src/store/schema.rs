//! The database's tables, and how an older database comes to have them.

use std::io;
use std::path::{Path, PathBuf};

use engine::time::Timestamp;
use rusqlite::{Connection, TransactionBehavior};

use crate::store::{
    agent_table, blob_table, consent_table, execution_table, node_result_table, owner_table,
    plan_table, progress_table, record_table, shipped_table, signal_table, workflow_table,
};

/// Marks a database as ours: `Cyan` in ASCII.
pub(super) const APPLICATION_ID: i32 = 0x4379_616e;

/// What each version adds to the one before; the first makes an empty database version 1.
/// A step that was released is never changed again: what is new is a new step.
pub(super) const STEPS: &[&[&str]] = &[&[
    blob_table::CREATE,
    plan_table::CREATE,
    execution_table::CREATE,
    record_table::CREATE,
    node_result_table::CREATE,
    owner_table::CREATE,
    signal_table::CREATE,
    progress_table::CREATE,
    workflow_table::CREATE,
    agent_table::CREATE,
    consent_table::CREATE,
    shipped_table::CREATE,
]];

/// Why a database could not be brought to the newest version.
#[derive(Debug)]
pub(super) enum MigrateError {
    /// It is newer than the newest version we know.
    Newer { found: i32 },
    /// There is no folder for the backup; the database is unchanged.
    BackupFolder { folder: PathBuf, source: io::Error },
    /// The backup before the step failed; the database is unchanged.
    Backup { backup: PathBuf, source: rusqlite::Error },
    /// The step itself failed; the database is as it was before.
    Step { from: i32, backup: Option<PathBuf>, source: rusqlite::Error },
    /// The version could not be read.
    Version { source: rusqlite::Error },
}

/// Brings a database to the newest version, one step after the other, each in a transaction of its
/// own, and each after a copy of what is there into `backups`.
pub(super) fn migrate(
    conn: &mut Connection,
    steps: &[&[&str]],
    backups: &Path,
    now: Timestamp,
) -> Result<(), MigrateError> {
    let newest = steps.len() as i32;
    let version = |conn: &Connection| {
        conn.pragma_query_value(None, "user_version", |row| row.get::<_, i32>(0))
            .map_err(|source| MigrateError::Version { source })
    };
    let found = version(conn)?;
    if !(0..=newest).contains(&found) {
        return Err(MigrateError::Newer { found });
    }
    for from in found..newest {
        let backup = if from == 0 { None } else { Some(back_up(conn, from, backups, now)?) };
        take_step(conn, from, steps[from as usize]).map_err(|source| MigrateError::Step {
            from,
            backup,
            source,
        })?;
    }
    Ok(())
}

fn back_up(
    conn: &Connection,
    from: i32,
    backups: &Path,
    now: Timestamp,
) -> Result<PathBuf, MigrateError> {
    // Colons are not allowed in file names everywhere.
    let at = now.to_rfc3339().replace(':', "-");
    let backup = backups.join(format!("cyanotype-version-{from}-{at}.db"));
    std::fs::create_dir_all(backups)
        .map_err(|source| MigrateError::BackupFolder { folder: backups.to_owned(), source })?;
    let copied = match backup.to_str() {
        Some(name) => conn.execute("VACUUM INTO ?1", [name]),
        None => Err(rusqlite::Error::InvalidPath(backup.clone())),
    };
    match copied {
        Ok(_) => Ok(backup),
        Err(source) => Err(MigrateError::Backup { backup, source }),
    }
}

fn take_step(conn: &mut Connection, from: i32, step: &[&str]) -> rusqlite::Result<()> {
    let transaction = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for sql in step {
        transaction.execute_batch(sql)?;
    }
    transaction.pragma_update(None, "user_version", from + 1)?;
    transaction.commit()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A database in memory with all tables and nothing in them.
    pub(in crate::store) fn empty_database() -> Connection {
        let mut conn = Connection::open_in_memory().unwrap();
        conn.pragma_update(None, "foreign_keys", true).unwrap();
        migrate(&mut conn, STEPS, Path::new("unused"), Timestamp(0)).unwrap();
        conn
    }

    const OLD: &[&[&str]] = &[&["CREATE TABLE thing (name TEXT) STRICT"]];
    const NEW: &[&[&str]] = &[
        &["CREATE TABLE thing (name TEXT) STRICT"],
        &["ALTER TABLE thing ADD COLUMN size INTEGER", "UPDATE thing SET size = 1"],
    ];
    const BROKEN: &[&[&str]] = &[
        &["CREATE TABLE thing (name TEXT) STRICT"],
        &["UPDATE thing SET name = 'changed'", "UPDATE nothing SET name = 1"],
    ];

    fn old_database(folder: &Path) -> Connection {
        let mut conn = Connection::open(folder.join("x.db")).unwrap();
        migrate(&mut conn, OLD, &folder.join("backups"), Timestamp(0)).unwrap();
        conn.execute("INSERT INTO thing VALUES ('kept')", []).unwrap();
        conn
    }

    #[test]
    fn an_older_database_is_copied_before_it_is_changed() {
        let folder = tempfile::tempdir().unwrap();
        let mut conn = old_database(folder.path());
        let backups = folder.path().join("backups");
        assert!(!backups.exists(), "a new database has nothing to copy");
        migrate(&mut conn, NEW, &backups, Timestamp(0)).unwrap();
        let size: i64 = conn.query_row("SELECT size FROM thing", [], |row| row.get(0)).unwrap();
        assert_eq!(size, 1);
        let backup = backups.join("cyanotype-version-1-1970-01-01T00-00-00.000Z.db");
        let copy = Connection::open(backup).unwrap();
        let name: String = copy.query_row("SELECT * FROM thing", [], |row| row.get(0)).unwrap();
        assert_eq!(name, "kept");
        let version: i32 = copy.pragma_query_value(None, "user_version", |r| r.get(0)).unwrap();
        assert_eq!(version, 1);
    }

    #[test]
    fn a_step_that_fails_leaves_the_database_as_it_was_and_names_the_copy() {
        let folder = tempfile::tempdir().unwrap();
        let mut conn = old_database(folder.path());
        let backups = folder.path().join("backups");
        let error = migrate(&mut conn, BROKEN, &backups, Timestamp(0)).unwrap_err();
        let MigrateError::Step { from: 1, backup: Some(backup), .. } = error else {
            panic!("{error:?}");
        };
        assert!(backup.exists());
        let name: String = conn.query_row("SELECT name FROM thing", [], |row| row.get(0)).unwrap();
        assert_eq!(name, "kept");
    }

    #[test]
    fn a_database_that_cannot_be_copied_is_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        let mut conn = old_database(folder.path());
        let in_the_way = folder.path().join("backups");
        std::fs::write(&in_the_way, "a file").unwrap();
        let error = migrate(&mut conn, NEW, &in_the_way, Timestamp(0)).unwrap_err();
        assert!(matches!(error, MigrateError::BackupFolder { .. }), "{error:?}");
        let version: i32 = conn.pragma_query_value(None, "user_version", |r| r.get(0)).unwrap();
        assert_eq!(version, 1);
    }

    #[test]
    fn a_newer_database_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut conn = old_database(folder.path());
        conn.pragma_update(None, "user_version", 7).unwrap();
        let error = migrate(&mut conn, OLD, folder.path(), Timestamp(0)).unwrap_err();
        assert!(matches!(error, MigrateError::Newer { found: 7 }), "{error:?}");
    }
}
