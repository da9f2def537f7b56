//! Anthropic Messages.

mod blocks;
mod cache;
mod capabilities;
mod content;
mod decode;
mod history;
mod ids;
mod request;
mod thinking;
mod usage;
