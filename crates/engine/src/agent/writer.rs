//! From an agent's record to JSON.

use super::Agent;
use crate::value::{Object, Value};

/// See [`Agent::to_value`].
pub(super) fn write(agent: &Agent) -> Value {
    let text = |text: &Option<String>| text.as_deref().map(Value::from);
    let flag = |flag: bool| flag.then_some(Value::Bool(true));
    let settings = (!agent.settings.is_empty()).then(|| Value::from(agent.settings.clone()));
    let values: [Option<Value>; Agent::FIELDS.len()] = [
        Some(agent.id.as_str().into()),
        Some(agent.name.as_str().into()),
        text(&agent.description),
        text(&agent.icon),
        text(&agent.category),
        Some(agent.runner.as_str().into()),
        settings,
        agent.parameters.clone(),
        agent.input_schema.clone(),
        agent.output_schema.clone(),
        agent.side_effecting.map(Value::from),
        flag(agent.idempotent),
        flag(agent.streams),
        agent.timeout.clone(),
        agent.retry_policy.clone(),
    ];
    let known = Agent::FIELDS.into_iter().zip(values);
    let mut object: Object = known.filter_map(|(key, value)| Some((key, value?))).collect();
    for (key, value) in &agent.extra {
        if !object.contains_key(key) {
            object.insert(key.as_str(), value.clone());
        }
    }
    Value::Object(object)
}
