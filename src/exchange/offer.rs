//! The tools of one moment, and those of them that the model is offered.

use std::sync::Arc;

use super::context::Context;
use super::setup::Setup;
use crate::message::ToolSpec;
use crate::tool::ToolSet;

/// The tools as they were when a turn began: its request offers them, and its calls are looked up among them.
pub(super) struct ToolOffer {
    pub(super) tools: Arc<ToolSet>,
    /// What the scope offers to the model, in the order of the names.
    pub(super) specs: Vec<ToolSpec>,
}

impl ToolOffer {
    /// Takes the tools as they are now.
    pub(super) fn current(context: &Context, setup: &Setup) -> Arc<Self> {
        Self::of(context.services.registry.snapshot(), setup)
    }

    /// Takes the tools as they are now: those of MCP servers come and go. Where none did, the schemas are not copied.
    pub(super) fn refreshed(self: Arc<Self>, context: &Context, setup: &Setup) -> Arc<Self> {
        let tools = context.services.registry.snapshot();
        if Arc::ptr_eq(&tools, &self.tools) {
            return self;
        }
        Self::of(tools, setup)
    }

    fn of(tools: Arc<ToolSet>, setup: &Setup) -> Arc<Self> {
        let specs = tools.values().map(|tool| tool.spec());
        let specs = specs.filter(|spec| setup.scope.allows(spec));
        Arc::new(Self {
            specs: specs.cloned().collect(),
            tools,
        })
    }
}
