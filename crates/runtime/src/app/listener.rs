//! Listens for what other processes want of the executions that this one drives.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::sync::watch;

use super::signals::SignalKind;
use crate::driver::Driver;
use crate::store::Store;
use crate::store::signal_table::{Signal, SignalId};

/// How often signals are looked for. Whoever writes one may count on it being seen within 250 ms.
const LOOK_EVERY: Duration = Duration::from_millis(200);

pub(super) struct Listener {
    pub store: Store,
    pub driver: Driver,
    pub closed: watch::Receiver<bool>,
}

impl Listener {
    /// Listens until the app closes.
    pub async fn run(mut self) {
        let mut handed_over = BTreeSet::new();
        loop {
            tokio::select! {
                _ = self.closed.wait_for(|closed| *closed) => return,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            self.look(&mut handed_over).await;
        }
    }

    /// Hands over what is new. A signal stays in the store until the transaction that acts on it.
    async fn look(&self, handed_over: &mut BTreeSet<SignalId>) {
        let owner = self.driver.owner();
        let signals = match self.store.off_thread(move |store| store.signals_for(owner)).await {
            Ok(signals) => signals,
            Err(error) => {
                tracing::warn!(component = "app", action = "signals_unread", %error);
                return;
            }
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
