//! The model of an instance for which nobody names one: the first that it lists, asked for once.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::context::Setup;
use super::failure;
use crate::protocol::event::ChatError;
use crate::provider::{ErrorKind, Provider, ProviderError};

/// The first model of each instance, by its name; as many as there are instances.
#[derive(Default)]
pub(crate) struct FirstModels(Mutex<HashMap<String, Known>>);

struct Known {
    /// The instance as it was configured then.
    of: Weak<dyn Provider>,
    model: Arc<OnceCell<String>>,
}

impl FirstModels {
    /// Returns the first model that an instance lists. It is asked once, by whoever comes first, and
    /// again where it failed or was configured anew.
    pub(crate) async fn find(&self, setup: &Setup) -> Result<String, ChatError> {
        let (provider, id) = (&setup.provider, &setup.provider_id);
        let known = self.known(provider, id);
        let found = known.get_or_try_init(|| first(&**provider, id)).await;
        found
            .cloned()
            .map_err(|problem| failure::from_provider(&problem, setup))
    }

    fn known(&self, provider: &Arc<dyn Provider>, id: &str) -> Arc<OnceCell<String>> {
        let of = Arc::downgrade(provider);
        let mut all = self.0.lock();
        match all.get(id) {
            Some(known) if Weak::ptr_eq(&known.of, &of) => Arc::clone(&known.model),
            _ => {
                let model = Arc::default();
                let known = Known {
                    of,
                    model: Arc::clone(&model),
                };
                all.insert(id.to_owned(), known);
                model
            }
        }
    }
}

async fn first(provider: &dyn Provider, id: &str) -> Result<String, ProviderError> {
    let models = provider.models().await?;
    models.into_iter().next().map(|model| model.id).ok_or_else(|| {
        ProviderError::new(
            ErrorKind::NotFound,
            format!("provider `{id}` lists no model; install one there, or name one in the field `model`"),
        )
    })
}
