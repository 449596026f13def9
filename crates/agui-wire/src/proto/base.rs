//! `base_event`, the first field of every event: its type, and what any event can carry.

use agui_types::event::EventBase;
use agui_types::{EventType, Json, Metadata, Timestamp};

use super::context::Context;
use super::events::enum_number;
use super::fault::{Fault, Problem};
use super::field::{Field, FieldType, Gather, Kind, Label};
use super::scan::Pieces;
use super::write::Writer;
use crate::encode_error::EncodeError;

pub(super) const FIELDS: &[Field] = &[
    Field { number: 1, name: "type", label: Label::Plain, kind: Kind::Enum("EventType") },
    Field::new::<Option<Timestamp>>(2, "timestamp"),
    Field::new::<Option<Json>>(3, "raw_event"),
    Field::new::<Option<Metadata>>(4, "metadata"),
];

/// Reads the base fields of an event whose other fields are in `event`.
pub(super) fn read(
    base: Option<&Pieces<'_>>,
    expected: EventType,
    event: &Pieces<'_>,
    cx: &mut Context<'_>,
) -> Result<EventBase, Fault> {
    let Some(pieces) = base else {
        return Err(Fault::malformed(Problem::NoBase, event.start()));
    };
    let mut kind = None;
    let mut timestamp = <Option<Timestamp> as FieldType>::Slot::default();
    let mut raw_event = <Option<Json> as FieldType>::Slot::default();
    let mut metadata = <Option<Metadata> as FieldType>::Slot::default();
    let mut fields = pieces.fields();
    while let Some((number, raw)) = fields.next()? {
        match number {
            1 => u64::gather(&mut kind, raw, cx)?,
            2 => Option::<Timestamp>::occur(&mut timestamp, raw, cx, "timestamp")?,
            3 => Option::<Json>::occur(&mut raw_event, raw, cx, "raw_event")?,
            4 => Option::<Metadata>::occur(&mut metadata, raw, cx, "metadata")?,
            _ => {}
        }
    }
    if enum_value(kind) != enum_number(expected) {
        return Err(Fault::malformed(Problem::Type, pieces.start()));
    }
    let mut base = EventBase::default();
    base.timestamp = Option::<Timestamp>::finish(timestamp, cx, "timestamp")?;
    if let Some(raw_event) = Option::<Json>::finish(raw_event, cx, "raw_event")? {
        base.set_raw_event(Some(raw_event));
    }
    if let Some(metadata) = Option::<Metadata>::finish(metadata, cx, "metadata")? {
        base.set_metadata(Some(metadata));
    }
    Ok(base)
}

pub(super) fn write(
    base: &EventBase,
    kind: EventType,
    writer: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    let message = writer.open(1);
    let kind = enum_number(kind);
    if kind != 0 {
        writer.varint(1, u64::from(kind));
    }
    base.timestamp.write(2, "timestamp", writer)?;
    if let Some(raw) = base.raw_event() {
        FieldType::write(raw, 3, "raw_event", writer)?;
    }
    if let Some(metadata) = base.metadata() {
        FieldType::write(metadata, 4, "metadata", writer)?;
    }
    writer.close(message);
    Ok(())
}

/// An enum's number: 32 bits, what is beyond them is cut off.
pub(super) fn enum_value(varint: Option<u64>) -> u32 {
    #[allow(clippy::cast_possible_truncation)]
    let value = varint.unwrap_or_default() as u32;
    value
}
