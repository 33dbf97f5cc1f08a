//! The commands, one file each.

use std::path::{Path, PathBuf};

use engine::ids::WorkflowId;
use runtime::app::{App, AppOptions};
use runtime::home::default_home;
use runtime::logging;

use crate::args::{Cli, ColorChoice, Command};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::view::summary::shell_word;

mod agents;
mod cancel;
mod check;
mod completions;
mod decide;
mod export;
mod import;
mod list;
mod publish;
mod resume;
mod run;
mod show;
mod validate;

/// What holds for every command.
#[derive(Clone, Debug)]
pub struct Context {
    home: Option<PathBuf>,
    /// The workspace that workflows and executions belong to.
    pub workspace: String,
    /// When to use colour.
    pub color: ColorChoice,
    /// How a person calls this program with the same data folder.
    pub program: String,
}

/// Does what the command line says.
pub async fn perform(cli: Cli) -> Result<Exit, CommandError> {
    let program = program(cli.home.as_deref());
    let context = Context { home: cli.home, workspace: cli.workspace, color: cli.color, program };
    if context.workspace.trim().is_empty() {
        return Err(CommandError::invalid("a workspace needs a name"));
    }
    match cli.command {
        Command::Run(args) => run::run(&context, args).await,
        Command::Validate(args) => validate::validate(&context, args).await,
        Command::Import(args) => import::import(&context, args).await,
        Command::Export(args) => export::export(&context, args).await,
        Command::Publish(args) => publish::publish(&context, args).await,
        Command::List(args) => list::list(&context, args).await,
        Command::Show(args) => show::show(&context, args).await,
        Command::Cancel(args) => cancel::cancel(&context, args).await,
        Command::Resume(args) => resume::resume(&context, args).await,
        Command::Decide(args) => decide::decide(&context, args).await,
        Command::Agents(args) => agents::agents(&context, args).await,
        Command::Check(args) => check::check(&context, args).await,
        Command::Completions(args) => Ok(completions::completions(args)),
    }
}

/// The environment need not be repeated, an option does.
fn program(home: Option<&Path>) -> String {
    match home {
        Some(home) if std::env::var_os("CYANOTYPE_HOME").is_none_or(|set| set != home) => {
            format!("cyanotype --home {}", shell_word(&home.display().to_string()))
        }
        _ => "cyanotype".to_owned(),
    }
}

impl Context {
    /// Opens the data folder, and puts into its library what the program brings along.
    pub async fn open(&self) -> Result<App, CommandError> {
        let home = self.home()?;
        let app = App::open(AppOptions::new(&home)).await?;
        // What is done does not depend on what is logged of it.
        let _ = logging::start(&home);
        app.unload_shipped().await?;
        Ok(app)
    }

    /// Whether there is a data folder already.
    pub fn has_home(&self) -> bool {
        self.home().is_ok_and(|home| home.is_dir())
    }

    fn home(&self) -> Result<PathBuf, CommandError> {
        let no_home = || {
            CommandError::store(
                "this system names no data folder; choose one with --home or CYANOTYPE_HOME",
            )
        };
        self.home.clone().or_else(default_home).ok_or_else(no_home)
    }
}

/// The id of a workflow as it was typed.
fn workflow_id(text: &str) -> Result<WorkflowId, CommandError> {
    text.trim().parse().map_err(|_| {
        CommandError::invalid(format!(
            "{text:?} is not the id of a workflow; `cyanotype list workflows` shows them"
        ))
    })
}
