use super::*;

fn tool(name: &str) -> Key {
    Key::tool(name)
}

/// Returns whether it may run, by what was said.
fn allows(memory: &ConversationMemory, name: &str) -> Option<bool> {
    let key = tool(name);
    let call = Call {
        tool: name,
        approval: Some(&key),
        commands: &[],
        file: None,
    };
    memory.said(&call).unwrap().map(|said| said.allows)
}

fn keep(memory: &ConversationMemory, name: &str, allows: bool, reach: Remember) -> Remember {
    let kept = memory.keep(tool(name), allows, None, reach);
    kept.map_or(Remember::Once, |(reach, _)| reach)
}

fn conversation(memory: &Memory, id: &str) -> ConversationMemory {
    memory.for_conversation(&ConversationId::new(id))
}

#[test]
fn an_answer_counts_where_it_was_given() {
    let memory = Memory::for_tests();
    let (one, other) = (conversation(&memory, "1"), conversation(&memory, "2"));
    assert_eq!(keep(&one, "a", true, Remember::Once), Remember::Once);
    assert_eq!(allows(&one, "a"), None);
    let reach = Remember::Conversation;
    assert_eq!(keep(&one, "a", true, reach), reach);
    assert_eq!((allows(&one, "a"), allows(&other, "a")), (Some(true), None));
    assert_eq!(keep(&one, "a", false, Remember::Session), Remember::Session);
    assert_eq!(allows(&one, "a"), Some(false));
    assert_eq!(allows(&other, "a"), Some(false));
    // Without a store nothing outlives the session, and this says so.
    for reach in [Remember::Project, Remember::Always] {
        assert_eq!(keep(&one, "b", true, reach), Remember::Session);
    }
    let offered = [Remember::Conversation, Remember::Session];
    assert_eq!(one.on_offer(), offered);
    assert_eq!(memory.list().len(), 3);
}

#[test]
fn a_new_answer_is_in_the_place_of_the_old_one() {
    let memory = Memory::for_tests();
    let one = conversation(&memory, "1");
    for allowed in [false, true, false, true] {
        keep(&one, "a", allowed, Remember::Session);
        assert_eq!(allows(&one, "a"), Some(allowed));
    }
    assert_eq!(memory.list().len(), 1);
    let revoked = memory.revoke(|_| true);
    assert_eq!((revoked.len(), allows(&one, "a")), (1, None));
}

#[test]
fn a_closed_conversation_leaves_nothing_and_takes_nothing() {
    let memory = Memory::for_tests();
    let one = conversation(&memory, "1");
    keep(&one, "a", true, Remember::Conversation);
    keep(&one, "b", true, Remember::Session);
    one.close();
    assert_eq!(
        keep(&one, "c", true, Remember::Conversation),
        Remember::Once
    );
    let successor = conversation(&memory, "1");
    let found = ["a", "b", "c"].map(|name| allows(&successor, name));
    assert_eq!(found, [None, Some(true), None]);
}

#[test]
fn a_call_beyond_what_is_remembered_is_asked_again() {
    let memory = Memory::for_tests();
    let one = conversation(&memory, "1");
    for number in 0..MOST {
        let name = format!("t{number}");
        assert_eq!(
            keep(&one, &name, true, Remember::Session),
            Remember::Session
        );
    }
    assert_eq!(keep(&one, "more", true, Remember::Session), Remember::Once);
    assert_eq!(allows(&one, "more"), None);
    // What is there already takes no room.
    assert_eq!(
        keep(&one, "t0", false, Remember::Session),
        Remember::Session
    );
    assert_eq!(allows(&one, "t0"), Some(false));
}

#[test]
fn the_operator_says_how_far() {
    for most in [Remember::Once, Remember::Conversation, Remember::Session] {
        let memory = Memory {
            most,
            ..Memory::for_tests()
        };
        let one = conversation(&memory, "1");
        assert_eq!(keep(&one, "a", true, Remember::Always), most);
        assert_eq!(
            one.on_offer().last(),
            (most > Remember::Once).then_some(&most)
        );
    }
}

#[test]
fn another_project_knows_nothing_of_the_first() {
    let mut memory = Memory::for_tests();
    let one = conversation(&memory, "1");
    keep(&one, "a", true, Remember::Session);
    let of = |project: &str| Rule {
        id: project.to_owned(),
        key: tool(project),
        allows: true,
        place: Place::Project(project.to_owned()),
        reason: None,
        session: SessionId::new("other"),
        given_ms: 0,
    };
    memory
        .shared
        .0
        .rules
        .lock()
        .extend([of("/work"), of("/else")]);
    assert_eq!(allows(&one, "/work"), Some(true));
    assert_eq!(allows(&one, "/else"), None);
    assert!(memory.revoke(|rule| rule.id == "/else").is_empty());
    memory.move_to(Some("/else".to_owned()));
    let two = conversation(&memory, "2");
    let found = ["a", "/work", "/else"].map(|name| allows(&two, name));
    assert_eq!(found, [None, None, Some(true)]);
}
