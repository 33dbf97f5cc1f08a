//! `cargo xtask test`: everything that has to hold.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use crate::args::Length;
use crate::needs;
use crate::step::Step;
use crate::tally::Tally;
use crate::workspace::{cargo, npm, root, succeeds};

/// Runs every step and prints how each of them went.
pub fn test(length: Length) -> Result<ExitCode, String> {
    needs::provide_test_tools()?;
    let mut tally = Tally::default();
    let steps = [
        Step::run("format", &mut cargo(&["fmt", "--all", "--check"])),
        lints(),
        json_suite(),
        // The acceptance tests start the real binary, which `cargo test` alone would not build.
        Step::run("build", &mut cargo(&["build", "--package", "cyanotype-cli", "--locked"])),
        tests(length, &mut tally),
    ];
    println!("\n── summary");
    for step in &steps {
        println!("{step}");
    }
    if !tally.failures.is_empty() {
        println!("\nFailed tests:\n  {}", tally.failures.join("\n  "));
    }
    let failed = steps.iter().any(Step::failed);
    println!("\n{}", if failed { "Something failed; see above." } else { "All is well." });
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn lints() -> Step {
    let args = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
    Step::run("lints", &mut cargo(&args))
}

fn tests(length: Length, tally: &mut Tally) -> Step {
    let mut command = cargo(&["test", "--workspace", "--locked", "--no-fail-fast"]);
    if length == Length::Long {
        command.env("CYANOTYPE_LONG", "1");
    }
    let mut step = Step::run_reading("tests", &mut command, |line| tally.read(line));
    step.note = tally.to_string();
    step
}

/// Installs the JSON parsing suite, which is an npm package. Without npm the test that reads it
/// fails and says what to install, so that a gap is never taken for success.
fn json_suite() -> Step {
    const NAME: &str = "json suite";
    let dir = root().join("tests/json_suite");
    if is_installed(&dir) {
        return Step::skipped(NAME, "installed already");
    }
    if !succeeds(&mut npm(&["--version"], &dir)) {
        return Step::skipped(NAME, "there is no npm; install Node.js 20 or newer");
    }
    Step::run(NAME, &mut npm(&["ci", "--no-audit", "--no-fund", "--ignore-scripts"], &dir))
}

/// npm leaves a copy of the lock file behind; when it is the newer one, nothing has changed since.
fn is_installed(dir: &Path) -> bool {
    let modified = |path: &str| fs::metadata(dir.join(path)).and_then(|meta| meta.modified());
    match (modified("node_modules/.package-lock.json"), modified("package-lock.json")) {
        (Ok(installed), Ok(wanted)) => installed >= wanted,
        _ => false,
    }
}
