//! The whole life of the daemon: bind, build, say that it is ready, serve, drain, end.
//!
//! Nothing here parses arguments or configuration, and nothing exits the process; `main` does both.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use futures::FutureExt as _;
use secrecy::{ExposeSecret, SecretString};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::audit::Audit;
use crate::config::{AuditConfig, Config, SandboxPolicy};
use crate::exchange::context::Services;
use crate::exchange::history::Room;
use crate::http::Clients;
use crate::lifecycle::{self, Ending, Signals};
use crate::mcp::{self, Mcp};
use crate::notices::Notices;
use crate::process;
use crate::protocol::event;
use crate::provider::registry::Providers;
use crate::ready::{Fatal, ReadyLine};
use crate::sandbox::paths::{RootName, Roots};
use crate::sandbox::spill::{QUOTA_BYTES, Spill};
use crate::sandbox::{self, Mode, Sandbox};
use crate::server::auth::Gate;
use crate::server::{self, Shared};
use crate::session::{self, Daemon, Sessions};
use crate::telemetry::Redactor;
use crate::tool::Registry;
use crate::tool::exec::Exec;

/// How long tasks may take to end once everything was cancelled.
const LAST_MOMENTS: Duration = Duration::from_secs(3);

/// The least characters of a token that guards more than loopback.
const REMOTE_TOKEN_CHARS: usize = 20;

/// What the daemon is run with besides its configuration.
#[derive(Default)]
pub struct Options {
    /// The token that was given; one is made up where there is none.
    pub token: Option<SecretString>,
    /// Where the ready line is written too.
    pub ready_file: Option<PathBuf>,
    /// The process whose end ends the daemon.
    pub parent_pid: Option<u32>,
    /// Cancelled at the end of stdin.
    pub stdin_closed: CancellationToken,
    /// The least sandbox to start with.
    pub require_sandbox: Option<Mode>,
    /// The daemon's own environment, for commands.
    pub environment: BTreeMap<String, String>,
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// Gets every secret there is.
    pub redactor: Redactor,
}

/// Runs the daemon to its end.
///
/// # Errors
///
/// [`Fatal`] where it cannot start.
pub async fn run(config: Config, options: Options) -> Result<(), Fatal> {
    let close = CancellationToken::new();
    let (listener, address) = bind(config.server.address(), options.token.is_some()).await?;
    let (token, made_up) = token(options.token.clone(), address)?;
    options.redactor.add(token.expose_secret());
    let roots = roots(&config, options.home.as_deref())?;
    warn_of_unwritable(&roots);
    let audit = audit(config.audit.as_ref(), &roots)?;
    let daemon = build(
        config,
        &options,
        &roots,
        address.port(),
        &token,
        audit.clone(),
    );
    // Beside the way to ready: it takes longer than the rest, and the first session waits for it.
    let probing = daemon.sandbox.clone();
    daemon.tasks.spawn(async move { drop(probing.await) });
    require_sandbox(&daemon, options.require_sandbox).await?;
    let config = Arc::clone(&daemon.services.config);
    let shared = Arc::new(Shared {
        gate: Gate::new(
            token.clone(),
            config.server.allowed_origins.clone(),
            config.server.allowed_hosts.clone(),
        ),
        sessions: Sessions::new(Arc::clone(&daemon)),
        daemon: Arc::clone(&daemon),
        stop: close.clone(),
        sockets: Arc::new(Semaphore::new(config.server.max_connections)),
        waiting: Arc::default(),
    });
    let mut signals = Signals::catch()
        .map_err(|error| Fatal::failed(format!("signals cannot be caught: {error}")))?;
    let shown_token = made_up.then(|| token.expose_secret().to_owned());
    let line = ReadyLine::new(address, shown_token, config.server.console);
    let ready_file = options
        .ready_file
        .map(|path| line.write(path))
        .transpose()?;
    let serving = daemon.tasks.spawn(server::serve(listener, shared));
    line.print()?;
    // Off the way to ready: each takes as long as it takes.
    daemon.mcp.start(&config.mcp.servers);
    // Off the way to ready: an Ollama that nobody configured.
    let looking = Arc::clone(&daemon);
    daemon.tasks.spawn(async move {
        let stop = looking.stop.clone();
        stop.run_until_cancelled(looking.find_first_provider())
            .await;
    });
    // Off the way to ready: what an earlier daemon left half-written when it was killed.
    daemon.tasks.spawn_blocking(move || roots.sweep());
    // Not among the tasks that are waited for: it ends with the process.
    tokio::spawn(sandbox::take_in_orphans());
    let why = lifecycle::ending(&mut signals, &options.stdin_closed, options.parent_pid).await;
    tracing::info!(?why, "shutting down");
    daemon.draining.cancel();
    drop(serving);
    tokio::select! {
        () = drain(&daemon, why, &close) => {}
        () = signals.next() => tracing::warn!("a second signal: ending at once"),
    }
    tokio::task::spawn_blocking(move || audit.flush())
        .await
        .unwrap_or_default();
    drop(ready_file);
    Ok(())
}

/// Opens the audit log, where no tool reaches it: commands may change what is in the roots.
fn audit(config: Option<&AuditConfig>, roots: &Roots) -> Result<Audit, Fatal> {
    let Some(config) = config else {
        return Ok(Audit::default());
    };
    let shown = config.path.display();
    let hint = "set audit.path to a file outside the project and its central storage, which the daemon may write";
    // By its text, which is enough here: the operator's own setting, read once, before any tool runs.
    let real = real_path(&config.path);
    if [RootName::Project, RootName::Central]
        .iter()
        .any(|root| real.starts_with(roots.path(*root)))
    {
        return Err(Fatal::configuration(
            format!("the audit log {shown} would be where tools can change it"),
            hint,
        ));
    }
    Audit::open(&config.path, config.max_bytes, config.keep).map_err(|error| {
        Fatal::configuration(
            format!("the audit log {shown} cannot be opened: {error}"),
            hint,
        )
    })
}

/// Returns the path with the links of what exists of it resolved.
fn real_path(path: &Path) -> PathBuf {
    path.ancestors()
        .find_map(|above| {
            let real = above.canonicalize().ok()?;
            Some(real.join(path.strip_prefix(above).ok()?))
        })
        .unwrap_or_else(|| path.to_owned())
}

async fn bind(address: SocketAddr, has_token: bool) -> Result<(TcpListener, SocketAddr), Fatal> {
    if !address.ip().is_loopback() && !has_token {
        return Err(Fatal::configuration(
            format!(
                "server.host = {} can be reached from outside, and there is no token",
                address.ip()
            ),
            "set OUTRIGGER_TOKEN, --token-file or --token-stdin, or listen on 127.0.0.1",
        ));
    }
    let listener = TcpListener::bind(address).await;
    listener
        .and_then(|listener| listener.local_addr().map(|address| (listener, address)))
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::AddrInUse => Fatal::port_in_use(address),
            _ => Fatal::configuration(
                format!("failed to listen on {address}: {error}"),
                "change server.host (--host) or server.port (--port)",
            ),
        })
}

/// Returns the token, and whether it was made up here.
fn token(given: Option<SecretString>, address: SocketAddr) -> Result<(SecretString, bool), Fatal> {
    let Some(given) = given else {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)
            .map_err(|error| Fatal::failed(format!("no random numbers for a token: {error}")))?;
        let text = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes);
        return Ok((SecretString::from(text), true));
    };
    if given.expose_secret().chars().count() < REMOTE_TOKEN_CHARS {
        if !address.ip().is_loopback() {
            return Err(Fatal::configuration(
                format!(
                    "the token has fewer than {REMOTE_TOKEN_CHARS} characters, too few for a port that can be reached from outside"
                ),
                "make one with: openssl rand -hex 32",
            ));
        }
        tracing::warn!(
            "the token has fewer than {REMOTE_TOKEN_CHARS} characters and can be guessed"
        );
    }
    Ok((given, false))
}

fn roots(config: &Config, home: Option<&Path>) -> Result<Arc<Roots>, Fatal> {
    let project = &config.project;
    Roots::open(&project.root, &project.central, home)
        .map(Arc::new)
        .map_err(|error| {
            // It names the folder: that of the project, or the central one.
            Fatal::configuration(
                error.to_string(),
                "set project.root (--project-root) and project.central",
            )
        })
}

/// Says at the start what would show only when a tool fails: that a folder cannot be written.
fn warn_of_unwritable(roots: &Roots) {
    for (what, name) in [
        ("project", RootName::Project),
        ("central storage", RootName::Central),
    ] {
        let folder = roots.path(name);
        if let Some(why) = process::unwritable(folder) {
            tracing::warn!(
                "the {what} {} cannot be written ({why}): tools that change files will fail there; \
                 change its owner or mode, or start the daemon as its owner",
                folder.display()
            );
        }
    }
}

fn build(
    config: Config,
    options: &Options,
    roots: &Arc<Roots>,
    port: u16,
    token: &SecretString,
    audit: Audit,
) -> Arc<Daemon> {
    let settings = sandbox::Settings {
        private_bytes: config.tools.bash.tmp_size,
        ..sandbox::Settings::new(options.home.clone())
    }
    .off_memory();
    let unconfined = Sandbox::new(sandbox::Settings {
        ceiling: Mode::None,
        ..settings.clone()
    });
    let sandbox = match config.tools.bash.sandbox {
        SandboxPolicy::Auto => Sandbox::new(settings),
        SandboxPolicy::Off => unconfined.clone(),
    };
    sandbox.keep_off_port(port);
    let known = config.secrets();
    let known = known.iter().chain([token]);
    let secrets: Vec<String> = known
        .map(|secret| secret.expose_secret().to_owned())
        .collect();
    for secret in &secrets {
        options.redactor.add(secret);
    }
    let exec = Exec::new(
        sandbox.clone(),
        Arc::clone(roots),
        options.environment.clone(),
        &secrets.iter().map(String::as_str).collect::<Vec<_>>(),
        config.tools.output_cap,
    );
    let notices = Notices::default();
    let registry = Registry::new(crate::tool::core::tools(
        &config.tools,
        roots,
        &exec,
        options.home.as_deref(),
        &notices,
    ));
    let registry = Arc::new(registry);
    let tasks = TaskTracker::new();
    let launcher = mcp::Launcher::new(exec, unconfined, options.home.clone());
    let servers = mcp::Context {
        registry: Arc::clone(&registry),
        launcher,
        clients: Clients::guarded(),
        redactor: options.redactor.clone(),
        output_cap: config.tools.output_cap,
        notices: notices.clone(),
    };
    let providers = Providers::new(&config);
    Arc::new(Daemon {
        mcp: Mcp::new(servers, tasks.clone()),
        notices,
        services: Services {
            config: Arc::new(config),
            registry,
            locks: crate::tool::locks::Locks::default(),
            exchanges: TaskTracker::new(),
            redactor: options.redactor.clone(),
            spill: Spill::new(std::env::temp_dir(), QUOTA_BYTES),
            audit,
            room: Room::default(),
        },
        providers,
        sandbox: async move { ready_sandbox(&sandbox.report().await) }
            .boxed()
            .shared(),
        side_requests: Arc::new(Semaphore::new(session::MAX_SIDE_REQUESTS)),
        tasks,
        draining: CancellationToken::new(),
        stop: CancellationToken::new(),
    })
}

/// Returns the sandbox as `session:ready` has it.
fn ready_sandbox(report: &sandbox::SandboxReport) -> event::Sandbox {
    event::Sandbox {
        mode: report.mode.to_string(),
        paths: if cfg!(target_os = "linux") {
            "kernel"
        } else {
            "process"
        }
        .to_owned(),
        commands: report.commands.iter().map(ToString::to_string).collect(),
        network: report.network.to_owned(),
        landlock: report.landlock.as_ref().map(|landlock| event::Landlock {
            abi: landlock.abi,
            missing: landlock.missing.iter().map(ToString::to_string).collect(),
        }),
    }
}

async fn require_sandbox(daemon: &Daemon, least: Option<Mode>) -> Result<(), Fatal> {
    let Some(least) = least else {
        return Ok(());
    };
    let found = daemon.sandbox.clone().await;
    let mode = [Mode::Full, Mode::Fallback, Mode::Limits]
        .into_iter()
        .find(|mode| mode.to_string() == found.mode)
        .unwrap_or(Mode::None);
    if mode >= least {
        return Ok(());
    }
    Err(Fatal::configuration(
        format!(
            "commands can be sandboxed in mode `{mode}` only, and --require-sandbox asks for `{least}`"
        ),
        "`outrigger doctor` says why; start without --require-sandbox to accept it",
    ))
}

/// Lets exchanges end by themselves for a while, then ends them, and closes the sockets only when
/// their clients can know.
async fn drain(daemon: &Daemon, why: Ending, close: &CancellationToken) {
    let grace = daemon.services.config.shutdown_grace;
    let exchanges = &daemon.services.exchanges;
    exchanges.close();
    // With nobody left to see it, an answer is not worth the wait.
    if why == Ending::Signal && tokio::time::timeout(grace, exchanges.wait()).await.is_err() {
        tracing::info!(left = exchanges.len(), "exchanges are cancelled");
    }
    sandbox::output::hurry();
    daemon.stop.cancel();
    end_soon(exchanges, "exchanges").await;
    // Nobody calls them any more.
    daemon.mcp.shut_down();
    close.cancel();
    daemon.tasks.close();
    end_soon(&daemon.tasks, "tasks").await;
}

async fn end_soon(tasks: &TaskTracker, what: &str) {
    let ended = tokio::time::timeout(LAST_MOMENTS, tasks.wait()).await;
    if ended.is_err() {
        tracing::warn!(left = tasks.len(), "{what} did not end in time");
    }
}
