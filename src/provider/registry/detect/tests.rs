use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::super::tests::{instance, providers};
use super::*;

/// An Ollama that has models once the test says so.
#[derive(Clone, Default)]
struct Fake(Arc<AtomicBool>);

impl Fake {
    async fn start(&self) -> String {
        async fn answer(State(fake): State<Fake>, uri: Uri) -> Result<Json<Value>, StatusCode> {
            let models = match fake.0.load(Ordering::Relaxed) {
                true => {
                    json!([{"model": "embed", "capabilities": ["embedding"]}, {"model": "qwen3:4b"}])
                }
                false => json!([]),
            };
            match uri.path() {
                "/api/tags" => Ok(Json(json!({ "models": models }))),
                _ => Err(StatusCode::NOT_FOUND),
            }
        }
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(self.clone());
        drop(tokio::spawn(
            async move { axum::serve(listener, router).await },
        ));
        url
    }
}

fn detecting(url: &str) -> Providers {
    Providers::of(Vec::new(), "scripted", Some(Detect::at(url.to_owned())))
}

#[tokio::test]
async fn an_ollama_that_comes_up_becomes_the_default() {
    let fake = Fake::default();
    let url = fake.start().await;
    let providers = detecting(&url);
    assert_eq!(providers.detect_first().await, None, "it has no models yet");
    assert_eq!(providers.default_id(), "scripted");
    assert!(providers.get("ollama").is_none());
    fake.0.store(true, Ordering::Relaxed);
    // Whoever only wants to know whether there was a look does not look again.
    assert_eq!(providers.detect_first().await, None);
    let found = providers.detect().await.expect("it is there now");
    assert_eq!(found.model, "qwen3:4b");
    assert_eq!(
        (found.info.base_url.as_str(), found.info.default),
        (&*url, true)
    );
    assert_eq!(providers.default_id(), "ollama");
    let listed = providers.list();
    let of = |info: &ProviderInfo| (info.id.clone(), info.default);
    assert_eq!(
        listed.iter().map(of).collect::<Vec<_>>(),
        [("ollama".to_owned(), true), ("scripted".to_owned(), false)]
    );
    assert_eq!(providers.detect().await, None, "found once");
}

#[tokio::test]
async fn nobody_is_asked_where_it_is_off_or_somebody_made_one() {
    let fake = Fake::default();
    fake.0.store(true, Ordering::Relaxed);
    let url = fake.start().await;
    let off = providers(vec![instance("a", "anthropic", None)], "a");
    assert_eq!(off.detect().await, None);
    let theirs = detecting(&url);
    theirs
        .configure("ollama", None, Some("http://127.0.0.1:1"))
        .unwrap();
    assert_eq!(theirs.detect().await, None);
    assert_eq!(theirs.default_id(), "scripted");
}

#[tokio::test]
async fn where_nothing_listens_nothing_changes() {
    // Bound, so that nobody else listens there.
    let silent = tokio::net::TcpSocket::new_v4().unwrap();
    silent.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let providers = detecting(&url);
    assert_eq!(providers.detect().await, None);
    assert_eq!(providers.list().len(), 1);
}
