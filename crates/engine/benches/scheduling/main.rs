//! What a decision costs, without any disk: whole executions of echo nodes. The cost of a node must
//! not depend on the size of the graph, so compare the items per second of the two sizes.
//!
//! `cargo bench -p cyanotype-engine --bench scheduling`

use divan::Bencher;
use divan::counter::ItemsCount;

mod drive;

use drive::{Shape, Subject};

fn main() {
    divan::main();
}

const SIZES: [usize; 2] = [1_000, 100_000];

#[divan::bench(args = SIZES, sample_count = 10)]
fn chain(bencher: Bencher<'_, '_>, n_nodes: usize) {
    run(bencher, Shape::Chain, n_nodes);
}

#[divan::bench(args = SIZES, sample_count = 10)]
fn fan(bencher: Bencher<'_, '_>, n_nodes: usize) {
    run(bencher, Shape::Fan, n_nodes);
}

#[divan::bench(args = SIZES, sample_count = 10)]
fn layers(bencher: Bencher<'_, '_>, n_nodes: usize) {
    run(bencher, Shape::Layers, n_nodes);
}

fn run(bencher: Bencher<'_, '_>, shape: Shape, n_nodes: usize) {
    let subject = Subject::new(shape, n_nodes);
    bencher.counter(ItemsCount::new(n_nodes)).bench(|| subject.run());
}
