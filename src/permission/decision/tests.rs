use std::collections::BTreeMap;

use super::*;
use crate::classifier::Word;
use crate::permission::{Permission, PermissionMap};

fn tool(name: &str, category: ToolCategory, level: DangerLevel) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        input_schema: serde_json::json!({}).into(),
        category,
        danger_level: level,
        origin: "core".to_owned(),
    }
}

/// A call and what is known of it; the default is `git status` under `guided`, in no scope.
struct Case {
    tool: ToolSpec,
    danger: Danger,
    paths: Vec<String>,
    commands: Vec<SimpleCommand>,
    plain: bool,
    network: bool,
    said: Option<Said>,
    repeated: u32,
    scope: Option<PermissionMap>,
    rules: Rules,
}

fn command(line: &str) -> SimpleCommand {
    line.split(' ')
        .map(|word| Word::Literal(word.to_owned()))
        .collect()
}

impl Case {
    fn new(name: &str, level: DangerLevel, line: &str) -> Self {
        let (category, own) = match name {
            "bash" => (ToolCategory::Exec, Dangerous),
            "git" => (ToolCategory::Exec, Safe),
            "file_write" => (ToolCategory::File, Dangerous),
            _ => (ToolCategory::File, Safe),
        };
        Self {
            tool: tool(name, category, own),
            danger: Danger {
                level,
                reasons: Vec::new(),
            },
            paths: Vec::new(),
            commands: if line.is_empty() {
                Vec::new()
            } else {
                vec![command(line)]
            },
            plain: true,
            network: false,
            said: None,
            repeated: 1,
            scope: None,
            rules: Rules {
                trust: Guided,
                auto_approve_safe_commands: false,
                network: NetworkPolicy::Ask,
            },
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn allowing(self, change: impl FnOnce(&mut Permission)) -> Self {
        self.with(|case| {
            let mut permission = Permission {
                allowed: true,
                ..Permission::default()
            };
            change(&mut permission);
            case.scope = Some(BTreeMap::from([(case.tool.name.clone(), permission)]));
        })
    }

    fn trust(self, trust: TrustLevel) -> Self {
        self.with(|case| case.rules.trust = trust)
    }

    /// `run`, `ask` or `refuse`, and the reason.
    fn decided(&self) -> (&'static str, String) {
        match self.decision() {
            Decision::Run { .. } => ("run", String::new()),
            Decision::Ask(reason) => ("ask", reason),
            Decision::Refuse(reason) => ("refuse", reason),
            Decision::Denied(_) => ("denied", String::new()),
        }
    }

    fn decision(&self) -> Decision {
        let scope = Scope::new(None, self.scope.as_ref()).unwrap();
        let subject = Subject {
            tool: &self.tool,
            danger: &self.danger,
            paths: &self.paths,
            walks: false,
            commands: &self.commands,
            plain: self.plain,
            network: self.network,
            said: self.said.as_ref(),
            repeated: self.repeated,
            search: None,
        };
        decide(&subject, &scope, self.rules)
    }
}

/// What the user said before, for a project.
fn said(allows: bool) -> Option<Said> {
    Some(Said {
        allows,
        reach: Remember::Project,
        reason: None,
    })
}

use DangerLevel::{Blocked, Dangerous, Safe, Warning};
use TrustLevel::{Autonomous, Guided, Supervised};

#[test]
fn trust_levels_decide_where_nothing_else_does() {
    for (name, level, line, answers) in [
        ("file_read", Safe, "", ["run", "run", "ask"]),
        ("file_write", Dangerous, "", ["run", "ask", "ask"]),
        ("bash", Safe, "ls", ["run", "ask", "ask"]),
        ("bash", Warning, "make", ["run", "ask", "ask"]),
        ("bash", Dangerous, "rm -r x", ["ask", "ask", "ask"]),
        ("bash", Blocked, "sudo x", ["refuse", "refuse", "refuse"]),
        ("git", Safe, "git status", ["run", "run", "ask"]),
        ("git", Warning, "git commit", ["run", "ask", "ask"]),
        ("git", Dangerous, "git reset --hard", ["ask", "ask", "ask"]),
    ] {
        for (trust, wanted) in [Autonomous, Guided, Supervised].into_iter().zip(answers) {
            let case = Case::new(name, level, line).trust(trust);
            assert_eq!(case.decided().0, wanted, "{name} {line} {trust:?}");
        }
    }
}

#[test]
fn a_read_only_scope_has_what_only_reads() {
    for (name, level, line, wanted) in [
        ("file_read", Safe, "", "run"),
        ("file_read", Warning, "", "ask"),
        ("file_write", Dangerous, "", "refuse"),
        ("bash", Safe, "ls", "refuse"),
        ("git", Safe, "git log", "run"),
        ("git", Warning, "git commit", "refuse"),
        ("git", Dangerous, "git push -f", "refuse"),
    ] {
        for trust in [Autonomous, Guided] {
            let case = Case::new(name, level, line).trust(trust).with(|case| {
                case.scope = Some(PermissionMap::new());
                if level == Warning && line.is_empty() {
                    case.danger.reasons = vec!["named secret".to_owned()];
                }
            });
            assert_eq!(case.decided().0, wanted, "{name} {line} {trust:?}");
        }
    }
}

#[test]
fn refusals_come_before_whatever_lets_run() {
    let lenient = |case: Case| {
        case.trust(Autonomous).with(|case| {
            case.said = said(true);
            case.rules.auto_approve_safe_commands = true;
            case.rules.network = NetworkPolicy::On;
        })
    };
    let blocked = lenient(Case::new("bash", Blocked, "sudo x").allowing(|permission| {
        permission.allow = vec!["sudo **".to_owned()];
        permission.allow_dangerous = true;
        permission.allow_network = true;
    }));
    assert_eq!(blocked.decided().0, "refuse");
    let not_allowed = lenient(Case::new("bash", Safe, "ls").with(|case| {
        case.scope = Some(BTreeMap::from([(
            "file_read".to_owned(),
            Permission::default(),
        )]));
    }));
    assert_eq!(not_allowed.decided().0, "refuse");
    let denied = lenient(Case::new("bash", Safe, "ls -l").allowing(|permission| {
        permission.deny = vec!["ls **".to_owned()];
        permission.allow = vec!["ls **".to_owned()];
    }));
    assert_eq!(denied.decided().0, "refuse");
}

#[test]
fn what_may_be_denied_is_asked_whatever_else_allows_it() {
    for trust in [Guided, Autonomous] {
        let decided = |line: &str| {
            Case::new("bash", Safe, line)
                .allowing(|permission| {
                    permission.deny = vec!["git push **".to_owned()];
                    permission.allow = vec!["**".to_owned()];
                })
                .trust(trust)
                .with(|case| {
                    case.said = said(true);
                    case.rules.auto_approve_safe_commands = true;
                })
                .decided()
                .0
        };
        assert_eq!(decided("git status"), "run");
        assert_eq!(decided("/usr/bin/git -C . push"), "refuse");
        // An alias of the repository's.
        assert_eq!(decided("git pp"), "ask");
    }
}

#[test]
fn paths_of_the_scope_bind() {
    let outside = |trust| {
        Case::new("file_read", Safe, "")
            .allowing(|permission| permission.paths = Some(vec!["src/**".to_owned()]))
            .trust(trust)
            .with(|case| {
                case.paths = vec!["src/a".to_owned(), "doc/b".to_owned()];
                case.said = said(true);
            })
            .decided()
    };
    assert_eq!(outside(Guided).0, "refuse");
    assert_eq!(outside(Supervised).0, "refuse");
    let (answer, reason) = outside(Autonomous);
    assert_eq!(answer, "ask");
    assert!(reason.contains("doc/b"), "{reason}");
    let all_of_it = Case::new("git", Safe, "git log")
        .allowing(|permission| permission.paths = Some(vec!["src/**".to_owned()]))
        .with(|case| case.paths = vec![".".to_owned()]);
    assert_eq!(all_of_it.decided().0, "refuse");
}

#[test]
fn the_network_is_asked_for_at_every_level_unless_it_was_given() {
    for trust in [Autonomous, Guided, Supervised] {
        for (policy, given, wanted) in [
            (NetworkPolicy::Off, true, "refuse"),
            (NetworkPolicy::Ask, false, "ask"),
            (NetworkPolicy::Ask, true, "by trust"),
            (NetworkPolicy::On, false, "by trust"),
        ] {
            let case = Case::new("bash", Warning, "make")
                .trust(trust)
                .allowing(|permission| permission.allow_network = given)
                .with(|case| {
                    case.network = true;
                    case.said = said(true);
                    case.rules.network = policy;
                });
            // What was remembered speaks where nothing else does.
            let wanted = match (wanted, trust) {
                ("by trust", Supervised) => "ask",
                ("by trust", _) => "run",
                _ => wanted,
            };
            assert_eq!(case.decided().0, wanted, "{trust:?} {policy:?} {given}");
        }
    }
}

#[test]
fn files_that_are_always_asked_for_are() {
    for trust in [Autonomous, Guided, Supervised] {
        let case = Case::new("file_write", Dangerous, "")
            .trust(trust)
            .with(|case| {
                case.danger.reasons = vec!["a workflow".to_owned()];
                case.said = said(true);
            });
        assert_eq!(
            case.decided(),
            ("ask", "a workflow".to_owned()),
            "{trust:?}"
        );
    }
}

#[test]
fn the_same_call_again_and_again_is_asked_for() {
    for (trust, level, times, wanted) in [
        (Guided, Safe, 2, "run"),
        (Guided, Safe, 3, "ask"),
        (Autonomous, Safe, 24, "run"),
        (Autonomous, Safe, 25, "ask"),
        (Autonomous, Warning, 3, "ask"),
    ] {
        let case = Case::new("git", level, "git x").trust(trust).with(|case| {
            case.repeated = times;
            case.said = said(true);
        });
        assert_eq!(case.decided().0, wanted, "{trust:?} {level:?} {times}");
    }
}

#[test]
fn dangerous_commands_run_unasked_only_where_the_scope_says_so() {
    for (allowed, wanted) in [(false, "ask"), (true, "run")] {
        let case = Case::new("bash", Dangerous, "rm -r x")
            .trust(Autonomous)
            .allowing(|permission| permission.allow_dangerous = allowed);
        assert_eq!(case.decided().0, wanted);
    }
    let patterns = Case::new("bash", Dangerous, "rm -r x")
        .allowing(|permission| permission.allow = vec!["rm **".to_owned()]);
    assert_eq!(patterns.decided().0, "ask");
}

#[test]
fn a_pattern_speaks_for_plain_commands_alone() {
    for (plain, wanted) in [(true, "run"), (false, "ask")] {
        let case = Case::new("bash", Warning, "cargo test")
            .allowing(|permission| permission.allow = vec!["cargo test **".to_owned()])
            .with(|case| case.plain = plain);
        assert_eq!(case.decided().0, wanted, "{plain}");
    }
    let safe =
        Case::new("bash", Safe, "ls").with(|case| case.rules.auto_approve_safe_commands = true);
    assert_eq!(safe.decided().0, "run");
}

#[test]
fn supervised_asks_for_every_call_whatever_was_remembered() {
    for (name, level, line) in [
        ("file_read", Safe, ""),
        ("file_write", Dangerous, ""),
        ("bash", Safe, "ls"),
        ("git", Safe, "git status"),
    ] {
        let case = Case::new(name, level, line)
            .trust(Supervised)
            .with(|case| case.said = said(true));
        assert_eq!(case.decided().0, "ask", "{name} {line}");
    }
}

#[test]
fn a_word_of_the_users_counts_only_where_it_is_needed() {
    for (name, level, line, remembered) in [
        ("file_read", Safe, "", None),
        ("file_write", Dangerous, "", Some(Remember::Project)),
        ("bash", Warning, "make", Some(Remember::Project)),
    ] {
        let case = Case::new(name, level, line).with(|case| case.said = said(true));
        assert_eq!(
            case.decision(),
            Decision::Run { remembered },
            "{name} {line}"
        );
    }
}

#[test]
fn a_denial_of_the_users_holds_at_every_trust_level() {
    for trust in [Supervised, Guided, Autonomous] {
        for (name, level, line) in [
            ("file_read", Safe, ""),
            ("file_write", Dangerous, ""),
            ("bash", Dangerous, "rm -r x"),
        ] {
            let case = Case::new(name, level, line).trust(trust);
            // Neither the scope nor a third call in a row makes a question of it.
            let case = case
                .allowing(|permission| permission.allow = vec!["**".to_owned()])
                .with(|case| case.said = said(false))
                .with(|case| case.repeated = 3);
            assert_eq!(case.decided().0, "denied", "{name} {trust:?}");
        }
    }
    let blocked = Case::new("bash", Blocked, "rm -rf /").with(|case| case.said = said(false));
    assert_eq!(blocked.decided().0, "refuse");
}

#[test]
fn searches_are_asked_for_as_the_operator_says() {
    let case = Case::new("web_search", Safe, "");
    let asked = Search::Asked("new words".to_owned());
    for (search, remembered, trust, expected) in [
        (Search::Free, false, Guided, "run"),
        (asked.clone(), false, Autonomous, "ask"),
        (asked, true, Guided, "run"),
        (Search::Spent(30), false, Autonomous, "ask"),
        // The limit is there for when nobody looks.
        (Search::Spent(30), true, Guided, "ask"),
    ] {
        let approval = said(true);
        let subject = Subject {
            tool: &case.tool,
            danger: &case.danger,
            paths: &[],
            walks: false,
            commands: &[],
            plain: true,
            network: false,
            said: approval.as_ref().filter(|_| remembered),
            repeated: 1,
            search: Some(&search),
        };
        let rules = Rules {
            trust,
            ..case.rules
        };
        let scope = Scope::new(None, None).unwrap();
        let decision = match decide(&subject, &scope, rules) {
            Decision::Run { .. } => "run",
            Decision::Ask(_) => "ask",
            Decision::Refuse(_) | Decision::Denied(_) => "refuse",
        };
        assert_eq!(decision, expected, "{search:?} {remembered}");
    }
}
