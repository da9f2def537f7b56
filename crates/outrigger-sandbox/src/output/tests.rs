use super::*;

#[test]
fn a_character_cut_by_a_read_comes_whole_and_bytes_that_are_no_text_do_not_stop_it() {
    for (reads, expected) in [
        (vec![b"abc".as_slice()], vec!["abc"]),
        (vec![b"a\xE2", b"\x82", b"\xACb"], vec!["a", "€b"]),
        (vec![b"\xF0\x9F\x98", b"\x80"], vec!["😀"]),
        (vec![b"a\xFFb"], vec!["a\u{FFFD}b"]),
        (vec![b"a\xE2"], vec!["a", "\u{FFFD}"]),
        (vec![b"\xE2", b"a"], vec!["\u{FFFD}a"]),
        (vec![b"\xEF\xBB\xBFa"], vec!["\u{FEFF}a"]),
    ] {
        for stream in [Stream::Stdout, Stream::Stderr] {
            let mut pieces = Vec::new();
            let mut texts = Texts::new(|from, text: &str| {
                assert_eq!(from, stream);
                pieces.push(text.to_owned());
            });
            for read in &reads {
                texts.decode(stream, read, false);
            }
            texts.finish();
            assert_eq!(texts.total_bytes(), reads.concat().len() as u64);
            assert_eq!(pieces, expected);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_pipe_that_stays_open_is_left_after_a_silence() {
    let (mut writer, reader) = tokio::io::duplex(1024);
    tokio::io::AsyncWriteExt::write_all(&mut writer, b"last words")
        .await
        .unwrap();
    let mut read = String::new();
    let mut texts = Texts::new(|_, text: &str| read.push_str(text));
    let began = Instant::now();
    drain(pieces(Stream::Stdout, Some(reader)), &mut texts).await;
    assert_eq!(began.elapsed(), IDLE_GRACE);
    assert_eq!(read, "last words");
    drop(writer);
}

#[tokio::test(start_paused = true)]
async fn a_pipe_that_never_falls_silent_is_left_at_the_limit() {
    let (mut writer, reader) = tokio::io::duplex(1024);
    let talker = async {
        loop {
            tokio::io::AsyncWriteExt::write_all(&mut writer, b".")
                .await
                .unwrap();
            tokio::time::sleep(IDLE_GRACE / 2).await;
        }
    };
    let mut texts = Texts::new(|_, _: &str| {});
    let began = Instant::now();
    tokio::select! {
        () = drain(pieces(Stream::Stdout, Some(reader)), &mut texts) => {}
        () = talker => {}
    }
    assert_eq!(began.elapsed(), DRAIN_LIMIT);
}
