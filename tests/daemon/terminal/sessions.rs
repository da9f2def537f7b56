//! `outrigger chat` and sessions that are kept: gone on in, listed and picked.

use super::*;

/// Asks one thing in a chat without a terminal.
async fn asked(home: &TempDir, arguments: &[&str]) -> (Option<i32>, String) {
    let arguments: Vec<&str> = ["chat"].iter().chain(arguments).copied().collect();
    piped(home, &arguments, "").await
}

/// The id that a list shows in its first row.
fn first_id(list: &str) -> String {
    let rows = list.lines().map(str::split_whitespace);
    let mut ids = rows.filter_map(|mut row| (row.next()? == "1").then(|| row.next()).flatten());
    ids.next()
        .unwrap_or_else(|| panic!("no row: {list}"))
        .to_owned()
}

#[tokio::test]
async fn the_last_session_of_the_project_is_gone_on_in() {
    let home = home();
    let (code, said) = asked(&home, &["--continue", "hi"]).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("no session of this project is kept yet"),
        "{said}"
    );
    let (code, said) = asked(&home, &["what", "is", "a", "daemon?"]).await;
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = asked(&home, &["--continue", "and then?"]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("going on with what is a daemon?  (2 messages, "),
        "{said}"
    );

    let mut terminal = Terminal::start(&home, "chat --continue", &[]);
    terminal
        .until("going on with what is a daemon?  (4 messages")
        .await;
    let shown = terminal.until("\n> ").await;
    assert!(shown.contains("you: what is a daemon?"), "{shown}");
    assert!(shown.contains("you: and then?"), "{shown}");
    assert!(
        !shown.contains("no longer kept") && !shown.contains("error"),
        "{shown}"
    );
    terminal.keys("third\n").await;
    terminal.until("── done").await;
    terminal.until("\n> ").await;
    terminal.keys("/sessions\n").await;
    terminal.until("what is a daemon?  (6 messages").await;
    terminal.keys("/quit\n").await;
    assert_eq!(terminal.end().await.0, 0);
}

#[tokio::test]
async fn a_session_is_named_by_the_beginning_of_its_id_or_picked_from_the_list() {
    let home = home();
    for words in ["first", "second"] {
        let (code, said) = asked(&home, &[words]).await;
        assert_eq!(code, Some(0), "{said}");
    }
    let (code, said) = asked(&home, &["--resume", "../../etc/passwd", "hi"]).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("no session is kept whose id is \"../../etc/passwd\""),
        "{said}"
    );
    let (code, said) = asked(&home, &["--resume", "", "hi"]).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("several ids begin with \"\""), "{said}");

    let mut terminal = Terminal::start(&home, "chat", &[]);
    terminal.until("\n> ").await;
    terminal.keys("/sessions\n").await;
    let list = terminal.until("  2  ").await;
    let second = first_id(&list);
    terminal.until("first").await;
    terminal.until("\n> ").await;
    terminal.keys("/sessions 2\n").await;
    terminal.until("going on with first").await;
    terminal.until("you: first").await;
    terminal.until("\n> ").await;
    terminal.keys("/sessions nothing\n").await;
    terminal
        .until("no session is kept whose id is \"nothing\"")
        .await;
    terminal.until("\n> ").await;
    terminal.keys("/quit\n").await;
    assert_eq!(terminal.end().await.0, 0);

    let (code, said) = asked(&home, &["--resume", &second, "hi"]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("going on with second"), "{said}");
}

#[tokio::test]
async fn why_there_is_nothing_to_go_on_in_is_said() {
    let home = home();
    // The chat's own daemon has the store that is the user's.
    let mut first = Terminal::start(&home, "chat", &[]);
    first.until("\n> ").await;
    let (code, said) = asked(&home, &["--continue", "hi"]).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("sessions are not kept here: "), "{said}");
    assert!(said.contains("is in use by the process"), "{said}");
    assert!(said.contains("outrigger chat --url"), "{said}");
    // Where nobody asked for an earlier one, the daemon's warning says it.
    let (_, said) = asked(&home, &["hi"]).await;
    assert!(said.contains("sessions are not kept: "), "{said}");
    assert!(said.contains("is in use by the process"), "{said}");
    let mut second = Terminal::start(&home, "chat", &[]);
    second
        .until("this conversation is not kept; /sessions says why")
        .await;
    second.until("\n> ").await;
    second.keys("/sessions\n").await;
    second.until("is in use by the process").await;
    second.until("\n> ").await;
    drop((first, second));

    let off = [("OUTRIGGER_STORE__ENABLED", "false")];
    let terminal = Terminal::start(&home, "chat --continue", &off);
    let (code, shown) = terminal.end().await;
    assert_eq!(code, 1, "{shown}");
    assert!(
        shown.contains("sessions are not kept here: store.enabled is false"),
        "{shown}"
    );

    let url = "http://127.0.0.1:1";
    let (code, said) = asked(&home, &["--continue", "--url", url]).await;
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--resume ID"), "{said}");
}

#[tokio::test]
async fn a_session_of_a_daemon_that_runs_is_gone_on_in() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    provider.then(Turn::text("It is noon."));
    let mut client = daemon.connect().await;
    client.say("what time is it?").await;
    client.until("chat:stream-end").await;
    let home = home();
    let arguments = format!(
        "chat --url 'http://127.0.0.1:{}/#token={}' --resume {}",
        daemon.port,
        daemon.token,
        client.session()
    );
    let mut terminal = Terminal::start(&home, &arguments, &[]);
    terminal.until("going on with what time is it?").await;
    terminal.until("model: It is noon.").await;
    terminal.until("\n> ").await;
    provider.then(Turn::text("A minute later."));
    terminal.keys("and now?\n").await;
    terminal.until("A minute later.").await;
    let asked = provider.requests().pop().unwrap().to_string();
    assert!(asked.contains("what time is it?"), "{asked}");
}
