//! Where the window of a conversation's model goes: the tokens of its next request, by part.

use std::collections::BTreeMap;

use super::budget::{estimate_head, estimate_parts, message_tokens};
use super::context::{Context, Setup};
use super::offer::ToolOffer;
use super::window::{shares, used};
use crate::message::{Message, ToolSpec};
use crate::protocol::context::{ContextKind, ContextPart, ContextUse};

/// Returns what the next request of a conversation would hold.
pub(crate) fn context_use(setup: &Setup, context: &Context) -> ContextUse {
    let offer = ToolOffer::now(setup, context, None);
    let used = used(context, &offer);
    let shares = shares(setup, context, &offer);
    let history = context.conversation.history.view();
    let mut parts = vec![part(
        ContextKind::System,
        estimate_head(&setup.system, &[]),
        None,
    )];
    parts.extend(tools(&offer.specs));
    let instructions = &context.conversation.instructions;
    parts.extend(
        instructions
            .parts()
            .into_iter()
            .map(|(kind, name, said)| ContextPart {
                name: Some(name),
                ..part(kind, estimate_parts(&[said]), None)
            }),
    );
    let is_result = |message: &&Message| matches!(message, Message::ToolResult(_));
    let (results, said): (Vec<_>, Vec<_>) = history.iter().partition(is_result);
    for (kind, messages) in [
        (ContextKind::History, said),
        (ContextKind::Results, results),
    ] {
        let tokens = messages.iter().map(|it| message_tokens(it)).sum();
        parts.push(part(kind, tokens, Some(messages.len())));
    }
    ContextUse {
        conversation_id: context.conversation.id.clone(),
        provider: setup.provider_id.clone(),
        model: setup.model.clone(),
        used,
        window: shares.map(|shares| shares.window),
        compact_at: shares
            .filter(|_| setup.compact_at.is_some())
            .map(|it| it.trigger),
        parts: scaled(parts, used),
    }
}

fn part(kind: ContextKind, tokens: u64, count: Option<usize>) -> ContextPart {
    ContextPart {
        kind,
        name: None,
        tokens,
        count: count.map(|count| count as u64),
    }
}

/// Returns what the tools of each origin take.
fn tools(specs: &[ToolSpec]) -> Vec<ContextPart> {
    let mut origins: BTreeMap<&str, Vec<ToolSpec>> = BTreeMap::new();
    for spec in specs {
        origins.entry(&spec.origin).or_default().push(spec.clone());
    }
    let of = |(origin, specs): (&str, Vec<ToolSpec>)| ContextPart {
        name: Some(origin.to_owned()),
        ..part(
            ContextKind::Tools,
            estimate_head("", &specs),
            Some(specs.len()),
        )
    };
    origins.into_iter().map(of).collect()
}

/// Has estimated parts be together what the provider counts; the largest one takes what rounding leaves.
fn scaled(mut parts: Vec<ContextPart>, used: u64) -> Vec<ContextPart> {
    let all: u64 = parts.iter().map(|part| part.tokens).sum();
    let mut left = used;
    for part in &mut parts {
        let share = u128::from(part.tokens) * u128::from(used) / u128::from(all.max(1));
        part.tokens = u64::try_from(share).unwrap_or(u64::MAX).min(left);
        left -= part.tokens;
    }
    if let Some(largest) = parts.iter_mut().max_by_key(|part| part.tokens) {
        largest.tokens += left;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_together_what_is_used() {
        for (tokens, used, expected) in [
            (vec![1, 2, 3], 12, vec![2, 4, 6]),
            (vec![1, 1, 1], 10, vec![3, 3, 4]),
            (vec![0, 0], 0, vec![0, 0]),
            (vec![u64::MAX / 2, 1], 5, vec![5, 0]),
        ] {
            let parts = tokens
                .iter()
                .map(|it| part(ContextKind::History, *it, None));
            let scaled = scaled(parts.collect(), used);
            let scaled: Vec<u64> = scaled.iter().map(|it| it.tokens).collect();
            assert_eq!(scaled, expected);
        }
    }
}
