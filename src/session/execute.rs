//! From `tool:execute` to a conversation: a call that the client starts, once.

use sha2::{Digest as _, Sha256};

use super::resolve::invalid;
use super::sends::KnownSend;
use super::{Session, shutting_down};
use crate::conversation::{self, KeptSend, SharedAdmission};
use crate::exchange::Execute;
use crate::exchange::context::Setup;
use crate::message::ToolCall;
use crate::protocol::client_tools::ToolExecute;
use crate::protocol::command::{ChatSend, Command, WhenBusy};
use crate::protocol::event::{Event, SessionError};
use crate::protocol::{RequestId, SessionCode};

impl Session {
    /// Passes a `tool:execute` on to its conversation, once where it comes again under the same id.
    pub(super) async fn execute(&mut self, wanted: ToolExecute, id: Option<&RequestId>) {
        let Some(digest) = self.new_call(&wanted, id).await else {
            return;
        };
        match self.count_send().await {
            Ok(()) => self.take_call(wanted, digest, id).await,
            Err(error) => self.answer(id, Event::SessionError(error)),
        }
    }

    /// Returns the digest of a call that was not asked for before; else answers it.
    pub(super) async fn new_call(
        &mut self,
        wanted: &ToolExecute,
        id: Option<&RequestId>,
    ) -> Option<Vec<u8>> {
        let digest = Sha256::digest(serde_json::to_vec(wanted).unwrap_or_default()).to_vec();
        match id {
            Some(id) if self.is_repeated(id, &digest).await => None,
            _ => Some(digest),
        }
    }

    /// Passes a call on that is counted.
    pub(super) async fn take_call(
        &mut self,
        wanted: ToolExecute,
        digest: Vec<u8>,
        id: Option<&RequestId>,
    ) {
        self.daemon.mcp.seek(&self.shared.id);
        if self.reading.is_reading(&wanted.conversation_id) {
            let conversation = wanted.conversation_id.clone();
            return self.wait_behind(&conversation, Command::ToolExecute(wanted), id);
        }
        let setup = match self.setup_of_call(&wanted) {
            Ok(setup) => setup,
            Err(error) => return self.answer(id, Event::SessionError(error)),
        };
        let conversation_id = wanted.conversation_id;
        let call = ToolCall {
            id: self.shared.ids.tool(),
            name: wanted.tool_name,
            input: wanted.input,
            provider_call_id: None,
        };
        let admission = SharedAdmission::default();
        if let Some(id) = id {
            self.remember_send(KnownSend {
                id: id.clone(),
                digest,
                conversation: conversation_id.clone(),
                call: Some(call.id.clone()),
                admission: admission.clone(),
            });
        }
        let inbox = self.conversation(&conversation_id);
        let inject = wanted.inject;
        let send = conversation::SendRequest {
            setup,
            execute: Some(Box::new(Execute { call, inject })),
            has_settings: false,
            history: None,
            when_busy: wanted.when_busy,
            reply_to: id.cloned(),
            admission,
            kept: KeptSend::default(),
        };
        let command = conversation::Command::Send(Box::new(send));
        drop(inbox.send(command).await);
    }

    /// Settles what holds for a call. Fails where it cannot be made here.
    fn setup_of_call(&mut self, wanted: &ToolExecute) -> Result<Setup, SessionError> {
        if self.daemon.draining.is_cancelled() {
            return Err(shutting_down());
        }
        if wanted.when_busy == WhenBusy::Steer {
            return Err(invalid(
                "field `whenBusy` must be `queue` or `reject`: a call is no message",
            ));
        }
        let name = &wanted.tool_name;
        let said = format!("[tool:execute {name}]");
        let send = ChatSend::text(wanted.conversation_id.clone(), said);
        let setup = self.setup(&send, self.shared.ids.message())?;
        let tools = self.shared.tools.snapshot();
        let tool = tools.get(name);
        if !tool.is_some_and(|tool| setup.scope.allows(tool.spec())) {
            let allowed = tools.values().map(|tool| tool.spec());
            let allowed = allowed.filter(|spec| setup.scope.allows(spec));
            let names: Vec<&str> = allowed.map(|spec| spec.name.as_str()).collect();
            let message = format!(
                "field `toolName`: there is no tool {name:?} here; the tools are {}",
                names.join(", ")
            );
            return Err(SessionError::new(SessionCode::ToolNotFound, message));
        }
        self.room_for_conversation(&wanted.conversation_id)?;
        Ok(setup)
    }
}
