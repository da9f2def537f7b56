//! Two processes of one user: what one has signed in to counts in the other, without a restart.

use std::path::Path;

use serde_json::{Value, json};

use super::fake::Fake;
use super::{asked, called, daemon, nth, signed_in, visited};
use crate::mcp::until_state;
use crate::support::Daemon;

/// Has a process keep what another one keeps of its sign-ins, as if it were the same folder.
pub(crate) fn kept_by(daemon: &Daemon, state: &Path) {
    let from = daemon.project().parent().unwrap().join("state");
    let to = state.join("mcp-sign-ins");
    std::fs::create_dir_all(&to).unwrap();
    for file in std::fs::read_dir(from.join("mcp-sign-ins")).unwrap() {
        let file = file.unwrap();
        let new = state.join("new");
        std::fs::copy(file.path(), &new).unwrap();
        // Whole or not at all, as the daemon does it.
        std::fs::rename(new, to.join(file.file_name())).unwrap();
    }
}

fn state(daemon: &Daemon) -> std::path::PathBuf {
    daemon.project().parent().unwrap().join("state")
}

/// A daemon that has signed in.
pub(crate) async fn signed_in_elsewhere(fake: &Fake) -> Daemon {
    let (daemon, mut client, _provider) = daemon(&[("docs", fake.config(&json!({})))]).await;
    signed_in(&mut client, 0).await;
    until_state(&mut client, "docs", "ready").await;
    daemon
}

#[tokio::test]
async fn a_server_that_waits_is_ready_once_another_process_has_signed_in() {
    let fake = Fake::start().await;
    let (waiting, mut client, _provider) = daemon(&[("docs", fake.config(&json!({})))]).await;
    let open = asked(&mut client, 0).await;
    until_state(&mut client, "docs", "signIn").await;
    let other = signed_in_elsewhere(&fake).await;
    kept_by(&other, &state(&waiting));
    until_state(&mut client, "docs", "ready").await;
    let notices = client.all("session:notice");
    let is_said = |it: &Value| {
        it["code"] == "mcp_signed_in" && it["message"].as_str().unwrap().contains("another process")
    };
    assert!(notices.iter().any(is_said), "{notices:?}");
    assert_eq!(called(&mut client, "look").await["status"], "success");
    // The page that was open here is over.
    assert_eq!(fake.asked("/authorize").len(), 1);
    let late = format!(
        "http://127.0.0.1:{}/oauth/callback?code=c&state=",
        waiting.port
    );
    let url = reqwest::Url::parse(open["url"].as_str().unwrap()).unwrap();
    let (_, of_page) = url.query_pairs().find(|(name, _)| name == "state").unwrap();
    let (status, page) = visited(&format!("{late}{of_page}")).await;
    assert!(status == 400 && page.contains("nobody waits"), "{page}");
}

#[tokio::test]
async fn a_call_goes_on_with_what_another_process_has_signed_in_to() {
    let fake = Fake::start().await;
    let (calling, mut client, _provider) = daemon(&[("docs", fake.config(&json!({})))]).await;
    signed_in(&mut client, 0).await;
    until_state(&mut client, "docs", "ready").await;
    // Taken back where it was issued.
    fake.end_tokens(true);
    super::call(&mut client, "look").await;
    asked(&mut client, 1).await;
    let other = signed_in_elsewhere(&fake).await;
    kept_by(&other, &state(&calling));
    let result = nth(&mut client, "chat:tool-result", 0).await;
    assert_eq!(result["status"], "success", "{result}");
}

#[tokio::test]
async fn what_another_process_keeps_is_renewed_where_it_has_ended() {
    let fake = Fake::start().await;
    let (waiting, mut client, _provider) = daemon(&[("docs", fake.config(&json!({})))]).await;
    until_state(&mut client, "docs", "signIn").await;
    fake.tokens_last(10);
    let mut other = signed_in_elsewhere(&fake).await;
    other.kill().await;
    fake.tokens_last(3_600);
    kept_by(&other, &state(&waiting));
    until_state(&mut client, "docs", "ready").await;
    assert_eq!(called(&mut client, "look").await["status"], "success");
    assert_eq!(fake.asked("/authorize").len(), 1);
}
