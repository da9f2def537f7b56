//! HTTP to a provider: one [`Endpoint`] per provider instance.
//!
//! Sends, waits within the instance's limits, turns failures into [`ProviderError`], and hands the
//! bytes of an answer to `body`. Nothing here knows a wire format. Only a request that met a dead connection is sent
//! once more, by [`crate::http::send`].

mod fault;
pub(super) mod secrets;
mod silence;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT,
};
use reqwest::{Method, Response};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::body::{self, ByteStream};
use super::decode::{Decoder, Wire};
use super::gate::{Gate, Gates};
use super::lines::{MAX_EVENT_BYTES, too_long};
use super::notices;
use super::record::Tape;
use super::request::Body;
use super::{ChunkStream, ErrorKind, ProviderError, Request};
use crate::config::{ProviderConfig, variable_of_key};
use crate::http::ClientError;
use crate::message::Notice;
use secrets::Secrets;

/// Most bytes read of the body of an error status; vendors' errors have a few hundred.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// Longest time spent on the body of an error status.
const ERROR_BODY_TIME: Duration = Duration::from_secs(10);

/// Longest time for an answer that is no stream: lists of models, checks of a key.
const JSON_TIME: Duration = Duration::from_secs(30);

impl From<ClientError> for ProviderError {
    fn from(error: ClientError) -> Self {
        let kind = match error {
            ClientError::Setting(_) => ErrorKind::NotConfigured,
            ClientError::Setup(_) => ErrorKind::Connect,
        };
        Self::new(kind, error.to_string())
    }
}

/// What the provider instances of the daemon share; clones share it too.
#[derive(Clone, Default)]
pub struct Clients {
    http: crate::http::Clients,
    gates: Gates,
}

/// A header that lists things: what the configuration has of it is added to what a request needs.
pub(crate) const BETAS: &str = "anthropic-beta";

/// Where a provider instance is reached, and as whom.
pub(crate) struct Endpoint {
    config: Arc<ProviderConfig>,
    clients: crate::http::Clients,
    /// Shared with the answers that run, for one may turn out to be a refusal, and with all instances
    /// that have the same address and key.
    gate: Arc<Gate>,
    secrets: Secrets,
    notices: notices::Once,
}

/// A turn as it goes out.
pub(crate) struct Draft {
    pub(crate) url: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
    /// What the user should know; a conversation gets each once.
    pub(crate) notices: Vec<Notice>,
}

impl Endpoint {
    /// Makes an endpoint without touching the network, the certificate store or the disk.
    pub(crate) fn new(config: Arc<ProviderConfig>, clients: Clients) -> Self {
        Self {
            secrets: Secrets::of(&config),
            gate: clients.gates.of(&config),
            clients: clients.http,
            notices: notices::Once::default(),
            config,
        }
    }

    pub(crate) fn config(&self) -> &ProviderConfig {
        &self.config
    }

    /// Returns the key, `None` where the instance works without one.
    pub(crate) fn key(&self) -> Result<Option<&SecretString>, ProviderError> {
        let key = self.config.api_key.as_ref();
        let key = key.filter(|key| !key.expose_secret().trim().is_empty());
        if key.is_some() || self.config.key_optional {
            return Ok(key);
        }
        let id = &self.config.id;
        Err(ProviderError::new(
            ErrorKind::NotConfigured,
            format!(
                "provider {id:?} has no key: set providers.{id}.api_key, or the variable {}",
                variable_of_key(id)
            ),
        ))
    }

    /// Returns the key as the header `name`, after `prefix`; empty where the instance works without.
    pub(crate) fn key_header(
        &self,
        name: HeaderName,
        prefix: &str,
    ) -> Result<HeaderMap, ProviderError> {
        let mut headers = HeaderMap::new();
        if let Some(key) = self.key()? {
            let text = format!("{prefix}{}", key.expose_secret().trim());
            headers.insert(name, secret_value(&text, "the key")?);
        }
        Ok(headers)
    }

    /// Sends a request that a turn needs first: not where the provider is known to be busy.
    pub(crate) async fn before_turn<T>(
        &self,
        model: &str,
        question: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        let mut permit = self.gate.permit(model)?;
        question.await.map_err(|mut error| {
            permit.failed(&mut error);
            error
        })
    }

    /// Posts a turn and returns the chunks of the answer as they come, read by `wire`.
    /// What goes wrong in the body of a 2xx comes in the stream.
    pub(crate) async fn stream(
        &self,
        request: &Request<'_>,
        draft: &Draft,
        wire: Box<dyn Wire>,
    ) -> Result<ChunkStream, ProviderError> {
        let accepted = match wire.is_ndjson() {
            true => "application/x-ndjson",
            false => "text/event-stream",
        };
        let mut headers = draft.headers.clone();
        headers.insert(ACCEPT, HeaderValue::from_static(accepted));
        // Proxies that compress gather a stream until it is worth compressing.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let mut permit = self.gate.permit(request.model)?;
        let body = serde_json::to_vec(&draft.body).map_err(|error| {
            ProviderError::new(ErrorKind::InvalidRequest, format!("no JSON: {error}"))
        })?;
        let opened = self.open(&draft.url, wire.name(), headers, body).await;
        let (content_type, bytes) = opened.map_err(|mut error| {
            if error.status.is_some() && !error.is_about_load() {
                permit.answered();
            }
            permit.failed(&mut error);
            error
        })?;
        let secrets = self.secrets.clone();
        let notices = draft.notices.clone();
        let decoder = Decoder::new(wire, &self.config.id, request.model, notices);
        let chunks = body::chunks(bytes, &content_type, decoder)
            .map(move |item| {
                let mut item = item.map_err(|error| secrets.clean(error));
                permit.observe(&mut item);
                item
            })
            .boxed();
        Ok(self.notices.filter(request, chunks))
    }

    /// Posts a body of the wire format `api`; returns the content type of the answer and its bytes.
    async fn open(
        &self,
        url: &str,
        api: &str,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<(String, ByteStream), ProviderError> {
        let folder = self.config.record.as_deref();
        let mut tape = folder.map(|folder| Tape::new(folder, &self.config, api, body.clone()));
        let sent = self.send(Method::POST, url, headers, Some(body)).await;
        if let Some(tape) = &mut tape {
            match &sent {
                Ok(response) => tape.answered(response.status().as_u16(), response.headers()),
                Err(error) => tape.failed(error),
            }
        }
        let response = sent?;
        if !response.status().is_success() {
            return Err(self.refusal(response, tape).await);
        }
        let content_type = response.headers().get(CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or_default().to_owned();
        Ok((content_type, self.bytes(response, tape)))
    }

    /// Asks for JSON and returns it whole.
    pub(crate) async fn json(
        &self,
        method: Method,
        url: &str,
        mut headers: HeaderMap,
        body: Option<Vec<u8>>,
    ) -> Result<Value, ProviderError> {
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let whole = async {
            let response = self.send(method, url, headers, body).await?;
            if !response.status().is_success() {
                return Err(self.refusal(response, None).await);
            }
            read_whole(self.bytes(response, None)).await
        };
        let bytes = tokio::time::timeout(JSON_TIME, whole)
            .await
            .map_err(|_| fault::too_slow(url, "no whole answer", JSON_TIME))??;
        serde_json::from_slice(&bytes).map_err(|error| {
            let place = fault::place(url);
            ProviderError::new(
                ErrorKind::Protocol,
                format!(
                    "{place} answered with something that is no JSON ({error}), check base_url"
                ),
            )
        })
    }

    /// Sends a request and returns the head of the answer, whatever its status.
    async fn send(
        &self,
        method: Method,
        url: &str,
        mut headers: HeaderMap,
        body: Option<Vec<u8>>,
    ) -> Result<Response, ProviderError> {
        let agent = concat!("outrigger/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        // What the configuration adds wins.
        for (name, value) in &self.config.headers {
            let what = format!("the header {name:?}");
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unusable(&what))?;
            let needed = headers.get(&name).filter(|_| name == BETAS);
            let listed = needed.and_then(|needed| needed.to_str().ok());
            let listed = listed.map(|needed| format!("{},{needed}", value.expose_secret().trim()));
            let value = listed.as_deref().unwrap_or(value.expose_secret());
            headers.insert(name, secret_value(value, &what)?);
        }
        let client = self
            .clients
            .get(url, self.config.ca_file.as_deref())
            .await?;
        let mut request = client.request(method, url).headers(headers);
        if let Some(body) = body {
            request = request
                .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
                .body(body);
        }
        let limit = self.config.timeout_first_byte;
        // A question to a model has no effects but its price, so it may go out a second time.
        let response = tokio::time::timeout(limit, crate::http::send(request))
            .await
            .map_err(|_| fault::too_slow(url, "no answer", limit))?
            .map_err(|error| fault::before_answer(url, &error))?;
        Ok(response)
    }

    /// Reads the answer of an error status.
    async fn refusal(&self, response: Response, tape: Option<Tape>) -> ProviderError {
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let mut bytes = self.bytes(response, tape);
        let mut body = Vec::new();
        let read = async {
            while let Some(Ok(read)) = bytes.next().await {
                body.extend_from_slice(&read);
                if body.len() >= MAX_ERROR_BYTES {
                    body.truncate(MAX_ERROR_BYTES);
                    break;
                }
            }
        };
        // What came in time is enough to tell the kind: the status alone does.
        let _ = tokio::time::timeout(ERROR_BODY_TIME, read).await;
        self.secrets
            .clean(ProviderError::from_response(status, &headers, &body))
    }

    fn bytes(&self, response: Response, tape: Option<Tape>) -> ByteStream {
        let bytes = silence::bounded(response, self.config.timeout_idle);
        match tape {
            Some(tape) => tape.around(bytes),
            None => bytes,
        }
    }
}

async fn read_whole(mut bytes: ByteStream) -> Result<Vec<u8>, ProviderError> {
    let mut body = Vec::new();
    while let Some(read) = bytes.next().await {
        body.extend_from_slice(&read?);
        if body.len() > MAX_EVENT_BYTES {
            return Err(too_long());
        }
    }
    Ok(body)
}

/// Makes a header value that no log shows.
fn secret_value(text: &str, what: &str) -> Result<HeaderValue, ProviderError> {
    let mut value = HeaderValue::from_str(text.trim()).map_err(|_| unusable(what))?;
    value.set_sensitive(true);
    Ok(value)
}

pub(super) fn unusable(what: &str) -> ProviderError {
    ProviderError::new(
        ErrorKind::NotConfigured,
        format!("{what} has characters that no HTTP header can hold"),
    )
}

#[cfg(test)]
mod tests;
