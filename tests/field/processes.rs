//! Kind 7 of the field cases: agents are programs, and programs are difficult.
#![cfg(unix)]

mod arguments;
mod ending;
mod output;
mod readiness;
mod survivors;
mod text;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use engine::agent::{Agent, PinnedAgent, RunnerKind};
use engine::failure::Failure;
use engine::ids::{ExecutionId, Instance, OwnerId, WorkflowId};
use engine::payload::Payload;
use engine::scheduler::action::{StartAttempt, Task};
use engine::value::{Object, Value};
use runtime::runner::process::registry::ProcessRegistry;
use runtime::runner::process::{ProcessLimits, ProcessRunner, ProcessRunnerConfig};
use runtime::runner::{
    AttemptOutcome, AttemptRequest, ProgressLine, ProgressSink, ProgressStream, Runner, StopHandle,
    StopSignal,
};
use tempfile::TempDir;
use uuid::Uuid;

/// No step of these tests may take longer.
const HANGS: Duration = Duration::from_secs(30);

/// A home folder and a runner that uses it.
struct World {
    home: TempDir,
    owner: OwnerId,
    runner: ProcessRunner,
}

/// An attempt as it is asked for.
#[derive(Clone)]
struct Asked {
    agent: Agent,
    settings: Value,
    params: Object,
    input: String,
    execution: ExecutionId,
}

/// An attempt as it went.
#[derive(Debug)]
struct Ran {
    outcome: AttemptOutcome,
    lines: Vec<ProgressLine>,
    took: Duration,
}

impl World {
    fn new() -> World {
        World::with_limits(ProcessLimits::default())
    }

    fn with_limits(limits: ProcessLimits) -> World {
        World::with(limits, std::env::vars_os().collect())
    }

    fn with(
        limits: ProcessLimits,
        environment: BTreeMap<std::ffi::OsString, std::ffi::OsString>,
    ) -> World {
        let home = tempfile::tempdir().unwrap();
        let owner = OwnerId(Uuid::from_u128(u128::from(unique())));
        let config = ProcessRunnerConfig { environment, limits, ..config_in(home.path(), owner) };
        World { home, owner, runner: ProcessRunner::new(config) }
    }

    fn processes(&self) -> PathBuf {
        self.home.path().join("processes")
    }

    /// The records of programs that run.
    fn records(&self) -> usize {
        let folder = self.processes().join(self.owner.to_string());
        std::fs::read_dir(folder).map_or(0, Iterator::count)
    }

    /// Writes a program into the home folder.
    fn program(&self, name: &str, text: &str) -> PathBuf {
        let path = self.home.path().join(name);
        write_program(&path, text);
        path
    }

    fn run(&self, asked: &Asked) -> Ran {
        self.run_until(asked, |_| std::future::pending())
    }

    /// Runs an attempt and tells it to stop after a while.
    fn run_and_stop(&self, asked: &Asked, after: Duration) -> Ran {
        self.run_until(asked, move |handle| async move {
            tokio::time::sleep(after).await;
            handle.stop();
            std::future::pending::<()>().await;
        })
    }

    fn run_until<F: Future<Output = ()>>(
        &self,
        asked: &Asked,
        meanwhile: impl FnOnce(StopHandle) -> F,
    ) -> Ran {
        block_on(async {
            let (handle, stop) = StopHandle::new();
            let (progress, mut lines) = ProgressSink::channel(100_000);
            let began = Instant::now();
            let outcome = tokio::select! {
                outcome = self.start(asked, progress, stop) => outcome,
                () = meanwhile(handle) => unreachable!("it waits for ever"),
                () = tokio::time::sleep(HANGS) => panic!("the attempt hangs"),
            };
            let took = began.elapsed();
            let mut received = Vec::new();
            while let Ok(line) = lines.try_recv() {
                received.push(line);
            }
            Ran { outcome, lines: received, took }
        })
    }

    async fn start(
        &self,
        asked: &Asked,
        progress: ProgressSink,
        stop: StopSignal,
    ) -> AttemptOutcome {
        self.runner.run(asked.request(), progress, stop).await
    }
}

impl Asked {
    /// An attempt of a program with arguments and the input `{}`.
    fn program(program: impl AsRef<Path>, args: &[&str]) -> Asked {
        let args: Value = args.iter().map(|text| Value::from(*text)).collect();
        let program = program.as_ref().to_str().unwrap();
        let settings = Object::from_iter([("program", Value::from(program)), ("args", args)]);
        Asked {
            agent: Agent::new("tester", "Tester", RunnerKind::Process),
            settings: settings.into(),
            params: Object::new(),
            input: "{}".to_owned(),
            execution: ExecutionId(Uuid::from_u128(u128::from(unique()))),
        }
    }

    /// An attempt of a shell script with the input `{}`.
    fn sh(script: &str) -> Asked {
        Asked::program("/bin/sh", &["-c", script])
    }

    fn input(self, input: impl Into<String>) -> Asked {
        Asked { input: input.into(), ..self }
    }

    fn set(mut self, key: &str, value: impl Into<Value>) -> Asked {
        self.settings.as_object_mut().unwrap().insert(key, value);
        self
    }

    fn text(self) -> Asked {
        self.set("output", "text")
    }

    fn streams(mut self) -> Asked {
        self.agent.streams = true;
        self
    }

    fn request(&self) -> AttemptRequest {
        let instance = Instance::top("a node".into());
        AttemptRequest {
            execution: self.execution,
            workflow: Some(WorkflowId(Uuid::from_u128(5))),
            start: StartAttempt {
                idempotency_key: instance.idempotency_key(self.execution),
                instance,
                attempt: 1,
                task: Task::Agent {
                    agent: Arc::new(PinnedAgent::new(self.agent.clone())),
                    settings: Payload::new(self.settings.clone()),
                    params: Arc::new(self.params.clone()),
                },
                input: Payload::parse(&self.input).unwrap(),
                start_to_close_timeout_ms: None,
            },
        }
    }

    /// The processes of this attempt that are alive, whatever group they are in.
    fn processes_left(&self) -> Vec<String> {
        processes_with(&format!("CYANOTYPE_EXECUTION_ID={}", self.execution))
    }
}

impl Ran {
    /// The output of a completed attempt, and the codes of its warnings.
    #[track_caller]
    fn completed(&self) -> (&str, Vec<&str>) {
        match &self.outcome {
            AttemptOutcome::Completed { output, warnings } => {
                (output.text(), warnings.iter().map(|warning| warning.code.as_str()).collect())
            }
            other => panic!("not completed: {other:?}"),
        }
    }

    /// The output of an attempt that completed without a warning.
    #[track_caller]
    fn output(&self) -> &str {
        let (output, warnings) = self.completed();
        assert_eq!(warnings, [""; 0]);
        output
    }

    #[track_caller]
    fn failure(&self) -> &Failure {
        match &self.outcome {
            AttemptOutcome::Failed(failure) => failure,
            other => panic!("not failed: {other:?}"),
        }
    }

    /// The lines of one stream.
    fn lines(&self, stream: ProgressStream) -> Vec<&str> {
        let of_stream = self.lines.iter().filter(|line| line.stream == stream);
        of_stream.map(|line| line.text.as_str()).collect()
    }
}

fn config_in(home: &Path, owner: OwnerId) -> ProcessRunnerConfig {
    ProcessRunnerConfig {
        environment: std::env::vars_os().collect(),
        working_folder: home.to_owned(),
        raw_folder: home.join("raw"),
        registry: Some(ProcessRegistry::open(&home.join("processes"), owner).unwrap()),
        limits: ProcessLimits::default(),
    }
}

fn runner_in(home: &Path, owner: OwnerId) -> ProcessRunner {
    ProcessRunner::new(config_in(home, owner))
}

fn block_on<F: Future>(future: F) -> F::Output {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(future)
}

/// A number that no other test and no other run of the tests has.
fn unique() -> u64 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    u64::from(std::process::id()) << 32 | u64::from(NEXT.fetch_add(1, Ordering::Relaxed))
}

fn write_program(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// The living processes that were started with a variable. Knows none where there is no `/proc`.
fn processes_with(variable: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter(|process| {
            std::fs::read(process.path().join("environ")).is_ok_and(|variables| {
                variables.split(|&b| b == 0).any(|v| v == variable.as_bytes())
            })
        })
        .map(|process| {
            let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).replace('\0', " ")
        })
        .collect()
}

/// Waits until something is true; fails if that takes too long.
#[track_caller]
fn eventually(what: &str, mut is_true: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_true() {
        assert!(began.elapsed() < HANGS, "{what} takes too long");
        std::thread::sleep(Duration::from_millis(5));
    }
}
