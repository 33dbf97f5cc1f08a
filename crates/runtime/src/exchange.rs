//! Exchange: workflows in from files and out to files. Runs nothing and fetches nothing.

use engine::agent::AgentSet;
use engine::definition::{
    Definition, Note, ReadDefinition, UnknownField, read_file, suggested_file_name,
};
use engine::ids::{AgentId, WorkflowId};
use engine::plan::compile::compile;
use engine::plan::diagnostic::Diagnostic;
use engine::value::Value;

use crate::app::App;
use crate::library::publishing::agents_named;
use crate::library::{Kind, LibraryError};

#[cfg(test)]
mod tests;

/// What became of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportReport {
    /// Its workflows, in order.
    pub imported: Vec<Imported>,
}

/// A workflow that was imported as a draft.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The draft.
    pub id: WorkflowId,
    /// Its name.
    pub name: String,
    /// The name in the file, if that was taken.
    pub renamed_from: Option<String>,
    /// How the file was read: edges that were merged, ids that were made up.
    pub notes: Vec<Note>,
    /// Fields that this version does not know. They are kept and exported.
    pub unknown_fields: Vec<UnknownField>,
    /// Agents that it names and that this machine does not have.
    pub missing_agents: Vec<AgentId>,
    /// All that is to be said about it on this machine.
    pub diagnostics: Vec<Diagnostic>,
}

/// What is to be said about a workflow of a file that was only looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct Validated {
    /// What people call it.
    pub title: String,
    /// How the file was read.
    pub notes: Vec<Note>,
    /// Everything found.
    pub diagnostics: Vec<Diagnostic>,
}

impl Validated {
    /// Whether it could be published and run.
    pub fn is_valid(&self) -> bool {
        !self.diagnostics.iter().any(Diagnostic::is_error)
    }
}

/// A workflow on its way to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// A name for the file that is one on every system.
    pub file_name: String,
    /// Its text.
    pub text: String,
}

impl App {
    /// Imports the workflows of a file as new drafts, all or none.
    pub async fn import(
        &self,
        workspace: &str,
        bytes: &[u8],
    ) -> Result<ImportReport, LibraryError> {
        let read = read_file(bytes)?;
        let agents = self.agent_set()?;
        let notes: Vec<Vec<Note>> = read.iter().map(|read| read.notes.clone()).collect();
        let wished: Vec<Option<String>> =
            read.iter().map(|read| read.definition.name.clone()).collect();
        let definitions = read.into_iter().map(|read| read.definition).collect();
        let drafts = self.create_drafts(workspace, Kind::Workflow, definitions).await?;
        let mut imported = Vec::with_capacity(drafts.len());
        for ((draft, notes), wished) in drafts.into_iter().zip(notes).zip(wished) {
            let (id, name) = (draft.header.id, draft.header.name.clone());
            let definition = draft.readable()?;
            imported.push(Imported {
                id,
                renamed_from: wished.filter(|wished| *wished != name),
                name,
                notes,
                unknown_fields: definition.unknown_fields(),
                missing_agents: missing_agents(&definition, &agents),
                diagnostics: compile(&definition, &agents).diagnostics,
            });
        }
        Ok(ImportReport { imported })
    }

    /// Gives a workflow the definition of a file that holds exactly one, and says its new version.
    pub async fn replace(
        &self,
        workspace: &str,
        id: WorkflowId,
        expected: u64,
        bytes: &[u8],
    ) -> Result<u64, LibraryError> {
        let mut read = read_file(bytes)?;
        let found = read.len();
        let Some(ReadDefinition { definition, .. }) = read.pop().filter(|_| found == 1) else {
            return Err(LibraryError::NotOne { found });
        };
        self.update_workflow(workspace, id, expected, definition).await
    }

    /// The text of a workflow's file. The same record always gives the same text.
    pub fn export(&self, workspace: &str, id: WorkflowId) -> Result<Exported, LibraryError> {
        let workflow = self.workflow(workspace, id)?;
        let header = &workflow.header;
        let file_name = suggested_file_name(&header.name);
        let text = match workflow.definition {
            Ok(definition) => Definition {
                id: Some(Value::from(id.to_string())),
                created_at: Some(header.created_at.to_rfc3339()),
                updated_at: Some(header.updated_at.to_rfc3339()),
                ..definition
            }
            .to_file(),
            // To be repaired by hand: exactly what is stored.
            Err(unreadable) => unreadable.text,
        };
        Ok(Exported { file_name, text })
    }

    /// Looks at the workflows of a file with the agents given.
    pub fn validate(
        &self,
        bytes: &[u8],
        agents: &AgentSet,
    ) -> Result<Vec<Validated>, LibraryError> {
        Ok(validate(bytes, agents)?)
    }
}

/// Looks at the workflows of a file with the agents given. Needs no store.
pub fn validate(
    bytes: &[u8],
    agents: &AgentSet,
) -> Result<Vec<Validated>, engine::definition::FileError> {
    let looked = read_file(bytes)?.into_iter().map(|read| Validated {
        title: read.definition.title().to_owned(),
        notes: read.notes,
        diagnostics: compile(&read.definition, agents).diagnostics,
    });
    Ok(looked.collect())
}

fn missing_agents(definition: &Definition, agents: &AgentSet) -> Vec<AgentId> {
    agents_named(definition).into_iter().filter(|agent| !agents.contains_key(agent)).collect()
}
