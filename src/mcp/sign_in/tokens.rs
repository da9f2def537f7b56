//! Tokens while they last: read, renewed where they came from, forgotten.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use oauth2::basic::BasicErrorResponseType;
use oauth2::http::{Method, Request, Response, header};
use oauth2::{
    AuthType, ClientId, ClientSecret, RefreshToken, RequestTokenError, TokenResponse as _, TokenUrl,
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Url;

use super::SignIn;
use super::record::{Record, Tokens};
use super::web::{Web, plain};
use crate::mcp::connection::bounded;
use crate::telemetry::Hidden;

/// Longest that a token may last, in seconds: what says more is not believed.
const LONGEST: u64 = 10 * 365 * 24 * 60 * 60;

/// What is held for one server.
#[derive(Default)]
pub(super) struct Held {
    is_loaded: bool,
    record: Option<Record>,
    hidden: Vec<Hidden>,
    /// Those of the one before, whose tokens may still be on their way.
    hidden_before: Vec<Hidden>,
    /// Whether the server has taken the access token since somebody signed in.
    is_taken: bool,
}

/// Why there is no new token.
enum Refused {
    /// For good: somebody has to sign in.
    Over,
    /// This time.
    Passing(String),
}

/// Why there is no token in the place of another; reads as a sentence.
pub(super) enum NoOther {
    /// This time.
    Passing(String),
    /// Whatever is done here.
    InVain(String),
}

impl Held {
    async fn load(&mut self, of: &SignIn) {
        if self.is_loaded {
            return;
        }
        self.record = of.kept().await;
        self.is_loaded = true;
        if let Some(record) = &self.record {
            self.hidden = of.hide(record);
            self.is_taken = true;
        }
    }

    /// Returns what is known of the sign-in, over or not.
    pub(super) async fn record(&mut self, of: &SignIn) -> Option<Record> {
        self.load(of).await;
        self.record.clone()
    }

    /// Takes what a sign-in brought.
    pub(super) async fn put(&mut self, record: Record, of: &SignIn) {
        self.is_loaded = true;
        self.is_taken = false;
        of.keep(&record).await;
        self.replace(Some(record), of);
    }

    /// Forgets everything; returns what it was.
    pub(super) async fn forget(&mut self, of: &SignIn) -> Option<Record> {
        self.load(of).await;
        of.all.vault.remove(&of.name()).await;
        let record = self.record.clone();
        self.replace(None, of);
        record
    }

    /// The secrets of the two last ones are looked for in texts; what was before is over.
    fn replace(&mut self, record: Option<Record>, of: &SignIn) {
        let hidden = record.as_ref().map_or_else(Vec::new, |it| of.hide(it));
        self.hidden_before = std::mem::replace(&mut self.hidden, hidden);
        self.record = record;
    }

    fn tokens(&self) -> Option<&Tokens> {
        self.record.as_ref()?.tokens.as_ref()
    }

    pub(super) fn access(&self) -> Option<&str> {
        Some(&self.tokens()?.access)
    }

    /// Whether there is an access token that lasts.
    fn lasts(&self) -> bool {
        let tokens = self.tokens();
        tokens.is_some_and(|tokens| !tokens.is_over(Timestamp::now()))
    }

    /// Whether all of these rights were granted.
    pub(super) fn has(&self, scopes: &[String]) -> bool {
        let granted = self.tokens().map(|it| &it.scopes);
        granted.is_some_and(|granted| scopes.iter().all(|scope| granted.contains(scope)))
    }

    /// Renews the tokens, or takes those that another process has kept since.
    async fn renew(&mut self, of: &SignIn) -> Result<(), Refused> {
        // Of several daemons of one user the first to renew has the only refresh token that still counts.
        if self.takes_newer(of).await && self.lasts() {
            return Ok(());
        }
        let Some(record) = self.record.clone().filter(|it| it.tokens.is_some()) else {
            return Err(Refused::Over);
        };
        let outcome = refreshed(&record, &of.web).await;
        let (tokens, outcome) = match outcome {
            Ok(tokens) => (Some(tokens), Ok(())),
            // Another one may have been first while this one asked.
            Err(Refused::Over) if self.takes_newer(of).await => return Ok(()),
            Err(Refused::Over) => (None, Err(Refused::Over)),
            Err(passing) => return Err(passing),
        };
        let record = Record { tokens, ..record };
        of.keep(&record).await;
        self.replace(Some(record), of);
        outcome
    }

    /// Takes the tokens that another process has kept since, where there are some that last or can be renewed; returns
    /// whether.
    pub(super) async fn takes_newer(&mut self, of: &SignIn) -> bool {
        let Some(record) = of.kept().await else {
            return false;
        };
        let tokens = record.tokens.as_ref();
        let is_newer = tokens.is_some_and(|tokens| {
            let lasts = !tokens.is_over(Timestamp::now()) || tokens.refresh.is_some();
            Some(tokens.access.as_str()) != self.access() && lasts
        });
        if is_newer {
            (self.is_loaded, self.is_taken) = (true, true);
            self.replace(Some(record), of);
        }
        is_newer
    }
}

impl SignIn {
    /// Returns the access token, renewed where it is as good as over; `None` where somebody has to sign in.
    ///
    /// An error says why it could not be renewed this time.
    pub(super) async fn token(self: &Arc<Self>) -> Result<Option<String>, String> {
        {
            let mut held = self.held.lock().await;
            held.load(self).await;
            if held.lasts() || held.access().is_none() {
                return Ok(held.access().map(str::to_owned));
            }
        }
        let this = Arc::clone(self);
        let renewed = self.to_its_end(async move { this.renewed_if_over().await });
        renewed.await?
    }

    async fn renewed_if_over(&self) -> Result<Option<String>, String> {
        let mut held = self.held.lock().await;
        let now = Timestamp::now();
        // Another one may have come first.
        if held.tokens().is_some_and(|tokens| tokens.is_over(now)) {
            let ends = held.tokens().and_then(|tokens| tokens.ends);
            let lasts = ends.is_none_or(|ends| ends > now.as_second());
            match held.renew(self).await {
                Ok(()) => {}
                Err(Refused::Over) => return Ok(None),
                // What is left of it is used up.
                Err(Refused::Passing(_)) if lasts => {}
                Err(Refused::Passing(why)) => return Err(self.redactor.redact(&why).into_owned()),
            }
        }
        Ok(held.access().map(str::to_owned))
    }

    /// Returns what takes the place of a token that the server does not take, or of none; `None` where somebody has to sign
    /// in.
    pub(super) async fn instead_of(
        self: &Arc<Self>,
        refused: Option<&str>,
    ) -> Result<Option<String>, NoOther> {
        let (this, refused) = (Arc::clone(self), refused.map(str::to_owned));
        let renewed = self.to_its_end(async move { this.renewed(refused.as_deref()).await });
        renewed.await.map_err(NoOther::Passing)?
    }

    async fn renewed(&self, refused: Option<&str>) -> Result<Option<String>, NoOther> {
        let mut held = self.held.lock().await;
        let access = held.access();
        if access.is_some() && access != refused {
            return Ok(access.map(str::to_owned));
        }
        if access.is_some() && !held.is_taken {
            let record = held.record.as_ref();
            let host = record.map_or("the authorization server", |record| &record.host);
            return Err(NoOther::InVain(format!(
                "the server does not take the token that {host} has just issued for it; that is for whoever runs the two to mend: they may not agree on the audience or the issuer"
            )));
        }
        match held.renew(self).await {
            Ok(()) => Ok(held.access().map(str::to_owned)),
            Err(Refused::Over) => Ok(None),
            Err(Refused::Passing(why)) => {
                Err(NoOther::Passing(self.redactor.redact(&why).into_owned()))
            }
        }
    }

    /// Does what must not be left halfway, also where whoever waits for it is gone: a refresh token and a code count once, and
    /// what they were exchanged for would be lost. The daemon waits for it at its end, for as long as it waits for anything.
    pub(super) async fn to_its_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, String> {
        let done = self.all.tasks.spawn(work).await;
        done.map_err(|error| {
            tracing::error!(server = %self.server, %error, "a sign-in failed within");
            "it failed within; the daemon's log has more".to_owned()
        })
    }

    /// Notes that the server takes a token.
    pub(super) fn taken(&self, token: &str) {
        // While tokens are renewed this one has been taken before.
        let Ok(mut held) = self.held.try_lock() else {
            return;
        };
        if held.access() == Some(token) {
            held.is_taken = true;
        }
    }
}

/// When something ends that lasts this long from now.
pub(super) fn ends(lasts: Duration) -> i64 {
    let lasts = i64::try_from(lasts.as_secs().min(LONGEST)).unwrap_or_default();
    Timestamp::now().as_second().saturating_add(lasts)
}

/// Has tokens renewed by whoever issued them.
async fn refreshed(record: &Record, web: &Web) -> Result<Tokens, Refused> {
    let tokens = record.tokens.as_ref();
    let old = tokens.and_then(|tokens| Some((tokens, tokens.refresh.clone()?)));
    let Some((tokens, refresh)) = old else {
        return Err(Refused::Over);
    };
    let endpoint = TokenUrl::new(record.token_endpoint.clone());
    let endpoint = endpoint.map_err(|error| Refused::Passing(error.to_string()))?;
    let mut client = oauth2::basic::BasicClient::new(ClientId::new(record.client.id.clone()))
        .set_token_uri(endpoint);
    if let Some(secret) = &record.client.secret {
        client = client.set_client_secret(ClientSecret::new(secret.clone()));
    }
    if record.secret_in_body {
        client = client.set_auth_type(AuthType::RequestBody);
    }
    let refresh = RefreshToken::new(refresh);
    let asked = client
        .exchange_refresh_token(&refresh)
        .add_extra_param("resource", &record.resource)
        .request_async(web)
        .await;
    let issued = match asked {
        Ok(issued) => issued,
        Err(RequestTokenError::ServerResponse(answer))
            if matches!(
                answer.error(),
                BasicErrorResponseType::InvalidGrant
                    | BasicErrorResponseType::InvalidClient
                    | BasicErrorResponseType::UnauthorizedClient
            ) =>
        {
            return Err(Refused::Over);
        }
        Err(error) => {
            let why = bounded(&plain(&error));
            return Err(Refused::Passing(format!(
                "the token could not be renewed: {why}"
            )));
        }
    };
    let granted = issued.scopes().map(|scopes| {
        let scopes = scopes.iter().map(|scope| scope.to_string());
        scopes.collect()
    });
    let newer = issued.refresh_token();
    Ok(Tokens {
        access: issued.access_token().secret().clone(),
        // One that does not rotate counts on.
        refresh: Some(newer.map_or(refresh.secret(), |it| it.secret()).clone()),
        ends: issued.expires_in().map(ends),
        scopes: granted.unwrap_or_else(|| tokens.scopes.clone()),
    })
}

/// Tells whoever issued tokens that they are over. What comes of it changes nothing here.
pub(super) async fn revoke(record: &Record, web: &Web) {
    let (Some(endpoint), Some(tokens)) = (&record.revocation_endpoint, &record.tokens) else {
        return;
    };
    // With the refresh token all of its access tokens end.
    let (token, hint) = match &tokens.refresh {
        Some(refresh) => (refresh, "refresh_token"),
        None => (&tokens.access, "access_token"),
    };
    let Ok(mut form) = Url::parse("http://localhost/") else {
        return;
    };
    let client = &record.client;
    let secret = client.secret.as_deref();
    let in_body = secret.filter(|_| record.secret_in_body);
    let in_header = secret.filter(|_| !record.secret_in_body);
    let pairs = [
        ("token", Some(token.as_str())),
        ("token_type_hint", Some(hint)),
        // The header names the client, too.
        (
            "client_id",
            in_header.is_none().then_some(client.id.as_str()),
        ),
        ("client_secret", in_body),
    ];
    let pairs = pairs
        .iter()
        .filter_map(|(name, value)| Some((name, (*value)?)));
    form.query_pairs_mut().extend_pairs(pairs);
    let body = form.query().unwrap_or_default().as_bytes().to_vec();
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(endpoint)
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    if let Some(secret) = in_header {
        request = request.header(header::AUTHORIZATION, basic(&client.id, secret));
    }
    let request = request.body(body);
    let Ok(request) = request else { return };
    let asked = web.ask(request).await;
    match asked.as_ref().map(Response::status) {
        Ok(status) if status.is_success() => {}
        Ok(status) => tracing::info!(%status, "tokens were not taken back"),
        Err(why) => tracing::info!(why, "tokens were not taken back"),
    }
}

/// Returns the header that names a client and its secret: both are encoded as in a form before (RFC 6749, 2.3.1).
fn basic(id: &str, secret: &str) -> String {
    let [id, secret] = [id, secret].map(|it| utf8_percent_encode(it, NON_ALPHANUMERIC));
    format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")))
}
