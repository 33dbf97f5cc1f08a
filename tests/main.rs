//! Tests over the whole of Cyanotype, in one binary.

mod blueprints;
mod definition_format;
mod field;
mod tidy;
