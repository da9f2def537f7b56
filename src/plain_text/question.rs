//! The question whether a call may run, and what an answer to it means. Pure.

use std::fmt;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::line::first_word;
use super::style::{Piece, Style};
use super::text::{exposed, exposed_line, one_line, prefixed};
use crate::message::{DangerLevel, ToolId, TrustLevel};
use crate::protocol::command::{Remember, ToolApprove};
use crate::protocol::event::ToolConfirm;
use crate::protocol::word;

/// Longest name of a tool that is shown, in characters.
const NAME_WIDTH: usize = 80;

/// Which question: that whether a call may run, or one of those for its hosts, all of which have its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) tool_id: ToolId,
    pub(crate) host: Option<String>,
}

impl Asked {
    pub(crate) fn of(confirm: &ToolConfirm) -> Self {
        Self {
            tool_id: confirm.tool_id.clone(),
            host: confirm.host.clone(),
        }
    }

    /// Whether this is it.
    pub(crate) fn is(&self, confirm: &ToolConfirm) -> bool {
        *self == Self::of(confirm)
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            None => self.tool_id.fmt(f),
            Some(host) => write!(f, "{} for {}", self.tool_id, exposed_line(host)),
        }
    }
}

/// What the user wants done with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Approve,
    /// Run it, and do not ask for the same again.
    Remember(Lasting),
    /// Do not run it, nor the same again.
    Never(Lasting),
    /// Do not run it, for this reason.
    Refuse(Option<String>),
    /// Run it with another input: this text, or one that is still to be edited.
    Edit(Option<String>),
    Unclear,
}

/// How far an answer reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lasting {
    remember: Remember,
    /// It is for writing any file below this folder.
    folder: Option<String>,
}

impl Lasting {
    /// Reads what stands after the word: how far, and `in` with a folder, both or neither.
    fn read(rest: Option<&str>) -> Option<Self> {
        let rest = rest.unwrap_or_default();
        let (word, after) = first_word(rest);
        let far = match word.to_lowercase().as_str() {
            "conversation" => Some(Remember::Conversation),
            "session" => Some(Remember::Session),
            "project" => Some(Remember::Project),
            "always" => Some(Remember::Always),
            _ => None,
        };
        let rest = if far.is_some() { after } else { rest };
        let folder = match first_word(rest) {
            ("", _) => None,
            ("in", folder) if !folder.is_empty() => Some(folder.to_owned()),
            _ => return None,
        };
        Some(Self {
            remember: far.unwrap_or(Remember::Conversation),
            folder,
        })
    }
}

impl Reply {
    /// Reads a typed line. Only a clear yes is one.
    pub(crate) fn read(line: &str) -> Self {
        let (word, rest) = first_word(line.trim());
        let reason = (!rest.is_empty()).then(|| rest.to_owned());
        match (word.to_lowercase().as_str(), reason) {
            ("y" | "yes", None) => Self::Approve,
            ("a" | "always", rest) => {
                Lasting::read(rest.as_deref()).map_or(Self::Unclear, Self::Remember)
            }
            ("never", rest) => Lasting::read(rest.as_deref()).map_or(Self::Unclear, Self::Never),
            ("e" | "edit", None) => Self::Edit(None),
            ("e" | "edit", Some(input)) if input.starts_with('{') => Self::Edit(Some(input)),
            ("n" | "no", reason) => Self::Refuse(reason),
            _ => Self::Unclear,
        }
    }

    /// Returns the verdict on what is asked; `None` where the answer is unclear.
    pub(crate) fn verdict(self, confirm: &ToolConfirm) -> Result<Option<ToolApprove>, String> {
        let mut verdict = ToolApprove::of(confirm, true);
        match self {
            Self::Approve => {}
            Self::Remember(Lasting { remember, folder }) => {
                (verdict.remember, verdict.folder) = (remember, folder);
            }
            Self::Never(Lasting { remember, folder }) => {
                verdict.approved = false;
                (verdict.remember, verdict.folder) = (remember, folder);
            }
            Self::Refuse(reason) => {
                verdict.approved = false;
                verdict.reason = reason;
            }
            Self::Edit(text) => verdict.input = Some(edited(&text.unwrap_or_default())?),
            Self::Unclear => return Ok(None),
        }
        Ok(Some(verdict))
    }
}

/// Shows a call that waits for its verdict, whole, so that nothing unseen is approved.
pub(crate) fn show(confirm: &ToolConfirm) -> Vec<Piece> {
    let name = one_line(&confirm.tool_name, NAME_WIDTH);
    let id = &confirm.tool_id;
    let of_task = match confirm.conversation_id.task() {
        Some(task) => format!(" (in task {task})"),
        None => String::new(),
    };
    let asked = match &confirm.host {
        None => format!("? {id}{of_task} wants to run {name}"),
        Some(host) => format!(
            "? {id}{of_task}, {name}, wants to connect to {}",
            exposed_line(host)
        ),
    };
    let mut pieces = vec![Piece::line(Style::Bold, asked)];
    pieces.extend(fields(&confirm.input));
    if let Some(hook) = &confirm.changed_by {
        let text = format!("  the input was changed by the hook {}", exposed_line(hook));
        pieces.push(Piece::line(Style::Yellow, text));
    }
    let style = match confirm.danger.level {
        DangerLevel::Safe => Style::Green,
        DangerLevel::Warning => Style::Yellow,
        DangerLevel::Dangerous | DangerLevel::Blocked => Style::Red,
    };
    let level = word(&confirm.danger.level);
    pieces.push(Piece::line(style, format!("  danger: {level}")));
    for reason in &confirm.danger.reasons {
        let text = format!("    {}", exposed_line(reason));
        pieces.push(Piece::line(style, text));
    }
    if !confirm.reason.is_empty() {
        let text = format!("  asked because: {}", exposed_line(&confirm.reason));
        pieces.push(Piece::line(Style::Plain, text));
    }
    if let Some(preview) = &confirm.preview {
        pieces.extend(preview.lines().map(difference));
    }
    let on_offer = on_offer(confirm);
    pieces.extend(on_offer.map(|text| Piece::line(Style::Dim, text)));
    pieces
}

/// The line after which the user answers.
pub(crate) fn prompt(confirm: &ToolConfirm, now: Timestamp) -> String {
    let expires_at = confirm.expires_at.as_deref();
    let expires: Option<Timestamp> = expires_at.and_then(|at| at.parse().ok());
    let left = expires.map_or(String::new(), |expires| {
        let seconds = expires.duration_since(now).as_secs().max(0);
        format!("; {seconds} s to answer")
    });
    // What runs already has no input to change.
    let edit = if confirm.host.is_none() {
        ", e edit"
    } else {
        ""
    };
    let lasting = match &confirm.remember {
        None => "",
        Some(offer) if offer.approval.is_empty() => ", never",
        Some(_) => ", a always, never",
    };
    format!("  y yes, n no [reason]{edit}{lasting}{left} > ")
}

/// Says how far an answer counts that reaches further than the call, and how to say so.
fn on_offer(confirm: &ToolConfirm) -> Option<String> {
    let offer = confirm.remember.as_ref()?;
    let (words, example) = match offer.approval.is_empty() {
        true => ("never counts", "never"),
        false => ("a and never count", "a"),
    };
    let mut further = offer.denial.clone();
    further.retain(|it| *it > Remember::Conversation);
    let further = further
        .iter()
        .map(|it| format!("`{example} {}`", word(it)))
        .collect::<Vec<_>>();
    let mut text = format!("  {words} in this conversation");
    if !further.is_empty() {
        text += &format!("; further: {}", further.join(", "));
    }
    if let Some(folder) = offer.folders.first() {
        text += &format!(
            "; for writing below a folder: `{example} in {}`",
            exposed_line(folder)
        );
    }
    Some(text)
}

/// That a call which was to be approved always is approved this once only, and why in short.
pub(crate) fn once_only(confirm: &ToolConfirm, trust: Option<TrustLevel>) -> String {
    let why = if trust == Some(TrustLevel::Supervised) {
        "at trust level supervised every call is asked for"
    } else if confirm.danger.level >= DangerLevel::Dangerous {
        "what is dangerous is asked for each time"
    } else {
        "what it does may be decided by files, not by what was shown; it will be asked for again, unless `allow` of a workflow permits it"
    };
    format!("{}: approved this once only: {why}", confirm.tool_id)
}

/// The name of the field that a text typed in the place of a whole input is for: the first that is text.
pub(crate) fn main_field(input: &Map<String, Value>) -> Option<&str> {
    let mut texts = input.iter().filter(|(_, value)| value.is_string());
    texts.next().map(|(name, _)| name.as_str())
}

/// Reads a line typed in the place of an input: the whole of it as JSON, or another text for its [`main_field`].
pub(crate) fn typed(line: &str, input: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    let line = line.trim();
    let Some(field) = main_field(input).filter(|_| !line.starts_with('{')) else {
        return edited(line);
    };
    let mut input = input.clone();
    input.insert(field.to_owned(), Value::from(line));
    Ok(input)
}

/// Reads an edited input.
pub(crate) fn edited(text: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(input)) => Ok(input),
        Ok(_) => Err("the input has to be one JSON object".to_owned()),
        Err(error) => Err(format!("not valid JSON: {error}")),
    }
}

/// Each field of an input; text as it is, everything else as JSON.
fn fields(input: &Map<String, Value>) -> Vec<Piece> {
    if input.is_empty() {
        return vec![Piece::line(Style::Plain, "  without input")];
    }
    let field = |(name, value): (&String, &Value)| {
        let text = value.as_str().map_or(value.to_string(), str::to_owned);
        let text = match text.contains('\n') {
            true => format!("\n{}", prefixed(&exposed(&text), "    │ ")),
            false => format!(" {}", exposed(&text)),
        };
        let name = one_line(name, NAME_WIDTH);
        Piece::line(Style::Plain, format!("  {name}:{text}"))
    };
    input.iter().map(field).collect()
}

fn difference(line: &str) -> Piece {
    let style = match line.as_bytes().first() {
        Some(b'+') => Style::Green,
        Some(b'-') => Style::Red,
        Some(b'@') => Style::Cyan,
        _ => Style::Plain,
    };
    Piece::line(style, format!("  {}", exposed(line)))
}

#[cfg(test)]
mod tests;
