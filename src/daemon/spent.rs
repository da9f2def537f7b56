//! What was spent today, as the store has it.

use std::sync::Arc;

use futures::FutureExt as _;
use jiff::Timestamp;
use outrigger_store::{UsageBy, UsageQuery};

use crate::config::BudgetConfig;
use crate::message::Money;
use crate::spend::{Since, Spend};
use crate::store::{AnyStore, Store as _};

/// Returns what keeps to the caps of a configuration, and begins with what the store has of today.
pub(super) fn spend(config: &BudgetConfig, store: Option<&AnyStore>) -> Spend {
    let is_one_of_several = store.is_some_and(AnyStore::is_one_of_several);
    let since = since(store.cloned());
    Spend::new(config, Arc::new(Timestamp::now), since, is_one_of_several)
}

/// Asks the store what was spent since a time; nothing is known without one.
fn since(store: Option<AnyStore>) -> Since {
    Arc::new(move |user, at| {
        let store = store.clone();
        async move {
            let store = store?;
            let wanted = UsageQuery {
                since_ms: at.as_millisecond(),
                until_ms: i64::MAX,
                by: UsageBy::Provider,
                limit: usize::MAX,
            };
            let sums = match user {
                Some(user) => store.of(&user).usage(wanted).await,
                None => store.usage_of_all(wanted).await,
            };
            let failed = |error: &_| {
                tracing::error!(%error, "what was spent today cannot be read; for caps of a day, what is known here counts");
            };
            let sums = sums.inspect_err(failed).ok()?.into_iter();
            Some(sums.map(|it| (it.key, Money::from_micros(it.micros))).collect())
        }
        .boxed()
    })
}
