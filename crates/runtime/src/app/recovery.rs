//! Taking over executions whose process is gone.

use engine::ids::{ExecutionId, OwnerId, Seq};
use engine::scheduler::Execution;
use engine::scheduler::input::Input;

use super::App;
use super::executions::ExecutionError;
use crate::driver::load::load;
use crate::runner::process::registry;
use crate::store::append::Append;
use crate::store::ticket::Ticket;

impl App {
    /// Takes over interrupted executions and continues them: the one named, or all there are.
    /// Gives those that this process drives because of it. One that a living process drives, or
    /// that has ended, is left alone.
    pub async fn resume(
        &self,
        only: Option<ExecutionId>,
    ) -> Result<Vec<ExecutionId>, ExecutionError> {
        let candidates = match only {
            Some(id) => {
                self.execution(id)?;
                vec![id]
            }
            None => self.owner().adoptable()?.into_iter().map(|found| found.execution).collect(),
        };
        let mut resumed = Vec::new();
        for id in candidates {
            if self.claim_interrupted(id).await? {
                self.adopt_with(id, None).await?;
                resumed.push(id);
            }
        }
        Ok(resumed)
    }

    /// Makes this process the owner of an execution whose owner is dead. `false`: it has ended,
    /// its owner is alive, or another process was quicker.
    pub(super) async fn claim_interrupted(&self, id: ExecutionId) -> Result<bool, ExecutionError> {
        let row = self.store().execution(id)?;
        let row = row.ok_or(ExecutionError::NotFound { execution: id })?;
        let me = self.driver().owner();
        if row.summary.is_settled || row.owner == me || self.owner().is_alive(row.owner)? {
            return Ok(false);
        }
        if !self.store().claim(id, row.owner, me).await? {
            return Ok(false);
        }
        self.end_survivors(row.owner).await;
        Ok(true)
    }

    /// Ends what the dead owner's attempts may have left running, before they are called lost.
    async fn end_survivors(&self, dead: OwnerId) {
        let folder = self.home().to_owned();
        let ended =
            tokio::task::spawn_blocking(move || registry::end_survivors(&folder, dead)).await;
        for survivor in ended.into_iter().flatten() {
            tracing::warn!(component = "app", action = "survivor_ended", process = ?survivor);
        }
    }

    /// Continues a claimed execution. `wish` is decided before anything starts again.
    pub(super) async fn adopt_with(
        &self,
        id: ExecutionId,
        wish: Option<Input>,
    ) -> Result<(), ExecutionError> {
        let (store, limits) = (self.store().clone(), self.driver().limits());
        let loaded = tokio::task::spawn_blocking(move || load(&store, id))
            .await
            .map_err(|error| ExecutionError::NotRecorded(error.to_string()))??;
        let mut execution = loaded.replay(limits);
        let unowned_ms = self.driver().now().ms_since(execution.last_at());
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
