//! Other systems: commands are not confined, and share what the user has.

/// What its commands share: nothing of their own here.
#[derive(Debug, Clone, Default)]
pub struct Pod(());
