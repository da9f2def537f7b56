//! What a configuration has recorded, played again.

use super::*;

#[tokio::test]
async fn what_is_recorded_can_be_played() {
    let server = Server::start(|mut socket, request| async move {
        if request.contains("never") {
            return None;
        }
        if request.contains("stall") {
            write(&mut socket, EVENTS).await;
            write_chunk(
                &mut socket,
                "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
            )
            .await;
            return std::future::pending().await;
        }
        if request.contains("refuse") {
            write(
                &mut socket,
                "HTTP/1.1 429 X\r\nretry-after: 3\r\ncontent-length: 2\r\n\r\n{}",
            )
            .await;
            return Some(socket);
        }
        write(&mut socket, EVENTS).await;
        write_chunk(
            &mut socket,
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hal",
        )
        .await;
        write_chunk(
            &mut socket,
            "lo\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
        )
        .await;
        write(&mut socket, "0\r\n\r\n").await;
        Some(socket)
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let mut settings = config(Some("key-0123456789"));
    settings.timeout_idle = Duration::from_millis(200);
    settings.record = Some(folder.path().to_owned());
    let endpoint = || Endpoint::new(Arc::new(settings.clone()), Clients::default());
    assert_eq!(ask(&endpoint(), &server.url).await.unwrap().len(), 2);
    for (how, fails) in [("refuse", true), ("never", true), ("stall", false)] {
        let url = format!("{}&{how}", server.url);
        assert_eq!(ask(&endpoint(), &url).await.is_err(), fails, "{how}");
    }

    settings.script = settings.record.take();
    let scripted = crate::provider::scripted::Scripted::new(Arc::new(settings));
    let request = Request {
        front: &[],
        model: "m",
        system: "",
        messages: &[],
        tools: &[],
        tool_choice: crate::provider::ToolChoice::Auto,
        max_tokens: None,
        temperature: None,
        thinking: None,
        cache_key: "",
        output: None,
        compact: None,
    };
    let play = || crate::provider::Provider::stream(&scripted, request);
    let played: Vec<_> = play().await.unwrap().collect().await;
    assert!(texts(&played).concat().contains("halloend"), "{played:?}");
    let refused = play().await.map(drop).unwrap_err();
    assert_eq!(
        (refused.kind, refused.retry_after),
        (ErrorKind::RateLimit, Some(Duration::from_secs(3)))
    );
    let never = play().await.map(drop).unwrap_err();
    assert_eq!(never.kind, ErrorKind::Connect);
    let stalled: Vec<_> = play().await.unwrap().collect().await;
    let broke = stalled.last().unwrap().as_ref().unwrap_err();
    assert_eq!((stalled.len(), broke.kind), (3, ErrorKind::Timeout));
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(!text.contains("0123456789"), "{text}");
    }
}
