use super::super::file::testing::World;
use super::arguments::Arguments;
use super::*;

/// What becomes of a call's words.
#[derive(Debug, PartialEq, Eq)]
enum Parsed {
    /// They are run, and name these paths.
    Runs(Vec<String>),
    /// The model reads how to do it otherwise.
    Invalid,
    /// The exchange ends.
    Violation,
}

fn read(world: &World, words: &[&str]) -> Parsed {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    match Arguments::read(words, &world.roots) {
        Ok(arguments) => Parsed::Runs(arguments.paths),
        Err(Refusal::Invalid(_)) => Parsed::Invalid,
        Err(Refusal::Violation(_)) => Parsed::Violation,
    }
}

fn world() -> World {
    let world = World::with(&[
        ("src/main.rs", "fn main() {}\n"),
        ("README.md", "hello\n"),
        (".env", "KEY=1\n"),
        (".git/config", "[core]\n"),
    ]);
    std::os::unix::fs::symlink("/etc", world.at("way")).unwrap();
    world
}

#[test]
fn paths_that_are_named_are_known_to_the_rules() {
    let world = world();
    for (words, paths) in [
        (&["status"][..], &["."][..]),
        (&["log", "--oneline", "-5"], &["."]),
        (&["diff", "HEAD~1", "--", "src/main.rs"], &["src/main.rs"]),
        (&["diff", "README.md"], &["README.md"]),
        (&["checkout", "--", "gone.txt"], &["gone.txt"]),
        (&["show", "HEAD:src/main.rs"], &["."]),
        (&["log", "v1..v2"], &["."]),
        (&["commit", "-m", "/etc/passwd is ../bad"], &["."]),
        (&["commit", "--message=/etc/passwd"], &["."]),
        (&["log", "--grep=../x", "-S", "/etc"], &["."]),
        (&["blame", "-L", "/fn/,+2", "src/main.rs"], &["src/main.rs"]),
        (&["add", ":(exclude)x", ":/"], &["."]),
        (&["grep", "-e", "KEYSECRET"], &["."]),
        (&["grep", "-n", "-e", "HEAD:.env"], &["."]),
        (&["grep", "HEAD:server.key"], &["."]),
        (&["log", "-S", "HEAD:.env"], &["."]),
        (&["rm", "--cached", ".env"], &[".env"]),
        (&["clone", "https://example.org/a.git", "sub"], &["."]),
        (&["log", "--format=%h: the secret"], &["."]),
        (&["log", "-L", "1,2:README.md"], &["."]),
        (&["show", "HEAD:.docker"], &["."]),
        (&["log", "-p", "--", ":/"], &["."]),
        (&["log", "-p", "--", ":/src"], &["."]),
        (&["diff", "HEAD~1", "--", ":(glob)**"], &["."]),
        (&["log", "--text", "-p"], &["."]),
        (&["rev-list", "--filter=blob:none", "HEAD"], &["."]),
        (&["log", "--follow", "README.md"], &["README.md"]),
        (&["log", "--follow", "--stat", "README.md"], &["README.md"]),
        // Files for secrets may be ignored, listed and taken out of the index.
        (&["add", "-f", ".env"], &[".env"]),
        (&["ls-files", ".env"], &[".env"]),
        (&["add", "-A", "--", ":!.env"], &["."]),
        (
            &["push", "origin", "HEAD:main/my-secret"],
            &["HEAD:main/my-secret"],
        ),
        // Texts, in which a path means nothing.
        (&["commit", "-am", "/etc: rotate the secret"], &["."]),
        (&["commit", "-mFix: the secret"], &["."]),
        (&["tag", "-am", "a: secret", "v1"], &["."]),
        (&["commit", "-F", "README.md"], &["README.md"]),
        (&["commit", "-mupdate"], &["."]),
        (&["checkout", "-bpatch"], &["."]),
        (&["stash", "list", "-5"], &["."]),
        (&["stash", "show", "-u"], &["."]),
        (&["commit", "-qi", "README.md"], &["README.md"]),
        (
            &["diff", "--no-index", "README.md", "src/main.rs"],
            &["README.md", "src/main.rs"],
        ),
        (&["stash", "show", "-p"], &["."]),
        (&["stash", "list", "-p"], &["."]),
        (&["log", "--follow", "-p", "README.md"], &["README.md"]),
        (&["log", "-p", "--full-diff"], &["."]),
        (&["commit", "-m", "one\n\ntwo"], &["."]),
    ] {
        let paths = paths.iter().map(|path| (*path).to_owned()).collect();
        assert_eq!(read(&world, words), Parsed::Runs(paths), "{words:?}");
    }
}

#[test]
fn a_path_outside_or_denied_is_a_violation_wherever_it_stands() {
    let world = world();
    for words in [
        &["diff", "--no-index", "/etc/passwd", "README.md"][..],
        &["diff", "--", "../beside"],
        &["log", "--output=/tmp/x"],
        &["format-patch", "-o/tmp/x", "HEAD~1"],
        &["format-patch", "-o", "../x", "HEAD~1"],
        &["-C", "..", "status"],
        &["-C/etc", "status"],
        &["--git-dir=/home/ada/.git", "log"],
        &["--work-tree", "/", "status"],
        &["worktree", "add", "../beside"],
        &["worktree", "add", "/tmp/tree"],
        &["clone", "/home/ada/other", "copy"],
        &["clone", "file:///home/ada/other", "copy"],
        &["clone", "https://example.org/a.git", "../out"],
        &["commit", "-F", "/etc/passwd"],
        &["commit", "-F/etc/passwd"],
        &["commit", "--file=../../secret"],
        &["hash-object", "-w", "/etc/passwd"],
        &["init", "--separate-git-dir=/tmp/x"],
        &["archive", "--output=../x.tar", "HEAD"],
        &["bundle", "create", "src/../../x", "HEAD"],
        &["apply", "~/x.patch"],
        &["add", "--pathspec-from-file=/etc/passwd"],
        &["blame", "--contents", "/etc/passwd", "README.md"],
        &["ls-files", "-X/etc/passwd"],
        // The deny list, where contents are shown.
        &["diff", "--no-index", "/dev/null", ".env"],
        &["diff", "--no-index", "README.md", ".env"],
        &["diff", ".env"],
        &["diff", "--no-index", "README.md", ".git/config"],
        &["show", "HEAD:.env"],
        &["cat-file", "-p", "main:deploy/.env"],
        &["grep", "x", "--", ".ssh/id_rsa"],
        // Whatever stands before it: options that take no value here, and stages of the index.
        &["show", "-m", "HEAD:.env"],
        &["show", "--pretty", "HEAD:.env"],
        &["show", "-t", "HEAD:.env"],
        &["show", "--end-of-options", "HEAD:.env"],
        &["show", ":0:.env"],
        &["show", ":2:deploy/.env"],
        &["show", "HEAD:./.env"],
        &["show", "HEAD^{/a:b}:.env"],
        &["diff", "HEAD:.env", "HEAD~1:.env"],
        &["grep", "-fREADME.md", "HEAD:.env"],
        &["grep", "-nex", "HEAD:.env"],
        &["log", "-L", "1,2:.env"],
        &["log", "-L1,2:.env"],
        &["log", "-L:a:b:deploy/.env"],
        &["show", "-L1,2:.env"],
        // Files that git reads for an option, whatever the subcommand shows.
        &["commit", "-F", ".env"],
        &["commit", "-F.env"],
        &["commit", "-aF.env"],
        &["commit", "-qaF", ".env"],
        &["commit", "--file=.env"],
        &["commit", "-t", ".env"],
        &["commit", "--template", ".env"],
        &["tag", "-F", ".env", "t"],
        &["notes", "add", "-F", ".env"],
        &["notes", "add", "-C", "HEAD:.env"],
        &["merge", "-F", ".env", "x"],
        &["commit-tree", "-F", ".env", "HEAD^{tree}"],
        &["commit-tree", "HEAD^{tree}", "-pm", "-F.env"],
        &["config", "-f", ".env", "--list"],
        &["config", "--file=.env", "--list"],
        &["config", "--blob", "HEAD:.env", "-l"],
        &["config", "--blob=HEAD:.env", "-l"],
        &["config", "--blob", ":0:.env", "-l"],
        &["add", "--pathspec-from-file=.env"],
        &["reset", "--pathspec-from", ".env"],
        &["ls-files", "-X", ".env"],
        &["ls-files", "-oX.env"],
        &["blame", "--ignore-revs-file", ".env", "README.md"],
        &["am", "--patch-format=hg", ".env"],
        &["log", "-p", "--", ":/.env"],
        &["log", "-p", "--", ":(top).env"],
        // No longer there, and in history.
        &["blame", "HEAD~3", "--", "deploy/.env"],
    ] {
        let found = read(&world, words);
        let expected = matches!(found, Parsed::Violation)
            // Nothing is there to be shown.
            || matches!((words, &found), (["grep", ..], Parsed::Runs(_)));
        assert!(expected, "{words:?}: {found:?}");
    }
}

#[test]
fn what_has_git_run_something_is_left_to_bash() {
    let world = world();
    for words in [
        &[][..],
        &["git", "status"],
        &["-c", "core.pager=evil", "log"],
        &["-c", "alias.x=!evil", "x"],
        &["--exec-path=.", "status"],
        &["--config-env=core.pager=HOME", "log"],
        &["-p", "log"],
        &["--paginate", "log"],
        &["x"],
        &["evil"],
        &["difftool", "-x", "evil"],
        &["mergetool"],
        &["filter-branch", "--tree-filter", "evil"],
        &["instaweb"],
        &["help", "status"],
        &["fetch", "--upload-pack=evil", "origin"],
        &["fetch", "--upload-pa", "evil", "origin"],
        &["clone", "-u", "evil", "https://example.org/a"],
        &[
            "clone",
            "-c",
            "core.fsmonitor=evil",
            "https://example.org/a",
        ],
        &[
            "clone",
            "--config=core.sshCommand=evil",
            "https://example.org/a",
        ],
        &["clone", "ext::evil", "x"],
        &["fetch", "ext::sh -c evil"],
        &["push", "--receive-pack=evil"],
        &["push", "--exec=evil"],
        &["diff", "--ext-diff"],
        &["log", "--ext-d", "-p"],
        &["log", "--textconv", "-p"],
        &["cat-file", "--textconv", "HEAD:a"],
        &["cat-file", "--filters", "HEAD:a"],
        &["log", "--show-signature"],
        &["grep", "--open-files-in-pager=evil", "x"],
        &["grep", "-Oevil", "x"],
        &["rebase", "--exec", "evil", "HEAD~2"],
        &["rebase", "--ex", "evil", "HEAD~2"],
        &["grep", "--op=evil", "x"],
        &["cat-file", "--te", "HEAD:README.md"],
        &["rebase", "-s", "x/evil", "HEAD~2"],
        &["rebase", "-qsx/evil", "HEAD~2"],
        &["cherry-pick", "--strategy=x/evil", "HEAD"],
        &["revert", "--strat", "x/evil", "HEAD"],
        &["rebase", "-x", "evil", "HEAD~2"],
        &["rebase", "-i", "HEAD~2"],
        &["bisect", "run", "evil"],
        &["submodule", "foreach", "evil"],
        &["init", "--template=evil"],
        &["config", "--global", "user.name", "x"],
        &["config", "set", "--sys", "user.name", "x"],
        &["init", "--bare", "."],
        &["init", "--separate-git-dir=foo"],
        &[
            "clone",
            "--separate-git-dir",
            "foo",
            "https://example.org/x",
        ],
        &["archive", "--remote=x", "--exec=evil", "HEAD"],
        &["status\0"],
        &["log", "--remerge-diff", "-p"],
        &["log", "--diff-merges=remerge", "-p"],
        &["show", "--diff-merges", "r"],
        &["cat-file", "--text", "HEAD:a"],
        &["range-diff", "a...b"],
        &["archive", "--format=x", "HEAD"],
        &["interpret-trailers", "README.md"],
        // Options of which git runs converters.
        &["status", "-v"],
        &["status", "-sbvv"],
        &["status", "--verb"],
        &["commit", "--dry-run", "-v"],
        &["commit", "--dry-run", "-av"],
        &["commit", "--verbose", "-m", "x"],
        &["add", "-p"],
        &["add", "-i"],
        &["add", "--edit"],
        &["add", "--inter"],
        &["reset", "-p", "HEAD~1"],
        &["reset", "-qp"],
        &["checkout", "--patch", "HEAD~1"],
        &["restore", "-p", "--source", "HEAD~1"],
        &["stash", "-p"],
        &["stash", "push", "--patch"],
        &["commit", "-p"],
        &["commit", "--interactive"],
        &["am", "--show-current-patch"],
        &["rebase", "--show-curr"],
        &["am", "--sh"],
        &["stash", "save", "--p"],
        &["log", "-p", "--submodule=diff"],
        &["diff", "--submod=diff"],
        &["diff", "--no-index", "src", "README.md"],
    ] {
        assert_eq!(read(&world, words), Parsed::Invalid, "{words:?}");
    }
    let many = vec!["add"; 1_001];
    assert_eq!(read(&world, &many), Parsed::Invalid);
    let long = "x".repeat(64 * 1024 + 1);
    assert_eq!(read(&world, &["commit", "-m", &long]), Parsed::Invalid);
}

#[test]
fn converters_and_submodules_are_switched_off_by_name() {
    let world = world();
    for (words, line) in [
        (
            &["status", "-sb"][..],
            "--no-pager status --ignore-submodules=dirty -sb",
        ),
        (
            &["diff", "--", "README.md"],
            "--no-pager diff --no-ext-diff --no-textconv --ignore-submodules=dirty -- README.md",
        ),
        (
            &["stash", "list", "-5"],
            "--no-pager stash list --no-ext-diff --no-textconv --ignore-submodules=dirty -5",
        ),
        (
            &["stash", "show", "-u"],
            "--no-pager stash show --no-ext-diff --no-textconv --ignore-submodules=dirty -u",
        ),
        (
            &["stash", "show", "--name-only"],
            "--no-pager stash show --no-ext-diff --no-textconv --ignore-submodules=dirty --name-only",
        ),
        (
            &["reflog", "show", "-p"],
            "--no-pager reflog show --no-ext-diff --no-textconv --ignore-submodules=dirty -p",
        ),
        (
            &["reflog", "expire", "--all"],
            "--no-pager reflog expire --all",
        ),
        (
            &["blame", "README.md"],
            "--no-pager blame --no-textconv README.md",
        ),
        (&["add", "-A"], "--no-pager add -A"),
        (
            &["diff", "-S", "x", "--no-index", "README.md", "src/main.rs"],
            "--no-pager diff --no-ext-diff --no-textconv --ignore-submodules=dirty -S x --no-index README.md src/main.rs",
        ),
        (
            &["log", "-p", "-L", "1,2:README.md"],
            "--no-pager log --no-ext-diff --no-textconv --ignore-submodules=dirty -p -L 1,2:README.md",
        ),
    ] {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        let arguments = Arguments::read(words, &world.roots).unwrap();
        let (excluded, hardened): (Vec<String>, Vec<String>) = arguments
            .hardened
            .into_iter()
            .partition(|word| word.starts_with(":(exclude"));
        assert_eq!(hardened.join(" "), line);
        let expected = (line.contains(" diff ") || line.ends_with(" -p"))
            && !line.contains("--no-index")
            && !line.contains("-L 1,2");
        assert_eq!(!excluded.is_empty(), expected, "{line}");
    }
}
