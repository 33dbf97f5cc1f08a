//! What a plan and the agents of one execution come to, node by node: every default resolved.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::agent::{AgentSet, PinnedAgent, RunnerKind};
use crate::ids::AgentId;
use crate::limits::{
    ATTEMPT_TIMEOUT_MS_DEFAULT, MODEL_OVERRIDE_CHARS_MAX, PROMPT_ADDITION_CHARS_MAX_DEFAULT,
};
use crate::payload::Payload;
use crate::plan::compile::{parse_retry_policy, parse_timeout};
use crate::plan::{Plan, PlanNode, Work};
use crate::retry::RetryPolicy;
use crate::scheduler::event::Warning;
use crate::template::Template;
use crate::value::{Object, Value};

/// Limits that a machine may set for its executions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverrideLimits {
    /// The longest `systemPromptAddition`, in characters.
    pub prompt_addition_chars_max: usize,
}

impl Default for OverrideLimits {
    fn default() -> Self {
        OverrideLimits { prompt_addition_chars_max: PROMPT_ADDITION_CHARS_MAX_DEFAULT }
    }
}

/// The rules of one node.
#[derive(Clone, Debug)]
pub(super) struct NodeRule {
    pub performer: Performer,
    /// The parameters in force.
    pub params: Arc<Object>,
    pub retry: Option<RetryPolicy>,
    pub start_to_close_timeout_ms: Option<u64>,
    pub warnings: Vec<Warning>,
}

/// Who performs a node's attempts.
#[derive(Clone, Debug)]
pub(super) enum Performer {
    Agent {
        agent: Arc<PinnedAgent>,
        settings: Arc<SettingsRule>,
    },
    /// The execution has no agent of this id.
    Missing(AgentId),
    Transform,
}

/// An agent's settings: as they are, or with templates to resolve.
#[derive(Debug)]
pub(super) enum SettingsRule {
    Plain(Payload),
    Templates(SettingsTemplate),
}

/// Settings with templates inside.
#[derive(Debug)]
pub(super) enum SettingsTemplate {
    Literal(Value),
    Text(Template),
    /// A template that the file's author never saw: the agent's record was refused by nobody, so
    /// the node fails with the message when it starts.
    Broken(String),
    Array(Vec<SettingsTemplate>),
    Object(Vec<(String, SettingsTemplate)>),
}

impl NodeRule {
    /// The machine-wide limit an attempt counts under, if any.
    pub fn slot(&self) -> Option<RunnerKind> {
        match &self.performer {
            Performer::Agent { agent, .. } => {
                Some(agent.agent.runner).filter(|kind| kind.takes_slot())
            }
            Performer::Missing(_) | Performer::Transform => None,
        }
    }

    /// Whether an attempt whose end is unknown may simply be repeated.
    pub fn is_safe_to_repeat(&self) -> bool {
        match &self.performer {
            Performer::Agent { agent, .. } => agent.agent.is_safe_to_repeat(),
            Performer::Missing(_) | Performer::Transform => true,
        }
    }
}

/// Resolves the rules of every node of a plan, in plan order.
pub(super) fn resolve(plan: &Plan, agents: &AgentSet, limits: OverrideLimits) -> Vec<NodeRule> {
    let known = agents.iter().map(|(id, agent)| (id.clone(), AgentRule::of(plan, agent))).collect();
    let mut shared = Object::default();
    if let Some(parameters) = plan.configuration.get("parameters").and_then(Value::as_object) {
        overlay(&mut shared, parameters);
    }
    let shared = Arc::new(shared);
    plan.nodes.iter().map(|node| node_rule(node, &known, &shared, limits)).collect()
}

/// What all nodes of one agent share.
struct AgentRule {
    agent: Arc<PinnedAgent>,
    settings: Arc<SettingsRule>,
    /// Agent defaults, then `agentProperties`, then workflow `parameters`.
    base_params: Arc<Object>,
    retry: Option<RetryPolicy>,
    timeout_ms: Option<u64>,
}

impl AgentRule {
    fn of(plan: &Plan, pinned: &Arc<PinnedAgent>) -> AgentRule {
        let agent = &pinned.agent;
        let mut params = agent.parameter_defaults();
        let layers = [
            plan.configuration
                .get("agentProperties")
                .and_then(Value::as_object)
                .and_then(|all| all.get(agent.id.as_str())),
            plan.configuration.get("parameters"),
        ];
        for layer in layers.into_iter().flatten().filter_map(Value::as_object) {
            overlay(&mut params, layer);
        }
        AgentRule {
            settings: Arc::new(settings_rule(pinned)),
            base_params: Arc::new(params),
            retry: agent.retry_policy.as_ref().and_then(|raw| parse_retry_policy(raw).ok()),
            timeout_ms: agent.timeout.as_ref().and_then(|raw| parse_timeout(raw).ok()),
            agent: Arc::clone(pinned),
        }
    }
}

fn overlay(params: &mut Object, layer: &Object) {
    for (key, value) in layer.iter() {
        params.insert(key.clone(), value.clone());
    }
}

fn node_rule(
    node: &PlanNode,
    known: &BTreeMap<AgentId, AgentRule>,
    shared_params: &Arc<Object>,
    limits: OverrideLimits,
) -> NodeRule {
    let without_agent = |performer| NodeRule {
        performer,
        params: with_configuration(shared_params, node),
        retry: node.retry.clone(),
        start_to_close_timeout_ms: Some(node.timeout_ms.unwrap_or(ATTEMPT_TIMEOUT_MS_DEFAULT)),
        warnings: Vec::new(),
    };
    let rule = match &node.work {
        Work::Transform => return without_agent(Performer::Transform),
        Work::Agent(id) => match known.get(id) {
            None => return without_agent(Performer::Missing(id.clone())),
            Some(rule) => rule,
        },
    };
    let (params, warnings) = node_params(rule, node, limits);
    let timeout_ms = node.timeout_ms.or(rule.timeout_ms);
    NodeRule {
        performer: Performer::Agent {
            agent: Arc::clone(&rule.agent),
            settings: Arc::clone(&rule.settings),
        },
        params,
        retry: node.retry.clone().or_else(|| rule.retry.clone()),
        start_to_close_timeout_ms: match timeout_ms {
            None if rule.agent.agent.streams => None,
            other => Some(other.unwrap_or(ATTEMPT_TIMEOUT_MS_DEFAULT)),
        },
        warnings,
    }
}

fn with_configuration(base: &Arc<Object>, node: &PlanNode) -> Arc<Object> {
    let mut params = Arc::clone(base);
    if !node.configuration.is_empty() {
        overlay(Arc::make_mut(&mut params), &node.configuration);
    }
    params
}

fn node_params(
    rule: &AgentRule,
    node: &PlanNode,
    limits: OverrideLimits,
) -> (Arc<Object>, Vec<Warning>) {
    let mut params = with_configuration(&rule.base_params, node);
    let caps = [
        ("modelOverride", MODEL_OVERRIDE_CHARS_MAX),
        ("systemPromptAddition", limits.prompt_addition_chars_max),
    ];
    let mut warnings = Vec::new();
    for (key, chars_max) in caps {
        let chars = match params.get(key) {
            Some(Value::String(text)) => text.chars().count(),
            _ => continue,
        };
        if chars > chars_max {
            Arc::make_mut(&mut params).remove(key);
            warnings.push(Warning {
                code: "overrideTooLong".to_owned(),
                message: format!(
                    "{key} has {chars} characters, {chars_max} are allowed: it was left out"
                ),
            });
        }
    }
    (params, warnings)
}

fn settings_rule(pinned: &PinnedAgent) -> SettingsRule {
    let settings = Value::Object(pinned.agent.settings.clone());
    let mut has_templates = false;
    let mut fields = Vec::new();
    for (key, value) in pinned.agent.settings.iter() {
        let template = if pinned.agent.template_fields().contains(&key.as_str()) {
            settings_template(value, &mut has_templates)
        } else {
            SettingsTemplate::Literal(value.clone())
        };
        fields.push((key.clone(), template));
    }
    if has_templates {
        SettingsRule::Templates(SettingsTemplate::Object(fields))
    } else {
        SettingsRule::Plain(Payload::new(settings))
    }
}

/// Settings are at most a list or an object of texts deep, so this does not recurse far: the
/// reader bounds the depth of every value.
fn settings_template(value: &Value, has_templates: &mut bool) -> SettingsTemplate {
    match value {
        Value::String(text) if Template::is_template(text) => {
            *has_templates = true;
            match Template::parse(text) {
                Ok(template) => SettingsTemplate::Text(template),
                Err(error) => SettingsTemplate::Broken(error.to_string()),
            }
        }
        Value::Array(items) => SettingsTemplate::Array(
            items.iter().map(|item| settings_template(item, has_templates)).collect(),
        ),
        Value::Object(fields) => SettingsTemplate::Object(
            fields
                .iter()
                .map(|(key, item)| (key.clone(), settings_template(item, has_templates)))
                .collect(),
        ),
        other => SettingsTemplate::Literal(other.clone()),
    }
}
