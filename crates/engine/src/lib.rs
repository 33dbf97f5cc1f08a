//! The pure core of Cyanotype. It knows no clock, no thread, no file and no random source: time,
//! identities and results are arguments, so the same inputs give the same events on every machine.
//!
//! Read in this order: [`value`], [`definition`], [`plan`], [`scheduler`], [`journal`],
//! [`projection`].

pub mod value;
pub mod path;
pub mod condition;
