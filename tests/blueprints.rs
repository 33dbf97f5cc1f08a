//! The blueprints that ship: they must be what the product itself would write, and be laid out as
//! the design says.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::agent::{self, Agent, AgentSet, PinnedAgent};
use engine::definition::{self, Definition, Node, schema};
use engine::node;
use engine::plan::compile::compile;
use engine::plan::diagnostic::{Code, Severity};
use engine::value::Value;

/// The grid that cards are snapped to, in pixels.
const GRID: i64 = 8;

/// The size of a node's card, in pixels.
const CARD: (i64, i64) = (168, 72);

/// A workflow file and what it holds.
struct Blueprint {
    path: PathBuf,
    definition: Definition,
}

impl Blueprint {
    fn name(&self) -> String {
        self.path.file_name().expect("a file has a name").to_string_lossy().into_owned()
    }

    /// The file with the agents that `run --agents` takes, where there is one.
    fn agents_path(&self) -> PathBuf {
        self.path.with_extension("agents.json")
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ is below the root")
        .join("blueprints")
}

/// Every workflow below `blueprints/`, ordered by path.
fn blueprints() -> Vec<Blueprint> {
    let mut paths: Vec<PathBuf> = [folder(), folder().join("examples")]
        .iter()
        .flat_map(|folder| fs::read_dir(folder).expect("the folder is there"))
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.is_file() && !path.to_string_lossy().ends_with(".agents.json"))
        .collect();
    paths.sort();
    assert!(paths.len() >= 11, "five seeds, three reports, an example per node type: {paths:?}");
    paths.into_iter().map(read).collect()
}

fn read(path: PathBuf) -> Blueprint {
    let bytes = fs::read(&path).expect("the file can be read");
    let mut read =
        definition::read_file(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(read.len(), 1, "{} holds one workflow", path.display());
    let read = read.remove(0);
    assert_eq!(read.notes, [], "{}", path.display());
    Blueprint { path, definition: read.definition }
}

fn agents(path: &Path) -> Vec<Agent> {
    let bytes = fs::read(path).expect("the file can be read");
    agent::read_file(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_blueprint_is_written_as_the_product_writes_it() {
    for blueprint in blueprints() {
        let text = fs::read_to_string(&blueprint.path).expect("the file is text");
        assert_eq!(text, blueprint.definition.to_file(), "{}", blueprint.name());
        assert_eq!(blueprint.definition.unknown_fields(), [], "{}", blueprint.name());
        let schema = blueprint.definition.schema.as_deref();
        assert_eq!(schema, Some(schema::SCHEMA_ID), "{}", blueprint.name());
    }
}

#[test]
fn every_blueprint_says_what_the_catalog_shows() {
    let mut names = BTreeSet::new();
    for Blueprint { path, definition } in blueprints() {
        let name = path.display();
        assert!(definition.description.is_some_and(|text| text.len() > 40), "{name}");
        let metadata = definition.metadata.unwrap_or_else(|| panic!("{name}: no metadata"));
        let text = |key| metadata.get(key).and_then(Value::as_str).is_some();
        assert!(text("category") && text("author"), "{name}");
        assert!(metadata.get("tags").and_then(Value::as_array).is_some(), "{name}");
        assert_eq!(metadata.get("isSystem").and_then(Value::as_bool), Some(true), "{name}");
        assert!(metadata.get("contentVersion").and_then(Value::as_u64) >= Some(1), "{name}");
        assert!(names.insert(definition.name.expect("a name")), "{name}: its name is taken");
    }
}

/// The agents that a blueprint finds: the built-in one and those beside it.
fn agents_for(blueprint: &Blueprint) -> AgentSet {
    let path = blueprint.agents_path();
    let beside = if path.exists() { agents(&path) } else { Vec::new() };
    let all = beside.into_iter().chain([Agent::built_in_echo()]);
    all.map(|agent| (agent.id.clone(), Arc::new(PinnedAgent::new(agent))))
        .collect::<BTreeMap<_, _>>()
}

#[test]
fn every_blueprint_compiles_once_its_placeholders_are_mapped() {
    for blueprint in blueprints() {
        let compiled = compile(&blueprint.definition, &agents_for(&blueprint));
        let found: Vec<_> = compiled
            .diagnostics
            .iter()
            .filter(|found| found.code != Code::PlaceholderAgent)
            .filter(|found| found.severity != Severity::Information)
            .collect();
        assert!(found.is_empty(), "{}: {found:#?}", blueprint.name());

        let mut mapped = blueprint.definition.clone();
        for agent_id in mapped.nodes.iter_mut().filter_map(|node| node.agent_id.as_mut()) {
            if agent_id.starts_with("placeholder-") {
                *agent_id = Agent::ECHO_ID.to_owned();
            }
        }
        let compiled = compile(&mapped, &agents_for(&blueprint));
        assert!(compiled.plan.is_some(), "{}: {:#?}", blueprint.name(), compiled.diagnostics);
    }
}

#[test]
fn every_node_type_has_an_example() {
    let all = blueprints();
    for node_type in node::catalog() {
        let file = format!("{}.json", node_type.name);
        let example = all.iter().find(|example| {
            example.name() == file && example.path.starts_with(folder().join("examples"))
        });
        let example = example.unwrap_or_else(|| panic!("blueprints/examples/{file} is missing"));
        let shows = example.definition.nodes.iter().any(|node| node.type_name() == node_type.name);
        assert!(shows, "{file} has no node of its type");
    }
}

#[test]
fn cards_stand_on_the_grid_and_do_not_overlap() {
    for blueprint in blueprints() {
        let places: Vec<(i64, i64)> = blueprint.definition.nodes.iter().map(place).collect();
        for (n, &(x, y)) in places.iter().enumerate() {
            assert!(x % GRID == 0 && y % GRID == 0, "{}: {x}, {y}", blueprint.name());
            let covers = |&(other_x, other_y): &(i64, i64)| {
                (x - other_x).abs() < CARD.0 && (y - other_y).abs() < CARD.1
            };
            assert!(!places[n + 1..].iter().any(covers), "{}: {x}, {y}", blueprint.name());
        }
    }
}

fn place(node: &Node) -> (i64, i64) {
    let position = node.position.as_ref().expect("every node has a place");
    let axis = |name| position.get(name).and_then(Value::as_i64).expect("a whole number");
    (axis("x"), axis("y"))
}

#[test]
fn every_agent_is_built_in_or_beside_the_blueprint_or_a_placeholder() {
    let built_in = Agent::built_in_echo().id;
    for blueprint in blueprints() {
        let beside: BTreeSet<_> = match blueprint.agents_path() {
            path if path.exists() => agents(&path).into_iter().map(|agent| agent.id).collect(),
            _ => BTreeSet::new(),
        };
        let mut used = BTreeSet::new();
        for id in blueprint.definition.nodes.iter().filter_map(|node| node.agent_id.as_deref()) {
            let known = id == built_in.as_str() || beside.contains(id);
            assert!(known || id.starts_with("placeholder-"), "{}: {id}", blueprint.name());
            used.insert(id);
        }
        let unused: Vec<_> = beside.iter().filter(|id| !used.contains(id.as_str())).collect();
        assert!(unused.is_empty(), "{}: nobody uses {unused:?}", blueprint.name());
    }
}

#[test]
fn agents_of_the_reports_only_read_and_pass_values_as_arguments() {
    let mut n_agents = 0;
    for path in blueprints().iter().map(Blueprint::agents_path).filter(|path| path.exists()) {
        for agent in agents(&path) {
            n_agents += 1;
            assert!(!agent.is_side_effecting(), "{} changes the world", agent.id);
            let args = agent.settings.get("args").and_then(Value::as_array).expect("arguments");
            let script = args[1].as_str().expect("sh -c takes a script");
            for mark in ["{{", "{%", "{#"] {
                assert!(
                    !script.contains(mark),
                    "the script of {} contains {mark}: a value must never become code",
                    agent.id
                );
            }
        }
    }
    assert!(n_agents > 20, "three reports have agents");
}
