//! Following executions until each has ended, waits for a person, or is left alone.

use std::time::Duration;

use engine::announcement::announcements;
use engine::ids::{ExecutionId, Seq};
use engine::journal::Record;
use engine::time::Timestamp;
use runtime::app::App;
use runtime::app::executions::{Watch, WatchItem};
use runtime::driver::progress::ProgressNews;
use runtime::driver::publish::Stalled;
use runtime::store::error::StoreError;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::error::CommandError;
use crate::exit::Exit;
use crate::followed::Followed;
use crate::output::{Form, Stdout, notice};
use crate::signals::{Interrupt, Interrupts};
use crate::terminal::{Style, Terminal};
use crate::view::frame::{self, Moment};
use crate::view::live::Canvas;
use crate::view::plain::{self, Naming};
use crate::view::result::result;
use crate::view::summary::summary;

/// Between the first interrupt and the cancel, so that a second one can still leave the execution
/// to be resumed instead.
const SECOND_THOUGHTS: Duration = Duration::from_secs(1);
/// How often the live view is looked at. It draws less often if nothing changes.
const TICK: Duration = Duration::from_millis(85);

/// What an interrupt means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnInterrupt {
    /// The executions are cancelled; a second one leaves them to be resumed.
    Cancel,
    /// The executions go on; only the looking ends.
    StopLooking,
}

/// An execution to follow.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Which.
    pub execution: ExecutionId,
    /// Records up to this one are old news and are not told again.
    pub told: Seq,
}

/// How to follow.
#[derive(Clone, Copy, Debug)]
pub struct Following<'a> {
    /// In which form what happens is told.
    pub form: Form,
    /// What an interrupt means.
    pub on_interrupt: OnInterrupt,
    /// How a person calls this program, for hints.
    pub program: &'a str,
}

/// Follows the executions, and says how they ended; of several, the highest code.
pub async fn follow(
    app: &App,
    targets: &[Target],
    following: Following<'_>,
    interrupts: &mut Interrupts,
) -> Result<Exit, CommandError> {
    let Following { form, on_interrupt, program } = following;
    let (news_sender, mut news) = mpsc::channel(64);
    let mut watched = Vec::with_capacity(targets.len());
    for (n, target) in targets.iter().enumerate() {
        // First of all, so that no line is missed that its first attempts print.
        let watch = app.watch(target.execution, Seq(0));
        let unstarted = app.unstarted(target.execution)?;
        watched.push(Watched { followed: Followed::new(unstarted), target: *target, over: None });
        tokio::spawn(forward(watch, n, news_sender.clone()));
    }
    drop(news_sender);
    let naming = if targets.len() > 1 { Naming::Several } else { Naming::One };
    let mut screen = Screen::new(form, naming);
    let mut stop = Stop { on_interrupt, cancel_at: None, cancels: Vec::new(), note: None };
    while watched.iter().any(|watched| watched.over.is_none()) {
        let cancel_at = stop.cancel_at;
        tokio::select! {
            item = news.recv() => match item {
                Some((n, item)) => screen.take(app, &mut watched[n], item)?,
                None => break,
            },
            interrupt = interrupts.next() => {
                if !stop.interrupted(interrupt, form) {
                    break;
                }
            }
            () = until(cancel_at), if cancel_at.is_some() => stop.cancel(app, &watched),
            () = tokio::time::sleep(TICK), if screen.canvas.is_some() => {}
        }
        screen.draw(&watched, stop.note);
    }
    for cancel in stop.cancels {
        let _ = cancel.await;
    }
    screen.finish(&watched, program)
}

/// One execution on its way.
struct Watched {
    followed: Followed,
    target: Target,
    /// Set when nothing more is to come; with what went wrong, if something did.
    over: Option<Option<CommandError>>,
}

type News = (usize, Result<WatchItem, StoreError>);

async fn forward(mut watch: Watch, n: usize, sender: mpsc::Sender<News>) {
    while let Some(item) = watch.next().await {
        if sender.send((n, item)).await.is_err() {
            return;
        }
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// What interrupts have led to so far.
struct Stop {
    on_interrupt: OnInterrupt,
    cancel_at: Option<Instant>,
    cancels: Vec<tokio::task::JoinHandle<()>>,
    note: Option<&'static str>,
}

impl Stop {
    /// Whether to go on following.
    fn interrupted(&mut self, interrupt: Interrupt, form: Form) -> bool {
        let is_first = self.note.is_none();
        if self.on_interrupt == OnInterrupt::StopLooking
            || interrupt == Interrupt::Terminate
            || !is_first
        {
            return false;
        }
        self.cancel_at = Some(Instant::now() + SECOND_THOUGHTS);
        self.note = Some("cancelling… (Ctrl-C again leaves it to be resumed)");
        let is_live = matches!(form, Form::Text(Terminal { redraws: true, .. }));
        if !is_live {
            notice("cancelling… (interrupt again to leave it to be resumed)");
        }
        true
    }

    fn cancel(&mut self, app: &App, watched: &[Watched]) {
        self.cancel_at = None;
        for watched in watched.iter().filter(|watched| watched.over.is_none()) {
            let (app, id) = (app.clone(), watched.target.execution);
            self.cancels.push(tokio::spawn(async move {
                if let Err(error) = app.cancel(id, "the command line").await {
                    notice(&format!("cyanotype: execution {id} was not cancelled: {error}"));
                }
            }));
        }
    }
}

/// Shows what happens, in the form that was asked for.
struct Screen {
    form: Form,
    naming: Naming,
    out: Stdout,
    canvas: Option<Canvas>,
}

impl Screen {
    fn new(form: Form, naming: Naming) -> Screen {
        let is_live = matches!(form, Form::Text(Terminal { redraws: true, .. }));
        Screen { form, naming, out: Stdout::new(), canvas: is_live.then(Canvas::default) }
    }

    fn take(
        &mut self,
        app: &App,
        watched: &mut Watched,
        item: Result<WatchItem, StoreError>,
    ) -> Result<(), CommandError> {
        match item? {
            WatchItem::Records(records) => {
                for record in &records {
                    watched.followed.absorb(record);
                    if record.seq > watched.target.told {
                        self.tell(&watched.followed, record);
                    }
                }
                // An older wait may have been answered by a record that is still to be read.
                let execution = &watched.followed.execution;
                if watched.followed.waits_for_a_person()
                    && app.execution(execution.id())?.0.seq == execution.seq()
                {
                    watched.over = Some(None);
                }
            }
            WatchItem::Progress(news) => self.lines(&mut watched.followed, &news),
            WatchItem::Ended => watched.over = Some(None),
            WatchItem::Stalled(Stalled::Left) => watched.over = Some(None),
            WatchItem::Stalled(Stalled::Store(message)) => {
                watched.over = Some(Some(CommandError::store(message)));
            }
        }
        Ok(())
    }

    fn tell(&mut self, followed: &Followed, record: &Record) {
        if self.canvas.is_some() {
            return;
        }
        for told in announcements(&followed.execution, record) {
            match self.form {
                Form::Json => self.out.json(&told.to_value()),
                Form::Text(_) => self.out.line(&plain::line(followed, &told, self.naming)),
            }
        }
    }

    fn lines(&mut self, followed: &mut Followed, news: &ProgressNews) {
        let node = &news.attempt.instance.node;
        for line in news.lines.iter() {
            followed.note_line(node, &line.text);
            if let (Form::Text(_), None) = (self.form, &self.canvas) {
                let text = plain::printed(followed, node, news.at, &line.text, self.naming);
                self.out.line(&text);
            }
        }
    }

    fn draw(&mut self, watched: &[Watched], note: Option<&'static str>) {
        let (Some(canvas), Form::Text(terminal)) = (&mut self.canvas, self.form) else { return };
        if !canvas.is_due() {
            return;
        }
        let moment = Moment { now: now(), size: Terminal::size(), style: terminal.style, note };
        let followed: Vec<&Followed> = watched.iter().map(|watched| &watched.followed).collect();
        let _ = canvas.draw(frame::frame(&followed, moment), &mut self.out);
    }

    /// Says how each execution ended or stands.
    fn finish(mut self, watched: &[Watched], program: &str) -> Result<Exit, CommandError> {
        let is_live = match &mut self.canvas {
            Some(canvas) => canvas.clear(&mut self.out).is_ok(),
            None => false,
        };
        let mut exit = Exit::Completed;
        let mut error = None;
        for Watched { followed, over, .. } in watched {
            match self.form {
                Form::Json => self.out.json(&result(followed)),
                Form::Text(terminal) => {
                    if is_live {
                        self.stand(followed, terminal.style);
                    }
                    self.out.line(&summary(followed, now(), terminal.style, program));
                }
            }
            exit = exit.max(followed.exit());
            error = error.or(over.clone().flatten());
        }
        match error {
            Some(error) => Err(error),
            None => Ok(exit),
        }
    }

    /// Prints what remains of the live view: the nodes as they ended.
    fn stand(&mut self, followed: &Followed, style: Style) {
        let size = Terminal::size();
        let moment = Moment { now: now(), size, style, note: None };
        for line in frame::standing(followed, moment) {
            self.out.line(&line);
        }
    }
}

/// What the wall clock says.
pub fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Timestamp(i64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(i64::MAX))
}
