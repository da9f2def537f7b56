//! What has to go on working inside.

use outrigger_sandbox::Mode;

use crate::support::{World, run};

#[tokio::test]
async fn ordinary_work_goes_on_in_every_mode() {
    let world = World::new();
    let mut wrong = Vec::new();
    for (name, line, expected) in [
        (
            "write",
            "echo x > new; mkdir -p a/b; mv new a/b/moved; cat a/b/moved",
            "x\n",
        ),
        (
            "temporary file",
            "t=$(mktemp); echo x > $t; cat $t; [[ $t == $TMPDIR/* ]] && echo own",
            "x\nown\n",
        ),
        (
            "null",
            "echo x > /dev/null; head -c 3 /dev/zero | wc -c",
            "3\n",
        ),
        ("process substitution", "cat <(echo x)", "x\n"),
        ("jobs", "sleep 0.01 & wait; echo x", "x\n"),
        ("many", "seq 20 | xargs -P 4 -n 1 echo | wc -l", "20\n"),
        (
            "a script of the project",
            "printf '#!/bin/sh\\necho x\\n' > run; chmod +x run; ./run",
            "x\n",
        ),
        ("here document", "cat <<< x", "x\n"),
        ("permissions", "touch p; chmod 640 p; stat -c %a p", "640\n"),
        ("links", "echo x > l1; ln l1 l2; ln -s l2 l3; cat l3", "x\n"),
        (
            "pipes between processes",
            "mkfifo f; (echo x > f &); cat f",
            "x\n",
        ),
        (
            "git",
            "git init -q r && cd r && git -c user.name=n -c user.email=e commit -q --allow-empty -m x && git log --format=%s",
            "x\n",
        ),
        ("perl", "perl -e 'print \"x\\n\"'", "x\n"),
        (
            "own signals",
            "sleep 600 & kill $!; wait $! 2> /dev/null; echo $?",
            "143\n",
        ),
        (
            "signals to jobs and groups",
            "set -m; sleep 600 & kill %1; wait $! 2> /dev/null; echo $?; sleep 600 & kill -TERM -$!; wait $! 2> /dev/null; echo $?; kill -0 $$ && trap 'echo x' USR1 && kill -USR1 $$; timeout 0.01 sleep 600; echo $?",
            "143\n143\nx\n124\n",
        ),
        (
            "signals of perl and to oneself",
            "perl -e '$SIG{USR1} = sub { print \"x\\n\" }; kill USR1 => $$; my $c = fork // die; sleep 600 unless $c; kill TERM => $c; waitpid $c, 0; print $? & 127, \"\\n\"'",
            "x\n15\n",
        ),
    ] {
        for mode in [Mode::Full, Mode::Fallback, Mode::Limits, Mode::None] {
            let sandbox = world.sandbox(mode);
            std::fs::remove_dir_all(world.project()).unwrap();
            std::fs::create_dir(world.project()).unwrap();
            let output = run(&sandbox, &world.bash(line)).await;
            if output.stdout.text != expected {
                wrong.push(format!("{name} in {mode}: {output:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
