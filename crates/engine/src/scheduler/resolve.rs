//! What a node is given: its input, and its agent's settings with templates resolved.

use super::rules::{NodeRule, Performer, SettingsRule, SettingsTemplate};
use super::state::{Cells, NodeCell, Phase};
use crate::failure::{Failure, FailureClass};
use crate::ids::ExecutionId;
use crate::payload::Payload;
use crate::plan::{EdgeIdx, FailurePolicy, InputTemplate, NodeIdx, Plan, PlanNode};
use crate::scheduler::event::{EdgeState, ExecutionStarted, FailureEffect};
use crate::template::{RenderError, Scope, Template};
use crate::value::{Object, Value};

/// What an activation of a node starts with, beyond what its predecessors gave.
#[derive(Default)]
pub(super) struct Resolved {
    pub input: Option<Payload>,
    pub settings: Option<Payload>,
}

/// Everything that resolving looks at.
pub(super) struct Resolver<'a, C> {
    pub execution: ExecutionId,
    pub plan: &'a Plan,
    pub started: &'a ExecutionStarted,
    pub cells: &'a C,
}

impl<C: Cells> Resolver<'_, C> {
    /// Resolves the bindings of a node that is about to start, and its agent's settings.
    pub fn activation(&self, idx: NodeIdx, rule: &NodeRule) -> Result<Resolved, Failure> {
        let node = self.plan.node(idx);
        let mut resolved = Resolved::default();
        if let Some(inputs) = &node.inputs {
            resolved.input = Some(Payload::new(Value::Object(self.inputs(rule, inputs)?)));
        }
        let Performer::Agent { settings, .. } = &rule.performer else {
            return Ok(resolved);
        };
        if let SettingsRule::Templates(template) = &**settings {
            let input = match &resolved.input {
                Some(input) => input.clone(),
                None => self.input(idx),
            };
            let scope = self.settings_scope(node, rule, &input);
            resolved.settings = Some(Payload::new(render_settings(template, &scope)?));
        }
        Ok(resolved)
    }

    /// The input of a node that has started, or is about to.
    pub fn input(&self, idx: NodeIdx) -> Payload {
        let cell = self.cells.node(idx);
        if let Some(input) = &cell.input {
            return input.clone();
        }
        let predecessors = &self.plan.node(idx).predecessors;
        match &**predecessors {
            [] => self.started.input.clone(),
            [only] => self.handed_on(*only).unwrap_or_else(Payload::null),
            _ => Payload::object(self.live_predecessors(idx, cell).into_iter().filter_map(|p| {
                let output = self.handed_on(p)?;
                Some((self.plan.node(p).id.as_str(), output))
            })),
        }
    }

    /// Distinct predecessors with a live edge, as they were when the node started.
    fn live_predecessors(&self, idx: NodeIdx, cell: &NodeCell) -> Vec<NodeIdx> {
        match &cell.live {
            Some(live) => live.to_vec(),
            None => self.live_now(idx),
        }
    }

    /// Distinct predecessors with a live edge, in file order.
    pub fn live_now(&self, idx: NodeIdx) -> Vec<NodeIdx> {
        let node = self.plan.node(idx);
        let is_live = |edge: &&EdgeIdx| self.cells.edge(**edge) == Some(EdgeState::Live);
        let mut live: Vec<NodeIdx> = Vec::new();
        for edge in node.incoming.iter().filter(is_live) {
            let source = self.plan.edge(*edge).source;
            // Edges of one predecessor are twins; only the first live one adds it.
            let twins = &self.plan.edge(*edge).twins;
            if !twins.iter().any(|twin| twin < edge && is_live(&twin)) {
                live.push(source);
            }
        }
        live
    }

    /// What a decided node hands on: its output, or the `$failed` object where that stands in place
    /// of it. A failure that its policy lets die or travel on leaves nothing to refer to.
    fn handed_on(&self, idx: NodeIdx) -> Option<Payload> {
        let cell = self.cells.node(idx);
        let stands_in = match cell.effect {
            Some(FailureEffect::Handled) => true,
            Some(FailureEffect::Tolerated) => {
                self.plan.node(idx).on_failure == FailurePolicy::Continue
            }
            Some(FailureEffect::Unhandled) | None => false,
        };
        match cell.phase {
            Phase::Completed => cell.output.clone(),
            Phase::Failed if stands_in => {
                cell.failure.as_ref().map(|failure| Payload::new(failure.to_output()))
            }
            _ => None,
        }
    }

    fn inputs(
        &self,
        rule: &NodeRule,
        inputs: &[(String, InputTemplate)],
    ) -> Result<Object, Failure> {
        let mut scope = self.common_scope(rule).with_nodes();
        for (_, template) in inputs {
            scope = self.with_referenced_nodes(scope, template);
        }
        let mut problems = Problems::default();
        let mut object = Object::default();
        for (key, template) in inputs {
            object.insert(key.clone(), render_input(template, &scope, &mut problems));
        }
        problems.into_result(object)
    }

    fn with_referenced_nodes(&self, mut scope: Scope, template: &InputTemplate) -> Scope {
        let mut pending = vec![template];
        while let Some(template) = pending.pop() {
            match template {
                InputTemplate::Literal(_) => {}
                InputTemplate::Array(items) => pending.extend(items.iter()),
                InputTemplate::Object(fields) => pending.extend(fields.iter().map(|(_, t)| t)),
                InputTemplate::Template(template) => {
                    for id in template.references().iter().filter_map(|r| r.node.as_ref()) {
                        let output = self.plan.node_idx(id).and_then(|idx| self.handed_on(idx));
                        if let Some(output) = output {
                            scope = scope.with_node_output(id.clone(), output);
                        }
                    }
                }
            }
        }
        scope
    }

    fn common_scope(&self, rule: &NodeRule) -> Scope {
        let params = Value::Object((*rule.params).clone());
        let text = |text: String| Value::String(text);
        let workflow: Object = [
            ("name".to_owned(), text(self.plan.name.clone())),
            ("id".to_owned(), self.started.workflow.map_or(Value::Null, |id| text(id.to_string()))),
        ]
        .into_iter()
        .collect();
        let execution: Object = [
            ("id".to_owned(), text(self.execution.to_string())),
            ("startedAt".to_owned(), text(self.cells.totals().started_at.to_rfc3339())),
        ]
        .into_iter()
        .collect();
        Scope::new()
            .with("input", self.started.input.clone())
            .with("params", params)
            .with("workflow", Value::Object(workflow))
            .with("execution", Value::Object(execution))
    }

    fn settings_scope(&self, node: &PlanNode, rule: &NodeRule, input: &Payload) -> Scope {
        let node_scope: Object =
            [("input".to_owned(), input.value().clone())].into_iter().collect();
        let mut scope = self.common_scope(rule).with("node", Value::Object(node_scope));
        if let (Some(_), Some(bound)) = (&node.inputs, input.value().as_object()) {
            for (key, value) in bound.iter() {
                scope = scope.with(key.clone(), value.clone());
            }
        }
        scope
    }
}

/// Collects what did not resolve, so that a person sees all of it at once.
#[derive(Default)]
struct Problems {
    unresolved: Vec<String>,
    first_failure: Option<Failure>,
}

impl Problems {
    fn add(&mut self, error: &RenderError) {
        let failure = error.to_failure();
        for name in failure.unresolved.iter() {
            if !self.unresolved.contains(name) {
                self.unresolved.push(name.clone());
            }
        }
        self.first_failure.get_or_insert(failure);
    }

    fn into_result<T>(self, value: T) -> Result<T, Failure> {
        match self.first_failure {
            None => Ok(value),
            Some(failure) if self.unresolved.len() <= 1 => Err(failure),
            Some(mut failure) => {
                failure.message =
                    format!("these references have no value: {}", self.unresolved.join(", "));
                failure.unresolved = self.unresolved;
                Err(failure)
            }
        }
    }
}

/// Inputs are as deep as the reader lets values be, so the recursion is bounded.
fn render_input(template: &InputTemplate, scope: &Scope, problems: &mut Problems) -> Value {
    match template {
        InputTemplate::Literal(value) => value.clone(),
        InputTemplate::Template(template) => render(template, scope, problems),
        InputTemplate::Array(items) => {
            Value::Array(items.iter().map(|item| render_input(item, scope, problems)).collect())
        }
        InputTemplate::Object(fields) => Value::Object(
            fields
                .iter()
                .map(|(key, item)| (key.clone(), render_input(item, scope, problems)))
                .collect(),
        ),
    }
}

fn render_settings(template: &SettingsTemplate, scope: &Scope) -> Result<Value, Failure> {
    let mut problems = Problems::default();
    let value = render_settings_part(template, scope, &mut problems);
    problems.into_result(value)
}

/// Settings are as deep as the reader lets values be, so the recursion is bounded. A template in
/// them gives text, whatever the value it names: programs take texts.
fn render_settings_part(
    template: &SettingsTemplate,
    scope: &Scope,
    problems: &mut Problems,
) -> Value {
    match template {
        SettingsTemplate::Literal(value) => value.clone(),
        SettingsTemplate::Broken(message) => {
            problems.first_failure.get_or_insert(Failure::new(
                FailureClass::BindingError,
                format!("a template in the agent's settings cannot be read: {message}"),
            ));
            Value::Null
        }
        SettingsTemplate::Text(template) => match render(template, scope, problems) {
            Value::String(text) => Value::String(text),
            other => Value::String(other.to_json()),
        },
        SettingsTemplate::Array(items) => Value::Array(
            items.iter().map(|item| render_settings_part(item, scope, problems)).collect(),
        ),
        SettingsTemplate::Object(fields) => Value::Object(
            fields
                .iter()
                .map(|(key, item)| (key.clone(), render_settings_part(item, scope, problems)))
                .collect(),
        ),
    }
}

fn render(template: &Template, scope: &Scope, problems: &mut Problems) -> Value {
    match template.render(scope) {
        Ok(rendered) => rendered.value,
        Err(error) => {
            problems.add(&error);
            Value::Null
        }
    }
}
