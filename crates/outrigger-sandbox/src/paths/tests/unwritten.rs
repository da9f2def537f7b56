//! Attacks on what git runs by its settings, with the file tools' own way to write.

use std::process::Command;

use super::*;

const HOME_SETTINGS: &str = "home/.gitconfig";

impl World {
    fn git(&self, folder: &str, words: &[&str]) {
        let mut git = Command::new("git");
        git.arg("-C").arg(self.at(folder)).args(words);
        git.args(["--template="].iter().filter(|_| words.contains(&"init")));
        let done = git.env("HOME", self.at("home")).output().unwrap();
        assert!(done.status.success(), "{words:?}: {done:?}");
    }

    fn with_repository() -> Self {
        let world = Self::new();
        world.git("proj", &["init", "-q"]);
        world
    }

    /// Tries to write each; `{}` stands for the temporary folder.
    fn attempts(&self, paths: &[&str]) -> Vec<String> {
        let place = self.dir.path().display().to_string();
        let attempt = |path: &&str| match self.write(&path.replace("{}", &place), "evil") {
            Err(PathError::Forbidden(text)) => {
                assert!(text.contains("git runs what it says"), "{text}");
                "refused".to_owned()
            }
            written => format!("{path}: {written:?}"),
        };
        paths.iter().map(attempt).collect()
    }

    fn refuses(&self, paths: &[&str]) {
        assert_eq!(
            self.attempts(paths),
            vec!["refused"; paths.len()],
            "{paths:?}"
        );
    }

    fn takes(&self, paths: &[&str]) {
        for path in paths {
            self.write(path, "x")
                .unwrap_or_else(|error| panic!("{path}: {error}"));
        }
    }
}

#[test]
fn nothing_is_written_in_the_folder_of_hooks_however_it_is_named() {
    let world = World::with_repository();
    fs::create_dir(world.at("proj/.githooks")).unwrap();
    fs::write(world.at("proj/.githooks/pre-commit"), "good").unwrap();
    // Before git is told to run them, they are files like any other.
    world.takes(&[".githooks/pre-commit"]);
    world.git("proj", &["config", "core.hooksPath", ".githooks"]);
    world.link(".githooks", "proj/alias");
    world.link("../.githooks/pre-commit", "proj/sub/file2");
    world.link(world.at("proj/.githooks/new"), "proj/dangling");
    world.refuses(&[
        ".githooks/pre-commit",
        ".githooks/post-commit",
        ".githooks/deep/er/x",
        "./sub/../.githooks//pre-commit",
        "{}/proj/.githooks/pre-commit",
        ".GitHooks/PRE-COMMIT",
        ".GITHOOKS/new",
        "．ｇｉｔｈｏｏｋｓ/new",
        ".git\u{200b}hooks/new",
        "alias/pre-commit",
        "alias/new",
        "sub/file2",
        "dangling",
        ".githooks",
    ]);
    world.takes(&[".githooks2/x", ".githooks.md", "sub/.githooks/x"]);
    assert_eq!(world.read(".githooks/pre-commit").unwrap(), "x");
}

#[test]
fn a_folder_of_hooks_is_known_by_where_a_link_leads_also_if_to_nothing_yet() {
    let world = World::with_repository();
    world.git("proj", &["config", "core.hooksPath", "hooks"]);
    world.link("scripts/git", "proj/hooks");
    world.refuses(&["hooks/new", "scripts/git/new", "Scripts/Git/new"]);
    world.takes(&["scripts/build"]);
    fs::create_dir(world.at("proj/scripts/git")).unwrap();
    world.refuses(&["hooks/new", "scripts/git/new"]);
}

#[test]
fn the_folders_above_a_missing_folder_of_hooks_are_free() {
    let world = World::with_repository();
    world.git("proj", &["config", "core.hooksPath", "tools/git/hooks"]);
    world.refuses(&["tools/git/hooks/new", "tools/git/hooks"]);
    world.takes(&["tools/build", "tools/git/note"]);
    world.refuses(&["tools/git/hooks/new", "TOOLS/git/hooks/new"]);
}

#[test]
fn files_that_settings_include_are_not_written_also_in_a_chain_and_before_they_exist() {
    let world = World::with_repository();
    world.git("proj", &["config", "include.path", "../shared.gitconfig"]);
    world.git(
        "proj",
        &["config", "includeIf.onbranch:x.path", "../conf/of-x"],
    );
    world.refuses(&["shared.gitconfig", "SHARED.gitconfig", "conf/of-x"]);
    fs::write(
        world.at("proj/shared.gitconfig"),
        "[include]\npath = conf/more\n",
    )
    .unwrap();
    world.link("real", "proj/conf");
    world.refuses(&["shared.gitconfig", "conf/more", "real/more", "conf/of-x"]);
    world.takes(&["conf/other", "shared.gitconfig.md"]);
}

/// The git tool may change them, as every checkout may.
#[test]
fn a_command_that_changed_what_git_runs_is_told_of() {
    let world = World::with_repository();
    world.git("proj", &["config", "core.hooksPath", "hooks"]);
    world.git("proj", &["config", "include.path", "../shared.gitconfig"]);
    world.link("scripts/git", "proj/hooks");
    let before = world.roots.settings();
    fs::create_dir_all(world.at("proj/scripts/git")).unwrap();
    fs::write(world.at("proj/scripts/git/pre-commit"), "evil").unwrap();
    fs::write(world.at("proj/scripts/other"), "x").unwrap();
    fs::write(world.at("proj/shared.gitconfig"), "").unwrap();
    let changed = world.roots.settings().changed_since(&before);
    assert_eq!(changed, ["hooks", "scripts/git", "shared.gitconfig"]);
    // What another command holds so that it cannot be made runs nothing.
    let other = World::with_repository();
    other.git("proj", &["config", "core.hooksPath", "hooks"]);
    other.git("proj", &["config", "include.path", "../shared.gitconfig"]);
    let before = other.roots.settings();
    fs::create_dir(other.at("proj/hooks")).unwrap();
    let placeholder = "# Placeholder of Outrigger: stands here while a command runs.\n";
    fs::write(other.at("proj/shared.gitconfig"), placeholder).unwrap();
    assert!(other.roots.settings().changed_since(&before).is_empty());
}

#[test]
fn what_settings_name_is_found_anew_once_they_change() {
    let world = World::with_repository();
    world.takes(&["first/x", "second/x"]);
    world.git("proj", &["config", "core.hooksPath", "first"]);
    world.refuses(&["first/x"]);
    // The user's own settings count, and a later one outranks them.
    world.git("proj", &["config", "--unset", "core.hooksPath"]);
    fs::write(world.at(HOME_SETTINGS), "[core]\nhooksPath = second\n").unwrap();
    world.takes(&["first/x"]);
    world.refuses(&["second/x"]);
}

#[test]
fn a_linked_worktree_goes_by_the_settings_of_its_repository() {
    let world = World::new();
    fs::remove_dir_all(world.at("proj")).unwrap();
    world.git("outside", &["init", "-q"]);
    let identity = ["-c", "user.name=n", "-c", "user.email=e"];
    let commit = ["commit", "-q", "--allow-empty", "-m", "x"];
    world.git("outside", &[&identity[..], &commit[..]].concat());
    world.git("outside", &["worktree", "add", "-q", "../proj"]);
    world.git("outside", &["config", "core.hooksPath", ".githooks"]);
    let (project, central) = (world.at("proj"), world.at("home/central"));
    let roots = Roots::open(&project, &central, Some(&world.at("home"))).unwrap();
    let world = World { roots, ..world };
    world.refuses(&[".githooks/pre-commit", ".GITHOOKS/new"]);
    world.takes(&["src/x"]);
}

#[test]
fn a_repository_of_another_name_and_one_in_the_making_are_not_written() {
    let world = World::new();
    // With further files beside it, git takes the project for a repository without a work tree.
    world.refuses(&["HEAD"]);
    world.git("proj", &["init", "-q", "--separate-git-dir", "store"]);
    world.refuses(&["store/hooks/pre-commit", "store/config", "Store/config"]);
    world.takes(&["HEAD"]);
    let bare = World::new();
    bare.git("proj", &["init", "-q", "--bare"]);
    bare.refuses(&["config", "hooks/post-receive", "commondir"]);
    bare.takes(&["note"]);
}
