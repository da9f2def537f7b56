//! Providers for tests of other modules.

use super::*;

impl Providers {
    /// One provider under the name of the scripted one, for tests of other modules.
    pub(crate) fn for_tests(config: &Config, provider: &Arc<dyn Provider>) -> Self {
        let mut config = config.clone();
        config.chat.detect_ollama = None;
        let providers = Self::new(&config);
        let mut instances = providers.shared.instances.write();
        for instance in instances.iter_mut() {
            instance.provider = Arc::clone(provider);
        }
        drop(instances);
        providers
    }
}
