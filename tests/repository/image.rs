//! The container's files say what they are meant to, and what they set is a valid configuration.

use figment::Figment;
use figment::providers::{Format as _, Yaml};
use outrigger::config::{Environment, Sources, load};
use serde_json::Value;

use super::support::{read, root};

fn yaml(path: &str) -> Value {
    Figment::from(Yaml::string(&read(path)))
        .extract()
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The instructions of the Dockerfile, continued lines joined, comments gone.
fn instructions() -> Vec<(String, String)> {
    let text = read("Dockerfile");
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .collect();
    lines
        .join("\n")
        .replace("\\\n", " ")
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(word, rest)| {
            (
                word.to_owned(),
                rest.split_whitespace().collect::<Vec<_>>().join(" "),
            )
        })
        .collect()
}

fn all<'i>(instructions: &'i [(String, String)], wanted: &str) -> Vec<&'i str> {
    instructions
        .iter()
        .filter(|(word, _)| word == wanted)
        .map(|(_, rest)| rest.as_str())
        .collect()
}

#[test]
fn the_image_is_built_in_stages_and_runs_as_nobody_special() {
    let instructions = instructions();
    let known = [
        "FROM",
        "WORKDIR",
        "COPY",
        "RUN",
        "USER",
        "VOLUME",
        "ENV",
        "EXPOSE",
        "HEALTHCHECK",
        "ENTRYPOINT",
    ];
    for (word, rest) in &instructions {
        assert!(known.contains(&word.as_str()), "{word} {rest}");
    }
    let from = all(&instructions, "FROM");
    assert_eq!(from.len(), 2);
    assert!(
        from.iter()
            .all(|image| image.contains(':') && !image.contains(":latest")),
        "{from:?}"
    );
    let toolchain = format!("rust:{}-", env!("CARGO_PKG_RUST_VERSION"));
    assert!(
        from[0].starts_with(&toolchain),
        "{from:?} builds with another Rust than Cargo.toml says"
    );
    assert_eq!(all(&instructions, "USER"), ["1000:1000"]);
    assert_eq!(all(&instructions, "COPY").len(), 2);
    assert_eq!(
        all(&instructions, "ENTRYPOINT"),
        [r#"["/usr/bin/tini", "--", "outrigger"]"#]
    );
    let healthcheck = all(&instructions, "HEALTHCHECK");
    assert!(
        healthcheck[0].ends_with(r#"CMD ["outrigger", "healthcheck"]"#),
        "{healthcheck:?}"
    );
    for package in ["bash", "ca-certificates", "git", "tini"] {
        assert!(
            instructions
                .iter()
                .any(|(word, rest)| word == "RUN" && rest.contains(package)),
            "{package}"
        );
    }
}

#[test]
fn the_images_environment_is_a_valid_configuration() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("project");
    std::fs::create_dir(&folder).unwrap();
    let of_image = instructions()
        .iter()
        .filter(|(word, _)| word == "ENV")
        .flat_map(|(_, rest)| rest.split(' ').map(str::to_owned).collect::<Vec<_>>())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap();
            (name.to_owned(), value.to_owned())
        })
        .collect::<Vec<_>>();
    let compose = yaml("compose.yaml");
    let of_compose = compose["services"]["outrigger"]["environment"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| (name.clone(), expanded(value.as_str().unwrap())));
    let environment: Environment = of_image
        .into_iter()
        .chain(of_compose)
        // The folders of the image are not on this machine.
        .map(|(name, value)| match name.as_str() {
            "OUTRIGGER_PROJECT__ROOT" => (name, folder.display().to_string()),
            "OUTRIGGER_PROJECT__CENTRAL" => (name, place.path().join("data").display().to_string()),
            _ => (name, value),
        })
        .collect();
    let sources = Sources {
        environment,
        working_directory: folder,
        home: Some(place.path().join("home")),
        ..Sources::default()
    };
    let loaded = load(&sources).unwrap_or_else(|errors| panic!("{errors}"));
    assert!(loaded.config.server.address.ip().is_unspecified());
    assert_eq!(loaded.config.server.address.port(), 4517);
    assert_eq!(
        loaded.config.chat.provider, "scripted",
        "no key is set, so nobody else can answer"
    );
    assert_eq!(
        loaded.config.tools.web_search.searxng_url.as_deref(),
        Some("http://searxng:8080")
    );
    assert!(loaded.token.is_some());
    assert!(loaded.config.server.console, "published to loopback alone");
}

/// `${NAME:-default}` as its default, `${NAME:?message}` as something.
fn expanded(value: &str) -> String {
    match value
        .strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'))
    {
        Some(variable) => match variable.split_once(":-") {
            Some((_, default)) => default.to_owned(),
            None => "0123456789abcdef0123456789abcdef".to_owned(),
        },
        None => value.to_owned(),
    }
}

#[test]
fn the_daemon_waits_for_a_search_engine_that_answers_in_json() {
    let compose = yaml("compose.yaml");
    let services = &compose["services"];
    let daemon = &services["outrigger"];
    assert_eq!(
        daemon["depends_on"]["searxng"]["condition"],
        "service_healthy"
    );
    assert!(
        services["searxng"]["healthcheck"]["test"][1]
            .as_str()
            .unwrap()
            .contains("/healthz")
    );
    assert_eq!(
        services["searxng"]["ports"],
        Value::Null,
        "SearXNG is reached by the daemon alone"
    );
    assert_eq!(daemon["ports"][0], "127.0.0.1:4517:4517");
    assert_eq!(
        services["ollama"]["profiles"],
        serde_json::json!(["ollama"])
    );
    assert_eq!(services["ollama"]["ports"], Value::Null);
    assert_eq!(
        daemon["extra_hosts"][0],
        "host.docker.internal:host-gateway"
    );
    assert_eq!(daemon["cap_drop"][0], "ALL");
    for volume in services["searxng"]["volumes"].as_array().unwrap() {
        let file = volume.as_str().unwrap().split(':').next().unwrap();
        assert!(root().join(file).is_file(), "{file}");
    }
    let settings = yaml("config/searxng/settings.yml");
    assert_eq!(
        settings["search"]["formats"],
        serde_json::json!(["html", "json"])
    );
    assert_eq!(settings["server"]["limiter"], false);
}
