//! `web_fetch`: a page as Markdown, and text as it is.
//!
//! A host that is not on a list is asked for, at each redirect too. What is connected to is public, by the address that a name
//! leads to at that moment (`target`, [`Clients::only`]), unless the operator named its server. What comes back is other
//! people's text: bounded, stripped of what is not seen, and marked as such. Nothing is sent but the address: no cookies, no
//! login.

mod charset;
mod get;
mod kind;
mod output;
mod page;
mod plain;
mod robots;
mod target;
mod visit;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::Semaphore;

use super::cache::Cache;
use super::stop::Stopped;
use super::typed::Typed;
use super::{Facts, Output, Prepared, Refusal, Run, Tool, Violation};
use crate::config::{HostEntry, WebFetchConfig};
use crate::http::Clients;
use crate::message::{DangerLevel, ToolCategory};
use crate::permission::rule::Key;
use crate::runtime::Stopwatch;
use robots::Robots;
use target::{Target, is_outside, may_be_inside};
use visit::{Read, Visit};

const NAME: &str = "web_fetch";

/// Characters of an answer where the call does not say how many.
const CHARS: usize = 20_000;

/// Most pages that are kept to be read on.
const KEPT_PAGES: usize = 16;

/// Most sites of which it is kept what their `robots.txt` says.
const KEPT_ROBOTS: usize = 64;

/// How long that is kept; the standard has a day at most.
const ROBOTS_TIME: Duration = Duration::from_secs(3600);

/// Most pages that are made Markdown at once, in all sessions: each takes a processor and some memory, and cannot be stopped.
const MAX_CONVERSIONS: usize = 2;

/// Reads a page of the web: its main content as Markdown, with its title and links; text, JSON and XML as they are. Nothing is
/// run and nobody is logged in. A long page comes in parts.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Input {
    /// The whole URL, of http or https.
    url: String,
    /// Most characters to return; 20000 where absent.
    max_chars: Option<usize>,
    /// The character to begin with, to read on in a long page; 0 where absent.
    offset: Option<usize>,
    /// true: the source of a page, as it was sent, in the place of Markdown.
    raw: Option<bool>,
}

/// What all calls share.
struct Fetcher {
    config: WebFetchConfig,
    /// Hosts that need no question.
    hosts: Vec<HostEntry>,
    /// For what must be public.
    outside: Clients,
    /// For servers that the operator let be private.
    inside: Clients,
    pages: Cache<Read>,
    robots: Cache<Robots>,
    conversions: Arc<Semaphore>,
}

/// Makes the tool; nothing is connected to. `hosts` are those that commands may connect to without a question.
pub fn web_fetch(config: WebFetchConfig, hosts: &[HostEntry]) -> impl Tool + use<> {
    let fetcher = Arc::new(Fetcher {
        hosts: config.hosts.iter().chain(hosts).cloned().collect(),
        outside: Clients::only(is_outside),
        inside: Clients::only(may_be_inside),
        pages: Cache::new(KEPT_PAGES, config.cache_ttl),
        robots: Cache::new(KEPT_ROBOTS, ROBOTS_TIME),
        conversions: Arc::new(Semaphore::new(MAX_CONVERSIONS)),
        config,
    });
    let prepare = move |input: Input| {
        let target = Target::parse(&input.url).map_err(Refusal::Invalid)?;
        if let Some(why) = fetcher.refusal(&target) {
            return Err(Refusal::Invalid(why));
        }
        let most = fetcher.config.max_chars;
        Ok(Call {
            fetcher: Arc::clone(&fetcher),
            target,
            offset: input.offset.unwrap_or_default(),
            max_chars: input.max_chars.unwrap_or(CHARS).clamp(1, most),
            raw: input.raw.unwrap_or_default(),
        })
    };
    Typed {
        looks_at_files: false,
        ..Typed::new(NAME, ToolCategory::Network, DangerLevel::Safe, prepare)
    }
}

impl Fetcher {
    /// Returns why a page is not read, whoever allows its host.
    fn refusal(&self, target: &Target) -> Option<String> {
        target.refusal(target.is_one_of(&self.config.allow_private))
    }
}

struct Call {
    fetcher: Arc<Fetcher>,
    target: Target,
    offset: usize,
    max_chars: usize,
    raw: bool,
}

impl Prepared for Call {
    fn facts(&self) -> Facts {
        let remember = Some(Key::tool(NAME));
        Facts {
            host: Some(self.target.server.host.to_string()),
            ..Facts::new(DangerLevel::Safe, remember)
        }
    }

    fn run<'a>(self: Box<Self>, run: Run<'a>) -> BoxFuture<'a, Result<Output, Violation>> {
        Box::pin(async move {
            let limit = self.fetcher.config.timeout.min(run.timeout);
            let clock = Stopwatch::start(limit);
            let visit = Visit {
                fetcher: &self.fetcher,
                user: run.user,
                clock: &clock,
                emit: run.emit,
            };
            let read = run.cancel.run_until_cancelled(async {
                tokio::select! {
                    read = visit.read(&self.target, self.raw) => Some(read),
                    () = clock.expired() => None,
                }
            });
            Ok(match read.await {
                Some(Some(Ok(read))) => {
                    let span = output::Span {
                        offset: self.offset,
                        most: self.max_chars,
                    };
                    output::of(&read, span, run.redactor)
                }
                Some(Some(Err(why))) => Output::error(why),
                Some(None) => Output::error(format!(
                    "{} was not read within {} s (tools.web_fetch.timeout)",
                    self.target.url,
                    limit.as_secs()
                ))
                .with(Stopped::TimedOut.metadata()),
                None => Output::error("cancelled").with(Stopped::Cancelled.metadata()),
            })
        })
    }
}

#[cfg(test)]
mod tests;
