//! What servers say to sessions by themselves: their log, and that lists or resources changed.
//!
//! A server is paced where it speaks (`Voice`) and a session where it hears (`Ear`), so neither can flood the other.
//! What changed is a set: however often it is said, it waits once. Of a log, what is too fast is counted and left out.
//! The log of a server that serves everybody may tell of anybody's calls, so operators alone hear it.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::connection::bounded;
use crate::config::McpLogPolicy;
use crate::message::SessionId;
use crate::protocol::Event;
use crate::protocol::mcp::{McpChanged, McpListName, McpLog, McpLogLevel, McpResourceName};
use crate::sandbox::output::shorten;
use crate::telemetry::Redactor;
use crate::terminal_text;

/// Lines of logs that wait for a session; of more the oldest are left out.
const LINES: usize = 64;

/// The least time between two times that a session hears something.
const PACE: Duration = Duration::from_millis(200);

/// Lines of a server's log in a burst.
const BURST: u32 = 20;

/// The time in which one of them comes back.
const REFILL: Duration = Duration::from_millis(200);

/// The most bytes of a line.
const MAX_LINE: usize = 4 * 1024;

/// Everybody who hears.
#[derive(Default)]
pub(super) struct Audience(Mutex<HashMap<SessionId, Arc<Ear>>>);

/// What a session hears.
pub struct Ear {
    is_operator: bool,
    waiting: Mutex<Waiting>,
    rung: Notify,
}

#[derive(Default)]
struct Waiting {
    log: VecDeque<McpLog>,
    changed: BTreeMap<String, BTreeSet<McpListName>>,
    updated: BTreeSet<McpResourceName>,
    /// When the session hears something again.
    next: Option<Instant>,
}

impl Audience {
    /// Returns what a session hears from now on, until it is forgotten.
    pub(super) fn listen(&self, session: &SessionId, is_operator: bool) -> Arc<Ear> {
        let ear = Arc::new(Ear {
            is_operator,
            waiting: Mutex::default(),
            rung: Notify::new(),
        });
        self.0.lock().insert(session.clone(), Arc::clone(&ear));
        ear
    }

    pub(super) fn forget(&self, session: &SessionId) {
        self.0.lock().remove(session);
    }

    fn each(&self, is_meant: impl Fn(&SessionId, &Ear) -> bool, say: impl Fn(&mut Waiting)) {
        for (session, ear) in self.0.lock().iter() {
            if is_meant(session, ear) {
                say(&mut ear.waiting.lock());
                ear.rung.notify_one();
            }
        }
    }
}

impl Ear {
    /// Waits until there is something to hear, and returns all of it. Cancel-safe.
    pub async fn hear(&self) -> Vec<Event> {
        loop {
            let next = {
                let waiting = self.waiting.lock();
                (!waiting.is_empty()).then_some(waiting.next)
            };
            match next {
                None => self.rung.notified().await,
                Some(Some(next)) if next > Instant::now() => sleep_until(next).await,
                Some(_) => return self.waiting.lock().take(),
            }
        }
    }
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.log.is_empty() && self.changed.is_empty() && self.updated.is_empty()
    }

    fn take(&mut self) -> Vec<Event> {
        self.next = Instant::now().checked_add(PACE);
        let changed = std::mem::take(&mut self.changed).into_iter();
        let changed = changed.map(|(server, lists)| {
            let lists = lists.into_iter().collect();
            Event::McpChanged(McpChanged { server, lists })
        });
        let updated = std::mem::take(&mut self.updated).into_iter();
        let log = std::mem::take(&mut self.log).into_iter();
        changed
            .chain(updated.map(Event::McpResourceUpdated))
            .chain(log.map(|line| Event::McpLog(Box::new(line))))
            .collect()
    }
}

/// One server, as it speaks to sessions.
#[derive(Clone)]
pub(super) struct Voice {
    server: Arc<str>,
    /// The one session that hears it; all of them where it serves all.
    owner: Option<SessionId>,
    audience: Arc<Audience>,
    policy: McpLogPolicy,
    redactor: Redactor,
    account: Arc<Mutex<Account>>,
}

/// What a server may still say in its log.
#[derive(Default)]
struct Account {
    /// When all that was said is paid for; in the past for a server at rest.
    due: Option<Instant>,
    dropped: u64,
}

impl Voice {
    pub(super) fn new(
        server: Arc<str>,
        owner: Option<SessionId>,
        audience: Arc<Audience>,
        policy: McpLogPolicy,
        redactor: Redactor,
    ) -> Self {
        Self {
            server,
            owner,
            audience,
            policy,
            redactor,
            account: Arc::default(),
        }
    }

    /// The least level that anybody wants to hear; `None` where nobody wants any.
    pub(super) fn least(&self) -> Option<McpLogLevel> {
        least(self.policy)
    }

    /// Says a line of its log, where it is bad enough and not too fast.
    pub(super) fn log(&self, level: McpLogLevel, logger: Option<&str>, data: &Value) {
        if least(self.policy).is_none_or(|least| level < least) {
            return;
        }
        let Some(dropped) = self.account.lock().admit() else {
            return;
        };
        let text = match data {
            Value::String(text) => terminal_text::shown(text),
            other => terminal_text::shown(&other.to_string()),
        };
        // Secrets go before it is cut: an end may begin in the middle of one.
        let text = self.redactor.redact(&text);
        let line = McpLog {
            server: self.server.to_string(),
            level,
            logger: logger.map(|name| self.redactor.redact(&bounded(name)).into_owned()),
            text: shorten(text.trim_end(), MAX_LINE).text,
            dropped,
        };
        let is_meant = |session: &SessionId, ear: &Ear| match &self.owner {
            Some(owner) => session == owner,
            None => ear.is_operator,
        };
        self.audience.each(is_meant, |waiting| {
            if waiting.log.len() == LINES {
                let oldest = waiting.log.pop_front();
                let lost = oldest.map_or(0, |oldest| oldest.dropped + 1);
                if let Some(next) = waiting.log.front_mut() {
                    next.dropped += lost;
                }
            }
            waiting.log.push_back(line.clone());
        });
    }

    /// Says that these lists are others than before.
    pub(super) fn changed(&self, lists: &[McpListName]) {
        let is_meant =
            |session: &SessionId, _: &Ear| self.owner.as_ref().is_none_or(|owner| owner == session);
        self.audience.each(is_meant, |waiting| {
            let known = waiting.changed.entry(self.server.to_string()).or_default();
            known.extend(lists);
        });
    }

    /// Says to these sessions that a resource which they follow may be another one than before.
    pub(super) fn updated(&self, uri: &str, sessions: &BTreeSet<SessionId>) {
        let is_meant = |session: &SessionId, _: &Ear| sessions.contains(session);
        self.audience.each(is_meant, |waiting| {
            waiting.updated.insert(McpResourceName {
                server: self.server.to_string(),
                uri: uri.to_owned(),
            });
        });
    }
}

impl Account {
    /// Returns how many lines were left out before this one; `None` where it is left out, too.
    fn admit(&mut self) -> Option<u64> {
        let now = Instant::now();
        let due = self.due.map_or(now, |due| due.max(now)) + REFILL;
        if due > now + REFILL * BURST {
            self.dropped = self.dropped.saturating_add(1);
            return None;
        }
        self.due = Some(due);
        Some(std::mem::take(&mut self.dropped))
    }
}

fn least(policy: McpLogPolicy) -> Option<McpLogLevel> {
    Some(match policy {
        McpLogPolicy::Off => return None,
        McpLogPolicy::Debug => McpLogLevel::Debug,
        McpLogPolicy::Info => McpLogLevel::Info,
        McpLogPolicy::Notice => McpLogLevel::Notice,
        McpLogPolicy::Warning => McpLogLevel::Warning,
        McpLogPolicy::Error => McpLogLevel::Error,
        McpLogPolicy::Critical => McpLogLevel::Critical,
        McpLogPolicy::Alert => McpLogLevel::Alert,
        McpLogPolicy::Emergency => McpLogLevel::Emergency,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn voice(audience: &Arc<Audience>, owner: Option<&str>) -> Voice {
        let redactor = Redactor::default();
        redactor.add("hunter2-hunter2");
        let (server, owner) = (Arc::from("s"), owner.map(SessionId::new));
        let policy = McpLogPolicy::Info;
        Voice::new(server, owner, Arc::clone(audience), policy, redactor)
    }

    fn lines(events: Vec<Event>) -> Vec<McpLog> {
        let line = |event| match event {
            Event::McpLog(line) => *line,
            other => panic!("{other:?}"),
        };
        events.into_iter().map(line).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_a_log_is_counted_and_left_out() {
        let audience = Arc::<Audience>::default();
        let ear = audience.listen(&SessionId::new("a"), true);
        let voice = voice(&audience, None);
        for number in 0..10_000 {
            voice.log(McpLogLevel::Error, None, &json!(number));
        }
        let heard = lines(ear.hear().await);
        assert_eq!(heard.len(), BURST as usize);
        assert_eq!(heard[0].text, "0");
        tokio::time::advance(REFILL * 2).await;
        voice.log(McpLogLevel::Debug, None, &json!("not wanted"));
        voice.log(McpLogLevel::Error, Some("part"), &json!("after"));
        let heard = lines(ear.hear().await);
        assert_eq!(
            (heard.len(), heard[0].dropped),
            (1, 10_000 - u64::from(BURST))
        );
        assert_eq!(heard[0].logger.as_deref(), Some("part"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_line_is_clean_and_short() {
        let audience = Arc::<Audience>::default();
        let ear = audience.listen(&SessionId::new("a"), true);
        let voice = voice(&audience, None);
        let nasty = format!("\u{1b}[31mred\u{7} hunter2-hunter2 {}", "x".repeat(100_000));
        voice.log(McpLogLevel::Error, Some("a\u{1b}[2J\nb"), &json!(nasty));
        voice.log(
            McpLogLevel::Info,
            None,
            &json!({"a": [1, "\u{1b}]0;t\u{7}"]}),
        );
        let heard = lines(ear.hear().await);
        assert!(
            heard[0].text.starts_with("red [redacted] xxx"),
            "{}",
            heard[0].text
        );
        assert!(heard[0].text.len() < MAX_LINE + 100);
        assert!(
            !heard[0]
                .logger
                .as_deref()
                .unwrap()
                .contains(char::is_control)
        );
        assert!(heard[1].text.starts_with("{\"a\":[1,"), "{}", heard[1].text);
        assert!(!heard[1].text.contains(char::is_control));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_hears_what_may_be_about_others() {
        let audience = Arc::<Audience>::default();
        let ids = ["operator", "user", "owner"].map(SessionId::new);
        let [operator, user, owner] = &ids;
        let ears = [
            audience.listen(operator, true),
            audience.listen(user, false),
            audience.listen(owner, false),
        ];
        let all = voice(&audience, None);
        all.log(McpLogLevel::Error, None, &json!("of everybody"));
        all.changed(&[McpListName::Prompts]);
        all.updated("a://b", &BTreeSet::from([user.clone()]));
        voice(&audience, Some("owner")).log(McpLogLevel::Error, None, &json!("own"));
        let mut heard = Vec::new();
        for ear in &ears {
            let events = ear.hear().await;
            let kinds: Vec<String> = events
                .iter()
                .map(|event| serde_json::to_value(event).unwrap()["type"].to_string())
                .collect();
            heard.push(kinds.join(" "));
        }
        assert_eq!(
            heard,
            [
                r#""mcp:changed" "mcp:log""#,
                r#""mcp:changed" "mcp:resource-updated""#,
                r#""mcp:changed" "mcp:log""#,
            ]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_changes_again_and_again_waits_once() {
        let audience = Arc::<Audience>::default();
        let id = SessionId::new("a");
        let ear = audience.listen(&id, false);
        let voice = voice(&audience, None);
        let began = Instant::now();
        for _ in 0..3 {
            for _ in 0..1_000 {
                voice.updated("a://b", &BTreeSet::from([id.clone()]));
            }
            assert_eq!(ear.hear().await.len(), 1);
        }
        assert!(began.elapsed() >= PACE * 2);
        voice.updated("a://b", &BTreeSet::new());
        audience.forget(&id);
        voice.updated("a://b", &BTreeSet::from([id]));
        let nothing = tokio::time::timeout(PACE * 10, ear.hear()).await;
        assert!(nothing.is_err());
    }
}
