//! What a repository's own configuration may make git run, switched off by variables that outrank it, also for the git
//! that looks at a submodule. Filters have names of their own: those run, and the sandbox is what confines them.

use std::collections::BTreeMap;
use std::path::Path;

/// Settings that outrank the repository's.
///
/// An empty `diff.external` makes `git diff` fail (git 2.47, tried 2026-11-20), so that is switched off by an
/// option. `log.showSignature` would have `git log` run the checker that the signature's kind names, `log.diffMerges` a
/// merge driver. `commit.verbose` and `stash.showPatch` show what is in files where nobody asked for that.
const NEUTRAL: [(&str, &str); 24] = [
    ("core.fsmonitor", "false"),
    // It would write into `config`, which is read-only to the git tool, and fail after the work is done.
    ("branch.autoSetupMerge", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.editor", "false"),
    ("core.attributesFile", "/dev/null"),
    ("core.alternateRefsCommand", "false"),
    ("credential.helper", ""),
    ("credential.interactive", "false"),
    ("gpg.program", "false"),
    ("gpg.openpgp.program", "false"),
    ("gpg.x509.program", "false"),
    ("gpg.ssh.program", "false"),
    ("gpg.ssh.defaultKeyCommand", "false"),
    ("log.showSignature", "false"),
    ("log.diffMerges", "separate"),
    ("commit.verbose", "false"),
    ("stash.showPatch", "false"),
    ("sequence.editor", "false"),
    ("submodule.recurse", "false"),
    ("diff.ignoreSubmodules", "dirty"),
    ("diff.submodule", "short"),
    ("status.submoduleSummary", "false"),
    ("fetch.recurseSubmodules", "false"),
];

/// What reaches other machines: off altogether, or what every git can do.
const NO_NETWORK: [(&str, &str); 2] = [("core.sshCommand", "false"), ("protocol.allow", "never")];
const NETWORK: [(&str, &str); 2] = [
    ("core.sshCommand", "ssh -oBatchMode=yes"),
    ("protocol.ext.allow", "never"),
];

/// Returns the variables that keep git from running what a repository names, for commands that only read.
pub fn neutral_git() -> BTreeMap<String, String> {
    variables(&[], false)
}

/// Returns the variables for a git that is run by itself, in this project, whatever it does.
///
/// The project's folder counts as the user's own even where it belongs to somebody else, who is as
/// little trusted as any repository; nothing above it is taken for a repository.
pub fn git_alone(project: &Path, network: bool) -> BTreeMap<String, String> {
    let folder = project.display().to_string();
    let mut variables = variables(&[("safe.directory", &folder)], network);
    if let Some(above) = project.parent() {
        let above = above.display().to_string();
        variables.insert("GIT_CEILING_DIRECTORIES".to_owned(), above);
    }
    variables.insert("GIT_ATTR_NOSYSTEM".to_owned(), "1".to_owned());
    variables.insert("GIT_MERGE_AUTOEDIT".to_owned(), "no".to_owned());
    variables
}

fn variables(more: &[(&str, &str)], network: bool) -> BTreeMap<String, String> {
    let mut variables: BTreeMap<String, String> = [
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_OPTIONAL_LOCKS", "0"),
        // Empty, it outranks `core.gitProxy`, a program.
        ("GIT_PROXY_COMMAND", ""),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    let reach = if network { &NETWORK } else { &NO_NETWORK };
    if !network {
        // Settings for single protocols outrank the one for all of them, and a repository that lacks objects fetches
        // them for whatever wants to read them.
        variables.insert("GIT_ALLOW_PROTOCOL".to_owned(), String::new());
        variables.insert("GIT_NO_LAZY_FETCH".to_owned(), "1".to_owned());
    }
    let mut count = 0;
    for (key, value) in NEUTRAL.iter().chain(reach).chain(more) {
        variables.insert(format!("GIT_CONFIG_KEY_{count}"), (*key).to_owned());
        variables.insert(format!("GIT_CONFIG_VALUE_{count}"), (*value).to_owned());
        count += 1;
    }
    variables.insert("GIT_CONFIG_COUNT".to_owned(), count.to_string());
    variables
}
