//! A test in a network of its own, where 203.0.113.0/24 is another machine than the daemon's: what listens there is the test.

use std::process::{Command, Stdio};

/// An address of the other machine.
pub(crate) const OTHER_MACHINE: &str = "203.0.113.9";

/// Makes other machines of addresses of this one, and goes on as another program.
const OTHER_MACHINES: &str = include_str!("../../../fixtures/other-machines.pl");

/// Says to the test's process that it is in the network already.
const ENTERED: &str = "OUTRIGGER_TEST_OWN_NETWORK";

/// Where a test is.
pub(crate) enum OwnNetwork {
    /// In the network: it goes on.
    Entered,
    /// It has run there, and is done.
    Done,
    /// This machine makes no namespaces.
    None,
}

/// Runs the test of this name once more in a network of its own, unless it is there already.
pub(crate) fn enter(test: &str) -> OwnNetwork {
    if std::env::var_os(ENTERED).is_some() {
        return OwnNetwork::Entered;
    }
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--net"]);
        command.stdin(Stdio::null());
        command
    };
    let mut tried = unshare();
    tried.args(["perl", "-e", OTHER_MACHINES, "true"]);
    if !tried.status().is_ok_and(|status| status.success()) {
        return OwnNetwork::None;
    }
    let output = unshare()
        .args(["perl", "-e", OTHER_MACHINES])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(ENTERED, "1")
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    assert!(
        output.status.success() && text[0].contains("1 passed"),
        "{}",
        text.join("\n")
    );
    OwnNetwork::Done
}
