//! The tools that are always there, and those of the operator's own.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::broadcast;

use super::Tool;
use super::bash::Bash;
use super::custom::Custom;
use super::exec::Exec;
use super::file_edit::FileEdit;
use super::file_list::FileList;
use super::file_read::FileRead;
use super::file_search::FileSearch;
use super::file_write::FileWrite;
use super::git::Git;
use super::web_search::WebSearch;
use crate::config::ToolsConfig;
use crate::http::Clients;
use crate::message::Notice;
use crate::sandbox::paths::Roots;

/// Makes the core tools, less those that are switched off, and the operator's own; what sessions have to be told
/// besides results goes to `notices`.
pub fn tools(
    config: &ToolsConfig,
    roots: &Arc<Roots>,
    exec: &Exec,
    home: Option<&Path>,
    notices: &broadcast::Sender<Notice>,
) -> Vec<Arc<dyn Tool>> {
    let tools: Vec<Arc<dyn Tool>> = vec![
        Arc::new(FileRead::new(Arc::clone(roots), config.file_read.clone())),
        Arc::new(FileWrite::new(Arc::clone(roots))),
        Arc::new(FileEdit::new(Arc::clone(roots))),
        Arc::new(FileList::new(Arc::clone(roots))),
        Arc::new(FileSearch::new(Arc::clone(roots), config.output_cap)),
        Arc::new(Bash::new(
            exec.clone(),
            config.bash,
            home.map(Path::to_owned),
        )),
        Arc::new(Git::new(
            exec.clone(),
            config.bash,
            home.map(Path::to_owned),
        )),
        Arc::new(WebSearch::new(
            config.web_search.clone(),
            Clients::default(),
            notices.clone(),
        )),
    ];
    let custom = config.custom.iter().map(|tool| {
        let tool: Arc<dyn Tool> = Arc::new(Custom::new(exec.clone(), tool.clone()));
        tool
    });
    tools
        .into_iter()
        .filter(|tool| !config.disabled.contains(&tool.spec().name))
        .chain(custom)
        .collect()
}
