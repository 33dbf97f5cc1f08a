//! `cargo xtask bench`: measures in release, and rewrites the tables that the README links to.

use std::fs;
use std::process::ExitCode;

use crate::markers;
use crate::needs;
use crate::step::Step;
use crate::workspace::{cargo, root};

/// The document that holds the tables.
const DOCUMENT: &str = "crates/runtime/benches/README.md";

/// Runs the benches; each one's standard output is the Markdown that goes between its markers.
pub fn bench() -> Result<ExitCode, String> {
    needs::provide_build_tools()?;
    let path = root().join(DOCUMENT);
    let mut document =
        fs::read_to_string(&path).map_err(|error| format!("cannot read {DOCUMENT}: {error}"))?;
    let mut table = String::new();
    let args = ["bench", "--package", "cyanotype-runtime", "--bench", "throughput", "--locked"];
    let step = Step::run_reading("throughput", &mut cargo(&args), |line| {
        table.push_str(line);
        table.push('\n');
    });
    if step.failed() {
        return Err(format!("the throughput bench failed; {DOCUMENT} is unchanged"));
    }
    document = markers::replace(&document, "throughput", &table)
        .map_err(|error| format!("{DOCUMENT}: {error}"))?;
    fs::write(&path, document).map_err(|error| format!("cannot write {DOCUMENT}: {error}"))?;
    println!("\nWritten to {DOCUMENT}.");
    Ok(ExitCode::SUCCESS)
}
