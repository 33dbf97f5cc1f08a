//! The runner that runs a program: the node's input on standard input, the result on standard
//! output, progress on both outputs.
//!
//! What is where: [`settings`] what an agent may set; [`environment`], [`arguments`] and [`batch`]
//! what the program gets; [`group`] how it is started and ended with all that it starts;
//! [`candidate`] and [`output`] how its result is found; [`attempt`] how one attempt goes;
//! [`outcome`] what is made of its end; [`registry`] and [`survivors`] what happens after a crash.

use std::path::PathBuf;
use std::time::Duration;

use engine::failure::{Failure, FailureClass};
use engine::ids::AgentId;
use engine::scheduler::action::Task;

use super::{AttemptFuture, AttemptOutcome, AttemptRequest, ProgressSink, Runner, StopSignal};
use crate::preflight::{self, Lookup};
use arguments::ArgumentError;
use attempt::{Attempt, Ending};
use environment::Environment;
use group::{Launch, LaunchError, Mark};
use registry::{Entry, ProcessRegistry};
use settings::ProcessSettings;

pub mod arguments;
mod attempt;
pub mod batch;
mod candidate;
#[cfg(target_os = "macos")]
mod darwin;
#[cfg(target_os = "linux")]
mod death_signal;
pub mod environment;
mod group;
pub mod identity;
mod lines;
#[cfg(target_os = "linux")]
mod linux;
pub mod outcome;
mod output;
pub mod registry;
mod scan;
pub mod settings;
mod spawner;
pub mod survivors;

/// The `errorType` if the program, or what its first line asks for, was not found.
pub const PROGRAM_NOT_FOUND: &str = "programNotFound";
/// The `errorType` if the program's file may not be run.
pub const PROGRAM_NOT_EXECUTABLE: &str = "programNotExecutable";
/// The `errorType` if the working folder is not there.
pub const WORKING_FOLDER_NOT_FOUND: &str = "workingFolderNotFound";
/// The `errorType` if the system refused to start the program for another reason.
pub const NOT_STARTED: &str = "notStarted";

/// Runs programs.
#[derive(Clone, Debug)]
pub struct ProcessRunner {
    config: ProcessRunnerConfig,
}

/// What a [`ProcessRunner`] needs to know of its surroundings.
#[derive(Clone, Debug)]
pub struct ProcessRunnerConfig {
    /// The environment of this process. Its `PATH` is where programs are looked up.
    pub environment: Environment,
    /// The folder this process works in, absolute. Programs run in it unless their agent sets
    /// `cwd`.
    pub working_folder: PathBuf,
    /// Where outputs are kept that are not UTF-8: `<home>/raw`. Made when it is needed.
    pub raw_folder: PathBuf,
    /// Records what runs, for the start after a crash. Without it, survivors of a crash are ended
    /// only as far as the system does it.
    pub registry: Option<ProcessRegistry>,
    /// How much and how long.
    pub limits: ProcessLimits,
}

/// How much a program may write, and how long things may take around its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessLimits {
    /// The longest standard output, in bytes.
    pub output_bytes_max: usize,
    /// How much of the end of the error output a failure keeps, in bytes.
    pub stderr_bytes_max: usize,
    /// How long the outputs are read after the program has ended, if something holds them open.
    pub drain: Duration,
    /// How long a program that is told to stop may tidy up.
    pub polite_stop: Duration,
    /// How long processes that the program left behind may tidy up.
    pub polite_end_of_leftovers: Duration,
    /// How long killed processes are waited for.
    pub hard_stop: Duration,
    /// For agents that stream: how long they may be silent.
    pub idle: Duration,
    /// For agents that stream: how long they may be silent after they have closed their output,
    /// before they are ended and their result stands.
    pub grace: Duration,
}

impl Default for ProcessLimits {
    fn default() -> ProcessLimits {
        ProcessLimits {
            output_bytes_max: 64 * 1024 * 1024,
            stderr_bytes_max: 4 * 1024,
            drain: Duration::from_secs(2),
            polite_stop: Duration::from_millis(1_500),
            polite_end_of_leftovers: Duration::from_millis(250),
            hard_stop: Duration::from_secs(2),
            idle: Duration::from_secs(600),
            grace: Duration::from_secs(60),
        }
    }
}

impl ProcessRunner {
    /// A runner.
    pub fn new(config: ProcessRunnerConfig) -> ProcessRunner {
        ProcessRunner { config }
    }

    async fn attempt(
        &self,
        request: AttemptRequest,
        progress: ProgressSink,
        mut stop: StopSignal,
    ) -> AttemptOutcome {
        let Prepared { launch, settings, agent, streams } = match self.prepare(&request) {
            Ok(prepared) => prepared,
            Err(failure) => return AttemptOutcome::Failed(*failure),
        };
        let environment = launch.environment.clone();
        let launched = tokio::select! {
            biased;
            () = stop.stopped() => return AttemptOutcome::Stopped,
            launched = group::launch(launch) => launched,
        };
        let launched = match launched {
            Ok(launched) => launched,
            Err(error) => {
                return AttemptOutcome::Failed(not_started(&agent, &settings, &environment, error));
            }
        };
        let limits = &self.config.limits;
        let input = request.start.input.clone();
        let attempt = Attempt::new(launched, input, settings.output, progress, limits);
        let finished =
            if streams { attempt.run_streaming(stop).await } else { attempt.run(stop).await };
        if matches!(finished.ending, Ending::Stopped) {
            return AttemptOutcome::Stopped;
        }
        let context = outcome::Context {
            program: settings.program,
            raw_file: self.config.raw_folder.join(raw_name(&request)),
        };
        // A result of many megabytes takes its time.
        let read = tokio::task::spawn_blocking(move || outcome::of(finished, &context));
        read.await.unwrap_or_else(|error| {
            let message = format!("reading the output of agent `{agent}` failed: {error}");
            AttemptOutcome::Failed(Failure::new(FailureClass::Internal, message))
        })
    }

    /// Everything that can be known to fail before a program is started.
    fn prepare(&self, request: &AttemptRequest) -> Result<Prepared, Box<Failure>> {
        let Task::Agent { agent, settings, params } = &request.start.task else {
            let message = "a node without an agent was given to the runner of programs";
            return Err(Failure::new(FailureClass::Internal, message).into());
        };
        let streams = agent.agent.streams;
        let agent = agent.agent.id.clone();
        let failed = |error_type: &str, reason: String| {
            let message = format!("agent `{agent}` was not started: {reason}");
            Box::new(Failure::typed(FailureClass::AgentError, error_type, message))
        };
        settings::refuse_secrets(&agent, settings.value(), params)?;
        let settings =
            ProcessSettings::read(settings.value()).map_err(|error| error.into_failure(&agent))?;
        let environment =
            environment::of_attempt(&self.config.environment, &settings, request, params);
        arguments::check(&settings.program, &settings.args, &environment)
            .map_err(|error| error.into_failure(&agent))?;
        let working_folder = settings.working_folder(&self.config.working_folder);
        if !working_folder.is_dir() {
            let reason = format!("its working folder {} is not there", working_folder.display());
            return Err(failed(WORKING_FOLDER_NOT_FOUND, reason));
        }
        let lookup = Lookup::new(&environment, &working_folder);
        let program = preflight::find_program(&settings.program, &lookup)
            .and_then(|path| preflight::check_interpreter(&path, &lookup).map(|()| path))
            .map_err(|error| failed(outcome::error_type_of(&error), error.to_string()))?;
        check_batch(&program.to_string_lossy(), &settings.args)
            .map_err(|error| error.into_failure(&agent))?;
        let start = &request.start;
        let mark = Mark { idempotency_key: start.idempotency_key, attempt: start.attempt };
        let entry = Entry {
            execution: request.execution,
            instance: start.instance.clone(),
            attempt: start.attempt,
            idempotency_key: start.idempotency_key,
        };
        let record = self.config.registry.clone().map(|registry| (registry, entry));
        let args = settings.args.clone();
        let launch = Launch { program, args, environment, working_folder, mark, record };
        Ok(Prepared { launch, settings, agent, streams })
    }
}

impl Runner for ProcessRunner {
    fn run<'a>(
        &'a self,
        request: AttemptRequest,
        progress: ProgressSink,
        stop: StopSignal,
    ) -> AttemptFuture<'a> {
        Box::pin(self.attempt(request, progress, stop))
    }
}

/// An attempt whose program is about to be started.
struct Prepared {
    launch: Launch,
    settings: ProcessSettings,
    agent: AgentId,
    streams: bool,
}

fn check_batch(program: &str, args: &[String]) -> Result<(), ArgumentError> {
    if cfg!(windows) && batch::is_batch(program) {
        batch::command_line(program, args).map(drop)?;
    }
    Ok(())
}

/// The name of the file for an attempt's raw output. Made of digests and numbers, because a node's
/// id is any text.
fn raw_name(request: &AttemptRequest) -> String {
    let key = request.start.idempotency_key.to_string();
    format!("{}-{}-{}.stdout", request.execution, &key[..16], request.start.attempt)
}

fn not_started(
    agent: &AgentId,
    settings: &ProcessSettings,
    environment: &Environment,
    error: LaunchError,
) -> Failure {
    let is_too_long =
        error.io().is_some_and(|error| error.kind() == std::io::ErrorKind::ArgumentListTooLong);
    if is_too_long {
        return arguments::list_too_long(&settings.args, environment).into_failure(agent);
    }
    let class = match error {
        LaunchError::Spawn(_) => FailureClass::AgentError,
        LaunchError::Record(_) | LaunchError::Closing => FailureClass::Internal,
    };
    let cause = error.io().map(|cause| format!(": {cause}")).unwrap_or_default();
    let message =
        format!("agent `{agent}` (`{}`) was not started: {error}{cause}", settings.program);
    Failure::typed(class, NOT_STARTED, message)
}
