//! What is on disk after a crash or a full disk: whole appends, in order, and nothing else.

use engine::ids::Seq;
use rusqlite::ErrorCode;
use tempfile::TempDir;

use crate::store::Store;
use crate::store::append::AppendError;
use crate::store::error::StoreError;
use crate::store::fixture::{append, create, execution_id, new_store, reopen, started};

/// How many records each append of these tests has.
const RECORDS: u64 = 3;

/// The database as it is on disk now, in a folder of its own, with the log cut after some bytes.
fn copy_with_cut_log(folder: &TempDir, n_bytes: usize) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    let database = std::fs::read(folder.path().join("cyanotype.db")).unwrap();
    let log = std::fs::read(folder.path().join("cyanotype.db-wal")).unwrap();
    std::fs::write(copy.path().join("cyanotype.db"), database).unwrap();
    std::fs::write(copy.path().join("cyanotype.db-wal"), &log[..n_bytes.min(log.len())]).unwrap();
    copy
}

/// The number of records that survived; they are whole appends, and the projections agree.
fn survivors(store: &Store) -> u64 {
    let Ok(Some(row)) = store.execution(execution_id(1)) else { return 0 };
    let journal = store.journal(execution_id(1)).unwrap();
    let n_records = journal.len() as u64;
    assert_eq!((n_records - 1) % RECORDS, 0, "{n_records} records are not whole appends");
    assert_eq!(row.summary.seq, Seq(n_records));
    let n_nodes = store.node_results(execution_id(1)).unwrap().len() as u64;
    assert_eq!(n_nodes, n_records - 1);
    n_records
}

#[tokio::test]
async fn a_log_cut_at_any_place_leaves_whole_appends_in_order() {
    let (folder, store) = new_store();
    // Keeps what follows from being written back, so that it is in the log only.
    let reader = rusqlite::Connection::open(folder.path().join("cyanotype.db")).unwrap();
    let reading = reader.unchecked_transaction().unwrap();
    let _: i64 = reading.query_row("SELECT count(*) FROM record", [], |row| row.get(0)).unwrap();
    let log_bytes = || std::fs::metadata(folder.path().join("cyanotype.db-wal")).unwrap().len();
    let n_bytes_before = log_bytes();
    create(&store, started(1)).await.durable().await.unwrap();
    for n in 0..12 {
        let ticket = store.append(append(1, 1 + RECORDS * n, RECORDS)).await;
        ticket.durable().await.unwrap();
    }
    let mut before = 0;
    let mut seen = std::collections::BTreeSet::new();
    // A prime, so that cuts fall on headers, within pages, and between them.
    for cut in (n_bytes_before as usize..log_bytes() as usize + 2_039).step_by(2_039) {
        let copy = copy_with_cut_log(&folder, cut);
        let store = reopen(&copy);
        let now = survivors(&store);
        assert!(now >= before, "a longer log holds no fewer records");
        before = now;
        seen.insert(now);
        // The next process goes on where the last one was cut off.
        if now > 0 {
            store.append(append(1, now, RECORDS)).await.durable().await.unwrap();
            assert_eq!(survivors(&store), now + RECORDS);
        }
    }
    assert_eq!(before, 1 + RECORDS * 12, "what was durable is in the whole log");
    assert!(seen.len() > 10, "the cuts fell between many appends: {seen:?}");
}

async fn set_pages_max(store: &Store, n_pages: i64) {
    let set = store.write(move |conn| -> Result<(), StoreError> {
        let n: i64 =
            conn.query_row(&format!("PRAGMA max_page_count({n_pages})"), [], |row| row.get(0))?;
        assert!(n >= n_pages || n_pages == 1);
        Ok(())
    });
    set.await.unwrap();
}

#[tokio::test]
async fn a_full_disk_loses_nothing_that_was_durable_and_goes_on_when_there_is_room() {
    let (folder, store) = new_store();
    create(&store, started(1)).await;
    // SQLite takes a limit of one page for the number of pages that there are.
    set_pages_max(&store, 1).await;
    let mut n_records = 1;
    let error = loop {
        let tickets = [
            store.append(append(1, n_records, RECORDS)).await,
            store.append(append(1, n_records + RECORDS, RECORDS)).await,
        ];
        match tickets[0].durable().await {
            Ok(()) => n_records += RECORDS,
            Err(error) => {
                assert!(tickets[1].durable().await.is_err(), "it builds on the first");
                break error;
            }
        }
        match tickets[1].durable().await {
            Ok(()) => n_records += RECORDS,
            Err(error) => break error,
        }
        assert!(n_records < 10_000, "the disk never became full");
    };
    let AppendError::Sqlite { source, .. } = error else { panic!("{error:?}") };
    assert_eq!(source.sqlite_error_code(), Some(ErrorCode::DiskFull));
    assert_eq!(survivors(&store), n_records);
    set_pages_max(&store, 1_000_000).await;
    store.append(append(1, n_records, RECORDS)).await.durable().await.unwrap();
    drop(store);
    assert_eq!(survivors(&reopen(&folder)), n_records + RECORDS);
}

#[tokio::test]
async fn a_full_disk_is_said_to_be_full() {
    let (_folder, store) = new_store();
    set_pages_max(&store, 1).await;
    let result = store.create_execution(crate::store::fixture::started_under(1, "key", "x")).await;
    let mut error = result.err();
    for n in 0..1_000 {
        if error.is_some() {
            break;
        }
        error = store
            .create_execution(crate::store::fixture::started_under(2 + n, &format!("{n}"), "x"))
            .await
            .err();
    }
    let error = error.expect("the disk never became full");
    assert!(error.to_string().contains("the disk is full: free some space"), "{error}");
}
