//! Messages: the conversation as it is held and sent.

mod content;
mod tool_call;

pub use content::{
    AudioPart, ContentPart, DataSource, DocumentPart, FileSource, ImagePart, MessageContent,
    PartSource, TextPart, UrlSource, VideoPart,
};
pub use tool_call::{FunctionCall, ToolCall};

use crate::json::Cursor;
use crate::{JsonObject, MessageId, Metadata, SubagentRunId, ToolCallId};

/// A message that composes the members the developer, system, assistant and user messages share.
macro_rules! conversational {
    (
        $(#[$meta:meta])*
        $name:ident = $role:literal {
            required { $($required:tt)* }
            optional { $($optional:tt)* }
        }
    ) => {
        object! {
            $(#[$meta])*
            $name {
                tags { "role" = $role }
                required {
                    /// The message's id, unique in its thread (P-28).
                    id "id": MessageId,
                    $($required)*
                }
                optional {
                    $($optional)*
                    /// A display name for the author.
                    name "name": String,
                    /// A provider's opaque artefact, stored and returned unmodified (C-59).
                    encrypted_value "encryptedValue": String,
                    /// The producer's name for the kind of artefact (protocol 1.1).
                    encrypted_value_type "encryptedValueType": String,
                    /// Extra information attached to the message.
                    metadata "metadata": Metadata,
                    /// The subagent invocation the message belongs to. Absent: the parent agent.
                    subagent_run_id "subagentRunId": SubagentRunId,
                }
            }
        }
    };
}

conversational! {
    /// Instructions from the application's developer.
    DeveloperMessage = "developer" {
        required {
            /// The instructions.
            content "content": String,
        }
        optional {}
    }
}

conversational! {
    /// Instructions from the system.
    SystemMessage = "system" {
        required {
            /// The instructions.
            content "content": String,
        }
        optional {}
    }
}

conversational! {
    /// A message from the agent. A turn may consist of tool calls alone.
    AssistantMessage = "assistant" {
        required {}
        optional {
            /// What the agent said: text only, no parts.
            content "content": String,
            /// The tool calls this turn made.
            tool_calls "toolCalls": Vec<ToolCall>,
        }
    }
}

conversational! {
    /// A message from the person using the application.
    UserMessage = "user" {
        required {
            /// What the person sent.
            content "content": MessageContent,
        }
        optional {}
    }
}

object! {
    /// What a tool returned, as a message.
    ToolMessage {
        tags { "role" = "tool" }
        required {
            /// The message's id.
            id "id": MessageId,
            /// What the tool returned.
            content "content": MessageContent,
            /// The call this answers.
            tool_call_id "toolCallId": ToolCallId,
        }
        optional {
            /// Why the tool failed; beside `content`, not instead of it.
            error "error": String,
            /// A provider's opaque artefact, stored and returned unmodified (C-59).
            encrypted_value "encryptedValue": String,
            /// The producer's name for the kind of artefact (protocol 1.1).
            encrypted_value_type "encryptedValueType": String,
            /// Extra information attached to the message.
            metadata "metadata": Metadata,
            /// The subagent invocation the message belongs to. Absent: the parent agent.
            subagent_run_id "subagentRunId": SubagentRunId,
        }
    }
}

object! {
    /// Structured progress that takes its place among the messages. Never sent back (C-75).
    ActivityMessage {
        tags { "role" = "activity" }
        required {
            /// The message's id.
            id "id": MessageId,
            /// What kind of activity: an open string.
            activity_type "activityType": String,
            /// The payload; its keys are data.
            content "content": JsonObject,
        }
        optional {
            /// Extra information attached to the message.
            metadata "metadata": Metadata,
            /// The subagent invocation the message belongs to. Absent: the parent agent.
            subagent_run_id "subagentRunId": SubagentRunId,
        }
    }
}

object! {
    /// A stretch of the agent's reasoning, as a message.
    ReasoningMessage {
        tags { "role" = "reasoning" }
        required {
            /// The message's id.
            id "id": MessageId,
            /// The reasoning's text.
            content "content": String,
        }
        optional {
            /// A provider's opaque artefact, stored and returned unmodified (C-59).
            encrypted_value "encryptedValue": String,
            /// The producer's name for the kind of artefact (protocol 1.1).
            encrypted_value_type "encryptedValueType": String,
            /// Extra information attached to the message.
            metadata "metadata": Metadata,
            /// The subagent invocation the message belongs to. Absent: the parent agent.
            subagent_run_id "subagentRunId": SubagentRunId,
        }
    }
}

union! {
    /// Any message, told apart by its role.
    ///
    /// A message with a role that this version of the protocol does not describe is kept as
    /// [`Message::Unknown`], byte for byte.
    Message by "role", expected "a message role" {
        /// From the application's developer.
        "developer" => Developer(DeveloperMessage),
        /// From the system.
        "system" => System(SystemMessage),
        /// From the agent.
        "assistant" => Assistant(AssistantMessage),
        /// From the person using the application.
        "user" => User(UserMessage),
        /// What a tool returned.
        "tool" => Tool(ToolMessage),
        /// Structured progress.
        "activity" => Activity(ActivityMessage),
        /// Reasoning.
        "reasoning" => Reasoning(ReasoningMessage),
    }
}

impl Message {
    /// The message's id; `None` for an unknown role without a string `id`.
    #[must_use]
    pub fn id(&self) -> Option<MessageId> {
        Some(match self {
            Self::Developer(message) => message.id.clone(),
            Self::System(message) => message.id.clone(),
            Self::Assistant(message) => message.id.clone(),
            Self::User(message) => message.id.clone(),
            Self::Tool(message) => message.id.clone(),
            Self::Activity(message) => message.id.clone(),
            Self::Reasoning(message) => message.id.clone(),
            Self::Unknown(unknown) => {
                let object = JsonObject::try_from(unknown.json().clone()).ok()?;
                let id = Cursor::new(object.get("id")?).string().ok()?;
                MessageId::from(&*id)
            }
        })
    }

    /// The subagent invocation the message belongs to. `None`: the parent agent, or an unknown
    /// role.
    #[must_use]
    pub fn attribution(&self) -> Option<&SubagentRunId> {
        match self {
            Self::Developer(message) => message.subagent_run_id.as_ref(),
            Self::System(message) => message.subagent_run_id.as_ref(),
            Self::Assistant(message) => message.subagent_run_id.as_ref(),
            Self::User(message) => message.subagent_run_id.as_ref(),
            Self::Tool(message) => message.subagent_run_id.as_ref(),
            Self::Activity(message) => message.subagent_run_id.as_ref(),
            Self::Reasoning(message) => message.subagent_run_id.as_ref(),
            Self::Unknown(_) => None,
        }
    }
}
