//! Whatever a client, its sockets, the model and the tools do, in any order: every event seen once and in order, or a
//! gap reported; one end for each exchange, one result for each call, one settlement for each question.
//!
//! The client here does what [`crate::connection`] does with a session: attach, read the log, ask for a resync after a gap. Time
//! is paused, so nothing waits. `PROPTEST_CASES` asks for more cases.

mod client_tools;
mod documents;
mod hang;
mod judge;
mod lifetimes;

use std::collections::BTreeMap;

use futures::FutureExt as _;
use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio_util::task::TaskTracker;

use judge::judge;

use super::log::ReadResult;
use super::*;
use crate::config::{Config, TokenStore};
use crate::conversation::testing::{CONFIG, Finish, Move, Scripted, finishes, moves, tools};
use crate::exchange::memory::RulesOfUsers;
use crate::mcp::{self, Mcp};
use crate::notices::Notices;
use crate::protocol::envelope;
use crate::protocol::event::Sandbox;
use crate::provider::registry::Providers;
use crate::sandbox::spill::Spill;
use crate::tool::workspace;

/// What happens to a client.
#[derive(Clone, Debug)]
enum Act {
    /// The world goes on for so many steps of the scheduler.
    Steps(u8),
    /// Time passes.
    Pass(u16),
    /// The client reads about so many bytes.
    Read(u16),
    /// The socket breaks: of what is on its way, so many frames arrive.
    Break(u8),
    /// The client comes back, having forgotten so many frames that it had.
    Return(u8),
    /// It says something.
    Say(u8, &'static str),
    /// It says the last thing again, with the same id.
    Repeat,
    Cancel(u8, bool),
    /// It answers the question that is so many before the newest it saw.
    Answer(u8, bool),
    Close(u8),
    State,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let busy = prop::sample::select(vec!["queue", "steer", "reject"]);
    let one = prop_oneof![
        6 => (0..30_u8).prop_map(Act::Steps),
        1 => (0..20_000_u16).prop_map(Act::Pass),
        6 => (1..4_000_u16).prop_map(Act::Read),
        2 => (0..20_u8).prop_map(Act::Break),
        4 => (0..30_u8).prop_map(Act::Return),
        5 => (0..3_u8, busy).prop_map(|(who, busy)| Act::Say(who, busy)),
        1 => Just(Act::Repeat),
        1 => (0..3_u8, any::<bool>()).prop_map(|(who, queued)| Act::Cancel(who, queued)),
        5 => (0..3_u8, any::<bool>()).prop_map(|(back, yes)| Act::Answer(back, yes)),
        1 => (0..3_u8).prop_map(Act::Close),
        1 => Just(Act::State),
    ];
    prop::collection::vec(one, 0..40)
}

/// Returns what servers would be started with; none is.
fn no_servers(tasks: &TaskTracker) -> Mcp {
    let context = mcp::Context {
        registry: Arc::default(),
        everywhere: Arc::default(),
        launcher: Err("this is a test".to_owned()),
        clients: crate::http::Clients::guarded(),
        redactor: crate::telemetry::Redactor::default(),
        output_cap: 1,
        notices: Notices::default(),
        sign_ins: Arc::new(mcp::SignIns::new(TokenStore::Memory, None, tasks.clone())),
        user: String::new(),
    };
    Mcp::new(context, tasks.clone())
}

/// Returns a daemon without a port.
pub(super) fn daemon(script: Vec<(Vec<Move>, Finish)>, buffer_bytes: usize) -> Arc<Daemon> {
    let mut config = Config::clone(&CONFIG);
    config.session.buffer_bytes = buffer_bytes;
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    let provider: Arc<dyn crate::provider::Provider> =
        Arc::new(Scripted(Mutex::new(script.into())));
    Arc::new(Daemon {
        webhooks: None,
        reloadable: None,
        updates: crate::store::Updates::default(),
        quotas: crate::users::quota::Quotas::default(),
        imports: Imports::default(),
        line: Arc::default(),
        titles: Arc::new(Semaphore::new(MAX_TITLES)),
        store: None,
        rules: RulesOfUsers::new(false),
        not_kept: String::new(),
        pods_removed: std::future::ready(()).boxed().shared(),
        mcp: Arc::new(no_servers(&tasks)),
        notices: Notices::default(),
        providers: Providers::for_tests(&config, &provider),
        workspaces: Arc::new(workspace::testing::workspaces(&config, tools())),
        services: Services {
            spend: crate::spend::testing::unlimited(&config.budget),
            settings: crate::config::Current::new(config),
            locks: crate::tool::locks::Locks::default(),
            exchanges: TaskTracker::new(),
            redactor: crate::telemetry::Redactor::default(),
            audit: crate::audit::Audit::default(),
            room: crate::exchange::history::Room::default(),
            quota: Arc::default(),
            spill: Spill::new(std::env::temp_dir(), 0),
            hooks: crate::hooks::Hooks::default(),
        },
        sandbox: std::future::ready(Sandbox {
            mode: "none".to_owned(),
            paths: "process".to_owned(),
            commands: Vec::new(),
            network: "unenforced".to_owned(),
            loopback: None,
            landlock: None,
            limits: None,
        })
        .boxed()
        .shared(),
        side_requests: Arc::new(Semaphore::new(MAX_SIDE_REQUESTS)),
        operator_requests: Arc::new(Semaphore::new(MAX_SIDE_REQUESTS)),
        tasks,
        draining: CancellationToken::new(),
        drain: DrainRequest::default(),
        tenure: Tenure::new(stop.clone()),
        stop,
    })
}

/// A client and its socket, if it has one.
struct Client {
    session: Handle,
    socket: Option<Attachment>,
    /// What the writer of the socket has read of the log.
    written: u64,
    /// The last frame that the client has.
    last: u64,
    /// Every frame it ever got, by number.
    seen: BTreeMap<u64, String>,
    /// The numbers that a resync began with.
    gaps: Vec<u64>,
    asked: u32,
    said: Option<Value>,
    /// Requests that ended a call of the client, if they counted.
    outputs: Vec<String>,
    /// Since when it has no socket.
    away: Option<Instant>,
    /// Whether it came back too late.
    expired: bool,
}

impl Client {
    async fn connect(session: Handle) -> Self {
        let socket = session.attach().await;
        Self {
            session,
            socket,
            written: 0,
            last: 0,
            seen: BTreeMap::new(),
            gaps: Vec::new(),
            asked: 0,
            said: None,
            outputs: Vec::new(),
            away: None,
            expired: false,
        }
    }

    /// Reads one batch, of which `arrive` frames arrive; false where there was nothing.
    async fn read(&mut self, most: usize, arrive: usize) -> Result<bool, TestCaseError> {
        if self.socket.is_none() {
            return Ok(false);
        }
        let mut frames = Vec::new();
        match self
            .session
            .feed
            .read(self.written, most, None, &mut frames)
        {
            ReadResult::UpTo(_) => {}
            ReadResult::Gap => {
                let Some(before) = self.session.resync(self.written, None).await else {
                    return Ok(false);
                };
                self.written = before;
                self.gaps.push(before + 1);
                return Ok(true);
            }
        }
        let any = !frames.is_empty();
        for (index, frame) in frames.into_iter().enumerate() {
            self.written += 1;
            if index < arrive {
                self.take(frame.to_string())?;
            }
        }
        Ok(any)
    }

    fn take(&mut self, frame: String) -> Result<(), TestCaseError> {
        let value: Value = serde_json::from_str(&frame).unwrap();
        prop_assert_eq!(&value["seq"], self.written);
        if let Some(earlier) = self.seen.get(&self.written) {
            prop_assert_eq!(earlier, &frame, "another event of the same number");
        }
        if self.gaps.contains(&self.written) {
            prop_assert_eq!(&value["payload"]["code"], "replay_gap");
        } else {
            // Nothing is left out but where it is said.
            prop_assert!(
                self.written == self.last + 1,
                "{} after {}",
                self.written,
                self.last
            );
        }
        self.last = self.written;
        self.seen.insert(self.written, frame);
        Ok(())
    }

    async fn come_back(&mut self, forgets: u64) -> Result<(), TestCaseError> {
        let before = self.socket.take();
        self.socket = self.session.attach().await;
        let grace = CONFIG.session.resume_grace;
        let away = self
            .away
            .take()
            .map(|since| since.elapsed())
            .unwrap_or_default();
        let Some(socket) = &self.socket else {
            prop_assert!(away >= grace, "the session ended after {:?}", away);
            self.expired = true;
            return Ok(());
        };
        prop_assert!(away <= grace, "the session lived on for {:?}", away);
        prop_assert!(socket.ready.resumed);
        prop_assert!(!socket.taken_over.is_cancelled());
        if let Some(before) = before {
            prop_assert!(before.taken_over.is_cancelled(), "two sockets at once");
        }
        self.last = self.last.saturating_sub(forgets);
        self.written = self.last;
        Ok(())
    }

    async fn ask(&mut self, frame: Value) {
        let mut frame = frame;
        if frame.get("id").is_none() {
            self.asked += 1;
            frame["id"] = json!(format!("q{}", self.asked));
        }
        let request = envelope::read(&frame.to_string()).unwrap().unwrap();
        self.session.request(request).await;
        if frame["type"] == "chat:send" {
            self.said = Some(frame);
        } else if frame.get("content").is_some() {
            let id = frame["id"].as_str().unwrap();
            self.outputs.push(id.to_owned());
        }
    }

    async fn act(&mut self, act: &Act) -> Result<(), TestCaseError> {
        let name = |who: &u8| format!("c{who}");
        match act {
            Act::Steps(steps) => {
                for _ in 0..*steps {
                    tokio::task::yield_now().await;
                }
            }
            Act::Pass(millis) => {
                tokio::time::sleep(Duration::from_millis(u64::from(*millis))).await;
            }
            Act::Read(most) => drop(self.read(usize::from(*most), usize::MAX).await?),
            Act::Break(arrive) => {
                self.read(4_096, usize::from(*arrive)).await?;
                self.socket = None;
                self.away.get_or_insert_with(Instant::now);
            }
            Act::Return(forgets) => self.come_back(u64::from(*forgets)).await?,
            Act::Say(who, busy) => {
                let say = json!({"type": "chat:send", "conversationId": name(who), "content": "hi",
                                 "whenBusy": busy});
                self.ask(say).await;
            }
            Act::Repeat => {
                if let Some(said) = self.said.clone() {
                    self.ask(said).await;
                }
            }
            Act::Cancel(who, queued) => {
                let cancel =
                    json!({"type": "chat:cancel", "conversationId": name(who), "queued": queued});
                self.ask(cancel).await;
            }
            Act::Answer(back, approved) => {
                let asked = self
                    .seen
                    .values()
                    .rev()
                    .filter(|it| it.contains("chat:tool-confirm"));
                if let Some(frame) = asked.skip(usize::from(*back)).map(String::as_str).next() {
                    let frame: Value = serde_json::from_str(frame).unwrap();
                    let id = &frame["payload"]["toolId"];
                    self.ask(
                        json!({"type": "chat:tool-approve", "toolId": id, "approved": approved}),
                    )
                    .await;
                }
            }
            Act::Close(who) => {
                self.ask(json!({"type": "chat:close", "conversationId": name(who)}))
                    .await;
            }
            Act::State => self.ask(json!({"type": "session:state"})).await,
        }
        Ok(())
    }

    /// Everything that was seen, in order.
    fn events(&self) -> Vec<Event> {
        let events = self.seen.values();
        events
            .map(|frame| serde_json::from_str(frame).unwrap())
            .collect()
    }
}

async fn play(
    script: Vec<(Vec<Move>, Finish)>,
    acts: Vec<Act>,
    buffer_bytes: usize,
) -> Result<(), TestCaseError> {
    let daemon = daemon(script, buffer_bytes);
    let sessions = Sessions::new(Arc::clone(&daemon)).of(Arc::default());
    let session = sessions.create(None).await.expect("room for a session");
    let mut client = Client::connect(session).await;
    let layers = json!({"type": "session:configure", "layers": ["stream", "state", "message"]});
    client.ask(layers).await;
    client.act(&Act::Say(0, "queue")).await?;
    for act in &acts {
        client.act(act).await?;
        if client.expired {
            return all_gone(&daemon).await;
        }
    }
    // Questions lapse, what hangs runs into its limit, and the client reads to the end.
    client.come_back(0).await?;
    if client.expired {
        return all_gone(&daemon).await;
    }
    tokio::time::sleep(Duration::from_secs(24 * 3_600)).await;
    while client.read(usize::MAX, usize::MAX).await? {}
    // What it shows now is compared with what the daemon remembers; one by one, since each may be larger than the bound.
    for who in 0..3 {
        let ask = json!({"type": "chat:history", "conversationId": format!("c{who}"), "id": format!("h{who}")});
        client.ask(ask).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        while client.read(usize::MAX, usize::MAX).await? {}
    }
    client
        .ask(json!({"type": "session:state", "id": "end"}))
        .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    while client.read(usize::MAX, usize::MAX).await? {}
    judge(&client)?;
    let state: Value = serde_json::from_str(client.seen.values().next_back().unwrap()).unwrap();
    prop_assert_eq!(&state["replyTo"], "end");
    prop_assert_eq!(&state["payload"]["approvals"], &json!([]));
    for conversation in state["payload"]["conversations"].as_array().unwrap() {
        prop_assert_eq!(&conversation["state"], "idle");
        prop_assert_eq!(&conversation["queue"], &json!([]));
    }
    // Nobody comes back: the grace period ends it, with every task.
    drop(client);
    all_gone(&daemon).await
}

/// Waits until every task of every session has ended.
async fn all_gone(daemon: &Daemon) -> Result<(), TestCaseError> {
    daemon.tasks.close();
    let gone = tokio::time::timeout(Duration::from_secs(3_600), daemon.tasks.wait()).await;
    prop_assert!(gone.is_ok(), "{} tasks are left", daemon.tasks.len());
    Ok(())
}

proptest! {
    // Numbers good enough for cryptography would be a seventh of the time.
    #![proptest_config(ProptestConfig {
        rng_algorithm: proptest::test_runner::RngAlgorithm::XorShift,
        ..ProptestConfig::default()
    })]

    #[test]
    fn nothing_is_lost_and_nothing_doubled(
        script in prop::collection::vec((moves(), finishes()), 0..8),
        acts in acts(),
        buffer_bytes in prop::sample::select(vec![1_000, 6_000, 8 << 20, 8 << 20]),
    ) {
        paused().block_on(play(script, acts, buffer_bytes))?;
    }
}

fn paused() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
}
