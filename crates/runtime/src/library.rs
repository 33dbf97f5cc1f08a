//! The library: workflows and blueprints, as people edit, publish and run them.

use std::collections::BTreeSet;

use engine::agent::AgentSet;
use engine::definition::{Definition, FileError, Problem};
use engine::ids::{Digest, WorkflowId};
use engine::plan::compile::{Compiled, compile, compile_again};
use engine::plan::diagnostic::Diagnostic;
use engine::value::Value;
use uuid::Uuid;

use crate::app::App;
use crate::app::start::StartError;
use crate::store::error::StoreError;
use crate::store::workflow_table::{
    WorkflowContent, WorkflowError, WorkflowFilter, WorkflowHeader, WorkflowRecord, WorkflowStatus,
};

pub mod naming;
pub mod publishing;
pub mod running;
pub mod shipped;

#[cfg(test)]
mod tests;

/// The workspace column of blueprints, which all workspaces share. No workspace has this name.
pub const SHARED: &str = "";

/// A workflow or blueprint of the library.
#[derive(Clone, Debug, PartialEq)]
pub struct Workflow {
    /// Everything about it but the definition.
    pub header: WorkflowHeader,
    /// The definition as it is edited. A stored one that cannot be read is given as its text, to be
    /// repaired or exported; it can be neither published nor run.
    pub definition: Result<Definition, Unreadable>,
}

/// A stored definition that is not one any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// What is stored.
    pub text: String,
    /// What is wrong with it.
    pub problems: Vec<Problem>,
}

/// Why something was not done in the library. In every case nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// It was deleted, or never existed.
    #[error("Workflow not found")]
    NotFound {
        /// Which.
        id: WorkflowId,
    },
    /// It belongs to another workspace.
    #[error("Access denied")]
    AccessDenied {
        /// Which.
        id: WorkflowId,
    },
    /// Somebody else changed it first.
    #[error("Conflict: workflow was modified concurrently. Please retry.")]
    Conflict {
        /// Which.
        id: WorkflowId,
        /// The version that the change was made on.
        expected: u64,
        /// The version that there is.
        actual: u64,
    },
    /// Published workflows stay.
    #[error("Cannot delete a published workflow. Unpublish it first.")]
    DeletePublished {
        /// Which.
        id: WorkflowId,
    },
    /// Published blueprints are read-only.
    #[error("Cannot edit a published blueprint. Unpublish it first, or open a copy.")]
    EditPublishedBlueprint {
        /// Which.
        id: WorkflowId,
    },
    /// It has no published version.
    #[error("Only published workflows can be executed")]
    NotPublished {
        /// Which.
        id: WorkflowId,
    },
    /// Drafts of blueprints are not for use.
    #[error("Only published blueprints can be imported")]
    BlueprintNotPublished {
        /// Which.
        id: WorkflowId,
    },
    /// It has errors.
    #[error("the workflow has errors and cannot be published")]
    Invalid {
        /// All that is to be said about it.
        diagnostics: Vec<Diagnostic>,
    },
    /// What is stored is not a workflow any more.
    #[error(
        "the stored definition of workflow {id} is damaged; export it, repair the file and import \
         it again:\n{}",
        Problem::list(problems)
    )]
    Damaged {
        /// Which.
        id: WorkflowId,
        /// What is wrong with it.
        problems: Vec<Problem>,
    },
    /// A file does not hold workflows.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file that should replace one workflow holds another number of them.
    #[error("the file holds {found} workflows; to replace one, it must hold exactly one")]
    NotOne {
        /// How many it holds.
        found: usize,
    },
    /// The execution was not started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The store could not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl LibraryError {
    /// Names the kind of error for programs; never changes.
    pub fn code(&self) -> &'static str {
        match self {
            LibraryError::NotFound { .. } => "workflowNotFound",
            LibraryError::AccessDenied { .. } => "accessDenied",
            LibraryError::Conflict { .. } => "workflowConflict",
            LibraryError::DeletePublished { .. } => "deletePublished",
            LibraryError::EditPublishedBlueprint { .. } => "editPublishedBlueprint",
            LibraryError::NotPublished { .. } => "notPublished",
            LibraryError::BlueprintNotPublished { .. } => "blueprintNotPublished",
            LibraryError::Invalid { .. } => "invalidWorkflow",
            LibraryError::Damaged { .. } => "damagedWorkflow",
            LibraryError::File(_) => "badFile",
            LibraryError::NotOne { .. } => "notOneWorkflow",
            LibraryError::Start(_) => "notStarted",
            LibraryError::Store(_) => "storeUnavailable",
        }
    }
}

impl From<WorkflowError> for LibraryError {
    fn from(error: WorkflowError) -> Self {
        match error {
            WorkflowError::Conflict { id, expected, actual } => {
                LibraryError::Conflict { id, expected, actual }
            }
            WorkflowError::NotFound { id } => LibraryError::NotFound { id },
            WorkflowError::Store(error) => LibraryError::Store(error),
        }
    }
}

/// Which kind of record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A workflow of a workspace.
    Workflow,
    /// A template for workflows.
    Blueprint,
}

impl App {
    /// Adds a draft. If its name is taken, it gets a free one.
    pub async fn create_workflow(
        &self,
        workspace: &str,
        kind: Kind,
        definition: Definition,
    ) -> Result<Workflow, LibraryError> {
        let mut created = self.create_drafts(workspace, kind, vec![definition]).await?;
        Ok(created.pop().expect("one draft was given and one was made"))
    }

    /// A workflow of the workspace, or a blueprint.
    pub fn workflow(&self, workspace: &str, id: WorkflowId) -> Result<Workflow, LibraryError> {
        let record = self.store().workflow(id)?.ok_or(LibraryError::NotFound { id })?;
        let belongs_to = &record.header.workspace;
        if !record.header.is_blueprint && belongs_to != workspace {
            return Err(LibraryError::AccessDenied { id });
        }
        Ok(Workflow::from_record(record))
    }

    /// The workflows of the workspace, or all blueprints, last changed first.
    pub fn workflows(
        &self,
        workspace: &str,
        kind: Kind,
        status: Option<WorkflowStatus>,
    ) -> Result<Vec<WorkflowHeader>, LibraryError> {
        let (workspace, is_blueprint) = match kind {
            Kind::Workflow => (Some(workspace.to_owned()), false),
            Kind::Blueprint => (None, true),
        };
        let filter = WorkflowFilter { workspace, status, is_blueprint: Some(is_blueprint) };
        Ok(self.store().workflows(&filter)?)
    }

    /// Gives a workflow another definition, and says its new version. What is published of it
    /// stays until it is published again.
    pub async fn update_workflow(
        &self,
        workspace: &str,
        id: WorkflowId,
        expected: u64,
        definition: Definition,
    ) -> Result<u64, LibraryError> {
        let workflow = self.workflow(workspace, id)?;
        let header = &workflow.header;
        if header.is_blueprint && header.status == WorkflowStatus::Published {
            return Err(LibraryError::EditPublishedBlueprint { id });
        }
        let content = WorkflowContent {
            name: definition.name.clone().unwrap_or_default(),
            definition: document(&as_draft(definition)),
            // From here on it is a person's, and no newer shipment takes its place.
            shipped: None,
            ..content_of(&workflow)
        };
        Ok(self.store().update_workflow(id, expected, content, self.driver().now()).await?)
    }

    /// Gives a workflow another name, and says its new version.
    pub async fn rename_workflow(
        &self,
        workspace: &str,
        id: WorkflowId,
        expected: u64,
        name: &str,
    ) -> Result<u64, LibraryError> {
        let mut definition = self.workflow(workspace, id)?.readable()?;
        definition.name = Some(name.to_owned());
        self.update_workflow(workspace, id, expected, definition).await
    }

    /// Adds a draft that is a copy of a workflow, under a free name.
    pub async fn duplicate_workflow(
        &self,
        workspace: &str,
        id: WorkflowId,
    ) -> Result<Workflow, LibraryError> {
        let workflow = self.workflow(workspace, id)?;
        let kind = workflow.kind();
        let definition = workflow.readable()?;
        self.create_workflow(workspace, kind, definition).await
    }

    /// Adds a draft to the workspace that is a copy of a published blueprint.
    pub async fn copy_blueprint(
        &self,
        workspace: &str,
        id: WorkflowId,
    ) -> Result<Workflow, LibraryError> {
        let blueprint = self.workflow(workspace, id)?;
        if blueprint.kind() != Kind::Blueprint
            || blueprint.header.status != WorkflowStatus::Published
        {
            return Err(LibraryError::BlueprintNotPublished { id });
        }
        let definition = blueprint.readable()?;
        // A blueprint's name is taken even though it is not in this workspace.
        let mut copies = self.create_copies(workspace, Kind::Workflow, vec![definition]).await?;
        Ok(copies.pop().expect("one definition was given and one draft was made"))
    }

    /// Removes a workflow that is not published. Its executions stay.
    pub async fn delete_workflow(
        &self,
        workspace: &str,
        id: WorkflowId,
        expected: u64,
    ) -> Result<(), LibraryError> {
        if self.workflow(workspace, id)?.header.status == WorkflowStatus::Published {
            return Err(LibraryError::DeletePublished { id });
        }
        Ok(self.store().delete_workflow(id, expected).await?)
    }

    /// Adds drafts, all or none, each under its name if that is free.
    pub(crate) async fn create_drafts(
        &self,
        workspace: &str,
        kind: Kind,
        definitions: Vec<Definition>,
    ) -> Result<Vec<Workflow>, LibraryError> {
        self.add(workspace, kind, definitions, naming::free).await
    }

    async fn create_copies(
        &self,
        workspace: &str,
        kind: Kind,
        definitions: Vec<Definition>,
    ) -> Result<Vec<Workflow>, LibraryError> {
        self.add(workspace, kind, definitions, naming::copy).await
    }

    async fn add(
        &self,
        workspace: &str,
        kind: Kind,
        definitions: Vec<Definition>,
        name_for: naming::Naming,
    ) -> Result<Vec<Workflow>, LibraryError> {
        let workspace = match kind {
            Kind::Workflow => workspace,
            Kind::Blueprint => SHARED,
        };
        let drafts: Vec<(WorkflowId, Definition)> = definitions
            .into_iter()
            .map(|definition| (WorkflowId(Uuid::now_v7()), as_draft(definition)))
            .collect();
        let ids: Vec<WorkflowId> = drafts.iter().map(|(id, _)| *id).collect();
        let belongs_to = workspace.to_owned();
        let make = move |taken: &BTreeSet<String>| {
            let mut taken = taken.clone();
            let named = drafts.iter().map(|(id, definition)| {
                let mut definition = definition.clone();
                definition.name =
                    definition.name.map(|name| name_for(&name, &|name| taken.contains(name)));
                taken.extend(definition.name.clone());
                (*id, draft(&belongs_to, kind, &definition))
            });
            named.collect()
        };
        let now = self.driver().now();
        self.store().create_workflows(workspace.to_owned(), make, now).await?;
        ids.into_iter().map(|id| self.workflow(workspace, id)).collect()
    }

    /// What is to be said about a definition on this machine.
    pub(crate) fn compiled(
        &self,
        kind: Kind,
        definition: &Definition,
        agents: &AgentSet,
    ) -> Compiled {
        match kind {
            Kind::Workflow => compile(definition, agents),
            // A template may name agents that whoever uses it is to choose.
            Kind::Blueprint => compile_again(definition, agents),
        }
    }
}

/// The version of the format that drafts without one get.
const FORMAT_VERSION: &str = "1.0.0";

impl Workflow {
    fn from_record(record: WorkflowRecord) -> Workflow {
        let read = Value::parse(&record.definition)
            .map_err(|error| {
                vec![Problem {
                    place: String::new(),
                    message: error.to_string(),
                    hint: "repair the text".to_owned(),
                }]
            })
            .and_then(Definition::from_value);
        let text = record.definition;
        let definition = read.map_err(|problems| Unreadable { text, problems });
        Workflow { header: record.header, definition }
    }

    /// Whether it is a workflow or a blueprint.
    pub fn kind(&self) -> Kind {
        if self.header.is_blueprint { Kind::Blueprint } else { Kind::Workflow }
    }

    /// What people call it.
    pub fn title(&self) -> &str {
        title(&self.header)
    }

    /// Whether it was changed since it was published.
    pub fn has_unpublished_changes(&self) -> bool {
        let Some(published) = &self.header.published else { return false };
        match &self.definition {
            Ok(definition) => Digest::of(document(definition).as_bytes()) != published.document,
            Err(_) => true,
        }
    }

    /// Its definition, if what is stored is one.
    pub fn readable(self) -> Result<Definition, LibraryError> {
        let id = self.header.id;
        self.definition
            .map_err(|unreadable| LibraryError::Damaged { id, problems: unreadable.problems })
    }

    fn text(&self) -> String {
        match &self.definition {
            Ok(definition) => document(definition),
            Err(unreadable) => unreadable.text.clone(),
        }
    }
}

/// What people call a workflow.
pub fn title(header: &WorkflowHeader) -> &str {
    if header.name.trim().is_empty() { "Untitled workflow" } else { &header.name }
}

/// A definition's text as it is stored and pinned.
pub(crate) fn document(definition: &Definition) -> String {
    definition.to_value().to_json()
}

/// The definition without what each record has of its own, and with a version of the format.
fn as_draft(mut definition: Definition) -> Definition {
    for field in ["id", "createdAt", "updatedAt"] {
        definition.extra.remove(field);
    }
    definition.version.get_or_insert_with(|| FORMAT_VERSION.to_owned());
    Definition { id: None, created_at: None, updated_at: None, ..definition }
}

fn draft(workspace: &str, kind: Kind, definition: &Definition) -> WorkflowContent {
    WorkflowContent {
        workspace: workspace.to_owned(),
        name: definition.name.clone().unwrap_or_default(),
        status: WorkflowStatus::Draft,
        is_blueprint: kind == Kind::Blueprint,
        published: None,
        publishes: None,
        shipped: None,
        definition: document(definition),
    }
}

/// The content of a workflow as it stands.
pub(crate) fn content_of(workflow: &Workflow) -> WorkflowContent {
    let header = &workflow.header;
    WorkflowContent {
        workspace: header.workspace.clone(),
        name: header.name.clone(),
        status: header.status,
        is_blueprint: header.is_blueprint,
        published: header.published,
        publishes: None,
        shipped: header.shipped.clone(),
        definition: workflow.text(),
    }
}
