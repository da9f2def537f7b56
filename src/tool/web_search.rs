//! `web_search`: asks SearXNG, then Brave where that fails or finds nothing, and says which of them failed and what to
//! do about it.
//!
//! Results are other people's text: shortened, stripped of control characters, and marked as such.
//! Nothing here follows a link.

mod answer;
mod brave;
mod fetch;
mod searxng;

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Deserialize;

use super::cache::Cache;
use super::stop::Stopped;
use super::typed::Typed;
use super::{Facts, Metadata, Output, OutputStream, Prepared, Refusal, Run, Tool, Violation};
use crate::config::{Current, WebSearchConfig};
use crate::http::Clients;
use crate::message::{DangerLevel, Severity, ToolCategory};
use crate::notices::{Notices, To};
use crate::permission::rule::Key;
use answer::Answer;
pub(crate) use fetch::fetch;

const NAME: &str = "web_search";

/// Who is asked, in this order.
const ENGINES: [&str; 2] = ["searxng", "brave"];

/// Results where the call does not say how many.
const RESULTS: u32 = 5;

/// The most results of one answer.
const MAX_RESULTS: u32 = 20;

/// The longest query, in characters; search engines take no more.
const MAX_QUERY: usize = 400;

/// Most answers that are kept, by their queries.
const KEPT: usize = 128;

/// The most causes of failure that are remembered as notified; with more, all are notified anew.
const MAX_NOTIFIED: usize = 32;

/// Searches the web and returns titles, addresses and excerpts of what was found.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Input {
    /// What to search for, in plain words.
    query: String,
    /// Most results, 1 to 20; 5 where absent.
    max_results: Option<u32>,
}

struct Engines {
    clients: Clients,
    /// Read anew for each search: it may change.
    settings: Current,
    cache: Cache<Answer>,
    /// Where sessions are notified that an engine is down.
    notices: Notices,
    /// Failures that sessions were notified of since the engine last answered. Held for a look, never across an await.
    notified: Mutex<BTreeSet<String>>,
}

/// Makes the tool; nothing is connected to.
///
/// Failures of an engine behind which another one answers go to `notices`.
pub fn web_search(settings: Current, clients: Clients, notices: Notices) -> impl Tool {
    let engines = Arc::new(Engines {
        clients,
        cache: Cache::new(KEPT, settings.now().tools.web_search.cache_ttl),
        settings,
        notices,
        notified: Mutex::default(),
    });
    let prepare = move |input: Input| {
        let query = input.query.split_whitespace().collect::<Vec<_>>().join(" ");
        if query.is_empty() {
            return Err(Refusal::Invalid("`query` is empty".to_owned()));
        }
        if query.chars().count() > MAX_QUERY {
            return Err(Refusal::Invalid(format!(
                "`query` has more than {MAX_QUERY} characters; search for fewer words"
            )));
        }
        let wanted = input.max_results.unwrap_or(RESULTS).clamp(1, MAX_RESULTS);
        Ok(Call {
            engines: Arc::clone(&engines),
            query,
            wanted: wanted as usize,
        })
    };
    Typed {
        looks_at_files: false,
        ..Typed::new(NAME, ToolCategory::Search, DangerLevel::Safe, prepare)
    }
}

/// What SearXNG answered to a question that does not matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// How many results came.
    pub results: usize,
    /// What went wrong besides, e.g. an engine behind it that did not answer.
    pub warnings: Vec<String>,
}

/// Asks SearXNG something, to see whether it serves. An error says why it does not, and what to do; reads after its
/// address.
pub async fn try_searxng(config: &WebSearchConfig, clients: &Clients) -> Result<Tried, String> {
    let Some(base) = &config.searxng_url else {
        return Err("is not configured".to_owned());
    };
    let answer = searxng::search(clients, base, &config.engines, "outrigger").await?;
    Ok(Tried {
        results: answer.results.len(),
        warnings: answer.warnings,
    })
}

struct Call {
    engines: Arc<Engines>,
    query: String,
    wanted: usize,
}

impl Prepared for Call {
    fn facts(&self) -> Facts {
        let remember = Some(Key::tool(NAME));
        Facts::new(DangerLevel::Safe, remember)
    }

    fn query(&self) -> Option<&str> {
        Some(&self.query)
    }

    fn run<'a>(self: Box<Self>, run: Run<'a>) -> BoxFuture<'a, Result<Output, Violation>> {
        Box::pin(async move {
            let search = tokio::time::timeout(run.timeout, self.search(run.emit));
            let (why, stopped) = match run.cancel.run_until_cancelled(search).await {
                Some(Ok(output)) => return Ok(output),
                Some(Err(_)) => ("the search took too long", Stopped::TimedOut),
                None => ("cancelled", Stopped::Cancelled),
            };
            Ok(Output::error(why).with(stopped.metadata()))
        })
    }
}

impl Call {
    async fn search(&self, emit: &(dyn Fn(OutputStream, &str) + Send + Sync)) -> Output {
        if let Some(answer) = self.engines.cache.get(&self.query) {
            return self.output(&answer);
        }
        let mut tried = Tries::default();
        for engine in ENGINES {
            match self.engines.ask(engine, &self.query).await {
                None => {}
                Some(Ok(answer)) if answer.is_empty() => {
                    self.engines.answered(engine, &[]);
                    emit(OutputStream::Progress, &format!("{engine} found nothing\n"));
                    tried.empty.push(engine);
                    tried.warnings.extend(answer.warnings);
                }
                Some(Ok(mut answer)) => {
                    self.engines.answered(engine, &tried.problems);
                    answer.warnings.extend(tried.before(engine));
                    let answer = Arc::new(answer);
                    self.engines.cache.put(&self.query, &answer, answer.bytes());
                    return self.output(&answer);
                }
                Some(Err(problem)) => {
                    let said = format!("{engine}: {problem}");
                    emit(OutputStream::Progress, &format!("{said}\n"));
                    tracing::warn!(engine, %problem, "search failed");
                    tried.problems.push(said);
                }
            }
        }
        self.nothing(tried)
    }

    fn nothing(&self, tried: Tries) -> Output {
        let Tries {
            empty,
            problems,
            mut warnings,
        } = tried;
        if empty.is_empty() && problems.is_empty() {
            return Output::error(
                "no search engine is configured; set tools.web_search.searxng_url or tools.web_search.brave_api_key",
            );
        }
        let Some(last) = empty.last() else {
            return Output::error(format!(
                "the search failed, which does not mean that nothing exists: {}",
                problems.join("; ")
            ));
        };
        let by = match problems.as_slice() {
            [] if empty.len() == 1 => String::new(),
            [] => format!(", neither by {}", empty.join(" nor by ")),
            problems => format!(" by {last}; {}", problems.join("; ")),
        };
        warnings.extend(problems);
        Output::error(format!("nothing was found for {:?}{by}", self.query)).with(Metadata {
            provider: Some((*last).to_owned()),
            result_count: Some(0),
            warnings,
            ..Metadata::default()
        })
    }

    fn output(&self, answer: &Answer) -> Output {
        let shown = answer.results.len().min(self.wanted);
        Output::text(answer.text(&self.query, shown)).with(Metadata {
            provider: Some(answer.engine.to_owned()),
            result_count: Some(shown as u64),
            results: Some(answer.data(shown)),
            answers: answer.answers.clone(),
            warnings: answer.warnings.clone(),
            ..Metadata::default()
        })
    }
}

/// What came of the engines that were asked and did not find anything.
#[derive(Default)]
struct Tries {
    empty: Vec<&'static str>,
    problems: Vec<String>,
    warnings: Vec<String>,
}

impl Tries {
    /// What is worth knowing of them beside the answer of the engine that was asked next.
    fn before(self, engine: &str) -> impl Iterator<Item = String> {
        let empty = self.empty.into_iter();
        let empty = empty.map(|engine| format!("{engine} found nothing"));
        let said = self.problems.into_iter().chain(empty);
        let said = said.map(move |said| format!("{said}; {engine} was asked instead"));
        self.warnings.into_iter().chain(said)
    }
}

impl Engines {
    /// Notifies sessions of the engines that failed before this one answered, each cause once until they answer again.
    fn answered(&self, engine: &str, problems: &[String]) {
        let mut notified = self.notified.lock();
        notified.retain(|said| !said.starts_with(engine));
        if notified.len() + problems.len() > MAX_NOTIFIED {
            notified.clear();
        }
        for said in problems {
            if notified.insert(said.clone()) {
                let message = format!("web_search asks {engine} instead of {said}");
                let (to, code) = (To::Operators, "search_backend_down");
                self.notices.send(to, Severity::Warning, code, message);
            }
        }
    }

    /// Asks an engine; `None` where it is not configured.
    async fn ask(&self, engine: &str, query: &str) -> Option<Result<Answer, String>> {
        let clients = &self.clients;
        let config = &self.settings.now().tools.web_search;
        Some(match engine {
            "searxng" => {
                let url = config.searxng_url.as_deref()?;
                searxng::search(clients, url, &config.engines, query).await
            }
            _ => {
                let key = config.brave_api_key.as_ref()?;
                brave::search(clients, &config.brave_url, key, query).await
            }
        })
    }
}

#[cfg(test)]
mod tests;
