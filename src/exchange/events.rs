//! The way of events from an exchange to whoever follows its session.

use std::sync::Arc;

use crate::protocol::{Event, RequestId};

type Sink = dyn Fn(Event, Option<&RequestId>) + Send + Sync;

/// Takes events in order; never waits, never fails.
#[derive(Clone)]
pub struct Events(Arc<Sink>);

impl Events {
    /// Makes a handle of a sink.
    pub fn new(sink: impl Fn(Event, Option<&RequestId>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(sink))
    }

    /// Tells an event.
    pub fn send(&self, event: Event) {
        (self.0)(event, None);
    }

    /// Tells the answer to a request.
    pub fn answer(&self, reply_to: Option<&RequestId>, event: Event) {
        (self.0)(event, reply_to);
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Events")
    }
}
