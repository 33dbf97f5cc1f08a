//! Interrupts, crashes and what a person decides afterwards.
#![cfg(unix)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use engine::value::Value;

use super::{Desk, Done, agents, at, flow, script, text, wait_for_file};

/// A desk with a run on it whose first node works until it is stopped.
struct Run {
    desk: Desk,
    child: Child,
    execution: String,
}

impl Run {
    /// Starts it, and returns once its first node is at work.
    fn start() -> Run {
        let desk = Desk::new();
        let flow = desk.write("flow.json", flow("Long", &["a", "b"], &["a>b"]));
        let begun = desk.path("begun");
        let work = format!("echo $$ > '{}'; sleep 300; echo 1", begun.display());
        let agents = desk
            .write("agents.json", agents(&[("a", "process", &script(&work)), ("b", "echo", "{}")]));
        let (flow, agents) = (flow.display().to_string(), agents.display().to_string());
        let mut command = desk.command(&["run", &flow, "--agents", &agents, "--trust", "--json"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        lines.read_line(&mut line).unwrap();
        let execution = text(&Value::parse(&line).unwrap(), "executionId").to_owned();
        // Nobody reads on: a run does not depend on it.
        drop(lines);
        wait_for_file(&begun);
        Run { desk, child, execution }
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// Waits for the end of the process.
    fn ended(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    fn result(&self) -> Value {
        self.desk.run(&["show", &self.execution, "--json"]).result()
    }

    /// Whether the program of the first node still runs.
    fn work_goes_on(&self) -> bool {
        let pid = std::fs::read_to_string(self.desk.path("begun")).unwrap();
        let state = Command::new("ps").args(["-o", "stat=", "-p", pid.trim()]).output().unwrap();
        let state = String::from_utf8(state.stdout).unwrap();
        // What ended but whose parent has not asked for its end is a zombie.
        !state.trim().is_empty() && !state.trim().starts_with('Z')
    }
}

#[test]
fn an_interrupt_cancels_cleanly_and_ends_with_3() {
    let mut run = Run::start();
    run.signal("-INT");
    assert_eq!(run.ended(), Some(3));
    let result = run.result();
    assert_eq!(text(&result, "status"), "cancelled");
    assert_eq!(text(at(&result, &["nodes", "a"]).unwrap(), "status"), "cancelled");
    assert!(!run.work_goes_on(), "the program was stopped");
    assert_eq!(run.desk.run(&["check"]).code, 0);
}

#[test]
fn a_second_interrupt_or_a_termination_leaves_it_to_be_resumed() {
    for signals in [&["-INT", "-INT"][..], &["-TERM"]] {
        let mut run = Run::start();
        for signal in signals {
            run.signal(signal);
            // Two signals of one kind that arrive at once are one.
            std::thread::park_timeout(std::time::Duration::from_millis(200));
        }
        assert_eq!(run.ended(), Some(5), "{signals:?}");
        assert!(!run.work_goes_on(), "the program was stopped");
        assert_eq!(text(&run.result(), "status"), "running");
        assert!(run.desk.prints(&["list"]).contains("interrupted"));
        let resumed = run.desk.run(&["resume", &run.execution]);
        assert_eq!(resumed.code, 5, "it waits for a person: {resumed:?}");
    }
}

#[test]
fn a_killed_run_is_resumed_asks_and_goes_on_as_a_person_decides() {
    let mut run = Run::start();
    run.signal("-KILL");
    assert_eq!(run.ended(), None);
    let desk = &run.desk;
    let watched = desk.run(&["show", &run.execution, "--watch"]);
    assert_eq!(watched.code, 5, "nobody drives it: {watched:?}");
    let resumed = desk.run(&["resume", "--json"]);
    assert_eq!(resumed.code, 5, "{resumed:?}");
    let lines = resumed.lines();
    assert_eq!(text(&lines[0], "type"), "workflow.node.waiting", "old news is not told again");
    let result = resumed.result();
    assert_eq!(text(&result, "waitingFor"), "lost");
    assert!(!run.work_goes_on(), "what the killed process left behind was ended");
    let again = desk.run(&["resume", &run.execution]);
    assert_eq!(again.code, 5);
    for decision in ["retry", "complete --output", "fail"] {
        let command = format!("decide {} a {decision}", run.execution);
        assert!(again.stdout.contains(&command), "{command} is missing in {again:?}");
    }
    let wrong = desk.run(&["decide", &run.execution, "b", "fail"]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
    let decided = desk.run(&[
        "decide",
        &run.execution,
        "a",
        "complete",
        "--output",
        "18446744073709551615",
        "--json",
    ]);
    assert_eq!(decided.code, 0, "{decided:?}");
    let result = decided.result();
    assert_eq!(result.get("output").unwrap().to_json(), "18446744073709551615");
    assert_eq!(at(&result, &["nodes", "a", "attempts"]).unwrap().to_json(), "1");
    let late = desk.run(&["decide", &run.execution, "a", "retry"]);
    assert_eq!(late.code, 2, "an answer is used once: {late:?}");
    assert_eq!(desk.run(&["resume", &run.execution]).code, 0, "it has completed");
    assert_eq!(desk.prints(&["resume"]), "nothing is interrupted\n");
    assert_eq!(desk.run(&["check"]).code, 0);
}

#[test]
fn a_person_may_let_the_node_fail_and_cancelling_what_is_interrupted_works() {
    let mut run = Run::start();
    run.signal("-KILL");
    run.ended();
    run.desk.run(&["resume"]);
    let failed = run.desk.run(&["decide", &run.execution, "a", "fail", "--message", "no trace"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.stdout.contains("no trace"), "{failed:?}");
    let mut run = Run::start();
    run.signal("-KILL");
    run.ended();
    run.desk.prints(&["cancel", &run.execution]);
    assert_eq!(text(&run.result(), "status"), "cancelled");
    assert_eq!(run.desk.prints(&["resume"]), "nothing is interrupted\n");
}

#[test]
fn o_d03_two_processes_share_a_data_folder_and_one_cancels_what_the_other_runs() {
    let mut run = Run::start();
    let desk = &run.desk;
    assert!(desk.prints(&["list"]).contains("running"));
    let refused = desk.run(&["resume", &run.execution]);
    assert_eq!(refused.code, 5, "it has an owner: {refused:?}");
    assert!(refused.stderr.contains("--watch"), "{refused:?}");
    assert_eq!(desk.prints(&["resume"]), "nothing is interrupted\n");
    let mut watch = desk.command(&["show", &run.execution, "--watch", "--json"]);
    let watch = watch.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    desk.prints(&["cancel", &run.execution]);
    let watched = Done::from(watch.wait_with_output().unwrap());
    assert_eq!(watched.code, 3, "{watched:?}");
    assert_eq!(text(&watched.lines()[0], "type"), "workflow.started");
    assert_eq!(run.ended(), Some(3));
    assert_eq!(run.desk.run(&["check"]).code, 0);
}
