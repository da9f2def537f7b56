//! What the model reads beside the output of a program that failed for how it runs here: what to do.

use std::path::{Path, PathBuf};

use super::Exec;
use crate::message::Part;
use crate::sandbox::paths::RootName;
use crate::sandbox::{Command, GitAccess, Mode, Network};
use crate::tool::Output;

/// What the model reads of repositories, in the description of `bash` and where a command failed for it.
pub(in crate::tool) const GIT_IS_READ_ONLY: &str = "Git repositories are read-only to commands here: use the tool `git` to change one (add, commit, switch, merge, init, ...).";

/// What programs say of a file that they may not write, and of a folder that cannot be moved.
const NOT_WRITTEN: [&str; 2] = ["Read-only file system", "Device or resource busy"];

/// What git says, and what to do then: its own advice leads to settings that no command may write, or is none.
const ADVICE: [(&str, &str); 9] = [
    (
        "Please tell me who you are",
        "the user says who commits, in a terminal of their own: git config --global user.name and user.email",
    ),
    ("transport 'file' not allowed", NO_REMOTE),
    ("does not appear to be a git repository", NO_REMOTE),
    ("No configured push destination", NO_REMOTE),
    (
        "transport 'https' not allowed",
        "it had no network; ask for it with `network`",
    ),
    ("already exists and is not an empty directory", NOT_EMPTY),
    ("contains files that could conflict", NOT_EMPTY),
    ("/HEAD': Device or resource busy", NOT_EMPTY),
    (
        "/.git/description': Permission denied",
        "while a command runs in the background, it holds the names `.git` and `HEAD` of a folder that has no repository; end it with `bash_kill`, then make one",
    ),
];

/// What takes a folder for one with files in it.
const NOT_EMPTY: &str = "where the project has no repository, `.git` and `HEAD` stand in its folder while a command runs; where a program wants that folder empty, make a repository first, with `init` of the tool `git`, or let the program make a new folder";

/// What programs say where they find no host, of which they do not know that there is no network.
const NO_NAMES: [&str; 5] = [
    "Could not resolve host",
    "EAI_AGAIN",
    "Temporary failure in name resolution",
    "Name or service not known",
    "Temporary failure resolving",
];

/// A name that is no remote's is a folder to git.
const NO_REMOTE: &str = "no remote of that name is configured, or it is a folder, which git does not reach without `network`; `git remote -v` lists the remotes: name one of them or a URL; the user adds one, in a terminal of their own: git remote add NAME URL";

/// What git says where it finds no repository.
const NO_REPOSITORY: &str = "not a git repository (or any of the parent directories)";

impl Exec {
    /// Returns what is to be done about what a command's output says; each begins on a line of its own.
    pub(super) async fn advice(
        &self,
        command: &Command,
        mode: Mode,
        output: &Output,
    ) -> Vec<String> {
        let mut advice = Vec::new();
        let says = |text: &str| has_line(output, |line| line.contains(text));
        let offline = mode >= Mode::Fallback && command.network == Network::Off;
        // Programs that fetch something, such as `npx`, try again for minutes and say nothing.
        let seems_to_fetch = output.metadata.timed_out || NO_NAMES.into_iter().any(says);
        if offline && seems_to_fetch {
            advice.push(
                "it had no network; where it needs one, ask for it with `network`".to_owned(),
            );
        }
        // Also where the line went on and its exit code is another command's.
        if command.git == GitAccess::ReadOnly && has_line(output, is_read_only) {
            advice.push(GIT_IS_READ_ONLY.to_owned());
        }
        let said = ADVICE.into_iter().filter(|(said, _)| says(said));
        advice.extend(said.map(|(_, what)| what.to_owned()));
        if mode >= Mode::Fallback && says(NO_REPOSITORY) {
            let project = self.roots.path(RootName::Project).to_owned();
            let above = tokio::task::spawn_blocking(move || repository_above(&project)).await;
            advice.extend(above.ok().flatten().map(|above| {
                format!(
                    "the project is a folder of the repository {}, of which nothing else can be reached here: for git the user starts the daemon, or a session, with that folder as the project",
                    above.display()
                )
            }));
        }
        advice.iter().map(|it| format!("\n[{it}]")).collect()
    }
}

/// Returns the repository that a folder lies in and is not itself. Does file I/O.
pub(crate) fn repository_above(project: &Path) -> Option<PathBuf> {
    // A placeholder is an empty folder.
    let is_one = |folder: &Path| {
        let dot = folder.join(".git");
        dot.is_file() || dot.join("HEAD").exists()
    };
    let above = project.ancestors().skip(1).find(|it| is_one(it))?;
    (!is_one(project)).then(|| above.to_owned())
}

/// Whether git says in this line that it may not write. `git stash` names no file.
fn is_read_only(line: &str) -> bool {
    line.contains(".git") && NOT_WRITTEN.iter().any(|word| line.contains(word))
        || line == "error: could not write index"
}

fn has_line(output: &Output, is_such: impl Fn(&str) -> bool) -> bool {
    output.content.iter().any(|part| match part {
        Part::Text { text } => text.lines().any(&is_such),
        Part::Image { .. } | Part::Document(_) => false,
    })
}
