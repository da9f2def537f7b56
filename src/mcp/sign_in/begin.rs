//! From a server's demand to a page that the user opens, and from what that answers to tokens.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use oauth2::TokenResponse as _;
use reqwest::Url;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, OAuthClientConfig, WWWAuthenticateParams,
};
use tokio::time::Instant;

use super::check::{Issuer, checked};
use super::record::{Record, Registered, Tokens};
use super::web::plain;
use super::{Answer, OPEN_FOR, SignIn, WAIT_FOR};
use crate::http::host_and_port;
use crate::mcp::connection::bounded;
use crate::protocol::event::McpAuthRequired;

/// What the daemon is called where it registers itself.
const NAME: &str = "Outrigger";

/// How much of its time an open sign-in has to have left to be shown again instead of a new one: it is open for as long as the
/// call waits that has it shown.
const LEAST_LEFT: Duration = WAIT_FOR;

/// A sign-in whose page is open.
pub(super) struct Pending {
    pub(super) state: String,
    pub(super) asked: McpAuthRequired,
    over: Instant,
    manager: AuthorizationManager,
    issuer: Issuer,
    client: Registered,
    resource: String,
    pub(super) scopes: Vec<String>,
}

/// The fewest letters of a `code_verifier`.
const SHORTEST_PROOF: usize = 43;

/// What a sign-in is begun for.
#[derive(Clone, Debug, Default)]
pub(in crate::mcp) struct Demand {
    /// The server's words.
    pub(in crate::mcp) challenge: Option<String>,
    /// Whether it wants more than was granted.
    pub(in crate::mcp) is_more: bool,
}

impl Pending {
    pub(super) fn is_open(&self) -> bool {
        Instant::now() < self.over
    }

    /// Exchanges what the page answered for tokens.
    pub(super) async fn exchange(self, answer: Answer, sign_in: &SignIn) -> Result<Record, String> {
        if let Some(error) = answer.error {
            let words = answer.error_description.unwrap_or_default();
            return Err(match words.trim() {
                "" => format!("it answers {:?}", bounded(&error)),
                words => format!("it answers {:?}: {}", bounded(&error), bounded(words)),
            });
        }
        let code = answer.code.filter(|code| !code.is_empty());
        let code = code.ok_or("its answer holds no code")?;
        let secret = self.client.secret.as_deref().unwrap_or_default();
        let _hidden = [&code, secret].map(|secret| sign_in.redactor.hide(secret));
        let issued = self
            .manager
            .exchange_code_for_token_with_issuer(&code, &self.state, answer.iss.as_deref())
            .await;
        // A server may repeat in its error what it was sent.
        let issued = issued.map_err(|error| {
            let why = without_proof(&words(&error));
            sign_in.redactor.redact(&why).into_owned()
        })?;
        let granted = issued.scopes().map(|scopes| {
            let scopes = scopes.iter().map(|scope| scope.to_string());
            scopes.collect::<Vec<_>>()
        });
        let lasts = issued.expires_in();
        let refresh = issued.refresh_token();
        Ok(Record {
            server: sign_in.url.to_string(),
            issuer: self.issuer.name,
            host: self.asked.host,
            token_endpoint: self.issuer.token.to_string(),
            revocation_endpoint: self.issuer.revocation.map(String::from),
            secret_in_body: self.issuer.secret_in_body,
            resource: self.resource,
            client: self.client,
            tokens: Some(Tokens {
                access: issued.access_token().secret().clone(),
                refresh: refresh.map(|token| token.secret().clone()),
                ends: lasts.map(super::tokens::ends),
                scopes: granted.unwrap_or(self.scopes),
            }),
        })
    }
}

/// Takes out of an error what may be the proof of who began the sign-in (`code_verifier`, RFC 7636, 4.1), which the SDK keeps
/// to itself: it is longer than any word.
fn without_proof(text: &str) -> String {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "-_~".contains(letter);
    let parts = text.split_inclusive(|letter| !is_part(letter));
    let parts = parts.map(|part| {
        let word = part.trim_end_matches(|letter| !is_part(letter));
        match word.len() >= SHORTEST_PROOF {
            true => part.replacen(word, "[redacted]", 1),
            false => part.to_owned(),
        }
    });
    parts.collect()
}

impl SignIn {
    /// Begins a sign-in and asks the user; returns what is asked. One that is open and asks for all that is wanted is shown
    /// again.
    ///
    /// An error reads as a sentence.
    pub(in crate::mcp) async fn begin(
        self: &Arc<Self>,
        demand: Demand,
    ) -> Result<McpAuthRequired, String> {
        let begun = self.begin_or_say_why(demand).await;
        begun.map_err(|why| self.redactor.redact(&why).into_owned())
    }

    async fn begin_or_say_why(self: &Arc<Self>, demand: Demand) -> Result<McpAuthRequired, String> {
        let redirect = match (&self.config.redirect, self.all.callback.get()) {
            (Some(redirect), _) => redirect.clone(),
            (None, Some(callback)) => callback.clone(),
            (None, None) => {
                return Err("the server asks to sign in, and this process has no port for the answer; sign in once with `outrigger chat`, which keeps it for this one as well".to_owned());
            }
        };
        let mut open = self.pending.lock().await;
        let wanted = match demand.is_more {
            true => self.wanted(demand.challenge.as_deref().unwrap_or_default()),
            false => Vec::new(),
        };
        // The page that the user has open is that of the last one alone.
        let is_as_good = |pending: &&Pending| {
            let left = pending.over.saturating_duration_since(Instant::now());
            left > LEAST_LEFT && wanted.iter().all(|scope| pending.scopes.contains(scope))
        };
        if let Some(pending) = open.as_ref().filter(is_as_good) {
            let asked = pending.asked.clone();
            self.notices.sign_in(asked.clone());
            return Ok(asked);
        }
        let record = self.held.lock().await.record(self).await;
        // Whoever waits for the one before is served by this one as well.
        let before = open.as_ref().filter(|pending| pending.is_open());
        let before = before.map_or(&[][..], |pending| &pending.scopes);
        let pending = self.prepare(&demand, redirect, record, before).await?;
        self.all.open(&pending.state, self)?;
        let asked = pending.asked.clone();
        if let Some(before) = open.replace(pending) {
            self.all.close(&before.state);
        }
        self.notices.sign_in(asked.clone());
        Ok(asked)
    }

    /// Finds out where to sign in, and as whom.
    async fn prepare(
        &self,
        demand: &Demand,
        redirect: String,
        record: Option<Record>,
        before: &[String],
    ) -> Result<Pending, String> {
        let web = Arc::new(self.web.clone());
        let made = AuthorizationManager::new_with_oauth_http_client(self.url.clone(), web).await;
        let mut manager = made.map_err(|error| words(&error))?;
        let challenge = demand.challenge.as_deref().filter(|it| !it.is_empty());
        let found = manager.resolve_metadata_from_challenge(challenge).await;
        let found = found.map_err(|error| words(&error))?;
        let is_published = found.source.is_discovered();
        let issuer = checked(&found.metadata, is_published, &self.web)?;
        let can_register = found.metadata.registration_endpoint.is_some();
        manager.set_metadata(found.metadata);
        let known = record.as_ref();
        let scopes = self.scopes(demand, &manager, known, before).await;
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let known = record
            .as_ref()
            .filter(|record| record.issuer == issuer.name);
        let known = known.map(|record| &record.client);
        let known = known.filter(|client| client.redirect == redirect);
        let client = self.client(&issuer, &redirect, known.cloned());
        let client = match client {
            Some(client) => {
                let mut config = OAuthClientConfig::new(&client.id, &client.redirect);
                if let Some(secret) = &client.secret {
                    config = config.with_client_secret(secret);
                }
                let configured = manager.configure_client(config);
                configured.map_err(|error| words(&error))?;
                client
            }
            None if can_register => {
                let registered = manager.register_client(NAME, &redirect, &scopes).await;
                let registered = registered.map_err(|error| {
                    format!("the authorization server {} does not register this client: {}; `auth.client_id` of the server names one that it knows", issuer.name, words(&error))
                })?;
                Registered {
                    id: registered.client_id,
                    secret: registered.client_secret,
                    redirect,
                }
            }
            None => {
                return Err(format!(
                    "the authorization server {} knows no client that it was not told of: register one there with the redirect address {redirect}, and set `mcp.servers.{}.auth.client_id`",
                    issuer.name, self.server
                ));
            }
        };
        let url = manager.get_authorization_url(&scopes).await;
        let url = url.map_err(|error| words(&error))?;
        let url = Url::parse(&url).map_err(|error| error.to_string())?;
        let of_query = |wanted: &str| {
            let mut pairs = url.query_pairs();
            let found = pairs.find(|(name, _)| name == wanted);
            found.map(|(_, value)| value.into_owned())
        };
        let state = of_query("state").ok_or("the sign-in has no state")?;
        let resource = of_query("resource").unwrap_or_else(|| self.url.to_string());
        let host = host_and_port(&issuer.page);
        let open_for = SignedDuration::try_from(OPEN_FOR).unwrap_or_default();
        let expires_at = Timestamp::now()
            .checked_add(open_for)
            .unwrap_or(Timestamp::MAX);
        let before = record.filter(|record| record.issuer != issuer.name);
        Ok(Pending {
            asked: McpAuthRequired {
                server: self.server.to_string(),
                url: url.to_string(),
                host: host.clone(),
                scopes: scopes.iter().map(|&scope| scope.to_owned()).collect(),
                more: demand.is_more,
                was_at: before
                    .map(|record| record.host)
                    .filter(|before| *before != host),
                expires_at: format!("{expires_at:.3}"),
            },
            state,
            over: Instant::now() + OPEN_FOR,
            manager,
            issuer,
            client,
            resource,
            scopes: scopes.into_iter().map(str::to_owned).collect(),
        })
    }

    /// As whom the daemon signs in, where that is known without asking.
    fn client(
        &self,
        issuer: &Issuer,
        redirect: &str,
        known: Option<Registered>,
    ) -> Option<Registered> {
        let named = |id: &String, secret: Option<String>| Registered {
            id: id.clone(),
            secret,
            redirect: redirect.to_owned(),
        };
        if let Some(id) = &self.config.client_id {
            return Some(named(id, self.config.secret()));
        }
        let document = self.config.client_metadata_url.as_ref();
        if let Some(document) = document.filter(|_| issuer.reads_client_ids) {
            return Some(named(document, None));
        }
        known
    }

    /// Which rights are asked for.
    async fn scopes(
        &self,
        demand: &Demand,
        manager: &AuthorizationManager,
        record: Option<&Record>,
        before: &[String],
    ) -> Vec<String> {
        let mut scopes = match (demand.is_more, self.config.scopes.is_empty()) {
            (false, true) => return manager.select_initial_scopes(&[]).await,
            (_, false) => self.config.scopes.clone(),
            (true, true) => Vec::new(),
        };
        if demand.is_more {
            let granted = record.and_then(|record| record.tokens.as_ref());
            let granted = granted.iter().flat_map(|tokens| tokens.scopes.clone());
            let wanted = self.wanted(demand.challenge.as_deref().unwrap_or_default());
            for scope in granted.chain(before.to_vec()).chain(wanted) {
                if !scopes.contains(&scope) {
                    scopes.push(scope);
                }
            }
        }
        scopes
    }

    /// Lists the rights that a server's words name.
    pub(super) fn wanted(&self, challenge: &str) -> Vec<String> {
        let params = WWWAuthenticateParams::parse(challenge, &self.url);
        let scope = params.scope.unwrap_or_default();
        scope.split_whitespace().map(str::to_owned).collect()
    }
}

/// An error of the SDK in bounded words, with its causes.
pub(super) fn words(error: &AuthError) -> String {
    let text = match error {
        AuthError::AuthorizationServerMismatch {
            expected_issuer,
            received_issuer,
        } => format!(
            "its answer, or its metadata, is of the issuer {received_issuer}, and {expected_issuer} was asked: somebody may try to have the one's codes sent to the other"
        ),
        AuthError::AuthorizationServerMissingIssuer { expected_issuer } => {
            format!("it does not name itself, and {expected_issuer} was expected")
        }
        other => plain(other),
    };
    bounded(&text)
}

#[cfg(test)]
pub(super) mod tests;
