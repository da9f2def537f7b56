//! Commands of different users: homes, networks and caches that can be written are nobody else's. A table of attempts, by
//! everybody who comes near, with and without users of the system.

use std::os::unix::fs::MetadataExt;

use super::*;
use crate::support::eventually;

/// What stands in all that anna's commands leave.
const WORD: &str = "annas-word";

/// Numbers that nobody has here.
const RANGE: &str = "1200000-1265535";

/// A cache below the home of whoever started the daemon.
const CACHE: &str = ".npm/_cacache";

/// A daemon in which users may work in a folder of their own and in one that they share; `None` where there is no full
/// sandbox, or this is not root and has to be.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
async fn daemon(provider: &Provider, has_ids: bool) -> Option<Users> {
    if has_ids && !rustix::process::geteuid().is_root() {
        eprintln!("*** SKIPPED: users of the system: this takes root ***");
        return None;
    }
    let permissions = json!({"bash": {"allowed": true}});
    let mut more = json!({
        "chat": {"trust_level": "autonomous"},
        "tools": {"bash": {"caches": ["npm"]}},
        "workflows": {"work": {"tool_permissions": permissions}},
        "tasks": {"profiles": ["work"]},
    });
    if has_ids {
        more["sandbox"] = json!({"user_ids": RANGE});
    }
    let users = Users::start_with(provider, more, |root| {
        for folder in ["work/shared", "temporary", "home"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        let cache = root.join("home").join(CACHE);
        std::fs::create_dir_all(&cache).unwrap();
        std::fs::write(cache.join("package"), "right").unwrap();
        vec![
            ("HOME", root.join("home")),
            ("TMPDIR", root.join("temporary")),
        ]
    })
    .await;
    let client = users.daemon.connect().await;
    if client.seen[0]["payload"]["sandbox"]["mode"] != "full" {
        eprintln!("*** SKIPPED: commands of users: the sandbox is not full here ***");
        return None;
    }
    Some(users)
}

/// Connects a user in a folder that everybody may work in.
async fn in_shared(users: &Users, name: &str, more: &[&str]) -> Client {
    let token = users.token(name, "1h", more).await;
    let query = format!("?project={}", shown(&users.work.join("shared")));
    Client::reach_by(&users.daemon, &query, &token)
        .await
        .unwrap()
}

/// Runs a line; returns what the model reads.
async fn line(client: &mut Client, line: &str) -> String {
    said(&run(client, "bash", &json!({"command": line})).await)
}

fn said(result: &Value) -> String {
    result["result"]
        .as_str()
        .unwrap_or_else(|| panic!("{result}"))
        .to_owned()
}

/// The same in another conversation of the session.
async fn in_conversation(client: &mut Client, name: &str, line: &str) -> String {
    let call = json!({"tool": "bash", "input": {"command": line}});
    let send =
        json!({"type": "chat:send", "conversationId": name, "content": format!("call: {call}")});
    client.send(send).await;
    settle(client, name).await;
    said(&client.all("chat:tool-result").pop().unwrap())
}

/// Approves what is asked until the exchange of a conversation ends.
async fn settle(client: &mut Client, conversation: &str) {
    let is_end = |it: &Value| {
        let is_its = it["payload"]["conversationId"] == conversation;
        it["type"] == "chat:stream-end" && is_its
    };
    loop {
        let frame = client
            .find(|it| it["type"] == "chat:tool-confirm" || is_end(it))
            .await;
        if is_end(&frame) {
            return;
        }
        let id = &frame["payload"]["toolId"];
        let verdict = json!({"type": "chat:tool-approve", "toolId": id, "approved": true});
        client.send(verdict).await;
    }
}

/// The same by a task.
async fn in_task(client: &mut Client, line: &str) -> String {
    let layers = json!({"type": "session:configure", "layers": ["stream", "state", "tasks"]});
    client.ask(layers).await;
    let call = json!({"tool": "bash", "input": {"command": line}});
    let input = json!({"description": "d", "prompt": format!("call: {call}"), "profile": "work"});
    let call = json!({"tool": "task", "input": input});
    client.say(&format!("call: {call}")).await;
    settle(client, "default").await;
    let mut results = client.all("chat:tool-result");
    results.retain(|it| it["toolName"] == "bash");
    said(&results.pop().expect("the call of the task"))
}

/// Listens on loopback and on a name without a file, and says the word to whoever comes.
const SERVER: &str = "use IO::Socket::INET; use Socket; my $s = IO::Socket::INET->new(Listen => 9, LocalAddr => \"127.0.0.1:0\") or die $@; socket(my $u, PF_UNIX, SOCK_STREAM, 0) or die $!; bind($u, pack_sockaddr_un(\"\\0annas\")) or die $!; listen($u, 5); open(my $f, \">\", \"/tmp/port\"); print $f $s->sockport; close $f; while (1) { my $r = \"\"; vec($r, fileno($_), 1) = 1 for $s, $u; select($r, undef, undef, undef); for ($s, $u) { if (vec($r, fileno($_), 1)) { accept(my $c, $_); print $c \"$ARGV[0]\\n\"; close $c } } }";

fn to_port(port: &str) -> String {
    format!(
        "perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(\"127.0.0.1:{port}\"); print $s ? <$s> : \"$!\\n\"'"
    )
}

const TO_NAME: &str = "perl -MSocket -e 'socket(my $s, PF_UNIX, SOCK_STREAM, 0); connect($s, pack_sockaddr_un(\"\\0annas\")) or print \"$!\\n\"; print <$s>'";

/// What somebody tries who wants anna's; each line must not say her word.
fn attempts(users: &Users, port: &str) -> Vec<String> {
    let temporary = users.work.with_file_name("temporary");
    let home = users.work.with_file_name("home");
    vec![
        format!("cat ~/annas /tmp/annas /var/tmp/annas /dev/shm/annas ~/{CACHE}/annas ~/{CACHE}/package"),
        format!("cat {0}/*/home/annas {0}/outrigger-pod-*/*/annas; ls {0} {1}", temporary.display(), home.display()),
        "find / -xdev -name '*annas*' 2>/dev/null | while read f; do cat \"$f\"; done; true".to_owned(),
        "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline | tr '\\0' '\\n'; cat /proc/[0-9]*/root/tmp/annas".to_owned(),
        to_port(port),
        TO_NAME.to_owned(),
        "cat /proc/net/unix /proc/sysvipc/*; cat /proc/net/tcp".to_owned(),
    ]
}

/// Tries all of it, by some way to run a line.
async fn try_all(who: &str, users: &Users, port: &str, mut run: impl AsyncFnMut(&str) -> String) {
    for attempt in attempts(users, port) {
        let said = run(&attempt).await;
        assert!(!said.contains(WORD), "{who}: {attempt}: {said}");
    }
    // It has a home, a network and a cache of its own, in which nothing of anna's is.
    let own = run(&format!("cat ~/{CACHE}/package; echo; echo {who} > ~/own; cat ~/own; echo poison > ~/{CACHE}/package; cat ~/{CACHE}/package")).await;
    assert_eq!(own, format!("right\n{who}\npoison\n"));
}

async fn nobody_gets_at_what_annas_commands_have(has_ids: bool) {
    let provider = Provider::start().await;
    let Some(users) = daemon(&provider, has_ids).await else {
        return;
    };
    let mut anna = in_shared(&users, "anna", &[]).await;
    let left = format!(
        "umask 000; for f in ~/annas /tmp/annas /var/tmp/annas ~/{CACHE}/annas ~/{CACHE}/package; do echo {WORD} > $f; done; echo done"
    );
    assert_eq!(line(&mut anna, &left).await, "done\n");
    let server = format!("WORD={WORD} exec perl -e '{SERVER}' {WORD}");
    run(
        &mut anna,
        "bash",
        &json!({"command": server, "background": true}),
    )
    .await;
    let port = line(
        &mut anna,
        "until [ -s /tmp/port ]; do read -t 0.02 < /dev/zero; done; cat /tmp/port",
    )
    .await;
    // What is tried by others she can do.
    let own = attempts(&users, &port);
    for number in [0, 4, 5] {
        let said = line(&mut anna, &own[number]).await;
        assert!(said.contains(WORD), "{}: {said}", own[number]);
    }
    let session = anna.session();

    let mut ben = in_shared(&users, "ben", &[]).await;
    try_all("ben", &users, &port, async |it| line(&mut ben, it).await).await;
    let mut apart = users.connect("ben").await;
    try_all("apart", &users, &port, async |it| {
        line(&mut apart, it).await
    })
    .await;
    let mut olga = in_shared(&users, "olga", &["--role", "operator"]).await;
    try_all("olga", &users, &port, async |it| line(&mut olga, it).await).await;
    let mut nameless = users.daemon.connect().await;
    try_all("nameless", &users, &port, async |it| {
        line(&mut nameless, it).await
    })
    .await;
    // Nor is it another conversation's of her own: a home is no user's.
    try_all("task", &users, &port, async |it| {
        in_task(&mut ben, it).await
    })
    .await;
    try_all("her-task", &users, &port, async |it| {
        in_task(&mut anna, it).await
    })
    .await;
    try_all("beside", &users, &port, async |it| {
        in_conversation(&mut anna, "beside", it).await
    })
    .await;
    let forked = anna
        .ask(json!({"type": "session:fork", "sessionId": session}))
        .await;
    let fork = forked["payload"]["sessionId"]
        .as_str()
        .unwrap_or_else(|| panic!("{forked}"));
    let token = users.token("anna", "1h", &[]).await;
    let mut fork = Client::reach_by(&users.daemon, &format!("?session={fork}"), &token)
        .await
        .unwrap();
    try_all("fork", &users, &port, async |it| line(&mut fork, it).await).await;
    let mut again = in_shared(&users, "anna", &[]).await;
    try_all("again", &users, &port, async |it| {
        line(&mut again, it).await
    })
    .await;
    // Who comes back to the session finds it all as it was, whatever the others wrote.
    let read = anna.seen.iter().filter_map(|it| it["seq"].as_u64()).max();
    let after = read.unwrap();
    drop(anna);
    let query = format!("?session={session}&takeOver=1&after={after}");
    let mut anna = Client::reach_by(&users.daemon, &query, &token)
        .await
        .unwrap();
    for number in [0, 4, 5] {
        let said = line(&mut anna, &own[number]).await;
        assert!(
            said.contains(WORD) && !said.contains("poison"),
            "{}: {said}",
            own[number]
        );
    }
    let package = users
        .work
        .with_file_name("home")
        .join(CACHE)
        .join("package");
    assert_eq!(std::fs::read_to_string(package).unwrap(), "right");
}

#[tokio::test]
async fn homes_networks_and_caches_that_are_written_are_a_conversations() {
    nobody_gets_at_what_annas_commands_have(false).await;
}

#[tokio::test]
async fn the_same_where_each_user_is_a_user_of_the_system() {
    nobody_gets_at_what_annas_commands_have(true).await;
}

#[tokio::test]
async fn each_user_is_one_of_the_system_and_files_of_the_project_stay_the_daemons() {
    let provider = Provider::start().await;
    let Some(users) = daemon(&provider, true).await else {
        return;
    };
    let mut anna = in_shared(&users, "anna", &[]).await;
    let mut ben = in_shared(&users, "ben", &[]).await;
    // The number inside, outside, and how many there are.
    let outside = async |client: &mut Client| {
        let map = line(client, "cat /proc/self/uid_map").await;
        let numbers: Vec<u32> = map
            .split_whitespace()
            .map(|it| it.parse().unwrap())
            .collect();
        assert!(numbers[0] == 0 && numbers[2] == 1, "{map}");
        numbers[1]
    };
    let annas = outside(&mut anna).await;
    let bens = outside(&mut ben).await;
    let mut others = vec![annas, bens];
    let mut nameless = users.daemon.connect().await;
    let mut olga = in_shared(&users, "olga", &["--role", "operator"]).await;
    others.extend([outside(&mut nameless).await, outside(&mut olga).await]);
    others.sort_unstable();
    others.dedup();
    assert_eq!(others.len(), 4, "{others:?}");
    assert!(
        others.iter().all(|id| (1_200_000..=1_265_535).contains(id)),
        "{others:?}"
    );
    // All that is hers has the one number: another session, a conversation, a task.
    let mut again = in_shared(&users, "anna", &[]).await;
    assert_eq!(outside(&mut again).await, annas);
    let map = format!("         0 {annas:>10}          1\n");
    let look = "cat /proc/self/uid_map";
    assert_eq!(in_conversation(&mut anna, "beside", look).await, map);
    assert_eq!(in_task(&mut anna, look).await, map);
    // Commands and tools for files work on each other's files, and on the disk all are the daemon's.
    let shared = users.work.join("shared");
    line(&mut anna, "umask 077; mkdir deep; echo one > deep/file").await;
    let input = json!({"path": "deep/file", "oldText": "one", "newText": "two"});
    let result = run(&mut anna, "file_edit", &input).await;
    assert_eq!(result["status"], "success", "{result}");
    let input = json!({"path": "written", "content": "by a tool"});
    run(&mut anna, "file_write", &input).await;
    assert_eq!(
        line(
            &mut anna,
            "cat deep/file; echo more >> written; cat written"
        )
        .await,
        "two\nby a toolmore\n"
    );
    run(&mut anna, "git", &json!({"args": ["init", "-q"]})).await;
    let status = run(&mut anna, "git", &json!({"args": ["status", "--short"]})).await;
    assert!(said(&status).contains("written"));
    for name in ["deep", "deep/file", "written", ".git/HEAD"] {
        let owner = shared.join(name).metadata().unwrap();
        assert_eq!((owner.uid(), owner.gid()), (0, 0), "{name}");
    }
    // A server in the background is reached by a port that is exposed, and ends when it is told to.
    let server = format!("exec perl -e '{SERVER}' {WORD}");
    run(
        &mut ben,
        "bash",
        &json!({"command": server, "background": true}),
    )
    .await;
    let told = match ben.all("tool:port-open").pop() {
        Some(told) => told,
        None => ben.until("tool:port-open").await["payload"].clone(),
    };
    let exposed = ben
        .ask(json!({"type": "tool:expose", "port": told["port"]}))
        .await;
    let url = exposed["payload"]["url"]
        .as_str()
        .unwrap_or_else(|| panic!("{exposed}"));
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let mut answer = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut stream, &mut answer)
        .await
        .unwrap();
    assert_eq!(answer, format!("{WORD}\n"));
    let temporary = users.work.with_file_name("temporary");
    let Users {
        mut daemon,
        _folders,
        ..
    } = users;
    drop((anna, ben, again, nameless, olga));
    drop(daemon.stdin.take());
    daemon.child.wait().await.unwrap();
    eventually("no home is left", async || {
        std::fs::read_dir(&temporary).unwrap().next().is_none()
    })
    .await;
}

/// As an ordinary user, with a configuration in a folder of its own.
async fn as_ordinary_user(arguments: &[&str]) -> (bool, String) {
    let folder = tempfile::tempdir().unwrap();
    for name in ["project", "temporary"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
    }
    let config = json!({
        "server": {"port": 0},
        "sandbox": {"user_ids": RANGE},
        "project": {"root": folder.path().join("project"), "central": folder.path().join("central")},
        "store": {"enabled": false},
    });
    std::fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
    let given = Command::new("chown")
        .args(["-R", "1000:1000"])
        .arg(folder.path())
        .status();
    assert!(given.await.unwrap().success());
    let output = Command::new("setpriv")
        .args(["--reuid", "1000", "--regid", "1000", "--clear-groups", "--"])
        .arg(env!("CARGO_BIN_EXE_outrigger"))
        .args(arguments)
        .arg("--config")
        .arg(folder.path().join("config.json"))
        .env("HOME", folder.path())
        .env("TMPDIR", folder.path().join("temporary"))
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

#[tokio::test]
async fn a_daemon_that_may_not_does_not_start_and_says_why() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    for (arguments, expected) in [
        (
            &["serve"][..],
            "commands of users cannot run as users of the system",
        ),
        (&["doctor"], "failed   user ids"),
    ] {
        let (is_well, said) = as_ordinary_user(arguments).await;
        assert!(!is_well && said.contains(expected), "{said}");
        assert!(said.contains("which only root may"), "{said}");
    }
}
