//! What commands print, word for word, in `golden/cli`. `UPDATE_GOLDEN=1` rewrites the files.
//!
//! Ids, digests, times and durations are masked, the paths of a test's folders too.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use engine::value::Value;

use super::{Desk, Done, agents, flow, script, text};

/// Compares texts with the file of a name.
fn check(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/cli").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, text).expect("the golden files can be written");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{name} differs; UPDATE_GOLDEN=1 rewrites it");
}

/// A command, what it printed and how it ended, masked.
fn session(desk: &Desk, runs: &[(&str, &Done)]) -> String {
    let mut masks = Masks { folder: desk.path("").display().to_string(), ids: BTreeMap::new() };
    let mut text = String::new();
    for (command, done) in runs {
        text.push_str(&format!("$ cyanotype {command}\n{}", done.stdout));
        if !done.stderr.is_empty() {
            text.push_str(&format!("--- stderr\n{}", done.stderr));
        }
        text.push_str(&format!("--- exit {}\n\n", done.code));
    }
    masks.mask(&text)
}

struct Masks {
    folder: String,
    ids: BTreeMap<String, usize>,
}

impl Masks {
    fn mask(&mut self, text: &str) -> String {
        let text = text.replace(&self.folder, "<folder>/");
        let lines: Vec<String> = text.lines().map(|line| self.line(line)).collect();
        format!("{}\n", lines.join("\n"))
    }

    fn line(&mut self, line: &str) -> String {
        let mut masked = String::new();
        let mut rest = line;
        while let Some(c) = rest.chars().next() {
            let is_inside_word = masked.ends_with(|c: char| c.is_ascii_alphanumeric());
            match self.token(rest).filter(|_| !is_inside_word) {
                Some((length, mask)) => {
                    masked.push_str(&mask);
                    rest = &rest[length..];
                }
                None => {
                    masked.push(c);
                    rest = &rest[c.len_utf8()..];
                }
            }
        }
        masked
    }

    /// What stands at the beginning of the text, if that is to be masked, and how long it is.
    fn token(&mut self, text: &str) -> Option<(usize, String)> {
        const SHAPES: [(&str, &str); 8] = [
            ("hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh", "id"),
            ("dddd-dd-ddTdd:dd:dd.dddZ", "<time>"),
            ("dddd-dd-dd dd:dd:dd UTC", "<time>"),
            ("[dd:dd.ddd]", "[<time>]"),
            ("d.d s", "<duration>"),
            ("dd.d s", "<duration>"),
            ("dd:dd)", "<clock>)"),
            ("hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh", "<digest>"),
        ];
        let (shape, mask) = SHAPES.into_iter().find(|(shape, _)| has_shape(text, shape))?;
        let found = &text[..shape.len()];
        let mask = match mask {
            "id" => {
                let next = self.ids.len() + 1;
                format!("<id {}>", self.ids.entry(found.to_owned()).or_insert(next))
            }
            mask => mask.to_owned(),
        };
        Some((shape.len(), mask))
    }
}

/// `d` stands for a digit, `h` for a hexadecimal one, anything else for itself.
fn has_shape(text: &str, shape: &str) -> bool {
    text.is_char_boundary(shape.len().min(text.len()))
        && text.len() >= shape.len()
        && text.bytes().zip(shape.bytes()).all(|(byte, shape)| match shape {
            b'd' => byte.is_ascii_digit(),
            b'h' => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
            shape => byte == shape,
        })
}

#[test]
fn help_lists_the_commands_and_the_exit_codes() {
    let desk = Desk::new();
    let mut all = String::new();
    for arguments in [
        &["--help"][..],
        &["run", "--help"],
        &["decide", "--help"],
        &["agents", "import", "--help"],
    ] {
        let command = arguments.join(" ");
        all.push_str(&session(&desk, &[(command.as_str(), &desk.run(arguments))]));
    }
    check("help.txt", &all);
}

#[test]
fn a_run_reads_like_a_log_in_a_pipe() {
    let desk = Desk::new();
    let flow = desk.write("flow.json", flow("Daily report", &["a", "b", "c"], &["a>b", "b>c"]));
    let agents = desk.write(
        "agents.json",
        agents(&[
            ("a", "process", &script("echo looking around >&2; echo '{\"found\": 3.0}'")),
            ("b", "echo", "{}"),
            ("c", "echo", "{}"),
        ]),
    );
    let (flow, agents) = (flow.display().to_string(), agents.display().to_string());
    let run = desk.run(&["run", &flow, "--agents", &agents, "--trust"]);
    let json = desk.run(&["run", &flow, "--agents", &agents, "--json"]);
    let id = text(&json.result(), "executionId").to_owned();
    let show = desk.run(&["show", &id]);
    check(
        "run.txt",
        &session(
            &desk,
            &[
                ("run flow.json --agents agents.json --trust", &run),
                ("run flow.json --agents agents.json --json", &json),
                ("show EXECUTION", &show),
            ],
        ),
    );
}

#[test]
fn a_failure_says_what_happened_and_what_to_do() {
    let desk = Desk::new();
    let flow = desk.write(
        "flow.json",
        r#"{"name":"Fragile","nodes":[
            {"id":"fetch","name":"Fetch","agentId":"fetch",
              "retryPolicy":{"maxRetries":1,"backoffBase":0}},
            {"id":"off","agentId":"off","disabled":true},
            {"id":"use","name":"Use","agentId":"use"},{"id":"tell","agentId":"use"}],
          "edges":[{"id":"1","source":"fetch","target":"use"},
            {"id":"2","source":"off","target":"tell"}]}"#,
    );
    let fail = script("echo 'no such host' >&2; exit 7");
    let agents = desk.write(
        "agents.json",
        agents(&[("fetch", "process", &fail), ("off", "echo", "{}"), ("use", "echo", "{}")]),
    );
    let (flow, agents) = (flow.display().to_string(), agents.display().to_string());
    let refused = desk.run(&["run", &flow, "--agents", &agents]);
    let run = desk.run(&["run", &flow, "--agents", &agents, "--trust"]);
    let listed = desk.run(&["list", "--json"]);
    let id = text(&listed.lines()[0], "executionId").to_owned();
    let show = desk.run(&["show", &id]);
    check(
        "failure.txt",
        &session(
            &desk,
            &[
                ("run flow.json --agents agents.json", &refused),
                ("run flow.json --agents agents.json --trust", &run),
                ("list", &desk.run(&["list"])),
                ("show EXECUTION", &show),
            ],
        ),
    );
}

#[test]
fn findings_say_what_where_and_what_to_do() {
    let desk = Desk::new();
    let flow = desk.write(
        "flow.json",
        r#"{"name":"Draft","x-team":1,"nodes":[{"id":"a","agentId":"placeholder-a"},
            {"id":"b","agentId":"demo-echo-agent"},{"id":"c","agentId":"demo-echo-agent"}],
          "edges":[{"id":"1","source":"a","target":"ghost"},{"id":"2","source":"b","target":"c"},
            {"id":"3","source":"c","target":"b"}]}"#,
    );
    let flow = flow.display().to_string();
    let validate = desk.run(&["validate", &flow]);
    let json = desk.run(&["validate", &flow, "--json"]);
    let import = desk.run(&["import", &flow]);
    let listed = desk.run(&["list", "workflows", "--json"]);
    let id = text(&listed.lines()[0], "id").to_owned();
    let publish = desk.run(&["publish", &id]);
    check(
        "findings.txt",
        &session(
            &desk,
            &[
                ("validate flow.json", &validate),
                ("validate flow.json --json", &json),
                ("import flow.json", &import),
                ("list workflows --json", &listed),
                ("publish WORKFLOW", &publish),
                ("run WORKFLOW", &desk.run(&["run", &id])),
            ],
        ),
    );
}

#[test]
fn masks_hide_what_differs_from_run_to_run() {
    let mut masks = Masks { folder: "/tmp/x/".to_owned(), ids: BTreeMap::new() };
    let text =
        "[00:01.234] 01a22e10-b561-70fa-8e9c-7892acb7b607 took 0.3 s (1 of 2, 00:01) /tmp/x/a";
    assert_eq!(masks.mask(text), "[<time>] <id 1> took <duration> (1 of 2, <clock>) <folder>/a\n");
    let value = Value::from("2026-11-30T18:24:59.007Z").to_json();
    assert_eq!(masks.mask(&value), "\"<time>\"\n");
}
