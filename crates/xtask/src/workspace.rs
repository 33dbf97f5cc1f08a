//! Where things are, and how the tools are called.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder with the workspace's `Cargo.toml`.
pub fn root() -> PathBuf {
    // Cargo sets the variable for whatever it runs, so a copied or moved clone finds itself.
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest
        .ancestors()
        .nth(2)
        .expect("crates/xtask lies two folders below the workspace")
        .to_path_buf()
}

/// The cargo that runs us.
pub fn cargo(args: &[&str]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(args).current_dir(root());
    command
}

/// npm, which on Windows is a batch file and is not found by its bare name.
pub fn npm(args: &[&str], dir: &Path) -> Command {
    let mut command = Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" });
    command.args(args).current_dir(dir);
    command
}

/// Whether the command can be started and says that it went well. Its output is dropped.
pub fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
