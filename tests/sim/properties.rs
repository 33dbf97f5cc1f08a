//! Properties of every random definition (seed A: P2, P6, P8).

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use engine::plan::Plan;
use engine::scheduler::event::{EdgeState, Event};
use engine::value::Value;
use proptest::prelude::*;

use super::case::{Case, Setup};
use super::chaos::Chaos;
use super::graphs::random_case;
use super::world::World;

/// A random case, compiled.
fn compiled(seed: u64) -> (Rc<Case>, Rc<Setup>) {
    let case = random_case(seed);
    let setup = case.setup(seed).expect("random definitions compile");
    (Rc::new(case), Rc::new(setup))
}

/// The same, with no join rule but `all`.
fn with_joins_of_all(seed: u64) -> (Rc<Case>, Rc<Setup>) {
    let mut case = random_case(seed);
    let nodes = case.definition.as_object_mut().and_then(|fields| fields.get_mut("nodes"));
    for node in nodes.and_then(Value::as_array_mut).expect("it has nodes") {
        node.as_object_mut().expect("a node is an object").remove("join");
    }
    let setup = case.setup(seed).expect("random definitions compile");
    (Rc::new(case), Rc::new(setup))
}

/// Kahn's algorithm, looking for the next node from the start of the file each time.
fn naive_order(case: &Case, plan: &Plan) -> Vec<String> {
    let ids = case.node_ids();
    let sources_of = |id: &str| -> BTreeSet<&str> {
        let edges = plan.edges.iter().filter(|edge| plan.node(edge.target).id.as_str() == id);
        edges.map(|edge| plan.node(edge.source).id.as_str()).collect()
    };
    let mut order: Vec<String> = Vec::new();
    while order.len() < ids.len() {
        let is_next = |id: &&String| {
            !order.contains(id) && sources_of(id).iter().all(|s| order.iter().any(|o| o == s))
        };
        let next = ids.iter().find(is_next).expect("the graph has no cycle").clone();
        order.push(next);
    }
    order
}

fn driven(case: &Rc<Case>, setup: &Rc<Setup>, chaos: Chaos, seed: u64) -> World {
    let mut world = World::start(case, setup, chaos, seed).expect("it starts");
    world.drive().expect("it keeps the rules");
    world
}

proptest! {
    // A smaller seed is no smaller graph, so there is nothing to shrink.
    #![proptest_config(ProptestConfig {
        cases: 256,
        max_shrink_iters: 0,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn p2_the_plan_order_respects_every_edge_and_is_stable(seed in any::<u64>()) {
        let (case, setup) = compiled(seed);
        let plan = &setup.plan;
        for edge in plan.edges.iter() {
            prop_assert!(edge.source < edge.target);
        }
        let order: Vec<&str> = plan.nodes.iter().map(|node| node.id.as_str()).collect();
        prop_assert_eq!(order, naive_order(&case, plan));
    }

    #[test]
    fn p6_a_join_of_all_starts_exactly_when_its_edges_say_so(seed in any::<u64>()) {
        let (case, setup) = with_joins_of_all(seed);
        let world = driven(&case, &setup, Chaos::any_order(), seed);
        let mut edges: BTreeMap<String, EdgeState> = BTreeMap::new();
        let mut started: BTreeSet<String> = BTreeSet::new();
        let is_ready = |edges: &BTreeMap<String, EdgeState>, id: &str| {
            let node = setup.plan.node(setup.idx(id));
            let states: Vec<Option<EdgeState>> = node
                .incoming
                .iter()
                .map(|edge| edges.get(setup.plan.edge(*edge).id.as_str()).copied())
                .collect();
            let is_decided = states.iter().all(Option::is_some);
            let has_failed = states.contains(&Some(EdgeState::Failed));
            let is_live = states.contains(&Some(EdgeState::Live));
            !node.is_disabled && (states.is_empty() || is_decided && !has_failed && is_live)
        };
        let mut cancelled = BTreeSet::new();
        for record in world.records() {
            let decisions = match &record.event {
                Event::NodeCompleted(e) => &e.edges[..],
                Event::NodeFailed(e) => &e.edges[..],
                Event::NodeSkipped(e) => &e.edges[..],
                Event::AttemptStarted(e) => {
                    let id = e.instance.node.as_str();
                    prop_assert!(is_ready(&edges, id), "{} started too early", id);
                    started.insert(id.to_owned());
                    &[]
                }
                Event::NodesCancelled(e) => {
                    let ids = e.instances.iter().map(|i| i.node.as_str().to_owned());
                    cancelled.extend(ids);
                    &[]
                }
                _ => &[],
            };
            for decision in decisions {
                edges.insert(decision.edge.as_str().to_owned(), decision.state);
            }
        }
        for id in case.node_ids() {
            let should_have = is_ready(&edges, &id) && !cancelled.contains(&id);
            let did = started.contains(&id) && !cancelled.contains(&id);
            prop_assert_eq!(did, should_have, "{}", id);
        }
    }

    #[test]
    fn p8_starting_twice_and_reporting_twice_invokes_nothing_twice(seed in any::<u64>()) {
        // A second start is refused by every simulated world; see `World::start`.
        let (case, setup) = compiled(seed);
        let chaos = Chaos { doubles_reports: true, ..Chaos::any_order() };
        let world = driven(&case, &setup, chaos, seed);
        for idx in setup.plan.node_indices() {
            let id = setup.plan.node(idx).id.as_str();
            let attempts = world.execution().node_summary(idx).map_or(0, |node| node.attempts);
            let calls = world.calls(id) as u32;
            prop_assert!(calls <= attempts, "{}: {} calls, {} attempts", id, calls, attempts);
        }
    }
}
