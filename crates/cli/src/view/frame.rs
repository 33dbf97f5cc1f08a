//! The live view at one moment, as lines of text. Pure: what to show, never when or where.

use engine::plan::NodeIdx;
use engine::projection::{NodeStatus, WaitReason};
use engine::scheduler::Execution;
use engine::time::Timestamp;

use super::duration::clock;
use super::node::{Mark, NodeLine, node_line};
use crate::followed::Followed;
use crate::terminal::{Ink, Size, Style};
use crate::text::{cut, fit, width};

/// The widest column of names.
const NAME_COLUMNS_MAX: usize = 32;
/// How many nodes stay on the screen.
const STANDING_LINES_MAX: usize = 40;
/// What stands between two columns.
const GAP: &str = "  ";

/// The moment that is shown, and how.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub now: Timestamp,
    pub size: Size,
    pub style: Style,
    /// What is being waited for beside the executions themselves, if anything.
    pub note: Option<&'static str>,
}

/// The executions at a moment: at most `size.lines - 1` lines of at most `size.columns` columns.
pub fn frame(followed: &[&Followed], moment: Moment) -> Vec<String> {
    let room = moment.size.lines.saturating_sub(1);
    match followed {
        [only] => detailed(only, moment, room),
        many => overview(many, moment, room),
    }
}

/// One line for all: `4 of 9 nodes, 2 running, 00:12`.
pub fn bar(followed: &Followed, now: Timestamp) -> String {
    let execution = &followed.execution;
    let tally = Tally::of(execution);
    let mut parts = vec![format!("{} of {} nodes", tally.decided, tally.total)];
    let counts = [
        (tally.running, "running"),
        (tally.retrying, "waiting for a retry"),
        (tally.lost, "waiting for you"),
        (tally.failed, "failed"),
        (tally.skipped, "skipped"),
    ];
    parts.extend(counts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")));
    if let Some(summary) = execution.summary() {
        parts.push(clock(summary.ended_at.unwrap_or(now).ms_since(summary.started_at)));
    }
    parts.join(", ")
}

/// The nodes as they stand, for what stays on the screen.
pub fn standing(followed: &Followed, moment: Moment) -> Vec<String> {
    node_lines(followed, moment, STANDING_LINES_MAX)
}

fn detailed(followed: &Followed, moment: Moment, room: usize) -> Vec<String> {
    let Moment { now, size, style, note } = moment;
    let execution = &followed.execution;
    let id = execution.id().to_string();
    let title = cut(&followed.title(), size.columns.saturating_sub(id.len() + 2).max(10));
    let mut head = style.paint(Ink::Bold, &title);
    if width(&title) + 2 + id.len() <= size.columns {
        head = format!("{head}  {}", style.paint(Ink::Quiet, &id));
    }
    let mut last = bar(followed, now);
    if let Some(note) = note {
        last = format!("{last}, {note}");
    }
    let mut lines = vec![head];
    lines.extend(node_lines(followed, moment, room.saturating_sub(2)));
    lines.push(style.paint(Ink::Bold, &cut(&last, size.columns)));
    lines.truncate(room.max(1));
    lines
}

/// The nodes in plan order if there is room; else those first that something happens with.
fn node_lines(followed: &Followed, moment: Moment, room: usize) -> Vec<String> {
    let execution = &followed.execution;
    let mut shown: Vec<NodeIdx> = execution.plan().node_indices().collect();
    let mut rest = None;
    if shown.len() > room {
        shown.sort_by_key(|idx| (urgency(execution, *idx), *idx));
        let hidden = shown.split_off(room.saturating_sub(1));
        rest = Some(format!("… and {}", Tally::among(execution, &hidden).words()));
    }
    let lines: Vec<(NodeIdx, NodeLine)> =
        shown.into_iter().map(|idx| (idx, node_line(followed, idx, moment.now))).collect();
    let widest = lines.iter().map(|(_, line)| width(&line.name)).max().unwrap_or(0);
    let name_columns = widest.min(NAME_COLUMNS_MAX).min(moment.size.columns / 3);
    let mut texts: Vec<String> = lines
        .iter()
        .map(|(idx, line)| {
            let node = &execution.plan().node(*idx).id;
            let news = followed.last_line(node).filter(|_| matches!(line.mark, Mark::Running(_)));
            row(line, news, name_columns, moment)
        })
        .collect();
    let columns = moment.size.columns.saturating_sub(4);
    texts.extend(
        rest.map(|rest| format!("  {}", moment.style.paint(Ink::Quiet, &cut(&rest, columns)))),
    );
    texts
}

fn row(line: &NodeLine, news: Option<&str>, name_columns: usize, moment: Moment) -> String {
    let style = moment.style;
    let taken = 2 + 1 + 1 + name_columns + GAP.len();
    let room = moment.size.columns.saturating_sub(taken);
    let words = cut(&line.words, room);
    let left = room.saturating_sub(width(&words) + GAP.len());
    let news = match news {
        Some(news) if left >= 12 => format!("{GAP}{}", style.paint(Ink::Quiet, &cut(news, left))),
        _ => String::new(),
    };
    let ink = match line.mark {
        Mark::Failed => Ink::Bad,
        Mark::Lost | Mark::Retrying => Ink::Attention,
        Mark::Pending | Mark::Skipped | Mark::Cancelled => Ink::Quiet,
        Mark::Running(_) | Mark::Completed => Ink::Plain,
    };
    let name = fit(&line.name, name_columns);
    format!("  {} {name}{GAP}{}{news}", line.mark.paint(style), style.paint(ink, &words))
}

fn overview(followed: &[&Followed], moment: Moment, room: usize) -> Vec<String> {
    let (ended, going): (Vec<&Followed>, Vec<&Followed>) =
        followed.iter().partition(|followed| followed.has_ended());
    let mut lines: Vec<String> = going
        .iter()
        .take(room.saturating_sub(2))
        .map(|followed| {
            let line = NodeLine {
                name: followed.title(),
                mark: match followed.waits_for_a_person() {
                    true => Mark::Lost,
                    false => Mark::Running((moment.now.0 / 150).rem_euclid(4) as usize),
                },
                words: bar(followed, moment.now),
            };
            row(&line, None, NAME_COLUMNS_MAX.min(moment.size.columns / 3), moment)
        })
        .collect();
    let hidden = going.len().saturating_sub(lines.len());
    if hidden > 0 {
        lines.push(moment.style.paint(Ink::Quiet, &format!("  … and {hidden} more")));
    }
    let note = moment.note.map(|note| format!(", {note}")).unwrap_or_default();
    let last = format!("{} of {} executions ended{note}", ended.len(), followed.len());
    lines.push(moment.style.paint(Ink::Bold, &cut(&last, moment.size.columns)));
    lines
}

/// What to show first where there is not room for everything.
fn urgency(execution: &Execution, idx: NodeIdx) -> u8 {
    let waits_for = || execution.node_summary(idx).and_then(|summary| summary.waiting_for);
    match execution.node_status(idx) {
        NodeStatus::Waiting if waits_for() == Some(WaitReason::Lost) => 0,
        NodeStatus::Failed => match execution.node_summary(idx).and_then(|node| node.reason) {
            None => 1,
            Some(_) => 6,
        },
        NodeStatus::Running => 2,
        NodeStatus::Waiting => 3,
        NodeStatus::Pending => 4,
        NodeStatus::Completed => 5,
        NodeStatus::Skipped | NodeStatus::Cancelled => 6,
    }
}

/// How many nodes are what.
#[derive(Debug, Default)]
struct Tally {
    total: usize,
    decided: usize,
    pending: usize,
    running: usize,
    retrying: usize,
    lost: usize,
    completed: usize,
    failed: usize,
    skipped: usize,
    cancelled: usize,
}

impl Tally {
    fn of(execution: &Execution) -> Tally {
        Tally::among(execution, &execution.plan().node_indices().collect::<Vec<_>>())
    }

    fn among(execution: &Execution, nodes: &[NodeIdx]) -> Tally {
        let mut tally = Tally { total: nodes.len(), ..Tally::default() };
        for &idx in nodes {
            let status = execution.node_status(idx);
            tally.decided += usize::from(status.is_terminal());
            let count = match status {
                NodeStatus::Pending => &mut tally.pending,
                NodeStatus::Running => &mut tally.running,
                NodeStatus::Waiting => {
                    match execution.node_summary(idx).and_then(|summary| summary.waiting_for) {
                        Some(WaitReason::Lost) => &mut tally.lost,
                        _ => &mut tally.retrying,
                    }
                }
                NodeStatus::Completed => &mut tally.completed,
                NodeStatus::Failed => &mut tally.failed,
                NodeStatus::Skipped => &mut tally.skipped,
                NodeStatus::Cancelled => &mut tally.cancelled,
            };
            *count += 1;
        }
        tally
    }

    fn words(&self) -> String {
        let counts = [
            (self.running, "running"),
            (self.retrying, "waiting for a retry"),
            (self.lost, "waiting for you"),
            (self.failed, "failed"),
            (self.pending, "pending"),
            (self.completed, "completed"),
            (self.skipped, "skipped"),
            (self.cancelled, "cancelled"),
        ];
        let said = counts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}"));
        said.collect::<Vec<_>>().join(", ")
    }
}
