//! What it costs to run a node durably, beside what SQLite itself costs for the same rows.
//!
//! `cargo xtask bench` runs this and puts the Markdown that it prints into `benches/README.md`.
//! Contenders run interleaved, one round after the other, so that a slow minute of the machine
//! slows all of them; the medians are compared. Databases lie below the target folder, because a
//! temporary folder is often kept in memory, where a flush costs nothing.

#[path = "../../../engine/benches/scheduling/drive.rs"]
mod drive;
mod figures;
mod raw_sqlite;
mod report;
mod workloads;

use std::path::PathBuf;
use std::time::Duration;

use report::{Contender, References};

/// Measured rounds. One more comes before them and is not counted.
const N_ROUNDS: usize = 9;

/// The size of a workload, so that a round takes well under a second for each contender.
const N_NODES: u32 = 1_000;

/// What one run of a contender took.
#[derive(Clone, Copy, Debug)]
struct Sample {
    n_nodes: u32,
    took: Duration,
    /// Transactions that reached the disk.
    n_commits: u64,
    /// The longest time from an append to its place on the disk, where it was measured.
    longest_unflushed: Option<Duration>,
}

fn main() {
    // Without `--bench` this is a test run, which only has to show that it works.
    let n_rounds = if std::env::args().any(|arg| arg == "--bench") { N_ROUNDS } else { 1 };
    let figures = figures::markdown(n_rounds);
    let mut contenders = vec![
        Contender::new("raw SQLite, one node in a transaction", None, || {
            raw_sqlite::run(N_NODES, 1)
        }),
        Contender::new("raw SQLite, 100 nodes in a transaction", None, || {
            raw_sqlite::run(N_NODES, 100)
        }),
        Contender::new("W1: a chain of 1,000 echoes", Some(ahead_of_disk), || {
            workloads::chain(N_NODES)
        }),
        Contender::new("W2: 1,000 echoes between root and join", Some(ahead_of_disk), || {
            workloads::fan_out(N_NODES)
        }),
        Contender::new("W3: 1,000 diamonds of 5, 16 at a time", Some(ahead_of_disk), || {
            workloads::diamonds(1_000)
        }),
        Contender::new("W4: W1 with side effects", Some(after_disk), || {
            workloads::side_effects(N_NODES)
        }),
    ];
    measure(&mut contenders, n_rounds);
    print!("{}\n{figures}", report::markdown(&contenders));
}

/// Nodes that stay inside the process may run ahead of the disk.
fn ahead_of_disk(references: &References) -> f64 {
    (0.25 * references.single).max(8.0 * references.grouped)
}

/// Each node waits until the record of its start is on disk.
fn after_disk(references: &References) -> f64 {
    1.5 * references.single
}

fn measure(contenders: &mut [Contender], n_rounds: usize) {
    for round in 0..=n_rounds {
        for contender in contenders.iter_mut() {
            let sample = (contender.run)();
            eprintln!("round {round} of {n_rounds}: {:>9.1?}  {}", sample.took, contender.name);
            if round > 0 {
                contender.samples.push(sample);
            }
        }
    }
}

/// An empty folder for one run's database.
fn fresh_folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("throughput").join(name);
    match std::fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            panic!("cannot empty {}: {error}", folder.display())
        }
        _ => (),
    }
    std::fs::create_dir_all(&folder)
        .unwrap_or_else(|error| panic!("cannot create {}: {error}", folder.display()));
    folder
}
