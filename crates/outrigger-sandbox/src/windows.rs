//! What is Windows' own about running programs. What is decided is decided as data, on every system, and tested there;
//! `raw` carries it out.

mod line;
mod lookup;
mod plan;
#[cfg(windows)]
mod raw;

#[cfg(windows)]
mod used {
    use std::collections::BTreeMap;

    pub(crate) use super::line::{block, command_line};
    pub(crate) use super::lookup::{find, program_of};
    pub(crate) use super::plan::{JobPlan, TokenPlan};
    pub(crate) use super::raw::{
        Job, OwnToken, Streams, Token, Used, ask_to_end, copy_access_list, create_low, free_space,
        memory_of_the_machine, start, wait_for_id, wait_for_process,
    };

    /// Where the system is where a command's environment does not say it.
    const SYSTEM: &str = r"C:\Windows";

    /// Returns the path of `cmd.exe`, which runs files of commands.
    pub(crate) fn interpreter(environment: &BTreeMap<String, String>) -> String {
        let mut variables = environment.iter();
        let system = variables.find(|(name, _)| name.eq_ignore_ascii_case("SystemRoot"));
        let system = system.map_or(SYSTEM, |(_, system)| system.trim_end_matches('\\'));
        format!(r"{system}\System32\cmd.exe")
    }
}
#[cfg(windows)]
pub(crate) use used::*;
