//! Cyanotype on this machine: the store, the local driver and the runners.

pub mod atomic_file;
pub mod runner;
pub mod store;
