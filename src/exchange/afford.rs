//! Whether the next request to the model may be made: what it is expected to cost is reserved with all caps, and where one
//! does not allow it, the user is asked or the exchange ends.

use tokio::sync::oneshot;

use super::questions::budget::{BudgetQuestion, Decision};
use super::questions::{Open, Question, QuestionId};
use super::turn::TurnRequest;
use super::window::used;
use super::{Exchange, Leave, failure};
use crate::message::{BudgetScope, Money, Notice, Severity};
use crate::protocol::budget::{BudgetChoice, BudgetConfirm};
use crate::protocol::event::{By, Event, State, StateName, StopReason};
use crate::protocol::word;
use crate::provider::ToolChoice;
use crate::provider::rates::Admitted;
use crate::spend::{Expected, Reached, Reservation};
use crate::telemetry::metrics;
use crate::units::millis;

impl Exchange<'_> {
    /// Reserves what a request is expected to cost. Asks the user where that is more than a cap allows which they may
    /// raise; the time does not count. An error says how to leave.
    pub(super) async fn afford(&mut self, request: &TurnRequest) -> Result<Reservation, Leave> {
        self.context.services.spend.known().await;
        let expected = self.expected(request);
        let next = self.price(expected)?;
        self.check_tokens(request, expected)?;
        loop {
            let reached = match self.ledger.caps.reserve(next) {
                Ok(reservation) => return Ok(reservation),
                Err(_) if self.progress.is_last => {
                    return Ok(self.ledger.caps.reserve_anyway(next));
                }
                Err(reached) => reached,
            };
            metrics::budget_reached(&word(&reached.cap.scope));
            let is_own_share = reached.cap.scope == BudgetScope::Task;
            if !reached.cap.may_raise {
                let spend = &self.context.services.spend;
                let error = failure::budget_exhausted(&reached, Some(next), self.setup, spend);
                return Err(Leave::Failed(StopReason::Budget, Box::new(error)));
            }
            let decision = match is_own_share {
                // Nobody is asked for a part of what was allowed.
                true => Decision::Expired,
                false => self.decide(request, &reached, next).await,
            };
            let finish = match decision {
                Decision::Extended => continue,
                Decision::Cancelled => return Err(Leave::Stop(StopReason::Cancelled)),
                Decision::Expired => reached.stand.allows_last(next),
                Decision::Stopped { finish } => finish,
            };
            if !finish {
                return Err(Leave::Stop(StopReason::Budget));
            }
            self.progress.is_last = true;
            // Else it is the last answer already, and goes.
            if request.choice == ToolChoice::Auto {
                return Err(Leave::Finish(StopReason::Budget));
            }
        }
    }

    /// Waits until the instance may be asked; says so where that is not at once.
    pub(super) async fn admit(&self, request: &TurnRequest) -> Result<Admitted, Leave> {
        let Expected { input, output } = self.expected(request);
        let session = self.context.session.id.as_str();
        let tokens = input.saturating_add(output);
        let mut entry = self.setup.rates.enter(session, tokens);
        if entry.waits() {
            let reason = format!(
                "rate limit (ours): requests to provider `{}` wait for each other (max_parallel, max_requests_per_minute, \
                 max_tokens_per_minute)",
                self.setup.provider_id
            );
            self.emit(Event::ChatState(State {
                delay_ms: entry.delay().map(millis),
                reason: Some(reason),
                ..self.state(StateName::Retrying)
            }));
        }
        let admitted = self.cancel.run_until_cancelled(entry.admitted()).await;
        admitted.ok_or(Leave::Stop(StopReason::Cancelled))
    }

    /// Returns about what a request takes.
    fn expected(&self, request: &TurnRequest) -> Expected {
        let input = used(self.context, &request.offer);
        let model = self.setup.known_model();
        let most = self.setup.max_tokens.map(u64::from);
        let most = most.into_iter().chain(model.max_output_tokens).min();
        let outputs = self.context.conversation.outputs.lock();
        Expected {
            input,
            output: outputs.next(most),
        }
    }

    /// Returns what a request is expected to cost; nothing where nobody knows and no cap needs it.
    fn price(&self, expected: Expected) -> Result<Money, Leave> {
        if let Some(pricing) = self.setup.known_model().pricing {
            return Ok(expected.cost(&pricing));
        }
        let spend = &self.context.services.spend;
        match self.ledger.caps.tightest() {
            Some((scope, _)) if !spend.allows_unpriced() => {
                let error = failure::not_priced(scope, self.setup);
                Err(Leave::Failed(StopReason::Error, Box::new(error)))
            }
            _ => Ok(Money::ZERO),
        }
    }

    /// Ends the exchange where its fresh tokens are used up, with a last answer where that fits.
    fn check_tokens(&mut self, request: &TurnRequest, expected: Expected) -> Result<(), Leave> {
        let Some(most) = self.setup.max_fresh_tokens else {
            return Ok(());
        };
        let used = self.ledger.total().usage.fresh();
        if self.progress.is_last || used < most {
            return Ok(());
        }
        metrics::budget_reached("tokens");
        self.notify(format!(
            "the exchange may take {most} fresh tokens (limits.maxFreshTokens) and has taken {used}"
        ));
        let with_answer = used.saturating_add(expected.output);
        let has_room = with_answer <= most.saturating_add(most / 20);
        if !has_room || request.choice == ToolChoice::None {
            return Err(Leave::Stop(StopReason::Budget));
        }
        self.progress.is_last = true;
        Err(Leave::Finish(StopReason::Budget))
    }

    /// Asks the user, where somebody may answer.
    async fn decide(&self, request: &TurnRequest, reached: &Reached, next: Money) -> Decision {
        if self.unasked().is_some() || !self.context.services.spend.asks() {
            self.notify(failure::cap_reached(reached, Some(next)));
            return Decision::Expired;
        }
        let Some(within) = &self.context.conversation.within else {
            return self.ask_to_extend(request, reached, next).await;
        };
        // Whoever waits for another's answer waits for the user.
        let _pause = self.stopwatch.pause();
        let turn = self.cancel.run_until_cancelled(within.tasks.to_ask()).await;
        let Some(mut refused) = turn else {
            return Decision::Cancelled;
        };
        if let Some(refused) = *refused {
            return refused;
        }
        // The answer to another task's question may be enough for this one.
        if reached.cap.allows(next) {
            return Decision::Extended;
        }
        let decision = self.ask_to_extend(request, reached, next).await;
        if matches!(decision, Decision::Stopped { .. } | Decision::Expired) {
            *refused = Some(decision);
        }
        decision
    }

    async fn ask_to_extend(
        &self,
        request: &TurnRequest,
        reached: &Reached,
        next: Money,
    ) -> Decision {
        let _pause = self.stopwatch.pause();
        let context = self.context;
        let request_id = context.session.ids.budget();
        let stand = reached.stand;
        // As much again, and enough for what waits.
        let more = stand.limit.max(stand.lacks(next));
        let confirm = BudgetConfirm {
            conversation_id: self.setup.conversation_id.clone(),
            message_id: self.setup.message_id.clone(),
            request_id: request_id.clone(),
            scope: reached.cap.scope,
            spent_usd: stand.spent,
            limit_usd: stand.limit,
            next_usd: next,
            turn: request.turn,
            choices: vec![
                BudgetChoice {
                    extend_usd: Some(more),
                    ..BudgetChoice::default()
                },
                BudgetChoice {
                    unlimited: true,
                    ..BudgetChoice::default()
                },
            ],
            expires_at: None,
        };
        let (decided, decision) = oneshot::channel();
        let question = BudgetQuestion {
            confirm,
            cap: reached.cap.clone(),
            decided,
        };
        self.emit(Event::ChatState(self.state(StateName::AwaitingBudget)));
        let questions = &context.conversation.questions;
        questions.ask(Question::Budget(Box::new(question)), context);
        let id = QuestionId::Budget(request_id);
        let ours = |open: &Open| open.id == id;
        tokio::select! {
            biased;
            // Dropped without an answer where it could not be asked.
            decision = decision => decision.unwrap_or(Decision::Cancelled),
            () = self.cancel.cancelled() => {
                questions.withdraw(ours, By::Cancel, context);
                Decision::Cancelled
            }
            () = reached.cap.room(next) => {
                questions.withdraw(ours, By::Room, context);
                Decision::Extended
            }
        }
    }

    fn notify(&self, message: String) {
        self.emit(Event::SessionNotice(Notice {
            severity: Severity::Warning,
            code: "budget_reached".to_owned(),
            message,
        }));
    }
}
