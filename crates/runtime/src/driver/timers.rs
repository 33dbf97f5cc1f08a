//! Timers of one execution: due when either clock says so, and once.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::scheduler::input::Timer;
use engine::time::Timestamp;

use crate::clock::Reading;

/// How often the wall clock is looked at while something waits: a machine that wakes from sleep
/// notices within this time.
const WALL_LOOK_EVERY: Duration = Duration::from_secs(1);

/// The timers that an execution waits for.
#[derive(Debug, Default)]
pub(super) struct Timers {
    waiting: BTreeMap<Timer, Due>,
}

#[derive(Clone, Copy, Debug)]
struct Due {
    wall: Timestamp,
    monotonic: Duration,
}

impl Timers {
    /// Sets a timer to a wall-clock time, and with it to the same distance on the other clock. A
    /// timer that waits already keeps its distance when the time is the same.
    pub fn set(&mut self, timer: Timer, at: Timestamp, now: Timestamp, reading: Reading) {
        let wait = Duration::from_millis(at.ms_since(now));
        let due = Due { wall: at, monotonic: reading.monotonic.saturating_add(wait) };
        self.waiting
            .entry(timer)
            .and_modify(|old| {
                if old.wall != at {
                    *old = due;
                }
            })
            .or_insert(due);
    }

    /// Takes out the timers that are due, in their order.
    pub fn take_due(&mut self, reading: Reading) -> Vec<Timer> {
        let is_due = |due: &Due| due.wall <= reading.wall || due.monotonic <= reading.monotonic;
        let timers: Vec<Timer> = self
            .waiting
            .iter()
            .filter(|(_, due)| is_due(due))
            .map(|(timer, _)| timer.clone())
            .collect();
        for timer in &timers {
            self.waiting.remove(timer);
        }
        timers
    }

    /// How long to sleep before looking again; `None` if nothing waits.
    pub fn next_look(&self, reading: Reading) -> Option<Duration> {
        let soonest = self.waiting.values().map(|due| {
            let by_wall = Duration::from_millis(due.wall.ms_since(reading.wall));
            by_wall.min(due.monotonic.saturating_sub(reading.monotonic))
        });
        soonest.min().map(|wait| wait.min(WALL_LOOK_EVERY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::ids::Instance;

    const START: i64 = 1_000_000;

    fn reading(wall_s: i64, monotonic_s: u64) -> Reading {
        Reading {
            wall: Timestamp(START + wall_s * 1000),
            monotonic: Duration::from_secs(monotonic_s),
        }
    }

    fn retry_due_in_60_s() -> (Timers, Timer) {
        let timer = Timer::Retry(Instance::top("a".into()));
        let mut timers = Timers::default();
        timers.set(timer.clone(), Timestamp(START + 60_000), Timestamp(START), reading(0, 0));
        (timers, timer)
    }

    #[test]
    fn o_r03_a_sleep_past_the_due_time_fires_once_on_waking() {
        let (mut timers, timer) = retry_due_in_60_s();
        assert_eq!(timers.take_due(reading(10, 10)), []);
        assert!(timers.next_look(reading(10, 10)).unwrap() <= Duration::from_secs(5));
        assert_eq!(timers.take_due(reading(10 + 3 * 3600, 10)), [timer]);
        assert_eq!(timers.take_due(reading(10 + 3 * 3600, 70)), []);
    }

    #[test]
    fn o_r03_a_clock_set_back_fires_once_after_the_real_time() {
        let (mut timers, timer) = retry_due_in_60_s();
        assert_eq!(timers.take_due(reading(10 - 7200, 10)), []);
        assert_eq!(timers.take_due(reading(59 - 7200, 59)), []);
        assert_eq!(timers.take_due(reading(60 - 7200, 60)), [timer]);
        assert_eq!(timers.take_due(reading(60, 7260)), []);
    }

    #[test]
    fn o_r03_a_clock_set_ahead_and_back_fires_once() {
        let (mut timers, timer) = retry_due_in_60_s();
        assert_eq!(timers.take_due(reading(40, 10)), []);
        assert_eq!(timers.take_due(reading(11, 11)), []);
        assert_eq!(timers.take_due(reading(60, 60)), [timer]);
        assert_eq!(timers.take_due(reading(90, 90)), []);
    }

    #[test]
    fn setting_a_waiting_timer_again_changes_nothing() {
        let (mut timers, timer) = retry_due_in_60_s();
        timers.set(timer.clone(), Timestamp(START + 60_000), Timestamp(START), reading(50, 50));
        assert_eq!(timers.take_due(reading(0, 60)), [timer]);
        assert_eq!(timers.next_look(reading(0, 60)), None);
    }
}
