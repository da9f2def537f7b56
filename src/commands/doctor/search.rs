//! Checks of SearXNG, by the errors that self-hosted ones have most often.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use super::Machine;
use super::finding::{Finding, State};
use crate::config::Origin;
use crate::tool::web_search;

/// How long it may take to say which engines it has.
const ENGINES_TIME: Duration = Duration::from_secs(5);

const CHECK: &str = "searxng";
const URL_KEY: &str = "tools.web_search.searxng_url";

/// Whether SearXNG answers in JSON, with engines that are known and not suspended.
pub(super) async fn searxng(machine: &Machine) -> Vec<Finding> {
    let config = &machine.loaded.config.tools.web_search;
    let Some(base) = &config.searxng_url else {
        return vec![Finding::new(CHECK, State::Absent, "switched off")];
    };
    let (tried, known) = tokio::join!(
        web_search::try_searxng(config, &machine.clients),
        engines(machine, base)
    );
    let failed = |state, problem: &str| Finding::new(CHECK, state, failure(base, problem));
    let has_other = config.brave_api_key.is_some();
    let mut findings = vec![match tried {
        Ok(found) => answered(base, &found),
        Err(problem) if !is_default(machine) => failed(State::Failed, &problem),
        // Nobody asked for the default address: without it there is just no search.
        Err(problem) if has_other => failed(State::Absent, &problem),
        Err(problem) => failed(State::Warning, &problem).advise(format!(
            "web_search finds nothing; run SearXNG and set {URL_KEY}, or set tools.web_search.brave_api_key"
        )),
    }];
    let unknown = unknown(&config.engines, &known);
    if !unknown.is_empty() {
        let message = format!("no engine is named {}", unknown.join(", "));
        findings.push(
            Finding::new(CHECK, State::Warning, message).advise(
                "SearXNG ignores such names without a word; correct tools.web_search.engines",
            ),
        );
    }
    findings
}

fn answered(base: &str, found: &web_search::Tried) -> Finding {
    let message = format!("{base} answers in JSON, {} results", found.results);
    if found.warnings.is_empty() {
        return Finding::new(CHECK, State::Ok, message);
    }
    let message = format!("{message}; {}", found.warnings.join("; "));
    Finding::new(CHECK, State::Warning, message).advise(
        "switch these engines off in its settings.yml, or name others in tools.web_search.engines",
    )
}

/// A problem reads after the engine's name, and some name its address.
fn failure(base: &str, problem: &str) -> String {
    match problem.contains(base) {
        true => format!("SearXNG {problem}"),
        false => format!("SearXNG at {base} {problem}"),
    }
}

fn is_default(machine: &Machine) -> bool {
    let mut values = machine.loaded.values.list().into_iter();
    values.any(|shown| shown.key == URL_KEY && shown.origin == Origin::Default)
}

/// The names of its engines; nothing where it does not say.
async fn engines(machine: &Machine, base: &str) -> BTreeSet<String> {
    let response = async {
        let client = machine.clients.get(base, None).await.ok()?;
        let url = format!("{}/config", base.trim_end_matches('/'));
        // A default instance has 250 engines in 200 KiB, far less than is fetched.
        let fetched = web_search::fetch(client.get(url)).await.ok()?;
        serde_json::from_slice::<Value>(&fetched.body).ok()
    };
    let answer = tokio::time::timeout(ENGINES_TIME, response).await;
    names(&answer.ok().flatten().unwrap_or_default())
}

/// The names in its answer to `/config`.
fn names(answer: &Value) -> BTreeSet<String> {
    let engines = answer.get("engines").and_then(Value::as_array);
    let names = engines.into_iter().flatten();
    names
        .filter_map(|engine| Some(engine.get("name")?.as_str()?.to_owned()))
        .collect()
}

/// The wanted names that are not known; nothing where no name is known.
fn unknown<'w>(wanted: &'w [String], known: &BTreeSet<String>) -> Vec<&'w str> {
    wanted
        .iter()
        .filter(|name| !known.is_empty() && !known.contains(*name))
        .map(String::as_str)
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_engines_are_found_where_the_known_are_reported() {
        let known = json!({"engines": [{"name": "bing"}, {"name": "wikipedia"}, {}, 7]});
        let wanted = ["bing".to_owned(), "duckduckgoo".to_owned()];
        let cases = [
            (known, vec!["duckduckgoo"]),
            (json!({"engines": []}), vec![]),
            (json!("html"), vec![]),
        ];
        for (answer, expected) in cases {
            assert_eq!(unknown(&wanted, &names(&answer)), expected);
        }
    }

    #[test]
    fn engines_that_do_not_answer_are_a_warning() {
        let tried = |warnings: &[&str]| web_search::Tried {
            results: 3,
            warnings: warnings.iter().map(|text| (*text).to_owned()).collect(),
        };
        let well = answered("http://s", &tried(&[]));
        assert_eq!(
            well,
            Finding::new(CHECK, State::Ok, "http://s answers in JSON, 3 results")
        );
        let suspended = answered("http://s", &tried(&["bing: Suspended"]));
        assert_eq!(
            suspended,
            Finding::new(
                CHECK,
                State::Warning,
                "http://s answers in JSON, 3 results; bing: Suspended"
            )
            .advise("switch these engines off in its settings.yml, or name others in tools.web_search.engines")
        );
    }
}
