//! What is legal but looks odd: nodes that never run, outputs nobody uses, types that do not fit,
//! graphs of unusual shape. Only asked of graphs without cycles.

use std::collections::{BTreeMap, BTreeSet};

use super::Draft;
use super::edges::Link;
use super::nodes::Step;
use crate::agent::Agent;
use crate::condition::{Condition, Operator};
use crate::ids::NodeId;
use crate::node::label;
use crate::path::Path;
use crate::plan::diagnostic::{Code, Diagnostic, Place};
use crate::plan::{ERROR_PORT, JoinRule};
use crate::value::Value;

/// A longer chain of nodes, or more nodes on one level, is worth a warning.
const USUAL_MAX: usize = 500;

/// How many facts are remembered about the way to a node. More would cost time on long chains.
const FACTS_MAX: usize = 16;

/// How many predecessors of one node are compared with each other.
const COMPARED_MAX: usize = 200;

/// Checks everything that is only odd.
pub(super) fn check(draft: &Draft<'_>, found: &mut Vec<Diagnostic>) {
    check_shape(draft, found);
    check_reach(draft, found);
    check_outputs(draft, found);
    check_types(draft, found);
}

fn check_shape(draft: &Draft<'_>, found: &mut Vec<Diagnostic>) {
    let levels = &draft.graph.levels;
    let n_levels = levels.iter().max().map_or(0, |&level| level as usize + 1);
    let mut widths = vec![0usize; n_levels];
    for &level in levels {
        widths[level as usize] += 1;
    }
    if n_levels > USUAL_MAX {
        found.push(Diagnostic::new(
            Code::DeepGraph,
            Place::workflow(),
            format!("the longest chain has {n_levels} nodes, one after the other"),
            "check that this is meant; nothing in the chain runs at the same time",
        ));
    }
    if let Some(&width) = widths.iter().max().filter(|width| **width > USUAL_MAX) {
        found.push(Diagnostic::new(
            Code::WideGraph,
            Place::workflow(),
            format!("{width} nodes may be ready at the same time"),
            format!(
                "check that this is meant; {} of them run at once, the others wait",
                draft.workflow.concurrency
            ),
        ));
    }
}

/// Something that must be so for an edge to be live.
#[derive(Clone, PartialEq)]
struct Fact<'a> {
    /// The step whose output it is about.
    source: usize,
    /// A field of that output; `None`: whether the step failed.
    field: Option<&'a Path>,
    is: Is<'a>,
}

#[derive(Clone, PartialEq)]
enum Is<'a> {
    Equal(&'a Value),
    Failed(bool),
}

/// The source of an edge, and what must be so for the edge to be live; `None`: it never can be.
type Way<'a> = (usize, Option<Vec<Fact<'a>>>);

impl Fact<'_> {
    fn is_about_the_same(&self, other: &Fact<'_>) -> bool {
        (self.source, self.field) == (other.source, other.field)
    }

    fn contradicts(&self, other: &Fact<'_>) -> bool {
        self.is_about_the_same(other) && self.is != other.is
    }
}

/// Finds nodes that can never run because facts on the way exclude each other.
///
/// Sound, not complete: only `equals` and the choice between the error port and the others are
/// understood, and facts are followed through nodes with one incoming edge.
fn check_reach(draft: &Draft<'_>, found: &mut Vec<Diagnostic>) {
    let n_steps = draft.steps.len();
    let mut never_runs = vec![false; n_steps];
    let mut facts: Vec<Vec<Fact<'_>>> = vec![Vec::new(); n_steps];
    for &n in &draft.graph.order {
        let incoming = &draft.graph.incoming[n];
        if incoming.is_empty() {
            continue;
        }
        let ways: Vec<Way<'_>> = incoming
            .iter()
            .map(|&link| &draft.links[link])
            .map(|link| {
                let facts = facts_of(link, &facts[link.source]);
                (link.source, facts.filter(|_| !never_runs[link.source]))
            })
            .collect();
        let why = match draft.steps[n].join {
            _ if ways.iter().all(|(_, facts)| facts.is_none()) => {
                if incoming.iter().all(|&link| never_runs[draft.links[link].source]) {
                    "the nodes before it can never run".to_owned()
                } else {
                    "the conditions on the way to it exclude each other".to_owned()
                }
            }
            JoinRule::AtLeast(needed) if is_too_much(needed, &ways) => format!(
                "it waits for {needed} predecessors, but the conditions before it let at most {} \
                 of them run",
                most_live(&ways)
            ),
            _ => {
                if let [(_, Some(only))] = &ways[..] {
                    facts[n].clone_from(only);
                }
                continue;
            }
        };
        never_runs[n] = true;
        found.push(Diagnostic::new(
            Code::NeverReached,
            Place::node(&draft.steps[n].node.id),
            format!("node {} can never run: {why}", label(draft.steps[n].node)),
            "change one of the conditions, or the join rule",
        ));
    }
}

/// What must be so for a link to be live; `None`: it never can be.
fn facts_of<'a>(link: &'a Link<'_>, before: &[Fact<'a>]) -> Option<Vec<Fact<'a>>> {
    let mut facts = before.to_vec();
    let is_failed = Is::Failed(link.edge.source_port() == ERROR_PORT);
    let mut new = vec![Fact { source: link.source, field: None, is: is_failed }];
    let mut parts = Vec::from_iter(&link.condition);
    while let Some(part) = parts.pop() {
        match part {
            Condition::All(all) => parts.extend(all),
            Condition::Any(any) if any.len() == 1 => parts.extend(any),
            Condition::Test(test) if test.operator == Operator::Equals => new.push(Fact {
                source: link.source,
                field: Some(&test.field),
                is: Is::Equal(&test.value),
            }),
            _ => (),
        }
    }
    for fact in new {
        if facts.iter().any(|known| known.contradicts(&fact)) {
            return None;
        }
        if facts.len() < FACTS_MAX && !facts.contains(&fact) {
            facts.push(fact);
        }
    }
    Some(facts)
}

/// What predecessors say about one thing, and how many say it.
type Claims<'a> = Vec<(&'a Is<'a>, usize)>;

/// Whether a join waits for more predecessors than can have a live edge, though there are enough.
fn is_too_much(needed: u32, ways: &[Way<'_>]) -> bool {
    let sources: BTreeSet<usize> = ways.iter().map(|(source, _)| *source).collect();
    needed as usize <= sources.len() && needed as usize > most_live(ways)
}

/// An upper bound for how many predecessors can have a live edge at the same time.
fn most_live(ways: &[Way<'_>]) -> usize {
    let mut by_source: BTreeMap<usize, Vec<&[Fact<'_>]>> = BTreeMap::new();
    for (source, facts) in ways {
        if let Some(facts) = facts {
            by_source.entry(*source).or_default().push(facts);
        }
    }
    let n_sources = by_source.len();
    if n_sources > COMPARED_MAX {
        return n_sources;
    }
    let mut claims: BTreeMap<(usize, Option<&Path>), Claims<'_>> = BTreeMap::new();
    for ways in by_source.values() {
        // Facts of a source with several edges are alternatives, so nothing is known about it.
        let [facts] = ways[..] else { continue };
        for fact in facts {
            let claims = claims.entry((fact.source, fact.field)).or_default();
            match claims.iter_mut().find(|(is, _)| **is == fact.is) {
                Some((_, count)) => *count += 1,
                None => claims.push((&fact.is, 1)),
            }
        }
    }
    let excluded = claims.values().map(|claims| {
        let n_claims: usize = claims.iter().map(|(_, count)| count).sum();
        n_claims - claims.iter().map(|(_, count)| *count).max().unwrap_or(0)
    });
    n_sources - excluded.max().unwrap_or(0)
}

/// Finds nodes whose output nothing uses, where the output is all there is to them.
fn check_outputs(draft: &Draft<'_>, found: &mut Vec<Diagnostic>) {
    let bindings = draft.steps.iter().filter_map(|step| step.bindings.as_ref());
    let read: BTreeSet<&NodeId> = bindings.flat_map(|bindings| bindings.nodes_read()).collect();
    let final_output = draft.definition.final_output.as_ref();
    for (n, step) in draft.steps.iter().enumerate() {
        let id = &step.node.id;
        let outgoing = &draft.graph.outgoing[n];
        let is_result = match final_output {
            Some(final_output) => final_output == id,
            None => outgoing.is_empty(),
        };
        let is_passed_on = outgoing.iter().map(|&link| &draft.links[link]).any(|link| {
            let is_input = draft.steps[link.target].bindings.is_none();
            link.condition.is_some() || is_input && link.edge.source_port() != ERROR_PORT
        });
        if is_result || is_passed_on || read.contains(id) || !is_pure(draft, step) {
            continue;
        }
        found.push(Diagnostic::new(
            Code::UnusedOutput,
            Place::node(id),
            format!("nothing uses the output of node {}", label(step.node)),
            "use it in the `inputs` of a node behind it, or remove the node",
        ));
    }
}

/// Whether a node is known to do nothing but make its output.
fn is_pure(draft: &Draft<'_>, step: &Step<'_>) -> bool {
    let needs_agent = step.node_type.is_none_or(|node_type| node_type.needs_agent);
    let agent = agent(draft, step);
    let makes_output_only = !needs_agent || agent.is_some_and(|agent| !agent.is_side_effecting());
    makes_output_only && !step.is_disabled()
}

/// Finds edges whose source promises a type that the target does not expect. Text fits everything.
fn check_types(draft: &Draft<'_>, found: &mut Vec<Diagnostic>) {
    for (n, step) in draft.steps.iter().enumerate() {
        let (None, [source]) = (&step.bindings, &draft.graph.predecessors[n][..]) else { continue };
        let expected = agent(draft, step).and_then(|agent| type_of(agent.input_schema.as_ref()));
        let promised = agent(draft, &draft.steps[*source])
            .and_then(|agent| type_of(agent.output_schema.as_ref()));
        let (Some(expected), Some(promised)) = (expected, promised) else { continue };
        let fits = expected == promised
            || [expected, promised].contains(&"string")
            || (promised, expected) == ("integer", "number");
        if fits {
            continue;
        }
        let links = draft.graph.incoming[n].iter().map(|&link| &draft.links[link]);
        for link in links.filter(|link| link.edge.source_port() != ERROR_PORT) {
            found.push(Diagnostic::new(
                Code::PortTypeMismatch,
                Place::edge(&link.edge.id),
                format!(
                    "node {} promises the type {promised:?}, but node {} expects {expected:?}",
                    label(draft.steps[*source].node),
                    label(step.node)
                ),
                "give the target `inputs` that build what it expects",
            ));
        }
    }
}

fn agent<'a>(draft: &Draft<'a>, step: &Step<'_>) -> Option<&'a Agent> {
    let id = step
        .node
        .agent_id
        .as_deref()
        .filter(|_| step.node_type.is_some_and(|node_type| node_type.needs_agent));
    draft.agents.get(id?).map(|pinned| &pinned.agent)
}

fn type_of(schema: Option<&Value>) -> Option<&str> {
    schema?.get("type")?.as_str()
}
