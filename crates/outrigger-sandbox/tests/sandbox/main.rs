//! Commands under control and in the sandbox, with real processes. The other systems have nothing of what is tried here.

#![cfg(target_os = "linux")]

/// The program that is the helper.
const HELPER: &str = env!("CARGO_BIN_EXE_sandbox-helper");

#[cfg(test)]
mod support;

#[cfg(test)]
mod attempts;
#[cfg(test)]
mod battery;
#[cfg(test)]
mod caches;
#[cfg(test)]
mod control;
#[cfg(test)]
mod helper;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod longer;
#[cfg(test)]
mod network;
#[cfg(test)]
mod older;
#[cfg(test)]
mod outgoing;
#[cfg(test)]
mod pods;
#[cfg(test)]
mod quota;
#[cfg(test)]
mod ready;
#[cfg(test)]
mod repositories;
mod restored;
#[cfg(test)]
mod roots;
#[cfg(test)]
mod signals;
#[cfg(test)]
mod surroundings;
#[cfg(test)]
mod users;
#[cfg(test)]
mod work;
