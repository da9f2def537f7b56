//! A send as it is kept while it waits: what it says, and how much the one who said it may have done without asking.

use serde::{Deserialize, Serialize};

use crate::message::TrustLevel;
use crate::protocol::command::ChatSend;

use super::restored::read;

/// A send that waits.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Waiting {
    pub send: ChatSend,
    /// The most that its sender may have done without asking.
    pub most: TrustLevel,
}

#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    send: &'a ChatSend,
    #[serde(flatten)]
    cap: Cap,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Cap {
    #[serde(skip_serializing_if = "Option::is_none")]
    most_trust: Option<TrustLevel>,
}

impl Waiting {
    /// Returns it as it is kept.
    pub(crate) fn json(send: &ChatSend, most: TrustLevel) -> String {
        let most_trust = (most < TrustLevel::Autonomous).then_some(most);
        let cap = Cap { most_trust };
        serde_json::to_string(&Written { send, cap })
            .inspect_err(|error| tracing::error!(%error, "a send could not be written as JSON"))
            .unwrap_or_default()
    }

    /// Reads what was kept; `None` where that cannot be read.
    pub(crate) fn read(kept: &str) -> Option<Self> {
        let cap: Cap = read(kept, "how far a send goes")?;
        Some(Self {
            send: read(kept, "a send")?,
            most: cap.most_trust.unwrap_or(TrustLevel::Autonomous),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ConversationId;

    #[test]
    fn a_send_that_waits_keeps_how_far_its_sender_may_go() {
        let send = ChatSend::text(ConversationId::new("c"), "hi".to_owned());
        for most in [
            TrustLevel::Supervised,
            TrustLevel::Guided,
            TrustLevel::Autonomous,
        ] {
            let kept = Waiting::json(&send, most);
            let send = send.clone();
            assert_eq!(Waiting::read(&kept), Some(Waiting { send, most }), "{kept}");
        }
        // As it was kept before.
        let before = serde_json::to_string(&send).unwrap();
        assert_eq!(before, Waiting::json(&send, TrustLevel::Autonomous));
        assert_eq!(
            Waiting::read(&before.replace('}', r#","mostTrust":"x"}"#)),
            None
        );
    }
}
