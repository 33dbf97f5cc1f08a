
pub mod runner;
