//! One GET, and its answer with limits on its size. Redirects are not followed here.

use std::error::Error as _;

use reqwest::header::{
    ACCEPT, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, LOCATION, USER_AGENT,
};
use reqwest::{Client, Response, StatusCode};

use super::target::Target;
use crate::http::Body;

/// What is asked for: sites that have a page as Markdown send that.
const PAGES: &str = "text/html, application/xhtml+xml, text/markdown;q=0.9, text/plain;q=0.8, application/json;q=0.8, */*;q=0.5";

/// The head of an answer; its body is not read yet.
pub(super) struct Answer(Response);

/// Asks for a page. An error says why there is no answer; reads after its address.
pub(super) async fn get(client: &Client, target: &Target, agent: &str) -> Result<Answer, String> {
    let request = client
        .get(target.url.clone())
        .header(USER_AGENT, agent)
        .header(ACCEPT, PAGES);
    match crate::http::send(request).await {
        Ok(response) => Ok(Answer(response)),
        Err(error) => Err(why(&error)),
    }
}

/// Returns why there is no answer, or no more of one.
fn why(error: &reqwest::Error) -> String {
    let what = match error {
        error if error.is_timeout() => "did not answer in time",
        error if error.is_connect() => "cannot be reached",
        error if error.is_decode() => "sent an answer that is cut off or cannot be unpacked",
        _ => "broke off its answer",
    };
    // The innermost cause says most; it holds no address of the page.
    let mut cause = error.source();
    while let Some(inner) = cause.and_then(std::error::Error::source) {
        cause = Some(inner);
    }
    match cause {
        Some(cause) => format!("{what} ({cause})"),
        None => what.to_owned(),
    }
}

impl Answer {
    pub(super) fn status(&self) -> StatusCode {
        self.0.status()
    }

    fn header(&self, name: HeaderName) -> Option<&str> {
        self.0.headers().get(name)?.to_str().ok()
    }

    /// Returns where the answer says that the page is, if anywhere else.
    pub(super) fn location(&self) -> Option<&str> {
        let is_redirect = matches!(self.status().as_u16(), 301 | 302 | 303 | 307 | 308);
        self.header(LOCATION).filter(|_| is_redirect)
    }

    pub(super) fn content_type(&self) -> Option<&str> {
        self.header(CONTENT_TYPE)
    }

    /// Returns how large the body is said to be, for the model.
    pub(super) fn size(&self) -> String {
        let length = self.header(CONTENT_LENGTH).and_then(|it| it.parse().ok());
        let length: Option<u64> = length;
        match length {
            Some(bytes) => format!("{bytes} bytes"),
            None => "of unknown size".to_owned(),
        }
    }

    /// Returns how the body is packed, where it was not unpacked.
    pub(super) fn packing(&self) -> Option<&str> {
        let packing = self.header(CONTENT_ENCODING)?;
        (!packing.eq_ignore_ascii_case("identity")).then_some(packing)
    }

    /// Reads the body, unpacked, up to `most` bytes. An error reads after the page's address.
    pub(super) async fn body(self, most: usize) -> Result<Body, String> {
        crate::http::body(self.0, most)
            .await
            .map_err(|error| why(&error))
    }
}
