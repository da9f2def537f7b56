//! An HTTP client that answers a server's demands: with the token that there is, with a new one, or by asking the user.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};

use super::begin::Demand;
use super::tokens::NoOther;
use super::waiting::nobody_came;
use super::{Hurdle, SignIn, WAIT_FOR};
use crate::mcp::transport::Paced;
use crate::protocol::event::McpAuthRequired;

/// How the SDK says that a server wants a token and does not say how to get one.
const BARE: &str = "HTTP 401";

type Error = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// The client of one connection.
#[derive(Clone)]
pub(in crate::mcp) struct Authorized {
    pub(in crate::mcp) inner: Paced,
    /// `None` where the operator's own header answers.
    pub(in crate::mcp) sign_in: Option<Arc<SignIn>>,
}

/// What a server demands; its words, which may be none.
enum Wanted {
    Token(String),
    More(String),
}

impl From<Wanted> for Demand {
    fn from(wanted: Wanted) -> Self {
        let is_more = matches!(wanted, Wanted::More(_));
        let (Wanted::Token(words) | Wanted::More(words)) = wanted;
        Self {
            challenge: Some(words),
            is_more,
        }
    }
}

fn wanted(error: &Error) -> Option<Wanted> {
    match error {
        StreamableHttpError::AuthRequired(error) => {
            Some(Wanted::Token(error.www_authenticate_header.clone()))
        }
        StreamableHttpError::UnexpectedServerResponse(said) if said.starts_with(BARE) => {
            Some(Wanted::Token(String::new()))
        }
        StreamableHttpError::InsufficientScope(error) => {
            let words = &error.www_authenticate_header;
            // Anything else that is forbidden stays so.
            words
                .contains("insufficient_scope")
                .then(|| Wanted::More(words.clone()))
        }
        _ => None,
    }
}

fn refused(why: String) -> Error {
    StreamableHttpError::UnexpectedServerResponse(why.into())
}

/// Why a request has no answer.
enum Fault {
    /// The way to the server, or its own words.
    Http(Error),
    /// What is between: the connection is as good as before.
    Refused(String),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Http(error)
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Http(error) => error,
            Fault::Refused(why) => refused(why),
        }
    }
}

impl Authorized {
    /// Sends a request with the token there is, and once more with another one where the server wants that. A call, which has an id,
    /// waits until somebody has signed in where that is wanted.
    async fn call<T, F>(
        &self,
        id: Option<&RequestId>,
        send: impl Fn(Option<String>) -> F,
    ) -> Result<T, Fault>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let Some(sign_in) = &self.sign_in else {
            return Ok(send(None).await?);
        };
        let mut token = sign_in.token().await.map_err(Fault::Refused)?;
        let mut error = match send(token.clone()).await {
            Ok(answer) => {
                token.iter().for_each(|token| sign_in.taken(token));
                return Ok(answer);
            }
            Err(error) => error,
        };
        if let Some(wanted) = wanted(&error)
            && let Some(other) = sign_in.another(&wanted, token.as_deref()).await?
        {
            error = match send(Some(other.clone())).await {
                Ok(answer) => {
                    sign_in.taken(&other);
                    return Ok(answer);
                }
                Err(error) => error,
            };
            token = Some(other);
        }
        let Some(demand) = wanted(&error) else {
            return Err(error.into());
        };
        if !sign_in.is_up.load(Ordering::Relaxed) {
            return Err(sign_in.note(demand, token.as_deref()).await.into());
        }
        let Some(id) = id else {
            return Err(error.into());
        };
        let mut waits = sign_in.waits().await;
        if let Wanted::More(words) = &demand {
            waits.wanted = sign_in.wanted(words);
        }
        waits.refused.clone_from(&token);
        // Not where somebody has signed in since the call went out.
        if let Some(asked) = sign_in.ask(demand, token.as_deref()).await? {
            let _waiting = sign_in.begin_to_wait(id);
            let signed_in = tokio::time::timeout(WAIT_FOR, sign_in.signed_in(waits)).await;
            if signed_in.is_err() {
                return Err(Fault::Refused(nobody_came(&asked)));
            }
        }
        let token = sign_in.token().await.map_err(Fault::Refused)?;
        match send(token.clone()).await {
            Ok(answer) => {
                token.iter().for_each(|token| sign_in.taken(token));
                Ok(answer)
            }
            Err(error) if matches!(wanted(&error), Some(Wanted::More(_))) => {
                let why = "the server forbids this also after somebody has signed in for it";
                Err(Fault::Refused(why.to_owned()))
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl SignIn {
    /// Keeps what is wanted for whoever looks why there is no connection; returns what the request has failed with, which
    /// went out with this token.
    async fn note(&self, wanted: Wanted, sent: Option<&str>) -> Error {
        if let Some(why) = self.in_vain(&wanted, sent).await {
            return refused(self.is_in_vain(why));
        }
        let demand = Demand::from(wanted);
        let words = demand.challenge.clone().unwrap_or_default();
        *self.hurdle.lock() = Some(Hurdle::Ask(demand));
        StreamableHttpError::AuthRequired(AuthRequiredError::new(words))
    }

    /// The same of what no sign-in helps.
    fn is_in_vain(&self, why: String) -> String {
        if !self.is_up.load(Ordering::Relaxed) {
            *self.hurdle.lock() = Some(Hurdle::InVain(why.clone()));
        }
        why
    }

    /// Asks the user for what is wanted; `None` where there is another token by now than the one that was sent.
    async fn ask(
        self: &Arc<Self>,
        wanted: Wanted,
        sent: Option<&str>,
    ) -> Result<Option<McpAuthRequired>, Fault> {
        if let Some(why) = self.in_vain(&wanted, sent).await {
            return Err(Fault::Refused(why));
        }
        if self.other_than(sent).await.is_some() {
            return Ok(None);
        }
        let begun = self.begin(wanted.into()).await;
        begun.map(Some).map_err(Fault::Refused)
    }

    /// Returns another token than one that is not enough; `None` where somebody has to sign in.
    async fn another(
        self: &Arc<Self>,
        wanted: &Wanted,
        sent: Option<&str>,
    ) -> Result<Option<String>, Fault> {
        if let Wanted::More(_) = wanted {
            return Ok(self.other_than(sent).await);
        }
        match self.instead_of(sent).await {
            Ok(token) => Ok(token),
            Err(NoOther::Passing(why)) => Err(Fault::Refused(why)),
            Err(NoOther::InVain(why)) => Err(Fault::Refused(self.is_in_vain(why))),
        }
    }

    /// Returns the token that there is by now, where it is another one than was sent.
    async fn other_than(&self, sent: Option<&str>) -> Option<String> {
        let held = self.held.lock().await;
        let access = held.access().filter(|access| Some(*access) != sent);
        access.map(str::to_owned)
    }

    /// Why it is of no use to ask the user for more: it was given already, with the token that was sent.
    async fn in_vain(&self, wanted: &Wanted, sent: Option<&str>) -> Option<String> {
        let Wanted::More(words) = wanted else {
            return None;
        };
        let wanted = self.wanted(words);
        let held = self.held.lock().await;
        (held.access() == sent && held.has(&wanted)).then(|| {
            format!(
                "the server forbids this for want of the rights {:?}, which were granted already",
                wanted.join(" ")
            )
        })
    }
}

impl StreamableHttpClient for Authorized {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let request = match &message {
            ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let called = self.call(request.as_ref(), |own| {
            let (uri, message, session) = (uri.clone(), message.clone(), session.clone());
            let token = own.or_else(|| token.clone());
            self.inner
                .post_message(uri, message, session, token, headers.clone())
        });
        let sign_in = self.sign_in.as_ref();
        let is_up = sign_in.is_some_and(|it| it.is_up.load(Ordering::Relaxed));
        match (called.await, request) {
            // An answer to this request, so that the connection with the others goes on.
            (Err(Fault::Refused(why)), Some(id)) if is_up => {
                let error = ErrorData::internal_error(why, None);
                let answer = ServerJsonRpcMessage::error(error, Some(id));
                Ok(StreamableHttpPostResponse::Json(answer, None))
            }
            (called, _) => Ok(called?),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), Error> {
        let own = match &self.sign_in {
            Some(sign_in) => sign_in.token().await.ok().flatten(),
            None => None,
        };
        let token = own.or(token);
        self.inner
            .delete_session(uri, session, token, headers)
            .await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<BoxedSseResponse, Error> {
        let called = self.call(None, |own| {
            let (uri, session, last) = (uri.clone(), session.clone(), last.clone());
            let token = own.or_else(|| token.clone());
            self.inner
                .get_stream(uri, session, last, token, headers.clone())
        });
        Ok(called.await?)
    }
}

#[cfg(test)]
mod tests {
    use rmcp::transport::streamable_http_client::InsufficientScopeError;
    use tokio::time::Instant;

    use super::super::begin::tests::{in_memory, pending, record, sign_in};
    use super::*;
    use crate::http::Clients;
    use crate::mcp::intake::Intake;

    #[tokio::test(start_paused = true)]
    async fn a_call_waits_for_its_user_so_long_and_says_where() {
        let all = in_memory();
        all.listens_at("http://127.0.0.1:1");
        let sign_in = sign_in(&all);
        let had = record(&sign_in).await;
        sign_in.held.lock().await.put(had, &sign_in).await;
        let mut open = pending(&sign_in, "s").await;
        open.scopes = vec!["write".to_owned()];
        *sign_in.pending.lock().await = Some(open);
        sign_in.set_up(true);
        let http = Clients::guarded().get("https://mcp.example/", None).await;
        let http = http.unwrap();
        let client = Authorized {
            inner: Paced {
                client: http,
                intake: Intake::of("docs"),
            },
            sign_in: Some(Arc::clone(&sign_in)),
        };
        let began = Instant::now();
        let id = RequestId::Number(7);
        let called = client.call(Some(&id), |_| async {
            let words = "Bearer error=\"insufficient_scope\", scope=\"write\"";
            let error = InsufficientScopeError::new(words.to_owned(), None);
            Err::<(), _>(StreamableHttpError::InsufficientScope(error))
        });
        let until = async {
            sign_in.until(true, &id).await;
            assert!(sign_in.is_awaited(&RequestId::Number(8)).is_none());
            assert!(sign_in.is_awaited(&id).unwrap().contains("login.example"));
            sign_in.until(false, &id).await;
        };
        let (called, ()) = tokio::join!(called, until);
        let Err(Fault::Refused(why)) = called else {
            panic!("it waits");
        };
        assert_eq!(began.elapsed(), WAIT_FOR);
        let open = "within 5 minutes; a sign-in is open at login.example until";
        assert!(why.contains(open), "{why}");
        assert!(sign_in.asks().is_some());
    }
}
