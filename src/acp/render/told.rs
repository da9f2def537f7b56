//! What a session says of itself: notices, compactions, context and cost. Pure.

use serde_json::{Value, json};

use super::Renderer;
use super::updates::ended;
use crate::message::{Money, Notice, Severity, ToolId};
use crate::protocol::event::{Compaction, CompactionPhase, Context, McpAuthRequired, StreamEnd};
use crate::protocol::word;

impl Renderer {
    /// Ends a call of which nothing more is shown.
    pub(super) fn settled(&mut self, id: &ToolId, is_yes: bool) -> Vec<Value> {
        match self.calls.remove(id) {
            Some(_) => vec![ended(id.as_str(), is_yes)],
            None => Vec::new(),
        }
    }

    /// Ends a question that stands there as a call.
    pub(in crate::acp) fn resolved(&mut self, id: &str, is_yes: bool) -> Vec<Value> {
        if !self.asked.remove(id) {
            return Vec::new();
        }
        vec![ended(id, is_yes)]
    }

    pub(in crate::acp) fn cost(&self) -> Money {
        self.cost
    }

    /// Notes what the session had cost before it was opened here.
    pub(in crate::acp) fn spent(&mut self, cost: Money) {
        self.cost = cost;
    }

    pub(super) fn usage(&mut self, context: &Context) -> Vec<Value> {
        self.context = context.window.map(|window| (context.used, window));
        self.shown_usage().into_iter().collect()
    }

    /// Returns what a client shows of context and cost; `None` where the context is not known.
    pub(in crate::acp) fn shown_usage(&self) -> Option<Value> {
        let (used, size) = self.context?;
        let mut update = json!({"sessionUpdate": "usage_update", "used": used, "size": size});
        if let Some(fields) = update.as_object_mut().filter(|_| self.cost > Money::ZERO) {
            let cost = json!({"amount": self.cost.dollars(), "currency": "USD"});
            fields.insert("cost".to_owned(), cost);
        }
        Some(update)
    }

    pub(super) fn end(&mut self, end: &StreamEnd) -> Vec<Value> {
        let mut updates = self.close("the turn ended before it did");
        if let Some(cost) = end
            .spent_usd
            .or(end.cost_usd)
            .filter(|it| *it > Money::ZERO)
        {
            self.cost = self.cost.plus(cost);
            updates.extend(self.shown_usage());
        }
        updates
    }

    pub(super) fn told(&self, notice: &Notice) -> Vec<Value> {
        let severity = match notice.severity {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        self.notice(severity, &notice.message, None)
    }

    /// Says where to sign in at an MCP server: as a message, which every client shows.
    pub(super) fn sign_in(asked: &McpAuthRequired) -> Value {
        let McpAuthRequired {
            server, host, url, ..
        } = asked;
        let before = asked
            .was_at
            .as_ref()
            .map(|before| format!(" (it was {before} before; make sure that this is meant)"));
        let before = before.unwrap_or_default();
        let what = match asked.more {
            true => "wants more rights: sign in again at",
            false => "asks you to sign in at",
        };
        let rights = match asked.scopes.is_empty() {
            true => String::new(),
            false => format!(" (rights: {})", asked.scopes.join(" ")),
        };
        let text =
            format!("*The MCP server `{server}` {what}* **{host}**{before}{rights}*:* <{url}>\n\n");
        Self::say(&text)
    }

    pub(super) fn notice(
        &self,
        severity: &str,
        title: &str,
        description: Option<&str>,
    ) -> Vec<Value> {
        if !self.notices {
            return Vec::new();
        }
        let mut update = json!({"sessionUpdate": "notice", "severity": severity, "title": title});
        if let (Some(text), Some(fields)) = (description, update.as_object_mut()) {
            fields.insert("description".to_owned(), json!(text));
        }
        vec![update]
    }

    pub(super) fn compact(&self, compaction: &Compaction) -> Vec<Value> {
        if !self.compaction {
            return Vec::new();
        }
        let status = match compaction.phase {
            CompactionPhase::Started => "in_progress",
            CompactionPhase::Done => "completed",
            CompactionPhase::Failed => "failed",
        };
        let mut update = json!({"sessionUpdate": "compaction_update",
            "compactionId": compaction.compaction_id, "status": status});
        if let Some(fields) = update.as_object_mut() {
            let result = compaction.result.as_ref();
            if let Some(summary) = result.and_then(|it| it.summary.as_deref()) {
                let summary = [json!({"type": "text", "text": summary})];
                fields.insert("summary".to_owned(), json!(summary));
            }
            if let Some(reason) = &compaction.reason {
                fields.insert("error".to_owned(), json!(word(reason)));
            }
        }
        vec![update]
    }
}
