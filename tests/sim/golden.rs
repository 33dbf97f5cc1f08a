//! Journals as text, kept for ever: whatever is released later must still fold them.
//!
//! `UPDATE_GOLDEN=1` writes the files anew. Files of a released format are never written anew.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::rc::Rc;

use engine::ids::Seq;
use engine::journal::{Record, decode};
use engine::scheduler::Execution;
use engine::time::Timestamp;

use super::case::Case;
use super::chaos::{Chaos, Fault};
use super::world::{START_MS, World};

/// One execution whose journal is kept.
struct Golden {
    name: &'static str,
    case: Case,
    faults: &'static [(usize, Fault)],
}

fn all() -> Vec<Golden> {
    vec![
        Golden {
            name: "conditions-and-joins",
            case: Case::field(
                r#"{"nodes":{"S":{"out":{"go":false,"n":1.0}},"A":{"echo":true},"B":{"out":1},
                             "J":{"echo":true},"K":{"echo":true}},
                    "edges":[["S","A",{"field":"n","op":"equals","value":1}],
                             ["S","B",{"field":"go","op":"equals","value":true}],
                             ["A","J"],["B","J"],["A","K"],["B","K"]],
                    "settings":{"K":{"join":"any"}},
                    "input":{"q":"hello"}}"#,
            ),
            faults: &[],
        },
        Golden {
            name: "retries-and-the-error-port",
            case: Case::field(
                r#"{"nodes":{"A":{"fail":"network","times":2,"then":"up"},
                             "B":{"fail":"Oops"},"H":{"echo":true},"C":{"out":2}},
                    "edges":[["A","B"],["B","H",{"port":"error"}],["B","C"]],
                    "retry":{"A":{"maxRetries":2,"backoffBase":1,"strategy":"fixed"},
                             "B":{"maxRetries":0}}}"#,
            ),
            faults: &[],
        },
        Golden {
            name: "bindings-and-an-upstream-failure",
            case: Case::field(
                r#"{"nodes":{"A":{"out":{"id":17169973925117969}},"B":{"echo":true},
                             "C":{"echo":true},"D":{"out":1}},
                    "edges":[["A","B"],["A","C"],["C","D"]],
                    "settings":{"B":{"inputs":{"id":"{{ nodes.A.output.id }}"}},
                                "C":{"inputs":{"id":"{{ nodes.A.output.gone }}"}}}}"#,
            ),
            faults: &[],
        },
        Golden {
            name: "a-crash-and-a-person",
            case: Case::field(
                r#"{"nodes":{"A":{"out":1,"takes":50,"sideEffecting":true},
                             "B":{"out":2,"takes":50},"J":{"echo":true}},
                    "edges":[["A","J"],["B","J"]],"input":null}"#,
            ),
            faults: &[(1, Fault::Crash)],
        },
        Golden {
            name: "a-cancel-and-a-late-report",
            case: Case::field(
                r#"{"nodes":{"A":{"out":1,"takes":50},"B":{"out":2}},"edges":[["A","B"]]}"#,
            ),
            faults: &[(1, Fault::Cancel)],
        },
    ]
}

impl Golden {
    fn path(&self) -> PathBuf {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden/journals");
        folder.join(format!("{}.txt", self.name))
    }

    /// The journal, an empty line, and what it folds to.
    fn text(&self) -> String {
        let case = Rc::new(self.case.clone());
        let setup = Rc::new(case.setup(1).expect("the case compiles"));
        let chaos = Chaos { faults: self.faults.to_vec(), ..Chaos::none() };
        let mut world = World::start(&case, &setup, chaos, 1).expect("it starts");
        world.drive().expect("it keeps the rules");
        format!("{}\n{}", world.journal_text(), folded(world.execution()))
    }
}

/// What an execution looks like, one thing a line.
fn folded(execution: &Execution) -> String {
    let mut text = String::new();
    let output = execution.output().map_or("none", |output| output.text());
    writeln!(text, "{}, output {output}", execution.status().as_str()).expect("text");
    for idx in execution.plan().node_indices() {
        let id = &execution.plan().node(idx).id;
        let summary = execution.node_summary(idx);
        let attempts = summary.as_ref().map_or(0, |node| node.attempts);
        let status = execution.node_status(idx).as_str();
        let input = execution.node_input(idx);
        let input = input.as_ref().map_or("none", |input| input.text());
        let reason = summary.and_then(|node| node.reason).map_or("", |reason| reason.as_str());
        writeln!(text, "{id}: {status} {reason}, {attempts} attempts, input {input}")
            .expect("text");
    }
    text
}

fn read(line: &str) -> Record {
    let mut parts = line.splitn(4, ' ');
    let mut part = || parts.next().unwrap_or_else(|| panic!("four parts in {line:?}"));
    let (seq, at, kind, body) = (part(), part(), part(), part());
    let at: i64 = at.strip_prefix('+').expect("a time").parse().expect("a time in ms");
    Record {
        seq: Seq(seq.parse().expect("a number")),
        at: Timestamp(START_MS + at),
        event: decode(kind, body).expect("the record can be read"),
    }
}

#[test]
fn golden_journals_are_still_written_and_still_fold_to_what_they_did() {
    for golden in all() {
        let path = golden.path();
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder is made");
            std::fs::write(&path, golden.text()).expect("the file is written");
        }
        let file = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}; see tests/sim/golden.rs", golden.name));
        assert_eq!(golden.text(), file, "{}: UPDATE_GOLDEN=1 writes it anew", golden.name);
        let (journal, wanted) = file.split_once("\n\n").expect("a journal and its fold");
        let records: Vec<Record> = journal.lines().map(read).collect();
        let setup = golden.case.setup(1).expect("the case compiles");
        assert_eq!(folded(&setup.replay(&records)), wanted, "{}", golden.name);
    }
}
