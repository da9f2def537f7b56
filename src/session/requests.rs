//! What each request does, and its answer.

use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc, oneshot};

use super::resolve::invalid;
use super::tools::no_tool;
use super::{Session, projects, providers, resolve};
use crate::conversation::{self, View};
use crate::exchange::questions::Action;
use crate::message::{ConversationId, MessageId};
use crate::protocol::budget::SessionBudget;
use crate::protocol::command::{self, Command, WhenBusy};
use crate::protocol::envelope::Timestamp;
use crate::protocol::event::{Event, SessionError};
use crate::protocol::{Request, RequestId, SessionCode, answer};

/// The longest instructions of a `chat:compact`, in bytes: a few sentences, and no conversation.
const MAX_INSTRUCTIONS: usize = 8 * 1024;

impl Session {
    /// Does what a request asks for. What is a conversation's is passed on and answered there. `is_operator` is
    /// whether whoever asks is one.
    pub(super) async fn handle(&mut self, request: Request, is_operator: bool) {
        let id = request.id.as_ref();
        let answer = match request.command {
            Command::ChatSend(send) => return self.send(*send, id).await,
            Command::ChatCancel(cancel) => return self.cancel(cancel, id).await,
            Command::ChatToolApprove(verdict) => {
                return self.question(Action::Approve(verdict), id).await;
            }
            Command::ChatToolInput(input) => return self.question(Action::Input(input), id).await,
            Command::ChatBudgetApprove(answer) => {
                return self.question(Action::Budget(answer), id).await;
            }
            Command::ChatTrustApprove(answer) => {
                return self.question(Action::Trust(answer), id).await;
            }
            Command::ChatToolOutput(output) => return self.client_output(output, id).await,
            Command::ChatToolExtend(extend) => {
                return self.question(Action::Extend(extend), id).await;
            }
            Command::ApprovalList(wanted) => Ok(self.list_approvals(&wanted)),
            Command::ApprovalRevoke(wanted) => self.revoke_approvals(wanted),
            Command::SessionConfigure(wanted) => self.configure(&wanted).await,
            Command::SessionResume(_) => Err(invalid(
                "session:resume must be the first frame of a socket and name another session",
            )),
            Command::SessionOpen(_) => Err(invalid(
                "session:open: field `sessionId` names the session that this socket has",
            )),
            Command::SessionList(wanted) => return self.list_sessions(wanted, id),
            Command::SessionRename(wanted) => return self.rename_session(wanted, id),
            Command::SessionArchive(wanted) => return self.archive_session(wanted, id),
            Command::SessionLabel(wanted) => return self.label_session(wanted, id),
            Command::SessionExport(wanted) => return self.export_session(&wanted, id),
            Command::SessionImport(wanted) => return self.import_session(wanted, id).await,
            Command::SessionDelete(wanted) => return self.delete_session(wanted, id),
            Command::SessionFork(wanted) => return self.fork_session(wanted, id),
            Command::SessionPing(_) => Ok(Event::SessionPingResult(command::Empty {})),
            Command::SessionStatus(_) => return self.status(id).await,
            Command::SessionTakeOver(_) => return self.take_over(id),
            Command::SessionState(_) => return self.state(id).await,
            Command::ChatHistory(wanted) => return self.history(wanted, id).await,
            Command::SkillList(_) => return self.list_skills(id),
            Command::ChatContext(wanted) => self.context_use(wanted.conversation_id).await,
            Command::ChatQueue(wanted) => return self.queue(wanted, id).await,
            Command::ChatCompact(wanted) => return self.compact(wanted, id).await,
            Command::ChatClose(wanted) => Ok(self.close(wanted.conversation_id).await),
            Command::ProviderList(_) => Ok(Event::ProviderListResult(answer::Providers {
                providers: self.daemon.providers.list(),
            })),
            Command::ProviderConfigure(wanted) => self.configure_provider(wanted),
            Command::ProviderValidate(wanted) => return self.validate(&wanted.provider, id),
            Command::SearchConfigure(wanted) => self.configure_search(wanted),
            Command::WorkflowList(_) => Ok(Event::WorkflowListResult(self.workflows())),
            Command::WorkflowPut(wanted) => self.put_workflow(wanted),
            Command::ConfigGet(wanted) => self.get_config(&wanted),
            Command::ConfigReload(_) => return self.reload_config(id),
            Command::ModelList(wanted) => return self.models(wanted.provider, id),
            Command::ToolList(wanted) => self.tools(&wanted),
            Command::ToolRegister(wanted) => self.register_tools(wanted).await,
            Command::ToolUnregister(wanted) => self.unregister_tools(&wanted),
            Command::ToolExecute(wanted) => return self.execute(wanted, id).await,
            Command::ToolCancel(wanted) => self.cancel_tool(wanted.tool_id).await,
            Command::ToolExpose(wanted) => self.expose(wanted).await,
            Command::ToolStatus(wanted) => match self.shared.executions.get(&wanted.tool_id) {
                Some(record) => Ok(Event::ToolStatusResult(Box::new(record))),
                None => Err(no_tool(wanted.tool_id.as_str())),
            },
            Command::ToolHistory(wanted) => return self.tool_history(wanted, id),
            Command::ToolMetrics(wanted) => return self.tool_metrics(&wanted, id),
            Command::ToolExport(wanted) => return self.tool_export(wanted, id),
            Command::ToolOutput(wanted) => return self.output(wanted, id),
            Command::UsageReport(wanted) => return self.usage_report(&wanted, id),
            Command::FilesChanges(wanted) => return self.file_changes(wanted, id),
            Command::FilesRevert(wanted) => return self.revert_files(wanted, id),
            Command::McpList(_) => Ok(self.list_servers(is_operator)),
            Command::McpAdd(wanted) => self.add_server(wanted),
            Command::McpRemove(wanted) => return self.remove_server(wanted.name, id),
            Command::McpAuth(wanted) => return self.sign_in(wanted, id),
            Command::McpSignOut(wanted) => return self.sign_out(wanted.server, id),
            Command::McpReadResource(wanted) => return self.read_resource(wanted, id),
            Command::McpGetPrompt(wanted) => return self.get_prompt(wanted, id),
            Command::McpListResources(wanted) => self.list_resources(&wanted),
            Command::McpListPrompts(wanted) => self.list_prompts(&wanted),
            Command::McpUsePrompt(wanted) => return self.use_prompt(wanted, id),
            Command::McpSubscribe(wanted) => return self.subscribe(wanted, id),
            Command::McpUnsubscribe(wanted) => return self.unsubscribe(wanted, id),
        };
        self.answer(id, answer.unwrap_or_else(Event::SessionError));
    }

    async fn cancel(&mut self, wanted: command::ChatCancel, id: Option<&RequestId>) {
        let conversation_id = wanted.conversation_id;
        let unread = self.cancel_unread(&conversation_id, wanted.queued).await;
        let cancel = conversation::Command::Cancel {
            queued: wanted.queued,
            unread,
            reply_to: id.cloned(),
        };
        if !self.command(&conversation_id, cancel).await && id.is_some() {
            let nothing = answer::Cancelled {
                conversation_id: conversation_id.clone(),
                cancelled: unread.next,
                tool_ids: Vec::new(),
                queued_dropped: unread.queued,
            };
            self.answer(id, Event::ChatCancelResult(nothing));
        }
        self.go_on_after_cancel(&conversation_id).await;
    }

    /// Answers with how the session stands, once its conversations have said whether they are about to run something.
    async fn status(&self, id: Option<&RequestId>) {
        for conversation in self.conversations.keys() {
            self.note_live(conversation).await;
        }
        self.feed.grow(|log| {
            let status = Event::SessionStatusResult(log.status());
            log.append(status, id, Timestamp::now());
        });
    }

    /// Passes an answer to a question, or more time for it, on to the conversation that asks.
    async fn question(&self, action: Action, id: Option<&RequestId>) {
        let error = action.not_found();
        if !self.pass_on(action, id).await {
            self.answer(id, Event::SessionError(error));
        }
    }

    /// Passes an answer on to the conversation whose question is open; returns false where none is.
    pub(super) async fn pass_on(&self, action: Action, id: Option<&RequestId>) -> bool {
        let owner = self.shared.questions.conversation_of(&action.question());
        let command = conversation::Command::Question {
            action,
            reply_to: id.cloned(),
        };
        match owner {
            Some(owner) => self.command(&owner, command).await,
            None => false,
        }
    }

    pub(super) fn in_force(&self) -> answer::Configured {
        let (project, project_error) = projects::shown(&self.shared.workspace);
        let in_force = self.defaults.in_force(
            &self.daemon.services.config(),
            self.daemon.providers.default_id(),
            self.feed.log().layers.clone(),
            self.shared.questions.wants_inputs(),
            self.shared.questions.wants_trust(),
        );
        answer::Configured {
            trust_level: in_force.trust_level.min(self.grant.most_trust),
            approval_policy: in_force.approval_policy.capped(self.grant.most_trust),
            project,
            project_error,
            ephemeral: !self.shared.journal.is_on(),
            budget: self.shared.account.stand().map(|stand| SessionBudget {
                max_cost_usd: Some(stand.limit),
                unlimited: false,
            }),
            ..in_force
        }
    }

    /// Answers with every conversation and every open question, as they are between the events before the answer and
    /// those after it.
    async fn state(&self, reply_to: Option<&RequestId>) {
        let mut state = answer::SessionState {
            conversations: Vec::new(),
            approvals: Vec::new(),
            inputs: Vec::new(),
            budgets: Vec::new(),
            trusts: Vec::new(),
            client_calls: Vec::new(),
        };
        let mut ids: Vec<_> = self.conversations.keys().cloned().collect();
        ids.sort();
        for id in &ids {
            let feed = Arc::clone(&self.feed);
            let look = move |view: View<'_>| {
                let conversation = &view.context.conversation;
                let emitted = feed.log().defer(&conversation.id);
                let questions = conversation.questions.announcements(view.context);
                let is_task = conversation.within.is_some();
                (is_task, view.state(emitted), questions)
            };
            let Some((is_task, conversation, questions)) = self.look(id, look).await else {
                continue;
            };
            if !is_task {
                state.conversations.push(conversation);
            }
            for question in questions {
                match question {
                    Event::ChatToolConfirm(approval) => state.approvals.push(*approval),
                    Event::ChatToolInputRequest(input) => state.inputs.push(*input),
                    Event::ChatBudgetConfirm(budget) => state.budgets.push(*budget),
                    Event::ChatTrustConfirm(trust) => state.trusts.push(*trust),
                    Event::ChatToolCall(call) => state.client_calls.push(*call),
                    _ => {}
                }
            }
        }
        self.answer_deferred(Event::SessionStateResult(state), reply_to);
    }

    async fn history(&self, wanted: command::ChatHistory, reply_to: Option<&RequestId>) {
        if wanted.limit == Some(0) {
            let problem = invalid("chat:history: field `limit` must be 1 at least");
            return self.answer(reply_to, Event::SessionError(problem));
        }
        let feed = Arc::clone(&self.feed);
        let id = wanted.conversation_id.clone();
        if let Some(history) = self.said_in_task(&id) {
            let frame = self.services.config().server.max_frame_bytes;
            let page = conversation::page_of(&id, &history, &wanted, frame);
            return self.answer(reply_to, Event::ChatHistoryResult(page));
        }
        let look = move |view: View<'_>| {
            feed.log().defer(&view.context.conversation.id);
            view.history(&wanted)
        };
        let answer = match self.look(&id, look).await {
            Some(history) => Event::ChatHistoryResult(history),
            // Nothing was said yet, and asking makes no conversation.
            None => Event::ChatHistoryResult(answer::History {
                conversation_id: id,
                messages: Vec::new(),
                truncated: false,
                next_before: None,
            }),
        };
        self.answer_deferred(answer, reply_to);
    }

    /// Passes a `chat:compact` on to its conversation, which has nothing to leave out where there is none.
    async fn compact(&mut self, wanted: command::ChatCompact, id: Option<&RequestId>) {
        // A model is asked, as by a send.
        match self.count_send().await {
            Ok(()) => self.take_compact(wanted, id).await,
            Err(error) => self.answer(id, Event::SessionError(error)),
        }
    }

    /// The same where it is counted.
    pub(super) async fn take_compact(
        &mut self,
        wanted: command::ChatCompact,
        id: Option<&RequestId>,
    ) {
        if self.reading.is_reading(&wanted.conversation_id) {
            let conversation = wanted.conversation_id.clone();
            return self.wait_behind(&conversation, Command::ChatCompact(wanted), id);
        }
        let instructions = wanted.instructions.unwrap_or_default();
        if instructions.len() > MAX_INSTRUCTIONS {
            let problem = format!(
                "chat:compact: field `instructions` has {} bytes, and {MAX_INSTRUCTIONS} are the most",
                instructions.len()
            );
            return self.answer(id, Event::SessionError(invalid(problem)));
        }
        let conversation_id = wanted.conversation_id;
        if !self.conversations.contains_key(&conversation_id) {
            let nothing = answer::Compacting {
                conversation_id,
                state: answer::CompactState::NothingToDo,
            };
            return self.answer(id, Event::ChatCompactResult(nothing));
        }
        let send = command::ChatSend::text(conversation_id.clone(), "compact".to_owned());
        let setup = match self.setup(&send, self.shared.ids.message()) {
            Ok(setup) => setup,
            Err(error) => return self.answer(id, Event::SessionError(error)),
        };
        let compact = conversation::Command::Compact(Box::new(conversation::CompactRequest {
            setup,
            mode: wanted.mode,
            instructions,
            may_wait: wanted.when_busy == WhenBusy::Queue,
            reply_to: id.cloned(),
        }));
        if !self.command(&conversation_id, compact).await {
            let nothing = answer::Compacting {
                conversation_id,
                state: answer::CompactState::NothingToDo,
            };
            self.answer(id, Event::ChatCompactResult(nothing));
        }
    }

    /// Returns where the window of a conversation's model goes: as its last exchange was, or as the next one would be.
    async fn context_use(&self, id: ConversationId) -> Result<Event, SessionError> {
        if id.task().is_some() {
            let problem = format!(
                "field `conversationId`: `{id}` is the conversation of a task, and tasks have no context to look at; `metadata.task` of the call's result has what it took"
            );
            return Err(SessionError::new(SessionCode::InvalidPayload, problem));
        }
        let send = command::ChatSend::text(id.clone(), "context".to_owned());
        let setup = self.setup(&send, MessageId::new(""))?;
        let found = self.look(&id, move |view: View<'_>| view.context_use(setup));
        found.await.map(Event::ChatContextResult).ok_or_else(|| {
            let why = format!("nothing was said in `{id}` yet; say something (chat:send) first");
            SessionError::new(SessionCode::ConversationNotFound, why)
        })
    }

    fn answer_deferred(&self, answer: Event, reply_to: Option<&RequestId>) {
        self.feed
            .grow(|log| log.flush_deferred(answer, reply_to, Timestamp::now()));
    }

    /// Looks at a conversation from its own task; `None` where there is none any more.
    pub(super) async fn look<T: Send + 'static>(
        &self,
        id: &ConversationId,
        look: impl FnOnce(View<'_>) -> T + Send + 'static,
    ) -> Option<T> {
        look_at(&self.conversations.get(id)?.inbox, look).await
    }

    async fn close(&mut self, conversation_id: ConversationId) -> Event {
        if conversation_id.task().is_some() {
            // It goes with the conversation around it.
            return Event::ChatCloseResult(answer::Closed {
                conversation_id,
                closed: false,
            });
        }
        self.close_unread(&conversation_id);
        let closed = self
            .command(&conversation_id, conversation::Command::Close)
            .await;
        if let Some(handle) = self.conversations.remove(&conversation_id) {
            // Before the answer says so.
            self.forget_tasks_of(&handle.history);
            handle.memory.close();
            handle.history.close();
            self.closing.insert(conversation_id.clone(), handle.gone);
        }
        Event::ChatCloseResult(answer::Closed {
            conversation_id,
            closed,
        })
    }

    /// Takes a client's settings for the sends to come. Where one is refused, nothing is changed.
    pub(super) fn configure_defaults(
        &mut self,
        wanted: &command::Configure,
    ) -> Result<(), SessionError> {
        self.check_trust(wanted.trust_level, wanted.approval_policy)?;
        let config = &self.daemon.services.config();
        if let Some(provider) = &wanted.provider
            && self.daemon.providers.get(provider).is_none()
        {
            return Err(providers::no_provider("", provider, &self.daemon.providers));
        }
        if let Some(workflow) = &wanted.workflow {
            resolve::workflow(workflow, config)?;
        }
        let provider = self.daemon.providers.default_id();
        self.defaults.configure(wanted, config, provider)?;
        if let Some(limit) = wanted.budget.and_then(SessionBudget::wanted) {
            self.shared.account.set_limit(limit);
        }
        if let Some(wanted) = &wanted.layers {
            self.feed.log().layers = resolve::layers(wanted);
        }
        if let Some(wanted) = wanted.input_requests {
            self.shared.questions.want_inputs(wanted);
        }
        if let Some(wanted) = wanted.trust_questions {
            self.shared.questions.want_trust(wanted);
        }
        Ok(())
    }

    /// Returns what the client configured, so that it can be configured anew.
    fn configured(&self) -> command::Configure {
        command::Configure {
            layers: Some(self.feed.log().layers.clone()),
            input_requests: Some(self.shared.questions.wants_inputs()),
            trust_questions: Some(self.shared.questions.wants_trust()),
            ..self.defaults.configured(&self.daemon.services.config())
        }
    }

    async fn configure(&mut self, wanted: &command::Configure) -> Result<Event, SessionError> {
        let workspace = match &wanted.project {
            Some(folder) => Some(self.project_to_work_in(folder).await?),
            None => None,
        };
        if wanted.ephemeral == Some(false) && !self.shared.journal.is_on() {
            let problem = match self.daemon.store {
                Some(_) => {
                    "session:configure: field `ephemeral` cannot be taken back: begin a new session for what is to be kept"
                }
                None => {
                    "session:configure: field `ephemeral` must be true or absent: sessions are not kept here (store.enabled)"
                }
            };
            return Err(invalid(problem));
        }
        self.configure_defaults(wanted)?;
        // Nothing fails from here on.
        if wanted.ephemeral == Some(true) {
            self.shared.journal.end();
        }
        self.shared.journal.settings(|| self.configured());
        if let Some(workspace) = workspace {
            self.work_in(workspace);
        }
        Ok(Event::SessionConfigureResult(self.in_force()))
    }

    /// Answers later, with what a provider or a server says.
    pub(super) fn answer_later(
        &self,
        id: Option<&RequestId>,
        work: impl Future<Output = Event> + Send + 'static,
    ) {
        let problem = "too many requests to providers and MCP servers at once; try again";
        // Operators are not counted with the rest: what they ask for may end what the others wait for.
        let (permits, counted) = match self.grant.is_operator {
            true => (&self.daemon.operator_requests, None),
            false => match self.services.quota.side_request() {
                None => {
                    let problem = SessionError::new(SessionCode::RateLimited, problem);
                    return self.answer(id, Event::SessionError(problem));
                }
                counted => (&self.daemon.side_requests, counted),
            },
        };
        self.answer_with_permit(permits, problem, id, async {
            let _counted = counted;
            work.await
        });
    }

    /// Answers later, where there is a permit for it; `problem` says that there is none.
    pub(super) fn answer_with_permit(
        &self,
        permits: &Arc<Semaphore>,
        problem: &str,
        id: Option<&RequestId>,
        work: impl Future<Output = Event> + Send + 'static,
    ) {
        let Ok(permit) = Arc::clone(permits).try_acquire_owned() else {
            let problem = SessionError::new(SessionCode::RateLimited, problem);
            return self.answer(id, Event::SessionError(problem));
        };
        let (id, events) = (id.cloned(), self.shared.events.clone());
        let cancel = self.cancel.child_token();
        self.daemon.tasks.spawn(async move {
            if let Some(event) = cancel.run_until_cancelled(work).await {
                events.answer(id.as_ref(), event);
            }
            drop(permit);
        });
    }
}

/// Looks at a conversation from its own task; `None` where it has ended.
pub(super) async fn look_at<T: Send + 'static>(
    inbox: &mpsc::Sender<conversation::Command>,
    look: impl FnOnce(View<'_>) -> T + Send + 'static,
) -> Option<T> {
    let (found, seen) = oneshot::channel();
    let look = move |view: View<'_>| drop(found.send(look(view)));
    let look = conversation::Command::Look(Box::new(look));
    inbox.send(look).await.ok()?;
    seen.await.ok()
}
