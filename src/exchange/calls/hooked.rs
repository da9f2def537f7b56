//! What the operator's hooks say of a call: before it is judged, and before the model reads what it came to.

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::Calls;
use super::settle::{cancelled, cancelled_unrun, denied};
use super::shown::text_of;
use crate::audit::{By, Ruling};
use crate::config::HookPoint;
use crate::exchange::hooks::ask;
use crate::hooks::Said;
use crate::message::{Part, ToolCall};
use crate::protocol::json_bytes;
use crate::tool::Output;

impl Calls<'_> {
    /// Asks about a call with this input; fails with the result of one that was refused.
    pub(super) async fn before_tool(
        &self,
        call: &ToolCall,
        input: &Map<String, Value>,
        cancel: &CancellationToken,
    ) -> Result<Said, Box<Output>> {
        let more = || Map::from_iter([("tool".to_owned(), shown(call, input))]);
        let point = (HookPoint::BeforeTool, Some(&*call.name));
        let said = ask(
            self.exchange.context,
            self.exchange.setup,
            point,
            more,
            cancel,
        )
        .await;
        let said = said.ok_or_else(cancelled_unrun)?;
        if let Some(refused) = &said.refused {
            self.record_ruling(call, Ruling::refused(By::Hook));
            return Err(denied(format!("not allowed: {refused}")));
        }
        if let Some((input, _)) = &said.changed {
            let executions = &self.exchange.context.session.executions;
            executions.update(&call.id, |record| {
                record.input.clone_from(input);
                record.input_bytes = json_bytes(input) as u64;
            });
        }
        Ok(said)
    }

    /// Asks about what a call came to. Where that is refused, or where it is over before that is known, the model does not
    /// read it.
    pub(super) async fn after_tool(
        &self,
        call: &ToolCall,
        input: &Map<String, Value>,
        mut output: Output,
        cancel: &CancellationToken,
    ) -> Output {
        let more = || {
            let result = json!({ "text": text_of(&output.content), "isError": output.is_error });
            Map::from_iter([
                ("tool".to_owned(), shown(call, input)),
                ("result".to_owned(), result),
            ])
        };
        let point = (HookPoint::AfterTool, Some(&*call.name));
        let said = ask(
            self.exchange.context,
            self.exchange.setup,
            point,
            more,
            cancel,
        )
        .await;
        let withheld = match said {
            None => "it was cancelled before its hooks had answered".to_owned(),
            Some(Said {
                refused: Some(refused),
                ..
            }) => refused.to_string(),
            Some(said) => {
                let notes = said.notes.into_iter();
                let notes = notes.map(|note| Part::text(format!("\n{note}")));
                output.content.extend(notes);
                return output;
            }
        };
        output.content = vec![Part::text(format!(
            "this call ran, and what it came to is withheld: {withheld}"
        ))];
        output.is_error = true;
        output.metadata.diff = None;
        if cancel.is_cancelled() {
            output.metadata.cancelled = cancelled().cancelled;
        }
        output
    }
}

fn shown(call: &ToolCall, input: &Map<String, Value>) -> Value {
    json!({ "id": call.id, "name": call.name, "input": input })
}
