use super::*;
use crate::tests::judge;

/// What a forbidding pattern says of a line.
fn says(pattern: &str, line: &str) -> Denial {
    let pattern = Pattern::parse(pattern).unwrap();
    let commands = judge(line).commands;
    let denials = commands.iter().map(|command| pattern.denies(command));
    denials.max().unwrap_or(Denial::No)
}

fn check(pattern: &str, expected: Denial, lines: &[&str]) {
    for line in lines {
        assert_eq!(says(pattern, line), expected, "{pattern} / {line}");
    }
}

#[test]
fn a_forbidden_command_is_known_in_every_spelling() {
    check(
        "git push **",
        Denial::Certain,
        &[
            "git push",
            "/usr/bin/git push",
            "./git push origin",
            "/usr/lib/git-core/git-push origin",
            "env A=1 /usr/bin/git push",
            "/usr/bin/env git push",
            "git -C . push",
            "git -C. push",
            "git -c a.b=c push",
            "git --no-pager push",
            "git --git-dir .git --work-tree=. push",
            "git --attr-source HEAD push",
            "git -C \"$HOME\" push",
            "bash -c 'git -C . push'",
            "echo x | xargs git push",
            "echo push | xargs git",
        ],
    );
    check(
        "cargo publish **",
        Denial::Certain,
        &["cargo +nightly publish", "cargo -q --offline publish"],
    );
    check("/usr/bin/git **", Denial::Certain, &["/usr/bin/git log"]);
    check("git -C **", Denial::Certain, &["git -C . push"]);
    check("rm -rf **", Denial::Certain, &["rm -v -rf x"]);
    check("git lfs **", Denial::Certain, &["git -C . lfs push"]);
}

#[test]
fn what_may_come_to_be_a_forbidden_command_is_possible() {
    check(
        "git push **",
        Denial::Possible,
        &[
            "g=git; $g push",
            "p=push; git $p",
            "git pu$@sh",
            "git {push,}",
            "$(echo git) push",
            "git $X status",
            "git -C $X status",
            "\"$X\" push",
            // Aliases.
            "git -c alias.pp=push pp",
            "git pp",
            "/usr/bin/git -C . st",
            // Text that a shell is given.
            "eval \"$X\"",
            "bash -c \"$X\"",
            "ls | xargs git",
        ],
    );
    check("git push", Denial::Possible, &["git push $X"]);
    check(
        "kubectl delete **",
        Denial::Possible,
        &["kubectl -n prod delete pod x"],
    );
}

#[test]
fn another_command_is_not_forbidden() {
    check(
        "git push **",
        Denial::No,
        &[
            "git status",
            "git log push",
            "git --no-pager log push",
            "git -C push status",
            "git -C \"$X\" status",
            "git commit -m push",
            "git commit -m \"$(date)\"",
            "\"$X\" status",
            "echo git push",
            "cargo \"$X\" push",
            "ls *.rs",
            "ls git push",
        ],
    );
    check("git push", Denial::No, &["git push origin"]);
    check("cargo publish **", Denial::No, &["cargo run publish"]);
    check("/usr/bin/git **", Denial::No, &["git log"]);
}

/// An allowing pattern goes on to stand for exactly its words.
#[test]
fn what_is_allowed_is_compared_as_it_is_written() {
    let pattern = Pattern::parse("git status **").unwrap();
    for line in ["/usr/bin/git status", "git -C . status", "git $X", "git st"] {
        let commands = judge(line).commands;
        assert!(
            !commands.iter().any(|command| pattern.matches(command)),
            "{line}"
        );
    }
}
