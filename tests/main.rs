//! Tests over the whole of Cyanotype, in one binary.

mod field;
mod tidy;
