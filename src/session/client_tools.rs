//! Tools that the client runs: which there are, and requests about them and their calls.
//!
//! They are the session's and outlive its sockets; whoever resumes it goes on with them. They do not outlive the daemon: the
//! model is offered nothing that nobody may serve.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::Session;
use super::resolve::invalid;
use crate::conversation::Command;
use crate::exchange::questions::{Action, client};
use crate::protocol::client_tools::{
    ClientApproval, ClientOutput, ClientTool as Wanted, RegisteredTool, RegistrationState,
    ToolRegister, ToolUnregister, ToolsRegistered, ToolsUnregistered,
};
use crate::protocol::event::{Event, SessionError};
use crate::protocol::{RequestId, SessionCode};
use crate::runtime;
use crate::tool::Tool;
use crate::tool::client::{
    Approval, ClientTool, Declared, MAX_DECLARED, ORIGIN, PREFIX, Shared, Undefined,
};
use crate::units::millis;

/// The most tools of a session's client: each is sent with every turn.
const MAX_TOOLS: usize = 64;

/// The tools of a session's client, by their names for the model.
#[derive(Default)]
pub(super) struct ClientTools {
    tools: BTreeMap<String, Registered>,
    /// Which socket of the session the last one is.
    socket: u64,
}

struct Registered {
    tool: Arc<ClientTool>,
    bytes: usize,
    /// The socket that registered it last.
    socket: u64,
}

impl ClientTools {
    /// Notes that another socket is on the session.
    pub(super) fn next_socket(&mut self) {
        self.socket += 1;
    }

    /// Returns them as the registry takes them.
    pub(super) fn all(&self) -> Vec<Arc<dyn Tool>> {
        let tools = self.tools.values();
        let shared = tools.map(|it| -> Arc<dyn Tool> { Arc::new(Shared(Arc::clone(&it.tool))) });
        shared.collect()
    }

    /// Takes tools up. Where one is refused, nothing is changed. Returns the answer, and the tools that the client before
    /// had and this one has not.
    fn register(
        &mut self,
        defined: Vec<(ClientTool, usize)>,
        replace: bool,
    ) -> Result<(ToolsRegistered, Vec<String>), SessionError> {
        let is_named = |name: &String| defined.iter().any(|(it, _)| it.full_name() == name);
        let removed: Vec<String> = match replace {
            true => self
                .tools
                .keys()
                .filter(|it| !is_named(it))
                .cloned()
                .collect(),
            false => Vec::new(),
        };
        let stays = |name: &String| !removed.contains(name) && !is_named(name);
        let others = self.tools.iter().filter(|(name, _)| stays(name));
        let (count, bytes) = others.fold((0, 0), |(count, bytes), (_, it)| {
            (count + 1, bytes + it.bytes)
        });
        let count = count + defined.len();
        let bytes = bytes + defined.iter().map(|(_, bytes)| bytes).sum::<usize>();
        if count > MAX_TOOLS || bytes > MAX_DECLARED {
            let message = format!(
                "field `tools`: a session has {MAX_TOOLS} tools of its client at most, of {MAX_DECLARED} bytes together, and these would be {count} of {bytes}; remove some with tool:unregister"
            );
            return Err(SessionError::new(SessionCode::TooManyTools, message));
        }
        let mut orphaned = Vec::new();
        for name in &removed {
            if let Some(before) = self.tools.remove(name) {
                before.tool.withdraw();
                if before.socket != self.socket {
                    orphaned.push(name.clone());
                }
            }
        }
        let mut tools = Vec::new();
        for (tool, bytes) in defined {
            let name = tool.full_name().to_owned();
            let timeout_ms = millis(tool.timeout());
            let state = match self.tools.get_mut(&name) {
                Some(before) if before.tool.is_same(&tool) => {
                    before.socket = self.socket;
                    RegistrationState::Unchanged
                }
                before => {
                    let state = match before {
                        Some(before) => {
                            before.tool.withdraw();
                            RegistrationState::Changed
                        }
                        None => RegistrationState::New,
                    };
                    let registered = Registered {
                        tool: Arc::new(tool),
                        bytes,
                        socket: self.socket,
                    };
                    self.tools.insert(name.clone(), registered);
                    state
                }
            };
            tools.push(RegisteredTool {
                name,
                state,
                timeout_ms,
            });
        }
        Ok((ToolsRegistered { tools, removed }, orphaned))
    }

    /// Removes tools, all where none is named; returns which.
    fn remove(&mut self, names: Option<&[String]>) -> Vec<String> {
        let is_meant = |full: &String| {
            let bare = full.strip_prefix(PREFIX).unwrap_or(full);
            names.is_none_or(|names| names.iter().any(|it| it == full || it == bare))
        };
        let removed: Vec<String> = self
            .tools
            .keys()
            .filter(|it| is_meant(it))
            .cloned()
            .collect();
        for name in &removed {
            if let Some(registered) = self.tools.remove(name) {
                registered.tool.withdraw();
            }
        }
        removed
    }
}

impl Session {
    /// Has the model offered tools of the client from the next turn on, also in the middle of an exchange.
    pub(super) async fn register_tools(
        &mut self,
        wanted: ToolRegister,
    ) -> Result<Event, SessionError> {
        let config = &self.daemon.services.config().tools;
        if !config.client.enabled {
            let message = "clients register no tools here (tools.client.enabled)";
            return Err(SessionError::new(SessionCode::Forbidden, message));
        }
        if wanted.tools.len() > MAX_TOOLS {
            let message = format!(
                "field `tools`: {} are more than {MAX_TOOLS}",
                wanted.tools.len()
            );
            return Err(SessionError::new(SessionCode::TooManyTools, message));
        }
        let mut names: Vec<&str> = wanted.tools.iter().map(|it| it.name.as_str()).collect();
        names.sort_unstable();
        if let Some([twice, _]) = names.array_windows().find(|[one, other]| one == other) {
            return Err(invalid(format!("field `tools`: {twice:?} is there twice")));
        }
        // Schemas are compiled, which takes the larger ones a while.
        let defined = runtime::block_in_place(|| {
            let tools = wanted.tools.into_iter().enumerate();
            let defined = tools.map(|(index, tool)| {
                let declared = declared(tool);
                let bytes = declared.bytes();
                let tool = declared.define(&config.client, config.output_cap);
                tool.map(|tool| (tool, bytes))
                    .map_err(|why| refused(index, why))
            });
            defined.collect::<Result<Vec<_>, _>>()
        })?;
        let (answer, orphaned) = self.client_tools.register(defined, wanted.replace)?;
        self.offer_client_tools();
        tracing::info!(
            tools = answer.tools.len(),
            removed = answer.removed.len(),
            "tools of the client registered"
        );
        if !orphaned.is_empty() {
            for id in self.conversations.keys() {
                self.command(id, Command::GiveUpCalls(orphaned.clone()))
                    .await;
            }
        }
        Ok(Event::ToolRegisterResult(answer))
    }

    /// Has tools of the client offered no more. Its calls that were handed out stay open.
    pub(super) fn unregister_tools(
        &mut self,
        wanted: &ToolUnregister,
    ) -> Result<Event, SessionError> {
        let removed = self.client_tools.remove(wanted.names.as_deref());
        self.offer_client_tools();
        Ok(Event::ToolUnregisterResult(ToolsUnregistered { removed }))
    }

    fn offer_client_tools(&self) {
        self.tools_of_tasks.replace(ORIGIN, self.client_tools.all());
    }

    /// Passes an output of the client on to the conversation whose call it is.
    pub(super) async fn client_output(&self, output: ClientOutput, id: Option<&RequestId>) {
        if self.pass_on(Action::Output(output.clone()), id).await {
            return;
        }
        let answer = client::late(&output, &self.shared);
        self.answer(id, answer.unwrap_or_else(Event::SessionError));
    }
}

fn declared(wanted: Wanted) -> Declared {
    Declared {
        name: wanted.name,
        description: wanted.description,
        input_schema: wanted.input_schema,
        read_only: wanted.read_only,
        approval: match wanted.approval {
            ClientApproval::Trust => Approval::Trust,
            ClientApproval::Always => Approval::Always,
            ClientApproval::Never => Approval::Never,
        },
        timeout: wanted.timeout_ms.map(Duration::from_millis),
        interactive: wanted.interactive,
    }
}

fn refused(index: usize, why: Undefined) -> SessionError {
    match why {
        Undefined::Invalid(field, problem) => {
            invalid(format!("field `tools[{index}].{field}`: {problem}"))
        }
        Undefined::Forbidden(field, problem) => SessionError::new(
            SessionCode::Forbidden,
            format!("field `tools[{index}].{field}`: {problem}"),
        ),
    }
}
