//! The tools that are always there, and those of the operator's own.

use std::path::Path;
use std::sync::Arc;

use super::Tool;
use super::bash::bash;
use super::custom::custom;
use super::exec::Exec;
use super::file_edit::file_edit;
use super::file_list::file_list;
use super::file_read::file_read;
use super::file_search::file_search;
use super::file_write::file_write;
use super::git::git;
use super::web_search::web_search;
use crate::config::ToolsConfig;
use crate::http::Clients;
use crate::notices::Notices;
use crate::sandbox::paths::Roots;

/// Makes the core tools, less those that are switched off, and the operator's own; what sessions are notified
/// of besides results goes to `notices`.
pub fn tools(
    config: &ToolsConfig,
    roots: &Arc<Roots>,
    exec: &Exec,
    home: Option<&Path>,
    notices: &Notices,
) -> Vec<Arc<dyn Tool>> {
    let home = || home.map(Path::to_owned);
    let tools: Vec<Arc<dyn Tool>> = vec![
        Arc::new(file_read(Arc::clone(roots), config.file_read.clone())),
        Arc::new(file_write(Arc::clone(roots))),
        Arc::new(file_edit(Arc::clone(roots))),
        Arc::new(file_list(Arc::clone(roots))),
        Arc::new(file_search(Arc::clone(roots), config.output_cap)),
        Arc::new(bash(exec.clone(), config.bash, home())),
        Arc::new(git(exec.clone(), config.bash, home())),
        Arc::new(web_search(
            config.web_search.clone(),
            Clients::default(),
            notices.clone(),
        )),
    ];
    let own = config
        .custom
        .iter()
        .map(|tool| -> Arc<dyn Tool> { Arc::new(custom(exec.clone(), tool.clone())) });
    tools
        .into_iter()
        .filter(|tool| !config.disabled.contains(&tool.spec().name))
        .chain(own)
        .collect()
}
