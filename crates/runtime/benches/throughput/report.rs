//! From samples to a table that compares each contender with the references of the same run.

use std::fmt::Write;
use std::time::Duration;

use crate::Sample;

/// The medians of the two references, in microseconds per node.
#[derive(Clone, Copy, Debug)]
pub struct References {
    /// One node in each transaction.
    pub single: f64,
    /// A hundred nodes in each transaction.
    pub grouped: f64,
}

/// The most microseconds that a node may take.
pub type Limit = fn(&References) -> f64;

/// One thing that is measured.
pub struct Contender {
    pub name: &'static str,
    pub limit: Option<Limit>,
    pub run: Box<dyn FnMut() -> Sample>,
    pub samples: Vec<Sample>,
}

impl Contender {
    pub fn new(
        name: &'static str,
        limit: Option<Limit>,
        run: impl FnMut() -> Sample + 'static,
    ) -> Contender {
        Contender { name, limit, run: Box::new(run), samples: Vec::new() }
    }

    /// Microseconds per node in each round, ascending.
    fn micros_per_node(&self) -> Vec<f64> {
        let per_node =
            |sample: &Sample| sample.took.as_secs_f64() * 1e6 / f64::from(sample.n_nodes);
        let mut each: Vec<f64> = self.samples.iter().map(per_node).collect();
        each.sort_by(f64::total_cmp);
        each
    }

    fn median(&self) -> f64 {
        let each = self.micros_per_node();
        each[each.len() / 2]
    }

    fn n_commits(&self) -> u64 {
        let mut each: Vec<u64> = self.samples.iter().map(|sample| sample.n_commits).collect();
        each.sort_unstable();
        each[each.len() / 2]
    }

    fn longest_unflushed(&self) -> Option<Duration> {
        self.samples.iter().filter_map(|sample| sample.longest_unflushed).max()
    }
}

/// Writes the table. The first two contenders are the references.
pub fn markdown(contenders: &[Contender]) -> String {
    let [single, grouped, ..] = contenders else { panic!("the references come first") };
    let references = References { single: single.median(), grouped: grouped.median() };
    let mut table = String::from(
        "| Workload | µs a node | lowest to highest | × raw, one | × raw, 100 | goal, µs | commits \
         | longest unflushed |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for contender in contenders {
        writeln!(table, "{}", row(contender, &references)).expect("a string has room");
    }
    format!("{}\n\n{table}", machine(single))
}

fn row(contender: &Contender, references: &References) -> String {
    let each = contender.micros_per_node();
    let median = contender.median();
    let goal = contender.limit.map_or_else(String::new, |limit| {
        let limit = limit(references);
        let word = if median <= limit { "reached" } else { "**missed**" };
        format!("{limit:.0}, {word}")
    });
    let unflushed = contender
        .longest_unflushed()
        .map_or_else(String::new, |longest| format!("{:.1} ms", longest.as_secs_f64() * 1e3));
    format!(
        "| {} | {median:.1} | {:.1} to {:.1} | {:.2} | {:.2} | {goal} | {} | {unflushed} |",
        contender.name,
        each[0],
        each[each.len() - 1],
        median / references.single,
        median / references.grouped,
        contender.n_commits(),
    )
}

/// What the figures depend on.
fn machine(reference: &Contender) -> String {
    let n_processors = std::thread::available_parallelism().map_or(1, usize::from);
    format!(
        "{} on {}, {n_processors} processors, SQLite {}, medians of {} rounds.",
        std::env::consts::OS,
        std::env::consts::ARCH,
        rusqlite::version(),
        reference.samples.len(),
    )
}
