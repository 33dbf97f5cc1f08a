//! What stays on the screen when an execution has ended or stands still.

use engine::payload::Payload;
use engine::plan::NodeIdx;
use engine::projection::{NodeStatus, WaitReason};
use engine::time::Timestamp;
use engine::value::Value;

use super::duration::{duration, size};
use super::frame::bar;
use super::node::plain_words;
use crate::followed::Followed;
use crate::terminal::{Ink, Style};
use crate::text::{indented, lines, one_line};

/// The longest output that is printed whole, in bytes. Longer ones are asked for by name.
pub const PRINTED_BYTES_MAX: u64 = 16 * 1024;
/// How many failed nodes are described.
const FAILURES_MAX: usize = 20;

/// How an execution ended or why it stands still, its failures, and its output.
pub fn summary(followed: &Followed, now: Timestamp, style: Style, program: &str) -> String {
    let mut parts = vec![headline(followed, now, style)];
    parts.extend(failures(followed, style));
    parts.extend(error(followed, style));
    if let Some(output) = followed.execution.output() {
        parts.push(format!("{}\n{}", style.paint(Ink::Bold, "Output"), value(output, "output")));
    }
    parts.extend(followed.note().map(|note| format!("Note: {}", one_line(note))));
    if !followed.has_ended() {
        parts.push(what_to_do(followed, style, program));
    }
    parts.join("\n\n")
}

/// A payload as readable JSON, or how to get at it if it is long.
pub fn value(payload: &Payload, what: &str) -> String {
    if payload.bytes() > PRINTED_BYTES_MAX {
        let (size, digest) = (size(payload.bytes()), payload.digest());
        return format!("  The {what} has {size}; print it with `show EXECUTION --blob {digest}`.");
    }
    indented(&lines(&readable(payload.value())), "  ")
}

/// JSON, but texts of several lines are written as they are: a report is there to be read.
fn readable(value: &Value) -> String {
    let has_lines = |value: &Value| value.as_str().is_some_and(|text| text.contains('\n'));
    match value {
        Value::String(text) if has_lines(value) => text.clone(),
        Value::Object(fields) if fields.values().any(has_lines) => {
            let written = fields.iter().map(|(key, value)| match value.as_str() {
                Some(text) if has_lines(value) => format!("{key}:\n{}", indented(text, "  ")),
                _ => format!("{key}: {}", value.to_json_pretty()),
            });
            written.collect::<Vec<_>>().join("\n")
        }
        value => value.to_json_pretty(),
    }
}

/// How to go on with an execution that has not ended.
fn what_to_do(followed: &Followed, style: Style, program: &str) -> String {
    let id = followed.execution.id();
    if !followed.waits_for_a_person() {
        let head = style.paint(Ink::Attention, "It was left as it is.");
        return format!("{head} Continue it with:\n  {program} resume {id}");
    }
    let waiting = followed.execution.plan().node_indices().filter(|idx| waits(followed, *idx));
    let waiting: Vec<String> = waiting
        .map(|idx| {
            let node = followed.execution.plan().node(idx);
            let lost = followed.attempts.of(&node.id).len();
            format!(
                "{} was running attempt {lost} when its process ended, and nobody knows how far it \
                 came. Look, then say what is to become of it:\n  \
                 {program} decide {id} {node} retry\n  \
                 {program} decide {id} {node} complete --output JSON\n  \
                 {program} decide {id} {node} fail",
                followed.labels.at(idx),
                node = shell_word(node.id.as_str()),
            )
        })
        .collect();
    waiting.join("\n")
}

fn waits(followed: &Followed, idx: NodeIdx) -> bool {
    followed.execution.node_status(idx) == NodeStatus::Waiting
        && followed
            .execution
            .node_summary(idx)
            .is_some_and(|summary| summary.waiting_for == Some(WaitReason::Lost))
}

fn headline(followed: &Followed, now: Timestamp, style: Style) -> String {
    let ink = match followed.exit().code() {
        0 => Ink::Good,
        1 | 4 => Ink::Bad,
        5 => Ink::Attention,
        _ => Ink::Bold,
    };
    let words = match followed.has_ended() || followed.waits_for_a_person() {
        true => followed.status_words(),
        false => "left to be resumed",
    };
    let took = followed
        .execution
        .summary()
        .map_or(0, |summary| summary.ended_at.unwrap_or(now).ms_since(summary.started_at));
    format!(
        "{} {} after {} ({})\nExecution {}",
        followed.title(),
        style.paint(ink, words),
        duration(took),
        bar(followed, now),
        followed.execution.id()
    )
}

fn failures(followed: &Followed, style: Style) -> Vec<String> {
    let execution = &followed.execution;
    let failed: Vec<NodeIdx> = execution
        .plan()
        .node_indices()
        .filter(|idx| execution.node_status(*idx) == NodeStatus::Failed)
        .filter(|idx| execution.node_summary(*idx).is_some_and(|node| node.reason.is_none()))
        .collect();
    let mut blocks: Vec<String> = failed
        .iter()
        .take(FAILURES_MAX)
        .filter_map(|idx| {
            let failure = execution.node_failure(*idx)?;
            let name = followed.labels.at(*idx);
            let mut block = format!(
                "{} {}\n  {}\n  {}",
                style.paint(Ink::Bad, name),
                style.paint(Ink::Bad, &format!("failed: {}", plain_words(&failure.error_type))),
                indented(&lines(&failure.message), "  ").trim_start(),
                failure.class.recommended_action(),
            );
            if let Some(stderr) = &failure.stderr {
                let said = indented(lines(stderr).trim_end(), "  | ");
                block = format!("{block}\n{}", style.paint(Ink::Quiet, &said));
            }
            Some(block)
        })
        .collect();
    if let more @ 1.. = failed.len().saturating_sub(FAILURES_MAX) {
        blocks.push(format!("… and {more} more failed"));
    }
    blocks
}

/// The execution's own failure, where no node's failure says it all.
fn error(followed: &Followed, style: Style) -> Option<String> {
    let summary = followed.execution.summary()?;
    if followed.exit() != crate::exit::Exit::TimedOut {
        return None;
    }
    Some(style.paint(Ink::Bad, &one_line(summary.error.as_deref()?)))
}

/// A word as a shell takes it for one word.
pub fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) && !word.starts_with('-') {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_several_lines_are_written_as_they_are() {
        let readable = |json: &str| readable(&Value::parse(json).expect("JSON"));
        assert_eq!(readable(r##""# Title\n\nText""##), "# Title\n\nText");
        assert_eq!(
            readable(r##"{"path": "a", "report": "# Title\n\nText"}"##),
            "path: \"a\"\nreport:\n  # Title\n\n  Text"
        );
        assert_eq!(readable(r#""one line""#), r#""one line""#);
        assert_eq!(readable(r#"["a\nb"]"#), "[\n  \"a\\nb\"\n]");
    }

    #[test]
    fn odd_node_ids_can_be_pasted_into_a_shell() {
        assert_eq!(shell_word("fetch-1"), "fetch-1");
        assert_eq!(shell_word("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(shell_word(""), "''");
        assert_eq!(shell_word("-x"), "'-x'");
    }
}
