//! `agents`: the agents of this machine.

use std::path::Path;

use engine::agent::{PinnedAgent, read_file};
use engine::ids::AgentId;
use engine::value::{Object, Value};
use runtime::app::App;
use runtime::roster::{AgentsImport, RosterEntry, Trust};

use super::Context;
use crate::args::{AgentsArgs, AgentsCommand};
use crate::consent::{Asking, require};
use crate::error::{CommandError, chain};
use crate::exit::Exit;
use crate::files;
use crate::output::{Form, Stdout};
use crate::text::{cut, fit, lines, one_line};

/// See [`AgentsArgs`].
pub async fn agents(context: &Context, args: AgentsArgs) -> Result<Exit, CommandError> {
    let app = context.open().await?;
    let mut out = Stdout::new();
    let done = match args.command {
        AgentsCommand::Import { file, trust } => {
            let asking = if trust { Asking::Trusted } else { Asking::OnTerminal };
            import(&app, &file, asking, &mut out).await
        }
        AgentsCommand::List { json } => list(&app, Form::chosen(&json, context.color), &mut out),
        AgentsCommand::Show { agent, json } => {
            show(&app, &agent, Form::chosen(&json, context.color), &mut out)
        }
        AgentsCommand::Remove { agent } => remove(&app, &agent, &mut out).await,
    };
    app.close().await;
    done.map(|()| Exit::Completed)
}

async fn import(
    app: &App,
    file: &Path,
    asking: Asking,
    out: &mut Stdout,
) -> Result<(), CommandError> {
    let bytes = files::read(file)?;
    let agents: Vec<PinnedAgent> = read_file(&bytes)
        .map_err(|error| CommandError::invalid(chain(&error)).in_file(file))?
        .into_iter()
        .map(PinnedAgent::new)
        .collect();
    let questions = app.consent_needed(&agents)?;
    require(app, &questions, asking).await?;
    let AgentsImport { added, replaced, unchanged } =
        app.import_agents(&bytes, Trust::OnlyConsented).await?;
    for (words, ids) in [("added", added), ("replaced", replaced), ("already there:", unchanged)] {
        ids.iter().for_each(|id| out.line(&format!("{words} {}", one_line(id.as_str()))));
    }
    Ok(())
}

fn list(app: &App, form: Form, out: &mut Stdout) -> Result<(), CommandError> {
    let entries = app.agents()?;
    if form == Form::Json {
        entries.iter().for_each(|entry| out.json(&line(entry)));
        return Ok(());
    }
    for entry in entries {
        let agent = &entry.pinned.agent;
        let about = agent.description.as_deref().unwrap_or(&agent.name);
        out.line(
            format!(
                "{}  {}  {}",
                fit(&one_line(agent.id.as_str()), 28),
                fit(agent.runner.as_str(), 8),
                cut(&one_line(about), 60)
            )
            .trim_end(),
        );
    }
    Ok(())
}

fn show(app: &App, agent: &str, form: Form, out: &mut Stdout) -> Result<(), CommandError> {
    let entry = app.agent(&AgentId::from(agent))?;
    match form {
        Form::Json => out.json(&line(&entry)),
        Form::Text(_) => {
            out.line(&lines(&entry.pinned.agent.to_value().to_json_pretty()));
        }
    }
    Ok(())
}

async fn remove(app: &App, agent: &str, out: &mut Stdout) -> Result<(), CommandError> {
    app.remove_agent(&AgentId::from(agent)).await?;
    out.line(&format!("removed {}", one_line(agent)));
    Ok(())
}

/// An agent's record with its digest.
fn line(entry: &RosterEntry) -> Value {
    let mut line = Object::new();
    line.insert("type", "agent");
    line.insert("digest", entry.pinned.digest.to_string());
    if let Some(at) = entry.updated_at {
        line.insert("updatedAt", at.to_rfc3339());
    }
    line.insert("agent", entry.pinned.agent.to_value());
    Value::Object(line)
}
