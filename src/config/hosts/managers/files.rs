//! What package managers' own files say of registries, where the manager itself cannot be asked. Does file I/O.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use toml::{Table, Value};

use super::variables::{self, Variable};
use super::{MAX_TEXT, PackageManager};

/// Most registries of Cargo's, and scripts of Gradle's, that are looked at.
const MAX_FILES: usize = 64;

/// What files say.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// Addresses of registries, each on a line.
    pub(super) addresses: String,
    /// What commands are told of them.
    pub(super) variables: Vec<Variable>,
}

/// Reads a manager's files in the user's home; `environment` has more settings.
pub(super) fn said(manager: PackageManager, home: &Path, environment: &[Variable]) -> Said {
    let addresses = match manager {
        PackageManager::Cargo => return cargo(home),
        PackageManager::Uv => return uv(home, environment),
        PackageManager::Maven => maven(&read(&home.join(".m2/settings.xml"))),
        PackageManager::Gradle => gradle(home),
        PackageManager::Npm
        | PackageManager::Pnpm
        | PackageManager::Yarn
        | PackageManager::Pip
        | PackageManager::Go => String::new(),
    };
    Said {
        addresses,
        variables: Vec::new(),
    }
}

/// The registries in use, and those of the settings.
fn cargo(home: &Path) -> Said {
    let cargo = home.join(".cargo");
    let mut texts = Vec::new();
    let indices = std::fs::read_dir(cargo.join("registry/index"));
    for index in indices.into_iter().flatten().flatten().take(MAX_FILES) {
        // Such as `index.crates.io-1949cf8c6b5b557f`.
        if let Some(host) = index
            .file_name()
            .to_str()
            .and_then(|it| it.rsplit_once('-'))
        {
            texts.push(format!("https://{}", host.0));
        }
        texts.push(read(&index.path().join("config.json")));
    }
    // Cargo takes the first where both are there: <https://doc.rust-lang.org/cargo/reference/config.html>, 2026-11-23.
    let settings = ["config", "config.toml"].map(|name| read(&cargo.join(name)));
    let settings = settings.iter().find(|text| !text.is_empty());
    let settings: Option<Table> = settings.and_then(|text| text.parse().ok());
    for part in ["registries", "registry", "source"] {
        if let Some(value) = settings.as_ref().and_then(|it| it.get(part)) {
            texts.extend(addresses(value));
        }
    }
    Said {
        addresses: texts.join("\n"),
        variables: settings.as_ref().map_or_else(Vec::new, variables::of_cargo),
    }
}

/// Returns the addresses of registries in a part of Cargo's settings.
fn addresses(value: &Value) -> Vec<String> {
    let Some(table) = value.as_table() else {
        return Vec::new();
    };
    let named = table.iter().map(|(key, value)| match value.as_str() {
        Some(text) if ["index", "registry"].contains(&key.as_str()) => vec![text.to_owned()],
        _ => addresses(value),
    });
    named.flatten().collect()
}

/// The indexes of uv's settings, which knows nothing of pip's: <https://docs.astral.sh/uv/concepts/indexes/>, 2026-11-28.
fn uv(home: &Path, environment: &[Variable]) -> Said {
    let settings = read(&home.join(".config/uv/uv.toml"));
    let settings: Table = settings.parse().unwrap_or_default();
    let variables = |wanted: [&'static str; 2]| {
        let set = environment.iter();
        let set = set.filter(move |(name, _)| wanted.contains(&name.as_str()));
        set.flat_map(|(_, value)| value.split_whitespace().map(str::to_owned))
    };
    let mut defaults: Vec<String> = variables(["UV_DEFAULT_INDEX", "UV_INDEX_URL"]).collect();
    let mut others: Vec<String> = variables(["UV_INDEX", "UV_EXTRA_INDEX_URL"]).collect();
    let listed = settings.get("index").and_then(Value::as_array);
    for index in listed.into_iter().flatten() {
        let text = |key: &str| index.get(key).and_then(Value::as_str);
        let Some(url) = text("url") else { continue };
        match (index.get("default"), text("name")) {
            (Some(Value::Boolean(true)), _) => defaults.push(url.to_owned()),
            (_, Some(name)) => others.push(format!("{name}={url}")),
            (_, None) => others.push(url.to_owned()),
        }
    }
    let text = |value: &Value| value.as_str().map(str::to_owned);
    defaults.extend(settings.get("index-url").and_then(text));
    let more = settings.get("extra-index-url").and_then(Value::as_array);
    others.extend(more.into_iter().flatten().filter_map(text));
    Said {
        addresses: [defaults.as_slice(), &others].concat().join("\n"),
        variables: variables::of_uv(defaults.first(), &others),
    }
}

/// The mirrors and repositories of Maven's settings; which one it takes without any, no file says.
fn maven(settings: &str) -> String {
    const END: &str = "-->";
    let mut parts = settings.split("<!--");
    let first = parts.next().into_iter();
    // Behind the end of each comment.
    let rest = parts.filter_map(|part| part.split_once(END).map(|(_, rest)| rest));
    let text: String = first.chain(rest).collect();
    let urls = text.split("<url>").skip(1);
    let urls = urls.filter_map(|it| it.split("</url>").next());
    urls.collect::<Vec<_>>().join("\n")
}

/// Lines of Gradle's scripts of the user that name a repository. Each build names its own besides.
fn gradle(home: &Path) -> String {
    let gradle = home.join(".gradle");
    let scripts = std::fs::read_dir(gradle.join("init.d"));
    let scripts = scripts.into_iter().flatten().flatten().take(MAX_FILES);
    let scripts = scripts.map(|script| script.path());
    let is_script = |path: &std::path::PathBuf| {
        let name = path.to_string_lossy();
        name.ends_with(".gradle") || name.ends_with(".gradle.kts")
    };
    let first = ["init.gradle", "init.gradle.kts"].map(|name| gradle.join(name));
    let texts = first.into_iter().chain(scripts).filter(is_script);
    let texts: Vec<String> = texts.map(|path| read(&path)).collect();
    let lines = texts.iter().flat_map(|text| text.lines());
    let names_one = |line: &&str| {
        let line = line.trim_start();
        !line.starts_with(['/', '*']) && (line.contains("url") || line.contains("maven"))
    };
    lines.filter(names_one).collect::<Vec<_>>().join("\n")
}

fn read(path: &Path) -> String {
    let mut text = Vec::new();
    if let Ok(file) = File::open(path) {
        // What cannot be read says nothing.
        file.take(MAX_TEXT)
            .read_to_end(&mut text)
            .map_or_else(drop, drop);
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::super::urls;
    use super::*;

    #[test]
    fn the_registries_of_cargos_settings_are_found_in_each_form() {
        let home = tempfile::tempdir().unwrap();
        let cargo_home = home.path().join(".cargo");
        std::fs::create_dir_all(cargo_home.join("registry/index/index.example-0123")).unwrap();
        let settings = "[registries]\na = { index = \"sparse+https://a.example/index/\" }\n[registries.b]\nindex = \"https://b.example/x\"\ntoken = \"https://no.example\"\n[source.c]\nregistry = 'https://c.example'\n[net]\nindex = 'https://other.example'\n";
        for name in ["config.toml", "config"] {
            std::fs::write(cargo_home.join(name), settings).unwrap();
            let mut hosts: Vec<String> = urls(cargo(home.path()).addresses.lines())
                .iter()
                .map(ToString::to_string)
                .collect();
            hosts.sort();
            let expected = ["a.example", "b.example", "c.example", "index.example"];
            assert_eq!(hosts, expected, "{name}");
            std::fs::remove_file(cargo_home.join(name)).unwrap();
        }
        std::fs::write(cargo_home.join("config.toml"), settings).unwrap();
        std::fs::write(cargo_home.join("config"), "[registries]\n").unwrap();
        assert!(!cargo(home.path()).addresses.contains("a.example"));
    }

    #[test]
    fn the_indexes_of_uvs_settings_are_found_and_told() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(uv(home.path(), &[]).variables, []);
        let settings = home.path().join(".config/uv");
        std::fs::create_dir_all(&settings).unwrap();
        let text = "extra-index-url = [\"https://u:p@c.example/simple\"]\n[[index]]\nname = \"ours\"\nurl = \"https://a.example/simple\"\n[[index]]\nurl = \"https://b.example/simple\"\ndefault = true\n";
        std::fs::write(settings.join("uv.toml"), text).unwrap();
        let said = uv(home.path(), &[]);
        let named = |it: &str| it.to_owned();
        let others = named("ours=https://a.example/simple https://c.example/simple");
        let default = (named("UV_DEFAULT_INDEX"), named("https://b.example/simple"));
        let others = (named("UV_INDEX"), others);
        assert_eq!(said.variables, [default, others.clone()]);
        assert_eq!(urls(said.addresses.lines()).len(), 3);
        // A variable counts more than the file.
        let set = (named("UV_INDEX_URL"), named("https://d.example/simple"));
        let default = (named("UV_DEFAULT_INDEX"), set.1.clone());
        assert_eq!(uv(home.path(), &[set]).variables, [default, others]);
    }

    #[test]
    fn repositories_of_maven_and_gradle_are_found() {
        let hosts = |said: Said| {
            let hosts = urls(said.addresses.lines()).into_iter();
            hosts.map(|it| it.to_string()).collect::<Vec<_>>()
        };
        let home = tempfile::tempdir().unwrap();
        for (folder, name, text) in [
            (
                ".m2",
                "settings.xml",
                "<settings xmlns=\"http://maven.example/SETTINGS/1.0.0\"><!-- <url>https://no.example</url> -->\n<mirror><url>https://a.example/maven</url></mirror><password>https://secret.example</password><repository>\n<url>\nhttps://b.example</url></repository></settings>",
            ),
            (
                ".gradle",
                "init.gradle",
                "repositories {\n  // maven { url 'https://no.example' }\n  maven { url 'https://c.example/x' }\n}\n",
            ),
            (
                ".gradle/init.d",
                "a.gradle.kts",
                "val docs = \"https://no.example\"\nmaven(\"https://d.example\")\n",
            ),
            (".gradle/init.d", "readme.txt", "maven https://no.example\n"),
        ] {
            let folder = home.path().join(folder);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(name), text).unwrap();
        }
        let of = |manager| hosts(said(manager, home.path(), &[]));
        assert_eq!(of(PackageManager::Maven), ["a.example", "b.example"]);
        assert_eq!(of(PackageManager::Gradle), ["c.example", "d.example"]);
        assert!(of(PackageManager::Npm).is_empty());
    }
}
