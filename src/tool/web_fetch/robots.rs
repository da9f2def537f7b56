//! `robots.txt`: whether a site lets programs read a page, as RFC 9309 has it. Pure.
//!
//! The libraries for it (robotstxt 0.3.0, texting_robots 0.2.2) have had no release for years: the one takes memory that grows
//! with what a site writes, the other brings second versions of four crates. Here a pattern takes time that grows with its
//! length and the path's alone.

use memchr::memmem;

/// Most rules that are kept of a file; later ones do not count.
const MAX_RULES: usize = 5_000;

/// The rules of a site for one program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Robots(Vec<Rule>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    allows: bool,
    pattern: Vec<u8>,
}

impl Robots {
    /// Reads a file; `product` is how the program calls itself, without a version.
    pub(super) fn parse(text: &str, product: &str) -> Self {
        let (mut ours, mut anybodys) = (Vec::new(), Vec::new());
        let mut is_named = false;
        // Whom the rules that come now are for: us by name, anybody.
        let mut group = (false, false);
        let mut in_names = false;
        for line in text.trim_start_matches('\u{feff}').lines() {
            let line = line.split('#').next().unwrap_or_default();
            let Some((key, value)) = line.split_once(':') else {
                continue;
            };
            let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
            match key.as_str() {
                "user-agent" => {
                    if !in_names {
                        group = (false, false);
                    }
                    in_names = true;
                    let is_ours = name_of(value).eq_ignore_ascii_case(product);
                    is_named |= is_ours;
                    group = (group.0 || is_ours, group.1 || value == "*");
                }
                "allow" | "disallow" => {
                    in_names = false;
                    let rule = || Rule {
                        allows: key == "allow",
                        pattern: normal(value),
                    };
                    // An empty one says nothing.
                    if value.is_empty() || ours.len() + anybodys.len() >= MAX_RULES {
                        continue;
                    }
                    if group.0 {
                        ours.push(rule());
                    }
                    if group.1 {
                        anybodys.push(rule());
                    }
                }
                _ => {}
            }
        }
        Self(if is_named { ours } else { anybodys })
    }

    /// Returns how many bytes it takes to keep them, about.
    pub(super) fn bytes(&self) -> usize {
        let rules = self.0.iter();
        rules
            .map(|rule| size_of::<Rule>() + rule.pattern.len())
            .sum()
    }

    /// Returns whether a path, with its query, may be read: the longest rule that matches says so.
    pub(super) fn allows(&self, path: &str) -> bool {
        let path = normal(path);
        if path == b"/robots.txt" {
            return true;
        }
        let matching = self.0.iter().filter(|rule| matches(&rule.pattern, &path));
        let longest = matching.max_by_key(|rule| (rule.pattern.len(), rule.allows));
        longest.is_none_or(|rule| rule.allows)
    }
}

/// Returns the part of a name that is compared: up to what no name has.
pub(super) fn name_of(agent: &str) -> &str {
    let is_usual = |c: char| c.is_ascii_alphabetic() || c == '-' || c == '_';
    let end = agent.find(|c| !is_usual(c)).unwrap_or(agent.len());
    agent.get(..end).unwrap_or_default()
}

/// Returns a path with each octet written in one way: escaped ones as they are, less those that mean something here.
fn normal(path: &str) -> Vec<u8> {
    let mut rest = path.as_bytes();
    let mut normal = Vec::with_capacity(rest.len());
    while let [first, later @ ..] = rest {
        let escaped = match later {
            [high, low, ..] if *first == b'%' => hex(*high).zip(hex(*low)),
            _ => None,
        };
        rest = match (escaped, later) {
            (Some((high, low)), [_, _, later @ ..]) => {
                let octet = high * 16 + low;
                if b"/*$%".contains(&octet) {
                    normal.extend(format!("%{octet:02X}").bytes());
                } else {
                    normal.push(octet);
                }
                later
            }
            _ => {
                normal.push(*first);
                later
            }
        };
    }
    normal
}

fn hex(digit: u8) -> Option<u8> {
    let value = char::from(digit).to_digit(16)?;
    u8::try_from(value).ok()
}

/// Returns whether a pattern matches the begin of a path: `*` stands for anything, `$` at its end for the path's end.
fn matches(pattern: &[u8], path: &[u8]) -> bool {
    let (pattern, is_whole) = match pattern.strip_suffix(b"$") {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let mut pieces = pattern.split(|byte| *byte == b'*');
    let Some(mut rest) = pieces.next().and_then(|first| path.strip_prefix(first)) else {
        return false;
    };
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return !is_whole || rest.is_empty();
    }
    while let Some(piece) = pieces.next() {
        // The last one may be anywhere behind, and the first place where another one is leaves most to those after it.
        if is_whole && pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        let Some(at) = memmem::find(rest, piece) else {
            return false;
        };
        rest = rest.get(at + piece.len()..).unwrap_or_default();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_the_standard_says() {
        for (pattern, path, expected) in [
            ("/", "/a", true),
            ("/a", "/ab/c", true),
            ("/a", "/b", false),
            ("/a/", "/a", false),
            ("/*.php", "/x/a.php?b", true),
            ("/*.php$", "/x/a.php", true),
            ("/*.php$", "/x/a.php?b", false),
            ("/*.php$", "/a.php/b.php", true),
            ("/a*b*c", "/a-b-c-d", true),
            ("/a*b*c", "/a-c-b", false),
            ("/a$", "/a", true),
            ("/a$", "/ab", false),
            ("*", "/a", true),
            ("*$", "/a", true),
            ("$", "/a", false),
            ("/a*", "/a", true),
            ("/%7Ejoe/", "/~joe/", true),
            ("/~joe/", "/%7ejoe/a", true),
            ("/a%2Fb", "/a/b", false),
            ("/a%2fb", "/a%2Fb", true),
            ("/100%", "/100%", true),
            ("/é", "/%C3%A9", true),
        ] {
            assert_eq!(
                matches(&normal(pattern), &normal(path)),
                expected,
                "{pattern} {path}"
            );
        }
        let many = "*a".repeat(50_000);
        assert!(!matches(many.as_bytes(), "a".repeat(4_000).as_bytes()));
    }

    #[test]
    fn the_longest_rule_of_our_own_group_counts() {
        let text = "\u{feff}# made by hand\nUser-Agent: Outrigger/1.0\nuser-agent: other\nDisallow: /private\nAllow: /private/open # but this\nDisallow:\nCrawl-delay: 1\n\nUser-agent: *\nDisallow: /\nSitemap: https://x/\n";
        for (product, path, expected) in [
            ("outrigger", "/", true),
            ("outrigger", "/private/a", false),
            ("outrigger", "/private/open/a", true),
            ("OTHER", "/private", false),
            ("nobody", "/a", false),
            ("nobody", "/robots.txt", true),
        ] {
            assert_eq!(
                Robots::parse(text, product).allows(path),
                expected,
                "{product} {path}"
            );
        }
        for (text, path, expected) in [
            ("", "/", true),
            ("<html>not found</html>", "/", true),
            ("Disallow: /", "/", true),
            ("User-agent: *\nDisallow: /a\nAllow: /a", "/a", true),
            (
                "User-agent: *\nDisallow: /\n\nUser-agent: outrigger\nDisallow:",
                "/a",
                true,
            ),
            (
                "User-agent: x\nDisallow: /a\nUser-agent: *\nDisallow: /b",
                "/a",
                true,
            ),
            (
                "User-agent: *\nDisallow: /a\nUser-agent: outrigger\n",
                "/a",
                true,
            ),
            (
                "user-agent: outrigger\nDisallow: /a\nuser-agent: outrigger\nDisallow: /b",
                "/a",
                false,
            ),
        ] {
            assert_eq!(
                Robots::parse(text, "outrigger").allows(path),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn a_name_ends_where_no_name_goes_on() {
        for (agent, expected) in [
            ("outrigger/0.1.0", "outrigger"),
            ("Mozilla/5.0 (compatible)", "Mozilla"),
            ("my-bot_x", "my-bot_x"),
            ("7up", ""),
        ] {
            assert_eq!(name_of(agent), expected);
        }
    }

    #[test]
    fn rules_are_bounded() {
        let text = format!("user-agent: *\n{}", "disallow: /a\n".repeat(MAX_RULES * 2));
        assert_eq!(Robots::parse(&text, "x").0.len(), MAX_RULES);
    }
}
