//! O-D01: the write-ahead log stays short although somebody is nearly always reading.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use engine::payload::Payload;
use rusqlite::Connection;
use tempfile::TempDir;

use crate::store::Store;
use crate::store::append::Append;
use crate::store::checkpoint::WAL_BYTES_MAX;
use crate::store::execution_table::ExecutionFilter;
use crate::store::fixture::{append, completed, create, new_store, started};
use crate::store::open::DATABASE;

fn wal_bytes(folder: &TempDir) -> u64 {
    let wal: PathBuf = folder.path().join("cyanotype.db-wal");
    std::fs::metadata(wal).map_or(0, |metadata| metadata.len())
}

/// Appends so many records of 2 KiB, each by itself, and waits until they are on disk.
async fn append_many(store: &Store, n_records: u64) {
    let payload = Payload::parse(&format!("\"{}\"", "x".repeat(2_048))).unwrap();
    let mut last = None;
    for seq in 1..=n_records {
        let small = append(1, seq, 0);
        let mut summary = small.summary.clone();
        summary.seq = summary.seq.next();
        let records = vec![completed(seq + 1, "a", &payload)];
        last = Some(store.append(Append { records, summary, ..small }).await);
    }
    last.unwrap().durable().await.unwrap();
}

/// Does something over and over until it is told to stop, and gives what it saw.
fn meanwhile<T: Send + 'static>(
    pause: Duration,
    mut look: impl FnMut() -> T + Send + 'static,
) -> (Arc<AtomicBool>, JoinHandle<Vec<T>>) {
    let stop = Arc::new(AtomicBool::new(false));
    let thread = std::thread::spawn({
        let stop = stop.clone();
        move || {
            let mut seen = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                seen.push(look());
                std::thread::park_timeout(pause);
            }
            seen
        }
    });
    (stop, thread)
}

fn wait_until_log_is_short(folder: &TempDir) {
    let begin = Instant::now();
    while wal_bytes(folder) >= WAL_BYTES_MAX {
        assert!(begin.elapsed() < Duration::from_secs(60), "the log has {}", wal_bytes(folder));
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn o_d01_the_log_stays_short_while_the_list_is_read_every_100_ms() {
    let (folder, store) = new_store();
    create(&store, started(1)).await.durable().await.unwrap();
    let reader = store.clone();
    let (stop_reader, lists) = meanwhile(Duration::from_millis(100), move || {
        let begin = Instant::now();
        let page = reader.executions(&ExecutionFilter::default(), None).unwrap();
        assert_eq!(page.executions.len(), 1);
        begin.elapsed()
    });
    let folder = Arc::new(folder);
    let measured = folder.clone();
    let (stop_measuring, sizes) = meanwhile(Duration::from_millis(2), move || wal_bytes(&measured));
    append_many(&store, 50_000).await;
    stop_reader.store(true, Ordering::Relaxed);
    stop_measuring.store(true, Ordering::Relaxed);
    let largest = sizes.join().unwrap().into_iter().max().unwrap();
    assert!(largest < 64 * 1024 * 1024, "the log grew to {largest} bytes");
    let mut lists = lists.join().unwrap();
    lists.sort();
    let p95 = lists[lists.len() * 95 / 100];
    assert!(p95 < Duration::from_millis(100), "the list took {p95:?}");
    wait_until_log_is_short(&folder);
    store.close();
    assert_eq!(wal_bytes(&folder), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn o_d01_a_log_that_a_long_read_kept_from_being_cut_is_cut_after_it() {
    let (folder, store) = new_store();
    create(&store, started(1)).await.durable().await.unwrap();
    let reader = Connection::open(folder.path().join(DATABASE)).unwrap();
    let reading = reader.unchecked_transaction().unwrap();
    let n: i64 = reading.query_row("SELECT count(*) FROM record", [], |row| row.get(0)).unwrap();
    assert_eq!(n, 1);
    append_many(&store, 10_000).await;
    assert!(wal_bytes(&folder) > WAL_BYTES_MAX, "the reader keeps the log");
    drop(reading);
    wait_until_log_is_short(&folder);
}
