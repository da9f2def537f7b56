//! Ids of calls on the wire.

use std::collections::HashSet;

use crate::message::ToolCall;

/// Longest id sent; the vendor's own have 30 characters.
const MAX_ID: usize = 64;

/// Hands out the ids of one request: the provider's own where it can be used, else the daemon's.
///
/// A function of the calls before alone, so that a history keeps its ids from request to request.
#[derive(Debug, Default)]
pub(super) struct CallIds {
    used: HashSet<String>,
}

impl CallIds {
    /// Returns an id that no earlier call of the request bears: `^[A-Za-z0-9_-]{1,64}$`.
    pub(super) fn assign(&mut self, call: &ToolCall) -> String {
        let own = call.provider_call_id.as_deref();
        let usable = own.filter(|id| is_allowed(id) && !self.used.contains(*id));
        let id = usable.map_or_else(|| self.mint(call.id.as_str()), str::to_owned);
        self.used.insert(id.clone());
        id
    }

    fn mint(&self, daemon_id: &str) -> String {
        let cleaned: String = daemon_id
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .take(MAX_ID / 2)
            .collect();
        let base = format!("call_{cleaned}");
        let mut id = base.clone();
        let mut copy = 1;
        while self.used.contains(&id) {
            copy += 1;
            id = format!("{base}_{copy}");
        }
        id
    }
}

fn is_allowed(id: &str) -> bool {
    (1..=MAX_ID).contains(&id.len())
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use crate::message::ToolId;

    #[test]
    fn every_call_of_a_request_has_its_own_id() {
        let long = "x".repeat(65);
        let cases = [
            ("t1", Some("toolu_1"), "toolu_1"),
            ("t2", Some("toolu_1"), "call_t2"),
            ("t3", None, "call_t3"),
            ("t3", None, "call_t3_2"),
            ("t4", Some("functions.bash:0"), "call_t4"),
            ("t5", Some(long.as_str()), "call_t5"),
            ("t6", Some(""), "call_t6"),
            ("ü", None, "call_"),
        ];
        let mut ids = CallIds::default();
        for (id, provider_call_id, expected) in cases {
            let call = ToolCall {
                id: ToolId::new(id),
                provider_call_id: provider_call_id.map(str::to_owned),
                name: "bash".to_owned(),
                input: Map::new(),
            };
            assert_eq!(ids.assign(&call), expected);
        }
    }
}
