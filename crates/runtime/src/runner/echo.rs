//! The runner that gives back its input.

use super::{AttemptFuture, AttemptOutcome, AttemptRequest, ProgressSink, Runner, StopSignal};

/// Gives back its input, at once. It has no settings.
#[derive(Clone, Copy, Debug, Default)]
pub struct EchoRunner;

impl Runner for EchoRunner {
    fn run<'a>(
        &'a self,
        request: AttemptRequest,
        _progress: ProgressSink,
        _stop: StopSignal,
    ) -> AttemptFuture<'a> {
        let output = request.start.input;
        Box::pin(async { AttemptOutcome::Completed { output, warnings: Vec::new() } })
    }
}
