//! O-P02 and O-P03: pipes that block each other, and bytes that are not quite text.

use std::time::Duration;

use engine::failure::FailureClass;
use engine::value::Value;
use runtime::runner::{AttemptOutcome, PROGRESS_LINE_BYTES_MAX, ProgressStream};

use super::{Asked, Ran, World};

const MIB: usize = 1024 * 1024;
const LIMIT: Duration = Duration::from_secs(10);

#[track_caller]
fn assert_no_replacement_mark(ran: &Ran) {
    assert!(ran.lines.iter().all(|line| !line.text.contains('\u{fffd}')), "{:?}", ran.lines);
}

#[test]
fn op02_an_agent_that_copies_8_mib_completes() {
    let input = format!("\"{}\"", "x".repeat(8 * MIB));
    let ran = World::new().run(&Asked::program("cat", &[]).input(input.clone()));
    assert!(ran.output() == input, "the output is not the input");
    assert!(ran.took < LIMIT, "{:?}", ran.took);
}

#[test]
fn op02_an_agent_that_complains_at_length_before_it_reads_completes() {
    let input = format!("\"{}\"", "y".repeat(8 * MIB));
    let script = "head -c 8388608 /dev/zero | tr '\\0' 'z' >&2; cat";
    let ran = World::new().run(&Asked::sh(script).input(input.clone()));
    assert!(ran.output() == input, "the output is not the input");
    assert!(ran.took < LIMIT, "{:?}", ran.took);
    let lines = ran.lines(ProgressStream::Stderr);
    assert_eq!(lines.len(), 1, "one line without an end");
    assert_eq!(lines[0].len(), PROGRESS_LINE_BYTES_MAX);
}

#[test]
fn op02_an_agent_that_never_reads_and_never_exits_is_stopped_in_time() {
    let input = format!("\"{}\"", "x".repeat(8 * MIB));
    let asked = Asked::program("sleep", &["300"]).input(input);
    let ran = World::new().run_and_stop(&asked, Duration::from_millis(200));
    assert_eq!(ran.outcome, AttemptOutcome::Stopped);
    assert!(ran.took < Duration::from_secs(3), "{:?}", ran.took);
}

#[test]
fn op02_an_agent_that_wants_no_input_completes() {
    let input = format!("\"{}\"", "x".repeat(8 * MIB));
    let ran = World::new().run(&Asked::sh("exec <&-; echo 1").input(input));
    assert_eq!(ran.output(), "1");
}

#[test]
fn op03_a_character_that_comes_in_three_pieces_stays_whole() {
    let script = "printf '\\342'; sleep 0.1; printf '\\211'; sleep 0.1; printf '\\244'";
    let ran = World::new().run(&Asked::sh(script).text());
    assert_eq!(ran.output(), "\"≤\"");
    assert_eq!(ran.lines(ProgressStream::Stdout), ["≤"]);

    let as_json = script.replace("'\\342'", "'\"\\342'").replace("\\244'", "\\244\"'");
    let ran = World::new().run(&Asked::sh(&as_json));
    assert_eq!(ran.output(), "\"≤\"");

    let as_error = format!("({script}) >&2");
    let ran = World::new().run(&Asked::sh(&as_error));
    assert_eq!(ran.lines(ProgressStream::Stderr), ["≤"]);
}

#[test]
fn op03_3_mib_of_4_byte_characters_come_through_unchanged() {
    let input = format!("{{\"a\":\"{}\"}}", "😀".repeat(3 * MIB / 4));
    let ran = World::new().run(&Asked::sh("tee /dev/stderr").input(input.clone()));
    assert!(ran.output() == input, "the output is not the input");
    assert_no_replacement_mark(&ran);
    let lines = ran.lines(ProgressStream::Stderr);
    assert_eq!(lines.len(), 1);
    assert!(lines[0].len() <= PROGRESS_LINE_BYTES_MAX && input.starts_with(lines[0]));
}

#[test]
fn op03_bytes_that_are_no_text_fail_where_json_was_promised_and_are_kept() {
    let world = World::new();
    let asked = Asked::sh("echo working; printf '{\"a\":\"\\377\\376\"}'");
    let ran = world.run(&asked);
    let failure = ran.failure();
    assert_eq!(failure.class, FailureClass::InvalidOutput);
    assert_eq!(failure.error_type, "invalidUtf8");
    let kept: Vec<_> = std::fs::read_dir(world.home.path().join("raw")).unwrap().collect();
    assert_eq!(kept.len(), 1);
    let path = kept[0].as_ref().unwrap().path();
    assert!(failure.message.contains(path.to_str().unwrap()), "{}", failure.message);
    assert_eq!(std::fs::read(path).unwrap(), b"working\n{\"a\":\"\xFF\xFE\"}");
    assert_eq!(ran.lines(ProgressStream::Stdout), ["working"]);
}

#[test]
fn op03_bytes_that_are_no_text_become_marks_where_text_was_promised() {
    let world = World::new();
    let ran = world.run(&Asked::sh("printf 'a\\377b\\n'").text());
    assert_eq!(ran.completed(), ("\"a\u{fffd}b\"", vec!["invalidUtf8Replaced"]));
    assert_eq!(std::fs::read_dir(world.home.path().join("raw")).unwrap().count(), 1);
}

#[test]
fn op03_error_output_that_is_no_text_never_fails_an_attempt() {
    let ran = World::new().run(&Asked::sh("printf '\\377\\n' >&2; echo 1"));
    assert_eq!(ran.output(), "1");
    assert_eq!(ran.lines(ProgressStream::Stderr), ["\u{fffd}"]);
}

#[test]
fn the_input_arrives_exactly_as_compact_json() {
    let asked = Asked::program("cat", &[])
        .text()
        .input("{ \"id\": 18446744073709551616,\n \"x\": [1.0, \"é\\u0041\"] }");
    let ran = World::new().run(&asked);
    let expected = r#"{"id":18446744073709551616,"x":[1.0,"éA"]}"#;
    assert_eq!(Value::parse(ran.output()).unwrap().as_str(), Some(expected));
}
