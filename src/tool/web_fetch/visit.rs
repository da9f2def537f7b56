//! The way of one call to its page: whom it asks, which redirects it follows, and what it makes of the answer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use reqwest::{StatusCode, Url};

use super::Fetcher;
use super::charset;
use super::get::{Answer, get};
use super::kind::{Kind, guessed, said};
use super::page::{self, Form};
use super::robots::{Robots, name_of};
use super::target::Target;
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
    /// All that was asked on the way, the page's own address last.
    pub(super) way: Vec<Target>,
    pub(super) status: StatusCode,
    /// The type that its server says.
    pub(super) content_type: String,
    pub(super) content: Content,
    /// What is to be known of it besides.
    pub(super) notes: Vec<String>,
}

/// What of a page is there.
pub(super) struct Content {
    /// What was made of it, for the model.
    pub(super) form: &'static str,
    pub(super) title: Option<String>,
    pub(super) text: String,
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
            for target in &kept.way {
                let asked = self.permit(target).await;
                asked.map_err(|why| format!("{} was not read: {why}", target.url))?;
            }
            return Ok(kept);
        }
        let (answer, way) = self.follow(target).await?;
        let read = Arc::new(self.take(answer, way, raw).await?);
        if read.status.is_success() {
            let pages = &self.fetcher.pages;
            pages.put(&name, &read, read.content.text.len());
        }
        Ok(read)
    }

    /// Asks for a page, and where it says that it is elsewhere, there. Returns the last answer, and all that was asked.
    async fn follow(&self, first: &Target) -> Result<(Answer, Vec<Target>), String> {
        let mut way: Vec<Target> = Vec::new();
        let mut target = first.clone();
        loop {
            let unread = |why: String| match way.last() {
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
            way.push(target);
            let (Some(location), Some(from)) = (answer.location(), way.last()) else {
                return Ok((answer, way));
            };
            let next = from.join(location);
            let next = next.map_err(|what| {
                format!("{} redirects, which was not followed: {what}", from.url)
            })?;
            let leads = format!("{} redirects to {}", from.url, next.url);
            if from.url.scheme() == "https" && next.url.scheme() == "http" {
                return Err(format!(
                    "{leads}, which was not followed: it leaves https; where that is right, ask for that URL itself"
                ));
            }
            if way.iter().any(|before| before.url == next.url) {
                return Err(format!(
                    "{leads}, where it was before: a circle; the site may want cookies, which are not kept"
                ));
            }
            if way.len() > MAX_REDIRECTS {
                return Err(format!(
                    "{leads}, which is redirect {} and was not followed",
                    way.len()
                ));
            }
            target = next;
        }
    }

    /// Returns why a host may not be asked, by its address, by the lists, or by the user.
    async fn permit(&self, target: &Target) -> Result<(), String> {
        if let Some(why) = self.fetcher.refusal(target) {
            return Err(why);
        }
        if holds(&self.fetcher.hosts, &target.host) {
            return Ok(());
        }
        let Some(user) = self.user else {
            return Err("nobody is there to be asked for its host".to_owned());
        };
        let _pause = self.clock.pause();
        match user.ask_host(&target.host.to_string(), target.port).await {
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
                let next = next.filter(|next| next.host == at.host);
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
            let (body, _) = answer.body(MAX_ROBOTS).await?;
            return Ok(Robots::parse(&String::from_utf8_lossy(&body), product));
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
    async fn take(&self, answer: Answer, way: Vec<Target>, raw: bool) -> Result<Read, String> {
        let url = way.last().map(|target| target.url.clone());
        let url = url.ok_or("no page was asked for")?;
        let status = answer.status();
        let head = said(answer.content_type());
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
        let most = self.fetcher.config.max_bytes;
        let body = answer.body(most).await;
        let (body, is_cut) = body.map_err(|why| format!("{url} {why}"))?;
        let kind = match head.kind {
            Kind::Unsaid => guessed(&body),
            kind => kind,
        };
        if let Some(why) = unread(kind) {
            return Err(why);
        }
        let mut notes = Vec::new();
        if is_cut {
            notes.push(format!(
                "only its first {most} bytes were read (tools.web_fetch.max_bytes)"
            ));
        }
        let conversions = Arc::clone(&self.fetcher.conversions);
        let place = conversions.acquire_owned().await;
        let place = place.map_err(|error| error.to_string())?;
        let charset = head.charset;
        let converting = tokio::task::spawn_blocking(move || {
            // Held until it ends, also where nobody waits any more.
            let _place = place;
            let decoded = charset::decode(&body, charset.as_deref(), kind == Kind::Html, is_cut);
            let content = match kind == Kind::Html && !raw {
                true => of_page(&decoded.text, &url),
                false => Content {
                    form: if raw { "its source" } else { "its text" },
                    title: None,
                    text: foreign::lines(&decoded.text, usize::MAX),
                },
            };
            let unreadable = decoded.has_errors.then_some(decoded.encoding);
            (content, unreadable)
        });
        let converted = converting.await;
        let (content, unreadable) = converted.map_err(|error| {
            tracing::warn!(%error, "a page could not be converted");
            "the page could not be converted, by a fault of the tool's own; see the log".to_owned()
        })?;
        notes.extend(unreadable.map(|encoding| format!("some bytes are no {encoding}")));
        Ok(Read {
            way,
            status,
            content_type: head.name,
            content,
            notes,
        })
    }
}

/// Reads a page; where what takes it apart fails by a fault of its own, its text alone.
fn of_page(html: &str, url: &Url) -> Content {
    let page = catch_unwind(AssertUnwindSafe(|| page::read(html, url)));
    let page = page.unwrap_or_else(|_| page::read_plain(html));
    Content {
        form: match page.form {
            Form::Article => "its main content as Markdown",
            Form::Whole => "the whole page as Markdown",
            Form::Plain => "its text without form, since it is too large or too deep",
        },
        title: page.title,
        text: page.text,
    }
}
