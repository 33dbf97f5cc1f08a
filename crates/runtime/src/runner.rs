//! Runners: the code that performs one attempt for one kind of agent.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use engine::agent::RunnerKind;
use engine::failure::Failure;
use engine::ids::{ExecutionId, WorkflowId};
use engine::payload::Payload;
use engine::scheduler::action::StartAttempt;
use engine::scheduler::event::Warning;
use tokio::sync::{mpsc, watch};

use process::ProcessRunner;

pub mod echo;
pub mod process;
pub mod scripted;
pub mod settings;
#[cfg(test)]
mod testing;

/// Everything a runner is told about the attempt it performs.
#[derive(Clone, Debug)]
pub struct AttemptRequest {
    /// The execution it belongs to.
    pub execution: ExecutionId,
    /// The workflow, unless a file is run.
    pub workflow: Option<WorkflowId>,
    /// The attempt: node instance, number, agent, resolved settings, parameters, input, key.
    pub start: StartAttempt,
}

/// How an attempt ended, as its runner saw it.
#[derive(Clone, Debug, PartialEq)]
pub enum AttemptOutcome {
    /// It gave an output.
    Completed {
        /// The output.
        output: Payload,
        /// Things a person should know that stop nothing.
        warnings: Vec<Warning>,
    },
    /// It failed.
    Failed(Failure),
    /// It ended because it was told to stop.
    Stopped,
}

/// Where a line of progress came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProgressStream {
    /// The agent's output that is not its result.
    Stdout,
    /// Its error output.
    Stderr,
    /// What the runner itself says about it.
    Runner,
}

/// One line of progress. Lines may be lost; nothing is decided on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgressLine {
    /// Where it came from.
    pub stream: ProgressStream,
    /// The text without its line end, at most [`PROGRESS_LINE_BYTES_MAX`] bytes, cut between
    /// characters.
    pub text: String,
}

/// The longest line of progress that is kept whole, in bytes.
pub const PROGRESS_LINE_BYTES_MAX: usize = 8 * 1024;

/// Takes an attempt's lines of progress. Never blocks the runner for long: when the other side is
/// slow, lines are counted and dropped.
#[derive(Clone, Debug)]
pub struct ProgressSink {
    sender: mpsc::Sender<ProgressLine>,
}

impl ProgressSink {
    /// A sink and the end its lines come out of.
    pub fn channel(lines_max: usize) -> (ProgressSink, mpsc::Receiver<ProgressLine>) {
        let (sender, receiver) = mpsc::channel(lines_max);
        (ProgressSink { sender }, receiver)
    }

    /// Hands over a line, or drops it when the other side is slow or gone.
    pub fn line(&self, stream: ProgressStream, text: String) {
        let _ = self.sender.try_send(ProgressLine { stream, text });
    }
}

/// Tells a running attempt to end. Once raised it stays raised.
#[derive(Clone, Debug)]
pub struct StopSignal {
    raised: watch::Receiver<bool>,
}

/// Raises a [`StopSignal`]. Clones raise the same one.
#[derive(Clone, Debug)]
pub struct StopHandle {
    raised: watch::Sender<bool>,
}

impl StopHandle {
    /// A handle and its signal.
    pub fn new() -> (StopHandle, StopSignal) {
        let (sender, receiver) = watch::channel(false);
        (StopHandle { raised: sender }, StopSignal { raised: receiver })
    }

    /// Tells the attempt to end.
    pub fn stop(&self) {
        self.raised.send_replace(true);
    }
}

impl StopSignal {
    /// Waits until the attempt should end. Waits for ever if the handle is dropped unraised.
    pub async fn stopped(&mut self) {
        if self.raised.wait_for(|raised| *raised).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// The runners of one process start, by kind.
#[derive(Clone)]
pub struct Runners {
    echo: Arc<dyn Runner>,
    process: Arc<dyn Runner>,
    scripted: Arc<dyn Runner>,
}

impl Runners {
    /// The runners that exist.
    pub fn new(process: ProcessRunner) -> Runners {
        Runners {
            echo: Arc::new(echo::EchoRunner),
            process: Arc::new(process),
            scripted: Arc::new(scripted::ScriptedRunner),
        }
    }

    /// The runner of a kind.
    pub fn of(&self, kind: RunnerKind) -> Arc<dyn Runner> {
        Arc::clone(match kind {
            RunnerKind::Echo => &self.echo,
            RunnerKind::Process => &self.process,
            RunnerKind::Scripted => &self.scripted,
        })
    }
}

/// A future of a runner's answer.
pub type AttemptFuture<'a> = Pin<Box<dyn Future<Output = AttemptOutcome> + Send + 'a>>;

/// Performs attempts for one kind of agent.
///
/// A runner keeps no state between attempts that matters for correctness. It enforces no timeout
/// of its own: whoever calls it raises `stop` when the clock runs out, and waits for the outcome.
/// After `stop` is raised it ends everything that it started, first politely, then hard, and
/// answers within 5 seconds.
pub trait Runner: Send + Sync {
    /// Performs one attempt.
    fn run<'a>(
        &'a self,
        request: AttemptRequest,
        progress: ProgressSink,
        stop: StopSignal,
    ) -> AttemptFuture<'a>;
}
