//! What a template may see: our values, lent to the engine without copying them.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use indexmap::IndexMap;
use minijinja::Value as EngineValue;
use minijinja::value::{DynObject, Enumerator, Object as EngineObject, ObjectExt, ObjectRepr};

use super::NODES;
use crate::ids::NodeId;
use crate::payload::Payload;
use crate::value::{Number, Object, Value};

/// Texts of this many bytes are copied for the engine once and then shared; shorter ones are
/// copied each time they are read.
const SHARED_TEXT_BYTES_MIN: usize = 4 * 1024;

/// The names a template may read, and nothing else.
///
/// Cheap to fill from [`Payload`]s. Values stay where they are; the engine walks into them.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    names: IndexMap<String, EngineValue>,
    nodes: Option<IndexMap<NodeId, EngineValue>>,
}

/// A value that a scope can hold.
#[derive(Debug)]
pub enum ScopeValue {
    /// A tree.
    Value(Value),
    /// A tree that others hold too.
    Payload(Payload),
}

/// A value of the scope together with what is shared between the views into it.
#[derive(Debug)]
struct Root {
    value: ScopeValue,
    /// All long texts by their place, collected when the first of them is read.
    texts: OnceLock<BTreeMap<Vec<u32>, Arc<str>>>,
}

/// A list or object somewhere inside a root: the way to it, as positions.
pub(super) struct View {
    root: Arc<Root>,
    way: Vec<u32>,
}

/// A number that the engine's own integers cannot hold with all its digits.
#[derive(Debug)]
pub(super) struct Exact(pub(super) Number);

/// `nodes`: the outputs by node id.
#[derive(Debug)]
struct Nodes(IndexMap<NodeId, EngineValue>);

/// `nodes["id"]`: an object with the single key `output`.
#[derive(Debug)]
struct NodeOutput(EngineValue);

/// The whole scope.
#[derive(Debug)]
struct Names(IndexMap<String, EngineValue>);

impl Scope {
    /// Returns a scope without any name.
    pub fn new() -> Scope {
        Scope::default()
    }

    /// Adds a name. A name that is there already gets the new value.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<ScopeValue>) -> Scope {
        self.names.insert(name.into(), lend(value.into()));
        self
    }

    /// Adds the output of a node, read as `nodes["id"].output`.
    #[must_use]
    pub fn with_node_output(mut self, node: NodeId, output: impl Into<ScopeValue>) -> Scope {
        let output = EngineValue::from_object(NodeOutput(lend(output.into())));
        self.nodes.get_or_insert_default().insert(node, output);
        self
    }

    /// Adds the name `nodes` even if no node has an output.
    #[must_use]
    pub fn with_nodes(mut self) -> Scope {
        self.nodes.get_or_insert_default();
        self
    }

    /// The scope as the engine's context.
    pub(super) fn context(&self) -> EngineValue {
        let mut names = self.names.clone();
        if let Some(nodes) = &self.nodes {
            names.insert(NODES.to_owned(), EngineValue::from_object(Nodes(nodes.clone())));
        }
        EngineValue::from_object(Names(names))
    }
}

impl From<Value> for ScopeValue {
    fn from(value: Value) -> ScopeValue {
        ScopeValue::Value(value)
    }
}

impl From<Object> for ScopeValue {
    fn from(object: Object) -> ScopeValue {
        ScopeValue::Value(Value::Object(object))
    }
}

impl From<&str> for ScopeValue {
    fn from(text: &str) -> ScopeValue {
        ScopeValue::Value(Value::from(text))
    }
}

impl From<Payload> for ScopeValue {
    fn from(payload: Payload) -> ScopeValue {
        ScopeValue::Payload(payload)
    }
}

impl From<&Payload> for ScopeValue {
    fn from(payload: &Payload) -> ScopeValue {
        ScopeValue::Payload(payload.clone())
    }
}

/// Hands a value to the engine.
fn lend(value: ScopeValue) -> EngineValue {
    let root = Arc::new(Root { value, texts: OnceLock::new() });
    view(&root, Vec::new(), root.value())
}

/// A value at a place inside a root, as the engine sees it.
fn view(root: &Arc<Root>, way: Vec<u32>, value: &Value) -> EngineValue {
    match value {
        Value::Null => EngineValue::from(()),
        Value::Bool(flag) => EngineValue::from(*flag),
        Value::Number(number) => engine_number(number),
        Value::String(text) if text.len() < SHARED_TEXT_BYTES_MIN => {
            EngineValue::from(text.as_str())
        }
        Value::String(_) => EngineValue::from(root.shared_text(&way)),
        Value::Array(_) | Value::Object(_) => {
            EngineValue::from_object(View { root: Arc::clone(root), way })
        }
    }
}

/// A number as the engine's own integer if that is written the same way, else as it is.
pub(super) fn engine_number(number: &Number) -> EngineValue {
    match number.as_str().parse::<i128>() {
        Ok(integer) if integer.to_string() == number.as_str() => match i64::try_from(integer) {
            Ok(integer) => EngineValue::from(integer),
            Err(_) => EngineValue::from(integer),
        },
        _ => EngineValue::from_object(Exact(number.clone())),
    }
}

impl Root {
    fn value(&self) -> &Value {
        match &self.value {
            ScopeValue::Value(value) => value,
            ScopeValue::Payload(payload) => payload.value(),
        }
    }

    /// The long text at a place.
    fn shared_text(&self, way: &[u32]) -> Arc<str> {
        let texts = self.texts.get_or_init(|| long_texts(self.value()));
        Arc::clone(texts.get(way).expect("every long text was collected"))
    }
}

fn long_texts(value: &Value) -> BTreeMap<Vec<u32>, Arc<str>> {
    let mut texts = BTreeMap::new();
    let mut pending = vec![(Vec::new(), value)];
    while let Some((way, value)) = pending.pop() {
        let below = |step: usize| {
            let mut way = way.clone();
            way.push(position(step));
            way
        };
        let children: &mut dyn Iterator<Item = &Value> = match value {
            Value::String(text) => {
                texts.insert(way, Arc::from(text.as_str()));
                continue;
            }
            Value::Array(items) => &mut items.iter(),
            Value::Object(object) => &mut object.values(),
            _ => continue,
        };
        let of_interest = children.enumerate().filter(|(_, child)| match child {
            Value::String(text) => text.len() >= SHARED_TEXT_BYTES_MIN,
            _ => matches!(child, Value::Array(_) | Value::Object(_)),
        });
        pending.extend(of_interest.map(|(at, child)| (below(at), child)));
    }
    texts
}

fn position(step: usize) -> u32 {
    u32::try_from(step).expect("a value has fewer than 2^32 elements")
}

impl View {
    /// The list or object this is a view of.
    pub(super) fn value(&self) -> &Value {
        self.way.iter().fold(self.root.value(), |value, &step| child(value, step))
    }

    fn child(&self, at: usize) -> EngineValue {
        let step = position(at);
        let mut way = Vec::with_capacity(self.way.len() + 1);
        way.extend_from_slice(&self.way);
        way.push(step);
        view(&self.root, way, child(self.value(), step))
    }

    fn len(&self) -> usize {
        match self.value() {
            Value::Array(items) => items.len(),
            Value::Object(object) => object.len(),
            _ => 0,
        }
    }
}

fn child(value: &Value, step: u32) -> &Value {
    match value {
        Value::Array(items) => &items[step as usize],
        // Skipping in an index map is a single step.
        Value::Object(object) => {
            object.values().nth(step as usize).expect("a way leads through what is there")
        }
        _ => panic!("a way leads through lists and objects only"),
    }
}

/// A key of an object: a text, or a whole number standing for its digits.
fn key_text(key: &EngineValue) -> Option<String> {
    match key.as_str() {
        Some(text) => Some(text.to_owned()),
        None => key.as_i64().filter(|_| key.is_integer()).map(|index| index.to_string()),
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{} of {}>", self.value().kind(), self.len())
    }
}

impl EngineObject for View {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        match self.value() {
            Value::Array(_) => ObjectRepr::Seq,
            _ => ObjectRepr::Map,
        }
    }

    fn get_value(self: &Arc<Self>, key: &EngineValue) -> Option<EngineValue> {
        match self.value() {
            Value::Array(items) => {
                let at = key.as_usize().filter(|&at| at < items.len())?;
                Some(self.child(at))
            }
            _ => self.get_value_by_str(&key_text(key)?),
        }
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<EngineValue> {
        let object = self.value().as_object()?;
        object.position(key).map(|at| self.child(at))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        match self.value() {
            Value::Array(items) => Enumerator::Seq(items.len()),
            _ => self.mapped_enumerator(|view| match view.value() {
                Value::Object(object) => {
                    Box::new(object.keys().map(|key| EngineValue::from(key.as_str())))
                }
                _ => Box::new(std::iter::empty()),
            }),
        }
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.len())
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.value().to_json())
    }
}

impl EngineObject for Exact {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn is_true(self: &Arc<Self>) -> bool {
        self.0 != Number::from(0)
    }

    fn custom_cmp(self: &Arc<Self>, other: &DynObject) -> Option<Ordering> {
        other.downcast_ref::<Exact>().map(|other| self.0.cmp(&other.0))
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

impl EngineObject for Nodes {
    fn get_value(self: &Arc<Self>, key: &EngineValue) -> Option<EngineValue> {
        self.get_value_by_str(&key_text(key)?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<EngineValue> {
        self.0.get(key).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.keys().map(|id| EngineValue::from(id.as_str())).collect())
    }
}

impl EngineObject for NodeOutput {
    fn get_value(self: &Arc<Self>, key: &EngineValue) -> Option<EngineValue> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<EngineValue> {
        (key == "output").then(|| self.0.clone())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Str(&["output"])
    }
}

impl EngineObject for Names {
    fn get_value(self: &Arc<Self>, key: &EngineValue) -> Option<EngineValue> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<EngineValue> {
        self.0.get(key).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.keys().map(|name| EngineValue::from(name.as_str())).collect())
    }
}
