//! `validate`: says what is wrong with files. Runs nothing, and writes nothing.

use std::path::Path;
use std::sync::Arc;

use engine::agent::{self, Agent, AgentSet, PinnedAgent};
use engine::plan::diagnostic::Diagnostic;
use engine::value::{Object, Value, to_value};
use runtime::exchange::{self, Validated};

use super::Context;
use crate::args::ValidateArgs;
use crate::error::{CommandError, chain, findings};
use crate::exit::Exit;
use crate::files;
use crate::output::{Form, Stdout, notice};
use crate::text::one_line;

/// See [`ValidateArgs`].
pub async fn validate(context: &Context, args: ValidateArgs) -> Result<Exit, CommandError> {
    let form = Form::chosen(&args.json, context.color);
    let agents = agents(context, args.agents.as_deref()).await?;
    let mut out = Stdout::new();
    let mut exit = Exit::Completed;
    for path in &args.files {
        let bytes = files::read(path)?;
        let is_valid = match exchange::validate(&bytes, &agents) {
            Ok(found) => {
                found.iter().for_each(|found| show(&mut out, form, path, found));
                found.iter().all(Validated::is_valid)
            }
            Err(error) => {
                refuse(&mut out, form, path, &chain(&error));
                false
            }
        };
        if !is_valid {
            exit = Exit::Invalid;
        }
    }
    Ok(exit)
}

/// The agents of this machine and of the file; a data folder is not made for it.
async fn agents(context: &Context, file: Option<&Path>) -> Result<AgentSet, CommandError> {
    let mut agents = AgentSet::new();
    if context.has_home() {
        let app = context.open().await?;
        agents = app.agent_set()?;
        app.close().await;
    } else {
        let built_in = PinnedAgent::new(Agent::built_in_echo());
        agents.insert(built_in.agent.id.clone(), Arc::new(built_in));
    }
    if let Some(path) = file {
        let bytes = files::read(path)?;
        let read = agent::read_file(&bytes)
            .map_err(|error| CommandError::invalid(chain(&error)).in_file(path))?;
        let pinned = read.into_iter().map(PinnedAgent::new);
        agents.extend(pinned.map(|pinned| (pinned.agent.id.clone(), Arc::new(pinned))));
    }
    Ok(agents)
}

fn show(out: &mut Stdout, form: Form, path: &Path, found: &Validated) {
    if form == Form::Json {
        for note in &found.notes {
            notice(&format!("{}: {note}", path.display()));
        }
        found.diagnostics.iter().for_each(|diagnostic| out.json(&line(path, found, diagnostic)));
        return;
    }
    let errors = found.diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
    let verdict = match errors {
        0 => "can be published and run".to_owned(),
        1 => "1 error".to_owned(),
        n => format!("{n} errors"),
    };
    out.line(&format!("{}: {}: {verdict}", path.display(), one_line(&found.title)));
    for note in &found.notes {
        out.line(&format!("note: {}", one_line(&note.to_string())));
    }
    if !found.diagnostics.is_empty() {
        out.line(&findings(&found.diagnostics));
    }
}

fn refuse(out: &mut Stdout, form: Form, path: &Path, message: &str) {
    if form != Form::Json {
        out.line(&format!("{}: {}", path.display(), crate::text::lines(message)));
        return;
    }
    let fields = [
        ("file", Value::from(path.display().to_string())),
        ("code", "badFile".into()),
        ("severity", "error".into()),
        ("place", Value::Object(Object::new())),
        ("message", message.into()),
        ("hint", "correct the file".into()),
    ];
    out.json(&Value::Object(fields.into_iter().collect()));
}

/// A finding with the file and the workflow it is about.
fn line(path: &Path, found: &Validated, diagnostic: &Diagnostic) -> Value {
    let mut line = Object::new();
    line.insert("file", path.display().to_string());
    line.insert("workflow", found.title.as_str());
    let diagnostic = to_value(diagnostic).expect("a finding is plain data");
    for (key, value) in diagnostic.as_object().into_iter().flatten() {
        line.insert(key.as_str(), value.clone());
    }
    Value::Object(line)
}
