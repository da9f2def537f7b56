//! Keys of an address: an issuer that is slow, fails, has other keys than before, or says too much.

use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;
use tokio::sync::{Notify, Semaphore};

use super::*;

/// How long a test waits for what has to come.
const DEADLINE: Duration = Duration::from_secs(30);

/// An issuer that answers as it is told, when it is let.
struct Issuer {
    answer: Mutex<(StatusCode, String)>,
    asked: AtomicUsize,
    was_asked: Notify,
    /// A permit for each answer.
    may_answer: Semaphore,
}

impl Issuer {
    /// Returns an issuer that answers whenever it is asked, and what asks it.
    async fn start() -> (Arc<Self>, Source) {
        let issuer = Arc::new(Self {
            answer: Mutex::new((StatusCode::OK, set(&["a"]))),
            asked: AtomicUsize::new(0),
            was_asked: Notify::new(),
            may_answer: Semaphore::new(100),
        });
        let serving = Arc::clone(&issuer);
        let answer = get(move || async move {
            serving.asked.fetch_add(1, Ordering::SeqCst);
            serving.was_asked.notify_one();
            serving.may_answer.acquire().await.unwrap().forget();
            serving.answer.lock().clone()
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap());
        let router = Router::new().route("/keys", answer);
        tokio::spawn(async move { axum::serve(listener, router).await });
        (issuer, Source::new(&KeySource::Address(url)).unwrap())
    }

    fn answers(&self, status: StatusCode, body: String) {
        *self.answer.lock() = (status, body);
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    async fn is_asked(&self) {
        within("the issuer is asked", self.was_asked.notified()).await;
    }

    /// Has it answer nobody until it is let.
    fn hold(&self) {
        self.may_answer.forget_permits(usize::MAX);
    }

    fn let_answer(&self) {
        self.may_answer.add_permits(100);
    }
}

async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(DEADLINE, work).await;
    done.unwrap_or_else(|_| panic!("not within {DEADLINE:?}: {what}"))
}

/// Returns a set with a key of each of these names.
fn set(names: &[&str]) -> String {
    let key = |name: &&str| {
        let secret = URL_SAFE_NO_PAD.encode([7; 32]);
        json!({"kty": "oct", "kid": name, "k": secret})
    };
    json!({"keys": names.iter().map(key).collect::<Vec<_>>()}).to_string()
}

fn named(name: &str) -> impl Fn(&Keys) -> bool {
    let wanted = Some(name.to_owned());
    move |keys| keys.has(&wanted)
}

/// Asks for a key; returns whether it is there.
async fn has(source: &Source, name: &str) -> bool {
    let keys = within("keys", source.keys(named(name))).await;
    keys.has(&Some(name.to_owned()))
}

/// Lets time pass for the program, and none for the network.
async fn later(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// Waits until a read that nobody waits for has ended.
async fn read_ended(source: &Source) {
    let reading = source.0.known.lock().reading.clone();
    if let Some(reading) = reading {
        within("the end of a read", reading).await;
    }
}

#[tokio::test]
async fn who_comes_while_keys_are_read_waits_for_the_same_read() {
    let (issuer, source) = Issuer::start().await;
    issuer.hold();
    let waits = [has(&source, "a"), has(&source, "a"), has(&source, "other")];
    let waits = futures::future::join_all(waits);
    let lets = async {
        issuer.is_asked().await;
        issuer.let_answer();
    };
    let (found, ()) = tokio::join!(waits, lets);
    assert_eq!(found, [true, true, false]);
    assert_eq!(issuer.asked(), 1);
}

#[tokio::test]
async fn one_that_no_longer_waits_takes_the_read_from_nobody() {
    let (issuer, source) = Issuer::start().await;
    issuer.hold();
    tokio::select! {
        _ = has(&source, "a") => panic!("nothing was answered"),
        () = issuer.is_asked() => {}
    }
    issuer.let_answer();
    assert!(has(&source, "a").await);
    assert_eq!(issuer.asked(), 1);
}

#[tokio::test]
async fn old_keys_hold_while_they_are_read_again_and_where_that_fails() {
    let (issuer, source) = Issuer::start().await;
    assert!(has(&source, "a").await);
    later(FRESH * 2).await;
    issuer.hold();
    let at_once = source.keys(named("a")).now_or_never();
    assert!(at_once.is_some_and(|keys| named("a")(&keys)));
    issuer.is_asked().await;
    issuer.is_asked().await;
    issuer.answers(StatusCode::INTERNAL_SERVER_ERROR, String::new());
    issuer.let_answer();
    read_ended(&source).await;
    for asked in [2, 3] {
        assert_eq!(issuer.asked(), asked);
        assert!(has(&source, "a").await);
        read_ended(&source).await;
        later(PAUSE).await;
        assert!(has(&source, "a").await);
        read_ended(&source).await;
    }
}

#[tokio::test]
async fn after_a_read_that_failed_another_one_follows_soon() {
    let (issuer, source) = Issuer::start().await;
    for (status, body) in [
        (StatusCode::BAD_GATEWAY, set(&["a"])),
        (StatusCode::OK, "<html>".to_owned()),
        (StatusCode::OK, set(&["a"]) + &" ".repeat(MAX_BYTES)),
        (StatusCode::FOUND, String::new()),
    ] {
        issuer.answers(status, body);
        let asked = issuer.asked();
        assert!(!has(&source, "a").await && !has(&source, "a").await);
        assert_eq!(issuer.asked(), asked + 1, "{status}");
        later(PAUSE).await;
    }
    issuer.answers(StatusCode::OK, set(&["a"]));
    assert!(has(&source, "a").await);
}

#[tokio::test]
async fn a_key_that_is_not_known_is_asked_for_once_in_a_while() {
    let (issuer, source) = Issuer::start().await;
    assert!(has(&source, "a").await);
    issuer.answers(StatusCode::OK, set(&["a", "b"]));
    for name in ["b", "made up", "b"] {
        assert!(!has(&source, name).await);
    }
    assert_eq!(issuer.asked(), 1);
    later(PAUSE).await;
    assert!(has(&source, "b").await && has(&source, "a").await);
    assert!(!has(&source, "made up").await);
    assert_eq!(issuer.asked(), 2);
    // What the issuer has no more is no key any more.
    issuer.answers(StatusCode::OK, set(&["b"]));
    within("a read", source.read_again()).await;
    assert!(!has(&source, "a").await && has(&source, "b").await);
}

#[tokio::test]
async fn who_wants_them_read_again_is_not_served_by_an_earlier_read() {
    let (issuer, source) = Issuer::start().await;
    issuer.hold();
    let first = source.keys(named("a"));
    let lets = async {
        issuer.is_asked().await;
        let again = source.read_again();
        let lets = async { issuer.let_answer() };
        tokio::join!(again, lets);
    };
    within("both reads", async { tokio::join!(first, lets) }).await;
    assert_eq!(issuer.asked(), 2);
}
