//! The hosts that the user's own settings of a package manager name, and what commands are told of these settings. They are
//! asked of the manager, or read from its files: no address of a registry is in this program.

mod files;
mod variables;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use futures::future::join_all;
use reqwest::Url;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::time::timeout;

use super::{HostEntry, PackageManager};
pub use variables::{MANAGER_SETTINGS, Variable};

/// How long a manager may take to say what its settings are.
const PATIENCE: Duration = Duration::from_secs(15);

/// Most bytes that are read of what a manager or a file of its says.
const MAX_TEXT: u64 = 1024 * 1024;

/// Most hosts of one manager.
const MAX_HOSTS: usize = 256;

/// Most variables for one manager.
const MAX_VARIABLES: usize = 64;

/// What the user's package managers are asked with.
#[derive(Debug, Default)]
pub struct Managers {
    /// Those whose program is the user's and not the project's.
    pub trusted: Vec<PackageManager>,
    /// The folders of programs, as a variable.
    pub path: Option<String>,
    /// Where the user's settings are.
    pub home: Option<PathBuf>,
    /// Of the daemon's own environment, what is in [`MANAGER_SETTINGS`].
    pub environment: Vec<Variable>,
}

/// What a manager's settings come to.
#[derive(Debug, Default)]
pub struct Registries {
    /// The hosts that they name.
    pub hosts: Vec<HostEntry>,
    /// What a command is told of them, which has another home.
    pub variables: Vec<Variable>,
}

/// Returns what a manager's settings come to; nothing where it is not there or does not say.
///
/// Runs the manager, outside of the sandbox: it is the user's program, and reads the user's own settings.
pub async fn registries(manager: PackageManager, with: &Managers) -> Registries {
    let (texts, defaults) = tokio::join!(answers(manager, with), defaults(manager, with));
    let mut variables = variables::variables(manager, &texts, &defaults);
    let mut hosts: Vec<HostEntry> = texts.iter().flat_map(|it| found(manager, it)).collect();
    if let Some(home) = with.home.clone() {
        let environment = with.environment.clone();
        let read = move || files::said(manager, &home, &environment);
        let said = tokio::task::spawn_blocking(read).await.unwrap_or_default();
        hosts.extend(urls(said.addresses.lines()));
        variables.extend(said.variables);
    }
    hosts.sort_by_key(ToString::to_string);
    hosts.dedup();
    hosts.truncate(MAX_HOSTS);
    variables.truncate(MAX_VARIABLES);
    let named: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    match named.is_empty() {
        true => tracing::warn!(
            "tools.bash.hosts: the settings of {} name no host, or it is not installed; the user is asked for each host that it needs",
            manager.name()
        ),
        false => {
            let told: Vec<&String> = variables.iter().map(|(name, _)| name).collect();
            tracing::info!(manager = manager.name(), hosts = ?named, variables = ?told, "hosts of tools.bash.hosts");
        }
    }
    Registries { hosts, variables }
}

/// Returns the command lines that have a manager print its settings.
fn questions(manager: PackageManager) -> &'static [&'static [&'static str]] {
    match manager {
        PackageManager::Npm => &[&["config", "list", "--json"]],
        PackageManager::Pnpm => &[&["config", "get", "registry"]],
        // The second is for Yarn 2 and later.
        PackageManager::Yarn => &[
            &["config", "get", "registry"],
            &["config", "get", "npmRegistryServer"],
        ],
        // The default is in the help alone.
        PackageManager::Pip => &[&["config", "list"], &["install", "--help"]],
        PackageManager::Go => &[&["env", "GOPROXY", "GOSUMDB"]],
        // The default is in the help alone.
        PackageManager::Uv => &[&["pip", "install", "--help"]],
        PackageManager::Cargo | PackageManager::Maven | PackageManager::Gradle => &[],
    }
}

/// Returns what the manager says of the user's settings: a text for each question, empty where it did not answer.
async fn answers(manager: PackageManager, with: &Managers) -> Vec<String> {
    match &with.home {
        Some(home) => ask_all(manager, with, home, &with.environment).await,
        None => Vec::new(),
    }
}

/// Returns what it says where there are no settings of the user's, for those that do not tell one from the other.
async fn defaults(manager: PackageManager, with: &Managers) -> Vec<String> {
    let is_asked = match manager {
        PackageManager::Npm | PackageManager::Pnpm | PackageManager::Yarn => true,
        PackageManager::Pip
        | PackageManager::Uv
        | PackageManager::Go
        | PackageManager::Cargo
        | PackageManager::Maven
        | PackageManager::Gradle => false,
    };
    let (Some(home), true, Ok(empty)) = (&with.home, is_asked, tempfile::tempdir()) else {
        return Vec::new();
    };
    // Corepack has there what it runs.
    let caches = home.join(".cache").display().to_string();
    let caches = [("XDG_CACHE_HOME".to_owned(), caches)];
    ask_all(manager, with, empty.path(), &caches).await
}

async fn ask_all(
    manager: PackageManager,
    with: &Managers,
    home: &Path,
    environment: &[Variable],
) -> Vec<String> {
    let questions = questions(manager).iter();
    let asked = questions.map(|arguments| ask(manager, arguments, with, home, environment));
    let answers = join_all(asked).await.into_iter();
    answers.map(Option::unwrap_or_default).collect()
}

async fn ask(
    manager: PackageManager,
    arguments: &[&str],
    with: &Managers,
    home: &Path,
    environment: &[Variable],
) -> Option<String> {
    if !with.trusted.contains(&manager) {
        return None;
    }
    let mut asked = Command::new(manager.name())
        .args(arguments)
        .env_clear()
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .env("PATH", with.path.as_deref()?)
        .env("HOME", home)
        // Not the project, whose settings are not the user's.
        .current_dir(home)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .ok()?;
    let mut text = Vec::new();
    let mut output = asked.stdout.take()?.take(MAX_TEXT);
    timeout(PATIENCE, output.read_to_end(&mut text))
        .await
        .ok()?
        .ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Returns the hosts in what a manager says of registries.
fn found(manager: PackageManager, text: &str) -> Vec<HostEntry> {
    match manager {
        PackageManager::Npm => urls(text.lines().filter(|line| line.contains("registry\""))),
        PackageManager::Pnpm | PackageManager::Yarn => urls(text.lines()),
        PackageManager::Cargo | PackageManager::Maven | PackageManager::Gradle => Vec::new(),
        PackageManager::Uv => urls(options(text, &["default-index"])),
        PackageManager::Pip => {
            // A setting is a line, of `global`, of a command or of the environment.
            let settings = text.lines().filter(|line| {
                let key = line.split('=').next().unwrap_or_default();
                key.ends_with(".index-url") || key.ends_with(".extra-index-url")
            });
            let options = options(text, &["index-url", "extra-index-url"]);
            urls(settings.chain(options))
        }
        PackageManager::Go => {
            let mut hosts = urls(text.split([',', '|', '\n', ' ']));
            // A database of checksums is a name, with its key behind it or not.
            let databases = text.lines().filter(|line| !line.contains("://"));
            let names = databases.filter_map(|line| line.split(['+', ' ', ',']).next());
            hosts.extend(names.filter_map(name));
            hosts
        }
    }
}

/// Returns what the help of a program says of these options.
fn options<'a>(help: &'a str, names: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    // Each is a part, whose lines are broken anywhere.
    let parts = help.split(" --");
    parts.filter(|part| names.iter().any(|name| part.starts_with(name)))
}

fn urls<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<HostEntry> {
    let mut hosts = Vec::new();
    for text in texts {
        for (at, _) in text.match_indices("://") {
            let rest = text.get(at + 3..).unwrap_or_default();
            let is_end = |it: char| it.is_whitespace() || "\"'),;}/<>".contains(it);
            let authority = rest.split(is_end).next().unwrap_or_default();
            let url = Url::parse(&format!("https://{authority}")).ok();
            let host = url.as_ref().and_then(Url::host_str);
            hosts.extend(host.and_then(name));
        }
    }
    hosts
}

fn name(host: &str) -> Option<HostEntry> {
    match HostEntry::parse(host) {
        Ok(entry @ HostEntry::Name(_)) => Some(entry),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_found_in_what_managers_say() {
        let help = "  -i, --index-url <url>       Base URL of the Python Package Index (default\n                              https://pypi.example/simple). See https://docs.example\n  --no-index                  Ignore, see https://other.example\n  --extra-index-url <url>     Extra URLs\n";
        for (manager, text, expected) in [
            (
                PackageManager::Npm,
                "{\n  \"registry\": \"https://registry.example/\",\n  \"@a:registry\": \"https://npm.corp.example:8443/x/\",\n  \"init\": \"https://other.example\"\n}",
                &["registry.example", "npm.corp.example"][..],
            ),
            (
                PackageManager::Pnpm,
                "https://user:word@registry.example/\n",
                &["registry.example"],
            ),
            (PackageManager::Yarn, "undefined\n", &[]),
            (PackageManager::Pip, help, &["pypi.example", "docs.example"]),
            (
                PackageManager::Pip,
                "global.cert='/etc/ssl'\nglobal.extra-index-url='https://b.example/simple'\nglobal.index-url='https://a.example/simple'\n",
                &["b.example", "a.example"],
            ),
            (
                PackageManager::Go,
                "https://proxy.example,https://b.example|direct\nsum.example+033de0ae+Ac4\n",
                &["proxy.example", "b.example", "sum.example"],
            ),
            (PackageManager::Go, "direct\noff\n", &[]),
            (
                PackageManager::Uv,
                "      --index <INDEX>\n          See https://no.example\n      --default-index <DEFAULT_INDEX>\n          The default (by default:\n          <https://pypi.example/simple>) [env: X]\n",
                &["pypi.example"],
            ),
            // Not a registry of a private network without a dot, nor an address.
            (
                PackageManager::Npm,
                "\"registry\": \"http://localhost:4873/\"\n\"registry\": \"http://10.0.0.7/\"",
                &[],
            ),
        ] {
            let hosts: Vec<String> = found(manager, text)
                .iter()
                .map(ToString::to_string)
                .collect();
            assert_eq!(hosts, expected, "{text}");
        }
    }
}
