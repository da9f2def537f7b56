//! How a request has a model think, within what it accepts.

use serde_json::{Value, json};

use super::capabilities::{Capabilities, Mode};
use crate::message::{Effort, Thinking};
use crate::provider::request::without_nulls;

/// Fewest tokens a budget may have (`docs/providers.md`, "Anthropic: thinking").
const MIN_BUDGET: u64 = 1024;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Plan {
    /// The mode that is sent, with the budget of [`Mode::Enabled`].
    pub(super) mode: Option<(Mode, u64)>,
    pub(super) effort: Option<Effort>,
}

impl Plan {
    /// Chooses for `wanted`, of which nothing means the model's own way. A model that cannot but think is told to do so at low effort where no thinking is wanted.
    pub(super) fn new(
        wanted: Option<Thinking>,
        capabilities: &Capabilities,
        max_tokens: u64,
    ) -> Self {
        let takes = |mode: &Mode| capabilities.takes(*mode);
        let by_default = capabilities.thinks_by_default && takes(&Mode::Adaptive);
        let mut effort = wanted.and_then(|thinking| thinking.effort);
        let mode = match wanted {
            // Said only to see the thinking, which newer models keep to themselves by default.
            None => by_default.then_some((Mode::Adaptive, 0)),
            Some(Thinking { enabled: false, .. }) => {
                let off = [Mode::Disabled, Mode::BetweenTools].into_iter().find(takes);
                if off.is_none() && by_default {
                    effort = effort.or(Some(Effort::Low));
                }
                off.or(by_default.then_some(Mode::Adaptive))
                    .map(|mode| (mode, 0))
            }
            Some(_) if takes(&Mode::Adaptive) => Some((Mode::Adaptive, 0)),
            Some(thinking) if takes(&Mode::Enabled) => {
                budget(thinking, max_tokens).map(|budget| (Mode::Enabled, budget))
            }
            Some(_) => None,
        };
        Self {
            mode,
            effort: effort.filter(|effort| capabilities.efforts.contains(effort)),
        }
    }

    /// Whether the model thinks by what is set here, which rules a temperature out.
    pub(super) fn thinks(&self) -> bool {
        matches!(self.mode, Some((Mode::Adaptive | Mode::Enabled, _)))
    }

    /// Turns thinking off for a reply begun without it: with a budget, each turn of a tool loop has
    /// to begin with thinking (`docs/providers.md`, "Anthropic: thinking goes back").
    pub(super) fn without_budget(mut self, capabilities: &Capabilities) -> Self {
        if matches!(self.mode, Some((Mode::Enabled, _))) {
            self.mode = capabilities
                .takes(Mode::Disabled)
                .then_some((Mode::Disabled, 0));
        }
        self
    }

    pub(super) fn field(&self) -> Option<Value> {
        let (mode, budget) = self.mode?;
        Some(without_nulls(json!({
            "type": mode,
            "budget_tokens": (mode == Mode::Enabled).then_some(budget),
            // A summary, which newer models keep to themselves by default.
            "display": (mode == Mode::Adaptive).then_some("summarized"),
        })))
    }
}

fn budget(thinking: Thinking, max_tokens: u64) -> Option<u64> {
    if max_tokens <= MIN_BUDGET {
        return None;
    }
    let wanted = match (thinking.budget_tokens, thinking.effort) {
        (Some(tokens), _) => u64::from(tokens),
        (None, Some(Effort::Low)) => 4_096,
        (None, Some(Effort::Medium) | None) => 10_000,
        (None, Some(Effort::High)) => 24_000,
    };
    // The budget is part of the answer's tokens; half of them are left for the answer itself.
    let fitting = if wanted < max_tokens {
        wanted
    } else {
        max_tokens / 2
    };
    Some(fitting.max(MIN_BUDGET))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thinking(enabled: bool, budget_tokens: Option<u32>, effort: Option<Effort>) -> Thinking {
        Thinking {
            enabled,
            budget_tokens,
            effort,
        }
    }

    #[test]
    fn modes_and_budgets() {
        let on = Some(thinking(true, None, None));
        let hard = Some(thinking(true, Some(5_000), Some(Effort::High)));
        let off = Some(thinking(false, None, None));
        let adaptive = json!({"type": "adaptive", "display": "summarized"});
        let enabled = |budget: u64| json!({"type": "enabled", "budget_tokens": budget});
        let disabled = json!({"type": "disabled"});
        // Model, what is wanted, most tokens; the `thinking` field and the effort.
        let cases = [
            ("claude-opus-5-5", None, 9_000, Some(adaptive.clone()), None),
            ("claude-opus-4-7", None, 9_000, None, None),
            ("claude-sonnet-4-5", None, 9_000, None, None),
            ("claude-opus-5-5", on, 9_000, Some(adaptive.clone()), None),
            (
                "claude-opus-5-5",
                hard,
                9_000,
                Some(adaptive.clone()),
                Some(Effort::High),
            ),
            (
                "claude-opus-4-6",
                hard,
                9_000,
                Some(adaptive.clone()),
                Some(Effort::High),
            ),
            (
                "claude-opus-4-5",
                hard,
                9_000,
                Some(enabled(5_000)),
                Some(Effort::High),
            ),
            ("claude-sonnet-4-5", hard, 9_000, Some(enabled(5_000)), None),
            ("claude-sonnet-4-5", hard, 5_000, Some(enabled(2_500)), None),
            ("claude-sonnet-4-5", hard, 1_500, Some(enabled(1_024)), None),
            ("claude-sonnet-4-5", hard, 1_024, None, None),
            ("claude-sonnet-4-5", on, 64_000, Some(enabled(10_000)), None),
            ("claude-3-5-haiku", on, 8_000, None, None),
            (
                "claude-opus-5-5",
                off,
                9_000,
                Some(adaptive),
                Some(Effort::Low),
            ),
            (
                "claude-sonnet-5-5",
                off,
                9_000,
                Some(json!({"type": "between_tools"})),
                None,
            ),
            ("claude-opus-5", off, 9_000, Some(disabled.clone()), None),
            ("claude-sonnet-4-5", off, 9_000, Some(disabled), None),
            ("claude-3-5-haiku", off, 8_000, None, None),
            ("deepseek-v4-pro", on, 8_192, Some(enabled(4_096)), None),
        ];
        for (model, wanted, max_tokens, field, effort) in cases {
            let plan = Plan::new(wanted, &Capabilities::by_name(model), max_tokens);
            assert_eq!(plan.field(), field, "{model} {wanted:?} {max_tokens}");
            assert_eq!(plan.effort, effort, "{model} {wanted:?}");
        }
    }

    #[test]
    fn a_budget_is_taken_back() {
        let capabilities = Capabilities::by_name("claude-sonnet-4-5");
        let plan = Plan::new(Some(thinking(true, None, None)), &capabilities, 64_000);
        assert!(plan.thinks());
        let plan = plan.without_budget(&capabilities);
        assert_eq!(plan.field(), Some(json!({"type": "disabled"})));
        assert!(!plan.thinks());
    }
}
