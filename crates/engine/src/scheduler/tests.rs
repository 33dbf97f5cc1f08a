//! What simulations cannot reach because their cases are values themselves.

use std::sync::Arc;

use uuid::Uuid;

use super::*;
use crate::agent::{Agent, PinnedAgent, RunnerKind};
use crate::definition::Definition;
use crate::failure::FailureClass;
use crate::ids::Digest;
use crate::plan::compile::compile;
use crate::scheduler::event::Usage;
use crate::scheduler::input::{Report, Start};
use crate::value::{DEPTH_MAX, Value};

/// Plays a definition whose agents give back their input, for an execution input, to its end.
fn play(definition: &str, input: &str) -> Execution {
    let definition = Definition::from_value(Value::parse(definition).unwrap()).unwrap();
    let echo = PinnedAgent::new(Agent::new("echo", "Echo", RunnerKind::Echo));
    let agents: AgentSet = [(echo.agent.id.clone(), Arc::new(echo))].into_iter().collect();
    let plan = Arc::new(compile(&definition, &agents).plan.expect("the definition is valid"));
    let id = ExecutionId(Uuid::from_u128(1));
    let limits = OverrideLimits::default();
    let mut execution = Execution::new(id, plan, Arc::new(agents), limits);
    let mut inputs = vec![Input::Start(Box::new(Start {
        document: Digest::of(b"document"),
        input: Payload::parse(input).unwrap(),
        workflow: None,
        workspace: "Personal".to_owned(),
        source: None,
        trigger: Trigger::File,
        parent: None,
    }))];
    while let Some(input) = inputs.pop() {
        let records = execution.decide(input, Timestamp(0)).unwrap();
        for action in execution.commit(&records).actions {
            let Action::StartAttempt(start) = action else { continue };
            let (output, usage) = (start.input, Usage::default());
            let report = Report::Completed { output, warnings: Vec::new(), usage };
            let (instance, attempt) = (start.instance, start.attempt);
            inputs.push(Input::AttemptReported { instance, attempt, report });
        }
    }
    execution
}

fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

const JOIN: &str = r#"{"name":"Join",
    "nodes":[{"id":"a","agentId":"echo"},{"id":"b","agentId":"echo"},{"id":"j","agentId":"echo"},
             {"id":"k","agentId":"echo"}],
    "edges":[{"source":"a","target":"j"},{"source":"b","target":"j"},
             {"source":"j","target":"k","condition":{"field":"b","operator":"exists"}}]}"#;

#[test]
fn a_join_whose_input_could_never_be_read_again_fails_and_says_so() {
    let execution = play(JOIN, &nested(DEPTH_MAX));
    let join = execution.plan().node_idx(&"j".into()).unwrap();
    let failure = execution.node_failure(join).expect("the join failed");
    assert_eq!(failure.class, FailureClass::BindingError);
    assert!(failure.message.contains("129 levels"), "{}", failure.message);
    assert_eq!(execution.status(), ExecutionStatus::Failed);
    let fits = play(JOIN, &nested(DEPTH_MAX - 1));
    assert_eq!(fits.status(), ExecutionStatus::Completed, "one level less is read by a condition");
}

#[test]
fn an_output_that_could_never_be_read_again_is_null_with_a_note() {
    let two_sinks = r#"{"name":"Sinks","nodes":[{"id":"a","agentId":"echo"},
        {"id":"b","agentId":"echo"},{"id":"c","agentId":"echo"}],
        "edges":[{"source":"a","target":"b"},{"source":"a","target":"c"}]}"#;
    let execution = play(two_sinks, &nested(DEPTH_MAX));
    assert_eq!(execution.status(), ExecutionStatus::Completed);
    assert_eq!(execution.output().unwrap().text(), "null");
    let fits = play(two_sinks, &nested(DEPTH_MAX - 1));
    assert_eq!(fits.output().unwrap().depth(), DEPTH_MAX);
}
