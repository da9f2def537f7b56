//! What the daemon answers when a server speaks first.
//!
//! It offers neither sampling nor roots, so a well-behaved server asks for none of them; one that does is
//! refused in the words of the protocol. What it asks of the user goes to the call that runs (`elicitation`).

#![expect(
    deprecated,
    reason = "roots and logging are on their way out of the protocol; servers of today still speak of them"
)]

use std::collections::HashMap;
use std::sync::Arc;

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationCapability,
    ErrorCode, ErrorData, FormElicitationCapability, Implementation, ListRootsResult,
    LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken, ProtocolVersion,
    UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use tokio::sync::{Mutex, Notify, mpsc};

use super::content;
use super::elicitation::Elicitations;
use crate::tool::user::Given;

/// Lines of progress that wait for a call; further ones are dropped, for the next says more.
pub(super) const PROGRESS_QUEUE: usize = 64;

/// Who follows the progress of which request.
///
/// An async lock: it is held while a request is sent, so that its first progress finds it here.
pub(super) type Followers = Arc<Mutex<HashMap<ProgressToken, mpsc::Sender<String>>>>;

/// The daemon as a server sees it.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) server: String,
    /// Notified when one of the server's lists changed.
    pub(super) changed: Arc<Notify>,
    pub(super) followers: Followers,
    pub(super) elicitations: Elicitations,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(
            ElicitationCapability::new()
                .with_form(FormElicitationCapability::new())
                .with_url(UrlElicitationCapability::new()),
        );
        ClientConfig::new(
            capabilities,
            Implementation::new("outrigger", env!("CARGO_PKG_VERSION")),
        )
        .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Err(ErrorData::new(
            ErrorCode::METHOD_NOT_FOUND,
            "this client offers no roots",
            None,
        ))
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        // Cancelled where the server waits no more.
        let ask = async |wanted| {
            let given = context
                .ct
                .run_until_cancelled(self.elicitations.ask(wanted));
            given.await.unwrap_or(Ok(Given::Cancelled))
        };
        Ok(self.elicitations.answer(params, ask).await)
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let follower = {
            let followers = self.followers.lock().await;
            followers.get(&progress.progress_token).cloned()
        };
        if let Some(follower) = follower {
            let line = content::progress(
                progress.progress,
                progress.total,
                progress.message.as_deref(),
            );
            if follower.try_send(line).is_err() {
                tracing::trace!(server = self.server, "progress dropped");
            }
        }
    }

    async fn on_logging_message(
        &self,
        message: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        tracing::debug!(server = self.server, level = ?message.level, "{:?}", message.data);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}
