//! The rules of executions and conditions as 240 cases made by an independent model of them.

use std::collections::BTreeSet;
use std::rc::Rc;

use engine::projection::NodeStatus;
use engine::scheduler::event::Event;
use engine::value::Value;
use engine::{agent, definition};

mod cli;
pub mod compare;
mod deviations;
pub mod reader;

use compare::{Observed, ObservedNode, compare};
use deviations::DEVIATIONS;
use reader::{SemanticsCase, all_cases};

use crate::sim::chaos::Chaos;
use crate::sim::on_all_cores;
use crate::sim::world::World;

/// Orders of attempts ending that every case is run in.
const ORDERS: u64 = 20;
/// Orders tried until every end that timing allows has been reached.
const ORDERS_MAX: u64 = 2_000;

/// What the simulation shows of an execution that has ended.
fn observe(world: &World) -> Observed {
    let execution = world.execution();
    let summary = execution.summary().expect("it was started");
    let nodes = execution.plan().node_indices().map(|idx| {
        let id = execution.plan().node(idx).id.as_str().to_owned();
        let summary = execution.node_summary(idx);
        let node = ObservedNode {
            status: execution.node_status(idx).as_str().to_owned(),
            attempts: summary.as_ref().map_or(0, |summary| summary.attempts.into()),
            input: execution.node_input(idx).map(|input| input.value().clone()),
            reason: summary
                .and_then(|summary| summary.reason)
                .map(|reason| reason.as_str().to_owned()),
        };
        (id, node)
    });
    Observed {
        status: summary.status.as_str().to_owned(),
        output: execution.output().map(|output| output.value().clone()).unwrap_or_default(),
        has_error_note: summary.error.is_some(),
        nodes: nodes.collect(),
    }
}

/// The ends that are right for a case: the file's, unless the file is wrong.
pub fn right_ends(case: &SemanticsCase) -> Vec<Value> {
    match DEVIATIONS.iter().find(|deviation| deviation.id == case.id) {
        None => case.expected_ends(),
        Some(deviation) => {
            let expect = Value::parse(deviation.expect).expect("a deviation is JSON");
            SemanticsCase { expect, ..case.clone() }.expected_ends()
        }
    }
}

/// The end that an execution reached, by its place among the right ones.
pub fn end_reached(ends: &[Value], observed: &Observed) -> Result<usize, String> {
    let mut problems = Vec::new();
    for (n, end) in ends.iter().enumerate() {
        match compare(end, observed) {
            Ok(()) => return Ok(n),
            Err(problem) => problems.push(problem),
        }
    }
    Err(problems.join("\nor\n"))
}

/// Runs a case in many orders, once stepwise and once with a replay after every step.
fn check(case: &SemanticsCase) -> Result<(), String> {
    let simulated = Rc::new(case.simulated());
    let compiled = simulated.setup(0)?;
    let ends = right_ends(case);
    let mut reached = BTreeSet::new();
    for seed in 0..ORDERS_MAX {
        if seed >= ORDERS && reached.len() == ends.len() {
            return Ok(());
        }
        let setup = Rc::new(compiled.of(seed));
        let run = |chaos: Chaos| {
            let mut world = World::start(&simulated, &setup, chaos, seed)?;
            let result = world.drive();
            result.map_err(|problem| format!("{problem}\n{}", world.journal_text()))?;
            Ok::<World, String>(world)
        };
        let stepwise = Chaos { compares_with_replays: false, ..Chaos::any_order() };
        let world = run(stepwise.clone())?;
        let observed = observe(&world);
        let end = end_reached(&ends, &observed)
            .map_err(|problem| format!("order {seed}: {problem}\n{}", world.journal_text()))?;
        reached.insert(end);
        if seed < ORDERS {
            let replayed = run(Chaos { replays_every_step: true, ..stepwise })?;
            if replayed.journal_text() != world.journal_text() {
                return Err(format!("order {seed}: replaying at every point changes the journal"));
            }
        }
    }
    let missing: Vec<usize> = (0..ends.len()).filter(|n| !reached.contains(n)).collect();
    Err(format!("ends {missing:?} were not reached in {ORDERS_MAX} orders"))
}

#[test]
fn every_case_ends_as_the_rules_say_in_every_order() {
    let cases = all_cases();
    assert_eq!(cases.len(), 240, "the file is complete");
    let problem = |case: &SemanticsCase| {
        let problem = check(case).err()?;
        Some(format!("{} ({}):\n{problem}\n", case.id, case.shows))
    };
    let failed: Vec<String> = on_all_cores(&cases, problem).into_iter().flatten().collect();
    assert!(failed.is_empty(), "{} cases failed:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn every_case_recovers_from_a_crash_at_every_point_with_a_right_end() {
    on_all_cores(&all_cases(), |case| {
        let simulated = Rc::new(case.simulated());
        let ends = right_ends(case);
        let setup = Rc::new(simulated.setup(1).expect("the case compiles"));
        let mut world = World::start(&simulated, &setup, Chaos::any_order(), 1).unwrap();
        world.drive().unwrap();
        for n_units in 0..=world.units().len() {
            let mut recovered = World::recovered(&world, n_units, 1).unwrap();
            recovered.drive().unwrap();
            let observed = without_lost_attempts(observe(&recovered), &recovered);
            end_reached(&ends, &observed).unwrap_or_else(|problem| {
                panic!("{} after {n_units} units: {problem}", case.id);
            });
        }
    });
}

/// Attempts that a crash cut off are started once more; the cases do not count them.
fn without_lost_attempts(mut observed: Observed, world: &World) -> Observed {
    for record in world.records() {
        if let Event::AttemptLost(lost) = &record.event {
            let node = observed.nodes.get_mut(lost.instance.node.as_str()).expect("a node");
            node.attempts -= 1;
        }
    }
    observed
}

#[test]
fn every_case_makes_files_that_can_be_read_back() {
    for case in all_cases() {
        let definitions = definition::read_file(case.definition_file().as_bytes()).unwrap();
        let agents = agent::read_file(case.agents_file().as_bytes()).unwrap();
        assert_eq!(definitions.len(), 1, "{}", case.id);
        assert_eq!(agents.len(), case.stubs.len(), "{}", case.id);
    }
}

#[test]
fn every_deviation_names_a_case_and_gives_a_reason() {
    let ids: BTreeSet<String> = all_cases().into_iter().map(|case| case.id).collect();
    for deviation in &DEVIATIONS {
        assert!(ids.contains(deviation.id), "{} is no case", deviation.id);
        assert!(deviation.reason.len() > 40, "{} needs a reason", deviation.id);
    }
    assert!(NodeStatus::from_name("cancelled").is_some(), "the cases use the engine's spellings");
}
