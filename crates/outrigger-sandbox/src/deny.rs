//! Files that no tool may read, or write, although they are below a root. Pure.
//!
//! The rules are data (`RULES`); a path is folded first ([`fold`]), so that neither letter case,
//! nor full-width letters, nor invisible characters get past them. Callers ask about the path as
//! requested *and* about the path it leads to. The same files are hidden from commands by masking
//! what [`Roots::hidden`](super::paths::Roots::hidden) lists; this list alone is a second line.

use std::sync::LazyLock;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use unicode_normalization::UnicodeNormalization;

/// What is to be done with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Its content is looked at.
    Read,
    /// It is a folder whose content is looked at, or a file to be read.
    Look,
    /// It is created, replaced or removed.
    Write,
}

/// How far a rule goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// Neither read nor written by any tool, and hidden from commands.
    Secret,
    /// As `Secret` by its name, unless it is source code: that is asked for.
    SecretUnlessSource,
    /// Neither read nor written by file tools; commands (git) need it.
    Unread,
    /// Not written by file tools.
    Unwritten,
    /// Written only when the user was asked.
    AskedToWrite,
}

/// A set of files, how far they are kept away, and why.
struct Rule {
    reach: Reach,
    /// Globs on the folded path below the root; a folder's has a second form with `/**`.
    globs: &'static [&'static str],
    /// Names the globs match that are meant to be shared.
    except: &'static [&'static str],
    reason: &'static str,
}

/// The rules, the strictest first.
const RULES: &[Rule] = &[
    Rule {
        reach: Reach::Secret,
        globs: &["**/.env", "**/.env.*"],
        except: &[".env.example", ".env.sample", ".env.template", ".env.dist"],
        reason: "it is a file for passwords and tokens",
    },
    Rule {
        reach: Reach::Secret,
        globs: &[
            "**/.netrc",
            "**/.npmrc",
            "**/.pypirc",
            "**/.git-credentials",
            "**/.htpasswd",
            "**/.pgpass",
            "**/.my.cnf",
        ],
        except: &[],
        reason: "it is a file for passwords and tokens",
    },
    Rule {
        reach: Reach::Secret,
        globs: &[
            "**/id_rsa*",
            "**/id_dsa*",
            "**/id_ecdsa*",
            "**/id_ed25519*",
            "**/*.pem",
            "**/*.key",
            "**/*.p12",
            "**/*.pfx",
            "**/*.jks",
            "**/*.keystore",
            "**/*.kdbx",
            "**/*.ppk",
        ],
        except: &[],
        reason: "it is a file for private keys",
    },
    Rule {
        reach: Reach::Secret,
        globs: &[
            "**/.aws",
            "**/.aws/**",
            "**/.ssh",
            "**/.ssh/**",
            "**/.gnupg",
            "**/.gnupg/**",
            "**/.kube/config",
            "**/.docker/config.json",
            "**/.config/gcloud",
            "**/.config/gcloud/**",
            "**/.terraform.d/credentials*",
            "**/*.tfstate",
            "**/*.tfstate.*",
            "**/service-account*.json",
        ],
        except: &[],
        reason: "it holds credentials of a service",
    },
    Rule {
        reach: Reach::SecretUnlessSource,
        globs: &["**/*credential*", "**/*secret*"],
        except: &[],
        reason: "its name says that it holds secrets",
    },
    Rule {
        reach: Reach::Unread,
        globs: &[
            "**/.git/config",
            "**/.git/config.worktree",
            "**/.git/modules/**/config",
        ],
        except: &[],
        reason: "git's configuration can hold credentials",
    },
    Rule {
        reach: Reach::Unwritten,
        globs: &[
            "**/.git",
            "**/.git/**",
            "**/.gitmodules",
            "**/.husky",
            "**/.husky/**",
        ],
        except: &[],
        reason: "git runs what it says; only git itself writes it",
    },
    Rule {
        reach: Reach::Unwritten,
        globs: &[
            "**/.envrc",
            "**/.vscode",
            "**/.vscode/**",
            "**/.idea",
            "**/.idea/**",
            "**/.devcontainer",
            "**/.devcontainer/**",
        ],
        except: &[],
        reason: "the user's shell or editor runs what it says",
    },
    Rule {
        reach: Reach::Unwritten,
        globs: &[
            "**/.mcp.json",
            "**/.claude",
            "**/.claude/**",
            "**/.claude.json",
            "**/.codex",
            "**/.codex/**",
            "**/.cursor",
            "**/.cursor/**",
            "**/.gemini",
            "**/.gemini/**",
            "**/.outrigger",
            "**/.outrigger/**",
        ],
        except: &[],
        reason: "it configures an agent",
    },
    Rule {
        reach: Reach::AskedToWrite,
        globs: &[
            "**/.gitattributes",
            "**/.github/workflows/**",
            "**/.pre-commit-config.yaml",
        ],
        except: &[],
        reason: "others run what it says",
    },
    Rule {
        reach: Reach::AskedToWrite,
        globs: &[
            "**/.bashrc",
            "**/.bash_profile",
            "**/.bash_login",
            "**/.profile",
            "**/.zshrc",
            "**/.zshenv",
            "**/.zprofile",
            "**/config.fish",
        ],
        except: &[],
        reason: "a shell runs it at its start",
    },
];

/// Endings of source code and prose, where "secret" in a name says what it is about.
const SOURCE_ENDINGS: &[&str] = &[
    "adoc", "c", "cc", "clj", "cpp", "cs", "css", "dart", "erl", "ex", "exs", "go", "h", "hpp",
    "hs", "html", "java", "jl", "js", "jsx", "kt", "lua", "m", "md", "ml", "php", "pl", "proto",
    "py", "rb", "rs", "rst", "scala", "scss", "sh", "sql", "svelte", "swift", "ts", "tsx", "vue",
    "zig",
];

/// The globs of all rules, each with its rule's index.
struct Compiled {
    set: GlobSet,
    rule_of: Vec<usize>,
}

static COMPILED: LazyLock<Compiled> = LazyLock::new(compile);

#[expect(
    clippy::expect_used,
    reason = "the globs are constants, and a test compiles them"
)]
fn compile() -> Compiled {
    let mut set = GlobSetBuilder::new();
    let mut rule_of = Vec::new();
    for (index, rule) in RULES.iter().enumerate() {
        for glob in rule.globs {
            set.add(
                GlobBuilder::new(glob)
                    .literal_separator(true)
                    .build()
                    .expect("each glob of the deny list is well formed"),
            );
            rule_of.push(index);
        }
    }
    Compiled {
        set: set
            .build()
            .expect("the globs of the deny list fit into one automaton"),
        rule_of,
    }
}

/// The globs of what no tool may read whatever its ending, from the root on (`**/.env`), for programs that match by
/// themselves.
pub fn secrets() -> impl Iterator<Item = &'static str> {
    RULES
        .iter()
        .filter(|rule| rule.reach == Reach::Secret)
        .flat_map(|rule| rule.globs.iter().copied())
}

/// What others than git run, by its path in the folder it is meant for: settings of editors, shells and agents.
pub(crate) fn run_by_others() -> Vec<&'static str> {
    let rules = RULES
        .iter()
        .filter(|rule| matches!(rule.reach, Reach::Unwritten | Reach::AskedToWrite));
    let mut paths: Vec<&str> = rules
        .flat_map(|rule| rule.globs)
        .filter_map(|glob| glob.strip_prefix("**/"))
        .map(|path| path.strip_suffix("/**").unwrap_or(path))
        .filter(|path| *path != ".git")
        .collect();
    // A folder is named with what is in it as well.
    paths.dedup();
    paths
}

/// The globs of names that say a file is secret, those of source code among them, for what judges text.
pub fn names_of_secrets() -> impl Iterator<Item = &'static str> {
    let by_word = RULES
        .iter()
        .filter(|rule| rule.reach == Reach::SecretUnlessSource);
    secrets().chain(by_word.flat_map(|rule| rule.globs.iter().copied()))
}

/// Whether a folded name is meant to be shared, although a glob of a secret matches it.
pub fn is_shared(name: &str) -> bool {
    RULES.iter().any(|rule| rule.except.contains(&name))
}

/// Returns why a path may not be accessed, or `None` where it may.
///
/// `relative` is the path below its root, `/` between components, without `..`.
pub fn denied(relative: &str, access: Access) -> Option<&'static str> {
    matches(relative).find_map(|(rule, source)| {
        let denied = match rule.reach {
            Reach::Secret | Reach::Unread => true,
            Reach::SecretUnlessSource => !source,
            Reach::Unwritten => access == Access::Write,
            Reach::AskedToWrite => false,
        };
        denied.then_some(rule.reason)
    })
}

/// Returns why a folder as a whole is off limits, or `None`.
///
/// Rules about names of files do not apply to it: a folder `secrets` may be listed.
pub fn denied_folder(relative: &str, access: Access) -> Option<&'static str> {
    // Each rule about folders names one that begins with a dot. Elsewhere there is nothing to match, and the
    // automaton, nearly half of the instructions of a start, is not built for the folder that is the root.
    if !fold(relative).split('/').any(|name| name.starts_with('.')) {
        return None;
    }
    // A name that no rule about files matches stands for any file in the folder.
    denied(&format!("{relative}/x"), access)
}

/// Returns why the user should be asked for this access at every trust level, or `None`.
pub fn asked(relative: &str, access: Access) -> Option<&'static str> {
    matches(relative).find_map(|(rule, source)| {
        let asked = match rule.reach {
            Reach::SecretUnlessSource => source,
            Reach::AskedToWrite => access == Access::Write,
            Reach::Secret | Reach::Unread | Reach::Unwritten => false,
        };
        asked.then_some(rule.reason)
    })
}

/// Returns whether commands are to find nothing at this path.
pub(crate) fn hidden(relative: &str) -> bool {
    matches(relative).any(|(rule, source)| match rule.reach {
        Reach::Secret => true,
        Reach::SecretUnlessSource => !source,
        Reach::Unread | Reach::Unwritten | Reach::AskedToWrite => false,
    })
}

/// Returns whether commands are to find nothing in a folder at this path.
pub(crate) fn hidden_folder(relative: &str) -> bool {
    // A name that no rule about files matches stands for any file in the folder.
    hidden(&format!("{relative}/x"))
}

/// Returns whether something in a folder at this path may be a secret because of the folder's name: `config.json` is
/// one in `.docker`, and nowhere else.
pub fn hides_within(relative: &str) -> bool {
    let name = fold(relative.rsplit('/').next().unwrap_or(relative));
    secrets().any(|glob| {
        let (folders, _) = glob.rsplit_once('/').unwrap_or_default();
        folders.split('/').any(|folder| folder == name)
    })
}

/// Yields the rules that match, each with whether the path is source code by its ending.
fn matches(relative: &str) -> impl Iterator<Item = (&'static Rule, bool)> {
    let folded = fold(relative);
    let name = folded.rsplit('/').next().unwrap_or(&folded).to_owned();
    let source = name
        .rsplit_once('.')
        .is_some_and(|(_, ending)| SOURCE_ENDINGS.contains(&ending));
    let compiled = &*COMPILED;
    compiled
        .set
        .matches(&folded)
        .into_iter()
        .filter_map(|glob| RULES.get(*compiled.rule_of.get(glob)?))
        .filter(move |rule| !rule.except.contains(&name.as_str()))
        .map(move |rule| (rule, source))
}

/// Brings a path into the one form in which rules and locks compare it.
///
/// NFKC, invisible characters removed, lower case. Done on every system: a file system may ignore
/// case where the daemon does not know it, and ext4's own folding takes `ß` for `ss`.
pub fn fold(path: &str) -> String {
    let folded = if path.is_ascii() {
        path.to_ascii_lowercase()
    } else {
        fold_unicode(path)
    };
    if cfg!(windows) {
        fold_windows(&folded)
    } else {
        folded
    }
}

fn fold_unicode(path: &str) -> String {
    path.nfkc()
        .filter(|letter| !is_invisible(*letter))
        .flat_map(char::to_lowercase)
        .nfkc()
        .collect::<String>()
        .replace('ß', "ss")
}

/// Removes what Windows ignores in a name: a stream after `:`, dots and blanks at the end.
fn fold_windows(path: &str) -> String {
    path.replace('\\', "/")
        .split('/')
        .map(|name| {
            let name = name.split(':').next().unwrap_or(name);
            name.trim_end_matches(['.', ' '])
        })
        .collect::<Vec<_>>()
        .join("/")
}

/// Zero-width characters, bidirectional controls, variation selectors and their like: Unicode's
/// `Default_Ignorable_Code_Point`, which case-folding file systems ignore as well.
fn is_invisible(letter: char) -> bool {
    matches!(letter,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}'..='\u{1160}' | '\u{17B4}'..='\u{17B5}'
        | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}'
        | '\u{FFA0}' | '\u{FFF0}'..='\u{FFF8}' | '\u{1BCA0}'..='\u{1BCA3}'
        | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}')
}

#[cfg(test)]
mod tests;
