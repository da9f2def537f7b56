//! `outrigger doctor`: what the daemon needs on this machine, what is missing and what to do.
//!
//! A check is an async function from [`Machine`] to [`Finding`]s; a new one is a line in [`examine`].
//! Checks change nothing and cost nothing: no model is asked, no file is written.

mod endpoints;
mod finding;
mod hooks;
mod layers;
mod place;
mod providers;
mod rules;
mod search;
mod store;
mod user_ids;
mod users;

use std::process::ExitCode;

use super::{complain, exit_code, print};
use crate::arguments::DoctorArguments;
use crate::config::{self, Loaded, Sources};
use crate::http::Clients;
use crate::provider::registry::Providers;
use finding::{Finding, State};

/// What checks look at.
struct Machine {
    sources: Sources,
    loaded: Loaded,
    providers: Providers,
    clients: Clients,
}

/// Checks the machine and prints a line for each finding; 1 where something does not work.
pub fn doctor(arguments: &DoctorArguments) -> ExitCode {
    if arguments.apparmor_profile {
        return exit_code(print(layers::PROFILE).is_ok());
    }
    let sources = arguments.sources();
    let findings = match config::load(&sources) {
        Err(errors) => errors.0.iter().map(unreadable).collect(),
        Ok(loaded) => match tokio::runtime::Runtime::new() {
            Ok(runtime) => runtime.block_on(examine(&Machine {
                providers: Providers::new(&loaded.config),
                clients: Clients::default(),
                sources,
                loaded,
            })),
            Err(error) => {
                complain(&format!("no runtime: {error}"));
                return exit_code(false);
            }
        },
    };
    let text = match arguments.json {
        true => format!("{:#}\n", finding::json(&findings)),
        false => finding::text(&findings) + "\n" + &finding::sum(&findings),
    };
    exit_code(print(&text).is_ok() && finding::is_well(&findings))
}

/// Runs every check; those that ask other machines side by side.
async fn examine(machine: &Machine) -> Vec<Finding> {
    // What the daemon would do first: an Ollama that nobody configured is a provider from then on.
    drop(machine.providers.detect().await);
    let (sandbox, store, users, port, providers, ollama, search, endpoints) = tokio::join!(
        place::sandbox(machine),
        store::store(machine),
        users::users(machine),
        place::port(machine),
        providers::providers(machine),
        providers::ollama(machine),
        search::searxng(machine),
        endpoints::endpoints(machine),
    );
    [
        configuration(machine),
        place::project(machine),
        place::temporary(),
        sandbox,
        store,
        users,
        port,
        providers,
        ollama,
        search,
        place::programs(machine),
        hooks::hooks(machine),
        rules::violations(machine),
        endpoints,
    ]
    .concat()
}

fn configuration(machine: &Machine) -> Vec<Finding> {
    // What is wrong with the project is the affair of its own check.
    let mut warnings = machine.loaded.warnings.clone();
    warnings.retain(|text| !text.starts_with(PROJECT_ROOT));
    if warnings.is_empty() {
        return vec![Finding::new(CONFIGURATION, State::Ok, "no errors")];
    }
    let finding = |text| Finding::new(CONFIGURATION, State::Warning, text).advise(config::HINT);
    warnings.into_iter().map(finding).collect()
}

/// What a warning about a folder that can be no project begins with.
const PROJECT_ROOT: &str = "project.root: ";

const CONFIGURATION: &str = "configuration";

fn unreadable(error: &config::ConfigError) -> Finding {
    Finding::new(CONFIGURATION, State::Failed, error.to_string())
        .advise("the other checks need a configuration; correct it first")
}

#[cfg(test)]
mod tests;
