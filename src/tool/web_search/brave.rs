//! The Brave Search API.
//!
//! Source: Brave Web Search API reference and Response Headers pages, read 2026-11-20.

use std::time::Duration;

use reqwest::header::{ACCEPT, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::answer::{Answer, Found};
use super::fetch::{Fetched, fetch};
use crate::http::Clients;
use crate::tool::foreign;

/// The longest query the API takes, in words.
const MAX_WORDS: usize = 50;

/// Results asked for; the most of one page.
const COUNT: &str = "20";

/// The longest wait for a place in the rate limit; beyond it the caller gets an error.
const LONGEST_WAIT: Duration = Duration::from_secs(3);

/// Asks the API, once more where it asks for a moment's patience. An error says what the operator has to change; reads
/// after the engine's name.
pub(super) async fn search(
    clients: &Clients,
    endpoint: &str,
    key: &SecretString,
    query: &str,
) -> Result<Answer, String> {
    let mut url = reqwest::Url::parse(endpoint)
        .map_err(|error| format!("tools.web_search.brave_url is no URL: {error}"))?;
    let words: Vec<&str> = query.split(' ').take(MAX_WORDS).collect();
    url.query_pairs_mut()
        .append_pair("q", &words.join(" "))
        .append_pair("count", COUNT)
        .append_pair("text_decorations", "false");
    let unusable =
        "its key holds characters that no header can; set tools.web_search.brave_api_key again";
    let mut token =
        HeaderValue::from_str(key.expose_secret().trim()).map_err(|_| unusable.to_owned())?;
    token.set_sensitive(true);
    let client = clients
        .get(endpoint, None)
        .await
        .map_err(|error| error.to_string())?;
    let ask = || {
        let request = client
            .get(url.clone())
            .header("x-subscription-token", token.clone())
            .header(ACCEPT, "application/json");
        fetch(request)
    };
    let mut fetched = ask().await?;
    if let Some(wait) = patience(&fetched) {
        tokio::time::sleep(wait).await;
        fetched = ask().await?;
    }
    read(&fetched)
}

/// How long to wait before asking again, where that helps.
///
/// The rate headers are lists, one entry for each window, the shortest first.
fn patience(fetched: &Fetched) -> Option<Duration> {
    if fetched.status != 429 || quota_is_spent(fetched) {
        return None;
    }
    let seconds = windows(fetched, "x-ratelimit-reset").first().copied();
    Some(Duration::from_secs(seconds.unwrap_or(1))).filter(|wait| *wait <= LONGEST_WAIT)
}

fn quota_is_spent(fetched: &Fetched) -> bool {
    let remaining = windows(fetched, "x-ratelimit-remaining");
    remaining.len() > 1 && remaining.last() == Some(&0)
}

fn windows(fetched: &Fetched, header: &str) -> Vec<u64> {
    let list = fetched.header(header).unwrap_or_default().split(',');
    list.filter_map(|entry| entry.trim().parse().ok()).collect()
}

fn read(fetched: &Fetched) -> Result<Answer, String> {
    let body: Option<Value> = serde_json::from_slice(&fetched.body).ok();
    match (fetched.status, body) {
        (200, Some(body)) => Ok(answer(&body)),
        (200, None) => {
            Err("its answer is not valid JSON; check tools.web_search.brave_url".to_owned())
        }
        (status, body) => Err(refusal(status, fetched, body.as_ref())),
    }
}

fn answer(body: &Value) -> Answer {
    let found = |result: &Value| {
        let text = |key: &str| result.get(key).and_then(Value::as_str);
        Found::new(
            &plain(text("title").unwrap_or_default()),
            text("url")?,
            &plain(text("description").unwrap_or_default()),
            text("page_age").or_else(|| text("age")),
            "brave",
        )
    };
    let results = body.pointer("/web/results").and_then(Value::as_array);
    Answer {
        engine: "brave",
        results: results.into_iter().flatten().filter_map(found).collect(),
        answers: Vec::new(),
        warnings: Vec::new(),
    }
}

fn refusal(status: u16, fetched: &Fetched, body: Option<&Value>) -> String {
    let said = |key: &str| {
        let error = body.and_then(|body| body.get("error").or_else(|| body.pointer("/errors/0")));
        let said = error.and_then(|error| error.get(key)?.as_str());
        said.unwrap_or_default()
    };
    let is_token = status == 422 && said("code").contains("TOKEN");
    match status {
        _ if is_token || matches!(status, 401 | 403) => {
            "refused its key; set tools.web_search.brave_api_key or BRAVE_API_KEY anew".to_owned()
        }
        429 if quota_is_spent(fetched) => {
            "the quota of its key is used up; wait for the next month or change the plan".to_owned()
        }
        429 => "too many requests for its key's rate (429); try again in a moment".to_owned(),
        500.. => format!("failed with status {status}; try again later"),
        _ => format!(
            "refused the query (status {status}): {}",
            foreign::line(said("detail"), 200)
        ),
    }
}

/// Takes the markup out of a title or description: tags and entities, once.
fn plain(html: &str) -> String {
    let mut text = String::with_capacity(html.len());
    let mut rest = html;
    while let Some((before, markup)) = rest.find(['<', '&']).map(|at| rest.split_at(at)) {
        text.push_str(before);
        let (mark, inner) = markup.split_at(1);
        let tag = inner.split_once('>').filter(|(tag, _)| {
            let name = tag.trim_start_matches('/');
            mark == "<" && name.starts_with(|c: char| c.is_ascii_alphabetic())
        });
        let character = inner
            .split_once(';')
            .filter(|_| mark == "&")
            .and_then(|(name, after)| Some((entity(name)?, after)));
        rest = match (tag, character) {
            (Some((_, after)), _) => after,
            (None, Some((character, after))) => {
                text.push(character);
                after
            }
            (None, None) => {
                text.push_str(mark);
                inner
            }
        };
    }
    text.push_str(rest);
    text
}

fn entity(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16),
            None => number.parse(),
        };
        return char::from_u32(code.ok()?);
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "hellip" => '…',
        "ndash" => '–',
        "mdash" => '—',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_taken_out_once() {
        for (html, expected) in [
            ("a <strong>b</strong> c", "a b c"),
            ("it&#x27;s &quot;x&quot; &amp;amp; y", "it's \"x\" &amp; y"),
            ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
            ("a & b &unknown; &", "a & b &unknown; &"),
            ("&lt;script&gt;", "<script>"),
            ("open <b", "open <b"),
        ] {
            assert_eq!(plain(html), expected, "{html}");
        }
    }
}
