//! Tests over the whole of Cyanotype, in one binary.

mod blueprints;
mod field;
mod tidy;
