//! Set-up, start, test and bench: what the README's commands call.
//!
//! Reached as `cargo xtask …` through the alias in `.cargo/config.toml`. It has no dependencies, so
//! that it compiles in seconds on a machine where nothing else is built yet.

mod args;
mod bench;
mod markers;
mod needs;
mod start;
mod step;
mod suite;
mod tally;
mod workspace;

use std::process::ExitCode;

use args::Task;

fn main() -> ExitCode {
    let outcome = match args::parse(std::env::args().skip(1)) {
        Ok(Task::Help) => {
            println!("{}", args::USAGE);
            return ExitCode::SUCCESS;
        }
        Ok(Task::Start) => start::start(),
        Ok(Task::Test(length)) => suite::test(length),
        Ok(Task::Bench) => bench::bench(),
        Err(refusal) => {
            eprintln!("xtask: {refusal}\n\n{}", args::USAGE);
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(code) => code,
        Err(message) => {
            eprintln!("\nxtask: {message}");
            ExitCode::FAILURE
        }
    }
}
