//! What the daemon answers when a server speaks first.
//!
//! It offers sampling where the operator says so; a server that asks for what is not offered is refused in the words of the protocol.
//! A program is told of its folder (`roots`). What a server asks of the user goes to the call that runs (`elicitation`).

#![expect(
    deprecated,
    reason = "roots and logging are on their way out of the protocol; servers of today still speak of them"
)]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequestParams, ElicitResult, ElicitationCapability, ErrorCode, ErrorData,
    FormElicitationCapability, Implementation, ListRootsResult, LoggingLevel,
    LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken, ProtocolVersion,
    ResourceUpdatedNotificationParam, RootsCapabilities, SamplingCapability, SetLevelRequestParams,
    UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, RoleClient};
use tokio::sync::{Mutex, Notify, mpsc};

use super::audience::Voice;
use super::content;
use super::elicitation::Elicitations;
use super::roots::Roots;
use super::subscriptions::Subscriptions;
use crate::protocol::mcp::McpLogLevel;
use crate::tool::user::{Given, Unsampled};

/// Lines of progress that wait for a call; further ones are dropped, for the next says more.
pub(super) const PROGRESS_QUEUE: usize = 64;

/// How long a server may take to take the level of its log.
const LEVEL_LIMIT: Duration = Duration::from_secs(10);

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
    pub(super) voice: Voice,
    pub(super) subscriptions: Subscriptions,
    pub(super) roots: Roots,
    /// Whether the operator lets it ask for answers of models.
    pub(super) samples: bool,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        if self.roots.are_told() {
            let mut roots = RootsCapabilities::default();
            roots.list_changed = Some(true);
            capabilities.roots = Some(roots);
        }
        if self.samples {
            capabilities.sampling = Some(SamplingCapability::default());
        }
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
        self.roots.list().ok_or_else(|| {
            let why = "this client offers no roots to endpoints";
            ErrorData::new(ErrorCode::METHOD_NOT_FOUND, why, None)
        })
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        if !self.samples {
            let why = "this client offers no sampling";
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, why, None));
        }
        // Cancelled where the server waits no more.
        let ask = async |sample| {
            let sampled = context
                .ct
                .run_until_cancelled(self.elicitations.ask_model(sample));
            sampled.await.unwrap_or(Err(Unsampled::Cancelled))
        };
        self.elicitations.sampled(params, ask).await
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
        let level = level_of(message.level);
        self.voice
            .log(level, message.logger.as_deref(), &message.data);
    }

    async fn on_resource_updated(
        &self,
        updated: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.subscriptions.updated(&self.voice, &updated.uri);
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

fn level_of(level: LoggingLevel) -> McpLogLevel {
    match level {
        LoggingLevel::Debug => McpLogLevel::Debug,
        LoggingLevel::Info => McpLogLevel::Info,
        LoggingLevel::Notice => McpLogLevel::Notice,
        LoggingLevel::Warning => McpLogLevel::Warning,
        LoggingLevel::Error => McpLogLevel::Error,
        LoggingLevel::Critical => McpLogLevel::Critical,
        LoggingLevel::Alert => McpLogLevel::Alert,
        LoggingLevel::Emergency => McpLogLevel::Emergency,
    }
}

/// Asks a server for no more of its log than is shown.
pub(super) async fn set_log_level(
    server: &str,
    peer: &Peer<RoleClient>,
    least: Option<McpLogLevel>,
) {
    let info = peer.peer_info();
    let can = info.is_some_and(|info| {
        info.protocol_version.has_initialize() && info.capabilities.logging.is_some()
    });
    let Some(level) = least.filter(|_| can) else {
        return;
    };
    let params = SetLevelRequestParams::new(level_for(level));
    let asked = tokio::time::timeout(LEVEL_LIMIT, peer.set_level(params)).await;
    if !matches!(asked, Ok(Ok(_))) {
        // What it says beyond that is left out here all the same.
        tracing::debug!(server, "a server does not take the level of its log");
    }
}

/// The same for the SDK.
fn level_for(level: McpLogLevel) -> LoggingLevel {
    match level {
        McpLogLevel::Debug => LoggingLevel::Debug,
        McpLogLevel::Info => LoggingLevel::Info,
        McpLogLevel::Notice => LoggingLevel::Notice,
        McpLogLevel::Warning => LoggingLevel::Warning,
        McpLogLevel::Error => LoggingLevel::Error,
        McpLogLevel::Critical => LoggingLevel::Critical,
        McpLogLevel::Alert => LoggingLevel::Alert,
        McpLogLevel::Emergency => LoggingLevel::Emergency,
    }
}
