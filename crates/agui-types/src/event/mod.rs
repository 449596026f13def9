//! The 31 events of the protocol, one struct each, and [`Event`], any of them.
//!
//! Fields are public; what is optional is an `Option` and has a setter of the same name:
//!
//! ```
//! use agui_types::event::{Event, TextMessageStart};
//! use agui_types::ToJson;
//!
//! let start = TextMessageStart::new("m1").name("Ada");
//! assert_eq!(start.message_id, "m1");
//! let event = Event::from(start);
//! assert_eq!(event.to_json(), r#"{"type":"TEXT_MESSAGE_START","messageId":"m1","name":"Ada"}"#);
//! ```

mod activity;
mod base;
mod passthrough;
mod reasoning;
mod run;
mod state;
mod step;
mod subagent;
mod text;
mod tool_call;

pub use activity::{ActivityDelta, ActivitySnapshot};
pub use base::EventBase;
pub use passthrough::{Custom, Raw};
pub use reasoning::{
    EncryptedValueSubtype, ReasoningEncryptedValue, ReasoningEnd, ReasoningMessageChunk,
    ReasoningMessageContent, ReasoningMessageEnd, ReasoningMessageStart, ReasoningStart,
};
pub use run::{RunError, RunFinished, RunStarted};
pub use state::{MessagesSnapshot, StateDelta, StateSnapshot};
pub use step::{StepFinished, StepStarted};
pub use subagent::{SubagentError, SubagentFinished, SubagentStarted};
pub use text::{TextMessageChunk, TextMessageContent, TextMessageEnd, TextMessageStart, TextRole};
pub use tool_call::{
    ToolCallArgs, ToolCallChunk, ToolCallEnd, ToolCallResult, ToolCallStart, ToolRole,
};

use crate::SubagentRunId;
use crate::read::{Read, ReadError, ReadErrorKind, Reader};

/// Lists the events once, for everything that has to name them all.
macro_rules! events {
    ($(
        $(#[$meta:meta])*
        $tag:literal => $name:ident($($inner:tt)*) $attribution:ident,
    )*) => {
        /// The kind of an event: the value of its `type` member.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum EventType {
            $($(#[$meta])* $name,)*
        }

        impl EventType {
            /// All 31, in the order of the schema.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The name on the wire, such as `TEXT_MESSAGE_CONTENT`.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $tag,)*
                }
            }
        }

        /// Any event.
        ///
        /// An event of a type that this version of the protocol does not describe is kept as
        /// [`Event::Unknown`], byte for byte. An event takes at most 96 bytes; the large ones are
        /// boxed.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum Event {
            $($(#[$meta])* $name(events!(@stored $name $($inner)*)),)*
            /// An event of a type that this version of the protocol does not describe.
            Unknown(crate::Unknown),
        }

        impl Event {
            /// The event's type, or `None` for an unknown one.
            #[must_use]
            pub fn event_type(&self) -> Option<EventType> {
                match self {
                    $(Self::$name(_) => Some(EventType::$name),)*
                    Self::Unknown(_) => None,
                }
            }

            /// What every described event can carry; `None` for an unknown one.
            #[must_use]
            pub fn base(&self) -> Option<&EventBase> {
                match self {
                    $(Self::$name(event) => Some(&event.base),)*
                    Self::Unknown(_) => None,
                }
            }

            /// What every described event can carry, to change it; `None` for an unknown one.
            #[must_use]
            pub fn base_mut(&mut self) -> Option<&mut EventBase> {
                match self {
                    $(Self::$name(event) => Some(&mut event.base),)*
                    Self::Unknown(_) => None,
                }
            }

            /// Attributes the event to a subagent invocation, unless it is attributed already or is
            /// one that cannot be.
            pub fn attribute(&mut self, owner: &SubagentRunId) {
                match self {
                    $(Self::$name(event) => events!(@attribute $attribution event owner),)*
                    Self::Unknown(_) => {}
                }
            }

            /// The subagent invocation this event is attributed to. `None` for the parent agent,
            /// for the events that cannot be attributed, and for the three `SUBAGENT_*` events,
            /// whose id identifies and does not attribute.
            #[must_use]
            pub fn attribution(&self) -> Option<&SubagentRunId> {
                match self {
                    $(Self::$name(event) => events!(@attribution $attribution event),)*
                    Self::Unknown(_) => None,
                }
            }
        }

        $(
            impl From<$name> for Event {
                fn from(event: $name) -> Self {
                    Self::$name(event.into())
                }
            }
        )*

        impl Read for Event {
            fn read(reader: &mut Reader<'_, '_>) -> Result<Self, ReadError> {
                let discriminator = reader.discriminator("type", "\"type\":");
                let discriminator = discriminator.map_err(not_an_event)?;
                let members = discriminator.members;
                Ok(match &*discriminator.tag {
                    $($tag => Self::$name($name::read_members(reader, members)?.into()),)*
                    "" => {
                        let (offset, found) = (discriminator.offset, "an empty string");
                        let kind = ReadErrorKind::NotAnEvent;
                        return Err(ReadError::new(kind, offset, "a type", found).inside("/type"));
                    }
                    _ => {
                        let expected = "one of the 31 event types";
                        Self::Unknown(reader.unknown_variant(discriminator, expected)?)
                    }
                })
            }
        }

        impl crate::json::write::Write for Event {
            fn write(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$name(event) => event.write(out),)*
                    Self::Unknown(unknown) => unknown.json().write(out),
                }
            }

            fn writes_densely(&self) -> bool {
                !matches!(self, Self::Unknown(_))
            }
        }

        #[cfg(feature = "schemars")]
        impl crate::schema::Described for Event {
            fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                crate::schema::one_of([$(generator.subschema_for::<$name>(),)*])
            }
        }
    };
    (@stored $name:ident box) => { Box<$name> };
    (@stored $name:ident) => { $name };
    (@attribute attributed $event:ident $owner:ident) => {
        if $event.subagent_run_id.is_none() {
            $event.subagent_run_id = Some($owner.clone());
        }
    };
    (@attribute run $event:ident $owner:ident) => {{ let _ = ($event, $owner); }};
    (@attribution attributed $event:ident) => { $event.subagent_run_id.as_ref() };
    (@attribution run $event:ident) => {{ let _ = $event; None }};
}

events! {
    /// Opens a streamed text message.
    "TEXT_MESSAGE_START" => TextMessageStart() attributed,
    /// Appends to a streamed text message.
    "TEXT_MESSAGE_CONTENT" => TextMessageContent() attributed,
    /// Closes a streamed text message.
    "TEXT_MESSAGE_END" => TextMessageEnd() attributed,
    /// Shorthand for opening, appending to and closing a text message.
    "TEXT_MESSAGE_CHUNK" => TextMessageChunk(box) attributed,
    /// Opens a tool call.
    "TOOL_CALL_START" => ToolCallStart() attributed,
    /// Appends to the arguments of a tool call.
    "TOOL_CALL_ARGS" => ToolCallArgs() attributed,
    /// Closes a tool call: its arguments are complete.
    "TOOL_CALL_END" => ToolCallEnd() attributed,
    /// Shorthand for opening, appending to and closing a tool call.
    "TOOL_CALL_CHUNK" => ToolCallChunk(box) attributed,
    /// What a tool returned.
    "TOOL_CALL_RESULT" => ToolCallResult(box) attributed,
    /// Replaces the state.
    "STATE_SNAPSHOT" => StateSnapshot() attributed,
    /// Patches the state.
    "STATE_DELTA" => StateDelta() attributed,
    /// Restates the conversation.
    "MESSAGES_SNAPSHOT" => MessagesSnapshot() run,
    /// Creates or replaces an activity message.
    "ACTIVITY_SNAPSHOT" => ActivitySnapshot(box) attributed,
    /// Patches an activity message.
    "ACTIVITY_DELTA" => ActivityDelta(box) attributed,
    /// A provider's own event, untranslated.
    "RAW" => Raw() attributed,
    /// An application's own event.
    "CUSTOM" => Custom() attributed,
    /// Opens a run.
    "RUN_STARTED" => RunStarted(box) run,
    /// Closes a run that did not fail.
    "RUN_FINISHED" => RunFinished(box) run,
    /// Ends a run that failed.
    "RUN_ERROR" => RunError(box) run,
    /// Opens a step.
    "STEP_STARTED" => StepStarted() attributed,
    /// Closes a step.
    "STEP_FINISHED" => StepFinished() attributed,
    /// Opens a span of reasoning.
    "REASONING_START" => ReasoningStart() attributed,
    /// Opens a streamed reasoning message.
    "REASONING_MESSAGE_START" => ReasoningMessageStart() attributed,
    /// Appends to a streamed reasoning message.
    "REASONING_MESSAGE_CONTENT" => ReasoningMessageContent() attributed,
    /// Closes a streamed reasoning message.
    "REASONING_MESSAGE_END" => ReasoningMessageEnd() attributed,
    /// Shorthand for opening, appending to and closing a reasoning message.
    "REASONING_MESSAGE_CHUNK" => ReasoningMessageChunk() attributed,
    /// Closes a span of reasoning.
    "REASONING_END" => ReasoningEnd() attributed,
    /// A provider's opaque artefact for a message or a tool call.
    "REASONING_ENCRYPTED_VALUE" => ReasoningEncryptedValue(box) attributed,
    /// Announces a subagent invocation.
    "SUBAGENT_STARTED" => SubagentStarted(box) run,
    /// Ends a subagent invocation's part of the run.
    "SUBAGENT_FINISHED" => SubagentFinished(box) run,
    /// A subagent invocation failed.
    "SUBAGENT_ERROR" => SubagentError() run,
}

const _: () = assert!(size_of::<Event>() <= 96, "an event takes at most 96 bytes");

bridge!(Event);

impl Event {
    /// The `type` member's value, for an unknown event too.
    #[must_use]
    pub fn type_name(&self) -> &str {
        match self {
            Self::Unknown(unknown) => unknown.tag(),
            described => described.event_type().map_or("", EventType::as_str),
        }
    }

    /// Whether the event ends a run: `RUN_FINISHED` or `RUN_ERROR`.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::RunFinished(_) | Self::RunError(_))
    }
}

impl std::fmt::Display for EventType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for EventType {
    type Err = UnknownEventType;

    fn from_str(text: &str) -> Result<Self, UnknownEventType> {
        let known = Self::ALL.iter().find(|known| known.as_str() == text);
        known.copied().ok_or_else(|| UnknownEventType(text.into()))
    }
}

/// A string is not the name of one of the 31 event types.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an event type of the protocol")]
pub struct UnknownEventType(Box<str>);

/// A frame without a string `type`, or that is no object, is a fault of the frame and not of a
/// member in it (T-22).
fn not_an_event(error: ReadError) -> ReadError {
    match error.kind() {
        ReadErrorKind::Missing => error.into_kind(ReadErrorKind::NotAnEvent, "nothing"),
        ReadErrorKind::WrongType => error.into_kind(ReadErrorKind::NotAnEvent, ""),
        _ => error,
    }
}
