use super::*;

fn pieces(reads: &[&[u8]]) -> Vec<String> {
    let mut decoder = UTF_8.new_decoder_without_bom_handling();
    let mut text = String::new();
    let mut pieces = Vec::new();
    for read in reads {
        decode(&mut decoder, read, false, &mut text);
        pieces.push(text.clone());
    }
    decode(&mut decoder, &[], true, &mut text);
    pieces.push(text);
    pieces
}

#[test]
fn a_character_cut_by_a_read_comes_whole_and_bytes_that_are_no_text_do_not_stop_it() {
    for (reads, expected) in [
        (vec![b"abc".as_slice()], vec!["abc", ""]),
        (vec![b"a\xE2", b"\x82", b"\xACb"], vec!["a", "", "€b", ""]),
        (vec![b"\xF0\x9F\x98", b"\x80"], vec!["", "😀", ""]),
        (vec![b"a\xFFb"], vec!["a\u{FFFD}b", ""]),
        (vec![b"a\xE2"], vec!["a", "\u{FFFD}"]),
        (vec![b"\xE2", b"a"], vec!["", "\u{FFFD}a", ""]),
        (vec![b"\xEF\xBB\xBFa"], vec!["\u{FEFF}a", ""]),
    ] {
        assert_eq!(pieces(&reads), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_pipe_that_stays_open_is_left_after_a_silence() {
    let (mut writer, reader) = tokio::io::duplex(1024);
    tokio::io::AsyncWriteExt::write_all(&mut writer, b"last words")
        .await
        .unwrap();
    let mut stdout = Reader::new(Stream::Stdout, Some(reader), Caps::default());
    let mut stderr = Reader::new(Stream::Stderr, None::<tokio::io::Empty>, Caps::default());
    let began = Instant::now();
    drain(&mut stdout, &mut stderr, &mut |_| {}).await;
    assert_eq!(began.elapsed(), IDLE_GRACE);
    assert_eq!(stdout.finish(&mut |_| {}).text, "last words");
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
    let mut stdout = Reader::new(Stream::Stdout, Some(reader), Caps::default());
    let mut stderr = Reader::new(Stream::Stderr, None::<tokio::io::Empty>, Caps::default());
    let mut ignore = |_: Chunk<'_>| {};
    let began = Instant::now();
    tokio::select! {
        () = drain(&mut stdout, &mut stderr, &mut ignore) => {}
        () = talker => {}
    }
    assert_eq!(began.elapsed(), DRAIN_LIMIT);
}
