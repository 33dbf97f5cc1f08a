//! One attempt on its way: waits for the disk, runs, watches the clocks, reports.

use std::sync::Arc;
use std::time::Duration;

use engine::agent::RunnerKind;
use engine::failure::{Failure, FailureClass};
use engine::limits::WATCHDOG_MS;
use engine::scheduler::action::{StartAttempt, Task};
use engine::scheduler::event::Usage;
use engine::scheduler::input::{Input, Report};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Shared;
use super::progress::ProgressBatcher;
use super::task::Message;
use crate::runner::scripted::Script;
use crate::runner::{AttemptOutcome, AttemptRequest, ProgressSink, Runner, StopHandle, StopSignal};
use crate::store::ticket::Ticket;

/// Lines of progress that may wait to be taken before further ones are dropped.
const PROGRESS_LINES_WAITING_MAX: usize = 1_024;
/// How long a runner may take to end what it was told to stop. Twice what it promises.
const STOP_MAX: Duration = Duration::from_secs(10);

/// The report of an attempt that is done as soon as it starts and changes nothing outside the
/// process; `None` if it has to run beside the execution.
pub(super) fn perform_at_once(start: &StartAttempt) -> Option<Report> {
    if start.leaves_process() {
        return None;
    }
    let completed =
        |output| Report::Completed { output, warnings: Vec::new(), usage: Usage::default() };
    match &start.task {
        Task::Transform => Some(completed(start.input.clone())),
        Task::Agent { agent, settings, .. } => match agent.agent.runner {
            RunnerKind::Echo => Some(completed(start.input.clone())),
            RunnerKind::Scripted => {
                let script = Script::read(settings.value()).ok()?;
                (script.takes_ms == 0)
                    .then(|| script.outcome(start.attempt, &start.input))
                    .map(|outcome| report_of(outcome, Usage::default()))
            }
            RunnerKind::Process => None,
        },
    }
}

/// An attempt that runs beside its execution.
pub(super) struct RunningAttempt {
    pub shared: Arc<Shared>,
    pub request: AttemptRequest,
    /// The append that recorded its start; it runs once that is on disk.
    pub recorded: Option<Ticket>,
    pub stop: StopHandle,
    pub stopped: StopSignal,
    pub inbox: mpsc::UnboundedSender<Message>,
}

impl RunningAttempt {
    /// Runs the attempt and reports how it ended. Says nothing if its start never reached the
    /// disk: the execution hears of that by itself.
    pub async fn run(mut self) {
        if let Some(ticket) = &self.recorded
            && ticket.durable().await.is_err()
        {
            return;
        }
        let (instance, attempt) = (self.request.start.instance.clone(), self.request.start.attempt);
        let report = self.report().await;
        let _ =
            self.inbox.send(Message::Input(Input::AttemptReported { instance, attempt, report }));
    }

    async fn report(&mut self) -> Report {
        let runner = match &self.request.start.task {
            Task::Agent { agent, .. } => self.shared.runners.of(agent.agent.runner),
            Task::Transform => unreachable!("a transform is done at once"),
        };
        let began = Instant::now();
        let outcome = self.watched(&*runner).await;
        let usage = Usage { duration_ms: u64::try_from(began.elapsed().as_millis()).ok() };
        match outcome {
            Watched::Ended(outcome) => report_of(outcome, usage),
            Watched::TimedOut(timeout_ms) => Report::Failed {
                failure: Failure::new(
                    FailureClass::Timeout,
                    format!("not finished after {} s, its timeout", timeout_ms as f64 / 1000.0),
                ),
                usage,
            },
            Watched::Silent => {
                Report::Lost { message: format!("no sign of life for {} s", WATCHDOG_MS / 1000) }
            }
            Watched::Stuck => Report::Failed {
                failure: Failure::new(
                    FailureClass::Internal,
                    format!("its runner did not stop within {} s", STOP_MAX.as_secs()),
                ),
                usage,
            },
        }
    }

    /// Runs the runner under the attempt's clocks. They are monotonic: time that the machine
    /// sleeps does not count.
    async fn watched(&mut self, runner: &dyn Runner) -> Watched {
        let (sink, lines) = ProgressSink::channel(PROGRESS_LINES_WAITING_MAX);
        let batcher = ProgressBatcher::spawn(&self.shared, &self.request, lines);
        let timeout_ms = self.request.start.start_to_close_timeout_ms;
        let began = Instant::now();
        let deadline = timeout_ms.map(|ms| began + Duration::from_millis(ms));
        let mut stopped = self.stopped.clone();
        let mut run = runner.run(self.request.clone(), sink, self.stopped.clone());
        let ended = loop {
            let silent_at = batcher.last_sign(began) + Duration::from_millis(WATCHDOG_MS);
            let wake_at = deadline.map_or(silent_at, |deadline| deadline.min(silent_at));
            tokio::select! {
                outcome = &mut run => break Watched::Ended(outcome),
                () = stopped.stopped() => {
                    break match tokio::time::timeout(STOP_MAX, &mut run).await {
                        Ok(outcome) => Watched::Ended(outcome),
                        Err(_) => Watched::Stuck,
                    };
                }
                () = tokio::time::sleep_until(wake_at) => {
                    let reason = if deadline.is_some_and(|deadline| deadline <= wake_at) {
                        Watched::TimedOut(timeout_ms.unwrap_or_default())
                    } else if batcher.last_sign(began) + Duration::from_millis(WATCHDOG_MS) > wake_at {
                        continue;
                    } else {
                        Watched::Silent
                    };
                    self.stop.stop();
                    let _ = tokio::time::timeout(STOP_MAX, &mut run).await;
                    break reason;
                }
            }
        };
        drop(run);
        batcher.finish().await;
        ended
    }
}

/// How watching an attempt ended.
enum Watched {
    Ended(AttemptOutcome),
    TimedOut(u64),
    Silent,
    Stuck,
}

fn report_of(outcome: AttemptOutcome, usage: Usage) -> Report {
    match outcome {
        AttemptOutcome::Completed { output, warnings } => {
            Report::Completed { output, warnings, usage }
        }
        AttemptOutcome::Failed(failure) => Report::Failed { failure, usage },
        AttemptOutcome::Stopped => Report::Stopped,
    }
}
