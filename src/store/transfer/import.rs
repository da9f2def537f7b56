//! A session made of JSON lines that somebody gave: each line is checked, and nothing of the file is taken at its word.

mod lines;

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io::{Seek as _, SeekFrom};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use outrigger_store::{Attachment, Change, Exchange, Hash, TitleBy, ToolCall};
use serde::Deserialize as _;
use sha2::{Digest as _, Sha256};

use lines::{Lines, depth, unreadable};

use super::super::body::{self, Kept};
use super::super::calls;
use super::{FORMAT, Line, VERSION};
use crate::message::{Message, ToolId};
use crate::protocol::event::StreamEnd;
use crate::protocol::record::ExecutionRecord;

/// The largest file: four conversations that are full.
pub(crate) const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// The most lines: of a file of that size, each has 1.3 KiB then.
const MAX_LINES: u64 = 200_000;

/// The most calls: more than a session keeps, and few enough that those of other sessions stay.
const MAX_CALLS: usize = 2_000;

/// The most conversations: as many as a session has.
const MAX_CONVERSATIONS: usize = 4_096;

/// The longest id, in bytes.
const MAX_ID: usize = 256;

/// The deepest that a line is nested: a call's input may be as deep as a frame, 128, and lies within a message.
const MAX_DEPTH: usize = 256;

/// The longest name of a session, in characters.
const MAX_TITLE: usize = 200;

/// The changes that make the session, one after the other; an error, which names the line, is the last of them.
pub(crate) struct Import {
    lines: Lines,
    /// Returns the folder to work in, where the file names this one.
    project: ChooseFolder,
    now_ms: i64,
    stage: Stage,
    /// Where the line of each attachment begins, and how many bytes it has.
    attachments: HashMap<Hash, (u64, u64)>,
    /// How many bytes attachments come to where they stand, each time.
    attached: u64,
    /// The calls of each conversation's last reply that have no result yet.
    conversations: HashMap<String, VecDeque<ToolId>>,
    exchanges: HashSet<String>,
    calls: HashSet<String>,
    /// The highest number of an id.
    ids: u64,
    ready: VecDeque<Change>,
}

type ChooseFolder = Box<dyn Fn(Option<&str>) -> Option<String> + Send>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Begin,
    Within,
    Over,
}

impl Import {
    /// Reads the file from its beginning. `project` is given the folder that the file names and returns the one to work in.
    pub(crate) fn new(
        mut file: File,
        project: impl Fn(Option<&str>) -> Option<String> + Send + 'static,
    ) -> Result<Self, String> {
        let bytes = file
            .seek(SeekFrom::End(0))
            .map_err(|error| unreadable(&error))?;
        if bytes > MAX_BYTES {
            return Err(too_large());
        }
        file.rewind().map_err(|error| unreadable(&error))?;
        Ok(Self {
            lines: Lines::new(file),
            project: Box::new(project),
            now_ms: super::super::now(),
            stage: Stage::Begin,
            attachments: HashMap::new(),
            attached: 0,
            conversations: HashMap::new(),
            exchanges: HashSet::new(),
            calls: HashSet::new(),
            ids: 0,
            ready: VecDeque::new(),
        })
    }

    /// Reads all of the file and returns how many messages it has. An error says what is wrong, and where.
    pub(crate) fn check(self) -> Result<u64, String> {
        let mut messages = 0;
        for change in self {
            messages += u64::from(matches!(change?, Change::Message { .. }));
        }
        Ok(messages)
    }

    fn advance(&mut self) -> Result<(), String> {
        let begins = self.lines.at;
        let Some(line) = self.lines.next()? else {
            return Err(
                "it ends before its last line, which says `end`: it is not whole; export it again, or copy it again".to_owned(),
            );
        };
        if self.lines.number > MAX_LINES {
            return Err(format!("a session has {MAX_LINES} lines at most"));
        }
        if self.stage == Stage::Begin {
            check_format(&line)?;
        }
        match (parse(&line)?, self.stage) {
            (line @ Line::Session { .. }, Stage::Begin) => self.session(line),
            (Line::Session { .. }, _) => Err("a file holds one session".to_owned()),
            (_, Stage::Begin | Stage::Over) => Err(no_session()),
            (Line::Call { began, record }, _) => self.call(began, &record),
            (Line::Exchange { began_at, end }, _) => self.exchange(&began_at, &end),
            (Line::Attachment { hash, data }, _) => {
                let attachment = attachment(&hash, &data)?;
                let bytes = attachment.bytes.len() as u64;
                let found = self.attachments.entry(attachment.hash);
                found.or_insert((begins, bytes));
                Ok(())
            }
            (
                Line::Message {
                    conversation_id,
                    message_id,
                    at,
                    message,
                    attached,
                },
                _,
            ) => {
                let message = *message;
                let kept = Kept { message, attached };
                let ids = (conversation_id.as_str(), message_id.as_str());
                self.message(ids, &at, kept)
            }
            (Line::End { lines }, _) => self.end(lines),
        }
    }

    fn session(&mut self, line: Line) -> Result<(), String> {
        let Line::Session {
            title,
            is_named,
            project,
            labels,
            archived_at,
            ..
        } = line
        else {
            return Err(no_session());
        };
        self.stage = Stage::Within;
        let at_ms = self.now_ms;
        let project = (self.project)(project.as_deref());
        self.ready.push_back(Change::Create { project, at_ms });
        if let Some(title) = title {
            if title.chars().count() > MAX_TITLE + 1 {
                return Err(format!("the title has more than {MAX_TITLE} characters"));
            }
            let by = match is_named {
                true => TitleBy::User,
                false => TitleBy::Daemon,
            };
            self.ready.push_back(Change::Title { title, by });
        }
        if !labels.is_empty() {
            let labels = super::super::labels(&labels)?;
            self.ready.push_back(Change::Labels(labels));
        }
        if let Some(at) = archived_at {
            let at_ms = Some(self.time(&at)?);
            self.ready.push_back(Change::Archived { at_ms });
        }
        Ok(())
    }

    fn call(&mut self, began: bool, record: &ExecutionRecord) -> Result<(), String> {
        let (id, conversation) = (record.tool_id.as_str(), record.conversation_id.as_str());
        check_id("toolId", id)?;
        check_id("conversationId", conversation)?;
        if !self.calls.insert(id.to_owned()) {
            return Err(format!("there are two calls {id:?}"));
        }
        if self.calls.len() > MAX_CALLS {
            return Err(format!("it has more than {MAX_CALLS} calls"));
        }
        self.use_id(id);
        if let Some(background) = &record.background {
            self.use_id(background.id.as_str());
        }
        let record = calls::broken_off(record.clone());
        self.ready.push_back(Change::Imported {
            call: ToolCall {
                id: id.to_owned(),
                conversation: conversation.to_owned(),
                began,
                record: calls::written(&record),
                result: None,
            },
            facts: calls::facts(&record),
        });
        Ok(())
    }

    fn exchange(&mut self, began_at: &str, end: &StreamEnd) -> Result<(), String> {
        let (id, conversation) = (end.message_id.as_str(), end.conversation_id.as_str());
        check_id("messageId", id)?;
        check_id("conversationId", conversation)?;
        if !self.exchanges.insert(id.to_owned()) {
            return Err(format!("there are two exchanges {id:?}"));
        }
        self.use_id(id);
        let began_ms = self.time(began_at)?;
        self.ready.push_back(Change::Began(Exchange {
            id: id.to_owned(),
            conversation: conversation.to_owned(),
            began_ms,
            // Nobody is to be told of it again.
            end: Some((0, super::super::json(end))),
        }));
        Ok(())
    }

    fn message(
        &mut self,
        (conversation, exchange): (&str, &str),
        at: &str,
        kept: Kept,
    ) -> Result<(), String> {
        check_id("conversationId", conversation)?;
        // What was made valid later belongs to no exchange.
        if !exchange.is_empty() {
            check_id("messageId", exchange)?;
            self.use_id(exchange);
        }
        let at_ms = self.time(at)?;
        let mut attachments: HashMap<&str, Attachment> = HashMap::new();
        let mut parts = HashSet::new();
        for place in &kept.attached {
            if !parts.insert(place.part) {
                return Err(format!("part {} has two attachments", place.part));
            }
            let at = self.attached_at(&place.hash)?;
            // Read once for a message, wherever it stands there.
            if !attachments.contains_key(place.hash.as_str()) {
                attachments.insert(&place.hash, self.attachment(at)?);
            }
        }
        let attachments: Vec<Attachment> = attachments.into_values().collect();
        let message = Message::from(kept.whole(&attachments)?);
        self.fits(conversation, &message)?;
        self.ready.push_back(Change::Message {
            conversation: conversation.to_owned(),
            message: outrigger_store::Message {
                exchange: exchange.to_owned(),
                body: body::of(&message),
                at_ms,
            },
        });
        Ok(())
    }

    /// Fails where a conversation with this message would be no valid history.
    fn fits(&mut self, conversation: &str, message: &Message) -> Result<(), String> {
        let is_new = !self.conversations.contains_key(conversation);
        if is_new && self.conversations.len() >= MAX_CONVERSATIONS {
            return Err(format!(
                "a session has {MAX_CONVERSATIONS} conversations at most"
            ));
        }
        let open = self
            .conversations
            .entry(conversation.to_owned())
            .or_default();
        let numbers: Vec<ToolId> = match (message, open.front()) {
            (Message::ToolResult(result), Some(call)) if result.id == *call => {
                open.pop_front();
                Vec::new()
            }
            (Message::ToolResult(result), _) => {
                return Err(format!(
                    "the result of {:?} does not follow the call that it answers, in the order of the calls",
                    result.id.as_str()
                ));
            }
            (_, Some(call)) => return Err(no_result(conversation, call)),
            (Message::User(_), None) => Vec::new(),
            (Message::Reply(reply), None) => {
                let mut seen = HashSet::new();
                for call in &reply.calls {
                    check_id("id of a call", call.id.as_str())?;
                    if !seen.insert(&call.id) {
                        return Err(format!("one message has two calls {:?}", call.id.as_str()));
                    }
                }
                let calls = reply.calls.iter().map(|call| call.id.clone());
                open.extend(calls.clone());
                calls.collect()
            }
        };
        for id in numbers {
            self.use_id(id.as_str());
        }
        Ok(())
    }

    fn end(&mut self, lines: u64) -> Result<(), String> {
        let before = self.lines.number - 1;
        if lines != before {
            return Err(format!(
                "{lines} lines were written before it, and {before} are there: it is not whole"
            ));
        }
        let open = self.conversations.iter();
        let mut open = open.filter_map(|(id, calls)| Some((id, calls.front()?)));
        if let Some((conversation, call)) = open.next() {
            return Err(no_result(conversation, call));
        }
        if self.lines.next()?.is_some() {
            return Err("nothing may follow the line that says `end`".to_owned());
        }
        self.ready.push_back(Change::Reserve {
            seq: 0,
            ids: self.ids,
        });
        self.stage = Stage::Over;
        Ok(())
    }

    /// Notes an id of ours, so that no later one is the same.
    fn use_id(&mut self, id: &str) {
        let number = id.get(1..).and_then(|number| number.parse::<u32>().ok());
        self.ids = self.ids.max(number.map_or(0, u64::from));
    }

    /// Reads a time; none is later than now.
    fn time(&self, text: &str) -> Result<i64, String> {
        let time: Timestamp = text
            .parse()
            .map_err(|error| format!("{text:?} is no time: {error}"))?;
        Ok(time.as_millisecond().clamp(0, self.now_ms))
    }

    /// Returns where the line of an attachment begins, and counts its bytes once more.
    fn attached_at(&mut self, hash: &str) -> Result<u64, String> {
        let known = data_encoding::HEXLOWER.decode(hash.as_bytes()).ok();
        let known = known.and_then(|it| Hash::try_from(it).ok());
        let found = known.and_then(|it| self.attachments.get(&it));
        let &(at, bytes) = found.ok_or_else(|| {
            format!("attachment {hash:?} does not stand before the message that has it")
        })?;
        self.attached += bytes;
        if self.attached > MAX_BYTES {
            return Err(format!(
                "its attachments come to more than {MAX_BYTES} bytes, each counted wherever it stands"
            ));
        }
        Ok(at)
    }

    /// Returns an attachment, which is read again: no more than one message's are held.
    fn attachment(&mut self, at: u64) -> Result<Attachment, String> {
        match parse(&self.lines.read_at(at)?)? {
            Line::Attachment { hash, data } => attachment(&hash, &data),
            _ => Err("an attachment is no attachment any more".to_owned()),
        }
    }
}

impl Iterator for Import {
    type Item = Result<Change, String>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() && self.stage != Stage::Over {
            if let Err(problem) = self.advance() {
                self.stage = Stage::Over;
                self.ready.clear();
                return Some(Err(format!("line {}: {problem}", self.lines.number)));
            }
        }
        self.ready.pop_front().map(Ok)
    }
}

/// Fails where the first line is that of no file of ours, or of a newer one.
fn check_format(line: &str) -> Result<(), String> {
    #[derive(serde::Deserialize)]
    struct First {
        session: Format,
    }
    #[derive(serde::Deserialize)]
    struct Format {
        format: String,
        version: u32,
    }
    let first = serde_json::from_str::<First>(line).map(|it| it.session);
    match first {
        Ok(first) if first.format != FORMAT => Err(no_session()),
        Ok(first) if first.version != VERSION => Err(format!(
            "it is of version {} of the format, and this program knows version {VERSION}",
            first.version
        )),
        Ok(_) => Ok(()),
        Err(_) => Err(no_session()),
    }
}

fn parse(line: &str) -> Result<Line, String> {
    if depth(line) > MAX_DEPTH {
        return Err(format!("it is nested deeper than {MAX_DEPTH}"));
    }
    let mut json = serde_json::Deserializer::from_str(line);
    // It was looked at.
    json.disable_recursion_limit();
    let read = Line::deserialize(&mut json).and_then(|line| json.end().map(|()| line));
    read.map_err(|error| match error.is_eof() {
        true => "the file is cut off in the middle of this line; export it again, or copy it again"
            .to_owned(),
        false => error.to_string(),
    })
}

fn attachment(hash: &str, data: &str) -> Result<Attachment, String> {
    let bytes = STANDARD.decode(data);
    let bytes = bytes.map_err(|error| format!("field `data` is no standard base64: {error}"))?;
    let is: Hash = Sha256::digest(&bytes).into();
    if data_encoding::HEXLOWER.encode(&is) != hash {
        return Err(format!(
            "the bytes of attachment {hash:?} have another hash"
        ));
    }
    Ok(Attachment { hash: is, bytes })
}

fn check_id(field: &str, id: &str) -> Result<(), String> {
    if id.is_empty() || id.len() > MAX_ID || id.chars().any(char::is_control) {
        return Err(format!(
            "field `{field}` must have 1 to {MAX_ID} bytes and no control characters"
        ));
    }
    Ok(())
}

fn no_session() -> String {
    "it is no session that was exported as JSON lines".to_owned()
}

fn no_result(conversation: &str, call: &ToolId) -> String {
    format!(
        "call {:?} of conversation {conversation:?} has no result",
        call.as_str()
    )
}

pub(crate) fn too_large() -> String {
    format!("a session has {} MiB at most", MAX_BYTES >> 20)
}
