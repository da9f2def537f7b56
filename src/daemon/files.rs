//! The files that the daemon keeps for itself, where no tool reaches them: the audit log and the store of sessions.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use secrecy::ExposeSecret as _;
use tokio_util::task::TaskTracker;

use crate::audit::Audit;
use crate::config::{
    AuditConfig, ClusterConfig, Config, McpConfig, StoreConfig, StorePlace, StoreSync,
};
use crate::mcp::SignIns;
use crate::message::{SessionId, Severity};
use crate::notices::{NOT_SAFE, Notices, TAKEN, To, WAITS};
use crate::protocol::event::SessionUpdated;
use crate::ready::Fatal;
use crate::sandbox::paths::{RootName, Roots, real_path};
use crate::session::Tenure;
use crate::store::postgres::Node;
use crate::store::{self, AnyStore, Growth, Health, Postgres, Sqlite, Updates};
use crate::units::format_size;

/// Returns the files, without links, and what each is.
pub(super) fn own(config: &Config) -> Vec<(PathBuf, &'static str)> {
    let audit = config.audit.iter();
    let audit = audit.map(|it| (it.path.as_path(), "the audit log"));
    let store = config.store.iter().filter_map(|it| it.place.file());
    let store = store.map(|path| (path, "the store of sessions"));
    let tokens = config.mcp.tokens_folder.iter();
    let tokens = tokens.map(|folder| (folder.as_path(), "the sign-ins at MCP servers"));
    let files = audit.chain(store).chain(tokens);
    files.map(|(path, what)| (real_path(path), what)).collect()
}

/// Returns whether tools can change a file. By its text, which is enough here: the operator's own setting, read once,
/// before any tool runs.
fn is_reached(file: &Path, roots: Option<&Roots>) -> bool {
    let real = real_path(file);
    let own = [RootName::Project, RootName::Central];
    roots.is_some_and(|roots| own.iter().any(|root| real.starts_with(roots.path(*root))))
}

/// Returns where sign-ins at MCP servers are kept; in memory alone where tools would reach the folder.
pub(super) fn sign_ins(config: &McpConfig, roots: Option<&Roots>, tasks: &TaskTracker) -> SignIns {
    let folder = config.tokens_folder.clone();
    let folder = folder.filter(|folder| {
        let reached = is_reached(folder, roots);
        if reached {
            let shown = folder.display();
            tracing::warn!(
                "sign-ins at MCP servers last until the daemon ends: tools could read {shown}"
            );
        }
        !reached
    });
    SignIns::new(config.tokens, folder, tasks.clone())
}

/// Opens the audit log, where no tool reaches it: commands may change what is in the roots.
pub(super) fn audit(config: Option<&AuditConfig>, roots: Option<&Roots>) -> Result<Audit, Fatal> {
    let Some(config) = config else {
        return Ok(Audit::default());
    };
    let shown = config.path.display();
    let hint = "set audit.path to a file outside the project and its central storage, which the daemon may write";
    if is_reached(&config.path, roots) {
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

/// Takes the file or the database that sessions are kept in. Where another daemon has the one that all of the user's have by default,
/// this one keeps nothing, and says so; why not is the error within. `port` is where it listens.
pub(super) async fn store(
    config: Option<&StoreConfig>,
    (cluster, port): (Option<&ClusterConfig>, Option<u16>),
    roots: Option<&Roots>,
) -> Result<Result<AnyStore, String>, Fatal> {
    let Some(config) = config else {
        return Ok(Err("store.enabled is false".to_owned()));
    };
    let path = match &config.place {
        StorePlace::File(path) => path,
        StorePlace::Database(url) => {
            // Whoever named it does not want a daemon without it. It is waited for, by a thread that a signal need not wait for.
            let (url, node) = (url.clone(), node(cluster, port));
            let starting = move || Postgres::start(url.expose_secret(), &node);
            let store = tokio::task::spawn_blocking(starting)
                .await
                .map_err(|error| Fatal::failed(format!("the store of sessions: {error}")))?
                .map_err(|problem| Fatal::database(&problem))?;
            return Ok(Ok(store.into()));
        }
    };
    if is_reached(path, roots) {
        return Err(Fatal::configuration(
            format!(
                "the store of sessions {} would be where tools can change it",
                path.display()
            ),
            "set store.path to a file outside the project and its central storage",
        ));
    }
    let sync = match config.sync {
        StoreSync::Full => store::Sync::Full,
        StoreSync::Normal => store::Sync::Normal,
    };
    match Sqlite::start(path, sync) {
        Ok(store) => Ok(Ok(store.into())),
        Err(problem) if config.is_named => Err(Fatal::store(&problem)),
        Err(problem @ store::Error::Newer { .. }) => Err(Fatal::store(&problem)),
        Err(problem) => {
            tracing::warn!(%problem, "sessions are not kept");
            Ok(Err(problem.to_string()))
        }
    }
}

/// Returns that sessions begin anew, where the file was damaged.
pub(super) fn begun_anew(store: &AnyStore) -> Option<String> {
    let (path, moved) = (store.shown(), store.moved_away()?.display());
    Some(format!(
        "{path} was no database; it is {moved} now, and sessions begin anew"
    ))
}

/// What users are told who are no operators.
const SAFE_AGAIN: &str =
    "what is said is safe again, but in sessions of which a notice said otherwise";
const NOT_KEPT: &str = "what this session says from now on is not kept: the store refused some of it for good, and what follows would not fit to what is there. It goes on in memory until it ends; resumed after that, it is as it was before";

/// The same where this daemon is one of several.
const REFUSED: &str = "the store refused some of what this session says for good: the session ends here, and is read anew where its client connects again; what was not answered is not kept";

/// Returns how this daemon is called to others on its database.
fn node(cluster: Option<&ClusterConfig>, port: Option<u16>) -> Node {
    Node {
        name: cluster.and_then(|it| it.name.clone()),
        url: port.and_then(|port| cluster?.url_at(port)),
        is_one_of_several: cluster.is_some(),
    }
}

/// Tells all sessions when what they say is not safe, and when it is again. In a cluster they end where another daemon may
/// have them soon; a daemon that is alone goes on with them.
pub(super) fn watch(store: &AnyStore, notices: &Notices, tenure: &Tenure) {
    let path = store.shown();
    let is_one_of_several = store.is_one_of_several();
    let (notices, tenure) = (notices.clone(), tenure.clone());
    store.watch(move |health| match health {
        Health::Failing(problem) if is_one_of_several => notices.send(
            To::Everybody(WAITS),
            Severity::Error,
            "store_failed",
            format!("{path} does not take what is said ({problem}): {WAITS}"),
        ),
        Health::Failing(problem) => notices.send(
            To::Everybody(NOT_SAFE),
            Severity::Error,
            "store_failed",
            format!(
                "what is said from now on is not safe: {path} does not take it ({problem}). It goes on in memory and is written as soon as that works again; it is lost if the daemon ends before that"
            ),
        ),
        Health::Well => notices.send(
            To::Everybody(SAFE_AGAIN),
            Severity::Info,
            "store_healed",
            format!("{path} takes what is said again, and has what was said meanwhile, but for sessions of which a notice said otherwise"),
        ),
        Health::Lapsing if is_one_of_several => {
            tracing::error!("{path} was silent for so long that others may take the sessions: they end here");
            tenure.lapse();
        }
        Health::Lapsing => {}
        Health::Ended(ended) => {
            notices.send(
                To::Everybody(TAKEN),
                Severity::Error,
                "store_failed",
                ended.to_string(),
            );
            if matches!(ended, store::Error::Taken { .. }) {
                tenure.lose();
            }
        }
        Health::NotKept { session, why } if is_one_of_several => notices.send(
            To::Session(SessionId::new(session), REFUSED),
            Severity::Error,
            "store_failed",
            format!("session {session}: {path} refused some of it for good ({why}): {REFUSED}"),
        ),
        Health::NotKept { session, why } => notices.send(
            To::Session(SessionId::new(session), NOT_KEPT),
            Severity::Error,
            "store_failed",
            format!(
                "what session {session} says from now on is not kept: {path} refused some of it for good ({why}), and what follows would not fit to what is there. It goes on in memory until it ends; resumed after that, it is as it was before"
            ),
        ),
    });
}

/// Holds the store to what the operator allows, and tells what comes of it.
pub(super) fn limit(store: &AnyStore, config: &StoreConfig, notices: &Notices, updates: &Updates) {
    let path = store.shown();
    let (notices, updates) = (notices.clone(), updates.clone());
    store.limit(config.limits, move |growth| match growth {
        Growth::Deleted {
            user,
            session,
            updated_ms,
            is_old,
        } => {
            let changed = Timestamp::from_millisecond(updated_ms).unwrap_or_default();
            let why = if is_old { "store.keep" } else { "store.max_bytes" };
            let session_id = SessionId::new(session);
            tracing::warn!(%session_id, why, "a session was deleted that changed at {changed:.3} last");
            updates.of(&user).send(SessionUpdated {
                deleted: true,
                ..store::updated(&session_id)
            });
        }
        Growth::Filling { bytes, max_bytes } => notices.send(
            To::Operators,
            Severity::Warning,
            "store_filling",
            format!(
                "{path} has {}, and may have {} (store.max_bytes): beyond that, sessions that are put away are deleted, the oldest first",
                mib(bytes),
                format_size(max_bytes)
            ),
        ),
        Growth::Full { bytes, max_bytes } => notices.send(
            To::Operators,
            Severity::Warning,
            "store_full",
            format!(
                "{path} has {}, more than {} (store.max_bytes), and no session that is put away is left to be deleted; put away or delete some, or allow more",
                mib(bytes),
                format_size(max_bytes)
            ),
        ),
    });
}

fn mib(bytes: u64) -> String {
    format!("{}MiB", bytes >> 20)
}
