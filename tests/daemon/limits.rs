//! What commands may take, as the client and the model see it.

use serde_json::json;

use crate::support::provider::Turn;
use crate::support::{Daemon, Provider};

/// Two processes, each of which is allowed, and not both. The second is started when the first has what it wants.
const BOMB: &str = "mkfifo had; perl -e '$| = 1; $x = \"x\" x 20_000_000; print \"had\\n\"; sleep 600' > had & read had < had; perl -e '$x = \"x\" x 20_000_000'; echo end";

#[cfg(target_os = "linux")]
#[tokio::test]
async fn commands_and_tools_of_ones_own_are_held_to_their_limits_and_the_model_is_told() {
    let provider = Provider::start().await;
    let file = "head -c 2M /dev/zero > big; stat -c %s big";
    let more = json!({
        "chat": {"trust_level": "autonomous"},
        "tools": {
            "bash": {"limits": {"memory": "64MiB", "cpu": "150%", "processes": 60, "file_size": "1MiB", "disk": "4MiB"}},
            "custom": {"big": {"description": "Writes.", "shell": file, "danger": "safe"}},
        },
    });
    let daemon = Daemon::with(&provider, more).await;
    let mut client = daemon.connect().await;
    let sandbox = client.seen[0]["payload"]["sandbox"].clone();
    if sandbox["mode"] == "none" {
        eprintln!(
            "*** SKIPPED: commands_and_tools_of_ones_own_are_held: there is no sandbox here ***"
        );
        return;
    }
    let limits = &sandbox["limits"];
    assert_eq!(limits["fileSize"], json!({"most": 1 << 20, "by": "rlimit"}));
    assert_eq!(limits["memory"]["most"], 64 << 20, "{limits}");
    match sandbox["mode"] == "limits" {
        true => assert_eq!(limits["disk"], json!({"by": "none"})),
        false => assert_eq!(limits["disk"], json!({"most": 4 << 20, "by": "daemon"})),
    }
    let loopback = match sandbox["mode"].as_str().unwrap() {
        "full" => "own",
        _ => "none",
    };
    assert_eq!(sandbox["loopback"], loopback, "{sandbox}");
    for (name, most) in [("cpu", 150), ("processes", 60)] {
        match limits[name]["by"].as_str().unwrap() {
            "none" => {
                assert!(limits[name].get("most").is_none(), "{limits}");
                assert!(limits["missing"].is_string(), "{limits}");
            }
            _ => assert_eq!(limits[name]["most"], most, "{limits}"),
        }
    }
    provider
        .then(Turn::call("bash", &json!({ "command": file })))
        .then(Turn::call("big", &json!({})))
        .then(Turn::call("bash", &json!({ "command": BOMB })))
        .then(Turn::text("done"));
    client.say("go").await;
    client.until("chat:stream-end").await;
    let results = client.all("chat:tool-result");
    let text = |index: usize| results[index]["result"].as_str().unwrap();
    for index in [0, 1] {
        assert!(text(index).starts_with("1048576\n"), "{}", text(index));
    }
    let is_told = text(2).contains("64MiB") && text(2).contains("tools.bash.limits.memory");
    match limits["memory"]["by"] == "cgroup" {
        true => assert!(is_told, "{}", text(2)),
        false => eprintln!(
            "*** NOT BOUNDED: memory of all processes together: {} ***",
            limits["missing"]
        ),
    }
}
