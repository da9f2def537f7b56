//! Checks of the providers: configured, and accepted by those who are asked.

use std::time::Duration;

use futures::future::join_all;

use super::Machine;
use super::finding::{Finding, State};
use crate::config::{ProviderKind, variable_of_key};
use crate::message::{Model, ProviderInfo};
use crate::provider::Provider;
use crate::provider::registry::Instance;

/// How long a provider may take to accept its key.
const VALIDATE_TIME: Duration = Duration::from_secs(10);

/// How long an Ollama may take to list its models.
const OLLAMA_TIME: Duration = Duration::from_secs(3);

/// The most models that are named.
const NAMED: usize = 8;

/// A context below which a prompt, the tools and one file hardly fit, in tokens.
const SMALL_CONTEXT: u64 = 16 * 1024;

const PROVIDER: &str = "provider";
const SCRIPTED: &str = "scripted";
const OLLAMA: &str = "ollama";

/// Whether each configured provider accepts what it is given, and what its model can do. Nothing that costs money is
/// asked.
pub(super) async fn providers(machine: &Machine) -> Vec<Finding> {
    let all = machine.providers.list();
    let is_real = |info: &&ProviderInfo| info.kind != SCRIPTED && info.kind != OLLAMA;
    let real: Vec<&ProviderInfo> = all.iter().filter(is_real).collect();
    let mut findings = scripts(machine, &all);
    if real.is_empty() && findings.is_empty() && !all.iter().any(|info| info.kind == OLLAMA) {
        let none = "none is configured; the built-in demonstration answers";
        return vec![Finding::new(PROVIDER, State::Warning, none).advise(
            "set ANTHROPIC_API_KEY, OPENAI_API_KEY or another provider's key, or run Ollama on this machine (chat.detect_ollama)",
        )];
    }
    findings.extend(join_all(real.into_iter().map(|info| validated(machine, info))).await);
    findings
}

/// The scripts that somebody configured.
fn scripts(machine: &Machine, all: &[ProviderInfo]) -> Vec<Finding> {
    let configs = machine.loaded.config.providers.iter();
    let scripted = configs.filter(|config| config.kind == ProviderKind::Scripted);
    scripted
        .filter(|config| config.id != SCRIPTED || config.script.is_some())
        .map(|config| {
            let is_default = all.iter().any(|info| info.id == config.id && info.default);
            let played = match &config.script {
                Some(script) => script.display().to_string(),
                None => "the built-in demonstration".to_owned(),
            };
            let place = place(&config.id, is_default);
            let found = format!("{place}: plays {played}, no model is asked");
            Finding::new(PROVIDER, State::Ok, found)
        })
        .collect()
}

fn place(id: &str, is_default: bool) -> String {
    match is_default {
        true => format!("{id} (the default)"),
        false => id.to_owned(),
    }
}

async fn validated(machine: &Machine, info: &ProviderInfo) -> Finding {
    let id = &info.id;
    let place = place(id, info.default);
    let failed = |what: String| Finding::new(PROVIDER, State::Failed, format!("{place}: {what}"));
    if !info.configured {
        // Every message would fail.
        let state = match info.default {
            true => State::Failed,
            false => State::Warning,
        };
        let none = Finding::new(PROVIDER, state, format!("{place}: has no key"));
        let variable = variable_of_key(id);
        return none.advise(format!(
            "set providers.{id}.api_key, or the variable {variable}"
        ));
    }
    let Some(Instance {
        config, provider, ..
    }) = machine.providers.find(id)
    else {
        return failed("is gone".to_owned());
    };
    match tokio::time::timeout(VALIDATE_TIME, provider.validate()).await {
        Ok(Ok(())) => {
            let answers = match config.api_key.is_some() {
                true => "accepts the key",
                false => "answers without a key",
            };
            let model = model(machine, info.default, &config.model, &*provider).await;
            let answers = format!("{place}: {} {answers}", info.base_url);
            of_model(&answers, model.as_ref())
        }
        Ok(Err(error)) => failed(error.to_string()).advise(format!(
            "check providers.{id}.api_key and providers.{id}.base_url ({})",
            info.base_url
        )),
        Err(_) => {
            let (url, seconds) = (&info.base_url, VALIDATE_TIME.as_secs());
            failed(format!("{url} did not answer within {seconds} s"))
                .advise("check the network, and HTTPS_PROXY where there is a proxy")
        }
    }
}

/// The model that answers where a message names none, as far as its server and the table know.
async fn model(
    machine: &Machine,
    is_default: bool,
    own: &str,
    provider: &dyn Provider,
) -> Option<Model> {
    let chosen = match machine.loaded.config.chat.model.as_str() {
        model if is_default && !model.is_empty() => model,
        _ => own,
    };
    let listed = tokio::time::timeout(VALIDATE_TIME, provider.models()).await;
    let mut listed = listed
        .ok()
        .and_then(Result::ok)
        .unwrap_or_default()
        .into_iter();
    if chosen.is_empty() {
        return listed.next();
    }
    let known = listed.find(|model| model.id == chosen);
    Some(known.unwrap_or_else(|| provider.model(chosen)))
}

/// What a provider that answers is good for, by its model.
fn of_model(answers: &str, model: Option<&Model>) -> Finding {
    let found = |state, text: &str| Finding::new(PROVIDER, state, format!("{answers}; {text}"));
    let Some(model) = model else {
        return found(State::Warning, "it lists no model")
            .advise("install one there, or name one in its `model`");
    };
    let text = described(model);
    if !model.supports_tools {
        return found(State::Warning, &text).advise(
            "name a model that can call tools, or start its server with a template that has them",
        );
    }
    if is_small(model) {
        let text = format!("{text}; that is little for tools and their output");
        return found(State::Warning, &text).advise(format!("start its server with a context of {SMALL_CONTEXT} tokens or more, e.g. llama-server -c {SMALL_CONTEXT}"));
    }
    found(State::Ok, &text)
}

fn is_small(model: &Model) -> bool {
    let window = model.context_window;
    window.is_some_and(|size| size < SMALL_CONTEXT)
}

/// A model with its window and whether it has tools.
fn described(model: &Model) -> String {
    let window = match model.context_window {
        Some(size) => format!("a window of {size} tokens"),
        None => "a window that nobody told".to_owned(),
    };
    let tools = match model.supports_tools {
        true => "tools",
        false => "no tools",
    };
    format!("model {} with {window} and {tools}", model.id)
}

/// Whether Ollama runs, and which models it has; asked at its usual address where none is configured.
pub(super) async fn ollama(machine: &Machine) -> Vec<Finding> {
    let mut configured = machine.providers.list();
    configured.retain(|info| info.kind == OLLAMA);
    if !configured.is_empty() {
        let listings = configured
            .iter()
            .map(|info| listed(machine, info, State::Failed));
        return join_all(listings).await;
    }
    // A preset without an instance becomes one; it lives as long as this check.
    let place = machine.loaded.config.chat.detect_ollama.as_deref();
    match machine.providers.configure(OLLAMA, None, place) {
        Ok(info) => vec![listed(machine, &info, State::Absent).await],
        Err(_) => Vec::new(),
    }
}

async fn listed(machine: &Machine, info: &ProviderInfo, missing: State) -> Finding {
    let Some(provider) = machine.providers.get(&info.id) else {
        return Finding::new(OLLAMA, missing, "is gone");
    };
    let response = tokio::time::timeout(OLLAMA_TIME, provider.models()).await;
    let late = || format!("no answer within {} s", OLLAMA_TIME.as_secs());
    let answer = response.map_err(|_| late());
    let models = match answer.and_then(|answer| answer.map_err(|error| error.to_string())) {
        Ok(models) => models,
        Err(problem) => return unreachable(info, missing, &problem),
    };
    let found = of_models(info, &models, &machine.loaded.config.chat.model);
    match info.default && machine.loaded.config.chat.detect_ollama.is_some() {
        true => found.remark("it answers, since no provider is configured"),
        false => found,
    }
}

/// What the models that Ollama has are good for; where one is chosen, only that one counts.
fn of_models(info: &ProviderInfo, models: &[Model], chosen: &str) -> Finding {
    let url = &info.base_url;
    let warning = |text: String| Finding::new(OLLAMA, State::Warning, text);
    let names: Vec<&str> = models.iter().map(|model| model.id.as_str()).collect();
    let Some(all) = named(&names) else {
        return warning(format!("{url} has no models"))
            .advise("get one that can call tools, e.g.: ollama pull qwen3");
    };
    let counts = |model: &&Model| !info.default || chosen.is_empty() || model.id == chosen;
    let counted: Vec<&Model> = models.iter().filter(counts).collect();
    if counted.is_empty() {
        return warning(format!("{url} has no model {chosen}, but {all}"))
            .advise(format!("ollama pull {chosen}, or set chat.model"));
    }
    if counted.iter().all(|model| !model.supports_tools) {
        let names: Vec<&str> = counted.iter().map(|model| model.id.as_str()).collect();
        let names = named(&names).unwrap_or_default();
        return warning(format!("{url}: {names} cannot call tools"))
            .advise("get one that can, e.g.: ollama pull qwen3");
    }
    if let Some(model) = counted.iter().find(|model| is_small(model)) {
        let size = model.context_window.unwrap_or_default();
        return warning(format!(
            "{url}: the context of {} is {size} tokens, little for tools and their output",
            model.id
        ))
        .advise(format!(
            "set providers.{}.num_ctx to {SMALL_CONTEXT} or more where model and memory allow it",
            info.id
        ));
    }
    let first = counted.first().map(|model| described(model));
    Finding::new(
        OLLAMA,
        State::Ok,
        format!("{url}: {all}; {}", first.unwrap_or_default()),
    )
}

fn unreachable(info: &ProviderInfo, state: State, problem: &str) -> Finding {
    let url = &info.base_url;
    let finding = Finding::new(OLLAMA, state, format!("{url}: {problem}"));
    let is_here = ["localhost", "127.0.0.1", "[::1]"]
        .iter()
        .any(|name| url.contains(name));
    match is_here && crate::sandbox::is_container() {
        true => finding.advise(
            "start it with `ollama serve`; this is a container, whose localhost is itself: where it runs outside, set providers.ollama.base_url to host.docker.internal or the service's name",
        ),
        false => finding.advise("start it with `ollama serve`, or set providers.ollama.base_url"),
    }
}

/// The first names, and how many more there are; `None` for none.
fn named(names: &[&str]) -> Option<String> {
    let shown = names
        .iter()
        .take(NAMED)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    match names.len() {
        0 => None,
        all if all > NAMED => Some(format!("{shown} and {} more", all - NAMED)),
        _ => Some(shown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_without_tools_or_with_a_small_context_are_reported() {
        let info = ProviderInfo {
            id: OLLAMA.to_owned(),
            kind: OLLAMA.to_owned(),
            base_url: "http://o".to_owned(),
            configured: true,
            default: true,
        };
        let model = |id: &str, supports_tools: bool, context_window: Option<u64>| Model {
            id: id.to_owned(),
            provider: OLLAMA.to_owned(),
            display_name: id.to_owned(),
            context_window,
            max_output_tokens: None,
            supports_tools,
            supports_thinking: None,
            supports_vision: None,
            pricing: None,
        };
        let good = model("good", true, Some(32_768));
        let mute = model("mute", false, None);
        let small = model("small", true, Some(4_096));
        let cases = [
            (vec![], "", "has no models"),
            (vec![good.clone(), mute.clone()], "", "http://o: good, mute"),
            (vec![mute.clone()], "", "mute cannot call tools"),
            (vec![good.clone(), mute], "mute", "mute cannot call tools"),
            (vec![small], "", "the context of small is 4096 tokens"),
            (vec![good], "other", "has no model other, but good"),
        ];
        for (models, chosen, expected) in cases {
            let found = of_models(&info, &models, chosen);
            let text = crate::commands::doctor::finding::text(&[found]);
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }

    #[test]
    fn a_long_list_of_models_is_cut() {
        let many: Vec<&str> = vec!["m"; NAMED + 2];
        let cases: [(&[&str], Option<&str>); 3] = [
            (&[], None),
            (&["a", "b"], Some("a, b")),
            (&many, Some("m, m, m, m, m, m, m, m and 2 more")),
        ];
        for (names, expected) in cases {
            assert_eq!(named(names).as_deref(), expected);
        }
    }
}
