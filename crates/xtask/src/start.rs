//! `cargo xtask start`: from a fresh clone to a workflow that runs.

use std::process::{Command, ExitCode, Stdio};

use crate::needs;
use crate::workspace::{cargo, debug_binary, root};

/// The blueprint that needs nothing but the product itself.
const ECHO_DEMO: &str = "blueprints/echo-demo-workflow.json";

/// Builds the product and runs the Echo Demo; the exit code is the run's own.
pub fn start() -> Result<ExitCode, String> {
    needs::provide_build_tools()?;
    println!("Building Cyanotype; the first build takes a few minutes, later ones seconds.");
    let built = cargo(&["build", "--package", "cyanotype-cli", "--locked"])
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    if !built.success() {
        return Err("the build failed; its messages are above".into());
    }

    let input = r#"{"message":"hello"}"#;
    let binary = debug_binary();
    println!("\n$ cyanotype run {ECHO_DEMO} --input '{input}'\n");
    let status = Command::new(&binary)
        .args(["run", ECHO_DEMO, "--input", input])
        .current_dir(root())
        .status()
        .map_err(|error| format!("cannot start {}: {error}", binary.display()))?;
    if status.success() {
        println!("\nThe binary is {}. What to try next is in README.md.", binary.display());
    }
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, Into::into))
}
