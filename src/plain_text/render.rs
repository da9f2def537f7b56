//! Events as they look in a terminal. Pure: pieces come out, and who writes them is `terminal`'s affair.

mod answers;

use super::style::{Piece, Style};
use super::text::{exposed, harmless, one_line, output, prefixed};
use crate::message::{Notice, Severity, ToolId};
use crate::protocol::event::{
    By, ChatError, Delta, Event, Outcome, ResultStatus, SessionError, State, StateName, StreamEnd,
    ToolDelta, ToolOutcome, ToolResolved, ToolStart, TurnDiscarded,
};

/// Longest short form of a call's input, or of what it came to, in characters.
const SHORT: usize = 100;

/// Most bytes of a turn's text that are held back; what is longer is shown although it may be void yet.
const HELD_BYTES: usize = 16 * 1024 * 1024;

/// What is on the screen, as far as the next piece depends on it.
#[derive(Debug)]
pub(crate) struct Screen {
    open: Open,
    at_line_start: bool,
    /// The text of a turn that may still be discarded, where what is shown cannot be taken back.
    held: Option<String>,
}

/// What the cursor stands in.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Open {
    Nothing,
    Answer,
    Thinking,
    Output(ToolId),
}

impl Screen {
    /// An empty screen. `hold` keeps a turn's text back until it counts, for an answer that a
    /// program reads.
    pub(crate) fn new(hold: bool) -> Self {
        Self {
            open: Open::Nothing,
            at_line_start: true,
            held: hold.then(String::new),
        }
    }

    /// Returns what an event adds to the screen.
    pub(crate) fn show(&mut self, event: &Event) -> Vec<Piece> {
        match event {
            Event::ChatTextDelta(delta) => self.text(delta),
            Event::ChatThinkingDelta(delta) => self.thinking(&delta.content),
            Event::ChatUsage(_) => self.release(),
            Event::ChatToolStart(start) => self.line(Style::Cyan, started(start)),
            Event::ChatToolDelta(delta) => self.output(delta),
            Event::ChatToolResult(result) => self.result(result),
            Event::ChatToolResolved(resolved) => self.resolved(resolved),
            Event::ChatTurnDiscarded(discarded) => self.discarded(discarded),
            Event::ChatState(state) => self.state(state),
            Event::ChatError(error) => self.error(error),
            Event::ChatStreamEnd(end) => self.end(end),
            Event::SessionError(error) => self.refused(error),
            Event::SessionNotice(notice) => self.notice(notice),
            Event::ChatHistoryResult(history) => self.block(answers::history(history)),
            Event::ModelListResult(models) => self.block(answers::models(models)),
            Event::ProviderListResult(providers) => self.block(answers::providers(providers)),
            Event::SessionConfigureResult(configured) => {
                self.block(answers::configured(configured))
            }
            // The rest is of no use to somebody who reads along.
            _ => Vec::new(),
        }
    }

    /// Returns pieces that begin on a line of their own.
    pub(crate) fn block(&mut self, block: Vec<Piece>) -> Vec<Piece> {
        let mut pieces = self.close();
        pieces.extend(block);
        pieces
    }

    /// Returns a line of its own.
    pub(crate) fn line(&mut self, style: Style, text: impl Into<String>) -> Vec<Piece> {
        self.block(vec![Piece::line(style, text)])
    }

    fn text(&mut self, delta: &Delta) -> Vec<Piece> {
        match &mut self.held {
            Some(held) if held.len() + delta.content.len() <= HELD_BYTES => {
                held.push_str(&delta.content);
                Vec::new()
            }
            Some(_) => {
                let mut pieces = self.release();
                pieces.extend(self.answer(&delta.content));
                pieces
            }
            None => self.answer(&harmless(&delta.content)),
        }
    }

    fn answer(&mut self, text: &str) -> Vec<Piece> {
        let mut pieces = self.enter(Open::Answer);
        pieces.push(Piece::Answer(text.to_owned()));
        self.at_line_start = text.ends_with('\n');
        pieces
    }

    /// Shows what was held back: it counts now.
    fn release(&mut self) -> Vec<Piece> {
        match self.held.as_mut().map(std::mem::take) {
            Some(text) if !text.is_empty() => self.answer(&text),
            _ => Vec::new(),
        }
    }

    fn thinking(&mut self, text: &str) -> Vec<Piece> {
        let is_new = self.open != Open::Thinking;
        let mut pieces = self.enter(Open::Thinking);
        let mark = if is_new { "thinking: " } else { "" };
        let text = harmless(text);
        self.at_line_start = text.ends_with('\n');
        pieces.push(Piece::Aside(Style::Dim, format!("{mark}{text}")));
        pieces
    }

    /// Live output, indented; the call's id where another call's output stood before.
    fn output(&mut self, delta: &ToolDelta) -> Vec<Piece> {
        let text = output(&delta.chunk);
        if text.is_empty() {
            return Vec::new();
        }
        let now = Open::Output(delta.tool_id.clone());
        let is_new = self.open != now;
        let mut pieces = self.enter(now);
        let margin = "  │ ";
        let mut shown = String::new();
        if is_new {
            shown.push_str(&format!("  ┌ {}\n", delta.tool_id));
        }
        for line in text.split_inclusive('\n') {
            if self.at_line_start {
                shown.push_str(margin);
            }
            shown.push_str(line);
            self.at_line_start = line.ends_with('\n');
        }
        pieces.push(Piece::Aside(Style::Dim, shown));
        pieces
    }

    fn result(&mut self, result: &ToolOutcome) -> Vec<Piece> {
        let metadata = result.metadata.as_ref();
        let (mark, style) = match result.status {
            ResultStatus::Success => ("✓", Style::Green),
            ResultStatus::Error if metadata.is_some_and(|it| it.is_no_fault()) => ("–", Style::Dim),
            ResultStatus::Error => ("✗", Style::Red),
        };
        let mut line = format!(
            "{mark} {} {}  {}",
            result.tool_id,
            one_line(&result.tool_name, SHORT),
            seconds(result.duration_ms)
        );
        if let Some(code) = metadata.and_then(|facts| facts.exit_code) {
            line.push_str(&format!("  exit code {code}"));
        }
        // What failed says why; what worked was seen as it came, or is for the model.
        if result.status == ResultStatus::Error {
            line.push_str(&format!("  {}", one_line(&result.result, SHORT)));
        }
        self.line(style, line)
    }

    fn resolved(&mut self, resolved: &ToolResolved) -> Vec<Piece> {
        let id = &resolved.tool_id;
        match (resolved.outcome, resolved.by) {
            (_, By::User) => Vec::new(),
            (Outcome::Expired, _) => self.line(
                Style::Yellow,
                format!("{id}: nobody answered in time; it is not run"),
            ),
            _ => self.line(Style::Yellow, format!("{id}: the question is void")),
        }
    }

    fn discarded(&mut self, discarded: &TurnDiscarded) -> Vec<Piece> {
        let void = match &mut self.held {
            Some(held) => {
                held.clear();
                ""
            }
            None => "; what it said above is void",
        };
        let reason = exposed(&discarded.reason);
        self.line(
            Style::Yellow,
            format!("the provider broke off{void}, it is asked again: {reason}"),
        )
    }

    fn state(&mut self, state: &State) -> Vec<Piece> {
        let reason = exposed(state.reason.as_deref().unwrap_or("no reason given"));
        match state.state {
            StateName::Retrying => {
                let wait = seconds(state.delay_ms.unwrap_or_default());
                let attempt = state.attempt.unwrap_or_default();
                let text = format!("attempt {attempt} in {wait}: {reason}");
                self.line(Style::Yellow, text)
            }
            StateName::ToolQueued => {
                let id = state.tool_id.as_ref().map_or("a call", ToolId::as_str);
                self.line(Style::Dim, format!("{id} waits: {reason}"))
            }
            _ => Vec::new(),
        }
    }

    fn error(&mut self, error: &ChatError) -> Vec<Piece> {
        self.block(problem(&error.message, error.hint.as_deref()))
    }

    fn refused(&mut self, error: &SessionError) -> Vec<Piece> {
        self.block(problem(&error.message, None))
    }

    fn notice(&mut self, notice: &Notice) -> Vec<Piece> {
        let (word, style) = match notice.severity {
            Severity::Info => ("note", Style::Dim),
            Severity::Warning => ("warning", Style::Yellow),
            Severity::Error => ("error", Style::Red),
        };
        self.line(style, format!("{word}: {}", exposed(&notice.message)))
    }

    fn end(&mut self, end: &StreamEnd) -> Vec<Piece> {
        let mut pieces = self.release();
        pieces.extend(self.line(Style::Dim, answers::summary(end)));
        pieces
    }

    /// Leaves what was open where something else begins.
    fn enter(&mut self, now: Open) -> Vec<Piece> {
        if self.open == now {
            return Vec::new();
        }
        let pieces = self.close();
        self.open = now;
        pieces
    }

    /// Ends the line that is open.
    fn close(&mut self) -> Vec<Piece> {
        let end = (!self.at_line_start).then(|| match self.open {
            Open::Answer => Piece::Answer("\n".to_owned()),
            _ => Piece::Aside(Style::Plain, "\n".to_owned()),
        });
        self.open = Open::Nothing;
        self.at_line_start = true;
        end.into_iter().collect()
    }
}

fn started(start: &ToolStart) -> String {
    let input = match start.input.values().next() {
        // A single text, as a command or a path, needs no name.
        Some(serde_json::Value::String(text)) if start.input.len() == 1 => text.clone(),
        Some(_) => serde_json::Value::Object(start.input.clone()).to_string(),
        None => String::new(),
    };
    let line = format!(
        "▸ {} {}  ",
        start.tool_id,
        one_line(&start.tool_name, SHORT)
    );
    format!("{line}{}", one_line(&input, SHORT))
        .trim_end()
        .to_owned()
}

fn problem(message: &str, hint: Option<&str>) -> Vec<Piece> {
    let mut pieces = vec![Piece::line(
        Style::Red,
        format!("error: {}", exposed(message)),
    )];
    pieces.extend(hint.map(|hint| {
        let hint = prefixed(&exposed(hint), "  ");
        Piece::line(Style::Plain, hint)
    }));
    pieces
}

/// A duration for people: milliseconds below a second, else seconds with one decimal.
fn seconds(milliseconds: u64) -> String {
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        _ => format!("{}.{} s", milliseconds / 1_000, milliseconds % 1_000 / 100),
    }
}

#[cfg(test)]
mod tests;
