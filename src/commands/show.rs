//! `outrigger config show`: each value in force with where it came from.

use std::process::ExitCode;

use futures::future::join_all;
use serde_json::Value;

use super::{ProgramSearch, complain, exit_code, print};
use crate::arguments::ShowArguments;
use crate::config::{
    self, HostEntry, Loaded, MANAGER_SETTINGS, Managers, Origin, PackageManager, Shown, Sources,
    registries,
};
use crate::ready::exit;

/// Prints the configuration, secrets masked; what is wrong with it goes to stderr.
pub fn show(arguments: &ShowArguments) -> ExitCode {
    let sources = arguments.config.sources();
    let loaded = match config::load(&sources) {
        Ok(loaded) => loaded,
        Err(errors) => {
            complain(&errors.to_string());
            return ExitCode::from(exit::CONFIGURATION);
        }
    };
    for warning in &loaded.warnings {
        complain(warning);
    }
    let mut values = match hosts_of_managers(&loaded, &sources) {
        Ok(hosts) => hosts,
        Err(error) => {
            complain(&format!(
                "the package managers of tools.bash.hosts cannot be asked for their hosts: {error}"
            ));
            return exit_code(false);
        }
    };
    values.extend(loaded.values.list());
    values.sort_by(|a, b| a.key.cmp(&b.key));
    let text = match arguments.json {
        true => format!("{:#}\n", config::json(&values)),
        false => config::text(&values),
    };
    exit_code(print(&text).is_ok())
}

/// Returns the hosts that each package manager of `tools.bash.hosts` stands for, and what commands are told of its settings.
/// Asks it, as the daemon does.
fn hosts_of_managers(loaded: &Loaded, sources: &Sources) -> std::io::Result<Vec<Shown>> {
    let entries = loaded.config.tools.bash.hosts.iter();
    let managers = entries.filter_map(|entry| match entry {
        HostEntry::Manager(manager) => Some(*manager),
        HostEntry::Name(_) | HostEntry::Below(_) | HostEntry::Address(_) => None,
    });
    let mut managers: Vec<PackageManager> = managers.collect();
    managers.sort_by_key(|manager| manager.name());
    managers.dedup();
    if managers.is_empty() {
        return Ok(Vec::new());
    }
    let ProgramSearch { programs, path } = ProgramSearch::new(loaded, sources);
    let is_trusted = |manager: &PackageManager| programs.is_trusted(&path, manager.name());
    let with = Managers {
        trusted: managers.iter().copied().filter(is_trusted).collect(),
        path: Some(path),
        home: sources.home.clone(),
        environment: MANAGER_SETTINGS
            .iter()
            .filter_map(|name| {
                Some((
                    (*name).to_owned(),
                    sources.environment.get(name)?.to_owned(),
                ))
            })
            .collect(),
    };
    let asked = managers.iter().map(|manager| registries(*manager, &with));
    let found = tokio::runtime::Runtime::new()?.block_on(join_all(asked));
    let mut shown = Vec::new();
    for (manager, found) in managers.iter().zip(found) {
        let name = manager.name();
        let mut show = |what: &str, value: Value| {
            shown.push(Shown {
                key: format!("tools.bash.hosts ({what})"),
                value,
                origin: Origin::Derived("its own settings on this machine"),
            });
        };
        let hosts = found.hosts.iter();
        show(name, hosts.map(ToString::to_string).collect());
        if !found.variables.is_empty() {
            let told = found.variables.iter();
            let told = told.map(|(name, value)| format!("{name}={value}"));
            show(&format!("{name}, as commands are told"), told.collect());
        }
    }
    Ok(shown)
}
