//! The graph the edges form: order, levels, cycles, and nodes that do not fit in.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

use petgraph::algo::kosaraju_scc;
use petgraph::graph::DiGraph;

use super::Draft;
use super::edges::Link;
use crate::ids::NodeId;
use crate::node::label;
use crate::plan::JoinRule;
use crate::plan::diagnostic::{Code, Diagnostic, Place};

/// The most cycles that are reported at once.
const CYCLES_MAX: usize = 100;

/// The most nodes that the message about a cycle names.
const NAMED_MAX: usize = 20;

/// Who is connected to whom. Nodes are positions among the steps, edges among the links.
pub(super) struct Graph {
    /// Links that end at a node, in file order.
    pub incoming: Vec<Vec<usize>>,
    /// Links that start at a node, in file order.
    pub outgoing: Vec<Vec<usize>>,
    /// Distinct sources of `incoming`, by their first link.
    pub predecessors: Vec<Vec<usize>>,
    /// Topological, ties by position in the file. Nodes on and behind cycles are missing.
    pub order: Vec<usize>,
    /// The longest way from a root, for the nodes in `order`.
    pub levels: Vec<u32>,
}

impl Graph {
    pub(super) fn new(n_nodes: usize, links: &[Link<'_>]) -> Graph {
        let mut incoming = vec![Vec::new(); n_nodes];
        let mut outgoing = vec![Vec::new(); n_nodes];
        for (n, link) in links.iter().enumerate() {
            incoming[link.target].push(n);
            outgoing[link.source].push(n);
        }
        let mut counted_for = vec![usize::MAX; n_nodes];
        let mut predecessors = vec![Vec::new(); n_nodes];
        for (node, incoming) in incoming.iter().enumerate() {
            for source in incoming.iter().map(|&link| links[link].source) {
                if counted_for[source] != node {
                    counted_for[source] = node;
                    predecessors[node].push(source);
                }
            }
        }
        let (order, levels) = order(&incoming, &outgoing, links);
        Graph { incoming, outgoing, predecessors, order, levels }
    }

    pub(super) fn is_acyclic(&self) -> bool {
        self.order.len() == self.incoming.len()
    }
}

/// Kahn's algorithm with the smallest position first.
///
/// Source: A. B. Kahn, "Topological sorting of large networks", CACM 5 (11), 1962.
fn order(
    incoming: &[Vec<usize>],
    outgoing: &[Vec<usize>],
    links: &[Link<'_>],
) -> (Vec<usize>, Vec<u32>) {
    let mut n_waiting: Vec<usize> = incoming.iter().map(Vec::len).collect();
    let mut levels = vec![0u32; incoming.len()];
    let roots = n_waiting.iter().enumerate().filter(|(_, n_waiting)| **n_waiting == 0);
    let mut ready: BinaryHeap<Reverse<usize>> = roots.map(|(node, _)| Reverse(node)).collect();
    let mut order = Vec::with_capacity(incoming.len());
    while let Some(Reverse(node)) = ready.pop() {
        order.push(node);
        for target in outgoing[node].iter().map(|&link| links[link].target) {
            levels[target] = levels[target].max(levels[node] + 1);
            n_waiting[target] -= 1;
            if n_waiting[target] == 0 {
                ready.push(Reverse(target));
            }
        }
    }
    (order, levels)
}

/// Checks everything that depends on the edges of more than one node.
pub(super) fn check(draft: &Draft<'_>, found: &mut Vec<Diagnostic>) {
    check_connections(draft, found);
    check_joins(draft, found);
    check_final_output(draft, found);
    if !draft.graph.is_acyclic() {
        report_cycles(draft, found);
    }
}

fn check_connections(draft: &Draft<'_>, found: &mut Vec<Diagnostic>) {
    if draft.steps.len() < 2 {
        return;
    }
    let edges = &draft.definition.edges;
    let connected: BTreeSet<&NodeId> =
        edges.iter().flat_map(|edge| [&edge.source, &edge.target]).collect();
    for step in draft.steps.iter().filter(|step| !connected.contains(&step.node.id)) {
        found.push(Diagnostic::new(
            Code::DisconnectedNode,
            Place::node(&step.node.id),
            format!("node {} is not connected to any other node", label(step.node)),
            "connect it, or remove it",
        ));
    }
}

fn check_joins(draft: &Draft<'_>, found: &mut Vec<Diagnostic>) {
    for (step, predecessors) in draft.steps.iter().zip(&draft.graph.predecessors) {
        let JoinRule::AtLeast(needed) = step.join else { continue };
        if needed as usize <= predecessors.len() {
            continue;
        }
        found.push(Diagnostic::new(
            Code::JoinOutOfReach,
            Place::node(&step.node.id).field("join"),
            format!(
                "node {} waits for {needed} predecessors, but has {}",
                label(step.node),
                predecessors.len()
            ),
            "lower the number, or connect more nodes to it",
        ));
    }
}

fn check_final_output(draft: &Draft<'_>, found: &mut Vec<Diagnostic>) {
    let Some(id) = &draft.definition.final_output else { return };
    if draft.steps.iter().any(|step| step.node.id == *id) {
        return;
    }
    found.push(Diagnostic::new(
        Code::UnknownFinalOutput,
        Place::workflow().field("finalOutput"),
        format!("`finalOutput` names {id:?}, and there is no such node that runs"),
        "name a node, or remove `finalOutput`",
    ));
}

/// Reports so many cycles that every edge that takes part in one is covered.
fn report_cycles(draft: &Draft<'_>, found: &mut Vec<Diagnostic>) {
    let group_of = strongly_connected(draft);
    let is_inside = |link: &Link<'_>| {
        group_of[link.source].is_some() && group_of[link.source] == group_of[link.target]
    };
    let mut covered = BTreeSet::new();
    let mut search = Search::new(draft);
    let mut n_reported = 0;
    for link in draft.links.iter().filter(|link| is_inside(link)) {
        if covered.contains(&(link.source, link.target)) {
            continue;
        }
        if n_reported == CYCLES_MAX {
            return;
        }
        let way = search.shortest_way(link.target, link.source, is_inside);
        covered.extend(way.iter().map(|&n| (draft.links[n].source, draft.links[n].target)));
        covered.insert((link.source, link.target));
        let mut cycle: Vec<usize> = way.iter().map(|&link| draft.links[link].source).collect();
        cycle.push(link.source);
        let first = (0..cycle.len()).min_by_key(|&at| cycle[at]).unwrap_or_default();
        cycle.rotate_left(first);
        found.push(cycle_finding(draft, &cycle));
        n_reported += 1;
    }
}

fn cycle_finding(draft: &Draft<'_>, cycle: &[usize]) -> Diagnostic {
    let names: Vec<String> =
        cycle.iter().take(NAMED_MAX).map(|&node| label(draft.steps[node].node)).collect();
    let more = match cycle.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        n => format!(" → {n} more"),
    };
    Diagnostic::new(
        Code::Cycle,
        Place::node(&draft.steps[cycle[0]].node.id),
        format!("nodes wait for each other in a cycle: {}{more} → {}", names.join(" → "), names[0]),
        "remove one of the edges of the cycle",
    )
}

/// Which group of nodes that reach each other a node belongs to; `None`: it is on no cycle.
fn strongly_connected(draft: &Draft<'_>) -> Vec<Option<usize>> {
    let n_nodes = draft.steps.len();
    let mut is_ordered = vec![false; n_nodes];
    for &node in &draft.graph.order {
        is_ordered[node] = true;
    }
    let mut graph = DiGraph::<(), (), usize>::default();
    for _ in 0..n_nodes {
        graph.add_node(());
    }
    for link in &draft.links {
        if !is_ordered[link.source] && !is_ordered[link.target] {
            graph.add_edge(link.source.into(), link.target.into(), ());
        }
    }
    let mut group_of = vec![None; n_nodes];
    // Kosaraju's algorithm, because petgraph's version of Tarjan's recurses over the graph.
    let groups = kosaraju_scc(&graph);
    for (n, group) in groups.iter().enumerate().filter(|(_, group)| group.len() > 1) {
        for node in group {
            group_of[node.index()] = Some(n);
        }
    }
    group_of
}

/// Breadth-first search that is run many times on one graph.
struct Search<'a> {
    draft: &'a Draft<'a>,
    /// The link by which a node was reached, and in which run.
    reached_by: Vec<(u32, usize)>,
    run: u32,
}

impl<'a> Search<'a> {
    fn new(draft: &'a Draft<'a>) -> Search<'a> {
        Search { draft, reached_by: vec![(0, 0); draft.steps.len()], run: 0 }
    }

    /// The links of a shortest way along links that count. There must be one.
    fn shortest_way(
        &mut self,
        from: usize,
        to: usize,
        counts: impl Fn(&Link<'_>) -> bool,
    ) -> Vec<usize> {
        self.run += 1;
        let links = &self.draft.links;
        let mut pending = VecDeque::from([from]);
        self.reached_by[from].0 = self.run;
        while self.reached_by[to].0 != self.run {
            let node = pending.pop_front().expect("nodes of one group reach each other");
            for &n in &self.draft.graph.outgoing[node] {
                let target = links[n].target;
                if counts(&links[n]) && self.reached_by[target].0 != self.run {
                    self.reached_by[target] = (self.run, n);
                    pending.push_back(target);
                }
            }
        }
        let mut way = Vec::new();
        let mut node = to;
        while node != from {
            let link = self.reached_by[node].1;
            way.push(link);
            node = links[link].source;
        }
        way.reverse();
        way
    }
}
