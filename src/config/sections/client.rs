//! The section `[tools.client]`: tools that clients run.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::word;
use crate::units::{DAY, Span};

/// Tools that clients register and run themselves.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientToolsConfig {
    /// Whether clients may register tools.
    pub enabled: bool,
    /// Which of them may ask for no approval (`approval: "never"`): `none`, those that say that they change nothing
    /// (`read_only`), or `all`. Under `supervised` each call is asked for all the same.
    #[serde(deserialize_with = "word")]
    pub skip_approval: SkipApproval,
    /// The longest that a call may wait for its output, up to 24h. A tool that asks for more gets this.
    #[serde(with = "Span::<1_000, DAY>")]
    pub timeout_max: Duration,
}

/// Which tools of a client may ask for no approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SkipApproval {
    /// None.
    None,
    /// Those that say that they change nothing.
    #[default]
    ReadOnly,
    /// All.
    All,
}
