use std::sync::atomic::{AtomicI64, Ordering};

use futures::FutureExt;

use super::*;

/// `a` is read, `a!` is written, `*` is all of it written, `?` all of it read.
fn claims(of: &str) -> Vec<Claim> {
    of.split_whitespace()
        .map(|word| match word.strip_suffix('!') {
            Some(file) => Claim::Write(file.to_owned()),
            None if word == "?" => Claim::ReadTree(vec![String::new()]),
            None if word == "*" => Claim::WriteTree(vec![String::new()]),
            None if word.ends_with('/') => Claim::WriteTree(vec![word.to_owned()]),
            None => Claim::Read(word.to_owned()),
        })
        .collect()
}

fn holder(call: &str) -> Holder {
    Holder {
        session: SessionId::new("s"),
        conversation: ConversationId::new("default"),
        call: ToolId::new(call),
        tool: "tool".to_owned(),
    }
}

fn queue(locks: &Locks, of: &str) -> Ticket {
    locks.queue(holder(of), claims(of))
}

fn holds(ticket: &Ticket) -> bool {
    let granted = ticket.granted().now_or_never().is_some();
    assert_eq!(granted, ticket.obstacle().is_none());
    granted
}

#[test]
fn who_waits_for_whom() {
    // The first claims are held; then what the second ones wait for.
    let cases: &[(&[&str], &str, Option<&str>)] = &[
        (&["a"], "a", None),
        (&["a!"], "b!", None),
        (&["a"], "a!", Some("a tool, which reads the same file")),
        (&["a!"], "a", Some("a! tool, which changes the same file")),
        (&["a!"], "a!", Some("a! tool, which changes the same file")),
        (
            &["a!", "b"],
            "a b!",
            Some("a! tool, which changes the same file, and for 1 other call"),
        ),
        (
            &["a b c!"],
            "x c",
            Some("a b c! tool, which changes the same file"),
        ),
        (&[""], "a!", None),
        (&["a a!"], "b", None),
        (&["*"], "a", None),
        (&["a"], "*", None),
        (&["*"], "", None),
        (&["*"], "?", None),
        (&["?"], "*", None),
        (&["?"], "a!", None),
        (&["*"], "a!", Some("* tool, which may change files")),
        (&["a!"], "*", Some("a! tool, which changes a file")),
        (&["*"], "*", Some("* tool, which may change files")),
        (
            &["a!", "b!", "c!", "d"],
            "*",
            Some("a! tool, which changes a file, and for 2 other calls"),
        ),
    ];
    for (held, wanted, obstacle) in cases {
        let locks = Locks::default();
        let tickets: Vec<_> = held.iter().map(|of| queue(&locks, of)).collect();
        assert!(tickets.iter().all(holds), "{held:?}");
        let obstacle = obstacle.map(|words| format!("waits for {words}"));
        let would = locks.obstacle(&holder("x"), &claims(wanted));
        assert_eq!(would, obstacle, "{held:?} {wanted}");
        let waiting = queue(&locks, wanted);
        assert_eq!(waiting.obstacle(), obstacle, "{held:?} {wanted}");
        assert_eq!(holds(&waiting), obstacle.is_none(), "{held:?} {wanted}");
        drop(tickets);
        assert!(holds(&waiting), "{held:?} {wanted}");
    }
}

#[test]
fn a_call_is_named_as_far_as_it_is_the_users_own() {
    let locks = Locks::default();
    let _held = queue(&locks, "*");
    let asks = |session: &str, conversation: &str| {
        let own = Holder {
            session: SessionId::new(session),
            conversation: ConversationId::new(conversation),
            ..holder("x")
        };
        locks.obstacle(&own, &claims("*")).unwrap()
    };
    assert_eq!(
        asks("s", "b"),
        "waits for * tool of conversation \"default\", which may change files"
    );
    assert_eq!(
        asks("other", "default"),
        "waits for a call of tool in another session, which may change files"
    );
}

#[test]
fn a_writer_that_waits_goes_before_later_readers() {
    let locks = Locks::default();
    let reader = queue(&locks, "a");
    let writer = queue(&locks, "a!");
    let later = queue(&locks, "a");
    assert!(holds(&reader) && !holds(&writer) && !holds(&later));
    drop(reader);
    assert!(holds(&writer) && !holds(&later));
    drop(writer);
    assert!(holds(&later));
}

#[test]
fn who_has_a_client_goes_before_who_has_none() {
    let locks = Locks::default();
    let of = |session: &str| {
        let session = SessionId::new(session);
        let holder = Holder {
            session,
            ..holder("*")
        };
        locks.queue(holder, claims("*"))
    };
    let alone = SessionId::new("alone");
    let away = locks.away(&alone);
    let first = of("alone");
    assert!(holds(&first));
    let (second, third, attended) = (of("alone"), of("alone"), of("s"));
    // What was let in stays so.
    assert!(holds(&first) && !holds(&attended));
    drop(first);
    assert!(!holds(&second) && holds(&attended));
    let later = of("s");
    // It comes back before anybody else was let in.
    drop(away);
    drop(attended);
    assert!(!holds(&later) && !holds(&third) && holds(&second));
    drop(second);
    assert!(!holds(&later) && holds(&third));
    drop(third);
    assert!(holds(&later));
}

#[tokio::test]
async fn a_client_that_goes_wakes_those_who_wait_behind_its_calls() {
    let locks = Locks::default();
    let (gone, stays) = (SessionId::new("gone"), SessionId::new("stays"));
    let of = |session: &SessionId| Holder {
        session: session.clone(),
        ..holder("x")
    };
    let held = locks.queue(of(&gone), claims("a!"));
    assert!(holds(&held));
    let waiting = locks.queue(of(&gone), claims("a! b!"));
    let behind = locks.queue(of(&stays), claims("b!"));
    assert!(!holds(&waiting) && !holds(&behind));
    let granted = behind.granted();
    tokio::pin!(granted);
    assert!(futures::poll!(&mut granted).is_pending());
    let _away = locks.away(&gone);
    granted.await;
    assert!(!holds(&waiting));
}

#[test]
fn giving_up_lets_those_behind_go_on() {
    let locks = Locks::default();
    let _command = queue(&locks, "*");
    let (writer, later) = (queue(&locks, "a!"), queue(&locks, "a"));
    assert!(!holds(&writer) && !holds(&later));
    drop(writer);
    assert!(holds(&later));
    assert!(locks.obstacle(&holder("x"), &claims("b")).is_none());
}

/// Tasks that claim random sets of files, or all of them, some giving up, never meet and all come to an end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_tasks_neither_meet_nor_hang() {
    let locks = Locks::default();
    let users: Arc<[AtomicI64; 5]> = Arc::default();
    // Those that write one file count 1, those that write all 1,000.
    let writers: Arc<AtomicI64> = Arc::default();
    let tasks: Vec<_> = (0..64_usize)
        .map(|task| {
            let (locks, users) = (locks.clone(), Arc::clone(&users));
            let writers = Arc::clone(&writers);
            tokio::spawn(async move {
                for round in 0..50 {
                    let seed = task * 31 + round * 17;
                    let files: Vec<usize> = (0..5).filter(|file| (seed >> file) & 1 == 1).collect();
                    let exclusive = seed % 3 == 0 && !files.is_empty();
                    let claims = match seed % 5 {
                        0 => vec![Claim::WriteTree(vec![String::new()])],
                        _ => files
                            .iter()
                            .map(|file| match exclusive {
                                true => Claim::Write(file.to_string()),
                                false => Claim::Read(file.to_string()),
                            })
                            .collect(),
                    };
                    let ticket = locks.queue(holder("x"), claims);
                    if seed % 7 == 0 {
                        ticket.granted().now_or_never();
                        continue;
                    }
                    ticket.granted().await;
                    if seed % 5 == 0 {
                        assert_eq!(writers.fetch_add(1_000, Ordering::SeqCst), 0);
                        tokio::task::yield_now().await;
                        writers.fetch_sub(1_000, Ordering::SeqCst);
                        continue;
                    }
                    if exclusive {
                        assert!(writers.fetch_add(1, Ordering::SeqCst) < 1_000);
                    }
                    let step = if exclusive { -1_000 } else { 1 };
                    for file in &files {
                        let before = users[*file].fetch_add(step, Ordering::SeqCst);
                        assert!(if exclusive { before == 0 } else { before >= 0 });
                    }
                    tokio::task::yield_now().await;
                    for file in &files {
                        users[*file].fetch_sub(step, Ordering::SeqCst);
                    }
                    if exclusive {
                        writers.fetch_sub(1, Ordering::SeqCst);
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert!(locks.table.lock().tickets.is_empty());
}

#[test]
fn trees_that_do_not_overlap_are_changed_side_by_side() {
    for (first, second, waits) in [
        ("/a/ /b/", "/a/", true),
        ("/a/", "/a/b/", true),
        ("/a/b/", "/a/", true),
        ("/a/", "/ab/", false),
        ("/a/", "/a/file!", true),
        ("/a/file!", "/a/", true),
        ("/a/", "/b/file!", false),
        ("/a/", "/a/file", false),
    ] {
        let locks = Locks::default();
        let _first = queue(&locks, first);
        let second = queue(&locks, second);
        assert_eq!(second.obstacle().is_some(), waits, "{first}");
    }
}
