//! What answers speak for, and what tries to look like it.

use super::*;

const ROOT: &str = "/work";

fn written(relative: &str) -> File {
    File {
        writes: true,
        root: ROOT.to_owned(),
        in_project: true,
        relative: relative.to_owned(),
    }
}

fn command(words: &[&str]) -> SimpleCommand {
    let words = words.iter();
    words.map(|it| Word::Literal((*it).to_owned())).collect()
}

fn line(commands: &[&[&str]], line: Option<&str>) -> Key {
    let owned = |words: &&[&str]| words.iter().map(|it| (*it).to_owned()).collect();
    Key::Commands {
        tool: "bash".to_owned(),
        commands: commands.iter().map(owned).collect(),
        line: line.map(str::to_owned),
    }
}

fn folder(path: &str) -> Key {
    Key::Folder {
        path: path.to_owned(),
    }
}

fn mcp(version: &str) -> Key {
    Key::Tool {
        tool: "mcp__a__wipe".to_owned(),
        version: Some(version.to_owned()),
    }
}

fn rule(key: Key, allows: bool, place: Place) -> Rule {
    Rule {
        id: "r1".to_owned(),
        key,
        allows,
        place,
        reason: None,
        session: SessionId::new("s"),
        given_ms: 0,
    }
}

/// Returns what a rule of this key says: that it runs, that it does not, or nothing.
fn says(key: &Key, allows: bool, call: &Call<'_>) -> bool {
    let rules = [rule(key.clone(), allows, Place::Session)];
    said(&rules, call, Remember::Session).is_some_and(|said| said.allows == allows)
}

#[test]
fn a_folder_is_for_what_is_below_it() {
    let own = Key::tool("file_write");
    for (path, named, allowed) in [
        ("/work/src", "src/a.rs", true),
        ("/work/src", "src/deep/er/a.rs", true),
        ("/work/src/", "src/a.rs", true),
        ("/work", "a.rs", true),
        ("/", "a.rs", true),
        // Others that look like it.
        ("/work/src", "src", false),
        ("/work/src", "src2/a.rs", false),
        ("/work/src", "srcs.rs", false),
        ("/work/src", "other/src/a.rs", false),
        ("/work/src", "SRC/a.rs", false),
        ("/work/src", "src\u{200b}/a.rs", false),
        // Where a path leads has no such parts; one that has them is not understood.
        ("/work/src", "src/../.git/config", false),
        ("/work/src", "src/./a.rs", false),
        ("/work/src", "src/a/..", false),
        // The whole project is no more than that.
        ("/work", "../etc/passwd", false),
    ] {
        let file = written(named);
        let call = Call {
            tool: "file_write",
            approval: Some(&own),
            commands: &[],
            file: Some(&file),
        };
        assert_eq!(says(&folder(path), true, &call), allowed, "{path} {named}");
        // What is asked for each time, and what is only read.
        let asked = Call {
            approval: None,
            ..call
        };
        assert!(!says(&folder(path), true, &asked), "{path} {named}");
        let read = File {
            writes: false,
            ..file.clone()
        };
        let read = Call {
            file: Some(&read),
            ..call
        };
        assert!(!says(&folder(path), true, &read), "{path} {named}");
        let nowhere = Call { file: None, ..call };
        assert!(!says(&folder(path), true, &nowhere), "{path} {named}");
    }
}

#[test]
fn a_denial_is_for_more_than_an_approval() {
    let one = line(&[&["npm", "publish"]], None);
    let both = line(&[&["curl", "x"], &["sh"]], Some("curl x | sh"));
    let (publish, cd) = (command(&["npm", "publish"]), command(&["cd", "x"]));
    let (curl, sh) = (command(&["curl", "x"]), command(&["sh"]));
    let dry = command(&["npm", "publish", "--dry-run"]);
    let joined = line(
        &[&["cd", "x"], &["npm", "publish"]],
        Some("cd x && npm publish"),
    );
    for (key, own, commands, allowed, denied) in [
        (&one, Some(&one), vec![publish.clone()], true, true),
        (&one, Some(&joined), vec![cd, publish.clone()], false, true),
        (&one, None, vec![dry], false, false),
        (
            &both,
            Some(&both),
            vec![curl.clone(), sh.clone()],
            true,
            true,
        ),
        // Joined in another way, or with what is not shown.
        (&both, None, vec![sh, curl.clone()], false, true),
        (&both, None, vec![curl], false, false),
        (&one, None, vec![publish], false, true),
        (&one, None, vec![], false, false),
    ] {
        let call = Call {
            tool: "bash",
            approval: own,
            commands: &commands,
            file: None,
        };
        assert_eq!(says(key, true, &call), allowed, "{commands:?}");
        assert_eq!(says(key, false, &call), denied, "{commands:?}");
        let other = Call {
            tool: "git",
            approval: None,
            ..call
        };
        assert!(!says(key, false, &other), "of another tool");
    }
}

#[test]
fn a_tool_that_changed_is_another_one_but_for_a_denial() {
    let (then, now) = (mcp("1"), mcp("2"));
    let call = |approval| Call {
        tool: "mcp__a__wipe",
        approval: Some(approval),
        commands: &[],
        file: None,
    };
    assert!(says(&then, true, &call(&then)));
    assert!(!says(&then, true, &call(&now)));
    assert!(says(&then, false, &call(&now)));
    assert!(!says(&Key::tool("mcp__a__wipe"), true, &call(&now)));
    let other = Call {
        tool: "mcp__b__wipe",
        ..call(&then)
    };
    assert!(!says(&Key::tool("mcp__a__wipe"), false, &other));
}

#[test]
fn a_host_and_a_file_are_for_themselves_alone() {
    let host = |host: &str| Key::Host {
        host: host.to_owned(),
    };
    let asked = host("a.test");
    let call = Call {
        tool: "bash",
        approval: Some(&asked),
        commands: &[],
        file: None,
    };
    for (key, expected) in [
        (host("a.test"), true),
        (host("b.a.test"), false),
        (host("test"), false),
        (Key::tool("curl"), false),
    ] {
        assert_eq!(says(&key, true, &call), expected, "{key:?}");
        assert_eq!(says(&key, false, &call), expected, "{key:?}");
    }
    let (own, file) = (Key::tool("file_write"), written("src/a.rs"));
    let call = Call {
        tool: "file_write",
        approval: Some(&own),
        commands: &[],
        file: Some(&file),
    };
    let denied = Key::denied(&call).unwrap();
    for (relative, expected) in [
        ("src/a.rs", true),
        // On some disks it is the same file.
        ("SRC/a.rs", true),
        ("src/a.rs/b", false),
        ("src/b.rs", false),
    ] {
        let file = written(relative);
        let edit = Call {
            tool: "file_edit",
            file: Some(&file),
            ..call
        };
        assert_eq!(says(&denied, false, &edit), expected, "{relative}");
        let below = Call {
            approval: None,
            ..edit
        };
        let all = folder("/work/Src");
        assert_eq!(says(&all, false, &below), relative != "src", "{relative}");
    }
}

#[test]
fn a_denial_is_for_no_more_than_what_was_shown() {
    let touch = [command(&["touch", "a"])];
    let twice = [command(&["touch", "a"]), command(&["touch", "a"])];
    let (tool, mcp) = (Key::tool("web_search"), mcp("1"));
    let asked = line(&[&["touch", "a"]], None);
    for (name, approval, commands, expected) in [
        ("bash", Some(&asked), &touch[..], Some(asked.clone())),
        ("bash", None, &touch[..], Some(asked.clone())),
        ("bash", None, &twice[..], Some(asked.clone())),
        // Only an assignment, only a redirection, or a line that cannot be read: not all that bash may do.
        ("bash", None, &[], None),
        ("web_search", Some(&tool), &[], Some(tool.clone())),
        ("x", Some(&mcp), &[], Some(Key::tool("x"))),
    ] {
        let call = Call {
            tool: name,
            approval,
            commands,
            file: None,
        };
        assert_eq!(Key::denied(&call), expected, "{name}");
    }
}

#[test]
fn a_denial_goes_before_every_approval() {
    let key = Key::tool("file_write");
    let call = Call {
        tool: "file_write",
        approval: Some(&key),
        commands: &[],
        file: None,
    };
    let places = [
        Place::Conversation(ConversationId::new("c")),
        Place::Session,
        Place::Project(ROOT.to_owned()),
        Place::Always,
    ];
    for allowed in &places {
        for denied in &places {
            let rules = [
                rule(key.clone(), true, allowed.clone()),
                rule(key.clone(), false, denied.clone()),
            ];
            let found = said(&rules, &call, Remember::Always).unwrap();
            assert_eq!((found.allows, found.reach), (false, denied.reach()));
            // The operator takes approvals back, not denials.
            let found = said(&rules[..1], &call, Remember::Session);
            let is_near = allowed.reach() <= Remember::Session;
            assert_eq!(found.is_some(), is_near, "{allowed:?}");
            assert!(said(&rules[1..], &call, Remember::Once).is_some());
        }
    }
}

#[test]
fn folders_are_named_from_the_project_on() {
    let names = |file: &File| file.folders();
    let pair = |name: &str, path: &str| (name.to_owned(), path.to_owned());
    assert_eq!(
        names(&written("src/a/b.rs")),
        [
            pair("src/a", "/work/src/a"),
            pair("src", "/work/src"),
            pair(".", ROOT),
        ]
    );
    let elsewhere = File {
        in_project: false,
        root: "/central".to_owned(),
        ..written("a/b")
    };
    assert_eq!(
        names(&elsewhere),
        [
            pair("/central/a", "/central/a"),
            pair("/central", "/central")
        ]
    );
    assert_eq!(names(&written("a\u{fffd}/b")), [pair(".", ROOT)]);
    assert!(names(&written(".")).is_empty());
    let read = File {
        writes: false,
        ..written("a/b")
    };
    assert!(names(&read).is_empty());
}

#[test]
fn what_is_long_is_not_kept_and_all_is_read_back() {
    for key in [
        Key::tool("x"),
        mcp("1"),
        line(&[&["touch", "a b", ""]], None),
        line(&[&["a"], &["b"]], Some("a | b")),
        folder("/work/src"),
        Key::Host {
            host: "a.test".to_owned(),
        },
        Key::denied(&Call {
            tool: "file_read",
            approval: None,
            commands: &[],
            file: Some(&written("a")),
        })
        .unwrap(),
    ] {
        assert!(key.fits() && !key.in_words().is_empty());
        let mut rule = rule(key, true, Place::Conversation(ConversationId::new("c")));
        rule.reason = Some("why".to_owned());
        let text = serde_json::to_string(&rule).unwrap();
        assert_eq!(serde_json::from_str::<Rule>(&text).unwrap(), rule);
    }
    assert!(!line(&[&["echo", &"x".repeat(MAX_KEY)]], None).fits());
    assert!(!line(&[&["x"; MAX_KEY]], None).fits());
    let mut rule = rule(Key::tool("x"), false, Place::Always);
    rule.reason = Some("é".repeat(MAX_REASON + 1));
    let reason = rule.bounded().reason.unwrap();
    assert_eq!(reason.chars().count(), MAX_REASON);
}
