//! Crash recovery, as far as the engine is concerned.

use std::rc::Rc;

use engine::definition::Definition;
use engine::ids::OwnerId;
use engine::plan::compile::compile;
use engine::projection::{ExecutionStatus, NodeStatus};
use engine::scheduler::event::Event;
use engine::scheduler::input::Input;
use engine::time::Timestamp;
use uuid::Uuid;

use crate::sim::case::Case;
use crate::sim::chaos::Chaos;
use crate::sim::world::{START_MS, World};

/// Two branches that meet, and a tail.
const DIAMOND: &str = r#"{"nodes":{"S":{"out":0},"L":{"out":1},"R":{"out":2},"J":{"out":3},
                                   "T":{"out":4}},
                          "edges":[["S","L"],["S","R"],["L","J"],["R","J"],["J","T"]]}"#;
const DIAMOND_NODES: [&str; 5] = ["S", "L", "R", "J", "T"];

fn restarted(owner: u128) -> Input {
    Input::HostRestarted { owner: OwnerId(Uuid::from_u128(owner)), unowned_ms: 0 }
}

#[test]
fn o_k01_a_recovered_execution_calls_what_was_not_completed_once_and_the_rest_never() {
    for seed in 0..50 {
        let case = Rc::new(Case::field(DIAMOND));
        let setup = Rc::new(case.setup(seed).unwrap());
        let mut interrupted = World::start(&case, &setup, Chaos::any_order(), seed).unwrap();
        for _ in 0..seed % 6 {
            interrupted.step().unwrap();
        }
        let was_completed =
            DIAMOND_NODES.map(|node| interrupted.node_status(node) == NodeStatus::Completed);
        // Another execution is started while the sweep is under way: it is none of its business.
        let mut new = World::start(
            &case,
            &Rc::new(case.setup(1_000 + seed).unwrap()),
            Chaos::any_order(),
            seed,
        )
        .unwrap();

        let n_units = interrupted.units().len();
        let mut recovered = World::recovered(&interrupted, n_units, seed).unwrap();
        recovered.drive().unwrap();
        new.drive().unwrap();
        for (node, was_completed) in DIAMOND_NODES.into_iter().zip(was_completed) {
            assert_eq!(recovered.calls(node), usize::from(!was_completed), "{node}, seed {seed}");
            assert_eq!(new.calls(node), 1, "{node}, seed {seed}");
        }
        assert_eq!(recovered.execution().status(), ExecutionStatus::Completed);
    }
}

#[test]
fn o_k01_of_two_racing_sweeps_only_one_can_append() {
    let mut world = World::calm(Case::field(DIAMOND), 1);
    world.step().unwrap();
    let sweep = |owner| {
        let execution = world.setup().replay(world.records());
        execution.decide(restarted(owner), world.now).unwrap()
    };
    let (one, other) = (sweep(1), sweep(2));
    assert_eq!(one[0].seq, other[0].seq, "both want to append at the same place");
    assert_eq!(one.len(), other.len(), "and would have done the same");
}

#[test]
fn o_k02_a_journal_without_its_last_record_ends_again_without_starting_anything() {
    let mut world = World::calm(Case::field(DIAMOND), 1);
    world.drive().unwrap();
    let records: Vec<_> = world.records().cloned().collect();
    let (last, rest) = records.split_last().expect("it has records");
    assert!(matches!(last.event, Event::ExecutionCompleted(_)));

    let mut execution = world.setup().replay(rest);
    assert_eq!(execution.status(), ExecutionStatus::Running);
    // The clock of this machine was set back meanwhile.
    let decided = execution.decide(restarted(9), Timestamp(START_MS - 86_400_000)).unwrap();
    let starts = decided.iter().any(|record| matches!(record.event, Event::AttemptStarted(_)));
    assert!(!starts, "nothing is started again: {decided:?}");
    execution.commit(&decided);
    assert_eq!(execution.output(), world.execution().output());
    let summary = execution.summary().expect("it was started");
    assert_eq!(summary.status, ExecutionStatus::Completed);
    assert!(summary.ended_at.expect("it has ended") >= summary.started_at);
    assert!(execution.outstanding().is_empty());
}

#[test]
fn o_k02_a_finished_execution_is_left_alone_by_recovery() {
    let mut world = World::calm(Case::field(DIAMOND), 1);
    world.drive().unwrap();
    let execution = world.setup().replay(world.records());
    assert_eq!(execution.decide(restarted(9), world.now).unwrap(), []);
}

#[test]
fn o_k02_the_last_result_and_the_end_are_one_unit() {
    let mut world = World::calm(Case::field(DIAMOND), 1);
    world.drive().unwrap();
    let last = world.units().last().expect("it has units");
    let kinds: Vec<_> = last.records.iter().map(|record| record.event.kind()).collect();
    assert_eq!(kinds, ["nodeCompleted", "executionCompleted"]);
}

fn binding_case(output_of_a: &str, prompt: &str) -> Case {
    let prompt = prompt.replace('"', "\\\"");
    Case::field(&format!(
        r#"{{"nodes":{{"A":{{"out":{output_of_a}}},"B":{{"echo":true}}}},"edges":[["A","B"]],
            "retry":{{"B":{{"maxRetries":3}}}},
            "settings":{{"B":{{"inputs":{{"prompt":"{prompt}"}}}}}}}}"#
    ))
}

#[test]
fn o_e03_an_unresolved_reference_fails_the_node_before_its_agent_starts() {
    let mut world =
        World::calm(binding_case(r#"{"title":"t"}"#, "{{nodes.A.output.titel}} it is"), 1);
    world.drive().unwrap();
    assert_eq!(world.calls("B"), 0);
    let idx = world.setup().idx("B");
    let summary = world.execution().node_summary(idx).expect("it failed");
    assert_eq!((summary.status, summary.attempts), (NodeStatus::Failed, 1));
    let failure = summary.failure.expect("a failed node has a failure");
    assert_eq!(failure.class.as_str(), "bindingError");
    assert_eq!(failure.unresolved, ["nodes.A.output.titel"]);
}

#[test]
fn o_e03_a_present_null_is_resolved() {
    let mut world = World::calm(binding_case(r#"{"titel":null}"#, "{{nodes.A.output.titel}}"), 1);
    world.drive().unwrap();
    assert_eq!(world.calls("B"), 1);
    assert_eq!(world.node_input("B").as_deref(), Some(r#"{"prompt":null}"#));
}

#[test]
fn o_e03_a_reference_to_an_unknown_node_is_refused_before_any_run() {
    let case = binding_case("1", "{{nodes.Zed.output.x}}");
    let problem = case.setup(1).expect_err("Zed is no node");
    assert!(problem.contains("Zed"), "{problem}");
    let definition = Definition::from_value(case.definition).unwrap();
    assert!(compile(&definition, &Default::default()).plan.is_none());
}
