//! From a request to the input of a run.

use std::error::Error;
use std::future::poll_fn;
use std::pin::Pin;
use std::str;

use agui_agent::BoxError;
use agui_stream::{Warning, accept_input};
use agui_types::{FromJson, ProtocolVersion, Reading, RunAgentInput};
use bytes::Buf;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use http_body::Body;

use crate::log::WarningLog;
use crate::{BodyError, Refusal, codes};

/// Reads and judges a request. Nothing of a run begins before it is done (P-73, T-19).
pub(crate) async fn read<B>(
    head: &Parts,
    body: Pin<&mut B>,
    limit: usize,
) -> Result<RunAgentInput, Refusal>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    if head.method != Method::POST {
        return Err(Refusal::method("POST", "POST a RunAgentInput to start a run"));
    }
    // Strict on purpose: a page of another site can have a browser send a form or plain text here
    // without asking, but not JSON. Otherwise a form post could start a run in a user's name.
    let content_type = head.headers.get(CONTENT_TYPE);
    if !content_type.and_then(|value| value.to_str().ok()).is_some_and(is_json) {
        let found = content_type.map_or("none".into(), |value| format!("{value:?}"));
        let message = format!("expected the Content-Type application/json, found {found}");
        let hint = "send the RunAgentInput with Content-Type: application/json";
        let (status, code) = (StatusCode::UNSUPPORTED_MEDIA_TYPE, codes::UNSUPPORTED_MEDIA_TYPE);
        return Err(Refusal::new(status, code, message).hint(hint).unread());
    }
    if let Some(encoding) = head.headers.get(CONTENT_ENCODING).filter(|it| *it != "identity") {
        let message = format!("the body is encoded as {encoding:?}, which is not read here");
        let (status, code) = (StatusCode::UNSUPPORTED_MEDIA_TYPE, codes::UNSUPPORTED_MEDIA_TYPE);
        let hint = "send the body without a Content-Encoding";
        return Err(Refusal::new(status, code, message).hint(hint).unread());
    }
    if announced(&head.headers).is_some_and(|length| length > limit as u64) {
        return Err(too_large(limit));
    }
    judge(&collect(body, limit).await?)
}

/// The input of a run, from its JSON text.
///
/// Fails as a request with such a body is refused; nothing of the text is repeated but where it is
/// at fault.
pub fn judge(json: &[u8]) -> Result<RunAgentInput, Refusal> {
    let text = str::from_utf8(json).map_err(|error| {
        let message = format!("the body is not UTF-8 at byte {}", error.valid_up_to());
        Refusal::new(StatusCode::BAD_REQUEST, codes::INVALID_UTF8, message)
            .hint("JSON travels as UTF-8")
    })?;
    if text.starts_with('\u{feff}') {
        let message = "the body is not JSON: a byte order mark (EF BB BF) stands at its beginning";
        return Err(Refusal::new(StatusCode::BAD_REQUEST, codes::INVALID_JSON, message)
            .hint("send the JSON as UTF-8 without a byte order mark"));
    }
    let reading = RunAgentInput::from_json_tolerant(text).map_err(|error| Refusal::from(&error))?;
    accept(reading)
}

/// The input as an agent gets it: retired shapes translated, what the protocol does not describe
/// left out, both with a warning in the log (P-74, P-79).
fn accept(reading: Reading<RunAgentInput>) -> Result<RunAgentInput, Refusal> {
    let mut warnings = Vec::new();
    let input = accept_input(reading, &mut warnings).map_err(|fault| {
        let message = format!("{}: {}", fault.path, fault.message);
        Refusal::malformed(message, &fault.path).hint(String::from(fault.fix))
    })?;
    warnings.extend(version_warning(&input));
    WarningLog::about("the input").take(warnings);
    Ok(input)
}

/// P-81: a version is never a reason to refuse, but one that is newer may mean more than is read.
fn version_warning(input: &RunAgentInput) -> Option<Warning> {
    let theirs = input.protocol_version.as_ref().filter(|version| version.is_newer_or_unclear())?;
    let (ours, theirs) = (ProtocolVersion::DECLARED, theirs.as_str());
    Some(Warning {
        rule: "P-81",
        event: None,
        path: "/protocolVersion".into(),
        message: format!("the client speaks protocol version {theirs:?}, it is served {ours}"),
    })
}

/// The whole body, or why not.
async fn collect<B>(mut body: Pin<&mut B>, limit: usize) -> Result<Vec<u8>, Refusal>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    // Not as large as announced: an announcement costs its sender nothing.
    let mut whole = Vec::new();
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        let frame = frame.map_err(|error| broken(&*error.into(), whole.len()))?;
        // Trailers say nothing here.
        let Ok(mut data) = frame.into_data() else {
            continue;
        };
        if data.remaining() > limit - whole.len() {
            return Err(too_large(limit));
        }
        while data.has_remaining() {
            let chunk = data.chunk();
            whole.extend_from_slice(chunk);
            let read = chunk.len();
            data.advance(read);
        }
    }
    Ok(whole)
}

/// The body ended before it was whole.
fn broken(error: &(dyn Error + 'static), came: usize) -> Refusal {
    match BodyError::behind(error) {
        Some(BodyError::TooSlow) => {
            let message = format!("the body came too slowly: {came} bytes did");
            Refusal::new(StatusCode::REQUEST_TIMEOUT, codes::BODY_TOO_SLOW, message)
        }
        Some(BodyError::Closing) => {
            let message = "the server is shutting down";
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, codes::SHUTTING_DOWN, message)
                .hint("no run has begun: send the request again")
        }
        _ => {
            let message = format!("the body broke off after {came} bytes");
            Refusal::new(StatusCode::BAD_REQUEST, codes::BODY_INCOMPLETE, message)
        }
    }
}

fn too_large(limit: usize) -> Refusal {
    let message = format!("the body is larger than {limit} bytes");
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, codes::BODY_TOO_LARGE, message)
        .hint("send less: shorten the history, or pass media by URL instead of inline")
        .unread()
}

fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Whether a media type is JSON: `application/json`, or one with the suffix `+json`. Case and
/// parameters do not matter.
fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    let is_token = |text: &str| {
        let special = b"!#$%&'*+-.^_`|~";
        !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || special.contains(&byte))
    };
    let Some((kind, subtype)) = essence.split_once('/') else {
        return false;
    };
    let subtype = subtype.to_ascii_lowercase();
    is_token(kind)
        && is_token(&subtype)
        && (subtype.strip_suffix("+json").is_some_and(|name| !name.is_empty())
            || kind.eq_ignore_ascii_case("application") && subtype == "json")
}

#[cfg(test)]
mod tests {
    use super::is_json;

    #[test]
    fn json_is_told_from_what_a_form_can_send() {
        for json in [
            "application/json",
            "Application/JSON; charset=utf-8",
            " application/json ;x=y",
            "application/vnd.ag-ui.input+json",
            "text/x+JSON",
        ] {
            assert!(is_json(json), "{json}");
        }
        for other in [
            "",
            "json",
            "text/plain",
            "text/json",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=application/json",
            "text/plain; application/json",
            "text/plain,application/x+json",
            "text/plain application/json",
            "application/+json",
            "application/jsonp",
            "application/json/json",
            "application/",
            "/json",
        ] {
            assert!(!is_json(other), "{other}");
        }
    }
}
