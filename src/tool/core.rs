//! The tools that are always there, and those of the operator's own.

use std::path::Path;
use std::sync::Arc;

use super::Tool;
use super::background;
use super::bash::bash;
use super::custom::custom;
use super::exec::Exec;
use super::file_edit::file_edit;
use super::file_list::file_list;
use super::file_read::file_read;
use super::file_search::file_search;
use super::file_write::file_write;
use super::git::git;
use super::program::Commands;
use super::web_fetch::web_fetch;
use super::web_search::web_search;
use crate::config::{Current, CustomToolConfig, ToolsConfig};
use crate::http::Clients;
use crate::message::BASH;
use crate::notices::Notices;
use crate::sandbox::paths::Roots;

/// Makes the core tools that need no project, less those that are switched off; what sessions are notified of besides
/// results goes to `notices`.
pub fn everywhere(
    config: &ToolsConfig,
    settings: &Current,
    notices: &Notices,
) -> Vec<Arc<dyn Tool>> {
    let web_search = web_search(settings.clone(), Clients::default(), notices.clone());
    let web_fetch = web_fetch(config.web_fetch.clone(), &config.bash.hosts);
    enabled(vec![Arc::new(web_search), Arc::new(web_fetch)], config).collect()
}

/// Makes the core tools of a project, less those that are switched off, and the operator's own.
pub fn of_project(
    config: &ToolsConfig,
    roots: &Arc<Roots>,
    exec: &Exec,
    home: Option<&Path>,
) -> Vec<Arc<dyn Tool>> {
    let home = home.map(Path::to_owned);
    let commands = Commands::new(exec.clone(), config.bash.clone(), home);
    let tools: Vec<Arc<dyn Tool>> = vec![
        Arc::new(file_read(Arc::clone(roots), config.file_read.clone())),
        Arc::new(file_write(Arc::clone(roots))),
        Arc::new(file_edit(Arc::clone(roots))),
        Arc::new(file_list(Arc::clone(roots))),
        Arc::new(file_search(Arc::clone(roots), config.output_cap)),
        Arc::new(bash(commands.clone())),
        Arc::new(git(commands)),
    ];
    let own = |tool: &CustomToolConfig| -> Arc<dyn Tool> {
        Arc::new(custom(exec.clone(), tool.clone(), &config.bash))
    };
    let own = config.custom.iter().map(own);
    let with_bash: [Arc<dyn Tool>; 2] = background::tools::tools(config.output_cap).map(Arc::from);
    let has_bash = !config.disabled.iter().any(|disabled| disabled == BASH);
    let with_bash = with_bash.into_iter().filter(|_| has_bash);
    enabled(tools, config).chain(with_bash).chain(own).collect()
}

fn enabled(tools: Vec<Arc<dyn Tool>>, config: &ToolsConfig) -> impl Iterator<Item = Arc<dyn Tool>> {
    let tools = tools.into_iter();
    tools.filter(|tool| !config.disabled.contains(&tool.spec().name))
}
