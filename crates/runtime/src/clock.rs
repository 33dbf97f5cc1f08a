//! The clocks of this machine, and what the driver makes of them.

use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use engine::time::Timestamp;

/// One look at both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// What the wall clock says. A person may set it, and it goes on while the machine sleeps.
    pub wall: Timestamp,
    /// Time since the process started, without the time the machine slept.
    pub monotonic: Duration,
}

/// A source of readings.
pub trait Clock: Send + Sync {
    /// Looks at both clocks.
    fn read(&self) -> Reading;
}

/// The machine's own clocks.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock { started: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn read(&self) -> Reading {
        Reading { wall: wall_clock(), monotonic: self.started.elapsed() }
    }
}

/// What the machine's wall clock says.
pub fn wall_clock() -> Timestamp {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(wall.as_millis()).unwrap_or(i64::MAX))
}

/// Gives the driver its `now`: the larger of the wall clock and the last `now` plus the time that
/// has really passed, so that a clock set back never turns time round.
#[derive(Debug, Default)]
pub struct NowSource {
    last: Mutex<Option<(Timestamp, Duration)>>,
}

impl NowSource {
    /// The `now` of a reading.
    pub fn now(&self, reading: Reading) -> Timestamp {
        let mut last = self.last.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let now = match *last {
            None => reading.wall,
            Some((now, monotonic)) => {
                let elapsed = reading.monotonic.saturating_sub(monotonic);
                let passed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
                let steady = now.plus_ms(passed_ms);
                if reading.wall <= steady {
                    // The fraction of a millisecond stays for the next reading.
                    *last = Some((steady, monotonic + Duration::from_millis(passed_ms)));
                    return steady;
                }
                reading.wall
            }
        };
        *last = Some((now, reading.monotonic));
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(wall_ms: i64, monotonic_ms: u64) -> Reading {
        Reading { wall: Timestamp(wall_ms), monotonic: Duration::from_millis(monotonic_ms) }
    }

    #[test]
    fn now_follows_the_wall_clock_forwards_and_never_backwards() {
        let source = NowSource::default();
        assert_eq!(source.now(reading(1_000, 0)), Timestamp(1_000));
        assert_eq!(source.now(reading(9_000, 10)), Timestamp(9_000), "asleep for eight seconds");
        assert_eq!(source.now(reading(2_000, 60)), Timestamp(9_050), "the clock was set back");
        assert_eq!(source.now(reading(2_000, 60)), Timestamp(9_050));
    }

    #[test]
    fn many_small_steps_lose_no_time() {
        let source = NowSource::default();
        let micros = |n: u64| Reading { wall: Timestamp(0), monotonic: Duration::from_micros(n) };
        let last = (0..=10_000).map(|n| source.now(micros(n * 100))).last();
        assert_eq!(last, Some(Timestamp(1_000)));
    }
}
