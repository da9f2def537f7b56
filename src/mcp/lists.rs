//! What a server has: its tools, resources and prompts, page by page and bounded.

use std::time::Duration;

use rmcp::model::{ErrorCode, PaginatedRequestParams, Prompt, Resource, ResourceTemplate, Tool};
use rmcp::service::{Peer, RoleClient, ServiceError};

use super::connection::of_sdk;

/// The most entries of one list; the rest is left out, and sessions are notified.
const MAX_ENTRIES: usize = 1_000;

/// The most pages of one list: a server that pages for ever is not followed.
const MAX_PAGES: usize = 100;

/// How long a server may take for all of its lists.
const LIST_LIMIT: Duration = Duration::from_secs(30);

/// What a server has.
#[derive(Debug, Default)]
pub(super) struct Lists {
    pub(super) tools: Vec<Tool>,
    pub(super) resources: Vec<Resource>,
    pub(super) templates: Vec<ResourceTemplate>,
    pub(super) prompts: Vec<Prompt>,
    /// Which of these are not whole.
    cut: Vec<&'static str>,
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

/// A list, and whether it is cut.
type Listed<T> = Result<(Vec<T>, bool), ServiceError>;

/// Follows the cursors of a list; `page` asks for one page.
async fn pages<T, P>(page: impl Fn(Option<PaginatedRequestParams>) -> P) -> Listed<T>
where
    P: Future<Output = Result<(Vec<T>, Option<String>), ServiceError>>,
{
    let (mut entries, mut cursor) = (Vec::new(), None);
    for _ in 0..MAX_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let (more, next) = page(Some(params)).await?;
        entries.extend(more);
        if entries.len() > MAX_ENTRIES {
            break;
        }
        if next.is_none() {
            return Ok((entries, false));
        }
        cursor = next;
    }
    tracing::warn!(found = entries.len(), "a list of an MCP server is cut");
    entries.truncate(MAX_ENTRIES);
    Ok((entries, true))
}

async fn read_all(peer: &Peer<RoleClient>) -> Result<Lists, String> {
    let info = peer.peer_info();
    let capabilities = info.as_deref().map(|info| &info.capabilities);
    let tools = pages(|params| async move {
        let page = peer.list_tools(params).await?;
        Ok((page.tools, page.next_cursor))
    });
    let found = match tools.await {
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
    lists.tools = lists.keep("tools", found);
    if capabilities.is_some_and(|has| has.resources.is_some()) {
        let resources = pages(|params| async move {
            let page = peer.list_resources(params).await?;
            Ok((page.resources, page.next_cursor))
        });
        let resources = or_none("resources", resources.await);
        lists.resources = lists.keep("resources", resources);
        let templates = pages(|params| async move {
            let page = peer.list_resource_templates(params).await?;
            Ok((page.resource_templates, page.next_cursor))
        });
        // Many that have resources have no templates, and no such request.
        let templates = match templates.await {
            Err(ServiceError::McpError(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                (Vec::new(), false)
            }
            other => or_none("resource templates", other),
        };
        lists.templates = lists.keep("resource templates", templates);
    }
    if capabilities.is_some_and(|has| has.prompts.is_some()) {
        let prompts = pages(|params| async move {
            let page = peer.list_prompts(params).await?;
            Ok((page.prompts, page.next_cursor))
        });
        let prompts = or_none("prompts", prompts.await);
        lists.prompts = lists.keep("prompts", prompts);
    }
    Ok(lists)
}

fn or_none<T>(what: &str, listed: Listed<T>) -> (Vec<T>, bool) {
    listed.unwrap_or_else(|error| {
        tracing::warn!(what, %error, "an MCP server did not list what it says it has");
        (Vec::new(), false)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_that_pages_for_ever_is_not_followed() {
        let requested = std::cell::Cell::new(0);
        let (entries, is_cut) = pages(|params| {
            let cursor = params.and_then(|params| params.cursor);
            assert_eq!(cursor.is_some(), requested.get() > 0);
            requested.set(requested.get() + 1);
            std::future::ready(Ok((vec![0], Some("again".to_owned()))))
        })
        .await
        .unwrap();
        assert_eq!((requested.get(), entries.len()), (MAX_PAGES, MAX_PAGES));
        assert!(is_cut);
        let of = async |entries: usize, next: Option<&str>| {
            let next = next.map(str::to_owned);
            let page = |_| std::future::ready(Ok((vec![0; entries], next.clone())));
            pages(page).await.unwrap()
        };
        let (large, is_cut) = of(MAX_ENTRIES + 1, Some("more")).await;
        assert!(is_cut && large.len() == MAX_ENTRIES);
        assert!(!of(1, None).await.1);
        let mut lists = Lists::default();
        assert_eq!(lists.left_out(), None);
        lists.keep("tools", (large, is_cut));
        assert!(
            lists
                .left_out()
                .unwrap()
                .starts_with("its list of tools is longer")
        );
    }
}
