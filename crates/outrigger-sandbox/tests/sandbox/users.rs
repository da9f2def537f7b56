//! Users of the daemon who are users of the system: what one of them could do to another where every namespace leaked, and
//! that a command finds its files as ever.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use outrigger_sandbox::{Command, IdRange, Mode, Pod, Sandbox, Settings};
use tokio::io::AsyncReadExt;

use crate::support::{
    SECRET, World, as_ordinary_user, eventually, finish, in_pod, is_empty, output, processes_with,
    run,
};

/// Nobody's here.
const RANGE: &str = "1200000-1265535";

fn range() -> IdRange {
    RANGE.parse().unwrap()
}

/// Whether this can be tried: only root may.
fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("*** not tried: users of the system, which takes root");
    }
    is_root
}

fn sandbox(world: &World) -> Sandbox {
    Sandbox::new(Settings {
        user_ids: Some(range()),
        ..world.settings(Mode::Full)
    })
}

/// A line of a user's, in the pod of that user.
fn line_of(world: &World, user: &str, pod: &Pod, line: &str) -> Command {
    Command {
        user: Some(user.to_owned()),
        ..in_pod(world, pod, line)
    }
}

/// The number of the user that a process is, in all of the ways in which it is one.
fn id_of(process: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let numbers = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let numbers = line.unwrap().split_whitespace();
        numbers.map(|it| it.parse().unwrap()).collect::<Vec<u32>>()
    };
    let [users, groups, further] = ["Uid:", "Gid:", "Groups:"].map(numbers);
    let id = users[0];
    assert!(users.iter().chain(&groups).all(|it| *it == id), "{status}");
    assert_eq!(further, Vec::<u32>::new(), "{status}");
    id
}

/// Runs a program as this user, in all namespaces of the machine; says whether it did what it should, and what it said.
fn as_user(id: u32, line: &str) -> (bool, String) {
    let id = id.to_string();
    let output = std::process::Command::new("setpriv")
        .args(["--reuid", &id, "--regid", &id, "--clear-groups", "--"])
        .args(["/bin/bash", "-c", line])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    (output.status.success(), said)
}

/// The program that has this name (`exec -a`), once it is there.
fn named(mark: &str) -> u32 {
    let is_marked = |process: &u32| {
        fs::read(format!("/proc/{process}/cmdline"))
            .is_ok_and(|line| line.starts_with(mark.as_bytes()))
    };
    let mut found = None;
    eventually("the program with the mark", || {
        found = processes_with(mark).into_iter().find(is_marked);
        found.is_some()
    });
    found.unwrap()
}

/// The one folder of a pod that there is in which this file is.
fn folder_with(world: &World, file: &str) -> PathBuf {
    let pods = fs::read_dir(world.temporary()).unwrap().flatten();
    let mut found = pods
        .map(|pod| pod.path())
        .filter(|it| it.join(file).exists());
    found.next().expect("the folder of a pod")
}

#[tokio::test]
async fn where_every_namespace_leaks_users_still_cannot_reach_each_other() {
    if !is_root() {
        return;
    }
    let world = World::new();
    let sandbox = sandbox(&world);
    assert_eq!(sandbox.report().await.mode, Mode::Full);
    let (anna, ben) = (sandbox.pod_of("anna"), sandbox.pod_of("ben"));
    let line = |user: &str| {
        format!(
            "umask 000; echo {user} > ~/of-{user}; echo {user} > /tmp/of-{user}; SECRET={user} exec -a users-of-{user} sleep 1000"
        )
    };
    let begin = async |user: &str, pod: &Pod| {
        let command = line_of(&world, user, pod, &line(user));
        sandbox.spawn(&command).await.unwrap()
    };
    let (mut first, mut second) = (begin("anna", &anna).await, begin("ben", &ben).await);
    let (annas, bens) = (named("users-of-anna"), named("users-of-ben"));
    let (anna_id, ben_id) = (id_of(annas), id_of(bens));
    assert!(range().contains(anna_id) && range().contains(ben_id));
    assert_ne!(anna_id, ben_id);
    let (home, tmp) = (
        folder_with(&world, "home/of-ben").join("home"),
        folder_with(&world, "tmp/of-ben").join("tmp"),
    );
    // What leads there is open to all here, so that it is not what refuses.
    for folder in world.temporary().ancestors().take(2) {
        fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
    }
    let (is_open, said) = as_user(anna_id, &format!("ls {}", world.temporary().display()));
    assert!(is_open, "{said}");
    for (what, line) in [
        ("a signal", format!("kill -0 {bens}")),
        ("its end", format!("kill -9 {bens}")),
        ("its variables", format!("cat /proc/{bens}/environ")),
        ("its memory", format!("head -c 1 /proc/{bens}/mem")),
        (
            "its places in memory",
            format!("head -c 1 /proc/{bens}/maps | grep ."),
        ),
        ("its root", format!("ls /proc/{bens}/root/")),
        ("its folder", format!("ls /proc/{bens}/cwd/")),
        ("what it has open", format!("ls /proc/{bens}/fd/")),
        ("its network", format!("nsenter -t {bens} -n true")),
        ("its users", format!("nsenter -t {bens} -U true")),
        (
            "its files, seen through it",
            format!("cat /proc/{bens}/root/tmp/of-ben"),
        ),
        ("its home", format!("cat {}/of-ben", home.display())),
        (
            "its temporary files",
            format!("cat {}/of-ben", tmp.display()),
        ),
        ("its list of files", format!("ls {}", home.display())),
        (
            "a change of them",
            format!("echo x > {}/of-ben", home.display()),
        ),
        (
            "to trace it",
            format!("strace -qq -p {bens} -o /dev/null & sleep 0; wait $!"),
        ),
    ] {
        let (is_done, said) = as_user(anna_id, &line);
        assert!(!is_done && !said.contains("ben\n"), "{what}: {said}");
    }
    // The same is no trouble for the user itself, so that it says something.
    let (is_done, said) = as_user(ben_id, &format!("kill -0 {bens}"));
    assert!(is_done, "{said}");
    // The daemon ends it, with all that it is.
    second.kill();
    second.wait().await;
    eventually("the end", || processes_with("users-of-ben").is_empty());
    first.terminate();
    assert_ne!(first.wait().await.code, Some(0));
    // They have the pods until nothing is left of their commands.
    drop((anna, ben, first, second));
    eventually("no home", || is_empty(&world.temporary()));
}

/// One view of files in two pods, as where the mounts of one leak into the other: what is seen there is the other user's.
#[tokio::test]
async fn files_in_the_view_of_one_user_are_not_another_ones() {
    if !is_root() {
        return;
    }
    let world = World::new();
    let sandbox = sandbox(&world);
    let (anna, ben) = (sandbox.pod_of("anna"), sandbox.pod_of("ben"));
    for (user, pod) in [("anna", &anna), ("ben", &ben)] {
        let line = "umask 077; echo mine > ~/kept; echo ready; exec -a views-of-$0 sleep 1000";
        let mut command = line_of(&world, user, pod, line);
        command.args.push(user.to_owned());
        let mut process = sandbox.spawn(&command).await.unwrap();
        let mut said = [0; 6];
        let mut stdout = process.stdout.take().unwrap();
        stdout.read_exact(&mut said).await.unwrap();
        let mark = format!("views-of-{user}");
        let number = named(&mark);
        let id = id_of(number);
        // Into the view of its files, by root's right, and as somebody from there on.
        let look = |id: u32| {
            let line = format!(
                "nsenter -t {number} -m -- setpriv --reuid {id} --regid {id} --clear-groups cat {}/kept",
                world.home().display()
            );
            let output = std::process::Command::new("sh")
                .args(["-c", &line])
                .output();
            String::from_utf8(output.unwrap().stdout).unwrap()
        };
        assert_eq!(look(id), "mine\n");
        let others = [range().first(), range().last(), 0, 1000, id + 1];
        for other in others
            .into_iter()
            .filter(|other| *other != id && *other != 0)
        {
            assert_eq!(look(other), "", "{user} {other}");
        }
        process.kill();
        process.wait().await;
    }
}

#[tokio::test]
async fn files_of_the_project_are_the_daemons_on_the_disk_and_the_commands_where_it_sees_them() {
    if !is_root() {
        return;
    }
    let world = World::new();
    let sandbox = sandbox(&world);
    let pod = sandbox.pod_of("anna");
    let project = world.project();
    fs::write(project.join("own"), "own").unwrap();
    fs::set_permissions(project.join("own"), Permissions::from_mode(0o600)).unwrap();
    fs::create_dir(project.join("closed")).unwrap();
    fs::set_permissions(project.join("closed"), Permissions::from_mode(0o700)).unwrap();
    let of = |name: &str, owner: u32, mode: u32| {
        let path = project.join(name);
        fs::write(&path, name).unwrap();
        chown(&path, Some(owner), Some(owner)).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    };
    of("theirs", 1000, 0o644);
    of("everybodys", 1000, 0o666);
    of("secret", 1000, 0o600);
    // As if another user's process had got to make files.
    for id in [range().first(), range().first() + 1, range().last()] {
        of(&format!("left-{id}"), id, 0o600);
    }
    for (line, expected) in [
        (
            "id -u; stat -c '%u %g' own closed ~ /tmp .",
            "0\n0 0\n0 0\n0 0\n0 0\n0 0\n",
        ),
        ("cat own; echo more >> own; cat own", "ownownmore\n"),
        (
            "echo x > closed/made; chmod 751 closed/made; ln -s made closed/link; ln closed/made closed/again; stat -c '%a %h' closed/made",
            "751 2\n",
        ),
        (
            "cat theirs; echo x 2>/dev/null >> theirs || echo no",
            "theirsno\n",
        ),
        (
            "echo more >> everybodys; cat everybodys",
            "everybodysmore\n",
        ),
        ("cat secret 2>/dev/null || echo no", "no\n"),
        ("cat left-* 2>/dev/null || echo no", "no\n"),
        ("chown 1 own 2>/dev/null || echo no", "no\n"),
        (
            "rm -rf left-* 2>/dev/null; mv theirs moved; touch -d 2001-01-01 own; stat -c %y own",
            "2001-01-01 00:00:00.000000000 +0000\n",
        ),
        (
            "git init -q new; cd new; git -c user.name=a -c user.email=b commit -q --allow-empty -m first; git log --format=%s",
            "first\n",
        ),
        ("setpriv --reuid 1 true 2>/dev/null || echo no", "no\n"),
        ("unshare -U true 2>/dev/null || echo no", "no\n"),
        ("cat /etc/shadow 2>/dev/null; head -c 4 /etc/passwd", "root"),
        (
            "echo by-name > /dev/stderr; echo by-name | cat /dev/stdin > /dev/stdout",
            "by-name\nby-name\n",
        ),
        (
            "echo kept > ~/kept; echo kept > /tmp/kept; mkdir -p ~/a/b; chmod 000 ~/a; cat ~/kept /var/tmp/../../tmp/kept",
            "kept\nkept\n",
        ),
    ] {
        let line = line
            .replace("git init -q new", "git init -q /tmp/new")
            .replace("cd new", "cd /tmp/new");
        assert_eq!(
            output(&sandbox, &line_of(&world, "anna", &pod, &line)).await,
            expected,
            "{line}"
        );
    }
    // What is given twice is given as what may be changed.
    let mut twice = line_of(&world, "anna", &pod, "");
    twice.read_write.push(project.clone());
    twice
        .read_only
        .extend([project.clone(), world.outside(), world.outside()]);
    twice.args[3] = format!(
        "echo x > twice; cat twice; echo x > {0}/no || cat {0}/file",
        world.outside().display()
    );
    assert!(
        output(&sandbox, &twice)
            .await
            .starts_with(&format!("x\n{SECRET}"))
    );
    let owner = |path: PathBuf| {
        let metadata = path.symlink_metadata().unwrap();
        (metadata.uid(), metadata.gid())
    };
    for path in ["own", "closed/made", "closed/link"] {
        assert_eq!(owner(project.join(path)), (0, 0), "{path}");
    }
    assert_eq!(owner(project.join("everybodys")), (1000, 1000));
    // What is nobody's in that view cannot even be removed.
    let last = range().last();
    assert_eq!(owner(project.join(format!("left-{last}"))), (last, last));
    let folder = folder_with(&world, "home/kept");
    for path in ["home", "home/kept", "home/a", "tmp/kept", "tmp/new/.git"] {
        assert_eq!(owner(folder.join(path)), (0, 0), "{path}");
    }
    drop((pod, twice));
    eventually("no home", || is_empty(&world.temporary()));
}

/// As the tool `git` runs it: without a home, and with rights to the repository.
#[tokio::test]
async fn git_without_a_pod_is_the_users_too() {
    if !is_root() {
        return;
    }
    let world = World::new();
    let sandbox = sandbox(&world);
    let mut command = world.bash("git init -q . && git -c user.name=a -c user.email=b commit -q --allow-empty -m first && git log --format=%s && exec -a git-of-anna sleep 1000");
    command.git = outrigger_sandbox::GitAccess::Create;
    command.user = Some("anna".to_owned());
    let process = sandbox.spawn(&command).await.unwrap();
    assert!(range().contains(id_of(named("git-of-anna"))));
    drop(process);
    let made = world.project().join(".git/HEAD");
    assert_eq!(made.metadata().unwrap().uid(), 0);
    // While a command of another kind runs, the name is taken; what git's helper takes in there goes with it.
    fs::remove_dir_all(world.project().join(".git")).unwrap();
    let pod = sandbox.pod_of("anna");
    let held = line_of(&world, "anna", &pod, "echo ready; exec sleep 1000");
    let mut held = sandbox.spawn(&held).await.unwrap();
    let mut ready = [0; 6];
    let mut stdout = held.stdout.take().unwrap();
    stdout.read_exact(&mut ready).await.unwrap();
    assert!(world.project().join(".git").is_dir());
    assert_ne!(run(&sandbox, &command).await.exit.code, Some(0));
    held.kill();
    held.wait().await;
    eventually("the name is free", || is_empty(&world.project()));
}

#[tokio::test]
async fn commands_of_a_user_share_loopback_and_ports_of_theirs_are_reached_and_told() {
    if !is_root() {
        return;
    }
    let world = World::new();
    let sandbox = sandbox(&world);
    let (pod, other) = (sandbox.pod_of("anna"), sandbox.pod_of("ben"));
    let server = "perl -MIO::Socket::INET -e '$|=1; my $s = IO::Socket::INET->new(Listen => 5, LocalAddr => \"127.0.0.1:0\") or die $!; print $s->sockport, \"\\n\"; while (my $c = $s->accept) { print $c \"hello\\n\"; close $c }'";
    let mut command = line_of(&world, "anna", &pod, server);
    let (sender, mut told) = tokio::sync::mpsc::channel(4);
    command.listening = Some(sender);
    let mut process = sandbox.spawn(&command).await.unwrap();
    let port = told.recv().await.unwrap();
    let ask = format!(
        "perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(\"127.0.0.1:{port}\") or die \"$!\\n\"; print <$s>'"
    );
    let own = line_of(&world, "anna", &pod, &ask);
    assert_eq!(output(&sandbox, &own).await, "hello\n");
    let theirs = line_of(&world, "ben", &other, &ask);
    assert_eq!(output(&sandbox, &theirs).await, "Connection refused\n");
    let mut stream = pod.connect(port).await.unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).await.unwrap();
    assert_eq!(said, "hello\n");
    process.kill();
    process.wait().await;
}

#[tokio::test]
async fn caches_are_seen_and_what_is_written_there_is_the_pods() {
    const CACHE: &str = ".npm/_cacache";
    if !is_root() {
        return;
    }
    let world = World::new();
    let cache = world.home().join(CACHE);
    fs::create_dir_all(cache.join("dir")).unwrap();
    for (name, mode) in [("kept", 0o600), ("dir/one", 0o644)] {
        fs::write(cache.join(name), name).unwrap();
        fs::set_permissions(cache.join(name), Permissions::from_mode(mode)).unwrap();
    }
    let sandbox = Sandbox::new(Settings {
        user_ids: Some(range()),
        caches: vec![cache.clone()],
        ..world.settings(Mode::Full)
    });
    let tried = sandbox.report().await.caches;
    assert_eq!(tried, [(cache.clone(), true)]);
    let pods = ["anna", "ben"].map(|user| (user, sandbox.pod_of(user)));
    for (user, pod) in &pods {
        let line = format!(
            "cd ~/{CACHE}; cat kept dir/one; echo {user} > kept; rm dir/one; echo {user} > new; chmod 700 dir; cat kept new; ls dir; stat -c %u . kept new"
        );
        let expected = format!("keptdir/one{user}\n{user}\n0\n0\n0\n");
        assert_eq!(
            output(&sandbox, &line_of(&world, user, pod, &line)).await,
            expected
        );
    }
    for (user, pod) in &pods {
        let line = format!("cat ~/{CACHE}/kept");
        assert_eq!(
            output(&sandbox, &line_of(&world, user, pod, &line)).await,
            format!("{user}\n")
        );
    }
    assert_eq!(fs::read_to_string(cache.join("kept")).unwrap(), "kept");
    assert!(cache.join("dir/one").exists() && !cache.join("new").exists());
    drop(pods);
    eventually("no home", || is_empty(&world.temporary()));
}

#[tokio::test]
async fn what_is_too_much_is_counted_in_a_users_home() {
    if !is_root() {
        return;
    }
    let world = World::new();
    let sandbox = Sandbox::new(Settings {
        user_ids: Some(range()),
        pod_bytes: 4 << 20,
        ..world.settings(Mode::Full)
    });
    let pod = sandbox.pod_of("anna");
    let line = "mkdir ~/a; head -c 8M /dev/zero > ~/a/big; chmod 000 ~/a; sleep 1000";
    let mut process = sandbox
        .spawn(&line_of(&world, "anna", &pod, line))
        .await
        .unwrap();
    finish(&mut process).await;
    assert!(process.overfull().is_some_and(|it| it.is_killed));
    drop((process, pod));
    eventually("no home", || is_empty(&world.temporary()));
}

#[tokio::test]
async fn nobody_gets_a_number_of_somebody_else() {
    if !is_root() {
        return;
    }
    let world = World::new();
    let sandbox = Sandbox::new(Settings {
        user_ids: Some("1200000-1200001".parse().unwrap()),
        ..world.settings(Mode::Full)
    });
    let marked = world.project().join("ran");
    let of = |user: &str, pod: &str| line_of(&world, user, &sandbox.pod_of(pod), "echo > ran");
    for user in ["anna", "ben", "anna"] {
        assert_eq!(run(&sandbox, &of(user, user)).await.exit.code, Some(0));
    }
    fs::remove_file(&marked).unwrap();
    for (command, expected) in [
        (
            of("carla", "carla"),
            "other users have all numbers of sandbox.user_ids",
        ),
        (
            of("anna", "ben"),
            "what the conversation has is another user's",
        ),
        (
            Command {
                user: None,
                ..of("anna", "anna")
            },
            "what the conversation has is another user's",
        ),
    ] {
        let error = sandbox.spawn(&command).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert!(!marked.exists());
    // What is the daemon's own, such as an MCP server, stays the daemon's user.
    let own = world.bash("stat -c %u /proc/self; exec -a own-program sleep 1000");
    let process = sandbox.spawn(&own).await.unwrap();
    assert!(!range().contains(id_of_any(named("own-program"))));
    drop(process);
}

fn id_of_any(process: u32) -> u32 {
    Path::new(&format!("/proc/{process}"))
        .metadata()
        .unwrap()
        .uid()
}

/// A folder of a file system that cannot map owners.
struct Unmapped(PathBuf);

impl Unmapped {
    fn mount(world: &World) -> Self {
        let place = world.outside();
        for folder in ["lower", "upper", "work", "merged"] {
            fs::create_dir(place.join(folder)).unwrap();
        }
        let options = format!(
            "lowerdir={0}/lower,upperdir={0}/upper,workdir={0}/work",
            place.display()
        );
        let merged = place.join("merged");
        let mounted = std::process::Command::new("mount")
            .args(["-t", "overlay", "overlay", "-o", &options])
            .arg(&merged)
            .status();
        assert!(mounted.unwrap().success());
        Self(merged)
    }
}

impl Drop for Unmapped {
    fn drop(&mut self) {
        let unmounted = std::process::Command::new("umount")
            .arg("-l")
            .arg(&self.0)
            .status();
        assert!(unmounted.is_ok_and(|it| it.success()));
    }
}

#[tokio::test]
async fn where_owners_cannot_be_mapped_nothing_runs_and_the_reason_is_said() {
    if !is_root() {
        return;
    }
    let world = World::new();
    let unmapped = Unmapped::mount(&world);
    let sandbox = sandbox(&world);
    sandbox.try_users(&[world.project()]).await.unwrap();
    let folders = [world.project(), unmapped.0.clone()];
    let error = sandbox.try_users(&folders).await.unwrap_err().to_string();
    assert!(
        error.contains(&format!(
            "mounting {} for another user",
            unmapped.0.display()
        )),
        "{error}"
    );
    let mut command = line_of(&world, "anna", &sandbox.pod_of("anna"), "echo > ran");
    command.read_write.push(unmapped.0.clone());
    command.cwd = unmapped.0.clone();
    let error = sandbox.spawn(&command).await.unwrap_err().to_string();
    assert!(error.contains("for another user"), "{error}");
    assert!(is_empty(&unmapped.0));
    // What is only read is seen as others see it.
    fs::write(unmapped.0.join("open"), "open").unwrap();
    fs::write(unmapped.0.join("closed"), "closed").unwrap();
    fs::set_permissions(unmapped.0.join("closed"), Permissions::from_mode(0o600)).unwrap();
    let line = format!(
        "cat {0}/open; cat {0}/closed 2>/dev/null || echo no",
        unmapped.0.display()
    );
    let mut command = line_of(&world, "anna", &sandbox.pod_of("anna"), &line);
    command.read_only.push(unmapped.0.clone());
    assert_eq!(output(&sandbox, &command).await, "openno\n");
    // Where homes are in such a place the mode does not work.
    let sandbox = Sandbox::new(Settings {
        user_ids: Some(range()),
        temporary: unmapped.0.clone(),
        ..world.settings(Mode::Full)
    });
    let report = sandbox.report().await;
    assert!(report.mode < Mode::Full, "{report:?}");
    assert!(
        report.refused[0].1.contains("for another user"),
        "{report:?}"
    );
}

/// Below full mode, and for whom is not root, a user's commands do not run at all.
#[tokio::test]
async fn who_may_not_have_users_of_the_system_runs_nothing() {
    let world = World::new();
    let is_root = rustix::process::geteuid().is_root();
    let sandbox = Sandbox::new(Settings {
        user_ids: Some(range()),
        ..world.settings(if is_root { Mode::Fallback } else { Mode::Full })
    });
    let report = sandbox.report().await;
    assert!(report.mode < Mode::Full, "{report:?}");
    if !is_root {
        assert!(
            report.refused[0].1.contains("which only root may"),
            "{report:?}"
        );
    }
    let error = sandbox.try_users(&[world.project()]).await.unwrap_err();
    assert!(error.to_string().contains("sandbox mode full"), "{error}");
    let command = line_of(&world, "anna", &sandbox.pod_of("anna"), "echo > ran");
    let error = sandbox.spawn(&command).await.unwrap_err();
    assert!(error.to_string().contains("sandbox.user_ids"), "{error}");
    assert!(is_empty(&world.project()));
}

#[test]
fn the_same_for_an_ordinary_user() {
    as_ordinary_user(&["users::who_may_not_have_users_of_the_system_runs_nothing"]);
}
