//! What the store's tests build on: a store in a folder of its own, and executions to put in it.

use engine::ids::{Digest, ExecutionId, Instance, OwnerId, Seq};
use engine::journal::Record;
use engine::payload::Payload;
use engine::projection::{ExecutionStatus, ExecutionSummary, NodeStatus, NodeSummary};
use engine::scheduler::event::{
    Event, ExecutionStarted, NodeCompleted, PinnedAgentRef, Trigger, Usage,
};
use engine::time::Timestamp;
use tempfile::TempDir;
use uuid::Uuid;

use crate::store::Store;
use crate::store::append::Append;
use crate::store::create::{Created, Idempotency, NewExecution};
use crate::store::execution_table::tests::any_summary;
use crate::store::open::StoreOptions;
use crate::store::plan_table::PlanRow;
use crate::store::ticket::Ticket;

/// A store in a new folder. The folder goes when it is dropped.
pub(super) fn new_store() -> (TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = reopen(&folder);
    (folder, store)
}

/// Another store, or the same again, in the same folder.
pub(super) fn reopen(folder: &TempDir) -> Store {
    let folder = folder.path().to_owned();
    Store::open(StoreOptions { folder, wall_clock: || Timestamp(5_000) }).unwrap()
}

pub(super) fn execution_id(n: u128) -> ExecutionId {
    ExecutionId(Uuid::from_u128(n))
}

pub(super) fn owner_id(n: u128) -> OwnerId {
    OwnerId(Uuid::from_u128(n))
}

/// The owner of everything that does not say otherwise.
pub(super) const ME: OwnerId = OwnerId(Uuid::from_u128(0xA));

/// A new execution with its first record, and the payload `input` in it.
pub(super) fn started_with(n: u128, input: &Payload) -> NewExecution {
    let document = "{\"nodes\": []}".to_owned();
    let agent = "{\"id\":\"echo\"}".to_owned();
    let agent_digest = Digest::of(agent.as_bytes());
    let execution = execution_id(n);
    let started = ExecutionStarted {
        format: 1,
        plan: Digest::of(b"plan"),
        agents: vec![PinnedAgentRef { id: "echo".into(), digest: agent_digest }],
        input: input.clone(),
        workflow: None,
        workspace: "Personal".to_owned(),
        source: None,
        trigger: Trigger::Manual,
        root: execution,
        parent: None,
        spawned_by: None,
        document: Digest::of(document.as_bytes()),
    };
    let record = Record {
        seq: Seq(1),
        at: Timestamp(1_000),
        event: Event::ExecutionStarted(started.into()),
    };
    NewExecution {
        idempotency: None,
        plan: PlanRow {
            digest: Digest::of(b"plan"),
            document: Digest::of(document.as_bytes()),
            compiler_version: 1,
            diagnostics: "[]".to_owned(),
        },
        document,
        agents: vec![(agent_digest, agent)],
        first: Append {
            execution,
            owner: ME,
            expected: Seq(0),
            records: vec![record],
            summary: any_summary(n),
            nodes: Vec::new(),
            consumes: Vec::new(),
        },
    }
}

/// A new execution with its first record.
pub(super) fn started(n: u128) -> NewExecution {
    started_with(n, &Payload::null())
}

/// A new execution under an idempotency key.
pub(super) fn started_under(n: u128, key: &str, input: &str) -> NewExecution {
    let input = Digest::of(input.as_bytes());
    NewExecution { idempotency: Some(Idempotency { key: key.to_owned(), input }), ..started(n) }
}

/// Creates an execution that must be new.
pub(super) async fn create(store: &Store, new: NewExecution) -> Ticket {
    match store.create_execution(new).await.unwrap() {
        Created::New(ticket) => ticket,
        Created::Existing(existing) => panic!("execution {existing} exists"),
    }
}

/// A record that says that a node completed with an output.
pub(super) fn completed(seq: u64, node: &str, output: &Payload) -> Record {
    let event = Event::NodeCompleted(NodeCompleted {
        instance: Instance::top(node.into()),
        attempt: 1,
        output: output.clone(),
        edges: Vec::new(),
        warnings: Vec::new(),
        usage: Usage::default(),
    });
    Record { seq: Seq(seq), at: Timestamp(1_000 + seq as i64), event }
}

/// A node row.
pub(super) fn node(name: &str, status: NodeStatus) -> NodeSummary {
    NodeSummary {
        instance: Instance::top(name.into()),
        status,
        waiting_for: None,
        due: None,
        attempts: 1,
        reason: None,
        origin: None,
        failure: None,
        started_at: Some(Timestamp(1_000)),
        ended_at: None,
        decided_seq: None,
    }
}

/// An append of `n_records` records after `expected`, each about a node named after its number.
pub(super) fn append(n: u128, expected: u64, n_records: u64) -> Append {
    let records: Vec<Record> = (expected + 1..=expected + n_records)
        .map(|seq| completed(seq, &format!("n{seq}"), &Payload::parse("\"out\"").unwrap()))
        .collect();
    let nodes = (expected + 1..=expected + n_records)
        .map(|seq| node(&format!("n{seq}"), NodeStatus::Completed))
        .collect();
    let seq = Seq(expected + n_records);
    let summary = ExecutionSummary { seq, nodes_decided: seq.0 as u32, ..any_summary(n) };
    let execution = execution_id(n);
    Append {
        execution,
        owner: ME,
        expected: Seq(expected),
        records,
        summary,
        nodes,
        consumes: Vec::new(),
    }
}

/// Makes an append the last one: nobody need own the execution any more.
pub(super) fn settling(append: Append) -> Append {
    let summary = ExecutionSummary {
        status: ExecutionStatus::Completed,
        is_settled: true,
        ended_at: Some(Timestamp(9_000)),
        ..append.summary
    };
    Append { summary, ..append }
}
