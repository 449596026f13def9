//! `google.protobuf.Value` and `Struct` as JSON text, without a tree between them.

use agui_types::json::{MAX_DEPTH, write_string};
use agui_types::{Json, JsonObject, ReadError, ReadErrorKind};

use super::context::{Context, text};
use super::fault::Fault;
use super::scan::{Pieces, Raw};
use crate::Warning;

/// The value, or `None` where no kind of value is set, which reads as absent.
pub(super) fn json(value: &Pieces<'_>, cx: &mut Context<'_>) -> Result<Option<Json>, Fault> {
    let mut out = Vec::new();
    if !write_value(value, cx, &mut out)? {
        return Ok(None);
    }
    checked(out).map(Some)
}

/// The object that a `Struct` is.
pub(super) fn object(structure: &Pieces<'_>, cx: &mut Context<'_>) -> Result<JsonObject, Fault> {
    let mut out = Vec::new();
    write_struct(structure, cx, &mut out)?;
    JsonObject::try_from(checked(out)?).map_err(not_json)
}

/// The text once more through the lexer: a [`Json`] is JSON whoever wrote it.
fn checked(out: Vec<u8>) -> Result<Json, Fault> {
    let text = String::from_utf8(out).map_err(not_json)?;
    Json::try_from(text).map_err(not_json)
}

/// Not reached: the writers below write JSON.
#[cold]
pub(super) fn not_json(error: impl std::error::Error) -> Fault {
    let expected = error.to_string();
    Fault::Read(ReadError::new(ReadErrorKind::Syntax, 0, expected, ""))
}

/// The one kind of value that is set: the last one, as protobuf says.
enum Kind<'b> {
    Unset,
    Null,
    Number(f64),
    Text(&'b [u8]),
    Bool(bool),
    Struct(Pieces<'b>),
    List(Pieces<'b>),
}

fn kind<'b>(value: &Pieces<'b>, cx: &mut Context<'_>) -> Result<Kind<'b>, Fault> {
    let mut kind = Kind::Unset;
    let mut fields = value.fields();
    while let Some(field) = fields.next()? {
        kind = match (field, kind) {
            ((1, Raw::Varint(_)), _) => Kind::Null,
            ((2, Raw::Fixed64(bits)), _) => Kind::Number(f64::from_bits(bits)),
            ((3, Raw::Bytes(bytes)), _) => Kind::Text(bytes),
            ((4, Raw::Varint(value)), _) => Kind::Bool(value != 0),
            ((5, Raw::Bytes(bytes)), Kind::Struct(mut pieces)) => {
                cx.item()?;
                pieces.add(bytes);
                Kind::Struct(pieces)
            }
            ((6, Raw::Bytes(bytes)), Kind::List(mut pieces)) => {
                cx.item()?;
                pieces.add(bytes);
                Kind::List(pieces)
            }
            ((5, Raw::Bytes(bytes)), _) => Kind::Struct(Pieces::new(bytes)),
            ((6, Raw::Bytes(bytes)), _) => Kind::List(Pieces::new(bytes)),
            (_, kind) => kind,
        };
    }
    Ok(kind)
}

/// Appends the value; `false`, and nothing appended, where no kind is set.
fn write_value(value: &Pieces<'_>, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Result<bool, Fault> {
    match kind(value, cx)? {
        Kind::Unset => return Ok(false),
        Kind::Null => out.extend_from_slice(b"null"),
        Kind::Number(value) => write_number(value, cx, out),
        Kind::Text(bytes) => write_string(out, text(bytes)?),
        Kind::Bool(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
        Kind::Struct(structure) => write_struct(&structure, cx, out)?,
        Kind::List(list) => write_list(&list, cx, out)?,
    }
    Ok(true)
}

/// Appends an object, its members in the order sent. Of a name sent twice both are written: as in
/// any JSON text, the last one counts.
fn write_struct(
    structure: &Pieces<'_>,
    cx: &mut Context<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    deeper(cx)?;
    out.push(b'{');
    let start = out.len();
    let mut fields = structure.fields();
    while let Some(field) = fields.next()? {
        let (1, Raw::Bytes(entry)) = field else {
            continue;
        };
        let (mut name, mut value) = (&b""[..], None::<Pieces<'_>>);
        let entry = Pieces::new(entry);
        let mut fields = entry.fields();
        while let Some(field) = fields.next()? {
            match field {
                (1, Raw::Bytes(bytes)) => name = bytes,
                (2, Raw::Bytes(bytes)) => merge(&mut value, bytes, cx)?,
                _ => {}
            }
        }
        let before = out.len();
        if before > start {
            out.push(b',');
        }
        write_string(out, text(name)?);
        out.push(b':');
        if !write_value(&value.unwrap_or_default(), cx, out)? {
            out.truncate(before);
        }
    }
    out.push(b'}');
    cx.depth -= 1;
    Ok(())
}

/// Appends an array. An element without a kind keeps its place, as `null`.
fn write_list(list: &Pieces<'_>, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
    deeper(cx)?;
    out.push(b'[');
    let start = out.len();
    let mut fields = list.fields();
    while let Some(field) = fields.next()? {
        let (1, Raw::Bytes(element)) = field else {
            continue;
        };
        if out.len() > start {
            out.push(b',');
        }
        if !write_value(&Pieces::new(element), cx, out)? {
            out.extend_from_slice(b"null");
        }
    }
    out.push(b']');
    cx.depth -= 1;
    Ok(())
}

/// Adds one more encoding of a message that occurs once, to be merged with those before.
pub(super) fn merge<'b>(
    message: &mut Option<Pieces<'b>>,
    piece: &'b [u8],
    cx: &mut Context<'_>,
) -> Result<(), Fault> {
    match message {
        None => *message = Some(Pieces::new(piece)),
        Some(pieces) => {
            cx.item()?;
            pieces.add(piece);
        }
    }
    Ok(())
}

fn deeper(cx: &mut Context<'_>) -> Result<(), Fault> {
    if cx.levels() == MAX_DEPTH {
        let expected = format!("nested deeper than {MAX_DEPTH} levels");
        let error = ReadError::new(ReadErrorKind::TooDeep, 0, expected, "");
        return Err(Fault::Read(error.inside(cx.path_to(None))));
    }
    cx.depth += 1;
    Ok(())
}

/// Appends the shortest text that reads back as the same double. One without a JSON form becomes
/// `null`, with a warning.
fn write_number(value: f64, cx: &mut Context<'_>, out: &mut Vec<u8>) {
    use std::io::Write as _;
    const SAFE: f64 = 9_007_199_254_740_992.0;
    let negative_zero = value == 0.0 && value.is_sign_negative();
    // Writing to a vector does not fail.
    let _ = if !value.is_finite() {
        cx.warnings.push(Warning::NoNumber { path: cx.path_to(None) });
        out.write_all(b"null")
    } else if value.fract() == 0.0 && value.abs() < SAFE && !negative_zero {
        #[allow(clippy::cast_possible_truncation)]
        let integer = value as i64;
        write!(out, "{integer}")
    } else {
        serde_json::to_writer(&mut *out, &value).map_err(std::io::Error::from)
    };
}
