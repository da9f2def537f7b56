//! How authorization servers are asked: within bounds of size, time and place, and without following anybody elsewhere.
//!
//! The SDK looks for metadata and follows a redirect of the same origin by itself; here nothing is followed. What a server of the
//! operator's choice names is not the operator's choice: such a host is asked where it is the server's own, is this machine as the
//! server's is, was named by the operator, or is on the public internet.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use oauth2::AsyncHttpClient;
use oauth2::http::{Request, Response};
use reqwest::Url;
use rmcp::transport::auth::{
    OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest,
};

use crate::http::{Clients, is_loopback};
use crate::sandbox::{is_metadata, is_outside};

/// The largest answer, in bytes: metadata of real servers has some kilobytes.
const MAX_ANSWER: usize = 256 * 1024;

/// How long one request may take, its answer included.
const TIME: Duration = Duration::from_secs(20);

/// Asks the authorization servers of one MCP server.
#[derive(Clone)]
pub(super) struct Web {
    /// To hosts that the operator named, the MCP server's own among them.
    named: Clients,
    /// To all others: public addresses alone.
    others: Clients,
    server: Url,
    hosts: Arc<[String]>,
}

impl Web {
    pub(super) fn new(named: Clients, server: Url, hosts: &[String]) -> Self {
        Self {
            named,
            others: Clients::only(is_outside),
            server,
            hosts: hosts.into(),
        }
    }

    /// Returns why a page, or an endpoint, is not to be used; reads after its address.
    pub(super) fn problem(&self, url: &Url) -> Option<String> {
        let is_here = is_loopback(url);
        match url.scheme() {
            "https" => {}
            "http" if is_here => {}
            "http" => {
                return Some("is not https, which only this machine may do without".to_owned());
            }
            other => return Some(format!("begins with {other:?}, and has to be https")),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Some("holds a user name or a password".to_owned());
        }
        let host = url.host_str().unwrap_or_default();
        if self.is_named(host) {
            return None;
        }
        let address = address(host);
        if is_here && !is_loopback(&self.server) {
            return Some("is on this machine, and the MCP server is not".to_owned());
        }
        let is_private = !is_here && address.is_some_and(|it| !is_outside(it));
        is_private.then(|| {
            "is an address of a private network; `auth.hosts` of the server names those that may be used".to_owned()
        })
    }

    /// Whether the operator named a host: in the server's address, or beside it.
    pub(super) fn is_named(&self, host: &str) -> bool {
        let is_metadata = address(host).is_some_and(is_metadata);
        let own = self.server.host_str();
        let mut named = own.into_iter().chain(self.hosts.iter().map(String::as_str));
        !is_metadata && named.any(|named| named.eq_ignore_ascii_case(host))
    }

    /// Whether the operator named a host beside the server's address.
    pub(super) fn is_listed(&self, host: &str) -> bool {
        self.hosts.iter().any(|it| it.eq_ignore_ascii_case(host))
    }

    /// Sends a request and takes the whole answer.
    pub(super) async fn ask(&self, request: Request<Vec<u8>>) -> Result<Response<Vec<u8>>, String> {
        let request = reqwest::Request::try_from(request).map_err(|error| error.to_string())?;
        let url = request.url().clone();
        let shown = shown(&url);
        if let Some(problem) = self.problem(&url) {
            return Err(format!("{shown} {problem}"));
        }
        let is_near = is_loopback(&url) || self.is_named(url.host_str().unwrap_or_default());
        let clients = if is_near { &self.named } else { &self.others };
        let client = clients.get(url.as_str(), None).await;
        let client = client.map_err(|error| error.to_string())?;
        let answered = async {
            let answer = client.execute(request).await;
            let answer = answer.map_err(|error| plain(&error.without_url()))?;
            let mut built = Response::builder().status(answer.status());
            for (name, value) in answer.headers() {
                built = built.header(name, value);
            }
            let mut body = Vec::new();
            let mut pieces = answer.bytes_stream();
            while let Some(piece) = pieces.next().await {
                let piece = piece.map_err(|error| plain(&error.without_url()))?;
                if body.len() + piece.len() > MAX_ANSWER {
                    return Err(format!("sent more than {} KiB", MAX_ANSWER / 1024));
                }
                body.extend_from_slice(&piece);
            }
            built.body(body).map_err(|error| error.to_string())
        };
        match tokio::time::timeout(TIME, answered).await {
            Ok(answer) => answer.map_err(|why| format!("{shown}: {why}")),
            Err(_) => Err(format!(
                "{shown} did not answer within {} s",
                TIME.as_secs()
            )),
        }
    }
}

impl OAuthHttpClient for Web {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            self.ask(request.request)
                .await
                .map_err(OAuthHttpClientError::from)
        })
    }
}

/// The same for the library that has tokens renewed.
impl<'c> AsyncHttpClient<'c> for Web {
    type Error = Unanswered;
    type Future = BoxFuture<'c, Result<Response<Vec<u8>>, Unanswered>>;

    fn call(&'c self, request: Request<Vec<u8>>) -> Self::Future {
        Box::pin(async move { self.ask(request).await.map_err(Unanswered) })
    }
}

/// Why an authorization server was not heard.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Unanswered(String);

/// Returns an address without what may be secret in it.
pub(super) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

fn address(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[')
        .trim_end_matches(']')
        .parse()
        .ok()
}

/// An error with its causes.
pub(super) fn plain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let cause = error.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn what_a_server_names_is_public_or_where_it_is_itself() {
        let cases = [
            // The server, what it names, what is wrong with that.
            ("https://mcp.example/", "https://login.example/", None),
            (
                "https://mcp.example/",
                "http://login.example/",
                Some("not https"),
            ),
            (
                "https://mcp.example/",
                "http://127.0.0.1:9/",
                Some("on this machine"),
            ),
            (
                "https://mcp.example/",
                "https://localhost/",
                Some("on this machine"),
            ),
            (
                "https://mcp.example/",
                "https://10.0.0.9/",
                Some("private network"),
            ),
            ("https://mcp.example/", "https://10.0.0.7/", None),
            (
                "https://mcp.example/",
                "https://169.254.169.254/",
                Some("private network"),
            ),
            (
                "https://mcp.example/",
                "https://[fd00::1]/",
                Some("private network"),
            ),
            (
                "https://mcp.example/",
                "javascript:alert(1)",
                Some("\"javascript\""),
            ),
            (
                "https://mcp.example/",
                "file:///etc/passwd",
                Some("\"file\""),
            ),
            (
                "https://mcp.example/",
                "https://a:b@login.example/",
                Some("password"),
            ),
            ("http://127.0.0.1:1/", "http://localhost:2/", None),
            ("https://10.0.0.1/", "https://10.0.0.1/", None),
            (
                "https://10.0.0.1/",
                "https://10.0.0.2/",
                Some("private network"),
            ),
        ];
        for (server, named, expected) in cases {
            let web = Web::new(Clients::guarded(), url(server), &["10.0.0.7".to_owned()]);
            match (web.problem(&url(named)), expected) {
                (None, None) => {}
                (Some(why), Some(expected)) => assert!(why.contains(expected), "{named}: {why}"),
                (why, _) => panic!("{server} {named}: {why:?}"),
            }
        }
    }

    #[test]
    fn the_operator_cannot_name_what_hands_out_keys() {
        let hosts = ["169.254.169.254".to_owned()];
        let web = Web::new(Clients::guarded(), url("https://mcp.example/"), &hosts);
        assert!(web.problem(&url("https://169.254.169.254/")).is_some());
    }
}
