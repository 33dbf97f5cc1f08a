//! The roster on a real store in a folder of its own.

use std::sync::Arc;

use engine::agent::{Agent, PinnedAgent, RunnerKind};
use engine::definition::Definition;
use engine::value::Value;
use tempfile::TempDir;

use super::{RosterError, Trust};
use crate::app::start::{MissingAgents, StartError, StartRequest};
use crate::app::{App, AppOptions};
use crate::library::Kind;
use engine::scheduler::event::Trigger;

const HERE: &str = "Personal";

async fn app() -> (TempDir, App) {
    let folder = TempDir::new().unwrap();
    let app = App::open(AppOptions::new(folder.path())).await.unwrap();
    (folder, app)
}

/// A file with one agent that runs a command, and one that runs nothing.
fn file(command: &str) -> String {
    format!(
        r#"{{"agents":[
            {{"id":"toucher","name":"Toucher","runner":"process",
              "settings":{{"program":"sh","args":["-c",{command:?}],"cwd":"/tmp",
                "env":{{"MARK":"1"}},"envAllow":["TOKEN"]}}}},
            {{"id":"player","name":"Player","runner":"scripted","settings":{{"out":1}}}}]}}"#
    )
}

fn definition() -> Definition {
    let text = r#"{"name":"Touch","nodes":[{"id":"a","agentId":"toucher"}],"edges":[]}"#;
    Definition::from_value(Value::parse(text).unwrap()).unwrap()
}

fn request(app: &App) -> StartRequest {
    StartRequest {
        definition: Arc::new(definition()),
        agents: Arc::new(app.agent_set().unwrap()),
        workflow: None,
        workspace: HERE.to_owned(),
        source: None,
        trigger: Trigger::File,
        input: None,
        idempotency_key: None,
        missing_agents: MissingAgents::Refuse,
    }
}

#[tokio::test]
async fn every_machine_has_the_echo_agent_and_keeps_it() {
    let (_folder, app) = app().await;
    let agents = app.agents().unwrap();
    assert_eq!(agents.len(), 1);
    assert_eq!(agents[0].pinned.agent.id.as_str(), Agent::ECHO_ID);
    let error = app.remove_agent(&Agent::ECHO_ID.into()).await.unwrap_err();
    assert_eq!(error.code(), "builtInAgent");
    let own = r#"{"agents":[{"id":"demo-echo-agent","runner":"scripted","settings":{"out":1}}]}"#;
    let error = app.import_agents(own.as_bytes(), Trust::Given).await.unwrap_err();
    assert_eq!(error.code(), "builtInAgent");
}

#[tokio::test]
async fn o_s03_a_command_is_imported_only_after_consent_to_exactly_that_content() {
    let (_folder, app) = app().await;
    let bytes = file("touch marker");
    let error = app.import_agents(bytes.as_bytes(), Trust::OnlyConsented).await.unwrap_err();
    let RosterError::ConsentNeeded { questions } = error else { panic!("{error:?}") };
    let [question] = &questions[..] else { panic!("scripted agents need none: {questions:?}") };
    assert_eq!(
        question.to_string(),
        "agent        Toucher (toucher)\n\
         program      \"sh\"\n\
         arguments    [\"-c\",\"touch marker\"]\n\
         folder       \"/tmp\"\n\
         environment  sets MARK; is also given TOKEN"
    );
    assert_eq!(app.agents().unwrap().len(), 1, "all or nothing");
    app.give_consent(&questions).await.unwrap();
    let report = app.import_agents(bytes.as_bytes(), Trust::OnlyConsented).await.unwrap();
    assert_eq!(report.added, ["toucher".into(), "player".into()]);
    let report = app.import_agents(bytes.as_bytes(), Trust::OnlyConsented).await.unwrap();
    assert_eq!(report.unchanged.len(), 2);
    let changed = file("touch marker2");
    let error = app.import_agents(changed.as_bytes(), Trust::OnlyConsented).await.unwrap_err();
    assert_eq!(error.code(), "consentNeeded", "one character more is another content");
    let report = app.import_agents(changed.as_bytes(), Trust::Given).await.unwrap();
    assert_eq!(report.replaced, ["toucher".into()]);
}

#[tokio::test]
async fn o_s03_nothing_starts_without_consent_however_the_agent_came_there() {
    let (_folder, app) = app().await;
    let mut agent = Agent::new("toucher", "Toucher", RunnerKind::Process);
    agent.settings.insert("program", "true");
    let pinned = PinnedAgent::new(agent);
    app.store().put_agents(vec![app.row(&pinned)]).await.unwrap();
    let error = app.start(request(&app)).await.unwrap_err();
    let StartError::ConsentNeeded { questions } = error else { panic!("{error:?}") };
    app.give_consent(&questions).await.unwrap();
    app.start(request(&app)).await.unwrap();
    app.close().await;
}

#[tokio::test]
async fn what_a_person_puts_together_here_is_agreed_to_by_that() {
    let (_folder, app) = app().await;
    let mut agent = Agent::new("toucher", "Toucher", RunnerKind::Process);
    agent.settings.insert("program", "true");
    app.save_agent(agent.clone()).await.unwrap();
    assert!(app.consent_needed([&PinnedAgent::new(agent.clone())]).unwrap().is_empty());
    agent.settings.insert("program", "false");
    assert_eq!(app.consent_needed([&PinnedAgent::new(agent)]).unwrap().len(), 1);
}

#[tokio::test]
async fn an_agent_is_not_removed_while_published_workflows_use_it() {
    let (_folder, app) = app().await;
    app.import_agents(file("true").as_bytes(), Trust::Given).await.unwrap();
    let id = app.create_workflow(HERE, Kind::Workflow, definition()).await.unwrap().header.id;
    app.publish(HERE, id, 1).await.unwrap();
    let error = app.remove_agent(&"toucher".into()).await.unwrap_err();
    assert_eq!(error.code(), "agentInUse");
    assert!(error.to_string().contains("Touch"), "{error}");
    app.unpublish(HERE, id, 2).await.unwrap();
    app.remove_agent(&"toucher".into()).await.unwrap();
    let error = app.agent(&"toucher".into()).unwrap_err();
    assert_eq!(error.code(), "agentNotFound");
    let error = app.remove_agent(&"toucher".into()).await.unwrap_err();
    assert_eq!(error.code(), "agentNotFound");
}
