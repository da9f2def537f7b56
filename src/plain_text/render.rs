//! Events as they look in a terminal. Pure: pieces come out, and who writes them is `terminal`'s affair.

mod answers;
mod servers;
mod sign_in;

use std::collections::BTreeMap;

use serde_json::Value;

use super::folds::{Folds, SHOWN_LINES};
use super::style::{Piece, Style};
use super::text::{exposed, harmless, one_line, prefixed};
use crate::message::{
    BackgroundCommand, ChangedFiles, ConversationId, Notice, Part, Severity, TASK, ToolId,
};
use crate::protocol::answer::CompactState;
use crate::protocol::event::{
    By, Compaction, Event, Outcome, PortOpened, ResultStatus, State, StateName, ToolDelta,
    ToolOutcome, ToolResolved, ToolStart, TurnDiscarded,
};
use crate::protocol::trust::InstructionFile;
use crate::protocol::word;
use crate::terminal_text;

/// Longest short form of a call's input, or of what it came to, in characters.
const SHORT: usize = 100;

/// How many of the files that a command changed are named.
const SHOWN_FILES: usize = 3;

/// Most bytes of a turn's text that are held back; what is longer is shown although it may be void yet.
const HELD_BYTES: usize = 16 * 1024 * 1024;

/// What is on the screen, as far as the next piece depends on it.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    open: Open,
    is_in_line: bool,
    /// Whether the last turn that is over said something, and nothing of it was a call.
    has_said: bool,
    /// Whether what this turn has said is shown already.
    says: bool,
    /// The text of a turn that may still be discarded, where what is shown cannot be taken back.
    held: Option<String>,
    /// The files that the model was told of last, where there are any: of each conversation.
    told: BTreeMap<ConversationId, Vec<InstructionFile>>,
    /// Outputs of calls, where the end of a long one is shown only to who asks for it.
    folds: Option<Folds>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Open {
    #[default]
    Nothing,
    Answer,
    Thinking,
    Output(ToolId),
}

impl Screen {
    /// Returns an empty screen. `hold` keeps a turn's text back until it counts, for an answer that a program reads.
    pub(crate) fn new(hold: bool) -> Self {
        Self {
            held: hold.then(String::new),
            ..Self::default()
        }
    }

    /// Has output of calls folded after its first lines.
    pub(crate) fn folded(mut self) -> Self {
        self.folds = Some(Folds::default());
        self
    }

    /// Returns the whole output of a call, named by its id or the number in it, or of the last one that was not shown whole.
    pub(crate) fn unfold(&mut self, which: &str) -> Vec<Piece> {
        let folds = self.folds.take().unwrap_or_default();
        let pieces = match folds.find(which) {
            Err(problem) => self.line(Style::Red, problem),
            Ok((id, text, is_cut)) => {
                let mut shown = format!("  ┌ {id}\n{}", prefixed(text, "  │ "));
                if is_cut {
                    shown.push_str("\n  │ … and more, which is not kept here");
                }
                self.line(Style::Dim, shown)
            }
        };
        self.folds = Some(folds);
        pieces
    }

    /// Returns what an event adds to the screen.
    pub(crate) fn show(&mut self, event: &Event) -> Vec<Piece> {
        let block = match event {
            event if event.is_within_task() => return Vec::new(),
            Event::ChatTextDelta(delta) => return self.text(&delta.content),
            Event::ChatThinkingDelta(delta) => return self.thinking(&delta.content),
            Event::ChatUsage(_) => return self.turn_over(),
            Event::ChatToolDelta(delta) => return self.output(delta),
            Event::ChatStreamEnd(end) => {
                let mut pieces = self.turn_over();
                self.has_said = false;
                pieces.extend(self.line(Style::Dim, answers::summary(end)));
                return pieces;
            }
            Event::ChatStreamStart(start) => {
                self.tells(&start.conversation_id, &start.instructions)
            }
            Event::ChatInstructions(changed) => {
                self.tells(&changed.conversation_id, &changed.files)
            }
            Event::ChatToolStart(start) => {
                self.has_said = false;
                vec![started(start)]
            }
            Event::ChatToolResult(result) => ended(result, self.hidden_lines(result)),
            Event::ToolBackground(changed) => background(&changed.background).into_iter().collect(),
            Event::ToolPortOpen(opened) => vec![port_open(opened)],
            Event::ChatToolResolved(resolved) => resolution(resolved).into_iter().collect(),
            Event::ChatTurnDiscarded(discarded) => vec![self.discarded(discarded)],
            Event::ChatCompaction(compaction) => compacted(compaction).into_iter().collect(),
            Event::ChatState(state) => waiting(state).into_iter().collect(),
            Event::ChatError(error) => problem(&error.message, error.hint.as_deref()),
            Event::SessionError(error) => problem(&error.message, None),
            Event::SessionNotice(notice) => vec![remark(notice)],
            Event::McpAuthRequired(asked) => sign_in::asked(asked),
            Event::McpAuthResult(it) => sign_in::answered(it),
            Event::McpSignOutResult(it) => vec![sign_in::out(it)],
            Event::ChatCompactResult(it) => compacting(it.state).into_iter().collect(),
            Event::ChatContextResult(it) => answers::context(it),
            Event::SkillListResult(it) => answers::skills(it),
            Event::McpListResult(it) => servers::list(it),
            Event::ChatHistoryResult(history) => answers::history(history),
            Event::ModelListResult(models) => answers::models(models),
            Event::ProviderListResult(providers) => answers::providers(providers),
            Event::ApprovalListResult(it) => answers::remembered(it),
            Event::ApprovalRevokeResult(it) => vec![answers::revoked(it)],
            Event::ToolExposeResult(it) => vec![answers::exposed_port(it)],
            Event::McpListPromptsResult(it) => servers::prompts(it),
            Event::McpLog(line) => vec![servers::log(line)],
            Event::McpResourceUpdated(it) => vec![servers::updated(it)],
            Event::SessionConfigureResult(configured) => vec![answers::configured(configured)],
            // The rest is of no use to somebody who reads along.
            _ => Vec::new(),
        };
        match block.is_empty() {
            true => block,
            false => self.block(block),
        }
    }

    /// Says which files speak for the user, where that is other than it was.
    fn tells(&mut self, of: &ConversationId, files: &[InstructionFile]) -> Vec<Piece> {
        let before = self.told.remove(of).unwrap_or_default();
        if !files.is_empty() {
            self.told.insert(of.clone(), files.to_vec());
        }
        match before == files {
            true => Vec::new(),
            false => vec![answers::told(files)],
        }
    }

    /// Returns pieces that begin on a line of their own.
    pub(crate) fn block(&mut self, block: Vec<Piece>) -> Vec<Piece> {
        let mut pieces = self.close();
        pieces.extend(block);
        pieces
    }

    pub(crate) fn line(&mut self, style: Style, text: impl Into<String>) -> Vec<Piece> {
        self.block(vec![Piece::line(style, text)])
    }

    fn text(&mut self, text: &str) -> Vec<Piece> {
        let Some(held) = &mut self.held else {
            return self.answer(&harmless(text));
        };
        if held.len() + text.len() <= HELD_BYTES {
            held.push_str(text);
            return Vec::new();
        }
        let mut pieces = self.release();
        pieces.extend(self.answer(text));
        pieces
    }

    fn answer(&mut self, text: &str) -> Vec<Piece> {
        let mut pieces = Vec::new();
        if std::mem::take(&mut self.has_said) {
            // No call stands between two turns: an empty line does.
            pieces.extend(self.close());
            pieces.push(Piece::Answer("\n".to_owned()));
        }
        self.says = true;
        pieces.extend(self.enter(Open::Answer));
        pieces.push(Piece::Answer(text.to_owned()));
        self.is_in_line = !text.ends_with('\n');
        pieces
    }

    /// Shows what was held back: it counts now.
    fn release(&mut self) -> Vec<Piece> {
        match self.held.as_mut().map(std::mem::take) {
            Some(text) if !text.is_empty() => self.answer(&text),
            _ => Vec::new(),
        }
    }

    /// Shows what was held back of a turn that is over.
    fn turn_over(&mut self) -> Vec<Piece> {
        let pieces = self.release();
        self.has_said |= std::mem::take(&mut self.says);
        pieces
    }

    fn thinking(&mut self, text: &str) -> Vec<Piece> {
        let is_new = self.open != Open::Thinking;
        let mut pieces = self.enter(Open::Thinking);
        let mark = if is_new { "thinking: " } else { "" };
        let text = harmless(text);
        self.is_in_line = !text.ends_with('\n');
        pieces.push(Piece::Aside(Style::Dim, format!("{mark}{text}")));
        pieces
    }

    /// Live output, indented; the call's id where another call's output stood before.
    fn output(&mut self, delta: &ToolDelta) -> Vec<Piece> {
        let text = terminal_text::shown(&delta.chunk);
        let (text, is_folded) = match &mut self.folds {
            Some(folds) => folds.take(&delta.tool_id, &text),
            None => (text.as_str(), false),
        };
        if text.is_empty() && !is_folded {
            return Vec::new();
        }
        let now = Open::Output(delta.tool_id.clone());
        let mut shown = match self.open == now {
            true => String::new(),
            false => format!("  ┌ {}\n", delta.tool_id),
        };
        let mut pieces = self.enter(now);
        for line in text.split_inclusive('\n') {
            let margin = if self.is_in_line { "" } else { "  │ " };
            shown.push_str(margin);
            shown.push_str(line);
            self.is_in_line = !line.ends_with('\n');
        }
        if is_folded {
            shown.push_str(&format!("  │ … more than {SHOWN_LINES} lines\n"));
        }
        pieces.push(Piece::Aside(Style::Dim, shown));
        pieces
    }

    /// Takes the end of a call; returns how many lines of its output were not shown.
    fn hidden_lines(&mut self, result: &ToolOutcome) -> usize {
        let text = || terminal_text::shown(&result.result);
        let folds = self.folds.as_mut();
        folds.map_or(0, |folds| folds.ended(&result.tool_id, &text()))
    }

    fn discarded(&mut self, discarded: &TurnDiscarded) -> Piece {
        let void = match &mut self.held {
            Some(held) => {
                held.clear();
                ""
            }
            None => "; what it said above is void",
        };
        let reason = exposed(&discarded.reason);
        let text = format!("the provider broke off{void}, it is asked again: {reason}");
        Piece::line(Style::Yellow, text)
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

    fn close(&mut self) -> Vec<Piece> {
        let end = self.is_in_line.then(|| match self.open {
            Open::Answer => Piece::Answer("\n".to_owned()),
            _ => Piece::Aside(Style::Plain, "\n".to_owned()),
        });
        self.open = Open::Nothing;
        self.is_in_line = false;
        end.into_iter().collect()
    }
}

fn started(start: &ToolStart) -> Piece {
    let input = match start.input.values().next() {
        // What a task is for in short; all it is told is long.
        _ if start.tool_name == TASK => {
            let about = start.input.get("description").and_then(Value::as_str);
            about.unwrap_or_default().to_owned()
        }
        // A single text, as a command or a path, needs no name.
        Some(Value::String(text)) if start.input.len() == 1 => text.clone(),
        Some(_) => Value::Object(start.input.clone()).to_string(),
        None => String::new(),
    };
    let (name, input) = (one_line(&start.tool_name, SHORT), one_line(&input, SHORT));
    let line = format!("▸ {} {name}  {input}", start.tool_id);
    Piece::line(Style::Cyan, line.trim_end())
}

fn ended(result: &ToolOutcome, hidden_lines: usize) -> Vec<Piece> {
    let metadata = result.metadata.as_ref();
    let (mark, style) = match result.status {
        ResultStatus::Success => ("✓", Style::Green),
        ResultStatus::Error if metadata.is_some_and(|it| it.is_no_fault()) => ("–", Style::Dim),
        ResultStatus::Error => ("✗", Style::Red),
    };
    let name = one_line(&result.tool_name, SHORT);
    let time = seconds(result.duration_ms);
    let mut line = format!("{mark} {} {name}  {time}", result.tool_id);
    if let Some(code) = metadata.and_then(|facts| facts.exit_code) {
        line.push_str(&format!("  exit code {code}"));
    }
    if let Some(task) = metadata.and_then(|facts| facts.task.as_deref()) {
        line.push_str(&format!("  {}", answers::task(task)));
    }
    if let Some(changed) = metadata.and_then(|facts| facts.changed.as_ref()) {
        line.push_str(&changes(changed));
    }
    if hidden_lines > 0 {
        let id = &result.tool_id;
        line.push_str(&format!(
            "  {hidden_lines} lines folded, /output {id} shows them"
        ));
    }
    // What failed says why; what worked was seen as it came, or is for the model.
    if result.status == ResultStatus::Error {
        line.push_str(&format!("  {}", one_line(&result.result, SHORT)));
    }
    let pictures = result.content.iter().filter_map(attachment);
    let pictures = pictures.map(|line| Piece::line(Style::Dim, line));
    std::iter::once(Piece::line(style, line))
        .chain(pictures)
        .collect()
}

/// Returns a line that stands for a picture or a document; `None` for text.
fn attachment(part: &Part) -> Option<String> {
    match part {
        Part::Text { .. } => None,
        Part::Image { media_type, data } => {
            let kind = one_line(media_type, SHORT);
            Some(format!("[picture {kind}, {}]", size(data.len() / 4 * 3)))
        }
        Part::Document(document) => Some(format!("[{}]", one_line(&document.label(), SHORT))),
    }
}

fn size(bytes: usize) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} KB", bytes.div_ceil(1_000)),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// Names the first files that a command changed, and counts the others.
fn changes(changed: &ChangedFiles) -> String {
    let names = changed.files.iter().take(SHOWN_FILES);
    let names: Vec<String> = names.map(|file| one_line(&file.path, SHORT)).collect();
    let others = changed.files.len().saturating_sub(SHOWN_FILES) as u64 + changed.more.unwrap_or(0);
    let others = match others {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    match names.is_empty() {
        true => String::new(),
        false => format!("  changed {}{others}", names.join(", ")),
    }
}

fn resolution(resolved: &ToolResolved) -> Option<Piece> {
    let what = match (resolved.outcome, resolved.by) {
        (_, By::User) => return None,
        (Outcome::Expired, _) => "nobody answered in time; it is not run",
        _ => "the question is void",
    };
    let text = format!("{}: {what}", resolved.tool_id);
    Some(Piece::line(Style::Yellow, text))
}

/// That a command in the background has ended; its call said that it began.
fn background(command: &BackgroundCommand) -> Option<Piece> {
    if command.is_running() {
        return None;
    }
    let line = one_line(&command.command, SHORT);
    Some(Piece::line(Style::Dim, format!("{command}  {line}")))
}

fn port_open(opened: &PortOpened) -> Piece {
    let (id, port) = (&opened.background.id, opened.port);
    let text = format!(
        "{id} listens on port {port} of the conversation's own loopback; /expose {port} has an address lead there"
    );
    Piece::line(Style::Dim, text)
}

/// Says where a request for a compaction does not begin one now.
fn compacting(state: CompactState) -> Option<Piece> {
    let text = match state {
        // What follows, or went before, says more.
        CompactState::Started | CompactState::Refused => return None,
        CompactState::Queued => "the conversation is made shorter once the exchange is over",
        CompactState::NothingToDo => "there is nothing to make shorter",
    };
    Some(Piece::line(Style::Dim, text))
}

/// Says what became of a compaction; its beginning is no news.
fn compacted(compaction: &Compaction) -> Option<Piece> {
    let before = compaction.before_tokens;
    match (&compaction.result, compaction.reason) {
        (Some(result), _) => {
            let after = result.after_tokens;
            let text = format!(
                "the conversation was made shorter for the model: {before} to {after} tokens"
            );
            Some(Piece::line(Style::Dim, text))
        }
        (None, Some(reason)) => {
            let reason = word(&reason).replace('_', " ");
            let text =
                format!("the conversation could not be made shorter for the model: {reason}");
            Some(Piece::line(Style::Yellow, text))
        }
        (None, None) => None,
    }
}

fn waiting(state: &State) -> Option<Piece> {
    let reason = exposed(state.reason.as_deref().unwrap_or("no reason given"));
    match state.state {
        StateName::Retrying => {
            let wait = seconds(state.delay_ms.unwrap_or_default());
            let attempt = state.attempt.unwrap_or_default();
            let text = format!("attempt {attempt} in {wait}: {reason}");
            Some(Piece::line(Style::Yellow, text))
        }
        StateName::ToolQueued => {
            let id = state.tool_id.as_ref().map_or("a call", ToolId::as_str);
            let reason = exposed(state.reason.as_deref().unwrap_or("waits"));
            Some(Piece::line(Style::Dim, format!("{id} {reason}")))
        }
        _ => None,
    }
}

fn remark(notice: &Notice) -> Piece {
    let (word, style) = match notice.severity {
        Severity::Info => ("note", Style::Dim),
        Severity::Warning => ("warning", Style::Yellow),
        Severity::Error => ("error", Style::Red),
    };
    Piece::line(style, format!("{word}: {}", exposed(&notice.message)))
}

fn problem(message: &str, hint: Option<&str>) -> Vec<Piece> {
    let message = format!("error: {}", exposed(message));
    let hint = hint.map(|hint| Piece::line(Style::Plain, prefixed(&exposed(hint), "  ")));
    std::iter::once(Piece::line(Style::Red, message))
        .chain(hint)
        .collect()
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
