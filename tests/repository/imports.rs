//! Who may import whom, of the root: the crates below `crates` import nothing of it. An arrow that is not here is a mistake, or a decision that belongs here with its reason.

use std::collections::BTreeSet;

use super::support::{File, sources};

/// Module, what it may import, and why where that is not plain.
const ALLOWED: &[(&str, &[&str], &str)] = &[
    (
        "message",
        &["classifier"],
        "the words every layer shares, and the levels of danger among them",
    ),
    (
        "telemetry",
        &["secret", "terminal_text"],
        "takes what it needs as arguments; knows what secrets look like, also with colours in them",
    ),
    (
        "notices",
        &["message", "protocol"],
        "`protocol` for the event that names a page to sign in at",
    ),
    (
        "document",
        &["message", "runtime"],
        "reads what a user sends or a tool finds; knows nothing of either",
    ),
    (
        "terminal_text",
        &["classifier"],
        "for whoever shows output; which characters are hidden is said there",
    ),
    ("runtime", &[], "helpers around tokio"),
    ("json_schema", &[], "schemas that clients give"),
    (
        "units",
        &[],
        "durations and sizes, for whoever reads or writes them",
    ),
    (
        "audit",
        &["permission"],
        "gets everything from whoever settles a call; `permission` for the word how far an answer reaches",
    ),
    (
        "users",
        &["message", "protocol", "sandbox"],
        "what somebody may who was let in: roles are `protocol`'s words; `sandbox` for how much homes hold",
    ),
    (
        "token",
        &["config", "http", "message", "protocol", "users"],
        "what a token says becomes what its user may; `http` for keys that have an address",
    ),
    (
        "address",
        &[],
        "addresses of daemons, for whoever is given one",
    ),
    (
        "vault",
        &["config", "sandbox"],
        "the daemon's own secrets; `sandbox` for a folder that its user alone can enter",
    ),
    ("packed", &[], "texts of the program"),
    ("process", &[], "runs before anything else"),
    (
        "lifecycle",
        &["sandbox"],
        "signals and handles alone; `sandbox` has Windows' call to wait for a process",
    ),
    (
        "http",
        &["sandbox"],
        "clients for providers and search engines; `sandbox` for addresses that hand out keys",
    ),
    (
        "instructions",
        &["sandbox", "telemetry", "terminal_text"],
        "reads files of projects by the handles of `sandbox`; `telemetry` takes secrets out before anybody sees them",
    ),
    (
        "webhooks",
        &[
            "sandbox",
            "config",
            "http",
            "message",
            "protocol",
            "telemetry",
        ],
        "",
    ),
    (
        "hooks",
        &[
            "config",
            "http",
            "message",
            "protocol",
            "sandbox",
            "telemetry",
            "tool",
        ],
        "`tool` for how a program is run in the project's folder; `telemetry` takes secrets out of what they say",
    ),
    (
        "otlp",
        &["config", "http", "telemetry"],
        "spans and figures come as they are; `telemetry` for the queue of spans",
    ),
    (
        "permission",
        &["message", "classifier", "units"],
        "`classifier` for the words of a command",
    ),
    (
        "protocol",
        &["message", "permission"],
        "`permission` for the map a send may carry",
    ),
    (
        "config",
        &[
            "audit",
            "message",
            "permission",
            "sandbox",
            "secret",
            "telemetry",
            "http",
            "units",
        ],
        "`sandbox` for folders that are no project; `telemetry` to check a filter before it is used; `audit` for the most files it keeps; `http` for URLs that lead to this machine",
    ),
    (
        "provider",
        &["runtime", "message", "config", "http", "units"],
        "",
    ),
    (
        "spend",
        &["message", "config", "provider"],
        "`provider` for what tokens cost",
    ),
    (
        "tool",
        &[
            "instructions",
            "json_schema",
            "runtime",
            "document",
            "message",
            "notices",
            "config",
            "permission",
            "sandbox",
            "classifier",
            "http",
            "telemetry",
            "terminal_text",
            "units",
        ],
        "`permission` for what a call is recognised by; `telemetry` for the redactor: what is cut is cleaned before; `units` for sizes that the model reads",
    ),
    (
        "mcp",
        &[
            "message",
            "notices",
            "config",
            "protocol",
            "http",
            "permission",
            "runtime",
            "sandbox",
            "telemetry",
            "terminal_text",
            "tool",
            "vault",
        ],
        "`permission` for what a call is recognised by, `protocol` for a server's row of `mcp:list`, `telemetry` for the redactor",
    ),
    (
        "store",
        &["message", "permission", "protocol", "runtime"],
        "`protocol` for messages and records as they are written down, `permission` for the user's answers that count for later calls",
    ),
    (
        "exchange",
        &[
            "hooks",
            "instructions",
            "json_schema",
            "spend",
            "store",
            "runtime",
            "audit",
            "classifier",
            "message",
            "config",
            "protocol",
            "permission",
            "provider",
            "tool",
            "sandbox",
            "telemetry",
            "units",
            "users",
        ],
        "`classifier` for the words of a command that a question shows, `sandbox` for what a conversation has seen of files, `telemetry` for the redactor, only handed on, and for figures",
    ),
    (
        "conversation",
        &[
            "runtime",
            "exchange",
            "message",
            "permission",
            "protocol",
            "store",
            "telemetry",
            "users",
        ],
        "`telemetry` for figures; `permission` for how free an exchange is that somebody has a word in; `store` for a send as it waits; `users` for who counts what is at work",
    ),
    (
        "session",
        &[
            "hooks",
            "instructions",
            "json_schema",
            "http",
            "webhooks",
            "spend",
            "store",
            "runtime",
            "document",
            "conversation",
            "exchange",
            "message",
            "notices",
            "protocol",
            "permission",
            "config",
            "mcp",
            "provider",
            "sandbox",
            "telemetry",
            "tool",
            "units",
            "users",
        ],
        "`provider` and `exchange` to resolve what a send leaves open, `mcp` to answer requests about servers, `tool` for the project a session works in, `sandbox` for its folders when files are put back, `http` for what an address of a search engine has to be",
    ),
    (
        "acp",
        &[
            "connection",
            "message",
            "plain_text",
            "protocol",
            "runtime",
            "session",
            "telemetry",
        ],
        "one more client of the sessions, as `connection` is, from where it has when a socket was heard last; `plain_text` for how a client reads frames",
    ),
    (
        "connection",
        &[
            "runtime",
            "session",
            "protocol",
            "message",
            "plain_text",
            "telemetry",
        ],
        "`plain_text` for text mode",
    ),
    (
        "server",
        &[
            "acp",
            "mcp",
            "connection",
            "session",
            "protocol",
            "message",
            "packed",
            "telemetry",
            "config",
            "token",
            "users",
            "http",
            "store",
            "units",
        ],
        "`http` for the way to other daemons of the cluster, `store` for which ones there are, `mcp` for the answers of pages at which somebody signed in",
    ),
    (
        "ready",
        &["protocol", "store"],
        "the version of the contract; what is wrong with the store",
    ),
    (
        "daemon",
        &[
            "hooks",
            "webhooks",
            "acp",
            "audit",
            "config",
            "exchange",
            "message",
            "otlp",
            "store",
            "http",
            "lifecycle",
            "mcp",
            "notices",
            "process",
            "protocol",
            "provider",
            "ready",
            "sandbox",
            "server",
            "session",
            "spend",
            "telemetry",
            "tool",
            "units",
            "token",
            "users",
        ],
        "it alone builds providers, tools and sandbox and hands them down",
    ),
    (
        "arguments",
        &["config", "message", "protocol", "token", "units"],
        "`protocol` for what a session is exported as, `units` for durations",
    ),
    (
        "commands",
        &[
            "address",
            "arguments",
            "config",
            "http",
            "message",
            "packed",
            "process",
            "protocol",
            "provider",
            "ready",
            "sandbox",
            "tool",
            "session",
            "store",
            "plain_text",
            "units",
            "token",
            "users",
        ],
        "the doctor looks at everything that a daemon would use, and starts none of it; `store` for sessions without a daemon, `session` and `plain_text` for how they are shown",
    ),
    (
        "plain_text",
        &["message", "permission", "protocol", "terminal_text"],
        "a session as lines, for the terminal client and text mode; `permission` for how long an answer counts",
    ),
    (
        "chat",
        &[
            "address",
            "json_schema",
            "arguments",
            "message",
            "plain_text",
            "protocol",
            "ready",
            "runtime",
            "terminal_text",
        ],
        "a client: it reaches the daemon through the socket alone; `terminal_text` for what is pasted into a line",
    ),
];

#[test]
fn modules_import_what_the_table_allows() {
    let mut wrong = BTreeSet::new();
    for source in modules() {
        let module = module_of(&source.path);
        if module == "lib" || module == "main" {
            continue;
        }
        let Some((_, allowed, _)) = ALLOWED.iter().find(|(name, ..)| *name == module) else {
            wrong.insert(format!("src/{module}.rs is not in the table"));
            continue;
        };
        for import in imports(&source.text) {
            if import != module && !allowed.contains(&import.as_str()) {
                wrong.insert(format!(
                    "{}: `{module}` may not import `{import}`",
                    source.path
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_table_allows_nothing_that_is_not_used() {
    let sources = modules();
    let mut unused = Vec::new();
    for (module, allowed, _) in ALLOWED {
        let used: BTreeSet<String> = sources
            .iter()
            .filter(|source| module_of(&source.path) == *module)
            .flat_map(|source| imports(&source.text))
            .collect();
        unused.extend(
            allowed
                .iter()
                .filter(|import| !used.contains(**import))
                .map(|import| format!("{module} -> {import}")),
        );
    }
    assert_eq!(unused, Vec::<String>::new());
}

/// The files of the root.
fn modules() -> Vec<File> {
    let mut modules = sources();
    modules.retain(|source| source.path.starts_with("src/"));
    modules
}

/// The top-level module of a file, e.g. `tool` for `src/tool/bash.rs`.
fn module_of(path: &str) -> &str {
    let below = path.strip_prefix("src/").unwrap();
    let first = below.split('/').next().unwrap();
    first.strip_suffix(".rs").unwrap_or(first)
}

/// The top-level modules that code names: `crate::x…` and `crate::{x…, y…}`.
fn imports(code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, prefix) in code.match_indices("crate::") {
        // `my_crate::` is another crate.
        if code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_') {
            continue;
        }
        let rest = &code[at + prefix.len()..];
        match rest.strip_prefix('{') {
            Some(group) => found.extend(names_of(group)),
            None => found.extend(word(rest)),
        }
    }
    // By the name of its crate, a module of the root is imported all the same.
    for (name, module) in [
        ("outrigger_shell::", "classifier"),
        ("outrigger_sandbox::", "sandbox"),
    ] {
        if code.contains(name) {
            found.insert(module.to_owned());
        }
    }
    // Items of the crate's root are no modules.
    found.retain(|name| name.chars().next().is_some_and(char::is_lowercase));
    found
}

/// The first word of each item of a group, up to its closing brace.
fn names_of(group: &str) -> Vec<String> {
    let mut depth = 0;
    let mut names = Vec::new();
    let mut item = 0;
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                names.extend(word(group[item..at].trim_start()));
                item = at + 1;
                if letter == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    names
}

fn word(text: &str) -> Option<String> {
    let word: String = text
        .chars()
        .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
        .collect();
    (!word.is_empty()).then_some(word)
}

#[test]
fn every_form_of_import_is_seen() {
    let cases = [
        ("use crate::tool::Tool;", vec!["tool"]),
        (
            "use crate::{config, protocol::{Event, code}, tool as t};",
            vec!["config", "protocol", "tool"],
        ),
        ("let x = crate::http::client();", vec!["http"]),
        ("use serde_crate::thing; use outrigger_crate::x;", vec![]),
        ("pub use outrigger_shell::DangerLevel;", vec!["classifier"]),
        ("macro_use!(crate::Root);", vec![]),
    ];
    for (code, expected) in cases {
        assert_eq!(
            imports(code),
            expected.into_iter().map(str::to_owned).collect(),
            "{code}"
        );
    }
}
