//! The scheduler: what may happen to an execution, what did, and what should happen next.

pub mod action;
pub mod event;
pub mod input;
