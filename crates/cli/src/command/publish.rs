//! `publish`: makes a workflow one that can be run, or a draft again.

use engine::ids::WorkflowId;
use engine::value::{Value, to_value};
use runtime::app::App;
use runtime::library::LibraryError;
use runtime::library::publishing::PublishReport;

use super::{Context, workflow_id};
use crate::args::PublishArgs;
use crate::error::{CommandError, findings};
use crate::exit::Exit;
use crate::output::{Form, Stdout};

/// See [`PublishArgs`].
pub async fn publish(context: &Context, args: PublishArgs) -> Result<Exit, CommandError> {
    let form = Form::chosen(&args.json, context.color);
    let id = workflow_id(&args.workflow)?;
    let app = context.open().await?;
    let outcome = match args.undo {
        true => unpublish(&app, context, id).await.map(|version| {
            (line("unpublished", id, version), format!("{id} is a draft now, version {version}"))
        }),
        false => publish_now(&app, context, id).await.map(|report| {
            let mut line = line("published", id, report.version);
            if let Value::Object(line) = &mut line {
                line.insert("plan", report.plan.to_string());
                let found = report.diagnostics.iter();
                let found = found.map(|found| to_value(found).expect("a finding is plain data"));
                line.insert("diagnostics", found.collect::<Value>());
            }
            let mut text = format!("published {id}, version {}", report.version);
            if !report.diagnostics.is_empty() {
                text = format!("{text}\n{}", findings(&report.diagnostics));
            }
            (line, text)
        }),
    };
    app.close().await;
    let (line, text) = outcome?;
    match form {
        Form::Json => Stdout::new().json(&line),
        Form::Text(_) => Stdout::new().line(&text),
    }
    Ok(Exit::Completed)
}

async fn publish_now(
    app: &App,
    context: &Context,
    id: WorkflowId,
) -> Result<PublishReport, LibraryError> {
    let version = app.workflow(&context.workspace, id)?.header.version;
    app.publish(&context.workspace, id, version).await
}

async fn unpublish(app: &App, context: &Context, id: WorkflowId) -> Result<u64, LibraryError> {
    let version = app.workflow(&context.workspace, id)?.header.version;
    app.unpublish(&context.workspace, id, version).await
}

fn line(what: &str, id: WorkflowId, version: u64) -> Value {
    let fields =
        [("type", Value::from(what)), ("id", id.to_string().into()), ("version", version.into())];
    Value::Object(fields.into_iter().collect())
}
