//! One GET to a search engine, with limits on time and size.

use std::time::Duration;

use futures::StreamExt;
use reqwest::RequestBuilder;
use reqwest::header::{CONTENT_TYPE, HeaderMap};

use super::answer::Problem;

/// How long an engine may take, a second try included; the engines behind SearXNG have seconds of their own each.
const TIME: Duration = Duration::from_secs(15);

/// The pause before the second try.
const PAUSE: Duration = Duration::from_millis(300);

/// The most bytes read of an answer.
const BYTES: usize = 2 * 1024 * 1024;

/// An answer, read whole.
#[derive(Debug)]
pub(super) struct Fetched {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

impl Fetched {
    /// Whether it says that it is JSON.
    pub(super) fn is_json(&self) -> bool {
        self.headers
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| value.contains("json"))
    }
}

/// Sends a request and reads its answer; once more where it cannot be reached or failed by itself (5xx).
///
/// # Errors
///
/// [`Problem`] without the URL, which may hold a key.
pub(super) async fn fetch(request: RequestBuilder) -> Result<Fetched, Problem> {
    let work = async {
        let again = request.try_clone();
        let first = send(request).await;
        let may_pass = match &first {
            Ok(fetched) => fetched.status >= 500,
            Err(failure) => failure.is_connect,
        };
        match again.filter(|_| may_pass) {
            Some(again) => {
                tokio::time::sleep(PAUSE).await;
                send(again).await
            }
            None => first,
        }
    };
    match tokio::time::timeout(TIME, work).await {
        Ok(outcome) => outcome.map_err(|failure| failure.problem),
        Err(_) => Err(Problem(format!("no answer within {} s", TIME.as_secs()))),
    }
}

/// Why there is no answer.
struct Failure {
    problem: Problem,
    is_connect: bool,
}

async fn send(request: RequestBuilder) -> Result<Fetched, Failure> {
    let response = request.send().await.map_err(|error| unreachable(&error))?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let mut body = Vec::new();
    let mut stream = response.bytes_stream();
    while let Some(bytes) = stream.next().await {
        let bytes = bytes.map_err(|error| unreachable(&error))?;
        if body.len() + bytes.len() > BYTES {
            return Err(Failure {
                problem: Problem(format!("its answer has more than {BYTES} bytes")),
                is_connect: false,
            });
        }
        body.extend_from_slice(&bytes);
    }
    Ok(Fetched {
        status,
        headers,
        body,
    })
}

fn unreachable(error: &reqwest::Error) -> Failure {
    let what = if error.is_connect() {
        "cannot be reached"
    } else if error.is_timeout() {
        "did not answer in time"
    } else {
        "broke off its answer"
    };
    Failure {
        problem: Problem(what.to_owned()),
        is_connect: error.is_connect(),
    }
}
