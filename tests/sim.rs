//! The simulation: hundreds of random executions in random worlds, each reproducible from a seed.
//!
//! * `SIM_SEED=n` runs one seed only, `SIM_RUNS=n` so many, `CYANOTYPE_LONG=1` ten times as many.
//! * `SIM_TABLE=1` prints what the campaign has been through.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

pub mod case;
pub mod chaos;
mod condition;
mod coverage;
pub mod dice;
mod golden;
pub mod graphs;
pub mod invariants;
mod large;
mod model;
mod properties;
mod seeds;
pub mod world;

use chaos::Chaos;
use coverage::Coverage;
use dice::Dice;
use world::{Checked, World};

const RUNS: u64 = 500;
const RUNS_LONG: u64 = 5_000;
/// Recoveries tried for each seed whose graph is large; small ones recover from every prefix.
const RECOVERIES_OF_LARGE: usize = 6;
const NODES_RECOVERED_FROM_EVERYWHERE_MAX: usize = 12;

fn number_from_environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} must be a number, not {text:?}")))
}

fn seeds_to_run() -> Vec<u64> {
    if let Some(seed) = number_from_environment("SIM_SEED") {
        return vec![seed];
    }
    let is_long = std::env::var_os("CYANOTYPE_LONG").is_some();
    let runs = number_from_environment("SIM_RUNS");
    let runs = runs.unwrap_or(if is_long { RUNS_LONG } else { RUNS });
    seeds::SEEDS.iter().map(|(seed, _)| *seed).chain(0..runs).collect()
}

/// Runs one seed: a random case in a random world, the same once more, and recoveries from the
/// prefixes of its journal. The journal is left in `journal` whatever happens.
fn run_seed(seed: u64, journal: &mut String, coverage: &mut Coverage) -> Checked {
    let case = Rc::new(graphs::random_case(seed));
    let setup = Rc::new(case.setup(seed).map_err(|found| format!("does not compile: {found}"))?);
    let n_nodes = setup.plan.nodes.len();
    let new_world = || {
        let chaos = Chaos::random(&mut Dice::new(!seed), 2 * n_nodes);
        World::start(&case, &setup, chaos, seed)
    };
    let mut world = new_world()?;
    let result = catch_unwind(AssertUnwindSafe(|| world.drive()));
    *journal = world.journal_text();
    coverage.add(&world.coverage);
    result.map_err(|panic| format!("panicked: {}", panic_text(&*panic)))??;

    let mut again = new_world()?;
    again.drive()?;
    if again.journal_text() != *journal {
        return Err("the same seed gave another journal".to_owned());
    }
    let mut dice = Dice::new(seed);
    let n_units = world.units().len();
    let prefixes: Vec<usize> = if n_nodes <= NODES_RECOVERED_FROM_EVERYWHERE_MAX {
        (0..=n_units).collect()
    } else {
        (0..RECOVERIES_OF_LARGE).map(|_| dice.below(n_units + 1)).collect()
    };
    for n in prefixes {
        let recovered = World::recovered(&world, n, seed).and_then(|mut recovered| {
            let result = recovered.drive();
            coverage.add(&recovered.coverage);
            result.map_err(|problem| format!("{problem}\n{}", recovered.journal_text()))
        });
        recovered.map_err(|problem| format!("recovered from {n} units: {problem}"))?;
    }
    Ok(())
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

/// Runs seeds on all cores. Gives what they went through, and the problem and the journal of each
/// that failed.
fn campaign(seeds: &[u64]) -> (Coverage, BTreeMap<u64, (String, String)>) {
    let runs = on_all_cores(seeds, |seed| {
        let (mut journal, mut coverage) = (String::new(), Coverage::default());
        let run = catch_unwind(AssertUnwindSafe(|| run_seed(*seed, &mut journal, &mut coverage)));
        let run = run.unwrap_or_else(|panic| Err(panic_text(&*panic)));
        (coverage, run.err().map(|problem| (*seed, (problem, journal))))
    });
    let mut coverage = Coverage::default();
    let mut failed = BTreeMap::new();
    for (one, problem) in runs {
        coverage.add(&one);
        failed.extend(problem);
    }
    (coverage, failed)
}

/// Applies a function to every item, on as many threads as there are cores.
pub fn on_all_cores<T: Sync, R: Send>(items: &[T], apply: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    let n_threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..n_threads {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = apply(item);
                    results.lock().expect("nobody panics while holding it").push(result);
                }
            });
        }
    });
    results.into_inner().expect("nobody panics while holding it")
}

/// One line for each seed that failed, and all about the first.
fn report(failed: &BTreeMap<u64, (String, String)>) -> String {
    let mut report = String::new();
    for (seed, (problem, _)) in failed {
        let problem = problem.lines().next().unwrap_or_default();
        writeln!(report, "seed {seed}: {problem}").expect("a text takes everything");
    }
    let Some((seed, (problem, journal))) = failed.first_key_value() else { return report };
    let case = graphs::random_case(*seed);
    let definition = case.definition.to_json_pretty();
    write!(
        report,
        "\nseed {seed}: {problem}\n\
         repeat: SIM_SEED={seed} cargo test -p acceptance sim::random_executions\n\
         definition: {definition}\nstubs: {:#?}\njournal:\n{journal}",
        case.stubs
    )
    .expect("a text takes everything");
    report
}

#[test]
fn random_executions_keep_every_rule_whatever_goes_wrong() {
    let seeds = seeds_to_run();
    let (coverage, failed) = campaign(&seeds);
    if std::env::var_os("SIM_TABLE").is_some() {
        println!("{}", coverage.table());
    }
    let n_failed = failed.len();
    assert!(failed.is_empty(), "{n_failed} of {} seeds failed\n{}", seeds.len(), report(&failed));
    if seeds.len() as u64 >= RUNS {
        let missing = coverage.missing(&coverage::WANTED);
        assert!(missing.is_empty(), "the campaign never saw {missing:#?}");
    }
}
