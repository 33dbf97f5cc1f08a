//! Running workflows of the library: what is published, or the draft for a try.

use std::sync::Arc;

use engine::agent::AgentSet;
use engine::definition::Definition;
use engine::ids::WorkflowId;
use engine::scheduler::event::Trigger;
use engine::value::Value;

use super::publishing::read_document;
use super::{Kind, LibraryError, Workflow};
use crate::app::App;
use crate::app::start::{MissingAgents, StartRequest, Started};

/// Which version of a workflow is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// What was published last.
    Published,
    /// The definition as it is edited; its executions are marked as tries.
    Draft,
}

/// What a workflow of the library is started with.
#[derive(Clone, Debug)]
pub struct WorkflowStart {
    /// The workspace it is started in.
    pub workspace: String,
    /// Which workflow.
    pub workflow: WorkflowId,
    /// Which version of it.
    pub version: Version,
    /// The agents that exist for it.
    pub agents: AgentSet,
    /// The execution input; absent means `{}`.
    pub input: Option<Value>,
    /// Makes repeating this start harmless.
    pub idempotency_key: Option<String>,
}

impl App {
    /// Starts a workflow of the library.
    pub async fn start_workflow(&self, start: WorkflowStart) -> Result<Started, LibraryError> {
        let definition = self.definition_to_run(&start.workspace, start.workflow, start.version)?;
        let is_blueprint =
            self.workflow(&start.workspace, start.workflow)?.kind() == Kind::Blueprint;
        let (trigger, missing_agents) = match start.version {
            // Published while its agents existed: those that are gone are for the nodes to fail
            // on. A blueprint was published without them, so it is refused like a draft.
            Version::Published if !is_blueprint => (Trigger::Manual, MissingAgents::FailNodes),
            Version::Published => (Trigger::Manual, MissingAgents::Refuse),
            Version::Draft => (Trigger::TestRun, MissingAgents::Refuse),
        };
        let request = StartRequest {
            definition: Arc::new(definition),
            agents: Arc::new(start.agents),
            workflow: Some(start.workflow),
            workspace: start.workspace,
            source: None,
            trigger,
            input: start.input,
            idempotency_key: start.idempotency_key,
            missing_agents,
        };
        Ok(self.start(request).await?)
    }

    /// The definition that a start would run.
    pub fn definition_to_run(
        &self,
        workspace: &str,
        id: WorkflowId,
        version: Version,
    ) -> Result<Definition, LibraryError> {
        let workflow: Workflow = self.workflow(workspace, id)?;
        match (version, workflow.header.published) {
            (Version::Draft, _) => workflow.readable(),
            (Version::Published, None) => Err(LibraryError::NotPublished { id }),
            (Version::Published, Some(published)) => {
                read_document(&self.store().text(published.document)?)
                    .map_err(|problems| LibraryError::Damaged { id, problems })
            }
        }
    }
}
