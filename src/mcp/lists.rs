//! What a server has: its tools, resources and prompts, page by page and bounded.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ErrorCode, PaginatedRequestParams, SubscriptionFilter, Tool};
use rmcp::service::{Peer, RoleClient, ServiceError};
use tokio::sync::Notify;

use super::connection::of_sdk;

/// The most entries of one list; the rest is left out, and that is told.
const MAX_ENTRIES: usize = 1_000;

/// The most pages of one list: a server that pages for ever is not followed.
const MAX_PAGES: usize = 100;

/// How long a server may take for all of its lists.
const LIST_LIMIT: Duration = Duration::from_secs(30);

/// What a server has.
#[derive(Debug, Default)]
pub(super) struct Lists {
    /// Its tools as it sent them; taken out to be defined.
    pub(super) found: Vec<Tool>,
    /// The names of those that are offered.
    pub(super) tools: Vec<String>,
    /// The URIs of its resources.
    pub(super) resources: Vec<String>,
    /// The names of its prompts.
    pub(super) prompts: Vec<String>,
    /// Which of these lists are not whole.
    pub(super) cut: Vec<&'static str>,
}

impl Lists {
    /// What is left out, as a sentence; `None` where nothing is.
    pub(super) fn left_out(&self) -> Option<String> {
        (!self.cut.is_empty()).then(|| {
            format!(
                "its list of {} is longer than the {MAX_ENTRIES} entries or {MAX_PAGES} pages that are read; the rest is left out",
                self.cut.join(" and of ")
            )
        })
    }

    fn keep<T>(&mut self, what: &'static str, (entries, is_cut): (Vec<T>, bool)) -> Vec<T> {
        self.cut.extend(is_cut.then_some(what));
        entries
    }
}

/// Reads all lists.
///
/// # Errors
///
/// Why the tools cannot be listed; of the other lists that is only logged.
pub(super) async fn read(peer: &Peer<RoleClient>) -> Result<Lists, String> {
    tokio::time::timeout(LIST_LIMIT, read_all(peer))
        .await
        .map_err(|_| {
            format!(
                "it did not list its tools within {} s",
                LIST_LIMIT.as_secs()
            )
        })?
}

/// Follows the cursors of a list, with the SDK's method for one page.
macro_rules! pages {
    ($peer:expr, $list:ident, $entries:ident) => {{
        let mut pages = Pages::default();
        loop {
            match $peer.$list(Some(pages.next())).await {
                Ok(page) => {
                    if !pages.take(page.$entries, page.next_cursor) {
                        break Ok((pages.entries, pages.is_cut));
                    }
                }
                Err(error) => break Err(error),
            }
        }
    }};
}

/// A list that is read page by page.
struct Pages<T> {
    entries: Vec<T>,
    cursor: Option<String>,
    read: usize,
    is_cut: bool,
}

impl<T> Default for Pages<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            cursor: None,
            read: 0,
            is_cut: false,
        }
    }
}

impl<T> Pages<T> {
    /// Asks for the next page.
    fn next(&mut self) -> PaginatedRequestParams {
        PaginatedRequestParams::default().with_cursor(self.cursor.take())
    }

    /// Takes a page up; whether there is another one to be read.
    fn take(&mut self, more: Vec<T>, cursor: Option<String>) -> bool {
        self.entries.extend(more);
        self.read += 1;
        self.cursor = cursor;
        if self.entries.len() > MAX_ENTRIES || self.read >= MAX_PAGES && self.cursor.is_some() {
            tracing::warn!(found = self.entries.len(), "a list of an MCP server is cut");
            self.entries.truncate(MAX_ENTRIES);
            self.is_cut = true;
            return false;
        }
        self.cursor.is_some()
    }
}

async fn read_all(peer: &Peer<RoleClient>) -> Result<Lists, String> {
    let info = peer.peer_info();
    let capabilities = info.as_deref().map(|info| &info.capabilities);
    let found = match pages!(peer, list_tools, tools) {
        Ok(tools) => tools,
        // A server of prompts and resources alone.
        Err(ServiceError::McpError(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => {
            (Vec::new(), false)
        }
        Err(error) => {
            let why = of_sdk(&error);
            return Err(format!("it did not list its tools: {why}"));
        }
    };
    let mut lists = Lists::default();
    lists.found = lists.keep("tools", found);
    if capabilities.is_some_and(|has| has.resources.is_some()) {
        let resources = or_none("resources", pages!(peer, list_resources, resources));
        let resources = lists.keep("resources", resources);
        lists.resources = resources.into_iter().map(|found| found.uri).collect();
    }
    if capabilities.is_some_and(|has| has.prompts.is_some()) {
        let prompts = or_none("prompts", pages!(peer, list_prompts, prompts));
        let prompts = lists.keep("prompts", prompts);
        lists.prompts = prompts.into_iter().map(|found| found.name).collect();
    }
    Ok(lists)
}

fn or_none<T>(what: &str, listed: Result<(Vec<T>, bool), ServiceError>) -> (Vec<T>, bool) {
    listed.unwrap_or_else(|error| {
        tracing::warn!(what, %error, "an MCP server did not list what it says it has");
        (Vec::new(), false)
    })
}

/// Waits for changes in the newer era, where a client has to ask to be told.
///
/// Never returns: each change goes to `changed`, as it does in the older era without asking.
pub(super) async fn updates(peer: &Peer<RoleClient>, changed: Arc<Notify>) {
    let is_older = peer
        .peer_info()
        .is_none_or(|info| info.protocol_version.has_initialize());
    if !is_older {
        let filter = SubscriptionFilter::builder()
            .tools_list_changed()
            .prompts_list_changed()
            .resources_list_changed()
            .build();
        match peer.listen(filter).await {
            Ok(mut subscription) => {
                while let Ok(Some(_)) = subscription.next().await {
                    changed.notify_one();
                }
            }
            Err(error) => tracing::debug!(%error, "an MCP server does not tell of changes"),
        }
    }
    std::future::pending::<()>().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_pages_for_ever_is_not_followed() {
        let mut pages = Pages::default();
        let mut asked = 0;
        loop {
            let params = pages.next();
            assert_eq!(params.cursor.is_some(), asked > 0);
            asked += 1;
            if !pages.take(vec![asked], Some("again".to_owned())) {
                break;
            }
        }
        assert_eq!((asked, pages.entries.len()), (MAX_PAGES, MAX_PAGES));
        let mut large = Pages::default();
        assert!(!large.take(vec![0; MAX_ENTRIES + 1], Some("more".to_owned())));
        assert!(large.is_cut && pages.is_cut);
        let mut lists = Lists::default();
        assert_eq!(lists.left_out(), None);
        lists.keep("tools", (large.entries.clone(), large.is_cut));
        assert!(
            lists
                .left_out()
                .unwrap()
                .starts_with("its list of tools is longer")
        );
        assert_eq!(large.entries.len(), MAX_ENTRIES);
        assert!(!Pages::default().take(vec![0], None));
    }
}
