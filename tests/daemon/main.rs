//! The daemon as a black box: the real binary, a real socket, a scripted HTTP provider.
//!
//! One file per story. A test scripts the provider, acts as a client, and looks at what came over
//! the wire and at what the provider was asked.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod acp;
mod support;

mod accounting;
mod admin;
mod approval;
mod approvals;
mod audit;
mod background;
mod bad_input;
mod bait;
mod budget;
mod by_hand;
mod cancel;
mod chaos;
mod client_tools;
mod commands;
mod compaction;
mod crowd;
mod custom;
mod documents;
mod endings;
mod exchange;
mod execute;
mod exposed;
mod faults;
#[cfg(target_os = "linux")]
mod first_process;
mod git;
#[cfg(target_os = "linux")]
mod homes;
mod hooks;
mod hosts;
mod images;
mod instructions;
mod kept;
mod layers;
mod lifecycle;
mod limits;
mod local;
mod locks;
mod loops;
mod mcp;
mod models;
mod native_compaction;
mod otlp;
mod output;
mod outputs;
mod projects;
mod proxies;
mod queue;
mod ran;
mod rates;
mod real_projects;
mod redaction;
mod resume;
mod roles;
mod run;
mod searches;
mod secrets;
mod session_commands;
mod session_files;
mod sessions;
mod settings;
mod skills;
mod slow;
mod status;
mod steering;
mod switching;
mod tasks;
mod telemetry;
mod terminal;
mod titles;
mod unconfigured;
mod undo;
mod users;
mod verdicts;
mod web_fetch;
mod workflows;
