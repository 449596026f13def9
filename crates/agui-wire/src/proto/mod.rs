//! The binary form: length-prefixed frames of protobuf (T-27).
//!
//! Nothing here is used by itself: [`Decoder`](crate::Decoder) and [`Encoder`](crate::Encoder) do.
//!
//! # Why there is no generated code
//!
//! `proto/agui.proto` has the messages, and `prost` could make structs of them. They would stand
//! between the bytes and [`Event`] as a third model of the protocol: every string copied once more,
//! every `google.protobuf.Value` a tree of maps that forget the order of their members, and
//! what the wire says beside that (a field twice, a role with another role's content, an event of a
//! later version) no longer to be seen. So the tables in `events.rs` and `shared.rs` name each
//! field's number and Rust type, and from them follow a reader and a writer straight between bytes
//! and the types of [`agui_types`]. JSON values go through as text, token by token. The tests
//! hold the tables against the `.proto` and that against the number ledger, field by field, and let
//! `prost` read and write the same events.
//!
//! # What is read
//!
//! As protobuf says: unknown fields, and known ones of another wire type, are skipped, except that
//! the envelope must hold one event (T-30, T-31). The last occurrence of a scalar counts, messages
//! merge, lists append. Strings must be UTF-8. What is missing reads as empty where the protocol
//! requires a string or a list (T-33), and as absent where it does not.
//!
//! What the fields mean together is judged as on the JSON form, with the same errors and
//! findings (T-32).

#[macro_use]
mod table;

mod base;
mod content;
mod context;
mod events;
mod fault;
mod field;
mod frames;
mod message;
mod outcome;
mod patch;
mod path;
mod scan;
mod shared;
mod text;
mod tool_result;
mod value;
mod write;

pub use fault::{Problem, ProtoError};
pub(crate) use frames::Frames;
pub(crate) use write::Scratch;

use agui_types::read::Reading;
use agui_types::{Event, EventReader, ReadError};

use self::context::Context;
use self::events::Opened;
use self::fault::Fault;
use self::write::Writer;
use crate::Warning;
use crate::encode_error::{EncodeError, EncodeErrorKind};

/// What a message held.
pub(crate) struct Decoded {
    /// `None`: nothing that this version knows (T-30).
    pub(crate) event: Option<Reading<Event>>,
    pub(crate) warnings: Vec<Warning>,
}

/// Why a message cannot be read.
pub(crate) enum Refusal {
    Proto(ProtoError),
    Read(ReadError),
    TooManyItems,
}

/// Reads one message: a frame without its header.
#[inline]
pub(crate) fn decode(
    message: &[u8],
    ids: &mut EventReader,
    list_items: usize,
) -> Result<Decoded, Refusal> {
    let mut cx = Context::new(ids, list_items);
    let opened = events::read(message, &mut cx).map_err(|fault| match fault {
        Fault::Malformed { problem, address } => {
            // What is at fault is a part of the message.
            let offset = address.saturating_sub(message.as_ptr() as usize);
            let offset = offset.min(message.len());
            Refusal::Proto(ProtoError { problem, offset })
        }
        // A part is nowhere but in a list, which catches it.
        Fault::EmptyPart => Refusal::Proto(ProtoError { problem: Problem::TwoKinds, offset: 0 }),
        Fault::Read(error) => Refusal::Read(error),
        Fault::TooManyItems => Refusal::TooManyItems,
    })?;
    let Context { findings, mut warnings, .. } = cx;
    let event = match opened {
        Opened::Event(value) => Some(Reading { value, findings }),
        Opened::Unknown(number) => {
            warnings.push(Warning::UnknownEvent { number });
            None
        }
    };
    Ok(Decoded { event, warnings })
}

/// Appends a frame. On failure the buffer is as it was before.
pub(crate) fn encode(
    event: &Event,
    out: &mut Vec<u8>,
    scratch: &mut Scratch,
) -> Result<Vec<crate::Omission>, EncodeError> {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    let mut writer = Writer::new(out, scratch);
    let written = events::write(event, &mut writer);
    writer.finish();
    let length = out.len() - start - 4;
    let written = written.and_then(|()| {
        u32::try_from(length)
            .map_err(|_| EncodeError::at(String::new(), EncodeErrorKind::TooLarge(length)))
    });
    match written {
        Ok(length) => {
            out[start..start + 4].copy_from_slice(&length.to_be_bytes());
            Ok(std::mem::take(&mut scratch.omitted))
        }
        Err(error) => {
            out.truncate(start);
            Err(error)
        }
    }
}

/// The tables, for the test that holds them against the `.proto`: each message with its fields,
/// each enum with its members.
#[doc(hidden)]
pub mod tables {
    use super::field::Message;
    pub use super::field::{Field, Kind, Label};
    use agui_types::message as m;

    /// Each message with its fields.
    #[must_use]
    pub fn messages() -> Vec<(&'static str, &'static [Field])> {
        fn table<T: Message>() -> (&'static str, &'static [Field]) {
            (T::NAME, T::FIELDS)
        }
        let events = super::events::ENVELOPE.iter().map(|entry| (entry.3, entry.4));
        let shared = [
            ("BaseEvent", super::base::FIELDS),
            ("InputContent", super::content::PART_FIELDS),
            ("InputContentSource", super::content::SOURCE_FIELDS),
            table::<agui_types::Message>(),
            table::<agui_types::ToolCall>(),
            table::<m::FunctionCall>(),
            table::<m::TextPart>(),
            table::<m::ImagePart>(),
            table::<m::AudioPart>(),
            table::<m::VideoPart>(),
            table::<m::DocumentPart>(),
            table::<m::DataSource>(),
            table::<m::UrlSource>(),
            table::<m::FileSource>(),
            table::<agui_types::RunAgentInput>(),
            table::<agui_types::Tool>(),
            table::<agui_types::Context>(),
            table::<agui_types::ResumeEntry>(),
            table::<agui_types::Interrupt>(),
            table::<agui_types::TokenUsage>(),
            table::<agui_types::PatchOperation>(),
        ];
        events.chain(shared).collect()
    }

    /// The envelope: number, type on the JSON form, number of the type, message.
    #[must_use]
    pub fn envelope() -> Vec<(u32, &'static str, u32, &'static str)> {
        let entries = super::events::ENVELOPE.iter();
        entries
            .map(|(number, kind, enum_number, name, _)| {
                (*number, kind.as_str(), *enum_number, *name)
            })
            .collect()
    }

    /// The operations of a patch, by number.
    #[must_use]
    pub fn patch_operations() -> &'static [&'static str] {
        &super::patch::OPERATIONS
    }
}
