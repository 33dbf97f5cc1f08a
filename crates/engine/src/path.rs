//! Paths into values.

