//! Random definitions that use everything a definition can say about how it runs.

use std::collections::{BTreeMap, BTreeSet};

use engine::agent::RunnerKind;
use engine::value::Value;
use serde_json::{Value as Json, json};

use super::case::{Case, Stub, stub_id};
use super::dice::Dice;

/// The most nodes a random definition has.
pub const NODES_MAX: usize = 60;

const ERROR_TYPES: [&str; 9] = [
    "Oops",
    "Transient",
    "network",
    "timeout",
    "rateLimited",
    "invalidOutput",
    "policyDenied",
    "internal",
    "bindingError",
];

const POLICIES: [&str; 4] = ["failDependents", "skipDependents", "continue", "stop"];

/// A random definition with stubs and input. The same seed always gives the same.
pub fn random_case(seed: u64) -> Case {
    let mut dice = Dice::new(seed);
    let n_nodes = match dice.below(10) {
        0..5 => 1 + dice.below(8),
        5..8 => 6 + dice.below(15),
        _ => 20 + dice.below(NODES_MAX - 19),
    };
    Builder::new(dice, n_nodes).build()
}

struct Builder {
    dice: Dice,
    n_nodes: usize,
    ids: Vec<String>,
    /// (source, target, port) in the order of the file.
    edges: Vec<(usize, usize, &'static str)>,
    ancestors: Vec<BTreeSet<usize>>,
}

impl Builder {
    fn new(mut dice: Dice, n_nodes: usize) -> Builder {
        let has_odd_ids = dice.chance(10);
        let id = |n: usize| if has_odd_ids { format!("n/{n}[%2] ü") } else { format!("n{n}") };
        Builder {
            ids: (0..n_nodes).map(id).collect(),
            dice,
            n_nodes,
            edges: Vec::new(),
            ancestors: vec![BTreeSet::new(); n_nodes],
        }
    }

    fn build(mut self) -> Case {
        self.connect();
        let edges: Vec<Json> = (0..self.edges.len()).map(|n| self.edge(n)).collect();
        let mut file_order: Vec<usize> = (0..self.n_nodes).collect();
        if self.dice.chance(60) {
            self.dice.shuffle(&mut file_order);
        }
        let mut stubs = BTreeMap::new();
        let nodes: Vec<Json> = file_order.iter().map(|n| self.node(*n, &mut stubs)).collect();
        let mut definition = json!({
            "version": "1.0.0",
            "name": "random",
            "configuration": {},
            "nodes": nodes,
            "edges": edges,
        });
        if self.dice.chance(60) {
            let concurrency = self.dice.between(1, 16);
            definition["configuration"]["concurrency"] = concurrency.into();
        }
        if self.dice.chance(25) {
            definition["onFailure"] = (*self.dice.pick(&POLICIES)).into();
        }
        if self.dice.chance(30) {
            definition["finalOutput"] = self.dice.pick(&self.ids.clone()).clone().into();
        }
        if self.dice.chance(15) {
            definition["timeout"] = (*self.dice.pick(&[json!(0.05), json!(2), json!(30)])).clone();
        }
        let input = self.value();
        Case { definition: read(&definition), stubs, input: read(&input) }
    }

    /// Edges go from lower to higher numbers. Every node has one, unless it is alone.
    fn connect(&mut self) {
        let reach = 1 + self.dice.below(8);
        for target in 1..self.n_nodes {
            let n_sources = match self.dice.below(20) {
                0 => 0,
                1..11 => 1,
                11..16 => 2,
                16..19 => 3,
                _ => 6,
            };
            for _ in 0..n_sources {
                let source = target - 1 - self.dice.below(reach.min(target));
                self.connect_pair(source, target);
            }
        }
        for n in 0..self.n_nodes {
            let is_alone =
                self.edges.iter().all(|(source, target, _)| *source != n && *target != n);
            match n {
                _ if !is_alone || self.n_nodes == 1 => {}
                0 => self.connect_pair(0, 1),
                _ => self.connect_pair(n - 1, n),
            }
        }
        if self.dice.chance(50) {
            let mut edges = std::mem::take(&mut self.edges);
            self.dice.shuffle(&mut edges);
            self.edges = edges;
        }
        let mut by_target = self.edges.clone();
        by_target.sort_by_key(|(_, target, _)| *target);
        for (source, target, _) in by_target {
            let mut above = self.ancestors[source].clone();
            above.insert(source);
            self.ancestors[target].extend(above);
        }
    }

    fn connect_pair(&mut self, source: usize, target: usize) {
        let port = if self.dice.chance(8) { "error" } else { "output" };
        self.edges.push((source, target, port));
        if self.dice.chance(15) {
            let port = if self.dice.chance(50) { "error" } else { "output" };
            self.edges.push((source, target, port));
        }
    }

    fn edge(&mut self, n: usize) -> Json {
        let (source, target, port) = self.edges[n];
        let mut edge = json!({
            "id": format!("e{n}"), "source": self.ids[source], "target": self.ids[target],
        });
        if port != "output" || self.dice.chance(20) {
            edge["sourceHandle"] = port.into();
        }
        // Twins must differ, or they are one edge; a condition that names the edge tells them
        // apart.
        let has_twin =
            self.edges.iter().enumerate().any(|(other, edge)| other != n && *edge == self.edges[n]);
        if has_twin {
            let simple = self.condition(0);
            let own = json!({"field": "nowhere", "operator": "equals", "value": n});
            edge["condition"] = json!({"any": [simple, own]});
        } else if self.dice.chance(15) {
            // Nearly always true, so that executions get somewhere.
            edge["condition"] = json!({"field": "tag", "operator": "notEquals", "value": "blue"});
        } else if self.dice.chance(15) {
            edge["condition"] = self.condition(2);
        }
        edge
    }

    fn condition(&mut self, depth: usize) -> Json {
        if depth > 0 && self.dice.chance(20) {
            return match self.dice.below(3) {
                0 => json!({"not": self.condition(depth - 1)}),
                1 => json!({"all": self.conditions(depth - 1)}),
                _ => json!({"any": self.conditions(depth - 1)}),
            };
        }
        let fields = [
            "n",
            "n",
            "tag",
            "list",
            "list[0]",
            "deep[\"a.b\"]",
            "gone",
            "",
            "$failed.class",
            "$failed.errorType",
            "$failed",
        ];
        let values = [json!(3), json!("3"), json!("red"), json!(null), json!(true), json!({})];
        let operators =
            ["equals", "notEquals", "contains", "greaterThan", "lessThan", "exists", "exists"];
        let (field, operator) = (*self.dice.pick(&fields), *self.dice.pick(&operators));
        let mut condition = json!({"field": field, "operator": operator});
        if operator != "exists" {
            condition["value"] = self.dice.pick(&values).clone();
        }
        condition
    }

    fn conditions(&mut self, depth: usize) -> Vec<Json> {
        (0..self.dice.below(3)).map(|_| self.condition(depth)).collect()
    }

    fn node(&mut self, n: usize, stubs: &mut BTreeMap<String, Stub>) -> Json {
        let id = self.ids[n].clone();
        let mut node = json!({"id": id});
        let is_transform = self.dice.chance(12);
        if is_transform {
            node["type"] = "transform".into();
        } else {
            let agent = stub_id(&id);
            node["agentId"] = agent.clone().into();
            stubs.insert(agent, self.stub());
        }
        if is_transform || self.dice.chance(12) {
            node["inputs"] = self.inputs(n);
        }
        if self.dice.chance(30) {
            node["onFailure"] = (*self.dice.pick(&POLICIES)).into();
        }
        if self.dice.chance(6) {
            node["disabled"] = true.into();
        }
        if self.dice.chance(25) {
            node["retryPolicy"] = self.retry_policy();
        }
        if self.dice.chance(15) {
            node["timeout"] = (*self.dice.pick(&[json!(0.01), json!(1), json!(5)])).clone();
        }
        if self.dice.chance(3) {
            node["configuration"] = json!({"modelOverride": "m".repeat(257)});
        }
        let sources: BTreeSet<usize> =
            self.edges.iter().filter(|edge| edge.1 == n).map(|edge| edge.0).collect();
        if !sources.is_empty() && self.dice.chance(40) {
            let min = 1 + self.dice.below(sources.len());
            node["join"] = match self.dice.below(3) {
                0 => "any".into(),
                1 => "all".into(),
                _ => json!({"min": min}),
            };
        }
        node
    }

    fn stub(&mut self) -> Stub {
        let out = self.value();
        let error_type = *self.dice.pick(&ERROR_TYPES);
        let script = match self.dice.below(20) {
            0..13 => json!({"out": out}),
            13..15 => json!({"echo": true}),
            15..17 => json!({"fail": error_type}),
            _ => json!({"fail": error_type, "times": self.dice.between(1, 3), "then": out}),
        };
        let mut stub = Stub::new(read(&script));
        if self.dice.chance(40) {
            stub.runner = RunnerKind::Process;
        }
        if self.dice.chance(30) {
            stub.side_effecting = Some(self.dice.chance(50));
        }
        stub.idempotent = self.dice.chance(20);
        if self.dice.chance(8) {
            stub.retry_policy = Some(read(&self.retry_policy()));
        }
        stub.is_gone = self.dice.chance(2);
        stub
    }

    fn retry_policy(&mut self) -> Json {
        let mut policy = json!({"maxRetries": self.dice.below(4)});
        if self.dice.chance(70) {
            policy["backoffBase"] = (*self.dice.pick(&[json!(0), json!(0.01), json!(5)])).clone();
            policy["backoffMax"] = (*self.dice.pick(&[json!(0.02), json!(60)])).clone();
        }
        if self.dice.chance(30) {
            let count = self.dice.below(4);
            let errors: Vec<Json> =
                (0..count).map(|_| (*self.dice.pick(&ERROR_TYPES)).into()).collect();
            policy["retryableErrors"] = errors.into();
        }
        if self.dice.chance(40) {
            policy["strategy"] = (*self.dice.pick(&["exponential", "linear", "fixed"])).into();
        }
        policy
    }

    fn inputs(&mut self, n: usize) -> Json {
        let mut inputs = json!({});
        for key in ["a", "b", "c"].into_iter().take(1 + self.dice.below(3)) {
            inputs[key] = self.binding(n);
        }
        inputs
    }

    fn binding(&mut self, n: usize) -> Json {
        let upstream: Vec<usize> = self.ancestors[n].iter().copied().collect();
        match self.dice.below(9) {
            0 | 6..9 => json!([1, "plain", null]),
            1 => json!("{{ input }}"),
            _ if upstream.is_empty() => json!({"all": ["{{ input }}", 2]}),
            kind => {
                let source = *self.dice.pick(&upstream);
                let source = &self.ids[source];
                match kind {
                    2 => json!(format!("{{{{ nodes[\"{source}\"].output }}}}")),
                    3 => json!({"x": format!("{{{{nodes[\"{source}\"].output}}}}")}),
                    4 => {
                        json!(format!("is {{{{ nodes[\"{source}\"].output }}}}, {{{{ input }}}}!"))
                    }
                    _ => json!(format!("{{{{ nodes[\"{source}\"].output.n }}}}")),
                }
            }
        }
    }

    fn value(&mut self) -> Json {
        let n = self.dice.below(7);
        match self.dice.below(10) {
            0 => json!(null),
            1 => json!(n),
            2 => json!("red wine"),
            3 => json!(["red", n]),
            4 => json!({}),
            5 => json!({"n": n.to_string(), "tag": null}),
            _ => json!({
                "n": n,
                "tag": self.dice.pick(&["red", "blue"]),
                "list": [n, "red"],
                "deep": {"a.b": n},
            }),
        }
    }
}

fn read(json: &Json) -> Value {
    Value::parse(&json.to_string()).expect("serde_json writes JSON")
}
