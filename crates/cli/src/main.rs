//! The `cyanotype` command line: runs workflows, and looks after what ran.

mod args;
mod command;
mod consent;
mod error;
mod exit;
mod files;
mod follow;
mod followed;
mod output;
mod signals;
mod terminal;
mod text;
mod view;

use std::process::ExitCode;

use clap::Parser;

use crate::args::Cli;
use crate::error::CommandError;
use crate::output::notice;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError::store(format!("cannot start any thread: {error}")))
        .and_then(|runtime| runtime.block_on(command::perform(cli)));
    match done {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(error) => {
            notice(&error.to_string());
            ExitCode::from(error.exit.code())
        }
    }
}
