//! Tests over the whole of Cyanotype, in one binary.

mod binary;
mod blueprints;
mod crashes;
mod field;
mod tidy;
