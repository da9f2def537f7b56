//! What a session asks of the client, and how that ends.

use serde_json::{Value, json};

use super::question::{self, Key, Question};
use super::render::Renderer;
use super::session::AcpSession;
use super::trust;
use crate::protocol::event::Event;
use crate::protocol::input::InputMode;

impl AcpSession {
    /// Takes an event about a question; gives back another one.
    pub(super) async fn question_event(&mut self, event: Event) -> Option<Event> {
        match event {
            Event::ChatToolConfirm(confirm) => {
                let shown = self.renderer.shown(&confirm.tool_id);
                let params = question::of_call(self.id(), &confirm, shown);
                self.ask_for_permission(params, Question::Call(confirm))
                    .await;
            }
            Event::ChatBudgetConfirm(confirm) => {
                let params = question::of_money(self.id(), &confirm);
                self.ask_for_permission(params, Question::Money(confirm.request_id))
                    .await;
            }
            Event::ChatTrustConfirm(confirm) => {
                let params = trust::of_trust(self.id(), &confirm);
                self.ask_for_permission(params, Question::Trust(confirm.request_id))
                    .await;
            }
            Event::ChatToolInputRequest(asked) if !self.input.has(asked.mode) => {
                let command = question::not_shown(&asked.request_id);
                self.send_quietly(command).await;
            }
            Event::ChatToolInputRequest(asked) => {
                let params = question::of_input(self.id(), &asked);
                if asked.mode == InputMode::Url {
                    self.pages.push(asked.request_id.clone());
                }
                self.ask_client(
                    "elicitation/create",
                    params,
                    Question::Input(asked.request_id),
                )
                .await;
            }
            Event::ChatToolResolved(it) => {
                let key = Key::Call(&it.tool_id, it.host.as_deref());
                self.settled(&key).await;
            }
            Event::ChatBudgetResolved(it) => {
                self.settled(&Key::Money(&it.request_id)).await;
            }
            Event::ChatTrustResolved(it) => {
                self.settled(&Key::Trust(&it.request_id)).await;
            }
            Event::ChatToolInputResolved(it) => {
                self.settled(&Key::Input(&it.request_id)).await;
                if let Some(at) = self.pages.iter().position(|id| *id == it.request_id) {
                    self.pages.remove(at);
                    let params = json!({"elicitationId": it.request_id});
                    self.out.notify("elicitation/complete", params).await;
                }
            }
            event => return Some(event),
        }
        None
    }

    async fn ask_for_permission(&mut self, params: Value, question: Question) {
        self.ask_client("session/request_permission", params, question)
            .await;
    }

    /// Asks the client something.
    async fn ask_client(&mut self, method: &str, params: Value, question: Question) {
        // After a gap the session announces again what is open.
        let key = question.key();
        if self.questions.values().any(|open| open.key() == key) {
            return;
        }
        self.last_question += 1;
        let id = self.question_id(self.last_question);
        self.questions.insert(self.last_question, question);
        self.out.request(&id, method, params).await;
    }

    fn question_id(&self, number: u64) -> String {
        format!("{}#{number}", self.id())
    }

    /// Takes the client's answer to a question; one that was settled meanwhile needs none.
    pub(super) async fn answered(&mut self, number: u64, outcome: Result<Value, Value>) {
        if let Some(question) = self.questions.remove(&number) {
            self.send_quietly(question.answered(outcome)).await;
        }
    }

    /// Takes back a question that was settled: nobody needs to answer it any more. What this client has answered is not open
    /// any more, so somebody else has settled it, perhaps the user on another socket.
    async fn settled(&mut self, key: &Key<'_>) {
        let mut open = self.questions.iter();
        let number = open
            .find(|(_, question)| question.key() == *key)
            .map(|(number, _)| *number);
        if let Some(number) = number {
            self.questions.remove(&number);
            self.withdraw(number).await;
        }
    }

    /// Takes back all questions.
    pub(super) async fn withdraw_questions(&mut self) {
        let mut numbers: Vec<u64> = self.questions.drain().map(|(number, _)| number).collect();
        numbers.sort_unstable();
        for number in numbers {
            self.withdraw(number).await;
        }
    }

    async fn withdraw(&self, number: u64) {
        let id = self.question_id(number);
        self.out
            .notify("$/cancel_request", json!({"requestId": id}))
            .await;
    }

    /// Leaves alone what is another conversation's: this client shows one. Another frontend may have opened it.
    pub(super) async fn elsewhere(&mut self, event: &Event) {
        let is_question = matches!(
            event,
            Event::ChatToolConfirm(_)
                | Event::ChatToolInputRequest(_)
                | Event::ChatBudgetConfirm(_)
                | Event::ChatTrustConfirm(_)
        );
        if is_question && !self.knows_others {
            self.knows_others = true;
            let text = "\n\n*Another conversation of this session asks something; answer it where that was begun.*\n\n";
            self.update(Renderer::say(text)).await;
        }
    }
}
