//! Whom a call asks on its way: hosts, redirects, `robots.txt`.

use serde_json::json;

use super::super::*;
use super::site::{Answer, Site, Someone, call, fetch, head_of, text};
use crate::config::HostPort;

#[tokio::test]
async fn redirects_are_followed_within_bounds() {
    let site = Site::start().await;
    let other = Site::start().await;
    other.page("/", "text/plain", "secret");
    for step in 0..10 {
        site.redirect(&format!("/{step}"), &format!("/{}", step + 1));
    }
    site.page("/10", "text/plain", "the end")
        .redirect("/self", "/self")
        .redirect("/ping", "/pong")
        .redirect("/pong", "/ping")
        .redirect("/file", "file:///etc/passwd")
        .redirect("/login", "http://user:hunter3@example.org/")
        .redirect("/bad", "http://[")
        .redirect("/ssh", "http://example.org:22/")
        .redirect("/metadata", "http://169.254.169.254/latest/")
        .redirect("/decimal", "http://2852039166/latest/")
        .redirect("/mapped", "http://[::ffff:127.0.0.1]/")
        .redirect("/v6", "http://[::1]:1/")
        .redirect("/private", "http://10.0.0.1/")
        .redirect("/local", &format!("http://localhost:{}/10", site.port))
        .redirect("/port", &other.url("/"))
        .redirect("/elsewhere", "https://example.org/")
        .redirect("/long", &format!("/{}", "a".repeat(5_000)));
    for (path, expected) in [
        ("/5", "the end"),
        ("/4", "which is redirect 6 and was not followed"),
        ("/self", "a circle"),
        ("/ping", "a circle"),
        ("/file", "only http and https are read"),
        ("/login", "without a login"),
        ("/bad", "no URL"),
        ("/ssh", "port 22 is no port of web pages"),
        (
            "/metadata",
            "redirects to http://169.254.169.254/latest/, which was not followed",
        ),
        (
            "/decimal",
            "169.254.169.254 is this machine, or of a private network",
        ),
        ("/mapped", "127.0.0.1 is this machine"),
        ("/v6", "::1 is this machine"),
        (
            "/private",
            "10.0.0.1 is this machine, or of a private network",
        ),
        ("/local", "localhost is this machine"),
        ("/port", "which was not followed: 127.0.0.1 is this machine"),
        (
            "/elsewhere",
            "redirects to https://example.org/, which was not followed: nobody is there to be asked",
        ),
        ("/long", "more than 4096 characters"),
    ] {
        let output = site.fetch(path).await;
        assert!(text(&output).contains(expected), "{path}: {output:?}");
        assert!(!text(&output).contains("hunter3"), "{output:?}");
    }
    assert!(other.paths().is_empty());
}

#[tokio::test]
async fn hosts_that_no_list_names_are_asked_for_at_each_step() {
    let site = Site::start().await;
    site.redirect("/a", &format!("http://localhost:{}/b", site.port))
        .page("/b", "text/plain", "there");
    let config = || {
        let mut config = site.config();
        config.hosts.clear();
        let local = HostPort::parse(&format!("localhost:{}", site.port)).unwrap();
        config.allow_private.push(local);
        config
    };
    let port = site.port;
    let both = [format!("127.0.0.1 {port}"), format!("localhost {port}")];
    for (denied, expected, asked) in [
        ("", "there", &both[..]),
        (
            "localhost",
            "which was not followed: its host may not be asked: the user denied it",
            &both[..],
        ),
        (
            "127.0.0.1",
            "was not read: its host may not be asked",
            &both[..1],
        ),
    ] {
        let tool = web_fetch(config(), &[]);
        let user = Someone {
            denied,
            ..Someone::default()
        };
        let input = json!({ "url": site.url("/a") });
        let output = call(&tool, input.clone(), Some(&user)).await;
        assert!(text(&output).contains(expected), "{output:?}");
        assert_eq!(user.asked.into_inner().unwrap(), asked);
        // What is kept is for those who are let through.
        let nobody = call(&tool, input, None).await;
        assert!(
            text(&nobody).contains("nobody is there to be asked"),
            "{nobody:?}"
        );
    }
    // The list of commands counts, too.
    let mut config = config();
    config.allow_private.truncate(1);
    let listed = [HostEntry::parse("127.0.0.1").unwrap()];
    let output = fetch(&web_fetch(config, &listed), &site.url("/b")).await;
    assert!(text(&output).ends_with("there"), "{output:?}");
    // A list says who is not asked for, and not that an address may be private.
    let mut config = site.config();
    config.allow_private.clear();
    let output = fetch(&web_fetch(config, &listed), &site.url("/b")).await;
    assert!(
        text(&output).contains("tools.web_fetch.allow_private"),
        "{output:?}"
    );
}

#[tokio::test]
async fn a_name_that_leads_here_is_not_connected_to() {
    // Names of this machine's own: as a name of anybody's would that leads here.
    let site = Site::start().await;
    let url = format!("http://localhost:{}/", site.port);
    let client = Clients::only(is_outside).get(&url, None).await.unwrap();
    let target = Target::parse(&url).unwrap();
    let error = get::get(&client, &target, "x").await.err().unwrap();
    assert!(
        error.contains(
            "cannot be reached (`localhost` has no address that may be used: it leads to "
        ),
        "{error}"
    );
    assert!(site.paths().is_empty());
    for (address, inside) in [
        ("127.0.0.1", true),
        ("10.0.0.1", true),
        ("::1", true),
        ("169.254.169.254", false),
        ("::ffff:169.254.169.254", false),
        ("0.0.0.0", false),
    ] {
        let address = address.parse().unwrap();
        assert!(!is_outside(address), "{address}");
        assert_eq!(may_be_inside(address), inside, "{address}");
    }
}

#[tokio::test]
async fn robots_txt_is_obeyed_where_the_operator_wants_it() {
    let rules = "user-agent: outrigger\ndisallow: /private\n\nuser-agent: *\ndisallow: /\n";
    let (kept, fault) = (
        "/robots.txt keeps programs from it",
        "answered with status 503",
    );
    let found = || Answer::Bytes(head_of(200, &[], rules.as_bytes()));
    let moved = |to: &str| Answer::Bytes(head_of(301, &[("location", to)], b""));
    let cases: [(Option<Answer>, &str, &str); 7] = [
        (Some(found()), "/private/a", kept),
        (Some(found()), "/open", "there"),
        (None, "/private/a", "there"),
        (Some(Answer::Bytes(head_of(503, &[], b""))), "/open", fault),
        (Some(moved("/robots.txt")), "/private/a", "there"),
        (Some(moved("/rules")), "/private/a", kept),
        (
            Some(moved("http://169.254.169.254/")),
            "/private/a",
            "there",
        ),
    ];
    for (answer, path, expected) in cases {
        let site = Site::start().await;
        site.page("/private/a", "text/plain", "there")
            .page("/open", "text/plain", "there")
            .page("/rules", "text/plain", rules);
        if let Some(answer) = answer {
            site.has("/robots.txt", answer);
        }
        let with = |robots| {
            web_fetch(
                WebFetchConfig {
                    robots,
                    ..site.config()
                },
                &[],
            )
        };
        let output = fetch(&with(true), &site.url(path)).await;
        assert!(text(&output).contains(expected), "{path}: {output:?}");
        let output = fetch(&with(false), &site.url(path)).await;
        assert!(text(&output).contains("there"), "{output:?}");
    }
    // A site is asked once for what it says.
    let site = Site::start().await;
    site.page("/robots.txt", "text/plain", rules)
        .page("/a", "text/plain", "there")
        .page("/b", "text/plain", "there");
    let config = WebFetchConfig {
        robots: true,
        ..site.config()
    };
    let tool = web_fetch(config, &[]);
    for path in ["/a", "/b", "/private"] {
        fetch(&tool, &site.url(path)).await;
    }
    assert_eq!(site.paths(), ["/robots.txt", "/a", "/b"]);
}
