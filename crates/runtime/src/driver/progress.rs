//! Lines that running attempts print: gathered, shown to whoever watches, and kept.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::time::Timestamp;
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::Shared;
use crate::runner::{AttemptRequest, ProgressLine};
use crate::store::progress_table::{AttemptKey, ProgressBatch};

/// Lines are gathered for this long, so that a chatty program costs few writes and messages.
const GATHER: Duration = Duration::from_millis(50);
/// More lines than this are not gathered before they are handed on.
const GATHERED_LINES_MAX: usize = 256;

/// Some lines that an attempt printed, as watchers hear of them.
#[derive(Clone, Debug)]
pub struct ProgressNews {
    /// Which attempt.
    pub attempt: AttemptKey,
    /// When they arrived.
    pub at: Timestamp,
    /// The lines, in order.
    pub lines: Arc<[ProgressLine]>,
}

/// Gathers the lines of one attempt.
pub(super) struct ProgressBatcher {
    task: JoinHandle<()>,
    last_sign: Arc<Mutex<Option<Instant>>>,
}

impl ProgressBatcher {
    /// Takes lines until their sink is dropped.
    pub fn spawn(
        shared: &Arc<Shared>,
        request: &AttemptRequest,
        lines: mpsc::Receiver<ProgressLine>,
    ) -> ProgressBatcher {
        let last_sign = Arc::new(Mutex::new(None));
        let gather = Gather {
            watchers: shared.live().get(&request.execution).map(|live| live.progress.clone()),
            shared: Arc::clone(shared),
            attempt: AttemptKey {
                execution: request.execution,
                instance: request.start.instance.clone(),
                attempt: request.start.attempt,
            },
            last_sign: Arc::clone(&last_sign),
        };
        ProgressBatcher { task: tokio::spawn(gather.run(lines)), last_sign }
    }

    /// When the attempt last printed something; `began` if it has not.
    pub fn last_sign(&self, began: Instant) -> Instant {
        self.last_sign.lock().unwrap_or_else(PoisonError::into_inner).unwrap_or(began)
    }

    /// Waits until the last lines are handed on. The sink must be gone by then.
    pub async fn finish(self) {
        let _ = self.task.await;
    }
}

struct Gather {
    shared: Arc<Shared>,
    attempt: AttemptKey,
    watchers: Option<broadcast::Sender<ProgressNews>>,
    last_sign: Arc<Mutex<Option<Instant>>>,
}

impl Gather {
    async fn run(self, mut lines: mpsc::Receiver<ProgressLine>) {
        while let Some(first) = lines.recv().await {
            let mut batch = vec![first];
            let until = Instant::now() + GATHER;
            while batch.len() < GATHERED_LINES_MAX {
                match tokio::time::timeout_at(until, lines.recv()).await {
                    Ok(Some(line)) => batch.push(line),
                    Ok(None) | Err(_) => break,
                }
            }
            *self.last_sign.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
            self.hand_on(batch);
        }
    }

    fn hand_on(&self, lines: Vec<ProgressLine>) {
        let at = self.shared.now();
        if let Some(watchers) = &self.watchers {
            // An error means that nobody watches.
            let _ = watchers.send(ProgressNews {
                attempt: self.attempt.clone(),
                at,
                lines: lines.clone().into(),
            });
        }
        self.shared.store.append_progress(ProgressBatch {
            attempt: self.attempt.clone(),
            at,
            lines,
        });
    }
}
