//! Checks of MCP servers that are reached over HTTP.

use std::time::Duration;

use futures::future::join_all;
use reqwest::header::ACCEPT;
use secrecy::ExposeSecret as _;

use super::Machine;
use super::finding::{Finding, State};
use crate::config::{HttpServer, McpTransport};

/// How long an endpoint may take to say anything.
const TIME: Duration = Duration::from_secs(5);

/// Whether somebody is there who lets us in. Nothing is begun: a session is not asked for.
pub(super) async fn endpoints(machine: &Machine) -> Vec<Finding> {
    let servers = machine.loaded.config.mcp.servers.iter();
    let findings = servers.filter_map(|(name, server)| match &server.transport {
        McpTransport::Http(server) => Some(tried(machine, name, server)),
        McpTransport::Stdio(_) => None,
    });
    join_all(findings).await
}

async fn tried(machine: &Machine, name: &str, server: &HttpServer) -> Finding {
    let url = server.url.as_str();
    let response = async {
        let client = machine.clients.get(url, None).await;
        let client = client.map_err(|error| error.to_string())?;
        let mut request = client.get(url).header(ACCEPT, "text/event-stream");
        for (header, value) in &server.headers {
            request = request.header(header, value.expose_secret());
        }
        match request.send().await {
            Ok(answer) => Ok(answer.status().as_u16()),
            Err(error) if error.is_connect() => Err("cannot be reached".to_owned()),
            Err(_) => Err("broke off its answer".to_owned()),
        }
    };
    let found = |state, text: &str| Finding::new("mcp", state, format!("{name}: {url} {text}"));
    let failed = |text: &str| found(State::Failed, text);
    let response = tokio::time::timeout(TIME, response).await;
    match response.unwrap_or_else(|_| Err(format!("did not answer within {} s", TIME.as_secs()))) {
        Ok(status @ (401 | 403)) => failed(&format!("refuses us ({status})")).advise(format!(
            "put a token into mcp.servers.{name}.headers, e.g. Authorization"
        )),
        Ok(404) => failed("has nothing at this path (404)")
            .advise(format!("correct mcp.servers.{name}.url; many end in /mcp")),
        Ok(status @ 500..) => {
            failed(&format!("fails (status {status})")).advise("look at that server's own log")
        }
        Ok(_) => found(State::Ok, "answers"),
        Err(why) => failed(&why).advise(format!("start it, or correct mcp.servers.{name}.url")),
    }
}
