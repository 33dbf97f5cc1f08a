//! This machine's limits on what runs at the same time, per kind of runner.

use std::sync::Arc;

use engine::agent::RunnerKind;
use engine::ids::Instance;
use tokio::sync::{Semaphore, mpsc};

use super::task::Message;

/// Places for attempts.
#[derive(Debug)]
pub(super) struct Slots {
    process: Arc<Semaphore>,
}

impl Slots {
    /// As many places for processes as said; at least one.
    pub fn new(processes_max: usize) -> Slots {
        Slots { process: Arc::new(Semaphore::new(processes_max.max(1))) }
    }

    /// Sends a place to the inbox as soon as there is one. Whoever asks first gets it first.
    pub fn ask(&self, kind: RunnerKind, instance: Instance, inbox: mpsc::UnboundedSender<Message>) {
        let places = match kind {
            RunnerKind::Process => Arc::clone(&self.process),
            RunnerKind::Echo | RunnerKind::Scripted => {
                unreachable!("attempts of kind {kind} need no place")
            }
        };
        tokio::spawn(async move {
            tokio::select! {
                permit = places.acquire_owned() => {
                    let permit = permit.expect("the limit is never closed");
                    let _ = inbox.send(Message::SlotGranted { instance, permit });
                }
                () = inbox.closed() => {}
            }
        });
    }
}
