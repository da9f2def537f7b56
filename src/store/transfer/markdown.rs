//! A session as Markdown, for people: who said what, and each call on one line with the beginning of its result.

use std::collections::HashMap;
use std::io::{self, Write};

use outrigger_store::{Head, Piece};

use super::super::body;
use super::super::restored::logged;
use super::{Writer, line, time};
use crate::message::{Message, Part, ToolId, ToolResult};

/// How much of a call's input is shown, in characters, and how many lines of its result.
const INPUT: usize = 200;
const RESULT_LINES: usize = 5;

/// The longest line of a result, in characters.
const RESULT_LINE: usize = 200;

pub(super) struct Markdown<W> {
    out: W,
    conversation: Option<String>,
    /// The inputs of calls whose results follow.
    inputs: HashMap<ToolId, String>,
    /// Who spoke last, so that turns of one answer stand below one heading.
    speaker: &'static str,
}

impl<W: Write + Send> Writer for Markdown<W> {
    fn take(&mut self, piece: Piece) -> io::Result<()> {
        match piece {
            Piece::Head(head) => self.head(head),
            // What they came to is in messages.
            Piece::Call(_) | Piece::Exchange(_) => Ok(()),
            Piece::Message {
                conversation,
                message,
            } => {
                let said = body::kept(&message.body.text);
                let said = said.and_then(|kept| kept.whole(&message.body.attachments));
                match logged(said, "a message") {
                    Some(said) => self.message(conversation, &Message::from(said)),
                    None => Ok(()),
                }
            }
        }
    }

    fn end(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<W: Write> Markdown<W> {
    pub(super) fn new(out: W) -> Self {
        Self {
            out,
            conversation: None,
            inputs: HashMap::new(),
            speaker: "",
        }
    }

    fn head(&mut self, head: Head) -> io::Result<()> {
        let title = head.title.unwrap_or_else(|| "Untitled".to_owned());
        let title: Vec<&str> = title.split_whitespace().collect();
        line(&mut self.out, &format!("# {}\n", title.join(" ")))?;
        let mut facts = vec![time(head.created_ms)];
        facts.extend(head.project.map(|project| code(&project)));
        facts.extend(head.labels.iter().map(|label| code(label)));
        line(&mut self.out, &facts.join(" · "))
    }

    fn message(&mut self, conversation: String, message: &Message) -> io::Result<()> {
        if self.conversation.as_ref() != Some(&conversation) {
            // A session that has one needs no name for it.
            if self.conversation.is_some() {
                line(
                    &mut self.out,
                    &format!("\n---\n\nConversation {}", code(&conversation)),
                )?;
            }
            self.conversation = Some(conversation);
            self.speaker = "";
        }
        match message {
            Message::User(parts) => {
                // Each thing that the user says is one.
                self.speaker = "";
                self.speaks("User")?;
                self.parts(parts)
            }
            Message::Reply(reply) => {
                self.speaks("Assistant")?;
                if !reply.text.is_empty() {
                    line(&mut self.out, &format!("\n{}", reply.text.trim_end()))?;
                }
                for call in &reply.calls {
                    let input = serde_json::to_string(&call.input).unwrap_or_default();
                    self.inputs.insert(call.id.clone(), input);
                }
                Ok(())
            }
            Message::ToolResult(result) => self.result(result),
        }
    }

    fn speaks(&mut self, speaker: &'static str) -> io::Result<()> {
        if std::mem::replace(&mut self.speaker, speaker) != speaker {
            line(&mut self.out, &format!("\n## {speaker}"))?;
        }
        Ok(())
    }

    fn parts(&mut self, parts: &[Part]) -> io::Result<()> {
        for part in parts {
            match part {
                Part::Text { text } => line(&mut self.out, &format!("\n{}", text.trim_end()))?,
                Part::Image { media_type, .. } => {
                    line(&mut self.out, &format!("\n*[picture, {media_type}]*"))?;
                }
                Part::Document(document) => {
                    line(&mut self.out, &format!("\n*[{}]*", document.label()))?;
                }
            }
        }
        Ok(())
    }

    fn result(&mut self, result: &ToolResult) -> io::Result<()> {
        let input = self.inputs.remove(&result.id).unwrap_or_default();
        let failed = if result.is_error { ": failed" } else { "" };
        let input = cut(&input, INPUT);
        let head = format!("\n- **{}** {}{failed}", result.name, code(&input));
        line(&mut self.out, &head)?;
        let texts = result.content.iter().map(|part| match part {
            Part::Text { text } => text.trim_end().to_owned(),
            Part::Image { media_type, .. } => format!("[picture, {media_type}]"),
            Part::Document(document) => format!("[{}]", document.label()),
        });
        let text: String = texts.collect::<Vec<_>>().join("\n");
        if text.is_empty() {
            return Ok(());
        }
        let fence = "`".repeat(longest_run(&text).max(2) + 1);
        line(&mut self.out, &format!("\n  {fence}text"))?;
        let count = text.lines().count();
        for shown in text.lines().take(RESULT_LINES) {
            line(&mut self.out, &format!("  {}", cut(shown, RESULT_LINE)))?;
        }
        if count > RESULT_LINES {
            line(
                &mut self.out,
                &format!("  … {} more lines", count - RESULT_LINES),
            )?;
        }
        line(&mut self.out, &format!("  {fence}"))
    }
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

/// Returns a text as code within a line, whatever it has of the marks.
fn code(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ");
    match longest_run(&text) {
        0 => format!("`{text}`"),
        run => {
            let marks = "`".repeat(run + 1);
            format!("{marks} {text} {marks}")
        }
    }
}

/// Returns how many marks of code stand together at most.
fn longest_run(text: &str) -> usize {
    let runs = text.split(|c| c != '`').map(str::len);
    runs.max().unwrap_or(0)
}
