//! What messages and tool results hold: parts and their sources.

use agui_types::message::{
    AudioPart, DataSource, DocumentPart, FileSource, ImagePart, TextPart, UrlSource, VideoPart,
};
use agui_types::{ContentPart, Json, JsonObject, PartSource, Unknown};

use super::context::Context;
use super::fault::{Fault, Problem};
use super::field::{Field, Kind, Label, Message as _, Value};
use super::path::Step;
use super::scan::{Pieces, Raw};
use super::text::ObjectText;
use super::write::Writer;
use crate::Warning;
use crate::encode_error::EncodeError;

/// A list of parts as it is read: a part that this version does not know is left out.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) known: Vec<ContentPart>,
    /// How many there were.
    pub(super) count: usize,
}

impl Parts {
    pub(super) fn take(&mut self, raw: Raw<'_>, cx: &mut Context<'_>) -> Result<(), Fault> {
        let Raw::Bytes(bytes) = raw else {
            return Ok(());
        };
        cx.item()?;
        let at = Step::Index(self.count);
        self.count += 1;
        cx.inside(Step::Member("content"), |cx| {
            cx.inside(at, |cx| {
                match read_part(&Pieces::new(bytes), cx) {
                    Ok(part) => self.known.push(part),
                    Err(Fault::EmptyPart) => {
                        cx.warnings.push(Warning::UnknownPart { path: cx.path_to(None) });
                    }
                    Err(fault) => return Err(fault),
                }
                Ok(())
            })
        })
    }
}

/// The one member of a `oneof` that is set: its number and encodings.
fn member<'b>(
    pieces: &Pieces<'b>,
    most: u32,
    cx: &mut Context<'_>,
) -> Result<Option<(u32, Pieces<'b>)>, Fault> {
    let mut set: Option<(u32, Pieces<'b>)> = None;
    let mut fields = pieces.fields();
    while let Some((number, raw)) = fields.next()? {
        let Raw::Bytes(bytes) = raw else { continue };
        match &mut set {
            _ if number > most => {}
            None => set = Some((number, Pieces::new(bytes))),
            Some((same, pieces)) if *same == number => {
                cx.item()?;
                pieces.add(bytes);
            }
            Some(_) => return Err(Fault::malformed(Problem::TwoKinds, bytes)),
        }
    }
    Ok(set)
}

fn read_part(pieces: &Pieces<'_>, cx: &mut Context<'_>) -> Result<ContentPart, Fault> {
    let (number, part) = member(pieces, 5, cx)?.ok_or(Fault::EmptyPart)?;
    Ok(match number {
        1 => TextPart::read_fields(&part, cx)?.into(),
        2 => ImagePart::read_fields(&part, cx)?.into(),
        3 => AudioPart::read_fields(&part, cx)?.into(),
        4 => VideoPart::read_fields(&part, cx)?.into(),
        _ => DocumentPart::read_fields(&part, cx)?.into(),
    })
}

/// Writes the parts that have a form here; a part of an unknown kind has none and is noted.
pub(super) fn write_parts(
    number: u32,
    parts: &[ContentPart],
    writer: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    writer.inside(Step::Member("content"), |writer| {
        for (at, part) in parts.iter().enumerate() {
            writer.inside(Step::Index(at), |writer| write_part(number, part, writer))?;
        }
        Ok(())
    })
}

fn write_part(number: u32, part: &ContentPart, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
    if let Some(PartSource::Unknown(source)) = part.source() {
        writer.omit(format!("a part whose source is of the unknown kind {:?}", source.tag()));
        return Ok(());
    }
    if let ContentPart::Unknown(unknown) = part {
        return match retired_binary(unknown) {
            Some(document) => write_part(number, &document.into(), writer),
            None => {
                writer.omit(format!("a part of the unknown kind {:?}", unknown.tag()));
                Ok(())
            }
        };
    }
    let envelope = writer.open(number);
    match part {
        ContentPart::Text(part) => part.write(1, "", writer)?,
        ContentPart::Image(part) => part.write(2, "", writer)?,
        ContentPart::Audio(part) => part.write(3, "", writer)?,
        ContentPart::Video(part) => part.write(4, "", writer)?,
        ContentPart::Document(part) => part.write(5, "", writer)?,
        _ => {}
    }
    writer.close(envelope);
    Ok(())
}

/// The retired `binary` part as the reference sends it: a document that says what it was.
fn retired_binary(part: &Unknown) -> Option<DocumentPart> {
    if part.tag() != "binary" {
        return None;
    }
    let part = JsonObject::try_from(part.json().clone()).ok()?;
    let string = |name| serde_json::from_str::<String>(part.get(name)?).ok();
    let mime_type = string("mimeType")?;
    let source: PartSource = match (string("data"), string("url")) {
        (Some(data), _) => DataSource::new(data, mime_type).into(),
        (None, Some(url)) => UrlSource::new(url).mime_type(mime_type).into(),
        (None, None) => return None,
    };
    let mut marker = ObjectText::new();
    marker.json("legacyBinary", &Json::from(serde_json::Value::Bool(true)));
    for name in ["filename", "id"] {
        if let Some(value) = string(name) {
            marker.string(name, &value);
        }
    }
    let metadata = Json::try_from(marker.finish()).ok()?;
    Some(DocumentPart::new(source).metadata(metadata))
}

/// Where media comes from: a message with one member. A part whose source is of an unknown kind is
/// left out like a part of an unknown kind.
impl Value for PartSource {
    const KIND: Kind = Kind::Message("InputContentSource");
    const LABEL: Label = Label::Optional;
    type Gathered<'b> = Pieces<'b>;

    fn read(pieces: Pieces<'_>, cx: &mut Context<'_>, name: &'static str) -> Result<Self, Fault> {
        let (number, source) = member(&pieces, 3, cx)?.ok_or(Fault::EmptyPart)?;
        cx.inside(Step::Member(name), |cx| {
            Ok(match number {
                1 => DataSource::read_fields(&source, cx)?.into(),
                2 => UrlSource::read_fields(&source, cx)?.into(),
                _ => FileSource::read_fields(&source, cx)?.into(),
            })
        })
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
        let envelope = writer.open(number);
        match self {
            Self::Data(source) => source.write(1, "", writer)?,
            Self::Url(source) => source.write(2, "", writer)?,
            Self::File(source) => source.write(3, "", writer)?,
            // The part was left out.
            _ => {}
        }
        writer.close(envelope);
        Ok(())
    }
}

/// The members of the two `oneof`s.
pub(super) const PART_FIELDS: &[Field] = &[
    Field::new::<Option<TextPart>>(1, "text"),
    Field::new::<Option<ImagePart>>(2, "image"),
    Field::new::<Option<AudioPart>>(3, "audio"),
    Field::new::<Option<VideoPart>>(4, "video"),
    Field::new::<Option<DocumentPart>>(5, "document"),
];
pub(super) const SOURCE_FIELDS: &[Field] = &[
    Field::new::<Option<DataSource>>(1, "data"),
    Field::new::<Option<UrlSource>>(2, "url"),
    Field::new::<Option<FileSource>>(3, "file"),
];
