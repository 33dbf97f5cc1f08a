//! From JSON to agent records.

use std::collections::BTreeSet;

use super::{Agent, AgentsFileError, RunnerKind, settings};
use crate::definition::{Problem, described};
use crate::ids::AgentId;
use crate::limits::FILE_BYTES_MAX;
use crate::value::{Object, Value, decode};

/// See [`Agent::from_value`].
pub(super) fn read(value: &Value) -> Result<Agent, Vec<Problem>> {
    let Value::Object(object) = value else {
        let message = format!("an agent must be an object, but this is {}", described(value));
        return Err(vec![problem("", message, "give it `id`, `name` and `runner`")]);
    };
    let mut reader = Reader { object, problems: Vec::new() };
    let agent = reader.agent();
    match agent {
        Some(agent) if reader.problems.is_empty() => Ok(agent),
        _ => Err(reader.problems),
    }
}

/// See [`super::read_file`].
pub(super) fn read_file(bytes: &[u8]) -> Result<Vec<Agent>, AgentsFileError> {
    if bytes.len() > FILE_BYTES_MAX {
        return Err(AgentsFileError::TooLarge { bytes: bytes.len() });
    }
    let file = Value::parse(&decode(bytes)?)?;
    let Some(values) = file.get("agents").and_then(Value::as_array) else {
        let missing = if file.get("nodes").is_some() {
            "it has `nodes`, so it seems to be a workflow; import it as one"
        } else {
            "there is no list called `agents`"
        };
        return Err(AgentsFileError::NotAgents { missing: missing.to_owned() });
    };
    let mut agents: Vec<Agent> = Vec::with_capacity(values.len());
    let mut ids = BTreeSet::new();
    let mut problems = Vec::new();
    for (n, value) in values.iter().enumerate() {
        match Agent::from_value(value) {
            Ok(agent) if !ids.insert(agent.id.clone()) => problems.push(problem(
                &format!("agents[{n}].id"),
                format!("an agent before this one has the id {:?} too", agent.id),
                "give each agent an id of its own",
            )),
            Ok(agent) => agents.push(agent),
            Err(found) => problems.extend(found.into_iter().map(|problem| {
                let dot = if problem.place.is_empty() { "" } else { "." };
                Problem { place: format!("agents[{n}]{dot}{}", problem.place), ..problem }
            })),
        }
    }
    if problems.is_empty() { Ok(agents) } else { Err(AgentsFileError::Refused { problems }) }
}

struct Reader<'a> {
    object: &'a Object,
    problems: Vec<Problem>,
}

impl<'a> Reader<'a> {
    fn agent(&mut self) -> Option<Agent> {
        let id = self.required("id", "a text that no other agent has");
        let runner = self.runner();
        let settings = self.settings();
        if let (Some(runner), Some(settings)) = (runner, &settings) {
            self.problems.extend(settings::check(runner, settings));
        }
        let mut agent = Agent {
            description: self.text("description"),
            icon: self.text("icon"),
            category: self.text("category"),
            settings: settings.unwrap_or_default(),
            parameters: self.schema("parameters"),
            input_schema: self.schema("inputSchema"),
            output_schema: self.schema("outputSchema"),
            side_effecting: self.flag("sideEffecting"),
            idempotent: self.flag("idempotent").unwrap_or(false),
            streams: self.flag("streams").unwrap_or(false),
            timeout: self.get("timeout").cloned(),
            retry_policy: self.get("retryPolicy").cloned(),
            ..Agent::new("", self.text("name").unwrap_or_default(), RunnerKind::Echo)
        };
        let unknown = self.object.iter().filter(|(key, _)| !Agent::FIELDS.contains(&key.as_str()));
        agent.extra = unknown.map(|(key, value)| (key.as_str(), value.clone())).collect();
        agent.runner = runner?;
        agent.id = AgentId::from(id?);
        if agent.name.trim().is_empty() {
            agent.name = agent.id.to_string();
        }
        Some(agent)
    }

    fn runner(&mut self) -> Option<RunnerKind> {
        let kinds = RunnerKind::ALL.map(|kind| format!("{:?}", kind.as_str())).join(", ");
        let name = self.required("runner", &format!("one of {kinds}"))?;
        let kind = RunnerKind::from_name(&name);
        if kind.is_none() {
            let message = format!("there is no kind of runner called {name:?}");
            self.problems.push(problem("runner", message, &format!("choose one of {kinds}")));
        }
        kind
    }

    fn settings(&mut self) -> Option<Object> {
        match self.get("settings") {
            None => Some(Object::new()),
            Some(Value::Object(settings)) => Some(settings.clone()),
            Some(other) => {
                self.wrong_type("settings", "an object", other);
                None
            }
        }
    }

    fn required(&mut self, key: &str, what: &str) -> Option<String> {
        match self.get(key) {
            Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
            Some(Value::String(_)) | None => {
                let message = format!("the agent has no `{key}`");
                self.problems.push(problem(key, message, &format!("add `{key}`, {what}")));
                None
            }
            Some(other) => {
                self.wrong_type(key, "a text", other);
                None
            }
        }
    }

    fn text(&mut self, key: &str) -> Option<String> {
        match self.get(key) {
            None => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(other) => {
                self.wrong_type(key, "a text", other);
                None
            }
        }
    }

    fn flag(&mut self, key: &str) -> Option<bool> {
        match self.get(key) {
            None => None,
            Some(Value::Bool(flag)) => Some(*flag),
            Some(other) => {
                self.wrong_type(key, "true or false", other);
                None
            }
        }
    }

    fn schema(&mut self, key: &str) -> Option<Value> {
        match self.get(key) {
            Some(schema @ (Value::Object(_) | Value::Bool(_))) => Some(schema.clone()),
            None => None,
            Some(other) => {
                self.wrong_type(key, "a JSON Schema, that is an object", other);
                None
            }
        }
    }

    /// A field that is `null` counts as absent.
    fn get(&self, key: &str) -> Option<&'a Value> {
        self.object.get(key).filter(|value| !value.is_null())
    }

    fn wrong_type(&mut self, key: &str, expected: &str, found: &Value) {
        let message = format!("`{key}` must be {expected}, but is {}", described(found));
        self.problems.push(problem(key, message, &format!("write {expected}")));
    }
}

fn problem(place: &str, message: String, hint: &str) -> Problem {
    Problem { place: place.to_owned(), message, hint: hint.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::PinnedAgent;

    fn check(text: &str) -> Result<Agent, Vec<String>> {
        Agent::from_value(&Value::parse(text).unwrap())
            .map_err(|problems| problems.iter().map(Problem::to_string).collect())
    }

    fn process(settings: &str) -> Result<Agent, Vec<String>> {
        check(&format!(r#"{{"id":"p","runner":"process","settings":{settings}}}"#))
    }

    fn scripted(settings: &str) -> Result<Agent, Vec<String>> {
        check(&format!(r#"{{"id":"s","runner":"scripted","settings":{settings}}}"#))
    }

    const FULL: &str = r#"{"id":"a","name":"A","description":"d","icon":"i","category":"c",
        "runner":"process","settings":{"program":"sh","args":["-c","{{x}}"],"env":{"K":"v"},
        "envAllow":["PATH"],"cwd":"/","output":"text","later":1},
        "parameters":{"properties":{"p":{"default":1.50},"q":{}},"required":["q"]},
        "inputSchema":{"type":"object"},"outputSchema":true,"sideEffecting":false,
        "idempotent":true,"streams":true,"timeout":5,"retryPolicy":{"maxRetries":1},
        "x-note":{"n":1}}"#;

    #[test]
    fn a_record_that_uses_every_field_is_written_as_it_was_read() {
        let value = Value::parse(FULL).unwrap();
        let agent = Agent::from_value(&value).unwrap();
        assert_eq!(agent.to_value().to_json(), value.to_json());
        let fields: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(fields[..Agent::FIELDS.len()], Agent::FIELDS, "the record uses all of them");
        assert_eq!(
            agent.parameter_defaults(),
            Value::parse(r#"{"p":1.50}"#).unwrap().as_object().unwrap().clone()
        );
        assert_eq!(agent.required_parameters().collect::<Vec<_>>(), ["q"]);
        assert_eq!(agent.template_fields(), ["args", "env", "cwd"]);
    }

    #[test]
    fn the_digest_covers_everything_the_record_says() {
        let digest = |text: &str| PinnedAgent::new(check(text).unwrap()).digest;
        assert_eq!(digest(FULL), digest(FULL));
        let reordered = FULL.replace(r#""id":"a","name":"A","#, r#""name":"A","id":"a","#);
        assert_eq!(digest(FULL), digest(&reordered), "order says nothing");
        for (from, to) in [("\"sh\"", "\"bash\""), ("\"n\":1", "\"n\":2"), ("\"A\"", "\"B\"")] {
            assert_ne!(digest(FULL), digest(&FULL.replace(from, to)), "{to}");
        }
    }

    #[test]
    fn an_unknown_kind_of_runner_is_refused_with_the_kinds_there_are() {
        assert_eq!(
            check(r#"{"id":"a","runner":"llm"}"#).unwrap_err(),
            ["runner: there is no kind of runner called \"llm\"; \
              choose one of \"echo\", \"process\", \"scripted\""]
        );
    }

    #[test]
    fn what_is_missing_or_of_the_wrong_type_is_listed_at_once() {
        let problems = check(r#"{"name":1,"idempotent":"x","parameters":[]}"#).unwrap_err();
        let places: Vec<&str> = problems.iter().map(|p| p.split(':').next().unwrap()).collect();
        assert_eq!(places, ["id", "runner", "parameters", "idempotent", "name"]);
        assert!(check("[]").unwrap_err()[0].contains("must be an object, but this is the list"));
    }

    #[test]
    fn process_settings_are_checked() {
        assert!(process(r#"{"program":"sh"}"#).unwrap().is_side_effecting());
        assert!(process("{}").unwrap_err()[0].contains("there is no `program`"));
        assert!(process(r#"{"program":" "}"#).unwrap_err()[0].contains("there is no `program`"));
        let problems = process(
            r#"{"program":1,"args":["a",2],"env":{"K":3},"envAllow":"PATH","cwd":[],"output":"xml"}"#,
        )
        .unwrap_err();
        let places: Vec<&str> = problems.iter().map(|p| p.split(':').next().unwrap()).collect();
        let expected = ["program", "args[1]", "envAllow", "env.K", "cwd", "output"]
            .map(|key| format!("settings.{key}"));
        assert_eq!(places, expected);
    }

    #[test]
    fn scripted_settings_say_how_an_attempt_ends_exactly_once() {
        for good in [
            r#"{"out":null}"#,
            r#"{"fail":"Oops","takes":20}"#,
            r#"{"fail":"Oops","times":2,"then":{}}"#,
            r#"{"echo":true}"#,
            r#"{"out":1,"echo":false}"#,
        ] {
            assert!(scripted(good).is_ok(), "{good}");
        }
        for bad in [
            "{}",
            r#"{"out":1,"fail":"x"}"#,
            r#"{"echo":false}"#,
            r#"{"fail":1}"#,
            r#"{"fail":"x","then":1}"#,
            r#"{"fail":"x","times":-1}"#,
            r#"{"out":1,"takes":0.5}"#,
        ] {
            assert_eq!(scripted(bad).unwrap_err().len(), 1, "{bad}");
        }
    }

    #[test]
    fn a_script_may_say_that_it_has_side_effects() {
        assert!(!scripted(r#"{"out":1}"#).unwrap().is_side_effecting());
        assert!(scripted(r#"{"out":1,"sideEffecting":true}"#).unwrap().is_side_effecting());
        let record = r#"{"id":"s","runner":"scripted","sideEffecting":false,
            "settings":{"out":1,"sideEffecting":true}}"#;
        assert!(!check(record).unwrap().is_side_effecting(), "the record itself decides");
    }

    #[test]
    fn the_built_in_agent_reads_back() {
        let echo = Agent::built_in_echo();
        assert_eq!((echo.id.as_str(), echo.name.as_str()), ("demo-echo-agent", "Echo"));
        assert_eq!(Agent::from_value(&echo.to_value()), Ok(echo));
    }

    #[test]
    fn a_file_of_agents_is_read_as_a_whole_or_not_at_all() {
        let message = |text: &str| read_file(text.as_bytes()).unwrap_err().to_string();
        let good = r#"{"id":"a","runner":"echo"}"#;
        let agents = read_file(format!(r#"{{"agents":[{good}]}}"#).as_bytes()).unwrap();
        assert_eq!(agents[0].name, "a", "an agent without a name is called by its id");
        assert!(message(&format!(r#"{{"agents":[{good},{good}]}}"#)).starts_with("agents[1].id: "));
        assert!(message(r#"{"agents":[{}]}"#).starts_with("agents[0].id: the agent has no `id`"));
        assert!(message(r#"{"nodes":[]}"#).contains("seems to be a workflow"));
        assert!(message("[]").contains("no list called `agents`"));
        assert!(message("{").starts_with("line 1"));
    }
}
