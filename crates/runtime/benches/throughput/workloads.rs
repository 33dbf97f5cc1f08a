//! The workloads that are measured: whole executions through [`App`], on a database of their own.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::agent::{Agent, AgentSet, PinnedAgent, RunnerKind};
use engine::definition::Definition;
use engine::projection::ExecutionStatus;
use engine::scheduler::event::Trigger;
use engine::value::Value;
use runtime::app::start::{MissingAgents, StartRequest};
use runtime::app::{App, AppOptions};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::{Sample, fresh_folder};

/// About the length of every input and output, in bytes.
const INPUT_BYTES: usize = 200;
/// Executions of W3 that are under way at the same time.
const W3_AT_A_TIME: usize = 16;

/// W1: one chain of nodes that give back their input.
pub fn chain(n_nodes: u32) -> Sample {
    run_one("w1", &chain_of(n_nodes, "echo"), n_nodes)
}

/// W2: one root, many nodes beside one another, one join.
pub fn fan_out(n_beside: u32) -> Sample {
    let mut graph = Graph::default();
    graph.node("root", "echo");
    for n in 0..n_beside {
        let id = format!("n{n}");
        graph.node(&id, "echo");
        graph.edge("root", &id);
    }
    graph.node("join", "echo");
    for n in 0..n_beside {
        graph.edge(&format!("n{n}"), "join");
    }
    run_one("w2", &graph.finish(), n_beside + 2)
}

/// W3: many executions of a diamond of five nodes, some at a time.
pub fn diamonds(n_executions: u32) -> Sample {
    let mut graph = Graph::default();
    for id in ["a", "b", "c", "d", "e"] {
        graph.node(id, "echo");
    }
    for (from, to) in [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", "e")] {
        graph.edge(from, to);
    }
    let request = request(&graph.finish());
    measured("w3", n_executions * 5, move |app| async move {
        let mut under_way = JoinSet::new();
        for _ in 0..n_executions {
            if under_way.len() == W3_AT_A_TIME {
                under_way.join_next().await;
            }
            under_way.spawn(finish(app.clone(), request.clone()));
        }
        while under_way.join_next().await.is_some() {}
    })
}

/// W4: the chain of W1 with nodes that are declared to have side effects, so that the start of
/// each has to be on disk before it runs.
pub fn side_effects(n_nodes: u32) -> Sample {
    run_one("w4", &chain_of(n_nodes, "mailer"), n_nodes)
}

/// How long it takes to fold and continue executions that were left in the middle.
pub fn recovery(n_executions: u32) -> Duration {
    let mut graph = Graph::default();
    for (id, agent) in [("a", "echo"), ("b", "sleeper"), ("c", "echo")] {
        graph.node(id, agent);
    }
    graph.edge("a", "b");
    graph.edge("b", "c");
    let request = request(&graph.finish());
    let folder = fresh_folder("recovery");
    let runtime = Runtime::new().expect("the system has threads");
    runtime.block_on(async {
        let app = App::open(AppOptions::new(&folder)).await.expect("the folder is new");
        for _ in 0..n_executions {
            app.start(request.clone()).await.expect("the workflow is valid");
        }
        app.close().await;

        let app = App::open(AppOptions::new(&folder)).await.expect("the folder can be opened");
        let begin = Instant::now();
        let resumed = app.resume(None).await.expect("the store can be read");
        let took = begin.elapsed();
        assert_eq!(resumed.len(), n_executions as usize, "all of them were left in the middle");
        app.close().await;
        took
    })
}

fn run_one(name: &str, definition: &str, n_nodes: u32) -> Sample {
    let request = request(definition);
    measured(name, n_nodes, move |app| finish(app, request))
}

/// Times `work` on a new app. Opening and closing are not counted; that everything is on disk is.
fn measured<F: Future<Output = ()>>(
    name: &str,
    n_nodes: u32,
    work: impl FnOnce(App) -> F,
) -> Sample {
    let folder = fresh_folder(name);
    let runtime = Runtime::new().expect("the system has threads");
    runtime.block_on(async {
        let app = App::open(AppOptions::new(folder)).await.expect("the folder is new");
        let before = app.writer_stats();
        let begin = Instant::now();
        work(app.clone()).await;
        let took = begin.elapsed();
        let after = app.writer_stats();
        app.close().await;
        Sample {
            n_nodes,
            took,
            n_commits: after.commits - before.commits,
            longest_unflushed: Some(Duration::from_micros(after.longest_wait_us)),
        }
    })
}

async fn finish(app: App, request: StartRequest) {
    let started = app.start(request).await.expect("the workflow is valid");
    let summary = app.until_left(started.execution).await.expect("the store can be read");
    assert_eq!(summary.status, ExecutionStatus::Completed);
}

fn request(definition: &str) -> StartRequest {
    let value = Value::parse(definition).expect("the definition is JSON");
    let definition = Definition::from_value(value).expect("the definition is one");
    let input = format!("{{\"text\":\"{}\"}}", "x".repeat(INPUT_BYTES - 11));
    StartRequest {
        definition: Arc::new(definition),
        agents: agents(),
        workflow: None,
        workspace: "Personal".to_owned(),
        source: None,
        trigger: Trigger::File,
        input: Some(Value::parse(&input).expect("the input is JSON")),
        idempotency_key: None,
        missing_agents: MissingAgents::Refuse,
    }
}

fn agents() -> Arc<AgentSet> {
    let echo = Agent::new("echo", "Echo", RunnerKind::Echo);
    let mut mailer = scripted("mailer", r#"{"echo":true}"#);
    mailer.side_effecting = Some(true);
    let sleeper = scripted("sleeper", r#"{"echo":true,"takes":3600000}"#);
    let agents = [echo, mailer, sleeper].into_iter().map(|agent| {
        let pinned = PinnedAgent::new(agent);
        (pinned.agent.id.clone(), Arc::new(pinned))
    });
    Arc::new(agents.collect::<BTreeMap<_, _>>())
}

fn scripted(id: &str, script: &str) -> Agent {
    let script = Value::parse(script).expect("the script is JSON");
    let mut agent = Agent::new(id, id, RunnerKind::Scripted);
    agent.settings = script.as_object().expect("it is an object").clone();
    agent
}

fn chain_of(n_nodes: u32, agent: &str) -> String {
    let mut graph = Graph::default();
    for n in 0..n_nodes {
        graph.node(&format!("n{n}"), agent);
        if n > 0 {
            graph.edge(&format!("n{}", n - 1), &format!("n{n}"));
        }
    }
    graph.finish()
}

/// A definition being written.
#[derive(Default)]
struct Graph {
    nodes: Vec<String>,
    edges: Vec<String>,
}

impl Graph {
    fn node(&mut self, id: &str, agent: &str) {
        self.nodes.push(format!(r#"{{"id":"{id}","agentId":"{agent}"}}"#));
    }

    fn edge(&mut self, from: &str, to: &str) {
        let mut edge = String::new();
        write!(edge, r#"{{"id":"e{}","source":"{from}","target":"{to}"}}"#, self.edges.len())
            .expect("a string has room");
        self.edges.push(edge);
    }

    fn finish(self) -> String {
        format!(
            r#"{{"version":"1.0.0","id":"bench","name":"Bench","nodes":[{}],"edges":[{}]}}"#,
            self.nodes.join(","),
            self.edges.join(",")
        )
    }
}
