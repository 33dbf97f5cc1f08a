//! Bringing an execution back from the store.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::agent::{Agent, AgentSet, PinnedAgent};
use engine::definition::Definition;
use engine::ids::{Digest, ExecutionId};
use engine::journal::Record;
use engine::plan::Plan;
use engine::plan::compile::compile_again;
use engine::scheduler::Execution;
use engine::scheduler::event::Event;
use engine::value::Value;

use super::Shared;
use crate::store::Store;
use crate::store::error::StoreError;

/// Why an execution could not be brought back. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The store could not be read, or the execution is unknown.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What is stored does not fit together.
    #[error("execution {execution} is damaged: {what}")]
    Damaged {
        /// Which.
        execution: ExecutionId,
        /// What does not fit.
        what: String,
    },
}

/// An execution's journal with everything it is folded against.
#[derive(Debug)]
pub struct Loaded {
    /// Which execution.
    pub id: ExecutionId,
    /// Its plan.
    pub plan: Arc<Plan>,
    /// The definition as it was drawn.
    pub document: Arc<Definition>,
    /// The agents it pins.
    pub agents: Arc<AgentSet>,
    /// Its whole journal.
    pub records: Vec<Record>,
}

/// Reads an execution's journal, plan and agents.
pub fn load(store: &Store, id: ExecutionId) -> Result<Loaded, LoadError> {
    let damaged = |what: String| LoadError::Damaged { execution: id, what };
    let records = store.journal(id)?;
    let started = match records.first().map(|record| &record.event) {
        Some(Event::ExecutionStarted(started)) => started.clone(),
        Some(other) => return Err(damaged(format!("its first record is a {}", other.kind()))),
        None => return Err(StoreError::UnknownExecution { execution: id }.into()),
    };
    let mut agents = BTreeMap::new();
    for pinned in &started.agents {
        let agent = read_agent(&store.text(pinned.digest)?)
            .map_err(|why| damaged(format!("agent {}: {why}", pinned.id)))?;
        agents.insert(pinned.id.clone(), Arc::new(PinnedAgent { agent, digest: pinned.digest }));
    }
    let (document, plan) = read_plan(&store.text(started.document)?, started.plan, &agents)
        .map_err(|why| damaged(format!("plan {}: {why}", started.plan)))?;
    let numbered = records.iter().zip(1..).all(|(record, n)| record.seq.0 == n);
    if !numbered {
        return Err(damaged("its records are not numbered without gaps".to_owned()));
    }
    Ok(Loaded { id, plan, document, agents: Arc::new(agents), records })
}

/// Folds an execution back into memory.
pub(super) fn load_execution(shared: &Shared, id: ExecutionId) -> Result<Execution, LoadError> {
    let loaded = load(&shared.store, id)?;
    Ok(loaded.replay(shared.limits))
}

impl Loaded {
    /// The execution that the journal folds to.
    pub fn replay(&self, limits: engine::scheduler::OverrideLimits) -> Execution {
        let (plan, agents) = (Arc::clone(&self.plan), Arc::clone(&self.agents));
        Execution::replay(self.id, plan, agents, limits, &self.records)
    }
}

fn read_agent(text: &str) -> Result<Agent, String> {
    let value = Value::parse(text).map_err(|error| error.to_string())?;
    Agent::from_value(&value).map_err(|problems| join(&problems))
}

fn read_plan(
    text: &str,
    digest: Digest,
    agents: &AgentSet,
) -> Result<(Arc<Definition>, Arc<Plan>), String> {
    let value = Value::parse(text).map_err(|error| error.to_string())?;
    let definition = Definition::from_value(value).map_err(|problems| join(&problems))?;
    let compiled = compile_again(&definition, agents);
    let plan = compiled.plan.ok_or_else(|| "it no longer compiles".to_owned())?;
    if plan.digest != digest {
        return Err(format!("the definition kept for it compiles to {}", plan.digest));
    }
    Ok((Arc::new(definition), Arc::new(plan)))
}

fn join<T: ToString>(problems: &[T]) -> String {
    problems.iter().map(T::to_string).collect::<Vec<_>>().join("; ")
}
