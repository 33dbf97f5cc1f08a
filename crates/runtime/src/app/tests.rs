//! The app on a real store in a folder of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::agent::{Agent, AgentSet, PinnedAgent, RunnerKind};
use engine::definition::Definition;
use engine::ids::{ExecutionId, NodeId, Seq};
use engine::payload::Payload;
use engine::projection::{ExecutionStatus, ExecutionSummary, NodeStatus, WaitReason};
use engine::scheduler::event::{Answer, Trigger};
use engine::value::Value;
use tempfile::TempDir;

use super::executions::WatchItem;
use super::start::{MissingAgents, StartRequest};
use super::{App, AppOptions};

async fn open(folder: &TempDir) -> App {
    App::open(AppOptions::new(folder.path())).await.unwrap()
}

/// Agents `echo`, and one scripted agent per entry.
fn agents(scripts: &[(&str, &str)]) -> Arc<AgentSet> {
    let mut set: AgentSet = BTreeMap::new();
    let echo = Agent::new("echo", "Echo", RunnerKind::Echo);
    let scripted = scripts.iter().map(|(id, script)| {
        let mut agent = Agent::new(*id, *id, RunnerKind::Scripted);
        agent.settings = Value::parse(script).unwrap().as_object().unwrap().clone();
        agent.side_effecting =
            agent.settings.get("sideEffecting").and_then(Value::as_bool).or(agent.side_effecting);
        agent
    });
    for agent in scripted.chain([echo]) {
        set.insert(agent.id.clone(), Arc::new(PinnedAgent::new(agent)));
    }
    Arc::new(set)
}

fn request(definition: &str, agents: Arc<AgentSet>) -> StartRequest {
    let definition = Definition::from_value(Value::parse(definition).unwrap()).unwrap();
    StartRequest {
        definition: Arc::new(definition),
        agents,
        workflow: None,
        workspace: "Personal".to_owned(),
        source: Some("test.json".to_owned()),
        trigger: Trigger::File,
        input: Some(Value::parse(r#"{"n":17169973925117969}"#).unwrap()),
        idempotency_key: None,
        missing_agents: MissingAgents::Refuse,
    }
}

/// `a -> b`, where `b` is performed by the agent named.
fn chain(agent_of_b: &str) -> String {
    format!(
        r#"{{"version":"1.0.0","id":"w","name":"W","nodes":[
            {{"id":"a","agentId":"echo","position":{{"x":0,"y":0}}}},
            {{"id":"b","agentId":"{agent_of_b}","position":{{"x":0,"y":0}}}}],
          "edges":[{{"id":"e","source":"a","target":"b"}}]}}"#
    )
}

async fn start(app: &App, definition: &str, agents: Arc<AgentSet>) -> ExecutionId {
    app.start(request(definition, agents)).await.unwrap().execution
}

/// Waits until the execution is over, or waits for a person.
async fn rest(app: &App, id: ExecutionId) -> ExecutionSummary {
    let mut watch = app.watch(id, Seq(0));
    while let Some(item) = watch.next().await {
        let item = item.unwrap();
        let summary = app.execution(id).unwrap().0;
        if matches!(item, WatchItem::Ended) || summary.waiting_for == Some(WaitReason::Lost) {
            return summary;
        }
        assert!(!matches!(item, WatchItem::Stalled(_)), "the execution stands still");
    }
    panic!("the watch ended without saying why");
}

fn output(app: &App, id: ExecutionId) -> String {
    let loaded = app.journal(id).unwrap();
    let execution = loaded.replay(app.driver().limits());
    execution.output().map(|output| output.text().to_owned()).unwrap_or_default()
}

async fn assert_sound(app: &App) {
    let report = app.store().off_thread({
        let app = app.clone();
        move |_| app.check()
    });
    let report = report.await.unwrap();
    assert_eq!(report.findings, [], "fold and projection agree");
    assert!(report.executions > 0);
}

#[tokio::test]
async fn a_file_runs_to_its_end_and_its_digits_stay() {
    let folder = TempDir::new().unwrap();
    let app = open(&folder).await;
    let id = start(&app, &chain("echo"), agents(&[])).await;
    let summary = rest(&app, id).await;
    assert_eq!(summary.status, ExecutionStatus::Completed);
    assert_eq!(output(&app, id), r#"{"n":17169973925117969}"#);
    assert_sound(&app).await;
    app.close().await;
}

#[tokio::test]
async fn what_is_interrupted_is_resumed_and_finished() {
    let folder = TempDir::new().unwrap();
    let app = open(&folder).await;
    let slow = agents(&[("slow", r#"{"out":7,"takes":60000}"#)]);
    let id = start(&app, &chain("slow"), slow).await;
    while app.execution(id).unwrap().1.len() < 2 {
        tokio::task::yield_now().await;
    }
    app.close().await;

    let app = open(&folder).await;
    let interrupted = app.execution(id).unwrap().0;
    assert_eq!(interrupted.status, ExecutionStatus::Running);
    assert_eq!(app.resume(None).await.unwrap(), [id]);
    assert_eq!(app.resume(None).await.unwrap(), [], "it is driven already");
    app.cancel(id, "a test").await.unwrap();
    let summary = rest(&app, id).await;
    assert_eq!(summary.status, ExecutionStatus::Cancelled);
    let nodes = app.execution(id).unwrap().1;
    let b = nodes.iter().find(|node| node.instance.node.as_str() == "b").unwrap();
    assert_eq!((b.status, b.attempts), (NodeStatus::Cancelled, 2));
    assert_sound(&app).await;
    app.close().await;
}

#[tokio::test]
async fn a_lost_attempt_with_side_effects_waits_for_a_person() {
    let folder = TempDir::new().unwrap();
    let app = open(&folder).await;
    let script = r#"{"out":7,"takes":60000,"sideEffecting":true}"#;
    let id = start(&app, &chain("mailer"), agents(&[("mailer", script)])).await;
    while app.execution(id).unwrap().1.len() < 2 {
        tokio::task::yield_now().await;
    }
    app.close().await;

    let app = open(&folder).await;
    app.resume(Some(id)).await.unwrap();
    assert_eq!(rest(&app, id).await.waiting_for, Some(WaitReason::Lost));
    let wrong = app.decide(id, NodeId::from("a"), Answer::Retry).await.unwrap_err();
    assert!(wrong.to_string().contains("waits for no answer"), "{wrong}");
    let answer = Answer::Complete(Payload::parse("\"sent\"").unwrap());
    app.decide(id, NodeId::from("b"), answer).await.unwrap();
    assert_eq!(rest(&app, id).await.status, ExecutionStatus::Completed);
    assert_eq!(output(&app, id), "\"sent\"");
    let late = app.decide(id, NodeId::from("b"), Answer::Retry).await.unwrap_err();
    assert!(late.to_string().contains("waits for no answer"), "{late}");
    assert_sound(&app).await;
    app.close().await;
}

#[tokio::test]
async fn another_process_cancels_through_a_signal() {
    let folder = TempDir::new().unwrap();
    let owner = open(&folder).await;
    let other = open(&folder).await;
    let slow = agents(&[("slow", r#"{"out":7,"takes":60000}"#)]);
    let id = start(&owner, &chain("slow"), slow).await;
    other.cancel(id, "another process").await.unwrap();
    assert_eq!(rest(&other, id).await.status, ExecutionStatus::Cancelled);
    other.cancel(id, "another process").await.unwrap();
    assert_sound(&owner).await;
    other.close().await;
    owner.close().await;
}

#[tokio::test]
async fn the_same_key_gives_the_same_execution() {
    let folder = TempDir::new().unwrap();
    let app = open(&folder).await;
    let keyed = |definition: &str| StartRequest {
        idempotency_key: Some("k".to_owned()),
        ..request(definition, agents(&[("b", r#"{"out":1}"#)]))
    };
    let first = app.start(keyed(&chain("echo"))).await.unwrap();
    let again = app.start(keyed(&chain("echo"))).await.unwrap();
    assert_eq!((again.execution, again.existed), (first.execution, true));
    app.start(keyed(&chain("b"))).await.expect_err("another plan under the same key");
    rest(&app, first.execution).await;
    app.close().await;
}

#[tokio::test]
async fn retries_wait_and_go_on() {
    let folder = TempDir::new().unwrap();
    let app = open(&folder).await;
    let definition = chain("flaky").replacen(
        r#""agentId":"flaky","#,
        r#""agentId":"flaky","retryPolicy":{"maxRetries":3,"backoffBase":0.02,"backoffMax":0.05},"#,
        1,
    );
    let flaky = agents(&[("flaky", r#"{"fail":"Oops","times":2,"then":"done"}"#)]);
    let id = start(&app, &definition, flaky).await;
    assert_eq!(rest(&app, id).await.status, ExecutionStatus::Completed);
    let nodes = app.execution(id).unwrap().1;
    assert_eq!(nodes.iter().find(|n| n.instance.node.as_str() == "b").unwrap().attempts, 3);
    assert_sound(&app).await;
    app.close().await;
}

#[tokio::test]
async fn a_definition_with_errors_starts_nothing() {
    let folder = TempDir::new().unwrap();
    let app = open(&folder).await;
    app.start(request(&chain("nobody"), agents(&[]))).await.expect_err("an unknown agent");
    let mut fails = request(&chain("nobody"), agents(&[]));
    fails.missing_agents = MissingAgents::FailNodes;
    let id = app.start(fails).await.unwrap().execution;
    let summary = rest(&app, id).await;
    assert_eq!(summary.status, ExecutionStatus::Failed);
    assert!(summary.error.unwrap().contains("agent not found: nobody"));
    app.close().await;
}
