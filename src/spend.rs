//! How much is spent, and whether more may be.
//!
//! Each request to a model counts against the caps of its exchange, its conversation, its session, and the day of the user, of
//! the daemon and of the provider instance. Before it is sent, what it is expected to cost is reserved with all of them, so
//! that requests side by side see each other; at its end the reservation goes and its cost is added. So what is spent exceeds
//! a cap by one request of each that runs, at most. Nothing here asks anybody, writes anything down, or knows a conversation.
//!
//! Read next: [`sums`] (the arithmetic, pure), [`expected`] (what a request is expected to cost, pure), [`days`] (pure).

mod caps;
mod days;
mod expected;
mod sums;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use jiff::Timestamp;
use outrigger_store::User;
use parking_lot::Mutex;

use crate::config::{BudgetConfig, OnReach, Unpriced};
use crate::message::{BudgetScope, Money};

pub(crate) use caps::{Account, Cap, Caps, Reached, Reservation, Warning};
pub(crate) use days::Days;
pub(crate) use expected::{Expected, Outputs};
pub(crate) use sums::Raise;

/// Tells the time. Tests have one that they set.
pub(crate) type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What was spent since a time, by provider instance: by one user, or by all where none is named.
pub(crate) type Since =
    Arc<dyn Fn(Option<User>, Timestamp) -> BoxFuture<'static, Vec<(String, Money)>> + Send + Sync>;

/// The most users whose day is remembered though none of their sessions is there: then what the store has counts.
const MAX_USERS: usize = 10_000;

/// What all sessions of the daemon share, and those of one user; clones share it.
#[derive(Clone)]
pub(crate) struct Spend {
    shared: Arc<DayAccounts>,
    user: Arc<Account>,
    restored: Restored,
}

type Restored = Shared<BoxFuture<'static, ()>>;

struct DayAccounts {
    config: BudgetConfig,
    days: Days,
    clock: Clock,
    since: Since,
    users: Mutex<HashMap<User, (Arc<Account>, Restored)>>,
    daemon: Arc<Account>,
    /// Of the instances that have a cap.
    providers: BTreeMap<String, Arc<Account>>,
}

/// The accounts of whoever makes a request.
#[derive(Clone, Copy)]
pub(crate) struct Owners<'a> {
    pub task: Option<&'a Arc<Account>>,
    pub exchange: Option<&'a Arc<Account>>,
    pub conversation: Option<&'a Arc<Account>>,
    pub session: &'a Arc<Account>,
    pub provider: &'a str,
}

impl Spend {
    /// Begins with what was spent today: `since` is asked for it before the first request that a day's cap is for.
    pub(crate) fn new(config: &BudgetConfig, clock: Clock, since: Since) -> Self {
        let providers = config.provider.iter();
        let shared = Arc::new(DayAccounts {
            days: Days::new(config.zone.clone()),
            since,
            users: Mutex::default(),
            daemon: Arc::new(Account::limited(config.daemon_day)),
            providers: providers
                .filter_map(|(name, budget)| {
                    Some((name.clone(), Arc::new(Account::limited(Some(budget.day?)))))
                })
                .collect(),
            config: config.clone(),
            clock,
        });
        let begun = Arc::clone(&shared);
        let restored = async move {
            if begun.has_caps() {
                let now = (begun.clock)();
                let spent = (begun.since)(None, begun.days.start(now)).await;
                begun.restore(&spent, begun.days.day(now));
            }
        };
        let all = Self {
            shared,
            user: Arc::default(),
            restored: restored.boxed().shared(),
        };
        all.of(&User::default(), None)
    }

    /// Returns what sessions of a user share, who may spend this much in a day beside what the configuration says.
    pub(crate) fn of(&self, user: &User, most: Option<Money>) -> Self {
        let mut users = self.shared.users.lock();
        if users.len() >= MAX_USERS {
            users.retain(|_, (account, _)| Arc::strong_count(account) > 2);
        }
        let (account, restored) = users.entry(user.clone()).or_insert_with(|| {
            let account = Arc::<Account>::default();
            let own = Arc::clone(&account);
            let (shared, user) = (Arc::downgrade(&self.shared), user.clone());
            let all = self.restored.clone();
            let restored = async move {
                all.await;
                let is_capped = |shared: &DayAccounts| {
                    user != User::default() || shared.config.user_day.is_some()
                };
                if let Some(shared) = shared.upgrade().filter(|it| is_capped(it)) {
                    let now = (shared.clock)();
                    let spent = (shared.since)(Some(user), shared.days.start(now)).await;
                    let spent = spent.into_iter().map(|(_, amount)| amount).sum();
                    own.add_at(Some(shared.days.day(now)), spent);
                }
            };
            (account, restored.boxed().shared())
        });
        let spend = Self {
            shared: Arc::clone(&self.shared),
            user: Arc::clone(account),
            restored: restored.clone(),
        };
        drop(users);
        spend.limit_day(most);
        spend
    }

    /// Has the user spend no more in a day than this, and what the configuration says.
    pub(crate) fn limit_day(&self, most: Option<Money>) {
        let caps = [self.shared.config.user_day, most];
        self.user.set_limit(caps.into_iter().flatten().min());
    }

    /// Waits until what was spent today is known.
    pub(crate) async fn restored(&self) {
        self.restored.clone().await;
    }

    /// Returns the time.
    pub(crate) fn now(&self) -> Timestamp {
        (self.shared.clock)()
    }

    pub(crate) fn days(&self) -> &Days {
        &self.shared.days
    }

    /// Returns the caps that count for a request, in the order in which they are locked.
    pub(crate) fn caps(&self, owners: Owners<'_>, is_locked: impl Fn(&str) -> bool) -> Caps {
        let shared = &self.shared;
        let own = |scope, account: Option<&Arc<Account>>, key| {
            account.map(|account| Cap::new(scope, Arc::clone(account), !is_locked(key)))
        };
        let of_day = |scope, account: &Arc<Account>| Cap::of_day(scope, Arc::clone(account));
        let provider = shared.providers.get(owners.provider);
        let caps = [
            // Nobody is asked to raise it; it comes first, so that it is told from those around it.
            own(BudgetScope::Task, owners.task, ""),
            own(BudgetScope::Exchange, owners.exchange, "budget.exchange"),
            own(
                BudgetScope::Conversation,
                owners.conversation,
                "budget.conversation",
            ),
            own(BudgetScope::Session, Some(owners.session), "budget.session"),
            Some(of_day(BudgetScope::User, &self.user)),
            Some(of_day(BudgetScope::Daemon, &shared.daemon)),
            provider.map(|account| of_day(BudgetScope::Provider, account)),
        ];
        Caps::new(caps.into_iter().flatten().collect(), self.clone())
    }

    /// Returns whether the user is asked at a cap.
    pub(crate) fn asks(&self) -> bool {
        self.shared.config.on_reach == OnReach::Ask
    }

    /// Returns whether a model without a price may be asked where money is capped.
    pub(crate) fn allows_unpriced(&self) -> bool {
        self.shared.config.unpriced == Unpriced::Allow
    }

    fn warn_at(&self) -> f64 {
        self.shared.config.warn_at
    }
}

impl DayAccounts {
    fn has_caps(&self) -> bool {
        self.config.daemon_day.is_some() || !self.providers.is_empty()
    }

    fn restore(&self, spent: &[(String, Money)], day: days::Day) {
        for (provider, amount) in spent {
            let provider = self.providers.get(provider);
            let accounts = [Some(&self.daemon), provider];
            for account in accounts.into_iter().flatten() {
                account.add_at(Some(day), *amount);
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// Returns one without caps, by the clock of the machine.
    pub(crate) fn unlimited(config: &BudgetConfig) -> Spend {
        let nothing: Since = Arc::new(|_, _| std::future::ready(Vec::new()).boxed());
        Spend::new(config, Arc::new(Timestamp::now), nothing)
    }
}

#[cfg(test)]
mod tests;
