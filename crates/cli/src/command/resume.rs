//! `resume`: continues what was interrupted.

use engine::ids::{ExecutionId, Seq};
use runtime::app::App;

use super::Context;
use crate::args::ResumeArgs;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::follow::{Following, OnInterrupt, Target, follow};
use crate::output::{Form, Stdout};
use crate::signals::Interrupts;

/// See [`ResumeArgs`].
pub async fn resume(context: &Context, args: ResumeArgs) -> Result<Exit, CommandError> {
    let form = Form::chosen(&args.json, context.color);
    let following =
        Following { form, on_interrupt: OnInterrupt::Cancel, program: &context.program };
    let app = context.open().await?;
    let mut interrupts = Interrupts::listen();
    let exit = match targets(&app, args.execution).await {
        Ok(targets) if targets.is_empty() => {
            if form != Form::Json {
                Stdout::new().line("nothing is interrupted");
            }
            Ok(Exit::Completed)
        }
        Ok(targets) => follow(&app, &targets, following, &mut interrupts).await,
        Err(error) => Err(error),
    };
    app.close().await;
    exit
}

/// Takes the executions over. One that was named and has ended is shown as it is.
async fn targets(app: &App, only: Option<ExecutionId>) -> Result<Vec<Target>, CommandError> {
    let Some(execution) = only else {
        let mut targets = Vec::new();
        for found in app.interrupted(None)? {
            let execution = found.execution;
            let told = app.execution(execution)?.0.seq;
            if !app.resume(Some(execution)).await?.is_empty() {
                targets.push(Target { execution, told });
            }
        }
        return Ok(targets);
    };
    let (before, _) = app.execution(execution)?;
    let resumed = app.resume(Some(execution)).await?;
    if resumed.is_empty() && !before.is_settled {
        return Err(CommandError {
            exit: Exit::Unfinished,
            message: format!(
                "another process runs execution {execution}; follow it with \
                 `cyanotype show {execution} --watch`"
            ),
        });
    }
    let told = if resumed.is_empty() { Seq(0) } else { before.seq };
    Ok(vec![Target { execution, told }])
}
