//! Workspaces for tests of other modules.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Common, Registry, Workspace, Workspaces};
use crate::config::Config;
use crate::notices::Notices;
use crate::sandbox;

/// Returns one without a project that has these tools.
pub(crate) fn with_tools(tools: Registry) -> Workspace {
    Workspace {
        place: Err("this is a test".to_owned()),
        registry: Arc::new(tools),
    }
}

/// Returns those of a daemon whose own one has these tools.
pub(crate) fn workspaces(config: &Config, tools: Registry) -> Workspaces {
    let common = Common {
        tools: config.tools.clone(),
        projects: config.project.clone(),
        sandbox: sandbox::Sandbox::new(sandbox::Settings::new(None)),
        environment: BTreeMap::new(),
        secrets: Vec::new(),
        home: None,
        own_files: Vec::new(),
    };
    let none = Err("this is a test".to_owned());
    let settings = crate::config::Current::new(config.clone());
    Workspaces {
        own: Arc::new(with_tools(tools)),
        ..Workspaces::new(common, none, &settings, &Notices::default())
    }
}
