//! Graphs of any size, and a driver that does nothing but answer the scheduler.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use engine::agent::{Agent, AgentSet, PinnedAgent};
use engine::definition::{Definition, Edge, Node};
use engine::ids::{Digest, ExecutionId};
use engine::payload::Payload;
use engine::plan::Plan;
use engine::plan::compile::compile;
use engine::scheduler::action::{Action, StartAttempt};
use engine::scheduler::event::{Trigger, Usage};
use engine::scheduler::input::{Input, Report, Start};
use engine::scheduler::{Execution, OverrideLimits};
use engine::time::Timestamp;
use engine::value::Value;
use uuid::Uuid;

/// How the nodes hang together.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// One after the other.
    Chain,
    /// One root, all others at the same time, one join.
    Fan,
    /// Layers of a hundred, each node behind two of the layer before.
    Layers,
}

/// Something that can be run any number of times.
pub struct Subject {
    plan: Arc<Plan>,
    agents: Arc<AgentSet>,
    input: Payload,
}

impl Subject {
    pub fn new(shape: Shape, n_nodes: usize) -> Subject {
        let echo = Agent::built_in_echo();
        let agents: AgentSet =
            BTreeMap::from([(echo.id.clone(), Arc::new(PinnedAgent::new(echo)))]);
        let compiled = compile(&definition(shape, n_nodes), &agents);
        let plan = compiled.plan.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
        let input = Payload::new(Value::from("x".repeat(200)));
        Subject { plan: Arc::new(plan), agents: Arc::new(agents), input }
    }

    /// Runs an execution from its start to its end; returns the number of records it made.
    ///
    /// Attempts end in the order in which they were started, one at a time.
    pub fn run(&self) -> usize {
        let id = ExecutionId(Uuid::nil());
        let (plan, agents) = (self.plan.clone(), self.agents.clone());
        let mut execution = Execution::new(id, plan, agents, OverrideLimits::default());
        let mut running = VecDeque::new();
        let mut n_records = step(&mut execution, self.start(), &mut running);
        while let Some(attempt) = running.pop_front() {
            n_records += step(&mut execution, self.completed(*attempt), &mut running);
        }
        assert!(execution.is_settled(), "every attempt was answered");
        n_records
    }

    /// Every output is the same: an echo of two inputs would double in size with each layer.
    fn completed(&self, attempt: StartAttempt) -> Input {
        let output = self.input.clone();
        let report = Report::Completed { output, warnings: Vec::new(), usage: Usage::default() };
        Input::AttemptReported { instance: attempt.instance, attempt: attempt.attempt, report }
    }

    fn start(&self) -> Input {
        Input::Start(Box::new(Start {
            document: Digest::of(b"a bench has no document"),
            input: self.input.clone(),
            workflow: None,
            workspace: "bench".to_owned(),
            source: None,
            trigger: Trigger::File,
            parent: None,
        }))
    }
}

fn step(
    execution: &mut Execution,
    input: Input,
    running: &mut VecDeque<Box<StartAttempt>>,
) -> usize {
    let records = execution.decide(input, Timestamp(0)).expect("the input makes sense");
    let committed = execution.commit(&records);
    running.extend(committed.actions.into_iter().map(|action| match action {
        Action::StartAttempt(attempt) => attempt,
        other => panic!("echo nodes ask for nothing else: {other:?}"),
    }));
    records.len()
}

fn definition(shape: Shape, n_nodes: usize) -> Definition {
    let nodes = (0..n_nodes)
        .map(|n| Node { agent_id: Some(Agent::ECHO_ID.to_owned()), ..Node::new(name(n)) });
    let edges = links(shape, n_nodes)
        .into_iter()
        .map(|(from, to)| Edge::new(format!("{from}-{to}"), name(from), name(to)));
    Definition { nodes: nodes.collect(), edges: edges.collect(), ..Definition::default() }
}

fn name(n: usize) -> String {
    format!("node-{n}")
}

/// The ends of each edge.
fn links(shape: Shape, n_nodes: usize) -> Vec<(usize, usize)> {
    const WIDTH: usize = 100;
    match shape {
        Shape::Chain => (1..n_nodes).map(|n| (n - 1, n)).collect(),
        Shape::Fan => (1..n_nodes - 1).flat_map(|n| [(0, n), (n, n_nodes - 1)]).collect(),
        Shape::Layers => (WIDTH..n_nodes)
            .flat_map(|n| {
                let above = n - WIDTH;
                let beside = above / WIDTH * WIDTH + (above + 1) % WIDTH;
                [(above, n), (beside, n)]
            })
            .collect(),
    }
}
