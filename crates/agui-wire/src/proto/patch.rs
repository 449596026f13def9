//! JSON Patch: its operations have an enum for their name.

use agui_types::FromJson;
use agui_types::{Json, JsonPatch, JsonPointer, PatchOp, PatchOperation};

use super::base::enum_value;
use super::context::{Context, text};
use super::fault::Fault;
use super::field::{Field, FieldType, Gather, Kind, Label, Message};
use super::path::Step;
use super::scan::{Pieces, Raw};
use super::text::ObjectText;
use super::write::Writer;
use crate::encode_error::{EncodeError, EncodeErrorKind};

/// The operations by their number.
pub(super) const OPERATIONS: [&str; 6] = ["add", "remove", "replace", "move", "copy", "test"];

impl FieldType for JsonPatch {
    const KIND: Kind = <Vec<PatchOperation> as FieldType>::KIND;
    const LABEL: Label = Label::Repeated;
    type Slot<'b> = Vec<PatchOperation>;

    fn occur<'b>(
        slot: &mut Vec<PatchOperation>,
        raw: Raw<'b>,
        cx: &mut Context<'_>,
        name: &'static str,
    ) -> Result<(), Fault> {
        Vec::<PatchOperation>::occur(slot, raw, cx, name)
    }

    fn finish(
        slot: Vec<PatchOperation>,
        _: &mut Context<'_>,
        _: &'static str,
    ) -> Result<Self, Fault> {
        Ok(Self(slot))
    }

    fn write(
        &self,
        number: u32,
        name: &'static str,
        writer: &mut Writer<'_>,
    ) -> Result<(), EncodeError> {
        FieldType::write(&self.0, number, name, writer)
    }
}

impl Message for PatchOperation {
    const NAME: &'static str = "JsonPatchOperation";
    const FIELDS: &'static [Field] = &[
        Field {
            number: 1,
            name: "op",
            label: Label::Plain,
            kind: Kind::Enum("JsonPatchOperationType"),
        },
        Field::string(2, "path"),
        Field::new::<Option<String>>(3, "from"),
        Field::new::<Option<Json>>(4, "value"),
    ];

    fn read_fields(pieces: &Pieces<'_>, cx: &mut Context<'_>) -> Result<Self, Fault> {
        let mut op = None;
        let mut path: Option<&[u8]> = None;
        let mut from: Option<&[u8]> = None;
        let mut value: Option<Pieces<'_>> = None;
        let mut fields = pieces.fields();
        while let Some((number, raw)) = fields.next()? {
            match number {
                1 => Gather::gather(&mut op, raw, cx)?,
                2 => Gather::gather(&mut path, raw, cx)?,
                3 => Gather::gather(&mut from, raw, cx)?,
                4 => Gather::gather(&mut value, raw, cx)?,
                _ => {}
            }
        }
        let op = enum_value(op);
        let path = text(path.unwrap_or_default())?;
        let from = from.map(text).transpose()?;
        let value = match value {
            Some(value) => cx.inside(Step::Member("value"), |cx| super::value::json(&value, cx))?,
            None => None,
        };
        match well_formed(op, path, from, value) {
            Ok(op) => Ok(op.into()),
            Err(value) => {
                let mut json = ObjectText::new();
                let name = OPERATIONS.get(op as usize).copied();
                match name {
                    Some(name) => json.string("op", name),
                    None => json.string("op", &op.cast_signed().to_string()),
                }
                json.string("path", path);
                if let Some(from) = from {
                    json.string("from", from);
                }
                if let Some(value) = &value {
                    json.json("value", value);
                }
                cx.adopt(Self::from_json_tolerant(&json.finish()))
            }
        }
    }

    fn write_fields(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        let name = self.op.name();
        let number = OPERATIONS.iter().position(|known| *known == name);
        let Some(number) = number.filter(|_| self.op.path().is_some()) else {
            return Err(writer.refuse(EncodeErrorKind::UnknownOperation(name.into())));
        };
        if number != 0 {
            writer.varint(1, number as u64);
        }
        if let Some(path) = self.op.path().filter(|path| !path.as_str().is_empty()) {
            writer.string(2, path.as_str());
        }
        // Where the operation has no use for a field, a member of that name may travel in it.
        let extra = |name| self.extra.as_ref().and_then(|extra| extra.get(name));
        let spare_from = extra("from").and_then(|text| serde_json::from_str::<String>(text).ok());
        let spare_value = extra("value").and_then(|text| Json::parse(text).ok());
        if let Some(from) = self.op.from().map(JsonPointer::as_str).or(spare_from.as_deref()) {
            writer.string(3, from);
        }
        if let Some(value) = self.op.value().or(spare_value.as_ref()) {
            super::field::Value::write(value, 4, "value", writer)?;
        }
        for (name, _) in self.extra.iter().flat_map(|extra| extra.members()) {
            let travels = name == "from" && spare_from.is_some() || name == "value";
            if !travels {
                writer.omit(format!("the member {name:?} of a patch operation"));
            }
        }
        Ok(())
    }
}

/// The operation, where exactly its own fields came and the pointers are pointers; else the value
/// back.
fn well_formed(
    op: u32,
    path: &str,
    from: Option<&str>,
    value: Option<Json>,
) -> Result<PatchOp, Option<Json>> {
    let Ok(path) = path.parse::<JsonPointer>() else {
        return Err(value);
    };
    let from = from.map(str::parse::<JsonPointer>);
    Ok(match (op, from, value) {
        (0, None, Some(value)) => PatchOp::Add { path, value },
        (1, None, None) => PatchOp::Remove { path },
        (2, None, Some(value)) => PatchOp::Replace { path, value },
        (3, Some(Ok(from)), None) => PatchOp::Move { from, path },
        (4, Some(Ok(from)), None) => PatchOp::Copy { from, path },
        (5, None, Some(value)) => PatchOp::Test { path, value },
        (_, _, value) => return Err(value),
    })
}
