//! Publishing: from a draft to an immutable plan, and back.

use std::collections::BTreeSet;

use engine::definition::Definition;
use engine::ids::{AgentId, Digest, WorkflowId};
use engine::plan::compile::COMPILER_VERSION;
use engine::plan::diagnostic::Diagnostic;

use super::{LibraryError, content_of, document};
use crate::app::App;
use crate::store::plan_table::PlanRow;
use crate::store::workflow_table::{Published, WorkflowContent, WorkflowStatus};

/// A workflow that was published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishReport {
    /// The record's version now.
    pub version: u64,
    /// The plan that runs.
    pub plan: Digest,
    /// What is worth knowing about it: no errors.
    pub diagnostics: Vec<Diagnostic>,
}

impl App {
    /// Publishes a workflow's definition as it stands. If it has errors, nothing is changed.
    pub async fn publish(
        &self,
        workspace: &str,
        id: WorkflowId,
        expected: u64,
    ) -> Result<PublishReport, LibraryError> {
        let workflow = self.workflow(workspace, id)?;
        let kind = workflow.kind();
        let content = content_of(&workflow);
        let definition = workflow.readable()?;
        let compiled = self.compiled(kind, &definition, &self.agent_set()?);
        let Some(plan) = compiled.plan else {
            return Err(LibraryError::Invalid { diagnostics: compiled.diagnostics });
        };
        let (row, text) = plan_row(plan.digest, &definition, &compiled.diagnostics);
        let content = WorkflowContent {
            status: WorkflowStatus::Published,
            published: Some(Published { plan: row.digest, document: row.document }),
            publishes: Some((row, text)),
            ..content
        };
        let now = self.driver().now();
        let version = self.store().update_workflow(id, expected, content, now).await?;
        Ok(PublishReport { version, plan: plan.digest, diagnostics: compiled.diagnostics })
    }

    /// Makes a published workflow a draft again, and says its new version.
    pub async fn unpublish(
        &self,
        workspace: &str,
        id: WorkflowId,
        expected: u64,
    ) -> Result<u64, LibraryError> {
        let workflow = self.workflow(workspace, id)?;
        let content = WorkflowContent {
            status: WorkflowStatus::Draft,
            published: None,
            shipped: None,
            ..content_of(&workflow)
        };
        Ok(self.store().update_workflow(id, expected, content, self.driver().now()).await?)
    }

    /// The titles of the published workflows that name an agent.
    pub(crate) fn publishers_using(&self, agent: &AgentId) -> Result<Vec<String>, LibraryError> {
        let filter = crate::store::workflow_table::WorkflowFilter {
            status: Some(WorkflowStatus::Published),
            is_blueprint: Some(false),
            ..Default::default()
        };
        let mut users = Vec::new();
        for header in self.store().workflows(&filter)? {
            let Some(published) = header.published else { continue };
            let definition = read_document(&self.store().text(published.document)?)
                .map_err(|problems| LibraryError::Damaged { id: header.id, problems })?;
            if agents_named(&definition).contains(agent) {
                users.push(super::title(&header).to_owned());
            }
        }
        Ok(users)
    }
}

/// The agents that a definition's nodes name.
pub fn agents_named(definition: &Definition) -> BTreeSet<AgentId> {
    let named = definition.nodes.iter().filter_map(|node| node.agent_id.as_deref());
    named.map(AgentId::from).collect()
}

/// The row of a plan, with the text of the definition it was compiled from.
pub(super) fn plan_row(
    digest: Digest,
    definition: &Definition,
    diagnostics: &[Diagnostic],
) -> (PlanRow, String) {
    let text = document(definition);
    let row = PlanRow {
        digest,
        document: Digest::of(text.as_bytes()),
        compiler_version: COMPILER_VERSION,
        diagnostics: serde_json::to_string(diagnostics).expect("findings are plain data"),
    };
    (row, text)
}

/// Reads the text of a pinned definition back.
pub(super) fn read_document(text: &str) -> Result<Definition, Vec<engine::definition::Problem>> {
    let value = engine::value::Value::parse(text).map_err(|error| {
        let hint = "restore a backup, or run `cyanotype check`".to_owned();
        let problem =
            engine::definition::Problem { place: String::new(), message: error.to_string(), hint };
        vec![problem]
    })?;
    Definition::from_value(value)
}
