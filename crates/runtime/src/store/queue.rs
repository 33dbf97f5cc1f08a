//! What waits for the writer: jobs in order, bounded by what they weigh, and progress lines, which
//! may be dropped.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;

use crate::store::progress_table::{AttemptKey, ProgressBatch};
use crate::store::writer::Job;

/// Above this many waiting records, whoever appends waits. So few that a record does not wait much
/// longer than 20 ms for its place on a usual disk, however fast they come.
pub(super) const QUEUED_RECORDS_MAX: usize = 1_000;
/// Above this many waiting bytes, whoever appends waits.
pub(super) const QUEUED_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Above this many waiting progress lines, further ones are dropped and counted.
pub(super) const QUEUED_LINES_MAX: usize = 10_000;

/// What a job costs while it waits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Weight {
    pub(super) records: usize,
    pub(super) bytes: usize,
}

/// A job and since when it waits.
pub(super) struct Queued {
    pub(super) job: Box<dyn Job>,
    pub(super) weight: Weight,
    pub(super) since: Instant,
}

/// What the writer has done so far, for benches and diagnostics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Transactions committed.
    pub commits: u64,
    /// Records written.
    pub records: u64,
    /// The longest time between an append and its commit, in µs.
    pub longest_wait_us: u64,
    /// The most records that waited or were being written at once.
    pub records_queued_max: u64,
    /// Progress lines that were dropped because the writer was busy.
    pub lines_dropped: u64,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Queued>,
    /// Of the jobs that wait and of those that are being written.
    weight: Weight,
    progress: Progress,
    stats: Stats,
    is_closed: bool,
}

/// Progress that waits: the lines, and how many there was no room for.
#[derive(Default)]
pub(super) struct Progress {
    pub(super) batches: VecDeque<ProgressBatch>,
    pub(super) dropped: BTreeMap<AttemptKey, u64>,
    n_lines: usize,
}

impl Progress {
    /// Whether nothing waits, not even a count.
    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty() && self.dropped.is_empty()
    }
}

/// Shared by the store's handles and the writer.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    work: Condvar,
    room: Notify,
}

/// The queue takes nothing any more, and the job was dropped.
pub(super) struct QueueClosed;

/// What the writer finds when it looks.
pub(super) enum Work {
    /// There is something to write: jobs, or only progress lines.
    Waits,
    /// Nothing came before the deadline.
    Nothing,
    /// Everything was taken, and nothing will follow.
    Closed,
}

impl Queue {
    /// Adds a job behind all others, waiting for room first if there is none.
    pub(super) async fn push(&self, job: Box<dyn Job>, weight: Weight) -> Result<(), QueueClosed> {
        let mut queued = Queued { job, weight, since: Instant::now() };
        loop {
            // Created before the look: it then hears every call of `notify_waiters` that follows.
            let room = self.room.notified();
            {
                let mut state = self.lock();
                if state.is_closed {
                    return Err(QueueClosed);
                }
                if !state.is_full() {
                    state.add(queued);
                    drop(state);
                    self.work.notify_one();
                    return Ok(());
                }
            }
            room.await;
            queued.since = Instant::now();
        }
    }

    /// Adds progress lines, or only their number when too many wait. Never waits itself.
    pub(super) fn push_progress(&self, batch: ProgressBatch) {
        let mut state = self.lock();
        let n_lines = batch.lines.len();
        if state.is_closed {
            state.stats.lines_dropped += n_lines as u64;
            return;
        }
        let was_empty = state.progress.is_empty();
        if state.progress.n_lines + n_lines > QUEUED_LINES_MAX {
            state.stats.lines_dropped += n_lines as u64;
            *state.progress.dropped.entry(batch.attempt).or_default() += n_lines as u64;
        } else {
            state.progress.n_lines += n_lines;
            state.progress.batches.push_back(batch);
        }
        drop(state);
        if was_empty {
            self.work.notify_one();
        }
    }

    /// Takes every job that waits. They keep counting against the bound until `settled`.
    pub(super) fn take_jobs(&self) -> VecDeque<Queued> {
        std::mem::take(&mut self.lock().jobs)
    }

    /// Takes progress that waits: batches until they hold `lines_max` lines or more.
    pub(super) fn take_progress(&self, lines_max: usize) -> Progress {
        let mut state = self.lock();
        let dropped = std::mem::take(&mut state.progress.dropped);
        let mut taken = Progress { dropped, ..Progress::default() };
        while taken.n_lines < lines_max {
            let Some(batch) = state.progress.batches.pop_front() else { break };
            state.progress.n_lines -= batch.lines.len();
            taken.n_lines += batch.lines.len();
            taken.batches.push_back(batch);
        }
        taken
    }

    /// Waits until there is work, `deadline` has passed, or the queue is closed and empty.
    /// Progress counts as work only from `progress_from` on.
    pub(super) fn wait(&self, deadline: Option<Instant>, progress_from: Instant) -> Work {
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            let has_progress = !state.progress.is_empty();
            let is_progress_due = has_progress && (now >= progress_from || state.is_closed);
            if !state.jobs.is_empty() || is_progress_due {
                return Work::Waits;
            }
            if state.is_closed {
                return Work::Closed;
            }
            if deadline.is_some_and(|deadline| now >= deadline) {
                return Work::Nothing;
            }
            let until = deadline.into_iter().chain(has_progress.then_some(progress_from)).min();
            state = match until {
                None => self.work.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let timeout = until.saturating_duration_since(now);
                    let woken = self.work.wait_timeout(state, timeout);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Gives back the room of jobs that were settled.
    pub(super) fn settled(&self, weight: Weight) {
        let mut state = self.lock();
        let was_full = state.is_full();
        state.weight.records -= weight.records;
        state.weight.bytes -= weight.bytes;
        let has_room = was_full && !state.is_full();
        drop(state);
        if has_room {
            self.room.notify_waiters();
        }
    }

    /// Refuses everything from now on; what waits is still written.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.work.notify_all();
        self.room.notify_waiters();
    }

    /// What the writer has done so far.
    pub(super) fn stats(&self) -> Stats {
        self.lock().stats
    }

    /// Adds to what the writer has done so far.
    pub(super) fn count(&self, count: impl FnOnce(&mut Stats)) {
        count(&mut self.lock().stats);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code that holds the lock leaves the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_full(&self) -> bool {
        self.weight.records >= QUEUED_RECORDS_MAX || self.weight.bytes >= QUEUED_BYTES_MAX
    }

    fn add(&mut self, queued: Queued) {
        self.weight.records += queued.weight.records;
        self.weight.bytes += queued.weight.bytes;
        let records = self.weight.records as u64;
        self.stats.records_queued_max = self.stats.records_queued_max.max(records);
        self.jobs.push_back(queued);
    }
}
