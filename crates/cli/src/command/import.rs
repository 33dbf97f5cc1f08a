//! `import`: makes drafts of the workflows of a file.

use engine::plan::diagnostic::Diagnostic;
use engine::value::{Object, Value, to_value};
use runtime::app::App;
use runtime::exchange::Imported;
use runtime::library::LibraryError;

use super::{Context, workflow_id};
use crate::args::ImportArgs;
use crate::error::{CommandError, findings};
use crate::exit::Exit;
use crate::files;
use crate::output::{Form, Stdout};
use crate::text::one_line;

/// See [`ImportArgs`].
pub async fn import(context: &Context, args: ImportArgs) -> Result<Exit, CommandError> {
    let form = Form::chosen(&args.json, context.color);
    let bytes = files::read(&args.file)?;
    let app = context.open().await?;
    let done = match (&args.replace, args.expected_version) {
        (Some(id), Some(expected)) => replace(&app, context, id, expected, &bytes, form).await,
        _ => add(&app, context, &args, &bytes, form).await,
    };
    app.close().await;
    done.map(|()| Exit::Completed)
}

async fn add(
    app: &App,
    context: &Context,
    args: &ImportArgs,
    bytes: &[u8],
    form: Form,
) -> Result<(), CommandError> {
    let in_file = |error: LibraryError| match error {
        LibraryError::File(error) => CommandError::from(error).in_file(&args.file),
        other => other.into(),
    };
    let report = app.import(&context.workspace, bytes).await.map_err(in_file)?;
    let mut out = Stdout::new();
    for imported in &report.imported {
        match form {
            Form::Json => out.json(&line(imported)),
            Form::Text(_) => out.line(&text(imported)),
        }
    }
    Ok(())
}

async fn replace(
    app: &App,
    context: &Context,
    id: &str,
    expected: u64,
    bytes: &[u8],
    form: Form,
) -> Result<(), CommandError> {
    let id = workflow_id(id)?;
    let version = app.replace(&context.workspace, id, expected, bytes).await?;
    let mut out = Stdout::new();
    match form {
        Form::Json => {
            let fields = [
                ("type", Value::from("replaced")),
                ("id", id.to_string().into()),
                ("version", version.into()),
            ];
            out.json(&Value::Object(fields.into_iter().collect()));
        }
        Form::Text(_) => out.line(&format!("replaced {id}, which is version {version} now")),
    }
    Ok(())
}

fn text(imported: &Imported) -> String {
    let mut lines = vec![format!("imported {} as a draft\n  id {}", called(imported), imported.id)];
    if let Some(wished) = &imported.renamed_from {
        lines.push(format!("  the name {:?} was taken", one_line(wished)));
    }
    lines.extend(
        imported.notes.iter().map(|note| format!("  note: {}", one_line(&note.to_string()))),
    );
    if !imported.unknown_fields.is_empty() {
        let names: Vec<String> = imported
            .unknown_fields
            .iter()
            .map(|field| format!("`{}`", one_line(&field.field)))
            .collect();
        lines.push(format!("  kept fields that this version does not know: {}", names.join(", ")));
    }
    if !imported.missing_agents.is_empty() {
        let ids: Vec<String> =
            imported.missing_agents.iter().map(|id| one_line(id.as_str())).collect();
        lines.push(format!("  needs agents that this machine does not have: {}", ids.join(", ")));
    }
    let errors: Vec<Diagnostic> = imported
        .diagnostics
        .iter()
        .filter(|found| found.is_error() && !found.code.follows_agents())
        .cloned()
        .collect();
    if !errors.is_empty() {
        lines.push("  cannot be published before these are corrected:".to_owned());
        lines.push(crate::text::indented(&findings(&errors), "  "));
    }
    lines.join("\n")
}

fn called(imported: &Imported) -> String {
    match imported.name.trim() {
        "" => "a workflow without a name".to_owned(),
        _ => format!("{:?}", one_line(&imported.name)),
    }
}

fn line(imported: &Imported) -> Value {
    let mut line = Object::new();
    line.insert("type", "imported");
    line.insert("id", imported.id.to_string());
    line.insert("name", imported.name.as_str());
    if let Some(wished) = &imported.renamed_from {
        line.insert("renamedFrom", wished.as_str());
    }
    let notes = imported.notes.iter().map(|note| {
        let fields = [("place", note.place.as_str()), ("message", note.message.as_str())];
        Value::Object(fields.into_iter().collect())
    });
    line.insert("notes", notes.collect::<Value>());
    let unknown = imported.unknown_fields.iter().map(|field| {
        let node = field.node.as_ref().map(|id| ("node", id.as_str()));
        let edge = field.edge.as_ref().map(|id| ("edge", id.as_str()));
        let all = [node, edge, Some(("field", field.field.as_str()))];
        Value::Object(all.into_iter().flatten().collect())
    });
    line.insert("unknownFields", unknown.collect::<Value>());
    let missing = imported.missing_agents.iter().map(|id| Value::from(id.as_str()));
    line.insert("missingAgents", missing.collect::<Value>());
    let diagnostics =
        imported.diagnostics.iter().map(|found| to_value(found).expect("a finding is plain data"));
    line.insert("diagnostics", diagnostics.collect::<Value>());
    Value::Object(line)
}
