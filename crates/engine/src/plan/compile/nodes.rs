//! The nodes, one by one.

use std::collections::BTreeMap;

use super::bindings::{self, Bindings};
use super::workflow::{Workflow, configuration};
use super::{compensation, policy};
use crate::agent::AgentSet;
use crate::definition::{Definition, Node, Problem, described};
use crate::ids::NodeId;
use crate::node::{Checked, NodeType, label, node_type, type_names};
use crate::plan::diagnostic::{Code, Diagnostic, Place};
use crate::plan::{FailurePolicy, JoinRule, PlanNode, Work};
use crate::retry::RetryPolicy;
use crate::value::{Object, Value};

/// A node that is compiled, with everything that can be said about it alone.
pub(super) struct Step<'a> {
    pub node: &'a Node,
    /// `None` if the type is unknown.
    pub node_type: Option<&'static NodeType>,
    pub configuration: Object,
    pub join: JoinRule,
    pub retry: Option<RetryPolicy>,
    pub timeout_ms: Option<u64>,
    pub on_failure: FailurePolicy,
    pub bindings: Option<Bindings>,
}

/// Checks every node and returns those that are compiled, in file order.
pub(super) fn check<'a>(
    definition: &'a Definition,
    workflow: &Workflow,
    agents: &AgentSet,
    found: &mut Vec<Diagnostic>,
) -> Vec<Step<'a>> {
    let mut seen: BTreeMap<&NodeId, u32> = BTreeMap::new();
    let mut steps = Vec::new();
    for node in &definition.nodes {
        let times = seen.entry(&node.id).or_default();
        *times += 1;
        if *times == 2 {
            found.push(Diagnostic::new(
                Code::DuplicateNode,
                Place::node(&node.id),
                format!("several nodes have the id {:?}", node.id),
                "give each node an id of its own",
            ));
        }
        let node_type = node_type(node.type_name());
        if node_type.is_some_and(|node_type| node_type.work.is_none()) {
            continue;
        }
        let step = Reader { node, workflow, found }.step(node_type);
        let checked = Checked {
            node,
            configuration: &step.configuration,
            workflow_configuration: &workflow.configuration,
            agents,
        };
        found.extend(node_type.into_iter().flat_map(|node_type| (node_type.check)(&checked)));
        steps.push(step);
    }
    if steps.is_empty() {
        found.push(Diagnostic::new(
            Code::NoNodes,
            Place::workflow().field("nodes"),
            "the workflow has no nodes, so there is nothing to run",
            "add a node",
        ));
    }
    steps
}

impl Step<'_> {
    /// The node of a plan, but for what the graph says about it.
    pub(super) fn into_plan_node(self, agents: &AgentSet) -> PlanNode {
        let node = self.node;
        let work = self.node_type.and_then(|node_type| node_type.work).expect("the type was known");
        let work = work(node);
        let agent = match &work {
            Work::Agent(id) => agents.get(id),
            Work::Transform => None,
        };
        let given = node.name.as_deref().filter(|name| !name.trim().is_empty());
        let name = given.or(agent.map(|pinned| pinned.agent.name.as_str()));
        PlanNode {
            id: node.id.clone(),
            name: name.unwrap_or(node.id.as_str()).to_owned(),
            work,
            is_disabled: self.is_disabled(),
            join: self.join,
            retry: self.retry,
            timeout_ms: self.timeout_ms,
            on_failure: self.on_failure,
            inputs: self.bindings.map(|bindings| bindings.inputs.into_boxed_slice()),
            configuration: self.configuration,
            incoming: Box::default(),
            outgoing: Box::default(),
            predecessors: Box::default(),
            level: 0,
        }
    }

    pub(super) fn is_disabled(&self) -> bool {
        self.node.disabled == Some(true)
    }

    /// The ports where edges may start, or `None` if the type is unknown.
    pub(super) fn outputs(&self) -> Option<Vec<&'static str>> {
        self.node_type.map(|node_type| node_type.outputs.iter().map(|port| port.name).collect())
    }

    /// The ports where edges may end, or `None` if the type is unknown.
    pub(super) fn inputs(&self) -> Option<Vec<&'static str>> {
        self.node_type.map(|node_type| node_type.inputs.iter().map(|port| port.name).collect())
    }
}

struct Reader<'a, 'f> {
    node: &'a Node,
    workflow: &'f Workflow,
    found: &'f mut Vec<Diagnostic>,
}

impl<'a> Reader<'a, '_> {
    fn step(mut self, node_type: Option<&'static NodeType>) -> Step<'a> {
        let node = self.node;
        self.check_type(node_type);
        self.check_compensation();
        self.check_unused();
        let join = self.read("join", Code::BadJoin, node.join.as_ref(), policy::join);
        let timeout_ms =
            self.read("timeout", Code::BadTimeout, node.timeout.as_ref(), policy::timeout);
        let on_failure = node.on_failure.as_ref();
        let on_failure =
            self.read("onFailure", Code::BadFailurePolicy, on_failure, policy::on_failure);
        Step {
            node,
            node_type,
            configuration: configuration(
                node.configuration.as_ref(),
                &Place::node(&node.id),
                self.found,
            ),
            join: join.unwrap_or(JoinRule::All),
            retry: self.retry(),
            timeout_ms,
            on_failure: on_failure.unwrap_or(self.workflow.on_failure),
            bindings: node.inputs.as_ref().map(|inputs| bindings::read(node, inputs, self.found)),
        }
    }

    fn check_type(&mut self, node_type: Option<&'static NodeType>) {
        let node = self.node;
        let Some(node_type) = node_type else {
            let message =
                format!("node {} has the unknown type {:?}", label(node), node.type_name());
            let hint = format!("choose one of {}, or remove the node", type_names());
            self.report(Code::UnknownType, "type", message, hint);
            return;
        };
        let Some(version) = &node.type_version else { return };
        if !version.as_u64().is_some_and(|n| (1..=u64::from(node_type.version)).contains(&n)) {
            let message = format!(
                "node {} asks for {} of the type {:?}, which has the versions 1 to {}",
                label(node),
                described(version),
                node_type.name,
                node_type.version
            );
            let hint = "write a version that exists, or remove `typeVersion`";
            self.report(Code::BadTypeVersion, "typeVersion", message, hint);
        }
    }

    fn check_compensation(&mut self) {
        let problems = self.node.compensation.as_ref().map(compensation::node);
        for problem in problems.into_iter().flatten() {
            self.problem(Code::BadCompensation, "compensation", problem);
        }
    }

    fn check_unused(&mut self) {
        if self.node.body.is_some() {
            let message = format!("node {} has a `body`, which does nothing", label(self.node));
            let hint = "remove it; nodes of this type contain no graph";
            self.report(Code::UnusedField, "body", message, hint);
        }
    }

    fn retry(&mut self) -> Option<RetryPolicy> {
        let value = self.node.retry_policy.as_ref()?;
        for key in policy::unknown_retry_keys(value) {
            let message = format!("`{key}` is not a field of a retry policy");
            let hint = "nothing needs to be done: it is kept and exported, and has no effect";
            self.report(Code::UnknownField, &format!("retryPolicy.{key}"), message, hint);
        }
        match policy::retry(value) {
            Ok(policy) => Some(policy),
            Err(problems) => {
                for problem in problems {
                    self.problem(Code::BadRetryPolicy, "retryPolicy", problem);
                }
                None
            }
        }
    }

    fn read<T>(
        &mut self,
        field: &str,
        code: Code,
        value: Option<&Value>,
        parse: fn(&Value) -> Result<T, Problem>,
    ) -> Option<T> {
        match parse(value?) {
            Ok(parsed) => Some(parsed),
            Err(problem) => {
                self.problem(code, field, problem);
                None
            }
        }
    }

    fn problem(&mut self, code: Code, field: &str, problem: Problem) {
        let dot = if problem.place.is_empty() { "" } else { "." };
        let message = format!("node {}: {}", label(self.node), problem.message);
        self.report(code, &format!("{field}{dot}{}", problem.place), message, problem.hint);
    }

    fn report(&mut self, code: Code, field: &str, message: String, hint: impl Into<String>) {
        let place = Place::node(&self.node.id).field(field);
        self.found.push(Diagnostic::new(code, place, message, hint));
    }
}
