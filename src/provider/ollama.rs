//! Ollama's own API: `/api/chat`, and `/api/tags` and `/api/show` for what its models can do.
//!
//! Its OpenAI-compatible side is not used: that one ignores the context size and drops what does not fit
//! without a word (`docs/providers.md`, "Ollama: the context trap").

pub(super) mod decode;
mod models;
mod request;

use std::collections::HashMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use parking_lot::Mutex;
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use serde_json::{Value, json};

use super::http::{Clients, Draft, Endpoint};
use super::{ChunkStream, ErrorKind, Provider, ProviderError, Request, WiderWindow};
use crate::config::ProviderConfig;
use crate::message::Model;
use decode::OllamaWire;
use models::Facts;
use request::Target;

/// Most models whose abilities are kept; what comes after is looked up at each turn.
const MAX_KNOWN: usize = 256;

/// Most models looked up at once, so that a long list does not fill the server's queue.
const SHOWN_AT_ONCE: usize = 4;

/// An Ollama server, on this machine or elsewhere.
pub(super) struct Ollama {
    endpoint: Endpoint,
    /// Address of the server, without path.
    root: String,
    /// What the server said of its models, by name. Kept so that the requested context stays the
    /// same, and locked only to look something up or to add it.
    known: Mutex<HashMap<String, Facts>>,
}

impl Ollama {
    /// Makes an instance without touching the network.
    pub(super) fn new(config: Arc<ProviderConfig>, clients: Clients) -> Self {
        Self {
            root: root(&config.base_url).to_owned(),
            endpoint: Endpoint::new(config, clients),
            known: Mutex::default(),
        }
    }

    async fn answer(&self, request: Request<'_>) -> Result<ChunkStream, ProviderError> {
        let mut facts = match self.remembered(request.model) {
            Some(facts) => facts,
            None => {
                let asking = self.facts(request.model);
                self.endpoint.before_turn(request.model, asking).await?
            }
        };
        match self.send(&request, facts).await {
            Err(error)
                if error.kind == ErrorKind::NoTools && self.target(facts).has_tools(&request) =>
            {
                // The server was too old to say so when it was looked up.
                facts.tools = Some(false);
                self.remember(request.model, facts);
                self.send(&request, facts).await
            }
            outcome => outcome,
        }
        .map_err(|error| error.widened_at(WiderWindow::Ollama))
    }

    async fn send(
        &self,
        request: &Request<'_>,
        facts: Facts,
    ) -> Result<ChunkStream, ProviderError> {
        let (body, notices) = self.target(facts).body(request);
        let draft = Draft {
            url: format!("{}/api/chat", self.root),
            headers: self.headers()?,
            body,
            notices,
        };
        let wire = Box::new(OllamaWire::new(request::estimate(&draft.body)));
        self.endpoint.stream(request, &draft, wire).await
    }

    fn target(&self, facts: Facts) -> Target<'_> {
        let config = self.endpoint.config();
        Target {
            provider: &config.id,
            num_ctx: config.num_ctx,
            facts,
        }
    }

    async fn facts(&self, model: &str) -> Result<Facts, ProviderError> {
        match self.show(model).await {
            // A server that answers, but not to this question: `/api/chat` shall say what is wrong.
            Err(error) if !ends_the_turn(error.kind) => Ok(Facts::default()),
            outcome => outcome,
        }
    }

    async fn show(&self, model: &str) -> Result<Facts, ProviderError> {
        let body = json!({ "model": model }).to_string().into_bytes();
        let show = self.ask(Method::POST, "/api/show", Some(body)).await?;
        let facts = Facts::from_show(&show);
        self.remember(model, facts);
        Ok(facts)
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<Value, ProviderError> {
        let url = format!("{}{path}", self.root);
        self.endpoint
            .json(method, &url, self.headers()?, body)
            .await
    }

    fn headers(&self) -> Result<HeaderMap, ProviderError> {
        self.endpoint.key_header(AUTHORIZATION, "Bearer ")
    }

    fn remembered(&self, model: &str) -> Option<Facts> {
        self.known.lock().get(model).copied()
    }

    fn remember(&self, model: &str, facts: Facts) {
        let mut known = self.known.lock();
        if known.len() < MAX_KNOWN || known.contains_key(model) {
            known.insert(model.to_owned(), facts);
        }
    }
}

impl Provider for Ollama {
    fn stream<'a>(
        &'a self,
        request: Request<'a>,
    ) -> BoxFuture<'a, Result<ChunkStream, ProviderError>> {
        self.answer(request).boxed()
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<Model>, ProviderError>> {
        async move {
            let tags = self.ask(Method::GET, "/api/tags", None).await?;
            let config = self.endpoint.config();
            let shown = futures::stream::iter(models::listed(&tags))
                .map(|(name, listed)| async move {
                    // The list is worth having without what a single model does not tell.
                    let facts = self.show(&name).await.unwrap_or(listed);
                    (name, facts)
                })
                .buffered(SHOWN_AT_ONCE)
                .filter(|(_, facts)| std::future::ready(facts.completion != Some(false)))
                .map(|(name, facts)| facts.model(&config.id, &name, config.num_ctx));
            Ok(shown.collect().await)
        }
        .boxed()
    }

    fn validate(&self) -> BoxFuture<'_, Result<(), ProviderError>> {
        async move {
            self.ask(Method::GET, "/api/version", None).await?;
            self.ask(Method::GET, "/api/tags", None).await.map(drop)
        }
        .boxed()
    }

    fn model(&self, id: &str) -> Model {
        let config = self.endpoint.config();
        let facts = self.remembered(id).unwrap_or_default();
        facts.model(&config.id, id, config.num_ctx)
    }
}

/// The server's address out of a base URL that may have been meant for one of its APIs.
fn root(base_url: &str) -> &str {
    let url = base_url.trim_end_matches('/');
    let url = url
        .strip_suffix("/api")
        .or(url.strip_suffix("/v1"))
        .unwrap_or(url);
    url.trim_end_matches('/')
}

/// Whether a question that failed so need not be followed by the turn itself.
fn ends_the_turn(kind: ErrorKind) -> bool {
    let ending = [
        ErrorKind::Authentication,
        ErrorKind::Connect,
        ErrorKind::NotConfigured,
        ErrorKind::Overloaded,
        ErrorKind::Permission,
        ErrorKind::RateLimit,
        ErrorKind::Server,
        ErrorKind::Timeout,
    ];
    ending.contains(&kind)
}

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(super) mod testing {
    use super::*;

    /// Returns the body of a request to a model of which nothing is known.
    pub(in crate::provider) fn body(request: &Request<'_>) -> Value {
        let target = Target {
            provider: "p",
            num_ctx: None,
            facts: Facts::default(),
        };
        target.body(request).0.whole()
    }
}
