//! `cancel`: ends an execution.

use engine::projection::ExecutionStatus;

use super::Context;
use crate::args::CancelArgs;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::output::Stdout;

/// See [`CancelArgs`].
pub async fn cancel(context: &Context, args: CancelArgs) -> Result<Exit, CommandError> {
    let app = context.open().await?;
    let cancelled = app.cancel(args.execution, "the command line").await;
    let outcome = cancelled.and_then(|()| app.execution(args.execution));
    // What this process has taken over in order to cancel it is brought to its end first.
    app.close().await;
    let (summary, _) = outcome?;
    let text = match summary.status {
        ExecutionStatus::Cancelled => format!("cancelled {}", args.execution),
        status => format!("{} was {} before; it stays so", args.execution, status.as_str()),
    };
    Stdout::new().line(&text);
    Ok(Exit::Completed)
}
