//! From a send to the setup of its exchange: send, then session, then workflow, then configuration, as far as the
//! operator locked nothing. Pure.

use std::sync::Arc;
use std::time::Duration;

use super::defaults::Defaults;
use super::providers::no_provider;
use super::scope::scope;
use crate::config::{ChatConfig, Config, ProviderConfig, ProviderKind};
use crate::exchange::context::Setup;
use crate::exchange::output::Form;
use crate::json_schema::ObjectSchema;
use crate::message::{MessageId, Money, Part, SessionId, TrustLevel, image};
use crate::permission::{Freedom, Limits, Workflow};
use crate::protocol::SessionCode;
use crate::protocol::command::{ChatSend, Layer};
use crate::protocol::content::Content;
use crate::protocol::event::SessionError;
use crate::provider::registry::Providers;
use crate::tool::Registry;
use crate::tool::workspace::Workspace;
use crate::units::Share;

/// The system prompt where nobody gives one.
const SYSTEM_PROMPT: &str = include_str!("../../config/system_prompt.txt");

/// The same where there is no project.
const SYSTEM_PROMPT_WITHOUT_PROJECT: &str =
    include_str!("../../config/system_prompt_without_project.txt");

/// The longest id of a conversation, in bytes: it stands in every event.
const MAX_ID_BYTES: usize = 256;

/// The most turns of one exchange.
const MAX_TURNS: u32 = 200;

/// The longest name of a model, in bytes.
const MAX_MODEL: usize = 256;

/// Settles everything about an exchange that a send leaves open, but for the model where nobody names
/// one: it stays empty, and its exchange asks for the first one. An error names the field.
pub(crate) fn setup(
    send: &ChatSend,
    message_id: MessageId,
    session: &SessionId,
    (defaults, most_trust): (&Defaults, TrustLevel),
    config: &Config,
    providers: &Providers,
    (workspace, tools): (&Workspace, &Registry),
) -> Result<Setup, SessionError> {
    check(send)?;
    let defaults = &defaults.allowed(config, providers.default_id());
    let name = send.workflow.as_deref().unwrap_or(&defaults.workflow);
    allow_send(send, config, providers.default_id())?;
    let workflow = workflow(name, config)?;
    let scope = scope(workflow, send.tool_permissions.as_ref(), config)?;
    let tools = tools.snapshot();
    let offers_tools = tools.values().any(|tool| scope.allows(tool.spec()));
    allow_limits(send.limits, workflow, config, offers_tools)?;
    let provider_id = send
        .provider
        .clone()
        .or_else(|| defaults.provider.clone())
        .or_else(|| workflow.and_then(|workflow| workflow.provider.clone()))
        .unwrap_or_else(|| providers.default_id().to_owned());
    let instance = providers
        .find(&provider_id)
        .ok_or_else(|| no_provider("field `provider`: ", &provider_id, providers))?;
    let limits = limits(send.limits, workflow);
    let output = output(send)?;
    check_model(send.model.as_deref())?;
    Ok(Setup {
        conversation_id: send.conversation_id.clone(),
        message_id,
        content: send.content.clone().into_parts(),
        model: model(
            send,
            defaults,
            workflow,
            (config, providers.default_id()),
            &instance.config,
        ),
        system: system(send, workflow, config, workspace, output.as_deref()),
        freedom: Freedom::new(
            send.trust_level
                .unwrap_or_else(|| defaults.trust(workflow, config)),
            defaults.policy(config),
            most_trust,
        ),
        on_violation: Defaults::on_violation(workflow, config),
        scope,
        max_tokens: send.max_tokens,
        temperature: send.temperature,
        thinking: send.thinking,
        output,
        max_turns: limits.max_turns.unwrap_or(config.chat.max_turns),
        timeout_plain: duration(limits, workflow, config, PLAIN),
        timeout_tools: duration(limits, workflow, config, TOOLS),
        context_reserve: limits
            .context_reserve
            .unwrap_or(config.chat.context_reserve),
        compact_at: compact_at(limits, config),
        max_cost: limits.max_cost_usd.or(config.budget.exchange),
        max_fresh_tokens: limits.max_fresh_tokens,
        rates: instance.rates,
        pricing: instance.config.pricing,
        max_retries: instance.config.max_retries,
        restarts: instance.config.restart_after_partial,
        cache_key: format!("{session}-{}", send.conversation_id),
        provider: instance.provider,
        provider_id,
        first_model: instance.first_model,
    })
}

/// Refuses a name of a model that is longer than any: it is kept with the session and with each request.
pub(super) fn check_model(name: Option<&str>) -> Result<(), SessionError> {
    match name.map(str::len) {
        Some(bytes) if bytes > MAX_MODEL => Err(invalid(format!(
            "field `model`: a name has {MAX_MODEL} bytes at most, and this one {bytes}"
        ))),
        _ => Ok(()),
    }
}

/// Finds a workflow; none where the name is empty.
pub(crate) fn workflow<'c>(
    name: &str,
    config: &'c Config,
) -> Result<Option<&'c Workflow>, SessionError> {
    if name.is_empty() {
        return Ok(None);
    }
    config.workflows.get(name).map(Some).ok_or_else(|| {
        let known: Vec<&str> = config.workflows.keys().map(String::as_str).collect();
        invalid(format!(
            "field `workflow`: there is no workflow `{name}`; there are: {}",
            if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            }
        ))
    })
}

fn check(send: &ChatSend) -> Result<(), SessionError> {
    let id = send.conversation_id.as_str();
    if id.is_empty() || id.len() > MAX_ID_BYTES || id.chars().any(char::is_control) {
        return Err(invalid(format!(
            "field `conversationId` must have 1 to {MAX_ID_BYTES} bytes and no control characters"
        )));
    }
    if send.conversation_id.task().is_some() {
        return Err(invalid(format!(
            "field `conversationId`: `{id}` is the name of a task's, in which nothing can be said; choose another name"
        )));
    }
    if send.content.is_empty() && send.history.as_ref().is_none_or(Vec::is_empty) {
        return Err(invalid(
            r#"field `content` is empty; for example {"type":"chat:send","content":"hi"}"#,
        ));
    }
    if send.content.is_empty() {
        return Err(invalid(
            "field `content` is empty; say what to do with the history",
        ));
    }
    check_images(&send.content)?;
    for message in send.history.iter().flatten() {
        check_images(&message.content)?;
    }
    if send.temperature.is_some_and(|t| !(0.0..=2.0).contains(&t)) {
        return Err(invalid("field `temperature` must be between 0 and 2"));
    }
    if send.max_tokens == Some(0) {
        return Err(invalid("field `maxTokens` must be at least 1"));
    }
    if send
        .limits
        .max_turns
        .is_some_and(|turns| !(1..=MAX_TURNS).contains(&turns))
    {
        return Err(invalid("field `limits.maxTurns` must be between 1 and 200"));
    }
    if send.limits.timeout_ms == Some(0) {
        return Err(invalid("field `limits.timeoutMs` must be at least 1"));
    }
    if send.limits.max_cost_usd == Some(Money::ZERO) {
        return Err(invalid("field `limits.maxCostUsd` must be more than 0"));
    }
    if send.limits.max_fresh_tokens == Some(0) {
        return Err(invalid("field `limits.maxFreshTokens` must be at least 1"));
    }
    Ok(())
}

/// Refuses pictures that no model takes, here, where whoever sent them gets the error.
pub(super) fn check_images(content: &Content) -> Result<(), SessionError> {
    let Content::Parts(parts) = content else {
        return Ok(());
    };
    let mut pictures = 0;
    for (index, part) in parts.iter().enumerate() {
        let Part::Image { media_type, data } = part else {
            continue;
        };
        pictures += 1;
        if pictures > image::MAX_IMAGES {
            return Err(invalid(format!(
                "field `content` has more than {} pictures",
                image::MAX_IMAGES
            )));
        }
        let found = image::check(media_type, data)
            .map_err(|why| invalid(format!("field `content[{index}]`: the picture {why}")))?;
        if found != media_type {
            return Err(invalid(format!(
                "field `content[{index}].mediaType` is {media_type:?}, and the picture is {found}"
            )));
        }
    }
    Ok(())
}

/// Returns the limits of a workflow as a send narrows them; it cannot widen them.
fn limits(send: Limits, workflow: Option<&Workflow>) -> Limits {
    let theirs = workflow.map(|workflow| workflow.limits).unwrap_or_default();
    Limits {
        max_turns: [send.max_turns, theirs.max_turns]
            .into_iter()
            .flatten()
            .min(),
        timeout_ms: [send.timeout_ms, theirs.timeout_ms]
            .into_iter()
            .flatten()
            .min(),
        context_reserve: send.context_reserve.max(theirs.context_reserve),
        compact_at: send.compact_at.or(theirs.compact_at),
        max_cost_usd: [send.max_cost_usd, theirs.max_cost_usd]
            .into_iter()
            .flatten()
            .min(),
        max_fresh_tokens: [send.max_fresh_tokens, theirs.max_fresh_tokens]
            .into_iter()
            .flatten()
            .min(),
    }
}

/// Returns from which hundredth of the window on a conversation is compacted; `None` for never.
fn compact_at(limits: Limits, config: &Config) -> Option<u64> {
    let compaction = &config.compaction;
    let wanted = limits.compact_at.map(Share::percent);
    let percent = wanted.unwrap_or_else(|| compaction.at.percent());
    (compaction.enabled && percent > 0).then_some(percent)
}

/// A time limit of the configuration: its key, and its value.
type TimeLimit = (&'static str, fn(&ChatConfig) -> Duration);

/// That of exchanges without tools, and with.
const PLAIN: TimeLimit = ("chat.timeout_plain", |chat| chat.timeout_plain);
const TOOLS: TimeLimit = ("chat.timeout_tools", |chat| chat.timeout_tools);

/// Returns how long an exchange may take. A limit that is locked holds whichever tools there are when it begins.
fn duration(
    limits: Limits,
    workflow: Option<&Workflow>,
    config: &Config,
    (key, configured): TimeLimit,
) -> Duration {
    let configured = configured(&config.chat);
    let wanted = limits.timeout_ms.map_or(configured, Duration::from_millis);
    let is_workflows = workflow.is_some_and(|workflow| workflow.limits.timeout_ms.is_some());
    match config.session.is_locked(key) && !is_workflows {
        true => wanted.min(configured),
        false => wanted,
    }
}

fn model(
    send: &ChatSend,
    defaults: &Defaults,
    workflow: Option<&Workflow>,
    (config, default): (&Config, &str),
    instance: &ProviderConfig,
) -> String {
    // A model belongs to a provider: where a send names another provider, only its own word counts.
    let theirs = defaults
        .provider
        .as_ref()
        .or_else(|| workflow.and_then(|workflow| workflow.provider.as_ref()))
        .map_or(default, String::as_str);
    let other_provider = send.provider.as_ref().is_some_and(|named| named != theirs);
    let inherited = || {
        defaults
            .model
            .clone()
            .or_else(|| workflow.and_then(|workflow| workflow.model.clone()))
            .or_else(|| (instance.id == default).then(|| config.chat.model.clone()))
    };
    let model = send
        .model
        .clone()
        .or_else(|| if other_provider { None } else { inherited() })
        .filter(|model| !model.is_empty())
        .unwrap_or_else(|| instance.model.clone());
    if model.is_empty() && instance.kind == ProviderKind::Scripted {
        return "scripted".to_owned();
    }
    model
}

fn system(
    send: &ChatSend,
    workflow: Option<&Workflow>,
    config: &Config,
    workspace: &Workspace,
    output: Option<&Form>,
) -> String {
    let system = send
        .system_prompt
        .clone()
        .or_else(|| workflow.and_then(|workflow| workflow.system_prompt.clone()))
        .unwrap_or_else(|| default_system(config, workspace));
    match output {
        Some(form) => format!("{system}\n\n{}", form.instruction()),
        None => system,
    }
}

/// Returns the system prompt where nobody gives one of their own.
pub(super) fn default_system(config: &Config, workspace: &Workspace) -> String {
    let own = &config.chat.system_prompt;
    if !own.is_empty() {
        return own.clone();
    }
    match workspace.project() {
        Ok(project) => SYSTEM_PROMPT
            .trim_end()
            .replace("{root}", &project.root.to_string_lossy())
            .replace("{central}", &project.central.to_string_lossy())
            .replace("{project}", &project.name),
        Err(_) => SYSTEM_PROMPT_WITHOUT_PROJECT.trim_end().to_owned(),
    }
}

/// Returns what the answer has to be, where the send says so.
fn output(send: &ChatSend) -> Result<Option<Arc<Form>>, SessionError> {
    let Some(wanted) = &send.output else {
        return Ok(None);
    };
    let schema = ObjectSchema::new(wanted.schema.clone())
        .map_err(|problem| invalid(format!("field `output.schema`: {problem}")))?;
    Ok(Some(Arc::new(Form::new(schema))))
}

/// The layers of a session that asked for none.
pub(crate) const LAYERS: [Layer; 2] = [Layer::Stream, Layer::State];

/// Returns the layers to send where a client wants these.
pub(crate) fn layers(wanted: &[Layer]) -> Vec<Layer> {
    let mut layers: Vec<Layer> = wanted
        .iter()
        .copied()
        .filter(|layer| *layer != Layer::Exchange)
        .collect();
    layers.sort_unstable();
    layers.dedup();
    layers
}

/// Checks a send against the keys that the operator locked; `provider` is the one that answers where nobody names one.
fn allow_send(send: &ChatSend, config: &Config, provider: &str) -> Result<(), SessionError> {
    let chat = &config.chat;
    let changes = [
        ("chat.trust_level", is_looser(send.trust_level, config)),
        ("chat.provider", is_other(&send.provider, provider)),
        ("chat.model", is_other(&send.model, &chat.model)),
        ("chat.workflow", is_other(&send.workflow, &chat.workflow)),
        (
            "chat.system_prompt",
            is_other(&send.system_prompt, &chat.system_prompt),
        ),
    ];
    refuse_locked(&changes, config)
}

/// Checks a send's limits against those that the operator locked; of the time limits only one binds an exchange.
///
/// A limit that the send's workflow has cannot be widened by the send.
fn allow_limits(
    sent: Limits,
    workflow: Option<&Workflow>,
    config: &Config,
    has_tools: bool,
) -> Result<(), SessionError> {
    let chat = &config.chat;
    let theirs = workflow.map(|workflow| workflow.limits).unwrap_or_default();
    let turns = sent.max_turns.filter(|_| theirs.max_turns.is_none());
    let reserve = sent.context_reserve;
    let reserve = reserve.filter(|_| theirs.context_reserve.is_none());
    let timeout = sent.timeout_ms.filter(|_| theirs.timeout_ms.is_none());
    let (key, longest) = if has_tools { TOOLS } else { PLAIN };
    let cost = sent.max_cost_usd.filter(|_| theirs.max_cost_usd.is_none());
    let changes = [
        (
            "budget.exchange",
            cost.is_some() && is_more(cost, config.budget.exchange),
        ),
        (
            "chat.max_turns",
            turns.is_some_and(|turns| turns > chat.max_turns),
        ),
        (
            "chat.context_reserve",
            reserve.is_some_and(|reserve| reserve < chat.context_reserve),
        ),
        (
            key,
            timeout.is_some_and(|timeout| Duration::from_millis(timeout) > longest(chat)),
        ),
    ];
    refuse_locked(&changes, config)
}

pub(super) fn is_other(wanted: &Option<String>, configured: &str) -> bool {
    wanted.as_ref().is_some_and(|wanted| wanted != configured)
}

/// Returns whether a cap is higher than another one; `None` is no cap.
pub(super) fn is_more(wanted: Option<Money>, cap: Option<Money>) -> bool {
    cap.is_some_and(|cap| wanted.is_none_or(|wanted| wanted > cap))
}

pub(super) fn is_looser(trust: Option<TrustLevel>, config: &Config) -> bool {
    trust.is_some_and(|trust| trust > config.chat.trust_level)
}

/// Fails where the operator locked one of the keys that are changed.
pub(super) fn refuse_locked(changes: &[(&str, bool)], config: &Config) -> Result<(), SessionError> {
    let is_refused = |(key, changed): &&(&str, bool)| *changed && config.session.is_locked(key);
    match changes.iter().find(is_refused) {
        Some((key, _)) => Err(SessionError::new(
            SessionCode::Forbidden,
            format!("`{key}` is locked by the operator's configuration (session.locked)"),
        )),
        None => Ok(()),
    }
}

pub(super) fn invalid(message: impl Into<String>) -> SessionError {
    SessionError::new(SessionCode::InvalidPayload, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_limit_that_is_locked_holds_also_where_tools_come_later() {
        let mut config = crate::config::for_tests();
        let longer = config.chat.timeout_tools * 2;
        let limits = Limits {
            timeout_ms: u64::try_from(longer.as_millis()).ok(),
            ..Limits::default()
        };
        let workflow = Workflow {
            limits,
            ..Workflow::default()
        };
        assert_eq!(duration(limits, None, &config, TOOLS), longer);
        config.session.locked = vec!["chat.timeout_tools".to_owned()];
        let locked = config.chat.timeout_tools;
        assert_eq!(duration(limits, None, &config, TOOLS), locked);
        assert_eq!(duration(limits, Some(&workflow), &config, TOOLS), longer);
        assert_eq!(duration(limits, None, &config, PLAIN), longer);
    }
}
