//! `kill -9` at random moments: the real binary, real processes, real side effects on files.
//!
//! Every attempt appends a line to a file of its node when it begins and one when its work is
//! done. A run is killed, resumed, killed again, and in the end finished, with a person's words
//! where an attempt with side effects was lost. Then the files must agree with the journal.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use engine::value::Value;
use tempfile::TempDir;

use crate::binary::cyanotype;

/// Runs in a normal test run, and in a long one.
const RUNS: (u64, u64) = (30, 200);
/// Kills of one run before it is left to finish.
const KILLS_MAX: u64 = 4;
/// Commands that one run may need to come to its end.
const COMMANDS_MAX: u32 = 60;

#[test]
fn killed_runs_end_and_repeat_no_side_effect_that_was_recorded() {
    let (normal, long) = RUNS;
    let n_runs = if std::env::var_os("CYANOTYPE_LONG").is_some() { long } else { normal };
    let first: u64 =
        std::env::var("CRASH_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let folder = TempDir::new().expect("a folder for the campaign");
    let mut tally = Tally::default();
    for seed in first..first + n_runs {
        Run::new(folder.path(), seed).play(&mut tally);
    }
    let checked = run(&mut cyanotype(&folder.path().join("home"), &["check"]));
    assert_eq!(checked.code, 0, "check: {}", checked.stdout);
    println!("{tally:?}");
    assert!(tally.kills > 0, "a campaign without a kill shows nothing");
    assert!(tally.ended == n_runs, "every run ends: {tally:?}");
}

#[derive(Debug, Default)]
struct Tally {
    kills: u64,
    answers: u64,
    ended: u64,
    attempts: u64,
}

/// What a command came to.
struct Done {
    code: i32,
    stdout: String,
    stderr: String,
}

fn run(command: &mut Command) -> Done {
    let output = command.stdin(Stdio::null()).output().expect("the binary starts");
    Done {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A small generator of its own, so that a seed means the same for ever.
///
/// Source: G. Steele, D. Lea, C. Flood, "Fast Splittable Pseudorandom Number Generators", 2014.
struct SplitMix(u64);

impl SplitMix {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

struct Run {
    seed: u64,
    home: PathBuf,
    marks: PathBuf,
    workflow: PathBuf,
    agents: PathBuf,
    random: SplitMix,
    /// Nodes seen as completed, with the marks they had left by then.
    completed: BTreeMap<String, String>,
}

impl Run {
    fn new(folder: &Path, seed: u64) -> Run {
        let own = folder.join(format!("run {seed}"));
        let marks = own.join("marks");
        fs::create_dir_all(&marks).expect("a folder for the marks");
        let run = Run {
            seed,
            home: folder.join("home"),
            workflow: own.join("workflow.json"),
            agents: own.join("agents.json"),
            random: SplitMix(seed),
            completed: BTreeMap::new(),
            marks,
        };
        fs::write(&run.workflow, WORKFLOW).expect("the workflow file");
        fs::write(&run.agents, agents(&run.marks)).expect("the agents file");
        run
    }

    fn play(mut self, tally: &mut Tally) {
        let (workflow, agents) = (path_text(&self.workflow), path_text(&self.agents));
        let key = format!("seed-{}", self.seed);
        let start =
            ["run", &workflow, "--agents", &agents, "--trust", "--json", "--idempotency-key", &key];
        let mut kills_left = 1 + self.random.below(KILLS_MAX);
        let mut id: Option<String> = None;
        for _ in 0..COMMANDS_MAX {
            let is_killed = kills_left > 0;
            let arguments: Vec<&str> = match &id {
                None => start.to_vec(),
                Some(id) => vec!["resume", id, "--json"],
            };
            if is_killed {
                kills_left -= 1;
                self.kill_during(&arguments);
                tally.kills += 1;
            } else {
                let done = run(&mut cyanotype(&self.home, &arguments));
                assert!(
                    matches!(done.code, 0 | 1 | 5),
                    "seed {}: {arguments:?} gave {}: {}",
                    self.seed,
                    done.code,
                    done.stderr
                );
            }
            id = id.or_else(|| self.find_id());
            let Some(id) = &id else { continue };
            let result = self.show(id);
            self.hold_to_the_marks(&result);
            if text(&result, "status") != "running" {
                self.finish(&result, tally);
                return;
            }
            if !is_killed {
                tally.answers += self.answer(id, &result);
            }
        }
        panic!("seed {}: not at its end after {COMMANDS_MAX} commands", self.seed);
    }

    fn kill_during(&mut self, arguments: &[&str]) {
        let mut child: Child = cyanotype(&self.home, arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary starts");
        // The one place where time passes on purpose: the moment of the kill is the test.
        std::thread::sleep(Duration::from_millis(20 + self.random.below(500)));
        child.kill().expect("it can be killed");
        child.wait().expect("it can be waited for");
    }

    /// The execution of this run: the one whose source is its workflow file.
    fn find_id(&self) -> Option<String> {
        let listed = run(&mut cyanotype(&self.home, &["list", "--json", "--limit", "1000"]));
        assert_eq!(listed.code, 0, "list: {}", listed.stderr);
        let source = format!("run {}", self.seed);
        listed.stdout.lines().find_map(|line| {
            let line = Value::parse(line).expect("list prints JSON lines");
            let is_ours = Path::new(&text(&line, "source"))
                .parent()
                .is_some_and(|folder| folder.ends_with(&source));
            is_ours.then(|| text(&line, "executionId"))
        })
    }

    fn show(&self, id: &str) -> Value {
        let shown = run(&mut cyanotype(&self.home, &["show", id, "--json"]));
        assert_eq!(shown.code, 0, "show: {}", shown.stderr);
        Value::parse(shown.stdout.trim()).expect("show prints one JSON object")
    }

    /// Answers every lost attempt, one way or the other.
    fn answer(&mut self, id: &str, result: &Value) -> u64 {
        let waiting: Vec<String> = nodes(result)
            .filter(|(_, node)| field(node, "waitingFor") == Some("lost"))
            .map(|(node, _)| node.to_owned())
            .collect();
        let Some(node) = waiting.first() else { return 0 };
        let answer: &[&str] = match self.random.below(3) {
            0 => &["retry"],
            1 => &["complete", "--output", "{\"by\":\"a person\"}"],
            _ => &["fail"],
        };
        let arguments = [&["decide", id, node, answer[0], "--json"], &answer[1..]].concat();
        let done = run(&mut cyanotype(&self.home, &arguments));
        assert!(matches!(done.code, 0 | 1 | 5), "decide gave {}: {}", done.code, done.stderr);
        1
    }

    /// What is recorded as completed leaves no further marks, whatever happens after.
    fn hold_to_the_marks(&mut self, result: &Value) {
        for (node, shown) in nodes(result) {
            let marks = self.marks_of(node);
            let begun = numbers(&marks, "begin");
            let distinct: BTreeSet<u64> = begun.iter().copied().collect();
            assert_eq!(
                begun.len(),
                distinct.len(),
                "seed {}: an attempt of {node} began twice:\n{marks}",
                self.seed
            );
            let attempts = shown.get("attempts").and_then(|n| n.as_number()?.as_u64());
            let highest = distinct.last().copied().unwrap_or(0);
            assert!(
                highest <= attempts.unwrap_or(0),
                "seed {}: attempt {highest} of {node} began and is not recorded",
                self.seed
            );
            if field(shown, "status") == Some("completed") {
                let before = self.completed.entry(node.to_owned()).or_insert_with(|| marks.clone());
                assert_eq!(*before, marks, "seed {}: {node} worked again", self.seed);
            }
        }
    }

    fn finish(&self, result: &Value, tally: &mut Tally) {
        for (node, shown) in nodes(result) {
            let status = field(shown, "status").unwrap_or_default();
            assert!(
                matches!(status, "completed" | "failed" | "skipped" | "cancelled"),
                "seed {}: {node} is {status} although all is over",
                self.seed
            );
            tally.attempts += numbers(&self.marks_of(node), "begin").len() as u64;
        }
        tally.ended += 1;
    }

    fn marks_of(&self, node: &str) -> String {
        fs::read_to_string(self.marks.join(node)).unwrap_or_default()
    }
}

fn numbers(marks: &str, word: &str) -> Vec<u64> {
    marks.lines().filter_map(|line| line.strip_prefix(word)?.trim().parse().ok()).collect()
}

fn nodes(result: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let nodes = result.get("nodes").and_then(Value::as_object).expect("a result names its nodes");
    nodes.iter().map(|(id, node)| (id.as_str(), node))
}

fn field<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

fn text(value: &Value, key: &str) -> String {
    field(value, key).unwrap_or_default().to_owned()
}

fn path_text(path: &Path) -> String {
    path.to_str().expect("the test's folders have readable names").to_owned()
}

/// Side effects in a row and beside one another, one node that may be repeated, one that fails
/// once, one join.
const WORKFLOW: &str = r#"{
  "version": "1.0.0", "id": "crashes", "name": "Crashes",
  "nodes": [
    {"id": "first", "agentId": "marker"},
    {"id": "left", "agentId": "marker"},
    {"id": "right", "agentId": "marker"},
    {"id": "safe", "agentId": "repeatable"},
    {"id": "flaky", "agentId": "flaky",
     "retryPolicy": {"maxRetries": 2, "backoffBase": 0.05, "backoffMax": 0.1}},
    {"id": "join", "agentId": "marker", "join": {"min": 2}},
    {"id": "last", "agentId": "marker"}
  ],
  "edges": [
    {"id": "e1", "source": "first", "target": "left"},
    {"id": "e2", "source": "first", "target": "right"},
    {"id": "e3", "source": "first", "target": "safe"},
    {"id": "e4", "source": "first", "target": "flaky"},
    {"id": "e5", "source": "left", "target": "join"},
    {"id": "e6", "source": "right", "target": "join"},
    {"id": "e7", "source": "safe", "target": "join"},
    {"id": "e8", "source": "flaky", "target": "join"},
    {"id": "e9", "source": "join", "target": "last"}
  ]
}"#;

/// Marks the begin and the end of every attempt in the node's file.
fn agents(marks: &Path) -> String {
    let script = |body: &str| {
        let marks_file = r#""$MARKS/$CYANOTYPE_NODE_ID""#;
        let script = format!(
            "echo \"begin $CYANOTYPE_ATTEMPT\" >> {marks_file}; sleep 0.0$(( ( $$ % 8 ) + 1 )); \
             {body}echo \"end $CYANOTYPE_ATTEMPT\" >> {marks_file}; \
             echo \"{{\\\"attempt\\\":$CYANOTYPE_ATTEMPT}}\""
        );
        Value::from(script.as_str()).to_json()
    };
    let marks = Value::from(path_text(marks).as_str()).to_json();
    let agent = |id: &str, extra: &str, body: &str| {
        format!(
            r#"{{"id":"{id}","name":"{id}","runner":"process"{extra},"settings":{{"program":"sh","args":["-c",{}],"env":{{"MARKS":{marks}}}}}}}"#,
            script(body)
        )
    };
    format!(
        r#"{{"agents":[{},{},{}]}}"#,
        agent("marker", "", ""),
        agent("repeatable", r#","sideEffecting":false"#, ""),
        agent("flaky", r#","idempotent":true"#, "[ $CYANOTYPE_ATTEMPT -gt 1 ] || exit 3; "),
    )
}
