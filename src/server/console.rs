//! The console page at `/`: a chat to try the daemon with, compiled in, with no network.
//!
//! Its files are those of `clients/console/dist`, which `npm run build` there makes of `src` and of
//! the client in `clients/typescript`; they are checked in. Everything the page may do is in
//! [`POLICY`]: no script, style or connection but this daemon's own, and no text that becomes markup,
//! which the page does not do and the browser would refuse. The token is not part of it: the user
//! brings it in the fragment of the address, which no server sees.

use axum::Router;
use axum::http::HeaderName;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_FRAME_OPTIONS};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::packed::{self, Packed};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// Path, type and content of each file.
const FILES: &[(&str, &str, Packed)] = &[
    ("/", HTML, packed::PAGE),
    ("/console/style.css", STYLE, packed::STYLE),
    ("/console/app.js", SCRIPT, packed::SCRIPT),
    ("/console/THIRD-PARTY.txt", TEXT, packed::THIRD_PARTY),
];

/// Adds the page's routes.
pub(super) fn add_to<S: Clone + Send + Sync + 'static>(routes: Router<S>) -> Router<S> {
    let files = FILES.iter();
    files.fold(routes, |routes, (path, kind, content)| {
        routes.route(path, get(|| async { file(kind, *content) }))
    })
}

fn file(kind: &'static str, content: Packed) -> Response {
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
    (headers, content.text()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/clients/console");

    #[test]
    fn every_file_that_is_named_or_built_is_served() {
        let served: Vec<&str> = FILES.iter().map(|(path, ..)| *path).collect();
        let html = packed::PAGE.text();
        for named in html.split('"').filter(|text| text.starts_with("/console/")) {
            assert!(served.contains(&named), "{named}");
        }
        for entry in std::fs::read_dir(format!("{FOLDER}/dist")).unwrap() {
            let path = format!("/console/{}", entry.unwrap().file_name().to_str().unwrap());
            assert!(served.contains(&path.as_str()), "{path}");
        }
        assert!(
            !html.contains("<style") && !html.contains("style="),
            "inline style"
        );
        assert_eq!(html.matches("<script").count(), 1, "inline script");
    }

    #[test]
    fn the_page_makes_no_markup_of_text() {
        let mut folders = vec![std::path::PathBuf::from(format!("{FOLDER}/src"))];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let content = std::fs::read_to_string(&path).unwrap();
                for wrong in [
                    "innerHTML",
                    "InnerHTML",
                    "insertAdjacent",
                    "document.write",
                    "eval(",
                ] {
                    assert!(!content.contains(wrong), "{}: {wrong}", path.display());
                }
            }
        }
    }
}
