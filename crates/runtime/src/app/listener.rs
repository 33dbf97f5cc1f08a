//! Listens for what other processes want of the executions that this one drives, and says that
//! this process is alive.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::signals::SignalKind;
use crate::driver::Driver;
use crate::store::Store;
use crate::store::signal_table::{Signal, SignalId};

/// How often signals are looked for. Whoever writes one may count on it being seen within 250 ms.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How often the owner row says that this process is alive.
const BEAT_EVERY: Duration = Duration::from_secs(5);

pub(super) struct Listener {
    pub store: Store,
    pub driver: Driver,
    pub closed: watch::Receiver<bool>,
}

impl Listener {
    /// Listens until the app closes.
    pub async fn run(mut self) {
        let mut handed_over = BTreeSet::new();
        let mut beat_at = Instant::now() + BEAT_EVERY;
        loop {
            tokio::select! {
                _ = self.closed.wait_for(|closed| *closed) => return,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            self.look(&mut handed_over).await;
            if Instant::now() >= beat_at {
                beat_at = Instant::now() + BEAT_EVERY;
                self.store.beat(self.driver.owner(), self.driver.now());
            }
        }
    }

    /// Hands over what is new. A signal stays in the store until the transaction that acts on it.
    async fn look(&self, handed_over: &mut BTreeSet<SignalId>) {
        let (store, owner) = (self.store.clone(), self.driver.owner());
        let signals = tokio::task::spawn_blocking(move || store.signals_for(owner)).await;
        let signals = match signals {
            Ok(Ok(signals)) => signals,
            Ok(Err(error)) => {
                tracing::warn!(component = "app", action = "signals_unread", error = %error);
                return;
            }
            Err(_) => return,
        };
        handed_over.retain(|id| signals.iter().any(|signal| signal.id == *id));
        for signal in signals {
            if !handed_over.contains(&signal.id) && self.hand_over(&signal) {
                handed_over.insert(signal.id);
            }
        }
    }

    fn hand_over(&self, signal: &Signal) -> bool {
        match SignalKind::read(&signal.body) {
            Some(wish) => self.driver.signal(signal.execution, signal.id, wish.into_input()),
            None => {
                tracing::warn!(
                    component = "app", action = "signal_unreadable",
                    executionId = %signal.execution, kind = %signal.kind
                );
                true
            }
        }
    }
}
