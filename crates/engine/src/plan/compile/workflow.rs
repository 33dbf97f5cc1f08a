//! The workflow's own fields.

use super::{compensation, policy};
use crate::definition::{Definition, described};
use crate::limits::{
    CONCURRENCY_DEFAULT, CONCURRENCY_MAX, MODEL_OVERRIDE_CHARS_MAX,
    PROMPT_ADDITION_CHARS_MAX_DEFAULT,
};
use crate::plan::FailurePolicy;
use crate::plan::diagnostic::{Code, Diagnostic, Place};
use crate::value::{Object, Value};

/// What the workflow says, with its defaults resolved.
pub(super) struct Workflow {
    pub configuration: Object,
    pub timeout_ms: Option<u64>,
    pub on_failure: FailurePolicy,
    pub concurrency: u32,
}

/// Parts of the configuration that map names to something.
const MAPS: [&str; 4] = ["integrations", "credentials", "agentProperties", "parameters"];

/// Reads the workflow's fields.
pub(super) fn check(definition: &Definition, found: &mut Vec<Diagnostic>) -> Workflow {
    let configuration = configuration(definition.configuration.as_ref(), &Place::workflow(), found);
    for problem in configuration.get("compensation").into_iter().flat_map(compensation::workflow) {
        let place = field("configuration.compensation", &problem.place);
        found.push(Diagnostic::new(Code::BadCompensation, place, problem.message, problem.hint));
    }
    maps(&configuration, found);
    if let Some(schema) = &definition.input_schema
        && !matches!(schema, Value::Object(_) | Value::Bool(_))
    {
        found.push(Diagnostic::new(
            Code::BadInputSchema,
            Place::workflow().field("inputSchema"),
            format!("the input schema must be a JSON Schema, but is {}", described(schema)),
            "write an object such as {\"type\": \"object\"}, or remove it",
        ));
    }
    let timeout_ms = definition.timeout.as_ref().and_then(|value| {
        let problem = match policy::timeout(value) {
            Ok(ms) => return Some(ms),
            Err(problem) => problem,
        };
        let place = Place::workflow().field("timeout");
        found.push(Diagnostic::new(Code::BadTimeout, place, problem.message, problem.hint));
        None
    });
    let on_failure = definition.on_failure.as_ref().and_then(|value| {
        let problem = match policy::on_failure(value) {
            Ok(policy) => return Some(policy),
            Err(problem) => problem,
        };
        let place = Place::workflow().field("onFailure");
        found.push(Diagnostic::new(Code::BadFailurePolicy, place, problem.message, problem.hint));
        None
    });
    Workflow {
        concurrency: concurrency(&configuration, found),
        configuration,
        timeout_ms,
        on_failure: on_failure.unwrap_or(FailurePolicy::FailDependents),
    }
}

/// Reads the configuration of a workflow or a node: an object, or nothing.
pub(super) fn configuration(
    value: Option<&Value>,
    place: &Place,
    found: &mut Vec<Diagnostic>,
) -> Object {
    let configuration = match value {
        None => Object::new(),
        Some(Value::Object(object)) => object.clone(),
        Some(other) => {
            found.push(Diagnostic::new(
                Code::BadConfiguration,
                place.clone().field("configuration"),
                format!("the configuration must be an object, but is {}", described(other)),
                "write an object, or remove it",
            ));
            Object::new()
        }
    };
    let caps = [
        ("modelOverride", MODEL_OVERRIDE_CHARS_MAX),
        ("systemPromptAddition", PROMPT_ADDITION_CHARS_MAX_DEFAULT),
    ];
    for (key, chars_max) in caps {
        let text = configuration.get(key).and_then(Value::as_str);
        let n_chars = text.map_or(0, |text| text.chars().count());
        if n_chars > chars_max {
            found.push(Diagnostic::new(
                Code::OverCap,
                place.clone().field(format!("configuration.{key}")),
                format!(
                    "`{key}` has {n_chars} characters, {chars_max} are allowed: it will be left \
                     out, and the node runs without it"
                ),
                "shorten it",
            ));
        }
    }
    configuration
}

fn maps(configuration: &Object, found: &mut Vec<Diagnostic>) {
    let mut refuse = |key: &str, value: &Value| {
        found.push(Diagnostic::new(
            Code::BadConfiguration,
            Place::workflow().field(format!("configuration.{key}")),
            format!("`{key}` must be an object, but is {}", described(value)),
            "write an object, or remove it",
        ));
    };
    for key in MAPS {
        match configuration.get(key) {
            None | Some(Value::Null | Value::Object(_)) => (),
            Some(other) => refuse(key, other),
        }
    }
    let properties = configuration.get("agentProperties").and_then(Value::as_object);
    for (agent, value) in properties.into_iter().flatten() {
        if !matches!(value, Value::Null | Value::Object(_)) {
            refuse(&format!("agentProperties.{agent}"), value);
        }
    }
}

fn concurrency(configuration: &Object, found: &mut Vec<Diagnostic>) -> u32 {
    let Some(value) = configuration.get("concurrency").filter(|value| !value.is_null()) else {
        return CONCURRENCY_DEFAULT;
    };
    let wanted = value.as_u64().and_then(|wanted| u32::try_from(wanted).ok());
    match wanted {
        Some(wanted) if (1..=CONCURRENCY_MAX).contains(&wanted) => wanted,
        _ => {
            found.push(Diagnostic::new(
                Code::BadConfiguration,
                Place::workflow().field("configuration.concurrency"),
                format!(
                    "`concurrency` must be a whole number from 1 to {CONCURRENCY_MAX}, but is {}",
                    described(value)
                ),
                format!(
                    "write how many nodes may run at once, or remove it for {CONCURRENCY_DEFAULT}"
                ),
            ));
            CONCURRENCY_DEFAULT
        }
    }
}

fn field(base: &str, rest: &str) -> Place {
    let dot = if rest.is_empty() { "" } else { "." };
    Place::workflow().field(format!("{base}{dot}{rest}"))
}
