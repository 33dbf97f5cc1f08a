//! The app: opens the store, starts the driver, offers the use cases. Windows and the command
//! line sit on this and on nothing below it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;

use engine::ids::OwnerId;
use engine::limits::PROMPT_ADDITION_CHARS_MAX_DEFAULT;
use engine::scheduler::OverrideLimits;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::clock::{Clock, SystemClock, wall_clock};
use crate::driver::{Driver, DriverOptions};
use crate::runner::Runners;
use crate::runner::process::registry::ProcessRegistry;
use crate::runner::process::{ProcessLimits, ProcessRunner, ProcessRunnerConfig};
use crate::store::Store;
use crate::store::open::{OpenError, StoreOptions};
use crate::store::ownership::{Owner, OwnerError};
use crate::store::queue::Stats;

pub mod check;
pub mod executions;
mod listener;
mod recovery;
pub(crate) mod signals;
pub mod start;
#[cfg(test)]
mod tests;

use listener::Listener;

/// Below the data folder: which programs run for which owner.
const PROCESSES: &str = "processes";
/// Below the data folder: outputs that are not text.
const RAW: &str = "raw";

/// How to open the app.
#[derive(Clone, Debug)]
pub struct AppOptions {
    /// The data folder. Created if it is not there.
    pub home: PathBuf,
    /// What this process is, for people who look at who owns an execution.
    pub program: String,
    /// How many processes may run at the same time; `None`: twice the processor's cores.
    pub processes_max: Option<usize>,
    /// The longest `systemPromptAddition`, in characters.
    pub prompt_addition_chars_max: usize,
}

impl AppOptions {
    /// The usual options for a data folder; the environment may set
    /// `CYANOTYPE_MAX_PROMPT_ADDITION_CHARS`, and an unusable value there counts as absent.
    pub fn new(home: impl Into<PathBuf>) -> AppOptions {
        let chars_max = std::env::var("CYANOTYPE_MAX_PROMPT_ADDITION_CHARS")
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .unwrap_or(PROMPT_ADDITION_CHARS_MAX_DEFAULT);
        AppOptions {
            home: home.into(),
            program: "cyanotype".to_owned(),
            processes_max: None,
            prompt_addition_chars_max: chars_max,
        }
    }
}

/// Why the app could not be opened. Nothing that was there was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenAppError {
    /// The store could not be opened.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// This process could not be made an owner of executions.
    #[error(transparent)]
    Owner(#[from] OwnerError),
}

/// Cyanotype on one data folder. Cheap to clone.
#[derive(Clone)]
pub struct App {
    inner: Arc<Inner>,
}

struct Inner {
    home: PathBuf,
    store: Store,
    driver: Driver,
    /// Held, with its lock, until everything else is closed.
    _owner: Owner,
    closing: watch::Sender<bool>,
    listener: Mutex<Option<JoinHandle<()>>>,
}

impl App {
    /// Opens the data folder and registers this process as an owner. Runs and resumes nothing.
    pub async fn open(options: AppOptions) -> Result<App, OpenAppError> {
        let clock = SystemClock::default();
        let store = Store::open(StoreOptions { folder: options.home.clone(), wall_clock })?;
        let id = OwnerId(Uuid::now_v7());
        let owner = Owner::register(&store, id, options.program.clone(), clock.read().wall).await?;
        let cores = available_parallelism().map_or(2, usize::from);
        let driver = Driver::new(DriverOptions {
            store: store.clone(),
            owner: id,
            clock: Box::new(clock),
            runners: Runners::new(process_runner(&options.home, id)),
            processes_max: options.processes_max.unwrap_or(2 * cores),
            limits: OverrideLimits { prompt_addition_chars_max: options.prompt_addition_chars_max },
        });
        let (closing, closed) = watch::channel(false);
        let listener = Listener { store: store.clone(), driver: driver.clone(), closed };
        let listener = Mutex::new(Some(tokio::spawn(listener.run())));
        let inner = Inner { home: options.home, store, driver, _owner: owner, closing, listener };
        Ok(App { inner: Arc::new(inner) })
    }

    /// Ends running attempts, leaves what has not ended to be resumed, and closes the store.
    pub async fn close(self) {
        self.inner.closing.send_replace(true);
        self.driver().leave().await;
        let listener = self.inner.listener.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(listener) = listener {
            let _ = listener.await;
        }
        let store = self.store().clone();
        store.off_thread(Store::close).await;
    }

    /// The data folder.
    pub fn home(&self) -> &Path {
        &self.inner.home
    }

    /// What the store's writer has done so far.
    pub fn writer_stats(&self) -> Stats {
        self.store().stats()
    }

    /// The store beneath.
    pub(crate) fn store(&self) -> &Store {
        &self.inner.store
    }

    /// What drives the executions of this process.
    pub(crate) fn driver(&self) -> &Driver {
        &self.inner.driver
    }
}

fn process_runner(home: &Path, owner: OwnerId) -> ProcessRunner {
    let registry = ProcessRegistry::open(&home.join(PROCESSES), owner)
        .inspect_err(|error| {
            tracing::warn!(component = "app", action = "no_process_registry", %error);
        })
        .ok();
    ProcessRunner::new(ProcessRunnerConfig {
        environment: std::env::vars_os().collect(),
        working_folder: std::env::current_dir().unwrap_or_else(|_| home.to_owned()),
        raw_folder: home.join(RAW),
        registry,
        limits: ProcessLimits::default(),
    })
}
