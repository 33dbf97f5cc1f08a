//! Templates: the values of a node's `inputs`, and the settings of its agent. What the graph
//! already shows about their references is found here, before anything runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Draft;
use super::nodes::Step;
use crate::agent::Agent;
use crate::definition::Node;
use crate::ids::NodeId;
use crate::node::{label, parameter_names};
use crate::path::{self, Path};
use crate::plan::diagnostic::{Code, Diagnostic, Place};
use crate::plan::{InputTemplate, Work};
use crate::template::{Reference, Template};
use crate::value::{Object, Value};

/// Names that templates use for something else than a key of `inputs`.
const RESERVED: [&str; 6] = ["nodes", "node", "input", "params", "workflow", "execution"];

/// What a value of `inputs` sees besides the outputs of nodes.
const AROUND: [&str; 4] = ["input", "params", "workflow", "execution"];

/// Names whose fields are always the same, as the scheduler fills them in.
const FIXED: [(&str, &[&str]); 3] =
    [("workflow", &["name", "id"]), ("execution", &["id", "startedAt"]), ("node", &["input"])];

/// The most names that a hint lists.
const NAMED_MAX: usize = 10;

/// A node's `inputs`.
pub(super) struct Bindings {
    pub inputs: Vec<(String, InputTemplate)>,
    /// Every template in them, with its place in the node.
    templates: Vec<(Path, Arc<Template>)>,
}

impl Bindings {
    /// The nodes whose outputs are read.
    pub(super) fn nodes_read(&self) -> impl Iterator<Item = &NodeId> {
        let references = self.templates.iter().flat_map(|(_, template)| template.references());
        references.filter_map(|reference| reference.node.as_ref())
    }
}

/// Reads a node's `inputs`: every text inside is a template.
pub(super) fn read(node: &Node, inputs: &Object, found: &mut Vec<Diagnostic>) -> Bindings {
    let mut reader = Reader { node, templates: Vec::new(), found };
    let root = Path::from_iter([path::Step::Key("inputs".to_owned())]);
    let mut read = Vec::with_capacity(inputs.len());
    for (key, value) in inputs {
        let place = root.join(path::Step::Key(key.clone()));
        if RESERVED.contains(&key.as_str()) {
            reader.found.push(Diagnostic::new(
                Code::ReservedName,
                Place::node(&node.id).field(place.to_string()),
                format!("node {} has an input called {key:?}, which is reserved", label(node)),
                format!("choose another name than {}", RESERVED.join(", ")),
            ));
        }
        read.push((key.clone(), reader.value(value, &place)));
    }
    Bindings { inputs: read, templates: reader.templates }
}

struct Reader<'a> {
    node: &'a Node,
    templates: Vec<(Path, Arc<Template>)>,
    found: &'a mut Vec<Diagnostic>,
}

impl Reader<'_> {
    /// Recurses as deep as the value, which the JSON reader has limited.
    fn value(&mut self, value: &Value, place: &Path) -> InputTemplate {
        match value {
            Value::String(text) if Template::is_template(text) => self.template(text, place),
            Value::Array(items) => {
                let items: Box<[InputTemplate]> = items
                    .iter()
                    .enumerate()
                    .map(|(n, item)| self.value(item, &place.join(path::Step::Index(n))))
                    .collect();
                match items.iter().all(is_literal) {
                    true => InputTemplate::Literal(value.clone()),
                    false => InputTemplate::Array(items),
                }
            }
            Value::Object(object) => {
                let fields: Box<[(String, InputTemplate)]> = object
                    .iter()
                    .map(|(key, field)| {
                        let place = place.join(path::Step::Key(key.clone()));
                        (key.clone(), self.value(field, &place))
                    })
                    .collect();
                match fields.iter().all(|(_, field)| is_literal(field)) {
                    true => InputTemplate::Literal(value.clone()),
                    false => InputTemplate::Object(fields),
                }
            }
            other => InputTemplate::Literal(other.clone()),
        }
    }

    fn template(&mut self, text: &str, place: &Path) -> InputTemplate {
        match Template::parse(text) {
            Ok(template) => {
                let template = Arc::new(template);
                self.templates.push((place.clone(), Arc::clone(&template)));
                InputTemplate::Template(template)
            }
            Err(error) => {
                self.found.push(Diagnostic::new(
                    Code::BadTemplate,
                    Place::node(&self.node.id).field(place.to_string()),
                    format!(
                        "node {}: the template cannot be read: line {}, column {}: {}",
                        label(self.node),
                        error.line,
                        error.column,
                        error.message
                    ),
                    error.hint.unwrap_or_else(|| "correct the template".to_owned()),
                ));
                InputTemplate::Literal(Value::Null)
            }
        }
    }
}

fn is_literal(template: &InputTemplate) -> bool {
    matches!(template, InputTemplate::Literal(_))
}

/// Checks what the templates of all nodes refer to.
///
/// Whether a node is upstream is only asked of graphs without cycles.
pub(super) fn check_references(draft: &Draft<'_>, found: &mut Vec<Diagnostic>) {
    let mut checker = Checker {
        draft,
        by_id: draft.steps.iter().enumerate().map(|(n, step)| (&step.node.id, n)).collect(),
        asked: Vec::new(),
        found,
    };
    let mut settings = BTreeMap::new();
    for (n, step) in draft.steps.iter().enumerate() {
        checker.inputs(n, step);
        let work = step.node_type.and_then(|node_type| node_type.work).map(|work| work(step.node));
        if let Some(Work::Agent(id)) = work
            && let Some(pinned) = draft.agents.get(&id)
        {
            let agent = &pinned.agent;
            let templates = settings.entry(id).or_insert_with(|| settings_templates(agent));
            checker.settings(step, agent, templates);
        }
    }
    if draft.graph.is_acyclic() {
        checker.upstream();
    }
}

/// A template of an agent's settings, or what is wrong with it.
type SettingsTemplate = (String, Result<Template, String>);

fn settings_templates(agent: &Agent) -> Vec<SettingsTemplate> {
    let mut texts: Vec<(String, &str)> = Vec::new();
    for &key in agent.template_fields() {
        match agent.settings.get(key) {
            Some(Value::String(text)) => texts.push((key.to_owned(), text)),
            Some(Value::Array(items)) => {
                let items = items.iter().enumerate();
                texts.extend(
                    items.filter_map(|(n, item)| Some((format!("{key}[{n}]"), item.as_str()?))),
                );
            }
            Some(Value::Object(object)) => {
                let fields = object.iter();
                texts.extend(fields.filter_map(|(k, v)| Some((format!("{key}.{k}"), v.as_str()?))));
            }
            _ => (),
        }
    }
    let templates = texts.into_iter().filter(|(_, text)| Template::is_template(text));
    templates
        .map(|(place, text)| (place, Template::parse(text).map_err(|error| error.to_string())))
        .collect()
}

/// A reference to a node, still to be checked against the graph.
struct Asked {
    step: usize,
    target: usize,
    place: Path,
    text: String,
}

struct Checker<'a> {
    draft: &'a Draft<'a>,
    by_id: BTreeMap<&'a NodeId, usize>,
    asked: Vec<Asked>,
    found: &'a mut Vec<Diagnostic>,
}

impl<'a> Checker<'a> {
    fn inputs(&mut self, n: usize, step: &'a Step<'a>) {
        let Some(bindings) = &step.bindings else { return };
        let agent = step.node.agent_id.as_deref().and_then(|id| self.draft.agents.get(id));
        let agent = agent.map(|pinned| &pinned.agent);
        let params =
            parameter_names(agent, &self.draft.workflow.configuration, &step.configuration);
        for (path, template) in &bindings.templates {
            let place = Place::node(&step.node.id).field(path.to_string());
            self.secrets(&place, step.node, template);
            let who = format!("node {}", label(step.node));
            for reference in template.references() {
                match reference.root.as_str() {
                    "nodes" => self.node(n, path, reference),
                    "params" => self.parameter(&place, &who, reference, &params),
                    root if AROUND.contains(&root) => {
                        self.fixed(Code::UnresolvedReference, &place, &who, reference);
                    }
                    root => {
                        let text = &reference.text;
                        let message =
                            format!("{who} refers to `{text}`, but there is no name `{root}`");
                        let hint = format!("the names here are nodes, {}", AROUND.join(", "));
                        self.report(Code::UnresolvedReference, &place, message, hint);
                    }
                }
            }
        }
    }

    fn node(&mut self, n: usize, path: &Path, reference: &Reference) {
        let node = self.draft.steps[n].node;
        let place = Place::node(&node.id).field(path.to_string());
        let Some(id) = &reference.node else {
            let message = format!(
                "node {} refers to `{}` without saying which node it means",
                label(node),
                reference.text
            );
            self.report(Code::UnresolvedReference, &place, message, self.upstream_hint(n));
            return;
        };
        let Some(&target) = self.by_id.get(id) else {
            let message = format!(
                "node {} refers to `{}`, but there is no node {id:?} that runs",
                label(node),
                reference.text
            );
            self.report(Code::UnresolvedReference, &place, message, self.upstream_hint(n));
            return;
        };
        let (place_in_node, text) = (path.clone(), reference.text.clone());
        self.asked.push(Asked { step: n, target, place: place_in_node, text });
        let target = &self.draft.steps[target];
        if target.is_disabled() && !reference.guarded {
            let message = format!(
                "node {} refers to `{}`, but node {} is disabled and has no output",
                label(node),
                reference.text,
                label(target.node)
            );
            let hint = "enable that node, or add a filter such as `| default(\"\")`".to_owned();
            self.report(Code::DisabledReference, &place, message, hint);
        }
    }

    fn parameter(
        &mut self,
        place: &Place,
        who: &str,
        reference: &Reference,
        names: &BTreeSet<&str>,
    ) {
        let Some(name) = first_key(reference) else { return };
        if names.contains(name.as_str()) || reference.guarded {
            return;
        }
        let message =
            format!("{who} refers to `{}`, but nobody sets the parameter {name:?}", reference.text);
        let hint = "set it in the node's `configuration` or in the workflow's `parameters`";
        self.report(Code::UnknownParameter, place, message, hint.to_owned());
    }

    /// Checks a field of a name whose fields are always the same.
    fn fixed(&mut self, code: Code, place: &Place, who: &str, reference: &Reference) {
        let fixed = FIXED.into_iter().find(|(root, _)| *root == reference.root);
        let (Some((root, keys)), Some(key)) = (fixed, first_key(reference)) else { return };
        if keys.contains(&key.as_str()) || reference.guarded {
            return;
        }
        let message =
            format!("{who} refers to `{}`, but `{root}` has no field {key:?}", reference.text);
        let hint = format!("its fields are {}", keys.join(", "));
        self.report(code, place, message, hint);
    }

    fn settings(&mut self, step: &'a Step<'a>, agent: &Agent, templates: &[SettingsTemplate]) {
        let node = step.node;
        let place = Place::node(&node.id).field("agentId");
        let workflow = &self.draft.workflow.configuration;
        let params = parameter_names(Some(agent), workflow, &step.configuration);
        for (field, template) in templates {
            let of_agent =
                format!("agent {:?} of node {}, settings.{field}", agent.name, label(node));
            let template = match template {
                Ok(template) => template,
                Err(error) => {
                    let message = format!("{of_agent}: the template cannot be read: {error}");
                    self.report(Code::BadAgent, &place, message, "correct the agent".to_owned());
                    continue;
                }
            };
            self.secrets(&place, node, template);
            for reference in template.references() {
                let inputs = node.inputs.as_ref();
                let root = reference.root.as_str();
                let is_input = inputs.is_some_and(|inputs| inputs.contains_key(root));
                if root == "params" {
                    self.parameter(&place, &of_agent, reference, &params);
                    continue;
                }
                if root != "nodes" && (is_input || RESERVED.contains(&root)) {
                    self.fixed(Code::BadAgent, &place, &of_agent, reference);
                    continue;
                }
                let message = format!("{of_agent}: `{}` is not in scope", reference.text);
                let keys = inputs.into_iter().flat_map(Object::keys).map(String::as_str);
                let mut names: Vec<&str> = keys.take(NAMED_MAX).collect();
                names.extend(RESERVED.iter().filter(|name| **name != "nodes"));
                let hint = format!(
                    "add an input of this name to the node; the names in an agent's settings are \
                     the keys of the node's `inputs` and the fixed ones: {}",
                    names.join(", ")
                );
                self.report(Code::BadAgent, &place, message, hint);
            }
        }
    }

    /// The one place that keeps templates with secrets from running.
    fn secrets(&mut self, place: &Place, node: &Node, template: &Template) {
        for key in template.secrets() {
            let message = format!(
                "node {} asks for the secret {key:?}, but this version of Cyanotype keeps no secrets",
                label(node)
            );
            let hint = "let a process agent read it from an environment variable that its \
                        `envAllow` names";
            self.report(Code::SecretsUnavailable, place, message, hint.to_owned());
        }
    }

    /// Reports references to nodes that are not upstream of the one that refers to them.
    ///
    /// Walks along the order once for every 64 nodes that are referred to, with one bit for each:
    /// asking for each reference alone would be quadratic in long chains.
    fn upstream(&mut self) {
        let asked = std::mem::take(&mut self.asked);
        let targets: Vec<usize> =
            asked.iter().map(|asked| asked.target).collect::<BTreeSet<_>>().into_iter().collect();
        let mut by_target: BTreeMap<usize, Vec<&Asked>> = BTreeMap::new();
        for asked in &asked {
            by_target.entry(asked.target).or_default().push(asked);
        }
        let graph = &self.draft.graph;
        let mut own = vec![0u64; self.draft.steps.len()];
        for batch in targets.chunks(64) {
            own.fill(0);
            for (bit, &target) in batch.iter().enumerate() {
                own[target] = 1 << bit;
            }
            let mut upstream = vec![0u64; own.len()];
            for &node in &graph.order {
                let predecessors = graph.predecessors[node].iter();
                upstream[node] = predecessors.fold(0, |bits, &p| bits | upstream[p] | own[p]);
            }
            for asked in batch.iter().flat_map(|target| &by_target[target]) {
                if upstream[asked.step] & own[asked.target] == 0 {
                    self.not_upstream(asked);
                }
            }
        }
    }

    fn not_upstream(&mut self, asked: &Asked) {
        let node = self.draft.steps[asked.step].node;
        let message = format!(
            "node {} refers to `{}`, but node {} does not come before it",
            label(node),
            asked.text,
            label(self.draft.steps[asked.target].node)
        );
        let place = Place::node(&node.id).field(asked.place.to_string());
        self.report(Code::UnresolvedReference, &place, message, self.upstream_hint(asked.step));
    }

    fn upstream_hint(&self, n: usize) -> String {
        let predecessors = self.draft.graph.predecessors[n].iter().take(NAMED_MAX);
        let outputs: Vec<String> = predecessors
            .map(|&p| format!("nodes[{:?}].output", self.draft.steps[p].node.id))
            .collect();
        match outputs.is_empty() {
            true => "connect that node to this one; nothing comes before this node".to_owned(),
            false => format!("directly before this node come {}", outputs.join(", ")),
        }
    }

    fn report(&mut self, code: Code, place: &Place, message: String, hint: String) {
        self.found.push(Diagnostic::new(code, place.clone(), message, hint));
    }
}

/// The key that a reference reads of its root, if that is fixed.
fn first_key(reference: &Reference) -> Option<String> {
    let path = Path::parse(&reference.text.replace('\'', "\"")).ok()?;
    match path.steps().get(1) {
        Some(path::Step::Key(key)) => Some(key.clone()),
        _ => None,
    }
}
