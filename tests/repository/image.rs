//! What the container's files set is a valid configuration. What they do is `.ci/docker`'s to show, in a real engine.

use outrigger::config::{Environment, Sources, load};
use serde_json::Value;

use super::support::read;

fn yaml(path: &str) -> Value {
    serde_saphyr::from_str(&read(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
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
    assert!(loaded.config.server.address().ip().is_unspecified());
    assert_eq!(loaded.config.server.address().port(), 4517);
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
