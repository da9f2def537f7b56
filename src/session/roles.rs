//! Several sockets on a session: who drives, who approves, who looks on.
//!
//! The driver is the session's client: its answers are numbered events, and the session waits for it. Others read the
//! same events, and what they ask is answered to them alone, so that they cost nobody a number. A socket without a role
//! drives, and throws out the one before.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio_util::sync::CancellationToken;

use super::handle::{AttachRefused, Attachment, Entrance};
use super::{Session, Transfers};
use crate::protocol::command::Command;
use crate::protocol::envelope::{SocketId, Timestamp};
use crate::protocol::event::{Event, SessionError};
use crate::protocol::queue::QueueAction;
use crate::protocol::roles::{SessionRoles, SocketRole, TakenOver};
use crate::protocol::{Request, RequestId, SessionCode};
use crate::telemetry::metrics;

/// The most sockets of a session besides its driver.
const MAX_FURTHER: usize = 64;

/// What the session holds of one socket.
pub(super) struct Socket {
    /// Its name, where it was given a role.
    pub(super) id: Option<SocketId>,
    role: SocketRole,
    /// The role that its token allows.
    most: SocketRole,
    /// Fires when another one takes its place.
    pub(super) taken_over: CancellationToken,
    /// Fires when it is gone.
    pub(super) disconnected: CancellationToken,
}

/// Returns a name that no other socket has.
pub(super) fn next_id() -> SocketId {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    SocketId(NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Returns the least role that may ask for this.
fn needed(command: &Command) -> SocketRole {
    match command {
        Command::SessionPing(_)
        | Command::SessionState(_)
        | Command::SessionStatus(_)
        | Command::SessionTakeOver(_)
        | Command::SessionResume(_)
        | Command::SessionOpen(_)
        | Command::SessionList(_)
        | Command::SessionExport(_)
        | Command::ChatHistory(_)
        | Command::ApprovalList(_)
        | Command::ProviderList(_)
        | Command::ModelList(_)
        | Command::ToolList(_)
        | Command::WorkflowList(_)
        | Command::ToolStatus(_)
        | Command::ToolOutput(_)
        | Command::ToolHistory(_)
        | Command::ToolMetrics(_)
        | Command::ToolExport(_)
        | Command::UsageReport(_)
        | Command::FilesChanges(_)
        | Command::McpList(_) => SocketRole::Observer,
        Command::ChatQueue(queue) if queue.action == QueueAction::List => SocketRole::Observer,
        Command::ChatToolApprove(_)
        | Command::ChatToolInput(_)
        | Command::ChatBudgetApprove(_)
        | Command::ChatToolExtend(_)
        | Command::ChatCancel(_)
        | Command::ToolCancel(_) => SocketRole::Approver,
        _ => SocketRole::Driver,
    }
}

impl Session {
    /// Takes a request of a socket, if that may ask for it; else answers that it may not. What is answered to that socket
    /// alone is marked so.
    pub(super) fn admitted(
        &mut self,
        mut request: Request,
        from: Option<SocketId>,
    ) -> Option<Request> {
        let Some(from) = from else {
            return Some(request);
        };
        let is_driver = self.driver.as_ref().is_some_and(|it| it.id == Some(from));
        let socket = self.sockets().find(|it| it.id == Some(from))?;
        let (role, most) = (socket.role, socket.most);
        request.id = match is_driver {
            true => request.id.map(|id| id.of(from)),
            false => Some(RequestId::apart(request.id, from)),
        };
        let needed = needed(&request.command);
        if role >= needed {
            return Some(request);
        }
        let further = match most >= needed {
            true => "session:take-over makes it the driver",
            false => "its token allows no more",
        };
        let message = format!(
            "this socket is the session's {}, and this takes its {}; {further}",
            role.word(),
            needed.word(),
        );
        let error = SessionError::new(SessionCode::Forbidden, message);
        self.answer(request.id.as_ref(), Event::SessionError(error));
        None
    }

    /// Puts a socket on the session.
    pub(super) fn attach(&mut self, entrance: Entrance) -> Result<Attachment, AttachRefused> {
        let Entrance {
            role,
            most,
            take_over,
        } = entrance;
        if role == Some(SocketRole::Driver) && self.driver.is_some() && !take_over {
            return Err(AttachRefused::Driven);
        }
        if role.is_some() && self.further.len() >= MAX_FURTHER {
            return Err(AttachRefused::Full);
        }
        let (taken_over, disconnected) = (CancellationToken::new(), CancellationToken::new());
        let id = role.map(|_| next_id());
        let socket = Socket {
            id,
            role: role.unwrap_or(SocketRole::Driver),
            most,
            taken_over: taken_over.clone(),
            disconnected: disconnected.clone(),
        };
        let too_slow = id.map(|id| self.feed.log().watch(id));
        match socket.role {
            SocketRole::Driver => self.drive(socket),
            SocketRole::Approver | SocketRole::Observer => self.further.push(socket),
        }
        self.has_roles |= role.is_some();
        self.settle_presence();
        let attachment = Attachment {
            _on_disconnect: disconnected.drop_guard(),
            taken_over,
            too_slow: too_slow.unwrap_or_default(),
            id,
            ready: self.ready_now(),
        };
        self.tell_roles(id);
        Ok(attachment)
    }

    /// Has a socket be the driver. One that drove and has a role approves from now on, where another one with a role takes
    /// its place; else it goes.
    fn drive(&mut self, socket: Socket) {
        let has_role = socket.id.is_some();
        let before = self.driver.replace(socket);
        if self.had_socket {
            metrics::resumed(before.is_some());
        }
        self.had_socket = true;
        self.client_tools.next_socket();
        let Some(before) = before else {
            return;
        };
        self.transfers = Transfers::default();
        self.daemon.mcp.end_own(&self.shared.id);
        match before.id.filter(|_| has_role) {
            Some(id) => {
                self.further.push(Socket {
                    role: SocketRole::Approver,
                    ..before
                });
                self.tell_role(id, SocketRole::Approver);
            }
            None => {
                before.taken_over.cancel();
                self.forget(&before);
            }
        }
    }

    /// Has the socket that asks be the driver, and answers.
    pub(super) fn take_over(&mut self, id: Option<&RequestId>) {
        let from = id.and_then(RequestId::socket);
        let is_it = |socket: &Socket| from.is_some() && socket.id == from;
        let done = Event::SessionTakeOverResult(TakenOver {
            role: SocketRole::Driver,
        });
        let Some(at) = self.further.iter().position(is_it) else {
            // It drives already.
            return self.answer(id, done);
        };
        if self
            .further
            .iter()
            .any(|it| is_it(it) && it.most < SocketRole::Driver)
        {
            let message =
                "this socket's token does not let it drive; connect with the daemon's own token";
            let error = SessionError::new(SessionCode::Forbidden, message);
            return self.answer(id, Event::SessionError(error));
        }
        self.answer(id, done);
        let socket = self.further.remove(at);
        self.drive(Socket {
            role: SocketRole::Driver,
            ..socket
        });
        if let Some(from) = from {
            self.tell_role(from, SocketRole::Driver);
        }
        self.settle_presence();
        self.tell_roles(None);
    }

    /// Takes those off that are gone.
    pub(super) fn leave(&mut self) {
        let is_gone = |socket: &Socket| socket.disconnected.is_cancelled();
        if let Some(driver) = self.driver.take_if(|it| is_gone(it)) {
            self.transfers = Transfers::default();
            self.daemon.mcp.end_own(&self.shared.id);
            self.forget(&driver);
        }
        let (gone, here) = std::mem::take(&mut self.further)
            .into_iter()
            .partition::<Vec<_>, _>(|it| is_gone(it));
        self.further = here;
        for socket in &gone {
            self.forget(socket);
        }
        self.settle_presence();
        self.tell_roles(None);
    }

    fn forget(&self, socket: &Socket) {
        if let Some(id) = socket.id {
            self.feed.log().unwatch(id);
        }
    }

    /// Returns whether somebody is there who could answer.
    pub(super) fn is_attended(&self) -> bool {
        self.driver.is_some()
            || self
                .further
                .iter()
                .any(|it| it.role >= SocketRole::Approver)
    }

    pub(super) fn sockets(&self) -> impl Iterator<Item = &Socket> {
        self.driver.iter().chain(&self.further)
    }

    fn roles(&self) -> SessionRoles {
        let count = |role| self.further.iter().filter(|it| it.role == role).count();
        SessionRoles {
            driver: self.driver.is_some(),
            approvers: count(SocketRole::Approver),
            observers: count(SocketRole::Observer),
            role: None,
        }
    }

    /// Tells all who is there, where anybody has a role; a socket that is new is told its own first.
    fn tell_roles(&mut self, new: Option<SocketId>) {
        if !self.has_roles {
            return;
        }
        let roles = self.roles();
        if let Some(id) = new {
            let role = self
                .sockets()
                .find(|it| it.id == Some(id))
                .map(|it| it.role);
            let own = Event::SessionRoles(SessionRoles {
                role,
                ..roles.clone()
            });
            self.feed.grow(|log| log.greet(id, &own, Timestamp::now()));
        }
        if self.told_roles.as_ref() != Some(&roles) {
            self.told_roles = Some(roles.clone());
            self.shared.events.emit(Event::SessionRoles(roles));
        }
    }

    fn tell_role(&self, id: SocketId, role: SocketRole) {
        let own = Event::SessionRoles(SessionRoles {
            role: Some(role),
            ..self.roles()
        });
        let to = RequestId::apart(None, id);
        self.feed.append(own, Some(&to));
    }
}
