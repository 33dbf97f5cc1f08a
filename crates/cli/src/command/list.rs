//! `list`: executions, workflows and blueprints.

use std::collections::{BTreeMap, BTreeSet};

use engine::ids::{ExecutionId, WorkflowId};
use engine::projection::{ExecutionStatus, ExecutionSummary};
use engine::time::Timestamp;
use engine::value::{Object, Value};
use runtime::app::App;
use runtime::library::{Kind, title};
use runtime::store::execution_table::ExecutionFilter;
use runtime::store::workflow_table::{WorkflowHeader, WorkflowStatus};

use super::{Context, workflow_id};
use crate::args::{ListArgs, Listed};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::follow::now;
use crate::output::{Form, Stdout};
use crate::terminal::{Ink, Style};
use crate::text::{cut, fit, one_line};
use crate::view::duration::duration;

/// See [`ListArgs`].
pub async fn list(context: &Context, args: ListArgs) -> Result<Exit, CommandError> {
    let form = Form::chosen(&args.json, context.color);
    let app = context.open().await?;
    let listed = match args.what {
        Listed::Executions => executions(&app, context, &args, form),
        Listed::Workflows => workflows(&app, context, &args, form, Kind::Workflow),
        Listed::Blueprints => workflows(&app, context, &args, form, Kind::Blueprint),
    };
    app.close().await;
    listed.map(|()| Exit::Completed)
}

/// An instant as lists show it: UTC, to the second.
pub fn instant(at: Timestamp) -> String {
    let text = at.to_rfc3339();
    format!("{} {} UTC", &text[..text.len() - 14], &text[text.len() - 13..text.len() - 5])
}

fn executions(
    app: &App,
    context: &Context,
    args: &ListArgs,
    form: Form,
) -> Result<(), CommandError> {
    let filter = ExecutionFilter {
        workspace: Some(context.workspace.clone()),
        status: args.status.as_deref().map(execution_status).transpose()?,
        workflow: args.workflow.as_deref().map(workflow_id).transpose()?,
    };
    let mut found: Vec<ExecutionSummary> = Vec::new();
    let mut from = None;
    while found.len() < args.limit {
        let page = app.executions(&filter, from)?;
        found.extend(page.executions);
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    let has_more = found.len() > args.limit || from.is_some();
    found.truncate(args.limit);
    let names = names(app, context)?;
    let interrupted: BTreeSet<ExecutionId> =
        app.interrupted(None)?.into_iter().map(|found| found.execution).collect();
    let standing = |summary: &ExecutionSummary| match interrupted.contains(&summary.id) {
        true => Standing::Interrupted,
        false => Standing::AsItSays,
    };
    let mut out = Stdout::new();
    match form {
        Form::Json => {
            found.iter().for_each(|summary| out.json(&execution_line(summary, standing(summary))))
        }
        Form::Text(terminal) => {
            if found.is_empty() {
                out.line("no executions; start one with `cyanotype run FILE`");
            }
            for summary in &found {
                out.line(&execution_text(summary, standing(summary), &names, terminal.style));
            }
            if has_more {
                out.line(&format!("… only the last {} are shown; see --limit", args.limit));
            }
        }
    }
    Ok(())
}

fn execution_status(name: &str) -> Result<ExecutionStatus, CommandError> {
    ExecutionStatus::from_name(name).ok_or_else(|| {
        CommandError::invalid(format!(
            "no execution has the status {name:?}; there are pending, running, completed, failed \
             and cancelled"
        ))
    })
}

/// What people call the workflows there are.
fn names(app: &App, context: &Context) -> Result<BTreeMap<WorkflowId, String>, CommandError> {
    let own = app.workflows(&context.workspace, Kind::Workflow, None)?;
    let blueprints = app.workflows(&context.workspace, Kind::Blueprint, None)?;
    let all = own.into_iter().chain(blueprints);
    Ok(all.map(|header| (header.id, title(&header).to_owned())).collect())
}

/// Whether anybody drives an execution that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    AsItSays,
    /// The process that drove it is gone.
    Interrupted,
}

fn execution_text(
    summary: &ExecutionSummary,
    standing: Standing,
    names: &BTreeMap<WorkflowId, String>,
    style: Style,
) -> String {
    let (words, ink) = match (summary.status, summary.waiting_for) {
        (ExecutionStatus::Completed, _) => ("completed", Ink::Good),
        (ExecutionStatus::Failed, _) => ("failed", Ink::Bad),
        (ExecutionStatus::Cancelled, _) => ("cancelled", Ink::Quiet),
        (_, Some(reason)) if reason.needs_a_person() => ("waits for you", Ink::Attention),
        _ if standing == Standing::Interrupted => ("interrupted", Ink::Attention),
        (_, Some(_)) => ("waiting", Ink::Attention),
        (status, None) => (status.as_str(), Ink::Active),
    };
    let name = match (&summary.workflow, &summary.source) {
        (Some(id), _) => names.get(id).cloned().unwrap_or_else(|| format!("deleted ({id})")),
        (None, Some(source)) => source.clone(),
        (None, None) => String::new(),
    };
    let took = summary.ended_at.unwrap_or_else(now).ms_since(summary.started_at);
    let nodes = format!("{}/{}", summary.nodes_decided, summary.nodes_total);
    format!(
        "{}  {}  {}  {:>9}  {:>9}  {}",
        summary.id,
        style.paint(ink, &fit(words, 13)),
        instant(summary.started_at),
        duration(took),
        nodes,
        cut(&one_line(&name), 60)
    )
}

fn execution_line(summary: &ExecutionSummary, standing: Standing) -> Value {
    let mut line = Object::new();
    line.insert("type", "execution");
    line.insert("executionId", summary.id.to_string());
    line.insert("workflowId", summary.workflow.map_or(Value::Null, |id| id.to_string().into()));
    if let Some(source) = &summary.source {
        line.insert("source", source.as_str());
    }
    line.insert("workspace", summary.workspace.as_str());
    line.insert("status", summary.status.as_str());
    if let Some(reason) = summary.waiting_for {
        line.insert("waitingFor", reason.as_str());
    }
    if standing == Standing::Interrupted {
        line.insert("interrupted", true);
    }
    line.insert("startedAt", summary.started_at.to_rfc3339());
    if let Some(at) = summary.ended_at {
        line.insert("completedAt", at.to_rfc3339());
    }
    line.insert("nodesDecided", summary.nodes_decided);
    line.insert("nodesTotal", summary.nodes_total);
    if let Some(error) = &summary.error {
        line.insert("error", error.as_str());
    }
    Value::Object(line)
}

fn workflows(
    app: &App,
    context: &Context,
    args: &ListArgs,
    form: Form,
    kind: Kind,
) -> Result<(), CommandError> {
    if args.workflow.is_some() {
        return Err(CommandError::invalid("--workflow narrows lists of executions only"));
    }
    let status = match args.status.as_deref() {
        None => None,
        Some(name) => Some(WorkflowStatus::from_name(&name.to_uppercase()).ok_or_else(|| {
            CommandError::invalid(format!(
                "no workflow has the status {name:?}; there are DRAFT and PUBLISHED"
            ))
        })?),
    };
    let mut found = app.workflows(&context.workspace, kind, status)?;
    let has_more = found.len() > args.limit;
    found.truncate(args.limit);
    let mut out = Stdout::new();
    match form {
        Form::Json => found.iter().for_each(|header| out.json(&workflow_line(header))),
        Form::Text(terminal) => {
            if found.is_empty() {
                out.line("no workflows; add one with `cyanotype import FILE`");
            }
            found.iter().for_each(|header| out.line(&workflow_text(header, terminal.style)));
            if has_more {
                out.line(&format!("… only the last {} are shown; see --limit", args.limit));
            }
        }
    }
    Ok(())
}

fn workflow_text(header: &WorkflowHeader, style: Style) -> String {
    let ink = match header.status {
        WorkflowStatus::Published => Ink::Good,
        WorkflowStatus::Draft => Ink::Plain,
    };
    format!(
        "{}  {}  version {:<4}  {}  {}",
        header.id,
        style.paint(ink, &fit(header.status.as_str(), 9)),
        header.version,
        instant(header.updated_at),
        cut(&one_line(title(header)), 60)
    )
}

fn workflow_line(header: &WorkflowHeader) -> Value {
    let fields = [
        ("type", Value::from("workflow")),
        ("id", header.id.to_string().into()),
        ("name", header.name.as_str().into()),
        ("status", header.status.as_str().into()),
        ("isBlueprint", header.is_blueprint.into()),
        ("version", header.version.into()),
        ("createdAt", header.created_at.to_rfc3339().into()),
        ("updatedAt", header.updated_at.to_rfc3339().into()),
    ];
    Value::Object(fields.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_shown_to_the_second() {
        assert_eq!(instant(Timestamp(1_796_063_099_007)), "2026-11-30 18:24:59 UTC");
    }
}
