//! The events, and the envelope around them.

use agui_types::event::{
    ActivityDelta, ActivitySnapshot, Custom, MessagesSnapshot, Raw, ReasoningEncryptedValue,
    ReasoningEnd, ReasoningMessageChunk, ReasoningMessageContent, ReasoningMessageEnd,
    ReasoningMessageStart, ReasoningStart, RunError, RunFinished, RunStarted, StateDelta,
    StateSnapshot, StepFinished, StepStarted, SubagentError, SubagentFinished, SubagentStarted,
    TextMessageChunk, TextMessageContent, TextMessageEnd, TextMessageStart, ToolCallArgs,
    ToolCallChunk, ToolCallEnd, ToolCallResult, ToolCallStart,
};
use agui_types::event::{EncryptedValueSubtype, TextRole};
use agui_types::{
    EntityId, Event, EventType, Json, JsonObject, JsonPatch, Message, MessageId, ProtocolVersion,
    RunAgentInput, RunId, SubagentRunId, ThreadId, TokenUsage, ToolCallId,
};

use super::context::Context;
use super::fault::{Fault, Problem};
use super::field::{Field, Message as _};
use super::scan::{Pieces, Raw as Value, is_message};
use super::write::Writer;
use crate::encode_error::{EncodeError, EncodeErrorKind};

/// Lists the events once: field in the envelope, number of the type, name.
macro_rules! envelope {
    ($($number:literal $enum_number:literal $name:ident,)*) => {
        /// The number of an event's type, which is not that of its field in the envelope.
        pub(super) fn enum_number(kind: EventType) -> u32 {
            match kind {
                $(EventType::$name => $enum_number,)*
                // A type of a later version than this table; the tests see that there is none.
                _ => u32::MAX,
            }
        }

        /// The envelope's fields: number, type, number of the type, message.
        pub(super) const ENVELOPE: &[(u32, EventType, u32, &str, &[Field])] = &[
            $(($number, EventType::$name, $enum_number, $name::NAME, $name::FIELDS),)*
        ];

        fn read_event(
            number: u32,
            pieces: &Pieces<'_>,
            cx: &mut Context<'_>,
        ) -> Result<Event, Fault> {
            Ok(match number {
                $($number => $name::read_fields(pieces, cx)?.into(),)*
                _ => return Err(Fault::malformed(Problem::NoEvent, pieces.start())),
            })
        }

        /// Writes an envelope's one field.
        pub(super) fn write(event: &Event, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
            match event {
                $(Event::$name(event) => {
                    let message = writer.open($number);
                    event.write_fields(writer)?;
                    writer.close(message);
                    Ok(())
                })*
                other => {
                    let name = other.type_name().into();
                    Err(writer.refuse(EncodeErrorKind::UnknownEvent(name)))
                }
            }
        }
    };
}

envelope! {
    1 0 TextMessageStart,
    2 1 TextMessageContent,
    3 2 TextMessageEnd,
    4 3 ToolCallStart,
    5 4 ToolCallArgs,
    6 5 ToolCallEnd,
    7 6 StateSnapshot,
    8 7 StateDelta,
    9 8 MessagesSnapshot,
    10 9 Raw,
    11 10 Custom,
    12 11 RunStarted,
    13 12 RunFinished,
    14 13 RunError,
    15 14 StepStarted,
    16 15 StepFinished,
    17 19 TextMessageChunk,
    18 20 ToolCallChunk,
    19 16 SubagentStarted,
    20 17 SubagentFinished,
    21 18 SubagentError,
    22 21 ToolCallResult,
    23 22 ActivitySnapshot,
    24 23 ActivityDelta,
    25 24 ReasoningStart,
    26 25 ReasoningMessageStart,
    27 26 ReasoningMessageContent,
    28 27 ReasoningMessageEnd,
    29 28 ReasoningMessageChunk,
    30 29 ReasoningEnd,
    31 30 ReasoningEncryptedValue,
}

/// The envelope's fields are numbered from 1 without a gap.
fn is_known(number: u32) -> bool {
    number as usize <= ENVELOPE.len()
}

/// What an envelope held.
pub(super) enum Opened {
    Event(Event),
    /// Only events of a later version, the first of them in this field (T-30).
    Unknown(u32),
}

/// Reads an envelope: one event, or what may be one to a later version.
#[inline]
pub(super) fn read(frame: &[u8], cx: &mut Context<'_>) -> Result<Opened, Fault> {
    let mut fields = Pieces::fields_of(frame);
    // No field has this number.
    let mut known = 0;
    let mut event = Pieces::default();
    let mut unknown = None;
    let mut unreadable = None;
    while let Some((number, raw)) = fields.next()? {
        match raw {
            Value::Bytes(bytes) if !is_known(number) => {
                unknown = unknown.or(Some(number));
                if known == 0 && !is_message(bytes) {
                    unreadable = Some(bytes);
                }
            }
            _ if !is_known(number) => {}
            Value::Bytes(bytes) if known == 0 => {
                known = number;
                event = Pieces::new(bytes);
            }
            Value::Bytes(bytes) if known == number => {
                cx.item()?;
                event.add(bytes);
            }
            Value::Bytes(bytes) => return Err(Fault::malformed(Problem::TwoEvents, bytes)),
            _ => return Err(Fault::malformed(Problem::NotAMessage, frame)),
        }
    }
    if known != 0 {
        return read_event(known, &event, cx).map(Opened::Event);
    }
    match (unknown, unreadable) {
        (Some(number), None) => Ok(Opened::Unknown(number)),
        (_, Some(bytes)) => Err(Fault::malformed(Problem::NotAMessage, bytes)),
        (None, None) => Err(Fault::malformed(Problem::NoEvent, frame)),
    }
}

message! {
    event TextMessageStart new(message_id) set(role, name, subagent_run_id) {
        2 message_id: MessageId,
        3 role: Option<TextRole>,
        4 name: Option<String>,
        5 subagent_run_id: Option<SubagentRunId>,
    }
}
message! {
    event TextMessageContent new(message_id, delta) set(subagent_run_id) {
        2 message_id: MessageId,
        3 delta: String,
        4 subagent_run_id: Option<SubagentRunId>,
    }
}
message! {
    event TextMessageEnd new(message_id) set(subagent_run_id) {
        2 message_id: MessageId,
        3 subagent_run_id: Option<SubagentRunId>,
    }
}
message! {
    event TextMessageChunk new() set(message_id, role, delta, name, subagent_run_id) {
        2 message_id: Option<MessageId>,
        3 role: Option<TextRole>,
        4 delta: Option<String>,
        5 name: Option<String>,
        6 subagent_run_id: Option<SubagentRunId>,
    }
}

message! {
    event ToolCallStart new(tool_call_id, tool_call_name) set(parent_message_id, subagent_run_id) {
        2 tool_call_id: ToolCallId,
        3 tool_call_name: String,
        4 parent_message_id: Option<MessageId>,
        5 subagent_run_id: Option<SubagentRunId>,
    }
}
message! {
    event ToolCallArgs new(tool_call_id, delta) set(subagent_run_id) {
        2 tool_call_id: ToolCallId,
        3 delta: String,
        4 subagent_run_id: Option<SubagentRunId>,
    }
}
message! {
    event ToolCallEnd new(tool_call_id) set(subagent_run_id) {
        2 tool_call_id: ToolCallId,
        3 subagent_run_id: Option<SubagentRunId>,
    }
}
message! {
    event ToolCallChunk new()
    set(tool_call_id, tool_call_name, parent_message_id, delta, subagent_run_id) {
        2 tool_call_id: Option<ToolCallId>,
        3 tool_call_name: Option<String>,
        4 parent_message_id: Option<MessageId>,
        5 delta: Option<String>,
        6 subagent_run_id: Option<SubagentRunId>,
    }
}

message! {
    event StateSnapshot new(snapshot) set(subagent_run_id) {
        2 snapshot: Json,
        3 subagent_run_id: Option<SubagentRunId>,
    }
}
message! {
    event StateDelta new(delta) set(subagent_run_id) {
        2 delta: JsonPatch,
        3 subagent_run_id: Option<SubagentRunId>,
    }
}
message! {
    event MessagesSnapshot new(messages) set() {
        2 messages: Vec<Message>,
    }
}
message! {
    event ActivitySnapshot new(message_id, activity_type, content) set(subagent_run_id, replace) {
        2 subagent_run_id: Option<SubagentRunId>,
        3 message_id: MessageId,
        4 activity_type: String,
        5 content: JsonObject,
        6 replace: Option<bool>,
    }
}
message! {
    event ActivityDelta new(message_id, activity_type, patch) set(subagent_run_id) {
        2 subagent_run_id: Option<SubagentRunId>,
        3 message_id: MessageId,
        4 activity_type: String,
        5 patch: JsonPatch,
    }
}

message! {
    event Raw new(event) set(source, subagent_run_id) {
        2 event: Json,
        3 source: Option<String>,
        4 subagent_run_id: Option<SubagentRunId>,
    }
}
message! {
    event Custom new(name, value) set(subagent_run_id) {
        2 name: String,
        3 value: Json,
        4 subagent_run_id: Option<SubagentRunId>,
    }
}

message! {
    event RunStarted new(thread_id, run_id) set(parent_run_id, input, protocol_version) {
        2 thread_id: ThreadId,
        3 run_id: RunId,
        4 parent_run_id: Option<RunId>,
        5 input: Option<Box<RunAgentInput>>,
        6 protocol_version: Option<ProtocolVersion>,
    }
}
message! {
    event RunError new(message) set(code, usage) {
        2 code: Option<String>,
        3 message: String,
        4 usage: Option<Vec<TokenUsage>>,
    }
}

message! {
    event StepStarted new(step_name) set(subagent_run_id) {
        2 step_name: String,
        3 subagent_run_id: Option<SubagentRunId>,
    }
}
message! {
    event StepFinished new(step_name) set(subagent_run_id) {
        2 step_name: String,
        3 subagent_run_id: Option<SubagentRunId>,
    }
}

message! {
    event ReasoningStart new(message_id) set(subagent_run_id) {
        2 subagent_run_id: Option<SubagentRunId>,
        3 message_id: MessageId,
    }
}
message! {
    event ReasoningMessageStart new(message_id) set(subagent_run_id) {
        2 subagent_run_id: Option<SubagentRunId>,
        3 message_id: MessageId,
        4 role as "role" = "reasoning",
    }
}
message! {
    event ReasoningMessageContent new(message_id, delta) set(subagent_run_id) {
        2 subagent_run_id: Option<SubagentRunId>,
        3 message_id: MessageId,
        4 delta: String,
    }
}
message! {
    event ReasoningMessageEnd new(message_id) set(subagent_run_id) {
        2 subagent_run_id: Option<SubagentRunId>,
        3 message_id: MessageId,
    }
}
message! {
    event ReasoningMessageChunk new() set(subagent_run_id, message_id, delta) {
        2 subagent_run_id: Option<SubagentRunId>,
        3 message_id: Option<MessageId>,
        4 delta: Option<String>,
    }
}
message! {
    event ReasoningEnd new(message_id) set(subagent_run_id) {
        2 subagent_run_id: Option<SubagentRunId>,
        3 message_id: MessageId,
    }
}
message! {
    event ReasoningEncryptedValue new(subtype, entity_id, encrypted_value)
    set(subagent_run_id, encrypted_value_type) {
        2 subagent_run_id: Option<SubagentRunId>,
        3 subtype: EncryptedValueSubtype,
        4 entity_id: EntityId,
        5 encrypted_value: String,
        6 encrypted_value_type: Option<String>,
    }
}

message! {
    event SubagentStarted new(subagent_run_id, name)
    set(description, parent_subagent_run_id, parent_tool_call_id, parent_message_id) {
        2 subagent_run_id: SubagentRunId,
        3 name: String,
        4 description: Option<String>,
        5 parent_subagent_run_id: Option<SubagentRunId>,
        6 parent_tool_call_id: Option<ToolCallId>,
        7 parent_message_id: Option<MessageId>,
    }
}
message! {
    event SubagentError new(subagent_run_id, message) set(code) {
        2 subagent_run_id: SubagentRunId,
        3 message: String,
        4 code: Option<String>,
    }
}
