use tokio_util::task::TaskTracker;

use super::*;
use crate::config::{HttpServer, TokenStore};
use crate::http::Clients;
use crate::mcp::sign_in::{MAX_OPEN, Parts, SignIns};
use crate::notices::Notices;
use crate::telemetry::Redactor;

pub(in crate::mcp::sign_in) fn in_memory() -> Arc<SignIns> {
    let tasks = TaskTracker::new();
    Arc::new(SignIns::new(TokenStore::Memory, None, tasks))
}

pub(in crate::mcp::sign_in) fn sign_in(all: &Arc<SignIns>) -> Arc<SignIn> {
    sign_in_at("https://mcp.example/", all)
}

pub(in crate::mcp::sign_in) fn sign_in_at(url: &str, all: &Arc<SignIns>) -> Arc<SignIn> {
    let server = HttpServer {
        url: url.to_owned(),
        ..HttpServer::default()
    };
    let parts = Parts {
        user: "",
        all,
        clients: &Clients::guarded(),
        notices: &Notices::default(),
        redactor: &Redactor::default(),
    };
    SignIn::of(&Arc::from("docs"), &server, &parts).unwrap()
}

pub(in crate::mcp::sign_in) async fn pending(sign_in: &SignIn, state: &str) -> Pending {
    let web = Arc::new(sign_in.web.clone());
    let url = sign_in.url.clone();
    let page = Url::parse("https://login.example/authorize").unwrap();
    Pending {
        state: state.to_owned(),
        asked: McpAuthRequired {
            server: "docs".to_owned(),
            url: page.to_string(),
            host: "login.example".to_owned(),
            scopes: Vec::new(),
            more: false,
            was_at: None,
            expires_at: String::new(),
        },
        over: Instant::now() + OPEN_FOR,
        manager: AuthorizationManager::new_with_oauth_http_client(url, web)
            .await
            .unwrap(),
        issuer: Issuer {
            name: "https://login.example".to_owned(),
            token: page.clone(),
            page,
            revocation: None,
            secret_in_body: false,
            reads_client_ids: false,
        },
        client: Registered {
            id: "c".to_owned(),
            secret: None,
            redirect: "http://127.0.0.1:1/oauth/callback".to_owned(),
        },
        resource: String::new(),
        scopes: Vec::new(),
    }
}

pub(in crate::mcp::sign_in) async fn record(sign_in: &SignIn) -> Record {
    Record {
        server: "https://mcp.example/".to_owned(),
        issuer: "https://login.example".to_owned(),
        host: "login.example".to_owned(),
        token_endpoint: "https://login.example/token".to_owned(),
        revocation_endpoint: None,
        secret_in_body: false,
        resource: "https://mcp.example/".to_owned(),
        client: pending(sign_in, "s").await.client,
        tokens: Some(Tokens {
            access: "a-token-of-theirs".to_owned(),
            refresh: None,
            ends: None,
            scopes: Vec::new(),
        }),
    }
}

fn answer(state: &str) -> Answer {
    Answer {
        code: Some("a-code".to_owned()),
        state: Some(state.to_owned()),
        ..Answer::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_sign_in_is_over_after_its_time_and_after_one_answer() {
    let all = in_memory();
    let sign_in = sign_in(&all);
    for (waits, expected) in [
        (OPEN_FOR, "was open for 10 minutes and is over"),
        (
            Duration::ZERO,
            "the sign-in at login.example came to nothing",
        ),
    ] {
        *sign_in.pending.lock().await = Some(pending(&sign_in, "s").await);
        all.open("s", &sign_in).unwrap();
        tokio::time::advance(waits).await;
        let why = all.answered(answer("s")).await.unwrap_err().to_string();
        assert!(why.contains(expected), "{why}");
        assert!(sign_in.asks().is_none());
        let why = all.answered(answer("s")).await.unwrap_err().to_string();
        assert!(why.contains("nobody waits"), "{why}");
    }
}

#[tokio::test]
async fn an_answer_is_for_the_sign_in_that_it_names() {
    let all = in_memory();
    let (one, two) = (sign_in(&all), sign_in(&all));
    for (sign_in, state) in [(&one, "one"), (&two, "two")] {
        *sign_in.pending.lock().await = Some(pending(sign_in, state).await);
        all.open(state, sign_in).unwrap();
    }
    let pasted = two.pasted(None, Some("http://x/?code=c&state=one")).await;
    assert!(pasted.unwrap_err().contains("is another's"));
    assert!(one.asks().is_some() && two.asks().is_some());
    // What was begun after it takes the place of the one before.
    *one.pending.lock().await = Some(pending(&one, "later").await);
    let why = all.answered(answer("one")).await.unwrap_err().to_string();
    assert!(why.contains("another one was begun since"), "{why}");
    assert!(one.asks().is_some());
}

#[tokio::test]
async fn open_sign_ins_are_bounded_and_those_of_servers_that_are_gone_do_not_count() {
    let all = in_memory();
    let stays = sign_in(&all);
    for number in 0..MAX_OPEN {
        all.open(&number.to_string(), &stays).unwrap();
    }
    assert!(
        all.open("more", &stays)
            .unwrap_err()
            .contains("are open already")
    );
    drop(stays);
    all.open("more", &sign_in(&all)).unwrap();
}

#[tokio::test]
async fn what_is_kept_is_of_this_server_or_it_is_nothing() {
    let all = in_memory();
    let sign_in = sign_in(&all);
    let mut record = record(&sign_in).await;
    sign_in.keep(&record).await;
    assert_eq!(sign_in.kept().await, Some(record.clone()));
    assert_eq!(
        sign_in.token().await,
        Ok(Some("a-token-of-theirs".to_owned()))
    );
    assert!(!format!("{record:?}").contains("token-of"), "{record:?}");
    // One that was put in the place of another, and one that is broken.
    record.server = "https://other.example/".to_owned();
    sign_in.keep(&record).await;
    assert_eq!(sign_in.kept().await, None);
    all.vault
        .save(&sign_in.name(), "{\"server\": 1".to_owned())
        .await;
    assert_eq!(sign_in.kept().await, None);
}

/// The vault is one that only a question of the system opens, as it were: it is looked into where somebody asks.
#[tokio::test(start_paused = true)]
async fn whoever_waits_takes_what_another_process_has_signed_in_to() {
    let all = in_memory();
    let (waiting, other) = (sign_in(&all), sign_in(&all));
    assert_eq!(waiting.token().await, Ok(None));
    let waits = waiting.waits().await;
    let signed_in = waiting.signed_in(waits);
    tokio::pin!(signed_in);
    waiting.seek();
    assert!(futures::poll!(&mut signed_in).is_pending());
    let record = record(&other).await;
    other.held.lock().await.put(record, &other).await;
    let day = Duration::from_secs(24 * 60 * 60);
    let looked = tokio::time::timeout(day, &mut signed_in).await;
    assert!(looked.is_err(), "nobody asked for it");
    waiting.seek();
    signed_in.await;
    let token = Ok(Some("a-token-of-theirs".to_owned()));
    assert_eq!(waiting.token().await, token);
    assert!(!waiting.is_done_elsewhere().await, "it is done here");
}

#[tokio::test(start_paused = true)]
async fn a_folder_is_looked_into_while_somebody_waits() {
    let place = tempfile::tempdir().unwrap();
    let process = || {
        let folder = Some(place.path().to_owned());
        sign_in(&Arc::new(SignIns::new(
            TokenStore::File,
            folder,
            TaskTracker::new(),
        )))
    };
    let (waiting, by_hand, other) = (process(), process(), process());
    assert_eq!(waiting.token().await, Ok(None));
    *waiting.pending.lock().await = Some(pending(&waiting, "s").await);
    waiting.all.open("s", &waiting).unwrap();
    let waits = waiting.waits().await;
    let record = record(&other).await;
    let (put, ()) = tokio::join!(
        async { other.held.lock().await.put(record, &other).await },
        waiting.signed_in(waits)
    );
    let () = put;
    // Its page is over, and nobody is asked any more.
    assert!(waiting.asks().is_none());
    let why = waiting.all.answered(answer("s")).await.unwrap_err();
    assert!(why.to_string().contains("nobody waits"), "{why}");
    assert!(by_hand.is_done_elsewhere().await);
}

#[tokio::test(start_paused = true)]
async fn an_open_sign_in_is_shown_again_where_it_asks_for_all_that_is_wanted() {
    let all = in_memory();
    all.listens_at("http://127.0.0.1:1");
    // Nobody listens there.
    let sign_in = sign_in_at("http://127.0.0.1:1/", &all);
    let open = Pending {
        scopes: vec!["read".to_owned(), "write".to_owned()],
        ..pending(&sign_in, "s").await
    };
    *sign_in.pending.lock().await = Some(open);
    let demand = |scope: &str| Demand {
        challenge: Some(format!(
            "Bearer error=\"insufficient_scope\", scope=\"{scope}\""
        )),
        is_more: true,
    };
    for demand in [Demand::default(), demand("write"), demand("")] {
        let asked = sign_in.begin(demand).await.unwrap();
        assert_eq!(asked.url, "https://login.example/authorize");
    }
    // What it does not ask for, and one that is over soon: another page is looked for, and there is none.
    assert!(sign_in.begin(demand("admin")).await.is_err());
    tokio::time::advance(OPEN_FOR - LEAST_LEFT).await;
    assert!(sign_in.begin(demand("write")).await.is_err());
}
