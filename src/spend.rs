//! How much is spent, and whether more may be.
//!
//! Each request to a model counts against the caps of its exchange, its conversation, its session, and the day of the user, of
//! the daemon and of the provider instance. Before it is sent, what it is expected to cost is reserved with all of them, so
//! that requests side by side see each other; at its end the reservation goes and its cost is added. So what is spent exceeds
//! a cap by one request of each that runs, at most. Where several daemons have one database, what was spent at the others is
//! read again every few seconds. Nothing here asks anybody, writes anything down, or knows a conversation.
//!
//! Read next: [`sums`] (the arithmetic, pure), [`expected`] (what a request is expected to cost, pure), [`days`] (pure).

mod caps;
mod days;
mod expected;
mod sums;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use outrigger_store::User;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::config::{BudgetConfig, OnReach, Unpriced};
use crate::message::{BudgetScope, Money};

pub(crate) use caps::{Account, Cap, Caps, Reached, Reservation, Warning};
pub(crate) use days::Days;
pub(crate) use expected::{Expected, Outputs};
pub(crate) use sums::Raise;

/// Tells the time. Tests have one that they set.
pub(crate) type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What was spent since a time, by provider instance: by one user, or by all where none is named. `None` where that cannot be
/// read.
pub(crate) type Since =
    Arc<dyn Fn(Option<User>, Timestamp) -> BoxFuture<'static, Option<Spent>> + Send + Sync>;

/// What was spent with each provider instance.
pub(crate) type Spent = Vec<(String, Money)>;

/// The most users whose day is remembered though none of their sessions is there: then what the store has counts.
const MAX_USERS: usize = 10_000;

/// How old what other daemons have spent may be when a request is sent.
const FRESH: Duration = Duration::from_secs(5);

/// How long a request waits for that: where the database does not answer, what was known counts.
const PATIENCE: Duration = Duration::from_secs(2);

/// What all sessions of the daemon share, and those of one user; clones share it.
#[derive(Clone)]
pub(crate) struct Spend {
    shared: Arc<DayAccounts>,
    user: Arc<UserDay>,
}

/// The day of one user.
struct UserDay {
    user: User,
    account: Arc<Account>,
    /// What the user may spend by what was granted, as long as anybody has that: the least counts.
    granted: Mutex<Vec<Weak<Money>>>,
    read: LastRead,
}

/// When what the store has of a day was read last; held by whoever reads it.
type LastRead = Arc<tokio::sync::Mutex<Option<Instant>>>;

struct DayAccounts {
    config: BudgetConfig,
    days: Days,
    clock: Clock,
    since: Since,
    users: Mutex<HashMap<User, Arc<UserDay>>>,
    daemon: Arc<Account>,
    /// Of the instances that have a cap.
    providers: BTreeMap<String, Arc<Account>>,
    read: LastRead,
    /// Whether other daemons spend, too.
    is_one_of_several: bool,
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
    /// Begins with what was spent today: `since` is asked for it before the first request that a day's cap is for, and where
    /// this daemon is one of several, before later ones.
    pub(crate) fn new(
        config: &BudgetConfig,
        clock: Clock,
        since: Since,
        is_one_of_several: bool,
    ) -> Self {
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
            read: LastRead::default(),
            is_one_of_several,
        });
        let user = shared.day_of(&User::default());
        Self { shared, user }
    }

    /// Returns what sessions of a user share, who may spend no more in a day than was granted, beside what the configuration says.
    pub(crate) fn of(&self, user: &User, granted: Option<&Arc<Money>>) -> Self {
        let spend = Self {
            shared: Arc::clone(&self.shared),
            user: self.shared.day_of(user),
        };
        spend.grant_day(granted);
        spend
    }

    /// Has the user spend no more in a day than this as long as anybody has it.
    pub(crate) fn grant_day(&self, granted: Option<&Arc<Money>>) {
        let mut known = self.user.granted.lock();
        let granted = granted.map(Arc::downgrade);
        let is_new = |it: &Weak<Money>| granted.as_ref().is_none_or(|new| !new.ptr_eq(it));
        // As many as tokens of the user are in use.
        known.retain(|it| it.strong_count() > 0 && is_new(it));
        known.extend(granted.clone());
    }

    /// Sets the cap of the user's day to what counts now.
    fn limit_day(&self) {
        let granted = self.user.granted.lock();
        let granted = granted.iter().filter_map(Weak::upgrade).map(|it| *it);
        let least = granted.chain(self.shared.config.user_day).min();
        if self.user.account.stand().map(|stand| stand.limit) != least {
            self.user.account.set_limit(least);
        }
    }

    /// Waits until what was spent today is known, as far as there are caps for it. What other daemons have spent is as it was a
    /// few seconds ago, where the store answers in time.
    pub(crate) async fn known(&self) {
        let (shared, user) = (&self.shared, &self.user);
        self.limit_day();
        if user.account.stand().is_some() {
            let (all, of) = (Arc::clone(shared), Arc::clone(user));
            shared
                .up_to_date(&user.read, async move { all.read(&of).await })
                .await;
        }
        if shared.has_caps() {
            let all = Arc::clone(shared);
            shared
                .up_to_date(&shared.read, async move { all.read_all().await })
                .await;
        }
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
        self.limit_day();
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
            Some(of_day(BudgetScope::User, &self.user.account)),
            Some(of_day(BudgetScope::Daemon, &shared.daemon)),
            provider.map(|account| of_day(BudgetScope::Provider, account)),
        ];
        Caps::new(caps.into_iter().flatten().collect(), self.clone())
    }

    /// Returns whether it is of whoever has the daemon's own token, and not of one of several users.
    fn is_of_one_user(&self) -> bool {
        self.user.user == User::default()
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
    /// Returns the day of a user, as somebody of its sessions has it, or anew.
    fn day_of(&self, user: &User) -> Arc<UserDay> {
        let mut users = self.users.lock();
        if users.len() >= MAX_USERS {
            // Who is present has one, too.
            users.retain(|_, day| Arc::strong_count(day) > 1);
        }
        let day = users.entry(user.clone()).or_insert_with(|| {
            Arc::new(UserDay {
                user: user.clone(),
                account: Arc::default(),
                granted: Mutex::default(),
                read: LastRead::default(),
            })
        });
        Arc::clone(day)
    }

    /// Has it read what the store has of today: once, or again where other daemons spend, too. With others, whoever waits for it
    /// waits no longer than anybody may; it goes on after that, one at a time.
    async fn up_to_date(&self, last: &LastRead, read: impl Future<Output = ()> + Send + 'static) {
        let is_fresh = |at: Instant| !self.is_one_of_several || at.elapsed() < FRESH;
        let reading = async {
            let mut last = Arc::clone(last).lock_owned().await;
            if last.is_some_and(is_fresh) {
                return;
            }
            let reading = tokio::spawn(async move {
                read.await;
                *last = Some(Instant::now());
            });
            reading.await.ok();
        };
        if !self.is_one_of_several {
            return reading.await;
        }
        if tokio::time::timeout(PATIENCE, reading).await.is_err() {
            tracing::warn!(
                "it takes too long to read what was spent today; what is known here counts"
            );
        }
    }

    fn has_caps(&self) -> bool {
        self.config.daemon_day.is_some() || !self.providers.is_empty()
    }

    /// Notes what a user has spent today, as the store has it.
    async fn read(&self, of: &UserDay) {
        if let Some((day, spent)) = self.spent_today(Some(of.user.clone())).await {
            of.account.at_least(day, sum(&spent));
        }
    }

    /// Notes what all have spent today, as the store has it.
    async fn read_all(&self) {
        let Some((day, spent)) = self.spent_today(None).await else {
            return;
        };
        self.daemon.at_least(day, sum(&spent));
        for (provider, amount) in &spent {
            if let Some(account) = self.providers.get(provider) {
                account.at_least(day, *amount);
            }
        }
    }

    /// Returns what the store has of today; `None` where it cannot say, or it is another day by then.
    async fn spent_today(&self, user: Option<User>) -> Option<(days::Day, Spent)> {
        let now = (self.clock)();
        let day = self.days.day(now);
        let spent = (self.since)(user, self.days.start(now)).await?;
        (self.days.day((self.clock)()) == day).then_some((day, spent))
    }
}

fn sum(spent: &[(String, Money)]) -> Money {
    spent.iter().map(|(_, amount)| *amount).sum()
}

#[cfg(test)]
pub(crate) mod testing {
    use futures::FutureExt as _;

    use super::*;

    /// Returns one without caps, by the clock of the machine.
    pub(crate) fn unlimited(config: &BudgetConfig) -> Spend {
        let nothing: Since = Arc::new(|_, _| std::future::ready(None).boxed());
        Spend::new(config, Arc::new(Timestamp::now), nothing, false)
    }
}

#[cfg(test)]
mod tests;
