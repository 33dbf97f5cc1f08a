//! What an append gives back: the promise that its records will be on disk, or why they are not.

use std::fmt;
use std::sync::{Arc, OnceLock};

use engine::ids::ExecutionId;
use tokio::sync::Notify;

use crate::store::append::AppendError;

/// Stands for one append. Cheap to clone; dropping it changes nothing.
#[derive(Clone)]
pub struct Ticket {
    outcome: Arc<Outcome>,
}

struct Outcome {
    execution: ExecutionId,
    result: OnceLock<Result<(), AppendError>>,
    decided: Notify,
}

impl Ticket {
    /// The execution whose journal was appended to.
    pub fn execution(&self) -> ExecutionId {
        self.outcome.execution
    }

    /// Waits until the records are on disk, or until it is certain that they never will be.
    ///
    /// Any number of callers may wait, in any order, also after the fact.
    pub async fn durable(&self) -> Result<(), AppendError> {
        loop {
            // Created before the look: it then hears every call of `notify_waiters` that follows.
            let decided = self.outcome.decided.notified();
            if let Some(result) = self.outcome.result.get() {
                return result.clone();
            }
            decided.await;
        }
    }

    /// What `durable` would give at once, or `None` while nothing is decided.
    pub fn try_status(&self) -> Option<Result<(), AppendError>> {
        self.outcome.result.get().cloned()
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket")
            .field("execution", &self.outcome.execution)
            .field("result", &self.outcome.result)
            .finish_non_exhaustive()
    }
}

/// The writer's end of a ticket. Dropped unkept, it says that the store was closed.
pub(super) struct Promise {
    outcome: Arc<Outcome>,
}

impl Promise {
    /// A promise and its ticket.
    pub(super) fn new(execution: ExecutionId) -> (Promise, Ticket) {
        let outcome =
            Arc::new(Outcome { execution, result: OnceLock::new(), decided: Notify::new() });
        (Promise { outcome: outcome.clone() }, Ticket { outcome })
    }

    /// Decides the ticket; a decision stands.
    pub(super) fn decide(&self, result: Result<(), AppendError>) {
        if self.outcome.result.set(result).is_ok() {
            self.outcome.decided.notify_waiters();
        }
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        if self.outcome.result.get().is_none() {
            self.decide(Err(AppendError::Closed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[tokio::test]
    async fn every_clone_learns_the_outcome_before_and_after_the_fact() {
        let (promise, ticket) = Promise::new(ExecutionId(Uuid::from_u128(1)));
        assert!(ticket.try_status().is_none());
        let waiting = tokio::spawn({
            let ticket = ticket.clone();
            async move { ticket.durable().await }
        });
        tokio::task::yield_now().await;
        promise.decide(Ok(()));
        assert!(waiting.await.unwrap().is_ok());
        assert!(ticket.durable().await.is_ok());
    }

    #[tokio::test]
    async fn a_promise_that_is_dropped_says_that_the_store_is_closed() {
        let (promise, ticket) = Promise::new(ExecutionId(Uuid::from_u128(1)));
        drop(promise);
        assert!(matches!(ticket.durable().await, Err(AppendError::Closed)));
    }
}
