//! `completions`: a script for a shell.

use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs};
use crate::exit::Exit;
use crate::output::Stdout;

/// See [`CompletionsArgs`].
pub fn completions(args: CompletionsArgs) -> Exit {
    clap_complete::generate(args.shell, &mut Cli::command(), "cyanotype", &mut Stdout::new());
    Exit::Completed
}
