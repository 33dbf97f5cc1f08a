//! Every finding with a definition that causes it, and the plans of definitions without errors.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::*;
use crate::agent::{Agent, PinnedAgent, RunnerKind};
use crate::definition::{Edge, Node};
use crate::ids::AgentId;
use crate::plan::{FailurePolicy, InputTemplate, JoinRule, Work};
use crate::retry::Backoff;

/// The agents of the machine these definitions are compiled on: `x` is pure, `s` is not.
fn agents() -> AgentSet {
    let agents = [
        r#"{"id":"x","name":"Agent X","runner":"echo"}"#,
        r#"{"id":"s","runner":"process","settings":{"program":"s"}}"#,
    ];
    agent_set(&agents)
}

fn agent_set(agents: &[&str]) -> AgentSet {
    let agents = agents.iter().map(|text| {
        let agent = Agent::from_value(&Value::parse(text).unwrap()).unwrap();
        (agent.id.clone(), Arc::new(PinnedAgent::new(agent)))
    });
    agents.collect()
}

/// Nodes of agent `x` by id, and edges like `a>b`, called e0, e1 and so on.
fn graph(nodes: &str, edges: &str) -> Definition {
    let agent_id = || Some("x".to_owned());
    let nodes = nodes.split_whitespace();
    let edges = edges.split_whitespace().enumerate().map(|(n, edge)| {
        let (source, target) = edge.split_once('>').unwrap();
        Edge::new(format!("e{n}"), source, target)
    });
    Definition {
        nodes: nodes.map(|id| Node { agent_id: agent_id(), ..Node::new(id) }).collect(),
        edges: edges.collect(),
        ..Definition::default()
    }
}

fn value(text: &str) -> Value {
    Value::parse(text).unwrap()
}

fn read(text: &str) -> Definition {
    Definition::from_value(value(text)).unwrap()
}

fn node<'a>(definition: &'a mut Definition, id: &str) -> &'a mut Node {
    definition.nodes.iter_mut().find(|node| node.id.as_str() == id).unwrap()
}

fn inputs(definition: &mut Definition, id: &str, text: &str) {
    node(definition, id).inputs = value(text).as_object().cloned();
}

/// Findings as `code at place`.
fn findings(definition: &Definition) -> Vec<String> {
    findings_with(definition, &agents())
}

fn findings_with(definition: &Definition, agents: &AgentSet) -> Vec<String> {
    let compiled = compile(definition, agents);
    let has_errors = compiled.diagnostics.iter().any(Diagnostic::is_error);
    assert_eq!(compiled.plan.is_none(), has_errors, "{:#?}", compiled.diagnostics);
    for finding in &compiled.diagnostics {
        assert!(!finding.message.is_empty() && !finding.hint.is_empty());
        assert!(!finding.message.ends_with('.') && !finding.hint.ends_with('.'), "{finding}");
    }
    compiled.diagnostics.iter().map(|found| format!("{} at {}", found.code, found.place)).collect()
}

fn message(definition: &Definition, code: Code) -> String {
    let found = compile(definition, &agents()).diagnostics;
    let found = found.into_iter().find(|found| found.code == code);
    found.map_or_else(|| panic!("no finding {code}"), |found| found.message)
}

fn plan(definition: &Definition) -> Plan {
    let compiled = compile(definition, &agents());
    let errors: Vec<String> = compiled.diagnostics.iter().map(Diagnostic::to_string).collect();
    compiled.plan.unwrap_or_else(|| panic!("{}", errors.join("\n")))
}

fn ids(plan: &Plan) -> Vec<&str> {
    plan.nodes.iter().map(|node| node.id.as_str()).collect()
}

const NONE: [&str; 0] = [];

#[test]
fn a_plan_holds_everything_resolved() {
    let definition = read(
        r#"{"name":"W","timeout":90,"onFailure":"continue","finalOutput":"c",
            "configuration":{"concurrency":3,"parameters":{"p":1}},"inputSchema":{"type":"object"},
            "nodes":[
              {"id":"c","agentId":"s","name":"Last","join":{"min":1},"onFailure":"stop",
               "timeout":0.5,"retryPolicy":{"maxRetries":2,"strategy":"fixed"},
               "inputs":{"text":"{{ nodes.b.output }}","n":[1,{"k":"x{{ input.n }}"}],"m":[1]}},
              {"id":"note","type":"note"},
              {"id":"b","agentId":"x","disabled":false,"configuration":"{\"k\":1}"},
              {"id":"a","agentId":"x","disabled":true}],
            "edges":[{"id":"e1","source":"a","target":"c"},
                     {"id":"e2","source":"b","target":"c"},
                     {"id":"e3","source":"b","target":"c","sourceHandle":"error",
                      "condition":{"field":"$failed","operator":"exists"}}]}"#,
    );
    assert_eq!(findings(&definition), NONE);
    let plan = plan(&definition);
    assert_eq!(ids(&plan), ["b", "a", "c"], "in topological order, ties by position in the file");
    assert_eq!((plan.name.as_str(), plan.timeout_ms, plan.concurrency), ("W", Some(90_000), 3));
    assert_eq!(plan.final_output, Some(NodeIdx(2)));
    assert_eq!(plan.node_idx(&"a".into()), Some(NodeIdx(1)));
    assert_eq!(plan.edge_idx(&"e3".into()), Some(EdgeIdx(2)));

    let [b, a, c] = &*plan.nodes else { panic!("three nodes") };
    assert_eq!((b.name.as_str(), &b.work), ("Agent X", &Work::Agent("x".into())));
    assert_eq!(b.configuration.get("k"), Some(&value("1")));
    assert_eq!((b.is_disabled, a.is_disabled), (false, true));
    assert_eq!((b.on_failure, c.on_failure), (FailurePolicy::Continue, FailurePolicy::Stop));
    assert_eq!((&*b.outgoing, &*b.incoming), (&[EdgeIdx(1), EdgeIdx(2)][..], &[][..]));
    assert_eq!((&*c.incoming, c.level), (&[EdgeIdx(0), EdgeIdx(1), EdgeIdx(2)][..], 1));
    assert_eq!(&*c.predecessors, [NodeIdx(1), NodeIdx(0)]);
    assert_eq!((c.join, c.timeout_ms), (JoinRule::AtLeast(1), Some(500)));
    let retry = c.retry.as_ref().unwrap();
    assert_eq!((retry.retries_max, retry.backoff), (2, Backoff::Fixed));
    assert_eq!((b.join, b.timeout_ms, &b.retry), (JoinRule::All, None, &None));
    let inputs = c.inputs.as_ref().unwrap();
    assert!(matches!(&inputs[0], (key, InputTemplate::Template(_)) if key == "text"));
    let InputTemplate::Array(items) = &inputs[1].1 else { panic!("a list with a template") };
    assert!(matches!(&items[0], InputTemplate::Literal(n) if *n == value("1")));
    assert!(matches!(&items[1], InputTemplate::Object(_)));
    assert!(matches!(&inputs[2].1, InputTemplate::Literal(_)), "a list without templates is one");

    let [e1, e2, e3] = &*plan.edges else { panic!("three edges") };
    assert_eq!((e1.source, e1.target, &*e1.source_port), (NodeIdx(1), NodeIdx(2), "output"));
    assert_eq!((&*e3.source_port, &*e3.target_port), ("error", "input"));
    assert!(e3.condition.is_some() && e2.condition.is_none());
    assert_eq!(
        (&*e1.twins, &*e2.twins, &*e3.twins),
        (&[][..], &[EdgeIdx(2)][..], &[EdgeIdx(1)][..])
    );
    assert_eq!(plan.sinks().collect::<Vec<_>>(), [NodeIdx(2)]);
}

#[test]
fn a_node_is_called_by_its_name_else_its_agents_else_its_id() {
    let mut definition = graph("a b c", "a>b b>c");
    node(&mut definition, "a").name = Some("First".to_owned());
    node(&mut definition, "c").agent_id = Some("gone".to_owned());
    let plan = compile_again(&definition, &agents()).plan.unwrap();
    let names: Vec<&str> = plan.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["First", "Agent X", "c"]);
}

#[test]
fn a_workflow_without_nodes_cannot_run() {
    assert_eq!(findings(&Definition::default()), ["noNodes at workflow, nodes"]);
    let only_a_note = read(r#"{"nodes":[{"id":"n","type":"note"}]}"#);
    assert_eq!(findings(&only_a_note), ["noNodes at workflow, nodes"]);
}

#[test]
fn nodes_must_name_an_agent_of_this_machine() {
    let definition = read(
        r#"{"nodes":[{"id":"a"},{"id":"b","agentId":" "},{"id":"c","agentId":"nobody"},
                     {"id":"d","agentId":"placeholder-writer"}],
            "edges":[{"id":"1","source":"a","target":"b"},{"id":"2","source":"b","target":"c"},
                     {"id":"3","source":"c","target":"d"}]}"#,
    );
    assert_eq!(
        findings(&definition),
        [
            "missingAgent at node \"a\", agentId",
            "missingAgent at node \"b\", agentId",
            "unknownAgent at node \"c\", agentId",
            "placeholderAgent at node \"d\", agentId",
        ]
    );
    let compiled = compile(&definition, &agents());
    assert_eq!(compiled.diagnostics[2].hint, "create or import it, or choose one of \"s\", \"x\"");
    let mapped = agent_set(&[r#"{"id":"placeholder-writer","runner":"echo"}"#]);
    let named = graph("a", "");
    let named = Definition {
        nodes: vec![Node {
            agent_id: Some("placeholder-writer".to_owned()),
            ..named.nodes[0].clone()
        }],
        ..named
    };
    assert_eq!(findings_with(&named, &mapped), NONE, "an agent may even be called like that");
}

#[test]
fn an_agent_that_is_gone_does_not_withhold_a_plan_that_existed() {
    let mut definition = graph("a b", "a>b");
    node(&mut definition, "b").agent_id = Some("gone".to_owned());
    let again = compile_again(&definition, &agents());
    assert_eq!(again.plan.unwrap().nodes[1].work, Work::Agent("gone".into()));
    assert_eq!(again.diagnostics[0].code, Code::UnknownAgent);
    node(&mut definition, "b").timeout = Some(value("-1"));
    assert!(compile_again(&definition, &agents()).plan.is_none(), "other errors still do");
}

#[test]
fn the_digest_of_a_plan_does_not_depend_on_the_agents() {
    let definition = graph("a b", "a>b");
    let with_agents = plan(&definition).digest;
    let without = compile_again(&definition, &AgentSet::new()).plan.unwrap().digest;
    assert_eq!(with_agents, without);
}

#[test]
fn parameters_that_an_agent_requires_must_be_set_somewhere() {
    let schema = r#"{"id":"p","name":"P","runner":"echo","parameters":{"properties":
        {"a":{"default":1},"b":{},"c":{},"d":{},"e":{}},"required":["a","b","c","d","e"]}}"#;
    let mut definition = read(
        r#"{"configuration":{"agentProperties":{"p":{"b":1},"q":{"e":1}},"parameters":{"c":null}},
            "nodes":[{"id":"n","agentId":"p","configuration":{"d":0}}]}"#,
    );
    let agents = agent_set(&[schema]);
    assert_eq!(
        findings_with(&definition, &agents),
        ["missingParameter at node \"n\", configuration"]
    );
    let found = &compile(&definition, &agents).diagnostics[0];
    assert_eq!(
        found.message,
        "agent \"P\" of node \"n\" requires the parameter \"e\", which nobody sets"
    );
    node(&mut definition, "n").configuration = Some(value(r#"{"d":0,"e":null}"#));
    assert_eq!(findings_with(&definition, &agents), NONE);
}

#[test]
fn an_agents_own_policies_are_checked_where_they_hold() {
    let bad = r#"{"id":"p","runner":"echo","timeout":-1,"retryPolicy":{"maxRetries":"x"}}"#;
    let agents = agent_set(&[bad]);
    let mut definition = graph("a", "");
    node(&mut definition, "a").agent_id = Some("p".to_owned());
    let bad_agent = "badAgent at node \"a\", agentId";
    assert_eq!(findings_with(&definition, &agents), [bad_agent, bad_agent]);
    node(&mut definition, "a").timeout = Some(value("1"));
    node(&mut definition, "a").retry_policy = Some(value("{\"maxRetries\":0}"));
    assert_eq!(findings_with(&definition, &agents), NONE, "the node's own come first");
}

#[test]
fn unknown_types_and_versions_are_errors() {
    let mut definition = graph("a b c", "a>b b>c");
    node(&mut definition, "a").node_type = Some("teleport".to_owned());
    node(&mut definition, "b").type_version = Some(value("2"));
    node(&mut definition, "c").type_version = Some(value("1.0"));
    assert_eq!(
        findings(&definition),
        ["unknownType at node \"a\", type", "badTypeVersion at node \"b\", typeVersion"]
    );
    assert_eq!(
        message(&definition, Code::UnknownType),
        "node \"a\" has the unknown type \"teleport\""
    );
    for bad in ["0", "-1", "1.5", "\"1\"", "[]"] {
        node(&mut definition, "b").type_version = Some(value(bad));
        assert!(message(&definition, Code::BadTypeVersion).contains("versions 1 to 1"), "{bad}");
    }
}

#[test]
fn a_transform_needs_inputs_and_no_agent() {
    let definition = read(
        r#"{"nodes":[{"id":"t","type":"transform"},
                     {"id":"u","type":"transform","agentId":"x","inputs":{"a":1}}],
            "edges":[{"id":"e","source":"t","target":"u","condition":{"all":[]}}]}"#,
    );
    assert_eq!(
        findings(&definition),
        ["missingInputs at node \"t\", inputs", "unusedField at node \"u\", agentId"]
    );
    let alone = read(r#"{"nodes":[{"id":"t","type":"transform","inputs":{}}]}"#);
    assert_eq!(plan(&alone).nodes[0].work, Work::Transform);
}

#[test]
fn notes_are_not_compiled_and_have_no_edges() {
    let definition = read(
        r#"{"nodes":[{"id":"a","agentId":"x"},
                     {"id":"n","type":"note","inputs":{"x":"{{"},"timeout":"never"}],
            "edges":[]}"#,
    );
    assert_eq!(findings(&definition), NONE, "a note next to one node leaves that one alone");
    assert_eq!(ids(&plan(&definition)), ["a"]);
    let mut wired = definition;
    wired.edges = vec![Edge::new("e", "a", "n"), Edge::new("f", "n", "a")];
    assert_eq!(
        findings(&wired),
        ["edgeAtNote at edge \"e\", target", "edgeAtNote at edge \"f\", source"]
    );
    assert_eq!(message(&wired, Code::EdgeAtNote), "edge \"e\" ends at node \"n\", which is a note");
}

#[test]
fn compile_reports_every_cycle_once_starting_at_the_first_in_the_file() {
    let definition = graph("c b a d", "a>b b>c c>a a>d");
    assert_eq!(findings(&definition), ["cycle at node \"c\""]);
    assert_eq!(
        message(&definition, Code::Cycle),
        "nodes wait for each other in a cycle: \"c\" → \"a\" → \"b\" → \"c\""
    );
    let two = graph("a b c d e f", "a>b b>a b>c c>d d>e e>d e>f");
    assert_eq!(findings(&two), ["cycle at node \"a\"", "cycle at node \"d\""]);
    let tangled = graph("a b c", "a>b b>a b>c c>b");
    assert_eq!(findings(&tangled), ["cycle at node \"a\"", "cycle at node \"b\""]);
    let shortcut = graph("a b c", "a>b b>c c>a a>c");
    assert_eq!(findings(&shortcut), ["cycle at node \"a\"", "cycle at node \"a\""]);
}

#[test]
fn a_long_cycle_is_named_in_short() {
    let n = 1_000;
    let nodes: Vec<String> = (0..n).map(|i| format!("n{i}")).collect();
    let edges: Vec<String> = (0..n).map(|i| format!("n{i}>n{}", (i + 1) % n)).collect();
    let definition = graph(&nodes.join(" "), &edges.join(" "));
    assert_eq!(findings(&definition), ["cycle at node \"n0\""]);
    let message = message(&definition, Code::Cycle);
    assert!(message.ends_with("\"n19\" → 980 more → \"n0\""), "{message}");
}

#[test]
fn self_loops_are_their_own_finding() {
    let definition = graph("a b", "a>a a>b");
    assert_eq!(findings(&definition), ["selfLoop at edge \"e0\""]);
}

#[test]
fn disconnected_nodes_are_errors_when_there_are_several() {
    assert_eq!(findings(&graph("a", "")), NONE);
    assert_eq!(findings(&graph("a b c", "a>b")), ["disconnectedNode at node \"c\""]);
    assert_eq!(findings(&graph("a b", "")).len(), 2);
}

#[test]
fn o_i03_every_edge_to_a_missing_node_is_listed() {
    let definition = graph("a", "a>ghost ghost>a no>where");
    assert_eq!(
        findings(&definition),
        [
            "edgeToMissingNode at edge \"e0\", target",
            "edgeToMissingNode at edge \"e1\", source",
            "edgeToMissingNode at edge \"e2\", source",
            "edgeToMissingNode at edge \"e2\", target",
        ]
    );
    assert_eq!(
        message(&definition, Code::EdgeToMissingNode),
        "edge \"e0\" ends at node \"ghost\", which does not exist"
    );
}

#[test]
fn duplicate_ids_are_errors_also_where_no_file_was_read() {
    let mut definition = graph("a b a", "a>b b>a a>b");
    for edge in &mut definition.edges {
        edge.id = "e".into();
    }
    let found = findings(&definition);
    assert!(found.contains(&"duplicateNode at node \"a\"".to_owned()), "{found:?}");
    assert!(found.contains(&"duplicateEdge at edge \"e\"".to_owned()), "{found:?}");
}

#[test]
fn unknown_ports_are_errors_that_list_the_ports_there_are() {
    let mut definition = graph("a b", "a>b a>b");
    definition.edges[0].source_handle = Some("left".to_owned());
    definition.edges[1].target_handle = Some("output".to_owned());
    assert_eq!(
        findings(&definition),
        ["unknownPort at edge \"e0\", sourceHandle", "unknownPort at edge \"e1\", targetHandle"]
    );
    let found = compile(&definition, &agents()).diagnostics;
    assert_eq!(found[0].message, "node \"a\" has no port \"left\" for edge \"e0\"");
    assert_eq!(found[0].hint, "choose one of \"output\", \"error\", or remove `sourceHandle`");
}

#[test]
fn every_mistake_in_a_condition_is_an_error_at_its_edge() {
    let mut definition = graph("a b", "a>b a>b");
    definition.edges[0].condition = Some(value(
        r#"{"all":[{"field":"a..b","operator":"equals","value":1},{"field":"a","operator":"is"}]}"#,
    ));
    definition.edges[1].condition = Some(value(r#"{"field":"items[-1]","operator":"exists"}"#));
    assert_eq!(
        findings(&definition),
        [
            "badCondition at edge \"e0\", condition.all[0].field",
            "badCondition at edge \"e0\", condition.all[1].operator",
            "badCondition at edge \"e1\", condition.field",
        ]
    );
}

#[test]
fn o_c03_bad_paths_are_rejected_when_the_workflow_is_validated() {
    for bad in ["a..b", "items[-1]", "items[0"] {
        let mut definition = graph("a b", "a>b");
        let condition = format!(r#"{{"field":"{bad}","operator":"exists"}}"#);
        definition.edges[0].condition = Some(value(&condition));
        assert_eq!(findings(&definition), ["badCondition at edge \"e0\", condition.field"]);
    }
}

#[test]
fn joins_that_cannot_be_reached_are_errors() {
    let mut definition = graph("a b c", "a>c b>c a>c");
    node(&mut definition, "c").join = Some(value("{\"min\":3}"));
    node(&mut definition, "a").join = Some(value("\"any\""));
    node(&mut definition, "b").join = Some(value("\"all\""));
    definition.edges[2].source_handle = Some("error".to_owned());
    assert_eq!(
        findings(&definition),
        ["joinOutOfReach at node \"a\", join", "joinOutOfReach at node \"c\", join"]
    );
    node(&mut definition, "c").join = Some(value("\"most\""));
    node(&mut definition, "a").join = Some(value("{\"min\":0}"));
    assert_eq!(
        findings(&definition),
        ["badJoin at node \"a\", join.min", "badJoin at node \"c\", join"]
    );
}

#[test]
fn bad_policies_are_errors_at_their_fields() {
    let mut definition = graph("a", "");
    definition.timeout = Some(value("0"));
    definition.on_failure = Some(value("\"panic\""));
    definition.input_schema = Some(value("3"));
    definition.configuration = Some(value(
        r#"{"concurrency":0,"parameters":[],"agentProperties":{"x":1},"compensation":{"enabled":1}}"#,
    ));
    let a = node(&mut definition, "a");
    a.timeout = Some(value("\"1m\""));
    a.on_failure = Some(value("null"));
    a.configuration = Some(value("\"{oops\""));
    a.retry_policy = Some(value(r#"{"maxRetries":-1,"backoffBase":-2,"x-note":{"n":1}}"#));
    a.compensation = Some(value(r#"{"tool":"t","args":{"k":"${nodes.b.output}"}}"#));
    assert_eq!(
        findings(&definition),
        [
            "badCompensation at workflow, configuration.compensation.enabled",
            "badConfiguration at workflow, configuration.parameters",
            "badConfiguration at workflow, configuration.agentProperties.x",
            "badInputSchema at workflow, inputSchema",
            "badTimeout at workflow, timeout",
            "badFailurePolicy at workflow, onFailure",
            "badConfiguration at workflow, configuration.concurrency",
            "badCompensation at node \"a\", compensation.args.k",
            "badTimeout at node \"a\", timeout",
            "badFailurePolicy at node \"a\", onFailure",
            "badConfiguration at node \"a\", configuration",
            "badRetryPolicy at node \"a\", retryPolicy.maxRetries",
            "badRetryPolicy at node \"a\", retryPolicy.backoffBase",
            "unknownField at node \"a\", retryPolicy.x-note",
        ]
    );
    let mut text = graph("a", "");
    text.configuration = Some(value("\"\""));
    assert_eq!(findings(&text), ["badConfiguration at workflow, configuration"]);
}

#[test]
fn the_final_output_must_name_a_node_that_runs() {
    let mut definition = graph("a b", "a>b");
    definition.final_output = Some("ghost".into());
    assert_eq!(findings(&definition)[0], "unknownFinalOutput at workflow, finalOutput");
    definition.final_output = Some("a".into());
    assert_eq!(plan(&definition).final_output, Some(NodeIdx(0)));
}

#[test]
fn templates_are_read_wherever_they_stand_in_inputs() {
    let mut definition = graph("a b", "a>b");
    inputs(
        &mut definition,
        "b",
        r#"{"good":"{{ nodes.a.output }}","deep":{"list":["{{ oops","{% if %}"]},"plain":"{ }"}"#,
    );
    assert_eq!(
        findings(&definition),
        [
            "badTemplate at node \"b\", inputs.deep.list[0]",
            "badTemplate at node \"b\", inputs.deep.list[1]",
        ]
    );
}

#[test]
fn o_e03_references_the_graph_cannot_resolve_are_errors_before_any_run() {
    let mut definition = graph("A B C Zod", "A>B B>C A>Zod");
    inputs(
        &mut definition,
        "B",
        r#"{"prompt":"{{nodes.A.output.titel}} and {{nodes.Zed.output.x}}","c":"{{nodes.C.output}}",
            "self":"{{nodes.B.output}}","side":["{{nodes.Zod.output}}"]}"#,
    );
    assert_eq!(
        findings(&definition),
        [
            "unresolvedReference at node \"B\", inputs.prompt",
            "unresolvedReference at node \"B\", inputs.self",
            "unresolvedReference at node \"B\", inputs.c",
            "unresolvedReference at node \"B\", inputs.side[0]",
        ]
    );
    let found = &compile(&definition, &agents()).diagnostics[0];
    assert_eq!(
        found.message,
        "node \"B\" refers to `nodes.Zed.output.x`, but there is no node \"Zed\" that runs"
    );
    assert_eq!(found.hint, "directly before this node come nodes[\"A\"].output");
}

#[test]
fn o_e03_a_key_of_an_output_is_not_known_before_the_run() {
    let mut definition = graph("A B", "A>B");
    inputs(&mut definition, "B", r#"{"prompt":"{{nodes.A.output.titel}}"}"#);
    assert_eq!(findings(&definition), NONE);
}

#[test]
fn nodes_far_upstream_are_in_scope() {
    let n = 300;
    let nodes: Vec<String> = (0..n).map(|i| format!("n{i}")).collect();
    let edges: Vec<String> = (1..n).map(|i| format!("n{}>n{i}", i - 1)).collect();
    let mut definition = graph(&nodes.join(" "), &edges.join(" "));
    let all: Vec<String> =
        (0..n - 1).map(|i| format!(r#""k{i}":"{{{{ nodes.n{i}.output }}}}""#)).collect();
    inputs(&mut definition, "n299", &format!("{{{}}}", all.join(",")));
    inputs(
        &mut definition,
        "n150",
        r#"{"bad":"{{ nodes.n151.output }}","ok":"{{ nodes.n0.output }}"}"#,
    );
    assert_eq!(findings(&definition), ["unresolvedReference at node \"n150\", inputs.bad"]);
}

#[test]
fn only_the_names_in_scope_may_be_used_in_inputs() {
    let mut definition = graph("a b", "a>b");
    inputs(
        &mut definition,
        "b",
        r#"{"a":"{{ nodes.a.output }}","i":"{{ input.q }}{{ workflow.name }}{{ execution.id }}","n":"{{ node.input }}",
            "k":"{{ i }}","l":"{% for item in input.list %}{{ item }}{% endfor %}"}"#,
    );
    assert_eq!(
        findings(&definition),
        [
            "unresolvedReference at node \"b\", inputs.n",
            "unresolvedReference at node \"b\", inputs.k",
        ]
    );
    let found = &compile(&definition, &agents()).diagnostics[1];
    assert_eq!(found.message, "node \"b\" refers to `i`, but there is no name `i`");
    assert_eq!(found.hint, "the names here are nodes, input, params, workflow, execution");
}

#[test]
fn fields_that_fixed_names_do_not_have_are_errors() {
    let mut definition = graph("a b", "a>b");
    inputs(
        &mut definition,
        "b",
        r#"{"good":"{{ workflow.id }}{{ execution.startedAt }}{{ nodes.a.output }}",
            "w":"{{ workflow.version }}","e":"{{ execution['user'] }}",
            "d":"{{ workflow.owner | default('') }}"}"#,
    );
    assert_eq!(
        findings(&definition),
        [
            "unresolvedReference at node \"b\", inputs.w",
            "unresolvedReference at node \"b\", inputs.e",
        ]
    );
    let found = &compile(&definition, &agents()).diagnostics[0];
    assert_eq!(
        found.message,
        "node \"b\" refers to `workflow.version`, but `workflow` has no field \"version\""
    );
    assert_eq!(found.hint, "its fields are name, id");
}

#[test]
fn a_reference_must_say_which_node_it_means() {
    let mut definition = graph("a b", "a>b");
    inputs(
        &mut definition,
        "b",
        r#"{"a":"{{ nodes.a.output }}","k":"{% for id in nodes %}{{ id }}{% endfor %}"}"#,
    );
    assert_eq!(findings(&definition), ["unresolvedReference at node \"b\", inputs.k"]);
}

#[test]
fn reserved_names_cannot_be_keys_of_inputs() {
    for name in ["nodes", "node", "input", "params", "workflow", "execution"] {
        let mut definition = graph("a", "");
        inputs(&mut definition, "a", &format!(r#"{{"{name}":1}}"#));
        assert_eq!(findings(&definition), [format!("reservedName at node \"a\", inputs.{name}")]);
    }
}

#[test]
fn parameters_that_nobody_sets_are_warned_about() {
    let mut definition = graph("a", "");
    definition.configuration = Some(value(r#"{"parameters":{"set":1}}"#));
    node(&mut definition, "a").configuration = Some(value(r#"{"own":1}"#));
    inputs(
        &mut definition,
        "a",
        r#"{"k":"{{ params.set }}{{ params.own.x }}{{ params['set'] }}{{ params.no }}",
            "d":"{{ params.maybe | default(1) }}","all":"{{ params }}"}"#,
    );
    assert_eq!(findings(&definition), ["unknownParameter at node \"a\", inputs.k"]);
}

#[test]
fn references_to_disabled_nodes_are_warned_about() {
    let mut definition = graph("a b c", "a>c b>c");
    node(&mut definition, "a").disabled = Some(true);
    inputs(
        &mut definition,
        "c",
        r#"{"k":"{{ nodes.a.output }}","d":"{{ nodes.a.output | default(1) }}",
            "b":"{{ nodes.b.output }}"}"#,
    );
    assert_eq!(findings(&definition), ["disabledReference at node \"c\", inputs.k"]);
}

#[test]
fn secrets_wait_for_a_later_version() {
    let mut definition = graph("a", "");
    inputs(&mut definition, "a", r#"{"k":"Bearer {{secret:KEY}}"}"#);
    assert_eq!(findings(&definition), ["secretsUnavailable at node \"a\", inputs.k"]);
}

#[test]
fn settings_of_process_agents_see_the_inputs_of_the_node() {
    let agents = agent_set(&[
        r#"{"id":"p","name":"P","runner":"process","settings":{"program":"{{ no template }}",
            "args":["--title","{{ title }}","{{ node.input.x }}"],"env":{"E":"{{ params.e }}"},
            "cwd":"/tmp/{{ execution.id }}"},"parameters":{"properties":{"e":{"default":1}}}}"#,
        r#"{"id":"q","name":"Q","runner":"process","settings":{"program":"q",
            "args":["{{ nodes.a.output }}","{{ title","{{ node.output }}","{{ params.no }}"],
            "env":{"E":"{{secret:K}}"}}}"#,
    ]);
    let mut definition = graph("a b", "a>b");
    for id in ["a", "b"] {
        node(&mut definition, id).agent_id = Some("p".to_owned());
    }
    inputs(&mut definition, "a", r#"{"title":"T"}"#);
    assert_eq!(findings_with(&definition, &agents), ["badAgent at node \"b\", agentId"]);
    assert_eq!(
        compile(&definition, &agents).diagnostics[0].message,
        "agent \"P\" of node \"b\", settings.args[1]: `title` is not in scope"
    );
    node(&mut definition, "b").agent_id = Some("q".to_owned());
    assert_eq!(
        findings_with(&definition, &agents),
        [
            "badAgent at node \"b\", agentId",
            "badAgent at node \"b\", agentId",
            "badAgent at node \"b\", agentId",
            "secretsUnavailable at node \"b\", agentId",
            "unknownParameter at node \"b\", agentId",
        ]
    );
    assert!(compile_again(&definition, &agents).plan.is_some());
}

#[test]
fn overrides_beyond_their_cap_are_warned_about() {
    let long = |n: usize| format!(r#"{{"modelOverride":"{}"}}"#, "é".repeat(n));
    let mut definition = graph("a", "");
    node(&mut definition, "a").configuration = Some(value(&long(256)));
    assert_eq!(findings(&definition), NONE);
    node(&mut definition, "a").configuration = Some(value(&long(257)));
    definition.configuration =
        Some(value(&format!(r#"{{"systemPromptAddition":"{}"}}"#, "x".repeat(4001))));
    assert_eq!(
        findings(&definition),
        [
            "overCap at workflow, configuration.systemPromptAddition",
            "overCap at node \"a\", configuration.modelOverride",
        ]
    );
    assert!(message(&definition, Code::OverCap).contains("4001 characters, 4000 are allowed"));
}

fn when(definition: &mut Definition, edge: usize, field: &str, equals: &str) {
    let condition = format!(r#"{{"field":"{field}","operator":"equals","value":{equals}}}"#);
    definition.edges[edge].condition = Some(value(&condition));
}

#[test]
fn nodes_whose_conditions_exclude_each_other_are_never_reached() {
    let mut one_edge = graph("a b c", "a>b b>c");
    one_edge.edges[0].condition = Some(value(
        r#"{"all":[{"field":"x","operator":"equals","value":1},
                   {"any":[{"field":"x","operator":"equals","value":2}]}]}"#,
    ));
    assert_eq!(
        findings(&one_edge),
        ["neverReached at node \"b\"", "neverReached at node \"c\""],
        "nor is what lies behind it"
    );

    let mut join = graph("s a b j", "s>a s>b a>j b>j");
    when(&mut join, 0, "x", "1");
    when(&mut join, 1, "x", "2");
    assert_eq!(findings(&join), NONE, "either branch is enough for the join");
    node(&mut join, "j").join = Some(value("{\"min\":2}"));
    assert_eq!(findings(&join), ["neverReached at node \"j\""]);
    when(&mut join, 1, "x", "1.0");
    assert_eq!(findings(&join), NONE, "1 equals 1.0");
    when(&mut join, 1, "y", "2");
    assert_eq!(findings(&join), NONE, "another field says nothing");

    let mut ports = graph("s a b j", "s>a s>b a>j b>j");
    ports.edges[1].source_handle = Some("error".to_owned());
    node(&mut ports, "j").join = Some(value("{\"min\":2}"));
    assert_eq!(findings(&ports), ["neverReached at node \"j\""]);
}

#[test]
fn nodes_that_may_be_reached_after_all_are_not_warned_about() {
    let mut chain = graph("s a b", "s>a a>b");
    when(&mut chain, 0, "x", "1");
    when(&mut chain, 1, "x", "2");
    assert_eq!(findings(&chain), NONE, "these are outputs of two nodes");

    let mut twins = graph("s a b j", "s>a s>a s>b a>j b>j");
    when(&mut twins, 0, "x", "1");
    when(&mut twins, 1, "x", "2");
    when(&mut twins, 2, "x", "2");
    node(&mut twins, "j").join = Some(value("{\"min\":2}"));
    assert_eq!(findings(&twins), NONE, "parallel edges mean or");
}

#[test]
fn outputs_that_nothing_uses_are_warned_about() {
    let mut definition = graph("a b c d", "a>b b>c b>d");
    inputs(&mut definition, "c", r#"{"k":"{{ nodes.b.output }}"}"#);
    inputs(&mut definition, "d", r#"{"k":"{{ nodes.b.output }}"}"#);
    inputs(&mut definition, "b", r#"{"k":"{{ input }}"}"#);
    assert_eq!(findings(&definition), ["unusedOutput at node \"a\""]);
    definition.final_output = Some("c".into());
    assert_eq!(findings(&definition), ["unusedOutput at node \"a\"", "unusedOutput at node \"d\""]);
    node(&mut definition, "a").agent_id = Some("s".to_owned());
    node(&mut definition, "d").disabled = Some(true);
    assert_eq!(findings(&definition), NONE, "side effects are a use, and disabled nodes make none");
}

#[test]
fn types_that_do_not_fit_are_warned_about() {
    let agents = agent_set(&[
        r#"{"id":"n","runner":"echo","inputSchema":{"type":"number"},"outputSchema":{"type":"integer"}}"#,
        r#"{"id":"o","runner":"echo","inputSchema":{"type":"object"},"outputSchema":{"type":"string"}}"#,
    ]);
    let mut definition = graph("n1 n2 o1 o2 o3", "n1>n2 n2>o1 o1>o2 o2>o3");
    for node in &mut definition.nodes {
        node.agent_id = Some(node.id.as_str()[..1].to_owned());
    }
    assert_eq!(findings_with(&definition, &agents), ["portTypeMismatch at edge \"e1\""]);
    inputs(&mut definition, "o1", r#"{"n":"{{ nodes.n2.output }}"}"#);
    assert_eq!(findings_with(&definition, &agents), NONE, "inputs build what is expected");
}

#[test]
fn very_deep_and_very_wide_graphs_are_warned_about() {
    let nodes: Vec<String> = (0..501).map(|i| format!("n{i}")).collect();
    let chain: Vec<String> = (1..501).map(|i| format!("n{}>n{i}", i - 1)).collect();
    let deep = graph(&nodes.join(" "), &chain.join(" "));
    assert_eq!(findings(&deep), ["deepGraph at workflow"]);
    let fan: Vec<String> = (0..501).map(|i| format!("root>n{i}")).collect();
    let wide = graph(&format!("root {}", nodes.join(" ")), &fan.join(" "));
    assert_eq!(findings(&wide), ["wideGraph at workflow"]);
    let less: Vec<String> = (0..500).map(|i| format!("root>n{i}")).collect();
    let usual = graph(&format!("root {}", nodes[..500].join(" ")), &less.join(" "));
    assert_eq!(findings(&usual), NONE);
}

#[test]
fn unknown_fields_are_listed_as_information() {
    let definition = read(
        r#"{"x-note":{"n":1},"version":null,"nodes":[{"id":"a","agentId":"x","x-note":{"n":1}},
            {"id":"b","agentId":"x"}],"edges":[{"id":"e","source":"a","target":"b","data":1}]}"#,
    );
    assert_eq!(
        findings(&definition),
        [
            "unknownField at workflow, x-note",
            "unknownField at node \"a\", x-note",
            "unknownField at edge \"e\", data",
        ]
    );
}

#[test]
fn identical_edges_are_information_and_too_many_parallel_ones_an_error() {
    let edges = vec!["a>b"; 101].join(" ");
    let found = findings(&graph("a b", &edges));
    assert_eq!(found.iter().filter(|f| f.starts_with("identicalEdges")).count(), 100);
    assert!(found.contains(&"tooManyParallelEdges at edge \"e100\"".to_owned()));
    assert_eq!(findings(&graph("a b", "a>b a>b")), ["identicalEdges at edge \"e1\""]);
}

#[test]
fn a_body_does_nothing_in_types_that_contain_no_graph() {
    let mut definition = graph("a", "");
    node(&mut definition, "a").body = Some(value("{}"));
    assert_eq!(findings(&definition), ["unusedField at node \"a\", body"]);
}

#[test]
fn the_digest_covers_the_meaning_and_nothing_else() {
    let text = r#"{"version":"1.0.0","id":"w","name":"W","configuration":{"a":1,"b":[1,2]},
        "nodes":[{"id":"a","agentId":"x","name":"A","position":{"x":1,"y":2},"timeout":1,
                  "inputs":{"k":"v"},"configuration":{"t":1}},
                 {"id":"b","agentId":"x"}],
        "edges":[{"id":"e","source":"a","target":"b",
                  "condition":{"field":"x","operator":"equals","value":1}}],
        "metadata":{"tags":["t"]}}"#;
    let digest = |text: &str| plan(&read(text)).digest;
    let same = [
        ("\"name\":\"W\"", "\"name\":\"V\""),
        ("\"name\":\"A\"", "\"x-note\":1"),
        ("\"x\":1", "\"x\":7"),
        ("[\"t\"]", "[]"),
        ("\"version\":\"1.0.0\"", "\"version\":\"1.1.0\""),
        ("{\"a\":1,\"b\":[1,2]}", "{\"b\":[1e0,2.0],\"a\":1.00}"),
        ("\"timeout\":1,", "\"timeout\":1.0,\"type\":\"agent\",\"typeVersion\":1,"),
        ("\"id\":\"b\",", "\"id\":\"b\",\"join\":\"all\",\"onFailure\":\"failDependents\","),
        ("\"source\":\"a\",", "\"source\":\"a\",\"sourceHandle\":\"output\","),
        ("\"id\":\"b\",", "\"id\":\"b\",\"disabled\":false,\"configuration\":{},"),
        ("\"nodes\":[", "\"nodes\":[{\"id\":\"note\",\"type\":\"note\"},"),
    ];
    for (from, to) in same {
        assert!(text.contains(from));
        assert_eq!(digest(text), digest(&text.replacen(from, to, 1)), "{to}");
    }
    let different = [
        ("\"a\":1,", "\"a\":2,"),
        ("[1,2]", "[2,1]"),
        ("\"timeout\":1,", "\"timeout\":2,"),
        ("\"k\":\"v\"", "\"k\":\"w\""),
        ("\"t\":1", "\"t\":2"),
        ("\"id\":\"b\",\"agentId\":\"x\"", "\"id\":\"b\",\"agentId\":\"s\""),
        ("\"id\":\"b\",", "\"id\":\"b\",\"disabled\":true,"),
        ("\"id\":\"b\",", "\"id\":\"b\",\"join\":\"any\","),
        ("\"id\":\"b\",", "\"id\":\"b\",\"onFailure\":\"stop\","),
        ("\"id\":\"b\",", "\"id\":\"b\",\"retryPolicy\":{\"maxRetries\":0},"),
        ("\"id\":\"b\",", "\"id\":\"b\",\"compensation\":{\"tool\":\"t\"},"),
        ("\"id\":\"b\",", "\"id\":\"b\",\"body\":{},"),
        ("\"value\":1", "\"value\":2"),
        ("\"source\":\"a\",", "\"source\":\"a\",\"sourceHandle\":\"error\","),
        ("\"name\":\"W\"", "\"finalOutput\":\"b\""),
        ("\"name\":\"W\"", "\"timeout\":5"),
        ("\"name\":\"W\"", "\"inputSchema\":{}"),
        ("\"name\":\"W\"", "\"onFailure\":\"stop\""),
    ];
    let mut digests = BTreeSet::from([digest(text)]);
    for (from, to) in different {
        assert!(text.contains(from), "{from}");
        assert!(digests.insert(digest(&text.replacen(from, to, 1))), "{to}");
    }
}

#[test]
fn every_code_is_a_finding_of_some_test_here() {
    let tests = include_str!("tests.rs");
    for code in Code::ALL {
        assert!(tests.contains(&format!("{code} at")), "no test causes {code}");
    }
}

#[test]
fn findings_read_well_one_after_the_other() {
    let definition = read(
        r#"{"name":"Poor","timeout":"1h","nodes":[
            {"id":"fetch","name":"Fetch pages","agentId":"placeholder-fetcher"},
            {"id":"sum","agentId":"x","join":{"min":2},"inputs":{"t":"{{ nodes.fetsh.output }}"}}],
            "edges":[{"id":"e1","source":"fetch","target":"sum","sourceHandle":"out",
                      "condition":{"field":"a","operator":"is","value":1}}]}"#,
    );
    let found = compile(&definition, &agents()).diagnostics;
    let text: Vec<String> = found.iter().map(Diagnostic::to_string).collect();
    assert_eq!(text.join("\n"), include_str!("findings.txt").trim_end());
}

#[test]
fn findings_do_not_depend_on_what_else_is_wrong() {
    let mut definition = graph("a b c d", "a>b b>a c>ghost c>d");
    node(&mut definition, "d").agent_id = None;
    inputs(&mut definition, "c", r#"{"k":"{{ nodes.ghost.output }}"}"#);
    assert_eq!(
        findings(&definition),
        [
            "cycle at node \"a\"",
            "unresolvedReference at node \"c\", inputs.k",
            "missingAgent at node \"d\", agentId",
            "edgeToMissingNode at edge \"e2\", target",
        ]
    );
}

#[test]
fn the_built_in_agent_is_enough_for_a_workflow() {
    let echo = PinnedAgent::new(Agent::built_in_echo());
    let agents = AgentSet::from([(AgentId::from(Agent::ECHO_ID), Arc::new(echo))]);
    assert_eq!(agents[Agent::ECHO_ID].agent.runner, RunnerKind::Echo);
    let definition = read(r#"{"nodes":[{"id":"a","agentId":"demo-echo-agent"}]}"#);
    assert_eq!(findings_with(&definition, &agents), NONE);
}
