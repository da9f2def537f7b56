//! Signing in at servers that ask for it, by OAuth 2.1 as the protocol's revision of 2025-11-25 has it.
//!
//! Metadata, registration and codes are the SDK's (`rmcp`, feature `auth`): it looks in the order of the specification, holds the
//! issuer to its own address, the resource to the server's, and an answer's `iss` to the issuer. What it takes too lightly is
//! looked at here first: how servers are asked (`web`), and what their metadata says (`check`): it takes a server without PKCE,
//! any scheme, and codes sent anywhere. What it forgets when the daemon ends is kept in [`crate::vault`], and tokens are renewed
//! where they came from (`tokens`), whatever the server's metadata says by then.
//!
//! A sign-in is begun by a server's 401 or 403, or by hand. The user opens its page, and what that answers comes to the daemon's
//! port, or is pasted. Either is bound to one `state`, counts once and within [`OPEN_FOR`]. What another process of the user has
//! signed in to counts as well (`elsewhere`). A call waits for it beyond its time limit, and no longer than [`WAIT_FOR`] (`waiting`).

mod authorized;
mod begin;
mod check;
mod elsewhere;
mod record;
mod tokens;
mod waiting;
mod web;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use reqwest::Url;
use rmcp::model::RequestId;
use tokio::sync::{Notify, watch};
use tokio_util::task::TaskTracker;

pub(super) use authorized::Authorized;
pub(super) use begin::Demand;
use begin::Pending;
use record::Record;
use tokens::Held;
use web::Web;

use super::McpError;
use crate::config::{HttpServer, SignInConfig, TokenStore};
use crate::http::Clients;
use crate::message::Severity;
use crate::notices::{Notices, To};
use crate::protocol::event::McpAuthRequired;
use crate::telemetry::{Hidden, Redactor};
use crate::vault::Vault;

/// Where answers come to on the daemon's port.
pub(crate) const CALLBACK: &str = "/oauth/callback";

/// How long a sign-in stays open.
pub(super) const OPEN_FOR: Duration = Duration::from_secs(10 * 60);

/// How long a call waits for one: as long as that is open at least (`begin`).
pub(super) const WAIT_FOR: Duration = Duration::from_secs(5 * 60);

/// Most sign-ins that are open at once in the daemon: more than it may have servers.
const MAX_OPEN: usize = 128;

/// What the sign-ins of all servers share.
pub struct SignIns {
    vault: Vault,
    /// What goes on where nobody waits for it.
    tasks: TaskTracker,
    /// Whose each open `state` is. Never locked across an await.
    open: Mutex<BTreeMap<String, Weak<SignIn>>>,
    /// The daemon's address for answers; none where it has no port.
    callback: OnceLock<String>,
}

/// What the page of an authorization server answers.
#[derive(Clone, Default)]
pub struct Answer {
    /// What it is to be exchanged for tokens.
    pub code: Option<String>,
    /// Which sign-in it is for.
    pub state: Option<String>,
    /// Who says so.
    pub iss: Option<String>,
    /// Why there is no code.
    pub error: Option<String>,
    /// The same in words.
    pub error_description: Option<String>,
}

/// Why a server does not let the daemon in.
#[derive(Debug)]
pub(super) enum Hurdle {
    /// Somebody has to sign in.
    Ask(Demand),
    /// Signing in does not help.
    InVain(String),
}

/// The sign-in at one server.
pub(super) struct SignIn {
    server: Arc<str>,
    url: Url,
    config: SignInConfig,
    /// Whose it is; empty for the daemon's own servers.
    user: String,
    all: Arc<SignIns>,
    web: Web,
    notices: Notices,
    redactor: Redactor,
    /// Held while tokens are renewed, so that one renewal runs at once.
    held: tokio::sync::Mutex<Held>,
    /// Held while a sign-in is begun or ends.
    pending: tokio::sync::Mutex<Option<Pending>>,
    /// How many have ended well.
    done: watch::Sender<u64>,
    /// The calls that wait for one, by the ids of their requests.
    waiting: watch::Sender<Vec<RequestId>>,
    /// Rings where somebody asks for the server.
    sought: Notify,
    /// What stood in the way last when nothing waited for the user.
    hurdle: Mutex<Option<Hurdle>>,
    /// Whether calls run, which wait for the user.
    is_up: AtomicBool,
}

impl SignIns {
    /// Keeps what is signed in to in a folder, where it is to be kept. `tasks` are waited for at the end.
    pub fn new(store: TokenStore, folder: Option<PathBuf>, tasks: TaskTracker) -> Self {
        Self {
            vault: Vault::new(store, folder),
            tasks,
            open: Mutex::default(),
            callback: OnceLock::new(),
        }
    }

    /// Takes where the daemon listens, for answers of pages that its user has open.
    pub fn listens_at(&self, origin: &str) {
        drop(self.callback.set(format!("{origin}{CALLBACK}")));
    }

    /// Takes what a page answers; returns the name of the server that is signed in to. An error reads as a sentence.
    ///
    /// # Errors
    ///
    /// Where nobody waits for it, or there are no tokens for it.
    pub async fn answered(&self, answer: Answer) -> Result<String, McpError> {
        let state = answer.state.clone().unwrap_or_default();
        let waits = self.open.lock().remove(&state).and_then(|it| it.upgrade());
        let Some(sign_in) = waits else {
            return Err(McpError(
                "nobody waits for this answer: its sign-in is over, or was begun elsewhere; begin it again"
                    .to_owned(),
            ));
        };
        sign_in.finish(&state, answer).await.map_err(McpError)?;
        Ok(sign_in.server.to_string())
    }

    fn open(&self, state: &str, sign_in: &Arc<SignIn>) -> Result<(), String> {
        let mut open = self.open.lock();
        open.retain(|_, sign_in| sign_in.strong_count() > 0);
        if open.len() >= MAX_OPEN {
            return Err(format!("{MAX_OPEN} sign-ins are open already"));
        }
        open.insert(state.to_owned(), Arc::downgrade(sign_in));
        Ok(())
    }

    fn close(&self, state: &str) {
        self.open.lock().remove(state);
    }
}

impl Answer {
    /// Reads what somebody pasted: the address that a page led to, or its query alone.
    pub(super) fn pasted(text: &str) -> Self {
        let text = text.trim();
        let query = text.split_once('?').map_or(text, |(_, query)| query);
        let query = query.split('#').next().unwrap_or_default();
        Self::of_query(query)
    }

    /// Reads the query of an address.
    pub fn of_query(query: &str) -> Self {
        let mut answer = Self::default();
        for (name, value) in form_urlencoded(query) {
            let field = match name.as_str() {
                "code" => &mut answer.code,
                "state" => &mut answer.state,
                "iss" => &mut answer.iss,
                "error" => &mut answer.error,
                "error_description" => &mut answer.error_description,
                _ => continue,
            };
            // One that is there twice was tampered with: neither counts.
            *field = match field {
                None => Some(value),
                Some(_) => Some(String::new()),
            };
        }
        answer
    }
}

fn form_urlencoded(query: &str) -> Vec<(String, String)> {
    let Ok(mut url) = Url::parse("http://localhost/") else {
        return Vec::new();
    };
    url.set_query(Some(query));
    let pairs = url.query_pairs();
    pairs
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect()
}

/// What a server's sign-in works with.
pub(super) struct Parts<'a> {
    pub(super) user: &'a str,
    pub(super) all: &'a Arc<SignIns>,
    pub(super) clients: &'a Clients,
    pub(super) notices: &'a Notices,
    pub(super) redactor: &'a Redactor,
}

impl SignIn {
    /// Returns that of a server, unless a header of the operator's answers for it.
    pub(super) fn of(name: &Arc<str>, server: &HttpServer, parts: &Parts<'_>) -> Option<Arc<Self>> {
        let is_answered = server
            .headers
            .keys()
            .any(|name| name.eq_ignore_ascii_case("authorization"));
        if is_answered {
            return None;
        }
        let url = Url::parse(&server.url).ok()?;
        let hosts = &server.auth.hosts;
        Some(Arc::new(Self {
            server: Arc::clone(name),
            web: Web::new(parts.clients.clone(), url.clone(), hosts),
            url,
            config: server.auth.clone(),
            user: parts.user.to_owned(),
            all: Arc::clone(parts.all),
            notices: parts.notices.clone(),
            redactor: parts.redactor.clone(),
            held: tokio::sync::Mutex::default(),
            pending: tokio::sync::Mutex::default(),
            done: watch::Sender::default(),
            waiting: watch::Sender::default(),
            sought: Notify::new(),
            hurdle: Mutex::default(),
            is_up: AtomicBool::new(false),
        }))
    }

    /// Says whether calls run, which wait for the user where the server asks for more.
    pub(super) fn set_up(&self, is_up: bool) {
        self.is_up.store(is_up, Ordering::Relaxed);
        // What was in the way of a connection before is not in this one's.
        self.hurdle.lock().take();
    }

    /// Returns what stood in the way when nothing waited for the user.
    pub(super) fn take_hurdle(&self) -> Option<Hurdle> {
        self.hurdle.lock().take()
    }

    /// Returns what the user is asked now, where anything.
    pub(super) fn asks(&self) -> Option<McpAuthRequired> {
        // One that is being begun is told when it is.
        let pending = self.pending.try_lock().ok()?;
        let open = pending.as_ref().filter(|pending| pending.is_open());
        open.map(|pending| pending.asked.clone())
    }

    /// Takes what a page answered to the sign-in with this `state`. However it ends, it is over; also where the browser does
    /// not wait for that.
    async fn finish(self: &Arc<Self>, state: &str, answer: Answer) -> Result<(), String> {
        let (this, state) = (Arc::clone(self), state.to_owned());
        let ended = self.to_its_end(async move { this.end(&state, answer).await });
        ended.await?
    }

    async fn end(&self, state: &str, answer: Answer) -> Result<(), String> {
        let mut open = self.pending.lock().await;
        let pending = match open.take() {
            Some(pending) if pending.state == state => pending,
            other => {
                *open = other;
                return Err("this sign-in is over; another one was begun since".to_owned());
            }
        };
        self.all.close(state);
        let host = pending.asked.host.clone();
        if !pending.is_open() {
            return Err(format!(
                "the sign-in at {host} was open for {} minutes and is over; begin it again",
                OPEN_FOR.as_secs() / 60
            ));
        }
        let record = match pending.exchange(answer, self).await {
            Ok(record) => record,
            Err(why) => {
                // It is registered anew the next time.
                if why.contains("invalid_client") {
                    self.held.lock().await.forget(self).await;
                }
                let why = format!("the sign-in at {host} came to nothing: {why}");
                let why = self.redactor.redact(&why).into_owned();
                let message = format!("the MCP server `{}`: {why}", self.server);
                let (severity, code) = (Severity::Warning, "mcp_sign_in_failed");
                self.notices.send(To::Operators, severity, code, message);
                return Err(why);
            }
        };
        self.held.lock().await.put(record, self).await;
        self.done.send_modify(|done| *done += 1);
        let name = &self.server;
        let message = format!("signed in to the MCP server `{name}` at {host}");
        self.notices
            .send(To::Operators, Severity::Info, "mcp_signed_in", message);
        Ok(())
    }

    /// Takes what somebody pasted: an address, or the code in it.
    pub(super) async fn pasted(
        self: &Arc<Self>,
        code: Option<String>,
        url: Option<&str>,
    ) -> Result<(), String> {
        // Not held on to: the end of the sign-in takes it.
        let open = {
            let pending = self.pending.lock().await;
            pending.as_ref().map(|pending| pending.state.clone())
        };
        let Some(state) = open else {
            return Err("no sign-in is open; `mcp:auth` without a code begins one".to_owned());
        };
        let answer = match url {
            Some(url) => Answer::pasted(url),
            None => Answer {
                code,
                state: Some(state.clone()),
                ..Answer::default()
            },
        };
        if answer.state.as_ref() != Some(&state) {
            return Err(
                "this is not the address that the page of the open sign-in led to: its `state` is another's"
                    .to_owned(),
            );
        }
        self.finish(&state, answer).await
    }

    /// Forgets the tokens, here and where they came from, and whatever is open.
    pub(super) async fn sign_out(&self) {
        if let Some(pending) = self.pending.lock().await.take() {
            self.all.close(&pending.state);
        }
        let record = self.held.lock().await.forget(self).await;
        if let Some(record) = record {
            tokens::revoke(&record, &self.web).await;
        }
    }

    /// Under which name its record is kept: one for each user and server.
    fn name(&self) -> String {
        format!("{}\0{}", self.user, self.url)
    }

    /// Returns what is kept, if it is of this server.
    async fn kept(&self) -> Option<Record> {
        let text = self.all.vault.load(&self.name()).await?;
        let record: Record = serde_json::from_str(&text)
            .inspect_err(|error| tracing::warn!(%error, "a kept sign-in cannot be read"))
            .ok()?;
        let named = self.config.client_id.as_ref();
        // The operator may have named another client since.
        let is_same = named.is_none_or(|named| *named == record.client.id);
        (is_same && record.server == self.url.as_str()).then_some(record)
    }

    async fn keep(&self, record: &Record) {
        if let Ok(text) = serde_json::to_string(record) {
            self.all.vault.save(&self.name(), text).await;
        }
    }

    fn hide(&self, record: &Record) -> Vec<Hidden> {
        let secrets = record.secrets();
        secrets.filter_map(|it| self.redactor.hide(it)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_pasted_says_whose_it_is() {
        for text in [
            "http://127.0.0.1:4517/oauth/callback?code=a%20b&state=s&iss=https%3A%2F%2Fx#frag",
            "  code=a+b&state=s&iss=https%3A%2F%2Fx ",
        ] {
            let answer = Answer::pasted(text);
            assert_eq!(answer.code.as_deref(), Some("a b"), "{text}");
            assert_eq!(answer.state.as_deref(), Some("s"));
            assert_eq!(answer.iss.as_deref(), Some("https://x"));
        }
        let twice = Answer::of_query("code=a&code=b&state=s");
        assert_eq!(twice.code.as_deref(), Some(""));
        assert_eq!(Answer::pasted("").state, None);
    }
}
