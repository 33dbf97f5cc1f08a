//! The rules of SPEC 4.3 to 4.9 a second time, written to be read and not to be fast.
//!
//! The model knows the definition, the stubs, the inputs that happened and which attempts were
//! started when. It looks at the whole graph again after everything that happens. It shares no
//! code with the scheduler but the JSON values.

use std::collections::{BTreeMap, BTreeSet};

use engine::failure::Failure;
use engine::ids::Instance;
use engine::journal::Record;
use engine::projection::{ExecutionStatus, NodeStatus, NotRunReason};
use engine::scheduler::Execution;
use engine::scheduler::event::{Answer, EdgeState, Event};
use engine::scheduler::input::{Input, Report, Timer};
use engine::value::{Object, Value};

use super::case::{Case, Setup};
use super::condition;

/// What has become of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    Pending,
    Ready,
    Running,
    WaitingRetry,
    WaitingHuman,
    Completed(Value),
    /// The `$failed` object, and what the failure does to the execution.
    Failed(Value, Effect),
    UpstreamFailed,
    Skipped(NotRunReason),
    Cancelled,
}

/// What a failure does to the execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    Handled,
    Tolerated,
    Unhandled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Ready,
    Skipped,
    UpstreamFailed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Join {
    All,
    Min(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    FailDependents,
    SkipDependents,
    Continue,
    Stop,
}

#[derive(Debug)]
struct Node {
    id: String,
    join: Join,
    policy: Policy,
    is_disabled: bool,
    retry: Option<Retry>,
    inputs: Option<Object>,
    is_safe_to_repeat: bool,
    is_gone: bool,
    needs_slot: bool,
    fate: Fate,
    /// Decided by its edges, once and for all.
    verdict: Option<Verdict>,
    attempts: u32,
    lost: u32,
    given: Option<Value>,
}

#[derive(Debug)]
struct Retry {
    retries_max: u32,
    errors: Option<Vec<String>>,
}

#[derive(Debug)]
struct Edge {
    id: String,
    source: usize,
    target: usize,
    port: String,
    condition: Option<Value>,
    state: Option<EdgeState>,
}

/// How the execution ended.
#[derive(Clone, Debug, PartialEq)]
struct End {
    status: ExecutionStatus,
    output: Option<Value>,
    /// Nodes that the error note must name.
    failed: usize,
}

/// One execution according to the model.
#[derive(Debug)]
pub struct Model {
    input: Value,
    final_output: Option<String>,
    has_timeout: bool,
    concurrency: usize,
    /// Nodes by their places in `nodes`, in plan order.
    order: Vec<usize>,
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    end: Option<End>,
}

impl Model {
    pub fn new(case: &Case, setup: &Setup) -> Model {
        let definition = &case.definition;
        let list = |key: &str| definition.get(key).and_then(Value::as_array).unwrap_or_default();
        let nodes: Vec<Node> = list("nodes").iter().map(|node| read_node(case, node)).collect();
        let place: BTreeMap<&str, usize> =
            nodes.iter().enumerate().map(|(n, node)| (node.id.as_str(), n)).collect();
        let edges = list("edges").iter().map(|edge| read_edge(&place, edge)).collect();
        let order = setup.plan.nodes.iter().map(|node| place[node.id.as_str()]).collect();
        let text = |key: &str| definition.get(key).and_then(Value::as_str).map(str::to_owned);
        let concurrency = definition
            .get("configuration")
            .and_then(|configuration| configuration.get("concurrency"))
            .and_then(Value::as_u64);
        Model {
            input: case.input.clone(),
            final_output: text("finalOutput"),
            has_timeout: definition.get("timeout").is_some(),
            concurrency: concurrency.unwrap_or(16) as usize,
            order,
            nodes,
            edges,
            end: None,
        }
    }

    /// Takes in what happened, and what the scheduler wrote down about it.
    ///
    /// # Errors
    /// What the records say that the rules do not.
    pub fn take(&mut self, input: &Input, records: &[Record]) -> Result<(), String> {
        self.happen(input, records);
        for (n, record) in records.iter().enumerate() {
            if let Event::AttemptStarted(started) = &record.event {
                self.attempt_started(&started.instance, started.attempt, &records[n + 1..])?;
            }
        }
        for record in records {
            self.compare_edges(&record.event)?;
        }
        self.no_ready_node_waits_for_nothing()
    }

    // ---- what happens ----

    fn happen(&mut self, input: &Input, records: &[Record]) {
        match input {
            Input::Start(_) => self.start(),
            Input::SlotGranted { .. } => {}
            Input::AttemptReported { instance, attempt, report } => {
                let n = self.place(instance);
                if self.nodes[n].fate == Fate::Running && self.nodes[n].attempts == *attempt {
                    match report {
                        Report::Completed { output, .. } => {
                            self.complete(n, output.value().clone());
                        }
                        Report::Failed { failure, .. } => self.attempt_failed(n, failure),
                        Report::Stopped | Report::Lost { .. } => self.attempt_lost(n),
                    }
                }
            }
            Input::TimerDue { timer: Timer::Retry(instance) } => {
                let n = self.place(instance);
                if self.nodes[n].fate == Fate::WaitingRetry {
                    self.nodes[n].fate = Fate::Ready;
                }
            }
            Input::TimerDue { timer: Timer::ExecutionTimeout } => {
                if self.has_timeout {
                    self.end_early(ExecutionStatus::Failed);
                }
            }
            Input::HumanAnswered { instance, answer } => {
                let n = self.place(instance);
                match answer {
                    Answer::Retry => self.nodes[n].fate = Fate::Ready,
                    Answer::Complete(output) => self.complete(n, output.value().clone()),
                    Answer::Fail { .. } => {
                        // The words are free.
                        let message = records.iter().find_map(|record| match &record.event {
                            Event::NodeFailed(e) => Some(e.failure.message.as_str()),
                            _ => None,
                        });
                        self.fail(n, failed_object("lost", "lost", message.unwrap_or_default()));
                    }
                }
            }
            Input::CancelAsked { .. } => self.end_early(ExecutionStatus::Cancelled),
            Input::HostRestarted { .. } => {
                for n in 0..self.nodes.len() {
                    if self.nodes[n].fate == Fate::Running {
                        self.attempt_lost(n);
                    }
                }
            }
        }
        self.settle();
    }

    /// Disabled nodes are skipped before anything else is decided; then roots are ready.
    fn start(&mut self) {
        for n in 0..self.nodes.len() {
            if self.nodes[n].is_disabled {
                self.skip(n, NotRunReason::Disabled);
            }
        }
        for n in 0..self.nodes.len() {
            if self.edges.iter().all(|edge| edge.target != n) {
                self.seal(n, Verdict::Ready);
            }
        }
    }

    fn attempt_started(
        &mut self,
        instance: &Instance,
        attempt: u32,
        following: &[Record],
    ) -> Result<(), String> {
        let n = self.place(instance);
        let id = self.nodes[n].id.clone();
        if self.nodes[n].fate != Fate::Ready {
            return Err(format!("{id} started although it is {:?}", self.nodes[n].fate));
        }
        self.nothing_earlier_is_ready(n)?;
        self.nodes[n].fate = Fate::Running;
        self.nodes[n].attempts += 1;
        if self.nodes[n].attempts != attempt {
            return Err(format!("attempt {attempt} of {id}, not {}", self.nodes[n].attempts));
        }
        if self.running() > self.concurrency {
            return Err(format!("more than {} nodes run at once", self.concurrency));
        }
        let mut must_fail = self.nodes[n].is_gone;
        if attempt == 1 {
            let given = self.input_of(n);
            must_fail |= given.is_none();
            self.nodes[n].given = given;
        }
        if must_fail {
            let failure = following.iter().find_map(|record| match &record.event {
                Event::AttemptFailed(e) if e.instance == *instance => Some(&e.failure),
                _ => None,
            });
            let failure = failure.ok_or_else(|| format!("{id} runs although it cannot"))?;
            if !["bindingError", "agentNotFound"].contains(&failure.class.as_str()) {
                return Err(format!("{id} cannot start, but failed with {failure:?}"));
            }
            self.attempt_failed(n, failure);
            self.settle();
        }
        Ok(())
    }

    fn attempt_failed(&mut self, n: usize, failure: &Failure) {
        let node = &mut self.nodes[n];
        let tries = node.attempts - node.lost;
        let class = failure.class.as_str();
        let is_retried = node.retry.as_ref().is_some_and(|retry| {
            let is_listed = match &retry.errors {
                None => ["timeout", "network", "rateLimited", "agentError", "invalidOutput"]
                    .contains(&class),
                Some(list) => list.iter().any(|word| word == class || *word == failure.error_type),
            };
            let is_hopeless =
                ["bindingError", "agentNotFound", "policyDenied", "upstreamFailed", "cancelled"]
                    .contains(&class);
            is_listed && !is_hopeless && tries <= retry.retries_max
        });
        if is_retried {
            node.fate = Fate::WaitingRetry;
        } else {
            self.fail(n, failed_object(class, &failure.error_type, &failure.message));
        }
    }

    fn attempt_lost(&mut self, n: usize) {
        let node = &mut self.nodes[n];
        node.lost += 1;
        node.fate = if node.is_safe_to_repeat { Fate::Ready } else { Fate::WaitingHuman };
    }

    // ---- what follows from it ----

    fn complete(&mut self, n: usize, output: Value) {
        self.nodes[n].fate = Fate::Completed(output.clone());
        self.decide_edges(n, |edge| match edge.port.as_str() {
            "output" => fate_on(edge, &output),
            _ => EdgeState::Dead,
        });
    }

    fn skip(&mut self, n: usize, because: NotRunReason) {
        self.nodes[n].fate = Fate::Skipped(because);
        self.decide_edges(n, |_| EdgeState::Dead);
    }

    fn fail_with_upstream(&mut self, n: usize) {
        self.nodes[n].fate = Fate::UpstreamFailed;
        self.decide_edges(n, |_| EdgeState::Failed);
    }

    fn fail(&mut self, n: usize, failed: Value) {
        let policy = self.nodes[n].policy;
        let is_handled = self.edges.iter().any(|edge| {
            edge.source == n && edge.port == "error" && fate_on(edge, &failed) == EdgeState::Live
        });
        let effect = match policy {
            _ if is_handled => Effect::Handled,
            Policy::SkipDependents | Policy::Continue => Effect::Tolerated,
            Policy::FailDependents | Policy::Stop => Effect::Unhandled,
        };
        self.nodes[n].fate = Fate::Failed(failed.clone(), effect);
        self.decide_edges(n, |edge| match policy {
            _ if edge.port == "error" => fate_on(edge, &failed),
            _ if is_handled => EdgeState::Dead,
            Policy::SkipDependents => EdgeState::Dead,
            Policy::Continue => fate_on(edge, &failed),
            Policy::FailDependents | Policy::Stop => EdgeState::Failed,
        });
        if policy == Policy::Stop && !is_handled {
            self.end_early(ExecutionStatus::Failed);
        }
    }

    fn end_early(&mut self, status: ExecutionStatus) {
        if self.end.is_some() {
            return;
        }
        for node in &mut self.nodes {
            if !is_decided(&node.fate) {
                node.fate = Fate::Cancelled;
            }
        }
        self.end = Some(End { status, output: None, failed: 0 });
    }

    /// Decides all edges of a node at once, then looks which nodes that decides.
    fn decide_edges(&mut self, n: usize, fate: impl Fn(&Edge) -> EdgeState) {
        for edge in self.edges.iter_mut().filter(|edge| edge.source == n) {
            assert!(edge.state.is_none(), "the model decided edge {} twice", edge.id);
            edge.state = Some(fate(edge));
        }
        for target in 0..self.nodes.len() {
            if let Some(verdict) = self.verdict(target) {
                self.seal(target, verdict);
            }
        }
    }

    /// The first decision wins.
    fn seal(&mut self, n: usize, verdict: Verdict) {
        let node = &mut self.nodes[n];
        if node.fate == Fate::Pending && node.verdict.is_none() {
            node.verdict = Some(verdict);
            if verdict == Verdict::Ready {
                node.fate = Fate::Ready;
            }
        }
    }

    fn verdict(&self, n: usize) -> Option<Verdict> {
        let incoming: Vec<&Edge> = self.edges.iter().filter(|edge| edge.target == n).collect();
        if incoming.is_empty() {
            return None;
        }
        let any = |state: Option<EdgeState>| incoming.iter().any(|edge| edge.state == state);
        let sources = |states: &[Option<EdgeState>]| -> BTreeSet<usize> {
            incoming.iter().filter(|e| states.contains(&e.state)).map(|e| e.source).collect()
        };
        match self.nodes[n].join {
            Join::All if any(Some(EdgeState::Failed)) => Some(Verdict::UpstreamFailed),
            Join::All if any(None) => None,
            Join::All if any(Some(EdgeState::Live)) => Some(Verdict::Ready),
            Join::All => Some(Verdict::Skipped),
            Join::Min(min) if sources(&[Some(EdgeState::Live)]).len() >= min => {
                Some(Verdict::Ready)
            }
            Join::Min(min) if sources(&[Some(EdgeState::Live), None]).len() >= min => None,
            Join::Min(_) if any(Some(EdgeState::Failed)) => Some(Verdict::UpstreamFailed),
            Join::Min(_) => Some(Verdict::Skipped),
        }
    }

    /// Skips travel first, then failures, until nothing follows any more.
    fn settle(&mut self) {
        while self.end.is_none() {
            let sealed = |wanted: Verdict| {
                self.nodes
                    .iter()
                    .position(|node| node.fate == Fate::Pending && node.verdict == Some(wanted))
            };
            if let Some(n) = sealed(Verdict::Skipped) {
                self.skip(n, NotRunReason::AllEdgesDead);
            } else if let Some(n) = sealed(Verdict::UpstreamFailed) {
                self.fail_with_upstream(n);
            } else {
                break;
            }
        }
        if self.end.is_none() && self.nodes.iter().all(|node| is_decided(&node.fate)) {
            self.end = Some(self.natural_end());
        }
    }

    fn natural_end(&self) -> End {
        let count = |test: &dyn Fn(&Fate) -> bool| {
            self.nodes.iter().filter(|node| test(&node.fate)).count()
        };
        let unhandled = count(&|fate| {
            matches!(fate, Fate::UpstreamFailed | Fate::Failed(_, Effect::Unhandled))
        });
        let tolerated = count(&|fate| matches!(fate, Fate::Failed(_, Effect::Tolerated)));
        let completed = count(&|fate| matches!(fate, Fate::Completed(_)));
        let failed = count(&|fate| matches!(fate, Fate::Failed(..)));
        if unhandled > 0 || (tolerated > 0 && completed == 0) {
            return End { status: ExecutionStatus::Failed, output: None, failed };
        }
        End { status: ExecutionStatus::Completed, output: Some(self.output()), failed }
    }

    /// SPEC 4.5.
    fn output(&self) -> Value {
        let completed = |node: &Node| match &node.fate {
            Fate::Completed(output) => Some(output.clone()),
            _ => None,
        };
        if let Some(id) = &self.final_output {
            let node = self.nodes.iter().find(|node| node.id == *id).expect("it was compiled");
            return completed(node).unwrap_or_default();
        }
        let is_sink = |n: &usize| self.edges.iter().all(|edge| edge.source != *n);
        let sinks: Vec<usize> = (0..self.nodes.len()).filter(is_sink).collect();
        if let [only] = *sinks {
            return completed(&self.nodes[only]).unwrap_or_default();
        }
        let outputs: Object = sinks
            .into_iter()
            .filter_map(|n| Some((self.nodes[n].id.clone(), completed(&self.nodes[n])?)))
            .collect();
        if outputs.is_empty() { Value::Null } else { outputs.into() }
    }

    // ---- inputs ----

    /// SPEC 4.4; `None`: a reference does not resolve.
    fn input_of(&self, n: usize) -> Option<Value> {
        if let Some(inputs) = &self.nodes[n].inputs {
            return self.bind(&inputs.clone().into());
        }
        let mut sources: Vec<usize> = Vec::new();
        for edge in self.edges.iter().filter(|edge| edge.target == n) {
            if !sources.contains(&edge.source) {
                sources.push(edge.source);
            }
        }
        let handed_on = |source: usize| self.handed_on(source).unwrap_or_default();
        Some(match *sources {
            [] => self.input.clone(),
            [only] => handed_on(only),
            _ => {
                let is_live = |source: &usize| {
                    self.edges.iter().any(|edge| {
                        (edge.source, edge.target) == (*source, n)
                            && edge.state == Some(EdgeState::Live)
                    })
                };
                let live = sources.iter().copied().filter(is_live);
                let fields = live.map(|source| (self.nodes[source].id.clone(), handed_on(source)));
                Value::Object(fields.collect())
            }
        })
    }

    /// What others may see of a node: its output, or the `$failed` object where that stands in
    /// place of it (handled, or `continue`).
    fn handed_on(&self, n: usize) -> Option<Value> {
        match &self.nodes[n].fate {
            Fate::Completed(output) => Some(output.clone()),
            Fate::Failed(failed, Effect::Handled) => Some(failed.clone()),
            Fate::Failed(failed, Effect::Tolerated) if self.nodes[n].policy == Policy::Continue => {
                Some(failed.clone())
            }
            _ => None,
        }
    }

    fn bind(&self, template: &Value) -> Option<Value> {
        match template {
            Value::String(text) => self.bind_text(text),
            Value::Array(items) => items
                .iter()
                .map(|item| self.bind(item))
                .collect::<Option<Vec<_>>>()
                .map(Value::from),
            Value::Object(fields) => {
                let mut bound = Object::new();
                for (key, field) in fields {
                    bound.insert(key.clone(), self.bind(field)?);
                }
                Some(bound.into())
            }
            other => Some(other.clone()),
        }
    }

    fn bind_text(&self, text: &str) -> Option<Value> {
        let whole = text.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
        if let Some(expression) = whole.filter(|inner| !inner.contains("{{")) {
            return self.look_up(expression.trim());
        }
        let mut result = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let (expression, after) = after.split_once("}}")?;
            result.push_str(before);
            match self.look_up(expression.trim())? {
                Value::String(text) => result.push_str(&text),
                other => result.push_str(&other.to_json()),
            }
            rest = after;
        }
        result.push_str(rest);
        Some(result.into())
    }

    /// `input.a.b`, `nodes.id.output.a.b` and `nodes["id"].output.a.b`.
    fn look_up(&self, expression: &str) -> Option<Value> {
        let reference =
            match (expression.strip_prefix("nodes[\""), expression.strip_prefix("nodes.")) {
                (Some(rest), _) => Some(rest.split_once("\"].output")?),
                (None, Some(rest)) => Some(rest.split_once(".output")?),
                (None, None) => None,
            };
        let (root, path) = if let Some((id, path)) = reference {
            let n = self.nodes.iter().position(|node| node.id == id)?;
            (self.handed_on(n)?, path)
        } else {
            (self.input.clone(), expression.strip_prefix("input")?)
        };
        path.split('.').skip(1).try_fold(root, |value, key| value.get(key).cloned())
    }

    // ---- comparing ----

    /// Compares everything that can be seen of an execution.
    ///
    /// # Errors
    /// The first difference.
    pub fn compare(&self, execution: &Execution) -> Result<(), String> {
        for (idx, &n) in execution.plan().node_indices().zip(&self.order) {
            let node = &self.nodes[n];
            let summary = execution.node_summary(idx);
            let reason = summary.as_ref().and_then(|summary| summary.reason);
            let is_queued = summary.is_some() && execution.node_status(idx) == NodeStatus::Pending;
            let found = (execution.node_status(idx), reason, is_queued);
            let (status, reason) = told(&node.fate);
            let wanted = (status, reason, node.fate == Fate::Ready);
            if found != wanted {
                return Err(format!("{} is {found:?}, by the rules {wanted:?}", node.id));
            }
            let attempts = summary.map_or(0, |summary| summary.attempts);
            if attempts != node.attempts {
                return Err(format!("{}: {attempts} attempts, not {}", node.id, node.attempts));
            }
            let found = execution.node_input(idx);
            let found = found.as_ref().map(|payload| payload.value());
            if found != node.given.as_ref() {
                let shown = |value: Option<&Value>| value.map_or("none".into(), Value::to_json);
                return Err(format!(
                    "input of {}: {}, by the rules {}",
                    node.id,
                    shown(found),
                    shown(node.given.as_ref())
                ));
            }
        }
        self.compare_end(execution)
    }

    fn compare_end(&self, execution: &Execution) -> Result<(), String> {
        let Some(end) = &self.end else {
            return match execution.status() {
                ExecutionStatus::Running => Ok(()),
                other => Err(format!("the execution is {other:?}, by the rules it goes on")),
            };
        };
        let output = execution.output().map(|payload| payload.value().clone());
        if (execution.status(), &output) != (end.status, &end.output) {
            return Err(format!(
                "the execution is {:?} with {output:?}, by the rules {end:?}",
                execution.status()
            ));
        }
        let summary = execution.summary().expect("it has started");
        let wants_note = end.failed > 0 || end.status == ExecutionStatus::Failed;
        if summary.error.is_some() != wants_note {
            return Err(format!("error note {:?}, by the rules {end:?}", summary.error));
        }
        Ok(())
    }

    fn compare_edges(&self, event: &Event) -> Result<(), String> {
        let decisions = match event {
            Event::NodeCompleted(e) => &e.edges,
            Event::NodeFailed(e) => &e.edges,
            Event::NodeSkipped(e) => &e.edges,
            _ => return Ok(()),
        };
        for decision in decisions {
            let edge = self.edges.iter().find(|edge| edge.id == decision.edge.as_str());
            let edge = edge.ok_or_else(|| format!("there is no edge {}", decision.edge))?;
            if edge.state != Some(decision.state) {
                return Err(format!(
                    "edge {} is {:?}, by the rules {:?}",
                    edge.id, decision.state, edge.state
                ));
            }
        }
        Ok(())
    }

    /// Ready nodes start in plan order. Nodes that wait for a place of the machine are apart: each
    /// starts when it has one.
    fn nothing_earlier_is_ready(&self, started: usize) -> Result<(), String> {
        let needs_slot = self.nodes[started].needs_slot;
        let earlier = self.order.iter().take_while(|n| **n != started);
        let waits = |n: &&usize| {
            let node = &self.nodes[**n];
            node.fate == Fate::Ready && !node.needs_slot
        };
        match earlier.into_iter().find(waits) {
            Some(n) if !needs_slot => Err(format!(
                "{} started before {}, which is earlier in the plan",
                self.nodes[started].id, self.nodes[*n].id
            )),
            _ => Ok(()),
        }
    }

    fn no_ready_node_waits_for_nothing(&self) -> Result<(), String> {
        let waiting = self.nodes.iter().find(|node| node.fate == Fate::Ready && !node.needs_slot);
        match waiting {
            Some(node) if self.running() < self.concurrency => {
                Err(format!("{} is ready, and a place is free, but it does not run", node.id))
            }
            _ => Ok(()),
        }
    }

    fn running(&self) -> usize {
        self.nodes.iter().filter(|node| node.fate == Fate::Running).count()
    }

    fn place(&self, instance: &Instance) -> usize {
        let id = instance.node.as_str();
        self.nodes.iter().position(|node| node.id == id).expect("the definition has the node")
    }
}

fn told(fate: &Fate) -> (NodeStatus, Option<NotRunReason>) {
    match fate {
        Fate::Pending | Fate::Ready => (NodeStatus::Pending, None),
        Fate::Running => (NodeStatus::Running, None),
        Fate::WaitingRetry | Fate::WaitingHuman => (NodeStatus::Waiting, None),
        Fate::Completed(_) => (NodeStatus::Completed, None),
        Fate::Failed(..) => (NodeStatus::Failed, None),
        Fate::UpstreamFailed => (NodeStatus::Failed, Some(NotRunReason::UpstreamFailed)),
        Fate::Skipped(reason) => (NodeStatus::Skipped, Some(*reason)),
        Fate::Cancelled => (NodeStatus::Cancelled, Some(NotRunReason::Cancelled)),
    }
}

fn is_decided(fate: &Fate) -> bool {
    told(fate).0.is_terminal()
}

fn fate_on(edge: &Edge, emitted: &Value) -> EdgeState {
    match &edge.condition {
        Some(condition) if !condition::holds(condition, emitted) => EdgeState::Dead,
        _ => EdgeState::Live,
    }
}

fn failed_object(class: &str, error_type: &str, message: &str) -> Value {
    let failure: Object =
        [("class", class), ("errorType", error_type), ("message", message)].into_iter().collect();
    Value::Object([("$failed", failure)].into_iter().collect())
}

fn read_node(case: &Case, node: &Value) -> Node {
    let text = |key: &str| node.get(key).and_then(Value::as_str);
    let stub = text("agentId").map(|agent| &case.stubs[agent]);
    let agents_policy = stub.and_then(|stub| stub.retry_policy.as_ref());
    let workflows_policy = case.definition.get("onFailure").and_then(Value::as_str);
    Node {
        id: text("id").expect("a node has an id").to_owned(),
        join: match node.get("join") {
            Some(Value::String(word)) if word == "any" => Join::Min(1),
            Some(Value::Object(rule)) => {
                Join::Min(rule.get("min").and_then(Value::as_u64).expect("a count") as usize)
            }
            _ => Join::All,
        },
        policy: match text("onFailure").or(workflows_policy) {
            None | Some("failDependents") => Policy::FailDependents,
            Some("skipDependents") => Policy::SkipDependents,
            Some("continue") => Policy::Continue,
            Some("stop") => Policy::Stop,
            Some(other) => panic!("no such policy: {other}"),
        },
        is_disabled: node.get("disabled").and_then(Value::as_bool) == Some(true),
        retry: node.get("retryPolicy").or(agents_policy).map(read_retry),
        inputs: node.get("inputs").and_then(Value::as_object).cloned(),
        is_safe_to_repeat: stub.is_none_or(|stub| stub.is_gone || stub.is_safe_to_repeat()),
        is_gone: stub.is_some_and(|stub| stub.is_gone),
        needs_slot: stub.is_some_and(|stub| !stub.is_gone && stub.runner.takes_slot()),
        fate: Fate::Pending,
        verdict: None,
        attempts: 0,
        lost: 0,
        given: None,
    }
}

fn read_retry(policy: &Value) -> Retry {
    let errors = policy.get("retryableErrors").and_then(Value::as_array);
    Retry {
        retries_max: policy.get("maxRetries").and_then(Value::as_u64).expect("a count") as u32,
        errors: errors
            .map(|list| list.iter().filter_map(Value::as_str).map(str::to_owned).collect()),
    }
}

fn read_edge(place: &BTreeMap<&str, usize>, edge: &Value) -> Edge {
    let text = |key: &str| edge.get(key).and_then(Value::as_str);
    Edge {
        id: text("id").expect("an edge has an id").to_owned(),
        source: place[text("source").expect("a source")],
        target: place[text("target").expect("a target")],
        port: text("sourceHandle").unwrap_or("output").to_owned(),
        condition: edge.get("condition").cloned(),
        state: None,
    }
}
