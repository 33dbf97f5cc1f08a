//! Plain lines, one for each thing that happens: for pipes, logs and terminals that cannot redraw.

use engine::announcement::{Announcement, AnnouncementKind};
use engine::failure::Failure;
use engine::ids::NodeId;
use engine::projection::NotRunReason;
use engine::time::Timestamp;

use super::duration::{countdown, duration};
use super::node::{attempts_max, not_run, plain_words};
use crate::followed::Followed;
use crate::text::one_line;

/// Whether lines say which execution they are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// There is only one.
    One,
    /// There are several.
    Several,
}

/// What an announcement says, as a line. `followed` is folded up to it.
pub fn line(followed: &Followed, told: &Announcement, naming: Naming) -> String {
    let words = match &told.instance {
        Some(instance) => {
            let name = followed.label(&instance.node);
            format!("{name}: {}", node_words(followed, told, &instance.node))
        }
        None => execution_words(followed, told),
    };
    format!("{}{words}", stamp(followed, told.at, naming))
}

/// A line that an attempt printed, as a line.
pub fn printed(
    followed: &Followed,
    node: &NodeId,
    at: Timestamp,
    text: &str,
    naming: Naming,
) -> String {
    let name = followed.label(node);
    format!("{}{name} | {}", stamp(followed, at, naming), one_line(text))
}

/// Time since the start, and the execution where there are several.
fn stamp(followed: &Followed, at: Timestamp, naming: Naming) -> String {
    let started_at = followed.execution.summary().map_or(at, |summary| summary.started_at);
    let ms = at.ms_since(started_at);
    let time = format!("[{:02}:{:02}.{:03}] ", ms / 60_000, ms / 1_000 % 60, ms % 1_000);
    match naming {
        Naming::One => time,
        Naming::Several => format!("{time}{} ", followed.execution.id()),
    }
}

fn execution_words(followed: &Followed, told: &Announcement) -> String {
    match told.kind {
        AnnouncementKind::WorkflowStarted => {
            format!("execution {} of \"{}\" started", told.execution, followed.title())
        }
        _ => format!("execution {}", followed.status_words()),
    }
}

fn node_words(followed: &Followed, told: &Announcement, node: &NodeId) -> String {
    let plan = followed.execution.plan();
    let summary = plan.node_idx(node).and_then(|idx| followed.execution.node_summary(idx));
    let failure = summary.as_ref().and_then(|summary| summary.failure.as_ref());
    match told.kind {
        AnnouncementKind::NodeStarted => match told.attempt {
            Some(attempt) if attempt > 1 => format!("attempt {attempt} started"),
            _ => "started".to_owned(),
        },
        AnnouncementKind::NodeCompleted => {
            let last = followed.attempts.of(node).last();
            format!("completed, {}", duration(last.map_or(0, |last| last.duration_ms(told.at))))
        }
        AnnouncementKind::NodeFailed => match summary.as_ref().and_then(|summary| summary.reason) {
            Some(reason) => format!("not run: {}", not_run(followed, reason, told.origin.as_ref())),
            None => format!("failed{}", said(failure)),
        },
        AnnouncementKind::NodeSkipped | AnnouncementKind::NodeCancelled => {
            let reason = told.reason.and_then(NotRunReason::from_name);
            let why = reason.map(|reason| not_run(followed, reason, told.origin.as_ref()));
            format!("{}: {}", told.status, why.unwrap_or_default())
        }
        AnnouncementKind::NodeRetrying => match told.due {
            Some(due) => {
                let next = told.attempt.unwrap_or(0) + 1;
                let max = plan
                    .node_idx(node)
                    .and_then(|idx| attempts_max(&followed.execution, idx))
                    .map(|max| format!(" of {max}"))
                    .unwrap_or_default();
                let wait = countdown(due.ms_since(told.at));
                format!("attempt {next}{max} in {wait}{}", said(failure))
            }
            None => "its attempt was lost; it starts again".to_owned(),
        },
        AnnouncementKind::NodeWaiting => "its attempt was lost; it needs you".to_owned(),
        AnnouncementKind::WorkflowStarted
        | AnnouncementKind::WorkflowCompleted
        | AnnouncementKind::WorkflowFailed
        | AnnouncementKind::WorkflowCancelled => told.status.to_owned(),
    }
}

fn said(failure: Option<&Failure>) -> String {
    failure.map_or(String::new(), |failure| {
        format!(": {}: {}", plain_words(&failure.error_type), one_line(&failure.message))
    })
}
