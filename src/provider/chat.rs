//! OpenAI Chat Completions, and every server that speaks it.
//!
//! What servers do differently is in `quirks`, sending in `compat`.

mod brief;
mod calls;
pub(super) mod decode;
mod details;
pub(super) mod history;
mod message;
pub(super) mod request;
pub(super) mod usage;

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

use super::compat::{Api, Server};
use super::{ChunkStream, Clients, Provider, ProviderError, Request};
use crate::config::ProviderConfig;
use crate::message::Model;

/// A server of Chat Completions.
///
/// A model that the server sends to Responses is asked there from then on.
pub struct Chat {
    server: Server,
}

impl Chat {
    /// Makes an instance without touching the network.
    pub fn new(config: Arc<ProviderConfig>, clients: Clients) -> Self {
        Self {
            server: Server::new(Api::Chat, config, clients),
        }
    }
}

impl Provider for Chat {
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
