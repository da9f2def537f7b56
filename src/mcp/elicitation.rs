//! What a server asks of the user while a call runs: whose call it is, and within what bounds.
//!
//! The older protocol does not say to which call such a request belongs, so it is one's only where exactly one call
//! of this server runs: with several, the question of one conversation might be shown in another. In the newer one
//! the request is a call's own answer (`tool`). Whether the user can be asked is what the call knows
//! (`crate::tool::user`); where nobody can be, the server gets a no, and sessions are notified why.

#![expect(
    deprecated,
    reason = "sampling is on its way out of the protocol; servers of today still ask for it"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult,
    ElicitationAction, ErrorCode, ErrorData,
};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};

use super::sampling;
use crate::message::Severity;
use crate::notices::{Notices, To};
use crate::telemetry::Redactor;
use crate::tool::user::{AskUser, Form, Given, Purpose, Sample, Sampled, Unsampled, Wanted};

/// The most bytes of a message: what a person reads before they answer.
const MAX_MESSAGE: usize = 8 * 1024;

const MAX_SCHEMA: usize = 64 * 1024;

const MAX_FIELDS: usize = 64;

/// The most bytes of a page's address: what browsers take.
const MAX_URL: usize = 2 * 1024;

/// The most answers of the model that one call may ask for.
const MAX_SAMPLES: usize = 5;

/// The protocol's code for what the user said no to.
const REFUSED: i32 = -1;

/// Why a question of a call is not taken.
const FULL: &str = "it asks too many questions at once";

/// Questions of one call that wait: it receives them at once.
const WAITING: usize = 4;

/// The running calls of one server, and how its questions are read and answered.
#[derive(Clone)]
pub(super) struct Elicitations {
    server: Arc<str>,
    notices: Notices,
    redactor: Redactor,
    /// One for each call, closed once it is over.
    running: Arc<Mutex<Vec<mpsc::Sender<Request>>>>,
}

/// A request of the server, for the call that it belongs to.
pub(super) enum Request {
    /// The user is to give something. An error says why nobody is asked.
    Input {
        wanted: Wanted,
        answer: oneshot::Sender<Result<Given, String>>,
    },
    /// The model is to answer something.
    Sample {
        sample: Sample,
        answer: oneshot::Sender<Result<Sampled, Unsampled>>,
    },
}

impl Elicitations {
    pub(super) fn new(server: Arc<str>, notices: Notices, redactor: Redactor) -> Self {
        Self {
            server,
            notices,
            redactor,
            running: Arc::default(),
        }
    }

    /// Registers a call that runs until the receiver of its questions is dropped.
    pub(super) fn register(&self) -> mpsc::Receiver<Request> {
        let (sender, requests) = mpsc::channel(WAITING);
        let mut running = self.running.lock();
        running.retain(|call| !call.is_closed());
        running.push(sender);
        requests
    }

    /// Returns the answer to a request as the server is given it; where nobody was asked, a no, and sessions are notified
    /// why. `ask` asks the user.
    pub(super) async fn answer(
        &self,
        params: ElicitRequestParams,
        ask: impl AsyncFnOnce(Wanted) -> Result<Given, String>,
    ) -> ElicitResult {
        let given = match wanted(params, &self.server, &self.redactor) {
            Ok(wanted) => ask(wanted).await,
            Err(why) => Err(why),
        };
        let given = given.unwrap_or_else(|why| {
            let message = format!(
                "the MCP server `{}` asked for input of the user, and {why}; it was declined",
                self.server
            );
            let (to, code) = (To::Operators, "mcp_input_declined");
            self.notices.send(to, Severity::Warning, code, message);
            Given::Declined
        });
        match given {
            Given::Accepted(content) => {
                let result = ElicitResult::new(ElicitationAction::Accept);
                match content {
                    Some(content) => result.with_content(Value::Object(content)),
                    None => result,
                }
            }
            Given::Declined => ElicitResult::new(ElicitationAction::Decline),
            Given::Cancelled => ElicitResult::new(ElicitationAction::Cancel),
        }
    }

    /// Asks the user of the one call that runs, for a request that the server makes by itself.
    pub(super) async fn ask(&self, wanted: Wanted) -> Result<Given, String> {
        let (answer, given) = oneshot::channel();
        let call = self.only_call()?;
        let full = |_| FULL.to_owned();
        call.try_send(Request::Input { wanted, answer })
            .map_err(full)?;
        // The call ended first.
        given.await.unwrap_or(Ok(Given::Cancelled))
    }

    /// Returns the answer to a request for one of the model, as the server is given it. Where nobody was asked, sessions are
    /// notified why. `ask` asks the user and the model.
    pub(super) async fn sampled(
        &self,
        params: CreateMessageRequestParams,
        ask: impl AsyncFnOnce(Sample) -> Result<Sampled, Unsampled>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let sampled = match sampling::wanted(params, &self.server, &self.redactor) {
            Ok(sample) => ask(sample).await,
            Err(why) => Err(Unsampled::Failed(why)),
        };
        let refused = |why: String| ErrorData::new(ErrorCode(REFUSED), why, None);
        sampled.map(sampling::given).map_err(|why| match why {
            Unsampled::Declined => refused("the user said no".to_owned()),
            Unsampled::Cancelled => refused("the user did not decide".to_owned()),
            Unsampled::Failed(why) => {
                let message = format!(
                    "the MCP server `{}` asked for an answer of the model, and {why}; it got none",
                    self.server
                );
                let to = To::Operators;
                self.notices
                    .send(to, Severity::Warning, "mcp_sampling_declined", message);
                refused(why)
            }
        })
    }

    /// Asks the model of the one call that runs, for a request that the server makes by itself.
    pub(super) async fn ask_model(&self, sample: Sample) -> Result<Sampled, Unsampled> {
        let (answer, sampled) = oneshot::channel();
        let call = self.only_call().map_err(Unsampled::Failed)?;
        let full = |_| Unsampled::Failed(FULL.to_owned());
        call.try_send(Request::Sample { sample, answer })
            .map_err(full)?;
        // The call ended first.
        sampled.await.unwrap_or(Err(Unsampled::Cancelled))
    }

    fn only_call(&self) -> Result<mpsc::Sender<Request>, String> {
        let running = self.running.lock();
        let mut calls = running.iter().filter(|call| !call.is_closed());
        match (calls.next(), calls.next()) {
            (Some(call), None) => Ok(call.clone()),
            (None, _) => Err("no call of it runs that the question could belong to".to_owned()),
            (Some(_), Some(_)) => {
                Err("several calls of it run, so it is not known which one asks".to_owned())
            }
        }
    }
}

impl Request {
    /// Shows the question to the user and sends the answer; ends early where the server waits no more.
    pub(super) async fn show(self, user: Option<&dyn AskUser>, samples: &Samples) {
        // The server may have ended meanwhile.
        match self {
            Self::Input { wanted, mut answer } => tokio::select! {
                given = ask_user(wanted, user) => drop(answer.send(given)),
                () = answer.closed() => {}
            },
            Self::Sample { sample, mut answer } => tokio::select! {
                sampled = samples.ask(sample, user) => drop(answer.send(sampled)),
                () = answer.closed() => {}
            },
        }
    }
}

/// How often a call had the model answer.
#[derive(Default)]
pub(super) struct Samples(AtomicUsize);

impl Samples {
    /// Has the model answer, where the call may still ask for that.
    pub(super) async fn ask(
        &self,
        sample: Sample,
        user: Option<&dyn AskUser>,
    ) -> Result<Sampled, Unsampled> {
        let failed = |why: String| Err(Unsampled::Failed(why));
        if self.0.fetch_add(1, Ordering::Relaxed) >= MAX_SAMPLES {
            return failed(format!(
                "a call may ask for {MAX_SAMPLES} answers, which are used up"
            ));
        }
        match user {
            Some(user) => user.sample(sample).await,
            None => failed("nobody can be asked here".to_owned()),
        }
    }
}

/// Asks the user. An error says why nobody is asked, as a part of a sentence.
pub(super) async fn ask_user(wanted: Wanted, user: Option<&dyn AskUser>) -> Result<Given, String> {
    let user = user.ok_or_else(|| "nobody can be asked here".to_owned())?;
    match user.unable() {
        Some(why) => Err(why),
        None => Ok(user.ask(wanted).await),
    }
}

/// Reads what a server asks for, without secrets of the daemon.
fn wanted(
    params: ElicitRequestParams,
    server: &str,
    redactor: &Redactor,
) -> Result<Wanted, String> {
    let (message, form) = match params {
        ElicitRequestParams::FormElicitationParams {
            message,
            requested_schema,
            ..
        } => {
            let unfit = |_| "its form is not one that can be shown".to_owned();
            let schema = serde_json::to_value(requested_schema).map_err(unfit)?;
            (message, Form::Fields(form(schema, redactor)?))
        }
        ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
            (message, Form::Page(page(url)?))
        }
        _ => return Err("it asked in a way that is not known here".to_owned()),
    };
    if message.len() > MAX_MESSAGE {
        return Err(format!("its message has more than {MAX_MESSAGE} bytes"));
    }
    Ok(Wanted {
        server: server.to_owned(),
        message: redactor.redact(&message).into_owned(),
        form,
        purpose: Purpose::Input,
    })
}

fn form(mut schema: Value, redactor: &Redactor) -> Result<Map<String, Value>, String> {
    if schema.to_string().len() > MAX_SCHEMA {
        return Err(format!("its form has more than {MAX_SCHEMA} bytes"));
    }
    redactor.redact_value(&mut schema);
    let Value::Object(schema) = schema else {
        return Err("its form is not one that can be shown".to_owned());
    };
    let fields = schema.get("properties").and_then(Value::as_object);
    match fields.is_some_and(|fields| fields.len() > MAX_FIELDS) {
        true => Err(format!("its form has more than {MAX_FIELDS} fields")),
        false => Ok(schema),
    }
}

/// An address that a browser may be sent to: no other scheme is a page of somebody else's.
fn page(url: String) -> Result<String, String> {
    let is_page = reqwest::Url::parse(&url)
        .is_ok_and(|url| matches!(url.scheme(), "https" | "http") && url.host().is_some());
    match is_page && url.len() <= MAX_URL {
        true => Ok(url),
        false => Err("the address that it asks to open is not that of a web page".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(params: Value) -> Result<Wanted, String> {
        wanted(
            serde_json::from_value(params).unwrap(),
            "s",
            &Redactor::default(),
        )
    }

    #[test]
    fn what_is_too_large_or_no_page_is_not_passed_on() {
        let many: Map<String, Value> = (0..=MAX_FIELDS)
            .map(|number| (format!("f{number}"), json!({"type": "string"})))
            .collect();
        let form = |message: String, properties: Value| {
            json!({"message": message,
                "requestedSchema": {"type": "object", "properties": properties}})
        };
        let page = |url: &str| json!({"mode": "url", "message": "m", "url": url});
        let long = json!({"f": {"type": "string", "title": "x".repeat(MAX_SCHEMA)}});
        for (params, said) in [
            (form("x".repeat(MAX_MESSAGE + 1), json!({})), "message"),
            (form("m".to_owned(), many.into()), "fields"),
            (form("m".to_owned(), long), "bytes"),
            (page("javascript:alert(1)"), "web page"),
            (page("file:///etc/passwd"), "web page"),
            (
                page(&format!("https://a/{}", "x".repeat(MAX_URL))),
                "web page",
            ),
        ] {
            let why = read(params).unwrap_err();
            assert!(why.contains(said), "{why}");
        }
        let fits = read(page("https://example.org/a?b")).unwrap();
        assert_eq!(fits.form, Form::Page("https://example.org/a?b".to_owned()));
        let order = json!({"z": {"type": "string"}, "a": {"type": "boolean"}});
        let Form::Fields(schema) = read(form("m".to_owned(), order)).unwrap().form else {
            panic!("a form");
        };
        let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["z", "a"]);
    }

    #[tokio::test]
    async fn a_question_is_that_of_the_one_call_that_runs() {
        let elicitations =
            Elicitations::new(Arc::from("s"), Notices::default(), Redactor::default());
        let wanted = || Wanted {
            server: "s".to_owned(),
            message: "m".to_owned(),
            form: Form::Page("https://a/".to_owned()),
            purpose: Purpose::Input,
        };
        let why = async || elicitations.ask(wanted()).await.err().unwrap();
        assert!(why().await.contains("no call"));
        let mut first = elicitations.register();
        let second = elicitations.register();
        assert!(why().await.contains("several"));
        drop(second);
        let shown = async {
            first
                .recv()
                .await
                .unwrap()
                .show(None, &Samples::default())
                .await;
        };
        let (answer, ()) = tokio::join!(elicitations.ask(wanted()), shown);
        assert!(answer.err().unwrap().contains("nobody"));
    }
}
