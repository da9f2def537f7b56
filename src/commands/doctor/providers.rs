//! Checks of the providers: configured, and accepted by those who are asked.

use std::time::Duration;

use futures::future::join_all;

use super::Machine;
use super::finding::{Finding, State};
use crate::provider::registry::ProviderInfo;

/// How long a provider may take to accept its key.
const VALIDATE_TIME: Duration = Duration::from_secs(10);

/// How long an Ollama may take to list its models.
const OLLAMA_TIME: Duration = Duration::from_secs(3);

/// The most models that are named.
const NAMED: usize = 8;

const SCRIPTED: &str = "scripted";
const OLLAMA: &str = "ollama";

/// Whether each configured provider accepts what it is given. Nothing that costs money is asked.
pub(super) async fn providers(machine: &Machine) -> Vec<Finding> {
    let real: Vec<ProviderInfo> = machine
        .providers
        .list()
        .into_iter()
        .filter(|info| info.kind != SCRIPTED && info.kind != OLLAMA)
        .collect();
    let has_ollama = machine
        .providers
        .list()
        .iter()
        .any(|info| info.kind == OLLAMA);
    if real.is_empty() && !has_ollama {
        let none = Finding::new(
            "provider",
            State::Warning,
            "none is configured; the built-in demonstration answers",
        );
        return vec![none.advise(
            "set ANTHROPIC_API_KEY, OPENAI_API_KEY or another provider's key, or run Ollama and set [providers.ollama]",
        )];
    }
    join_all(real.iter().map(|info| validated(machine, info))).await
}

async fn validated(machine: &Machine, info: &ProviderInfo) -> Finding {
    let id = &info.id;
    let place = match info.default {
        true => format!("{id} (the default)"),
        false => id.clone(),
    };
    if !info.configured {
        let none = Finding::new("provider", State::Warning, format!("{place}: has no key"));
        return none.advise(format!("set providers.{id}.api_key or its variable"));
    }
    let Some(provider) = machine.providers.get(id) else {
        return Finding::new("provider", State::Failed, format!("{place}: is gone"));
    };
    match tokio::time::timeout(VALIDATE_TIME, provider.validate()).await {
        Ok(Ok(())) => Finding::new(
            "provider",
            State::Ok,
            format!("{place}: {} accepts the key", info.base_url),
        ),
        Ok(Err(error)) => Finding::new("provider", State::Failed, format!("{place}: {error}"))
            .advise(format!(
                "check providers.{id}.api_key and providers.{id}.base_url ({})",
                info.base_url
            )),
        Err(_) => Finding::new(
            "provider",
            State::Failed,
            format!(
                "{place}: {} did not answer within {} s",
                info.base_url,
                VALIDATE_TIME.as_secs()
            ),
        )
        .advise("check the network, and HTTPS_PROXY where there is a proxy"),
    }
}

/// Whether Ollama runs, and which models it has; asked at its usual address where none is configured.
pub(super) async fn ollama(machine: &Machine) -> Vec<Finding> {
    let configured: Vec<ProviderInfo> = machine
        .providers
        .list()
        .into_iter()
        .filter(|info| info.kind == OLLAMA)
        .collect();
    if !configured.is_empty() {
        let asked = configured
            .iter()
            .map(|info| listed(machine, info, State::Failed));
        return join_all(asked).await;
    }
    // A preset without an instance becomes one; it lives as long as this check.
    match machine.providers.configure(OLLAMA, None, None) {
        Ok(info) => vec![listed(machine, &info, State::Absent).await],
        Err(_) => Vec::new(),
    }
}

async fn listed(machine: &Machine, info: &ProviderInfo, missing: State) -> Finding {
    let Some(provider) = machine.providers.get(&info.id) else {
        return Finding::new(OLLAMA, missing, "is gone");
    };
    let models = match tokio::time::timeout(OLLAMA_TIME, provider.models()).await {
        Ok(Ok(models)) => models,
        Ok(Err(error)) => return unreachable(info, missing, &error.to_string()),
        Err(_) => {
            let problem = format!("no answer within {} s", OLLAMA_TIME.as_secs());
            return unreachable(info, missing, &problem);
        }
    };
    let names: Vec<&str> = models.iter().map(|model| model.id.as_str()).collect();
    match named(&names) {
        Some(named) => Finding::new(OLLAMA, State::Ok, format!("{}: {named}", info.base_url)),
        None => Finding::new(
            OLLAMA,
            State::Warning,
            format!("{} has no models", info.base_url),
        )
        .advise("get one that can call tools, e.g.: ollama pull qwen3"),
    }
}

fn unreachable(info: &ProviderInfo, state: State, problem: &str) -> Finding {
    let url = &info.base_url;
    let finding = Finding::new(OLLAMA, state, format!("{url}: {problem}"));
    match crate::sandbox::is_container() {
        true => finding.advise(
            "inside a container, localhost is the container itself: set providers.ollama.base_url to host.docker.internal or the service's name",
        ),
        false => finding.advise("start it with `ollama serve`, or set providers.ollama.base_url"),
    }
}

/// The first names, and how many more there are; `None` for none.
fn named(names: &[&str]) -> Option<String> {
    let shown = names
        .get(..NAMED.min(names.len()))
        .filter(|shown| !shown.is_empty())?;
    let more = names.len() - shown.len();
    let rest = match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!("{}{rest}", shown.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

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
