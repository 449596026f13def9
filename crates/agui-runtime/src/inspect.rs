//! Threads as a front end's inspector shows them.

use agui_types::{JsonObject, Message, MessageContent};
use serde::Serialize;

/// A message in a list: flat, without what only an agent needs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MessageRow<'a> {
    id: &'a str,
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<RowContent<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<Vec<CallRow<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    activity_type: Option<&'a str>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum RowContent<'a> {
    Text(&'a str),
    Parts(&'a MessageContent),
    Activity(&'a JsonObject),
}

/// A tool call; `args` is the text of its arguments.
#[derive(Debug, Serialize)]
struct CallRow<'a> {
    id: &'a str,
    name: &'a str,
    args: &'a str,
}

impl<'a> MessageRow<'a> {
    /// The row of a message; `None` for one of a role that nobody knows.
    pub(crate) fn of(message: &'a Message) -> Option<Self> {
        let row = |id: &'a str, role, content| Self {
            id,
            role,
            content,
            tool_calls: None,
            tool_call_id: None,
            activity_type: None,
        };
        let text = |text: &'a String| Some(RowContent::Text(text));
        Some(match message {
            Message::Developer(it) => row(it.id.as_str(), "developer", text(&it.content)),
            Message::System(it) => row(it.id.as_str(), "system", text(&it.content)),
            Message::Reasoning(it) => row(it.id.as_str(), "reasoning", text(&it.content)),
            Message::User(it) => row(it.id.as_str(), "user", Some(RowContent::Parts(&it.content))),
            Message::Assistant(it) => {
                let content = it.content.as_ref().and_then(text);
                let calls = it.tool_calls.as_ref().map(|calls| {
                    let row = |call: &'a agui_types::ToolCall| CallRow {
                        id: call.id.as_str(),
                        name: &call.function.name,
                        args: &call.function.arguments,
                    };
                    calls.iter().map(row).collect()
                });
                Self { tool_calls: calls, ..row(it.id.as_str(), "assistant", content) }
            }
            Message::Tool(it) => {
                let content = Some(RowContent::Parts(&it.content));
                let call = Some(it.tool_call_id.as_str());
                Self { tool_call_id: call, ..row(it.id.as_str(), "tool", content) }
            }
            Message::Activity(it) => {
                let content = Some(RowContent::Activity(&it.content));
                let kind = Some(it.activity_type.as_str());
                Self { activity_type: kind, ..row(it.id.as_str(), "activity", content) }
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use agui_types::FromJson;

    use super::*;

    #[test]
    fn rows_are_flat() {
        for (message, row) in [
            (
                r#"{"id":"a","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}"#,
                r#"{"id":"a","role":"assistant","toolCalls":[{"id":"c","name":"f","args":"{}"}]}"#,
            ),
            (
                r#"{"id":"u","role":"user","content":"Hi","name":"Ada"}"#,
                r#"{"id":"u","role":"user","content":"Hi"}"#,
            ),
            (
                r#"{"id":"u","role":"user","content":[{"type":"text","text":"Hi"}]}"#,
                r#"{"id":"u","role":"user","content":[{"type":"text","text":"Hi"}]}"#,
            ),
            (
                r#"{"id":"t","role":"tool","content":"4","toolCallId":"c"}"#,
                r#"{"id":"t","role":"tool","content":"4","toolCallId":"c"}"#,
            ),
            (
                r#"{"id":"p","role":"activity","activityType":"plan","content":{"steps":[]}}"#,
                r#"{"id":"p","role":"activity","content":{"steps":[]},"activityType":"plan"}"#,
            ),
        ] {
            let message = Message::from_json_exact(message).unwrap();
            let found = serde_json::to_string(&MessageRow::of(&message).unwrap()).unwrap();
            assert_eq!(found, row);
        }
    }
}
