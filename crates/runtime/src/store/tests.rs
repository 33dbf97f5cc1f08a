//! Tests of the store as a whole: what is on disk, what is refused, and in which order.

use engine::ids::{Digest, Seq};
use engine::limits::INLINE_PAYLOAD_BYTES_MAX;
use engine::payload::Payload;
use engine::projection::{ExecutionSummary, NodeStatus};
use rusqlite::Connection;

use crate::store::append::{Append, AppendError};
use crate::store::create::{CreateError, Created};
use crate::store::error::StoreError;
use crate::store::fixture::{
    append, completed, create, execution_id, new_store, node, owner_id, reopen, started,
    started_under, started_with,
};
use crate::store::open::DATABASE;
use crate::store::queue::QUEUED_RECORDS_MAX;

fn long_payload(letter: &str) -> Payload {
    let text = format!("\"{}\"", letter.repeat(INLINE_PAYLOAD_BYTES_MAX));
    Payload::parse(&text).unwrap()
}

#[tokio::test]
async fn what_was_appended_is_read_back_by_the_next_process() {
    let (folder, store) = new_store();
    let new = started_with(1, &long_payload("x"));
    let mut expected = new.first.records.clone();
    create(&store, new.clone()).await;
    let mut second = append(1, 1, 3);
    second.records[1] = completed(3, "n3", &long_payload("y"));
    expected.extend(second.records.clone());
    store.append(second.clone()).await.durable().await.unwrap();
    store.close();
    drop(store);

    let store = reopen(&folder);
    let id = execution_id(1);
    assert_eq!(store.journal(id).unwrap(), expected);
    assert_eq!(store.records_after(id, Seq(2), 1).unwrap(), expected[2..3]);
    assert_eq!(store.node_results(id).unwrap(), second.nodes);
    let row = store.execution(id).unwrap().unwrap();
    assert_eq!((row.summary, row.owner), (second.summary, second.owner));
    assert_eq!(store.text(row.document).unwrap(), new.document);
    assert_eq!(store.plan(new.plan.digest).unwrap(), Some(new.plan));
    assert_eq!(store.text(new.agents[0].0).unwrap(), new.agents[0].1);
}

#[tokio::test]
async fn an_append_that_expects_another_end_is_a_conflict_with_both_numbers() {
    let (_folder, store) = new_store();
    create(&store, started(1)).await;
    let first = store.append(append(1, 1, 2)).await;
    let stale = store.append(append(1, 1, 1)).await;
    let ahead = store.append(append(1, 7, 1)).await;
    first.durable().await.unwrap();
    for (ticket, builds_on) in [(stale, Seq(1)), (ahead, Seq(7))] {
        let Err(AppendError::Conflict { expected, actual, .. }) = ticket.durable().await else {
            panic!("no conflict");
        };
        assert_eq!((expected, actual), (builds_on, Seq(3)));
    }
    assert_eq!(store.journal(execution_id(1)).unwrap().len(), 3);
}

#[tokio::test]
async fn what_builds_on_a_refused_append_is_refused_and_others_are_not() {
    let (_folder, store) = new_store();
    create(&store, started(1)).await;
    create(&store, started(2)).await;
    let foreign = Append { owner: owner_id(99), ..append(1, 1, 2) };
    let refused = store.append(foreign).await;
    let built_on_it = store.append(append(1, 3, 1)).await;
    let other = store.append(append(2, 1, 1)).await;
    let refused = refused.durable().await;
    assert!(matches!(refused, Err(AppendError::NotOwner { .. })), "{refused:?}");
    let built_on_it = built_on_it.durable().await;
    assert!(matches!(built_on_it, Err(AppendError::Conflict { .. })), "{built_on_it:?}");
    other.durable().await.unwrap();
    store.append(append(1, 1, 1)).await.durable().await.unwrap();
}

#[tokio::test]
async fn an_unknown_execution_takes_no_records() {
    let (_folder, store) = new_store();
    let result = store.append(append(1, 0, 1)).await.durable().await;
    assert!(matches!(result, Err(AppendError::UnknownExecution { .. })), "{result:?}");
    let journal = store.journal(execution_id(1));
    assert!(matches!(journal, Err(StoreError::UnknownExecution { .. })), "{journal:?}");
}

#[tokio::test]
async fn a_job_that_sqlite_refuses_leaves_nothing_behind_and_harms_no_other() {
    let (folder, store) = new_store();
    for n in 1..=3 {
        create(&store, started(n)).await.durable().await.unwrap();
    }
    // A row in the way of the second record of execution 2: its first record was already written
    // when SQLite refuses.
    let raw = Connection::open(folder.path().join(DATABASE)).unwrap();
    raw.execute_batch(
        "CREATE TRIGGER refuse BEFORE INSERT ON record WHEN new.execution = 2 AND new.seq = 3
         BEGIN SELECT raise(ABORT, 'refused for the test'); END",
    )
    .unwrap();
    let tickets = [
        store.append(append(1, 1, 2)).await,
        store.append(append(2, 1, 2)).await,
        store.append(append(2, 3, 1)).await,
        store.append(append(3, 1, 2)).await,
        store.append(append(1, 3, 1)).await,
    ];
    let mut results = Vec::new();
    for ticket in &tickets {
        results.push(ticket.durable().await);
    }
    assert!(matches!(results[1], Err(AppendError::Sqlite { .. })), "{:?}", results[1]);
    assert!(matches!(results[2], Err(AppendError::Conflict { .. })), "{:?}", results[2]);
    for n in [0, 3, 4] {
        assert!(results[n].is_ok(), "{:?}", results[n]);
    }
    let lengths = [1, 2, 3].map(|n| store.journal(execution_id(n)).unwrap().len());
    assert_eq!(lengths, [4, 1, 3]);
    assert_eq!(store.node_results(execution_id(2)).unwrap(), []);
    raw.execute_batch("DROP TRIGGER refuse").unwrap();
    store.append(append(2, 1, 2)).await.durable().await.unwrap();
}

#[tokio::test]
async fn only_the_last_row_of_a_projection_counts() {
    let (_folder, store) = new_store();
    create(&store, started(1)).await;
    let mut last = None;
    for seq in 1..500 {
        let mut append = append(1, seq, 1);
        append.nodes.insert(0, node("same", NodeStatus::Running));
        if seq == 499 {
            append.nodes.push(node("same", NodeStatus::Completed));
        }
        last = Some(store.append(append).await);
    }
    last.unwrap().durable().await.unwrap();
    let nodes = store.node_results(execution_id(1)).unwrap();
    assert_eq!(nodes.len(), 500, "499 named after their record and one that they share");
    let same: Vec<_> = nodes.iter().filter(|n| n.instance.node.as_str() == "same").collect();
    assert_eq!(same[0].status, NodeStatus::Completed);
    let row = store.execution(execution_id(1)).unwrap().unwrap();
    assert_eq!(row.summary.seq, Seq(500));
}

#[tokio::test]
async fn a_start_that_is_repeated_gives_the_same_execution() {
    let (_folder, store) = new_store();
    let id = execution_id(1);
    assert!(matches!(
        store.create_execution(started_under(1, "monday", "input")).await,
        Ok(Created::New(_))
    ));
    let again = store.create_execution(started_under(2, "monday", "input")).await;
    assert!(matches!(again, Ok(Created::Existing(existing)) if existing == id), "{again:?}");
    let other_input = store.create_execution(started_under(3, "monday", "other")).await;
    assert!(
        matches!(&other_input, Err(CreateError::KeyUsedDifferently { existing, .. })
            if *existing == id),
        "{other_input:?}"
    );
    let mut other_plan = started_under(4, "monday", "input");
    other_plan.plan.digest = Digest::of(b"another plan");
    other_plan.first.summary.plan = Digest::of(b"another plan");
    let other_plan = store.create_execution(other_plan).await;
    assert!(matches!(other_plan, Err(CreateError::KeyUsedDifferently { .. })), "{other_plan:?}");
    let mut elsewhere = started_under(5, "monday", "other");
    elsewhere.first.summary.workspace = "Team".to_owned();
    assert!(matches!(store.create_execution(elsewhere).await, Ok(Created::New(_))));
    assert_eq!(store.executions(&Default::default(), None).unwrap().executions.len(), 2);
}

#[tokio::test]
async fn starts_that_race_under_one_key_give_one_execution() {
    let (folder, store) = new_store();
    let other_process = reopen(&folder);
    let mut starts = Vec::new();
    for n in 0..40 {
        let store = if n % 2 == 0 { store.clone() } else { other_process.clone() };
        starts.push(tokio::spawn(async move {
            match store.create_execution(started_under(n, "key", "input")).await.unwrap() {
                Created::New(ticket) => ticket.execution(),
                Created::Existing(existing) => existing,
            }
        }));
    }
    let mut ids = std::collections::BTreeSet::new();
    for start in starts {
        ids.insert(start.await.unwrap());
    }
    assert_eq!(ids.len(), 1);
    assert_eq!(store.executions(&Default::default(), None).unwrap().executions.len(), 1);
}

#[tokio::test]
async fn two_processes_write_to_one_folder_at_once() {
    let (folder, store) = new_store();
    let other_process = reopen(&folder);
    create(&store, started(1)).await;
    create(&other_process, started(2)).await;
    let write = |store: crate::store::Store, n| async move {
        for seq in 1..200 {
            store.append(append(n, seq, 1)).await.durable().await.unwrap();
        }
    };
    let writers = [(store.clone(), 1), (other_process, 2)].map(|(s, n)| tokio::spawn(write(s, n)));
    for writer in writers {
        writer.await.unwrap();
    }
    for n in [1, 2] {
        assert_eq!(store.journal(execution_id(n)).unwrap().len(), 200);
    }
}

#[tokio::test]
async fn an_owner_that_was_replaced_by_another_process_notices_at_its_next_append() {
    let (folder, store) = new_store();
    create(&store, started(1)).await.durable().await.unwrap();
    let raw = Connection::open(folder.path().join(DATABASE)).unwrap();
    raw.execute("UPDATE execution SET owner = ?1", [owner_id(7).to_string()]).unwrap();
    let result = store.append(append(1, 1, 1)).await.durable().await;
    assert!(
        matches!(result, Err(AppendError::NotOwner { actual, .. }) if actual == owner_id(7)),
        "{result:?}"
    );
}

#[tokio::test]
async fn a_process_whose_tables_were_changed_under_it_writes_no_more() {
    let (folder, store) = new_store();
    create(&store, started(1)).await.durable().await.unwrap();
    let raw = Connection::open(folder.path().join(DATABASE)).unwrap();
    raw.pragma_update(None, "user_version", 4_000).unwrap();
    let result = store.append(append(1, 1, 1)).await.durable().await;
    let Err(AppendError::Sqlite { source, .. }) = result else { panic!("{result:?}") };
    assert!(source.to_string().contains("start this one again"), "{source}");
    assert_eq!(store.journal(execution_id(1)).unwrap().len(), 1);
}

#[tokio::test]
async fn everything_that_waits_at_the_close_is_written_and_nothing_after_it() {
    let (folder, store) = new_store();
    create(&store, started(1)).await;
    let mut tickets = Vec::new();
    for seq in 1..2_000 {
        tickets.push(store.append(append(1, seq, 1)).await);
    }
    store.close();
    for ticket in tickets {
        ticket.try_status().unwrap().unwrap();
    }
    let late = store.append(append(1, 2_000, 1)).await.durable().await;
    assert!(matches!(late, Err(AppendError::Closed)), "{late:?}");
    let wal = std::fs::metadata(folder.path().join("cyanotype.db-wal"));
    assert!(wal.is_err() || wal.unwrap().len() == 0, "the log is cut at the close");
    assert_eq!(store.journal(execution_id(1)).unwrap().len(), 2_000);
}

#[tokio::test]
async fn whoever_appends_faster_than_the_disk_waits_for_room() {
    let (_folder, store) = new_store();
    create(&store, started(1)).await;
    let mut last = None;
    let mut seq = 1;
    while seq < 3 * QUEUED_RECORDS_MAX as u64 {
        last = Some(store.append(append(1, seq, 1_000)).await);
        seq += 1_000;
    }
    last.unwrap().durable().await.unwrap();
    let stats = store.stats();
    assert!(stats.records_queued_max < QUEUED_RECORDS_MAX as u64 + 1_000, "{stats:?}");
    assert_eq!(stats.records, seq);
}

#[tokio::test]
async fn a_blob_that_is_missing_is_named_and_the_journal_stays_as_it_is() {
    let (folder, store) = new_store();
    let payload = long_payload("x");
    create(&store, started_with(1, &payload)).await.durable().await.unwrap();
    let raw = Connection::open(folder.path().join(DATABASE)).unwrap();
    raw.pragma_update(None, "foreign_keys", false).unwrap();
    raw.execute("DELETE FROM blob WHERE digest = ?1", [payload.digest().to_string()]).unwrap();
    let error = store.journal(execution_id(1)).unwrap_err();
    assert!(error.to_string().contains(&format!("blob {} is missing", payload.digest())));
    let n_records: i64 = raw.query_row("SELECT count(*) FROM record", [], |r| r.get(0)).unwrap();
    assert_eq!(n_records, 1);
}

#[tokio::test]
async fn a_journal_with_a_gap_or_a_torn_record_is_damage_that_names_the_record() {
    let (folder, store) = new_store();
    create(&store, started(1)).await;
    store.append(append(1, 1, 4)).await.durable().await.unwrap();
    let raw = Connection::open(folder.path().join(DATABASE)).unwrap();
    raw.execute("UPDATE record SET body = '{\"inst' WHERE seq = 5", []).unwrap();
    let error = store.journal(execution_id(1)).unwrap_err();
    assert!(error.to_string().contains("record 5 of execution"), "{error}");
    raw.execute("DELETE FROM record WHERE seq = 3", []).unwrap();
    let error = store.journal(execution_id(1)).unwrap_err();
    assert!(error.to_string().contains("record 3 of execution"), "{error}");
    assert!(error.to_string().contains("is missing"), "{error}");
}

#[tokio::test]
async fn o_k02_a_terminal_row_beside_a_shorter_journal_is_left_as_it_is() {
    let (folder, store) = new_store();
    create(&store, started(1)).await;
    let last = crate::store::fixture::settling(append(1, 1, 2));
    let summary: ExecutionSummary = last.summary.clone();
    store.append(last).await.durable().await.unwrap();
    drop(store);
    let raw = Connection::open(folder.path().join(DATABASE)).unwrap();
    raw.execute("DELETE FROM record WHERE seq = 3", []).unwrap();
    drop(raw);
    let store = reopen(&folder);
    assert_eq!(store.execution(execution_id(1)).unwrap().unwrap().summary, summary);
    assert_eq!(store.journal(execution_id(1)).unwrap().len(), 2);
    store.close();
    let store = reopen(&folder);
    assert_eq!(store.execution(execution_id(1)).unwrap().unwrap().summary, summary);
}
