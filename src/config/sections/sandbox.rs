//! The section `[sandbox]`: what keeps commands of different users apart.

use schemars::JsonSchema;
use serde::Deserialize;

/// What keeps commands of different users apart. Whether and how they are confined at all is `tools.bash.sandbox`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SandboxSettings {
    /// Numbers of users and groups of the system that nobody else has, such as `100000-165535`: the commands of each user of the
    /// daemon run as one of them. For a daemon that is root, in the sandbox mode `full`, on file systems that can map owners;
    /// anywhere else it does not start. Empty: all commands run as the daemon's own user. See
    /// [users.md](users.md#each-user-a-user-of-the-system).
    pub(crate) user_ids: String,
}
