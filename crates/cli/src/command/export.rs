//! `export`: writes a workflow of the library to a file.

use std::io::Write;
use std::path::Path;

use engine::definition::free_file_name;
use runtime::atomic_file::write_atomically;
use runtime::exchange::Exported;

use super::{Context, workflow_id};
use crate::args::ExportArgs;
use crate::error::{CommandError, chain};
use crate::exit::Exit;
use crate::output::{Stdout, notice};

/// See [`ExportArgs`].
pub async fn export(context: &Context, args: ExportArgs) -> Result<Exit, CommandError> {
    let id = workflow_id(&args.workflow)?;
    let app = context.open().await?;
    let exported = app.export(&context.workspace, id);
    let name = app.workflow(&context.workspace, id).map(|workflow| workflow.header.name);
    app.close().await;
    write(&args, &exported?, &name?)?;
    Ok(Exit::Completed)
}

fn write(args: &ExportArgs, exported: &Exported, name: &str) -> Result<(), CommandError> {
    if args.output == Path::new("-") {
        let _ = Stdout::new().write_all(exported.text.as_bytes());
        return Ok(());
    }
    // The folder is the person's choice, the name a clean one: no path is made of file content.
    let path = match args.output.is_dir() {
        true if args.force => args.output.join(&exported.file_name),
        true => args.output.join(free_file_name(name, |name| args.output.join(name).exists())),
        false => args.output.clone(),
    };
    if path.exists() && !args.force {
        return Err(CommandError::invalid(format!(
            "{} exists already; choose another name, or replace it with --force",
            path.display()
        )));
    }
    write_atomically(&path, exported.text.as_bytes())
        .map_err(|error| CommandError::invalid(chain(&error)))?;
    notice(&format!("wrote {}", path.display()));
    Ok(())
}
