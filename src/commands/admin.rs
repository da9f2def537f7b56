//! `outrigger admin`: asks a running daemon who works where, what runs and what it costs; has it end in order.

mod table;

use std::fmt;
use std::process::ExitCode;
use std::time::Duration;

use reqwest::{Client, Method, StatusCode, Url};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Builder;

use super::{complain, configured, exit_code, print};
use crate::address::Address;
use crate::arguments::{AdminArguments, AdminCommand, DrainArguments};
use crate::config;
use crate::http::{self, Clients};
use crate::protocol::admin::{DrainWanted, Draining, NodesReport, SessionsReport, UsersReport};
use crate::units::format_duration;

/// How long the daemon may take for an answer.
const LIMIT: Duration = Duration::from_secs(15);

/// How often a daemon that drains is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The most bytes of an answer: a row for each of the sessions that a daemon may have, many times over.
const ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// Where a daemon says how it stands itself, without asking others.
const OWN_NODE: &str = "admin/nodes?here=1";

/// A daemon that runs.
struct Daemon {
    client: Client,
    base: Url,
    token: SecretString,
}

/// Why nothing came of it.
enum Problem {
    /// Nobody answers there.
    Nobody(String),
    Other(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nobody(text) | Self::Other(text) => f.write_str(text),
        }
    }
}

/// Does it. What goes wrong is said on stderr.
pub fn admin(command: &AdminCommand) -> ExitCode {
    let runtime = Builder::new_current_thread().enable_all().build();
    let done = match runtime {
        Ok(runtime) => {
            let done = runtime.block_on(run(command));
            // A name that is still being looked up is not waited for.
            runtime.shutdown_background();
            done
        }
        Err(error) => Err(Problem::Other(format!("no runtime: {error}"))),
    };
    match done {
        Ok(text) => exit_code(print(&text).is_ok()),
        Err(problem) => {
            complain(&problem.to_string());
            exit_code(false)
        }
    }
}

async fn run(command: &AdminCommand) -> Result<String, Problem> {
    match command {
        AdminCommand::Sessions(arguments) => {
            show::<SessionsReport>(arguments, "admin/sessions", table::sessions).await
        }
        AdminCommand::Users(arguments) => {
            show::<UsersReport>(arguments, "admin/users", table::users).await
        }
        AdminCommand::Nodes(arguments) => {
            show::<NodesReport>(arguments, "admin/nodes", table::nodes).await
        }
        AdminCommand::Drain(arguments) => drain(arguments).await,
    }
}

/// Returns a report as it is printed.
async fn show<R: Serialize + DeserializeOwned>(
    arguments: &AdminArguments,
    path: &str,
    table: fn(&R) -> String,
) -> Result<String, Problem> {
    let daemon = Daemon::find(arguments).await?;
    let report: R = daemon.ask(Method::GET, path, None).await?;
    Ok(match arguments.json {
        true => json(&report),
        false => table(&report),
    })
}

fn json(report: &impl Serialize) -> String {
    // Words and numbers can always be written.
    let text = serde_json::to_string_pretty(report).unwrap_or_default();
    text + "\n"
}

/// Has the daemon end, and waits for that.
async fn drain(arguments: &DrainArguments) -> Result<String, Problem> {
    let daemon = Daemon::find(&arguments.daemon).await?;
    let within_ms = arguments
        .within
        .map(|it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX));
    let wanted = DrainWanted { within_ms };
    let body = serde_json::to_vec(&wanted).unwrap_or_default();
    let draining: Draining = daemon.ask(Method::POST, "admin/drain", Some(body)).await?;
    let Draining { within_ms, running } = draining;
    let within = format_duration(Duration::from_millis(within_ms));
    complain(&format!(
        "it takes nothing new; {}, for {within} at most",
        runs(running)
    ));
    if !arguments.no_wait {
        daemon.wait_for_end(running).await?;
    }
    Ok(match (arguments.daemon.json, arguments.no_wait) {
        (true, _) => json(&draining),
        (false, true) => String::new(),
        (false, false) => "it has ended\n".to_owned(),
    })
}

fn runs(running: usize) -> String {
    match running {
        0 => "nothing runs".to_owned(),
        1 => "1 exchange runs".to_owned(),
        many => format!("{many} exchanges run"),
    }
}

impl Daemon {
    /// Returns the daemon that is named, or that of the configuration.
    async fn find(arguments: &AdminArguments) -> Result<Self, Problem> {
        let mut sources = arguments.config.sources();
        sources.token_file.clone_from(&arguments.token_file);
        let loaded = config::load(&sources);
        let loaded = loaded.map_err(|errors| Problem::Other(errors.to_string()))?;
        let address = match &arguments.url {
            Some(url) => url.to_owned(),
            None => format!("http://{}", configured(&loaded).map_err(Problem::Other)?),
        };
        let address = Address::parse(&address).map_err(Problem::Other)?;
        let base = address.base();
        let token = address.token.or(loaded.token).ok_or_else(|| {
            Problem::Other(
                "the daemon's token is not known: put it into OUTRIGGER_TOKEN, or name a file that has it with --token-file"
                    .to_owned(),
            )
        })?;
        let client = Clients::default().get(base.as_str(), None).await;
        let client = client.map_err(|error| Problem::Other(error.to_string()))?;
        Ok(Self {
            client,
            base,
            token,
        })
    }

    /// Asks it something.
    async fn ask<R: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<R, Problem> {
        let base = self.base.as_str();
        let other = |what: &dyn fmt::Display| Problem::Other(format!("{base}{path}: {what}"));
        let url = self.base.join(path).map_err(|error| other(&error))?;
        let request = self
            .client
            .request(method, url)
            .timeout(LIMIT)
            .bearer_auth(self.token.expose_secret());
        let request = match body {
            Some(body) => request
                .header("content-type", "application/json")
                .body(body),
            None => request,
        };
        let answer = request.send().await.map_err(|error| {
            let is_nobody = error.is_connect();
            let error = error.without_url();
            match is_nobody {
                true => Problem::Nobody(format!(
                    "no daemon answers at {base}; start it, or name another address with --url"
                )),
                false => other(&error),
            }
        })?;
        let status = answer.status();
        let body = http::body(answer, ANSWER_BYTES).await;
        let body = body.map_err(|error| other(&error.without_url()))?;
        if !body.is_whole {
            return Err(other(&"the answer is longer than any of a daemon"));
        }
        let text = body.bytes;
        if !status.is_success() {
            return Err(other(&refusal(status, &text)));
        }
        serde_json::from_slice(&text).map_err(|error| other(&error))
    }

    /// Waits until it has ended, and says how many exchanges still run whenever that is another number.
    async fn wait_for_end(&self, mut running: usize) -> Result<(), Problem> {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let report: NodesReport = match self.ask(Method::GET, OWN_NODE, None).await {
                Ok(report) => report,
                Err(Problem::Nobody(_)) => return Ok(()),
                // It was asked in its last moment.
                Err(_) if self.is_gone().await => return Ok(()),
                Err(problem) => return Err(problem),
            };
            let now = report.nodes.iter().filter_map(|node| node.running).sum();
            if now != running {
                running = now;
                complain(&runs(running));
            }
        }
    }

    async fn is_gone(&self) -> bool {
        let again = self.ask::<NodesReport>(Method::GET, OWN_NODE, None);
        matches!(again.await, Err(Problem::Nobody(_)))
    }
}

/// Returns why a daemon refuses, in its own words where it has some.
fn refusal(status: StatusCode, body: &[u8]) -> String {
    let body: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let message = body.as_ref().and_then(|it| it.get("message")?.as_str());
    match message {
        // Its own advice is for sockets.
        Some(message) if message.starts_with("the token is missing or wrong") => "it does not take the token: put the right one into OUTRIGGER_TOKEN, or name a file that has it with --token-file".to_owned(),
        Some(message) => message.to_owned(),
        None => format!("it answered {status}"),
    }
}
