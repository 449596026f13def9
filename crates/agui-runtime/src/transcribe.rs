//! Audio to text.

use agui_agent::BoxFuture;
use agui_server::caught;
use agui_types::JsonObject;
use agui_types::json::read_string;
use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use serde::Serialize;

use crate::answer::{self, Answer};

/// A piece of audio.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Audio {
    /// The bytes, in the format that `mime_type` names.
    pub data: Bytes,
    /// The media type in small letters, without parameters: `audio/webm`.
    pub mime_type: String,
    /// The name of the file, where the front end gave one.
    pub filename: Option<String>,
}

/// Turns audio into text: a service behind an API, a model beside the runtime.
pub trait Transcriber: Send + Sync + 'static {
    /// The text of a piece of audio.
    fn transcribe(&self, audio: Audio) -> BoxFuture<'_, Result<String, TranscriptionError>>;
}

/// Why audio was not turned into text. `Display` is what the front end is told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TranscriptionError {
    /// What kind of failure it is; front ends have a text for each.
    pub kind: TranscriptionErrorKind,
    /// What went wrong, for a person.
    pub message: String,
}

impl TranscriptionError {
    /// A failure.
    #[must_use]
    pub fn new(kind: TranscriptionErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

/// The kinds of failure that front ends tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TranscriptionErrorKind {
    /// There is no service (503).
    NotConfigured,
    /// The request is not what it should be (400).
    InvalidRequest,
    /// The format is none that is read (400).
    InvalidFormat,
    /// There is too much of it (400).
    TooLong,
    /// There is too little of it (400).
    TooShort,
    /// Too much was asked of the service; trying again later may help (429).
    RateLimited,
    /// The service does not know the runtime (401).
    Unauthorized,
    /// The service failed; trying again may help (500).
    Provider,
    /// The service cannot be reached; trying again may help (502).
    Network,
}

impl TranscriptionErrorKind {
    /// The code, the status, and whether trying again may help.
    fn facts(self) -> (&'static str, StatusCode, bool) {
        match self {
            Self::NotConfigured => {
                ("service_not_configured", StatusCode::SERVICE_UNAVAILABLE, false)
            }
            Self::InvalidRequest => ("invalid_request", StatusCode::BAD_REQUEST, false),
            Self::InvalidFormat => ("invalid_audio_format", StatusCode::BAD_REQUEST, false),
            Self::TooLong => ("audio_too_long", StatusCode::BAD_REQUEST, false),
            Self::TooShort => ("audio_too_short", StatusCode::BAD_REQUEST, false),
            Self::RateLimited => ("rate_limited", StatusCode::TOO_MANY_REQUESTS, true),
            Self::Unauthorized => ("auth_failed", StatusCode::UNAUTHORIZED, false),
            Self::Provider => ("provider_error", StatusCode::INTERNAL_SERVER_ERROR, true),
            Self::Network => ("network_error", StatusCode::BAD_GATEWAY, true),
        }
    }
}

/// The formats that front ends record in.
const FORMATS: [&str; 8] = [
    "audio/mpeg",
    "audio/mp3",
    "audio/mp4",
    "audio/wav",
    "audio/webm",
    "audio/ogg",
    "audio/flac",
    "audio/aac",
];

/// Base64 as browsers read it: with or without its padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What says nothing about the format.
const UNTYPED: &str = "application/octet-stream";

/// What a browser records, and so what audio is of which nothing is said.
const RECORDED: &str = "audio/webm";

/// Answers a request with a file in a form or, as an envelope has to, in a JSON object.
pub(crate) async fn answer(
    transcriber: Option<&dyn Transcriber>,
    headers: &HeaderMap,
    body: Bytes,
    enveloped: bool,
) -> Answer {
    #[derive(Serialize)]
    struct Transcribed<'a> {
        text: &'a str,
        size: usize,
        r#type: &'a str,
    }
    let Some(transcriber) = transcriber else {
        let message = "no transcription service is configured here";
        return problem(&TranscriptionError::new(TranscriptionErrorKind::NotConfigured, message));
    };
    let audio = match read(headers, body, enveloped).await {
        Ok(audio) => audio,
        Err(error) => return problem(&error),
    };
    let (size, mime_type) = (audio.data.len(), audio.mime_type.clone());
    // It may panic when it is called as well as when it is polled.
    let text = caught(async { transcriber.transcribe(audio).await }).await;
    match text {
        Ok(Ok(text)) => {
            let transcribed = Transcribed { text: &text, size, r#type: &mime_type };
            answer::json(StatusCode::OK, &transcribed)
        }
        Ok(Err(error)) => problem(&error),
        Err(panic) => {
            tracing::error!(panic, "the transcription service panicked");
            let message = "the transcription service failed";
            problem(&TranscriptionError::new(TranscriptionErrorKind::Provider, message))
        }
    }
}

async fn read(
    headers: &HeaderMap,
    body: Bytes,
    enveloped: bool,
) -> Result<Audio, TranscriptionError> {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let content_type = content_type.unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let audio = match &*essence {
        _ if enveloped => from_json(&body)?,
        "application/json" => from_json(&body)?,
        "multipart/form-data" => from_form(content_type, body).await?,
        _ => {
            return Err(invalid(
                "send a form (multipart/form-data) with a file \"audio\", or JSON \
                 {\"audio\": base64, \"mimeType\": …}",
            ));
        }
    };
    if audio.data.is_empty() {
        return Err(TranscriptionError::new(
            TranscriptionErrorKind::TooShort,
            "the audio is empty",
        ));
    }
    Ok(audio)
}

fn from_json(body: &[u8]) -> Result<Audio, TranscriptionError> {
    let text = std::str::from_utf8(body).map_err(|_| invalid("the body is not UTF-8"))?;
    let object = JsonObject::parse(text).map_err(|_| invalid("the body is no JSON object"))?;
    let member = |name: &str| object.get(name).and_then(read_string);
    let Some(audio) = member("audio").filter(|audio| !audio.is_empty()) else {
        return Err(invalid("\"audio\" is missing: the audio as base64"));
    };
    let Some(mime_type) = member("mimeType").filter(|kind| !kind.is_empty()) else {
        return Err(invalid("\"mimeType\" is missing, such as \"audio/webm\""));
    };
    let encoded = match audio.strip_prefix("data:") {
        Some(url) => url.split_once(',').map_or("", |(_, encoded)| encoded),
        None => &audio,
    };
    let data = BASE64.decode(encoded).map_err(|_| invalid("\"audio\" is not base64"))?;
    let mime_type = format(&mime_type)?;
    let filename = member("filename").map(std::borrow::Cow::into_owned);
    Ok(Audio { data: data.into(), mime_type, filename })
}

async fn from_form(content_type: &str, body: Bytes) -> Result<Audio, TranscriptionError> {
    let boundary = multer::parse_boundary(content_type)
        .map_err(|_| invalid("the Content-Type of the form has no boundary"))?;
    let whole = futures_util::stream::iter([Ok::<_, std::convert::Infallible>(body)]);
    let mut form = multer::Multipart::new(whole, boundary);
    let broken = |_| invalid("the form cannot be read");
    while let Some(field) = form.next_field().await.map_err(broken)? {
        // Without a name it is a text, no file.
        if field.name() != Some("audio") || field.file_name().is_none() {
            continue;
        }
        let kind = field.content_type().map(|kind| kind.essence_str().to_owned());
        let filename = field.file_name().map(str::to_owned);
        let data = field.bytes().await.map_err(broken)?;
        let mime_type = match kind.as_deref() {
            None | Some("" | UNTYPED) => RECORDED.to_owned(),
            Some(kind) => format(kind)?,
        };
        return Ok(Audio { data, mime_type, filename });
    }
    Err(invalid("the form has no file \"audio\""))
}

/// The media type in small letters and without parameters, if it is one that is read.
fn format(mime_type: &str) -> Result<String, TranscriptionError> {
    let essence = mime_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if essence == UNTYPED || FORMATS.contains(&&*essence) {
        return Ok(essence);
    }
    let shown: String = essence.chars().take(80).collect();
    let message = format!("audio of type {shown:?} is not read; {} are", FORMATS.join(", "));
    Err(TranscriptionError::new(TranscriptionErrorKind::InvalidFormat, message))
}

/// A request whose body is larger than it may be.
pub(crate) fn too_large(limit: usize) -> Answer {
    let message = format!("the audio is larger than {limit} bytes");
    problem(&TranscriptionError::new(TranscriptionErrorKind::TooLong, message))
}

fn invalid(message: &str) -> TranscriptionError {
    TranscriptionError::new(TranscriptionErrorKind::InvalidRequest, message)
}

fn problem(error: &TranscriptionError) -> Answer {
    #[derive(Serialize)]
    struct Body<'a> {
        error: &'a str,
        message: &'a str,
        retryable: bool,
    }
    let (code, status, retryable) = error.kind.facts();
    answer::json(status, &Body { error: code, message: &error.message, retryable })
}
