//! Cyanotype on this machine: the store, the local driver, the runners, and the use cases that
//! windows and the command line offer. No window toolkit below this line.

pub mod app;
pub mod atomic_file;
pub mod clock;
pub mod driver;
pub mod exchange;
pub mod home;
pub mod library;
pub mod logging;
pub mod preflight;
pub mod roster;
pub mod runner;
pub mod schema;
pub mod store;
