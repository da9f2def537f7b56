//! Whatever is written comes back by ranges, whole characters of one stream each, and the quota holds.

#[cfg(target_os = "linux")]
use std::fs::File;

use proptest::prelude::*;

use super::file::BLOCK_BYTES;
use super::*;

/// Reads everything, `limit` bytes at a time.
fn all(recorded: &Recorded, limit: usize) -> Vec<(Stream, String)> {
    let (mut at, mut read) = (0, Vec::new());
    loop {
        let range = recorded.read(at, limit).unwrap();
        assert_eq!(range.offset, at);
        assert!(range.text.len() <= limit.max(4), "{range:?}");
        read.push((range.stream, range.text));
        match range.next {
            Some(next) => at = next,
            None => return read,
        }
    }
}

fn joined(read: &[(Stream, String)], wanted: Stream) -> String {
    read.iter()
        .filter(|(stream, _)| *stream == wanted)
        .map(|(_, text)| text.as_str())
        .collect()
}

#[test]
fn ranges_have_whole_characters_of_one_stream() {
    let folder = tempfile::tempdir().unwrap();
    let spill = Spill::new(folder.path().to_owned(), QUOTA_BYTES);
    let output = spill.record();
    output.push(Stream::Stdout, "aä€\u{1f600}").unwrap();
    output.push(Stream::Stderr, "oh").unwrap();
    output.push(Stream::Stdout, "b").unwrap();
    for (offset, limit, stream, text, first, next) in [
        (0, 100, Stream::Stdout, "aä€\u{1f600}", 0, Some(10)),
        (0, 2, Stream::Stdout, "a", 0, Some(1)),
        (0, 3, Stream::Stdout, "aä", 0, Some(3)),
        (1, 1, Stream::Stdout, "ä", 1, Some(3)),
        (2, 2, Stream::Stdout, "ä", 1, Some(3)),
        (9, 1, Stream::Stdout, "\u{1f600}", 6, Some(10)),
        (10, 100, Stream::Stderr, "oh", 10, Some(12)),
        (12, 100, Stream::Stdout, "b", 12, Some(13)),
        (13, 5, Stream::Stdout, "", 13, Some(13)),
        (99, 5, Stream::Stdout, "", 13, Some(13)),
    ] {
        let range = output.read(offset, limit).unwrap();
        let expected = Range {
            stream,
            text: text.to_owned(),
            offset: first,
            next,
            total: 13,
        };
        assert_eq!(range, expected, "{offset} {limit}");
    }
    output.finish();
    assert_eq!(output.read(12, 5).unwrap().next, None);
    assert_eq!(output.read(99, 5).unwrap().next, None);
    // Windows has no files without names; there nobody else can open it.
    #[cfg(unix)]
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn of_an_endless_output_the_last_bytes_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let spill = Spill::new(folder.path().to_owned(), 8 * BLOCK_BYTES as u64);
    let most = 2 * BLOCK_BYTES;
    let output = spill.record_last(most as u64);
    let mut whole = String::new();
    for number in 0..20_000 {
        let (line, stream) = match number % 5 {
            0 => (format!("ä{number}\n"), Stream::Stderr),
            _ => (format!("€{number}\n"), Stream::Stdout),
        };
        output.push(stream, &line).unwrap();
        whole.push_str(&line);
        if number % 1_000 != 999 {
            continue;
        }
        let first = output.read_both(0, usize::MAX >> 1).unwrap();
        let offset = usize::try_from(first.offset).unwrap();
        assert_eq!(first.total, whole.len() as u64);
        assert_eq!(Some(first.text.as_str()), whole.get(offset..), "{number}");
        assert!(first.text.len() >= most.min(whole.len()) - 3, "{number}");
        assert!(first.text.len() <= most + BLOCK_BYTES, "{number}");
        // By streams, from where it begins.
        let (mut at, mut text) = (first.offset, String::new());
        while at < first.total {
            let range = output.read(at, 1_000).unwrap();
            let other = match range.stream {
                Stream::Stdout => 'ä',
                Stream::Stderr => '€',
            };
            assert!(!range.text.contains(other), "{range:?}");
            text.push_str(&range.text);
            at = range.next.unwrap();
        }
        assert_eq!(text, first.text);
    }
}

#[test]
fn an_output_that_still_comes_makes_room_last() {
    let folder = tempfile::tempdir().unwrap();
    let spill = Spill::new(folder.path().to_owned(), 4 * BLOCK_BYTES as u64);
    let comes = spill.record_last(1);
    comes.push(Stream::Stdout, "a server").unwrap();
    let ended: Vec<_> = (0..6).map(|_| spill.record()).collect();
    for output in &ended {
        output.push(Stream::Stdout, "text").unwrap();
        output.finish();
    }
    assert_eq!(comes.read(0, 9).unwrap().text, "a server");
    assert_eq!(ended[0].read(0, 9), Err(Gone));
    assert_eq!(ended[5].read(0, 9).unwrap().text, "text");
}

#[test]
fn the_oldest_output_makes_room() {
    let folder = tempfile::tempdir().unwrap();
    let spill = Spill::new(folder.path().to_owned(), 4 * BLOCK_BYTES as u64);
    let outputs: Vec<_> = (0..6).map(|_| spill.record()).collect();
    for (index, output) in outputs.iter().enumerate() {
        output.push(Stream::Stdout, &index.to_string()).unwrap();
        output.finish();
    }
    assert_eq!(outputs[0].read(0, 9), Err(Gone));
    assert_eq!(outputs[1].read(0, 9), Err(Gone));
    for (index, output) in outputs.iter().enumerate().skip(2) {
        assert_eq!(output.read(0, 9).unwrap().text, index.to_string());
    }
    // One that alone is too much is not kept in half.
    let large = spill.record();
    large
        .push(Stream::Stdout, &"x".repeat(5 * BLOCK_BYTES))
        .unwrap();
    assert_eq!(large.read(0, 9), Err(Gone));
}

#[test]
fn an_output_that_had_all_the_room_makes_it_for_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let mut state = State::new(folder.path().to_owned(), 2 * BLOCK_BYTES as u64);
    state.begin(1, 0, None);
    state.append(1, Stream::Stdout, &"x".repeat(2 * BLOCK_BYTES));
    state.begin(2, 0, None);
    state.append(2, Stream::Stdout, "text");
    assert_eq!(state.read(1, 0, 9, false), Err(Gone));
    assert_eq!(state.read(2, 0, 9, false).unwrap().text, "text");
}

#[test]
fn a_flood_pushes_out_nobody_elses() {
    let folder = tempfile::tempdir().unwrap();
    let spill = Spill::new(folder.path().to_owned(), 4 * BLOCK_BYTES as u64);
    let (calm, flooding) = (spill.for_another(), spill.for_another());
    let small = calm.record();
    small.push(Stream::Stdout, "small").unwrap();
    let floods: Vec<_> = (0..6).map(|_| flooding.record()).collect();
    for flood in &floods {
        flood.push(Stream::Stdout, "flood").unwrap();
    }
    assert_eq!(small.read(0, 9).unwrap().text, "small");
    assert_eq!(floods[2].read(0, 9), Err(Gone));
    assert!(floods[3].read(0, 9).is_ok());
}

#[test]
fn a_folder_that_is_not_there_costs_the_output_and_nothing_else() {
    let spill = Spill::new(PathBuf::from("/nonexistent/folder"), QUOTA_BYTES);
    let output = spill.record();
    output.push(Stream::Stdout, "a").unwrap();
    output.push(Stream::Stdout, "b").unwrap();
    assert_eq!(output.read(0, 9), Err(Gone));
}

/// Resident memory of this process, in bytes.
#[cfg(target_os = "linux")]
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * rustix::param::page_size()
}

#[cfg(target_os = "linux")]
#[test]
fn a_hundred_megabytes_cost_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let spill = Spill::new(folder.path().to_owned(), QUOTA_BYTES);
    let output = spill.record();
    let piece = "0123456789abcde\n".repeat(4_096);
    let before = resident();
    for _ in 0..100_000_000 / piece.len() {
        output.push_waiting(Stream::Stdout, &piece);
    }
    output.finish();
    let total = output.read(0, 1).unwrap().total;
    assert!(total > 99_000_000);
    assert_eq!(
        output.read(total - 16, 64).unwrap().text,
        "0123456789abcde\n"
    );
    // Generous: other tests run in this process at the same time.
    assert!(resident() < before + 64 * 1024 * 1024);
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        pieces in prop::collection::vec((any::<bool>(), "(a|ä|€|\u{1f600}|\n){0,40}", 1..900_usize), 0..8),
        limit in 1..50_000_usize,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let spill = Spill::new(folder.path().to_owned(), QUOTA_BYTES);
        let (first, output) = (spill.record(), spill.record());
        let (mut stdout, mut stderr) = (String::new(), String::new());
        for (is_error, text, times) in &pieces {
            let text = text.repeat(*times);
            first.push(Stream::Stdout, "in between").unwrap();
            let (stream, whole) = match is_error {
                true => (Stream::Stderr, &mut stderr),
                false => (Stream::Stdout, &mut stdout),
            };
            whole.push_str(&text);
            output.push(stream, &text).unwrap();
        }
        output.finish();
        let read = all(&output, limit);
        prop_assert_eq!(joined(&read, Stream::Stdout), stdout);
        prop_assert_eq!(joined(&read, Stream::Stderr), stderr);
    }
}

#[test]
fn what_is_forgotten_gives_its_room_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut state = State::new(folder.path().to_owned(), QUOTA_BYTES);
    for number in 0..3 {
        state.begin(number, 0, None);
        state.append(number, Stream::Stdout, "text");
    }
    assert_eq!((state.blocks, state.file.is_some()), (3, true));
    for number in 0..3 {
        state.forget(number);
    }
    assert_eq!((state.blocks, state.free.len()), (0, 0));
    assert!(state.file.is_none());
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_keeps_no_file_open() {
    let mut state = State::new(PathBuf::from("/nonexistent"), QUOTA_BYTES);
    let full = File::options().read(true).write(true).open("/dev/full");
    state.file = Some(full.unwrap());
    state.begin(1, 0, None);
    state.append(1, Stream::Stdout, "no room for this");
    assert_eq!(state.read(1, 0, 9, false), Err(Gone));
    assert_eq!((state.file.is_none(), state.blocks), (true, 0));
}

#[test]
fn a_disk_that_hangs_costs_the_output_and_holds_up_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let spill = Spill::new(folder.path().to_owned(), QUOTA_BYTES);
    let (hang, release) = mpsc::sync_channel(0);
    let hangs = spill.record();
    spill.writer.send(move |_| hang.send(()).unwrap());
    let piece = "x".repeat(1024 * 1024);
    let refused = (0..64).find(|_| hangs.push(Stream::Stdout, &piece).is_err());
    assert!(refused.is_some());
    hangs.push_waiting(Stream::Stdout, &piece);
    let other = spill.record();
    release.recv().unwrap();
    assert_eq!(hangs.read(0, 9), Err(Gone));
    // What is begun when there is room again is kept.
    let later = spill.record();
    later.push(Stream::Stdout, "text").unwrap();
    assert_eq!(later.read(0, 9).unwrap().text, "text");
    drop(other);
}
