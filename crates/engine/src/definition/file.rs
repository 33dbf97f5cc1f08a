//! Files: bytes to documents, and a clear word about what is not one.

use super::{Definition, FileError, Note, Problem, ReadDefinition, described, migrate};
use crate::limits::FILE_BYTES_MAX;
use crate::value::{Object, Value, decode};

/// How much of a name a message repeats, in characters.
const NAME_CHARS_MAX: usize = 60;

/// See [`super::read_file`].
pub(super) fn read(bytes: &[u8]) -> Result<Vec<ReadDefinition>, FileError> {
    if bytes.len() > FILE_BYTES_MAX {
        return Err(FileError::TooLarge { bytes: bytes.len() });
    }
    let text = decode(bytes)?;
    match Value::parse(&text)? {
        Value::Array(values) => read_list(values),
        value => {
            recognise(&value)?;
            let found = read_one(value);
            found.map(|one| vec![one]).map_err(|problems| FileError::Refused { problems })
        }
    }
}

fn read_list(values: Vec<Value>) -> Result<Vec<ReadDefinition>, FileError> {
    if values.is_empty() {
        let missing = "the list is empty".to_owned();
        return Err(FileError::NotAWorkflow { missing });
    }
    let mut definitions = Vec::with_capacity(values.len());
    let mut problems = Vec::new();
    for (n, value) in values.into_iter().enumerate() {
        recognise(&value)?;
        match read_one(value) {
            Ok(definition) => definitions.push(definition),
            Err(found) => problems.extend(found.into_iter().map(|problem| {
                let dot = if problem.place.is_empty() { "" } else { "." };
                Problem { place: format!("[{n}]{dot}{}", problem.place), ..problem }
            })),
        }
    }
    if problems.is_empty() { Ok(definitions) } else { Err(FileError::Refused { problems }) }
}

fn read_one(value: Value) -> Result<ReadDefinition, Vec<Problem>> {
    let unnamed = edges_without_id(&value);
    let mut definition = Definition::from_value(value)?;
    let mut notes = Vec::from_iter(migrate::note(definition.version.as_deref()));
    notes.extend(unnamed.into_iter().filter_map(|n| {
        let edge = definition.edges.get(n)?;
        let message = format!("the edge had no id and is now called {:?}", edge.id);
        Some(Note { place: format!("edges[{n}]"), message })
    }));
    notes.extend(definition.merge_identical_edges());
    Ok(ReadDefinition { definition, notes })
}

fn edges_without_id(value: &Value) -> Vec<usize> {
    let edges = value.get("edges").and_then(Value::as_array).unwrap_or_default();
    let has_no_id = |edge: &Value| edge.get("id").is_none_or(Value::is_null);
    edges.iter().enumerate().filter(|(_, edge)| has_no_id(edge)).map(|(n, _)| n).collect()
}

/// Says what the JSON is, where it is not meant to be a workflow of ours.
fn recognise(value: &Value) -> Result<(), FileError> {
    let Value::Object(object) = value else {
        let missing = format!(
            "a workflow is an object with `nodes` and `edges`, but this is {}",
            described(value)
        );
        return Err(FileError::NotAWorkflow { missing });
    };
    if object.contains_key("nodes") {
        return Ok(());
    }
    if is_personalclaw(object) {
        let name = object.get("name").and_then(Value::as_str);
        let name = name.map(|name| name.chars().take(NAME_CHARS_MAX).collect::<String>());
        let called = name.map(|name| format!(" called {name:?}")).unwrap_or_default();
        let what = format!("a PersonalClaw workflow template{called}");
        return Err(FileError::OtherFormat { what });
    }
    let missing = if object.contains_key("definition") {
        "there are no `nodes`; its `definition` may hold the workflow: save that part as a file"
    } else if object.contains_key("agents") {
        "there are no `nodes`; a file with `agents` is imported on the page of agents"
    } else {
        "there are no `nodes`; a workflow has at least `nodes`, a list of objects with an `id`, \
         and `edges`, a list of objects with `source` and `target`"
    };
    Err(FileError::NotAWorkflow { missing: missing.to_owned() })
}

/// A tree of nodes that each have a `kind`, under `root`, perhaps inside `spec`.
fn is_personalclaw(object: &Object) -> bool {
    let is_tree = |value: &Value| {
        value.get("kind").is_some_and(|kind| kind.as_str().is_some())
            && ["children", "config", "body", "cases"].iter().any(|key| value.get(key).is_some())
    };
    let spec = object.get("spec");
    [object.get("root"), spec, spec.and_then(|spec| spec.get("root"))]
        .into_iter()
        .flatten()
        .any(is_tree)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKFLOW: &str = "{\n  \"version\": \"1.0.0\",\n  \"id\": \"w1\",\n  \"name\": \"Daily é\",\n  \
        \"nodes\": [\n    {\n      \"id\": \"a\",\n      \"agentId\": \"x\"\n    }\n  ],\n  \
        \"edges\": []\n}\n";

    fn refusal(bytes: &[u8]) -> String {
        read(bytes).unwrap_err().to_string()
    }

    fn one(bytes: &[u8]) -> Definition {
        let mut read = read(bytes).unwrap();
        assert_eq!(read.len(), 1);
        read.remove(0).definition
    }

    #[test]
    fn o_i01_marks_line_ends_and_encodings_make_no_difference() {
        let plain = one(WORKFLOW.as_bytes());
        let crlf = WORKFLOW.replace('\n', "\r\n");
        let marked = [b"\xef\xbb\xbf", crlf.as_bytes()].concat();
        assert_eq!(one(&marked), plain);
        let utf16: Vec<u8> = "\u{feff}"
            .encode_utf16()
            .chain(crlf.encode_utf16())
            .flat_map(u16::to_le_bytes)
            .collect();
        assert_eq!(one(&utf16), plain);
        assert_eq!(plain.to_file(), WORKFLOW, "written as UTF-8 with LF and without a mark");
    }

    #[test]
    fn o_i01_mistakes_are_named_with_their_line() {
        let text = "{\n\"version\":\"1.0.0\",\n\"id\":1,\n\"nodes\":[\n{\n\"id\":\"a\",\n\"name\":\
            \"A\"\n}\n],\n\"edges\":\n[\n],\n}\n";
        assert!(refusal(text.as_bytes()).starts_with("line 12"), "{}", refusal(text.as_bytes()));
        let crlf = text.replace('\n', "\r\n");
        assert!(refusal(crlf.as_bytes()).starts_with("line 12"));
        assert!(refusal(b"").contains("empty"));
        assert!(!refusal(b"   \n ").is_empty());
        assert!(refusal(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR").contains("PNG"));
    }

    #[test]
    fn o_i02_a_list_gives_one_draft_each_whatever_the_ids() {
        let text = format!("[{WORKFLOW},{WORKFLOW},{}]", WORKFLOW.replace("\"w1\"", "1"));
        let read = read(text.as_bytes()).unwrap();
        assert_eq!(read.len(), 3);
        assert_eq!(read[2].definition.id, Some(Value::from(1)));
    }

    #[test]
    fn one_bad_workflow_of_a_list_refuses_the_whole_file() {
        let text = format!(r#"[{WORKFLOW},{{"nodes":[{{}}]}}]"#);
        assert!(refusal(text.as_bytes()).starts_with("[1].nodes[0]: the node has no id"));
        assert!(refusal(b"[]").contains("the list is empty"));
        assert!(refusal(b"[1]").contains("this is the number 1"));
    }

    #[test]
    fn json_that_is_something_else_is_told_what_is_missing() {
        assert!(refusal(b"\"text\"").contains("an object with `nodes` and `edges`"));
        assert!(refusal(b"{}").contains("there are no `nodes`"));
        assert!(refusal(br#"{"agents":[]}"#).contains("page of agents"));
        assert!(refusal(br#"{"definition":"{}"}"#).contains("save that part"));
        assert!(refusal(br#"{"nodes":3}"#).contains("`nodes` must be a list"));
    }

    #[test]
    fn a_personalclaw_template_is_called_by_its_name() {
        let message = refusal(
            br#"{"name":"deep-research","version":1,"root":{"kind":"sequence","children":[]}}"#,
        );
        assert_eq!(
            message,
            "this is a PersonalClaw workflow template called \"deep-research\", which Cyanotype \
             cannot import yet"
        );
    }

    #[test]
    fn notes_say_how_a_file_was_read() {
        let text = r#"{"nodes":[{"id":"a"},{"id":"b"}],
            "edges":[{"source":"a","target":"b"},{"id":"e","source":"a","target":"b"}]}"#;
        let read = read(text.as_bytes()).unwrap();
        let notes: Vec<String> = read[0].notes.iter().map(Note::to_string).collect();
        assert_eq!(
            notes,
            [
                "version: there is no version; the file is read as 1.0.0",
                r#"edges[0]: the edge had no id and is now called "edge-a-b""#,
                r#"edges[1]: edge "e" says the same as edge "edge-a-b" and was merged into it"#,
            ]
        );
    }

    #[test]
    fn a_newer_major_version_is_refused() {
        assert!(refusal(br#"{"version":"2.0.0","nodes":[]}"#).contains("reads 1.x"));
    }

    #[test]
    fn long_lists_of_problems_are_cut() {
        let nodes = vec!["{}"; 50].join(",");
        let message = refusal(format!(r#"{{"nodes":[{nodes}]}}"#).as_bytes());
        assert!(message.ends_with("and 30 more"), "{message}");
    }
}
