//! The one place where tokens and cost are counted: for the exchange, its session, the caps, the figures and the store.

use std::sync::Arc;

use outrigger_store::UsageTokens;
use parking_lot::Mutex;

use super::context::{Context, Services, SessionContext, Setup};
use super::tasks::Tasks;
use crate::message::{ConversationId, MessageId, Model, Money, Notice, Pricing, Severity, Usage};
use crate::protocol::budget::BudgetUse;
use crate::protocol::event::Event;
use crate::provider::models;
use crate::spend::{Account, Caps, Owners, Reservation, Warning};
use crate::telemetry::metrics;

/// What a request to a model was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A turn of an exchange.
    Turn,
    /// A turn of a task.
    Task,
    /// A session's title.
    Title,
    /// A summary of what was said.
    Compaction,
    /// An answer that an MCP server asked for.
    Sampling,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Task => "task",
            Self::Title => "title",
            Self::Compaction => "compaction",
            Self::Sampling => "sampling",
        }
    }
}

/// The sum so far. It is a price only while every turn's part is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Cost {
    sum: Option<Money>,
    incomplete: bool,
}

impl Cost {
    /// Adds a turn. One without figures, or of a model without prices, makes the sum unknown.
    pub(crate) fn add(&mut self, usage: &Usage, pricing: Option<&Pricing>) {
        match (usage.input, usage.output, pricing) {
            (Some(_), Some(_), Some(pricing)) => {
                let cost = models::cost(usage, pricing);
                self.sum = Some(self.sum.unwrap_or_default().plus(cost));
            }
            _ => self.incomplete = true,
        }
    }

    pub(crate) fn add_unknown(&mut self) {
        self.incomplete = true;
    }

    /// Adds another sum; the whole is known while both are.
    fn plus(self, other: Self) -> Self {
        let sums = self.sum.into_iter().chain(other.sum);
        Self {
            sum: sums.reduce(Money::plus),
            incomplete: self.incomplete || other.incomplete,
        }
    }

    /// Returns the sum; `None` where nothing was priced, or not all of it.
    pub(crate) fn whole(&self) -> Option<Money> {
        self.sum.filter(|_| !self.incomplete)
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spent {
    pub usage: Usage,
    pub cost: Cost,
    /// What counts against caps: also what is estimated. `None` where nothing has a price.
    pub counted: Option<Money>,
    /// Whether a part of that is estimated.
    pub estimated: bool,
}

impl Spent {
    fn plus(self, other: Self) -> Self {
        let counted = self.counted.into_iter().chain(other.counted);
        Self {
            usage: self.usage.plus(other.usage),
            cost: self.cost.plus(other.cost),
            counted: counted.reduce(Money::plus),
            estimated: self.estimated || other.estimated,
        }
    }

    pub(super) fn add(&mut self, request: &Answered<'_>) {
        let pricing = request.model.pricing.as_ref();
        match request.is_broken {
            true => self.cost.add_unknown(),
            false => {
                self.usage = self.usage.plus(*request.usage);
                self.cost.add(request.usage, pricing);
            }
        }
        if let Some(cost) = request.cost() {
            self.counted = Some(self.counted.unwrap_or_default().plus(cost));
            self.estimated |= request.is_estimated();
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Totals(Mutex<Spent>);

impl Totals {
    /// Returns what was used so far.
    pub(crate) fn usage(&self) -> Usage {
        self.0.lock().usage
    }

    /// Writes what was used to the log, where something was.
    pub(crate) fn log(&self) {
        let Spent { usage, cost, .. } = *self.0.lock();
        if usage != Usage::default() {
            let (input, output) = (usage.input, usage.output);
            tracing::info!(
                whose = "session",
                input,
                output,
                cost_usd = cost.whole().map(Money::dollars),
                "used in all"
            );
        }
    }
}

/// A request to a model that was answered, if only in part.
pub(crate) struct Answered<'a> {
    pub kind: Kind,
    pub conversation: &'a ConversationId,
    /// Whose it was; `None` for none.
    pub exchange: Option<&'a MessageId>,
    pub provider_id: &'a str,
    pub model: &'a Model,
    /// What the provider counted.
    pub usage: &'a Usage,
    /// About how many tokens of input and output it took, where the provider does not say.
    pub estimate: (u64, u64),
    /// Whether it broke off: it is billed, and nobody says how much.
    pub is_broken: bool,
}

impl Answered<'_> {
    fn is_estimated(&self) -> bool {
        self.usage.input.is_none() || self.usage.output.is_none()
    }

    /// Returns what the provider counted, and else the estimate.
    fn counted(&self) -> Usage {
        let (input, output) = self.estimate;
        Usage {
            input: self.usage.input.or(Some(input)),
            output: self.usage.output.or(Some(output)),
            ..*self.usage
        }
    }

    /// Returns what it counts against caps; `None` where the model has no price.
    fn cost(&self) -> Option<Money> {
        let pricing = self.model.pricing.as_ref()?;
        Some(models::cost(&self.counted(), pricing))
    }
}

/// Counts a request of whatever kind: for the session, the caps, the figures and the store. Once for each.
pub(crate) fn count(
    request: &Answered<'_>,
    caps: &Caps,
    reserved: Option<Reservation>,
    session: &SessionContext,
    services: &Services,
) {
    session.totals.0.lock().add(request);
    let cost = request.cost();
    for (kind, count) in [
        ("input", request.usage.input),
        ("output", request.usage.output),
        ("cache_read", request.usage.cache_read),
        ("cache_write", request.usage.cache_write),
    ] {
        if let Some(count) = count {
            metrics::tokens(request.provider_id, kind, count);
        }
    }
    if let Some(cost) = cost {
        metrics::spent(request.provider_id, request.kind.as_str(), cost.micros());
        // In one step with what was reserved, so that nobody sees both.
        let warnings = match reserved {
            Some(reserved) => reserved.spend(cost),
            None => caps.add(cost),
        };
        for warning in warnings {
            warn(&warning, session);
        }
    }
    let counted = request.counted();
    session.journal.used(outrigger_store::Usage {
        at_ms: services.spend.now().as_millisecond(),
        conversation: request.conversation.to_string(),
        exchange: request
            .exchange
            .map(ToString::to_string)
            .unwrap_or_default(),
        kind: request.kind.as_str().to_owned(),
        provider: request.provider_id.to_owned(),
        model: request.model.id.clone(),
        tokens: UsageTokens {
            input: counted.input.unwrap_or(0),
            cache_read: counted.cache_read.unwrap_or(0),
            cache_write: counted.cache_write.unwrap_or(0),
            output: counted.output.unwrap_or(0),
        },
        micros: cost.map(Money::micros),
        estimated: request.is_estimated(),
    });
}

/// Tells the client, and the log, that most of a cap is spent.
fn warn(warning: &Warning, session: &SessionContext) {
    let Warning { scope, stand } = warning;
    let message = format!(
        "{} of {} are spent of what {} may cost",
        stand.spent,
        stand.limit,
        scope.words()
    );
    tracing::warn!(?scope, "{message}");
    session.events.emit(Event::SessionNotice(Notice {
        severity: Severity::Warning,
        code: "budget_warning".to_owned(),
        message,
    }));
}

pub(crate) struct Ledger<'a> {
    context: &'a Context,
    setup: &'a Setup,
    spent: Spent,
    /// The sums of the exchange itself: the account that its cap is for, and its tasks.
    pub account: Arc<Account>,
    pub tasks: Arc<Tasks>,
    /// What its requests count against.
    pub caps: Caps,
    /// What the request that runs is expected to cost.
    pub reserved: Option<Reservation>,
}

impl<'a> Ledger<'a> {
    pub(crate) fn new(context: &'a Context, setup: &'a Setup) -> Self {
        let account = Arc::new(Account::limited(setup.max_cost));
        let within = context.conversation.within.as_ref();
        let (task, exchange) = match within {
            Some(within) => (Some(&account), &within.account),
            None => (None, &account),
        };
        let owners = Owners {
            task,
            exchange: Some(exchange),
            conversation: Some(&context.conversation.account),
            session: &context.session.account,
            provider: &setup.provider_id,
        };
        let locked = &context.services.config().session;
        let caps = context
            .services
            .spend
            .caps(owners, |key| locked.is_locked(key));
        Self {
            context,
            setup,
            spent: Spent::default(),
            account,
            tasks: Arc::default(),
            caps,
            reserved: None,
        }
    }

    /// Returns what the exchange took of models, its tasks included.
    pub(crate) fn total(&self) -> Spent {
        self.spent.plus(self.tasks.spent())
    }

    /// Adds a turn that ended well; `estimate` is about what input and output it took, where the provider does not say.
    pub(crate) fn add_turn(&mut self, usage: &Usage, model: &Model, estimate: (u64, u64)) {
        let output = usage.output.unwrap_or(estimate.1);
        self.context.conversation.outputs.lock().add(output);
        self.add(Kind::Turn, usage, model, estimate, false);
    }

    /// Adds a turn that broke off: it is billed, and nobody says how much.
    pub(crate) fn add_broken_turn(&mut self, model: &Model, input: u64, output: u64) {
        let unknown = Usage::default();
        self.add(Kind::Turn, &unknown, model, (input, output), true);
    }

    /// Adds a request of the exchange.
    pub(crate) fn add(
        &mut self,
        kind: Kind,
        usage: &Usage,
        model: &Model,
        estimate: (u64, u64),
        is_broken: bool,
    ) {
        let within = self.context.conversation.within.as_ref();
        let kind = match kind {
            Kind::Turn if within.is_some() => Kind::Task,
            kind => kind,
        };
        let request = answered(
            (self.context, self.setup),
            kind,
            usage,
            model,
            estimate,
            is_broken,
        );
        self.spent.add(&request);
        if let Some(within) = within {
            within.tasks.add(&request);
        }
        let Context {
            services, session, ..
        } = self.context;
        let reserved = self.reserved.take();
        count(&request, &self.caps, reserved, session, services);
    }

    /// Adds a request that one of its calls made while it ran.
    pub(crate) fn add_of_call(
        &self,
        usage: &Usage,
        model: &Model,
        estimate: (u64, u64),
        is_broken: bool,
        reserved: Option<Reservation>,
    ) {
        let request = answered(
            (self.context, self.setup),
            Kind::Sampling,
            usage,
            model,
            estimate,
            is_broken,
        );
        self.tasks.add(&request);
        if let Some(within) = &self.context.conversation.within {
            within.tasks.add(&request);
        }
        let Context {
            services, session, ..
        } = self.context;
        count(&request, &self.caps, reserved, session, services);
    }

    /// Returns how much is spent of the user's cap of which least is left.
    pub(crate) fn budget_use(&self) -> Option<BudgetUse> {
        let (scope, stand) = self.caps.tightest_own()?;
        Some(BudgetUse {
            scope,
            spent_usd: stand.spent,
            limit_usd: stand.limit,
        })
    }
}

/// Returns a request of an exchange, for whom it counts.
fn answered<'r>(
    (context, setup): (&'r Context, &'r Setup),
    kind: Kind,
    usage: &'r Usage,
    model: &'r Model,
    estimate: (u64, u64),
    is_broken: bool,
) -> Answered<'r> {
    let (conversation, exchange) = context.owner(&setup.message_id);
    Answered {
        kind,
        conversation,
        exchange: Some(exchange),
        provider_id: &setup.provider_id,
        model,
        usage,
        estimate,
        is_broken,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Rates;

    #[test]
    fn a_sum_has_no_digits_that_no_price_has() {
        let rates = Rates {
            input: 3.0,
            output: 15.0,
            cache_read: Some(0.3),
            cache_write: Some(3.75),
            cache_write_1h: None,
        };
        let pricing = Pricing { rates, long: None };
        let usage = Usage {
            input: Some(123),
            output: Some(57),
            cache_read: Some(100),
            cache_write: Some(11),
            ..Usage::default()
        };
        let mut cost = Cost::default();
        for _ in 0..1000 {
            cost.add(&usage, Some(&pricing));
        }
        // 12 tokens at $3, 100 at $0.3, 11 at $3.75 and 57 at $15 a million, rounded up, a thousand times.
        let shown = serde_json::to_string(&cost.whole()).unwrap();
        assert_eq!(shown, "0.963");
    }

    #[test]
    fn a_sum_is_known_while_each_part_is() {
        let rates = Rates {
            input: 1.0,
            output: 2.0,
            ..Rates::default()
        };
        let pricing = Pricing { rates, long: None };
        let usage = |input, output| Usage {
            input,
            output,
            ..Usage::default()
        };
        let million = Some(1_000_000);
        let mut cost = Cost::default();
        assert_eq!(cost.whole(), None);
        cost.add(&usage(million, million), Some(&pricing));
        cost.add(&usage(million, Some(0)), Some(&pricing));
        assert_eq!(cost.whole(), Money::from_dollars(4.0));
        let mut broken = cost;
        broken.add_unknown();
        assert_eq!(broken.whole(), None);
        for (usage, pricing) in [
            (usage(None, million), Some(&pricing)),
            (usage(million, None), Some(&pricing)),
            (usage(million, million), None),
        ] {
            let mut cost = cost;
            cost.add(&usage, pricing);
            assert_eq!(cost.whole(), None, "{usage:?}");
        }
    }
}
