//! Tests over the whole of Cyanotype, in one binary.

mod binary;
mod blueprints;
mod cli;
mod crashes;
mod definition_format;
mod field;
mod reports;
mod semantics;
mod sim;
mod tidy;
