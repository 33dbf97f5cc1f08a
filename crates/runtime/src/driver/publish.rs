//! Tells readers how far an execution's journal is on disk. Nothing is published before it is.

use engine::ids::Seq;
use tokio::sync::{mpsc, oneshot, watch};

use super::task::Message;
use crate::store::append::AppendError;
use crate::store::ticket::Ticket;

/// How far an execution is on disk.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Published {
    /// The last record that is on disk.
    pub seq: Seq,
    /// Set when this process no longer drives the execution although it has not ended.
    pub stalled: Option<Stalled>,
}

/// Why an execution stands still.
#[derive(Clone, Debug, PartialEq)]
pub enum Stalled {
    /// It is left to be resumed, or another process has it.
    Left,
    /// The store does not take its records; what it said.
    Store(String),
}

enum Order {
    Appended(Ticket, Seq),
    Settled(oneshot::Sender<Result<(), AppendError>>),
}

/// Follows the appends of one execution in order.
pub(super) struct Publisher {
    orders: mpsc::UnboundedSender<Order>,
    published: watch::Sender<Published>,
    inbox: mpsc::UnboundedSender<Message>,
}

impl Publisher {
    /// A publisher that tells the inbox about a failed append.
    pub fn spawn(
        published: watch::Sender<Published>,
        inbox: mpsc::UnboundedSender<Message>,
    ) -> Publisher {
        let (orders, receiver) = mpsc::unbounded_channel();
        tokio::spawn(follow(receiver, published.clone(), inbox.clone()));
        Publisher { orders, published, inbox }
    }

    /// The journal will be on disk up to `seq` once `ticket` is.
    pub fn appended(&self, ticket: Ticket, seq: Seq) {
        let _ = self.orders.send(Order::Appended(ticket, seq));
    }

    /// Waits until everything appended so far is on disk, or gives the error.
    pub async fn settled(&self) -> Result<(), AppendError> {
        let (answer, answered) = oneshot::channel();
        let _ = self.orders.send(Order::Settled(answer));
        answered.await.unwrap_or(Err(AppendError::Closed))
    }

    /// Starts over after the memory was dropped: earlier tickets no longer matter.
    pub fn restart(&mut self, seq: Seq) {
        let (orders, receiver) = mpsc::unbounded_channel();
        tokio::spawn(follow(receiver, self.published.clone(), self.inbox.clone()));
        self.orders = orders;
        self.published.send_modify(|published| published.seq = seq);
    }

    /// Tells readers that nothing more comes from this process.
    pub fn stall(&self, stalled: Stalled) {
        self.published.send_modify(|published| published.stalled = Some(stalled));
    }
}

async fn follow(
    mut orders: mpsc::UnboundedReceiver<Order>,
    published: watch::Sender<Published>,
    inbox: mpsc::UnboundedSender<Message>,
) {
    while let Some(order) = orders.recv().await {
        match order {
            Order::Settled(answer) => drop(answer.send(Ok(()))),
            Order::Appended(mut ticket, mut seq) => {
                let mut answers = Vec::new();
                // Appends of one execution reach the disk in order: the last one says it for all.
                while let Ok(next) = orders.try_recv() {
                    match next {
                        Order::Appended(t, s) => (ticket, seq) = (t, s),
                        Order::Settled(answer) => answers.push(answer),
                    }
                }
                let outcome = ticket.durable().await;
                if outcome.is_ok() {
                    published.send_modify(|published| published.seq = published.seq.max(seq));
                }
                let failed = outcome.as_ref().err().cloned();
                for answer in answers {
                    let _ = answer.send(outcome.clone());
                }
                if let Some(error) = failed {
                    let _ = inbox.send(Message::AppendFailed(error));
                    return;
                }
            }
        }
    }
}
