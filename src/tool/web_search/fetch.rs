//! One GET to a search engine, with limits on time and size.

use std::time::Duration;

use reqwest::RequestBuilder;
use reqwest::header::{CONTENT_TYPE, HeaderMap};

/// How long an engine may take, a second try included; the engines behind SearXNG have seconds of their own each.
const TIME: Duration = Duration::from_secs(15);

const PAUSE: Duration = Duration::from_millis(300);

/// The most bytes read of an answer.
const BYTES: usize = 2 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Fetched {
    pub(super) status: u16,
    headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// An answer that was read, and whether that was all of it.
type Answer = (Fetched, bool);

impl Fetched {
    pub(super) fn is_json(&self) -> bool {
        let kind = self.header(CONTENT_TYPE.as_str());
        kind.is_some_and(|kind| kind.contains("json"))
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Sends a request and reads its answer; once more where it cannot be reached or failed by itself (5xx). An error says
/// why there is none, without the URL, which may hold a key.
pub(crate) async fn fetch(request: RequestBuilder) -> Result<Fetched, String> {
    let work = async {
        let again = request.try_clone();
        let first = send(request).await;
        let may_pass = match &first {
            Ok((fetched, _)) => fetched.status >= 500,
            Err(error) => error.is_connect(),
        };
        match again.filter(|_| may_pass) {
            Some(again) => {
                tokio::time::sleep(PAUSE).await;
                send(again).await
            }
            None => first,
        }
    };
    Err(match tokio::time::timeout(TIME, work).await {
        Ok(Ok((fetched, true))) => return Ok(fetched),
        Ok(Ok(_)) => format!("its answer has more than {BYTES} bytes"),
        Ok(Err(error)) if error.is_connect() => "cannot be reached".to_owned(),
        Ok(Err(error)) if error.is_timeout() => "did not answer in time".to_owned(),
        Ok(Err(_)) => "broke off its answer".to_owned(),
        Err(_) => format!("no answer within {} s", TIME.as_secs()),
    })
}

async fn send(request: RequestBuilder) -> reqwest::Result<Answer> {
    let response = request.send().await?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let body = crate::http::body(response, BYTES).await?;
    let fetched = Fetched {
        status,
        headers,
        body: body.bytes,
    };
    Ok((fetched, body.is_whole))
}
