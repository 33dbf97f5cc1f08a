//! What the tests of runners share: agents and requests, made up.

use std::future::Future;
use std::sync::Arc;

use engine::agent::{Agent, PinnedAgent, RunnerKind};
use engine::ids::{Digest, ExecutionId, Instance};
use engine::payload::Payload;
use engine::scheduler::action::{StartAttempt, Task};
use engine::value::Object;
use uuid::Uuid;

use super::AttemptRequest;

/// Runs a future to its end, with clocks and pipes.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(future)
}

/// An agent that plays a script.
pub fn scripted_agent() -> Agent {
    agent(RunnerKind::Scripted)
}

/// An agent of a kind, called `tester`.
pub fn agent(runner: RunnerKind) -> Agent {
    Agent {
        id: "tester".into(),
        name: "Tester".to_owned(),
        description: None,
        icon: None,
        category: None,
        runner,
        settings: Object::new(),
        parameters: None,
        input_schema: None,
        output_schema: None,
        side_effecting: None,
        idempotent: false,
        streams: false,
        timeout: None,
        retry_policy: None,
        extra: Object::new(),
    }
}

/// A request for an attempt of node `a`, with settings and input as JSON text.
pub fn request(agent: Agent, settings: &str, input: &str, attempt: u32) -> AttemptRequest {
    let execution = ExecutionId(Uuid::from_u128(7));
    let instance = Instance::top("a".into());
    let idempotency_key = instance.idempotency_key(execution);
    let task = Task::Agent {
        agent: Arc::new(PinnedAgent { agent, digest: Digest::of(b"") }),
        settings: Payload::parse(settings).unwrap(),
        params: Arc::new(Object::new()),
    };
    AttemptRequest {
        execution,
        workflow: None,
        start: StartAttempt {
            instance,
            attempt,
            task,
            input: Payload::parse(input).unwrap(),
            idempotency_key,
            start_to_close_timeout_ms: None,
        },
    }
}
