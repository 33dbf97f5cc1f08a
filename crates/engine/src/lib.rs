//! The pure core of Cyanotype. It knows no clock, no thread, no file and no random source: time,
//! identities and results are arguments, so the same inputs give the same events on every machine.
//!
//! Read in this order: [`value`], [`definition`], [`plan`], [`scheduler`], [`journal`],
//! [`projection`].
#![deny(missing_docs)]

pub mod ids;
pub mod limits;
pub mod time;

pub mod path;
pub mod value;

pub mod condition;
pub mod failure;
pub mod payload;
pub mod retry;
pub mod template;

pub mod agent;
pub mod definition;
pub mod node;
pub mod plan;

pub mod journal;
pub mod projection;
pub mod scheduler;

pub mod announcement;
