use super::*;

fn read_at(html: &str) -> Page {
    read(
        html,
        &Url::parse("https://example.org/docs/a.html").unwrap(),
    )
}

/// Text enough for an article, in paragraphs.
fn article() -> String {
    "<p>The flying fish leaves the water, spreads its fins, and glides for many metres, as sailors have seen for ages, before it falls back.</p>".repeat(6)
}

#[test]
fn the_main_content_is_found() {
    let html = format!(
        "<html><head><title>Flying fish - The sea</title><script>alert('no')</script><style>p {{}}</style></head><body><nav><ul><li><a href=/>Home</a><li><a href=/login>Log in</a></ul></nav><main><article><h1>Flying fish</h1>{}<p>See <a href='../b.html?x=1#y'>the other page</a>, <em>or</em> <code>fish()</code>.</p><pre><code>let a = 1;\nlet b = 2;</code></pre><ul><li>one<li>two</ul><table><tr><th>A<th>B<tr><td>1<td>2</table></article></main><footer>Imprint</footer></body></html>",
        article()
    );
    let page = read_at(&html);
    assert_eq!(page.form, Form::Article);
    assert!(
        page.title.as_deref().unwrap().contains("Flying fish"),
        "{page:?}"
    );
    for part in [
        "The flying fish leaves",
        "[the other page](https://example.org/b.html?x=1#y)",
        "*or* `fish()`",
        "```\nlet a = 1;\nlet b = 2;\n```",
        "- one\n- two",
        "| A | B |",
    ] {
        assert!(page.text.contains(part), "{part} in {}", page.text);
    }
    for part in ["alert", "Log in", "Imprint"] {
        assert!(!page.text.contains(part), "{part} in {}", page.text);
    }
}

#[test]
fn a_page_without_an_article_is_read_whole() {
    let html = "<title>Index\u{202e}\n of /</title><h1>Index</h1><ul><li><a href='a/'>a</a><li><a href='javascript:x()'>b</a><li><a href='mailto:a@example.org'>c</a><li><a href='#d'>d</a></ul><img src='data:image/png;base64,AAAA' alt=no><img src=/e.png alt=e><script>no()</script>";
    let page = read_at(html);
    assert_eq!(page.form, Form::Whole);
    assert_eq!(page.title.as_deref(), Some("Index of /"));
    for part in [
        "# Index",
        "- [a](https://example.org/docs/a/)",
        "[c](mailto:a@example.org)",
        "![e](https://example.org/e.png)",
    ] {
        assert!(page.text.contains(part), "{part} in {}", page.text);
    }
    for part in ["javascript", "no()", "data:"] {
        assert!(!page.text.contains(part), "{part} in {}", page.text);
    }
}

#[test]
fn a_base_makes_addresses_whole_unless_it_is_too_long() {
    let with = |base: &str| read_at(&format!("<base href='{base}'><a href=b>c</a>")).text;
    assert_eq!(
        with("https://other.example/x/"),
        "[c](https://other.example/x/b)"
    );
    assert_eq!(with("y/"), "[c](https://example.org/docs/y/b)");
    assert_eq!(with("http://["), "[c](https://example.org/docs/b)");
    let long = with(&format!("https://other.example/{}/", "x".repeat(MAX_BASE)));
    assert!(!long.contains("xxx"), "{long}");
}

#[test]
fn what_has_no_text_has_none() {
    for html in [
        "",
        "   ",
        "<html></html>",
        "<script>render('#app')</script><div id=app></div>",
        "<!-- a -->",
        "<template><p>a</p></template>",
        "</p",
        "<!DOCTYPE",
    ] {
        let page = read_at(html);
        assert!(page.text.is_empty(), "{html}: {page:?}");
    }
}

#[test]
fn deep_pages_are_read_as_text() {
    for tag in [
        "div",
        "b",
        "a",
        "table",
        "ul",
        "blockquote",
        "template",
        "svg",
        "button",
        "font",
        "p",
        "li",
        "select",
    ] {
        let html = format!(
            "<title>t</title>{}found it",
            format!("<{tag}>").repeat(100_000)
        );
        let page = read_at(&html);
        // What is closed by the next one is not deep.
        assert!(
            page.text.contains("found it") || matches!(tag, "template" | "svg"),
            "{tag}: {:?}",
            page.form
        );
    }
    let html = format!("{}found it", "<div>".repeat(100_000));
    assert_eq!(read_at(&html).form, Form::Plain);
}

/// The end of what is parsed at once looks shallow.
#[test]
fn a_page_that_hides_how_deep_it_is_is_read_as_text() {
    let piece = format!("{}</body><!--{}-->", "<div>".repeat(30), "x".repeat(CHUNK));
    let page = read_at(&format!("{}found it", piece.repeat(200)));
    assert!(page.text.contains("found it"), "{page:?}");
    assert_eq!(page.form, Form::Plain);
    let fostered = format!("<table>{}found it", "<div>".repeat(2_000));
    assert_eq!(read_at(&fostered).form, Form::Plain);
}

#[test]
fn wide_pages_are_read() {
    let html = format!("<table>{}</table>", "<tr><td>1<td>2".repeat(10_000));
    assert!(read_at(&html).text.contains("| 1"));
    let many = "<i>x</i>".repeat(MAX_NODES);
    assert_eq!(read_at(&many).form, Form::Plain);
    let attributes = format!("<p {}>found it", "a=b ".repeat(1_000));
    assert_eq!(read_at(&attributes).text, "found it");
}

#[test]
fn characters_that_are_not_seen_are_left_out() {
    let page = read_at("<p>a\u{200b}b\u{202e}c&#x1b;[1m\u{e0049}d</p>");
    assert_eq!(page.text, "abc\\[1md");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]
    #[test]
    fn any_markup_is_read(html in "(<(/?)(a|p|b|i|table|tr|td|th|ul|ol|li|pre|code|div|h1|img|br|blockquote|script|style|base|title|svg|math|select|option|template|noscript)( (href|src|start|colspan|class)=['\"]?[a-z0-9:/#. -]{0,8}['\"]?)?>|[a-z &;#\\n*`|]{1,12}|<!--|-->){0,60}") {
        read_at(&html);
    }
}
