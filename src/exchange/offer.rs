//! What stands in a request before what is said: the tools of this moment, and what the model is told in the user's name.

use std::sync::Arc;

use super::budget::{estimate_head, estimate_parts};
use super::context::{Context, Setup};
use crate::instructions::skills::Skill;
use crate::message::{Part, SKILL, ToolCategory, ToolSpec};
use crate::tool::skill::skill;
use crate::tool::{Tool, ToolSet};

/// The tools as they were when a turn began: its request offers them, and its calls are looked up among them.
pub(crate) struct ToolOffer {
    pub(super) tools: Arc<ToolSet>,
    /// Those of them that the session has.
    base: Arc<ToolSet>,
    /// What the scope offers to the model, in the order of the names.
    pub(super) specs: Vec<ToolSpec>,
    /// What the model is told before all that the user says.
    pub(super) front: Arc<Vec<Part>>,
    /// What they, the system prompt and that take, in tokens, estimated.
    pub(super) tokens: u64,
}

impl ToolOffer {
    /// Returns the tools as they are now: those of MCP servers come and go. Where none did since `before`, nothing is copied.
    pub(super) fn now(setup: &Setup, context: &Context, before: Option<Arc<Self>>) -> Arc<Self> {
        let tools = context.session.tools.snapshot();
        let instructions = &context.conversation.instructions;
        let (front, skills) = (instructions.front(), instructions.skills());
        let same = before
            .filter(|offer| Arc::ptr_eq(&offer.base, &tools) && Arc::ptr_eq(&offer.front, &front));
        same.unwrap_or_else(|| {
            let base = Arc::clone(&tools);
            let tools = with_skills(tools, skills);
            let specs = tools.values().map(|tool| tool.spec());
            let specs = specs.filter(|spec| setup.scope.allows(spec));
            let mut specs: Vec<ToolSpec> = specs.cloned().collect();
            // They come and go in the middle of a conversation: what stands before them stays in a prompt cache.
            specs.sort_by_key(|spec| spec.category == ToolCategory::Client);
            Arc::new(Self {
                tokens: estimate_head(&setup.system, &specs).saturating_add(estimate_parts(&front)),
                front,
                specs,
                tools,
                base,
            })
        })
    }
}

/// Returns a tool that there is for the model in a conversation.
pub(super) fn tool_of(context: &Context, name: &str) -> Option<Arc<dyn Tool>> {
    if let Some(tool) = context.session.tools.snapshot().get(name) {
        return Some(Arc::clone(tool));
    }
    let skills = context.conversation.instructions.skills();
    let is_skill = name == SKILL && !skills.is_empty();
    is_skill.then(|| -> Arc<dyn Tool> { Arc::new(skill(skills)) })
}

/// Returns the tools of a conversation that has these skills: one more, where there are any.
fn with_skills(tools: Arc<ToolSet>, skills: Arc<Vec<Skill>>) -> Arc<ToolSet> {
    if skills.is_empty() {
        return tools;
    }
    let mut all = ToolSet::clone(&tools);
    all.entry(SKILL.to_owned())
        .or_insert_with(|| Arc::new(skill(skills)));
    Arc::new(all)
}
