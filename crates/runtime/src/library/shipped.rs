//! What the program brings along: blueprints, and the agents that some of them name. Part of the
//! program itself, so that they are there without any other file.

use std::sync::Arc;

use engine::agent::{self, Agent, AgentSet, PinnedAgent};
use engine::definition::{Definition, read_file};
use engine::ids::WorkflowId;
use engine::plan::compile::compile_again;
use uuid::Uuid;

use super::publishing::plan_row;
use super::{SHARED, as_draft, document};
use crate::app::App;
use crate::store::agent_table::AgentRow;
use crate::store::error::StoreError;
use crate::store::shipped_table::{ShippedAgent, ShippedBlueprint};
use crate::store::workflow_table::{Published, Shipped, WorkflowContent, WorkflowStatus};

/// A blueprint of the program.
struct Bundle {
    /// The name of its file, which names it for ever.
    origin: &'static str,
    text: &'static str,
    /// The version of its content, and of its agents'. A test compares it with the file.
    content_version: u32,
    /// The file of the agents it names, if it brings any along.
    agents: Option<&'static str>,
}

macro_rules! blueprint {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../blueprints/", $name))
    };
}

const BUNDLES: [Bundle; 8] = [
    Bundle {
        origin: "echo-demo-workflow.json",
        text: blueprint!("echo-demo-workflow.json"),
        content_version: 1,
        agents: None,
    },
    Bundle {
        origin: "sequential-agent-pipeline.json",
        text: blueprint!("sequential-agent-pipeline.json"),
        content_version: 1,
        agents: None,
    },
    Bundle {
        origin: "parallel-fan-out.json",
        text: blueprint!("parallel-fan-out.json"),
        content_version: 1,
        agents: None,
    },
    Bundle {
        origin: "conditional-router.json",
        text: blueprint!("conditional-router.json"),
        content_version: 1,
        agents: None,
    },
    Bundle {
        origin: "data-processing-pipeline.json",
        text: blueprint!("data-processing-pipeline.json"),
        content_version: 1,
        agents: None,
    },
    Bundle {
        origin: "git-repository-report.json",
        text: blueprint!("git-repository-report.json"),
        content_version: 1,
        agents: Some(blueprint!("git-repository-report.agents.json")),
    },
    Bundle {
        origin: "folder-inventory.json",
        text: blueprint!("folder-inventory.json"),
        content_version: 1,
        agents: Some(blueprint!("folder-inventory.agents.json")),
    },
    Bundle {
        origin: "machine-health.json",
        text: blueprint!("machine-health.json"),
        content_version: 1,
        agents: Some(blueprint!("machine-health.agents.json")),
    },
];

impl App {
    /// Puts the program's blueprints and agents into the library where they are new, and leaves
    /// alone what a person has changed or removed. Runs nothing: the agents' commands need the
    /// person's consent like any other before they are run.
    pub async fn unload_shipped(&self) -> Result<(), StoreError> {
        let bundles = BUNDLES.iter().map(|bundle| (bundle.origin, bundle.content_version));
        if self.store().has_shipped(bundles)? {
            return Ok(());
        }
        let now = self.driver().now();
        let blueprints = BUNDLES.iter().map(Bundle::blueprint).collect();
        let agents = BUNDLES.iter().flat_map(|bundle| {
            bundle.agents().into_iter().map(|pinned| ShippedAgent {
                row: AgentRow {
                    id: pinned.agent.id.clone(),
                    digest: pinned.digest,
                    updated_at: now,
                    body: pinned.agent.to_value().to_json(),
                },
                content_version: bundle.content_version,
            })
        });
        self.store().unload(blueprints, agents.collect(), now).await
    }
}

impl Bundle {
    fn definition(&self) -> Definition {
        let read = read_file(self.text.as_bytes());
        let mut read = read.unwrap_or_else(|error| panic!("{} is shipped: {error}", self.origin));
        read.pop().expect("a file holds at least one workflow").definition
    }

    fn agents(&self) -> Vec<PinnedAgent> {
        let Some(text) = self.agents else { return Vec::new() };
        let read = agent::read_file(text.as_bytes());
        let read = read.unwrap_or_else(|error| panic!("{}'s agents: {error}", self.origin));
        read.into_iter().map(PinnedAgent::new).collect()
    }

    fn blueprint(&self) -> ShippedBlueprint {
        let definition = as_draft(self.definition());
        let known = self.agents().into_iter().chain([PinnedAgent::new(Agent::built_in_echo())]);
        let known: AgentSet =
            known.map(|pinned| (pinned.agent.id.clone(), Arc::new(pinned))).collect();
        // A template may name agents that whoever uses it is to choose.
        let compiled = compile_again(&definition, &known);
        let plan = compiled
            .plan
            .unwrap_or_else(|| panic!("{} is shipped: {:?}", self.origin, compiled.diagnostics));
        let (row, text) = plan_row(plan.digest, &definition, &compiled.diagnostics);
        ShippedBlueprint {
            id: WorkflowId(Uuid::now_v7()),
            content: WorkflowContent {
                workspace: SHARED.to_owned(),
                name: definition.name.clone().unwrap_or_default(),
                status: WorkflowStatus::Published,
                is_blueprint: true,
                published: Some(Published { plan: row.digest, document: row.document }),
                publishes: Some((row, text)),
                shipped: Some(Shipped {
                    origin: self.origin.to_owned(),
                    content_version: self.content_version,
                }),
                definition: document(&definition),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::value::Value;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_file_of_the_folder_is_shipped_in_the_version_it_names() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../blueprints");
        let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let names: BTreeSet<String> = names
            .map(|name| name.into_string().unwrap())
            .filter(|name| name.ends_with(".json") && !name.ends_with(".agents.json"))
            .collect();
        let shipped = BUNDLES.iter().map(|bundle| bundle.origin.to_owned()).collect();
        assert_eq!(names, shipped);
        for bundle in &BUNDLES {
            let metadata = bundle.definition().metadata.unwrap_or_default();
            let version = metadata.get("contentVersion").and_then(Value::as_u64);
            assert_eq!(version, Some(bundle.content_version.into()), "{}", bundle.origin);
        }
    }

    #[test]
    fn every_shipped_blueprint_compiles_and_its_agents_are_whole() {
        for bundle in &BUNDLES {
            let blueprint = bundle.blueprint();
            assert_eq!(blueprint.content.status, WorkflowStatus::Published);
            assert_eq!(bundle.agents.is_some(), !bundle.agents().is_empty());
        }
    }
}
