//! What holds for every graph.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::agent::{Agent, PinnedAgent};
use crate::definition::{Edge, Node};

fn echo() -> AgentSet {
    let echo = Agent::built_in_echo();
    AgentSet::from([(echo.id.clone(), Arc::new(PinnedAgent::new(echo)))])
}

/// A definition of `n` nodes with edges by position.
fn definition(n: usize, edges: &[(usize, usize)]) -> Definition {
    let agent_id = Some(Agent::ECHO_ID.to_owned());
    let node = |n: usize| Node { agent_id: agent_id.clone(), ..Node::new(format!("n{n}")) };
    let edge = |(n, (from, to)): (usize, &(usize, usize))| {
        Edge::new(format!("e{n}"), format!("n{from}"), format!("n{to}"))
    };
    Definition {
        nodes: (0..n).map(node).collect(),
        edges: edges.iter().enumerate().map(edge).collect(),
        ..Definition::default()
    }
}

/// Nodes in any file order and edges that only lead forward in another order: never a cycle.
fn any_dag() -> impl Strategy<Value = (usize, Vec<(usize, usize)>)> {
    (2usize..30).prop_flat_map(|n| {
        let ranks = Just((0..n).collect::<Vec<usize>>()).prop_shuffle();
        let edges = vec((0..n, 0..n), 1..60);
        (ranks, edges).prop_map(move |(ranks, edges)| {
            let forward = edges.into_iter().filter(|(a, b)| a != b);
            let edges = forward.map(|(a, b)| if ranks[a] < ranks[b] { (a, b) } else { (b, a) });
            (n, edges.collect())
        })
    })
}

fn position(node: &PlanNode) -> usize {
    node.id.as_str()[1..].parse().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn p2_the_order_respects_every_edge((n, edges) in any_dag()) {
        let compiled = compile(&definition(n, &edges), &echo());
        let only_loose = compiled.diagnostics.iter().filter(|found| found.is_error());
        prop_assert!(only_loose.clone().all(|found| found.code == Code::DisconnectedNode));
        let Some(plan) = compiled.plan else { return Ok(()) };
        for edge in &plan.edges {
            prop_assert!(edge.source < edge.target);
            prop_assert!(plan.node(edge.source).level < plan.node(edge.target).level);
        }
        let mut done = vec![false; n];
        for node in &plan.nodes {
            let is_ready = |idx: &NodeIdx| {
                let node = plan.node(*idx);
                !done[position(node)]
                    && node.predecessors.iter().all(|&before| done[position(plan.node(before))])
            };
            let first = plan.node_indices().filter(is_ready).map(|idx| position(plan.node(idx))).min();
            prop_assert_eq!(Some(position(node)), first, "ties go by position in the file");
            done[position(node)] = true;
            let longest = node.predecessors.iter().map(|&before| plan.node(before).level + 1).max();
            prop_assert_eq!(node.level, longest.unwrap_or(0));
        }
    }

    #[test]
    fn cycles_are_found_exactly_where_they_are(
        n in 2usize..12,
        edges in vec((0usize..12, 0usize..12), 1..24),
    ) {
        let edges: Vec<(usize, usize)> =
            edges.into_iter().map(|(a, b)| (a % n, b % n)).filter(|(a, b)| a != b).collect();
        let compiled = compile(&definition(n, &edges), &echo());
        let mut reaches = vec![vec![false; n]; n];
        for &(a, b) in &edges {
            reaches[a][b] = true;
        }
        for middle in 0..n {
            for a in 0..n {
                for b in 0..n {
                    reaches[a][b] |= reaches[a][middle] && reaches[middle][b];
                }
            }
        }
        let cycles: Vec<&Diagnostic> =
            compiled.diagnostics.iter().filter(|found| found.code == Code::Cycle).collect();
        for &(a, b) in &edges {
            let names = format!("\"n{a}\" → \"n{b}\"");
            let is_named = cycles.iter().any(|found| found.message.contains(&names));
            prop_assert_eq!(is_named, reaches[b][a], "edge {} → {}", a, b);
        }
        let mut messages: Vec<&str> = cycles.iter().map(|found| found.message.as_str()).collect();
        messages.sort_unstable();
        messages.dedup();
        prop_assert_eq!(messages.len(), cycles.len(), "each is reported once");
    }
}

#[test]
fn the_largest_definitions_compile_without_recursion() {
    let n = crate::limits::NODES_MAX;
    let chain: Vec<_> = (1..n).map(|i| (i - 1, i)).collect();
    let fan_out: Vec<_> = (1..n).map(|i| (0, i)).collect();
    let layered = |i: usize| [(i - 100, i), (i - 99, i), (i - 51, i)];
    let layers: Vec<_> = (100..n / 4).flat_map(layered).collect();
    for (n, edges, n_levels) in [(n, chain, n), (n, fan_out, 2), (n / 4, layers, 98)] {
        let plan = compile(&definition(n, &edges), &echo()).plan.expect("no errors");
        let deepest = plan.nodes.iter().map(|node| node.level as usize + 1).max();
        assert_eq!(deepest, Some(n_levels));
    }
    let ring: Vec<_> = (0..n).map(|i| (i, (i + 1) % n)).collect();
    let found = compile(&definition(n, &ring), &echo()).diagnostics;
    assert_eq!(found.iter().map(|found| found.code).collect::<Vec<_>>(), [Code::Cycle]);
}
