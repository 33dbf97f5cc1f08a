//! Starting executions.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::agent::AgentSet;
use engine::definition::Definition;
use engine::ids::{AgentId, Digest, ExecutionId, WorkflowId};
use engine::payload::Payload;
use engine::plan::compile::{COMPILER_VERSION, compile, compile_again};
use engine::plan::diagnostic::Diagnostic;
use engine::plan::{Plan, Work};
use engine::scheduler::Execution;
use engine::scheduler::event::Trigger;
use engine::scheduler::input::{Input, Start};
use engine::value::{Object, Value};
use uuid::Uuid;

use super::App;
use crate::roster::ConsentQuestion;
use crate::schema::{InputSchema, SchemaViolation};
use crate::store::append::{Append, AppendError};
use crate::store::create::{CreateError, Created, Idempotency, NewExecution};
use crate::store::error::StoreError;
use crate::store::plan_table::PlanRow;

/// What to run, and with what.
#[derive(Clone, Debug)]
pub struct StartRequest {
    /// What to run.
    pub definition: Arc<Definition>,
    /// The agents that exist for it; those that the definition names are pinned.
    pub agents: Arc<AgentSet>,
    /// The workflow whose version it is; absent for a file.
    pub workflow: Option<WorkflowId>,
    /// The workspace it belongs to.
    pub workspace: String,
    /// The file it was read from, for people.
    pub source: Option<String>,
    /// Why it is started.
    pub trigger: Trigger,
    /// The execution input; absent means `{}`.
    pub input: Option<Value>,
    /// Makes repeating this start harmless: the same key gives the same execution.
    pub idempotency_key: Option<String>,
    /// Whether an agent that does not exist is for the nodes to fail on, as it is for a version
    /// that was published when the agent existed.
    pub missing_agents: MissingAgents,
}

/// What an agent that does not exist means for a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingAgents {
    /// The start is refused.
    Refuse,
    /// The nodes that name it fail.
    FailNodes,
}

/// An execution that was started, or had been started before with the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// Which.
    pub execution: ExecutionId,
    /// Whether it existed before.
    pub existed: bool,
}

/// Why nothing was started. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The definition has errors.
    #[error("the workflow has errors and cannot run")]
    Invalid {
        /// All that is to be said about it.
        diagnostics: Vec<Diagnostic>,
    },
    /// The input schema itself cannot be used.
    #[error("the workflow's input schema cannot be used: {message}")]
    BadSchema {
        /// What is wrong with it.
        message: String,
    },
    /// The input does not fit the input schema.
    #[error("the input does not fit the workflow's input schema")]
    BadInput {
        /// What does not fit, and where.
        violations: Vec<SchemaViolation>,
    },
    /// It would run commands that nobody has agreed to.
    #[error("nobody has agreed to the commands that this would run")]
    ConsentNeeded {
        /// All of them.
        questions: Vec<ConsentQuestion>,
    },
    /// Consents could not be looked up.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The idempotency key was used for something else, or the store refused.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// The store did not take the execution's first records.
    #[error(transparent)]
    Append(#[from] AppendError),
}

impl App {
    /// Starts an execution and drives it. Returns once its first records are on disk.
    pub async fn start(&self, request: StartRequest) -> Result<Started, StartError> {
        let plan = compile_to_run(&request)?;
        let given = request.input.clone().unwrap_or_else(|| Value::Object(Object::default()));
        let input = fill_input(&plan, given.clone())?;
        let agents = Arc::new(pin(&plan, &request.agents));
        let questions = self.consent_needed(agents.values().map(|pinned| &**pinned))?;
        if !questions.is_empty() {
            return Err(StartError::ConsentNeeded { questions });
        }
        let document = Value::to_json(&request.definition.to_value());
        let id = ExecutionId(Uuid::now_v7());
        let mut execution =
            Execution::new(id, Arc::clone(&plan), Arc::clone(&agents), self.driver().limits());
        let start = Input::Start(Box::new(Start {
            document: Digest::of(document.as_bytes()),
            input: Payload::new(input),
            workflow: request.workflow,
            workspace: request.workspace.clone(),
            source: request.source.clone(),
            trigger: request.trigger,
            parent: None,
        }));
        let records =
            execution.decide(start, self.driver().now()).expect("a new execution can be started");
        let committed = execution.commit(&records);
        let new = NewExecution {
            idempotency: request
                .idempotency_key
                .map(|key| Idempotency { key, input: Digest::of(given.to_canonical().as_bytes()) }),
            plan: PlanRow {
                digest: plan.digest,
                document: Digest::of(document.as_bytes()),
                compiler_version: COMPILER_VERSION,
                diagnostics: "[]".to_owned(),
            },
            document,
            agents: agents
                .values()
                .map(|pinned| (pinned.digest, pinned.agent.to_value().to_canonical()))
                .collect(),
            first: Append {
                execution: id,
                owner: self.driver().owner(),
                expected: engine::ids::Seq(0),
                records,
                summary: execution.summary().expect("it has been started"),
                nodes: committed
                    .touched
                    .iter()
                    .filter_map(|idx| execution.node_summary(*idx))
                    .collect(),
                consumes: Vec::new(),
            },
        };
        match self.store().create_execution(new).await? {
            Created::Existing(execution) => Ok(Started { execution, existed: true }),
            Created::New(ticket) => {
                self.driver().drive(execution, committed.actions, ticket.clone());
                ticket.durable().await?;
                Ok(Started { execution: id, existed: false })
            }
        }
    }
}

/// The plan to run, if nothing stands against it.
fn compile_to_run(request: &StartRequest) -> Result<Arc<Plan>, StartError> {
    let compiled = match request.missing_agents {
        MissingAgents::Refuse => compile(&request.definition, &request.agents),
        MissingAgents::FailNodes => compile_again(&request.definition, &request.agents),
    };
    match compiled.plan {
        Some(plan) => Ok(Arc::new(plan)),
        None => Err(StartError::Invalid { diagnostics: compiled.diagnostics }),
    }
}

fn fill_input(plan: &Plan, given: Value) -> Result<Value, StartError> {
    let Some(schema) = &plan.input_schema else { return Ok(given) };
    let schema = InputSchema::compile(schema)
        .map_err(|error| StartError::BadSchema { message: error.to_string() })?;
    schema.fill_and_check(given).map_err(|violations| StartError::BadInput { violations })
}

/// The agents that a plan names and that exist.
fn pin(plan: &Plan, agents: &AgentSet) -> AgentSet {
    let named: BTreeMap<AgentId, ()> = plan
        .nodes
        .iter()
        .filter_map(|node| match &node.work {
            Work::Agent(id) => Some((id.clone(), ())),
            Work::Transform => None,
        })
        .collect();
    agents
        .iter()
        .filter(|(id, _)| named.contains_key(*id))
        .map(|(id, agent)| (id.clone(), Arc::clone(agent)))
        .collect()
}
