//! Fills a store with sessions, so that what it costs can be measured (`benches/kept.py`).
//!
//!     cargo run --release -p outrigger-store --example fill -- FILE SESSIONS MESSAGES LONGEST
//!
//! `MESSAGES` are spread over `SESSIONS`; one more session, `longest`, has `LONGEST`. Words come as often as those of a
//! language do: the second half as often as the first, and so on. Prints the bytes of text that were written.

use std::io::Write as _;
use std::path::Path;
use std::sync::mpsc;

use outrigger_store::sqlite::{Sqlite, Sync};
use outrigger_store::{Body, Change, Error, Message, Store as _};

/// Changes that are given at once.
const BATCH: u64 = 500;

const WORDS: u64 = 20_000;

/// When the first message was said, and how long each takes: 2026.
const SINCE_MS: i64 = 1_767_225_600_000;
const STEP_MS: i64 = 1_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, sessions, messages, longest] = arguments.as_slice() else {
        return Err("usage: fill FILE SESSIONS MESSAGES LONGEST".into());
    };
    let (sessions, messages, longest): (u64, u64, u64) =
        (sessions.parse()?, messages.parse()?, longest.parse()?);
    let store = Sqlite::start(Path::new(path), Sync::Normal)?;
    let mut text = Text(0x9E37_79B9_7F4A_7C15);
    let mut bytes = 0;
    for session in 0..sessions {
        let count = messages / sessions.max(1);
        bytes += fill(&store, &format!("session{session}"), count, &mut text)?;
    }
    bytes += fill(&store, "longest", longest, &mut text)?;
    futures::executor::block_on(store.close())?;
    writeln!(std::io::stdout(), "{bytes}")?;
    Ok(())
}

/// Writes a session; returns the bytes of its text.
fn fill(store: &Sqlite, id: &str, messages: u64, text: &mut Text) -> Result<u64, Error> {
    let mut bytes = 0;
    let mut changes = vec![Change::Create {
        project: None,
        at_ms: SINCE_MS,
    }];
    for number in 0..messages {
        let role = if number % 2 == 0 { "user" } else { "assistant" };
        let words = text.words(60);
        bytes += words.len() as u64;
        changes.push(Change::Message {
            conversation: "default".to_owned(),
            message: Message {
                exchange: format!("m{number}"),
                body: Body {
                    text: format!(r#"{{"message":{{"role":"{role}","content":"{words}"}}}}"#),
                    words,
                    attachments: Vec::new(),
                },
                at_ms: SINCE_MS + i64::try_from(number).unwrap_or(0) * STEP_MS,
            },
        });
        if number % BATCH == BATCH - 1 || number == messages - 1 {
            let (done, written) = mpsc::channel();
            let told = Box::new(move |result| drop(done.send(result)));
            store.write(id, std::mem::take(&mut changes), told);
            written.recv().unwrap_or(Err(Error::Closed))?;
        }
    }
    Ok(bytes)
}

/// Numbers that look random and are the same each time (xorshift).
struct Text(u64);

impl Text {
    fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn words(&mut self, count: usize) -> String {
        let words: Vec<String> = (0..count).map(|_| self.word()).collect();
        words.join(" ")
    }

    fn word(&mut self) -> String {
        // Each half of the list as often as the one before it.
        let halves = self.number() % WORDS.ilog2() as u64;
        let mut rank = self.number() % (WORDS >> halves).max(1);
        let mut word = String::new();
        loop {
            word.push_str(match rank % 8 {
                0 => "ba",
                1 => "ke",
                2 => "li",
                3 => "mo",
                4 => "nu",
                5 => "ras",
                6 => "tel",
                _ => "von",
            });
            rank /= 8;
            if rank == 0 {
                return word;
            }
        }
    }
}
