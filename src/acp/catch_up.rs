//! A session that is gone on with: what was said in it, and how it stands now.

use std::collections::HashMap;

use super::open::CONVERSATION;
use super::render::Renderer;
use super::replay;
use super::replies::Pending;
use super::rpc::RpcError;
use super::session::AcpSession;
use crate::message::{ConversationId, Metadata, Severity, ToolId};
use crate::plain_text::frame::Frame;
use crate::protocol::SessionCode;
use crate::protocol::answer::History;
use crate::protocol::command::{ChatHistory, Command, Empty, FilesChanges};
use crate::protocol::content::WireMessage;
use crate::protocol::event::Event;
use crate::session::Reader;

/// Changes of files that are asked for at once, and how often: those of the newest calls.
const CHANGES: usize = 200;
const CHANGE_PAGES: usize = 20;

impl AcpSession {
    /// Has the session say how it stands: what it has said since comes behind that, none of it twice. With `tells`, tells all
    /// that was said before.
    pub(super) async fn catch_up(&mut self, tells: bool) -> Result<(), RpcError> {
        let ended = || RpcError::internal("the session ended", None);
        let before = self.handle.resync(self.handle.last(), None).await;
        let before = before.ok_or_else(ended)?;
        self.reader = Reader::new(self.handle.clone(), before);
        self.early.clear();
        // It is answered behind all that the session says of itself.
        self.ask(Command::SessionState(Empty {})).await?;
        let mut history = None;
        let early = std::mem::take(&mut self.early);
        self.early = early
            .into_iter()
            .filter_map(|frame| of_interest(frame, &mut history))
            .collect();
        if let Some(spent) = self.handle.spent().await {
            self.renderer.spent(spent);
        }
        if let (true, Some(newest)) = (tells, history) {
            self.tell(newest).await?;
        }
        Ok(())
    }

    /// Tells all that was said, of which these are the newest messages.
    async fn tell(&mut self, newest: History) -> Result<(), RpcError> {
        let mut before = newest.next_before;
        let mut pages = vec![newest.messages];
        while before.is_some() {
            let wanted = ChatHistory {
                before,
                ..ChatHistory::newest(ConversationId::new(CONVERSATION))
            };
            match self.ask(Command::ChatHistory(wanted)).await? {
                Event::ChatHistoryResult(page) => {
                    before = page.next_before;
                    pages.push(page.messages);
                }
                Event::SessionError(error) => return Err(error.into()),
                _ => return Err(RpcError::internal("the session gave no history", None)),
            }
        }
        let messages: Vec<WireMessage> = pages.into_iter().rev().flatten().collect();
        let changes = self.changes().await?;
        let handle = self.handle.clone();
        let facts = |id: &_| {
            let record = handle.record(id)?;
            Some(Metadata {
                exit_code: record.exit_code,
                diff: changes.get(id).cloned(),
                ..Metadata::default()
            })
        };
        for update in replay::replay(messages, &mut self.renderer, facts) {
            self.update(update).await;
        }
        Ok(())
    }

    /// Returns what calls changed, as far as that is kept.
    async fn changes(&mut self) -> Result<HashMap<ToolId, String>, RpcError> {
        let mut changes = HashMap::new();
        let mut wanted = FilesChanges {
            conversation_id: Some(ConversationId::new(CONVERSATION)),
            limit: Some(CHANGES),
            ..FilesChanges::default()
        };
        for _ in 0..CHANGE_PAGES {
            // Without a store there are none.
            let Event::FilesChangesResult(page) =
                self.ask(Command::FilesChanges(wanted.clone())).await?
            else {
                break;
            };
            let diffs = page.changes.into_iter();
            changes.extend(diffs.filter_map(|it| Some((it.tool_id?, it.diff?))));
            wanted.cursor = page.next_cursor;
            if wanted.cursor.is_none() {
                break;
            }
        }
        Ok(changes)
    }

    /// Goes on after events that are not kept any more, because the client did not read them in time: the session says how it
    /// stands, and which requests have no answer left.
    pub(super) async fn after_gap(&mut self) {
        self.renderer.begin_again();
        let text = "\n\n*Some of what was said is not shown here: it was not read in time. Load the session to see all of it.*\n\n";
        self.update(Renderer::say(text)).await;
        let unanswered = self.pending.keys().copied().collect();
        self.send(
            Command::SessionState(Empty {}),
            Pending::AfterGap(unanswered),
        )
        .await;
    }

    /// Keeps what the session says at its beginning for the first prompt, where the client takes no notices: what was broken
    /// off or lost, and that nothing is kept.
    pub(super) fn note_beginning(&mut self, takes_notices: bool) {
        if takes_notices {
            return;
        }
        let notices = self.early.iter().filter_map(|frame| match &frame.event {
            Event::SessionNotice(notice) if notice.severity != Severity::Info => Some(notice),
            _ => None,
        });
        let ours = notices.filter(|notice| !notice.code.starts_with("mcp_"));
        let messages: Vec<String> = ours.map(|notice| notice.message.clone()).collect();
        self.problems.extend(messages);
    }
}

/// Returns a frame that is of interest to who asked for it: not that there is a gap, and not the history, which is taken out.
fn of_interest(frame: Frame, history: &mut Option<History>) -> Option<Frame> {
    match frame.event {
        Event::SessionError(ref error) if error.code == SessionCode::ReplayGap => None,
        Event::ChatHistoryResult(page) => {
            if page.conversation_id.as_str() == CONVERSATION {
                history.get_or_insert(page);
            }
            None
        }
        _ => Some(frame),
    }
}
