//! Anthropic Messages, at the vendor's own endpoint and at those that copy it.
//!
//! `request` and `history` build the body, `decode` reads the answer.
//! Facts: `docs/providers.md`, the headings that begin with "Anthropic".

mod amends;
mod blocks;
mod cache;
mod capabilities;
mod content;
pub(super) mod decode;
mod history;
mod models;
mod request;
#[cfg(test)]
mod tests;
mod thinking;

use std::collections::HashMap;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use self::amends::Amends;
use self::capabilities::Capabilities;
use self::decode::MessageWire;
use self::request::{Setting, prepare};
use super::http::{BETAS, Draft, Endpoint, unusable};
use super::{ChunkStream, Clients, ErrorKind, Provider, ProviderError, Request, output};
use crate::config::{NativeCompaction, ProviderConfig};
use crate::message::Model;

/// The vendor's own host.
const VENDOR: &str = "api.anthropic.com";

/// The API version of requests to the vendor, and the first that refuses sampling parameters.
const VERSION: &str = "2026-10-21";

/// The API version that those who copy the API know.
const COPIED_VERSION: &str = "2023-06-01";

const VERSION_HEADER: HeaderName = HeaderName::from_static("anthropic-version");
const BETA_HEADER: HeaderName = HeaderName::from_static(BETAS);

/// What requests with a compaction of the vendor's own need.
const COMPACTION_BETA: HeaderValue = HeaderValue::from_static("compact-2026-09-04");

const KEY_HEADER: HeaderName = HeaderName::from_static("x-api-key");

/// What tokens of a subscription begin with; they are accepted as bearer tokens only.
const OAUTH_PREFIX: &str = "sk-ant-oat";

/// Most models requested at once; the vendor's own limit.
const PAGE_SIZE: u32 = 1000;

/// Most pages of models read.
const MAX_PAGES: usize = 8;

/// Most models remembered; the vendor has some dozens, a gateway some hundreds.
const MAX_LISTED: usize = 4096;

/// A provider instance that speaks Anthropic Messages.
pub(super) struct Anthropic {
    endpoint: Endpoint,
    /// Models as the vendor listed them last; locked for a look-up or to take a list.
    listed: Mutex<HashMap<String, (Model, Capabilities)>>,
}

impl Anthropic {
    /// Makes the instance; nothing is sent before the first request.
    pub(super) fn new(config: Arc<ProviderConfig>, clients: Clients) -> Self {
        Self {
            endpoint: Endpoint::new(config, clients),
            listed: Mutex::default(),
        }
    }

    fn config(&self) -> &ProviderConfig {
        self.endpoint.config()
    }

    fn is_vendor(&self) -> bool {
        let url = Url::parse(&self.config().base_url);
        url.is_ok_and(|url| url.host_str() == Some(VENDOR))
    }

    /// Returns an extra header of the configuration.
    fn configured(&self, name: &HeaderName) -> Option<&str> {
        let headers = &self.config().headers;
        let header = headers
            .iter()
            .find(|(own, _)| own.eq_ignore_ascii_case(name.as_str()));
        header.map(|(_, value)| value.expose_secret().trim())
    }

    fn version(&self) -> &str {
        let chosen = if self.is_vendor() {
            VERSION
        } else {
            COPIED_VERSION
        };
        self.configured(&VERSION_HEADER).unwrap_or(chosen)
    }

    /// Returns the address of `path`, whether the base URL ends in `/v1` or not.
    fn url(&self, path: &str) -> String {
        let base = self.config().base_url.trim_end_matches('/');
        let base = base.strip_suffix("/v1").unwrap_or(base);
        format!("{base}/v1/{path}")
    }

    fn headers(&self) -> Result<HeaderMap, ProviderError> {
        // Both credentials at once are refused, and so those of the configuration stand alone.
        let has_own = [AUTHORIZATION, KEY_HEADER]
            .iter()
            .any(|name| self.configured(name).is_some());
        let is_oauth = |key: &SecretString| key.expose_secret().trim().starts_with(OAUTH_PREFIX);
        let mut headers = if has_own {
            HeaderMap::new()
        } else if self.endpoint.key()?.is_some_and(is_oauth) {
            self.endpoint.key_header(AUTHORIZATION, "Bearer ")?
        } else {
            self.endpoint.key_header(KEY_HEADER, "")?
        };
        let version = HeaderValue::from_str(self.version());
        let version = version.map_err(|_| unusable("the header anthropic-version"))?;
        headers.insert(VERSION_HEADER, version);
        Ok(headers)
    }

    fn capabilities(&self, model: &str) -> Capabilities {
        if let Some((_, known)) = self.listed.lock().get(model) {
            return known.clone();
        }
        let mut known = Capabilities::by_name(model);
        let listed = super::models::lookup(&self.config().preset, model);
        if let Some(most) = listed.and_then(|listed| listed.max_output_tokens) {
            known.max_tokens = most;
        }
        known
    }

    /// Sends one turn, and sends it otherwise where [`Amends`] help.
    async fn answer(&self, request: Request<'_>) -> Result<ChunkStream, ProviderError> {
        let capabilities = self.capabilities(request.model);
        let mut setting = Setting {
            provider: &self.config().id,
            vendor: self.is_vendor(),
            // Versions are dates, and so in the order of their text.
            no_sampling: self.version() >= VERSION,
            capabilities: &capabilities,
            amends: Amends::default(),
        };
        loop {
            let mut prepared = prepare(&request, setting);
            let mut headers = self.headers()?;
            if prepared.compacts {
                headers.insert(BETA_HEADER, COMPACTION_BETA);
            }
            let draft = Draft {
                url: self.url("messages"),
                headers,
                body: std::mem::take(&mut prepared.body),
                notices: std::mem::take(&mut prepared.notices),
            };
            let prefix = std::mem::take(&mut prepared.prefix);
            let wire = Box::new(MessageWire::new(prefix));
            let error = match self.endpoint.stream(&request, &draft, wire).await {
                Err(error) => error,
                Ok(chunks) if prepared.has_form && !setting.vendor => {
                    return Ok(output::from_call(chunks));
                }
                answer => return answer,
            };
            let Some(amends) = setting.amends.after(&error, &prepared) else {
                return Err(error);
            };
            tracing::debug!(model = request.model, %error, "request is put otherwise");
            setting.amends = amends;
        }
    }

    async fn page(&self, size: u32, after: Option<&str>) -> Result<Value, ProviderError> {
        let mut url = Url::parse(&self.url("models")).map_err(|error| {
            let message = format!("base_url is no URL: {error}");
            ProviderError::new(ErrorKind::NotConfigured, message)
        })?;
        url.query_pairs_mut()
            .append_pair("limit", &size.to_string());
        if let Some(after) = after {
            url.query_pairs_mut().append_pair("after_id", after);
        }
        self.endpoint
            .json(Method::GET, url.as_str(), self.headers()?, None)
            .await
    }
}

impl Provider for Anthropic {
    fn stream<'a>(
        &'a self,
        request: Request<'a>,
    ) -> BoxFuture<'a, Result<ChunkStream, ProviderError>> {
        self.answer(request).boxed()
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<Model>, ProviderError>> {
        async move {
            let config = self.config();
            let mut listed = Vec::new();
            let mut after: Option<String> = None;
            for _ in 0..MAX_PAGES {
                let answer = self.page(PAGE_SIZE, after.as_deref()).await?;
                let (page, next) = models::page(&answer, &config.id, &config.preset);
                for (model, capabilities) in page {
                    let mut known = self.listed.lock();
                    if known.len() < MAX_LISTED {
                        known.insert(model.id.clone(), (model.clone(), capabilities));
                    }
                    listed.push(model);
                }
                // A server that gives the same page again has no more.
                if next.is_none() || next == after {
                    break;
                }
                after = next;
            }
            Ok(listed)
        }
        .boxed()
    }

    fn validate(&self) -> BoxFuture<'_, Result<(), ProviderError>> {
        async { self.page(1, None).await.map(drop) }.boxed()
    }

    fn forms_beside_tools(&self) -> bool {
        self.is_vendor()
    }

    fn caches_by_settings(&self) -> bool {
        true
    }

    fn native_compaction(&self) -> NativeCompaction {
        NativeCompaction::Anthropic
    }

    fn model(&self, id: &str) -> Model {
        let config = self.config();
        match self.listed.lock().get(id) {
            Some((model, _)) => model.clone(),
            None => super::models::describe(&config.id, &config.preset, id),
        }
    }
}

#[cfg(test)]
pub(super) mod testing {
    use super::*;

    /// Returns the body of a request to the vendor.
    pub(in crate::provider) fn body(request: &Request<'_>) -> Value {
        let setting = Setting {
            provider: "p",
            vendor: true,
            no_sampling: false,
            capabilities: &Capabilities::by_name(request.model),
            amends: Amends::default(),
        };
        prepare(request, setting).body.whole()
    }
}
