//! OpenAI Responses, stateless: the server keeps nothing, each request holds the whole conversation.
//!
//! What servers do differently is in `quirks`, sending in `compat`.

pub(super) mod decode;
mod items;
pub(super) mod request;

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

use super::compat::{Api, Server};
use super::{ChunkStream, Clients, Provider, ProviderError, Request};
use crate::config::ProviderConfig;
use crate::message::Model;

/// A server of Responses.
///
/// Where it turns out to have none, Chat Completions is used from then on.
pub struct Responses {
    server: Server,
}

impl Responses {
    /// Makes an instance without touching the network.
    pub fn new(config: Arc<ProviderConfig>, clients: Clients) -> Self {
        Self {
            server: Server::new(Api::Responses, config, clients),
        }
    }
}

impl Provider for Responses {
    fn stream<'a>(
        &'a self,
        request: Request<'a>,
    ) -> BoxFuture<'a, Result<ChunkStream, ProviderError>> {
        self.server.answer(request).boxed()
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<Model>, ProviderError>> {
        self.server.models().boxed()
    }

    fn validate(&self) -> BoxFuture<'_, Result<(), ProviderError>> {
        self.server.check().boxed()
    }

    fn look_up<'a>(&'a self, model: &'a str) -> BoxFuture<'a, ()> {
        self.server.look_up(model).boxed()
    }

    fn model(&self, id: &str) -> Model {
        self.server.model(id)
    }
}
