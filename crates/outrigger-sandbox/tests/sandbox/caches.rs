//! Caches of the user's that commands see and add to, and nothing of which comes back to the user.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use outrigger_sandbox::{Mode, Sandbox, Settings, Stdin, caches};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};

use crate::support::{
    SECRET, World, as_ordinary_user, eventually, finish, in_pod, is_empty, output,
};

const CACHE: &str = ".npm/_cacache";

/// A world with a cache in its home, and a sandbox that shares it.
fn world() -> (World, Sandbox) {
    let world = World::new();
    let cache = world.home().join(CACHE);
    fs::create_dir_all(cache.join("dir/inner")).unwrap();
    for (name, text) in [
        ("kept", "kept"),
        ("dir/one", "one"),
        ("dir/two", "two"),
        ("dir/inner/three", "three"),
        ("tool", "#!/bin/sh\necho right\n"),
    ] {
        fs::write(cache.join(name), text).unwrap();
    }
    fs::set_permissions(cache.join("tool"), fs::Permissions::from_mode(0o755)).unwrap();
    let sandbox = sandbox(&world, Mode::Full);
    (world, sandbox)
}

fn sandbox(world: &World, ceiling: Mode) -> Sandbox {
    let found = caches::find(Some(&world.home()), &["npm".to_owned()]);
    assert_eq!(found.folders, [world.home().join(CACHE)]);
    Sandbox::new(Settings {
        caches: found.folders,
        ..world.settings(ceiling)
    })
}

/// Everything of a folder that could be another after somebody had written to it.
fn snapshot(folder: &Path) -> BTreeMap<PathBuf, (u32, u64, i64, i64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(path) = waiting.pop() {
        let metadata = path.symlink_metadata().unwrap();
        let content = match metadata.is_dir() {
            true => {
                let entries = fs::read_dir(&path).unwrap();
                waiting.extend(entries.map(|entry| entry.unwrap().path()));
                Vec::new()
            }
            false => fs::read(&path).unwrap(),
        };
        let state = (
            metadata.mode(),
            metadata.nlink(),
            metadata.mtime_nsec(),
            metadata.ctime_nsec(),
            content,
        );
        found.insert(path, state);
    }
    found
}

#[tokio::test]
async fn what_a_command_does_to_a_cache_is_its_pods_and_the_users_own_stays_as_it_is() {
    let (world, sandbox) = world();
    let cache = world.home().join(CACHE);
    let before = snapshot(&cache);
    let pod = sandbox.pod();
    let attack = |line: &str| in_pod(&world, &pod, &format!("cd ~/{CACHE} && {line}"));
    for (line, expected) in [
        ("cat kept dir/one; ./tool", "keptoneright\n"),
        ("echo poison > kept; cat kept", "poison\n"),
        ("echo more >> dir/one; cat dir/one", "onemore\n"),
        ("rm dir/two; ls dir", "inner\none\n"),
        (
            "printf '#!/bin/sh\\necho wrong\\n' > t; chmod 755 t; mv t tool; ./tool",
            "wrong\n",
        ),
        ("chmod 000 dir/inner; stat -c %a dir/inner", "0\n"),
        (
            "chmod 700 dir/inner; ln dir/inner/three again; echo x > again; cat again",
            "x\n",
        ),
        (
            "perl -e 'open(F, \"+<\", \"dir/inner/three\"); print F \"y\"'; cat dir/inner/three",
            "y\n",
        ),
        (
            "touch -d 2001-01-01 dir; truncate -s 0 dir/one; stat -c %s dir/one",
            "0\n",
        ),
        // What the kernel itself keeps of an overlay: a command sets none of it to its own ends.
        (
            "perl -e 'for my $it (\"opaque\", \"redirect\", \"metacopy\", \"whiteout\") { for my $value (\"/\", \"y\") { my ($at, $name, $is) = (\"dir\", \"user.overlay.$it\", $value); syscall(188, $at, $name, $is, 1, 0) } }'; ls dir",
            "inner\none\n",
        ),
        (
            "mknod hole c 0 0 2>/dev/null; mknod dev c 1 3 2>/dev/null; ls dir",
            "inner\none\n",
        ),
        (
            "rm -rf dir && ln -s /etc dir && ls -ld dir | grep -c /etc",
            "1\n",
        ),
        ("rm -rf ./* && ls", ""),
        ("ln -s ~/project/.. kept; echo z > new; cat new", "z\n"),
    ] {
        assert_eq!(output(&sandbox, &attack(line)).await, expected, "{line}");
        assert_eq!(snapshot(&cache), before, "{line}");
    }
    // It lasts with the pod, and another one has the user's own.
    assert_eq!(output(&sandbox, &attack("ls")).await, "kept\nnew\n");
    let other = sandbox.pod();
    let look = format!("cd ~/{CACHE} && ls && cat kept && ./tool");
    assert_eq!(
        output(&sandbox, &in_pod(&world, &other, &look)).await,
        "dir\nkept\ntool\nkeptright\n"
    );
    drop((pod, other));
    eventually("the folders are gone", || is_empty(&world.temporary()));
    assert_eq!(snapshot(&cache), before);
}

#[tokio::test]
async fn two_commands_at_once_share_a_cache() {
    let (world, sandbox) = world();
    let pod = sandbox.pod();
    let line = format!("cd ~/{CACHE}; echo a > first; echo ready; read go; cat second");
    let mut command = in_pod(&world, &pod, &line);
    command.stdin = Stdin::Piped;
    let mut first = sandbox.spawn(&command).await.unwrap();
    let stdout = first.stdout.take().unwrap();
    let mut lines = tokio::io::BufReader::new(stdout).lines();
    assert_eq!(lines.next_line().await.unwrap().unwrap(), "ready");
    let line = format!("cd ~/{CACHE}; cat first; echo b > second");
    assert_eq!(output(&sandbox, &in_pod(&world, &pod, &line)).await, "a\n");
    let mut stdin = first.stdin.take().unwrap();
    stdin.write_all(b"go\n").await.unwrap();
    assert_eq!(lines.next_line().await.unwrap().unwrap(), "b");
    assert_eq!(finish(&mut first).await.exit.code, Some(0));
    drop((pod, command));
    eventually("the folders are gone", || is_empty(&world.temporary()));
}

/// What cannot be in an overlay can be read, and what is gone is passed over.
#[tokio::test]
async fn without_an_overlay_a_cache_is_read_only() {
    let world = World::new();
    let place = world.home().join("no-folder");
    fs::write(&place, "of the user").unwrap();
    let sandbox = Sandbox::new(Settings {
        caches: vec![place.clone(), world.home().join("gone")],
        ..world.settings(Mode::Full)
    });
    let tried = sandbox.report().await.caches;
    assert_eq!(
        tried.iter().map(|it| it.1).collect::<Vec<_>>(),
        [false, false]
    );
    let pod = sandbox.pod();
    let line = "cat ~/no-folder; echo x > ~/no-folder; rm ~/no-folder; ls ~/gone";
    let said = output(&sandbox, &in_pod(&world, &pod, line)).await;
    assert!(said.starts_with("of the user"), "{said}");
    for reason in [
        "Read-only file system",
        "Device or resource busy",
        "No such file",
    ] {
        assert!(said.contains(reason), "{said}");
    }
    assert_eq!(fs::read_to_string(place).unwrap(), "of the user");
    drop(pod);
    eventually("the folders are gone", || is_empty(&world.temporary()));
}

#[tokio::test]
async fn below_full_mode_no_cache_is_seen() {
    let (world, _) = world();
    let sandbox = sandbox(&world, Mode::Fallback);
    assert!(sandbox.report().await.caches.is_empty());
    let pod = sandbox.pod();
    let cache = world.home().join(CACHE);
    let line = format!(
        "cat ~/{CACHE}/kept; cat {}/kept; echo x > {0}/kept",
        cache.display()
    );
    let said = output(&sandbox, &in_pod(&world, &pod, &line)).await;
    assert!(
        said.contains("No such file") && said.contains("Permission denied"),
        "{said}"
    );
    assert_eq!(fs::read_to_string(cache.join("kept")).unwrap(), "kept");
}

/// What lies in the way of a mount in the home goes, wherever a command had it lead.
#[tokio::test]
async fn no_link_in_the_home_leads_a_mount_elsewhere() {
    let (world, sandbox) = world();
    let pod = sandbox.pod();
    let turn = "mv ~/.npm ~/old && ln -s ~/project ~/.npm && ls -d ~/.npm";
    let said = output(&sandbox, &in_pod(&world, &pod, turn)).await;
    assert!(said.ends_with("/.npm\n"), "{said}");
    let look = format!("cat ~/{CACHE}/kept; test -L ~/.npm || echo folder");
    assert_eq!(
        output(&sandbox, &in_pod(&world, &pod, &look)).await,
        "keptfolder\n"
    );
    assert!(!world.project().join("_cacache").exists());
}

/// A command that is being started, beside one that moves folders of the home to and fro: where its secret is seen,
/// it must be hidden.
#[tokio::test]
async fn a_home_that_changes_meanwhile_uncovers_no_secret() {
    let world = World::new();
    let sandbox = world.sandbox(Mode::Full);
    let deep = world.home().join("src/deep");
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join(".env"), SECRET).unwrap();
    let pod = sandbox.pod();
    let swap = "cd; mkdir -p src/deep; echo started; while :; do mv src other; ln -s project src; rm src; mkdir -p src/deep; rm -r src; mv other src; done 2>/dev/null";
    let mut swapping = sandbox.spawn(&in_pod(&world, &pod, swap)).await.unwrap();
    let stdout = swapping.stdout.take().unwrap();
    let mut lines = tokio::io::BufReader::new(stdout).lines();
    assert_eq!(lines.next_line().await.unwrap().unwrap(), "started");
    let mut started = 0;
    for _ in 0..40 {
        let look = "for try in 1 2 3 4 5 6 7 8 9; do cat ~/src/deep/.env ~/other/deep/.env; done 2>/dev/null";
        let mut command = in_pod(&world, &pod, look);
        command.read_write.push(deep.clone());
        command.hidden.push(deep.join(".env"));
        // It may be refused: what it works in is not where it was.
        if let Ok(mut process) = sandbox.spawn(&command).await {
            let seen = finish(&mut process).await;
            assert!(!seen.stdout.text.contains(SECRET), "{seen:?}");
            started += 1;
        }
    }
    assert!(started > 0);
    swapping.kill();
    swapping.wait().await;
}

#[test]
fn caches_as_an_ordinary_user() {
    as_ordinary_user(&[
        "caches::what_a_command_does_to_a_cache_is_its_pods_and_the_users_own_stays_as_it_is",
        "caches::two_commands_at_once_share_a_cache",
        "caches::without_an_overlay_a_cache_is_read_only",
    ]);
}
