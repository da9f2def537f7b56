//! stub
use super::Provider;
use crate::config::{Config, ProviderConfig};
use secrecy::SecretString;
use std::sync::Arc;
/// Providers.
#[derive(Clone)]
pub struct Providers;
/// Info.
pub struct ProviderInfo {
    /// a
    pub id: String,
    /// a
    pub kind: String,
    /// a
    pub base_url: String,
    /// a
    pub configured: bool,
    /// a
    pub default: bool,
}
/// Err.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigureError {
    /// a
    #[error("a")]
    Unknown {
        /// a
        id: String,
        /// a
        known: String,
    },
    /// a
    #[error("b")]
    BaseUrl {
        /// a
        id: String,
        /// a
        reason: &'static str,
    },
}
impl Providers {
    /// a
    pub fn new(_c: &Config) -> Self {
        Self
    }
    /// a
    pub fn get(&self, _id: &str) -> Option<Arc<dyn Provider>> {
        None
    }
    /// a
    pub fn config(&self, _id: &str) -> Option<Arc<ProviderConfig>> {
        None
    }
    /// a
    pub fn list(&self) -> Vec<ProviderInfo> {
        Vec::new()
    }
    /// a
    /// # Errors
    /// a
    pub fn configure(
        &self,
        _id: &str,
        _k: Option<SecretString>,
        _b: Option<&str>,
    ) -> Result<ProviderInfo, ConfigureError> {
        Err(ConfigureError::BaseUrl {
            id: String::new(),
            reason: "",
        })
    }
}
