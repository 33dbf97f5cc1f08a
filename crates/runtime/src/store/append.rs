//! Appending to a journal: the records, the projections folded from them, the signals acted on.

use std::sync::Arc;

use engine::ids::{ExecutionId, OwnerId, Seq};
use engine::journal::Record;
use engine::projection::{ExecutionSummary, NodeSummary};

use crate::store::Store;
use crate::store::queue::Weight;
use crate::store::record_table::{self, WrittenRecord};
use crate::store::signal_table::{self, SignalId};
use crate::store::ticket::{Promise, Ticket};
use crate::store::writer::{Job, Session};
use crate::store::{execution_table, node_result_table};

/// One decision of the scheduler on its way into the journal. It is written whole or not at all.
#[derive(Clone, Debug)]
pub struct Append {
    /// Whose journal.
    pub execution: ExecutionId,
    /// Who appends. Only the execution's owner may.
    pub owner: OwnerId,
    /// The last record before these; 0 if there is none.
    pub expected: Seq,
    /// The records, numbered from `expected` on. None at all is allowed where signals were acted
    /// on and nothing followed.
    pub records: Vec<Record>,
    /// The execution as folded up to the last of the records.
    pub summary: ExecutionSummary,
    /// The node instances that the records changed, as folded up to the last of them.
    pub nodes: Vec<NodeSummary>,
    /// The signals that the decision acted on.
    pub consumes: Vec<SignalId>,
}

/// Why an append was refused. In every case the journal is unchanged.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AppendError {
    /// Someone else appended first, or an append that this one builds on was refused. Replay the
    /// execution and decide again.
    #[error("execution {execution}: expected seq {expected}, journal is at {actual}")]
    Conflict {
        /// Whose journal.
        execution: ExecutionId,
        /// The last record that the append builds on.
        expected: Seq,
        /// The last record that there is.
        actual: Seq,
    },
    /// The execution belongs to somebody else now. Drop it.
    #[error("execution {execution} is owned by {actual}, not by {claimed}")]
    NotOwner {
        /// Whose journal.
        execution: ExecutionId,
        /// Who tried to append.
        claimed: OwnerId,
        /// Who may.
        actual: OwnerId,
    },
    /// A signal was acted on before. Replay the execution and read its signals again.
    #[error("signal {signal} of execution {execution} was acted on before")]
    SignalConsumed {
        /// Whose journal.
        execution: ExecutionId,
        /// Which signal.
        signal: SignalId,
    },
    /// The execution was deleted, or never existed.
    #[error("execution {execution} is unknown")]
    UnknownExecution {
        /// Which.
        execution: ExecutionId,
    },
    /// The app is closing; nothing more will be written.
    #[error("store is closed")]
    Closed,
    /// SQLite refused: the disk is full, or the database is damaged or locked.
    #[error("cannot append to execution {execution}")]
    Sqlite {
        /// Whose journal.
        execution: ExecutionId,
        /// What it said.
        #[source]
        source: Arc<rusqlite::Error>,
    },
}

/// An append with its records written down, ready for the writer.
pub(super) struct WrittenAppend {
    execution: ExecutionId,
    owner: OwnerId,
    expected: Seq,
    last: Seq,
    records: Vec<WrittenRecord>,
    summary: ExecutionSummary,
    nodes: Vec<NodeSummary>,
    consumes: Vec<SignalId>,
}

/// Of the rows and allocations around each record and node, in bytes.
const OVERHEAD_BYTES: usize = 256;

impl WrittenAppend {
    /// Writes the records down.
    ///
    /// # Panics
    /// If the records are not numbered from `expected` on without a gap.
    pub(super) fn new(append: Append) -> WrittenAppend {
        let mut last = append.expected;
        for record in &append.records {
            last = last.next();
            assert_eq!(
                record.seq, last,
                "the records of an append are numbered from `expected` on"
            );
        }
        WrittenAppend {
            execution: append.execution,
            owner: append.owner,
            expected: append.expected,
            last,
            records: append.records.into_iter().map(WrittenRecord::new).collect(),
            summary: append.summary,
            nodes: append.nodes,
            consumes: append.consumes,
        }
    }

    pub(super) fn weight(&self) -> Weight {
        let texts: usize = self.records.iter().map(WrittenRecord::bytes).sum();
        let n_rows = self.records.len() + self.nodes.len() + 1;
        Weight { records: self.records.len(), bytes: texts + n_rows * OVERHEAD_BYTES }
    }

    pub(super) fn owner(&self) -> OwnerId {
        self.owner
    }

    pub(super) fn summary(&self) -> &ExecutionSummary {
        &self.summary
    }

    /// Why the append may not be written, as far as can be said before anything is.
    fn refusal(&self, session: &mut Session) -> rusqlite::Result<Option<AppendError>> {
        let execution = self.execution;
        let Some(head) = session.head(execution)? else {
            return Ok(Some(AppendError::UnknownExecution { execution }));
        };
        if head.owner != self.owner {
            let (claimed, actual) = (self.owner, head.owner);
            return Ok(Some(AppendError::NotOwner { execution, claimed, actual }));
        }
        if head.seq != self.expected {
            let (expected, actual) = (self.expected, head.seq);
            return Ok(Some(AppendError::Conflict { execution, expected, actual }));
        }
        for &signal in &self.consumes {
            if !signal_table::is_waiting(session.conn(), head.key, signal)? {
                return Ok(Some(AppendError::SignalConsumed { execution, signal }));
            }
        }
        Ok(None)
    }

    /// Writes everything but the projections.
    pub(super) fn write(&self, session: &mut Session, key: i64) -> rusqlite::Result<()> {
        for record in &self.records {
            record_table::insert(session.conn(), key, record)?;
        }
        for &signal in &self.consumes {
            signal_table::consume(session.conn(), signal, self.last)?;
        }
        session.advance(self.execution, self.last);
        Ok(())
    }

    /// Writes those rows of the projections that no later append of the group has written.
    pub(super) fn project(&self, session: &mut Session, key: i64) -> rusqlite::Result<()> {
        if session.is_first_projection_of_execution(key) {
            execution_table::update(session.conn(), key, &self.summary)?;
        }
        // From the end: the last row of an instance is the one that counts.
        for node in self.nodes.iter().rev() {
            if session.is_first_projection_of_node(key, &node.instance) {
                node_result_table::put(session.conn(), key, node)?;
            }
        }
        Ok(())
    }
}

/// An append on its way through the writer.
struct AppendJob {
    append: WrittenAppend,
    promise: Promise,
    /// Set by `apply`: the execution's key, or why nothing was written.
    applied: Option<Result<i64, AppendError>>,
}

impl Job for AppendJob {
    fn apply(&mut self, session: &mut Session) -> rusqlite::Result<()> {
        self.applied = None;
        if let Some(refusal) = self.append.refusal(session)? {
            self.applied = Some(Err(refusal));
            return Ok(());
        }
        let head = session.head(self.append.execution)?.expect("a head was just found");
        let key = head.key;
        self.append.write(session, key)?;
        self.applied = Some(Ok(key));
        Ok(())
    }

    fn project(&self, session: &mut Session) -> rusqlite::Result<()> {
        match &self.applied {
            Some(Ok(key)) => self.append.project(session, *key),
            Some(Err(_)) | None => Ok(()),
        }
    }

    fn settle(self: Box<Self>, outcome: Result<(), Arc<rusqlite::Error>>) {
        let execution = self.append.execution;
        self.promise.decide(match (self.applied, outcome) {
            (Some(Err(refusal)), _) => Err(refusal),
            (_, Err(source)) => Err(AppendError::Sqlite { execution, source }),
            (Some(Ok(_)), Ok(())) => Ok(()),
            (None, Ok(())) => unreachable!("only what was applied is committed"),
        });
    }
}

impl Store {
    /// Queues an append and gives its ticket. The records are on disk once the ticket says so.
    ///
    /// Returns at once unless very much waits already; then it waits for room. Appends of one
    /// execution are written in the order in which they were queued, and one that builds on a
    /// refused one is refused itself.
    ///
    /// # Panics
    /// If the records are not numbered from `expected` on without a gap.
    pub async fn append(&self, append: Append) -> Ticket {
        let append = WrittenAppend::new(append);
        let (promise, ticket) = Promise::new(append.execution);
        let weight = append.weight();
        // A closed queue drops the job, and with it the promise, which tells the ticket.
        let _ =
            self.queue().push(Box::new(AppendJob { append, promise, applied: None }), weight).await;
        ticket
    }
}
