//! The JSON Schema of the file format, generated from the types below.
//!
//! They mirror [`super::Definition`], [`super::Node`] and [`super::Edge`], which keep as written
//! what is only checked later; here stands what a file should say. A test holds both together.
#![allow(dead_code, reason = "these types are only described, never made")]

use std::collections::BTreeMap;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value as Json;

use crate::limits::{CONCURRENCY_MAX, NODES_MAX};
use crate::node;
use crate::plan::compile::{RETRIES_MAX, SECONDS_MAX};

/// What `$schema` says in a file of this format. A name, not an address: nothing is fetched.
pub const SCHEMA_ID: &str = "urn:cyanotype:schema:workflow:1";

/// Returns the JSON Schema (draft 2020-12) of the file format.
pub fn schema() -> Json {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<Workflow>();
    schema.insert("$id".to_owned(), SCHEMA_ID.into());
    schema.to_value()
}

/// Returns the text of the schema's file.
pub fn schema_file() -> String {
    format!("{:#}\n", schema())
}

/// A workflow of Cyanotype: nodes, the edges between them, and what holds for all of them.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", title = "Cyanotype workflow")]
struct Workflow {
    /// Names this schema.
    #[schemars(rename = "$schema", extend("examples" = [SCHEMA_ID]))]
    schema: Option<String>,
    /// The version of the format.
    #[schemars(extend("examples" = ["1.0.0"]))]
    version: String,
    /// Identifies the workflow where it came from; an import gives it a new one.
    id: Json,
    /// What people call it.
    name: Option<String>,
    /// What it is for.
    description: Option<String>,
    /// When it was made, RFC 3339 in UTC.
    created_at: Option<String>,
    /// When it was last changed, RFC 3339 in UTC.
    updated_at: Option<String>,
    /// What holds for all nodes.
    configuration: Option<ConfigurationForm>,
    /// JSON Schema of the execution input.
    input_schema: Option<JsonSchemaForm>,
    /// The node whose output is the execution's. Without it, the sinks' outputs are.
    final_output: Option<String>,
    /// The most time an execution may take.
    timeout: Option<Timeout>,
    /// What a node's failure does to the nodes behind it, where the node says nothing.
    on_failure: Option<OnFailure>,
    /// What there is to do.
    #[schemars(length(max = NODES_MAX))]
    nodes: Vec<Node>,
    /// What follows what.
    edges: Vec<Edge>,
    /// For catalogs and people.
    metadata: Option<Metadata>,
}

/// One thing to do.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
struct Node {
    /// Unique within the workflow.
    id: String,
    /// What kind of node it is; absent means agent.
    #[schemars(extend("enum" = node_types()))]
    r#type: Option<String>,
    /// Which version of that type it was written for.
    #[schemars(range(min = 1))]
    type_version: Option<u32>,
    /// What people call it; absent: the agent's name.
    name: Option<String>,
    /// The agent that does its work.
    agent_id: Option<String>,
    /// Where it stands on the canvas.
    position: Option<Position>,
    /// Parameters and overrides.
    configuration: Option<NodeConfigurationForm>,
    /// Its input, key by key: texts inside are templates such as {{ nodes.a.output.text }}.
    inputs: Option<BTreeMap<String, Json>>,
    /// When a failed attempt is repeated.
    retry_policy: Option<RetryPolicy>,
    /// The most time one attempt may take.
    timeout: Option<Timeout>,
    /// What its failure does to the nodes behind it.
    on_failure: Option<OnFailure>,
    /// Whether it is skipped.
    disabled: Option<bool>,
    /// How to undo it.
    compensation: Option<Compensation>,
    /// When it becomes ready; absent means all.
    join: Option<Join>,
    /// Rules for governance; kept.
    constraints: Option<Json>,
    /// The graph inside a container; kept.
    body: Option<Json>,
}

/// What follows what, and when.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
struct Edge {
    /// Unique within the workflow; absent: made from the ends.
    id: Option<String>,
    /// The node it starts at.
    source: String,
    /// The node it ends at.
    target: String,
    /// The port it starts at; absent means output. The port for failures is error.
    #[schemars(extend("examples" = ["output"]))]
    source_handle: Option<String>,
    /// The port it ends at; absent means input.
    #[schemars(extend("examples" = ["input"]))]
    target_handle: Option<String>,
    /// What the source's output must be like; absent means anything.
    condition: Option<Condition>,
}

#[derive(JsonSchema)]
struct Position {
    /// To the right, in pixels.
    x: f64,
    /// Downwards, in pixels.
    y: f64,
}

/// An object, or the same as JSON text.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum ConfigurationForm {
    Object(Box<Configuration>),
    Text(String),
}

/// What holds for all nodes.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
struct Configuration {
    /// Where other systems are, by name.
    integrations: Option<BTreeMap<String, Json>>,
    /// References to credentials, by name. Never the credentials.
    credentials: Option<BTreeMap<String, Json>>,
    /// Parameters of an agent, by agent id.
    agent_properties: Option<BTreeMap<String, BTreeMap<String, Json>>>,
    /// Parameters of every node.
    parameters: Option<BTreeMap<String, Json>>,
    /// How many nodes may run at the same time.
    #[schemars(range(min = 1, max = CONCURRENCY_MAX))]
    concurrency: Option<u32>,
    /// Whether and how completed nodes are undone after a failure.
    compensation: Option<CompensationRule>,
    /// The model every node uses.
    #[schemars(length(max = 256))]
    model_override: Option<String>,
    /// Added to every system prompt.
    #[schemars(length(max = 4000))]
    system_prompt_addition: Option<String>,
}

/// An object, or the same as JSON text.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum NodeConfigurationForm {
    Object(Box<NodeConfiguration>),
    Text(String),
}

/// Overrides, and the agent's parameters under their own names.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
struct NodeConfiguration {
    /// The model this node uses.
    #[schemars(length(max = 256))]
    model_override: Option<String>,
    /// Added to the system prompt of this node.
    #[schemars(length(max = 4000))]
    system_prompt_addition: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
struct CompensationRule {
    /// Whether anything is undone at all.
    enabled: Option<bool>,
    /// When.
    trigger: Option<CompensationTrigger>,
    /// What happens when undoing fails.
    on_failure: Option<CompensationOnFailure>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
struct CompensationTrigger {
    mode: Option<CompensationMode>,
    /// Nothing is undone if fewer nodes are completed.
    min_completed_nodes: Option<u64>,
    /// Whether a cancelled execution is undone too.
    on_cancel: Option<bool>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
enum CompensationMode {
    OnTerminalFailure,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
enum CompensationOnFailure {
    Stop,
    Continue,
}

/// How to undo a node.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
struct Compensation {
    /// An agent's id, or a tool as server/tool.
    tool: String,
    /// What it receives; ${output.path} is a part of this node's own output.
    args: Option<BTreeMap<String, Json>>,
    /// Whether the node changed the outside world; absent means true.
    side_effecting: Option<bool>,
}

/// When a failed attempt is repeated.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
struct RetryPolicy {
    /// Attempts after the first.
    #[schemars(range(max = RETRIES_MAX))]
    max_retries: u32,
    /// The first wait in seconds.
    #[schemars(range(min = 0.0, max = SECONDS_MAX))]
    backoff_base: Option<f64>,
    /// The longest wait in seconds.
    #[schemars(range(min = 0.0, max = SECONDS_MAX))]
    backoff_max: Option<f64>,
    /// Error types or classes that are retried; absent: what the class says.
    retryable_errors: Option<Vec<String>>,
    /// How the wait grows.
    strategy: Option<Strategy>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
enum Strategy {
    Exponential,
    Linear,
    Fixed,
}

/// In seconds.
#[derive(JsonSchema)]
#[schemars(transparent)]
struct Timeout(#[schemars(range(max = SECONDS_MAX), extend("exclusiveMinimum" = 0))] f64);

/// What a failure does to the nodes behind it.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
enum OnFailure {
    FailDependents,
    SkipDependents,
    Continue,
    Stop,
}

/// When a node becomes ready.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Join {
    Word(JoinWord),
    /// So many of the nodes before it.
    AtLeast {
        #[schemars(range(min = 1))]
        min: u32,
    },
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
enum JoinWord {
    All,
    Any,
}

/// What an output must be like.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Condition {
    Test {
        /// A path such as result.items[0]["odd.key"]; empty: the whole output.
        field: String,
        operator: Operator,
        /// What to compare with; exists needs none.
        value: Option<Json>,
    },
    All {
        all: Vec<Condition>,
    },
    Any {
        any: Vec<Condition>,
    },
    Not {
        not: Box<Condition>,
    },
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
enum Operator {
    Equals,
    NotEquals,
    Contains,
    GreaterThan,
    LessThan,
    Exists,
}

#[derive(JsonSchema)]
struct Metadata {
    author: Option<String>,
    tags: Option<Vec<String>>,
    category: Option<String>,
}

/// A JSON Schema.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum JsonSchemaForm {
    Object(BTreeMap<String, Json>),
    Flag(bool),
}

/// The types that exist; null means absent.
fn node_types() -> Vec<Json> {
    let names = node::catalog().iter().map(|node_type| Json::from(node_type.name));
    names.chain([Json::Null]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition;
    use std::collections::BTreeSet;

    fn properties(schema: &Json) -> BTreeSet<&str> {
        schema["properties"].as_object().unwrap().keys().map(String::as_str).collect()
    }

    #[test]
    fn the_schema_describes_exactly_the_fields_that_are_read() {
        let schema = schema();
        let fields = |names: &[&'static str]| names.iter().copied().collect::<BTreeSet<_>>();
        assert_eq!(properties(&schema), fields(&definition::Definition::FIELDS));
        assert_eq!(properties(&schema["$defs"]["Node"]), fields(&definition::Node::FIELDS));
        assert_eq!(properties(&schema["$defs"]["Edge"]), fields(&definition::Edge::FIELDS));
    }

    #[test]
    fn fields_are_described_in_the_order_they_are_written() {
        let schema = schema();
        let order = |schema: &Json| -> Vec<String> {
            schema["properties"].as_object().unwrap().keys().cloned().collect()
        };
        assert_eq!(order(&schema), definition::Definition::FIELDS);
        assert_eq!(order(&schema["$defs"]["Node"]), definition::Node::FIELDS);
    }

    #[test]
    fn unknown_fields_are_allowed_everywhere() {
        assert!(!schema_file().contains("additionalProperties\": false"));
    }
}
