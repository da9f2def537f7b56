//! What commands are told of the registries in the user's settings: their home is not the user's, so that a package manager
//! does not find these there. Variables of its own, and never a credential. Pure.

use reqwest::Url;

use crate::config::PackageManager;
use crate::sandbox::environment::is_secret;

/// Variables of the daemon's own environment in which such settings are, too. They are addresses.
pub const MANAGER_SETTINGS: [&str; 12] = [
    "NPM_CONFIG_REGISTRY",
    "npm_config_registry",
    "YARN_REGISTRY",
    "YARN_NPM_REGISTRY_SERVER",
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "UV_DEFAULT_INDEX",
    "UV_INDEX_URL",
    "UV_INDEX",
    "UV_EXTRA_INDEX_URL",
    "GOPROXY",
    "GOSUMDB",
];

/// A variable's name and value.
pub type Variable = (String, String);

/// Returns the variables for what a manager said of its settings.
///
/// `defaults` are its answers without the user's settings. What is the same there is left out: a variable counts more than
/// what a project's own file says.
pub(super) fn variables(
    manager: PackageManager,
    answers: &[String],
    defaults: &[String],
) -> Vec<Variable> {
    let answer = |at: usize| answers.get(at).map(|it| it.trim());
    // Where the default is not known, neither is whether this is it.
    let is_own = |at: usize, it: &str| {
        let default = defaults.get(at).map_or("", |it| it.trim());
        !default.is_empty() && default != it
    };
    let own = |at: usize| answer(at).filter(|it| is_own(at, it));
    let found = match manager {
        PackageManager::Npm => {
            let registry = |text: &str| {
                let settings: serde_json::Value = serde_json::from_str(text).ok()?;
                settings.get("registry")?.as_str().map(str::to_owned)
            };
            let default = defaults.first().and_then(|it| registry(it));
            let named = answer(0)
                .and_then(registry)
                .filter(|it| default.as_ref().is_some_and(|other| other != it));
            vec![("npm_config_registry", named.and_then(|it| plain(&it)))]
        }
        PackageManager::Pnpm => vec![("npm_config_registry", own(0).and_then(plain))],
        PackageManager::Yarn => vec![
            ("npm_config_registry", own(0).and_then(plain)),
            ("YARN_NPM_REGISTRY_SERVER", own(1).and_then(plain)),
        ],
        PackageManager::Pip => {
            let setting = |name: &str| answer(0).and_then(|it| pip(it, name));
            vec![
                ("PIP_INDEX_URL", setting("index-url")),
                ("PIP_EXTRA_INDEX_URL", setting("extra-index-url")),
            ]
        }
        PackageManager::Go => {
            let mut lines = answer(0).unwrap_or_default().lines();
            let proxies = lines.next().and_then(proxies);
            let database = lines.next().filter(|it| !it.contains("://"));
            vec![
                ("GOPROXY", proxies),
                ("GOSUMDB", database.map(str::to_owned)),
            ]
        }
        // By their files.
        PackageManager::Uv
        | PackageManager::Cargo
        | PackageManager::Maven
        | PackageManager::Gradle => Vec::new(),
    };
    let found = found
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    found.filter(is_harmless).collect()
}

/// Returns those for the registries in Cargo's settings. What replaces a registry there has no variable.
pub(super) fn of_cargo(settings: &toml::Table) -> Vec<Variable> {
    let registries = settings.get("registries").and_then(toml::Value::as_table);
    let named = registries.into_iter().flatten().filter_map(|(name, it)| {
        let index = it.get("index")?.as_str()?;
        let name = name.to_ascii_uppercase().replace('-', "_");
        Some((format!("CARGO_REGISTRIES_{name}_INDEX"), plain(index)?))
    });
    named.filter(is_harmless).collect()
}

/// Returns those for uv's indexes: the one in the place of its default, and others, some with names.
pub(super) fn of_uv(default: Option<&String>, others: &[String]) -> Vec<Variable> {
    let other = |index: &String| match index.split_once('=') {
        Some((name, address)) if !name.contains("://") => {
            plain(address).map(|address| format!("{name}={address}"))
        }
        _ => plain(index),
    };
    let others: Vec<String> = others.iter().filter_map(other).collect();
    let others = (!others.is_empty()).then(|| others.join(" "));
    let default = default.and_then(|it| plain(it));
    let found = [("UV_DEFAULT_INDEX", default), ("UV_INDEX", others)];
    let found = found.into_iter();
    found
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .filter(is_harmless)
        .collect()
}

/// What still looks like a secret is none of a command's business, as a token that is a part of a path.
fn is_harmless((name, value): &Variable) -> bool {
    let mut parts = value.split(['/', ' ']);
    let is_harmless = !parts.any(|part| is_secret(name, part));
    if !is_harmless {
        tracing::warn!(
            variable = name,
            "an address of a registry looks like a secret; commands are not told of it"
        );
    }
    is_harmless
}

/// Returns an address without what may be a credential; `None` for one that no command reaches.
fn plain(address: &str) -> Option<String> {
    // Cargo's word for an index that is not a repository.
    const SPARSE: &str = "sparse+";
    let (kind, address) = match address.strip_prefix(SPARSE) {
        Some(address) => (SPARSE, address),
        None => ("", address),
    };
    let mut url = Url::parse(address).ok()?;
    let host = url.host_str()?;
    let is_here = ["localhost", "127.0.0.1", "[::1]"].contains(&host);
    if is_here || !["http", "https"].contains(&url.scheme()) {
        return None;
    }
    url.set_username("").ok()?;
    url.set_password(None).ok()?;
    url.set_query(None);
    url.set_fragment(None);
    Some(format!("{kind}{url}"))
}

/// Returns a setting of pip's: that of its variable counts most, then that of the command `install`.
fn pip(answer: &str, name: &str) -> Option<String> {
    let said = |section: &str| {
        let begin = format!("{section}.{name}=");
        answer.lines().find_map(|line| line.strip_prefix(&begin))
    };
    let value = [":env:", "install", "global"].into_iter().find_map(said)?;
    // As Python writes a text; there may be several addresses in it.
    let value = value.trim_matches(['\'', '"']).replace("\\n", " ");
    let plain: Option<Vec<String>> = value.split_whitespace().map(plain).collect();
    plain.map(|it| it.join(" ")).filter(|it| !it.is_empty())
}

/// Returns Go's list of proxies, between which commas and bars mean different things.
fn proxies(list: &str) -> Option<String> {
    let parts = list.split_inclusive([',', '|']).map(|part| {
        let proxy = part.trim_end_matches([',', '|']);
        let end = part.get(proxy.len()..).unwrap_or_default();
        match proxy.contains("://") {
            true => plain(proxy).map(|it| it + end),
            false => Some(part.to_owned()),
        }
    });
    parts
        .collect::<Option<String>>()
        .filter(|it| !it.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        manager: PackageManager,
        answers: &[&str],
        defaults: &[&str],
        expected: &[(&str, &str)],
    ) {
        let owned = |texts: &[&str]| texts.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let found = variables(manager, &owned(answers), &owned(defaults));
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        assert_eq!(found, expected, "{answers:?}");
    }

    #[test]
    fn commands_are_told_what_the_user_set_and_no_credential() {
        use PackageManager::{Go, Npm, Pip, Pnpm, Yarn};
        let corp = "{\"registry\": \"https://u:p@npm.corp.example/x/?t=1\", \"@a:registry\": \"https://a.example\"}";
        let default = "{\"registry\": \"https://registry.example/\"}";
        let npm = [("npm_config_registry", "https://npm.corp.example/x/")];
        check(Npm, &[corp], &[default], &npm);
        check(Npm, &[default], &[default], &[]);
        check(Npm, &[corp], &[], &[]);
        check(Pnpm, &["https://npm.corp.example/"], &[""], &[]);
        check(Npm, &["npm error"], &[default], &[]);
        check(
            Pnpm,
            &["https://npm.corp.example/x/\n"],
            &["https://registry.example/\n"],
            &npm,
        );
        let yarn = [("YARN_NPM_REGISTRY_SERVER", "https://b.example/")];
        check(
            Yarn,
            &["Usage Error", "https://b.example"],
            &["Usage", "https://a.example"],
            &yarn,
        );
        check(
            Yarn,
            &["https://y.example", "undefined"],
            &["https://y.example", "undefined"],
            &[],
        );
        let set = "global.cert='/c'\nglobal.extra-index-url='\\nhttps://u:p@b.example/s\\nhttps://c.example/s'\nglobal.index-url='https://a.example/simple'\n";
        let extra = (
            "PIP_EXTRA_INDEX_URL",
            "https://b.example/s https://c.example/s",
        );
        check(
            Pip,
            &[set, "help"],
            &[],
            &[("PIP_INDEX_URL", "https://a.example/simple"), extra],
        );
        let more = format!(":env:.index-url='https://u@env.example/s'\n{set}");
        check(
            Pip,
            &[&more],
            &[],
            &[("PIP_INDEX_URL", "https://env.example/s"), extra],
        );
        check(Pip, &["global.cert='/c'\n"], &[], &[]);
        let go = [
            ("GOPROXY", "https://a.example/,https://b.example/|direct"),
            ("GOSUMDB", "off"),
        ];
        check(
            Go,
            &["https://u:p@a.example,https://b.example|direct\noff\n"],
            &[],
            &go,
        );
        check(Go, &["off\n"], &[], &[("GOPROXY", "off")]);
        // Loopback is the conversation's own; a token may be in a path.
        for address in [
            "http://localhost:4873/",
            "file:///srv",
            "https://a.example/ghp_0123456789abcdefghijABCDEFGHIJ012345/s",
        ] {
            check(Pnpm, &[address], &["https://registry.example/"], &[]);
        }
    }

    #[test]
    fn registries_of_cargo_are_told_without_their_tokens() {
        let settings = "[registries.a-b]\nindex = \"sparse+https://u:p@a.example/index/\"\ntoken = \"word\"\n[registries.ssh]\nindex = \"ssh://git@b.example/index\"\n[source.crates-io]\nreplace-with = \"c\"\n";
        let settings: toml::Table = settings.parse().unwrap();
        let expected = (
            "CARGO_REGISTRIES_A_B_INDEX",
            "sparse+https://a.example/index/",
        );
        assert_eq!(
            of_cargo(&settings),
            [(expected.0.to_owned(), expected.1.to_owned())]
        );
    }
}
