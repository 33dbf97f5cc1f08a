//! Figures that are no workload: how the cost of a decision grows with the graph, how long it takes
//! to go on after a crash, and what a large execution needs of the memory.

use std::fmt::Write;
use std::time::{Duration, Instant};

use crate::drive::{Shape, Subject};
use crate::workloads;

/// The sizes of graph that are compared.
const SMALL: usize = 1_000;
const LARGE: usize = 100_000;
/// The most that a node of a large graph may cost, compared with one of a small graph.
const GROWTH_MAX: f64 = 1.3;
/// Executions that are interrupted and resumed.
const N_INTERRUPTED: u32 = 1_000;
/// Nodes of the execution whose memory is measured.
const N_NODES: u32 = 10_000;

/// Measures everything and writes it as a table. Has to come first: the memory is a peak.
pub fn markdown(n_rounds: usize) -> String {
    let mut table = String::from("| Figure | measured | goal |\n| --- | ---: | ---: |\n");
    let mut row = |name: &str, measured: String, goal: &str| {
        writeln!(table, "| {name} | {measured} | {goal} |").expect("a string has room");
    };
    row("peak memory of a chain of 10,000 nodes", memory(), "");
    let recovery = workloads::recovery(N_INTERRUPTED);
    row("1,000 interrupted executions folded and resumed", format!("{recovery:.1?}"), "");
    for shape in [Shape::Chain, Shape::Fan, Shape::Layers] {
        let (small, large) = growth(shape, n_rounds);
        let word = if large / small <= GROWTH_MAX { "reached" } else { "**missed**" };
        let name = format!("deciding, {shape:?}: µs a node at 1,000 and at 100,000 nodes");
        let measured = format!("{small:.2}, {large:.2}, × {:.2}", large / small);
        row(&name, measured, &format!("× {GROWTH_MAX}, {word}"));
    }
    table
}

/// Microseconds per node of a small and of a large graph: medians of interleaved rounds.
fn growth(shape: Shape, n_rounds: usize) -> (f64, f64) {
    let (small, large) = (Subject::new(shape, SMALL), Subject::new(shape, LARGE));
    let mut times: [Vec<f64>; 2] = Default::default();
    for round in 0..=n_rounds {
        let sizes = [(&small, SMALL, LARGE / SMALL / 10), (&large, LARGE, 1)];
        for ((subject, n_nodes, n_runs), times) in sizes.into_iter().zip(&mut times) {
            let begin = Instant::now();
            for _ in 0..n_runs {
                subject.run();
            }
            let took = begin.elapsed();
            eprintln!("round {round} of {n_rounds}: {took:>9.1?}  {shape:?} of {n_nodes} nodes");
            if round > 0 {
                times.push(per_node(took, n_nodes * n_runs));
            }
        }
    }
    let [small, large] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    });
    (small, large)
}

fn per_node(took: Duration, n_nodes: usize) -> f64 {
    took.as_secs_f64() * 1e6 / n_nodes as f64
}

/// How much higher the process's peak is after a large execution than before it.
fn memory() -> String {
    let before = peak_kib();
    workloads::chain(N_NODES);
    match (before, peak_kib()) {
        (Some(before), Some(after)) => format!("{:.1} MiB", (after - before) as f64 / 1024.0),
        _ => "not measured on this system".to_owned(),
    }
}

/// The process's largest resident set so far, where the system tells.
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}
