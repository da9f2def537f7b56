//! The way of one call to its page: whom it asks, which redirects it follows, and what it makes of the answer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use reqwest::{StatusCode, Url};

use super::Fetcher;
use super::charset;
use super::get::{Answer, get};
use super::kind::{Kind, Said, guessed, said};
use super::page::{self, Form};
use super::robots::{Robots, name_of};
use super::target::Target;
use crate::config::HostPort;
use crate::runtime::Stopwatch;
use crate::tool::OutputStream;
use crate::tool::foreign;
use crate::tool::hosts::holds;
use crate::tool::user::{AskUser, HostVerdict};

/// Most redirects on the way to a page.
const MAX_REDIRECTS: usize = 5;

/// Most bytes that are read of a `robots.txt`; the standard has it as the least.
const MAX_ROBOTS: usize = 512 * 1024;

/// A page that was read, or what came in its place.
pub(super) struct Read {
    pub(super) page: Target,
    /// What was asked before it, and led to it.
    pub(super) before: Vec<Target>,
    pub(super) status: StatusCode,
    /// The type that its server says.
    pub(super) content_type: String,
    pub(super) content: Content,
    /// What is to be known of it besides.
    pub(super) notes: Vec<String>,
}

/// What of a page is there.
pub(super) struct Content {
    pub(super) shown: Shown,
    pub(super) title: Option<String>,
    pub(super) text: String,
}

/// What was made of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// It was read as a page.
    Page(Form),
    /// It is as it was sent, since the call asks for that.
    Source,
    /// It is text, and no page.
    Text,
}

impl Shown {
    /// Returns what the model is told of it.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Page(Form::Article) => "its main content as Markdown",
            Self::Page(Form::Whole) => "the whole page as Markdown",
            Self::Page(Form::Plain) => "its text without form, since it is too large or too deep",
            Self::Source => "its source",
            Self::Text => "its text",
        }
    }

    pub(super) fn is_markdown(self) -> bool {
        matches!(self, Self::Page(Form::Article | Form::Whole))
    }
}

/// An answer, where it was found, and what was asked on the way there.
struct Found {
    answer: Answer,
    page: Target,
    before: Vec<Target>,
}

/// What an answer holds, and how it is to be read.
struct Body {
    bytes: Vec<u8>,
    /// Whether there is more of it.
    is_cut: bool,
    kind: Kind,
    charset: Option<String>,
}

/// One call on its way.
pub(super) struct Visit<'a> {
    pub(super) fetcher: &'a Fetcher,
    pub(super) user: Option<&'a dyn AskUser>,
    /// Stands still while the user is asked.
    pub(super) clock: &'a Stopwatch,
    pub(super) emit: &'a (dyn Fn(OutputStream, &str) + Send + Sync),
}

impl Visit<'_> {
    /// Reads a page; `raw` for its source. An error is a sentence for the model.
    pub(super) async fn read(&self, target: &Target, raw: bool) -> Result<Arc<Read>, String> {
        let name = format!("{raw} {}", target.url);
        if let Some(kept) = self.fetcher.pages.get(&name) {
            // Another conversation may have been asked.
            for target in kept.before.iter().chain([&kept.page]) {
                let asked = self.permit(target).await;
                asked.map_err(|why| format!("{} was not read: {why}", target.url))?;
            }
            return Ok(kept);
        }
        let found = self.follow(target).await?;
        let read = Arc::new(self.take(found, raw).await?);
        if read.status.is_success() {
            let pages = &self.fetcher.pages;
            pages.put(&name, &read, read.content.text.len());
        }
        Ok(read)
    }

    /// Asks for a page, and where it says that it is elsewhere, there. Returns the last answer.
    async fn follow(&self, first: &Target) -> Result<Found, String> {
        let mut before: Vec<Target> = Vec::new();
        let mut target = first.clone();
        loop {
            let unread = |why: String| match before.last() {
                None => format!("{} was not read: {why}", target.url),
                Some(from) => format!(
                    "{} redirects to {}, which was not followed: {why}",
                    from.url, target.url
                ),
            };
            self.permit(&target).await.map_err(unread)?;
            self.obey(&target).await.map_err(unread)?;
            (self.emit)(OutputStream::Progress, &format!("{}\n", target.url));
            let answer = self.get(&target).await;
            let answer = answer.map_err(|why| format!("{} {why}", target.url))?;
            let Some(location) = answer.location() else {
                return Ok(Found {
                    answer,
                    page: target,
                    before,
                });
            };
            let next = target.join(location);
            let next = next.map_err(|what| {
                format!("{} redirects, which was not followed: {what}", target.url)
            })?;
            let leads = format!("{} redirects to {}", target.url, next.url);
            if target.url.scheme() == "https" && next.url.scheme() == "http" {
                return Err(format!(
                    "{leads}, which was not followed: it leaves https; where that is right, ask for that URL itself"
                ));
            }
            before.push(std::mem::replace(&mut target, next));
            if before.iter().any(|asked| asked.url == target.url) {
                return Err(format!(
                    "{leads}, where it was before: a circle; the site may want cookies, which are not kept"
                ));
            }
            if before.len() > MAX_REDIRECTS {
                return Err(format!(
                    "{leads}, which is redirect {} and was not followed",
                    before.len()
                ));
            }
        }
    }

    /// Returns why a host may not be asked, by its address, by the lists, or by the user.
    async fn permit(&self, target: &Target) -> Result<(), String> {
        if let Some(why) = self.fetcher.refusal(target) {
            return Err(why);
        }
        if holds(&self.fetcher.hosts, &target.server.host) {
            return Ok(());
        }
        let Some(user) = self.user else {
            return Err("nobody is there to be asked for its host".to_owned());
        };
        let _pause = self.clock.pause();
        let HostPort { host, port } = &target.server;
        match user.ask_host(&host.to_string(), *port).await {
            HostVerdict::Allowed => Ok(()),
            HostVerdict::Refused(why) => Err(format!("its host may not be asked: {why}")),
        }
    }

    /// Returns why a page is left, by its site's `robots.txt`.
    async fn obey(&self, target: &Target) -> Result<(), String> {
        if !self.fetcher.config.robots {
            return Ok(());
        }
        let origin = target.origin();
        let robots = match self.fetcher.robots.get(&origin) {
            Some(robots) => robots,
            None => {
                let robots = Arc::new(self.robots(target).await?);
                self.fetcher.robots.put(&origin, &robots, robots.bytes());
                robots
            }
        };
        match robots.allows(&target.path()) {
            true => Ok(()),
            false => Err(format!(
                "{origin}/robots.txt keeps programs from it; do without this page, or ask the user for what it says (tools.web_fetch.robots)"
            )),
        }
    }

    async fn robots(&self, target: &Target) -> Result<Robots, String> {
        let product = name_of(&self.fetcher.config.user_agent);
        let mut at = target.join("/robots.txt")?;
        for _ in 0..=MAX_REDIRECTS {
            let answer = self.get(&at).await?;
            if let Some(location) = answer.location() {
                // The user allowed this host and no other.
                let next = at.join(location).ok();
                let next = next.filter(|next| next.server.host == at.server.host);
                match next.filter(|next| self.fetcher.refusal(next).is_none()) {
                    Some(next) => at = next,
                    None => break,
                }
                continue;
            }
            let status = answer.status();
            if status.is_server_error() {
                return Err(format!(
                    "{} answered with status {status}, which means that nothing is to be read for now (tools.web_fetch.robots)",
                    at.url
                ));
            }
            if !status.is_success() {
                break;
            }
            let body = answer.body(MAX_ROBOTS).await?;
            let text = String::from_utf8_lossy(&body.bytes);
            return Ok(Robots::parse(&text, product));
        }
        // There is none: everything may be read.
        Ok(Robots::default())
    }

    async fn get(&self, target: &Target) -> Result<Answer, String> {
        let config = &self.fetcher.config;
        let clients = match target.is_one_of(&config.allow_private) {
            true => &self.fetcher.inside,
            false => &self.fetcher.outside,
        };
        let client = clients.get(target.url.as_str(), None).await;
        let client = client.map_err(|error| format!("was not asked: {error}"))?;
        get(&client, target, &config.user_agent).await
    }

    /// Reads what an answer holds.
    async fn take(&self, found: Found, raw: bool) -> Result<Read, String> {
        let Found {
            answer,
            page,
            before,
        } = found;
        let status = answer.status();
        let head = said(answer.content_type());
        let content_type = head.name.clone();
        let body = self.body(answer, head, &page.url).await?;
        let mut notes = Vec::new();
        if body.is_cut {
            notes.push(format!(
                "only its first {} bytes were read (tools.web_fetch.max_bytes)",
                self.fetcher.config.max_bytes
            ));
        }
        let (content, unreadable) = self.convert(body, page.url.clone(), raw).await?;
        notes.extend(unreadable.map(|encoding| format!("some bytes are no {encoding}")));
        Ok(Read {
            page,
            before,
            status,
            content_type,
            content,
            notes,
        })
    }

    /// Receives the body of an answer, where it is something that is read.
    async fn body(&self, answer: Answer, head: Said, url: &Url) -> Result<Body, String> {
        let size = answer.size();
        if let Some(packing) = answer.packing() {
            return Err(format!(
                "{url} is packed as {packing:?}, which was not asked for and cannot be unpacked"
            ));
        }
        let unread = |kind: Kind| match kind {
            Kind::Pdf => Some(format!(
                "{url} is a PDF document ({size}), which is not read here"
            )),
            Kind::Other => Some(format!(
                "{url} is of type {:?} ({size}), which is not read: only pages, text, JSON and XML are",
                foreign::line(&head.name, 100)
            )),
            Kind::Html | Kind::Text | Kind::Unsaid => None,
        };
        if let Some(why) = unread(head.kind) {
            return Err(why);
        }
        let received = answer.body(self.fetcher.config.max_bytes).await;
        let received = received.map_err(|why| format!("{url} {why}"))?;
        let (bytes, is_cut) = (received.bytes, !received.is_whole);
        let kind = match head.kind {
            Kind::Unsaid => guessed(&bytes),
            kind => kind,
        };
        if let Some(why) = unread(kind) {
            return Err(why);
        }
        Ok(Body {
            bytes,
            is_cut,
            kind,
            charset: head.charset,
        })
    }

    /// Makes of a body what the model reads. Returns its encoding too, where some bytes are none of that.
    async fn convert(
        &self,
        body: Body,
        url: Url,
        raw: bool,
    ) -> Result<(Content, Option<&'static str>), String> {
        let Body {
            bytes,
            is_cut,
            kind,
            charset,
        } = body;
        let conversions = Arc::clone(&self.fetcher.conversions);
        let place = conversions.acquire_owned().await;
        let place = place.map_err(|error| error.to_string())?;
        let converting = tokio::task::spawn_blocking(move || {
            // Held until it ends, also where nobody waits any more.
            let _place = place;
            let decoded = charset::decode(&bytes, charset.as_deref(), kind == Kind::Html, is_cut);
            let content = match kind == Kind::Html && !raw {
                true => of_page(&decoded.text, &url),
                false => Content {
                    shown: if raw { Shown::Source } else { Shown::Text },
                    title: None,
                    text: foreign::lines(&decoded.text, usize::MAX),
                },
            };
            let unreadable = decoded.has_errors.then_some(decoded.encoding);
            (content, unreadable)
        });
        let converted = converting.await;
        converted.map_err(|error| {
            tracing::warn!(%error, "a page could not be converted");
            "the page could not be converted, by a fault of the tool's own; see the log".to_owned()
        })
    }
}

/// Reads a page; where what takes it apart fails by a fault of its own, its text alone.
fn of_page(html: &str, url: &Url) -> Content {
    let page = catch_unwind(AssertUnwindSafe(|| page::read(html, url)));
    let page = page.unwrap_or_else(|_| page::read_plain(html));
    Content {
        shown: Shown::Page(page.form),
        title: page.title,
        text: page.text,
    }
}
