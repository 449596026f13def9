//! A text message being streamed.

use agui_types::MessageId;
use agui_types::event::{TextMessageContent, TextMessageEnd, TextMessageStart};

use super::{EmitError, Emitter};

/// An open text message. Dropping it closes the message.
///
/// Text cannot come behind the end, and only one writes at a time:
///
/// ```compile_fail,E0382
/// # async fn late(mut text: agui_agent::emitter::TextMessage) -> agui_agent::AgentResult {
/// text.end().await?;
/// text.push("too late").await?;
/// # Ok(())
/// # }
/// ```
///
/// ```compile_fail,E0499
/// # async fn both(mut text: agui_agent::emitter::TextMessage) -> agui_agent::AgentResult {
/// let (one, two) = (text.push("one"), text.push("two"));
/// # one.await?;
/// # two.await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TextMessage {
    emitter: Emitter,
    id: MessageId,
    open: bool,
}

impl TextMessage {
    pub(super) async fn open(emitter: Emitter, start: TextMessageStart) -> Result<Self, EmitError> {
        let id = start.message_id.clone();
        emitter.emit(start).await?;
        Ok(Self { emitter, id, open: true })
    }

    /// The message's id: a tool call can name it as its parent.
    #[must_use]
    pub fn id(&self) -> &MessageId {
        &self.id
    }

    /// Appends a piece of text.
    pub async fn push(&mut self, delta: impl Into<String>) -> Result<(), EmitError> {
        self.emitter.emit(TextMessageContent::new(&self.id, delta)).await
    }

    /// Closes the message and gives its id.
    pub async fn end(mut self) -> Result<MessageId, EmitError> {
        self.emitter.emit(TextMessageEnd::new(&self.id)).await?;
        self.open = false;
        Ok(self.id.clone())
    }
}

impl Drop for TextMessage {
    fn drop(&mut self) {
        if self.open {
            self.emitter.emit_now(TextMessageEnd::new(&self.id));
        }
    }
}
