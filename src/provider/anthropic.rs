//! Anthropic Messages.

mod blocks;
mod decode;
mod history;
mod usage;
