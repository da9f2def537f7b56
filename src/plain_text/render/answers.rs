//! Answers of the daemon, and what an exchange came to, as lines.

use super::super::style::{Piece, Style};
use super::super::text::{exposed, exposed_line, one_line};
use super::{attachment, seconds};
use crate::message::{Model, Money, Part, ProviderInfo, TaskFacts};
use crate::protocol::answer::{
    ApprovalRule, ApprovalRules, ApprovalsRevoked, Configured, Exposed, History, Models, Providers,
};
use crate::protocol::content::{Role, WireMessage};
use crate::protocol::context::{ContextPart, ContextUse};
use crate::protocol::event::{StopReason, StreamEnd};
use crate::protocol::trust::{InstructionFile, SkillListed, SkillsListed};
use crate::protocol::word;

/// Longest part of a message in the history, in characters.
const MESSAGE: usize = 200;

/// Says where a port of a command in the background is to be looked at.
pub(super) fn exposed_port(answer: &Exposed) -> Piece {
    let port = answer.port;
    let text = match &answer.url {
        Some(url) => format!("port {port} is at {}", exposed_line(url)),
        None => format!("nothing leads to port {port} any more"),
    };
    Piece::line(Style::Plain, text)
}

pub(super) fn summary(end: &StreamEnd) -> String {
    let mut parts = vec![reason(end.stop_reason).to_owned()];
    if end.partial {
        parts.push("the text is cut".to_owned());
    }
    parts.push(counted(u64::from(end.turns), "turn"));
    if end.tool_calls > 0 {
        parts.push(counted(u64::from(end.tool_calls), "call"));
    }
    if let Some(input) = end.usage.input_tokens {
        let cached = match end.usage.cache_read_tokens {
            Some(cached) if cached > 0 => format!(" ({} cached)", grouped(cached)),
            _ => String::new(),
        };
        parts.push(format!("{} tokens in{cached}", grouped(input)));
    }
    if let Some(output) = end.usage.output_tokens {
        parts.push(format!("{} out", grouped(output)));
    }
    if let Some(cost) = end.cost_usd.filter(|cost| *cost > Money::ZERO) {
        parts.push(format!("${:.4}", cost.dollars()));
    }
    parts.push(seconds(end.duration_ms));
    format!("── {}", parts.join(" · "))
}

/// Returns what a task took, for the end of its call's line.
pub(super) fn task(task: &TaskFacts) -> String {
    let mut parts = vec![
        counted(u64::from(task.turns), "turn"),
        counted(u64::from(task.tool_calls), "call"),
    ];
    if let Some(spent) = task.spent_usd.filter(|spent| *spent > Money::ZERO) {
        parts.push(format!("${:.4}", spent.dollars()));
    }
    parts.join(", ")
}

/// Answers that count for later calls, a line for each.
pub(super) fn remembered(it: &ApprovalRules) -> Vec<Piece> {
    if it.rules.is_empty() {
        return vec![Piece::line(Style::Dim, "no answer is remembered")];
    }
    let line = |rule: &ApprovalRule| {
        let (verdict, style) = match (rule.approved, rule.in_force) {
            (true, true) => ("approved", Style::Plain),
            (true, false) => ("approved, not in force", Style::Dim),
            (false, _) => ("denied", Style::Plain),
        };
        let mut text = format!(
            "{}  {verdict}  {}  {}",
            rule.rule_id,
            word(&rule.scope),
            one_line(&rule.matches, MESSAGE)
        );
        if let Some(reason) = &rule.reason {
            text.push_str(&format!("  ({})", one_line(reason, MESSAGE)));
        }
        Piece::line(style, text)
    };
    it.rules.iter().map(line).collect()
}

/// Which answers are forgotten.
pub(super) fn revoked(it: &ApprovalsRevoked) -> Piece {
    let text = match it.rule_ids.as_slice() {
        [] => "no answer has this scope".to_owned(),
        ids => format!("forgotten: {}", ids.join(", ")),
    };
    Piece::line(Style::Dim, text)
}

/// What the daemon remembers, a line for each message.
pub(super) fn history(history: &History) -> Vec<Piece> {
    match history.messages.as_slice() {
        [] => vec![Piece::line(Style::Dim, "nothing is remembered yet")],
        messages => messages.iter().flat_map(message).collect(),
    }
}

fn message(message: &WireMessage) -> Vec<Piece> {
    let parts = message.content.clone().into_parts();
    let text = parts.into_iter().map(|part| match part {
        Part::Text { text } => text,
        part => attachment(&part).unwrap_or_default(),
    });
    let text = one_line(&text.collect::<Vec<_>>().join(" "), MESSAGE);
    let (who, style) = match message.role {
        Role::User => ("you".to_owned(), Style::Bold),
        Role::Assistant => ("model".to_owned(), Style::Plain),
        Role::Tool => {
            let name = message.tool_name.as_deref().unwrap_or("tool");
            (one_line(name, MESSAGE), Style::Dim)
        }
    };
    let mut pieces = Vec::new();
    if !text.is_empty() {
        pieces.push(Piece::line(style, format!("{who}: {text}")));
    }
    pieces.extend(message.tool_calls.iter().map(|call| {
        let input = serde_json::Value::Object(call.input.clone()).to_string();
        let line = format!("▸ {} {}  {input}", call.id, call.name);
        Piece::line(Style::Cyan, one_line(&line, MESSAGE))
    }));
    pieces
}

pub(super) fn models(models: &Models) -> Vec<Piece> {
    if models.models.is_empty() {
        return vec![Piece::line(Style::Dim, "no models are known")];
    }
    let line = |model: &Model| {
        let window = model.context_window;
        let window = window.map(|window| format!("  {} tokens", grouped(window)));
        let provider = one_line(&model.provider, MESSAGE);
        let mut text = format!("{provider}  {}", one_line(&model.id, MESSAGE));
        text.push_str(&window.unwrap_or_default());
        if !model.supports_tools {
            text.push_str("  no tools");
        }
        Piece::line(Style::Plain, text)
    };
    models.models.iter().map(line).collect()
}

/// What the next request would hold: all of it, then each part.
pub(super) fn context(it: &ContextUse) -> Vec<Piece> {
    let mut all = format!("about {} tokens", grouped(it.used));
    if let Some(window) = it.window.filter(|window| *window > 0) {
        let share = it.used.saturating_mul(100) / window;
        all.push_str(&format!(" of {} ({share} %)", grouped(window)));
    }
    if let Some(at) = it.compact_at {
        all.push_str(&format!(", compacted from {} on", grouped(at)));
    }
    let part = |part: &ContextPart| {
        let mut text = format!("{:>11}  {}", grouped(part.tokens), word(&part.kind));
        if let Some(name) = &part.name {
            text.push_str(&format!(" {}", one_line(name, MESSAGE)));
        }
        if let Some(count) = part.count {
            text.push_str(&format!(" ({count})"));
        }
        Piece::line(Style::Plain, text)
    };
    let all = Piece::line(Style::Bold, all);
    std::iter::once(all)
        .chain(it.parts.iter().map(part))
        .collect()
}

/// The files that speak for the user, each with the beginning of its digest.
pub(super) fn told(files: &[InstructionFile]) -> Piece {
    if files.is_empty() {
        return Piece::line(Style::Dim, "no file speaks for you any more");
    }
    let name = |file: &InstructionFile| {
        let digest = file.sha256.get(..8).unwrap_or_default();
        format!("{} ({digest})", one_line(&file.path, MESSAGE))
    };
    let names: Vec<_> = files.iter().map(name).collect();
    let text = format!("the model is told, as your words: {}", names.join(", "));
    Piece::line(Style::Dim, text)
}

/// The skills, and what is no skill though it looks like one.
pub(super) fn skills(it: &SkillsListed) -> Vec<Piece> {
    if it.skills.is_empty() && it.problems.is_empty() {
        return vec![Piece::line(Style::Dim, "there are no skills")];
    }
    let skill = |skill: &SkillListed| {
        let mut text = format!(
            "{}  {}  {}",
            one_line(&skill.name, MESSAGE),
            one_line(&skill.folder, MESSAGE),
            one_line(&skill.description, MESSAGE)
        );
        if !skill.trusted {
            text.push_str("  (the model is told of it only after a yes of yours)");
        }
        Piece::line(Style::Plain, text)
    };
    let problems = it.problems.iter();
    let problems = problems.map(|it| Piece::line(Style::Yellow, one_line(it, MESSAGE)));
    it.skills.iter().map(skill).chain(problems).collect()
}

pub(super) fn providers(providers: &Providers) -> Vec<Piece> {
    let line = |provider: &ProviderInfo| {
        let mark = if provider.default { "*" } else { " " };
        let missing = match provider.configured {
            true => "",
            false => "  not configured",
        };
        let (id, kind, url) = (&provider.id, &provider.kind, &provider.base_url);
        let text = format!("{mark} {id}  {kind}  {url}{missing}");
        Piece::line(Style::Plain, exposed(&text))
    };
    providers.providers.iter().map(line).collect()
}

/// The values now in force.
pub(super) fn configured(configured: &Configured) -> Piece {
    let model = match (configured.model.as_str(), &configured.provider_model) {
        ("", Some(own)) => own,
        ("", None) => "its own model",
        (model, _) => model,
    };
    let trust = word(&configured.trust_level);
    let mut text = format!("{}, {model}, {trust}", configured.provider);
    if !configured.workflow.is_empty() {
        text.push_str(&format!(", workflow {}", configured.workflow));
    }
    Piece::line(Style::Dim, exposed(&text))
}

fn reason(reason: StopReason) -> &'static str {
    match reason {
        StopReason::EndTurn => "done",
        StopReason::MaxTokens => "cut at the limit of output tokens",
        StopReason::StopSequence => "stop sequence",
        StopReason::Refusal => "the model refused",
        StopReason::ContentFilter => "stopped by the provider's filter",
        StopReason::Cancelled => "cancelled",
        StopReason::Timeout => "out of time",
        StopReason::MaxTurns => "limit of turns",
        StopReason::ContextBudget => "context nearly full",
        StopReason::Budget => "a cap on money is reached",
        StopReason::SandboxViolation => "sandbox violation",
        StopReason::Error => "failed",
    }
}

fn counted(count: u64, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}

/// A number with commas between its thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    let groups: Vec<_> = groups.map(String::from_utf8_lossy).collect();
    groups.join(",")
}
