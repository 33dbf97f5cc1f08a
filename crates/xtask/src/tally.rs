//! Counts what the test binaries report, for the closing summary.

use std::fmt;

/// The sum over all test binaries, read from libtest's lines.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub passed: u64,
    pub failed: u64,
    pub ignored: u64,
    /// The tests that failed, in the order in which they were reported.
    pub failures: Vec<String>,
}

impl Tally {
    /// Takes one line of a test binary's output.
    pub fn read(&mut self, line: &str) {
        if let Some(counts) = line.strip_prefix("test result: ") {
            for part in counts.split(['.', ';']) {
                self.add(part.trim());
            }
        } else if let Some(name) =
            line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"))
        {
            self.failures.push(name.to_string());
        }
    }

    fn add(&mut self, part: &str) {
        let Some((number, word)) = part.split_once(' ') else { return };
        let Ok(number) = number.parse::<u64>() else { return };
        match word {
            "passed" => self.passed += number,
            "failed" => self.failed += number,
            "ignored" => self.ignored += number,
            _ => (),
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.ignored > 0 {
            write!(f, ", {} ignored", self.ignored)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_several_binaries_are_added_up() {
        let mut tally = Tally::default();
        for line in [
            "running 3 tests",
            "test value::keeps_digits ... ok",
            "test value::refuses_depth ... FAILED",
            "test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 4 filtered out; finished in 0.01s",
            "test result: ok. 40 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 2.50s",
        ] {
            tally.read(line);
        }
        assert_eq!(tally.to_string(), "41 passed, 1 failed, 1 ignored");
        assert_eq!(tally.failures, ["value::refuses_depth"]);
    }

    #[test]
    fn other_lines_change_nothing() {
        let mut tally = Tally::default();
        tally.read("the test result: 5 passed");
        tally.read("test value::fails ... FAILED?");
        assert_eq!(tally, Tally::default());
    }
}
