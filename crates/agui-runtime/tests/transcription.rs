//! Audio to text: as a form, as JSON, and every way it fails.

mod common;

use std::sync::{Arc, Mutex};

use agui_agent::BoxFuture;
use agui_runtime::{Audio, Transcriber, TranscriptionError, TranscriptionErrorKind};
use bytes::Bytes;
use common::*;
use http::{Request, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};

/// Keeps what it gets, and answers with a text or as it was told to fail.
#[derive(Clone, Default)]
struct Ear {
    heard: Arc<Mutex<Vec<Audio>>>,
    fails: Option<TranscriptionErrorKind>,
    panics: bool,
}

impl Transcriber for Ear {
    fn transcribe(&self, audio: Audio) -> BoxFuture<'_, Result<String, TranscriptionError>> {
        assert!(!self.panics, "the password is swordfish");
        self.heard.lock().unwrap().push(audio);
        let answer = match self.fails {
            None => Ok("Hello there".to_owned()),
            Some(kind) => Err(TranscriptionError::new(kind, "the service says no")),
        };
        Box::pin(std::future::ready(answer))
    }
}

impl Ear {
    fn runtime(&self) -> Fixture {
        let ear = self.clone();
        fixture_with(move |builder| builder.transcriber(ear).body_limit(4096))
    }

    fn last(&self) -> Audio {
        self.heard.lock().unwrap().pop().expect("something was heard")
    }
}

/// A form with one part of this name, whose headers and content are given.
fn form(disposition: &str, kind: &str, content: &[u8]) -> Request<Full<Bytes>> {
    let mut body = format!("--edge\r\ncontent-disposition: form-data; {disposition}\r\n{kind}\r\n");
    if !kind.is_empty() {
        body = body.replace(kind, &format!("content-type: {kind}\r\n"));
    }
    let mut body = body.into_bytes();
    body.extend_from_slice(content);
    body.extend_from_slice(b"\r\n--edge--\r\n");
    let mut request = raw("POST", "/transcribe", body);
    let value = "multipart/form-data; boundary=edge".parse().unwrap();
    request.headers_mut().insert("content-type", value);
    request
}

fn refused(answer: &Answer, status: StatusCode, code: &str, retryable: bool) -> String {
    assert_eq!((answer.status, answer.json()["error"].as_str()), (status, Some(code)));
    assert_eq!(answer.headers["content-type"], "application/json");
    let body = answer.json();
    assert_eq!(body["retryable"], retryable, "{code}");
    assert_eq!(body.as_object().unwrap().len(), 3, "{body}");
    body["message"].as_str().unwrap().to_owned()
}

/// checklist 58, 6
#[tokio::test]
async fn audio_comes_as_a_form_or_as_json() {
    let ear = Ear::default();
    let fixture = ear.runtime();
    let info = get(&fixture, "/info").await.json();
    assert_eq!(info["audioFileTranscriptionEnabled"], true);

    let text = |size: usize, kind: &str| json!({"text": "Hello there", "size": size, "type": kind});
    let file = "name=\"audio\"; filename=\"a.ogg\"";
    for (kind, heard) in [
        ("audio/ogg", "audio/ogg"),
        ("audio/webm;codecs=opus", "audio/webm"),
        ("application/octet-stream", "audio/webm"),
        ("", "audio/webm"),
    ] {
        let answer = ask(&fixture, form(file, kind, b"\x00\xff\r\nsound")).await;
        assert_eq!(answer.status, StatusCode::OK, "{kind}: {}", answer.body);
        assert_eq!(answer.json(), text(9, heard), "{kind}");
        let audio = ear.last();
        assert_eq!(&audio.data[..], b"\x00\xff\r\nsound");
        assert_eq!((&*audio.mime_type, audio.filename.as_deref()), (heard, Some("a.ogg")));
    }
    for (audio, kind, heard) in [
        ("AP9z", "audio/mp4", "audio/mp4"),
        ("data:audio/mp4;base64,AP9z", "audio/mp4", "audio/mp4"),
        ("AP9z", "AUDIO/WebM; codecs=opus", "audio/webm"),
        ("AP9z", "application/octet-stream", "application/octet-stream"),
    ] {
        let body = json!({"audio": audio, "mimeType": kind, "filename": "b"});
        let direct = ask(&fixture, request("POST", "/transcribe", body.clone())).await;
        let enveloped = ask(&fixture, envelope("transcribe", Value::Null, body)).await;
        assert_eq!(direct.json(), text(3, heard), "{audio} {kind}");
        assert_eq!(enveloped.body, direct.body);
        assert_eq!(
            (&ear.last().data[..], ear.last().filename),
            (&b"\x00\xffs"[..], Some("b".into()))
        );
    }
    for unpadded in ["AA", "AA=="] {
        let body = json!({"audio": unpadded, "mimeType": "audio/wav"});
        let answer = ask(&fixture, request("POST", "/transcribe", body)).await;
        assert_eq!((answer.status, &ear.last().data[..]), (StatusCode::OK, &b"\x00"[..]));
    }
}

/// checklist 58
#[tokio::test]
async fn every_failure_of_the_service_has_its_code() {
    use TranscriptionErrorKind as Kind;
    for (kind, status, code, retryable) in [
        (Kind::NotConfigured, 503, "service_not_configured", false),
        (Kind::InvalidRequest, 400, "invalid_request", false),
        (Kind::InvalidFormat, 400, "invalid_audio_format", false),
        (Kind::TooLong, 400, "audio_too_long", false),
        (Kind::TooShort, 400, "audio_too_short", false),
        (Kind::RateLimited, 429, "rate_limited", true),
        (Kind::Unauthorized, 401, "auth_failed", false),
        (Kind::Provider, 500, "provider_error", true),
        (Kind::Network, 502, "network_error", true),
    ] {
        let fixture = Ear { fails: Some(kind), ..Ear::default() }.runtime();
        let body = json!({"audio": "AAAA", "mimeType": "audio/wav"});
        let answer = ask(&fixture, request("POST", "/transcribe", body)).await;
        let status = StatusCode::from_u16(status).unwrap();
        assert_eq!(refused(&answer, status, code, retryable), "the service says no");
    }
    let fixture = Ear { panics: true, ..Ear::default() }.runtime();
    let body = json!({"audio": "AAAA", "mimeType": "audio/wav"});
    let answer = ask(&fixture, request("POST", "/transcribe", body)).await;
    let told = refused(&answer, StatusCode::INTERNAL_SERVER_ERROR, "provider_error", true);
    assert!(!told.contains("swordfish"));
}

/// checklist 58
#[tokio::test]
async fn what_is_no_audio_is_named() {
    let ear = Ear::default();
    let fixture = ear.runtime();
    let file = "name=\"audio\"; filename=\"a\"";
    let json = |body: Value| request("POST", "/transcribe", body);
    let typed = |kind: &str| {
        let mut request = raw("POST", "/transcribe", "sound");
        request.headers_mut().insert("content-type", kind.parse().unwrap());
        request
    };
    let mut untyped = raw("POST", "/transcribe", "sound");
    untyped.headers_mut().remove("content-type");
    for (asked, code, names) in [
        (typed("text/plain"), "invalid_request", "multipart/form-data"),
        (untyped, "invalid_request", "multipart/form-data"),
        (typed("multipart/form-data"), "invalid_request", "boundary"),
        (typed("multipart/form-data; boundary=edge"), "invalid_request", "form"),
        (form("name=\"other\"; filename=\"a\"", "audio/wav", b"x"), "invalid_request", "\"audio\""),
        (form("name=\"audio\"", "", b"only a text"), "invalid_request", "\"audio\""),
        (form(file, "video/mp4", b"x"), "invalid_audio_format", "video/mp4"),
        (form(file, "audio/wav", b""), "audio_too_short", "empty"),
        (raw("POST", "/transcribe", "{"), "invalid_request", "JSON"),
        (json(json!({"mimeType": "audio/wav"})), "invalid_request", "\"audio\""),
        (json(json!({"audio": 7, "mimeType": "audio/wav"})), "invalid_request", "\"audio\""),
        (json(json!({"audio": "AAAA"})), "invalid_request", "\"mimeType\""),
        (json(json!({"audio": "*", "mimeType": "audio/wav"})), "invalid_request", "base64"),
        (
            json(json!({"audio": "AAAA", "mimeType": "text/html"})),
            "invalid_audio_format",
            "text/html",
        ),
    ] {
        let answer = ask(&fixture, asked).await;
        let told = refused(&answer, StatusCode::BAD_REQUEST, code, false);
        assert!(told.contains(names), "{names} in {told}");
    }
    assert!(ear.heard.lock().unwrap().is_empty());

    // As much as may be, and one byte more.
    let overhead = 4096 - form_length(file, 0);
    for (length, status) in [(overhead, StatusCode::OK), (overhead + 1, StatusCode::BAD_REQUEST)] {
        let answer = ask(&fixture, form(file, "audio/wav", &vec![b'x'; length])).await;
        assert_eq!(answer.status, status, "{}", answer.body);
        if status != StatusCode::OK {
            let told = refused(&answer, status, "audio_too_long", false);
            assert!(told.contains("4096"), "{told}");
        }
    }
}

/// How long the body of a form is.
fn form_length(disposition: &str, content: usize) -> usize {
    use http_body::Body;
    let size = form(disposition, "audio/wav", &vec![b'x'; content]).body().size_hint();
    usize::try_from(size.exact().unwrap()).unwrap()
}

/// checklist 58, 6
#[tokio::test]
async fn without_a_service_nobody_looks_at_the_body() {
    let fixture = fixture_with(|builder| builder.body_limit(8));
    let info = get(&fixture, "/info").await.json();
    assert_eq!(info["audioFileTranscriptionEnabled"], false);
    for body in ["", "no audio at all, and too long"] {
        let answer = ask(&fixture, raw("POST", "/transcribe", body)).await;
        let status = StatusCode::SERVICE_UNAVAILABLE;
        refused(&answer, status, "service_not_configured", false);
    }
}
