//! A tool call being streamed.

use agui_types::event::{ToolCallArgs, ToolCallEnd, ToolCallStart};
use agui_types::{MessageContent, MessageId, ToolCallId};
use serde::Serialize;

use super::{EmitError, Emitter};

/// An open tool call. Dropping it closes the call, without an answer: a front-end tool is answered
/// by the application (P-30), in the next run's messages.
///
/// Arguments cannot come behind the end:
///
/// ```compile_fail,E0382
/// # async fn late(mut call: agui_agent::emitter::ToolCall) -> agui_agent::AgentResult {
/// call.end().await?;
/// call.args("{}").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ToolCall {
    emitter: Emitter,
    id: ToolCallId,
    open: bool,
}

impl ToolCall {
    pub(super) async fn open(emitter: Emitter, start: ToolCallStart) -> Result<Self, EmitError> {
        let id = start.tool_call_id.clone();
        emitter.emit(start).await?;
        Ok(Self { emitter, id, open: true })
    }

    /// The call's id.
    #[must_use]
    pub fn id(&self) -> &ToolCallId {
        &self.id
    }

    /// Appends a piece of the arguments' text.
    pub async fn args(&mut self, delta: impl Into<String>) -> Result<(), EmitError> {
        self.emitter.emit(ToolCallArgs::new(&self.id, delta)).await
    }

    /// Appends the whole arguments, as JSON.
    pub async fn args_json<T: Serialize + ?Sized>(&mut self, args: &T) -> Result<(), EmitError> {
        let text = serde_json::to_string(args).map_err(|e| EmitError::Json(e.to_string()))?;
        self.args(text).await
    }

    /// Closes the call: its arguments are complete. Gives its id, to answer it later.
    pub async fn end(mut self) -> Result<ToolCallId, EmitError> {
        self.emitter.emit(ToolCallEnd::new(&self.id)).await?;
        self.open = false;
        Ok(self.id.clone())
    }

    /// Closes the call and answers it. Gives the id of the tool message.
    pub async fn result(self, content: impl Into<MessageContent>) -> Result<MessageId, EmitError> {
        let emitter = self.emitter.clone();
        let id = self.end().await?;
        emitter.tool_result(id, content).await
    }

    /// Closes the call and answers it with a value, serialised to text (P-33). Gives the id of the
    /// tool message.
    pub async fn result_json<T: Serialize + ?Sized>(
        self,
        value: &T,
    ) -> Result<MessageId, EmitError> {
        let emitter = self.emitter.clone();
        let id = self.end().await?;
        emitter.tool_result_json(id, value).await
    }
}

impl Drop for ToolCall {
    fn drop(&mut self) {
        if self.open {
            self.emitter.emit_now(ToolCallEnd::new(&self.id));
        }
    }
}
