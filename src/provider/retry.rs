//! When to try again.
use std::time::Duration;
use super::ProviderError;
/// Policy.
#[derive(Clone, Copy, Debug)]
pub struct Policy { max: u32 }
impl Policy {
    /// New.
    pub fn new(max: u32) -> Self { Self { max } }
    /// Delay.
    pub fn next_delay(&self, _e: &ProviderError, attempt: u32, _j: f64) -> Option<Duration> { (attempt <= self.max).then_some(Duration::from_millis(500)) }
}
