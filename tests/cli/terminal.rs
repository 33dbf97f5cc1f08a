//! The live view on a real terminal, as far as `script` can give one.

use std::process::Command;

use super::{Desk, agents, flow, script};
use crate::binary;

/// Runs a command line on a terminal of its own; `None`, with a word about it, where that cannot be
/// had.
fn on_terminal(desk: &Desk, line: &str, term: &str) -> Option<(i32, String)> {
    if !cfg!(target_os = "linux") || Command::new("script").arg("--version").output().is_err() {
        println!("skipped, no `script` to give a terminal");
        return None;
    }
    let line = format!("stty cols 80 rows 24; '{}' {line}", binary::path().display());
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    command.env("TERM", term).env("CYANOTYPE_HOME", desk.home()).env("LC_ALL", "C.UTF-8");
    command.env_remove("NO_COLOR").stdin(std::process::Stdio::null());
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    Some((output.status.code().unwrap(), text))
}

/// A run of a few nodes that takes half a second.
fn run_line(desk: &Desk) -> String {
    let flow = desk.write("flow.json", flow("Shown", &["a", "b"], &["a>b"]));
    let work = script("echo working >&2; sleep 0.5; echo 1");
    let agents = desk.write("agents.json", agents(&[("a", "process", &work), ("b", "echo", "{}")]));
    format!("run {} --agents {} --trust", flow.display(), agents.display())
}

#[test]
fn a_terminal_shows_the_nodes_while_they_run_and_a_summary_that_stays() {
    let desk = Desk::new();
    let Some((code, shown)) = on_terminal(&desk, &run_line(&desk), "xterm-256color") else {
        return;
    };
    assert_eq!(code, 0, "{shown}");
    for said in ["0 of 2 nodes, 1 running", "running 0.", "working", "pending", "\x1b["] {
        assert!(shown.contains(said), "{said:?} is missing in {shown}");
    }
    let (_, rest) = shown.rsplit_once("\x1b[J").expect("the live view was taken away");
    for said in ["a  ", "completed", "Shown", "(2 of 2 nodes", "Output"] {
        assert!(rest.contains(said), "{said:?} is missing in {rest}");
    }
}

#[test]
fn a_dumb_terminal_gets_plain_lines() {
    let desk = Desk::new();
    let Some((code, shown)) = on_terminal(&desk, &run_line(&desk), "dumb") else { return };
    assert_eq!(code, 0, "{shown}");
    assert!(!shown.contains('\x1b'), "{shown}");
    assert!(shown.contains("] a: started") && shown.contains("] a | working"), "{shown}");
}
