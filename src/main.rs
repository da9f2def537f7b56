//! The `outrigger` program: arguments, configuration, logging, then the daemon or one of the commands.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::io::{BufRead as _, IsTerminal as _};
use std::process::ExitCode;
use std::time::Duration;

use outrigger::arguments::{
    AcpArguments, Arguments, Command, ConfigCommand, ReadyForm, RequiredSandbox, ServeArguments,
    Unread,
};
use outrigger::config::{HINT, Loaded, Sources, load};
use outrigger::daemon::{self, Options, Outcome};
use outrigger::process::EnvironmentBlock;
use outrigger::ready::{Fatal, complain, exit};
use outrigger::sandbox::environment::is_secret;
#[cfg(target_os = "linux")]
use outrigger::sandbox::helper::Split;
use outrigger::sandbox::{Mode, Zygote};
use outrigger::telemetry::{self, LogGuard, Redactor, traces};
use outrigger::{chat, commands, lifecycle, process};
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

/// Threads that run tasks. What takes long or blocks has threads of its own, and a delta costs 4 µs: one thread relays
/// 200,000 a second. With two, each delta's way from task to task woke the other thread, which cost more than it
/// brought: `benches/README.md` has the figures.
const WORKERS: usize = 1;

/// How long tasks that are left may take to be dropped, with the programs and folders that they have. What still blocks a thread,
/// a walk through a large tree, is not waited for longer.
const LAST_DROPS: Duration = Duration::from_millis(50);

fn main() -> ExitCode {
    // Before anything else: the helper must be single-threaded and owns no more than the standard descriptors.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|argument| argument == outrigger::sandbox::HELPER_ARGUMENT)
    {
        return outrigger::sandbox::helper::main();
    }
    let block = process::harden();
    // Nothing is in memory yet that helpers should not begin with, but arguments and environment.
    #[cfg(target_os = "linux")]
    let zygote = match split(&block) {
        Some(Split::Helper) => {
            // It is the way to the daemon's memory.
            drop(block);
            return match process::erase_arguments("outrigger __sandbox-exec") {
                true => outrigger::sandbox::helper::main(),
                false => ExitCode::FAILURE,
            };
        }
        Some(Split::Daemon(zygote)) => Some(zygote),
        None => None,
    };
    #[cfg(not(target_os = "linux"))]
    let zygote = None;
    let line: Vec<_> = std::env::args_os().collect();
    let arguments = match Arguments::read(&line) {
        Ok(arguments) => arguments,
        Err(unread) => return misused(&unread),
    };
    match arguments.into_command() {
        Command::Serve(arguments) => {
            let tell = |fatal: &Fatal| fatal.tell(is_for_person(&arguments));
            told(tell, |log| serve(&arguments, block, zygote, log))
        }
        // stdout is the protocol's.
        Command::Acp(arguments) => {
            let tell = |fatal: &Fatal| complain(&fatal.text());
            told(tell, |log| acp(&arguments, block, zygote, log))
        }
        Command::Chat(arguments) => chat::main(&arguments),
        Command::Run(arguments) => chat::run(&arguments),
        Command::Doctor(arguments) => commands::doctor(&arguments),
        Command::Schema(arguments) => commands::schema(&arguments),
        Command::Config(ConfigCommand::Show(arguments)) => commands::show(&arguments),
        Command::Sessions(command) => commands::sessions(&command),
        Command::Admin(command) => commands::admin(&command),
        Command::Token(command) => commands::token(&command),
        Command::Healthcheck(arguments) => commands::healthcheck(&arguments),
    }
}

/// Makes a fork of this program what the helpers of a daemon's commands are made of, where it may be a daemon by its first
/// argument, and arguments and environment can be erased in a fork, as they can in this process. Where it is one without
/// that, or the system refuses, the daemon executes what they are made of; where it is none, the fork ends with it.
#[cfg(target_os = "linux")]
fn split(block: &EnvironmentBlock) -> Option<Split> {
    const SAY_AND_END: [&str; 4] = ["-h", "--help", "-V", "--version"];
    let first = std::env::args_os().nth(1).unwrap_or_default();
    let may_be_daemon = match first.as_encoded_bytes().starts_with(b"-") {
        true => SAY_AND_END.iter().all(|option| first != *option),
        false => ["", "serve", "acp"].iter().any(|command| first == *command),
    };
    let split = outrigger::sandbox::helper::split;
    (may_be_daemon && block.can_be_erased()).then(split)?.ok()
}

/// Says what is wrong with the arguments, or what was asked of them; to who waits for the daemon's line, there too.
fn misused(Unread { error, is_serve }: &Unread) -> ExitCode {
    // A person reads it on stderr, where clap says it at the end.
    let is_for_program = !std::io::stdout().is_terminal();
    if error.use_stderr() && is_for_program && *is_serve {
        let text = error.render().to_string();
        // The first paragraph; which arguments it is about may stand below its first line.
        let lines = text.lines().take_while(|line| !line.is_empty());
        let message = lines.map(str::trim).collect::<Vec<_>>().join(" ");
        let hint = "`outrigger --help` lists the commands, and the arguments of the daemon";
        Fatal::configuration(message.trim_start_matches("error: "), hint).tell(false);
    }
    error.exit()
}

/// Runs the daemon, and has it told why it did not go on where it did not.
fn told(
    tell: impl FnOnce(&Fatal),
    run: impl FnOnce(&mut Option<LogGuard>) -> Result<Outcome, Fatal>,
) -> ExitCode {
    // Ends after the last line, which says why.
    let mut log = None;
    match run(&mut log) {
        Ok(Outcome::Kept) => ExitCode::from(exit::OK),
        Ok(Outcome::NotKept) => ExitCode::from(exit::NOT_KEPT),
        Err(fatal) => {
            tell(&fatal);
            ExitCode::from(fatal.exit)
        }
    }
}

/// Reads the configuration and begins to log; returns the spans that end too, where they are to be sent.
fn begin(
    sources: &Sources,
    redactor: &Redactor,
    log: &mut Option<LogGuard>,
) -> Result<(Loaded, Option<traces::Ended>), Fatal> {
    let loaded = load(sources).map_err(|errors| Fatal::configuration(errors.to_string(), HINT))?;
    let level = std::env::var("RUST_LOG").unwrap_or_else(|_| loaded.config.log.level.clone());
    let format = loaded.config.log.format;
    let sends_traces = loaded.config.otlp.as_ref().is_some_and(|it| it.traces);
    let (sink, ended) = sends_traces.then(traces::queue).unzip();
    let begun = telemetry::init(&level, format, redactor.clone(), sink)
        .map_err(|error| Fatal::configuration(error.to_string(), "change log.level or RUST_LOG"))?;
    *log = Some(begun);
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    Ok((loaded, ended))
}

/// Whether a person reads stdout, and not a program.
fn is_for_person(arguments: &ServeArguments) -> bool {
    match arguments.ready {
        Some(form) => form == ReadyForm::Text,
        None => std::io::stdout().is_terminal(),
    }
}

fn serve(
    arguments: &ServeArguments,
    block: EnvironmentBlock,
    zygote: Option<Zygote>,
    log: &mut Option<LogGuard>,
) -> Result<Outcome, Fatal> {
    let mut sources = Sources::of_process();
    arguments.apply(&mut sources);
    let redactor = Redactor::default();
    let (loaded, spans) = begin(&sources, &redactor, log)?;
    let stdin_token = arguments.token_stdin.then(token_from_stdin).transpose()?;
    let stdin_closed = CancellationToken::new();
    if lifecycle::stdin_is_a_pipe() {
        lifecycle::watch_stdin(stdin_closed.clone())
            .map_err(|error| Fatal::failed(format!("stdin cannot be watched: {error}")))?;
    }
    let options = Options {
        token: stdin_token.or(loaded.token),
        ready_file: arguments.ready_file.clone(),
        is_for_person: is_for_person(arguments),
        parent_pid: arguments.parent_pid,
        stdin_closed,
        require_sandbox: arguments.require_sandbox.map(|least| match least {
            RequiredSandbox::Full => Mode::Full,
            RequiredSandbox::Fallback => Mode::Fallback,
        }),
        environment: environment(),
        home: sources.home.clone(),
        redactor,
        warnings: loaded.warnings,
        sources: Some((sources, loaded.values)),
        spans,
        zygote,
    };
    run(block, daemon::run(loaded.config, options))
}

/// Serves an editor.
fn acp(
    arguments: &AcpArguments,
    block: EnvironmentBlock,
    zygote: Option<Zygote>,
    log: &mut Option<LogGuard>,
) -> Result<Outcome, Fatal> {
    let mut sources = Sources::of_process();
    arguments.apply(&mut sources);
    let redactor = Redactor::default();
    let (loaded, spans) = begin(&sources, &redactor, log)?;
    let options = Options {
        environment: environment(),
        home: sources.home.clone(),
        redactor,
        sources: Some((sources, loaded.values)),
        spans,
        zygote,
        ..Options::default()
    };
    run(block, daemon::run_agent(loaded.config, options))
}

fn run(
    block: EnvironmentBlock,
    daemon: impl Future<Output = Result<Outcome, Fatal>>,
) -> Result<Outcome, Fatal> {
    // All of it was read by now but what says which proxy to use, which the HTTP client reads by itself.
    block.forget(|name, value| {
        !name.to_ascii_uppercase().ends_with("_PROXY") && is_secret(name, value)
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .map_err(|error| Fatal::failed(format!("no runtime: {error}")))?;
    let ended = runtime.block_on(daemon);
    runtime.shutdown_timeout(LAST_DROPS);
    ended
}

/// The daemon's own environment, of which commands are given little.
fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// Reads the token from the first line of stdin; the rest is left to whoever watches for its end.
fn token_from_stdin() -> Result<SecretString, Fatal> {
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    let token = line.trim();
    if read.is_err() || token.is_empty() {
        return Err(Fatal::configuration(
            "--token-stdin: the first line of stdin is no token",
            "write the token and a line end to the daemon's stdin",
        ));
    }
    Ok(SecretString::from(token))
}
