//! How a field of each type is gathered, read and written, and the table form of a message.

use agui_types::read::FindingKind;
use agui_types::{
    Count, EntityId, InterruptId, Json, JsonObject, MessageId, ProtocolVersion, ReadErrorKind,
    RunId, SubagentRunId, ThreadId, Timestamp, ToolCallId,
};

use super::context::{Context, text};
use super::fault::{Fault, Problem};
use super::path::Step;
use super::scan::{Pieces, Raw};
use super::value::{self, merge};
use super::write::Writer;
use crate::encode_error::EncodeError;

/// A field as the `.proto` declares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Field {
    pub number: u32,
    pub name: &'static str,
    pub label: Label,
    pub kind: Kind,
}

impl Field {
    pub(super) const fn new<T: FieldType>(number: u32, name: &'static str) -> Self {
        Self { number, name, label: T::LABEL, kind: T::KIND }
    }

    pub(super) const fn string(number: u32, name: &'static str) -> Self {
        Self::new::<String>(number, name)
    }

    pub(super) const fn message(number: u32, name: &'static str, kind: &'static str) -> Self {
        Self { number, name, label: Label::Optional, kind: Kind::Message(kind) }
    }

    pub(super) const fn repeated(self) -> Self {
        Self { label: Label::Repeated, ..self }
    }
}

/// How often a field occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Label {
    /// Not written when it has its type's default value, which its absence reads as.
    Plain,
    /// Written when it is there, default or not. A message always is of this kind.
    Optional,
    Repeated,
}

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Kind {
    String,
    Bool,
    Int64,
    Enum(&'static str),
    Message(&'static str),
}

/// A message of the `.proto`.
pub(super) trait Message: Sized {
    const NAME: &'static str;
    const FIELDS: &'static [Field];

    fn read_fields(pieces: &Pieces<'_>, cx: &mut Context<'_>) -> Result<Self, Fault>;

    /// Writes the fields in ascending order.
    fn write_fields(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError>;
}

/// What a field can hold: the values of one kind.
pub(super) trait Value: Sized {
    const KIND: Kind;
    /// [`Label::Plain`] where absence has a meaning of its own.
    const LABEL: Label;
    type Gathered<'b>: Gather<'b>;

    fn read(
        gathered: Self::Gathered<'_>,
        cx: &mut Context<'_>,
        name: &'static str,
    ) -> Result<Self, Fault>;

    /// What an optional field's value is. Differs from [`Value::read`] where one that is there can
    /// still stand for nothing.
    fn read_optional(
        gathered: Self::Gathered<'_>,
        cx: &mut Context<'_>,
        name: &'static str,
    ) -> Result<Option<Self>, Fault> {
        Self::read(gathered, cx, name).map(Some)
    }

    /// What a plain or required field is that did not come.
    fn absent(cx: &mut Context<'_>, name: &'static str) -> Result<Self, Fault>;

    /// Whether it is what absence would read as, so that a plain field is not written.
    fn is_default(&self) -> bool;

    fn write(
        &self,
        number: u32,
        name: &'static str,
        writer: &mut Writer<'_>,
    ) -> Result<(), EncodeError>;
}

/// The occurrences of a field, until the message has been read: the last one counts, messages merge.
/// An occurrence of another wire type is not this field.
pub(super) trait Gather<'b>: Sized {
    fn gather(all: &mut Option<Self>, raw: Raw<'b>, cx: &mut Context<'_>) -> Result<(), Fault>;
}

impl<'b> Gather<'b> for &'b [u8] {
    fn gather(last: &mut Option<Self>, raw: Raw<'b>, _: &mut Context<'_>) -> Result<(), Fault> {
        if let Raw::Bytes(bytes) = raw {
            *last = Some(bytes);
        }
        Ok(())
    }
}

impl<'b> Gather<'b> for u64 {
    fn gather(last: &mut Option<Self>, raw: Raw<'b>, _: &mut Context<'_>) -> Result<(), Fault> {
        match raw {
            Raw::Varint(value) => *last = Some(value),
            Raw::LongVarint(at) => return Err(Fault::malformed(Problem::Varint, at)),
            _ => {}
        }
        Ok(())
    }
}

impl<'b> Gather<'b> for Pieces<'b> {
    fn gather(all: &mut Option<Self>, raw: Raw<'b>, cx: &mut Context<'_>) -> Result<(), Fault> {
        match raw {
            Raw::Bytes(bytes) => merge(all, bytes, cx),
            _ => Ok(()),
        }
    }
}

/// A field's type with its label: what a member of an event is in Rust.
pub(super) trait FieldType: Sized {
    const KIND: Kind;
    const LABEL: Label;
    type Slot<'b>: Default;

    fn occur<'b>(
        slot: &mut Self::Slot<'b>,
        raw: Raw<'b>,
        cx: &mut Context<'_>,
        name: &'static str,
    ) -> Result<(), Fault>;

    fn finish(
        slot: Self::Slot<'_>,
        cx: &mut Context<'_>,
        name: &'static str,
    ) -> Result<Self, Fault>;

    fn write(
        &self,
        number: u32,
        name: &'static str,
        writer: &mut Writer<'_>,
    ) -> Result<(), EncodeError>;
}

impl<T: Value> FieldType for T {
    const KIND: Kind = T::KIND;
    const LABEL: Label = T::LABEL;
    type Slot<'b> = Option<T::Gathered<'b>>;

    #[inline]
    fn occur<'b>(
        slot: &mut Self::Slot<'b>,
        raw: Raw<'b>,
        cx: &mut Context<'_>,
        _: &'static str,
    ) -> Result<(), Fault> {
        T::Gathered::gather(slot, raw, cx)
    }

    #[inline]
    fn finish(
        slot: Self::Slot<'_>,
        cx: &mut Context<'_>,
        name: &'static str,
    ) -> Result<Self, Fault> {
        match slot {
            Some(gathered) => T::read(gathered, cx, name),
            None => T::absent(cx, name),
        }
    }

    #[inline]
    fn write(
        &self,
        number: u32,
        name: &'static str,
        writer: &mut Writer<'_>,
    ) -> Result<(), EncodeError> {
        if self.is_default() {
            return Ok(());
        }
        Value::write(self, number, name, writer)
    }
}

impl<T: Value> FieldType for Option<T> {
    const KIND: Kind = T::KIND;
    const LABEL: Label = Label::Optional;
    type Slot<'b> = Option<T::Gathered<'b>>;

    #[inline]
    fn occur<'b>(
        slot: &mut Self::Slot<'b>,
        raw: Raw<'b>,
        cx: &mut Context<'_>,
        _: &'static str,
    ) -> Result<(), Fault> {
        T::Gathered::gather(slot, raw, cx)
    }

    #[inline]
    fn finish(
        slot: Self::Slot<'_>,
        cx: &mut Context<'_>,
        name: &'static str,
    ) -> Result<Self, Fault> {
        match slot {
            Some(gathered) => T::read_optional(gathered, cx, name),
            None => Ok(None),
        }
    }

    #[inline]
    fn write(
        &self,
        number: u32,
        name: &'static str,
        writer: &mut Writer<'_>,
    ) -> Result<(), EncodeError> {
        match self {
            Some(value) => Value::write(value, number, name, writer),
            None => Ok(()),
        }
    }
}

/// A required list: it may be empty, and an empty one is not written (T-33).
impl<T: Value> FieldType for Vec<T> {
    const KIND: Kind = T::KIND;
    const LABEL: Label = Label::Repeated;
    type Slot<'b> = Vec<T>;

    fn occur<'b>(
        slot: &mut Self::Slot<'b>,
        raw: Raw<'b>,
        cx: &mut Context<'_>,
        name: &'static str,
    ) -> Result<(), Fault> {
        let mut one = None;
        T::Gathered::gather(&mut one, raw, cx)?;
        if let Some(gathered) = one {
            cx.item()?;
            let at = Step::Index(slot.len());
            slot.push(
                cx.inside(Step::Member(name), |cx| cx.inside(at, |cx| T::read(gathered, cx, "")))?,
            );
        }
        Ok(())
    }

    fn finish(slot: Vec<T>, _: &mut Context<'_>, _: &'static str) -> Result<Self, Fault> {
        Ok(slot)
    }

    fn write(
        &self,
        number: u32,
        name: &'static str,
        writer: &mut Writer<'_>,
    ) -> Result<(), EncodeError> {
        write_list(self, number, name, writer)
    }
}

/// Writes a repeated field.
pub(super) fn write_list<T: Value>(
    list: &[T],
    number: u32,
    name: &'static str,
    writer: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    writer.inside(Step::Member(name), |writer| {
        list.iter().enumerate().try_for_each(|(at, item)| {
            writer.inside(Step::Index(at), |writer| item.write(number, "", writer))
        })
    })
}

/// An optional list: an empty one is written like an absent one, and reads as one.
impl<T: Value> FieldType for Option<Vec<T>> {
    const KIND: Kind = T::KIND;
    const LABEL: Label = Label::Repeated;
    type Slot<'b> = Vec<T>;

    fn occur<'b>(
        slot: &mut Self::Slot<'b>,
        raw: Raw<'b>,
        cx: &mut Context<'_>,
        name: &'static str,
    ) -> Result<(), Fault> {
        <Vec<T> as FieldType>::occur(slot, raw, cx, name)
    }

    fn finish(slot: Vec<T>, _: &mut Context<'_>, _: &'static str) -> Result<Self, Fault> {
        Ok(Some(slot).filter(|list| !list.is_empty()))
    }

    fn write(
        &self,
        number: u32,
        name: &'static str,
        writer: &mut Writer<'_>,
    ) -> Result<(), EncodeError> {
        match self {
            Some(list) => FieldType::write(list, number, name, writer),
            None => Ok(()),
        }
    }
}

impl Value for String {
    const KIND: Kind = Kind::String;
    const LABEL: Label = Label::Plain;
    type Gathered<'b> = &'b [u8];

    #[inline]
    fn read(bytes: &[u8], _: &mut Context<'_>, _: &'static str) -> Result<Self, Fault> {
        text(bytes).map(Self::from)
    }

    fn absent(_: &mut Context<'_>, _: &'static str) -> Result<Self, Fault> {
        Ok(Self::new())
    }

    fn is_default(&self) -> bool {
        self.is_empty()
    }

    #[inline]
    fn write(
        &self,
        number: u32,
        _: &'static str,
        writer: &mut Writer<'_>,
    ) -> Result<(), EncodeError> {
        writer.string(number, self);
        Ok(())
    }
}

/// Ids, which repeat and are shared.
macro_rules! ids {
    ($($type:ident,)*) => {$(
        impl Value for $type {
            const KIND: Kind = Kind::String;
            const LABEL: Label = Label::Plain;
            type Gathered<'b> = &'b [u8];

            #[inline]
            fn read(bytes: &[u8], cx: &mut Context<'_>, _: &'static str) -> Result<Self, Fault> {
                cx.intern(bytes).map(Self::new)
            }

            fn absent(cx: &mut Context<'_>, _: &'static str) -> Result<Self, Fault> {
                cx.intern(b"").map(Self::new)
            }

            fn is_default(&self) -> bool {
                self.as_str().is_empty()
            }

            #[inline]
            fn write(
                &self,
                number: u32,
                _: &'static str,
                writer: &mut Writer<'_>,
            ) -> Result<(), EncodeError> {
                writer.string(number, self.as_str());
                Ok(())
            }
        }
    )*};
}

ids! { ThreadId, RunId, MessageId, ToolCallId, SubagentRunId, InterruptId, EntityId, }

impl Value for ProtocolVersion {
    const KIND: Kind = Kind::String;
    const LABEL: Label = Label::Plain;
    type Gathered<'b> = &'b [u8];

    fn read(bytes: &[u8], _: &mut Context<'_>, _: &'static str) -> Result<Self, Fault> {
        text(bytes).map(Self::new)
    }

    fn absent(_: &mut Context<'_>, _: &'static str) -> Result<Self, Fault> {
        Ok(Self::new(""))
    }

    fn is_default(&self) -> bool {
        self.as_str().is_empty()
    }

    fn write(
        &self,
        number: u32,
        _: &'static str,
        writer: &mut Writer<'_>,
    ) -> Result<(), EncodeError> {
        writer.string(number, self.as_str());
        Ok(())
    }
}

/// Closed sets: a value that is not known is kept and reported, as in the JSON form.
macro_rules! closed_sets {
    ($($type:ty,)*) => {$(
        impl Value for $type {
            const KIND: Kind = Kind::String;
            const LABEL: Label = Label::Plain;
            type Gathered<'b> = &'b [u8];

            fn read(bytes: &[u8], cx: &mut Context<'_>, name: &'static str) -> Result<Self, Fault> {
                let value = Self::from(text(bytes)?);
                if let Self::Unknown(text) = &value {
                    cx.find(Some(name), FindingKind::UnknownValue(text.clone()));
                }
                Ok(value)
            }

            fn absent(cx: &mut Context<'_>, name: &'static str) -> Result<Self, Fault> {
                Self::read(b"", cx, name)
            }

            fn is_default(&self) -> bool {
                self.as_str().is_empty()
            }

            fn write(
                &self,
                number: u32,
                _: &'static str,
                writer: &mut Writer<'_>,
            ) -> Result<(), EncodeError> {
                writer.string(number, self.as_str());
                Ok(())
            }
        }
    )*};
}

closed_sets! {
    agui_types::event::TextRole,
    agui_types::event::EncryptedValueSubtype,
    agui_types::ResumeStatus,
}

/// `TOOL_CALL_RESULT.role`: one string or none at all.
impl Value for agui_types::event::ToolRole {
    const KIND: Kind = Kind::String;
    const LABEL: Label = Label::Plain;
    type Gathered<'b> = &'b [u8];

    fn read(bytes: &[u8], cx: &mut Context<'_>, name: &'static str) -> Result<Self, Fault> {
        literal(Some(bytes), "tool", cx, name).map(|()| Self)
    }

    fn absent(cx: &mut Context<'_>, name: &'static str) -> Result<Self, Fault> {
        Err(cx.missing(name))
    }

    fn is_default(&self) -> bool {
        false
    }

    fn write(
        &self,
        number: u32,
        _: &'static str,
        writer: &mut Writer<'_>,
    ) -> Result<(), EncodeError> {
        writer.string(number, "tool");
        Ok(())
    }
}

/// Fails unless a plain string field holds this one string.
pub(super) fn literal(
    bytes: Option<&[u8]>,
    literal: &str,
    cx: &Context<'_>,
    name: &'static str,
) -> Result<(), Fault> {
    let found = text(bytes.unwrap_or_default())?;
    if found == literal {
        return Ok(());
    }
    let found = format!("{found:?}");
    Err(cx.error(name, ReadErrorKind::InvalidValue, format!("{literal:?}"), &found))
}

impl Value for bool {
    const KIND: Kind = Kind::Bool;
    const LABEL: Label = Label::Plain;
    type Gathered<'b> = u64;

    fn read(value: u64, _: &mut Context<'_>, _: &'static str) -> Result<Self, Fault> {
        Ok(value != 0)
    }

    fn absent(_: &mut Context<'_>, _: &'static str) -> Result<Self, Fault> {
        Ok(false)
    }

    fn is_default(&self) -> bool {
        !self
    }

    fn write(
        &self,
        number: u32,
        _: &'static str,
        writer: &mut Writer<'_>,
    ) -> Result<(), EncodeError> {
        writer.varint(number, u64::from(*self));
        Ok(())
    }
}

impl Value for Timestamp {
    const KIND: Kind = Kind::Int64;
    const LABEL: Label = Label::Plain;
    type Gathered<'b> = u64;

    fn read(value: u64, cx: &mut Context<'_>, name: &'static str) -> Result<Self, Fault> {
        let value = value.cast_signed();
        Self::new(value).ok_or_else(|| {
            let expected = "an integer within ±(2^53 − 1)";
            cx.error(name, ReadErrorKind::InvalidValue, expected, &value.to_string())
        })
    }

    fn absent(cx: &mut Context<'_>, name: &'static str) -> Result<Self, Fault> {
        Self::read(0, cx, name)
    }

    fn is_default(&self) -> bool {
        self.get() == 0
    }

    fn write(
        &self,
        number: u32,
        _: &'static str,
        writer: &mut Writer<'_>,
    ) -> Result<(), EncodeError> {
        writer.varint(number, self.get().cast_unsigned());
        Ok(())
    }
}

impl Value for Count {
    const KIND: Kind = Kind::Int64;
    const LABEL: Label = Label::Plain;
    type Gathered<'b> = u64;

    fn read(value: u64, cx: &mut Context<'_>, name: &'static str) -> Result<Self, Fault> {
        Self::new(value).ok_or_else(|| {
            let expected = "an integer between 0 and 2^53 − 1";
            let found = value.cast_signed().to_string();
            cx.error(name, ReadErrorKind::InvalidValue, expected, &found)
        })
    }

    fn absent(_: &mut Context<'_>, _: &'static str) -> Result<Self, Fault> {
        Ok(Self::default())
    }

    fn is_default(&self) -> bool {
        self.get() == 0
    }

    fn write(
        &self,
        number: u32,
        _: &'static str,
        writer: &mut Writer<'_>,
    ) -> Result<(), EncodeError> {
        writer.varint(number, self.get());
        Ok(())
    }
}

/// Any JSON value: a `google.protobuf.Value`. One without a kind reads as absent.
impl Value for Json {
    const KIND: Kind = Kind::Message("google.protobuf.Value");
    const LABEL: Label = Label::Optional;
    type Gathered<'b> = Pieces<'b>;

    fn read(value: Pieces<'_>, cx: &mut Context<'_>, name: &'static str) -> Result<Self, Fault> {
        match cx.inside(Step::Member(name), |cx| value::json(&value, cx))? {
            Some(json) => Ok(json),
            None => Err(cx.missing(name)),
        }
    }

    /// `null` in the place of an optional member is reported and reads as absent, as in the JSON
    /// form.
    fn read_optional(
        value: Pieces<'_>,
        cx: &mut Context<'_>,
        name: &'static str,
    ) -> Result<Option<Self>, Fault> {
        let json = cx.inside(Step::Member(name), |cx| value::json(&value, cx))?;
        if json.as_ref().is_some_and(Json::is_null) {
            cx.find(Some(name), FindingKind::Null);
        }
        Ok(json.filter(|json| !json.is_null()))
    }

    fn absent(cx: &mut Context<'_>, name: &'static str) -> Result<Self, Fault> {
        Err(cx.missing(name))
    }

    fn is_default(&self) -> bool {
        false
    }

    fn write(
        &self,
        number: u32,
        name: &'static str,
        writer: &mut Writer<'_>,
    ) -> Result<(), EncodeError> {
        writer.inside(Step::Member(name), |writer| writer.value(number, self))
    }
}

/// An open object: a `google.protobuf.Struct`.
impl Value for JsonObject {
    const KIND: Kind = Kind::Message("google.protobuf.Struct");
    const LABEL: Label = Label::Optional;
    type Gathered<'b> = Pieces<'b>;

    fn read(value: Pieces<'_>, cx: &mut Context<'_>, name: &'static str) -> Result<Self, Fault> {
        cx.inside(Step::Member(name), |cx| value::object(&value, cx))
    }

    fn absent(cx: &mut Context<'_>, name: &'static str) -> Result<Self, Fault> {
        Err(cx.missing(name))
    }

    fn is_default(&self) -> bool {
        false
    }

    fn write(
        &self,
        number: u32,
        name: &'static str,
        writer: &mut Writer<'_>,
    ) -> Result<(), EncodeError> {
        writer.inside(Step::Member(name), |writer| writer.structure(number, self))
    }
}

impl<T: Message> Value for T {
    const KIND: Kind = Kind::Message(T::NAME);
    const LABEL: Label = Label::Optional;
    type Gathered<'b> = Pieces<'b>;

    fn read(pieces: Pieces<'_>, cx: &mut Context<'_>, name: &'static str) -> Result<Self, Fault> {
        if name.is_empty() {
            return T::read_fields(&pieces, cx);
        }
        cx.inside(Step::Member(name), |cx| T::read_fields(&pieces, cx))
    }

    fn absent(cx: &mut Context<'_>, name: &'static str) -> Result<Self, Fault> {
        Err(cx.missing(name))
    }

    fn is_default(&self) -> bool {
        false
    }

    fn write(
        &self,
        number: u32,
        name: &'static str,
        writer: &mut Writer<'_>,
    ) -> Result<(), EncodeError> {
        let message = writer.open(number);
        if name.is_empty() {
            self.write_fields(writer)?;
        } else {
            writer.inside(Step::Member(name), |writer| self.write_fields(writer))?;
        }
        writer.close(message);
        Ok(())
    }
}
