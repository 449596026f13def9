//! Changing a message, whatever its role.

use agui_types::json::MAX_DEPTH;
use agui_types::message::TextPart;
use agui_types::{ContentPart, Message, MessageContent, Metadata};

use super::change::Applied;

/// Appends to a message's text. `false` where it has none: an activity, an unknown role.
pub(super) fn append(message: &mut Message, delta: &str) -> bool {
    match message {
        Message::Developer(message) => message.content.push_str(delta),
        Message::System(message) => message.content.push_str(delta),
        Message::Reasoning(message) => message.content.push_str(delta),
        Message::Assistant(message) => {
            message.content.get_or_insert_default().push_str(delta);
        }
        Message::User(message) => append_content(&mut message.content, delta),
        Message::Tool(message) => append_content(&mut message.content, delta),
        _ => return false,
    }
    true
}

fn append_content(content: &mut MessageContent, delta: &str) {
    match content {
        MessageContent::Text(text) => text.push_str(delta),
        MessageContent::Parts(parts) => match parts.last_mut() {
            Some(ContentPart::Text(part)) => part.text.push_str(delta),
            _ if delta.is_empty() => {}
            _ => parts.push(TextPart::new(delta).into()),
        },
    }
}

/// Where a message's metadata is kept; `None` for an unknown role.
pub(super) fn metadata_mut(message: &mut Message) -> Option<&mut Option<Metadata>> {
    Some(match message {
        Message::Developer(message) => &mut message.metadata,
        Message::System(message) => &mut message.metadata,
        Message::Assistant(message) => &mut message.metadata,
        Message::User(message) => &mut message.metadata,
        Message::Tool(message) => &mut message.metadata,
        Message::Activity(message) => &mut message.metadata,
        Message::Reasoning(message) => &mut message.metadata,
        _ => return None,
    })
}

/// Merges metadata per key, the last write winning (C-76). `false` where it nests too deep: it
/// stands deeper in a run's input than in an event, and has to be readable there too.
pub(super) fn merge(held: &mut Option<Metadata>, newer: &Metadata, applied: &mut Applied) -> bool {
    /// How deep a call's metadata stands in a run's input: the deepest there is.
    const LEVELS: usize = 5;
    let limit = MAX_DEPTH - LEVELS;
    if newer.depth() > limit {
        let message = format!("the metadata is left out: it nests deeper than {limit} levels");
        applied.warn("C-76", "/metadata", message);
        return false;
    }
    match held {
        Some(held) => held.merge(newer),
        None => *held = Some(newer.clone()),
    }
    true
}

/// Where a message's encrypted value and its type are kept; `None` where it can hold none: an
/// activity, an unknown role.
pub(super) fn encrypted_mut(
    message: &mut Message,
) -> Option<(&mut Option<String>, &mut Option<String>)> {
    macro_rules! fields {
        ($message:expr) => {
            (&mut $message.encrypted_value, &mut $message.encrypted_value_type)
        };
    }
    Some(match message {
        Message::Developer(message) => fields!(message),
        Message::System(message) => fields!(message),
        Message::Assistant(message) => fields!(message),
        Message::User(message) => fields!(message),
        Message::Tool(message) => fields!(message),
        Message::Reasoning(message) => fields!(message),
        _ => return None,
    })
}
