//! What was spent today, as the store has it.

use std::sync::Arc;

use futures::FutureExt as _;
use outrigger_store::{UsageBy, UsageQuery};

use crate::message::Money;
use crate::spend::Since;
use crate::store::{AnyStore, Store as _};

/// Asks the store what was spent since a time; nothing is known without one.
pub(super) fn since(store: Option<AnyStore>) -> Since {
    Arc::new(move |user, at| {
        let store = store.clone();
        async move {
            let Some(store) = store else {
                return Vec::new();
            };
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
            let sums = sums.unwrap_or_else(|error| {
                tracing::error!(%error, "what was spent today is not known; caps of a day begin anew");
                Vec::new()
            });
            let sums = sums.into_iter();
            sums.map(|it| (it.key, Money::from_micros(it.micros))).collect()
        }
        .boxed()
    })
}
