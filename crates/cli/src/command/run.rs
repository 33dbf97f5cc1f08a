//! `run`: starts a workflow and follows it.

use std::path::Path;
use std::sync::Arc;

use engine::agent::{self, AgentSet, PinnedAgent};
use engine::definition::{Definition, read_file};
use engine::ids::{Seq, WorkflowId};
use engine::scheduler::event::Trigger;
use engine::value::Value;
use runtime::app::App;
use runtime::app::start::{MissingAgents, StartRequest, Started};
use runtime::library::publishing::agents_named;
use runtime::library::running::{Version, WorkflowStart};

use super::Context;
use crate::args::RunArgs;
use crate::consent::{Asking, require};
use crate::error::{CommandError, chain};
use crate::exit::Exit;
use crate::files;
use crate::follow::{Following, OnInterrupt, Target, follow};
use crate::output::{Form, notice};
use crate::signals::Interrupts;

/// See [`RunArgs`].
pub async fn run(context: &Context, args: RunArgs) -> Result<Exit, CommandError> {
    let form = Form::chosen(&args.json, context.color);
    let what = What::named(&args)?;
    let input = args.input.input.as_deref().map(files::value).transpose()?;
    let own = args.agents.as_deref().map(own_agents).transpose()?;
    let following =
        Following { form, on_interrupt: OnInterrupt::Cancel, program: &context.program };
    let app = context.open().await?;
    let mut interrupts = Interrupts::listen();
    let job = Job { context, args: &args, what, input, own };
    let exit = match job.start(&app).await {
        Ok(started) => {
            // An execution that the same key gave before may have been interrupted since.
            if started.existed {
                app.resume(Some(started.execution)).await?;
            }
            let targets = [Target { execution: started.execution, told: Seq(0) }];
            follow(&app, &targets, following, &mut interrupts).await
        }
        Err(error) => Err(error),
    };
    app.close().await;
    exit
}

/// What is to be run.
enum What {
    /// A file that holds one workflow.
    File { source: String, definition: Box<Definition> },
    /// A workflow of the library.
    Library(WorkflowId),
}

impl What {
    /// A file if there is one of this name, else a workflow's id.
    fn named(args: &RunArgs) -> Result<What, CommandError> {
        let path = Path::new(&args.workflow);
        if args.workflow != "-" && !path.exists() {
            return args.workflow.parse().map(What::Library).map_err(|_| {
                CommandError::invalid(format!(
                    "there is no file {:?}, and it is not the id of a workflow either; \
                     `cyanotype list workflows` shows the ids",
                    args.workflow
                ))
            });
        }
        if args.draft {
            return Err(CommandError::invalid(
                "--draft is for workflows of the library; a file is run as it is",
            ));
        }
        let bytes = files::read(path)?;
        let mut read = read_file(&bytes)
            .map_err(|error| CommandError::invalid(chain(&error)).in_file(path))?;
        if read.len() > 1 {
            let message =
                format!("it holds {} workflows; a file that is run holds one", read.len());
            return Err(CommandError::invalid(message).in_file(path));
        }
        let read = read.pop().expect("a file holds at least one workflow");
        for note in &read.notes {
            notice(&format!("{}: {note}", path.display()));
        }
        let source = match args.workflow.as_str() {
            "-" => "the standard input".to_owned(),
            name => name.to_owned(),
        };
        Ok(What::File { source, definition: Box::new(read.definition) })
    }
}

fn own_agents(path: &Path) -> Result<Vec<Arc<PinnedAgent>>, CommandError> {
    let bytes = files::read(path)?;
    let agents = agent::read_file(&bytes)
        .map_err(|error| CommandError::invalid(chain(&error)).in_file(path))?;
    Ok(agents.into_iter().map(|agent| Arc::new(PinnedAgent::new(agent))).collect())
}

struct Job<'a> {
    context: &'a Context,
    args: &'a RunArgs,
    what: What,
    input: Option<Value>,
    own: Option<Vec<Arc<PinnedAgent>>>,
}

impl Job<'_> {
    async fn start(self, app: &App) -> Result<Started, CommandError> {
        let mut agents = app.agent_set()?;
        let own = self.own.iter().flatten();
        agents.extend(own.map(|pinned| (pinned.agent.id.clone(), Arc::clone(pinned))));
        let asking = if self.args.trust { Asking::Trusted } else { Asking::OnTerminal };
        match self.what {
            What::Library(workflow) => {
                let version = if self.args.draft { Version::Draft } else { Version::Published };
                let workspace = self.context.workspace.clone();
                let definition = app.definition_to_run(&workspace, workflow, version)?;
                consent(app, &definition, &agents, asking).await?;
                let start = WorkflowStart {
                    workspace,
                    workflow,
                    version,
                    agents,
                    input: self.input,
                    idempotency_key: self.args.idempotency_key.clone(),
                };
                Ok(app.start_workflow(start).await?)
            }
            What::File { source, definition } => {
                consent(app, &definition, &agents, asking).await?;
                let request = StartRequest {
                    definition: Arc::new(*definition),
                    agents: Arc::new(agents),
                    workflow: None,
                    workspace: self.context.workspace.clone(),
                    source: Some(source),
                    trigger: Trigger::File,
                    input: self.input,
                    idempotency_key: self.args.idempotency_key.clone(),
                    missing_agents: MissingAgents::Refuse,
                };
                Ok(app.start(request).await?)
            }
        }
    }
}

/// Asks for consent to the commands that a definition would run.
async fn consent(
    app: &App,
    definition: &Definition,
    agents: &AgentSet,
    asking: Asking,
) -> Result<(), CommandError> {
    let named = agents_named(definition);
    let used = named.iter().filter_map(|id| agents.get(id)).map(|pinned| &**pinned);
    let questions = app.consent_needed(used)?;
    require(app, &questions, asking).await
}
