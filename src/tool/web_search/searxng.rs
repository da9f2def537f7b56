//! SearXNG: its JSON interface, and what its refusals mean.
//!
//! Source: searxng/searxng @9fea412, docs/dev/search_api.rst, searx/webapp.py, botdetection, read
//! 2026-08-22; behaviour seen on a running instance.

use serde_json::Value;

use super::answer::{Answer, Found};
use super::fetch::{Fetched, fetch};
use crate::http::Clients;
use crate::tool::foreign;

/// The longest text of a box, in characters.
const BOX: usize = 500;

/// Asks an instance; `engines` empty for its defaults. An error says what the operator has to change; reads after the
/// engine's name.
pub(super) async fn search(
    clients: &Clients,
    base_url: &str,
    engines: &[String],
    query: &str,
) -> Result<Answer, String> {
    let base = base_url.trim_end_matches('/');
    let client = clients
        .get(base, None)
        .await
        .map_err(|error| error.to_string())?;
    let mut url = reqwest::Url::parse(&format!("{base}/search"))
        .map_err(|error| format!("tools.web_search.searxng_url is no URL: {error}"))?;
    let engines = Some(engines.join(",")).filter(|engines| !engines.is_empty());
    url.query_pairs_mut()
        .append_pair("q", &neutral(query))
        .append_pair("format", "json")
        .extend_pairs(engines.map(|engines| ("engines", engines)));
    let advice = how_to_start(&url, crate::sandbox::is_container());
    let fetched = fetch(client.get(url)).await.map_err(|problem| {
        format!("{problem} at {base}; {advice}, or correct tools.web_search.searxng_url")
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

/// How there comes to be a SearXNG at an address. That of `compose.yaml` publishes no port: only the daemon beside it
/// asks there.
fn how_to_start(url: &reqwest::Url, is_in_container: bool) -> String {
    let is_here = matches!(
        url.host_str(),
        Some("localhost" | "127.0.0.1" | "[::1]" | "0.0.0.0")
    );
    match (is_here, is_in_container) {
        (true, true) => "inside a container, localhost is the container itself: use host.docker.internal or the service's name (searxng in compose.yaml)".to_owned(),
        (true, false) => format!(
            "start one there, in a clone of Outrigger: docker run -d -p 127.0.0.1:{}:8080 -e SEARXNG_SECRET=$(openssl rand -hex 32) -v \"$PWD/config/searxng/settings.yml:/etc/searxng/settings.yml:ro\" searxng/searxng",
            url.port_or_known_default().unwrap_or(8080)
        ),
        (false, _) => "start it (where it is that of compose.yaml: docker compose up -d searxng)".to_owned(),
    }
}

fn read(fetched: &Fetched) -> Result<Answer, String> {
    let refused = match fetched.status {
        200 if fetched.is_json() => None,
        200 => Some(
            "answered with a page instead of JSON; check that tools.web_search.searxng_url names a SearXNG",
        ),
        403 => Some("refuses JSON (403); add `json` to `search.formats` in its settings.yml"),
        429 => Some(
            "its limiter turned us away (429); set `server.limiter: false`, or let this machine pass in limiter.toml",
        ),
        300..400 => Some(
            "redirects elsewhere; name the address it redirects to in tools.web_search.searxng_url",
        ),
        status => return Err(format!("answered with status {status}")),
    };
    if let Some(refused) = refused {
        return Err(refused.to_owned());
    }
    let answer: Value = serde_json::from_slice(&fetched.body)
        .map_err(|error| format!("its answer is not valid JSON: {error}"))?;
    let results: Vec<Found> = list(&answer, "results").filter_map(found).collect();
    let answers: Vec<String> = list(&answer, "answers")
        .filter_map(direct)
        .chain(list(&answer, "infoboxes").filter_map(boxed))
        .collect();
    let unresponsive: Vec<String> = list(&answer, "unresponsive_engines")
        .filter_map(unresponsive)
        .collect();
    if results.is_empty() && answers.is_empty() && !unresponsive.is_empty() {
        return Err(format!(
            "none of its engines answered ({}); try other engines in tools.web_search.engines, or wait",
            unresponsive.join(", ")
        ));
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
    let values = answer.get(key).and_then(Value::as_array);
    values.into_iter().flatten()
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
    let content = foreign::line(content, BOX);
    Some(match text("infobox") {
        Some(name) => format!("{}: {content}", foreign::line(name, BOX)),
        None => content,
    })
}

fn unresponsive(pair: &Value) -> Option<String> {
    let pair = pair.as_array()?;
    let engine = pair.first()?.as_str()?;
    let why = pair.get(1).and_then(Value::as_str).unwrap_or("no answer");
    Some(format!("{engine}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_starts_it_makes_it_answer_at_its_address() {
        for (url, is_in_container, expected) in [
            (
                "http://localhost:8080/search",
                false,
                "-p 127.0.0.1:8080:8080 ",
            ),
            (
                "http://127.0.0.1:8888/search",
                false,
                "-p 127.0.0.1:8888:8080 ",
            ),
            (
                "http://localhost:8080/search",
                true,
                "use host.docker.internal",
            ),
            (
                "http://searxng:8080/search",
                true,
                "docker compose up -d searxng",
            ),
            (
                "https://search.example/search",
                false,
                "docker compose up -d searxng",
            ),
        ] {
            let advice = how_to_start(&reqwest::Url::parse(url).unwrap(), is_in_container);
            assert!(advice.contains(expected), "{url}: {advice}");
        }
        // docs/docker.md has the same.
        let here = how_to_start(
            &reqwest::Url::parse("http://localhost:8080").unwrap(),
            false,
        );
        let (_, command) = here.split_once(": ").unwrap();
        assert!(
            include_str!("../../../docs/docker.md").contains(command),
            "{command}"
        );
    }
}
