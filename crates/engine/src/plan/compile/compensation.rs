//! Compensation: the workflow's opt-in and each node's undo step. Nothing is run here.

use crate::definition::{Problem, described};
use crate::path::{Path, Step};
use crate::value::{Object, Value};

/// Finds what is wrong with the workflow's `configuration.compensation`.
pub(super) fn workflow(block: &Value) -> Vec<Problem> {
    let Some(mut check) = Check::of(block) else { return vec![no_object(block)] };
    check.flag("enabled");
    check.word("onFailure", &["stop", "continue"]);
    let trigger = block.get("trigger").filter(|trigger| !trigger.is_null());
    let mut problems = check.problems;
    if let Some(trigger) = trigger {
        let found = match Check::of(trigger) {
            None => vec![no_object(trigger)],
            Some(mut check) => {
                check.word("mode", &["on_terminal_failure"]);
                check.flag("onCancel");
                check.typed("minCompletedNodes", "a whole number from 0 upwards", |value| {
                    value.as_u64().is_some()
                });
                check.problems
            }
        };
        problems.extend(found.into_iter().map(|problem| {
            let dot = if problem.place.is_empty() { "" } else { "." };
            Problem { place: format!("trigger{dot}{}", problem.place), ..problem }
        }));
    }
    problems
}

/// Finds what is wrong with a node's `compensation`.
pub(super) fn node(block: &Value) -> Vec<Problem> {
    let Some(mut check) = Check::of(block) else { return vec![no_object(block)] };
    check.flag("sideEffecting");
    check.typed("tool", "a text", |value| value.as_str().is_some());
    if check.get("tool").is_none_or(|tool| tool.as_str().is_some_and(|tool| tool.trim().is_empty()))
    {
        let hint = "name an agent's id, or a tool as server/tool";
        check.refuse("tool", "the compensation does not say which `tool` undoes the node", hint);
    }
    check.typed("args", "an object", |value| value.as_object().is_some());
    let mut problems = check.problems;
    let args = block.get("args").filter(|args| args.as_object().is_some());
    for (place, text) in args.map(|args| texts(args, "args")).unwrap_or_default() {
        problems.extend(template(text).err().map(|(message, hint)| Problem {
            place: place.to_string(),
            message,
            hint,
        }));
    }
    problems
}

/// Every text inside a value with its place, in order.
fn texts<'a>(value: &'a Value, root: &str) -> Vec<(Path, &'a str)> {
    let mut texts = Vec::new();
    let mut pending = vec![(Path::from_iter([Step::Key(root.to_owned())]), value)];
    while let Some((place, value)) = pending.pop() {
        match value {
            Value::String(text) => texts.push((place, text.as_str())),
            Value::Array(items) => {
                let items = items.iter().enumerate().rev();
                pending.extend(items.map(|(n, item)| (place.join(Step::Index(n)), item)));
            }
            Value::Object(object) => {
                let fields = object.iter().rev();
                pending
                    .extend(fields.map(|(key, value)| (place.join(Step::Key(key.clone())), value)));
            }
            _ => (),
        }
    }
    texts
}

/// Checks a text in which `${output.path}` stands for a part of the node's own output.
fn template(text: &str) -> Result<(), (String, String)> {
    const HINT: &str = "write ${output.path} or ${output.items[0]}";
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let inside = &rest[start + 2..];
        let Some(end) = end_of_reference(inside) else {
            return Err((
                "a reference that begins with ${ is not closed".to_owned(),
                HINT.to_owned(),
            ));
        };
        reference(inside[..end].trim())?;
        rest = &inside[end + 1..];
    }
    Ok(())
}

fn reference(reference: &str) -> Result<(), (String, String)> {
    let foreign = || {
        (
            format!("${{{reference}}} is not a part of the node's own output"),
            "a compensation may read only ${output…}, the output of the node that it undoes"
                .to_owned(),
        )
    };
    let path = reference.strip_prefix("output").ok_or_else(foreign)?;
    let path = match path.chars().next() {
        None => return Ok(()),
        Some('.') => &path[1..],
        Some('[') => path,
        Some(_) => return Err(foreign()),
    };
    match Path::parse(path) {
        Ok(path) if !path.is_whole() => Ok(()),
        Ok(_) => Err((
            format!("${{{reference}}} ends with a dot"),
            "name a key after the dot, or remove the dot".to_owned(),
        )),
        Err(error) => Err((
            format!("the path in ${{{reference}}} cannot be read: {}", error.kind),
            "correct the path".to_owned(),
        )),
    }
}

/// The position of the closing brace, which is not inside a quoted key.
fn end_of_reference(text: &str) -> Option<usize> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            '}' if !is_quoted => return Some(at),
            _ => (),
        }
    }
    None
}

fn no_object(block: &Value) -> Problem {
    Problem {
        place: String::new(),
        message: format!("this must be an object, but is {}", described(block)),
        hint: "write an object, or remove it".to_owned(),
    }
}

struct Check<'a> {
    object: &'a Object,
    problems: Vec<Problem>,
}

impl<'a> Check<'a> {
    fn of(value: &'a Value) -> Option<Check<'a>> {
        value.as_object().map(|object| Check { object, problems: Vec::new() })
    }

    /// A field that is `null` counts as absent.
    fn get(&self, key: &str) -> Option<&'a Value> {
        self.object.get(key).filter(|value| !value.is_null())
    }

    fn flag(&mut self, key: &str) {
        self.typed(key, "true or false", |value| value.as_bool().is_some());
    }

    fn word(&mut self, key: &str, words: &[&str]) {
        let expected: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
        let fits = |value: &Value| value.as_str().is_some_and(|word| words.contains(&word));
        self.typed(key, &expected.join(" or "), fits);
    }

    fn typed(&mut self, key: &str, expected: &str, fits: impl Fn(&Value) -> bool) {
        if let Some(value) = self.get(key)
            && !fits(value)
        {
            let message = format!("`{key}` must be {expected}, but is {}", described(value));
            self.refuse(key, &message, &format!("write {expected}, or remove it"));
        }
    }

    fn refuse(&mut self, key: &str, message: &str, hint: &str) {
        self.problems.push(Problem {
            place: key.to_owned(),
            message: message.to_owned(),
            hint: hint.to_owned(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(problems: Vec<Problem>) -> Vec<String> {
        problems.iter().map(|problem| format!("{}: {}", problem.place, problem.message)).collect()
    }

    fn of_node(text: &str) -> Vec<String> {
        messages(node(&Value::parse(text).unwrap()))
    }

    fn of_workflow(text: &str) -> Vec<String> {
        messages(workflow(&Value::parse(text).unwrap()))
    }

    #[test]
    fn a_compensation_reads_only_the_output_of_its_own_node() {
        let good = r#"{"tool":"undo","sideEffecting":true,"args":{"a":"x ${output.id} y ${ output }",
            "b":["${output.items[0]}",{"c":"${output[\"odd }key\"]}"}],"d":"no reference $ {x}",
            "e":"{{nodes.a}}","n":1}}"#;
        assert_eq!(of_node(good), Vec::<String>::new());
        let bad = r#"{"tool":"undo","args":{"a":"${nodes.a.output.id}","b":[{"c d":"${outputs.id}"}],
            "c":"${output.}","d":"${output.a..b}","e":"${output.id","f":"${}","g":"${input.x}"}}"#;
        assert_eq!(
            of_node(bad),
            [
                "args.a: ${nodes.a.output.id} is not a part of the node's own output",
                "args.b[0].c d: ${outputs.id} is not a part of the node's own output",
                "args.c: ${output.} ends with a dot",
                "args.d: the path in ${output.a..b} cannot be read: two dots in a row; remove one, \
                 or write [\"\"] for the empty key",
                "args.e: a reference that begins with ${ is not closed",
                "args.f: ${} is not a part of the node's own output",
                "args.g: ${input.x} is not a part of the node's own output",
            ]
        );
    }

    #[test]
    fn a_compensation_needs_a_tool() {
        let message = "tool: the compensation does not say which `tool` undoes the node";
        for text in ["{}", r#"{"tool":""}"#, r#"{"tool":null}"#] {
            assert_eq!(of_node(text), [message]);
        }
        let text = r#"{"tool":1,"args":"x","sideEffecting":"no"}"#;
        let places: Vec<String> =
            of_node(text).iter().map(|m| m.split(':').next().unwrap().to_owned()).collect();
        assert_eq!(places, ["sideEffecting", "tool", "args"]);
        assert_eq!(of_node("[]"), [": this must be an object, but is the list []"]);
    }

    #[test]
    fn the_opt_in_of_the_workflow_is_checked() {
        let good = r#"{"enabled":true,"onFailure":"continue",
            "trigger":{"mode":"on_terminal_failure","minCompletedNodes":1,"onCancel":false}}"#;
        assert_eq!(of_workflow(good), Vec::<String>::new());
        let bad = r#"{"enabled":"yes","onFailure":"halt",
            "trigger":{"mode":"always","minCompletedNodes":-1,"onCancel":0}}"#;
        let places: Vec<String> =
            of_workflow(bad).iter().map(|m| m.split(':').next().unwrap().to_owned()).collect();
        let expected = [
            "enabled",
            "onFailure",
            "trigger.mode",
            "trigger.onCancel",
            "trigger.minCompletedNodes",
        ];
        assert_eq!(places, expected);
        assert_eq!(
            of_workflow(r#"{"trigger":1}"#),
            ["trigger: this must be an object, but is the number 1"]
        );
    }
}
