//! The local driver: moves inputs, events and actions between the scheduler, the store and this
//! machine. One task per execution; see the contract of [`engine::scheduler::Execution`].

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::ids::{ExecutionId, OwnerId};
use engine::scheduler::action::Action;
use engine::scheduler::input::Input;
use engine::scheduler::{Execution, OverrideLimits};
use engine::time::Timestamp;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::clock::{Clock, NowSource};
use crate::runner::Runners;
use crate::store::Store;
use crate::store::signal_table::SignalId;
use crate::store::ticket::Ticket;

mod attempt;
pub mod load;
mod log;
pub mod progress;
pub mod publish;
mod slots;
mod task;
mod timers;

pub use task::AskError;

use progress::ProgressNews;
use publish::{Published, Publisher};
use slots::Slots;
use task::{ExecutionTask, Message};

/// Lines of progress that a slow reader may lag behind before it loses some.
const PROGRESS_NEWS_MAX: usize = 4_096;

/// What the driver is made of.
pub struct DriverOptions {
    /// Where journals are kept.
    pub store: Store,
    /// The process start that owns what this driver drives.
    pub owner: OwnerId,
    /// The clocks.
    pub clock: Box<dyn Clock>,
    /// The code that performs attempts.
    pub runners: Runners,
    /// How many processes may run at the same time.
    pub processes_max: usize,
    /// Limits on overrides.
    pub limits: OverrideLimits,
}

/// Drives executions. Cheap to clone.
#[derive(Clone)]
pub struct Driver {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    store: Store,
    owner: OwnerId,
    clock: Box<dyn Clock>,
    now: NowSource,
    runners: Runners,
    slots: Slots,
    limits: OverrideLimits,
    live: Mutex<BTreeMap<ExecutionId, Live>>,
}

/// An execution that this process drives, as others reach it.
struct Live {
    inbox: mpsc::UnboundedSender<Message>,
    published: watch::Receiver<Published>,
    progress: broadcast::Sender<ProgressNews>,
    task: Option<JoinHandle<()>>,
}

impl Shared {
    fn now(&self) -> Timestamp {
        self.now.now(self.clock.read())
    }

    fn live(&self) -> MutexGuard<'_, BTreeMap<ExecutionId, Live>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self, id: ExecutionId) {
        self.live().remove(&id);
    }
}

impl Driver {
    /// A driver that drives nothing yet.
    pub fn new(options: DriverOptions) -> Driver {
        Driver {
            shared: Arc::new(Shared {
                store: options.store,
                owner: options.owner,
                clock: options.clock,
                now: NowSource::default(),
                runners: options.runners,
                slots: Slots::new(options.processes_max),
                limits: options.limits,
                live: Mutex::new(BTreeMap::new()),
            }),
        }
    }

    /// The driver's time.
    pub fn now(&self) -> Timestamp {
        self.shared.now()
    }

    /// The process start that owns what this driver drives.
    pub fn owner(&self) -> OwnerId {
        self.shared.owner
    }

    /// Limits on overrides, for folding journals as this driver does.
    pub fn limits(&self) -> OverrideLimits {
        self.shared.limits
    }

    /// Drives an execution whose state is committed up to the append of `ticket`.
    pub fn drive(&self, execution: Execution, actions: Vec<Action>, ticket: Ticket) {
        let id = execution.id();
        let (inbox, receiver) = mpsc::unbounded_channel();
        let (published, published_receiver) = watch::channel(Published::default());
        let (progress, _) = broadcast::channel(PROGRESS_NEWS_MAX);
        let live =
            Live { inbox: inbox.clone(), published: published_receiver, progress, task: None };
        self.shared.live().insert(id, live);
        let publisher = Publisher::spawn(published, inbox.clone());
        let shared = Arc::clone(&self.shared);
        let task = ExecutionTask::new(shared, execution, (inbox, receiver), publisher);
        let handle = tokio::spawn(task.run(actions, ticket));
        if let Some(live) = self.shared.live().get_mut(&id) {
            live.task = Some(handle);
        }
    }

    /// Whether this process drives the execution.
    pub fn is_driving(&self, id: ExecutionId) -> bool {
        self.shared.live().contains_key(&id)
    }

    /// Follows how far the execution is on disk, while this process drives it.
    pub fn published(&self, id: ExecutionId) -> Option<watch::Receiver<Published>> {
        self.shared.live().get(&id).map(|live| live.published.clone())
    }

    /// Follows the execution's lines of progress, while this process drives it.
    pub fn progress(&self, id: ExecutionId) -> Option<broadcast::Receiver<ProgressNews>> {
        self.shared.live().get(&id).map(|live| live.progress.subscribe())
    }

    /// Gives an input to an execution that this process drives, and waits until what follows is on
    /// disk. `None` if this process does not drive it.
    pub async fn ask(&self, id: ExecutionId, input: Input) -> Option<Result<(), AskError>> {
        let (answer, answered) = oneshot::channel();
        let inbox = self.shared.live().get(&id).map(|live| live.inbox.clone())?;
        inbox.send(Message::Ask { input, answer }).ok()?;
        answered.await.ok()
    }

    /// Hands a signal of another process to its execution. `false` if this process does not drive
    /// it.
    pub fn signal(&self, id: ExecutionId, signal: SignalId, input: Input) -> bool {
        let live = self.shared.live();
        live.get(&id)
            .is_some_and(|live| live.inbox.send(Message::Signal { id: signal, input }).is_ok())
    }

    /// Ends all running attempts and leaves every execution to be resumed.
    pub async fn leave(&self) {
        let tasks: Vec<JoinHandle<()>> = {
            let mut live = self.shared.live();
            for execution in live.values() {
                let _ = execution.inbox.send(Message::Leave);
            }
            live.values_mut().filter_map(|execution| execution.task.take()).collect()
        };
        for task in tasks {
            let _ = task.await;
        }
    }
}
