//! A session.

pub mod feed;
pub mod log;
