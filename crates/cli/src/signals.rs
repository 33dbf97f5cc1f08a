//! Interrupts: what a person, or the system, wants to end.

use tokio::sync::mpsc;

use crate::exit::Exit;

/// A wish that something should end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// Ctrl-C.
    Keyboard,
    /// The system, or the closing of the terminal.
    Terminate,
}

/// Interrupts as they come. The third ends the process at once.
#[derive(Debug)]
pub struct Interrupts {
    receiver: mpsc::UnboundedReceiver<Interrupt>,
}

/// So many interrupts are answered politely.
const POLITE: u32 = 2;

impl Interrupts {
    /// Listens from now on; until then, and where nobody listens, an interrupt ends the process.
    pub fn listen() -> Interrupts {
        let (sender, receiver) = mpsc::unbounded_channel();
        let terminate = sender.clone();
        let mut keyboard = keyboard();
        let mut ends = terminations();
        tokio::spawn(async move {
            let mut n = 0;
            while keyboard.recv().await.is_some() {
                n += 1;
                if n > POLITE {
                    std::process::exit(i32::from(Exit::Unfinished.code()));
                }
                let _ = sender.send(Interrupt::Keyboard);
            }
        });
        tokio::spawn(async move {
            while ends.recv().await.is_some() {
                let _ = terminate.send(Interrupt::Terminate);
            }
        });
        Interrupts { receiver }
    }

    /// The next one.
    pub async fn next(&mut self) -> Interrupt {
        match self.receiver.recv().await {
            Some(interrupt) => interrupt,
            None => std::future::pending().await,
        }
    }
}

#[cfg(unix)]
fn keyboard() -> tokio::signal::unix::Signal {
    use tokio::signal::unix::{SignalKind, signal};
    signal(SignalKind::interrupt()).expect("a process may listen to its own signals")
}

#[cfg(windows)]
fn keyboard() -> tokio::signal::windows::CtrlC {
    tokio::signal::windows::ctrl_c().expect("a process may listen to its own console")
}

/// The system's wish that the process ends, and the closing of its terminal.
#[cfg(unix)]
fn terminations() -> mpsc::UnboundedReceiver<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let (sender, receiver) = mpsc::unbounded_channel();
    for kind in [SignalKind::terminate(), SignalKind::hangup()] {
        let mut signals = signal(kind).expect("a process may listen to its own signals");
        let sender = sender.clone();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                let _ = sender.send(());
            }
        });
    }
    receiver
}

#[cfg(windows)]
fn terminations() -> tokio::signal::windows::CtrlClose {
    tokio::signal::windows::ctrl_close().expect("a process may listen to its own console")
}
