//! `check`: is what is stored what was recorded?

use engine::value::{Object, Value};
use runtime::app::check::CheckReport;

use super::Context;
use crate::args::CheckArgs;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::output::{Form, Stdout};
use crate::text::one_line;

/// See [`CheckArgs`].
pub async fn check(context: &Context, args: CheckArgs) -> Result<Exit, CommandError> {
    let form = Form::chosen(&args.json, context.color);
    let app = context.open().await?;
    let report = app.check();
    app.close().await;
    let report = report?;
    let mut out = Stdout::new();
    match form {
        Form::Json => json(&report, &mut out),
        Form::Text(_) => text(&report, &mut out),
    }
    Ok(if report.findings.is_empty() { Exit::Completed } else { Exit::Failed })
}

fn text(report: &CheckReport, out: &mut Stdout) {
    for finding in &report.findings {
        let about = match &finding.execution {
            Some(execution) => format!("execution {execution}"),
            None => "the database".to_owned(),
        };
        out.line(&format!("{about}: {}", one_line(&finding.message)));
    }
    let verdict = match report.findings.len() {
        0 => "nothing is damaged".to_owned(),
        1 => "1 finding; nothing was changed".to_owned(),
        n => format!("{n} findings; nothing was changed"),
    };
    out.line(&format!(
        "looked at {} executions and {} records: {verdict}",
        report.executions, report.records
    ));
}

fn json(report: &CheckReport, out: &mut Stdout) {
    for finding in &report.findings {
        let mut line = Object::new();
        line.insert("type", "finding");
        if let Some(execution) = &finding.execution {
            line.insert("executionId", execution.to_string());
        }
        line.insert("message", finding.message.as_str());
        out.json(&Value::Object(line));
    }
    let fields = [
        ("type", Value::from("check")),
        ("executions", report.executions.into()),
        ("records", report.records.into()),
        ("findings", report.findings.len().into()),
    ];
    out.json(&Value::Object(fields.into_iter().collect()));
}
