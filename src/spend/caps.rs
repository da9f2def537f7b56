//! The caps that count for one request, and what is reserved with all of them at once.

use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use super::Spend;
use super::days::Day;
use super::sums::{Raise, Stand, Sums};
use crate::message::{BudgetScope, Money};

/// The sums of an exchange, a conversation, a session, or a day. Its owner keeps it.
#[derive(Debug, Default)]
pub(crate) struct Account {
    sums: Mutex<Sums>,
    /// Wakes whoever waits for room: less is reserved, or the cap is another one.
    changed: Notify,
}

impl Account {
    /// Returns one in which nothing was spent yet.
    pub(crate) fn limited(limit: Option<Money>) -> Self {
        Self {
            sums: Mutex::new(Sums::limited(limit)),
            changed: Notify::new(),
        }
    }

    /// Sets the cap, in place of the one that was there.
    pub(crate) fn set_limit(&self, limit: Option<Money>) {
        self.sums.lock().limit(limit);
        self.changed.notify_waiters();
    }

    /// Adds what was spent before.
    pub(crate) fn add(&self, amount: Money) {
        self.sums.lock().add(amount);
    }

    /// Has so much be spent on a day, where less is known: what is known here may not be written yet.
    pub(super) fn at_least(&self, day: Day, amount: Money) {
        let mut sums = self.sums.lock();
        sums.on(Some(day));
        let more = amount.minus(sums.spent());
        sums.add(more);
    }

    /// Returns what was spent.
    pub(crate) fn spent(&self) -> Money {
        self.sums.lock().spent()
    }

    /// Returns how its cap stands; `None` where there is none.
    pub(crate) fn stand(&self) -> Option<Stand> {
        self.sums.lock().stand()
    }
}

/// A cap that counts for a request.
#[derive(Clone, Debug)]
pub(crate) struct Cap {
    pub scope: BudgetScope,
    account: Arc<Account>,
    /// Whether its client may raise it.
    pub may_raise: bool,
    is_of_day: bool,
}

impl Cap {
    pub(super) fn new(scope: BudgetScope, account: Arc<Account>, may_raise: bool) -> Self {
        Self {
            scope,
            account,
            may_raise,
            is_of_day: false,
        }
    }

    pub(super) fn of_day(scope: BudgetScope, account: Arc<Account>) -> Self {
        Self {
            scope,
            account,
            may_raise: false,
            is_of_day: true,
        }
    }

    pub(crate) fn raise(&self, by: Raise) {
        self.account.sums.lock().raise(by);
        self.account.changed.notify_waiters();
    }

    /// Waits until a request fits that is expected to cost so much: what was reserved was not needed, or the cap was raised.
    pub(crate) async fn room(&self, amount: Money) {
        let mut changed = std::pin::pin!(self.account.changed.notified());
        loop {
            // Before the look, so that nothing falls between.
            changed.as_mut().enable();
            if self.allows(amount) {
                return;
            }
            changed.as_mut().await;
            changed.set(self.account.changed.notified());
        }
    }

    /// Returns whether a request fits now that is expected to cost so much.
    pub(crate) fn allows(&self, amount: Money) -> bool {
        self.account.stand().is_none_or(|it| it.allows(amount))
    }

    /// Returns the most that may be spent; `None` for no cap.
    pub(crate) fn limit(&self) -> Option<Money> {
        self.account.stand().map(|stand| stand.limit)
    }

    fn lock(&self, day: Day) -> MutexGuard<'_, Sums> {
        let mut sums = self.account.sums.lock();
        sums.on(self.is_of_day.then_some(day));
        sums
    }
}

/// A cap that is reached.
#[derive(Debug)]
pub(crate) struct Reached {
    pub cap: Cap,
    pub stand: Stand,
}

/// A cap of which most is spent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Warning {
    pub scope: BudgetScope,
    pub stand: Stand,
}

/// All caps that count for a request, each account once and always in the order of the scopes: so no two requests wait for
/// each other.
#[derive(Clone)]
pub(crate) struct Caps {
    caps: Vec<Cap>,
    spend: Spend,
}

impl fmt::Debug for Caps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.caps.fmt(f)
    }
}

impl Caps {
    pub(super) fn new(caps: Vec<Cap>, spend: Spend) -> Self {
        Self { caps, spend }
    }

    fn locked(&self) -> Vec<(&Cap, MutexGuard<'_, Sums>)> {
        let day = self.spend.days().day(self.spend.now());
        let caps = self.caps.iter();
        caps.map(|cap| (cap, cap.lock(day))).collect()
    }

    /// Reserves so much with all caps, or with none: where one does not allow it, returns that one; one that nobody may
    /// raise comes first.
    pub(crate) fn reserve(&self, amount: Money) -> Result<Reservation, Box<Reached>> {
        let mut locked = self.locked();
        if let Some(reached) = first(&locked, |stand| !stand.allows(amount)) {
            return Err(reached);
        }
        for (_, sums) in &mut locked {
            sums.reserve(amount);
        }
        Ok(self.reserved(amount))
    }

    /// Reserves so much, whatever the caps say.
    pub(crate) fn reserve_anyway(&self, amount: Money) -> Reservation {
        for (_, mut sums) in self.locked() {
            sums.reserve(amount);
        }
        self.reserved(amount)
    }

    fn reserved(&self, amount: Money) -> Reservation {
        Reservation {
            caps: self.clone(),
            amount,
        }
    }

    /// Adds what a request cost for which nothing is reserved any more; returns the caps that somebody is to be warned of now.
    pub(crate) fn add(&self, cost: Money) -> Vec<Warning> {
        self.spend(cost, Money::ZERO)
    }

    fn spend(&self, cost: Money, reserved: Money) -> Vec<Warning> {
        let part = self.spend.warn_at();
        let locked = self.locked().into_iter();
        let warnings = locked.filter_map(|(cap, mut sums)| {
            sums.release(reserved);
            sums.add(cost);
            cap.account.changed.notify_waiters();
            let stand = sums.stand()?;
            // It is a part of what those around it may spend, which warn of that.
            let is_told = cap.scope != BudgetScope::Task;
            (is_told && sums.warns(part)).then_some(Warning {
                scope: cap.scope,
                stand,
            })
        });
        warnings.collect()
    }

    /// Returns the cap of which least is left; `None` where there is none.
    pub(crate) fn tightest(&self) -> Option<(BudgetScope, Stand)> {
        self.tightest_of(|_| true)
    }

    /// The same of those that are the user's own: what is left of the others would tell what other users spend.
    pub(crate) fn tightest_own(&self) -> Option<(BudgetScope, Stand)> {
        let is_alone = self.spend.is_of_one_user();
        self.tightest_of(|scope| {
            is_alone || !matches!(scope, BudgetScope::Daemon | BudgetScope::Provider)
        })
    }

    fn tightest_of(&self, is_wanted: impl Fn(BudgetScope) -> bool) -> Option<(BudgetScope, Stand)> {
        let locked = self.locked();
        let wanted = locked.iter().filter(|(cap, _)| is_wanted(cap.scope));
        let stands = wanted.filter_map(|(cap, sums)| Some((cap.scope, sums.stand()?)));
        stands.min_by_key(|(_, stand)| stand.left())
    }

    /// Returns the first cap of which nothing is left, one that nobody may raise before others.
    pub(crate) fn exhausted(&self) -> Option<Box<Reached>> {
        first(&self.locked(), |stand| stand.left() == Money::ZERO)
    }
}

/// Returns the first cap that is reached, one that nobody may raise before others.
fn first(
    locked: &[(&Cap, MutexGuard<'_, Sums>)],
    is_reached: impl Fn(&Stand) -> bool,
) -> Option<Box<Reached>> {
    let reached = locked.iter().filter_map(|(cap, sums)| {
        let stand = sums.stand().filter(&is_reached)?;
        Some((*cap, stand))
    });
    let (cap, stand) = reached.min_by_key(|(cap, _)| cap.may_raise)?;
    let cap = cap.clone();
    Some(Box::new(Reached { cap, stand }))
}

/// What a request is expected to cost, reserved until it is dropped.
#[must_use = "nothing is reserved once it is dropped"]
#[derive(Debug)]
pub(crate) struct Reservation {
    caps: Caps,
    amount: Money,
}

impl Reservation {
    /// Adds what the request cost in place of what was expected; returns the caps that somebody is to be warned of now.
    pub(crate) fn spend(mut self, cost: Money) -> Vec<Warning> {
        let reserved = std::mem::take(&mut self.amount);
        self.caps.spend(cost, reserved)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        for (cap, mut sums) in self.caps.locked() {
            sums.release(self.amount);
            cap.account.changed.notify_waiters();
        }
    }
}
