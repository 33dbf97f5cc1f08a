//! Opening the database: created if absent, checked, brought up to date, and never overwritten.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use engine::time::Timestamp;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::store::lock::{LockError, lock_within};
use crate::store::schema::{APPLICATION_ID, MigrateError, STEPS, migrate};

/// The database's file name.
pub(super) const DATABASE: &str = "cyanotype.db";
/// The folder for copies that are made before a migration.
const BACKUPS: &str = "backups";
/// Held while the database is being created or brought up to date.
const OPEN_LOCK: &str = "open.lock";
/// How long another process may take for that.
const OPEN_LOCK_PATIENCE: Duration = Duration::from_secs(30);
/// How long the writer waits for the writer of another process.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// The first bytes of every SQLite database.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// Where the store lives, and what it needs from outside.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The data folder; created if absent.
    pub folder: PathBuf,
    /// Tells the time for heartbeats and names of backups.
    pub wall_clock: fn() -> Timestamp,
}

/// Why the store could not be opened. In every case what was there is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no folder to put the database in.
    #[error(
        "the data folder {} cannot be created; choose another one with CYANOTYPE_HOME",
        folder.display()
    )]
    Folder {
        /// Where it should be.
        folder: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The folder or a file in it may not be written.
    #[error(
        "{} cannot be written; make the folder and its files writable, or choose another folder \
         with CYANOTYPE_HOME",
        path.display()
    )]
    ReadOnly {
        /// What cannot be written.
        path: PathBuf,
        /// Why not, where that is known.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The disk is full.
    #[error(
        "the disk that holds {} is full; free some space and start again, nothing is lost",
        path.display()
    )]
    DiskFull {
        /// The database.
        path: PathBuf,
    },
    /// It is not what was once written.
    #[error(
        "the database {} is damaged ({detail}); it was left as it is: move it away to start \
         afresh, or put a copy from {} in its place",
        path.display(),
        backups.display()
    )]
    Damaged {
        /// The database.
        path: PathBuf,
        /// Where copies are kept.
        backups: PathBuf,
        /// What was found.
        detail: String,
    },
    /// A newer version of the program has changed it.
    #[error(
        "the database {} is of version {found}, and this program knows versions up to {known}; \
         install the newer program again",
        path.display()
    )]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its version.
        found: i32,
        /// The newest version we know.
        known: i32,
    },
    /// It belongs to another program.
    #[error(
        "{} is a database of another application; choose another folder with CYANOTYPE_HOME",
        path.display()
    )]
    Foreign {
        /// The database.
        path: PathBuf,
    },
    /// Another process keeps it.
    #[error(
        "another process has been at work on {} for too long; wait for it or end it, then start \
         again",
        path.display()
    )]
    Busy {
        /// What is kept.
        path: PathBuf,
    },
    /// It could not be brought up to date.
    #[error(
        "the database {} could not be brought from version {from} to {}; it is unchanged, and a \
         copy is in {}",
        path.display(),
        from + 1,
        backup.as_deref().unwrap_or(Path::new("no place: it is new")).display()
    )]
    Migration {
        /// The database.
        path: PathBuf,
        /// Its version.
        from: i32,
        /// The copy, if there was anything to copy.
        backup: Option<PathBuf>,
        /// What SQLite said.
        #[source]
        source: rusqlite::Error,
    },
    /// SQLite refused for another reason.
    #[error("the database {} cannot be opened", path.display())]
    Sqlite {
        /// The database.
        path: PathBuf,
        /// What it said.
        #[source]
        source: rusqlite::Error,
    },
}

/// Opens the write connection.
pub(super) fn open(options: &StoreOptions) -> Result<Connection, OpenError> {
    let folder = &options.folder;
    fs::create_dir_all(folder).map_err(|source| folder_error(folder, source))?;
    let database = folder.join(DATABASE);
    let backups = folder.join(BACKUPS);
    let lock = lock_for_opening(folder)?;
    let is_new = is_absent(&database, &backups)?;
    let failed = |source| sqlite_error(&database, &backups, source);
    let mut conn = connect(&database, is_new).map_err(failed)?;
    if conn.is_readonly("main").map_err(failed)? {
        return Err(OpenError::ReadOnly { path: database, source: None });
    }
    migrate(&mut conn, STEPS, &backups, (options.wall_clock)())
        .map_err(|error| migrate_error(&database, &backups, error))?;
    drop(lock);
    if !is_new {
        quick_check(&conn, &database, &backups)?;
    }
    Ok(conn)
}

/// Looks at the file before SQLite does, which would take an empty file for a new database and
/// discard its log, and might write to one that is not ours.
fn is_absent(database: &Path, backups: &Path) -> Result<bool, OpenError> {
    let damaged = |detail: &str| OpenError::Damaged {
        path: database.to_owned(),
        backups: backups.to_owned(),
        detail: detail.to_owned(),
    };
    let mut file = match File::open(database) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(io_error(database, error)),
    };
    let mut header = Vec::new();
    file.by_ref().take(100).read_to_end(&mut header).map_err(|error| io_error(database, error))?;
    if header.is_empty() {
        let wal = wal_of(database);
        let has_log = fs::metadata(wal).is_ok_and(|metadata| metadata.len() > 0);
        return if has_log { Err(damaged("it is empty but has a log")) } else { Ok(true) };
    }
    if header.len() < 100 || !header.starts_with(MAGIC) {
        return Err(damaged("it is not an SQLite database"));
    }
    let application_id = i32::from_be_bytes([header[68], header[69], header[70], header[71]]);
    if application_id != APPLICATION_ID {
        return Err(OpenError::Foreign { path: database.to_owned() });
    }
    Ok(false)
}

/// The write-ahead log of a database.
pub(super) fn wal_of(database: &Path) -> PathBuf {
    let mut wal = database.as_os_str().to_owned();
    wal.push("-wal");
    PathBuf::from(wal)
}

fn connect(database: &Path, is_new: bool) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(database, flags)?;
    conn.busy_timeout(BUSY_TIMEOUT)?;
    if is_new {
        // Only before the first page is written, which the next statement does.
        conn.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        conn.pragma_update(None, "application_id", APPLICATION_ID)?;
    }
    conn.pragma_update(None, "journal_mode", "WAL")?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    // Only macOS has it: there, nothing else reaches the disk itself.
    conn.pragma_update(None, "fullfsync", true)?;
    conn.pragma_update(None, "foreign_keys", true)?;
    conn.pragma_update(None, "wal_autocheckpoint", 2_000)?;
    conn.pragma_update(None, "cache_size", -16_384)?;
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    conn.set_prepared_statement_cache_capacity(128);
    Ok(conn)
}

fn quick_check(conn: &Connection, database: &Path, backups: &Path) -> Result<(), OpenError> {
    let result: String = conn
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(|source| sqlite_error(database, backups, source))?;
    if result == "ok" {
        return Ok(());
    }
    Err(OpenError::Damaged {
        path: database.to_owned(),
        backups: backups.to_owned(),
        detail: result,
    })
}

/// Two processes that start at the same time must not both create the tables.
fn lock_for_opening(folder: &Path) -> Result<File, OpenError> {
    let path = folder.join(OPEN_LOCK);
    lock_within(&path, OPEN_LOCK_PATIENCE).map_err(|error| match error {
        LockError::Busy => OpenError::Busy { path },
        LockError::Io(error) => io_error(&path, error),
    })
}

fn folder_error(folder: &Path, source: io::Error) -> OpenError {
    match source.kind() {
        ErrorKind::StorageFull => OpenError::DiskFull { path: folder.to_owned() },
        _ => OpenError::Folder { folder: folder.to_owned(), source },
    }
}

fn io_error(path: &Path, error: io::Error) -> OpenError {
    match error.kind() {
        ErrorKind::StorageFull => OpenError::DiskFull { path: path.to_owned() },
        _ => OpenError::ReadOnly { path: path.to_owned(), source: Some(error.into()) },
    }
}

fn sqlite_error(database: &Path, backups: &Path, source: rusqlite::Error) -> OpenError {
    let path = database.to_owned();
    match source.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => OpenError::DiskFull { path },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => OpenError::Busy { path },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            OpenError::Damaged { path, backups: backups.to_owned(), detail: source.to_string() }
        }
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            OpenError::ReadOnly { path, source: Some(source.into()) }
        }
        _ => OpenError::Sqlite { path, source },
    }
}

fn migrate_error(database: &Path, backups: &Path, error: MigrateError) -> OpenError {
    let path = database.to_owned();
    match error {
        MigrateError::Newer { found } => {
            OpenError::Newer { path, found, known: STEPS.len() as i32 }
        }
        MigrateError::BackupFolder { folder, source } => io_error(&folder, source),
        MigrateError::Backup { backup, source } => sqlite_error(&backup, backups, source),
        MigrateError::Version { source } => sqlite_error(database, backups, source),
        MigrateError::Step { from, backup, source } => {
            match sqlite_error(database, backups, source) {
                OpenError::Sqlite { path, source } => {
                    OpenError::Migration { path, from, backup, source }
                }
                clear => clear,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    fn options(folder: &Path) -> StoreOptions {
        StoreOptions { folder: folder.to_owned(), wall_clock: || Timestamp(0) }
    }

    fn refused(folder: &Path) -> OpenError {
        match Store::open(options(folder)) {
            Ok(_) => panic!("the store opened"),
            Err(error) => error,
        }
    }

    #[test]
    fn a_new_folder_gets_a_database_that_opens_again() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("a").join("b c é");
        Store::open(options(&inside)).unwrap().close();
        let conn = open(&options(&inside)).unwrap();
        let pragma = |name| -> String {
            conn.pragma_query_value(None, name, |row| row.get_ref(0).map(|v| format!("{v:?}")))
                .unwrap()
        };
        assert_eq!(pragma("journal_mode"), "Text([119, 97, 108])");
        assert_eq!(pragma("synchronous"), "Integer(2)");
        assert_eq!(pragma("foreign_keys"), "Integer(1)");
        assert_eq!(pragma("auto_vacuum"), "Integer(2)");
        assert_eq!(pragma("application_id"), format!("Integer({APPLICATION_ID})"));
        assert_eq!(pragma("user_version"), format!("Integer({})", STEPS.len()));
    }

    #[test]
    fn two_starts_at_the_same_moment_share_one_new_database() {
        let folder = tempfile::tempdir().unwrap();
        let starts: Vec<_> = (0..4)
            .map(|_| {
                let options = options(folder.path());
                std::thread::spawn(move || Store::open(options).map(drop))
            })
            .collect();
        for start in starts {
            start.join().unwrap().unwrap();
        }
    }

    #[test]
    fn a_database_of_another_application_is_refused_and_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(DATABASE);
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
        let before = fs::read(&path).unwrap();
        let error = refused(folder.path());
        assert!(matches!(error, OpenError::Foreign { .. }), "{error:?}");
        assert!(error.to_string().contains("is a database of another application"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), before);
    }

    #[test]
    fn a_newer_database_is_refused_with_both_versions() {
        let folder = tempfile::tempdir().unwrap();
        let conn = open(&options(folder.path())).unwrap();
        conn.pragma_update(None, "user_version", 4_000).unwrap();
        drop(conn);
        let error = refused(folder.path());
        assert!(matches!(error, OpenError::Newer { found: 4_000, .. }), "{error:?}");
        assert!(error.to_string().contains("version 4000"), "{error}");
    }

    #[test]
    fn a_file_that_is_no_database_is_kept_byte_by_byte() {
        let all_zero = vec![0; 8_192];
        for content in [b"{\"not\": \"a database\"}".as_slice(), &all_zero, b"SQLite format 3\0"] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(DATABASE);
            fs::write(&path, content).unwrap();
            let error = refused(folder.path());
            assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
            assert_eq!(fs::read(&path).unwrap(), content);
        }
    }

    #[test]
    fn a_database_with_a_torn_page_is_reported_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        Store::open(options(folder.path())).unwrap().close();
        let path = folder.path().join(DATABASE);
        let mut bytes = fs::read(&path).unwrap();
        let n_bytes = bytes.len();
        bytes[4_096..n_bytes].fill(0xA5);
        fs::write(&path, &bytes).unwrap();
        let error = refused(folder.path());
        assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
        assert!(error.to_string().contains("left as it is"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }

    #[test]
    fn an_empty_file_that_still_has_a_log_is_not_taken_for_a_new_database() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(DATABASE), "").unwrap();
        Store::open(options(folder.path())).unwrap().close();
        fs::write(folder.path().join(DATABASE), "").unwrap();
        let wal = wal_of(&folder.path().join(DATABASE));
        fs::write(&wal, "what is left").unwrap();
        assert!(matches!(refused(folder.path()), OpenError::Damaged { .. }));
        assert_eq!(fs::read(&wal).unwrap(), b"what is left");
    }

    #[test]
    fn a_file_in_place_of_the_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "").unwrap();
        let error = refused(&path);
        assert!(matches!(error, OpenError::Folder { .. }), "{error:?}");
        assert!(error.to_string().contains("CYANOTYPE_HOME"), "{error}");
    }

    // `/sys` takes no folders, not even from the superuser, who may write anywhere else.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_place_that_takes_no_folder_is_named() {
        let error = refused(Path::new("/sys/kernel/cyanotype"));
        assert!(matches!(error, OpenError::Folder { .. }), "{error:?}");
        assert!(error.to_string().contains("/sys/kernel/cyanotype"), "{error}");
    }

    // Likewise: an existing folder in which nobody can create a file.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_folder_that_takes_no_files_is_read_only() {
        let error = refused(Path::new("/proc/self/fd"));
        assert!(matches!(error, OpenError::ReadOnly { .. }), "{error:?}");
        assert!(error.to_string().contains("cannot be written"), "{error}");
    }

    #[test]
    fn what_sqlite_says_becomes_what_a_person_can_act_on() {
        use rusqlite::ffi;
        let clear = |code| {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            sqlite_error(Path::new("x.db"), Path::new("backups"), error)
        };
        assert!(matches!(clear(ffi::SQLITE_FULL), OpenError::DiskFull { .. }));
        assert!(matches!(clear(ffi::SQLITE_READONLY), OpenError::ReadOnly { .. }));
        assert!(matches!(clear(ffi::SQLITE_CANTOPEN), OpenError::ReadOnly { .. }));
        assert!(matches!(clear(ffi::SQLITE_CORRUPT), OpenError::Damaged { .. }));
        assert!(matches!(clear(ffi::SQLITE_BUSY), OpenError::Busy { .. }));
    }
}
