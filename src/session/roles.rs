//! Several sockets on a session: who drives, who approves, who looks on.
//!
//! The driver is the session's client: its answers are numbered events, and the session waits for it. Others read the
//! same events, and what they ask is answered to them alone, so that they cost nobody a number. A socket without a role
//! drives, and throws out the one before. A client that gives itself a name keeps its place over its connections.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::handle::{AttachRefused, Attachment, Entrance};
use super::{Session, Transfers};
use crate::protocol::command::Command;
use crate::protocol::envelope::Timestamp;
use crate::protocol::event::{Event, SessionError};
use crate::protocol::queue::QueueAction;
use crate::protocol::roles::{SessionRoles, SocketId, SocketRole, TakenOver};
use crate::protocol::{Request, RequestId, SessionCode};
use crate::telemetry::metrics;
use crate::users::Grant;

/// The most sockets that approve on a session, and the most that observe. Nobody keeps a driver out, nor one that drove.
const MAX_OF_A_ROLE: usize = 64;

/// What the session holds of one socket.
pub(super) struct Socket {
    connection: SocketId,
    /// The same as the name under which the log knows it, where it was given a role.
    pub(super) id: Option<SocketId>,
    role: SocketRole,
    /// What its token allows.
    grant: Arc<Grant>,
    /// Fires when another one takes its place.
    pub(super) taken_over: CancellationToken,
    /// Fires when it is gone.
    pub(super) disconnected: CancellationToken,
}

/// Returns the least role that may ask for this. Whatever is not named here takes a driver: a new request too, until
/// somebody has thought about it.
fn needed(command: &Command) -> SocketRole {
    match command {
        Command::SessionPing(_)
        | Command::SessionState(_)
        | Command::SessionStatus(_)
        | Command::SessionTakeOver(_)
        | Command::SessionResume(_)
        | Command::SessionOpen(_)
        | Command::SessionList(_)
        | Command::ChatHistory(_)
        | Command::ChatContext(_)
        | Command::SkillList(_)
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
        | Command::McpList(_)
        | Command::McpListResources(_)
        | Command::McpListPrompts(_) => SocketRole::Observer,
        Command::ChatQueue(queue) if queue.action == QueueAction::List => SocketRole::Observer,
        Command::ChatToolApprove(_)
        | Command::ChatToolInput(_)
        | Command::ChatBudgetApprove(_)
        | Command::ChatTrustApprove(_)
        | Command::ChatToolExtend(_)
        | Command::ChatCancel(_)
        | Command::ToolCancel(_) => SocketRole::Approver,
        _ => SocketRole::Driver,
    }
}

/// Returns whether it is about the daemon, and so about all of its users.
fn is_for_operators(command: &Command) -> bool {
    matches!(
        command,
        Command::ConfigGet(_)
            | Command::ConfigReload(_)
            | Command::ProviderConfigure(_)
            | Command::SearchConfigure(_)
            | Command::WorkflowPut(_)
            | Command::McpAdd(_)
            | Command::McpRemove(_)
            | Command::McpAuth(_)
            | Command::McpSignOut(_)
    )
}

/// Returns why somebody may not do what is about the daemon.
pub(super) fn not_an_operator() -> SessionError {
    let message = "this is for operators, and this socket's token is none of theirs";
    SessionError::new(SessionCode::Forbidden, message)
}

impl Session {
    /// Takes a request of a socket, if that may ask for it; else answers that it may not. What is answered to that socket
    /// alone is marked so.
    pub(super) fn admitted(
        &mut self,
        request: Request,
        from: Option<SocketId>,
        grant: Arc<Grant>,
    ) -> Option<Request> {
        let request = match from {
            Some(from) => self.admitted_from(request, from)?,
            None => request,
        };
        if is_for_operators(&request.command) && !grant.is_operator {
            let error = Event::SessionError(not_an_operator());
            self.answer(request.id.as_ref(), error);
            return None;
        }
        // What is run, and what it may do, is the word of whoever drives.
        if needed(&request.command) == SocketRole::Driver {
            self.grant = grant;
        }
        Some(request)
    }

    /// The same of a socket that has a name.
    fn admitted_from(&mut self, mut request: Request, from: SocketId) -> Option<Request> {
        let is_driver = self.driver.as_ref().is_some_and(|it| it.id == Some(from));
        let socket = self.sockets().find(|it| it.id == Some(from))?;
        let (role, allowed) = (socket.role, socket.grant.role);
        request.id = match is_driver {
            true => request.id.map(|id| id.of(from)),
            false => Some(RequestId::apart(request.id, from)),
        };
        let needed = needed(&request.command);
        if role >= needed {
            return Some(request);
        }
        let further = match (allowed >= needed, needed) {
            (false, _) => "its token allows no more",
            (true, SocketRole::Driver) => "session:take-over makes it the driver",
            (true, _) => "connect with `role=approver`, or take over by session:take-over",
        };
        let message = format!(
            "this request takes the role `{}`, and this socket's role is `{}`; {further}",
            needed.word(),
            role.word(),
        );
        let error = SessionError::new(SessionCode::Forbidden, message);
        self.answer(request.id.as_ref(), Event::SessionError(error));
        None
    }

    /// Puts a socket on the session.
    pub(super) fn attach(
        &mut self,
        entrance: Entrance,
        grant: Arc<Grant>,
    ) -> Result<Attachment, AttachRefused> {
        let Entrance {
            role,
            take_over,
            mut socket,
        } = entrance;
        let allowed = grant.role;
        self.services.spend.grant_day(grant.day.as_ref());
        self.services.quota.grant_disk(grant.disk.as_ref());
        // Another token of the same user may be for more.
        let project = self.shared.workspace.project();
        if project.is_ok_and(|project| !grant.allows_folder(&project.root)) {
            return Err(AttachRefused::Elsewhere);
        }
        // A token that allows less takes nobody's place, whatever it calls itself.
        let is_better = |it: &Socket| it.id == Some(socket) && it.grant.role > allowed;
        if self.sockets().any(is_better) {
            socket = socket.without_name();
        }
        let id = role.map(|_| socket);
        let is_its = |socket: &Socket| id.is_some() && socket.id == id;
        // One whose line broke while it was on its way is overtaken by the next one of its client.
        let has_its_place = |it: &Socket| match role {
            Some(_) => is_its(it),
            None => it.role == SocketRole::Driver,
        };
        let is_later = |it: &Socket| has_its_place(it) && it.connection.is_after(socket);
        if self.sockets().any(is_later) {
            return Err(AttachRefused::Late);
        }
        let drives = self.driver.as_ref().is_some_and(is_its);
        if role == Some(SocketRole::Driver) && self.driver.is_some() && !drives && !take_over {
            return Err(AttachRefused::Driven);
        }
        let others = |wanted| {
            let further = self.further.iter();
            further.filter(move |it| it.role == wanted && !is_its(it))
        };
        let is_further = role.filter(|role| *role < SocketRole::Driver);
        if is_further.is_some_and(|role| others(role).count() >= MAX_OF_A_ROLE) {
            return Err(AttachRefused::Full);
        }
        self.leave_for(id);
        let (taken_over, disconnected) = (CancellationToken::new(), CancellationToken::new());
        let socket = Socket {
            connection: socket,
            id,
            role: role.unwrap_or(SocketRole::Driver),
            grant,
            taken_over: taken_over.clone(),
            disconnected: disconnected.clone(),
        };
        let ready = self.ready_now(&socket.grant);
        let too_slow = id.map(|id| self.feed.log().watch(id));
        match socket.role {
            SocketRole::Driver => self.drive(socket),
            SocketRole::Approver | SocketRole::Observer => self.further.push(socket),
        }
        self.settle_presence();
        let attachment = Attachment {
            _on_disconnect: disconnected.drop_guard(),
            taken_over,
            too_slow: too_slow.unwrap_or_default(),
            id,
            ready,
        };
        self.tell_roles(id);
        Ok(attachment)
    }

    /// Takes the socket off whose client comes again.
    fn leave_for(&mut self, id: Option<SocketId>) {
        let is_its = |socket: &mut Socket| id.is_some() && socket.id == id;
        if let Some(before) = self.driver.take_if(is_its) {
            before.taken_over.cancel();
            self.end_what_is_the_drivers();
        }
        for before in self.further.extract_if(.., is_its) {
            before.taken_over.cancel();
        }
    }

    /// Ends what was a driver's own.
    fn end_what_is_the_drivers(&mut self) {
        self.transfers = Transfers::default();
        self.daemon.mcp.end_own(&self.shared.id);
    }

    /// Has a socket be the driver. One that drove and has a role approves from now on, where another one with a role takes
    /// its place; else it goes.
    fn drive(&mut self, socket: Socket) {
        let has_role = socket.id.is_some();
        self.grant = Arc::clone(&socket.grant);
        self.feed.log().set_driver(socket.id);
        let before = self.driver.replace(socket);
        if self.had_socket {
            metrics::resumed(before.is_some());
        }
        self.had_socket = true;
        self.client_tools.next_socket();
        let Some(before) = before else {
            return;
        };
        self.end_what_is_the_drivers();
        match before.id.filter(|_| has_role) {
            Some(id) => {
                self.further.push(Socket {
                    role: SocketRole::Approver,
                    ..before
                });
                self.tell_role(id);
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
        let socket = self.further.get(at);
        if socket.is_some_and(|it| it.grant.role < SocketRole::Driver) {
            let message =
                "this socket's token does not let it drive; connect with one for the role `driver`";
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
            self.tell_role(from);
        }
        self.settle_presence();
        self.tell_roles(None);
    }

    /// Takes those off that are gone.
    pub(super) fn leave(&mut self) {
        let is_gone = |socket: &Socket| socket.disconnected.is_cancelled();
        if let Some(driver) = self.driver.take_if(|it| is_gone(it)) {
            self.end_what_is_the_drivers();
            self.forget(&driver);
        }
        let gone: Vec<_> = self.further.extract_if(.., |it| is_gone(it)).collect();
        for socket in &gone {
            self.forget(socket);
        }
        self.settle_presence();
        self.tell_roles(None);
    }

    /// Takes those off whose token is not for the folder that the session works in now.
    pub(super) fn leave_elsewhere(&mut self) {
        let Ok(project) = self.shared.workspace.project() else {
            return;
        };
        let root = project.root.clone();
        let is_elsewhere = |socket: &mut Socket| !socket.grant.allows_folder(&root);
        let gone: Vec<_> = self.further.extract_if(.., is_elsewhere).collect();
        for socket in &gone {
            socket.taken_over.cancel();
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

    /// Returns who is there, with the role of this socket where one is named.
    pub(super) fn roles(&self, to: Option<SocketId>) -> SessionRoles {
        let count = |role| self.further.iter().filter(|it| it.role == role).count();
        let mut sockets = self.sockets();
        let socket = to.and_then(|to| sockets.find(|it| it.id == Some(to)));
        SessionRoles {
            driver: self.driver.is_some(),
            approvers: count(SocketRole::Approver),
            observers: count(SocketRole::Observer),
            role: socket.map(|socket| socket.role),
        }
    }

    /// Tells who is there, where anybody has a role; a socket that is new is told its own first. Who observes comes and goes
    /// without a number: that is told to those with a role alone.
    fn tell_roles(&mut self, new: Option<SocketId>) {
        if new.is_none() && self.told_roles.is_none() {
            return;
        }
        let roles = self.roles(None);
        if let Some(id) = new {
            let own = Event::SessionRoles(self.roles(Some(id)));
            self.feed.grow(|log| log.greet(id, &own, Timestamp::now()));
        }
        let Some(told) = self.told_roles.replace(roles.clone()) else {
            return self.shared.events.emit(Event::SessionRoles(roles));
        };
        if (told.driver, told.approvers) != (roles.driver, roles.approvers) {
            self.shared.events.emit(Event::SessionRoles(roles));
        } else if told != roles {
            let (event, now) = (Event::SessionRoles(roles), Timestamp::now());
            self.feed.grow(|log| log.tell_named(&event, now));
        }
    }

    /// Tells a socket its role, which is another one now.
    fn tell_role(&self, id: SocketId) {
        let own = Event::SessionRoles(self.roles(Some(id)));
        let to = RequestId::apart(None, id);
        self.feed.append(own, Some(&to));
    }
}
