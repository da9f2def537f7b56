//! From a send to the setup of its exchange: send, then session, then workflow, then configuration. Pure.

use std::time::Duration;

use super::defaults::{Defaults, allow_send};
use crate::config::{Config, ProviderConfig, ProviderKind};
use crate::exchange::context::Setup;
use crate::message::{MessageId, Part, SessionId, image};
use crate::permission::{Limits, PermissionMap, Scope, Workflow};
use crate::protocol::SessionCode;
use crate::protocol::command::ChatSend;
use crate::protocol::content::Content;
use crate::protocol::event::SessionError;
use crate::provider::registry::Providers;

/// The system prompt where nobody gives one.
const SYSTEM_PROMPT: &str = include_str!("../../config/system_prompt.txt");

/// The longest id of a conversation, in bytes: it stands in every event.
const MAX_ID_BYTES: usize = 256;

/// The most turns of one exchange.
const MAX_TURNS: u32 = 200;

/// Settles everything about an exchange that a send leaves open, but for the model where nobody names
/// one: it stays empty, and its exchange asks for the first one.
/// An error names the field.
pub(crate) fn setup(
    send: &ChatSend,
    message_id: MessageId,
    session: &SessionId,
    defaults: &Defaults,
    config: &Config,
    providers: &Providers,
) -> Result<Setup, SessionError> {
    check(send)?;
    let name = send.workflow.as_deref().unwrap_or(&defaults.workflow);
    let found = config.workflows.get(name);
    allow_send(send, found, config, providers.default_id())?;
    let workflow = workflow(name, config)?;
    let scope = scope(workflow, send.tool_permissions.as_ref())?;
    let provider_id = send
        .provider
        .clone()
        .or_else(|| defaults.provider.clone())
        .or_else(|| workflow.and_then(|workflow| workflow.provider.clone()))
        .unwrap_or_else(|| providers.default_id().to_owned());
    let found = providers
        .get(&provider_id)
        .zip(providers.config(&provider_id));
    let (provider, instance) = found.ok_or_else(|| {
        let message = format!(
            "field `provider`: there is no provider `{provider_id}`; ask for them with provider:list"
        );
        SessionError::new(SessionCode::ProviderNotFound, message)
    })?;
    let limits = limits(send.limits, workflow);
    Ok(Setup {
        conversation_id: send.conversation_id.clone(),
        message_id,
        content: send.content.clone().into_parts(),
        model: model(
            send,
            defaults,
            workflow,
            (config, providers.default_id()),
            &instance,
        ),
        system: system(send, workflow, config),
        trust: send.trust_level.unwrap_or_else(|| defaults.trust(workflow)),
        on_violation: Defaults::on_violation(workflow, config),
        scope,
        max_tokens: send.max_tokens,
        temperature: send.temperature,
        thinking: send.thinking,
        max_turns: limits.max_turns.unwrap_or(config.chat.max_turns),
        timeout_plain: duration(limits, config.chat.timeout_plain),
        timeout_tools: duration(limits, config.chat.timeout_tools),
        context_reserve: limits
            .context_reserve
            .unwrap_or(config.chat.context_reserve),
        max_retries: instance.max_retries,
        restarts: instance.restart_after_partial,
        cache_key: format!("{session}-{}", send.conversation_id),
        provider,
        provider_id,
    })
}

/// Returns what a workflow and a client's map come to.
pub(crate) fn scope(
    workflow: Option<&Workflow>,
    narrowed: Option<&PermissionMap>,
) -> Result<Scope, SessionError> {
    Scope::new(workflow.map(|workflow| &workflow.permissions), narrowed)
        .map_err(|message| invalid(format!("field `toolPermissions`: {message}")))
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
    Ok(())
}

/// Refuses pictures that no model takes, here, where whoever sent them gets the error.
fn check_images(content: &Content) -> Result<(), SessionError> {
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
    }
}

fn duration(limits: Limits, otherwise: Duration) -> Duration {
    limits.timeout_ms.map_or(otherwise, Duration::from_millis)
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

fn system(send: &ChatSend, workflow: Option<&Workflow>, config: &Config) -> String {
    let own = &config.chat.system_prompt;
    send.system_prompt
        .clone()
        .or_else(|| workflow.and_then(|workflow| workflow.system_prompt.clone()))
        .unwrap_or_else(|| {
            if own.is_empty() {
                let project = &config.project;
                SYSTEM_PROMPT
                    .trim_end()
                    .replace("{root}", &project.root.to_string_lossy())
                    .replace("{central}", &project.central.to_string_lossy())
                    .replace("{project}", &project.name)
            } else {
                own.clone()
            }
        })
}

pub(super) fn invalid(message: impl Into<String>) -> SessionError {
    SessionError::new(SessionCode::InvalidPayload, message)
}
