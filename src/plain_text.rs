//! A session as lines of text: what is shown of each frame, and what a typed line means. Pure.
//!
//! The terminal client and sockets in text mode are two ways to read and type the same.

pub(crate) mod budget;
mod folds;
pub(crate) mod frame;
pub(crate) mod line;
pub(crate) mod question;
pub(crate) mod render;
pub(crate) mod sampling;
pub(crate) mod style;
pub(crate) mod text;
pub(crate) mod trust;

pub(crate) use text::{exposed, exposed_line};
