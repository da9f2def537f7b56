//! Transports of the SDK whose server is taken in within bounds: see [`Intake`].

use std::collections::HashMap;
use std::sync::Arc;

use futures::StreamExt as _;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, GetExtensions as _, JsonRpcMessage, RequestId,
};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};

use super::intake::Intake;

/// A transport whose server's own requests are counted.
pub(super) struct Counted<T> {
    inner: T,
    intake: Arc<Intake>,
    /// The request that asks whether the server speaks the newer protocol.
    probe: Option<RequestId>,
    /// The same, once it was given up for the older handshake: what answers it then comes too late.
    given_up: Option<RequestId>,
}

impl<T> Counted<T> {
    pub(super) fn new(inner: T, intake: Arc<Intake>) -> Self {
        Self {
            inner,
            intake,
            probe: None,
            given_up: None,
        }
    }

    /// Looks at what is sent for the probe and its end.
    ///
    /// A server that takes longer to start than the SDK waits for the probe answers it after `initialize` was sent. The SDK
    /// takes the next answer for that of `initialize`, whichever it is, and fails.
    fn follow(&mut self, item: &TxJsonRpcMessage<RoleClient>) {
        let JsonRpcMessage::Request(sent) = item else {
            return;
        };
        match &sent.request {
            ClientRequest::DiscoverRequest(_) => self.probe = Some(sent.id.clone()),
            ClientRequest::InitializeRequest(_) => self.given_up = self.probe.take(),
            _ => {}
        }
    }

    fn is_late(&self, message: &RxJsonRpcMessage<RoleClient>) -> bool {
        let id = match message {
            JsonRpcMessage::Response(answer) => Some(&answer.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        id.is_some() && id == self.given_up.as_ref()
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Counted<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.follow(&item);
        let is_answer = matches!(item, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        let open = is_answer.then(|| self.intake.answer());
        let sent = self.inner.send(item);
        async move {
            let outcome = sent.await;
            drop(open);
            outcome
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let mut message = self.inner.receive().await?;
        while self.is_late(&message) {
            message = self.inner.receive().await?;
        }
        if let JsonRpcMessage::Request(request) = &mut message {
            // Dropped by the SDK when the request is answered or withdrawn.
            let open = self.intake.request();
            request.request.extensions_mut().insert(open);
        }
        Some(message)
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}

/// An HTTP client whose event streams are taken in at the server's pace.
#[derive(Clone)]
pub(super) struct Paced {
    pub(super) client: reqwest::Client,
    /// What all streams of the connection share.
    pub(super) intake: Arc<Intake>,
}

impl Paced {
    fn answer(&self, answer: StreamableHttpPostResponse) -> StreamableHttpPostResponse {
        match answer {
            StreamableHttpPostResponse::Sse(stream, session) => {
                StreamableHttpPostResponse::Sse(self.events(stream), session)
            }
            // One message, as large as the SDK takes, for one of the daemon's own.
            other => other,
        }
    }

    fn events(&self, stream: BoxedSseResponse) -> BoxedSseResponse {
        paced(stream, Arc::clone(&self.intake))
    }
}

fn paced(stream: BoxedSseResponse, intake: Arc<Intake>) -> BoxedSseResponse {
    let events = stream.filter_map(move |event| {
        let intake = Arc::clone(&intake);
        async move {
            let data = event.as_ref().ok().and_then(|event| event.data.as_deref());
            let is_wanted = intake.admit(data.unwrap_or_default().as_bytes()).await;
            is_wanted.then_some(event)
        }
    });
    events.boxed()
}

type Headers = HashMap<HeaderName, HeaderValue>;

// An event is bounded by what `reqwest::Client` takes by itself, the 16 MiB that are the transport's default too.
impl StreamableHttpClient for Paced {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<Self::Error>> {
        let client = &self.client;
        let posted = client.post_message(uri, message, session, token, headers);
        Ok(self.answer(posted.await?))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), StreamableHttpError<Self::Error>> {
        self.client
            .delete_session(uri, session, token, headers)
            .await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<BoxedSseResponse, StreamableHttpError<Self::Error>> {
        self.intake.reopen().await;
        let opened = self.client.get_stream(uri, session, last, token, headers);
        Ok(self.events(opened.await?))
    }
}

#[cfg(test)]
mod tests;
