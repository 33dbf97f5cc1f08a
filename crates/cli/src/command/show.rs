//! `show`: an execution in detail.

use engine::ids::{Digest, Seq};
use engine::payload::Payload;
use engine::plan::NodeIdx;
use runtime::app::App;

use super::Context;
use super::list::instant;
use crate::args::ShowArgs;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::follow::{Following, OnInterrupt, Target, follow, now};
use crate::followed::Followed;
use crate::output::{Form, Stdout};
use crate::signals::Interrupts;
use crate::terminal::{Ink, Style};
use crate::text::{lines, one_line};
use crate::view::attempts::{Attempt, End};
use crate::view::duration::duration;
use crate::view::node::{node_line, plain_words};
use crate::view::result::result;
use crate::view::summary::{summary, value};

/// The longest output of a node that is shown beside it, in characters.
const NODE_OUTPUT_CHARS_MAX: usize = 160;

/// See [`ShowArgs`].
pub async fn show(context: &Context, args: ShowArgs) -> Result<Exit, CommandError> {
    let form = Form::chosen(&args.json, context.color);
    let following =
        Following { form, on_interrupt: OnInterrupt::StopLooking, program: &context.program };
    let app = context.open().await?;
    let exit = if args.watch {
        let mut interrupts = Interrupts::listen();
        let targets = [Target { execution: args.execution, told: Seq(0) }];
        follow(&app, &targets, following, &mut interrupts).await
    } else {
        print(&app, &args, following)
    };
    app.close().await;
    exit
}

fn print(app: &App, args: &ShowArgs, following: Following<'_>) -> Result<Exit, CommandError> {
    let loaded = app.journal(args.execution)?;
    let mut followed = Followed::new(app.unstarted(args.execution)?);
    loaded.records.iter().for_each(|record| followed.absorb(record));
    let mut out = Stdout::new();
    match (&args.blob, following.form) {
        (Some(digest), _) => {
            let digest: Digest =
                digest.parse().map_err(|error| CommandError::invalid(format!("{error}")))?;
            let payload = payloads(&followed).find(|payload| payload.digest() == digest);
            let payload = payload.ok_or_else(|| {
                CommandError::invalid(format!("no value of this execution has the digest {digest}"))
            })?;
            out.line(payload.text());
        }
        (None, Form::Json) => out.json(&result(&followed)),
        (None, Form::Text(terminal)) => {
            out.line(&detail(&followed, terminal.style, following.program));
        }
    }
    Ok(Exit::Completed)
}

/// Every value that may have been told of by reference.
fn payloads(followed: &Followed) -> impl Iterator<Item = Payload> + '_ {
    let execution = &followed.execution;
    let own = execution.started().map(|started| started.input.clone()).into_iter();
    let nodes = execution.plan().node_indices().flat_map(move |idx| {
        execution.node_input(idx).into_iter().chain(execution.node_output(idx).cloned())
    });
    own.chain(execution.output().cloned()).chain(nodes)
}

fn detail(followed: &Followed, style: Style, program: &str) -> String {
    let execution = &followed.execution;
    let mut parts = vec![origin(followed)];
    let mut nodes = style.paint(Ink::Bold, "Nodes");
    for idx in execution.plan().node_indices() {
        nodes.push_str(&node(followed, idx, style));
    }
    parts.push(nodes);
    if let Some(started) = execution.started() {
        let head = style.paint(Ink::Bold, "Input");
        parts.push(format!("{head}\n{}", value(&started.input, "input")));
    }
    parts.push(summary(followed, now(), style, program));
    parts.join("\n\n")
}

fn origin(followed: &Followed) -> String {
    let execution = &followed.execution;
    let Some(summary) = execution.summary() else { return String::new() };
    let from = match (&summary.workflow, &summary.source) {
        (Some(id), _) => format!("workflow {id}"),
        (None, Some(source)) => format!("file {}", one_line(source)),
        (None, None) => "unknown".to_owned(),
    };
    let ended = summary.ended_at.map(|at| format!("\n  ended      {}", instant(at)));
    format!(
        "{}\n  execution  {}\n  from       {from}\n  workspace  {}\n  plan       {}\n  started    {}{}",
        followed.title(),
        execution.id(),
        one_line(&summary.workspace),
        summary.plan,
        instant(summary.started_at),
        ended.unwrap_or_default()
    )
}

fn node(followed: &Followed, idx: NodeIdx, style: Style) -> String {
    let line = node_line(followed, idx, now());
    let mut text = format!("\n  {} {}: {}", line.mark.paint(style), line.name, line.words);
    let id = &followed.execution.plan().node(idx).id;
    let attempts = followed.attempts.of(id);
    let is_plain = matches!(attempts, [] | [Attempt { ended: Some((_, End::Completed)), .. }]);
    if !is_plain {
        for attempt in attempts {
            text.push_str(&format!("\n      {}", attempt_words(attempt)));
        }
    }
    if let Some(output) = followed.execution.node_output(idx) {
        let shown = match output.bytes() {
            0..=65_536 => lines(&output.value().to_json_shortened(NODE_OUTPUT_CHARS_MAX)),
            _ => value(output, "output").trim_start().to_owned(),
        };
        text.push_str(&format!("\n      output {}", style.paint(Ink::Quiet, &one_line(&shown))));
    }
    text
}

fn attempt_words(attempt: &Attempt) -> String {
    let end = match &attempt.ended {
        None => "running".to_owned(),
        Some((_, End::Completed)) => "completed".to_owned(),
        Some((_, End::Cancelled)) => "stopped".to_owned(),
        Some((_, End::Lost(message))) => format!("lost: {}", one_line(message)),
        Some((_, End::Failed(failure))) => {
            format!("failed: {}: {}", plain_words(&failure.error_type), one_line(&failure.message))
        }
    };
    let took = duration(attempt.duration_ms(now()));
    format!("attempt {}  {}  {took}  {end}", attempt.number, instant(attempt.started_at))
}
