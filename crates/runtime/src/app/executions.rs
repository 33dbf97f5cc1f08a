//! Looking at executions, and what a person can do to one.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::time::Duration;

use engine::ids::{ExecutionId, Instance, NodeId, OwnerId, Seq};
use engine::journal::Record;
use engine::projection::{ExecutionSummary, NodeSummary};
use engine::scheduler::event::{Answer, Event};
use engine::scheduler::{Execution, Rejected};
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

use super::App;
use super::signals::{Signal, SignalKind};
use crate::driver::AskError;
use crate::driver::load::{LoadError, Loaded};
use crate::driver::progress::ProgressNews;
use crate::driver::publish::{Published, Stalled};
use crate::store::error::StoreError;
use crate::store::execution_table::{ExecutionCursor, ExecutionFilter, ExecutionPage};

/// How often an execution that another process drives is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Records are handed to a watcher at most this often: 30 times a second.
const TELL_EVERY: Duration = Duration::from_millis(33);
/// Records that are handed to a watcher at once.
const RECORDS_MAX: u32 = 4_096;
/// How long an owner gets to act on a signal before the writer stops waiting for it.
const SIGNAL_SEEN_MAX: Duration = Duration::from_secs(10);

/// Why something was not done to an execution.
#[derive(Debug, thiserror::Error)]
pub enum ExecutionError {
    /// There is no such execution.
    #[error("Execution not found")]
    NotFound {
        /// The id that was asked for.
        execution: ExecutionId,
    },
    /// It makes no sense for it as it is.
    #[error(transparent)]
    Rejected(#[from] Rejected),
    /// Its owner did not react.
    #[error("the process that runs execution {execution} did not react; is it busy or stopped?")]
    OwnerSilent {
        /// Which.
        execution: ExecutionId,
    },
    /// The store could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What is stored does not fit together.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// What follows could not be recorded.
    #[error("{0}")]
    NotRecorded(String),
}

impl App {
    /// One execution at a glance, with its nodes.
    pub fn execution(
        &self,
        id: ExecutionId,
    ) -> Result<(ExecutionSummary, Vec<NodeSummary>), ExecutionError> {
        let row = self.store().execution(id)?;
        let row = row.ok_or(ExecutionError::NotFound { execution: id })?;
        Ok((row.summary, self.store().node_results(id)?))
    }

    /// One execution's whole journal, with its plan and agents.
    pub fn journal(&self, id: ExecutionId) -> Result<Loaded, ExecutionError> {
        match crate::driver::load::load(self.store(), id) {
            Err(LoadError::Store(StoreError::UnknownExecution { execution })) => {
                Err(ExecutionError::NotFound { execution })
            }
            other => Ok(other?),
        }
    }

    /// One execution as it was before its first record, to fold into it what [`App::watch`] tells.
    pub fn unstarted(&self, id: ExecutionId) -> Result<Execution, ExecutionError> {
        let Loaded { plan, agents, .. } = self.journal(id)?;
        Ok(Execution::new(id, plan, agents, self.driver().limits()))
    }

    /// Executions, newest first, a page at a time.
    pub fn executions(
        &self,
        filter: &ExecutionFilter,
        after: Option<ExecutionCursor>,
    ) -> Result<ExecutionPage, ExecutionError> {
        Ok(self.store().executions(filter, after)?)
    }

    /// Follows an execution from the record after `after` on.
    pub fn watch(&self, id: ExecutionId, after: Seq) -> Watch {
        Watch {
            app: self.clone(),
            id,
            seen: after,
            published: self.driver().published(id),
            progress: self.driver().progress(id),
            told_at: None,
            printed: VecDeque::new(),
            queue: VecDeque::new(),
            is_over: false,
        }
    }

    /// Waits until this process no longer drives an execution, because it has ended or was left.
    /// Gives it at a glance.
    pub async fn until_left(&self, id: ExecutionId) -> Result<ExecutionSummary, ExecutionError> {
        if let Some(mut published) = self.driver().published(id) {
            while published.changed().await.is_ok() {}
        }
        Ok(self.execution(id)?.0)
    }

    /// Cancels an execution. One that has ended stays as it is. Returns once the cancel, or that
    /// end, is on disk.
    pub async fn cancel(&self, id: ExecutionId, by: &str) -> Result<(), ExecutionError> {
        let signal = SignalKind::Cancel { by: by.to_owned() };
        self.influence(id, signal).await
    }

    /// Answers the question that a node waits with.
    pub async fn decide(
        &self,
        id: ExecutionId,
        node: NodeId,
        answer: Answer,
    ) -> Result<(), ExecutionError> {
        self.influence(id, SignalKind::Answer { instance: Instance::top(node), answer }).await
    }

    /// Gives an input to an execution: directly where this process drives it, as a signal where
    /// another one does, and by taking it over where nobody does.
    async fn influence(&self, id: ExecutionId, kind: SignalKind) -> Result<(), ExecutionError> {
        if self.execution(id)?.0.is_settled {
            return self.influence_ended(id, kind);
        }
        if self.driver().is_driving(id) {
            return match self.driver().ask(id, kind.clone().into_input()).await {
                None => self.influence_ended(id, kind),
                Some(Ok(())) => Ok(()),
                Some(Err(AskError::Rejected(rejected))) => Err(rejected.into()),
                Some(Err(AskError::Append(error))) => {
                    Err(ExecutionError::NotRecorded(error.to_string()))
                }
            };
        }
        if let Some(found) = self.interrupted(Some(id))?.first()
            && self.claim(found).await?
        {
            return self.adopt(found, Some(kind.into_input())).await;
        }
        self.signal(id, kind).await
    }

    /// A cancel leaves an execution that has ended as it is; an answer comes too late.
    fn influence_ended(&self, id: ExecutionId, kind: SignalKind) -> Result<(), ExecutionError> {
        match kind {
            SignalKind::Cancel { .. } => Ok(()),
            SignalKind::Answer { instance, .. } => Err(self.not_waiting(id, instance)?),
        }
    }

    /// Leaves a signal for the process that drives the execution, and waits until it was seen.
    async fn signal(&self, id: ExecutionId, kind: SignalKind) -> Result<(), ExecutionError> {
        let Signal { kind: name, body } = kind.write();
        let at = self.driver().now();
        let signal = self.store().write_signal(id, name.to_owned(), body, at).await?;
        let deadline = Instant::now() + SIGNAL_SEEN_MAX;
        while Instant::now() < deadline {
            if self.store().is_signal_consumed(signal)? {
                return Ok(());
            }
            tokio::time::sleep(LOOK_EVERY / 5).await;
        }
        Err(ExecutionError::OwnerSilent { execution: id })
    }

    fn not_waiting(
        &self,
        id: ExecutionId,
        instance: Instance,
    ) -> Result<ExecutionError, ExecutionError> {
        let (_, nodes) = self.execution(id)?;
        let node = instance.node.clone();
        Ok(match nodes.into_iter().find(|summary| summary.instance == instance) {
            Some(found) => Rejected::NothingToAnswer { node, status: found.status }.into(),
            None => Rejected::UnknownNode { node }.into(),
        })
    }
}

/// What a watcher hears.
#[derive(Debug)]
pub enum WatchItem {
    /// Records that are on disk, in order, following those before.
    Records(Vec<Record>),
    /// Lines that an attempt printed. Some may be missing.
    Progress(ProgressNews),
    /// Nothing more comes: the execution has ended and everything of it has been told.
    Ended,
    /// Nothing more comes from this process although the execution has not ended.
    Stalled(Stalled),
}

/// Follows one execution. A slow watcher misses nothing but lines of progress, and slows nothing.
pub struct Watch {
    app: App,
    id: ExecutionId,
    seen: Seq,
    published: Option<watch::Receiver<Published>>,
    progress: Option<broadcast::Receiver<ProgressNews>>,
    told_at: Option<Instant>,
    /// Lines that arrived and are not in `queue` yet.
    printed: VecDeque<ProgressNews>,
    /// What is to be told next.
    queue: VecDeque<WatchItem>,
    is_over: bool,
}

impl Watch {
    /// The next thing to hear. After [`WatchItem::Ended`] or [`WatchItem::Stalled`] there is none.
    pub async fn next(&mut self) -> Option<Result<WatchItem, StoreError>> {
        loop {
            if let Some(item) = self.queue.pop_front() {
                return Some(Ok(item));
            }
            if self.is_over {
                return None;
            }
            self.gather();
            // All that was on disk before these lines arrived is read by the next look.
            let n_placeable = self.printed.len();
            match self.look().await {
                Ok(found) => {
                    self.gather();
                    self.order(found, n_placeable);
                }
                Err(error) => {
                    self.is_over = true;
                    return Some(Err(error));
                }
            }
            if self.queue.is_empty() && self.printed.is_empty() {
                self.wait().await;
            }
        }
    }

    /// Takes the lines that have arrived.
    fn gather(&mut self) {
        use broadcast::error::TryRecvError;
        while let Some(progress) = &mut self.progress {
            match progress.try_recv() {
                Ok(news) => self.printed.push_back(news),
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Closed) => self.progress = None,
            }
        }
    }

    /// Puts what was found on disk and what was printed in order: an attempt's lines come after
    /// the record of its start and before that of its end. Lines beyond the first `n_placeable`
    /// that are newer than what was found wait for the next look.
    fn order(&mut self, found: Option<WatchItem>, n_placeable: usize) {
        let records = match found {
            Some(WatchItem::Records(records)) => records,
            found => {
                let n = if found.is_some() { self.printed.len() } else { n_placeable };
                self.queue.extend(self.printed.drain(..n).map(WatchItem::Progress));
                self.queue.extend(found);
                return;
            }
        };
        let last_at = records.last().map(|record| record.at);
        let n_older = self.printed.iter().take_while(|news| Some(news.at) <= last_at).count();
        let mut records = records.into_iter().peekable();
        for news in self.printed.drain(..n_placeable.max(n_older)) {
            let mut before = Vec::new();
            while let Some(record) = records.next_if(|record| precedes(record, &news)) {
                before.push(record);
            }
            self.queue.extend((!before.is_empty()).then_some(WatchItem::Records(before)));
            self.queue.push_back(WatchItem::Progress(news));
        }
        let after: Vec<Record> = records.collect();
        self.queue.extend((!after.is_empty()).then_some(WatchItem::Records(after)));
    }

    /// Looks at what is on disk.
    async fn look(&mut self) -> Result<Option<WatchItem>, StoreError> {
        if let Some(told_at) = self.told_at {
            tokio::time::sleep_until(told_at + TELL_EVERY).await;
        }
        let stalled = self.published.as_ref().and_then(|seen| seen.borrow().stalled.clone());
        let (store, id, seen) = (self.app.store().clone(), self.id, self.seen);
        let looked = tokio::task::spawn_blocking(move || {
            // The row first: records that come in between are read all the same.
            let row = store.execution(id)?;
            Ok::<_, StoreError>((row, store.records_after(id, seen, RECORDS_MAX)?))
        });
        let (row, records) = looked.await.map_err(|_| StoreError::Closed)??;
        let row = row.ok_or(StoreError::UnknownExecution { execution: self.id })?;
        if let Some(last) = records.last() {
            self.seen = last.seq;
            self.told_at = Some(Instant::now());
            return Ok(Some(WatchItem::Records(records)));
        }
        if row.summary.is_settled && row.summary.seq <= self.seen {
            self.is_over = true;
            return Ok(Some(WatchItem::Ended));
        }
        if self.published.is_none() && self.is_interrupted(row.owner) {
            // It may have settled since the row was read.
            let now = self.app.store().execution(self.id)?;
            if now.is_some_and(|now| now.summary.seq == row.summary.seq) {
                self.is_over = true;
                return Ok(Some(WatchItem::Stalled(Stalled::Left)));
            }
        }
        if let Some(stalled) = stalled {
            self.is_over = true;
            return Ok(Some(WatchItem::Stalled(stalled)));
        }
        Ok(None)
    }

    /// Whether nobody drives an execution of this owner.
    fn is_interrupted(&self, owner: OwnerId) -> bool {
        let app = &self.app;
        let is_ours = owner == app.driver().owner();
        if is_ours { !app.driver().is_driving(self.id) } else { !app.store().is_alive(owner) }
    }

    /// Waits until it is worth looking again.
    async fn wait(&mut self) {
        let seen = self.seen;
        let is_driven_here = self.published.is_some();
        let published = async {
            match &mut self.published {
                Some(published) => {
                    let news = published.wait_for(|now| now.seq > seen || now.stalled.is_some());
                    news.await.is_ok()
                }
                None => std::future::pending().await,
            }
        };
        let progress = async {
            match &mut self.progress {
                Some(progress) => progress.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            is_driven = published => {
                if !is_driven {
                    self.published = None;
                }
            }
            news = progress => match news {
                Ok(news) => self.printed.push_back(news),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => self.progress = None,
            },
            () = tokio::time::sleep(LOOK_EVERY), if !is_driven_here => {}
        }
    }
}

/// Whether a record is told before lines that were printed.
fn precedes(record: &Record, news: &ProgressNews) -> bool {
    match record.at.cmp(&news.at) {
        Ordering::Less => true,
        Ordering::Greater => false,
        // Of one instant only a start is certain to come first.
        Ordering::Equal => {
            matches!(record.event, Event::ExecutionStarted(_) | Event::AttemptStarted(_))
        }
    }
}
