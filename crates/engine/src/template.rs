//! Bindings: templates over the values an execution knows.

/// A template that was parsed.
#[derive(Clone, Debug)]
pub struct Template;
