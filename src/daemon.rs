//! The whole life of the daemon: bind, build, say that it is ready, serve, drain, end.
//!
//! Nothing here parses arguments or configuration, and nothing exits the process; `main` does both.

mod drain;
mod files;
mod folders;
mod listen;
mod sandboxes;
mod spent;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

pub use self::drain::Outcome;
use self::drain::{drain, drained, outcome};
use self::listen::{Bound, bind, token, tokens, users};
use self::sandboxes::{
    Sandboxes, ready_sandbox, require_sandbox, require_users, started, warn_of_mode,
};
use crate::acp;
use crate::audit::Audit;
use crate::config::{Config, Current, ProviderKind, Sources, Values};
use crate::exchange::context::Services;
use crate::exchange::history::Room;
use crate::exchange::memory::RulesOfUsers;
use crate::hooks::Hooks;
use crate::http::Clients;
use crate::lifecycle::{self, Ending, Signals};
use crate::mcp::{self, Mcp};
use crate::message::Severity;
use crate::notices::{Notices, To};
use crate::otlp::{self, Exporting};
use crate::provider::registry::Providers;
use crate::ready::{Fatal, PrivateFile, ReadyLine, Surroundings};
use crate::sandbox::paths::Roots;
use crate::sandbox::spill::{QUOTA_BYTES, Spill};
use crate::sandbox::{self, Mode, Sandbox, Zygote};
use crate::server::auth::Gate;
use crate::server::{self, Node, Shared, Waiting};
use crate::session::{self, Daemon, DrainRequest, Reloadable, Sessions, Tenure};
use crate::store::{AnyStore, Updates};
use crate::telemetry::Redactor;
use crate::telemetry::traces::Ended;
use crate::token::Tokens;
use crate::tool::exec::Exec;
use crate::tool::workspace::{Common, Workspaces};
use crate::users::quota::Quotas;
use crate::webhooks::Webhooks;

/// How long tasks may take to end once everything was cancelled.
const LAST_MOMENTS: Duration = Duration::from_secs(3);

/// The same for an editor's agent: an editor kills what does not end soon. Six things are waited for, one after the other.
const LAST_MOMENTS_OF_AGENT: Duration = Duration::from_millis(320);

/// The same where Windows closes the console: it ends the process after five seconds.
const LAST_MOMENTS_OF_CONSOLE: Duration = Duration::from_millis(700);

const _: () = assert!(LAST_MOMENTS_OF_AGENT.as_millis() * 6 < 2_000);
const _: () = assert!(LAST_MOMENTS_OF_CONSOLE.as_millis() * 6 < 5_000);

/// What the daemon is run with besides its configuration.
#[derive(Default)]
pub struct Options {
    /// The token that was given; one is made up where there is none.
    pub token: Option<SecretString>,
    /// Where the ready line is written too.
    pub ready_file: Option<PathBuf>,
    /// Whether a person reads stdout, and not a program.
    pub is_for_person: bool,
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
    /// What the configuration's check warns of, and the start, for whoever reads the ready line.
    pub warnings: Vec<String>,
    /// What the configuration was read from, to read it again, and each value of it with where it came from.
    pub sources: Option<(Sources, Values)>,
    /// Spans of the log as they end, where they are to be sent.
    pub spans: Option<Ended>,
    /// What the helpers of commands are made of, where that is there already.
    pub zygote: Option<Zygote>,
}

/// Runs the daemon to its end; returns whether all is kept.
///
/// # Errors
///
/// [`Fatal`] where it cannot start.
pub async fn run(config: Config, mut options: Options) -> Result<Outcome, Fatal> {
    let mut signals = catch_signals()?;
    let bound = bind(config.server.address(), options.token.is_some())?;
    let sandboxes = Sandboxes::new(&config, options.home.as_deref(), options.zygote.take()).await;
    let confined = sandboxes.confined.clone();
    let start = serve(config, &mut options, (bound, sandboxes));
    match started(start, &mut signals, &confined).await? {
        Some(built) => Ok(built.until_end(&options, signals, LAST_MOMENTS).await),
        None => Ok(Outcome::Kept),
    }
}

/// Opens the port, and says that the daemon is ready.
async fn serve(
    config: Config,
    options: &mut Options,
    (bound, sandboxes): (Bound, Sandboxes),
) -> Result<Built, Fatal> {
    let address = bound.address;
    let (token, made_up) = token(options.token.clone(), address)?;
    sandboxes.confined.keep_off_port(address.port());
    let port = Some(address.port());
    let mut built = assemble(config, options, sandboxes, (&token, port)).await?;
    let daemon = Arc::clone(&built.daemon);
    let config = daemon.services.config();
    built.users = users(&config)?;
    let gate = Gate::new(
        tokens(&token, &config),
        config.server.allowed_origins.clone(),
        config.server.allowed_hosts.clone(),
    );
    let cluster = config.cluster.as_ref();
    let shared = Arc::new(Shared {
        node: Node::here(cluster.and_then(|it| it.name.as_deref())),
        gate: gate
            .for_users(built.users.clone(), config.auth.header.clone())
            .for_cluster(
                cluster.and_then(|it| it.secret.as_ref()),
                cluster.and_then(|it| it.url_at(address.port())),
            ),
        peers: Clients::only(|_| true),
        sessions: Sessions::new(Arc::clone(&daemon)),
        daemon: Arc::clone(&daemon),
        stop: built.close.clone(),
        sockets: Arc::new(Semaphore::new(config.server.max_connections)),
        guests: Arc::new(Semaphore::new(config.server.max_connections.div_ceil(2))),
        waiting: Arc::new(Waiting::for_sockets(config.server.max_connections)),
    });
    let listener = bound.listen()?;
    daemon.mcp.listens_at(address);
    let shown_token = made_up.then(|| token.expose_secret().to_owned());
    let line = ReadyLine::new(address, shown_token, config.server.console)
        .warning(&options.warnings, |it| options.redactor.redact(it).into());
    let ready_file = options.ready_file.clone();
    built.ready_file = ready_file.map(|path| line.write(path)).transpose()?;
    drop(daemon.tasks.spawn(server::serve(listener, shared)));
    match options.is_for_person {
        true => line.print_for_people(&surroundings(&daemon).await)?,
        false => line.print()?,
    }
    Ok(built)
}

/// Runs the daemon as an editor's agent, on stdin and stdout and without a port, until stdin ends; returns whether all is kept.
///
/// # Errors
///
/// [`Fatal`] where it cannot start.
pub async fn run_agent(config: Config, mut options: Options) -> Result<Outcome, Fatal> {
    // Nobody is let in by it, and nothing listens; what the daemon is built of wants one.
    let (token, _) = token(None, SocketAddr::from(([127, 0, 0, 1], 0)))?;
    let mut signals = catch_signals()?;
    let sandboxes = Sandboxes::new(&config, options.home.as_deref(), options.zygote.take()).await;
    let confined = sandboxes.confined.clone();
    let start = assemble(config, &mut options, sandboxes, (&token, None));
    let Some(built) = started(start, &mut signals, &confined).await? else {
        return Ok(Outcome::Kept);
    };
    let sessions = Sessions::new(Arc::clone(&built.daemon)).of(Arc::default());
    let agent = acp::stdio(sessions, options.stdin_closed.clone(), built.close.clone());
    built.daemon.tasks.spawn(agent);
    let ended = built.until_end(&options, signals, LAST_MOMENTS_OF_AGENT);
    Ok(ended.await)
}

fn catch_signals() -> Result<Signals, Fatal> {
    Signals::catch().map_err(|error| Fatal::failed(format!("signals cannot be caught: {error}")))
}

/// Reads the configuration again; what comes of it is told to operators.
async fn reload(daemon: Arc<Daemon>) {
    if let Err(problem) = daemon.reload().await {
        let message = format!(
            "the configuration was read again and is wrong, so that the one before stays in force: {problem}"
        );
        daemon
            .notices
            .send(To::Operators, Severity::Warning, "config_invalid", message);
    }
}

/// A daemon that is built, and what is needed at its end.
struct Built {
    daemon: Arc<Daemon>,
    users: Option<Arc<Tokens>>,
    /// Cancelled when clients know of the end.
    close: CancellationToken,
    /// Closes a daemon that serves already, and cannot say so.
    closed: DropGuard,
    ready_file: Option<PrivateFile>,
    audit: Audit,
    roots: Result<Arc<Roots>, String>,
    confined: Sandbox,
    exporting: Option<Exporting>,
}

/// Opens what the daemon works with, and builds it; it listens on the port, where it does.
async fn assemble(
    config: Config,
    options: &mut Options,
    sandboxes: Sandboxes,
    (token, port): (&SecretString, Option<u16>),
) -> Result<Built, Fatal> {
    options.redactor.add(token.expose_secret());
    let roots = folders::roots(&config, options.home.as_deref());
    let temporary = sandbox::Settings::new(None).off_memory().temporary;
    if let Ok(roots) = &roots {
        folders::keep_apart_temporary(&temporary, roots)?;
    }
    let mut warnings = folders::unwritable(&temporary, roots.as_deref().ok());
    for warning in &warnings {
        tracing::warn!("{warning}");
    }
    let audit = files::audit(config.audit.as_ref(), roots.as_deref().ok())?;
    let store = files::store(
        config.store.as_ref(),
        (config.cluster.as_ref(), port),
        roots.as_deref().ok(),
    )
    .await?;
    if let (Err(why), true) = (&store, config.store.is_some()) {
        warnings.push(format!("sessions are not kept: {why}"));
    }
    if let Some(warning) = store.as_ref().ok().and_then(files::begun_anew) {
        tracing::error!("{warning}");
        warnings.push(warning);
    }
    // Before those of the configuration: not all of many are shown.
    options.warnings.splice(0..0, warnings);
    let kept = (audit.clone(), store);
    let confined = sandboxes.confined.clone();
    let daemon = build(&config, options, roots.clone(), sandboxes, token, kept);
    daemon
        .tasks
        .spawn(warn_of_mode(Arc::clone(&daemon), confined.clone()));
    require_sandbox(&daemon, options.require_sandbox).await?;
    require_users(&confined, config.user_ids, roots.as_deref().ok()).await?;
    let spans = options.spans.take();
    let exporting = config.otlp.as_ref().map(|otlp| {
        let counting = Arc::clone(&daemon);
        otlp::begin(otlp, spans, move || counting.figures())
    });
    let close = CancellationToken::new();
    Ok(Built {
        users: None,
        closed: close.clone().drop_guard(),
        close,
        ready_file: None,
        exporting,
        confined,
        daemon,
        audit,
        roots,
    })
}

impl Built {
    /// Does what was put off until the daemon was ready, waits until it is to end, and ends it; returns whether all is kept.
    async fn until_end(
        self,
        options: &Options,
        mut signals: Signals,
        moments: Duration,
    ) -> Outcome {
        let Self {
            daemon,
            users,
            close,
            closed: _closed,
            ready_file: _ready_file,
            audit,
            roots,
            confined,
            exporting,
        } = self;
        // Off the way to ready: each takes as long as it takes.
        daemon.mcp.start(&daemon.services.config().mcp.servers);
        // Off the way to ready: an Ollama that nobody configured.
        let looking = Arc::clone(&daemon);
        daemon.tasks.spawn(async move {
            let stop = looking.stop.clone();
            stop.run_until_cancelled(looking.find_first_provider())
                .await;
        });
        // Off the way to ready: what an earlier daemon left half-written when it was killed.
        if let Ok(roots) = roots {
            daemon.tasks.spawn_blocking(move || roots.sweep());
        }
        // Not among the tasks that are waited for: they end with the process, and the next start does what is left.
        let limited = Arc::clone(&daemon);
        tokio::spawn(async move {
            confined.report().await;
            // Off the way of the first session, which waits for the report: it opens the file of sessions, unless somebody had
            // something to write there already.
            if let (Some(store), Some(config)) = (&limited.store, &limited.services.config().store)
            {
                files::limit(store, config, &limited.notices, &limited.updates);
            }
            confined.sweep().await;
        });
        tokio::spawn(sandbox::take_in_orphans());
        tokio::spawn(Arc::clone(&daemon).share_activity());
        let reloading = Arc::clone(&daemon);
        // In a task of its own: the end is not waited for until all MCP servers are as they are to be.
        let reload = async || {
            let (daemon, users) = (Arc::clone(&reloading), users.clone());
            drop(reloading.tasks.spawn(async move {
                if let Some(users) = users {
                    users.reload().await;
                }
                reload(daemon).await;
            }));
        };
        let parent = options.parent_pid;
        let ending = lifecycle::ending(&mut signals, &options.stdin_closed, parent, reload);
        let why = tokio::select! {
            why = ending => why,
            () = drained(&daemon) => Ending::Asked,
            () = daemon.tenure.lost() => Ending::Lost,
        };
        tracing::info!(?why, "shutting down");
        let moments = match why {
            Ending::Hurried => moments.min(LAST_MOMENTS_OF_CONSOLE),
            _ => moments,
        };
        daemon.draining.cancel();
        let end = async {
            drain(&daemon, why, &options.stdin_closed, &close, moments).await;
            // Of all that ran, the drain too.
            if let Some(exporting) = exporting {
                exporting.finish(moments).await;
            }
        };
        tokio::select! {
            () = end => {}
            () = signals.second() => tracing::warn!("a second signal: ending at once"),
        }
        tokio::task::spawn_blocking(move || audit.flush())
            .await
            .unwrap_or_default();
        // Also where a second signal left no time.
        daemon.store.as_ref().map_or(Outcome::Kept, outcome)
    }
}

fn build(
    config: &Config,
    options: &mut Options,
    roots: Result<Arc<Roots>, String>,
    sandboxes: Sandboxes,
    token: &SecretString,
    (audit, store): (Audit, Result<AnyStore, String>),
) -> Arc<Daemon> {
    let Sandboxes {
        confined: sandbox,
        unconfined,
    } = sandboxes;
    let known = config.secrets();
    let known = known.iter().chain([token]);
    let secrets: Vec<String> = known
        .map(|secret| secret.expose_secret().to_owned())
        .collect();
    for secret in &secrets {
        options.redactor.add(secret);
    }
    let limits = config.tools.bash.limits.of_commands();
    let disk = config.tools.bash.limits.disk;
    let is_online = config.tools.bash.is_online();
    let notices = Notices::default();
    let updates = Updates::default();
    let stop = CancellationToken::new();
    let tenure = Tenure::new(stop.clone());
    if let Ok(store) = &store {
        files::watch(store, &notices, &tenure);
    }
    let spend = spent::spend(&config.budget, store.as_ref().ok());
    let not_kept = store.as_ref().err().cloned().unwrap_or_default();
    let common = Common {
        tools: config.tools.clone(),
        projects: config.project.clone(),
        sandbox: sandbox.clone(),
        environment: options.environment.clone(),
        secrets,
        home: options.home.clone(),
        own_files: files::own(config),
    };
    let settings = Current::new(config.clone());
    let workspaces = Arc::new(Workspaces::new(common, roots, &settings, &notices));
    let tasks = TaskTracker::new();
    let pods = sandbox.clone();
    let own = workspaces.own();
    let hooks = Hooks::new(unconfined.clone(), options.redactor.clone());
    let launcher = |exec: &Exec| mcp::Launcher::new(exec.clone(), unconfined, options.home.clone());
    let servers = mcp::Context {
        registry: Arc::clone(&own.registry),
        everywhere: Arc::clone(workspaces.everywhere()),
        launcher: own.exec().map(launcher).map_err(str::to_owned),
        clients: Clients::guarded(),
        redactor: options.redactor.clone(),
        output_cap: config.tools.output_cap,
        notices: notices.clone(),
        sign_ins: Arc::new(files::sign_ins(
            &config.mcp,
            own.exec().ok().map(|exec| &**exec.roots()),
            &tasks,
        )),
        user: String::new(),
    };
    let providers = Providers::new(config);
    let sources = options.sources.take();
    let reloadable = sources.map(|(sources, values)| Reloadable::new(sources, config, values));
    let webhooks = Webhooks::new(config.webhooks.as_ref(), tasks.clone(), stop.clone());
    Arc::new(Daemon {
        webhooks,
        mcp: Arc::new(Mcp::new(servers, tasks.clone())),
        reloadable,
        notices,
        rules: RulesOfUsers::new(store.is_ok()),
        store: store.ok(),
        not_kept,
        updates,
        quotas: Quotas::default(),
        imports: session::Imports::default(),
        line: Arc::default(),
        titles: Arc::new(Semaphore::new(session::MAX_TITLES)),
        workspaces,
        services: Services {
            settings,
            locks: crate::tool::locks::Locks::default(),
            exchanges: TaskTracker::new(),
            redactor: options.redactor.clone(),
            spill: Spill::new(std::env::temp_dir(), QUOTA_BYTES),
            audit,
            room: Room::default(),
            hooks,
            spend,
            quota: Arc::default(),
        },
        providers,
        pods_removed: async move { pods.pods_removed().await }.boxed().shared(),
        sandbox: async move { ready_sandbox(&sandbox.report().await, &limits, disk, is_online) }
            .boxed()
            .shared(),
        side_requests: Arc::new(Semaphore::new(session::MAX_SIDE_REQUESTS)),
        operator_requests: Arc::new(Semaphore::new(session::MAX_SIDE_REQUESTS)),
        tasks,
        tenure,
        draining: CancellationToken::new(),
        drain: DrainRequest::default(),
        stop,
    })
}

/// Returns what the daemon works with, once it is known how well commands are confined.
async fn surroundings(daemon: &Daemon) -> Surroundings {
    let config = &daemon.services.config();
    let id = daemon.providers.default_id();
    let instance = daemon.providers.find(id).map(|instance| instance.config);
    let model = match config.chat.model.as_str() {
        "" => instance.as_ref().map(|config| config.model.clone()),
        model => Some(model.to_owned()),
    };
    let project = config.project.own.as_ref();
    Surroundings {
        project: project
            .map(|project| project.root.display().to_string())
            .map_err(String::clone),
        sandbox: daemon.sandbox.clone().await.mode,
        is_demo: instance
            .is_some_and(|it| it.kind == ProviderKind::Scripted && it.script.is_none()),
        provider: (id.to_owned(), model.unwrap_or_default()),
    }
}
