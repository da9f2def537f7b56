//! What a conversation's tools may do: a workflow's permissions, and what a send narrowed them to.

use std::time::Duration;

use globset::{Glob, GlobSet, GlobSetBuilder};

use super::{Permission, PermissionMap};
use crate::classifier::{Denial, Pattern, SimpleCommand};
use crate::message::{DangerLevel, ToolSpec};

/// What tools may do. One map is the workflow's or the client's; a second one narrows it.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    maps: Vec<PermissionMap>,
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
    /// A text that names the tool and what is wrong with its pattern or glob.
    pub fn new(
        workflow: Option<&PermissionMap>,
        narrowed: Option<&PermissionMap>,
    ) -> Result<Self, String> {
        let scope = Self {
            maps: workflow.into_iter().chain(narrowed).cloned().collect(),
        };
        for (tool, permission) in scope.maps.iter().flatten() {
            globs(permission.paths.as_deref().unwrap_or_default())
                .map_err(|error| format!("`{tool}`: {error}"))?;
            patterns(&permission.allow).map_err(|error| format!("`{tool}`: allow: {error}"))?;
            patterns(&permission.deny).map_err(|error| format!("`{tool}`: deny: {error}"))?;
        }
        Ok(scope)
    }

    /// Whether the tool is offered to the model.
    pub fn allows(&self, tool: &ToolSpec) -> bool {
        self.grant(&tool.name, tool.danger_level).is_some()
    }

    /// Returns what the tool may do; `None` where it is not allowed.
    pub fn grant(&self, tool: &str, level: DangerLevel) -> Option<Grant> {
        let mut grant = Grant {
            paths: Vec::new(),
            allows: Vec::new(),
            deny: Vec::new(),
            timeout: None,
            dangerous: true,
            network: true,
            unlimited: self.maps.is_empty(),
        };
        for map in &self.maps {
            if map.is_empty() {
                if level > DangerLevel::Safe {
                    return None;
                }
                grant.read_only();
                continue;
            }
            grant.narrow(lookup(map, tool).filter(|found| found.allowed)?);
        }
        Some(grant)
    }
}

/// Globs on paths, and the folders that hold all that they match.
#[derive(Clone, Debug, Default)]
struct Paths {
    globs: GlobSet,
    folders: Vec<String>,
}

/// What one tool may do within a scope.
#[derive(Clone, Debug)]
pub struct Grant {
    /// Each must match every path; empty for all paths.
    paths: Vec<Paths>,
    /// One list for each map; a command runs unasked where each has a pattern for it.
    allows: Vec<Vec<Pattern>>,
    deny: Vec<Pattern>,
    /// Longest run of one call.
    pub timeout: Option<Duration>,
    dangerous: bool,
    network: bool,
    /// There is no map at all.
    unlimited: bool,
}

impl Grant {
    /// Takes the word of a map without entries: only reading, and nothing of what a map has to grant by name.
    fn read_only(&mut self) {
        self.allows.push(Vec::new());
        self.dangerous = false;
        self.network = false;
    }

    /// Takes one map's word: nothing gets wider by it.
    fn narrow(&mut self, permission: &Permission) {
        if let Some(paths) = &permission.paths {
            // Checked when the scope was made; a glob that fails here would match nothing.
            self.paths.push(Paths {
                globs: globs(paths).unwrap_or_default(),
                folders: paths.iter().map(|glob| folder_of(glob)).collect(),
            });
        }
        self.allows
            .push(patterns(&permission.allow).unwrap_or_default());
        self.deny
            .extend(patterns(&permission.deny).unwrap_or_default());
        self.timeout = match (self.timeout, permission.timeout) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self.dangerous &= permission.allow_dangerous;
        self.network &= permission.allow_network;
    }

    /// Returns the first path that no glob of the scope matches.
    pub(super) fn path_outside<'p>(&self, paths: &'p [String]) -> Option<&'p str> {
        paths
            .iter()
            .map(String::as_str)
            .find(|path| !self.shows(path))
    }

    /// Whether a path is in scope.
    pub fn shows(&self, path: &str) -> bool {
        self.paths.iter().all(|paths| paths.globs.is_match(path))
    }

    /// Returns the first folder that can hold nothing that is in scope.
    pub(super) fn folder_outside<'p>(&self, paths: &'p [String]) -> Option<&'p str> {
        let may_hold =
            |path: &str, folder: &str| is_within(folder, path) || is_within(path, folder);
        paths.iter().map(String::as_str).find(|path| {
            !self.paths.iter().all(|paths| {
                let mut folders = paths.folders.iter();
                folders.any(|folder| may_hold(path, folder)) || paths.globs.is_match(path)
            })
        })
    }

    /// Whether every command is allowed by a pattern of each map of the scope.
    pub(super) fn allows_all(&self, commands: &[SimpleCommand]) -> bool {
        let allowed = |command: &SimpleCommand| {
            let mut allows = self.allows.iter();
            allows.all(|allow| allow.iter().any(|pattern| pattern.matches(command)))
        };
        !commands.is_empty() && !self.allows.is_empty() && commands.iter().all(allowed)
    }

    /// Whether some command is, or may come to be, one that a pattern of the scope denies.
    pub(super) fn denies_one(&self, commands: &[SimpleCommand]) -> Denial {
        let denials = commands
            .iter()
            .flat_map(|command| self.deny.iter().map(|pattern| pattern.denies(command)));
        denials.max().unwrap_or(Denial::No)
    }

    /// Whether commands classed dangerous are in scope.
    pub(super) fn dangerous(&self) -> bool {
        self.dangerous && !self.unlimited
    }

    /// Whether commands may use the network unasked.
    pub fn network(&self) -> bool {
        self.network && !self.unlimited
    }
}

/// Finds a tool's permission: by its name, else by the longest pattern with `*` that matches.
fn lookup<'m>(map: &'m PermissionMap, tool: &str) -> Option<&'m Permission> {
    map.get(tool).or_else(|| {
        map.iter()
            .filter(|(name, _)| name.contains('*'))
            .filter(|(name, _)| {
                Glob::new(name).is_ok_and(|glob| glob.compile_matcher().is_match(tool))
            })
            .max_by_key(|(name, _)| name.len())
            .map(|(_, permission)| permission)
    })
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
    let rooted = |path: &str| {
        if path == "." {
            String::new()
        } else {
            format!("{path}/")
        }
    };
    match folder {
        "" | "." => true,
        folder => rooted(path).starts_with(&rooted(folder)),
    }
}

fn globs(paths: &[String]) -> Result<GlobSet, globset::Error> {
    let mut set = GlobSetBuilder::new();
    for path in paths {
        set.add(
            globset::GlobBuilder::new(path.trim_start_matches("./"))
                .literal_separator(true)
                .build()?,
        );
    }
    set.build()
}

fn patterns(texts: &[String]) -> Result<Vec<Pattern>, crate::classifier::PatternError> {
    texts.iter().map(|text| Pattern::parse(text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(globs: &[&str]) -> Grant {
        let permission = Permission {
            allowed: true,
            paths: Some(globs.iter().map(|glob| (*glob).to_owned()).collect()),
            ..Permission::default()
        };
        let map = PermissionMap::from([("file_list".to_owned(), permission)]);
        let scope = Scope::new(Some(&map), None).unwrap();
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
        let command = SimpleCommand {
            words: ["git", "push"].map(word).into(),
        };
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
            let scope = Scope::new(workflow.as_ref(), send.as_ref()).unwrap();
            let grant = scope.grant("git", DangerLevel::Safe).unwrap();
            let found = (grant.network(), grant.dangerous());
            assert_eq!(found, (expected, expected), "{workflow:?} {send:?}");
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
