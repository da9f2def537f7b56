//! What Chat Completions and Responses share: sending with repairs, lists of models, checks of keys.
//!
//! A server that refuses a request for something it does not take gets it once more without, and the
//! model is remembered as one that needs it so, unless the fault was that request's own. A call that the server found wrong is sent once more with what was
//! wrong. A turn that failed is tried again by the exchange alone.

mod listing;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use parking_lot::Mutex;
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use serde_json::{Value, json};

use super::chat::decode::ChatWire;
use super::decode::Wire;
use super::http::{Clients, Draft, Endpoint};
use super::notices::{documents_left_out, images_left_out, no_tools};
use super::quirks::repair::{self, Learned, Repair};
use super::quirks::{GENERIC_VENDOR, Quirks, url, vendor};
use super::responses::decode::{Limits, ResponsesWire};
use super::{
    ChunkStream, ErrorKind, Provider, ProviderError, Request, ToolChoice, WiderWindow, chat,
    models, output, responses,
};
use crate::config::{NativeCompaction, ProviderConfig, ProviderKind};
use crate::message::Model;

/// Vendors whose list has the window that a model has there; the table cannot know what is served. A
/// server that nobody named may be one of them.
const LIST_WINDOWS: [&str; 5] = ["vllm", "llamacpp", "lmstudio", "openrouter", GENERIC_VENDOR];

/// Most models that the list is requested for by itself.
const MAX_LOOKED_UP: usize = 64;

/// A server that speaks one of OpenAI's two APIs, and what was learned of its models.
pub(super) struct Server {
    endpoint: Endpoint,
    learned: Arc<Learned>,
    /// Models as the server listed them last, which says more than the table; locked to look one up or
    /// to take a list.
    listed: Mutex<BTreeMap<String, Model>>,
    /// Models that the list was requested for; see [`Server::look_up`].
    looked_up: Mutex<BTreeSet<String>>,
    /// Whose server it is, where its list says so and nothing else does.
    recognised: OnceLock<&'static str>,
}

impl Server {
    /// Makes an instance without touching the network.
    pub(super) fn new(config: Arc<ProviderConfig>, clients: Clients) -> Self {
        Self {
            endpoint: Endpoint::new(config, clients),
            learned: Arc::default(),
            listed: Mutex::default(),
            looked_up: Mutex::default(),
            recognised: OnceLock::new(),
        }
    }

    /// Whose server it is: by the configuration, else by what its list says.
    fn vendor(&self) -> &str {
        match vendor(self.endpoint.config()) {
            GENERIC_VENDOR => self.recognised.get().copied().unwrap_or(GENERIC_VENDOR),
            vendor => vendor,
        }
    }

    /// Sends one turn, with what is known of the model and what the server's complaints add to it.
    async fn answer(&self, request: Request<'_>) -> Result<ChunkStream, ProviderError> {
        let vendor = self.vendor();
        let mut quirks = self.learned.quirks(vendor, request.model);
        let mut repairs = Vec::new();
        let mut mistake = match request.compact {
            Some(_) => None,
            None => self.learned.take_mistake(request.cache_key),
        };
        loop {
            let (draft, wire) = self.draft(&request, &quirks, mistake.as_deref())?;
            let error = match self.endpoint.stream(&request, &draft, wire).await {
                Ok(mut chunks) => {
                    if output::by_tool(&request, &quirks).is_some() {
                        chunks = output::from_call(chunks);
                    }
                    if !repairs.is_empty() {
                        self.learned.remember(vendor, request.model, &repairs);
                    }
                    return Ok(self.watched(request.cache_key, chunks));
                }
                Err(error) => error,
            };
            if error.is_model_mistake() && mistake.is_none() && request.compact.is_none() {
                mistake = Some(error.message);
                continue;
            }
            let start = Quirks::of(vendor, request.model);
            match repair::find(&error, &draft.body.fields, &start, &quirks) {
                Some(found) => {
                    tracing::debug!(model = request.model, %error, "request refused, repaired");
                    if found.is_of_model {
                        repairs.push(found.repair);
                    }
                    quirks = found.quirks;
                }
                None => return Err(self.advised(error)),
            }
        }
    }

    /// Returns the request as it goes out, and what reads its answer.
    fn draft(
        &self,
        request: &Request<'_>,
        quirks: &Quirks,
        mistake: Option<&str>,
    ) -> Result<(Draft, Box<dyn Wire>), ProviderError> {
        let config = self.endpoint.config();
        let mut notices = Vec::new();
        if !quirks.tools && !request.tools.is_empty() && request.tool_choice == ToolChoice::Auto {
            notices.push(no_tools(request.model));
        }
        if !quirks.images {
            notices.extend(images_left_out(request));
        }
        if !quirks.documents {
            notices.extend(documents_left_out(request));
        }
        // A model may need the other API than the one that is configured.
        let is_chat = (config.kind == ProviderKind::Chat) != quirks.other_api;
        if is_chat && request.compact.is_some() {
            let problem = "Chat Completions has no compaction of the vendor's own";
            return Err(ProviderError::new(ErrorKind::InvalidRequest, problem));
        }
        let (path, mut body, wire): (_, _, Box<dyn Wire>) = if is_chat {
            let body = chat::request::body(request, quirks, &config.id, &mut notices);
            ("chat/completions", body, Box::<ChatWire>::default())
        } else {
            let body = responses::request::body(request, quirks, &config.id, &mut notices);
            let wire = ResponsesWire::within(self.limits(request, quirks));
            ("responses", body, Box::new(wire))
        };
        if let Some(mistake) = mistake {
            add_mistake(&mut body.fields, mistake);
        }
        let draft = Draft {
            url: url(&config.base_url, path),
            headers: self.headers()?,
            body,
            notices,
        };
        Ok((draft, wire))
    }

    /// Returns where the answer is cut, if the server does not say itself that it was.
    fn limits(&self, request: &Request<'_>, quirks: &Quirks) -> Limits {
        match quirks.says_cut {
            true => Limits::default(),
            false => Limits {
                output: request.max_tokens.map(u64::from),
                window: self.model(request.model).context_window,
            },
        }
    }

    /// Notes a call that the server refuses while it answers, so that the model learns of it when the
    /// turn is run again.
    fn watched(&self, conversation: &str, chunks: ChunkStream) -> ChunkStream {
        let learned = Arc::clone(&self.learned);
        let conversation = conversation.to_owned();
        chunks
            .inspect(move |chunk| {
                if let Err(error) = chunk
                    && error.is_model_mistake()
                {
                    learned.note_mistake(&conversation, &error.message);
                }
            })
            .boxed()
    }

    /// Adds what to do where the window is the user's own to widen.
    fn advised(&self, error: ProviderError) -> ProviderError {
        let server = match self.vendor() {
            "llamacpp" => WiderWindow::LlamaCpp,
            "vllm" => WiderWindow::Vllm,
            "lmstudio" => WiderWindow::LmStudio,
            _ => return error,
        };
        error.widened_at(server)
    }

    async fn ask(&self, url: &str) -> Result<Value, ProviderError> {
        let headers = self.headers()?;
        self.endpoint.json(Method::GET, url, headers, None).await
    }

    fn headers(&self) -> Result<HeaderMap, ProviderError> {
        self.endpoint.key_header(AUTHORIZATION, "Bearer ")
    }

    /// The URL of a path beside the compatible API.
    fn beside(&self, path: &str) -> String {
        let base = self.endpoint.config().base_url.trim_end_matches('/');
        let root = base.strip_suffix("/v1").unwrap_or(base);
        format!("{root}{path}")
    }
}

impl Provider for Server {
    fn stream<'a>(
        &'a self,
        request: Request<'a>,
    ) -> BoxFuture<'a, Result<ChunkStream, ProviderError>> {
        self.answer(request).boxed()
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<Model>, ProviderError>> {
        async move {
            let config = self.endpoint.config();
            let own: &[&str] = match self.vendor() {
                // Its own API says more than the compatible one; older versions have another path.
                "lmstudio" => &["/api/v1/models", "/api/v0/models"],
                _ => &[],
            };
            let mut list = None;
            for path in own {
                if list.is_none() {
                    list = self.ask(&self.beside(path)).await.ok();
                }
            }
            let list = match list {
                Some(list) => list,
                None => self.ask(&url(&config.base_url, "models")).await?,
            };
            if let Some(vendor) = listing::recognised(&list) {
                self.recognised.get_or_init(|| vendor);
            }
            let vendor = self.vendor();
            let props = match vendor {
                "llamacpp" => self.ask(&self.beside("/props")).await.ok(),
                _ => None,
            };
            let models = listing::models(&list, props.as_ref(), &config.id, vendor);
            let by_id = models.iter().map(|model| (model.id.clone(), model.clone()));
            *self.listed.lock() = by_id.collect();
            for model in models.iter().filter(|model| !model.supports_tools) {
                let without_tools: Repair = |quirks| quirks.tools = false;
                self.learned.remember(vendor, &model.id, &[without_tools]);
            }
            Ok(models)
        }
        .boxed()
    }

    fn validate(&self) -> BoxFuture<'_, Result<(), ProviderError>> {
        async move {
            let config = self.endpoint.config();
            let vendor = self.vendor();
            let path = match vendor {
                // Its list of models is public.
                "openrouter" => "key",
                _ => "models",
            };
            match self.ask(&url(&config.base_url, path)).await {
                // A restricted key may not list models and answers all the same.
                Err(error) if vendor == "openai" && error.kind == ErrorKind::Permission => Ok(()),
                outcome => outcome.map(drop),
            }
        }
        .boxed()
    }

    fn look_up<'a>(&'a self, model: &'a str) -> BoxFuture<'a, ()> {
        async move {
            let has_windows = LIST_WINDOWS.contains(&self.vendor());
            let is_listed = self.listed.lock().contains_key(model);
            if !has_windows || is_listed || self.model(model).context_window.is_some() {
                return;
            }
            {
                let mut looked_up = self.looked_up.lock();
                if looked_up.len() >= MAX_LOOKED_UP || !looked_up.insert(model.to_owned()) {
                    return;
                }
            }
            if let Err(error) = self.models().await {
                tracing::debug!(model, %error, "no list of models");
            }
        }
        .boxed()
    }

    fn forms_beside_tools(&self) -> bool {
        // Local servers hold all that the model writes to the form, calls too.
        self.vendor() == "openai"
    }

    fn native_compaction(&self) -> NativeCompaction {
        match self.endpoint.config().kind {
            ProviderKind::Responses => NativeCompaction::Openai,
            _ => NativeCompaction::Off,
        }
    }

    fn model(&self, id: &str) -> Model {
        let config = self.endpoint.config();
        let listed = self.listed.lock().get(id).cloned();
        let vendor = self.vendor();
        let mut model = listed.unwrap_or_else(|| models::describe(&config.id, vendor, id));
        let known = self.learned.quirks(vendor, id);
        model.supports_tools &= known.tools;
        if known.images != Quirks::of(vendor, id).images {
            model.supports_vision = Some(false);
        }
        model
    }
}

/// Adds what was wrong with the model's last call, which the server kept to itself.
fn add_mistake(body: &mut Value, mistake: &str) {
    let text = format!(
        "Your last tool call was refused before it ran: {mistake}\nCall the tool again with input that fits its schema, or answer without it."
    );
    let (messages, content) = match body.get("messages") {
        Some(_) => (body.get_mut("messages"), json!(text)),
        None => {
            let part = json!([{"type": "input_text", "text": text}]);
            (body.get_mut("input"), part)
        }
    };
    if let Some(Value::Array(messages)) = messages {
        messages.push(json!({"role": "user", "content": content}));
    }
}

#[cfg(test)]
mod tests;
