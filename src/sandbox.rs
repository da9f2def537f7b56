//! The only door to files and processes for tools.

pub mod seen;
