use super::*;

/// What a path is expected to allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Free,
    WriteNeedsApproval,
    ReadNeedsApproval,
    ReadOnly,
    Nothing,
}
use Expected::{Free, Nothing, ReadNeedsApproval, ReadOnly, WriteNeedsApproval};

const CASES: &[(&str, Expected)] = &[
    ("src/main.rs", Free),
    ("environment.ts", Free),
    (".envoy/config", Free),
    (".env", Nothing),
    (".ENV", Nothing),
    (".Env", Nothing),
    ("deploy/.env", Nothing),
    (".env.local", Nothing),
    (".env.production", Nothing),
    (".env.example.local", Nothing),
    (".env.example", Free),
    (".ENV.Example", Free),
    (".env.sample", Free),
    (".env.template", Free),
    (".env.dist", Free),
    ("\u{ff0e}env", Nothing),
    ("\u{ff0e}\u{ff25}\u{ff2e}\u{ff36}", Nothing),
    (".e\u{200b}nv", Nothing),
    ("\u{202e}.env", Nothing),
    (".env\u{feff}", Nothing),
    (".e\u{ad}nv", Nothing),
    (".env\u{fe0f}", Nothing),
    (".\u{df}h/id", Nothing),
    (".\u{17f}\u{17f}h/config", Nothing),
    (".\u{212a}ube/config", Nothing),
    (".kube/config", Nothing),
    (".kube/cache", Free),
    (".docker/config.json", Nothing),
    (".netrc", Nothing),
    (".npmrc", Nothing),
    (".pypirc", Nothing),
    (".git-credentials", Nothing),
    (".htpasswd", Nothing),
    (".pgpass", Nothing),
    (".my.cnf", Nothing),
    ("id_rsa", Nothing),
    ("keys/id_ed25519.pub", Nothing),
    ("server.pem", Nothing),
    ("tls/SERVER.KEY", Nothing),
    ("a.p12", Nothing),
    ("a.pfx", Nothing),
    ("a.jks", Nothing),
    ("a.keystore", Nothing),
    ("a.kdbx", Nothing),
    ("a.ppk", Nothing),
    ("keyboard.rs", Free),
    ("monkey", Free),
    (".aws/credentials", Nothing),
    (".aws", Nothing),
    (".ssh/known_hosts", Nothing),
    ("sub/.gnupg/x/y", Nothing),
    (".config/gcloud/x", Nothing),
    (".config/other", Free),
    (".terraform.d/credentials.tfrc.json", Nothing),
    ("terraform.tfstate", Nothing),
    ("terraform.tfstate.backup", Nothing),
    ("service-account.json", Nothing),
    ("service-account-7.json", Nothing),
    ("credentials", Nothing),
    ("credentials.json", Nothing),
    ("my-secrets.yaml", Nothing),
    ("client_secret.json", Nothing),
    ("secrets/readme.txt", Free),
    ("secret_test.go", ReadNeedsApproval),
    ("src/credentials.rs", ReadNeedsApproval),
    ("docs/secrets.md", ReadNeedsApproval),
    ("node_modules/tls/test/server.key", Free),
    ("web/Node_Modules/a/b.pem", Free),
    (
        ".venv/lib/python3.13/site-packages/certifi/cacert.pem",
        Free,
    ),
    ("site-packages/aws/secret.json", Free),
    ("node_modules.pem", Nothing),
    ("node_modules/x/.env", Nothing),
    ("node_modules/x/.npmrc", Nothing),
    ("node_modules2/x.key", Nothing),
    (".git/config", Nothing),
    (".GIT/Config", Nothing),
    ("vendor/x/.git/config", Nothing),
    (".git/modules/x/config", Nothing),
    (".git/HEAD", ReadOnly),
    (".git/hooks/pre-commit", ReadOnly),
    (".git", ReadOnly),
    ("new/.git/hooks/x", ReadOnly),
    (".gitmodules", ReadOnly),
    (".gitignore", Free),
    (".husky/pre-commit", ReadOnly),
    (".envrc", ReadOnly),
    (".vscode/tasks.json", ReadOnly),
    (".idea/x.xml", ReadOnly),
    (".devcontainer/devcontainer.json", ReadOnly),
    (".mcp.json", ReadOnly),
    (".claude/settings.json", ReadOnly),
    (".codex/config.toml", ReadOnly),
    (".cursor/mcp.json", ReadOnly),
    (".gemini/settings.json", ReadOnly),
    (".gitattributes", WriteNeedsApproval),
    (".pre-commit-config.yaml", WriteNeedsApproval),
    (".github/workflows/ci.yml", WriteNeedsApproval),
    (".github/README.md", Free),
    ("home/.bashrc", WriteNeedsApproval),
];

#[test]
fn every_path_allows_what_its_rule_says() {
    for (path, expected) in CASES {
        let read = denied(path, Access::Read).is_none();
        let write = denied(path, Access::Write).is_none();
        let found = match (read, write) {
            (true, true) if needs_approval(path, Access::Read).is_some() => ReadNeedsApproval,
            (true, true) if needs_approval(path, Access::Write).is_some() => WriteNeedsApproval,
            (true, true) => Free,
            (true, false) => ReadOnly,
            (false, _) => Nothing,
        };
        assert_eq!(found, *expected, "{path:?}");
        assert!(read || !write, "{path:?} may be written but not read");
    }
}

#[test]
fn what_commands_may_not_see_leaves_git_working() {
    for (path, expected) in [
        (".env", true),
        (".ssh", true),
        ("credentials.json", true),
        ("credentials.rs", false),
        (".git/config", false),
        (".vscode/tasks.json", false),
        (".env.example", false),
    ] {
        assert_eq!(hidden(path), expected, "{path:?}");
    }
}

#[test]
fn a_folder_is_judged_by_rules_about_folders() {
    assert!(denied_folder(".ssh", Access::Read).is_some());
    assert!(denied_folder("a/.aws/b", Access::Read).is_some());
    assert!(denied_folder("secrets", Access::Read).is_none());
    assert!(denied_folder(".git", Access::Read).is_none());
    assert!(denied_folder("", Access::Read).is_none());
}

proptest::proptest! {
    #[test]
    fn folding_is_idempotent_and_never_lifts_a_denial(path in "\\PC{0,40}") {
        let folded = fold(&path);
        proptest::prop_assert_eq!(&fold(&folded), &folded);
        proptest::prop_assert_eq!(&fold_unicode(&folded), &folded);
        proptest::prop_assert_eq!(
            denied(&path, Access::Write).is_some(),
            denied(&folded, Access::Write).is_some()
        );
    }

    #[test]
    fn invisible_characters_and_case_change_nothing(
        mask in proptest::collection::vec((proptest::bool::ANY, 0_usize..4), 0..60),
        case in 0..CASES.len(),
    ) {
        let (path, _) = CASES[case];
        let disguised: String = path
            .chars()
            .enumerate()
            .flat_map(|(at, letter)| {
                let (upper, extra) = mask.get(at).copied().unwrap_or((false, 0));
                let letter = if upper { letter.to_ascii_uppercase() } else { letter };
                let invisible = ["", "\u{200d}", "\u{2066}", "\u{180e}"][extra];
                std::iter::once(letter).chain(invisible.chars()).collect::<Vec<_>>()
            })
            .collect();
        for access in [Access::Read, Access::Write] {
            proptest::prop_assert_eq!(denied(&disguised, access), denied(path, access));
        }
    }
}

#[test]
fn rules_about_folders_are_not_about_names_of_files() {
    for folder in [".ssh", "a/.SSH/b", "\u{ff0e}ssh", "a/.git"] {
        assert!(denied_folder(folder, Access::Write).is_some(), "{folder}");
    }
    for folder in ["", "a", "a/secrets", "a.env/b", "id_rsa"] {
        assert!(denied_folder(folder, Access::Write).is_none(), "{folder}");
    }
}

proptest::proptest! {
    #[test]
    fn what_may_not_match_matches_no_glob(
        pieces in proptest::collection::vec(
            (0_usize..1000, proptest::sample::select(vec!["", "/", ".", "x", "a/b"]), proptest::bool::ANY),
            1..6,
        ),
    ) {
        // Names of the rules, whole or less their first letter, with something in the place of each star.
        let names: Vec<&str> = RULES.iter().flat_map(Rule::names).collect();
        let mut path = String::new();
        for (at, between, whole) in pieces {
            let name = names[at % names.len()];
            let name = if whole { name } else { name.get(1..).unwrap_or_default() };
            path += between;
            path += &name.replace("**", "a/b").replace('*', between);
        }
        if !may_match(&path) {
            let compiled = MATCHER.get_or_init(compile);
            proptest::prop_assert!(compiled.matches(&path).is_empty(), "{}", path);
        }
    }
}

#[test]
fn what_usual_files_are_called_matches_nothing() {
    for path in [
        "agents.md",
        "src/main.rs",
        "package.json",
        "docs/a b.txt",
        "",
    ] {
        assert!(!may_match(path), "{path}");
    }
    for name in RULES.iter().flat_map(Rule::names) {
        assert!(!name.contains(['?', '[', '{', '\\']), "{name}");
        assert!(may_match(&name.replace('*', "x")), "{name}");
    }
}

#[test]
fn a_walk_through_a_tree_has_the_globs_compiled() {
    for number in 0..=FEW {
        assert_eq!(denied(&format!("src/{number}.rs"), Access::Write), None);
    }
    assert!(MATCHER.get().is_some());
}

#[test]
fn what_others_run_is_named_once_and_is_not_simply_written() {
    let paths: Vec<&str> = run_by_others().collect();
    for path in &paths {
        let once = paths.iter().filter(|other| *other == path).count() == 1;
        assert!(once && !path.contains('*'), "{path}");
        let inner = format!("{path}/x");
        let guarded = |path: &str| {
            denied(path, Access::Write)
                .or_else(|| needs_approval(path, Access::Write))
                .is_some()
        };
        assert!(guarded(path) || guarded(&inner), "{path}");
    }
    for path in [
        ".vscode",
        ".mcp.json",
        ".github/workflows",
        ".envrc",
        ".bashrc",
    ] {
        assert!(paths.contains(&path), "{path}");
    }
    assert!(!paths.contains(&".git"));
}

#[test]
fn what_windows_drops_of_a_name_hides_nothing() {
    for (name, folded) in [
        (".env::$data", ".env"),
        (".env:stream", ".env"),
        (".env.", ".env"),
        (".env . .", ".env"),
        (r"sub\.env", "sub/.env"),
        (r".git.\hooks ", ".git/hooks"),
        ("a.b", "a.b"),
    ] {
        assert_eq!(fold_windows(name), folded, "{name}");
    }
}
