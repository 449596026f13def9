//! Reasoning being streamed.

use agui_types::MessageId;
use agui_types::event::{
    EncryptedValueSubtype, ReasoningEncryptedValue, ReasoningEnd, ReasoningMessageContent,
    ReasoningMessageEnd, ReasoningMessageStart, ReasoningStart,
};

use super::scope::new_id;
use super::{EmitError, Emitter};

/// An open span of reasoning. Dropping it closes the span.
#[derive(Debug)]
pub struct ReasoningSpan {
    emitter: Emitter,
    id: MessageId,
    open: bool,
}

impl ReasoningSpan {
    pub(super) async fn open(emitter: Emitter, start: ReasoningStart) -> Result<Self, EmitError> {
        let id = start.message_id.clone();
        emitter.emit(start).await?;
        Ok(Self { emitter, id, open: true })
    }

    /// The span's id; a namespace apart from messages (C-58).
    #[must_use]
    pub fn id(&self) -> &MessageId {
        &self.id
    }

    /// Emits a whole reasoning message and gives its id.
    pub async fn say(&self, text: impl Into<String>) -> Result<MessageId, EmitError> {
        let mut message = self.message().await?;
        message.push(text).await?;
        message.end().await
    }

    /// Opens a reasoning message, with an id of its own.
    pub async fn message(&self) -> Result<ReasoningMessage, EmitError> {
        let id = MessageId::from(new_id());
        self.emitter.emit(ReasoningMessageStart::new(&id)).await?;
        Ok(ReasoningMessage { emitter: self.emitter.clone(), id, open: true })
    }

    /// Closes the span.
    pub async fn end(mut self) -> Result<(), EmitError> {
        self.emitter.emit(ReasoningEnd::new(&self.id)).await?;
        self.open = false;
        Ok(())
    }
}

impl Drop for ReasoningSpan {
    fn drop(&mut self) {
        if self.open {
            self.emitter.emit_now(ReasoningEnd::new(&self.id));
        }
    }
}

/// An open reasoning message. Dropping it closes the message.
#[derive(Debug)]
pub struct ReasoningMessage {
    emitter: Emitter,
    id: MessageId,
    open: bool,
}

impl ReasoningMessage {
    /// The message's id.
    #[must_use]
    pub fn id(&self) -> &MessageId {
        &self.id
    }

    /// Appends a piece of text.
    pub async fn push(&mut self, delta: impl Into<String>) -> Result<(), EmitError> {
        self.emitter.emit(ReasoningMessageContent::new(&self.id, delta)).await
    }

    /// Attaches a provider's opaque artefact to the message.
    pub async fn encrypted_value(&mut self, value: impl Into<String>) -> Result<(), EmitError> {
        let subtype = EncryptedValueSubtype::Message;
        self.emitter.emit(ReasoningEncryptedValue::new(subtype, self.id.clone(), value)).await
    }

    /// Closes the message and gives its id.
    pub async fn end(mut self) -> Result<MessageId, EmitError> {
        self.emitter.emit(ReasoningMessageEnd::new(&self.id)).await?;
        self.open = false;
        Ok(self.id.clone())
    }
}

impl Drop for ReasoningMessage {
    fn drop(&mut self) {
        if self.open {
            self.emitter.emit_now(ReasoningMessageEnd::new(&self.id));
        }
    }
}
