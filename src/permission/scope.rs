//! What a conversation's tools may do: a workflow's permissions, and what a send narrowed them to.

use std::time::Duration;

use globset::{Glob, GlobSet, GlobSetBuilder};

use super::{Permission, PermissionMap};
use crate::classifier::{Pattern, SimpleCommand};
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
            allow: Vec::new(),
            deny: Vec::new(),
            timeout: None,
            dangerous: true,
            network: true,
            unlimited: self.maps.is_empty(),
        };
        for (place, map) in self.maps.iter().enumerate() {
            if map.is_empty() {
                if level > DangerLevel::Safe {
                    return None;
                }
                continue;
            }
            grant.narrow(lookup(map, tool).filter(|found| found.allowed)?, place == 0);
        }
        Some(grant)
    }
}

/// What one tool may do within a scope.
#[derive(Clone, Debug)]
pub struct Grant {
    /// Each must match every path; empty for all paths.
    paths: Vec<GlobSet>,
    allow: Vec<Pattern>,
    deny: Vec<Pattern>,
    /// Longest run of one call.
    pub timeout: Option<Duration>,
    dangerous: bool,
    network: bool,
    /// There is no map at all.
    unlimited: bool,
}

impl Grant {
    /// Takes one map's word. What asks for less care counts from the first map alone.
    fn narrow(&mut self, permission: &Permission, first: bool) {
        if let Some(paths) = &permission.paths {
            // Checked when the scope was made; a glob that fails here would match nothing.
            self.paths.push(globs(paths).unwrap_or_default());
        }
        if first {
            self.allow = patterns(&permission.allow).unwrap_or_default();
        }
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
            .find(|path| !self.paths.iter().all(|globs| globs.is_match(path)))
    }

    /// Whether every command is allowed by a pattern of the scope.
    pub(super) fn allows_all(&self, commands: &[SimpleCommand]) -> bool {
        !commands.is_empty()
            && commands
                .iter()
                .all(|command| self.allow.iter().any(|pattern| pattern.matches(command)))
    }

    /// Whether some command is denied by a pattern of the scope.
    pub(super) fn denies_one(&self, commands: &[SimpleCommand]) -> bool {
        commands
            .iter()
            .any(|command| self.deny.iter().any(|pattern| pattern.matches(command)))
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
