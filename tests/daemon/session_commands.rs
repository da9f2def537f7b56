//! `outrigger sessions`: without a daemon, and beside one.

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::provider::Turn;
use crate::support::{Daemon, Provider};

/// The configuration of a daemon, which it leaves behind.
struct Place(PathBuf);

impl Place {
    fn of(daemon: &Daemon) -> Self {
        Self(daemon.project().with_file_name("config.json"))
    }

    fn beside(&self, name: &str) -> PathBuf {
        self.0.with_file_name(name)
    }

    async fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_outrigger"));
        command.arg("sessions").args(arguments);
        command.arg("--config").arg(&self.0);
        command.env_remove("RUST_LOG").output().await.unwrap()
    }

    /// Runs it and returns what it prints.
    async fn fine(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments).await;
        let aside = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {aside}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs it and returns what is wrong.
    async fn refused(&self, arguments: &[&str], code: i32) -> String {
        let output = self.run(arguments).await;
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?}: {output:?}"
        );
        assert!(output.stdout.is_empty(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    }
}

/// Has a session in which this was said, and returns its id.
async fn said(daemon: &Daemon, provider: &Provider, text: &str) -> String {
    provider.then(Turn::text("an answer"));
    let mut client = daemon.connect().await;
    client.say(text).await;
    client.until("chat:stream-end").await;
    client.session()
}

/// Ends a daemon in order; what it left is there until `daemon` is dropped.
async fn end(daemon: &mut Daemon) {
    drop(daemon.stdin.take());
    daemon.child.wait().await.unwrap();
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[tokio::test]
async fn sessions_are_read_beside_a_daemon_and_changed_without_one() {
    let provider = Provider::start().await;
    let mut daemon = Daemon::start(&provider).await;
    let one = said(&daemon, &provider, "Fix the login \u{1b}[31mpage").await;
    let two = said(&daemon, &provider, "Write a poem").await;
    let place = Place::of(&daemon);
    let listed = place.fine(&["list"]).await;
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines.len(), 3, "{listed}");
    assert!(lines[0].starts_with("session "), "{listed}");
    assert!(
        lines[1].starts_with(&two) && lines[2].contains("\\u{1b}[31mpage"),
        "{listed}"
    );
    let listed: Value = serde_json::from_str(&place.fine(&["list", "--json"]).await).unwrap();
    assert_eq!(listed[1]["sessionId"], one);
    assert_eq!(listed[1]["messages"], 2);
    let found = place.fine(&["search", "login", "pag"]).await;
    assert!(found.contains(&one) && !found.contains(&two), "{found}");
    assert_eq!(
        place.fine(&["search", "\" OR 1=1; --"]).await,
        "no session matches\n"
    );
    assert_eq!(
        place.fine(&["list", "--label", "none"]).await,
        "no session matches\n"
    );
    let beginning = two.split_at(8).0;
    let shown = place.fine(&["show", beginning]).await;
    assert!(
        shown.starts_with("# Write a poem\n") && shown.contains("an answer"),
        "{shown}"
    );
    let stats: Value = serde_json::from_str(&place.fine(&["stats", "--json"]).await).unwrap();
    assert_eq!(
        (&stats["sessions"], &stats["messages"]),
        (&json!(2), &json!(4))
    );
    assert!(place.fine(&["stats"]).await.contains("sessions     2\n"));
    let file = place.beside("one.jsonl");
    place.fine(&["export", &one, text(&file)]).await;
    let exported = std::fs::read_to_string(&file).unwrap();
    assert_eq!(place.fine(&["export", &one]).await, exported);
    let there = place.refused(&["export", &one, text(&file)], 1).await;
    assert!(there.contains("is there already"), "{there}");
    let copy = place.beside("copy.db");
    place.fine(&["backup", text(&copy)]).await;
    for taken in [text(&copy), text(&daemon.project())] {
        let there = place.refused(&["backup", taken], 1).await;
        assert!(there.contains(taken), "{there}");
    }
    // What changes something says who has it.
    let pid = daemon.pid.to_string();
    for changing in [
        &["delete", &one] as &[&str],
        &["import", text(&file)],
        &["vacuum"],
    ] {
        let refused = place.refused(changing, 3).await;
        assert!(
            refused.contains(&pid) && refused.contains("that daemon"),
            "{refused}"
        );
    }
    end(&mut daemon).await;
    let imported = place.fine(&["import", text(&file)]).await;
    let imported = imported.trim_end();
    let again = place.fine(&["export", imported]).await;
    let rest = |text: &str| text.split_once('\n').map(|(_, rest)| rest.to_owned());
    assert_eq!(rest(&again), rest(&exported));
    place.fine(&["delete", &one, imported]).await;
    assert_eq!(place.fine(&["list"]).await.lines().count(), 2);
    let vacuumed = place.fine(&["vacuum"]).await;
    assert!(vacuumed.contains(" bytes now\n"), "{vacuumed}");
    assert!(place.fine(&["show", &two]).await.contains("poem"));
}

#[tokio::test]
async fn what_is_not_there_or_no_session_is_said_and_nothing_is_lost() {
    let provider = Provider::start().await;
    let mut daemon = Daemon::start(&provider).await;
    let one = said(&daemon, &provider, "hello").await;
    let place = Place::of(&daemon);
    end(&mut daemon).await;
    for unknown in ["", "../../etc/passwd", "'; DROP TABLE session; --", "%"] {
        for command in ["show", "export", "delete"] {
            let refused = place.refused(&[command, unknown], 1).await;
            assert!(refused.contains("no session"), "{unknown:?}: {refused}");
        }
    }
    // A slip deletes nothing.
    let refused = place.refused(&["delete", one.split_at(7).0], 1).await;
    assert!(
        refused.contains("8 characters") && refused.contains(&one),
        "{refused}"
    );
    let file = place.beside("file");
    let whole = place.fine(&["export", &one]).await;
    for wrong in [
        "",
        "#!/bin/sh\n",
        whole.split_at(whole.len() - 20).0,
        whole.split_at(whole.len() - 30).0,
        &whole.replace("\"m1\"", "\"\\n\""),
    ] {
        std::fs::write(&file, wrong).unwrap();
        let refused = place.refused(&["import", text(&file)], 1).await;
        assert!(refused.contains("file: line "), "{refused}");
        let is_cut = whole.starts_with(wrong);
        assert_eq!(refused.contains("copy it again"), is_cut, "{refused}");
    }
    std::fs::write(&file, "mine").unwrap();
    for command in [
        &["backup", text(&file)] as &[&str],
        &["export", &one, text(&file)],
    ] {
        let refused = place.refused(command, 1).await;
        assert!(
            refused.contains("is there already, and was left as it is"),
            "{refused}"
        );
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    }
    for nowhere in [place.beside("nothing"), daemon.project()] {
        let refused = place.refused(&["import", text(&nowhere)], 1).await;
        assert!(refused.contains(text(&nowhere)), "{refused}");
    }
    assert_eq!(place.fine(&["list"]).await.lines().count(), 2);
    // A store that is damaged is left as it is, and so is a newer one.
    let store = place.beside("state").join("outrigger.db");
    let kept = std::fs::read(&store).unwrap();
    let mut newer = kept.clone();
    newer[60..64].copy_from_slice(&99_u32.to_be_bytes());
    for (bytes, expected) in [
        (b"no database".to_vec(), "is damaged"),
        (newer, "has schema 99"),
    ] {
        std::fs::write(&store, &bytes).unwrap();
        for command in [
            &["list"] as &[&str],
            &["stats"],
            &["show", &one],
            &["delete", &one],
            &["vacuum"],
            &["import", text(&file)],
            &["backup", text(&place.beside("copy.db"))],
        ] {
            std::fs::write(&file, &whole).unwrap();
            let refused = place.refused(command, 1).await;
            assert!(refused.contains(expected), "{command:?}: {refused}");
        }
        assert_eq!(std::fs::read(&store).unwrap(), bytes);
    }
    std::fs::remove_file(&store).unwrap();
    for command in [&["list"] as &[&str], &["delete", &one], &["vacuum"]] {
        let refused = place.refused(command, 1).await;
        assert!(
            refused.contains("no session was kept there yet"),
            "{refused}"
        );
    }
    assert!(!store.exists(), "looking makes none");
    // But what is imported makes one.
    place.fine(&["import", text(&file)]).await;
    assert_eq!(place.fine(&["list"]).await.lines().count(), 2);
    let config = json!({"store": {"enabled": false}, "project": {"root": daemon.project()}});
    std::fs::write(&place.0, config.to_string()).unwrap();
    assert!(place.refused(&["list"], 2).await.contains("store.enabled"));
}
