//! Messages as the runtime protocol from before AG-UI knows them.

use std::collections::HashMap;

use agui_types::json::Value;
use agui_types::{JsonError, Message};

/// The name of a tool that is not known.
pub(super) const UNKNOWN: &str = "unknown";

/// The arguments of a tool call are not JSON, and that protocol wants them as a value.
#[derive(Debug, thiserror::Error)]
#[error("Failed to parse arguments for tool call '{call}' ({name}): {error}")]
pub(super) struct ArgumentsError {
    call: String,
    name: String,
    error: JsonError,
}

/// Texts, calls and results each become a message; one without text, and one of a role that
/// protocol does not know, becomes none.
///
/// Fails where the arguments of a call are not JSON.
pub(super) fn convert(messages: &[Message]) -> Result<Value, ArgumentsError> {
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut converted = Vec::new();
    for message in messages {
        let text = |id: &str, text: &str| {
            let members = [("id", id), ("role", message.tag()), ("content", text)];
            (!text.is_empty()).then(|| object(members.map(|(name, text)| (name, string(text)))))
        };
        match message {
            Message::User(user) => converted.extend(text(user.id.as_str(), &user.content.text())),
            Message::System(system) => converted.extend(text(system.id.as_str(), &system.content)),
            Message::Assistant(assistant) => {
                let id = assistant.id.as_str();
                converted.extend(text(id, assistant.content.as_deref().unwrap_or_default()));
                for call in assistant.tool_calls.iter().flatten() {
                    let name = call.function.name.as_str();
                    names.insert(call.id.as_str(), name);
                    let arguments = Value::parse(&call.function.arguments);
                    let arguments = arguments.map_err(|error| ArgumentsError {
                        call: call.id.to_string(),
                        name: name.to_owned(),
                        error,
                    })?;
                    converted.push(object([
                        ("id", string(call.id.as_str())),
                        ("name", string(name)),
                        ("arguments", arguments),
                        ("parentMessageId", string(id)),
                    ]));
                }
            }
            Message::Tool(tool) => converted.push(object([
                ("id", string(tool.id.as_str())),
                ("result", string(&tool.content.text())),
                ("actionExecutionId", string(tool.tool_call_id.as_str())),
                ("actionName", string(names.get(tool.tool_call_id.as_str()).unwrap_or(&UNKNOWN))),
            ])),
            _ => {}
        }
    }
    Ok(Value::Array(converted))
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn string(text: &str) -> Value {
    Value::String(text.to_owned())
}
