//! What goes wrong in a simulated world, and how often.

use super::dice::Dice;
use super::invariants::Checks;

/// The faults of one world. Fixed before it starts, so that a seed says everything.
#[derive(Clone, Debug)]
pub struct Chaos {
    /// By the number of the step before which they happen.
    pub faults: Vec<(usize, Fault)>,
    /// Whether appends reach the disk later than memory.
    pub has_slow_disk: bool,
    /// Whether reports and actions come twice.
    pub doubles_reports: bool,
    /// Whether timers fire although what they were set for is over.
    pub fires_stale_timers: bool,
    /// How many attempts of a hundred end without anybody knowing how.
    pub lost_percent: u64,
    /// How many attempts may run that need a place of the machine.
    pub slots: usize,
    pub pace: Pace,
    /// Whether memory is replaced by a replay after every step.
    pub replays_every_step: bool,
    /// Whether memory is compared with a replay now and then.
    pub compares_with_replays: bool,
    pub checks: Checks,
}

/// How long attempts take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// What their scripts say.
    AsScripted,
    /// Anything, so that attempts end in any order.
    Random,
}

/// Something that happens to a world from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Somebody cancels.
    Cancel,
    /// Somebody answers a question that nobody asked.
    StrayAnswer,
    /// The process ends at once.
    Crash,
    /// What is not on disk will never be.
    AppendFails,
}

impl Fault {
    pub const ALL: [Fault; 4] =
        [Fault::Cancel, Fault::StrayAnswer, Fault::Crash, Fault::AppendFails];
}

impl Chaos {
    /// Nothing goes wrong; attempts take what their scripts say.
    pub fn none() -> Chaos {
        Chaos {
            faults: Vec::new(),
            has_slow_disk: false,
            doubles_reports: false,
            fires_stale_timers: false,
            lost_percent: 0,
            slots: 4,
            pace: Pace::AsScripted,
            replays_every_step: false,
            compares_with_replays: true,
            checks: Checks::Everything,
        }
    }

    /// Nothing goes wrong; attempts end in any order.
    pub fn any_order() -> Chaos {
        Chaos { pace: Pace::Random, ..Chaos::none() }
    }

    /// As much goes wrong as the dice say, in an execution of about so many steps.
    pub fn random(dice: &mut Dice, n_steps: usize) -> Chaos {
        let mut faults = Vec::new();
        let mut some = |dice: &mut Dice, percent: u64, count_max: u64, fault: Fault| {
            if dice.chance(percent) {
                for _ in 0..dice.between(1, count_max) {
                    faults.push((1 + dice.below(n_steps + 3), fault));
                }
            }
        };
        some(dice, 25, 2, Fault::Cancel);
        some(dice, 20, 3, Fault::StrayAnswer);
        some(dice, 40, 4, Fault::Crash);
        some(dice, 30, 3, Fault::AppendFails);
        faults.sort_unstable();
        Chaos {
            faults,
            has_slow_disk: dice.chance(60),
            doubles_reports: dice.chance(50),
            fires_stale_timers: dice.chance(50),
            lost_percent: *dice.pick(&[0, 0, 3, 20]),
            slots: 1 + dice.below(4),
            pace: if dice.chance(90) { Pace::Random } else { Pace::AsScripted },
            replays_every_step: dice.chance(10),
            compares_with_replays: true,
            checks: Checks::Everything,
        }
    }

    /// The fault that happens before this step, if any.
    pub fn fault_at(&mut self, step: usize) -> Option<Fault> {
        let (at, fault) = *self.faults.first()?;
        (at <= step).then(|| {
            self.faults.remove(0);
            fault
        })
    }
}
