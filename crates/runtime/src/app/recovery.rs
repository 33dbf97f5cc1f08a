//! Taking over executions whose process is gone.

use engine::ids::{ExecutionId, OwnerId, Seq};
use engine::scheduler::Execution;
use engine::scheduler::input::Input;

use super::executions::ExecutionError;
use super::{App, PROCESSES};
use crate::driver::load::{LoadError, load};
use crate::runner::process::survivors;
use crate::store::append::Append;
use crate::store::owner_table::Unsettled;
use crate::store::ownership::Claim;
use crate::store::ticket::Ticket;

impl App {
    /// Takes over interrupted executions and continues them: the one named, or all there are.
    /// Gives those that this process drives because of it. One that a living process drives, or
    /// that has ended, is left alone.
    pub async fn resume(
        &self,
        only: Option<ExecutionId>,
    ) -> Result<Vec<ExecutionId>, ExecutionError> {
        if let Some(id) = only {
            self.execution(id)?;
        }
        let interrupted = self.interrupted(only)?;
        let mut resumed = Vec::new();
        for found in interrupted {
            if self.claim(&found).await? {
                self.adopt(&found, None).await?;
                resumed.push(found.execution);
            }
        }
        Ok(resumed)
    }

    /// The executions whose owner is dead: all, or only one if it is among them.
    pub fn interrupted(&self, only: Option<ExecutionId>) -> Result<Vec<Unsettled>, ExecutionError> {
        let mut found = self.store().adoptable(self.driver().owner())?;
        found.retain(|found| only.is_none_or(|id| found.execution == id));
        Ok(found)
    }

    /// Makes this process the owner of an interrupted execution. `false`: another was quicker.
    pub(super) async fn claim(&self, found: &Unsettled) -> Result<bool, ExecutionError> {
        let me = self.driver().owner();
        if self.store().claim(found.execution, found.owner, me).await? == Claim::Missed {
            return Ok(false);
        }
        self.end_survivors(found.owner).await;
        Ok(true)
    }

    /// Ends what the dead owner's attempts may have left running, before they are called lost.
    async fn end_survivors(&self, dead: OwnerId) {
        let processes = self.home().join(PROCESSES);
        let ended =
            self.store().off_thread(move |_| survivors::end_survivors(&processes, dead)).await;
        match ended {
            Ok(ended) => {
                for survivor in ended {
                    tracing::warn!(component = "app", action = "survivor_ended", ?survivor);
                }
            }
            Err(error) => {
                tracing::warn!(component = "app", action = "survivors_unknown", %error);
            }
        }
    }

    /// Continues a claimed execution. `wish` is decided before anything starts again.
    pub(super) async fn adopt(
        &self,
        found: &Unsettled,
        wish: Option<Input>,
    ) -> Result<(), ExecutionError> {
        let id = found.execution;
        let limits = self.driver().limits();
        let mut execution = self
            .store()
            .off_thread(move |store| Ok::<_, LoadError>(load(store, id)?.replay(limits)))
            .await?;
        let last_seen = found.last_seen.max(execution.last_at());
        let unowned_ms = self.driver().now().ms_since(last_seen);
        let restarted = Input::HostRestarted { owner: self.driver().owner(), unowned_ms };
        // A cancel comes first, so that nothing starts again; an answer comes after the restart,
        // which may be what makes the node ask.
        let inputs = match wish {
            None => vec![restarted],
            Some(cancel @ Input::CancelAsked { .. }) => vec![cancel, restarted],
            Some(other) => vec![restarted, other],
        };
        let mut refused = None;
        let mut last = None;
        for input in inputs {
            match self.decide_and_append(&mut execution, input).await {
                Ok(ticket) => last = ticket.or(last),
                Err(ExecutionError::Rejected(rejected)) => refused = Some(rejected),
                Err(other) => return Err(other),
            }
        }
        if let Some(ticket) = last {
            let outstanding = execution.outstanding();
            self.driver().drive(execution, outstanding, ticket);
        }
        refused.map_or(Ok(()), |rejected| Err(rejected.into()))
    }

    async fn decide_and_append(
        &self,
        execution: &mut Execution,
        input: Input,
    ) -> Result<Option<Ticket>, ExecutionError> {
        let expected: Seq = execution.seq();
        let records = execution.decide(input, self.driver().now())?;
        if records.is_empty() {
            return Ok(None);
        }
        let committed = execution.commit(&records);
        let nodes =
            committed.touched.iter().filter_map(|idx| execution.node_summary(*idx)).collect();
        let append = Append {
            execution: execution.id(),
            owner: self.driver().owner(),
            expected,
            records,
            summary: execution.summary().expect("a replayed execution has been started"),
            nodes,
            consumes: Vec::new(),
        };
        let ticket = self.store().append(append).await;
        let durable = ticket.durable().await;
        durable.map_err(|error| ExecutionError::NotRecorded(error.to_string()))?;
        Ok(Some(ticket))
    }
}
