//! Graphs as large as a definition may be.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::rc::Rc;

use engine::limits::NODES_MAX;
use engine::projection::ExecutionStatus;
use engine::value::Value;

use super::case::{Case, Stub};
use super::chaos::Chaos;
use super::invariants::{Checks, same};
use super::world::World;

/// Little enough that a function which calls itself for each of 20,000 nodes overflows it.
const STACK_BYTES: usize = 512 * 1024;

/// A definition with so many nodes, all of one agent, and the edges given as node numbers.
fn case(n_nodes: usize, edges: impl Iterator<Item = (usize, usize)>, script: &str) -> Case {
    let mut text = String::from(r#"{"version":"1.0.0","name":"large","nodes":["#);
    for n in 0..n_nodes {
        let comma = if n == 0 { "" } else { "," };
        write!(text, r#"{comma}{{"id":"n{n}","agentId":"stub"}}"#).expect("a text takes it");
    }
    text.push_str(r#"],"edges":["#);
    for (n, (source, target)) in edges.enumerate() {
        let comma = if n == 0 { "" } else { "," };
        write!(text, r#"{comma}{{"id":"e{n}","source":"n{source}","target":"n{target}"}}"#)
            .expect("a text takes it");
    }
    text.push_str("]}");
    let stub = Stub::new(Value::parse(script).expect("the script is JSON"));
    Case {
        definition: Value::parse(&text).expect("the definition is JSON"),
        stubs: BTreeMap::from([("stub".to_owned(), stub)]),
        input: Value::Null,
    }
}

/// Compiles and runs a case on a small stack, crashes it half-way, and replays its journal.
fn runs_on_a_small_stack(make: impl FnOnce() -> Case + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
        let case = Rc::new(make());
        let setup = Rc::new(case.setup(1).expect("it compiles"));
        let chaos = Chaos { checks: Checks::Cheap, ..Chaos::none() };
        let mut world = World::start(&case, &setup, chaos, 1).expect("it starts");
        for _ in 0..setup.plan.nodes.len() / 2 {
            world.step().expect("it keeps the rules");
        }
        world.crash().expect("it recovers");
        world.drive().expect("it keeps the rules");
        assert_eq!(world.execution().status(), ExecutionStatus::Completed);
        same(world.execution(), &setup.replay(world.records())).expect("it replays");
    });
    thread.expect("a thread starts").join().expect("nothing overflows its stack");
}

#[test]
fn a_chain_of_20_000_nodes_runs() {
    let edges = (1..NODES_MAX).map(|n| (n - 1, n));
    runs_on_a_small_stack(move || case(NODES_MAX, edges, r#"{"out":1}"#));
}

#[test]
fn a_fan_of_20_000_nodes_runs() {
    let last = NODES_MAX - 1;
    let edges = (1..last).flat_map(move |n| [(0, n), (n, last)]);
    runs_on_a_small_stack(move || case(NODES_MAX, edges, r#"{"out":1}"#));
}

#[test]
fn a_layered_graph_of_20_000_nodes_runs() {
    const WIDTH: usize = 100;
    let edges = (WIDTH..NODES_MAX).flat_map(|n| {
        let above = n - WIDTH;
        let beside = above / WIDTH * WIDTH + (above + 7) % WIDTH;
        [(above, n), (beside, n)]
    });
    runs_on_a_small_stack(move || case(NODES_MAX, edges, r#"{"out":1}"#));
}

/// A skip, a failure or a cancel that passes through everything at once is one decision.
#[test]
fn a_decision_about_20_000_nodes_is_made_without_recursion() {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(|| {
        for (script, status) in [
            (r#"{"fail":"Oops"}"#, ExecutionStatus::Failed),
            (r#"{"out":1}"#, ExecutionStatus::Cancelled),
        ] {
            let edges = (1..NODES_MAX).map(|n| (n - 1, n));
            let case = Rc::new(case(NODES_MAX, edges, script));
            let setup = Rc::new(case.setup(1).expect("it compiles"));
            let chaos = Chaos { checks: Checks::Cheap, ..Chaos::none() };
            let mut world = World::start(&case, &setup, chaos, 1).expect("it starts");
            if status == ExecutionStatus::Cancelled {
                world.cancel().expect("it is cancelled");
            }
            world.drive().expect("it keeps the rules");
            assert_eq!(world.execution().status(), status);
            assert!(world.units().len() <= 3, "everything is decided at once");
        }
    });
    thread.expect("a thread starts").join().expect("nothing overflows its stack");
}
