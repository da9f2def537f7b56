//! With processes of a Windows, or of wine.

use std::future::pending;

use super::*;
use crate::output::{TOTAL_BYTES, collect};
use crate::{Sandbox, Settings};

fn shell(line: &str) -> Command {
    let env = system();
    let program = windows::interpreter(&env);
    Command {
        args: ["/d", "/c", line].map(str::to_owned).into(),
        env,
        ..Command::new(program, std::env::temp_dir())
    }
}

/// Runs a line, and returns its exit code and what it printed.
async fn run(sandbox: &Sandbox, line: &str) -> (Option<i32>, String) {
    let mut process = sandbox.spawn(&shell(line)).await.unwrap();
    let mut text = String::new();
    let stop = pending::<()>();
    let output = collect(&mut process, TOTAL_BYTES, stop, |_, piece| {
        text.push_str(piece);
    })
    .await;
    (output.exit.code, text)
}

#[tokio::test]
async fn a_command_has_its_code_its_output_and_its_own_temporary_folder() {
    let sandbox = Sandbox::new(Settings::new(None));
    let (code, text) = run(&sandbox, "echo one& echo two>&2& echo %TEMP%& exit 3").await;
    assert_eq!(code, Some(3));
    assert!(text.contains("one") && text.contains("two"), "{text}");
    let folder = text.lines().find(|line| line.contains("outrigger-"));
    let folder = folder.map(str::trim).expect(&text);
    assert!(!Path::new(folder).exists(), "{folder}");
    let report = sandbox.report().await;
    assert_eq!((report.mode, report.commands), (Mode::None, vec!["job"]));
}

#[tokio::test]
async fn a_program_that_is_not_there_is_said() {
    let sandbox = Sandbox::new(Settings::new(None));
    let command = Command::new("no-such-program", std::env::temp_dir());
    let error = sandbox.spawn(&command).await.unwrap_err();
    assert!(matches!(error, SpawnError::Program { .. }), "{error}");
}

/// Wine takes the calls; that a right is gone after them it does not say.
#[tokio::test]
async fn what_is_asked_for_unverified_is_put_around_a_shell() {
    let sandbox = Sandbox::new(Settings {
        unverified: true,
        ..Settings::new(None)
    });
    let report = sandbox.report().await;
    assert_eq!(report.mode, Mode::Unverified, "{report:?}");
    let expected = ["job", "restricted-token", "low-integrity", "off-desktop"];
    assert_eq!(report.commands, expected);
    let (code, text) = run(&sandbox, "echo x>%TEMP%\\f& type %TEMP%\\f& exit 5").await;
    assert_eq!((code, text.trim()), (Some(5), "x"));
}
