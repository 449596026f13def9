//! What a change has added.

use agui_stream::fold::Change;
use agui_types::{ContentPart, Message, MessageContent};

use super::Session;

impl Session {
    /// The text that a change has just added: to a message's text, or to a call's arguments. `None` for
    /// other changes, and for one of long ago, whose message is not there any more.
    ///
    /// ```
    /// # use agui_agent::session::{Session, Update};
    /// # async fn print(mut session: Session) {
    /// let mut turn = session.send("hello");
    /// while let Some(update) = turn.next().await {
    ///     if let Update::Change(change) = update {
    ///         print!("{}", turn.appended(&change).unwrap_or_default());
    ///     }
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn appended(&self, change: &Change) -> Option<&str> {
        let (text, bytes) = match change {
            Change::TextAppended { message, bytes } => {
                (end_of(self.messages().find(message.as_str())?)?, *bytes)
            }
            Change::ArgumentsAppended { tool_call, bytes, .. } => {
                let (_, call) = self.messages().find_call(tool_call.as_str())?;
                (&*call.function.arguments, *bytes)
            }
            _ => return None,
        };
        text.get(text.len().checked_sub(bytes)?..)
    }
}

/// The text of a message, or the last of its parts: where it grows.
fn end_of(message: &Message) -> Option<&str> {
    match message {
        Message::Developer(message) => Some(&message.content),
        Message::System(message) => Some(&message.content),
        Message::Reasoning(message) => Some(&message.content),
        Message::Assistant(message) => message.content.as_deref(),
        Message::User(message) => end_of_content(&message.content),
        Message::Tool(message) => end_of_content(&message.content),
        _ => None,
    }
}

fn end_of_content(content: &MessageContent) -> Option<&str> {
    match content {
        MessageContent::Text(text) => Some(text),
        MessageContent::Parts(parts) => match parts.last()? {
            ContentPart::Text(part) => Some(&part.text),
            _ => None,
        },
    }
}
