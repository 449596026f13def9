//! What a user or tool message holds: text, or a list of parts.

use crate::Json;
use crate::json::Kind;
use crate::json::write::{self, Write};
use crate::read::{Read, ReadError, Reader};

/// The content of a user or tool message: a plain string, or an ordered list of parts, which may be
/// empty.
#[derive(Clone, Debug, PartialEq)]
pub enum MessageContent {
    /// Plain text.
    Text(String),
    /// Parts, in order.
    Parts(Vec<ContentPart>),
}

impl MessageContent {
    /// The text: the string itself, or the text parts joined; other parts are left out (C-56).
    #[must_use]
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        match self {
            Self::Text(text) => text.as_str().into(),
            Self::Parts(parts) => parts
                .iter()
                .filter_map(|part| match part {
                    ContentPart::Text(part) => Some(part.text.as_str()),
                    _ => None,
                })
                .collect(),
        }
    }
}

impl From<&str> for MessageContent {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for MessageContent {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<ContentPart>> for MessageContent {
    fn from(parts: Vec<ContentPart>) -> Self {
        Self::Parts(parts)
    }
}

impl Read for MessageContent {
    fn read(reader: &mut Reader<'_, '_>) -> Result<Self, ReadError> {
        match reader.kind()? {
            Kind::String => Read::read(reader).map(Self::Text),
            Kind::Array => Read::read(reader).map(Self::Parts),
            _ => Err(reader.wrong_type("a string or a list of content parts")),
        }
    }
}

impl Write for MessageContent {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Text(text) => text.write(out),
            Self::Parts(parts) => write::array(out, parts),
        }
    }
}

bridge!(MessageContent);

#[cfg(feature = "schemars")]
impl crate::schema::Described for MessageContent {
    fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        crate::schema::one_of([
            generator.subschema_for::<String>(),
            generator.subschema_for::<Vec<ContentPart>>(),
        ])
    }
}

union! {
    /// One part of a message's content.
    ContentPart by "type", expected "a content part" {
        /// Text.
        "text" => Text(TextPart),
        /// An image.
        "image" => Image(ImagePart),
        /// Audio.
        "audio" => Audio(AudioPart),
        /// Video.
        "video" => Video(VideoPart),
        /// A document.
        "document" => Document(DocumentPart),
    }
}

impl ContentPart {
    /// Where the media of a part comes from; `None` for text, and for a part of an unknown kind.
    #[must_use]
    pub fn source(&self) -> Option<&PartSource> {
        match self {
            Self::Image(part) => Some(&part.source),
            Self::Audio(part) => Some(&part.source),
            Self::Video(part) => Some(&part.source),
            Self::Document(part) => Some(&part.source),
            Self::Text(_) | Self::Unknown(_) => None,
        }
    }

    /// The part's metadata; `None` where it has none, and for a part of an unknown kind.
    #[must_use]
    pub fn metadata(&self) -> Option<&Json> {
        match self {
            Self::Text(part) => part.metadata.as_ref(),
            Self::Image(part) => part.metadata.as_ref(),
            Self::Audio(part) => part.metadata.as_ref(),
            Self::Video(part) => part.metadata.as_ref(),
            Self::Document(part) => part.metadata.as_ref(),
            Self::Unknown(_) => None,
        }
    }

    /// Where the part has its metadata, to set or to take it; `None` for a part of an unknown kind.
    pub fn metadata_mut(&mut self) -> Option<&mut Option<Json>> {
        match self {
            Self::Text(part) => Some(&mut part.metadata),
            Self::Image(part) => Some(&mut part.metadata),
            Self::Audio(part) => Some(&mut part.metadata),
            Self::Video(part) => Some(&mut part.metadata),
            Self::Document(part) => Some(&mut part.metadata),
            Self::Unknown(_) => None,
        }
    }
}

object! {
    /// Text among other parts.
    TextPart {
        tags { "type" = "text" }
        required {
            /// The text.
            text "text": String,
        }
        optional {
            /// Reserved; nobody reads it yet.
            id "id": String,
            /// Extra information: any JSON value but `null`.
            metadata "metadata": Json,
        }
    }
}

/// The four parts that hold a source differ in their `type` only.
macro_rules! media_part {
    ($(#[$meta:meta])* $name:ident = $tag:literal) => {
        object! {
            $(#[$meta])*
            $name {
                tags { "type" = $tag }
                required {
                    /// Where the media comes from.
                    source "source": PartSource,
                }
                optional {
                    /// Reserved; nobody reads it yet.
                    id "id": String,
                    /// Extra information: any JSON value but `null`.
                    metadata "metadata": Json,
                }
            }
        }
    };
}

media_part! {
    /// An image.
    ImagePart = "image"
}
media_part! {
    /// Audio.
    AudioPart = "audio"
}
media_part! {
    /// Video.
    VideoPart = "video"
}
media_part! {
    /// A document.
    DocumentPart = "document"
}

union! {
    /// Where a part's media comes from.
    PartSource by "type", expected "\"data\", \"url\" or \"file\"" {
        /// Inline.
        "data" => Data(DataSource),
        /// At a URL.
        "url" => Url(UrlSource),
        /// Held by a provider.
        "file" => File(FileSource),
    }
}

object! {
    /// Media inline, base64-encoded.
    DataSource {
        tags { "type" = "data" }
        required {
            /// The bytes in base64. Not checked here.
            value "value": String,
            /// The media type.
            mime_type "mimeType": String,
        }
        optional {}
    }
}

object! {
    /// Media at a URL.
    UrlSource {
        tags { "type" = "url" }
        required {
            /// The URL. Its format is not checked.
            value "value": String,
        }
        optional {
            /// The media type.
            mime_type "mimeType": String,
        }
    }
}

object! {
    /// Media that a provider holds.
    FileSource {
        tags { "type" = "file" }
        required {
            /// The provider's handle: opaque, never fetched or parsed (P-39).
            value "value": String,
        }
        optional {
            /// Whose handle it is: a lowercase vendor id.
            provider "provider": String,
            /// The media type.
            mime_type "mimeType": String,
        }
    }
}
