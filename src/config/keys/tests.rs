use super::*;

#[test]
fn hosts_of_ollama() {
    let cases = [
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:8080", "http://127.0.0.1:8080"),
        ("", "http://127.0.0.1:11434"),
        (":5000", "http://127.0.0.1:5000"),
        ("box", "http://box:11434"),
        ("box:1", "http://box:1"),
        ("http://box", "http://box:80"),
        ("https://box", "https://box:443"),
        ("https://box:9/prefix/", "https://box:9/prefix"),
        ("ollama.com", "https://ollama.com:443"),
        ("::1", "http://[::1]:11434"),
        ("[::1]:5", "http://[::1]:5"),
        ("[::]:5", "http://[::1]:5"),
        ("box:99999", "http://box:11434"),
        ("\"box\"", "http://box:11434"),
    ];
    for (text, expected) in cases {
        assert_eq!(ollama_host(text), expected, "{text:?}");
    }
}

#[test]
fn a_secret_fits_into_a_header() {
    let cases = [
        ("sk-1", true),
        ("", false),
        ("a b", false),
        ("a\nb", false),
        ("é", false),
    ];
    for (text, expected) in cases {
        assert_eq!(is_secret_text(text), expected, "{text:?}");
    }
}
