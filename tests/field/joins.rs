//! Joins with skipped or failed branches.

use std::rc::Rc;

use engine::journal::Record;
use engine::projection::{ExecutionStatus, NodeStatus, NotRunReason};
use engine::scheduler::event::Event;
use engine::value::Value;

use crate::sim::case::Case;
use crate::sim::chaos::Chaos;
use crate::sim::world::World;

/// Runs a case to its end.
fn run(case: &str, chaos: Chaos, seed: u64) -> World {
    let case = Rc::new(Case::field(case));
    let setup = Rc::new(case.setup(seed).expect("the case compiles"));
    let mut world = World::start(&case, &setup, chaos, seed).expect("it starts");
    world.drive().expect("it keeps the rules");
    world
}

/// The position of the first record that a test looks for.
fn position(world: &World, is_it: impl Fn(&Record) -> bool) -> usize {
    world.records().position(is_it).expect("the record is there")
}

fn started(world: &World, node: &str) -> usize {
    position(
        world,
        |record| matches!(&record.event, Event::AttemptStarted(e) if e.instance.node.as_str() == node),
    )
}

fn completed(world: &World, node: &str) -> usize {
    position(
        world,
        |record| matches!(&record.event, Event::NodeCompleted(e) if e.instance.node.as_str() == node),
    )
}

#[test]
fn o_j01_a_join_behind_both_branches_runs_once_whichever_is_taken() {
    let case = |branch: &str| {
        format!(
            r#"{{"nodes": {{"S": {{"out": {{"branch": "{branch}"}}}}, "A": {{"out": 1}},
                           "M": {{"out": 2}}, "T": {{"out": 3}}}},
                "edges": [["S","A",{{"field":"branch","op":"equals","value":"a"}}],
                          ["S","M",{{"field":"branch","op":"notEquals","value":"a"}}],
                          ["A","M"], ["M","T"]]}}"#
        )
    };
    for seed in 0..20 {
        let world = run(&case("a"), Chaos::any_order(), seed);
        for node in ["S", "A", "M", "T"] {
            assert_eq!(world.node_status(node), NodeStatus::Completed, "{node}");
        }
        assert_eq!(world.calls("M"), 1);

        let world = run(&case("b"), Chaos::any_order(), seed);
        assert_eq!(world.node_status("A"), NodeStatus::Skipped);
        assert_eq!(world.node_status("M"), NodeStatus::Completed);
        assert_eq!(world.node_status("T"), NodeStatus::Completed);
        assert_eq!((world.calls("A"), world.calls("M")), (0, 1));
    }
}

#[test]
fn o_j02_a_join_behind_branches_of_different_length_fires_once() {
    let case = r#"{"nodes": {"S":{"out":0},"t1":{"out":1},"t2":{"out":2},"t3":{"out":3},
                             "t4":{"out":4},"t5":{"out":5},"t6":{"out":6},"end":{"out":7}},
                   "edges": [["S","t1"],["t1","t2"],["t2","t6"],["S","t3"],["t3","t4"],
                             ["t4","t5"],["t5","t6"],["t6","end"]]}"#;
    for seed in 0..100 {
        let world = run(case, Chaos::any_order(), seed);
        assert_eq!((world.calls("t6"), world.calls("end")), (1, 1), "seed {seed}");
        assert!(started(&world, "t6") > completed(&world, "t2"), "seed {seed}");
        assert!(started(&world, "t6") > completed(&world, "t5"), "seed {seed}");
        let input = world.node_input("t6").expect("it started");
        assert_eq!(Value::parse(&input), Value::parse(r#"{"t2":2,"t5":5}"#), "seed {seed}");
        assert_eq!(world.execution().output().expect("it completed").text(), "7");
    }
}

#[test]
fn o_j03_a_join_waits_while_a_branch_with_a_condition_is_undecided() {
    let case = r#"{"nodes": {"S":{"out":0},"P1":{"out":"p1","takes":20},
                             "C":{"out":{"x":1},"takes":200},"Ca":{"out":"ca","takes":200},
                             "Cb":{"out":"cb"},"J":{"out":"done"}},
                   "edges": [["S","P1"],["S","C"],
                             ["C","Ca",{"field":"x","op":"greaterThan","value":0}],
                             ["C","Cb",{"field":"x","op":"lessThan","value":1}],
                             ["P1","J"],["Ca","J"],["Cb","J"]]}"#;
    let world = run(case, Chaos::none(), 0);
    assert!(started(&world, "J") > completed(&world, "Ca"));
    assert_eq!(world.node_status("Cb"), NodeStatus::Skipped);
    assert_eq!(world.node_input("J").expect("it started"), r#"{"P1":"p1","Ca":"ca"}"#);
    assert_eq!((world.calls("J"), world.calls("Cb")), (1, 0));
}

#[test]
fn o_j04_a_skip_travels_with_its_reason_and_stops_at_a_live_edge() {
    let case = r#"{"nodes": {"O":{"out":{"go":false}},"A":{"out":1},"B":{"out":1},"C":{"out":1},
                             "D":{"out":1},"E":{"out":1},"F":{"out":1}},
                   "edges": [["O","A"],["A","C"],["C","E"],
                             ["O","B",{"field":"go","op":"equals","value":true}],
                             ["B","D"],["D","E"],["D","F"]]}"#;
    for seed in 0..20 {
        let world = run(case, Chaos::any_order(), seed);
        for (node, origin) in [("B", None), ("D", Some("B")), ("F", Some("B"))] {
            let idx = world.setup().idx(node);
            let summary = world.execution().node_summary(idx).expect("it was skipped");
            assert_eq!(summary.status, NodeStatus::Skipped, "{node}");
            assert_eq!(summary.reason, Some(NotRunReason::AllEdgesDead), "{node}");
            assert_eq!(summary.origin.as_ref().map(|id| id.as_str()), origin, "{node}");
            assert_eq!(world.calls(node), 0, "{node}");
        }
        for node in ["A", "C", "E"] {
            assert_eq!(world.node_status(node), NodeStatus::Completed, "{node}");
        }
        let execution = world.execution();
        assert_eq!(execution.status(), ExecutionStatus::Completed);
        assert_eq!(execution.waiting_for(), None);
    }
}
