//! `cargo xtask start`: from a fresh clone to a workflow that runs.

use std::process::{ExitCode, Stdio};

use crate::needs;
use crate::workspace::cargo;

/// The blueprint that needs nothing but the product itself.
const ECHO_DEMO: &str = "blueprints/echo-demo-workflow.json";

/// Builds the product and runs the Echo Demo; the exit code is the run's own.
pub fn start() -> Result<ExitCode, String> {
    const PACKAGE: [&str; 3] = ["--package", "cyanotype-cli", "--locked"];
    needs::provide_build_tools()?;
    println!("Building Cyanotype; the first build takes a few minutes, later ones seconds.");
    let built = cargo(&["build"])
        .args(PACKAGE)
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    if !built.success() {
        return Err("the build failed; its messages are above".into());
    }

    let input = r#"{"message":"hello"}"#;
    println!("\n$ cyanotype run {ECHO_DEMO} --input '{input}'\n");
    let status = cargo(&["run", "--quiet"])
        .args(PACKAGE)
        .args(["--", "run", ECHO_DEMO, "--input", input])
        .status()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    if status.success() {
        println!("\nTo have `cyanotype` at hand: cargo install --locked --path crates/cli");
    }
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, Into::into))
}
