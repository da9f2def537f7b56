//! A project with a secret beside it, and the means to run commands in it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use outrigger_sandbox::output::{
    Captured, Ended, HeadAndTail, Output as Collected, Stream, TOTAL_BYTES, collect,
};
use outrigger_sandbox::{Command, Exit, Mode, Pod, Process, Sandbox, Settings};

/// What no command may find out.
pub(crate) const SECRET: &str = "the-secret-beside-the-project";

/// Names a directory for worlds that an ordinary user may write to.
pub(crate) const PLACE: &str = "OUTRIGGER_TEST_PLACE";

/// Set in a test that runs once more as a process of its own.
const ROLE: &str = "OUTRIGGER_TEST_ROLE";

/// How long something that must happen soon may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// A fake home with a secret in it, a project below it, and a place for private directories.
pub(crate) struct World {
    place: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let world = Self { place: folder() };
        for directory in ["home/.ssh", "home/project", "outside", "temporary"] {
            fs::create_dir_all(world.place.path().join(directory)).unwrap();
        }
        fs::write(world.secret(), SECRET).unwrap();
        fs::write(world.outside().join("file"), SECRET).unwrap();
        world
    }

    fn path(&self, below: &str) -> PathBuf {
        self.place.path().canonicalize().unwrap().join(below)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path("home")
    }

    pub(crate) fn secret(&self) -> PathBuf {
        self.path("home/.ssh/id_ed25519")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.path("home/project")
    }

    pub(crate) fn outside(&self) -> PathBuf {
        self.path("outside")
    }

    pub(crate) fn temporary(&self) -> PathBuf {
        self.path("temporary")
    }

    pub(crate) fn sandbox(&self, ceiling: Mode) -> Sandbox {
        self.sandbox_with(ceiling, outrigger_sandbox::LANDLOCK)
    }

    /// The same with a Landlock of an older kernel.
    pub(crate) fn sandbox_with(&self, ceiling: Mode, landlock: u8) -> Sandbox {
        Sandbox::new(Settings {
            landlock,
            ..self.settings(ceiling)
        })
    }

    pub(crate) fn settings(&self, ceiling: Mode) -> Settings {
        Settings {
            helper: PathBuf::from(crate::HELPER),
            ceiling,
            unverified: false,
            landlock: outrigger_sandbox::LANDLOCK,
            home: Some(self.home()),
            temporary: self.temporary(),
            private_bytes: outrigger_sandbox::PRIVATE_BYTES,
            pod_bytes: outrigger_sandbox::POD_BYTES,
            caches: Vec::new(),
            user_ids: None,
        }
    }

    /// A line of bash in the project.
    pub(crate) fn bash(&self, line: &str) -> Command {
        let mut command = Command::new("/bin/bash", self.project());
        command.args = ["--noprofile", "--norc", "-c", line]
            .map(str::to_owned)
            .to_vec();
        command.read_write = vec![self.project()];
        command.env = BTreeMap::from([
            (
                "PATH".to_owned(),
                "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin".to_owned(),
            ),
            ("HOME".to_owned(), self.home().display().to_string()),
        ]);
        command
    }
}

/// What became of a command, with the head and the tail of both streams.
#[derive(Debug)]
pub(crate) struct Output<R> {
    pub(crate) stdout: Captured,
    pub(crate) stderr: Captured,
    pub(crate) exit: Exit,
    pub(crate) ended: Ended<R>,
}

/// Reads a command to its end, or until it is stopped; `on_text` gets each piece of its standard output.
pub(crate) async fn read<R>(
    process: &mut Process,
    stop: impl Future<Output = R>,
    mut on_text: impl FnMut(&str),
) -> Output<R> {
    let kept = || HeadAndTail::new(100 * 1024);
    let (mut stdout, mut stderr) = (kept(), kept());
    let collected = collect(process, TOTAL_BYTES, stop, |stream, text| match stream {
        Stream::Stdout => {
            stdout.push(text);
            on_text(text);
        }
        Stream::Stderr => stderr.push(text),
    });
    let Collected { exit, ended, .. } = collected.await;
    Output {
        stdout: stdout.finish(),
        stderr: stderr.finish(),
        exit,
        ended,
    }
}

/// Reads a command to its end.
pub(crate) async fn finish(process: &mut Process) -> Output<()> {
    read(process, std::future::pending(), |_| {}).await
}

/// A line of bash as a command of a pod.
pub(crate) fn in_pod(world: &World, pod: &Pod, line: &str) -> Command {
    let mut command = world.bash(line);
    command.pod = Some(pod.clone());
    command
}

/// Waits until something was made ready for the next command of a pod.
pub(crate) async fn ready(pod: &Pod) {
    let became = async {
        while !pod.is_ready() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let became = tokio::time::timeout(PATIENCE, became).await;
    became.expect("something that was made ready");
}

/// What a command writes, to both streams.
pub(crate) async fn output(sandbox: &Sandbox, command: &Command) -> String {
    let output = run(sandbox, command).await;
    format!("{}{}", output.stdout.text, output.stderr.text)
}

/// Runs a command to its end.
pub(crate) async fn run(sandbox: &Sandbox, command: &Command) -> Output<()> {
    let mut process = sandbox.spawn(command).await.unwrap();
    finish(&mut process).await
}

/// Waits until the condition holds; says what it was waiting for when it never does.
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The live processes whose command line holds the mark.
pub(crate) fn processes_with(mark: &str) -> Vec<u32> {
    let has_mark = |process: &u32| {
        let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(mark)
    };
    processes().filter(has_mark).collect()
}

/// The children of a process, zombies too. The kernel's own list (`/proc/PID/task/TID/children`) leaves some out while
/// others end.
pub(crate) fn children(process: u32) -> Vec<u32> {
    let parent = format!("PPid:\t{process}\n");
    let is_child = |process: &u32| {
        let status = fs::read_to_string(format!("/proc/{process}/status"));
        status.is_ok_and(|status| status.contains(&parent))
    };
    processes().filter(is_child).collect()
}

/// The processes that helpers of this one are forks of, one for each sandbox that was used.
pub(crate) fn zygotes() -> Vec<u32> {
    let mut zygotes = children(std::process::id());
    zygotes.retain(is_helper);
    zygotes
}

fn is_helper(process: &u32) -> bool {
    fs::read_to_string(format!("/proc/{process}/cmdline"))
        .is_ok_and(|line| line.contains("__sandbox"))
}

/// Kills a process and waits for its end; one that ends by itself meanwhile is no mistake.
pub(crate) fn kill(process: u32) {
    let killed = std::process::Command::new("kill")
        .args(["-9", &process.to_string()])
        .status();
    assert!(killed.unwrap().success() || has_ended(process));
    eventually("the end of a killed process", || has_ended(process));
}

/// Returns whether a process has closed all that it had open: it is gone, or a zombie.
fn has_ended(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"));
    let state = stat.ok().and_then(|stat| {
        let (_, after_name) = stat.rsplit_once(") ")?;
        after_name.chars().next()
    });
    matches!(state, None | Some('Z' | 'X'))
}

/// Kills the helper of the command that became a program with the mark as its name (`exec -a`). Before that nothing can be
/// told by it: while a process executes a program, its command line is empty.
pub(crate) fn kill_helper(mark: &str) {
    let is_marked = |process: &u32| {
        fs::read(format!("/proc/{process}/cmdline"))
            .is_ok_and(|line| line.starts_with(mark.as_bytes()))
    };
    let mut program = None;
    eventually("the program with the mark", || {
        program = processes().find(is_marked);
        program.is_some()
    });
    let above = |process: &u32| program.is_some_and(|program| descends(program, *process));
    let mut helpers = zygotes().into_iter().flat_map(children);
    let helper = helpers.find(above);
    kill(helper.unwrap_or_else(|| panic!("no helper of {mark}")));
}

fn descends(process: u32, ancestor: u32) -> bool {
    let mut at = process;
    while at != 0 && at != ancestor {
        let status = fs::read_to_string(format!("/proc/{at}/status")).unwrap_or_default();
        let mut lines = status.lines();
        let parent = lines.find_map(|line| line.strip_prefix("PPid:"));
        at = parent.map_or(0, |parent| parent.trim().parse().unwrap());
    }
    at == ancestor
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Writes a program. Another process does it: what a test starts while this one writes a file holds it open for a moment,
/// and no program runs that is open for writing.
pub(crate) fn write_program(path: &Path, text: &str) {
    let written = std::process::Command::new("sh")
        .args(["-c", "printf %s \"$1\" > \"$2\" && chmod 755 \"$2\"", "sh"])
        .arg(text)
        .arg(path)
        .status();
    assert!(written.unwrap().success());
}

pub(crate) fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).unwrap().next().is_none()
}

/// Whether this is the test as a process of its own, see [`own_process`].
pub(crate) fn is_own_process() -> bool {
    std::env::var_os(ROLE).is_some()
}

/// The test of this name once more, as a process of its own: one that may be killed, or counts what it holds.
pub(crate) fn own_process(test: &str) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(ROLE, "1");
    command
}

/// A folder that whoever runs the test may make.
pub(crate) fn folder() -> tempfile::TempDir {
    let parent = std::env::var_os(PLACE).unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into());
    tempfile::tempdir_in(parent).unwrap()
}

/// Runs these tests once more as an ordinary user, where this one is root.
pub(crate) fn as_ordinary_user(tests: &[&str]) {
    if is_own_process() || !rustix::process::geteuid().is_root() {
        return;
    }
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::os::unix::fs::chown(place.path(), Some(1000), Some(1000)).unwrap();
    let mut failed = Vec::new();
    for test in tests {
        let program = own_process(test);
        let output = std::process::Command::new("setpriv")
            .args(["--reuid", "1000", "--regid", "1000", "--clear-groups", "--"])
            .arg(program.get_program())
            .args(program.get_args())
            .env(PLACE, place.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let (stdout, stderr) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        // What was not tried, aloud here too.
        let remarks = stderr.lines().filter(|line| line.starts_with("***"));
        remarks.for_each(|line| eprintln!("{line}"));
        if !output.status.success() || !stdout.contains("1 passed") {
            failed.push(format!("{test}: {stdout}{stderr}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    eventually("an empty place", || is_empty(place.path()));
}
