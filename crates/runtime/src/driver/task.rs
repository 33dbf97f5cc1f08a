//! One execution being driven: its inbox, its timers, its attempts.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use engine::ids::{Instance, Seq};
use engine::journal::Record;
use engine::projection::NodeSummary;
use engine::scheduler::action::{Action, StartAttempt};
use engine::scheduler::input::Input;
use engine::scheduler::{Committed, Execution, Rejected};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::task::JoinSet;

use super::Shared;
use super::attempt::{RunningAttempt, perform_at_once};
use super::load::load_execution;
use super::publish::{Publisher, Stalled};
use super::timers::Timers;
use crate::runner::{AttemptRequest, StopHandle};
use crate::store::append::{Append, AppendError};
use crate::store::signal_table::SignalId;
use crate::store::ticket::Ticket;

/// Inputs that are decided in a row before the inbox is looked at and others get their turn.
const INPUTS_IN_A_ROW_MAX: usize = 64;
/// How long attempts get to end when the process leaves.
const LEAVE_MAX: Duration = Duration::from_secs(6);
/// Waits between tries to go on after the store refused an append.
const RELOAD_WAITS: [Duration; 3] =
    [Duration::from_millis(200), Duration::from_secs(1), Duration::from_secs(3)];

/// What may arrive in an execution's inbox.
#[derive(Debug)]
pub(crate) enum Message {
    /// Something happened to it.
    Input(Input),
    /// Something happened to it that somebody wants to know the effect of. Answered once the
    /// records are on disk.
    Ask { input: Input, answer: oneshot::Sender<Result<(), AskError>> },
    /// Another process left a signal.
    Signal { id: SignalId, input: Input },
    /// The machine has a place for an instance.
    SlotGranted { instance: Instance, permit: OwnedSemaphorePermit },
    /// An append did not reach the disk.
    AppendFailed(AppendError),
    /// The process is leaving: end the attempts, record nothing.
    Leave,
}

/// Why something asked of a running execution was not done.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// It makes no sense for the execution.
    #[error(transparent)]
    Rejected(#[from] Rejected),
    /// The store refused to record it.
    #[error(transparent)]
    Append(#[from] AppendError),
}

struct Attempt {
    attempt: u32,
    stop: StopHandle,
    /// Its place under the machine's limit, given back when the attempt is gone.
    _permit: Option<OwnedSemaphorePermit>,
}

/// An execution that this process drives.
pub(super) struct ExecutionTask {
    shared: Arc<Shared>,
    execution: Execution,
    inbox: mpsc::UnboundedReceiver<Message>,
    sender: mpsc::UnboundedSender<Message>,
    publisher: Publisher,
    /// Reports of attempts that were done at once.
    done: VecDeque<Input>,
    timers: Timers,
    attempts: BTreeMap<Instance, Attempt>,
    performing: JoinSet<()>,
    slots_asked: BTreeSet<Instance>,
    granted: BTreeMap<Instance, OwnedSemaphorePermit>,
}

/// What wakes an execution.
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and it is not stored")]
enum Wake {
    Message(Message),
    TimersDue,
}

impl ExecutionTask {
    pub fn new(
        shared: Arc<Shared>,
        execution: Execution,
        (sender, inbox): (mpsc::UnboundedSender<Message>, mpsc::UnboundedReceiver<Message>),
        publisher: Publisher,
    ) -> ExecutionTask {
        ExecutionTask {
            shared,
            execution,
            inbox,
            sender,
            publisher,
            done: VecDeque::new(),
            timers: Timers::default(),
            attempts: BTreeMap::new(),
            performing: JoinSet::new(),
            slots_asked: BTreeSet::new(),
            granted: BTreeMap::new(),
        }
    }

    /// Goes on from a state whose last append is `ticket`, until the execution is settled or the
    /// process leaves.
    pub async fn run(mut self, actions: Vec<Action>, ticket: Ticket) {
        self.publisher.appended(ticket.clone(), self.execution.seq());
        self.perform(actions, &ticket);
        let mut in_a_row = 0;
        loop {
            let is_turn_over = in_a_row == INPUTS_IN_A_ROW_MAX;
            if is_turn_over {
                in_a_row = 0;
                tokio::task::yield_now().await;
            }
            let urgent = if is_turn_over || self.done.is_empty() {
                self.inbox.try_recv().ok()
            } else {
                None
            };
            if let Some(message) = urgent {
                if !self.receive(message).await {
                    return;
                }
            } else if let Some(input) = self.done.pop_front() {
                in_a_row += 1;
                let _ = self.step(input, Vec::new()).await;
            } else if self.execution.is_settled() {
                match self.finish().await {
                    None => return,
                    Some(error) => {
                        if !self.receive(Message::AppendFailed(error)).await {
                            return;
                        }
                    }
                }
            } else {
                match self.wake().await {
                    Wake::Message(message) => {
                        if !self.receive(message).await {
                            return;
                        }
                    }
                    Wake::TimersDue => self.fire_timers().await,
                }
            }
        }
    }

    async fn wake(&mut self) -> Wake {
        let look = self.timers.next_look(self.shared.clock.read());
        let sleep = async {
            match look {
                Some(wait) => tokio::time::sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            message = self.inbox.recv() => {
                Wake::Message(message.expect("the task holds a sender of its own inbox"))
            }
            () = sleep => Wake::TimersDue,
            Some(_) = self.performing.join_next(), if !self.performing.is_empty() => {
                // Only tidies up; reports come through the inbox. Looks at the timers needlessly.
                Wake::TimersDue
            }
        }
    }

    async fn fire_timers(&mut self) {
        for timer in self.timers.take_due(self.shared.clock.read()) {
            let _ = self.step(Input::TimerDue { timer }, Vec::new()).await;
        }
    }

    /// Deals with one message. `false`: the task is over.
    async fn receive(&mut self, message: Message) -> bool {
        match message {
            Message::Input(input) => {
                if let Input::AttemptReported { instance, attempt, .. } = &input
                    && self.attempts.get(instance).is_some_and(|known| known.attempt == *attempt)
                {
                    self.attempts.remove(instance);
                }
                let _ = self.step(input, Vec::new()).await;
            }
            Message::Ask { input, answer } => {
                let result = self.step(input, Vec::new()).await;
                tokio::spawn(async move {
                    let result = match result {
                        Err(rejected) => Err(AskError::Rejected(rejected)),
                        Ok(None) => Ok(()),
                        Ok(Some(ticket)) => ticket.durable().await.map_err(AskError::Append),
                    };
                    let _ = answer.send(result);
                });
            }
            Message::Signal { id, input } => {
                if let Err(rejected) = self.step(input, vec![id]).await {
                    tracing::warn!(
                        executionId = %self.execution.id(), action = "signal_refused",
                        "{rejected}"
                    );
                    self.append(Vec::new(), Vec::new(), vec![id]).await;
                }
            }
            Message::SlotGranted { instance, permit } => {
                self.slots_asked.remove(&instance);
                self.granted.insert(instance.clone(), permit);
                let _ =
                    self.step(Input::SlotGranted { instance: instance.clone() }, Vec::new()).await;
                // Not used after all: the place is free again.
                self.granted.remove(&instance);
            }
            Message::AppendFailed(error) => return self.reload(error).await,
            Message::Leave => {
                self.end_attempts().await;
                return false;
            }
        }
        true
    }

    /// Decides, commits, appends and performs. Gives the append's ticket, or `None` if the input
    /// decided to nothing.
    async fn step(
        &mut self,
        input: Input,
        consumes: Vec<SignalId>,
    ) -> Result<Option<Ticket>, Rejected> {
        let records = self.execution.decide(input, self.shared.now())?;
        if records.is_empty() {
            if !consumes.is_empty() {
                self.append(Vec::new(), Vec::new(), consumes).await;
            }
            return Ok(None);
        }
        let Committed { actions, touched } = self.execution.commit(&records);
        let nodes =
            touched.into_iter().filter_map(|idx| self.execution.node_summary(idx)).collect();
        self.log(&records);
        let ticket = self.append(records, nodes, consumes).await;
        self.perform(actions, &ticket);
        Ok(Some(ticket))
    }

    async fn append(
        &mut self,
        records: Vec<Record>,
        nodes: Vec<NodeSummary>,
        consumes: Vec<SignalId>,
    ) -> Ticket {
        let expected = match records.first() {
            Some(first) => Seq(first.seq.0 - 1),
            None => self.execution.seq(),
        };
        let append = Append {
            execution: self.execution.id(),
            owner: self.shared.owner,
            expected,
            records,
            summary: self.execution.summary().expect("a driven execution has been started"),
            nodes,
            consumes,
        };
        let ticket = self.shared.store.append(append).await;
        self.publisher.appended(ticket.clone(), self.execution.seq());
        ticket
    }

    fn perform(&mut self, actions: Vec<Action>, ticket: &Ticket) {
        for action in actions {
            match action {
                Action::StartAttempt(start) => self.start_attempt(*start, ticket),
                Action::StopAttempt { instance, attempt } => {
                    match self.attempts.get(&instance).filter(|known| known.attempt == attempt) {
                        Some(known) => known.stop.stop(),
                        // Nothing of it runs here: it was done at once, or belongs to a process
                        // that is gone. The report that would end it is ours to give.
                        None => self.done.push_back(Input::AttemptReported {
                            instance,
                            attempt,
                            report: engine::scheduler::input::Report::Stopped,
                        }),
                    }
                }
                Action::WakeAt { timer, at } => {
                    self.timers.set(timer, at, self.shared.now(), self.shared.clock.read());
                }
                Action::AcquireSlot { instance, kind } => {
                    if self.slots_asked.insert(instance.clone()) {
                        self.shared.slots.ask(kind, instance, self.sender.clone());
                    }
                }
                // People see the question in the projection; nothing is to be done here.
                Action::AskHuman { .. } => {}
            }
        }
    }

    fn start_attempt(&mut self, start: StartAttempt, ticket: &Ticket) {
        if let Some(known) = self.attempts.get(&start.instance)
            && known.attempt == start.attempt
        {
            return;
        }
        if let Some(report) = perform_at_once(&start) {
            let (instance, attempt) = (start.instance, start.attempt);
            self.done.push_back(Input::AttemptReported { instance, attempt, report });
            return;
        }
        let (stop, stopped) = StopHandle::new();
        let running = RunningAttempt {
            shared: Arc::clone(&self.shared),
            recorded: start.leaves_process().then(|| ticket.clone()),
            stop: stop.clone(),
            stopped,
            inbox: self.sender.clone(),
            request: AttemptRequest {
                execution: self.execution.id(),
                workflow: self.execution.summary().and_then(|summary| summary.workflow),
                start,
            },
        };
        let (instance, attempt) =
            (running.request.start.instance.clone(), running.request.start.attempt);
        let permit = self.granted.remove(&instance);
        self.attempts.insert(instance, Attempt { attempt, stop, _permit: permit });
        self.performing.spawn(running.run());
    }

    /// Waits until everything is on disk. Gives the error if it is not.
    async fn finish(&mut self) -> Option<AppendError> {
        self.publisher.settled().await.err()
    }

    async fn end_attempts(&mut self) {
        for attempt in self.attempts.values() {
            attempt.stop.stop();
        }
        let all_gone = async { while self.performing.join_next().await.is_some() {} };
        if tokio::time::timeout(LEAVE_MAX, all_gone).await.is_err() {
            self.performing.abort_all();
        }
        self.attempts.clear();
        self.granted.clear();
        self.slots_asked.clear();
        self.done.clear();
        while self.inbox.try_recv().is_ok() {}
    }

    /// The store refused an append: drops the memory, and everything that belongs to it, and goes
    /// on from the journal. `false`: the execution is left to be resumed, or is somebody else's.
    async fn reload(&mut self, error: AppendError) -> bool {
        tracing::error!(
            executionId = %self.execution.id(), action = "append_failed", error = %error
        );
        self.end_attempts().await;
        self.timers = Timers::default();
        if let AppendError::NotOwner { .. } | AppendError::Closed = error {
            self.publisher.stall(Stalled::Left);
            return false;
        }
        for wait in RELOAD_WAITS {
            tokio::time::sleep(wait).await;
            let shared = Arc::clone(&self.shared);
            let id = self.execution.id();
            let loaded = tokio::task::spawn_blocking(move || load_execution(&shared, id)).await;
            let Ok(Ok(execution)) = loaded else { continue };
            self.execution = execution;
            self.publisher.restart(self.execution.seq());
            let restarted = Input::HostRestarted { owner: self.shared.owner, unowned_ms: 0 };
            match self.step(restarted, Vec::new()).await {
                Ok(Some(ticket)) if ticket.durable().await.is_ok() => {
                    let outstanding = self.execution.outstanding();
                    self.perform(outstanding, &ticket);
                    return true;
                }
                Ok(None) => return true,
                _ => self.end_attempts().await,
            }
        }
        self.publisher.stall(Stalled::Store(error.to_string()));
        false
    }

    fn log(&self, records: &[Record]) {
        for record in records {
            super::log::record(&self.execution, record);
        }
    }
}

impl Drop for ExecutionTask {
    fn drop(&mut self) {
        self.shared.forget(self.execution.id());
    }
}
