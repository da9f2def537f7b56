//! The only door to files and processes for tools.

pub mod deny;
pub mod paths;
pub mod seen;
