//! What can be typed: commands, arguments, and the help they come with.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use engine::ids::ExecutionId;

use crate::exit;

/// Runs agent workflows on this machine, durably: an execution survives a crash and goes on.
#[derive(Debug, Parser)]
#[command(
    name = "cyanotype",
    bin_name = "cyanotype",
    version,
    after_help = exit::TABLE,
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub struct Cli {
    /// Where workflows, agents and executions are kept; by default the data folder of the user.
    #[arg(long, global = true, value_name = "DIR", env = "CYANOTYPE_HOME", hide_env_values = true)]
    pub home: Option<PathBuf>,
    /// The workspace that workflows and executions belong to.
    #[arg(long, global = true, value_name = "NAME", default_value = DEFAULT_WORKSPACE)]
    pub workspace: String,
    /// When to use colour: `auto` means on a terminal, unless NO_COLOR is set.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: ColorChoice,
    #[command(subcommand)]
    pub command: Command,
}

/// The workspace that every machine has.
pub const DEFAULT_WORKSPACE: &str = "Personal";

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Run(RunArgs),
    Validate(ValidateArgs),
    Import(ImportArgs),
    Export(ExportArgs),
    Publish(PublishArgs),
    List(ListArgs),
    Show(ShowArgs),
    Cancel(CancelArgs),
    Resume(ResumeArgs),
    Decide(DecideArgs),
    Agents(AgentsArgs),
    Check(CheckArgs),
    Completions(CompletionsArgs),
}

/// Run a workflow, and follow it until it ends or waits for a person.
///
/// A file is run as it is, without being imported. A workflow of the library is run in its
/// published version, or with --draft as it stands.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// A file, or the id of a workflow of the library.
    #[arg(value_name = "FILE|ID")]
    pub workflow: String,
    #[command(flatten)]
    pub input: InputArg,
    /// Use the agents of this file, for this execution only.
    #[arg(long, value_name = "FILE")]
    pub agents: Option<PathBuf>,
    /// Agree to every command that this would run, without being asked.
    #[arg(long)]
    pub trust: bool,
    /// Run a workflow of the library as it stands, published or not.
    #[arg(long)]
    pub draft: bool,
    /// Makes repeating this start harmless: the same key gives the same execution.
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<String>,
    #[command(flatten)]
    pub json: JsonArg,
}

/// Say what is wrong with workflow files. Runs nothing.
#[derive(Debug, Args)]
pub struct ValidateArgs {
    /// The files; `-` is the standard input.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Also use the agents of this file.
    #[arg(long, value_name = "FILE")]
    pub agents: Option<PathBuf>,
    #[command(flatten)]
    pub json: JsonArg,
}

/// Add the workflows of a file to the library, as new drafts. Runs nothing.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// The file; `-` is the standard input.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Instead of adding a draft, replace the definition of this workflow.
    #[arg(long, value_name = "ID", requires = "expected_version")]
    pub replace: Option<String>,
    /// The version that is replaced, as `list workflows` shows it.
    #[arg(long, value_name = "N", requires = "replace")]
    pub expected_version: Option<u64>,
    #[command(flatten)]
    pub json: JsonArg,
}

/// Write a workflow of the library to a file.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The workflow.
    #[arg(value_name = "ID")]
    pub workflow: String,
    /// Where to: a new file, a folder (the name is then made from the workflow's), or `-` for the
    /// standard output, which is the default.
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
    /// Replace the file if it is there.
    #[arg(long)]
    pub force: bool,
}

/// Publish a workflow of the library, so that it can be run. Changes nothing if it has errors.
#[derive(Debug, Args)]
pub struct PublishArgs {
    /// The workflow.
    #[arg(value_name = "ID")]
    pub workflow: String,
    /// Make it a draft again instead.
    #[arg(long)]
    pub undo: bool,
    #[command(flatten)]
    pub json: JsonArg,
}

/// List executions, workflows or blueprints, newest first.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// What to list.
    #[arg(value_name = "WHAT", default_value = "executions")]
    pub what: Listed,
    /// Only those with this status (`running`, `failed`, …; `DRAFT`, `PUBLISHED`).
    #[arg(long, value_name = "STATUS")]
    pub status: Option<String>,
    /// Only executions of this workflow.
    #[arg(long, value_name = "ID")]
    pub workflow: Option<String>,
    /// At most so many.
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: usize,
    #[command(flatten)]
    pub json: JsonArg,
}

/// What can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Listed {
    Executions,
    Workflows,
    Blueprints,
}

/// Show an execution: its nodes, attempts, failures and output.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The execution.
    #[arg(value_name = "EXECUTION")]
    pub execution: ExecutionId,
    /// Follow it until it ends or waits for a person; the exit code then says how it ended.
    #[arg(long)]
    pub watch: bool,
    /// Instead, print the long value that a `$blob` reference of this execution stands for.
    #[arg(long, value_name = "DIGEST", conflicts_with_all = ["watch", "json"])]
    pub blob: Option<String>,
    #[command(flatten)]
    pub json: JsonArg,
}

/// Cancel an execution. What is running of it is stopped; what has ended stays.
#[derive(Debug, Args)]
pub struct CancelArgs {
    /// The execution.
    #[arg(value_name = "EXECUTION")]
    pub execution: ExecutionId,
}

/// Continue an interrupted execution, and follow it; without an id all there are.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// The execution.
    #[arg(value_name = "EXECUTION")]
    pub execution: Option<ExecutionId>,
    #[command(flatten)]
    pub json: JsonArg,
}

/// Say what is to become of a node whose last attempt was lost, and follow the execution.
#[derive(Debug, Args)]
pub struct DecideArgs {
    /// The execution.
    #[arg(value_name = "EXECUTION")]
    pub execution: ExecutionId,
    /// The id of its node.
    #[arg(value_name = "NODE")]
    pub node: String,
    /// Start another attempt, let the node fail, or complete it with an output.
    #[arg(value_name = "DECISION")]
    pub decision: Decision,
    /// The output to complete it with.
    #[arg(
        long,
        value_name = "JSON|@FILE|-",
        required_if_eq("decision", "complete"),
        allow_hyphen_values = true
    )]
    pub output: Option<String>,
    /// Why it failed, for whoever reads the history.
    #[arg(long, value_name = "TEXT")]
    pub message: Option<String>,
    #[command(flatten)]
    pub json: JsonArg,
}

/// What a person can say about a lost attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Decision {
    Retry,
    Fail,
    Complete,
}

/// The agents of this machine.
#[derive(Debug, Args)]
pub struct AgentsArgs {
    #[command(subcommand)]
    pub command: AgentsCommand,
}

#[derive(Debug, Subcommand)]
pub enum AgentsCommand {
    /// Add the agents of a file, or replace those that have the same id.
    Import {
        /// The file: {"agents": [{"id", "name", "runner", "settings"}]}; `-` is the standard input.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Agree to every command in it without being asked.
        #[arg(long)]
        trust: bool,
    },
    /// List the agents of this machine.
    List {
        #[command(flatten)]
        json: JsonArg,
    },
    /// Show an agent.
    Show {
        /// The agent.
        #[arg(value_name = "ID")]
        agent: String,
        #[command(flatten)]
        json: JsonArg,
    },
    /// Remove an agent. Refused while a published workflow uses it.
    Remove {
        /// The agent.
        #[arg(value_name = "ID")]
        agent: String,
    },
}

/// Look whether everything stored is what was recorded. Changes nothing.
#[derive(Debug, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    pub json: JsonArg,
}

/// Print a script that lets a shell complete commands and options.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

#[derive(Debug, Args)]
pub struct JsonArg {
    /// Print JSON, one object a line, and nothing else on the standard output.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct InputArg {
    /// The execution input: JSON, `@` and a file that holds it, or `-` for the standard input;
    /// absent means {}.
    #[arg(long, value_name = "JSON|@FILE|-", allow_hyphen_values = true)]
    pub input: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_commands_are_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn an_input_may_begin_with_a_hyphen() {
        let id = "0190d4c3-0000-7000-8000-000000000000";
        let cli = Cli::try_parse_from(["cyanotype", "run", "x", "--input", "-5"]).unwrap();
        let Command::Run(run) = cli.command else { panic!("run was parsed as something else") };
        assert_eq!(run.input.input.as_deref(), Some("-5"));
        let refused = Cli::try_parse_from(["cyanotype", "decide", id, "a", "complete"]);
        assert!(refused.is_err(), "completing needs an output");
        Cli::try_parse_from(["cyanotype", "decide", id, "a", "complete", "--output", "-"]).unwrap();
    }
}
