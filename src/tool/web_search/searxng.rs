//! SearXNG: its JSON interface, and what its refusals mean.
//!
//! Source: searxng/searxng @9fea412, docs/dev/search_api.rst, searx/webapp.py, botdetection, read
//! 2026-08-22; behaviour seen on a running instance.

use serde_json::Value;

use super::answer::{Answer, Found, Problem};
use super::fetch::{Fetched, fetch};
use crate::http::Clients;

/// The longest text of a box, in characters.
const BOX: usize = 500;

/// Asks an instance; `engines` empty for its defaults.
///
/// # Errors
///
/// [`Problem`], told apart by what the operator has to change.
pub(super) async fn search(
    clients: &Clients,
    base_url: &str,
    engines: &[String],
    query: &str,
) -> Result<Answer, Problem> {
    let base = base_url.trim_end_matches('/');
    let client = clients
        .get(base, None)
        .await
        .map_err(|error| Problem(error.to_string()))?;
    let query = neutral(query);
    let mut parameters = vec![("q", query.as_str()), ("format", "json")];
    let engines = engines.join(",");
    if !engines.is_empty() {
        parameters.push(("engines", engines.as_str()));
    }
    let mut url = reqwest::Url::parse(&format!("{base}/search"))
        .map_err(|error| Problem(format!("tools.web_search.searxng_url is no URL: {error}")))?;
    url.query_pairs_mut().extend_pairs(parameters);
    let fetched = fetch(client.get(url)).await.map_err(|problem| {
        Problem(format!(
            "{problem} at {base}; start it (docker compose up -d searxng) or correct tools.web_search.searxng_url{}",
            hint_in_container(base)
        ))
    })?;
    read(&fetched)
}

/// Takes the meaning from what SearXNG would take for commands: bangs leave the instance.
fn neutral(query: &str) -> String {
    let words: Vec<&str> = query
        .split(' ')
        .map(|word| word.trim_start_matches(['!', ':', '<']))
        .filter(|word| !word.is_empty())
        .collect();
    words.join(" ")
}

/// Within a container, `localhost` is the container.
fn hint_in_container(base: &str) -> &'static str {
    let names_loopback = ["localhost", "127.0.0.1", "[::1]"]
        .iter()
        .any(|name| base.contains(name));
    if names_loopback && crate::sandbox::is_container() {
        "; inside a container, localhost is the container itself: use host.docker.internal or the service's name"
    } else {
        ""
    }
}

fn read(fetched: &Fetched) -> Result<Answer, Problem> {
    match fetched.status {
        200 if fetched.is_json() => {}
        200 => {
            return Err(Problem(
                "answered with a page instead of JSON; check that tools.web_search.searxng_url names a SearXNG".to_owned(),
            ));
        }
        403 => {
            return Err(Problem(
                "refuses JSON (403); add `json` to `search.formats` in its settings.yml".to_owned(),
            ));
        }
        429 => {
            return Err(Problem(
                "its limiter turned us away (429); set `server.limiter: false`, or let this machine pass in limiter.toml".to_owned(),
            ));
        }
        300..400 => {
            return Err(Problem(
                "redirects elsewhere; name the address it redirects to in tools.web_search.searxng_url".to_owned(),
            ));
        }
        status => return Err(Problem(format!("answered with status {status}"))),
    }
    let answer: Value = serde_json::from_slice(&fetched.body)
        .map_err(|error| Problem(format!("its answer is not valid JSON: {error}")))?;
    let results: Vec<Found> = list(&answer, "results").filter_map(found).collect();
    let answers: Vec<String> = list(&answer, "answers")
        .filter_map(direct)
        .chain(list(&answer, "infoboxes").filter_map(boxed))
        .collect();
    let unresponsive: Vec<String> = list(&answer, "unresponsive_engines")
        .filter_map(unresponsive)
        .collect();
    if results.is_empty() && answers.is_empty() && !unresponsive.is_empty() {
        return Err(Problem(format!(
            "none of its engines answered ({}); try other engines in tools.web_search.engines, or wait",
            unresponsive.join(", ")
        )));
    }
    Ok(Answer {
        engine: "searxng",
        results,
        answers,
        warnings: unresponsive
            .into_iter()
            .map(|engine| format!("an engine did not answer: {engine}"))
            .collect(),
    })
}

fn list<'v>(answer: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    answer
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn found(result: &Value) -> Option<Found> {
    let text = |key: &str| result.get(key).and_then(Value::as_str);
    Found::new(
        text("title").unwrap_or_default(),
        text("url")?,
        text("content").unwrap_or_default(),
        text("publishedDate").or_else(|| text("pubdate")),
        text("engine").unwrap_or("searxng"),
    )
}

/// An answer is an object, or a plain string with older versions.
fn direct(answer: &Value) -> Option<String> {
    answer
        .as_str()
        .or_else(|| answer.get("answer")?.as_str())
        .map(str::to_owned)
}

/// What SearXNG shows in a box beside the results: its name and text.
fn boxed(found: &Value) -> Option<String> {
    let text = |key: &str| found.get(key).and_then(Value::as_str);
    let content = text("content").filter(|content| !content.is_empty())?;
    let content = super::answer::clean(content, BOX);
    Some(match text("infobox") {
        Some(name) => format!("{}: {content}", super::answer::clean(name, BOX)),
        None => content,
    })
}

fn unresponsive(pair: &Value) -> Option<String> {
    let pair = pair.as_array()?;
    let engine = pair.first()?.as_str()?;
    let why = pair.get(1).and_then(Value::as_str).unwrap_or("no answer");
    Some(format!("{engine}: {why}"))
}
