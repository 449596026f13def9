//! Where 0.x producers wrote `null` for absent. Anywhere else it is malformed.

use agui_types::{ContentPart, Event, Message, MessageContent};

/// The retired shape a `null` at this path is, if it is one.
pub(super) fn retired(event: &Event, path: &str) -> Option<&'static str> {
    match (path, event) {
        ("/rawEvent", _) => Some("rawEvent"),
        ("/parentMessageId", Event::ToolCallStart(_) | Event::ToolCallChunk(_)) => {
            Some("parentMessageId")
        }
        ("/outcome", Event::RunFinished(_)) => Some("outcome"),
        ("/result", Event::RunFinished(_) | Event::SubagentFinished(_)) => Some("result"),
        (_, Event::MessagesSnapshot(event)) => in_messages(&event.messages, path),
        (_, Event::RunStarted(event)) => {
            let messages = event.input.as_ref().map_or(&[][..], |input| &input.messages);
            in_input(messages, path.strip_prefix("/input")?)
        }
        _ => None,
    }
}

/// The retired shape a `null` at this path of a run input is, if it is one.
pub(crate) fn in_input(messages: &[Message], path: &str) -> Option<&'static str> {
    let steps: Vec<&str> = path.split('/').skip(1).take(4).collect();
    match steps.as_slice() {
        ["state"] => Some("input.state"),
        ["forwardedProps"] => Some("input.forwardedProps"),
        ["resume", _, "payload"] => Some("input.resume.payload"),
        ["tools", _, "parameters"] => Some("input.tools.parameters"),
        _ => in_messages(messages, path),
    }
}

/// The metadata of media parts; that of text parts was never `null`.
fn in_messages(messages: &[Message], path: &str) -> Option<&'static str> {
    let steps: Vec<&str> = path.split('/').skip(1).take(6).collect();
    let ["messages", message, "content", part, "metadata"] = steps.as_slice() else {
        return None;
    };
    let content = match messages.get(message.parse::<usize>().ok()?)? {
        Message::User(message) => &message.content,
        Message::Tool(message) => &message.content,
        _ => return None,
    };
    let MessageContent::Parts(parts) = content else {
        return None;
    };
    let media = !matches!(parts.get(part.parse::<usize>().ok()?)?, ContentPart::Text(_));
    media.then_some("content.metadata")
}
