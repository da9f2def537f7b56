//! A server of PostgreSQL for tests: in a folder of its own, on a Unix socket, without a port. It ends with the process
//! that started it, however that ends.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long it may take to start: longer is a failure with a name.
const START: Duration = Duration::from_secs(60);

/// Its settings: what is written is gone with the test anyway.
const SETTINGS: &str = "fsync = off\nfull_page_writes = off\nlisten_addresses = ''\nmax_connections = 400\nshared_buffers = 32MB\n\
                        logging_collector = off\nmax_wal_size = 256MB\n";

/// Who may connect: anybody, and one by a password.
const ACCESS: &str = "local all careful scram-sha-256\nlocal all all trust\n";

/// A server, which ends when this is dropped.
pub(crate) struct Server {
    folder: tempfile::TempDir,
    programs: PathBuf,
    /// The port, which is part of the name of its socket, too.
    port: u16,
    running: Option<Running>,
}

struct Running {
    process: Child,
    /// The server ends with it.
    life: Option<ChildStdin>,
}

/// Returns the server that all tests of a program share; `None`, which is said aloud, where PostgreSQL is not installed.
pub(crate) fn shared() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    let server = SERVER.get_or_init(Server::start).as_ref();
    if server.is_none() {
        println!("*** SKIPPED: PostgreSQL is not installed here (apt-get install postgresql) ***");
    }
    server
}

impl Server {
    /// Starts one; `None` where PostgreSQL is not installed.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with(5432, "", "", &[])
    }

    /// Starts one that has this port where it listens on one, with more settings, lines of who may connect, and files in its folder, which nobody else may read.
    pub(crate) fn start_with(
        port: u16,
        settings: &str,
        access: &str,
        files: &[(&str, String)],
    ) -> Option<Self> {
        let programs = programs()?;
        let folder = tempfile::tempdir().unwrap();
        let mut server = Self {
            folder,
            programs,
            port,
            running: None,
        };
        if is_root() {
            let mut chown = Command::new("chown");
            run(chown.arg("postgres").arg(server.folder.path()));
        }
        let mut initdb = server.command("initdb");
        initdb.args(["--no-sync", "--encoding=UTF8", "--locale=C", "--auth=trust"]);
        initdb.args(["--username=tester", "-D"]).arg(server.data());
        run(&mut initdb);
        let hba = server.data().join("pg_hba.conf");
        std::fs::write(hba, format!("{ACCESS}{access}")).unwrap();
        for (name, text) in files {
            server.file(name, text);
        }
        let all = server.data().join("postgresql.auto.conf");
        let socket = format!(
            "port = {port}\nunix_socket_directories = '{}'\n",
            server.folder.path().display()
        );
        std::fs::write(all, format!("{SETTINGS}{socket}{settings}")).unwrap();
        server.go_on();
        server.sql(
            "postgres",
            "CREATE ROLE careful LOGIN SUPERUSER PASSWORD 'right'; CREATE ROLE plain LOGIN",
        );
        Some(server)
    }

    fn file(&self, name: &str, text: &str) {
        let path = self.data().join(name);
        std::fs::write(&path, text).unwrap();
        run(Command::new("chmod").arg("600").arg(&path));
        if is_root() {
            run(Command::new("chown").arg("postgres").arg(&path));
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Returns a program of PostgreSQL, which refuses to be run by root.
    fn command(&self, name: &str) -> Command {
        let program = self.programs.join(name);
        let mut command = match is_root() {
            true => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
                command.arg(program);
                command
            }
            false => Command::new(program),
        };
        command.current_dir("/");
        command
    }

    /// Starts it again, and waits until it answers.
    pub(crate) fn go_on(&mut self) {
        let server = self.command("postgres");
        let arguments: Vec<_> = server.get_args().collect();
        let mut shell = Command::new("sh");
        // It dies with this process, however that ends: then the pipe is closed. Where nothing was said before, nobody is
        // left to remove its folder, which is 700 MB.
        shell.args([
            "-c",
            "\"$@\" & server=$!; kept=$(cat); kill -QUIT $server; wait; [ -n \"$kept\" ] || rm -rf \"$0\"",
        ]);
        shell.arg(self.folder.path());
        shell.arg(server.get_program()).args(arguments);
        shell.arg("-D").arg(self.data()).current_dir("/");
        shell
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut process = shell.spawn().unwrap();
        let life = process.stdin.take();
        self.running = Some(Running { process, life });
        let began = Instant::now();
        while !self
            .command("pg_isready")
            .arg("-q")
            .args(self.socket())
            .status()
            .unwrap()
            .success()
        {
            assert!(began.elapsed() < START, "PostgreSQL does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends it at once, as a crash does.
    pub(crate) fn stop(&mut self) {
        if let Some(mut running) = self.running.take() {
            if let Some(mut life) = running.life.take() {
                life.write_all(b"its folder stays").unwrap();
            }
            running.process.wait().unwrap();
        }
    }

    /// Has it say nothing more, as where the line to it is cut, until [`Self::answer`]: connections stay, and none fails.
    pub(crate) fn hang(&self) {
        self.signal("-STOP");
    }

    /// Ends that.
    pub(crate) fn answer(&self) {
        self.signal("-CONT");
    }

    /// Signals all of its processes.
    fn signal(&self, signal: &str) {
        let file = std::fs::read_to_string(self.data().join("postmaster.pid")).unwrap();
        let first = file.lines().next().unwrap().to_owned();
        let children = format!("/proc/{first}/task/{first}/children");
        let children = std::fs::read_to_string(children).unwrap();
        let mut kill = Command::new("kill");
        kill.arg(signal).arg(first);
        // One of them may have ended meanwhile, which `kill` takes for a failure.
        kill.args(children.split_whitespace()).stderr(Stdio::null());
        kill.status().unwrap();
    }

    /// Returns where its socket is.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn socket(&self) -> Vec<String> {
        vec![
            format!("--host={}", self.folder.path().display()),
            format!("--port={}", self.port),
            "--username=tester".to_owned(),
        ]
    }

    /// Makes a database; returns its name.
    pub(crate) fn database(&self) -> String {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("test{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        self.sql(
            "postgres",
            &format!("CREATE DATABASE {name} OWNER plain STRATEGY file_copy"),
        );
        name
    }

    /// Runs SQL; returns what it says, a line for each row.
    pub(crate) fn sql(&self, database: &str, sql: &str) -> String {
        let mut psql = self.command("psql");
        // As the store looks names up.
        psql.env("PGOPTIONS", "-c search_path=outrigger,public");
        psql.args(self.socket())
            .args(["-qAtX", "-v", "ON_ERROR_STOP=1", "-c", sql, database]);
        run(&mut psql)
    }

    /// Returns the address of a database for a user, perhaps with a password.
    pub(crate) fn url(&self, user: &str, database: &str) -> String {
        let host = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgres://{user}@{host}/{database}")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|it| it.stdout.starts_with(b"0"))
}

/// Returns the folder of PostgreSQL's programs, the newest.
fn programs() -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|it| Some(it.ok()?.path().join("bin")))
        .filter(|it| it.join("initdb").exists())
        .collect();
    found.sort();
    let in_path = || {
        let paths = std::env::var_os("PATH")?;
        std::env::split_paths(&paths).find(|it: &PathBuf| Path::join(it, "initdb").exists())
    };
    found.pop().or_else(in_path)
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
