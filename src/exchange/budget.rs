//! How full the model's window is, and when that is too much. Pure.

use crate::message::{Document, Message, Part, Reply, ToolSpec, Usage};
use crate::protocol::event::Context;
use crate::protocol::json_bytes;

/// Bytes that make a token, roughly, where the provider has not counted yet.
pub(crate) const BYTES_PER_TOKEN: usize = 3;

/// Tokens that a picture costs, roughly.
const IMAGE_TOKENS: u64 = 1_600;

/// The part of a window that what is kept free for an answer takes at most.
const RESERVED: u64 = 4;

/// The most tokens that are kept free for an answer because the model may give so many: models that may give 128,000 hardly do.
const MAX_OUTPUT: u64 = 20_000;

/// What is kept free beside that, since estimates err: a twentieth of the window, and at most so many tokens.
const SAFETY: (u64, u64) = (20, 13_000);

/// How far an estimate may be off before a provider has counted, in thousandths: half and double.
const RATIO: (u64, u64) = (500, 2_000);

/// The share of a window that an overflow shows it to have, of what did not fit, in tenths.
const LEARNT: u64 = 9;

/// How many tokens the next request of a conversation holds: what its provider counted last, and an estimate of what came since.
///
/// It takes the estimate of all that is sent, which its owner keeps, so that no message is looked at again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gauge {
    counted: Option<Counted>,
    /// What a provider counted of what was estimated, in thousandths.
    ratio: Option<u64>,
    /// The model whose window an overflow showed, and that window.
    learnt: Option<(String, u64)>,
    /// The model of the last request.
    model: String,
}

/// A count, and what was estimated of the same.
#[derive(Clone, Copy, Debug)]
struct Counted {
    tokens: u64,
    estimated: u64,
}

impl Gauge {
    /// Returns the tokens of what is estimated at so many.
    pub(crate) fn used(&self, estimated: u64) -> u64 {
        match self.counted {
            Some(counted) => {
                let since = estimated.saturating_sub(counted.estimated);
                let removed = counted.estimated.saturating_sub(estimated);
                let used = counted.tokens.saturating_add(self.calibrated(since));
                used.saturating_sub(self.calibrated(removed))
            }
            None => self.calibrated(estimated),
        }
    }

    /// Takes the provider's own figures for a turn whose request is estimated at `sent` tokens, and with the answer at
    /// `estimated`. What is counted beside the answer that is kept, such as reasoning, is no measure of an estimate; and a
    /// server that leaves out what it had in a cache is not believed.
    pub(crate) fn count(&mut self, usage: &Usage, sent: u64, estimated: u64) {
        self.counted = usage.input.map(|input| {
            let tokens = input.saturating_add(usage.output.unwrap_or(0));
            let ratio = input.saturating_mul(1_000) / sent.max(1);
            self.ratio = Some(ratio.clamp(RATIO.0, RATIO.1));
            let least = (estimated / 1_000).saturating_mul(RATIO.0);
            let tokens = tokens.max(least);
            // The window is larger than an overflow had made believe.
            self.learnt.take_if(|(_, window)| tokens > *window);
            Counted { tokens, estimated }
        });
    }

    /// Forgets what was counted: something else is sent from now on.
    pub(crate) fn forget(&mut self) {
        self.counted = None;
    }

    /// Notes the model of a request; returns whether it is another one than before.
    pub(crate) fn is_other_model(&mut self, model: &str) -> bool {
        let is_other = !self.model.is_empty() && self.model != model;
        if self.model != model {
            model.clone_into(&mut self.model);
        }
        is_other
    }

    /// Learns from an answer that says that so many tokens, those that were asked for among them, do not fit.
    pub(crate) fn overflowed(&mut self, model: &str, used: u64) {
        self.learnt = Some((model.to_owned(), (used / 10).saturating_mul(LEARNT).max(1)));
    }

    /// Returns the window of a model by what is known of it and what was learnt.
    pub(crate) fn window(&self, model: &str, known: Option<u64>) -> Option<u64> {
        let learnt = self.learnt.as_ref().filter(|(of, _)| of == model);
        let learnt = learnt.map(|(_, window)| *window);
        [known, learnt].into_iter().flatten().min()
    }

    /// Returns the estimate of what a provider would count as so many tokens.
    pub(crate) fn estimated(&self, tokens: u64) -> u64 {
        self.ratio.map_or(tokens, |ratio| {
            tokens / ratio * 1_000 + tokens % ratio * 1_000 / ratio
        })
    }

    fn calibrated(&self, estimated: u64) -> u64 {
        self.ratio.map_or(estimated, |ratio| {
            (estimated / 1_000)
                .saturating_mul(ratio)
                .saturating_add(estimated % 1_000 * ratio / 1_000)
        })
    }
}

/// The parts of a window, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shares {
    pub window: u64,
    /// What is kept free for the last answer.
    reserve: u64,
    /// From so many on a conversation is compacted.
    pub trigger: u64,
    /// What a compaction brings it down to.
    pub target: u64,
    /// What the system prompt and the tools take, which nothing makes less.
    pub head: u64,
}

/// What the parts of a window depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Tokens that are to be kept free for the last answer.
    pub reserve: u64,
    /// The most tokens of an answer.
    pub output: u64,
    /// From which hundredth of the window on a conversation is compacted, and which hundredth of that is to be left.
    pub at: u64,
    pub target: u64,
}

impl Shares {
    pub(crate) fn new(window: u64, head: u64, wanted: Wanted) -> Self {
        let most = window / RESERVED;
        let reserve = wanted.output.min(MAX_OUTPUT).max(wanted.reserve).min(most);
        let safety = (window / SAFETY.0).min(SAFETY.1);
        let limit = window - reserve - safety;
        let trigger = limit.min(percent(window, wanted.at));
        Self {
            window,
            reserve: wanted.reserve.min(most),
            trigger,
            target: percent(trigger, wanted.target),
            head,
        }
    }

    /// Returns whether the model has to answer now, with nothing to call.
    pub(crate) fn is_spent(&self, used: u64) -> bool {
        used.saturating_add(self.reserve) >= self.window
    }

    /// Returns the most tokens that a request may hold after a compaction: else the next one would follow at once.
    pub(crate) fn most(&self) -> u64 {
        percent(self.trigger, 65)
    }

    /// Returns what is left of that for messages.
    pub(crate) fn room(&self) -> u64 {
        self.most().saturating_sub(self.head)
    }

    /// Returns whether so much is taken by the system prompt and the tools that no compaction helps.
    pub(crate) fn is_head_too_large(&self) -> bool {
        self.head > self.trigger / 2
    }

    /// Returns a share of the window, in hundredths.
    pub(crate) fn share(&self, percents: u64) -> u64 {
        percent(self.window, percents)
    }

    pub(crate) fn context(window: Option<u64>, used: u64) -> Context {
        Context {
            used,
            window,
            remaining: window.map(|window| window.saturating_sub(used)),
        }
    }
}

fn percent(of: u64, percents: u64) -> u64 {
    of / 100 * percents + of % 100 * percents / 100
}

pub(crate) fn estimate_head(system: &str, tools: &[ToolSpec]) -> u64 {
    let tools: usize = tools
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + tool.input_schema.to_string().len())
        .sum();
    text_tokens(system.len() + tools)
}

pub(crate) fn estimate(messages: &[Message]) -> u64 {
    messages.iter().map(message_tokens).sum()
}

pub(crate) fn message_tokens(message: &Message) -> u64 {
    match message {
        Message::User(parts) => estimate_parts(parts),
        Message::ToolResult(result) => estimate_parts(&result.content),
        Message::Reply(reply) => estimate_reply(reply),
    }
}

pub(crate) fn estimate_reply(reply: &Reply) -> u64 {
    let inputs: usize = reply.calls.iter().map(|call| json_bytes(&call.input)).sum();
    let said = reply.text.len() + reply.thinking.len() + inputs;
    // What only its provider can read is as long as that.
    let opaque = reply.native.as_ref().filter(|_| said == 0);
    text_tokens(said + opaque.map_or(0, |native| json_bytes(&native.items)))
}

pub(crate) fn estimate_parts(parts: &[Part]) -> u64 {
    parts
        .iter()
        .map(|part| match part {
            Part::Text { text } => text_tokens(text.len()),
            Part::Image { .. } => IMAGE_TOKENS,
            Part::Document(document) => document_tokens(document),
        })
        .sum()
}

/// Returns about how many tokens a document costs: its text, and where it has none each of its pages as a picture.
///
/// A provider that takes PDFs shows the model each page as a picture besides, which its own count tells after the first
/// turn. Before it too few are better than too many: a model with a small window gets the text alone.
fn document_tokens(document: &Document) -> u64 {
    let pages = document.pages.map_or(1, u64::from);
    match document.text().trim().is_empty() {
        true => pages.saturating_mul(IMAGE_TOKENS),
        false => text_tokens(document.text().len()),
    }
}

/// Returns about how many tokens a text of so many bytes has.
pub(crate) fn text_tokens(bytes: usize) -> u64 {
    (bytes / BYTES_PER_TOKEN) as u64 + 1
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::message::{DangerLevel, ToolCall, ToolCategory, ToolId};

    #[test]
    fn everything_that_is_sent_is_counted() {
        let tool = ToolSpec {
            name: "name".to_owned(),
            description: "d".repeat(300),
            input_schema: json!({"properties": {"x".repeat(300): {}}}).into(),
            category: ToolCategory::Mcp,
            danger_level: DangerLevel::Safe,
            origin: "core".to_owned(),
        };
        assert_eq!(estimate_head("", &[]), 1);
        assert!(estimate_head(&"s".repeat(300), &[]) > 100);
        assert!(estimate_head("", &[tool]) > 200);

        let list: Vec<&str> = vec!["item"; 100];
        let call = ToolCall {
            id: ToolId::new("t1"),
            provider_call_id: None,
            name: "f".to_owned(),
            input: json!({ "list": list }).as_object().cloned().unwrap(),
        };
        for reply in [
            Reply {
                thinking: "t".repeat(600),
                ..Reply::default()
            },
            Reply {
                calls: vec![call],
                ..Reply::default()
            },
        ] {
            assert!(estimate(&[Message::Reply(reply)]) > 200);
        }
    }

    fn usage(input: Option<u64>, output: u64) -> Usage {
        Usage {
            input,
            output: Some(output),
            ..Usage::default()
        }
    }

    const WANTED: Wanted = Wanted {
        reserve: 8_192,
        output: 8_192,
        at: 80,
        target: 50,
    };

    #[test]
    fn what_was_counted_counts_and_what_came_since_is_estimated_by_it() {
        let mut gauge = Gauge::default();
        assert_eq!(gauge.used(900), 900);
        gauge.count(&usage(Some(1_200), 300), 1_000, 1_100);
        assert_eq!(gauge.used(1_100), 1_500);
        assert_eq!(gauge.used(1_200), 1_620);
        assert_eq!(gauge.used(1_000), 1_380);
        gauge.forget();
        assert_eq!(gauge.used(1_500), 1_800);
        // Nobody is so far off: something else was counted.
        for (input, used) in [(0, 500), (100_000, 2_000)] {
            gauge.count(&usage(Some(input), 0), 1_000, 1_000);
            gauge.forget();
            assert_eq!(gauge.used(1_000), used);
        }
        gauge.count(&usage(Some(3), 0), 10_000, 10_000);
        assert_eq!(gauge.used(10_000), 5_000);
        gauge.count(&usage(None, 5), 1_000, 1_000);
        assert_eq!(gauge.used(10), 5);
    }

    #[test]
    fn no_figure_of_a_client_or_a_provider_is_too_large() {
        let mut gauge = Gauge::default();
        gauge.count(&usage(Some(u64::MAX), u64::MAX), u64::MAX, u64::MAX);
        assert_eq!(gauge.used(u64::MAX), u64::MAX);
        gauge.overflowed("m", u64::MAX);
        let window = gauge.window("m", None).unwrap();
        let wanted = Wanted {
            reserve: u64::MAX,
            output: u64::MAX,
            ..WANTED
        };
        let shares = Shares::new(window, u64::MAX, wanted);
        assert!(shares.is_spent(u64::MAX));
        assert!(shares.is_head_too_large());
        let shares = Shares::new(0, 0, WANTED);
        assert_eq!((shares.trigger, shares.room()), (0, 0));
        assert!(shares.is_spent(0));
    }

    #[test]
    fn a_large_reserve_leaves_room_for_tools() {
        for (window, used, is_spent) in [
            (8_192, 0, false),
            (8_192, 6_000, false),
            (8_192, 6_200, true),
            (1_000_000, 900_000, false),
            (1_000_000, 992_000, true),
        ] {
            let shares = Shares::new(window, 0, WANTED);
            assert_eq!(shares.is_spent(used), is_spent, "{window} {used}");
        }
    }

    #[test]
    fn the_trigger_leaves_room_for_an_answer_and_errors_of_the_estimate() {
        for (window, at, trigger) in [
            (200_000, 80, 160_000),
            // 200,000 less 8,192 and a twentieth.
            (200_000, 99, 181_808),
            (8_000, 80, 5_600),
            (1_000_000, 100, 978_808),
        ] {
            let wanted = Wanted { at, ..WANTED };
            assert_eq!(
                Shares::new(window, 0, wanted).trigger,
                trigger,
                "{window} {at}"
            );
        }
    }

    #[test]
    fn a_window_is_what_is_known_or_less_where_an_overflow_showed_it() {
        let mut gauge = Gauge::default();
        assert_eq!(gauge.window("m", None), None);
        assert_eq!(gauge.window("m", Some(1_000)), Some(1_000));
        gauge.overflowed("m", 500);
        assert_eq!(gauge.window("m", None), Some(450));
        assert_eq!(gauge.window("m", Some(1_000)), Some(450));
        assert_eq!(gauge.window("other", Some(1_000)), Some(1_000));
        gauge.count(&usage(Some(449), 1), 450, 450);
        assert_eq!(gauge.window("m", None), Some(450));
        gauge.count(&usage(Some(451), 0), 450, 450);
        assert_eq!(gauge.window("m", None), None);
    }
}
