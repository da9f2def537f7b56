//! What a conversation's tools may do: a workflow's permissions, and what a send narrowed them to.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use globset::{Glob, GlobBuilder, GlobMatcher, GlobSet, GlobSetBuilder};

use super::{Permission, PermissionMap};
use crate::classifier::{Denial, Pattern, SimpleCommand};
use crate::message::{BASH, DangerLevel, ToolSpec, WITH_BASH};

/// The most tools, and patterns of such, that a client's map names: each is compiled at each send.
const MAX_NARROWED: usize = 1_000;

/// What tools may do. One map is the workflow's or the client's; a second one narrows it.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    maps: Vec<Arc<Permissions>>,
}

/// A map of permissions, compiled.
#[derive(Debug, Default)]
pub struct Permissions {
    rules: BTreeMap<String, Arc<Rule>>,
    /// Rules under a name with `*`, the shortest name first.
    patterns: Vec<(String, GlobMatcher, Arc<Rule>)>,
}

/// Why a permission cannot be compiled.
#[derive(Debug)]
pub struct PermissionError {
    /// The key of the permission; `None` for the tool's name itself.
    pub key: Option<&'static str>,
    /// What is wrong with it.
    pub message: String,
}

/// What a map says of one tool; the default is what one without entries says of a tool that only reads.
#[derive(Debug, Default)]
struct Rule {
    permission: Permission,
    /// `None` for all paths.
    paths: Option<Paths>,
    allow: Vec<Pattern>,
    deny: Vec<Pattern>,
}

/// Globs on paths, and the folders that hold all that they match.
#[derive(Debug)]
struct Paths {
    globs: GlobSet,
    folders: Vec<String>,
}

impl Scope {
    /// Every tool, under the trust level: no workflow and no map at all.
    pub fn everything() -> Self {
        Self::default()
    }

    /// A workflow's permissions (none where there is no workflow), narrowed by a client's.
    ///
    /// # Errors
    ///
    /// A text that names the tool and what is wrong with its pattern or glob, or says that a client names too many.
    pub fn new(
        workflow: Option<&Arc<Permissions>>,
        narrowed: Option<&PermissionMap>,
    ) -> Result<Self, String> {
        let count = narrowed.map_or(0, PermissionMap::len);
        if count > MAX_NARROWED {
            return Err(format!("{count} tools are more than {MAX_NARROWED}"));
        }
        let narrowed = narrowed.map(Permissions::new).transpose()?.map(Arc::new);
        Ok(Self {
            maps: workflow.cloned().into_iter().chain(narrowed).collect(),
        })
    }

    /// Returns what both this and these permissions allow.
    #[must_use]
    pub fn narrowed(&self, permissions: &Arc<Permissions>) -> Self {
        let mut narrowed = self.clone();
        narrowed.maps.push(Arc::clone(permissions));
        narrowed
    }

    /// Whether the tool is offered to the model.
    pub fn allows(&self, tool: &ToolSpec) -> bool {
        self.grant(&tool.name, tool.danger_level).is_some()
    }

    /// Returns what the tool may do; `None` where it is not allowed. The tools that go with `bash` may do what it may.
    pub fn grant(&self, tool: &str, level: DangerLevel) -> Option<Grant> {
        let (tool, level) = match WITH_BASH.contains(&tool) {
            true => (BASH, DangerLevel::Dangerous),
            false => (tool, level),
        };
        let rule = |map: &Arc<Permissions>| match map.rules.is_empty() {
            true => (level == DangerLevel::Safe).then(Arc::default),
            false => map.rule(tool).filter(|rule| rule.permission.allowed),
        };
        let rules = self.maps.iter().map(rule).collect::<Option<_>>()?;
        Some(Grant { rules })
    }
}

impl Permissions {
    /// Compiles a map.
    ///
    /// # Errors
    ///
    /// A pattern or a glob that cannot be read, with the tool's name.
    pub fn new(map: &PermissionMap) -> Result<Self, String> {
        let mut permissions = Self::default();
        for (tool, permission) in map {
            permissions.add(tool, permission).map_err(|error| {
                let key = error.key.map_or(String::new(), |key| format!("{key}: "));
                format!("`{tool}`: {key}{}", error.message)
            })?;
        }
        Ok(permissions)
    }

    /// Adds what a tool, or the tools that a name with `*` matches, may do.
    ///
    /// # Errors
    ///
    /// A pattern or a glob that cannot be read.
    pub fn add(&mut self, tool: &str, permission: &Permission) -> Result<(), PermissionError> {
        let rule = Arc::new(Rule::new(permission)?);
        if tool.contains('*') {
            let glob = Glob::new(tool).map_err(|error| PermissionError {
                key: None,
                message: error.to_string(),
            })?;
            let pattern = (tool.to_owned(), glob.compile_matcher(), Arc::clone(&rule));
            let is_shorter = |(name, ..): &(String, _, _)| name.len() <= tool.len();
            let place = self.patterns.partition_point(is_shorter);
            self.patterns.insert(place, pattern);
        }
        self.rules.insert(tool.to_owned(), rule);
        Ok(())
    }

    /// Returns a tool's rule: by its name, else by the longest pattern with `*` that matches.
    fn rule(&self, tool: &str) -> Option<Arc<Rule>> {
        let by_pattern = || {
            let mut longest_first = self.patterns.iter().rev();
            let found = longest_first.find(|(_, matcher, _)| matcher.is_match(tool));
            found.map(|(.., rule)| rule)
        };
        self.rules.get(tool).or_else(by_pattern).cloned()
    }
}

impl Rule {
    fn new(permission: &Permission) -> Result<Self, PermissionError> {
        let paths = |globs: &Vec<String>| -> Result<Paths, globset::Error> {
            let mut set = GlobSetBuilder::new();
            for glob in globs {
                let glob = GlobBuilder::new(glob.trim_start_matches("./"))
                    .literal_separator(true)
                    .build()?;
                set.add(glob);
            }
            Ok(Paths {
                globs: set.build()?,
                folders: globs.iter().map(|glob| folder_of(glob)).collect(),
            })
        };
        let wrong = |key, error: &dyn std::fmt::Display| PermissionError {
            key: Some(key),
            message: error.to_string(),
        };
        let patterns = |key, texts: &[String]| {
            let patterns = texts.iter().map(|text| Pattern::parse(text));
            let patterns: Result<Vec<_>, _> = patterns.collect();
            patterns.map_err(|error| wrong(key, &error))
        };
        let paths = permission.paths.as_ref().map(paths).transpose();
        Ok(Self {
            paths: paths.map_err(|error| wrong("paths", &error))?,
            allow: patterns("allow", &permission.allow)?,
            deny: patterns("deny", &permission.deny)?,
            permission: permission.clone(),
        })
    }
}

/// What one tool may do within a scope: what each of its maps lets it do.
#[derive(Clone, Debug)]
pub struct Grant {
    rules: Vec<Arc<Rule>>,
}

impl Grant {
    /// Returns the longest run of one call.
    pub fn timeout(&self) -> Option<Duration> {
        let timeouts = self.rules.iter().map(|rule| rule.permission.timeout);
        timeouts.flatten().map(|timeout| timeout.0).min()
    }

    pub(super) fn path_outside<'p>(&self, paths: &'p [String]) -> Option<&'p str> {
        let mut paths = paths.iter().map(String::as_str);
        paths.find(|path| !self.shows(path))
    }

    /// Whether a path is in scope.
    pub fn shows(&self, path: &str) -> bool {
        self.paths().all(|paths| paths.globs.is_match(path))
    }

    /// Returns the first folder that can hold nothing that is in scope.
    pub(super) fn folder_outside<'p>(&self, paths: &'p [String]) -> Option<&'p str> {
        let may_hold = |path: &str, in_scope: &Paths| {
            let mut folders = in_scope.folders.iter();
            folders.any(|folder| is_within(folder, path) || is_within(path, folder))
                || in_scope.globs.is_match(path)
        };
        let mut paths = paths.iter().map(String::as_str);
        paths.find(|path| !self.paths().all(|in_scope| may_hold(path, in_scope)))
    }

    fn paths(&self) -> impl Iterator<Item = &Paths> {
        self.rules.iter().filter_map(|rule| rule.paths.as_ref())
    }

    pub(super) fn allows_all(&self, commands: &[SimpleCommand]) -> bool {
        let allowed = |command: &SimpleCommand| {
            let mut rules = self.rules.iter();
            rules.all(|rule| rule.allow.iter().any(|pattern| pattern.matches(command)))
        };
        !commands.is_empty() && !self.rules.is_empty() && commands.iter().all(allowed)
    }

    /// Whether some command is, or may come to be, one that a pattern of the scope denies.
    pub(super) fn denies_one(&self, commands: &[SimpleCommand]) -> Denial {
        let patterns = || self.rules.iter().flat_map(|rule| &rule.deny);
        let denials = commands
            .iter()
            .flat_map(|command| patterns().map(|pattern| pattern.denies(command)));
        denials.max().unwrap_or(Denial::No)
    }

    pub(super) fn dangerous(&self) -> bool {
        self.each_grants(|permission| permission.allow_dangerous)
    }

    /// Whether commands may use the network without a question.
    pub fn network(&self) -> bool {
        self.each_grants(|permission| permission.allow_network)
    }

    /// Whether every map grants what has to be granted by name; where there is none, nobody did.
    fn each_grants(&self, granted: impl Fn(&Permission) -> bool) -> bool {
        let mut rules = self.rules.iter();
        !self.rules.is_empty() && rules.all(|rule| granted(&rule.permission))
    }
}

/// The folder that holds all that a glob matches: its components before the first wildcard.
fn folder_of(glob: &str) -> String {
    let components: Vec<&str> = glob.trim_start_matches("./").split('/').collect();
    let fixed = components
        .iter()
        .take(components.len().saturating_sub(1))
        .take_while(|component| !component.contains(['*', '?', '[', '{', '\\']));
    fixed.copied().collect::<Vec<_>>().join("/")
}

/// Whether a path is a folder or below it, by whole components; `.` and nothing are the root.
fn is_within(path: &str, folder: &str) -> bool {
    match folder {
        "" | "." => true,
        folder => format!("{path}/").starts_with(&format!("{folder}/")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Timeout;

    fn compiled(map: &PermissionMap) -> Arc<Permissions> {
        Arc::new(Permissions::new(map).unwrap())
    }

    #[test]
    fn a_tool_has_the_rule_of_its_name_or_of_the_longest_pattern() {
        let permission = |seconds| Permission {
            allowed: true,
            timeout: Some(Timeout(Duration::from_secs(seconds))),
            ..Permission::default()
        };
        let names = ["*", "mcp__a__*", "mcp__*", "mcp__a__one", "mcp__b__*"];
        let map = names.iter().zip(1..).map(|(name, seconds)| {
            let name: &str = name;
            (name.to_owned(), permission(seconds))
        });
        let scope = Scope::new(None, Some(&map.collect())).unwrap();
        for (tool, seconds) in [
            ("bash", 1),
            ("mcp__a__two", 2),
            ("mcp__c__x", 3),
            ("mcp__a__one", 4),
            ("mcp__b__one", 5),
        ] {
            let grant = scope.grant(tool, DangerLevel::Warning).unwrap();
            assert_eq!(
                grant.timeout(),
                Some(Duration::from_secs(seconds)),
                "{tool}"
            );
        }
        let unreadable = PermissionMap::from([("mcp__[*".to_owned(), permission(1))]);
        let error = Scope::new(None, Some(&unreadable)).unwrap_err();
        assert!(error.starts_with("`mcp__[*`: "), "{error}");
        let many = |count| (0..count).map(|number| (format!("t{number}*"), permission(1)));
        let scope = |count| Scope::new(None, Some(&many(count).collect()));
        assert!(scope(MAX_NARROWED).is_ok());
        let error = scope(MAX_NARROWED + 1).unwrap_err();
        assert_eq!(error, "1001 tools are more than 1000");
    }

    fn grant(globs: &[&str]) -> Grant {
        let permission = Permission {
            allowed: true,
            paths: Some(globs.iter().map(|glob| (*glob).to_owned()).collect()),
            ..Permission::default()
        };
        let map = PermissionMap::from([("file_list".to_owned(), permission)]);
        let scope = Scope::new(None, Some(&map)).unwrap();
        scope.grant("file_list", DangerLevel::Safe).unwrap()
    }

    #[test]
    fn a_folder_is_outside_where_it_can_hold_nothing_in_scope() {
        for (globs, folder, outside) in [
            (&["src/**"][..], ".", false),
            (&["src/**"], "src", false),
            (&["src/**"], "src/deep", false),
            (&["src/**"], "docs", true),
            (&["src/**"], "src-other", true),
            (&["src/*/x/**"], "src/a", false),
            (&["a/b/*.rs"], "a", false),
            (&["a/b/*.rs"], "a/c", true),
            (&["a/b.rs"], "a", false),
            (&["a/b.rs"], "b", true),
            (&["*.md"], "docs", false),
            (&["**/*.md"], "docs", false),
            (&["./src/**", "docs/**"], "docs", false),
            (&[], ".", true),
        ] {
            let paths = [folder.to_owned()];
            let found = grant(globs).folder_outside(&paths);
            assert_eq!(found.is_some(), outside, "{globs:?} {folder}");
        }
    }

    #[test]
    fn a_command_runs_unasked_where_every_map_allows_it() {
        use crate::classifier::Word;

        let map = |allow: &[&str]| {
            let permission = Permission {
                allowed: true,
                allow: allow.iter().map(|text| (*text).to_owned()).collect(),
                ..Permission::default()
            };
            PermissionMap::from([("git".to_owned(), permission)])
        };
        let word = |text: &str| Word::Literal(text.to_owned());
        let command = SimpleCommand::from(["git", "push"].map(word));
        let (wide, narrow) = (Some(map(&["git **"])), Some(map(&["git status"])));
        let (none, empty) = (Some(map(&[])), Some(PermissionMap::new()));
        for (workflow, send, expected) in [
            (&wide, &None, true),
            (&None, &wide, true),
            (&wide, &wide, true),
            (&wide, &narrow, false),
            (&wide, &none, false),
            (&narrow, &wide, false),
            (&none, &wide, false),
            (&empty, &wide, false),
            (&None, &None, false),
        ] {
            let workflow = workflow.as_ref().map(compiled);
            let scope = Scope::new(workflow.as_ref(), send.as_ref()).unwrap();
            let grant = scope.grant("git", DangerLevel::Safe).unwrap();
            let found = grant.allows_all(std::slice::from_ref(&command));
            assert_eq!(found, expected, "{workflow:?} {send:?}");
        }
    }

    #[test]
    fn the_network_and_danger_are_granted_where_every_map_grants_them() {
        let map = |granted: bool| {
            let permission = Permission {
                allowed: true,
                allow_dangerous: granted,
                allow_network: granted,
                ..Permission::default()
            };
            Some(PermissionMap::from([("git".to_owned(), permission)]))
        };
        let (wide, narrow, empty) = (map(true), map(false), Some(PermissionMap::new()));
        for (workflow, send, expected) in [
            (&wide, &None, true),
            (&None, &wide, true),
            (&wide, &wide, true),
            (&wide, &narrow, false),
            (&narrow, &wide, false),
            (&empty, &None, false),
            (&None, &empty, false),
            (&wide, &empty, false),
            (&empty, &wide, false),
            (&None, &None, false),
        ] {
            let workflow = workflow.as_ref().map(compiled);
            let scope = Scope::new(workflow.as_ref(), send.as_ref()).unwrap();
            let grant = scope.grant("git", DangerLevel::Safe).unwrap();
            let found = (grant.network(), grant.dangerous());
            assert_eq!(found, (expected, expected), "{workflow:?} {send:?}");
        }
    }

    #[test]
    fn a_narrowed_scope_allows_what_both_allow() {
        let map = |names: &[&str]| {
            let allowed = Permission {
                allowed: true,
                ..Permission::default()
            };
            let names = names.iter().map(|name| (*name).to_owned());
            compiled(&names.map(|name| (name, allowed.clone())).collect())
        };
        let maps = [
            None,
            Some(map(&[])),
            Some(map(&["read"])),
            Some(map(&["read", "write"])),
            Some(map(&["w*", "task"])),
        ];
        let tools = [
            ("read", DangerLevel::Safe),
            ("write", DangerLevel::Warning),
            ("wipe", DangerLevel::Dangerous),
            ("task", DangerLevel::Safe),
        ];
        for around in &maps {
            for own in maps.iter().flatten() {
                let around = Scope::new(around.as_ref(), None).unwrap();
                let alone = Scope::new(Some(own), None).unwrap();
                let both = around.narrowed(own);
                for (tool, level) in tools {
                    let may = |scope: &Scope| scope.grant(tool, level).is_some();
                    assert_eq!(may(&both), may(&around) && may(&alone), "{tool}");
                }
            }
        }
    }

    #[test]
    fn what_is_shown_is_what_the_globs_match() {
        let grant = grant(&["src/**", "*.md"]);
        for (path, shown) in [
            ("src/a.rs", true),
            ("src/deep/b.rs", true),
            ("README.md", true),
            ("docs/c.md", false),
            (".", false),
        ] {
            assert_eq!(grant.shows(path), shown, "{path}");
        }
    }
}
