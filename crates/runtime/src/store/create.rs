//! Creating an execution: its row, everything it pins, and its first records, in one transaction.

use std::sync::Arc;

use engine::ids::{Digest, ExecutionId, Seq};
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::store::append::{Append, AppendError, WrittenAppend};
use crate::store::error::StoreError;
use crate::store::execution_table::{self, Origin};
use crate::store::plan_table::{self, PlanRow};
use crate::store::ticket::{Promise, Ticket};
use crate::store::writer::{Job, Session};
use crate::store::{Store, blob_table};

/// Makes a start that is repeated give the execution that it gave before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// Chosen by whoever starts; names one execution of the workspace.
    pub key: String,
    /// The digest of the execution input as it was given.
    pub input: Digest,
}

/// An execution that is about to exist. Id, workspace, workflow and owner are those of `first`.
#[derive(Clone, Debug)]
pub struct NewExecution {
    /// Where the start may be repeated.
    pub idempotency: Option<Idempotency>,
    /// The plan it runs.
    pub plan: PlanRow,
    /// The definition as it is drawn now; `plan.document` is its digest.
    pub document: String,
    /// The agents it pins: each record's canonical JSON, under the digest of that text.
    pub agents: Vec<(Digest, String)>,
    /// What the start decided.
    pub first: Append,
}

/// What became of a start.
#[derive(Clone, Debug)]
pub enum Created {
    /// The execution exists once the ticket says so; appends may follow at once.
    New(Ticket),
    /// The same start was made before and gave this execution.
    Existing(ExecutionId),
}

/// Why no execution was created.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CreateError {
    /// The key names an execution of another plan or another input.
    #[error(
        "key {key:?} was already used for execution {existing} with another workflow version or \
         another input; use a new key, or repeat the start exactly"
    )]
    KeyUsedDifferently {
        /// The key.
        key: String,
        /// What it names.
        existing: ExecutionId,
    },
    /// The store could not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

struct CreateJob {
    idempotency: Option<Idempotency>,
    plan: PlanRow,
    document: String,
    agents: Vec<(Digest, String)>,
    first: WrittenAppend,
    promise: Promise,
    reply: Option<oneshot::Sender<Result<Option<ExecutionId>, CreateError>>>,
    /// Set by `apply`: the new execution's key, or the one that exists, or why there is none.
    applied: Option<Applied>,
}

enum Applied {
    New(i64),
    Existing(ExecutionId),
    Refused(CreateError),
}

impl CreateJob {
    /// What the same key gave before, if it was used.
    fn earlier(&self, conn: &Connection) -> rusqlite::Result<Option<Applied>> {
        let Some(Idempotency { key, input }) = &self.idempotency else { return Ok(None) };
        let workspace = &self.first.summary().workspace;
        let found = execution_table::by_idempotency_key(conn, workspace, key)?;
        Ok(found.map(|(existing, plan_before, input_before)| {
            if (plan_before, input_before) == (self.plan.digest, *input) {
                Applied::Existing(existing)
            } else {
                Applied::Refused(CreateError::KeyUsedDifferently { key: key.clone(), existing })
            }
        }))
    }

    fn write(&self, session: &mut Session) -> rusqlite::Result<i64> {
        let conn = session.conn();
        let document = plan_table::put(conn, &self.plan, &self.document)?;
        let owner = self.first.owner();
        let origin = Origin { document, owner, idempotency: self.idempotency.as_ref() };
        let key = execution_table::insert(conn, &origin, self.first.summary())?;
        for (digest, text) in &self.agents {
            let blob = blob_table::put(conn, *digest, text)?;
            blob_table::note_use(conn, key, blob)?;
        }
        session.remember(self.first.summary().id, key, owner, Seq(0));
        self.first.write(session, key)?;
        Ok(key)
    }
}

impl Job for CreateJob {
    fn apply(&mut self, session: &mut Session) -> rusqlite::Result<()> {
        self.applied = None;
        self.applied = Some(match self.earlier(session.conn())? {
            Some(earlier) => earlier,
            None => Applied::New(self.write(session)?),
        });
        Ok(())
    }

    fn project(&self, session: &mut Session) -> rusqlite::Result<()> {
        match &self.applied {
            Some(Applied::New(key)) => self.first.project(session, *key),
            Some(Applied::Existing(_) | Applied::Refused(_)) | None => Ok(()),
        }
    }

    fn settle(self: Box<Self>, outcome: Result<(), Arc<rusqlite::Error>>) {
        let execution = self.first.summary().id;
        let (decision, answer) = match (self.applied, outcome) {
            (Some(Applied::Existing(existing)), Ok(())) => {
                (Err(AppendError::UnknownExecution { execution }), Ok(Some(existing)))
            }
            (Some(Applied::Refused(refusal)), _) => {
                (Err(AppendError::UnknownExecution { execution }), Err(refusal))
            }
            (_, Err(source)) => (
                Err(AppendError::Sqlite { execution, source: source.clone() }),
                Err(StoreError::from(source).into()),
            ),
            (Some(Applied::New(_)), Ok(())) => (Ok(()), Ok(None)),
            (None, Ok(())) => unreachable!("only what was applied is committed"),
        };
        self.promise.decide(decision);
        if let Some(reply) = self.reply {
            // Whoever asked may have gone.
            let _ = reply.send(answer);
        }
    }
}

impl Store {
    /// Creates an execution with its first records, or finds the one that the same start gave.
    ///
    /// Without a key to look for it returns at once, like [`Store::append`]; with one it waits
    /// until the answer is certain.
    ///
    /// # Panics
    /// If the first records are not numbered from 1.
    pub async fn create_execution(&self, new: NewExecution) -> Result<Created, CreateError> {
        assert_eq!(new.first.expected, Seq(0), "the first records are numbered from 1");
        debug_assert_eq!(Digest::of(new.document.as_bytes()), new.plan.document);
        let first = WrittenAppend::new(new.first);
        let (promise, ticket) = Promise::new(first.summary().id);
        let (reply, answer) = oneshot::channel();
        let has_key = new.idempotency.is_some();
        let mut weight = first.weight();
        weight.bytes += new.document.len();
        weight.bytes += new.agents.iter().map(|(_, text)| text.len()).sum::<usize>();
        let job = CreateJob {
            idempotency: new.idempotency,
            plan: new.plan,
            document: new.document,
            agents: new.agents,
            first,
            promise,
            reply: has_key.then_some(reply),
            applied: None,
        };
        if self.queue().push(Box::new(job), weight).await.is_err() {
            return Err(StoreError::Closed.into());
        }
        if !has_key {
            return Ok(Created::New(ticket));
        }
        match answer.await {
            Ok(Ok(None)) => Ok(Created::New(ticket)),
            Ok(Ok(Some(existing))) => Ok(Created::Existing(existing)),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(StoreError::Closed.into()),
        }
    }
}
