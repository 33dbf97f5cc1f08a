//! The one thread that writes: it takes everything that waits, writes it in one transaction, and
//! only then tells whoever waits.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::ids::{ExecutionId, Instance, OwnerId, Seq};
use engine::time::Timestamp;
use rusqlite::{Connection, ErrorCode, ffi};
use tokio::sync::oneshot;

use crate::store::checkpoint::Checkpoints;
use crate::store::error::StoreError;
use crate::store::queue::{Queue, Queued, Weight, Work};
use crate::store::schema::STEPS;
use crate::store::{execution_table, owner_table, progress_table, record_table};

/// A transaction takes no further jobs once it holds so many records.
const GROUP_RECORDS_MAX: usize = 500;
/// A transaction takes no further jobs once it has been at work for so long.
const GROUP_TIME_MAX: Duration = Duration::from_millis(5);
/// A transaction takes no further progress once it holds so many lines.
const GROUP_LINES_MAX: usize = 1_000;
/// Progress alone is not worth a transaction more often than this.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// How often an owner that has unsettled executions shows that it lives.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);
/// How many heads are remembered.
const HEADS_MAX: usize = 10_000;

/// Something to write. It may be applied more than once: after a roll-back everything is repeated.
pub(super) trait Job: Send {
    /// Writes. A refusal is no error: it is remembered for `settle`, and nothing was written.
    fn apply(&mut self, session: &mut Session) -> rusqlite::Result<()>;

    /// Writes rows that a later job of the same transaction may make unnecessary. Called from the
    /// last job to the first.
    fn project(&self, _session: &mut Session) -> rusqlite::Result<()> {
        Ok(())
    }

    /// Whether `apply` has to find the rows of earlier jobs that `project` writes.
    fn needs_projections(&self) -> bool {
        false
    }

    /// Tells whoever waits, after the commit or when there will be none.
    fn settle(self: Box<Self>, outcome: Result<(), Arc<rusqlite::Error>>);
}

/// Where an execution's journal ends, and who may go on. Known to the writer alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) key: i64,
    pub(super) owner: OwnerId,
    pub(super) seq: Seq,
    /// The data version under which it was last compared with the database.
    data_version: i64,
}

/// The write connection with what is known about the database.
pub(super) struct Session {
    conn: Connection,
    heads: HashMap<ExecutionId, Head>,
    /// Changes whenever another process has written.
    data_version: i64,
    projected_executions: HashSet<i64>,
    projected_nodes: HashSet<(i64, Instance)>,
    /// Whose heartbeat is kept.
    pub(super) owner: Option<OwnerId>,
}

impl Session {
    pub(super) fn new(conn: Connection) -> Session {
        Session {
            conn,
            heads: HashMap::new(),
            data_version: -1,
            projected_executions: HashSet::new(),
            projected_nodes: HashSet::new(),
            owner: None,
        }
    }

    pub(super) fn conn(&self) -> &Connection {
        &self.conn
    }

    /// Where an execution's journal ends, if it exists. Looked up when it is not known, and again
    /// when another process has written in between: the owner may have changed.
    pub(super) fn head(&mut self, execution: ExecutionId) -> rusqlite::Result<Option<Head>> {
        if let Some(head) = self.heads.get(&execution)
            && head.data_version == self.data_version
        {
            return Ok(Some(*head));
        }
        let Some((key, owner)) = execution_table::key_and_owner(&self.conn, execution)? else {
            self.heads.remove(&execution);
            return Ok(None);
        };
        let seq = record_table::head(&self.conn, key)?;
        Ok(Some(self.remember(execution, key, owner, seq)))
    }

    /// Notes an execution that was just added.
    pub(super) fn remember(
        &mut self,
        execution: ExecutionId,
        key: i64,
        owner: OwnerId,
        seq: Seq,
    ) -> Head {
        if self.heads.len() >= HEADS_MAX {
            self.heads.clear();
        }
        let head = Head { key, owner, seq, data_version: self.data_version };
        self.heads.insert(execution, head);
        head
    }

    /// Moves the end of a journal.
    pub(super) fn advance(&mut self, execution: ExecutionId, last: Seq) {
        if let Some(head) = self.heads.get_mut(&execution) {
            head.seq = last;
        }
    }

    /// Whether no later job has written this execution's row; it counts as written from now on.
    pub(super) fn is_first_projection_of_execution(&mut self, key: i64) -> bool {
        self.projected_executions.insert(key)
    }

    /// Whether no later job has written this node's row; it counts as written from now on.
    pub(super) fn is_first_projection_of_node(&mut self, key: i64, instance: &Instance) -> bool {
        self.projected_nodes.insert((key, instance.clone()))
    }

    /// Forgets what is known about executions: rows were changed otherwise than by appending.
    pub(super) fn forget_heads(&mut self) {
        self.heads.clear();
    }

    fn forget_projections(&mut self) {
        self.projected_executions.clear();
        self.projected_nodes.clear();
    }

    fn execute(&self, sql: &str) -> rusqlite::Result<()> {
        self.conn.prepare_cached(sql)?.execute([]).map(drop)
    }

    fn begin(&mut self) -> rusqlite::Result<()> {
        // IMMEDIATE: a transaction that first reads and then writes may be refused with
        // BUSY_SNAPSHOT, for which SQLite does not call the busy handler.
        self.execute("BEGIN IMMEDIATE")?;
        let noticed = self.notice_other_writers();
        if noticed.is_err() {
            self.roll_back();
        }
        noticed
    }

    /// Learns whether another process has written since the last time, and refuses to go on if it
    /// has changed the tables.
    fn notice_other_writers(&mut self) -> rusqlite::Result<()> {
        let number = |sql| self.conn.prepare_cached(sql)?.query_row([], |row| row.get(0));
        let data_version: i64 = number("PRAGMA data_version")?;
        if data_version == self.data_version {
            return Ok(());
        }
        if number("PRAGMA user_version")? != STEPS.len() as i64 {
            let code = ffi::Error::new(ffi::SQLITE_READONLY);
            let text = "another version of the program has changed the database; \
                        start this one again";
            return Err(rusqlite::Error::SqliteFailure(code, Some(text.to_owned())));
        }
        self.data_version = data_version;
        Ok(())
    }

    fn commit(&mut self) -> rusqlite::Result<()> {
        self.execute("COMMIT")
    }

    /// Undoes the transaction, if SQLite has not done so by itself.
    fn roll_back(&mut self) {
        if !self.conn.is_autocommit()
            && let Err(error) = self.execute("ROLLBACK")
        {
            tracing::error!(%error, "a transaction could not be rolled back");
        }
        self.forget_heads();
        self.forget_projections();
    }

    /// Runs `work` so that it leaves nothing behind when it gives an error.
    fn isolated<T, E>(
        &mut self,
        work: impl FnOnce(&mut Session) -> Result<T, E>,
    ) -> rusqlite::Result<Result<T, E>> {
        self.execute("SAVEPOINT job")?;
        let result = work(self);
        if self.conn.is_autocommit() {
            // SQLite has ended the whole transaction: the disk is full, or worse.
            let code = ffi::Error::new(ffi::SQLITE_FULL);
            let text = "the transaction was rolled back".to_owned();
            return Err(rusqlite::Error::SqliteFailure(code, Some(text)));
        }
        if result.is_err() {
            self.execute("ROLLBACK TO job")?;
            self.forget_heads();
        }
        self.execute("RELEASE job")?;
        Ok(result)
    }
}

/// Whether an error is about the database as a whole, so that no job can do better.
fn concerns_every_job(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure
                | ErrorCode::ReadOnly
                | ErrorCode::OutOfMemory
                | ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::CannotOpen
                | ErrorCode::FileLockingProtocolFailed
        )
    )
}

/// The jobs of one transaction.
#[derive(Default)]
struct Group {
    jobs: Vec<Queued>,
    n_records: usize,
    /// The projections of the jobs before this one are written.
    n_projected: usize,
}

impl Group {
    /// Writes the projections of the jobs since the last time.
    fn project(&mut self, session: &mut Session) -> rusqlite::Result<()> {
        session.forget_projections();
        for queued in self.jobs[self.n_projected..].iter().rev() {
            queued.job.project(session)?;
        }
        self.n_projected = self.jobs.len();
        Ok(())
    }
}

/// The thread's state.
pub(super) struct Writer {
    queue: Arc<Queue>,
    session: Session,
    checkpoints: Checkpoints,
    wall_clock: fn() -> Timestamp,
    /// Taken from the queue, not yet applied.
    waiting: VecDeque<Queued>,
    progress_from: Instant,
    heartbeat_from: Instant,
}

/// Closes the queue when the thread ends, however it ends, so that nobody waits for it.
struct CloseAtEnd(Arc<Queue>);

impl Drop for CloseAtEnd {
    fn drop(&mut self) {
        self.0.close();
        drop(self.0.take_jobs());
    }
}

impl Writer {
    pub(super) fn new(
        queue: Arc<Queue>,
        conn: Connection,
        checkpoints: Checkpoints,
        wall_clock: fn() -> Timestamp,
    ) -> Writer {
        let now = Instant::now();
        Writer {
            queue,
            session: Session::new(conn),
            checkpoints,
            wall_clock,
            waiting: VecDeque::new(),
            progress_from: now,
            heartbeat_from: now,
        }
    }

    /// Writes until the queue is closed and empty.
    pub(super) fn run(mut self) {
        let _close = CloseAtEnd(self.queue.clone());
        loop {
            if self.waiting.is_empty() {
                match self.queue.wait(self.deadline(), self.progress_from) {
                    Work::Waits => {}
                    Work::Nothing => {
                        self.idle();
                        continue;
                    }
                    Work::Closed => break,
                }
            }
            self.run_group();
            self.checkpoints.after_commit(self.session.conn());
        }
        self.checkpoints.at_close(self.session.conn());
    }

    fn deadline(&self) -> Option<Instant> {
        let heartbeat = self.session.owner.map(|_| self.heartbeat_from);
        heartbeat.into_iter().chain(self.checkpoints.idle_from()).min()
    }

    fn idle(&mut self) {
        let now = Instant::now();
        if self.session.owner.is_some() && now >= self.heartbeat_from {
            self.run_group();
        }
        if self.checkpoints.idle_from().is_some_and(|from| now >= from) {
            self.checkpoints.when_idle(self.session.conn());
        }
    }

    /// Writes what waits, up to the bounds of one transaction.
    fn run_group(&mut self) {
        let mut group = Group::default();
        let result = self.session.begin().and_then(|()| self.fill(&mut group));
        match result.and_then(|()| self.finish(&mut group)) {
            Ok(()) => self.settle(group.jobs, Ok(())),
            Err(error) if concerns_every_job(&error) => {
                self.session.roll_back();
                self.waiting.append(&mut self.queue.take_jobs());
                group.jobs.extend(self.waiting.drain(..));
                tracing::error!(%error, jobs = group.jobs.len(), "nothing could be written");
                self.settle(group.jobs, Err(Arc::new(error)));
            }
            Err(error) => {
                self.session.roll_back();
                tracing::warn!(%error, "a job could not be written; its group is repeated");
                self.repeat(group.jobs);
            }
        }
    }

    fn fill(&mut self, group: &mut Group) -> rusqlite::Result<()> {
        let started = Instant::now();
        loop {
            if self.waiting.is_empty() {
                self.waiting = self.queue.take_jobs();
            }
            let Some(mut queued) = self.waiting.pop_front() else { return Ok(()) };
            if queued.job.needs_projections()
                && let Err(error) = group.project(&mut self.session)
            {
                group.jobs.push(queued);
                return Err(error);
            }
            let applied = queued.job.apply(&mut self.session);
            group.n_records += queued.weight.records;
            group.jobs.push(queued);
            applied?;
            if group.n_records >= GROUP_RECORDS_MAX || started.elapsed() >= GROUP_TIME_MAX {
                return Ok(());
            }
        }
    }

    fn finish(&mut self, group: &mut Group) -> rusqlite::Result<()> {
        group.project(&mut self.session)?;
        self.write_progress()?;
        self.write_heartbeat()?;
        self.session.commit()
    }

    fn write_progress(&mut self) -> rusqlite::Result<()> {
        let progress = self.queue.take_progress(GROUP_LINES_MAX);
        if progress.is_empty() {
            return Ok(());
        }
        self.progress_from = Instant::now() + PROGRESS_INTERVAL;
        let written =
            self.session.isolated(|session| progress_table::write(session.conn(), &progress))?;
        if let Err(error) = written {
            // Progress may be lost; the records beside it may not.
            tracing::warn!(%error, "lines of progress could not be written");
        }
        Ok(())
    }

    fn write_heartbeat(&mut self) -> rusqlite::Result<()> {
        let now = Instant::now();
        match self.session.owner {
            Some(owner) if now >= self.heartbeat_from => {
                self.heartbeat_from = now + HEARTBEAT_INTERVAL;
                owner_table::beat(self.session.conn(), owner, (self.wall_clock)())
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Writes the jobs of a transaction that failed once more, each by itself as far as the others
    /// are concerned, so that only those fail that cannot be written.
    fn repeat(&mut self, jobs: Vec<Queued>) {
        let mut written = Vec::with_capacity(jobs.len());
        let mut failed = Vec::new();
        let mut result = self.session.begin();
        for mut queued in jobs {
            if result.is_err() {
                written.push(queued);
                continue;
            }
            let job = self.session.isolated(|session| {
                session.forget_projections();
                queued.job.apply(session)?;
                queued.job.project(session)
            });
            match job {
                Ok(Ok(())) => written.push(queued),
                Ok(Err(error)) => failed.push((queued, error)),
                Err(error) => {
                    written.push(queued);
                    result = Err(error);
                }
            }
        }
        match result.and_then(|()| self.session.commit()) {
            Ok(()) => self.settle(written, Ok(())),
            Err(error) => {
                self.session.roll_back();
                self.settle(written, Err(Arc::new(error)));
            }
        }
        for (queued, error) in failed {
            self.settle(vec![queued], Err(Arc::new(error)));
        }
    }

    fn settle(&mut self, jobs: Vec<Queued>, outcome: Result<(), Arc<rusqlite::Error>>) {
        let now = Instant::now();
        let longest_wait = jobs.iter().map(|queued| now.duration_since(queued.since)).max();
        let mut weight = Weight::default();
        for queued in &jobs {
            weight.records += queued.weight.records;
            weight.bytes += queued.weight.bytes;
        }
        let is_written = outcome.is_ok();
        // First: whoever was told may ask for the statistics.
        self.queue.count(|stats| {
            stats.commits += u64::from(is_written);
            stats.records += if is_written { weight.records as u64 } else { 0 };
            let longest_wait_us = longest_wait.unwrap_or_default().as_micros() as u64;
            stats.longest_wait_us = stats.longest_wait_us.max(longest_wait_us);
        });
        for queued in jobs {
            queued.job.settle(outcome.clone());
        }
        self.queue.settled(weight);
    }
}

/// A job made of a closure, for everything that is not the hot path. It runs isolated and finds
/// every row that was written before it.
pub(super) struct ClosureJob<F, T, E> {
    work: F,
    result: Option<Result<T, E>>,
    reply: oneshot::Sender<Result<T, E>>,
}

impl<F, T, E> ClosureJob<F, T, E> {
    /// A job and where its answer will come from.
    pub(super) fn new(work: F) -> (Self, oneshot::Receiver<Result<T, E>>) {
        let (reply, answer) = oneshot::channel();
        (ClosureJob { work, result: None, reply }, answer)
    }
}

impl<F, T, E> Job for ClosureJob<F, T, E>
where
    F: FnMut(&mut Session) -> Result<T, E> + Send,
    T: Send,
    E: From<StoreError> + Send,
{
    fn apply(&mut self, session: &mut Session) -> rusqlite::Result<()> {
        let work = &mut self.work;
        let isolated = session.isolated(work);
        session.forget_heads();
        self.result = Some(isolated?);
        Ok(())
    }

    fn needs_projections(&self) -> bool {
        true
    }

    fn settle(self: Box<Self>, outcome: Result<(), Arc<rusqlite::Error>>) {
        let answer = match (self.result, outcome) {
            (Some(Err(error)), _) => Err(error),
            (_, Err(source)) => Err(StoreError::from(source).into()),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (None, Ok(())) => unreachable!("only what was applied is committed"),
        };
        // Whoever asked may have gone.
        let _ = self.reply.send(answer);
    }
}
