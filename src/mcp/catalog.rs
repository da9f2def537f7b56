//! What a server has besides tools, as clients are shown it: its resources, their templates and its prompts. Pure.
//!
//! All of it is text of others: on one line, without controls and secrets, and bounded entry by entry and in sum.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rmcp::model::{Prompt, Resource, ResourceTemplate};

use super::connection::bounded;
use super::names;
use super::subscriptions::MAX_URI;
use crate::protocol::json_bytes;
use crate::protocol::mcp::{
    McpListName, McpPrompt, McpPromptArgument, McpResource, McpResourceTemplate,
};
use crate::telemetry::Redactor;

/// The most bytes of one list, as JSON.
const MAX_BYTES: usize = 1024 * 1024;

/// The most arguments of a prompt.
const MAX_ARGUMENTS: usize = 32;

/// Entries of a page where nobody says how many.
const PAGE: usize = 100;

/// The most entries of a page.
const MAX_PAGE: usize = 200;

/// What a server has besides tools.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    /// Another one for each; 0 of a server that was not read yet.
    pub(super) version: u64,
    pub(super) resources: Vec<McpResource>,
    pub(super) templates: Vec<McpResourceTemplate>,
    pub(super) prompts: Vec<McpPrompt>,
    /// Which lists have entries that are left out.
    pub(super) cut: Vec<&'static str>,
}

impl Catalog {
    /// Makes one of what a server listed.
    pub(super) fn new(
        server: &str,
        resources: Vec<Resource>,
        templates: Vec<ResourceTemplate>,
        prompts: Vec<Prompt>,
        redactor: &Redactor,
    ) -> Self {
        static VERSIONS: AtomicU64 = AtomicU64::new(1);
        let texts = Texts(redactor);
        let mut catalog = Self {
            version: VERSIONS.fetch_add(1, Ordering::Relaxed),
            ..Self::default()
        };
        let resources = resources.into_iter().map(|it| texts.resource(it));
        catalog.resources = catalog.fill("resources", resources);
        let templates = templates.into_iter().map(|it| texts.template(it));
        catalog.templates = catalog.fill("resource templates", templates);
        let prompts = prompts.into_iter().map(|it| texts.prompt(server, it));
        catalog.prompts = catalog.fill("prompts", prompts);
        catalog
    }

    /// Takes the entries that can be shown and have room.
    fn fill<T: serde::Serialize>(
        &mut self,
        what: &'static str,
        entries: impl Iterator<Item = Option<T>>,
    ) -> Vec<T> {
        let (mut kept, mut bytes, mut is_cut) = (Vec::new(), 0, false);
        for entry in entries {
            let Some(entry) = entry else {
                is_cut = true;
                continue;
            };
            bytes += json_bytes(&entry);
            if bytes > MAX_BYTES {
                is_cut = true;
                break;
            }
            kept.push(entry);
        }
        self.cut.extend(is_cut.then_some(what));
        kept
    }

    /// Returns what is left out, as a sentence; `None` where nothing is.
    pub(super) fn left_out(&self) -> Option<String> {
        (!self.cut.is_empty()).then(|| {
            format!(
                "its list of {} has entries that cannot be shown, or more than {MAX_BYTES} bytes; these are left out",
                self.cut.join(" and of ")
            )
        })
    }

    /// Returns which lists are others than those of the catalog before.
    pub(super) fn changes(&self, before: &Self) -> Vec<McpListName> {
        let are_resources =
            self.resources == before.resources && self.templates == before.templates;
        let resources = (!are_resources).then_some(McpListName::Resources);
        let prompts = (self.prompts != before.prompts).then_some(McpListName::Prompts);
        resources.into_iter().chain(prompts).collect()
    }
}

/// Which entries of some lists are a page, and where the next one begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    mark: u64,
    start: usize,
    end: usize,
}

impl Page {
    /// Reads what a client wants of the lists of these catalogs.
    pub(super) fn read(
        cursor: Option<&str>,
        limit: Option<usize>,
        of: &[Arc<Catalog>],
    ) -> Result<Self, String> {
        let limit = limit.unwrap_or(PAGE);
        if !(1..=MAX_PAGE).contains(&limit) {
            return Err(format!("field `limit` must be 1 to {MAX_PAGE}"));
        }
        let mut mark = DefaultHasher::new();
        of.iter()
            .for_each(|catalog| catalog.version.hash(&mut mark));
        let mark = mark.finish();
        let start = match cursor {
            None => 0,
            Some(cursor) => {
                let parts = cursor.split_once('.').and_then(|(mark, start)| {
                    Some((mark.parse::<u64>().ok()?, start.parse().ok()?))
                });
                let (of, start) = parts.ok_or("field `cursor` is no `nextCursor`")?;
                if of != mark {
                    return Err(
                        "the list has changed since the page before; begin anew, without `cursor`"
                            .to_owned(),
                    );
                }
                start
            }
        };
        Ok(Self {
            mark,
            start,
            end: usize::saturating_add(start, limit),
        })
    }

    /// Takes the page's part of a list whose first entry has this number among all; returns the number after its last.
    pub(super) fn take<T: Clone>(self, list: &[T], first: usize, into: &mut Vec<T>) -> usize {
        let from = self.start.saturating_sub(first).min(list.len());
        let to = self.end.saturating_sub(first).min(list.len());
        into.extend_from_slice(list.get(from..to).unwrap_or_default());
        first + list.len()
    }

    /// Returns where the next page begins, of as many entries as there are.
    pub(super) fn next(self, entries: usize) -> Option<String> {
        (self.end < entries).then(|| format!("{}.{}", self.mark, self.end))
    }
}

/// Makes texts of a server into ones that can be shown.
struct Texts<'a>(&'a Redactor);

impl Texts<'_> {
    fn clean(&self, text: &str) -> String {
        self.0.redact(&bounded(text)).into_owned()
    }

    fn some(&self, text: Option<String>) -> Option<String> {
        let text = text.map(|text| self.clean(&text));
        text.filter(|text| !text.trim().is_empty())
    }

    /// An address is passed on as it is, or not at all.
    fn address(&self, uri: String) -> Option<String> {
        let fits = !uri.is_empty() && uri.len() <= MAX_URI && !uri.contains(char::is_control);
        (fits && self.0.redact(&uri) == uri).then_some(uri)
    }

    fn resource(&self, it: Resource) -> Option<McpResource> {
        Some(McpResource {
            uri: self.address(it.uri)?,
            name: self.clean(&it.name),
            title: self.some(it.title),
            description: self.some(it.description),
            mime_type: self.some(it.mime_type),
            size: it.size,
        })
    }

    fn template(&self, it: ResourceTemplate) -> Option<McpResourceTemplate> {
        Some(McpResourceTemplate {
            uri_template: self.address(it.uri_template)?,
            name: self.clean(&it.name),
            title: self.some(it.title),
            description: self.some(it.description),
            mime_type: self.some(it.mime_type),
        })
    }

    /// A prompt whose name, or one of whose arguments, is not as it is shown could not be asked for.
    fn prompt(&self, server: &str, it: Prompt) -> Option<McpPrompt> {
        let arguments = it.arguments.unwrap_or_default();
        let names = || arguments.iter().map(|argument| &argument.name);
        let is_plain = |name: &String| !name.is_empty() && self.clean(name) == *name;
        if arguments.len() > MAX_ARGUMENTS || !is_plain(&it.name) || !names().all(is_plain) {
            return None;
        }
        let arguments = arguments.into_iter().map(|argument| McpPromptArgument {
            description: self.some(argument.description.or(argument.title)),
            name: argument.name,
            required: argument.required.unwrap_or(false),
        });
        Some(McpPrompt {
            server: server.to_owned(),
            command: names::command(server, &it.name),
            arguments: arguments.collect(),
            name: it.name,
            title: self.some(it.title),
            description: self.some(it.description),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read<T: serde::de::DeserializeOwned>(list: Value) -> Vec<T> {
        serde_json::from_value(list).unwrap()
    }

    fn catalog(resources: Value, prompts: Value) -> Catalog {
        let redactor = Redactor::default();
        redactor.add("hunter2-hunter2");
        Catalog::new("s", read(resources), Vec::new(), read(prompts), &redactor)
    }

    #[test]
    fn what_others_wrote_is_on_one_line_without_secrets_or_left_out() {
        let catalog = catalog(
            json!([
                {"uri": "a://b", "name": "a\u{1b}[2J\nb", "description": "is hunter2-hunter2", "size": 7},
                {"uri": "a://\u{7}", "name": "x"},
                {"uri": "a://hunter2-hunter2", "name": "x"},
                {"uri": format!("a://{}", "x".repeat(MAX_URI)), "name": "x"},
                {"uri": "", "name": "x"},
            ]),
            json!([
                {"name": "greet me", "arguments": [{"name": "who", "required": true}, {"name": "how"}]},
                {"name": "a\u{7}b"},
                {"name": "many", "arguments": vec![json!({"name": "x"}); MAX_ARGUMENTS + 1]},
            ]),
        );
        assert_eq!(catalog.resources.len(), 1);
        assert_eq!(catalog.resources[0].name, "a [2J b");
        assert_eq!(
            catalog.resources[0].description.as_deref(),
            Some("is [redacted]")
        );
        assert_eq!(catalog.prompts.len(), 1);
        assert!(catalog.prompts[0].command.starts_with("s:greet_me"));
        assert!(catalog.prompts[0].arguments[0].required);
        assert_eq!(catalog.cut, ["resources", "prompts"]);
    }

    #[test]
    fn a_list_is_bounded_in_sum() {
        let one = |number: usize| json!({"uri": format!("a://{number}/{}", "u".repeat(2_000)), "name": "n"});
        let many: Vec<Value> = (0..1_000).map(one).collect();
        let catalog = catalog(json!(many), json!([]));
        assert!(json_bytes(&catalog.resources) <= MAX_BYTES + 1_000);
        assert_eq!(catalog.cut, ["resources"]);
    }

    #[test]
    fn pages_go_over_all_lists_and_end_where_these_change() {
        let catalogs: Vec<Arc<Catalog>> = (0..2)
            .map(|_| {
                let prompts: Vec<Value> =
                    (0..5).map(|n| json!({"name": format!("p{n}")})).collect();
                Arc::new(catalog(json!([]), json!(prompts)))
            })
            .collect();
        let (mut cursor, mut sizes, mut all) = (None, Vec::new(), 0);
        loop {
            let page = Page::read(cursor.as_deref(), Some(4), &catalogs).unwrap();
            let (mut taken, mut entries) = (Vec::new(), 0);
            for catalog in &catalogs {
                entries = page.take(&catalog.prompts, entries, &mut taken);
            }
            sizes.push(taken.len());
            all += taken.len();
            cursor = page.next(entries);
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!((sizes, all), (vec![4, 4, 2], 10));
        let first = Page::read(None, Some(1), &catalogs).unwrap().next(10);
        let other = [Arc::new(catalog(json!([]), json!([])))];
        let changed = Page::read(first.as_deref(), None, &other).unwrap_err();
        assert!(changed.contains("has changed"), "{changed}");
        for (cursor, limit) in [
            (Some("x"), None),
            (None, Some(0)),
            (None, Some(1_000)),
            (Some("1.x"), None),
        ] {
            assert!(Page::read(cursor, limit, &catalogs).is_err());
        }
        let far = format!(
            "{}.{}",
            first.unwrap().split_once('.').unwrap().0,
            usize::MAX
        );
        let page = Page::read(Some(&far), None, &catalogs).unwrap();
        let mut taken = Vec::new();
        page.take(&catalogs[0].prompts, 0, &mut taken);
        assert!(taken.is_empty() && page.next(10).is_none());
    }
}
