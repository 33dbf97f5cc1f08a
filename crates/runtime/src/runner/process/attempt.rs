//! One attempt, from the started program to the end of the last process it left.
//!
//! Standard input is written while both outputs are read: a program that fills one pipe while its
//! other end waits for another never blocks.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use engine::payload::Payload;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::ProcessLimits;
use super::group::{Group, Insistence, KNOWS_MEMBERS, Launched};
use super::lines::{LineSplitter, Tail};
use super::output::{Output, TooLong};
use super::settings::OutputKind;
use crate::runner::{ProgressSink, ProgressStream, StopSignal};

/// How many bytes are read at once.
const PIECE_BYTES: usize = 64 * 1024;
/// How often an ending group is looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// How long members of a group may take to follow their leader before they count as left behind.
const FOLLOW: Duration = Duration::from_millis(100);

/// A running attempt.
pub struct Attempt<'a> {
    group: Group,
    pipes: Pipes,
    limits: &'a ProcessLimits,
}

/// An attempt whose processes are gone.
pub struct Finished {
    /// How it ended.
    pub ending: Ending,
    /// What it wrote.
    pub output: Output,
    /// The end of its error output.
    pub stderr: Tail,
    /// Where remaining lines go.
    pub progress: ProgressSink,
    /// Whether something held its outputs open after it had ended.
    pub pipes: PipesAtEnd,
    /// How many of its processes were there after it had ended.
    pub leftovers: Leftovers,
}

/// How the program ended.
#[derive(Debug)]
pub enum Ending {
    /// By itself.
    Exited(ExitStatus),
    /// Nobody can tell how.
    Unknown(io::Error),
    /// It had closed its output, as an agent that streams does when it is done, and did not exit.
    DoneButRunning,
    /// It streams, and was silent for too long.
    Idle(Duration),
    /// It wrote more than is allowed.
    OutputTooLong(TooLong),
    /// It was told to stop.
    Stopped,
}

/// See [`Finished::pipes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PipesAtEnd {
    /// They were closed.
    Closed,
    /// They were still open when the time to read them was over.
    HeldOpen,
}

/// See [`Finished::leftovers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftovers {
    /// None.
    None,
    /// Some, and they were ended.
    Ended,
    /// Some, and they could not be ended.
    Remain,
}

impl<'a> Attempt<'a> {
    /// Takes over a started program.
    pub fn new(
        launched: Launched,
        input: Payload,
        kind: OutputKind,
        progress: ProgressSink,
        limits: &'a ProcessLimits,
    ) -> Attempt<'a> {
        let pipes = Pipes {
            stdin: Some(launched.stdin),
            input,
            written: 0,
            stdout: Some(launched.stdout),
            stderr: Some(launched.stderr),
            stdout_piece: vec![0; PIECE_BYTES],
            stderr_piece: vec![0; PIECE_BYTES],
            output: Output::new(kind, limits.output_bytes_max),
            stderr_lines: LineSplitter::default(),
            stderr_tail: Tail::new(limits.stderr_bytes_max),
            progress,
        };
        Attempt { group: launched.group, pipes, limits }
    }

    /// Waits for the program's end, or ends it when it is told to stop.
    pub async fn run(self, stop: StopSignal) -> Finished {
        self.run_with(stop, None).await
    }

    /// The same for an agent that streams: it may take any time, but not be silent for long.
    pub async fn run_streaming(self, stop: StopSignal) -> Finished {
        let clocks = Clocks { idle: self.limits.idle, grace: self.limits.grace };
        self.run_with(stop, Some(clocks)).await
    }

    async fn run_with(mut self, mut stop: StopSignal, clocks: Option<Clocks>) -> Finished {
        let ending = self.until_ended(&mut stop, clocks).await;
        let mut pipes = PipesAtEnd::Closed;
        let leftovers = match &ending {
            Ending::Exited(_) | Ending::Unknown(_) => {
                pipes = self.drain(&mut stop).await;
                self.end_leftovers(pipes).await
            }
            // Here it is the program itself that runs, and nothing is left over if it can be ended.
            _ => match self.end(self.limits.polite_stop).await {
                Leftovers::Ended => Leftovers::None,
                other => other,
            },
        };
        if pipes == PipesAtEnd::HeldOpen {
            // Whoever held them is gone now, and may have written in the meantime.
            self.pipes.read_what_is_there().await;
        }
        self.pipes.finish(ending, pipes, leftovers)
    }

    /// Reads and writes until the program has ended, or must be.
    async fn until_ended(&mut self, stop: &mut StopSignal, clocks: Option<Clocks>) -> Ending {
        let mut last_sign = Instant::now();
        loop {
            let silence = clocks.map(|clocks| clocks.silence(&self.pipes));
            // Not biased: a pipe that always has more must not hide the end or the stop.
            tokio::select! {
                () = stop.stopped() => return Ending::Stopped,
                moved = self.pipes.next() => match moved {
                    Ok(Moved::Input) => {}
                    Ok(Moved::Output) => last_sign = Instant::now(),
                    Err(too_long) => return Ending::OutputTooLong(too_long),
                },
                status = self.group.leader_ended() => {
                    return status.map_or_else(Ending::Unknown, Ending::Exited);
                }
                () = silent_for(last_sign, silence) => {
                    let is_done = self.pipes.stdout.is_none();
                    let limit = silence.unwrap_or_default();
                    return if is_done { Ending::DoneButRunning } else { Ending::Idle(limit) };
                }
            }
        }
    }

    /// Reads what is left in the pipes of a program that has ended.
    async fn drain(&mut self, stop: &mut StopSignal) -> PipesAtEnd {
        self.pipes.stdin = None;
        tokio::select! {
            closed = self.pipes.read_until_closed(self.limits.drain) => closed,
            () = stop.stopped() => PipesAtEnd::HeldOpen,
        }
    }

    /// Ends what a program that has ended left running.
    async fn end_leftovers(&mut self, pipes: PipesAtEnd) -> Leftovers {
        if !KNOWS_MEMBERS {
            self.group.tell_to_end(Insistence::Hard);
            return Leftovers::None;
        }
        // Members that are about to end by themselves are not worth a warning, unless they have
        // had the whole time of the draining for it.
        let follow_until = Instant::now() + FOLLOW;
        while !self.group.is_gone() {
            if pipes == PipesAtEnd::HeldOpen || Instant::now() >= follow_until {
                let polite = self.limits.polite_end_of_leftovers;
                return self.end(polite).await;
            }
            sleep(LOOK_INTERVAL).await;
        }
        Leftovers::None
    }

    /// Ends everything: politely, and hard when the time for that is over.
    async fn end(&mut self, polite: Duration) -> Leftovers {
        self.group.tell_to_end(Insistence::Polite);
        let hard_at = Instant::now() + polite;
        let give_up_at = hard_at + self.limits.hard_stop;
        loop {
            if self.group.is_gone() {
                return Leftovers::Ended;
            }
            let now = Instant::now();
            if now >= give_up_at {
                return Leftovers::Remain;
            }
            if now >= hard_at {
                // Again and again, because members may have been started in the meantime.
                self.group.tell_to_end(Insistence::Hard);
            }
            self.pipes.read_until_closed(LOOK_INTERVAL).await;
            sleep_until(now + LOOK_INTERVAL).await;
        }
    }
}

/// The clocks of an agent that streams.
#[derive(Clone, Copy, Debug)]
struct Clocks {
    idle: Duration,
    grace: Duration,
}

impl Clocks {
    fn silence(self, pipes: &Pipes) -> Duration {
        if pipes.stdout.is_none() { self.grace } else { self.idle }
    }
}

async fn silent_for(last_sign: Instant, silence: Option<Duration>) {
    match silence {
        Some(silence) => sleep_until(last_sign + silence).await,
        None => std::future::pending().await,
    }
}

/// The three pipes of a program, and what came out of them.
struct Pipes {
    /// Gone when all is written, or when the program does not want more.
    stdin: Option<ChildStdin>,
    input: Payload,
    written: usize,
    /// Gone when it is closed.
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    stdout_piece: Vec<u8>,
    stderr_piece: Vec<u8>,
    output: Output,
    stderr_lines: LineSplitter,
    stderr_tail: Tail,
    progress: ProgressSink,
}

/// What happened on a pipe.
enum Moved {
    /// The program took some of its input, or wants no more.
    Input,
    /// It wrote something, or closed an output.
    Output,
}

impl Pipes {
    fn are_open(&self) -> bool {
        self.stdout.is_some() || self.stderr.is_some()
    }

    /// Moves the next piece on any of the pipes; waits for ever if none is open. Nothing is lost
    /// if it is dropped while it waits.
    async fn next(&mut self) -> Result<Moved, TooLong> {
        let rest = &self.input.text().as_bytes()[self.written..];
        tokio::select! {
            count = read(&mut self.stdout, &mut self.stdout_piece) => {
                self.take_stdout(count).map(|()| Moved::Output)
            }
            count = read(&mut self.stderr, &mut self.stderr_piece) => {
                self.take_stderr(count);
                Ok(Moved::Output)
            }
            count = write(&mut self.stdin, rest) => {
                self.written += count;
                if count == 0 || self.written == self.input.text().len() {
                    self.stdin = None;
                }
                Ok(Moved::Input)
            }
        }
    }

    /// Reads until both outputs are closed, for a limited time.
    async fn read_until_closed(&mut self, at_most: Duration) -> PipesAtEnd {
        let limit = sleep(at_most);
        tokio::pin!(limit);
        while self.are_open() {
            tokio::select! {
                moved = self.next() => if moved.is_err() {
                    // More than is allowed: what came before stands.
                    return PipesAtEnd::HeldOpen;
                },
                () = &mut limit => return PipesAtEnd::HeldOpen,
            }
        }
        PipesAtEnd::Closed
    }

    /// Reads until nothing comes for a moment.
    async fn read_what_is_there(&mut self) {
        while self.are_open() {
            match timeout(LOOK_INTERVAL, self.next()).await {
                Ok(Ok(_)) => {}
                Ok(Err(_)) | Err(_) => return,
            }
        }
    }

    fn take_stdout(&mut self, count: usize) -> Result<(), TooLong> {
        if count == 0 {
            self.stdout = None;
            return Ok(());
        }
        let progress = &self.progress;
        self.output.push(&self.stdout_piece[..count], |line| {
            progress.line(ProgressStream::Stdout, line);
        })
    }

    fn take_stderr(&mut self, count: usize) {
        if count == 0 {
            self.stderr = None;
            return;
        }
        let piece = &self.stderr_piece[..count];
        self.stderr_tail.push(piece);
        let progress = &self.progress;
        self.stderr_lines.push(piece, |line| progress.line(ProgressStream::Stderr, line));
    }

    fn finish(self, ending: Ending, pipes: PipesAtEnd, leftovers: Leftovers) -> Finished {
        let progress = self.progress;
        if leftovers == Leftovers::Remain {
            let line = "some of its processes could not be ended and may still run";
            progress.line(ProgressStream::Runner, line.to_owned());
        }
        self.stderr_lines.finish(|line| progress.line(ProgressStream::Stderr, line));
        Finished {
            ending,
            output: self.output,
            stderr: self.stderr_tail,
            progress,
            pipes,
            leftovers,
        }
    }
}

/// Reads the next piece; 0 means that the pipe is closed, or broken, which is the same here.
async fn read(pipe: &mut Option<impl AsyncRead + Unpin>, piece: &mut [u8]) -> usize {
    match pipe {
        Some(pipe) => pipe.read(piece).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}

/// Writes the next piece; 0 means that there is nothing left, or that nobody reads: a program that
/// does not want its input is no error.
async fn write(pipe: &mut Option<ChildStdin>, rest: &[u8]) -> usize {
    match pipe {
        Some(pipe) => pipe.write(rest).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}
