//! The `binary` content part of 0.x.

use std::collections::{BTreeMap, HashSet};

use agui_types::message::{
    AudioPart, DataSource, DocumentPart, ImagePart, PartSource, UrlSource, VideoPart,
};
use agui_types::{ContentPart, Json, JsonObject, Message, MessageContent, ToJson, Unknown};

/// What came of a `binary` part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    /// It is a media part now.
    Upgraded,
    /// It restates a media part beside it, as producers did that sent both shapes. Left as it is,
    /// to be stripped.
    Restated,
    /// It holds nothing a media part could. Left as it is, to be stripped.
    Empty,
}

/// Replaces the `binary` parts of user and tool messages by the media part that their MIME type asks
/// for. Their data is preferred to their URL, and their file name goes into the metadata.
///
/// `report` is told of each: the index of its message, its own, and what came of it.
pub(crate) fn upgrade(messages: &mut [Message], mut report: impl FnMut(usize, usize, Binary)) {
    for (at, message) in messages.iter_mut().enumerate() {
        let content = match message {
            Message::User(message) => &mut message.content,
            Message::Tool(message) => &mut message.content,
            _ => continue,
        };
        let MessageContent::Parts(parts) = content else {
            continue;
        };
        if !parts.iter().any(is_binary) {
            continue;
        }
        let beside: HashSet<Identity> = parts.iter().filter_map(identity).collect();
        for (index, part) in parts.iter_mut().enumerate().filter(|(_, part)| is_binary(part)) {
            let ContentPart::Unknown(binary) = part else {
                continue;
            };
            let outcome = match media(binary) {
                None => Binary::Empty,
                Some(media) if identity(&media).is_some_and(|it| beside.contains(&it)) => {
                    Binary::Restated
                }
                Some(media) => {
                    *part = media;
                    Binary::Upgraded
                }
            };
            report(at, index, outcome);
        }
    }
}

fn is_binary(part: &ContentPart) -> bool {
    matches!(part, ContentPart::Unknown(unknown) if unknown.tag() == "binary")
}

fn media(binary: &Unknown) -> Option<ContentPart> {
    let object = JsonObject::try_from(binary.json().clone()).ok()?;
    let filled = |name: &str| text(&object, name).filter(|text| !text.is_empty());
    let mime_type = text(&object, "mimeType")?;
    let source: PartSource = match filled("data") {
        Some(data) => DataSource::new(data, mime_type.as_str()).into(),
        None => UrlSource::new(filled("url")?).mime_type(mime_type.as_str()).into(),
    };
    let metadata = filled("filename")
        .and_then(|name| Json::encode(&BTreeMap::from([("filename", name)])).ok());
    macro_rules! part {
        ($part:ident) => {{
            let mut part = $part::new(source);
            part.metadata = metadata;
            part.into()
        }};
    }
    Some(match mime_type.split_once('/') {
        Some(("image", _)) => part!(ImagePart),
        Some(("audio", _)) => part!(AudioPart),
        Some(("video", _)) => part!(VideoPart),
        _ => part!(DocumentPart),
    })
}

/// What makes two media parts the same: kind, source and file name.
type Identity = (String, String, Option<String>);

fn identity(part: &ContentPart) -> Option<Identity> {
    let source = part.source()?;
    let object = part.metadata().and_then(|it| JsonObject::try_from(it.clone()).ok());
    let name = object.and_then(|object| text(&object, "filename"));
    Some((part.tag().into(), source.to_json(), name))
}

fn text(object: &JsonObject, name: &str) -> Option<String> {
    Json::parse(object.get(name)?).ok()?.decode().ok()
}
