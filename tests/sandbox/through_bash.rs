//! Lines of bash as a model has them run: prepared, classified, masked and run by the tool itself.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use outrigger::config::{
    BashConfig, BashLimits, ExposePolicy, GitPolicy, NetworkPolicy, PortList, SandboxPolicy,
};
use outrigger::message::Part;
use outrigger::sandbox::Mode;
use outrigger::sandbox::paths::Roots;
use outrigger::tool::bash::bash;
use outrigger::tool::exec::Exec;
use outrigger::tool::program::Commands;
use outrigger::tool::{Known, Output, Run, Tool};
use serde_json::json;

use crate::attempts::{Targets, on_files, on_processes, on_sockets};
use crate::support::{World, as_ordinary_user};

/// Bytes of output that are kept.
const CAP: usize = 100 * 1024;

/// How long a line may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a line by the tool and returns what the model would read.
async fn run(world: &World, mode: Mode, line: &str) -> String {
    run_known(world, mode, line, &()).await
}

/// The same, when it is known that the call began.
async fn run_known(world: &World, mode: Mode, line: &str, known: &dyn Known) -> String {
    let sandbox = world.sandbox(mode);
    assert_eq!(sandbox.report().await.mode, mode);
    let home = world.home();
    let central = world.outside().join("central");
    let roots = Roots::open(&world.project(), &central, Some(&home)).unwrap();
    let parent = [
        (
            "PATH",
            "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin".to_owned(),
        ),
        ("HOME", home.display().to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value));
    let exec = Exec::new(sandbox, Arc::new(roots), parent, &[], CAP);
    let config = BashConfig {
        parallel: false,
        enabled: true,
        timeout: PATIENCE,
        max_timeout: PATIENCE,
        network: NetworkPolicy::Off,
        ports: PortList::Any,
        hosts: Vec::new(),
        sandbox: SandboxPolicy::Auto,
        git: GitPolicy::Read,
        tmp_size: outrigger::sandbox::PRIVATE_BYTES,
        read_only: Vec::new(),
        read_write: Vec::new(),
        caches: Vec::new(),
        expose: ExposePolicy::Off,
        limits: BashLimits {
            memory: None,
            cpu: None,
            processes: 512,
            file_size: 1 << 30,
            disk: outrigger::sandbox::POD_BYTES,
        },
    };
    let tool = bash(Commands::new(exec, config, Some(home)));
    let input = json!({ "command": line });
    let call = tool.prepare(input.as_object().unwrap()).ok().unwrap();
    let output = call
        .run(Run {
            emit: &|_, _| {},
            cancel: tokio_util::sync::CancellationToken::new(),
            timeout: PATIENCE,
            known,
            seen: &Arc::default(),
            redactor: &outrigger::telemetry::Redactor::default(),
            quota: &Arc::default(),
            keep: &(Arc::new(()) as Arc<dyn outrigger::tool::undo::Keep>),
            pod: &std::sync::OnceLock::new(),
            background: None,
            visible: Arc::new(|_| true),
            user: None,
            owner: "",
            tasks: None,
        })
        .await
        .unwrap();
    output
        .content
        .iter()
        .map(|part| match part {
            Part::Text { text, .. } => text.clone(),
            _ => String::new(),
        })
        .collect()
}

#[tokio::test]
async fn the_battery() {
    let mut wrong = Vec::new();
    let attempts = [on_files(), on_processes(), on_sockets()];
    for attempt in attempts.into_iter().flatten() {
        for mode in [Mode::Fallback, Mode::Full] {
            let mut targets = Targets::new();
            let line = targets.aim(&attempt);
            let output = run(&targets.world, mode, &line).await;
            if (attempt.escaped)(&mut targets, &output) && mode >= attempt.stopped_from {
                wrong.push(format!("{} gets through in {mode}: {output}", attempt.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_battery_as_an_ordinary_user() {
    as_ordinary_user(&["through_bash::the_battery"]);
}

/// A disk that takes longer to learn that a call began than what was looked at for it stays fresh. The user writes a secret
/// meanwhile; or it does not learn it at all.
struct SlowDisk {
    secret: std::path::PathBuf,
    learns: bool,
}

impl Known for SlowDisk {
    fn known(&self) -> BoxFuture<'_, Result<(), Box<Output>>> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(400)).await;
            std::fs::write(&self.secret, "TOKEN=just-written").unwrap();
            match self.learns {
                true => Ok(()),
                false => Err(Box::new(Output::error("nobody knows"))),
            }
        })
    }
}

#[tokio::test]
async fn a_secret_that_came_while_the_disk_was_slow_is_hidden() {
    let world = World::new();
    for learns in [true, false] {
        let disk = SlowDisk {
            secret: world.project().join(".env.late"),
            learns,
        };
        std::fs::remove_file(&disk.secret).unwrap_or_default();
        let line = "cat .env.late; touch ran; echo done";
        let output = run_known(&world, Mode::Full, line, &disk).await;
        assert!(!output.contains("just-written"), "{output}");
        let ran = world.project().join("ran");
        assert_eq!(ran.exists(), learns, "{output}");
        assert!(
            output.contains(if learns { "done" } else { "nobody knows" }),
            "{output}"
        );
        std::fs::remove_file(ran).unwrap_or_default();
    }
}
