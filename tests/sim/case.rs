//! What a simulation runs: a definition, a stub for each of its agents, and an execution input.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::agent::{Agent, AgentSet, PinnedAgent, RunnerKind};
use engine::definition::Definition;
use engine::ids::{AgentId, ExecutionId, NodeId};
use engine::journal::Record;
use engine::payload::Payload;
use engine::plan::compile::compile;
use engine::plan::{NodeIdx, Plan};
use engine::scheduler::{Execution, OverrideLimits};
use engine::value::{Object, Value};
use uuid::Uuid;

/// A definition with everything around it that decides how it runs.
#[derive(Clone, Debug)]
pub struct Case {
    pub definition: Value,
    /// By agent id.
    pub stubs: BTreeMap<String, Stub>,
    pub input: Value,
}

/// An agent that follows a script in the notation of the field cases.
#[derive(Clone, Debug)]
pub struct Stub {
    pub runner: RunnerKind,
    pub script: Value,
    pub side_effecting: Option<bool>,
    pub idempotent: bool,
    pub retry_policy: Option<Value>,
    /// Whether the agent is gone by the time the execution starts.
    pub is_gone: bool,
}

/// A case that has been compiled: everything an `Execution` value is made of.
#[derive(Clone, Debug)]
pub struct Setup {
    pub id: ExecutionId,
    pub plan: Arc<Plan>,
    pub agents: Arc<AgentSet>,
    pub input: Payload,
}

impl Stub {
    /// `{"echo": true}` is an agent of kind echo; any other script is played.
    pub fn new(script: Value) -> Stub {
        let echoes = script.get("echo").and_then(Value::as_bool) == Some(true);
        Stub {
            runner: if echoes { RunnerKind::Echo } else { RunnerKind::Scripted },
            script,
            side_effecting: None,
            idempotent: false,
            retry_policy: None,
            is_gone: false,
        }
    }

    /// Whether an attempt whose end is unknown may be repeated without asking anybody (SPEC 4.13).
    pub fn is_safe_to_repeat(&self) -> bool {
        let scripted = self.script.get("sideEffecting").and_then(Value::as_bool);
        let kind = self.runner == RunnerKind::Process;
        self.idempotent || !self.side_effecting.or(scripted).unwrap_or(kind)
    }

    fn agent(&self, id: &str) -> Agent {
        let settings = match (&self.script, self.runner) {
            (_, RunnerKind::Echo) => Object::new(),
            (Value::Object(script), _) => script.clone(),
            (other, _) => panic!("a script is an object, but this is {}", other.to_json()),
        };
        Agent {
            settings,
            side_effecting: self.side_effecting,
            idempotent: self.idempotent,
            retry_policy: self.retry_policy.clone(),
            ..Agent::new(id, id, self.runner)
        }
    }
}

/// The agent that stands behind a node in every case.
pub fn stub_id(node: &str) -> String {
    format!("stub-{node}")
}

impl Case {
    /// Reads the notation of the field cases: `nodes` with their stubs, `edges` as
    /// `[from, to, {"field", "op", "value"}]`, `retry` by node, `input`.
    pub fn field(text: &str) -> Case {
        let value = Value::parse(text).expect("the case is JSON");
        let empty = Object::new();
        let part = |key: &str| value.get(key).and_then(Value::as_object).unwrap_or(&empty);
        let mut nodes = Vec::new();
        let mut stubs = BTreeMap::new();
        for (id, script) in part("nodes") {
            let mut node = object([("id", id.as_str().into()), ("agentId", stub_id(id).into())]);
            if let Some(policy) = part("retry").get(id) {
                node.insert("retryPolicy", policy.clone());
            }
            for (key, setting) in
                part("settings").get(id).and_then(Value::as_object).unwrap_or(&empty)
            {
                node.insert(key.clone(), setting.clone());
            }
            nodes.push(Value::Object(node));
            stubs.insert(stub_id(id), Stub::new(script.clone()));
        }
        let edges = value.get("edges").and_then(Value::as_array).unwrap_or_default();
        let edges = edges.iter().enumerate().map(|(n, edge)| field_edge(n, edge)).collect();
        let mut definition = object([
            ("version", "1.0.0".into()),
            ("name", "case".into()),
            ("nodes", Value::Array(nodes)),
            ("edges", edges),
        ]);
        for (key, setting) in part("workflow") {
            definition.insert(key.clone(), setting.clone());
        }
        let input = value.get("input").cloned().unwrap_or_else(|| Object::new().into());
        Case { definition: definition.into(), stubs, input }
    }

    /// Compiles the case for an execution of this number.
    ///
    /// # Errors
    /// What the compiler found, one finding a line.
    pub fn setup(&self, execution: u64) -> Result<Setup, String> {
        let definition = Definition::from_value(self.definition.clone())
            .map_err(|problems| format!("the definition is refused: {problems:?}"))?;
        let pinned = |gone: bool| -> AgentSet {
            let stubs = self.stubs.iter().filter(|(_, stub)| gone || !stub.is_gone);
            stubs
                .map(|(id, stub)| {
                    (AgentId::from(id.as_str()), Arc::new(PinnedAgent::new(stub.agent(id))))
                })
                .collect()
        };
        let compiled = compile(&definition, &pinned(true));
        let plan = compiled.plan.ok_or_else(|| {
            let findings = compiled.diagnostics.iter().filter(|found| found.is_error());
            findings.map(|found| format!("{found:?}\n")).collect::<String>()
        })?;
        let setup = Setup {
            id: ExecutionId(Uuid::nil()),
            plan: Arc::new(plan),
            agents: Arc::new(pinned(false)),
            input: Payload::new(self.input.clone()),
        };
        Ok(setup.of(execution))
    }

    /// The ids of the nodes, in file order.
    pub fn node_ids(&self) -> Vec<String> {
        let nodes = self.definition.get("nodes").and_then(Value::as_array).unwrap_or_default();
        nodes.iter().filter_map(|node| Some(node.get("id")?.as_str()?.to_owned())).collect()
    }
}

impl Setup {
    /// The same for an execution of another number.
    pub fn of(&self, execution: u64) -> Setup {
        Setup { id: ExecutionId(Uuid::from_u128(u128::from(execution))), ..self.clone() }
    }

    pub fn fresh(&self) -> Execution {
        Execution::new(
            self.id,
            Arc::clone(&self.plan),
            Arc::clone(&self.agents),
            OverrideLimits::default(),
        )
    }

    pub fn replay<'r>(&self, records: impl IntoIterator<Item = &'r Record>) -> Execution {
        Execution::replay(
            self.id,
            Arc::clone(&self.plan),
            Arc::clone(&self.agents),
            OverrideLimits::default(),
            records,
        )
    }

    pub fn idx(&self, node: &str) -> NodeIdx {
        self.plan.node_idx(&NodeId::from(node)).unwrap_or_else(|| panic!("no node {node}"))
    }
}

fn field_edge(n: usize, edge: &Value) -> Value {
    let parts = edge.as_array().expect("an edge is a list");
    let mut written = object([
        ("id", format!("e{n}").into()),
        ("source", parts[0].clone()),
        ("target", parts[1].clone()),
    ]);
    if let Some(condition) = parts.get(2).and_then(Value::as_object) {
        let mut written_condition = Object::new();
        for (key, value) in condition {
            let key = if key == "op" { "operator" } else { key };
            match key {
                "port" => drop(written.insert("sourceHandle", value.clone())),
                _ => drop(written_condition.insert(key, value.clone())),
            }
        }
        if !written_condition.is_empty() {
            written.insert("condition", written_condition);
        }
    }
    written.into()
}

fn object<const N: usize>(fields: [(&str, Value); N]) -> Object {
    fields.into_iter().collect()
}
