//! Who reads and writes which file.
use super::Claim;
/// Locks.
#[derive(Debug, Default)]
pub struct Locks;
/// Guard.
#[derive(Debug)]
pub struct Guard;
impl Locks {
    /// Who is in the way.
    pub fn blockers(&self, _claims: &[Claim]) -> Vec<String> { Vec::new() }
    /// Takes them.
    pub async fn acquire(&self, _claims: Vec<Claim>, _holder: String) -> Guard { Guard }
}
