//! An activity under patches.

use std::sync::OnceLock;

use agui_types::json::Value;
use agui_types::message::ActivityMessage;
use agui_types::{JsonError, JsonObject, Message};

use crate::patch::Document;

/// An activity message whose content is kept as a tree, because it is being patched: a delta costs
/// what it changes, and the message's text is made again when someone reads it.
#[derive(Clone, Debug)]
pub(super) struct LiveActivity {
    /// The message without its content.
    message: ActivityMessage,
    content: Document,
    /// The message with its content; empty when something changed since it was last read.
    view: OnceLock<Message>,
}

impl LiveActivity {
    /// Takes a message's content apart.
    ///
    /// Fails never in practice: the content is one JSON object within the depth.
    pub(super) fn new(message: &ActivityMessage) -> Result<Self, JsonError> {
        let content = Document::new(Value::try_from(&*message.content)?);
        let mut message = message.clone();
        message.content = JsonObject::empty();
        Ok(Self { message, content, view: OnceLock::new() })
    }

    /// The message as it is now.
    pub(super) fn view(&self) -> &Message {
        self.view.get_or_init(|| {
            let mut message = self.message.clone();
            if let Ok(content) = JsonObject::try_from(self.content.value().to_json()) {
                message.content = content;
            }
            message.into()
        })
    }

    /// The message without its content, to change it.
    pub(super) fn message_mut(&mut self) -> &mut ActivityMessage {
        self.view.take();
        &mut self.message
    }

    /// The content, to patch it as an object.
    pub(super) fn content_mut(&mut self) -> &mut Document {
        self.view.take();
        &mut self.content
    }
}
