//! The nouns of the AG-UI protocol: [events](event), [messages](message), the [run
//! input](RunAgentInput), outcomes, interrupts, usage, capabilities.
//!
//! Everything is exact on the wire. What the protocol does not interpret ([`Json`], [`JsonObject`])
//! keeps its text byte for byte; what a union does not know is kept whole; what is absent is not
//! written; absent and `null` are told apart. There are two ways to read ([`FromJson`]): exactly, as
//! the published JSON Schema says, and tolerantly, as a receiver must, with everything that was not
//! recognised handed back with its path.
//!
//! ```
//! use agui_types::{Event, FromJson, ToJson};
//! use agui_types::event::TextMessageContent;
//!
//! let event = Event::from(TextMessageContent::new("m1", "Hello"));
//! let text = r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"Hello"}"#;
//! assert_eq!(event.to_json(), text);
//! assert_eq!(Event::from_json_exact(text)?, event);
//!
//! let newer = r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"Hello","mood":"good"}"#;
//! let reading = Event::from_json_tolerant(newer)?;
//! assert_eq!(reading.value, event);
//! assert_eq!(reading.findings[0].path, "/mood");
//!
//! let error = Event::from_json_exact(newer).unwrap_err();
//! assert_eq!(error.path(), "/mood");
//! # Ok::<(), agui_types::ReadError>(())
//! ```
//!
//! The types implement `serde`'s traits too, with the same text in and out of `serde_json`; a format
//! that is not JSON gets what is opaque as `serde_json`'s raw value.
//!
//! No runtime, no I/O, no clock. Feature `schemars` derives JSON Schemas.
#![forbid(unsafe_code)]

#[macro_use]
mod macros;

pub mod capabilities;
pub mod event;
#[doc(hidden)]
pub mod fuzzing;
mod ids;
mod input;
pub mod json;
pub mod message;
mod number;
mod outcome;
mod patch;
pub mod read;
#[cfg(feature = "schemars")]
mod schema;
mod unknown;
mod usage;
mod version;

pub use capabilities::AgentCapabilities;
pub use event::{Event, EventType};
pub use ids::{EntityId, InterruptId, MessageId, RunId, SubagentRunId, ThreadId, ToolCallId};
pub use input::{Context, ResumeEntry, ResumeStatus, RunAgentInput, Tool};
pub use json::{Json, JsonError, JsonObject};
pub use message::{ContentPart, Message, MessageContent, PartSource, ToolCall};
pub use number::{Count, MAX_SAFE_INTEGER, Timestamp};
pub use outcome::{
    CancelledOutcome, Interrupt, InterruptOutcome, Interrupts, NoInterrupt, RunFinishedOutcome,
    SubagentFinishedOutcome, SubagentSuccessOutcome, SuccessOutcome, SuspendedOutcome,
};
pub use patch::{JsonPatch, JsonPointer, PatchOp, PatchOperation, PointerError};
pub use read::{EventReader, FromJson, ReadError, ReadErrorKind, Reading, ToJson};
pub use unknown::Unknown;
pub use usage::TokenUsage;
pub use version::{ProtocolVersion, Version, VersionError};

/// Extra information attached to an event, a message, a tool call, a tool, an interrupt or a resume
/// entry: any key, any value, `null` included. The key `ag-ui` is the protocol's (P-89).
/// [`JsonObject::merge`] merges as the protocol says.
pub type Metadata = JsonObject;
