//! Where pages at which somebody signed in for an MCP server send the browser.
//!
//! There is no token in such a request. What lets it in is its `state`, which nobody can guess, which counts once, and of which there
//! is one for each sign-in that is open.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};

use super::Shared;
use crate::mcp::Answer;

/// Nothing is loaded, nothing runs, nobody frames it, and the address goes nowhere, for the code is in it.
const HEADERS: [(HeaderName, &str); 3] = [
    (CONTENT_TYPE, "text/html; charset=utf-8"),
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    ),
    (REFERRER_POLICY, "no-referrer"),
];

pub(super) async fn callback(
    State(shared): State<Arc<Shared>>,
    RawQuery(query): RawQuery,
) -> Response {
    let answer = Answer::of_query(&query.unwrap_or_default());
    let (status, title, text) = match shared.daemon.mcp.answered(answer).await {
        Ok(server) => (
            StatusCode::OK,
            "Signed in",
            format!(
                "Outrigger is signed in to the MCP server “{server}”. You can close this page."
            ),
        ),
        Err(problem) => {
            tracing::warn!(%problem, "a sign-in has failed");
            (
                StatusCode::BAD_REQUEST,
                "Not signed in",
                problem.to_string(),
            )
        }
    };
    let page = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\"><title>{title}</title>\
         <style>body{{font:1rem/1.5 system-ui;max-width:40rem;margin:4rem auto;padding:0 1rem;color-scheme:light dark}}</style>\
         <h1>{title}</h1><p>{}</p></html>",
        escaped(&text)
    );
    (status, HEADERS, page).into_response()
}

fn escaped(text: &str) -> String {
    text.chars()
        .fold(String::with_capacity(text.len()), |mut page, letter| {
            match letter {
                '&' => page.push_str("&amp;"),
                '<' => page.push_str("&lt;"),
                '>' => page.push_str("&gt;"),
                '"' => page.push_str("&quot;"),
                letter => page.push(letter),
            }
            page
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_say_is_text() {
        assert_eq!(
            escaped("<script>\"a\" & b</script>"),
            "&lt;script&gt;&quot;a&quot; &amp; b&lt;/script&gt;"
        );
    }
}
