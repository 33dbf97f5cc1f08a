//! Cyanotype on this machine: the store, the local driver and the runners.

pub mod runner;
pub mod store;
