//! The simulated driver: virtual time, a disk, processes that take their time, people who answer,
//! and everything that may go wrong with them, from one seed.
//!
//! It obeys the contract of [`Execution`] to the letter, and checks after every step that the
//! execution does as well.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::rc::Rc;

use engine::agent::RunnerKind;
use engine::failure::{Failure, FailureClass};
use engine::ids::{Digest, Instance, OwnerId};
use engine::journal::{self, Record};
use engine::payload::Payload;
use engine::projection::NodeStatus;
use engine::scheduler::action::{Action, StartAttempt, Task};
use engine::scheduler::event::{Answer, Event, Trigger, Usage};
use engine::scheduler::input::{Input, Report, Start, Timer};
use engine::scheduler::{Committed, Execution, Rejected};
use engine::time::Timestamp;
use runtime::runner::AttemptOutcome;
use runtime::runner::scripted::Script;
use uuid::Uuid;

use super::case::{Case, Setup};
use super::chaos::{Chaos, Fault, Pace};
use super::coverage::Coverage;
use super::dice::Dice;
use super::invariants::{Checker, Checks};

/// When every simulated execution is started, in ms since the Unix epoch.
pub const START_MS: i64 = 1_800_000_000_000;
/// Steps of one drive that are allowed for each node, besides [`STEPS_MAX_BASE`].
const STEPS_MAX_PER_NODE: usize = 60;
const STEPS_MAX_BASE: usize = 500;

/// What the execution did wrong, in words.
pub type Checked<T = ()> = Result<T, String>;

/// An input that decided to records, and those records.
#[derive(Clone, Debug)]
pub struct Unit {
    pub input: Input,
    pub records: Vec<Record>,
}

/// An execution and the world around it.
pub struct World {
    case: Rc<Case>,
    setup: Rc<Setup>,
    chaos: Chaos,
    dice: Dice,
    pub now: Timestamp,
    execution: Execution,
    /// What memory has committed, unit by unit.
    units: Vec<Unit>,
    /// How many of them are on disk.
    n_durable: usize,
    /// When the disk has what was appended last.
    flush_at: Timestamp,
    attempts: BTreeMap<Instance, Attempt>,
    timers: BTreeMap<Timer, Due>,
    slots_wanted: BTreeSet<Instance>,
    slots_granted: BTreeSet<Instance>,
    questions: BTreeMap<Instance, Question>,
    /// Reports that arrive once more, or much too late.
    echoes: Vec<(Timestamp, Input)>,
    /// Attempts that ever left the process, over all restarts.
    left_process: BTreeSet<(Instance, u32)>,
    calls: BTreeMap<String, usize>,
    /// Attempts lost so far.
    lost: BTreeMap<Instance, u32>,
    checker: Checker,
    pub coverage: Coverage,
    n_steps: usize,
    n_owners: u64,
}

struct Attempt {
    number: u32,
    /// `None`: it was stopped before anybody was told to start it.
    start: Option<Box<StartAttempt>>,
    /// The unit that recorded its start, if it may not begin before that is on disk.
    waits_for: Option<usize>,
    ends: Option<(Timestamp, Report)>,
    is_stopping: bool,
}

/// A timer: when it should fire, and when it will.
struct Due {
    at: Timestamp,
    fires_at: Timestamp,
}

struct Question {
    /// The unit that asked it; people see it when that is on disk.
    unit: usize,
    answered_at: Timestamp,
}

/// What happens next.
enum Happening {
    AttemptEnds(Instance),
    TimerFires(Timer),
    SlotIsFree(Instance),
    PersonAnswers(Instance),
    DiskCatchesUp,
    Echo(usize),
}

impl World {
    /// Starts an execution of a case in a world of its own.
    pub fn start(case: &Rc<Case>, setup: &Rc<Setup>, chaos: Chaos, seed: u64) -> Checked<World> {
        let mut world = World::empty(case, setup, chaos, seed);
        world.begin()?;
        Ok(world)
    }

    /// A world without faults.
    pub fn calm(case: Case, seed: u64) -> World {
        let setup = Rc::new(case.setup(seed).expect("the case compiles"));
        World::start(&Rc::new(case), &setup, Chaos::none(), seed).expect("it starts")
    }

    /// A world that a process start finds: only the first units of a journal, nothing running.
    pub fn recovered(from: &World, n_units: usize, seed: u64) -> Checked<World> {
        let mut world = World::empty(&from.case, &from.setup, Chaos::none(), seed);
        world.now = from.now;
        world.n_owners = from.n_owners;
        world.units = from.units[..n_units].to_vec();
        for record in world.units.iter().flat_map(|unit| &unit.records) {
            // It may have run already, so it must not run again.
            if let Event::AttemptStarted(started) = &record.event {
                world.left_process.insert((started.instance.clone(), started.attempt));
            }
        }
        world.n_durable = n_units;
        world.go_on_from_disk(1_000)?;
        Ok(world)
    }

    fn empty(case: &Rc<Case>, setup: &Rc<Setup>, chaos: Chaos, seed: u64) -> World {
        World {
            case: Rc::clone(case),
            setup: Rc::clone(setup),
            dice: Dice::new(seed),
            now: Timestamp(START_MS),
            execution: setup.fresh(),
            units: Vec::new(),
            n_durable: 0,
            flush_at: Timestamp(START_MS),
            attempts: BTreeMap::new(),
            timers: BTreeMap::new(),
            slots_wanted: BTreeSet::new(),
            slots_granted: BTreeSet::new(),
            questions: BTreeMap::new(),
            echoes: Vec::new(),
            left_process: BTreeSet::new(),
            calls: BTreeMap::new(),
            lost: BTreeMap::new(),
            checker: Checker::new(case, setup, chaos.checks),
            coverage: Coverage::default(),
            n_steps: 0,
            n_owners: 1,
            chaos,
        }
    }

    /// The execution as memory has it.
    pub fn execution(&self) -> &Execution {
        &self.execution
    }

    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    pub fn units(&self) -> &[Unit] {
        &self.units
    }

    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.units.iter().flat_map(|unit| &unit.records)
    }

    /// How many times a node's agent was really started.
    pub fn calls(&self, node: &str) -> usize {
        self.calls.get(node).copied().unwrap_or_default()
    }

    pub fn node_status(&self, node: &str) -> NodeStatus {
        self.execution.node_status(self.setup.idx(node))
    }

    /// The input a node was given, as JSON text.
    pub fn node_input(&self, node: &str) -> Option<String> {
        Some(self.execution.node_input(self.setup.idx(node))?.text().to_owned())
    }

    /// The journal as text, one record a line: what golden files hold.
    pub fn journal_text(&self) -> String {
        let mut text = String::new();
        for record in self.records() {
            let encoded = journal::encode(&record.event);
            let at = record.at.0 - START_MS;
            writeln!(text, "{} +{at} {} {}", record.seq, encoded.kind, encoded.body)
                .expect("a text takes everything");
        }
        text
    }

    // ---- moving ----

    /// Lets everything happen until nothing is left to happen.
    pub fn drive(&mut self) -> Checked {
        let steps_max =
            self.n_steps + STEPS_MAX_BASE + STEPS_MAX_PER_NODE * self.setup.plan.nodes.len();
        while self.step()? {
            if self.n_steps > steps_max {
                return Err(format!("not settled after {steps_max} steps: it never ends"));
            }
        }
        Ok(())
    }

    /// Lets the next thing happen. `false`: nothing is left.
    pub fn step(&mut self) -> Checked<bool> {
        self.n_steps += 1;
        if let Some(fault) = self.chaos.fault_at(self.n_steps) {
            self.suffer(fault)?;
            return Ok(true);
        }
        let Some((at, happening)) = self.next_happening() else {
            if !self.execution.is_settled() {
                return Err("nothing will ever happen again, but it is not settled".to_owned());
            }
            return Ok(false);
        };
        self.now = self.now.max(at);
        match happening {
            Happening::AttemptEnds(instance) => self.attempt_ends(&instance)?,
            Happening::TimerFires(timer) => {
                self.timers.remove(&timer);
                self.give(Input::TimerDue { timer })?;
            }
            Happening::SlotIsFree(instance) => self.grant_slot(instance)?,
            Happening::PersonAnswers(instance) => self.person_answers(instance)?,
            Happening::DiskCatchesUp => self.flush()?,
            Happening::Echo(n) => {
                let (_, input) = self.echoes.swap_remove(n);
                self.give_again(input)?;
            }
        }
        Ok(true)
    }

    /// Moves the clock on and lets everything happen that is due by then.
    pub fn pass(&mut self, ms: u64) -> Checked {
        let until = self.now.plus_ms(ms);
        while self.next_happening().is_some_and(|(at, _)| at <= until) {
            self.step()?;
        }
        self.now = until;
        Ok(())
    }

    pub fn cancel(&mut self) -> Checked {
        self.give(Input::CancelAsked { by: "a test".to_owned() })
    }

    /// The running attempt of a node ends like this, now.
    pub fn report(&mut self, node: &str, report: Report) -> Checked {
        let instance = Instance::top(node.into());
        let running = self.attempts.remove(&instance);
        let attempt = running.map_or(1, |running| running.number);
        self.give(Input::AttemptReported { instance, attempt, report })
    }

    /// The process ends at once; a new one goes on.
    pub fn crash(&mut self) -> Checked {
        self.suffer(Fault::Crash)
    }

    /// Gives the execution an input that it must accept.
    pub fn give(&mut self, input: Input) -> Checked {
        match self.try_give(input.clone())? {
            Ok(()) => Ok(()),
            Err(rejected) => Err(format!("{input:?} was rejected: {rejected}")),
        }
    }

    /// Gives the execution an input: decide, append, commit, perform.
    pub fn try_give(&mut self, input: Input) -> Checked<Result<(), Rejected>> {
        self.coverage.input(&self.execution, &input);
        let is_restart = matches!(input, Input::HostRestarted { .. });
        let records = match self.execution.decide(input.clone(), self.now) {
            Ok(records) => records,
            Err(rejected) => return Ok(Err(rejected)),
        };
        if records.is_empty() {
            self.checker.nothing_decided(&input, &self.execution)?;
            return Ok(Ok(()));
        }
        self.coverage.records(&self.setup.plan, &records);
        let Committed { actions, .. } = self.execution.commit(&records);
        self.count_lost(&records);
        self.units.push(Unit { input, records });
        self.schedule_flush();
        let unit = self.units.last().expect("it was just pushed");
        self.checker.unit(unit, &self.execution)?;
        for action in actions {
            self.perform(action)?;
        }
        if is_restart {
            for action in self.execution.outstanding() {
                self.perform(action)?;
            }
        }
        self.everything_asked_for_is_done()?;
        if self.chaos.compares_with_replays {
            self.checker.replay_now_and_then(&self.units, &self.execution, &mut self.dice)?;
        }
        if self.chaos.replays_every_step {
            self.execution = self.setup.replay(self.units.iter().flat_map(|unit| &unit.records));
        }
        Ok(Ok(()))
    }

    fn count_lost(&mut self, records: &[Record]) {
        for record in records {
            if let Event::AttemptLost(lost) = &record.event {
                *self.lost.entry(lost.instance.clone()).or_default() += 1;
            }
        }
    }

    /// Something that was reported before arrives once more. It must change nothing.
    fn give_again(&mut self, input: Input) -> Checked {
        self.coverage.input(&self.execution, &input);
        match self.execution.decide(input.clone(), self.now) {
            Ok(records) if records.is_empty() => Ok(()),
            Ok(records) => Err(format!("{input:?} again was decided to {records:?}")),
            Err(rejected) => Err(format!("{input:?} again was rejected: {rejected}")),
        }
    }

    fn begin(&mut self) -> Checked {
        self.execution = self.setup.fresh();
        let start = Start {
            document: Digest::of(b"as it was drawn"),
            input: self.setup.input.clone(),
            workflow: None,
            workspace: "Personal".to_owned(),
            source: Some("case.json".to_owned()),
            trigger: Trigger::File,
            parent: None,
        };
        self.give(Input::Start(Box::new(start.clone())))?;
        match self.execution.decide(Input::Start(Box::new(start)), self.now) {
            Err(Rejected::AlreadyStarted) => Ok(()),
            other => Err(format!("a second start gives {other:?}")),
        }
    }

    /// The soonest thing that may happen; of several at the same time, any.
    fn next_happening(&mut self) -> Option<(Timestamp, Happening)> {
        let now = self.now;
        let mut all: Vec<(Timestamp, Happening)> = Vec::new();
        for (instance, attempt) in &self.attempts {
            if let Some((at, _)) = &attempt.ends {
                all.push((*at, Happening::AttemptEnds(instance.clone())));
            }
        }
        for (timer, due) in &self.timers {
            all.push((due.fires_at, Happening::TimerFires(timer.clone())));
        }
        let takes_slot = |attempt: &&Attempt| attempt.start.as_deref().is_some_and(takes_slot);
        if self.attempts.values().filter(takes_slot).count() < self.chaos.slots {
            for instance in &self.slots_wanted {
                all.push((now, Happening::SlotIsFree(instance.clone())));
            }
        }
        for (instance, question) in &self.questions {
            if question.unit < self.n_durable {
                all.push((question.answered_at, Happening::PersonAnswers(instance.clone())));
            }
        }
        if self.n_durable < self.units.len() {
            all.push((self.flush_at, Happening::DiskCatchesUp));
        }
        for (n, (at, _)) in self.echoes.iter().enumerate() {
            all.push((*at, Happening::Echo(n)));
        }
        if self.execution.is_settled() {
            // What would still happen to it if the driver had not let go of it.
            all.retain(|(_, happening)| match happening {
                Happening::Echo(_) | Happening::DiskCatchesUp => true,
                Happening::TimerFires(_) => self.chaos.fires_stale_timers,
                _ => false,
            });
        }
        let soonest = all.iter().map(|(at, _)| (*at).max(now)).min()?;
        all.retain(|(at, _)| *at <= soonest);
        let chosen = self.dice.below(all.len());
        Some((soonest, all.swap_remove(chosen).1))
    }

    // ---- what happens ----

    fn attempt_ends(&mut self, instance: &Instance) -> Checked {
        let attempt = self.attempts.remove(instance).expect("it was about to end");
        let (_, report) = attempt.ends.expect("it was about to end");
        let input =
            Input::AttemptReported { instance: instance.clone(), attempt: attempt.number, report };
        self.give(input.clone())?;
        if self.chaos.doubles_reports {
            self.give_again(input.clone())?;
            if self.dice.chance(20) {
                let at = self.now.plus_ms(self.dice.between(0, 2_000));
                self.echoes.push((at, input));
            }
        }
        Ok(())
    }

    fn grant_slot(&mut self, instance: Instance) -> Checked {
        self.slots_wanted.remove(&instance);
        self.slots_granted.insert(instance.clone());
        self.give(Input::SlotGranted { instance: instance.clone() })?;
        // Not used after all: the place is free again.
        self.slots_granted.remove(&instance);
        Ok(())
    }

    fn person_answers(&mut self, instance: Instance) -> Checked {
        self.questions.remove(&instance);
        let answer = match self.dice.below(3) {
            0 => Answer::Retry,
            1 => Answer::Complete(Payload::parse(r#"{"n":4,"by":"a person"}"#).expect("JSON")),
            _ => Answer::Fail { message: (*self.dice.pick(&["", "it was not done"])).to_owned() },
        };
        let input = Input::HumanAnswered { instance: instance.clone(), answer };
        let was_waiting = self.execution.node_status(self.setup.idx(instance.node.as_str()))
            == NodeStatus::Waiting;
        match (self.try_give(input.clone())?, was_waiting) {
            (Ok(()), true) => {}
            (Err(Rejected::NothingToAnswer { .. }), false) => return Ok(()),
            (other, _) => return Err(format!("{input:?} gives {other:?}")),
        }
        match self.execution.decide(input, self.now) {
            Err(Rejected::NothingToAnswer { .. }) => Ok(()),
            other => Err(format!("a second answer gives {other:?}")),
        }
    }

    /// When the disk will have what was appended just now.
    fn schedule_flush(&mut self) {
        if self.chaos.has_slow_disk {
            self.flush_at = self.now.plus_ms(self.dice.between(0, 4));
        } else {
            self.n_durable = self.units.len();
        }
    }

    fn flush(&mut self) -> Checked {
        let n_waiting = (self.units.len() - self.n_durable) as u64;
        self.n_durable += self.dice.between(1, n_waiting) as usize;
        let begins: Vec<Instance> = self
            .attempts
            .iter()
            .filter(|(_, attempt)| attempt.waits_for.is_some_and(|unit| unit < self.n_durable))
            .map(|(instance, _)| instance.clone())
            .collect();
        begins.iter().try_for_each(|instance| self.begin_attempt(instance))
    }

    fn suffer(&mut self, fault: Fault) -> Checked {
        self.coverage.fault(fault);
        match fault {
            Fault::Cancel => self.cancel(),
            Fault::StrayAnswer => self.stray_answer(),
            Fault::Crash => {
                // What was on its way to the disk may have reached it or not.
                let n_waiting = (self.units.len() - self.n_durable) as u64;
                self.n_durable += self.dice.between(0, n_waiting) as usize;
                let unowned_ms = *self.dice.pick(&[0, 5, 1_000, 3_600_000]);
                self.now = self.now.plus_ms(unowned_ms);
                self.go_on_from_disk(unowned_ms)
            }
            Fault::AppendFails => self.go_on_from_disk(0),
        }
    }

    /// Drops the memory and everything that belongs to it, and goes on from the journal.
    fn go_on_from_disk(&mut self, unowned_ms: u64) -> Checked {
        self.units.truncate(self.n_durable);
        self.attempts.clear();
        self.timers.clear();
        self.slots_wanted.clear();
        self.slots_granted.clear();
        self.questions.clear();
        self.echoes.clear();
        self.lost.clear();
        for unit in std::mem::take(&mut self.units) {
            self.count_lost(&unit.records);
            self.units.push(unit);
        }
        self.checker = Checker::rebuilt(&self.case, &self.setup, self.chaos.checks, &self.units)?;
        if self.units.is_empty() {
            return self.begin();
        }
        self.execution = self.setup.replay(self.units.iter().flat_map(|unit| &unit.records));
        self.n_owners += 1;
        let owner = OwnerId(Uuid::from_u128(u128::from(self.n_owners)));
        self.give(Input::HostRestarted { owner, unowned_ms })
    }

    /// Somebody answers a question that was never asked.
    fn stray_answer(&mut self) -> Checked {
        let nodes = &self.setup.plan.nodes;
        let node = nodes[self.dice.below(nodes.len())].id.clone();
        if self.execution.node_status(self.setup.idx(node.as_str())) == NodeStatus::Waiting {
            return Ok(());
        }
        let input = Input::HumanAnswered { instance: Instance::top(node), answer: Answer::Retry };
        match self.try_give(input)? {
            Err(Rejected::NothingToAnswer { .. }) => Ok(()),
            other => Err(format!("an answer to no question gives {other:?}")),
        }
    }

    // ---- performing actions ----

    fn perform(&mut self, action: Action) -> Checked {
        self.perform_once(action.clone())?;
        // Performing an action twice is harmless.
        if self.chaos.doubles_reports && self.dice.chance(10) {
            self.perform_once(action)?;
        }
        Ok(())
    }

    fn perform_once(&mut self, action: Action) -> Checked {
        match action {
            Action::StartAttempt(start) => return self.start_attempt(start),
            Action::StopAttempt { instance, attempt } => self.stop_attempt(&instance, attempt),
            Action::WakeAt { timer, at } => {
                let late_ms = match self.chaos.pace {
                    Pace::AsScripted => 0,
                    Pace::Random if self.dice.chance(80) => self.dice.between(0, 1),
                    Pace::Random => self.dice.between(0, 10_000),
                };
                let due = Due { at, fires_at: at.plus_ms(late_ms) };
                if self.timers.get(&timer).is_none_or(|old| old.at != at) {
                    self.timers.insert(timer, due);
                }
            }
            Action::AcquireSlot { instance, .. } => {
                if !self.slots_granted.contains(&instance) {
                    self.slots_wanted.insert(instance);
                }
            }
            Action::AskHuman { instance, .. } => {
                let unit = self.units.len() - 1;
                let answered_at = self.now.plus_ms(self.dice.between(0, 5_000));
                self.questions.entry(instance).or_insert(Question { unit, answered_at });
            }
        }
        Ok(())
    }

    fn start_attempt(&mut self, start: Box<StartAttempt>) -> Checked {
        let instance = start.instance.clone();
        if let Some(running) = self.attempts.get(&instance) {
            if running.number == start.attempt {
                return Ok(());
            }
            return Err(format!("{instance} starts again while an attempt of it runs"));
        }
        if takes_slot(&start) && !self.slots_granted.remove(&instance) {
            return Err(format!("{instance} starts without a place of the machine"));
        }
        let waits_for = start.leaves_process().then(|| self.units.len() - 1);
        let attempt = Attempt {
            number: start.attempt,
            start: Some(start),
            waits_for,
            ends: None,
            is_stopping: false,
        };
        self.attempts.insert(instance.clone(), attempt);
        if waits_for.is_none_or(|unit| unit < self.n_durable) {
            self.begin_attempt(&instance)?;
        }
        Ok(())
    }

    /// The work really starts.
    fn begin_attempt(&mut self, instance: &Instance) -> Checked {
        // A stub counts the calls that it finished, so that lost ones do not change a case.
        let n_lost = self.lost.get(instance).copied().unwrap_or_default();
        let attempt = self.attempts.get_mut(instance).expect("it was asked for");
        attempt.waits_for = None;
        let start = attempt.start.as_deref().expect("only what was asked for begins");
        *self.calls.entry(instance.node.as_str().to_owned()).or_default() += 1;
        if start.leaves_process() && !self.left_process.insert((instance.clone(), start.attempt)) {
            return Err(format!("attempt {} of {instance} left the process twice", start.attempt));
        }
        let (report, scripted_ms) = perform_work(start, start.attempt - n_lost);
        let takes_ms = match self.chaos.pace {
            Pace::AsScripted => scripted_ms,
            Pace::Random => *self.dice.pick(&[0, 0, 1, 2, 3, 5, 20, 150, 4_000]),
        };
        let timeout_ms = start.start_to_close_timeout_ms;
        let (takes_ms, report) = match timeout_ms.filter(|timeout_ms| *timeout_ms < takes_ms) {
            Some(timeout_ms) => {
                let failure = Failure::new(FailureClass::Timeout, "not finished in time");
                (timeout_ms, Report::Failed { failure, usage: Usage::default() })
            }
            None if self.dice.chance(self.chaos.lost_percent) => {
                let message = "no sign of life".to_owned();
                let lost = *self.dice.pick(&[true, false]);
                (takes_ms, if lost { Report::Lost { message } } else { Report::Stopped })
            }
            None => (takes_ms, report),
        };
        attempt.ends = Some((self.now.plus_ms(takes_ms), report));
        Ok(())
    }

    fn stop_attempt(&mut self, instance: &Instance, number: u32) {
        // One decision may start an attempt and stop it: then nobody was told to start it, and the
        // report that it ended is the driver's to give.
        let attempt = self.attempts.entry(instance.clone()).or_insert(Attempt {
            number,
            start: None,
            waits_for: None,
            ends: None,
            is_stopping: false,
        });
        if std::mem::replace(&mut attempt.is_stopping, true) {
            return;
        }
        let stopped_at = self.now.plus_ms(self.dice.between(0, 3));
        attempt.waits_for = None;
        attempt.ends = match attempt.ends.take() {
            // It ends by itself before the stop reaches it.
            Some((at, report)) if at <= stopped_at || self.dice.chance(20) => Some((at, report)),
            _ => Some((stopped_at, Report::Stopped)),
        };
    }

    /// What should be happening is happening, and nothing else runs.
    fn everything_asked_for_is_done(&self) -> Checked {
        if self.chaos.checks == Checks::Cheap {
            return Ok(());
        }
        let mut wanted = BTreeSet::new();
        for action in self.execution.outstanding() {
            let is_done = match &action {
                Action::StartAttempt(start) => {
                    wanted.insert(start.instance.clone());
                    self.attempts.get(&start.instance).is_some_and(|attempt| {
                        attempt.start.as_ref() == Some(start) && !attempt.is_stopping
                    })
                }
                Action::StopAttempt { instance, attempt: number } => {
                    wanted.insert(instance.clone());
                    self.attempts
                        .get(instance)
                        .is_some_and(|attempt| attempt.number == *number && attempt.is_stopping)
                }
                Action::WakeAt { timer, at } => {
                    self.timers.get(timer).is_some_and(|due| due.at == *at)
                }
                Action::AcquireSlot { instance, .. } => self.slots_wanted.contains(instance),
                Action::AskHuman { instance, .. } => self.questions.contains_key(instance),
            };
            if !is_done {
                return Err(format!("nobody was told to do this: {action:?}"));
            }
        }
        match self.attempts.keys().find(|instance| !wanted.contains(instance)) {
            Some(instance) => Err(format!("{instance} runs, and nobody wants it to")),
            None => Ok(()),
        }
    }
}

fn takes_slot(start: &StartAttempt) -> bool {
    match &start.task {
        Task::Agent { agent, .. } => agent.agent.runner.takes_slot(),
        Task::Transform => false,
    }
}

/// What the work comes to, and how long it takes in ms.
///
/// * `call`: from 1.
fn perform_work(start: &StartAttempt, call: u32) -> (Report, u64) {
    let usage = Usage::default();
    let completed =
        |output| Report::Completed { output, warnings: Vec::new(), usage: Usage::default() };
    let settings = match &start.task {
        Task::Transform => return (completed(start.input.clone()), 0),
        Task::Agent { agent, .. } if agent.agent.runner == RunnerKind::Echo => {
            return (completed(start.input.clone()), 0);
        }
        Task::Agent { settings, .. } => settings,
    };
    let script = Script::read(settings.value()).expect("the stub has a script");
    let report = match script.outcome(call, &start.input) {
        AttemptOutcome::Completed { output, warnings } => {
            Report::Completed { output, warnings, usage }
        }
        AttemptOutcome::Failed(failure) => Report::Failed { failure, usage },
        AttemptOutcome::Stopped => unreachable!("a script does not stop by itself"),
    };
    (report, script.takes_ms)
}
