//! Sessions that make room, and conversations of the same name.

use super::*;

#[test]
fn sessions_that_nobody_used_make_room() {
    paused().block_on(async {
        let daemon = daemon(Vec::new(), 1 << 20);
        let sessions = Sessions::new(Arc::clone(&daemon)).of(Arc::default());
        let mut used = Client::connect(sessions.create(None).await.unwrap()).await;
        used.ask(json!({"type": "chat:send", "content": "hi"}))
            .await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        used.socket = None;
        let mut held = Vec::new();
        while let Ok(session) = sessions.create(None).await {
            held.push(Client::connect(session).await);
        }
        held[0].socket = None;
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(
            sessions.create(None).await.is_ok(),
            "the one that was left makes room"
        );
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(
            sessions.create(None).await.is_err(),
            "the others are in use"
        );
        assert!(sessions.find(&used.session.id).is_some());
        assert!(sessions.find(&held[0].session.id).is_none());
        daemon.stop.cancel();
    });
}

#[test]
fn a_conversation_of_the_same_name_waits_for_the_one_that_was_closed() {
    paused().block_on(async {
        let hang = vec![(
            vec![Move::Call("hang")],
            Finish::End(crate::provider::Stop::EndTurn),
        )];
        let daemon = daemon(hang, 1 << 20);
        let sessions = Sessions::new(Arc::clone(&daemon)).of(Arc::default());
        let mut client = Client::connect(sessions.create(None).await.unwrap()).await;
        let say = json!({"type": "chat:send", "content": "hi", "trustLevel": "autonomous"});
        client.ask(say.clone()).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        client.ask(json!({"type": "chat:close"})).await;
        client.ask(say.clone()).await;
        client.ask(say).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        while client.read(usize::MAX, usize::MAX).await.unwrap() {}
        let order: Vec<(String, String)> = client
            .events()
            .into_iter()
            .filter_map(|event| match event {
                Event::ChatStreamStart(it) => Some(("start".to_owned(), it.message_id.to_string())),
                Event::ChatStreamEnd(it) => Some(("end".to_owned(), it.message_id.to_string())),
                Event::ChatQueued(it) => Some(("queued".to_owned(), it.position.to_string())),
                _ => None,
            })
            .collect();
        let order: Vec<(&str, &str)> = order
            .iter()
            .map(|(what, which)| (what.as_str(), which.as_str()))
            .collect();
        let whole: Vec<(&str, &str)> = order
            .iter()
            .filter(|(what, _)| *what != "queued")
            .copied()
            .collect();
        assert_eq!(
            whole,
            [
                ("start", "m1"),
                ("end", "m1"),
                ("start", "m2"),
                ("end", "m2"),
                ("start", "m3"),
                ("end", "m3")
            ]
        );
        assert!(order.contains(&("queued", "1")), "{order:?}");
        daemon.stop.cancel();
    });
}
