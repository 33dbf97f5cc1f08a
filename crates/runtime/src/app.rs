//! The app: opens the store, starts the driver, offers the use cases. Windows and the command
//! line sit on this and on nothing below it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;

use engine::limits::PROMPT_ADDITION_CHARS_MAX_DEFAULT;
use engine::scheduler::OverrideLimits;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::clock::SystemClock;
use crate::driver::{Driver, DriverOptions};
use crate::runner::Runners;
use crate::store::Store;
use crate::store::open::{OpenError, StoreOptions};
use crate::store::ownership::Owner;

pub mod check;
pub mod executions;
mod listener;
mod recovery;
pub(crate) mod signals;
pub mod start;

use listener::Listener;

/// How to open the app.
#[derive(Clone, Debug)]
pub struct AppOptions {
    /// The data folder. Created if it is not there.
    pub home: PathBuf,
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
            processes_max: None,
            prompt_addition_chars_max: chars_max,
        }
    }
}

/// Cyanotype on one data folder. Cheap to clone.
#[derive(Clone)]
pub struct App {
    inner: Arc<Inner>,
}

struct Inner {
    home: PathBuf,
    store: Store,
    owner: Owner,
    driver: Driver,
    closing: watch::Sender<bool>,
    listener: Mutex<Option<JoinHandle<()>>>,
}

impl App {
    /// Opens the data folder and registers this process as an owner. Runs and resumes nothing.
    pub async fn open(options: AppOptions) -> Result<App, OpenError> {
        let store = Store::open(StoreOptions::new(&options.home))?;
        let owner = Owner::register(&store)?;
        let cores = available_parallelism().map_or(2, usize::from);
        let driver = Driver::new(DriverOptions {
            store: store.clone(),
            owner: owner.id(),
            clock: Box::new(SystemClock::default()),
            runners: Runners::new(&options.home, owner.id()),
            processes_max: options.processes_max.unwrap_or(2 * cores),
            limits: OverrideLimits {
                prompt_addition_chars_max: options.prompt_addition_chars_max,
            },
        });
        let (closing, closed) = watch::channel(false);
        let listener = Listener { store: store.clone(), driver: driver.clone(), closed };
        let listener = Mutex::new(Some(tokio::spawn(listener.run())));
        let inner = Inner { home: options.home, store, owner, driver, closing, listener };
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
        self.owner().release();
        let store = self.store().clone();
        let _ = tokio::task::spawn_blocking(move || store.close()).await;
    }

    /// The data folder.
    pub fn home(&self) -> &Path {
        &self.inner.home
    }

    /// The store beneath.
    pub(crate) fn store(&self) -> &Store {
        &self.inner.store
    }

    /// This process as an owner of executions.
    pub(crate) fn owner(&self) -> &Owner {
        &self.inner.owner
    }

    /// What drives the executions of this process.
    pub(crate) fn driver(&self) -> &Driver {
        &self.inner.driver
    }
}
