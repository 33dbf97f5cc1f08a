//! How executions are shown.

pub mod attempts;
pub mod duration;
pub mod frame;
pub mod live;
pub mod node;
pub mod plain;
pub mod result;
pub mod summary;
