//! From a definition to a plan, with everything a person should know on the way.
//!
//! Checks come in this order: the workflow, its nodes, its edges, the graph they form, the
//! references in templates, and what is legal but looks odd. Nothing stops at the first finding.
//! Time is linear in nodes and edges but for a logarithm, and nothing recurses over the graph.

mod bindings;
mod compensation;
mod edges;
mod flow;
mod graph;
mod meaning;
mod nodes;
mod policy;
mod workflow;

use std::collections::BTreeMap;
use std::sync::Arc;

use indexmap::IndexMap;

use crate::agent::AgentSet;
use crate::definition::{Definition, Problem};
use crate::plan::diagnostic::{self, Code, Diagnostic, Place};
use crate::plan::{EdgeIdx, NodeIdx, Plan, PlanEdge, PlanNode};
use crate::retry::RetryPolicy;
use crate::value::Value;

use edges::Link;
use graph::Graph;
use nodes::Step;
use workflow::Workflow;

/// Counts the versions of this compiler; kept with every plan it makes. It changes when the same
/// definition would give a plan that runs differently.
pub const COMPILER_VERSION: u32 = 1;

/// The most retries a policy may allow.
pub const RETRIES_MAX: u32 = 1_000_000;

/// The longest time a file may ask for, in seconds: ten years.
pub const SECONDS_MAX: u64 = 10 * 31_557_600;

/// What became of a definition.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The plan; `None` if a finding is an error.
    pub plan: Option<Plan>,
    /// Every finding, sorted as [`diagnostic::sort`] says.
    pub diagnostics: Vec<Diagnostic>,
}

/// Compiles a definition for the agents of this machine.
///
/// The same definition and agents always give the same plan and the same findings. The plan's
/// digest depends on the definition alone.
pub fn compile(definition: &Definition, agents: &AgentSet) -> Compiled {
    compile_unless(definition, agents, Diagnostic::is_error)
}

/// Compiles a definition that was compiled before, with the agents that an execution has pinned.
///
/// An agent that is gone by now withholds no plan: its node fails when it starts.
pub fn compile_again(definition: &Definition, pinned: &AgentSet) -> Compiled {
    compile_unless(definition, pinned, |found| found.is_error() && !found.code.follows_agents())
}

/// Reads a retry policy as files write it.
///
/// # Errors
///
/// Every mistake, its place relative to the policy.
pub fn parse_retry_policy(value: &Value) -> Result<RetryPolicy, Vec<Problem>> {
    policy::retry(value)
}

/// Reads a timeout in seconds as files write it, and returns it in ms: rounded up, at least 1.
///
/// # Errors
///
/// If it is not a number, not greater than 0, or longer than ten years.
pub fn parse_timeout(value: &Value) -> Result<u64, Problem> {
    policy::timeout(value)
}

/// A definition on its way to a plan.
struct Draft<'a> {
    definition: &'a Definition,
    agents: &'a AgentSet,
    workflow: Workflow,
    /// The nodes that are compiled, in file order. Everything below counts in this order.
    steps: Vec<Step<'a>>,
    /// The edges whose ends are such nodes, in file order.
    links: Vec<Link<'a>>,
    graph: Graph,
}

fn compile_unless(
    definition: &Definition,
    agents: &AgentSet,
    withholds_plan: impl Fn(&Diagnostic) -> bool,
) -> Compiled {
    let mut found = Vec::new();
    unknown_fields(definition, &mut found);
    let workflow = workflow::check(definition, &mut found);
    let steps = nodes::check(definition, &workflow, agents, &mut found);
    let links = edges::check(definition, &steps, &mut found);
    let graph = Graph::new(steps.len(), &links);
    let draft = Draft { definition, agents, workflow, steps, links, graph };
    graph::check(&draft, &mut found);
    bindings::check_references(&draft, &mut found);
    if draft.graph.is_acyclic() {
        flow::check(&draft, &mut found);
    }
    diagnostic::sort(&mut found, definition);
    let plan = (!found.iter().any(withholds_plan)).then(|| assemble(draft));
    Compiled { plan, diagnostics: found }
}

fn unknown_fields(definition: &Definition, found: &mut Vec<Diagnostic>) {
    found.extend(definition.unknown_fields().into_iter().map(|unknown| {
        let field = Some(unknown.field.clone());
        Diagnostic::new(
            Code::UnknownField,
            Place { node: unknown.node, edge: unknown.edge, field },
            format!("`{}` is not a field that this version knows", unknown.field),
            "nothing needs to be done: it is kept and exported, and has no effect",
        )
    }));
}

/// Builds the plan of a draft without errors.
fn assemble(draft: Draft<'_>) -> Plan {
    let digest = meaning::digest(&draft);
    let Draft { definition, agents, workflow, steps, links, graph } = draft;
    let mut place_of = vec![NodeIdx(0); steps.len()];
    for (place, &step) in graph.order.iter().enumerate() {
        place_of[step] = NodeIdx(index(place));
    }
    let edge_indices = |links: &[usize]| links.iter().map(|&n| EdgeIdx(index(n))).collect();
    let mut steps: Vec<Option<Step<'_>>> = steps.into_iter().map(Some).collect();
    let nodes: Box<[PlanNode]> = graph
        .order
        .iter()
        .map(|&n| {
            let step = steps[n].take().expect("an order names every step once");
            PlanNode {
                incoming: edge_indices(&graph.incoming[n]),
                outgoing: edge_indices(&graph.outgoing[n]),
                predecessors: graph.predecessors[n].iter().map(|&p| place_of[p]).collect(),
                level: graph.levels[n],
                ..step.into_plan_node(agents)
            }
        })
        .collect();
    let edges = plan_edges(links, &place_of);
    let node_index = nodes.iter().enumerate();
    let node_index: IndexMap<_, _> =
        node_index.map(|(n, node)| (node.id.clone(), NodeIdx(index(n)))).collect();
    let edge_index = edges.iter().enumerate();
    let edge_index = edge_index.map(|(n, edge)| (edge.id.clone(), EdgeIdx(index(n)))).collect();
    let final_output = definition.final_output.as_ref();
    Plan {
        digest,
        name: definition.title().to_owned(),
        final_output: final_output.and_then(|id| node_index.get(id).copied()),
        nodes,
        edges,
        node_index,
        edge_index,
        timeout_ms: workflow.timeout_ms,
        concurrency: workflow.concurrency,
        input_schema: definition.input_schema.clone(),
        configuration: workflow.configuration,
    }
}

fn plan_edges(links: Vec<Link<'_>>, place_of: &[NodeIdx]) -> Box<[PlanEdge]> {
    let mut siblings: BTreeMap<(usize, usize), Vec<EdgeIdx>> = BTreeMap::new();
    for (n, link) in links.iter().enumerate() {
        siblings.entry((link.source, link.target)).or_default().push(EdgeIdx(index(n)));
    }
    let others = |n: usize, link: &Link<'_>| {
        let all = siblings[&(link.source, link.target)].iter().copied();
        all.filter(|&sibling| sibling != EdgeIdx(index(n))).collect()
    };
    links
        .iter()
        .enumerate()
        .map(|(n, link)| PlanEdge {
            id: link.edge.id.clone(),
            source: place_of[link.source],
            target: place_of[link.target],
            source_port: link.edge.source_port().into(),
            target_port: link.edge.target_port().into(),
            condition: link.condition.clone().map(Arc::new),
            twins: others(n, link),
        })
        .collect()
}

fn index(n: usize) -> u32 {
    u32::try_from(n).expect("a file is too short for so many nodes or edges")
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
