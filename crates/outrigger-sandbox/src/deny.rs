//! Files that no tool may read, or write, although they are below a root. Pure.
//!
//! A path is folded first ([`fold`]), so that neither letter case, nor full-width letters, nor invisible characters get
//! past the rules. Callers ask about the path as requested *and* about the path it leads to. The same files are hidden
//! from commands by masking what [`Roots::hidden`](super::paths::Roots::hidden) lists; this list alone is a second line.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, OnceLock};

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// Neither read nor written by any tool, and hidden from commands.
    Secret,
    /// As `Secret`, unless it is in an installed package.
    SecretUnlessPackage,
    /// As `SecretUnlessPackage`, unless it is source code by its name: that needs approval.
    SecretUnlessSource,
    /// Neither read nor written by file tools; commands (git) need it.
    Unread,
    /// Not written by file tools.
    Unwritten,
    /// Written only with the approval of the user.
    WriteNeedsApproval,
}

struct Rule {
    reach: Reach,
    /// Globs on folded names, in any folder, with blanks between. One that ends with a slash is a folder and all in it;
    /// `!` is before a name that the others match and that is meant to be shared.
    names: &'static str,
    reason: &'static str,
}

/// Why nobody but git writes a file. Which further ones its settings name is found elsewhere
/// ([`Roots::locate`](super::paths::Roots::locate)).
pub(crate) const RUN_BY_GIT: &str = "git runs what it says; only git itself writes it";

/// Folders into which package managers put what they fetched. Certificates and keys for tests in there are public, and a
/// file that is hidden cannot be removed: `npm ci` would fail at it.
const PACKAGES: &[&str] = &["node_modules", "site-packages", "dist-packages"];

/// The rules, the strictest first.
const RULES: &[Rule] = &[
    Rule {
        reach: Reach::Secret,
        names: ".env .env.* !.env.example !.env.sample !.env.template !.env.dist",
        reason: "it is a file for passwords and tokens",
    },
    Rule {
        reach: Reach::Secret,
        names: ".netrc .npmrc .pypirc .git-credentials .htpasswd .pgpass .my.cnf",
        reason: "it is a file for passwords and tokens",
    },
    Rule {
        reach: Reach::SecretUnlessPackage,
        names: "id_rsa* id_dsa* id_ecdsa* id_ed25519* \
            *.pem *.key *.p12 *.pfx *.jks *.keystore *.kdbx *.ppk",
        reason: "it is a file for private keys",
    },
    Rule {
        reach: Reach::Secret,
        names: ".aws/ .ssh/ .gnupg/ .kube/config .docker/config.json .config/gcloud/ \
            .terraform.d/credentials* *.tfstate *.tfstate.* service-account*.json",
        reason: "it holds credentials of a service",
    },
    Rule {
        reach: Reach::SecretUnlessSource,
        names: "*credential* *secret*",
        reason: "its name says that it holds secrets",
    },
    Rule {
        reach: Reach::Unread,
        names: ".git/config .git/config.worktree .git/modules/**/config",
        reason: "git's configuration can hold credentials",
    },
    Rule {
        reach: Reach::Unwritten,
        names: ".git/ .gitmodules .husky/",
        reason: RUN_BY_GIT,
    },
    Rule {
        reach: Reach::Unwritten,
        names: ".envrc .vscode/ .idea/ .devcontainer/",
        reason: "the user's shell or editor runs what it says",
    },
    Rule {
        reach: Reach::Unwritten,
        names: ".mcp.json .claude/ .claude.json .codex/ .cursor/ .gemini/ .outrigger/",
        reason: "it configures an agent",
    },
    Rule {
        reach: Reach::WriteNeedsApproval,
        names: ".gitattributes .github/workflows/** .pre-commit-config.yaml",
        reason: "others run what it says",
    },
    Rule {
        reach: Reach::WriteNeedsApproval,
        names: ".bashrc .bash_profile .bash_login .profile .zshrc .zshenv .zprofile config.fish",
        reason: "a shell runs it at its start",
    },
];

impl Rule {
    fn names(&self) -> impl Iterator<Item = &'static str> {
        self.names.split(' ').filter(|name| !name.starts_with('!'))
    }

    fn excepts(&self, name: &str) -> bool {
        let mut names = self.names.split(' ');
        names.any(|other| other.strip_prefix('!') == Some(name))
    }
}

/// Endings of source code and prose, where "secret" in a name says what it is about.
const SOURCE_ENDINGS: &[&str] = &[
    "adoc", "c", "cc", "clj", "cpp", "cs", "css", "dart", "erl", "ex", "exs", "go", "h", "hpp",
    "hs", "html", "java", "jl", "js", "jsx", "kt", "lua", "m", "md", "ml", "php", "pl", "proto",
    "py", "rb", "rs", "rst", "scala", "scss", "sh", "sql", "svelte", "swift", "ts", "tsx", "vue",
    "zig",
];

/// The globs of all rules, from the root on.
static GLOBS: LazyLock<Vec<(String, &Rule)>> = LazyLock::new(|| {
    let globs = |rule: &'static Rule| {
        let of_name = |name: &str| match name.strip_suffix('/') {
            Some(folder) => vec![format!("**/{folder}"), format!("**/{folder}/**")],
            None => vec![format!("**/{name}")],
        };
        rule.names().flat_map(of_name).map(move |glob| (glob, rule))
    };
    RULES.iter().flat_map(globs).collect()
});

static MATCHER: OnceLock<GlobSet> = OnceLock::new();

#[expect(
    clippy::expect_used,
    reason = "the globs are constants, and a test compiles them"
)]
fn compile() -> GlobSet {
    let mut set = GlobSetBuilder::new();
    for (glob, _) in &*GLOBS {
        let glob = GlobBuilder::new(glob).literal_separator(true).build();
        set.add(glob.expect("each glob of the deny list is well formed"));
    }
    set.build()
        .expect("the globs of the deny list fit into one automaton")
}

/// Most paths that are judged without the compiled globs. Whoever asks for more walks through a tree, where these take less
/// for each path.
const FEW: usize = 64;

/// How many paths were asked about while the globs were not compiled.
static ASKED: AtomicUsize = AtomicUsize::new(0);

/// Returns the compiled globs; `None` where they are not needed to say that the folded path matches none. Compiling them takes a
/// millisecond, which a start that looks for a file or two does without.
fn matcher(folded: &str) -> Option<&'static GlobSet> {
    if let Some(compiled) = MATCHER.get() {
        return Some(compiled);
    }
    let are_few = ASKED.fetch_add(1, Ordering::Relaxed) < FEW;
    (!are_few || may_match(folded)).then(|| MATCHER.get_or_init(compile))
}

/// Whether a folded path contains the longest literal part of any glob. A path that matches a glob contains all of its literal
/// parts.
fn may_match(folded: &str) -> bool {
    RULES.iter().flat_map(Rule::names).any(|name| {
        let parts = name.split(['*', '/']);
        let longest = parts.max_by_key(|part| part.len());
        longest.is_some_and(|part| folded.contains(part))
    })
}

fn globs_of(reach: Reach) -> impl Iterator<Item = &'static str> {
    GLOBS
        .iter()
        .filter(move |(_, rule)| rule.reach == reach)
        .map(|(glob, _)| glob.as_str())
}

/// Returns the globs of what no tool may read whatever its ending, from the root on (`**/.env`), for programs that match
/// by themselves.
pub fn secrets() -> impl Iterator<Item = &'static str> {
    globs_of(Reach::Secret).chain(globs_of(Reach::SecretUnlessPackage))
}

/// Returns what others than git run, by its path in the folder it is meant for: settings of editors, shells and agents.
pub(crate) fn run_by_others() -> impl Iterator<Item = &'static str> {
    RULES
        .iter()
        .filter(|rule| matches!(rule.reach, Reach::Unwritten | Reach::WriteNeedsApproval))
        .flat_map(Rule::names)
        .map(|name| name.trim_end_matches(['/', '*']))
        .filter(|name| *name != ".git")
}

/// Returns the globs of names that say a file is secret, those of source code among them, for what judges text.
pub fn names_of_secrets() -> impl Iterator<Item = &'static str> {
    secrets().chain(globs_of(Reach::SecretUnlessSource))
}

/// Whether a folded name is meant to be shared, although a glob of a secret matches it.
pub fn is_shared(name: &str) -> bool {
    RULES.iter().any(|rule| rule.excepts(name))
}

/// Returns why a path may not be accessed, or `None` where it may.
///
/// `relative` is the path below its root, `/` between components, without `..`.
pub fn denied(relative: &str, access: Access) -> Option<&'static str> {
    reason(relative, |reach, source| match reach {
        Reach::Secret | Reach::SecretUnlessPackage | Reach::Unread => true,
        Reach::SecretUnlessSource => !source,
        Reach::Unwritten => access == Access::Write,
        Reach::WriteNeedsApproval => false,
    })
}

/// Returns why a folder as a whole is off limits, or `None`.
///
/// Rules about names of files do not apply to it: a folder `secrets` may be listed.
pub(crate) fn denied_folder(relative: &str, access: Access) -> Option<&'static str> {
    // A name that no rule about files matches stands for any file in the folder.
    denied(&format!("{relative}/x"), access)
}

/// Returns why this access needs the approval of the user at every trust level, or `None`.
pub fn needs_approval(relative: &str, access: Access) -> Option<&'static str> {
    reason(relative, |reach, source| match reach {
        Reach::SecretUnlessSource => source,
        Reach::WriteNeedsApproval => access == Access::Write,
        Reach::Secret | Reach::SecretUnlessPackage | Reach::Unread | Reach::Unwritten => false,
    })
}

/// Returns whether commands are to find nothing at this path.
pub(crate) fn hidden(relative: &str) -> bool {
    let hides = |reach: Reach, source: bool| match reach {
        Reach::Secret | Reach::SecretUnlessPackage => true,
        Reach::SecretUnlessSource => !source,
        Reach::Unread | Reach::Unwritten | Reach::WriteNeedsApproval => false,
    };
    reason(relative, hides).is_some()
}

/// Returns whether commands are to find nothing in a folder at this path.
pub(crate) fn hidden_folder(relative: &str) -> bool {
    // A name that no rule about files matches stands for any file in the folder.
    hidden(&format!("{relative}/x"))
}

/// Returns whether something in a folder at this path may be a secret because of the folder's name: `config.json` is
/// one in `.docker`, and nowhere else.
pub(crate) fn hides_within(relative: &str) -> bool {
    let name = fold(relative.rsplit('/').next().unwrap_or(relative));
    let secret = RULES.iter().filter(|rule| rule.reach == Reach::Secret);
    secret.flat_map(Rule::names).any(|path| {
        let folders = path.rsplit_once('/').map(|(folders, _)| folders);
        folders.is_some_and(|folders| folders.split('/').any(|folder| folder == name))
    })
}

/// Returns the reason of the first rule that matches and applies, which is asked with its reach and with whether the
/// path is source code by its ending.
fn reason(relative: &str, applies: impl Fn(Reach, bool) -> bool) -> Option<&'static str> {
    let folded = fold(relative);
    let name = folded.rsplit('/').next().unwrap_or(&folded);
    let source = name
        .rsplit_once('.')
        .is_some_and(|(_, ending)| SOURCE_ENDINGS.contains(&ending));
    let in_package = || {
        let mut folders = folded.rsplit('/').skip(1);
        folders.any(|folder| PACKAGES.contains(&folder))
    };
    let globs = matcher(&folded)?.matches(&folded).into_iter();
    globs
        .filter_map(|glob| GLOBS.get(glob).map(|(_, rule)| *rule))
        .filter(|rule| !rule.excepts(name) && applies(rule.reach, source))
        .find(|rule| match rule.reach {
            Reach::SecretUnlessPackage | Reach::SecretUnlessSource => !in_package(),
            _ => true,
        })
        .map(|rule| rule.reason)
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
