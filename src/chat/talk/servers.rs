//! One thing that is asked may need the tools of MCP servers, which start in the background and are offered from
//! the turn after: those that are being started are waited for, within bounds. Pure.

use std::time::Duration;

use super::{Action, Talk};
use crate::plain_text::style::Style;
use crate::protocol::Command;
use crate::protocol::answer::McpState;
use crate::protocol::command::Empty;
use crate::protocol::event::Event;

/// How long they are waited for: most are there in seconds, and one that has to be downloaded first may take minutes.
const PATIENCE: Duration = Duration::from_secs(30);

impl Talk {
    /// Looks how the servers stand.
    pub(super) fn look(&mut self) {
        self.looking = Some(self.request(Command::McpList(Empty {})));
    }

    /// Takes how they stand: waits, or asks what there is to ask.
    pub(super) fn listed(&mut self, answer: &Event) {
        self.looking = None;
        let servers = match answer {
            Event::McpListResult(list) => list.servers.as_slice(),
            _ => &[],
        };
        let starting: Vec<String> = servers
            .iter()
            // Most of those that are started again are of the older era, and ended at the newer one's first message.
            .filter(|server| matches!(server.state, McpState::Starting | McpState::Restarting))
            .map(|server| server.name.clone())
            .collect();
        if starting.is_empty() {
            self.starting = None;
            return self.begin();
        }
        if self.starting.is_none() {
            let text = format!(
                "waiting up to {} s for MCP servers that are being started: {}",
                PATIENCE.as_secs(),
                starting.join(", ")
            );
            self.say(Style::Dim, text);
            self.actions.push(Action::Wait(PATIENCE));
        }
        self.starting = Some(starting);
    }

    /// Takes the code of a notice: servers that are waited for may stand otherwise now.
    pub(super) fn noticed(&mut self, code: &str) {
        // Also while a look is on its way: what it finds may be older than the notice.
        if self.starting.is_some() && code.starts_with("mcp_") {
            self.look();
        }
    }

    /// Takes that the time is over.
    pub(in crate::chat) fn waited(&mut self) -> Vec<Action> {
        if let Some(starting) = self.starting.take() {
            self.looking = None;
            let text = format!("asking without the tools of {}", starting.join(", "));
            self.say(Style::Yellow, text);
            self.begin();
        }
        self.done()
    }
}
