//! The console page at `/`: a chat to try the daemon with, compiled in, no build step and no network.
//!
//! Its files are those of `clients/console`, which use the client of `clients/typescript/dist` as it
//! is. Everything it may do is in [`POLICY`]: no script, style or connection but this daemon's own,
//! and no text that becomes markup, which the page does not do and the browser would refuse. The
//! token is not part of it: the user brings it in the fragment of the address, which no server sees.

use axum::Router;
use axum::http::HeaderName;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_FRAME_OPTIONS};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

/// What the page may load and do.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

macro_rules! file {
    ($path:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/clients/", $path))
    };
}

/// Path, type and content of each file.
const FILES: &[(&str, &str, &str)] = &[
    ("/", HTML, file!("console/index.html")),
    ("/console/style.css", STYLE, file!("console/style.css")),
    ("/console/app.js", SCRIPT, file!("console/app.js")),
    ("/console/approval.js", SCRIPT, file!("console/approval.js")),
    ("/console/diff.js", SCRIPT, file!("console/diff.js")),
    ("/console/dom.js", SCRIPT, file!("console/dom.js")),
    (
        "/console/executions.js",
        SCRIPT,
        file!("console/executions.js"),
    ),
    (
        "/console/inspector.js",
        SCRIPT,
        file!("console/inspector.js"),
    ),
    ("/console/markdown.js", SCRIPT, file!("console/markdown.js")),
    ("/console/messages.js", SCRIPT, file!("console/messages.js")),
    ("/console/settings.js", SCRIPT, file!("console/settings.js")),
    (
        "/typescript/dist/index.js",
        SCRIPT,
        file!("typescript/dist/index.js"),
    ),
    (
        "/typescript/dist/client.js",
        SCRIPT,
        file!("typescript/dist/client.js"),
    ),
    (
        "/typescript/dist/protocol.js",
        SCRIPT,
        file!("typescript/dist/protocol.js"),
    ),
    (
        "/typescript/dist/reducer.js",
        SCRIPT,
        file!("typescript/dist/reducer.js"),
    ),
];

/// The page's routes; none where it is switched off.
pub(super) fn router<S: Clone + Send + Sync + 'static>(is_on: bool) -> Router<S> {
    let files = FILES.iter().take(if is_on { FILES.len() } else { 0 });
    files.fold(Router::new(), |router, (path, kind, content)| {
        router.route(path, get(|| async { file(kind, content) }))
    })
}

fn file(kind: &'static str, content: &'static str) -> Response {
    let headers = [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (X_FRAME_OPTIONS, "DENY"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ];
    (headers, content).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_that_is_named_is_served() {
        let served: Vec<&str> = FILES.iter().map(|(path, ..)| *path).collect();
        for (path, kind, content) in FILES {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let quoted = content
                .split(['"', '\''])
                .filter(|text| text.starts_with(['.', '/']) && text.contains('.'));
            for named in quoted.filter(|text| text.ends_with(".js") || text.ends_with(".css")) {
                // `../` leads to the root: the folders are as those of the repository's `clients`.
                let absolute = match (named.strip_prefix("./"), named.strip_prefix("..")) {
                    (Some(file), _) => format!("{folder}/{file}"),
                    (None, Some(path)) => path.to_owned(),
                    (None, None) => named.to_owned(),
                };
                assert!(served.contains(&absolute.as_str()), "{path}: {named}");
            }
            assert!(*kind != HTML || !content.contains("<style"), "inline style");
            assert!(
                *kind != SCRIPT || !content.contains("innerHTML"),
                "{path} makes markup of text"
            );
        }
    }

    #[test]
    fn every_file_of_the_folder_is_served() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/clients/console");
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let is_page = [".js", ".css", ".html"]
                .iter()
                .any(|end| name.ends_with(end));
            let path = match name.as_str() {
                "index.html" => "/".to_owned(),
                name => format!("/console/{name}"),
            };
            let is_served = FILES.iter().any(|(served, ..)| *served == path);
            assert!(!is_page || is_served, "{name}");
        }
    }
}
