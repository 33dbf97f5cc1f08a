//! The blueprints that do real work, run by the real binary on things that are known.
#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary::cyanotype;

/// Runs a report that ships and returns its result line, which must say that it completed.
fn report(name: &str, input: &Value) -> Value {
    let blueprints =
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a root").join("blueprints");
    let home = TempDir::new().expect("a data folder");
    let output = cyanotype(home.path(), &["run", "--trust", "--json"])
        .arg(blueprints.join(format!("{name}.json")))
        .arg("--agents")
        .arg(blueprints.join(format!("{name}.agents.json")))
        .args(["--input", &input.to_string()])
        .stdin(Stdio::null())
        .output()
        .expect("the binary starts");
    let said = String::from_utf8(output.stdout).expect("JSON lines are text");
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().last().unwrap_or_else(|| panic!("no line at all: {errors}"));
    let result: Value = serde_json::from_str(last).expect("every line is JSON");
    assert_eq!(result["status"], "completed", "{last}\n{errors}");
    assert_eq!(output.status.code(), Some(0), "{last}\n{errors}");
    result
}

fn markdown(result: &Value) -> &str {
    result["output"]["markdown"].as_str().expect("a report has text")
}

fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing:\n{text}");
    }
}

/// A repository of two authors, whose names and paths are as awkward as git allows.
fn repository(folder: &Path) -> PathBuf {
    let root = folder.join("a \"repository\"");
    fs::create_dir_all(root.join("source")).expect("a folder");
    let git = |author: &str, arguments: &[&str]| {
        let done = Command::new("git")
            .args(["-c", &format!("user.name={author}"), "-c", "user.email=nobody@example.org"])
            .args(arguments)
            .current_dir(&root)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .expect("git runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    git("Zoé", &["init", "--quiet", "--initial-branch=trunk"]);
    fs::write(root.join("source/näme.txt"), "one\n").expect("a file");
    fs::write(root.join("a b.txt"), "TODO: later\nFIXME\n").expect("a file");
    git("Zoé", &["add", "--all"]);
    git("Zoé", &["commit", "--quiet", "--message", "start"]);
    fs::write(root.join("source/näme.txt"), "one\ntwo\n").expect("a file");
    git("A|n \"x\" \\ y", &["commit", "--quiet", "--all", "--message", "say \"two\" \\ more"]);
    git("Zoé", &["branch", "unmerged"]);
    fs::write(root.join("new file.txt"), "three\n").expect("a file");
    root
}

#[test]
fn the_git_report_names_what_is_in_the_repository() {
    let folder = TempDir::new().expect("a folder");
    let root = repository(folder.path());
    // A folder inside the repository is as good as its root.
    let result = report("git-repository-report", &json!({ "path": root.join("source") }));
    let facts = &result["nodes"]["repository"]["output"];
    assert_eq!(facts["branch"], "trunk");
    assert_eq!(facts["subject"], "say \"two\" \\ more");
    assert_eq!((&facts["commits"], &facts["authors"]), (&json!(2), &json!(2)));
    let skipped = result["nodes"].as_object().expect("nodes").values();
    assert!(skipped.clone().all(|node| node["status"] == "completed"), "{result}");
    assert_says(
        markdown(&result),
        &[
            "# a \"repository\"",
            "2 commits by 2 authors",
            "?? \"new file.txt\"",
            "| Zoé | 1 | 50 % |",
            "| A/n \"x\" \\ y | 1 | 50 % |",
            "| `source/` |",
            "| `source/näme.txt` | 2 | 2 |",
            "Every branch is merged.",
            "| `a b.txt` | 18 B |",
            "2 lines, in files: 1.",
        ],
    );
}

#[test]
fn the_git_report_of_a_repository_without_commits_says_so() {
    let folder = TempDir::new().expect("a folder");
    let init = Command::new("git").args(["init", "--quiet"]).arg(folder.path()).status();
    assert!(init.expect("git runs").success());
    let result = report("git-repository-report", &json!({ "path": folder.path() }));
    assert_says(markdown(&result), &["There are no commits yet.", "Nobody yet."]);
    assert_eq!(result["nodes"]["authors"]["status"], "skipped");
}

#[test]
fn the_inventory_counts_what_lies_in_the_folder() {
    let folder = TempDir::new().expect("a folder");
    let root = folder.path().join("my files");
    fs::create_dir_all(root.join("empty")).expect("a folder");
    fs::write(root.join("a.txt"), "the same\n").expect("a file");
    fs::write(root.join("b c.TXT"), "the same\n").expect("a file");
    fs::write(root.join("void"), "").expect("a file");
    let log = "12 ERROR no 7\n13 ERROR no 8\nWARN slow\nfine\n";
    fs::write(root.join("job.log"), log).expect("a file");
    let result = report("folder-inventory", &json!({ "path": root }));
    assert_eq!(result["nodes"]["folder"]["output"]["files"], 4);
    assert_says(
        markdown(&result),
        &[
            "4 files in 1 folders, 61 B.",
            "| `.txt` | 2 | 18 B | 30 % |",
            "| `job.log` | 43 B |",
            "| today | 4 |",
            "9 B could be freed.",
            "Empty files: 1. Empty folders: 1. Links that lead nowhere: 0.",
            "| `job.log` | 4 | 2 | 1 |",
            "2 # ERROR no #",
        ],
    );
}

#[test]
fn the_health_report_stands_although_not_every_check_can_be_made() {
    let result = report("machine-health", &json!({}));
    let findings = result["output"]["findings"].as_object().expect("findings");
    assert_eq!(findings.len(), 5);
    for (check, finding) in findings {
        let state = finding["state"].as_str();
        assert!(
            matches!(state, Some("ok" | "warn" | "bad" | "unknown")),
            "{check} is in the state {state:?}"
        );
        assert!(finding["text"].as_str().is_some_and(|text| !text.is_empty()), "{check}");
    }
    assert_ne!(findings["memory"]["state"], "unknown", "every machine knows its memory");
    assert_says(markdown(&result), &["| disk |", "| temperature |", "## Tools", "| git |"]);
}
