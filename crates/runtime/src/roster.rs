//! The roster: the agents of this machine, and a person's consent to what they run.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use engine::agent::{Agent, AgentSet, AgentsFileError, PinnedAgent, RunnerKind, read_file};
use engine::definition::Problem;
use engine::ids::{AgentId, Digest};
use engine::time::Timestamp;
use engine::value::Value;

use crate::app::App;
use crate::library::LibraryError;
use crate::store::agent_table::AgentRow;
use crate::store::consent_table::Consent;
use crate::store::error::StoreError;

#[cfg(test)]
mod tests;

/// An agent of this machine.
#[derive(Clone, Debug)]
pub struct RosterEntry {
    /// The record and its digest.
    pub pinned: Arc<PinnedAgent>,
    /// When it was last written; absent for the agent that every machine has.
    pub updated_at: Option<Timestamp>,
}

/// A command that a person has to agree to before it is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsentQuestion {
    /// Whose command it is.
    pub agent: AgentId,
    /// What people call the agent.
    pub name: String,
    /// The digest of everything the agent's record says: a consent is for exactly that.
    pub digest: Digest,
    /// The program.
    pub program: String,
    /// Its arguments, templates as they are written.
    pub arguments: Vec<String>,
    /// The folder it runs in; absent: the one Cyanotype runs in.
    pub folder: Option<String>,
    /// The environment variables that it sets.
    pub sets: Vec<String>,
    /// The environment variables that it is given beside the usual ones.
    pub takes: Vec<String>,
}

/// Whether a person has agreed beforehand to everything a file brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Contents that nobody has agreed to are refused.
    OnlyConsented,
    /// Importing is agreeing.
    Given,
}

/// What importing agents came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentsImport {
    /// Those that are new.
    pub added: Vec<AgentId>,
    /// Those that took the place of another content.
    pub replaced: Vec<AgentId>,
    /// Those that were there already.
    pub unchanged: Vec<AgentId>,
}

/// Why something was not done to the roster. In every case nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum RosterError {
    /// There is no such agent.
    #[error("Agent not found")]
    NotFound {
        /// Which.
        agent: AgentId,
    },
    /// The agent that every machine has stays as it is.
    #[error("the agent {agent} is built in; give yours another id")]
    BuiltIn {
        /// Which.
        agent: AgentId,
    },
    /// Published workflows use it.
    #[error(
        "Cannot remove agent {agent}: published workflows use it ({}). Unpublish them first.",
        workflows.join(", ")
    )]
    InUse {
        /// Which.
        agent: AgentId,
        /// What people call them.
        workflows: Vec<String>,
    },
    /// Nobody has agreed to its commands.
    #[error(
        "{} need consent before anything is run: {}",
        if questions.len() == 1 { "a command" } else { "commands" },
        questions.iter().map(|question| question.agent.as_str()).collect::<Vec<_>>().join(", ")
    )]
    ConsentNeeded {
        /// All of them.
        questions: Vec<ConsentQuestion>,
    },
    /// A file does not hold agents.
    #[error(transparent)]
    File(#[from] AgentsFileError),
    /// The library could not be read.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// The store could not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl RosterError {
    /// Names the kind of error for programs; never changes.
    pub fn code(&self) -> &'static str {
        match self {
            RosterError::NotFound { .. } => "agentNotFound",
            RosterError::BuiltIn { .. } => "builtInAgent",
            RosterError::InUse { .. } => "agentInUse",
            RosterError::ConsentNeeded { .. } => "consentNeeded",
            RosterError::File(_) => "badFile",
            RosterError::Library(error) => error.code(),
            RosterError::Store(_) => "storeUnavailable",
        }
    }
}

impl App {
    /// The agents of this machine, the built-in one first.
    pub fn agents(&self) -> Result<Vec<RosterEntry>, StoreError> {
        let built_in = RosterEntry { pinned: built_in(), updated_at: None };
        let stored = self.store().agents()?.into_iter().map(entry);
        std::iter::once(Ok(built_in)).chain(stored).collect()
    }

    /// One agent of this machine.
    pub fn agent(&self, agent: &AgentId) -> Result<RosterEntry, RosterError> {
        if agent.as_str() == Agent::ECHO_ID {
            return Ok(RosterEntry { pinned: built_in(), updated_at: None });
        }
        match self.store().agent(agent)? {
            Some(row) => Ok(entry(row)?),
            None => Err(RosterError::NotFound { agent: agent.clone() }),
        }
    }

    /// The agents of this machine as compiling and starting take them.
    pub fn agent_set(&self) -> Result<AgentSet, StoreError> {
        let entries = self.agents()?.into_iter();
        Ok(entries.map(|entry| (entry.pinned.agent.id.clone(), entry.pinned)).collect())
    }

    /// Adds the agents of a file, or puts them in place of those with their ids; all or none.
    /// Commands that nobody has agreed to are refused unless trust is given.
    pub async fn import_agents(
        &self,
        bytes: &[u8],
        trust: Trust,
    ) -> Result<AgentsImport, RosterError> {
        let agents: Vec<PinnedAgent> =
            read_file(bytes)?.into_iter().map(PinnedAgent::new).collect();
        self.refuse_built_in(&agents)?;
        let questions = self.consent_needed(&agents)?;
        if trust == Trust::OnlyConsented && !questions.is_empty() {
            return Err(RosterError::ConsentNeeded { questions });
        }
        self.give_consent(&questions).await?;
        let there: BTreeMap<AgentId, Digest> =
            self.store().agents()?.into_iter().map(|row| (row.id, row.digest)).collect();
        let mut report = AgentsImport::default();
        let mut rows = Vec::new();
        for pinned in &agents {
            let id = pinned.agent.id.clone();
            match there.get(&id) {
                Some(digest) if *digest == pinned.digest => report.unchanged.push(id),
                Some(_) => report.replaced.push(id),
                None => report.added.push(id),
            }
            rows.push(self.row(pinned));
        }
        self.store().put_agents(rows).await?;
        Ok(report)
    }

    /// Writes an agent that a person has put together here, which is also the consent to it.
    pub async fn save_agent(&self, agent: Agent) -> Result<(), RosterError> {
        let pinned = PinnedAgent::new(agent);
        self.refuse_built_in(std::slice::from_ref(&pinned))?;
        let questions = self.consent_needed([&pinned])?;
        self.give_consent(&questions).await?;
        Ok(self.store().put_agents(vec![self.row(&pinned)]).await?)
    }

    /// Removes an agent. Refused while published workflows use it.
    pub async fn remove_agent(&self, agent: &AgentId) -> Result<(), RosterError> {
        if agent.as_str() == Agent::ECHO_ID {
            return Err(RosterError::BuiltIn { agent: agent.clone() });
        }
        let workflows = self.publishers_using(agent)?;
        if !workflows.is_empty() {
            return Err(RosterError::InUse { agent: agent.clone(), workflows });
        }
        match self.store().remove_agent(agent.clone()).await? {
            true => Ok(()),
            false => Err(RosterError::NotFound { agent: agent.clone() }),
        }
    }

    /// The commands of these agents that nobody has agreed to yet.
    pub fn consent_needed<'a>(
        &self,
        agents: impl IntoIterator<Item = &'a PinnedAgent>,
    ) -> Result<Vec<ConsentQuestion>, StoreError> {
        let mut questions = Vec::new();
        for question in agents.into_iter().filter_map(question) {
            if !self.store().has_consent(question.digest)? {
                questions.push(question);
            }
        }
        Ok(questions)
    }

    /// Notes that a person has agreed to these commands.
    pub async fn give_consent(&self, questions: &[ConsentQuestion]) -> Result<(), StoreError> {
        for question in questions {
            let consent = Consent {
                digest: question.digest,
                subject: question.to_string(),
                given_at: self.driver().now(),
            };
            self.store().give_consent(consent).await?;
        }
        Ok(())
    }

    fn refuse_built_in(&self, agents: &[PinnedAgent]) -> Result<(), RosterError> {
        match agents.iter().find(|pinned| pinned.agent.id.as_str() == Agent::ECHO_ID) {
            Some(pinned) => Err(RosterError::BuiltIn { agent: pinned.agent.id.clone() }),
            None => Ok(()),
        }
    }

    fn row(&self, pinned: &PinnedAgent) -> AgentRow {
        AgentRow {
            id: pinned.agent.id.clone(),
            digest: pinned.digest,
            updated_at: self.driver().now(),
            body: pinned.agent.to_value().to_json(),
        }
    }
}

/// What a person has to agree to before an agent is run; `None` if it runs nothing of its own.
fn question(pinned: &PinnedAgent) -> Option<ConsentQuestion> {
    let agent = &pinned.agent;
    match agent.runner {
        RunnerKind::Process => {}
        RunnerKind::Echo | RunnerKind::Scripted => return None,
    }
    let text = |key: &str| agent.settings.get(key).and_then(Value::as_str);
    let texts = |key: &str| -> Vec<String> {
        let values = agent.settings.get(key).and_then(Value::as_array).unwrap_or_default();
        values.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let env = agent.settings.get("env").and_then(Value::as_object);
    Some(ConsentQuestion {
        agent: agent.id.clone(),
        name: agent.name.clone(),
        digest: pinned.digest,
        program: text("program").unwrap_or_default().to_owned(),
        arguments: texts("args"),
        folder: text("cwd").map(str::to_owned),
        sets: env.into_iter().flatten().map(|(name, _)| name.clone()).collect(),
        takes: texts("envAllow"),
    })
}

fn built_in() -> Arc<PinnedAgent> {
    Arc::new(PinnedAgent::new(Agent::built_in_echo()))
}

fn entry(row: AgentRow) -> Result<RosterEntry, StoreError> {
    let damaged = |what: String| StoreError::Damaged { what: format!("agent {}: {what}", row.id) };
    let value = Value::parse(&row.body).map_err(|error| damaged(error.to_string()))?;
    let agent = Agent::from_value(&value).map_err(|problems| damaged(Problem::list(&problems)))?;
    let pinned = Arc::new(PinnedAgent::new(agent));
    Ok(RosterEntry { pinned, updated_at: Some(row.updated_at) })
}

/// The command exactly as it would be run: the program, the arguments as a JSON list, the folder,
/// and the names of the environment variables.
impl fmt::Display for ConsentQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |texts: &[String]| {
            texts.iter().map(|text| Value::from(text.as_str())).collect::<Value>().to_json()
        };
        let folder = match &self.folder {
            Some(folder) => Value::from(folder.as_str()).to_json(),
            None => "the one Cyanotype runs in".to_owned(),
        };
        writeln!(f, "agent        {} ({})", self.name, self.agent)?;
        writeln!(f, "program      {}", Value::from(self.program.as_str()).to_json())?;
        writeln!(f, "arguments    {}", list(&self.arguments))?;
        writeln!(f, "folder       {folder}")?;
        let names = |names: &[String]| names.join(", ");
        match (&*self.sets, &*self.takes) {
            ([], []) => write!(f, "environment  the usual variables"),
            (sets, []) => write!(f, "environment  sets {}", names(sets)),
            ([], takes) => write!(f, "environment  is also given {}", names(takes)),
            (sets, takes) => {
                write!(f, "environment  sets {}; is also given {}", names(sets), names(takes))
            }
        }
    }
}
