//! A git that the user runs at the top of the project runs nothing that a command planted in a submodule, or in what git
//! goes on with. Each attempt is first shown to succeed where nothing is put back.

use std::fs;
use std::path::Path;
use std::process::Command;

use outrigger_sandbox::Mode;

use crate::support::{World, run};

/// The first puts nothing back.
const MODES: [Mode; 4] = [Mode::None, Mode::Full, Mode::Fallback, Mode::Limits];

/// What the user has, what a command does, and what the user does then.
const ATTEMPTS: [(&str, &str, &str); 14] = [
    (
        "",
        "made new; git add new; git -C new config core.fsmonitor $PWD/evil",
        "git status",
    ),
    (
        "",
        "made new; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),new; git -C new config core.fsmonitor $PWD/evil",
        "git diff",
    ),
    (
        "",
        "made out; made out/new; git -C out add new; git -C out commit -qm x; git add out; git -C out/new config core.fsmonitor $PWD/evil",
        "git status",
    ),
    (
        "made old; git add old",
        "git config -f old/.git/config core.fsmonitor $PWD/evil",
        "git status",
    ),
    (
        "made old; git add old",
        "mkdir -p old/.git/hooks; cp evil old/.git/hooks/post-commit",
        "cd old; git commit -q --allow-empty -m y",
    ),
    (
        "made mod; git add mod; git config -f .gitmodules submodule.mod.path mod; git submodule absorbgitdirs",
        "rm mod/.git; cp -r .git/modules/mod mod/.git; git config -f mod/.git/config --unset core.worktree; git config -f mod/.git/config core.fsmonitor $PWD/evil",
        "git status",
    ),
    (
        "made mod; git add mod; git config -f .gitmodules submodule.mod.path mod; git submodule absorbgitdirs",
        "mv mod away; made mod; git -C mod config core.fsmonitor $PWD/evil",
        "git status",
    ),
    // An index that says of itself that it is no whole one.
    (
        "",
        "made new; git add new; git -C new config core.fsmonitor $PWD/evil; perl -0777 -i -pe 's/(.{20})\\z/sdir\\0\\0\\0\\0$1/s' .git/index",
        "git status",
    ),
    // A length of hashes that is not meant, and an index that may be read with either.
    (
        "",
        "made new; made new/in; git -C new add in; git -C new commit -qm x; git add new; git -C new/in config core.fsmonitor $PWD/evil; echo '# objectformat sha256' >> new/.git/config",
        "git status",
    ),
    // Behind a link before the command, and not behind it.
    (
        "mkdir real; made real/mod; ln -s real libs; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),libs/mod",
        "rm libs; cp -r real libs; git -C libs/mod config core.fsmonitor $PWD/evil",
        "git status",
    ),
    // An empty folder is no repository, and git looks further up.
    (
        "rm -rf .git; git -C .. init -q; git -C .. update-index --add --cacheinfo 160000,1111111111111111111111111111111111111111,$(basename $PWD)/mod",
        "mkdir .git; made mod; git -C mod config core.fsmonitor $PWD/evil",
        "git -C .. status",
    ),
    // No number is left for what has to go.
    (
        "",
        "made new; git add new; mv new/.git own; git config -f own/config core.fsmonitor $PWD/evil; echo gitdir: ../own > new/.git; mkdir new/.git-replaced-{0..255}",
        "git status",
    ),
    (
        "conflict",
        "printf '\\tx ./evil' >> .git/rebase-merge/git-rebase-todo",
        "git checkout -q --ours f; git add f; git rebase --continue",
    ),
    (
        "conflict",
        "mkdir git-merge-x; cp evil git-merge-x/evil; echo x/evil > .git/rebase-merge/strategy; printf 'pick %s\\n' $(git rev-parse main~1) >> .git/rebase-merge/git-rebase-todo",
        "git checkout -q --ours f; git add f; git rebase --continue",
    ),
];

const PRELUDE: &str = "exec 2> /dev/null
export GIT_CONFIG_GLOBAL=/dev/null GIT_EDITOR=true GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e
made() { git init -q \"$1\"; git -C \"$1\" commit -q --allow-empty -m x; }
change() { echo $1 > f; git add f; git commit -qm $1; }
conflict() { change a; git checkout -q -b b; change b; git checkout -q main; change c; git checkout -q b; git rebase -q main; }
";

fn line(project: &Path, text: &str) {
    Command::new("bash")
        .args(["-c", &format!("{PRELUDE}{text}")])
        .current_dir(project)
        .output()
        .unwrap();
}

#[tokio::test]
async fn nothing_that_a_command_planted_is_run_from_the_top() {
    for mode in MODES {
        for (before, plant, later) in ATTEMPTS {
            let world = World::new();
            let project = world.project();
            let ran = world.outside().join("ran");
            let evil = format!("#!/bin/sh\ntouch {}\n", ran.display());
            fs::write(project.join("evil"), evil).unwrap();
            line(
                &project,
                &format!(
                    "chmod +x evil; git init -q -b main; git commit -q --allow-empty -m x; {before}"
                ),
            );
            let sandbox = world.sandbox(mode);
            run(&sandbox, &world.bash(&format!("{PRELUDE}{plant}"))).await;
            // What ran in the command itself was in the sandbox.
            fs::remove_file(&ran).unwrap_or_default();
            line(&project, later);
            assert_eq!(ran.exists(), mode == Mode::None, "{mode}: {plant}");
        }
    }
}
