//! What tools an exchange may use: a workflow's permissions, narrowed by a client's map. Pure.

use super::resolve::invalid;
use crate::config::{Config, unknown_tool};
use crate::permission::{PermissionMap, Scope, Workflow};
use crate::protocol::event::SessionError;

/// Most characters of a name that an error shows.
const SHOWN: usize = 64;

/// Returns what a workflow and a client's map come to.
///
/// # Errors
///
/// What in the map cannot be read, or names a tool that there cannot be: with it the model would silently lack one.
pub(super) fn scope(
    workflow: Option<&Workflow>,
    narrowed: Option<&PermissionMap>,
    config: &Config,
) -> Result<Scope, SessionError> {
    let wrong = |message: String| invalid(format!("field `toolPermissions`: {message}"));
    let permissions = workflow.map(|workflow| &workflow.permissions);
    let scope = Scope::new(permissions, narrowed).map_err(wrong)?;
    for name in narrowed.into_iter().flat_map(PermissionMap::keys) {
        if let Some(problem) = unknown_tool(name, &config.tools) {
            let shown: String = name.chars().take(SHOWN).collect();
            return Err(wrong(format!("`{shown}`: {problem}")));
        }
    }
    Ok(scope)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_map_names_tools_that_there_may_be() {
        let config = crate::config::for_tests();
        let given = |name: &str| {
            let map = serde_json::from_value(json!({ name: {"allowed": true} })).unwrap();
            scope(None, Some(&map), &config).map(drop)
        };
        for name in [
            "bash",
            "bash_output",
            "web_search",
            "mcp__away__echo",
            "mcp__*",
            "file_*",
            "*",
        ] {
            assert_eq!(given(name), Ok(()), "{name}");
        }
        for (name, expected) in [
            (
                "bsh",
                "field `toolPermissions`: `bsh`: there is no such tool; did you mean \"bash\"? allowed: ",
            ),
            (
                "elephant",
                "field `toolPermissions`: `elephant`: there is no such tool; allowed: file_read, ",
            ),
        ] {
            let message = given(name).unwrap_err().message;
            assert!(message.starts_with(expected), "{message}");
        }
    }
}
