//! The commands besides the daemon and the chat: look at the configuration, the machine, a daemon, the contract,
//! and the sessions that are kept.
//!
//! Each prints what it found and returns an exit code. Nothing here serves anybody.

mod admin;
mod doctor;
mod healthcheck;
mod schema;
mod sessions;
mod show;
mod token;

use std::net::SocketAddr;
use std::process::ExitCode;

use crate::config::{Loaded, Sources};
use crate::ready::{complain, exit, print, reachable};
use crate::sandbox::environment::search_path;
use crate::sandbox::programs::Programs;
pub use admin::admin;
pub use doctor::doctor;
pub use healthcheck::healthcheck;
pub use schema::schema;
pub use sessions::sessions;
pub use show::show;
pub use token::token;

fn exit_code(is_well: bool) -> ExitCode {
    ExitCode::from(match is_well {
        true => exit::OK,
        false => exit::FAILED,
    })
}

/// Returns where a daemon with this configuration is reached.
fn configured(loaded: &Loaded) -> Result<SocketAddr, String> {
    let address = loaded.config.server.address();
    match address.port() {
        0 => Err("server.port is 0, any free one; name the daemon with --url".to_owned()),
        _ => Ok(reachable(address)),
    }
}

/// Where the daemon looks for programs.
struct ProgramSearch {
    programs: Programs,
    /// The folders of `PATH` that programs are taken from.
    path: String,
}

impl ProgramSearch {
    fn new(loaded: &Loaded, sources: &Sources) -> Self {
        let project = loaded.config.project.own.iter();
        let roots = project.flat_map(|project| [&project.root, &project.central]);
        let roots = roots.filter_map(|root| crate::sandbox::canonicalize(root).ok());
        let programs = Programs::outside(roots.collect());
        let path = sources.environment.get("PATH").unwrap_or_default();
        let path = search_path(path, &|directory| programs.directory_is_trusted(directory));
        Self { programs, path }
    }
}
