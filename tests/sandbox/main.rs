//! Commands under control and in the sandbox, with real processes.

mod support;

mod battery;
mod control;
mod work;
