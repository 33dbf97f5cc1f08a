//! The reference: the same rows as ours, written by nothing but SQLite.

use std::path::Path;
use std::time::Instant;

use rusqlite::{Connection, TransactionBehavior, params};

use crate::{Sample, fresh_folder};

/// About the length of a completed attempt's record with an input of 200 bytes.
const EVENT_BYTES: usize = 300;

/// Writes an event row and a state row for each of `n_nodes` nodes, `per_commit` nodes in a
/// transaction.
pub fn run(n_nodes: u32, per_commit: usize) -> Sample {
    let mut connection = open(&fresh_folder("raw").join("raw.db"));
    let nodes: Vec<(u32, String)> = (0..n_nodes).map(|seq| (seq, format!("node-{seq}"))).collect();
    let begin = Instant::now();
    let mut n_commits = 0;
    for group in nodes.chunks(per_commit) {
        write(&mut connection, group);
        n_commits += 1;
    }
    Sample { n_nodes, took: begin.elapsed(), n_commits, longest_unflushed: None }
}

/// One transaction.
fn write(connection: &mut Connection, nodes: &[(u32, String)]) {
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .expect("nobody else writes");
    {
        let mut event = transaction
            .prepare_cached("INSERT INTO event (execution, seq, body) VALUES (1, ?1, ?2)")
            .expect("the statement is valid");
        let mut state = transaction
            .prepare_cached(
                "INSERT INTO state (execution, node, status) VALUES (1, ?1, 'completed')",
            )
            .expect("the statement is valid");
        for (seq, node) in nodes {
            event.execute(params![seq, [b'x'; EVENT_BYTES]]).expect("the row is new");
            state.execute(params![node]).expect("the row is new");
        }
    }
    transaction.commit().expect("the disk has room");
}

fn open(path: &Path) -> Connection {
    let connection = Connection::open(path).expect("the folder is new");
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL;
             PRAGMA synchronous = FULL;
             CREATE TABLE event (
                 execution INTEGER NOT NULL,
                 seq INTEGER NOT NULL,
                 body BLOB NOT NULL,
                 PRIMARY KEY (execution, seq)
             ) STRICT, WITHOUT ROWID;
             CREATE TABLE state (
                 execution INTEGER NOT NULL,
                 node TEXT NOT NULL,
                 status TEXT NOT NULL,
                 PRIMARY KEY (execution, node)
             ) STRICT, WITHOUT ROWID;",
        )
        .expect("the schema is valid");
    let mode: String = connection
        .query_row("PRAGMA journal_mode", [], |row| row.get(0))
        .expect("SQLite names its mode");
    assert_eq!(mode, "wal", "this file system cannot hold a write-ahead log");
    connection
}
