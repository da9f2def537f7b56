//! A page as Markdown: its main content where it has one, else all of it; where it cannot be taken apart, its text alone.
//!
//! What is parsed is bounded, in bytes by whoever read it, here in depth, number and time: the tree's builder looks through all
//! open elements for each new one, and what writes Markdown calls itself for each level.

use std::time::{Duration, Instant};

use dom_query::Document;
use dom_smoothie::{Config, Readability, TextMode, is_probably_readable};
use html5ever::ParseOpts;
use html5ever::tendril::{StrTendril, TendrilSink as _};
use html5ever::tree_builder::TreeBuilderOpts;
use reqwest::Url;

use super::plain;
use crate::tool::foreign;

/// How much is parsed before the bounds are looked at again, in bytes.
const CHUNK: usize = 4 * 1_024;

/// How many nodes there are before it is looked how deep they are, and come at least before that is done again.
const LOOK: usize = 1_000;

/// How deep elements may be in each other. Pages have some dozens.
const MAX_DEPTH: usize = 200;

/// Most elements and texts of a page.
const MAX_NODES: usize = 200_000;

/// How long parsing may take; by far enough for what is read at most.
const PARSE_TIME: Duration = Duration::from_secs(3);

/// Less than this, in characters, is no article, but what is left of a page that is none.
const MIN_ARTICLE: usize = 200;

/// Most links and pictures whose addresses are made whole.
const MAX_LINKS: usize = 20_000;

/// The longest address that others are made whole by, in bytes: each of them becomes as long.
const MAX_BASE: usize = 1_024;

/// The longest title, in characters.
const MAX_TITLE: usize = 200;

/// What holds no text.
const SKIPPED: [&str; 8] = [
    "script", "style", "head", "meta", "template", "svg", "iframe", "object",
];

/// What of a page is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Its main content, as Markdown.
    Article,
    /// All of it, as Markdown.
    Whole,
    /// Its text alone.
    Plain,
}

/// A page that was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) title: Option<String>,
    pub(super) text: String,
    pub(super) form: Form,
}

/// Reads a page that was found at `url`. Takes long.
pub(super) fn read(html: &str, url: &Url) -> Page {
    match parse(html).filter(is_shallow) {
        Some(document) => markdown(&document, url),
        None => read_plain(html),
    }
}

/// Reads the text of a page, which takes no tree of it.
pub(super) fn read_plain(html: &str) -> Page {
    let plain::Plain { title, text } = plain::read(html);
    page(&title, &text, Form::Plain)
}

fn page(title: &str, text: &str, form: Form) -> Page {
    let title = foreign::line(title, MAX_TITLE);
    Page {
        title: (!title.is_empty()).then_some(title),
        text: foreign::lines(text, 1),
        form,
    }
}

/// Returns the tree of a page; `None` where it is too large, or too deep so far, or takes too long.
fn parse(html: &str) -> Option<Document> {
    let options = ParseOpts {
        tree_builder: TreeBuilderOpts {
            // What is there for those without scripts is what is seen here.
            scripting_enabled: false,
            ..TreeBuilderOpts::default()
        },
        ..ParseOpts::default()
    };
    let mut parser = html5ever::parse_document(Document::default(), options);
    let began = Instant::now();
    let mut looked_at = LOOK;
    let mut rest = html;
    while !rest.is_empty() {
        let (chunk, later) = rest.split_at(rest.floor_char_boundary(CHUNK));
        parser.process(StrTendril::from_slice(chunk));
        rest = later;
        let document = &parser.tokenizer.sink.sink;
        let nodes = document.tree.len();
        if nodes > MAX_NODES || began.elapsed() > PARSE_TIME {
            return None;
        }
        // Each look takes as long as there are nodes.
        if nodes > looked_at {
            looked_at = nodes + (nodes / 4).max(LOOK);
            if !is_shallow(document) {
                return None;
            }
        }
    }
    Some(parser.finish())
}

/// Returns whether no element is too deep, wherever it is.
fn is_shallow(document: &Document) -> bool {
    let mut open = vec![(document.root(), 0)];
    while let Some((node, depth)) = open.pop() {
        if depth > MAX_DEPTH {
            return false;
        }
        open.extend(node.children_it(false).map(|child| (child, depth + 1)));
        // What a template holds is a tree of its own.
        let template = node.element_ref().and_then(|it| it.template_contents);
        let held = template.and_then(|id| node.tree.get(&id));
        open.extend(held.map(|held| (held, depth + 1)));
    }
    true
}

fn markdown(document: &Document, url: &Url) -> Page {
    make_whole(document, url);
    let title = document.select_single("title").text();
    if is_probably_readable(document, None, None) {
        let settings = Config {
            // Others' JSON is one thing more that could go wrong, and says nothing that is shown.
            disable_json_ld: true,
            text_mode: TextMode::Markdown,
            ..Config::default()
        };
        let readability = Readability::with_document(document.clone(), None, Some(settings));
        if let Ok(article) = readability.and_then(|mut it| it.parse())
            && article.length >= MIN_ARTICLE
        {
            let title = match article.title.trim() {
                "" => title.to_string(),
                title => title.to_owned(),
            };
            return page(&title, &article.text_content, Form::Article);
        }
    }
    let root = document.body().unwrap_or_else(|| document.root());
    page(&title, &root.md(Some(&SKIPPED)), Form::Whole)
}

/// Makes addresses of links and pictures whole, and takes those away that lead nowhere: scripts, and pictures in the text.
fn make_whole(document: &Document, url: &Url) {
    let named = document.select_single("base[href]").attr("href");
    let base = named.and_then(|base| url.join(&base).ok());
    let base = base.unwrap_or_else(|| url.clone());
    // What reads the article would make addresses whole by it, however long it is.
    document.select("base").remove();
    let may_join = base.as_str().len() <= MAX_BASE;
    for (selector, name) in [("a[href]", "href"), ("img[src]", "src")] {
        for (at, node) in document.select(selector).nodes().iter().enumerate() {
            let written = node.attr_or(name, "");
            let written = written.trim();
            if written.starts_with('#') {
                continue;
            }
            let is_web = |text: &str| text.starts_with("https://") || text.starts_with("http://");
            if is_web(written) {
                continue;
            }
            let whole = (may_join && at < MAX_LINKS).then(|| base.join(written).ok());
            match whole.flatten() {
                Some(whole) if is_web(whole.as_str()) || whole.scheme() == "mailto" => {
                    node.set_attr(name, whole.as_str());
                }
                _ => node.remove_attr(name),
            }
        }
    }
}

#[cfg(test)]
mod tests;
