//! What a runtime is asked, in either of its two forms.

use agui_types::json::write_string;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Url;
use uuid::Uuid;

use super::info::Via;
use super::{Audio, RuntimeError};
use crate::http::{Content, HeaderRequest, Request};

/// One thing to ask for.
pub(super) enum Operation<'a> {
    Info,
    /// With the text of a `RunAgentInput`.
    Agent {
        agent: Id<'a>,
        what: Streamed,
        input: String,
    },
    Stop {
        agent: Id<'a>,
        thread: Id<'a>,
        run: Option<&'a str>,
    },
    Transcribe(&'a Audio),
    /// Something of one thread, or of all of them; the body is JSON.
    Threads {
        method: Method,
        thread: Option<Id<'a>>,
        /// Which thing, where the method does not say it.
        what: Option<&'static str>,
        query: Vec<(&'static str, String)>,
        body: Option<String>,
    },
}

/// What is answered with events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Streamed {
    Run,
    Connect,
    Suggest,
}

impl Streamed {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Connect => "connect",
            Self::Suggest => "suggest",
        }
    }
}

/// An id of an agent or of a thread that can be part of a path.
///
/// Which those are does not depend on the transport: what cannot be asked for by path is refused in
/// an envelope as well, before anything is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Id<'a>(&'a str);

impl<'a> Id<'a> {
    /// Fails where a path would not keep the id where it is put.
    pub(super) fn new(id: &'a str) -> Result<Self, RuntimeError> {
        if matches!(id, "" | "." | "..") {
            let message = format!("the id {id:?} cannot be part of a path");
            return Err(RuntimeError::Invalid { message });
        }
        Ok(Self(id))
    }
}

impl<'a> Operation<'a> {
    /// The request to the runtime at this URL, which has no slash at its end.
    pub(super) fn request(&self, via: Via, base: &Url) -> Request {
        let about = self.thread().map_or("", |thread| thread.0);
        let about = HeaderRequest::about_thread(about);
        let (method, url, content, body) = match via {
            Via::Rest => self.rest(base),
            Via::Single => (Method::POST, base.clone(), Content::Json, self.envelope(base).into()),
        };
        Request {
            method,
            url,
            content,
            body,
            for_events: matches!(self, Self::Agent { .. }),
            forwarded: HeaderMap::new(),
            position: None,
            about,
        }
    }

    /// The thread it is about, where that is one. That of a run stands in its input.
    fn thread(&self) -> Option<Id<'a>> {
        match self {
            Self::Stop { thread, .. } => Some(*thread),
            Self::Threads { thread, .. } => *thread,
            Self::Info | Self::Agent { .. } | Self::Transcribe(_) => None,
        }
    }

    fn rest(&self, base: &Url) -> (Method, Url, Content, Bytes) {
        match self {
            Self::Info => (Method::GET, below(base, &["info"]), Content::Nothing, Bytes::new()),
            Self::Agent { agent, what, input } => {
                let url = below(base, &["agent", agent.0, what.name()]);
                (Method::POST, url, Content::Json, input.clone().into())
            }
            Self::Stop { agent, thread, run } => {
                let url = below(base, &["agent", agent.0, "stop", thread.0]);
                (Method::POST, url, Content::Json, run.map(of_run).unwrap_or_default().into())
            }
            Self::Transcribe(audio) => {
                let (kind, form) = form(audio);
                (Method::POST, below(base, &["transcribe"]), Content::Other(kind), form)
            }
            Self::Threads { method, thread, what, query, body } => {
                let url = of_threads(base, *thread, *what, query);
                let content = if body.is_some() { Content::Json } else { Content::Nothing };
                (method.clone(), url, content, body.clone().unwrap_or_default().into())
            }
        }
    }

    /// The envelope, in which ids stand as they are.
    fn envelope(&self, base: &Url) -> String {
        let enveloped = |method: &str, params: &[(&str, &str)], body: Option<&str>| {
            let params: Vec<_> =
                params.iter().map(|(name, text)| format!("\"{name}\":{}", quoted(text))).collect();
            let mut envelope = format!("{{\"method\":\"{method}\"");
            if !params.is_empty() {
                envelope.push_str(&format!(",\"params\":{{{}}}", params.join(",")));
            }
            if let Some(body) = body {
                envelope.push_str(&format!(",\"body\":{body}"));
            }
            envelope.push('}');
            envelope
        };
        match self {
            Self::Info => enveloped("info", &[], None),
            Self::Agent { agent, what, input } => {
                enveloped(&format!("agent/{}", what.name()), &[("agentId", agent.0)], Some(input))
            }
            Self::Stop { agent, thread, run } => {
                let params = [("agentId", agent.0), ("threadId", thread.0)];
                enveloped("agent/stop", &params, run.map(of_run).as_deref())
            }
            Self::Transcribe(audio) => enveloped("transcribe", &[], Some(&in_json(audio))),
            Self::Threads { method, thread, what, query, body } => {
                // As it would be below the mount.
                let mut url = base.clone();
                url.set_path("");
                url.set_query(None);
                let url = of_threads(&url, *thread, *what, query);
                let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
                let path = format!("{}{query}", url.path());
                let params = [("path", path.as_str()), ("httpMethod", method.as_str())];
                enveloped("resource/request", &params, body.as_deref())
            }
        }
    }
}

/// The URL of what there is below `/threads`.
fn of_threads(
    base: &Url,
    thread: Option<Id<'_>>,
    what: Option<&str>,
    query: &[(&str, String)],
) -> Url {
    let path: Vec<_> = ["threads"].into_iter().chain(thread.map(|it| it.0)).chain(what).collect();
    let mut url = below(base, &path);
    if !query.is_empty() {
        url.query_pairs_mut().extend_pairs(query);
    }
    url
}

/// The URL below another one, each segment encoded, the query kept.
fn below(base: &Url, path: &[&str]) -> Url {
    // Not by `Url`, which leaves tabs and line breaks out of what it is given.
    let mut whole = base.path().trim_end_matches('/').to_owned();
    for segment in path {
        whole.push('/');
        whole.extend(utf8_percent_encode(segment, ENCODED));
    }
    let mut url = base.clone();
    url.set_path(&whole);
    url
}

/// What is encoded in a segment: what a browser's `encodeURIComponent` encodes.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'!')
    .remove(b'~')
    .remove(b'*')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')');

/// The body that names a run.
fn of_run(run: &str) -> String {
    format!("{{\"runId\":{}}}", quoted(run))
}

/// A text as a JSON string.
pub(super) fn quoted(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    write_string(&mut out, text);
    String::from_utf8(out).unwrap_or_default()
}

/// A form with one file, and its media type.
fn form(audio: &Audio) -> (HeaderValue, Bytes) {
    let boundary = format!("agui-{}", Uuid::now_v7().simple());
    // Neither may end its line or its quotes.
    let plain =
        |text: &str| -> String { text.chars().filter(|c| !c.is_control() && *c != '"').collect() };
    let head = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"audio\"; filename=\"{}\"\r\n\
         Content-Type: {}\r\n\r\n",
        plain(audio.filename.as_deref().unwrap_or("audio")),
        plain(&audio.mime_type)
    );
    let mut body = head.into_bytes();
    body.extend_from_slice(&audio.data);
    body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    let kind = HeaderValue::try_from(format!("multipart/form-data; boundary={boundary}"));
    (kind.unwrap_or(HeaderValue::from_static("multipart/form-data")), body.into())
}

fn in_json(audio: &Audio) -> String {
    let mut text = format!(
        "{{\"audio\":\"{}\",\"mimeType\":{}",
        STANDARD.encode(&audio.data),
        quoted(&audio.mime_type)
    );
    if let Some(name) = &audio.filename {
        text.push_str(&format!(",\"filename\":{}", quoted(name)));
    }
    text.push('}');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(operation: &Operation<'_>, via: Via) -> (String, String) {
        let base = Url::parse("https://u:p@h/api/x?key=1").unwrap();
        let request = operation.request(via, &base);
        let body = String::from_utf8_lossy(&request.body).into_owned();
        (format!("{} {}", request.method, request.url), body)
    }

    fn id(id: &str) -> Id<'_> {
        Id::new(id).unwrap()
    }

    #[test]
    fn ids_are_encoded_in_paths_and_plain_in_envelopes() {
        let id = id("a/b?c#d%e f\"ä");
        let path = "a%2Fb%3Fc%23d%25e%20f%22%C3%A4";
        for what in [Streamed::Run, Streamed::Connect, Streamed::Suggest] {
            let operation = Operation::Agent { agent: id, what, input: "{}".into() };
            let name = what.name();
            let rest = (format!("POST https://u:p@h/api/x/agent/{path}/{name}?key=1"), "{}".into());
            assert_eq!(asked(&operation, Via::Rest), rest);
            let envelope = format!(
                r#"{{"method":"agent/{name}","params":{{"agentId":"a/b?c#d%e f\"ä"}},"body":{{}}}}"#
            );
            let single = ("POST https://u:p@h/api/x?key=1".to_owned(), envelope);
            assert_eq!(asked(&operation, Via::Single), single);
        }
        let stop = |run| Operation::Stop { agent: Id("a"), thread: id, run };
        let (url, body) = asked(&stop(None), Via::Rest);
        assert!(url.contains(&format!("/agent/a/stop/{path}?")), "{url}");
        assert_eq!(body, "");
        assert_eq!(asked(&stop(Some("r")), Via::Rest).1, r#"{"runId":"r"}"#);
        let (_, body) = asked(&stop(Some("r")), Via::Single);
        let params = r#"{"agentId":"a","threadId":"a/b?c#d%e f\"ä"}"#;
        let expected =
            format!(r#"{{"method":"agent/stop","params":{params},"body":{{"runId":"r"}}}}"#);
        assert_eq!(body, expected);
    }

    #[test]
    fn what_would_climb_in_a_path_is_no_id() {
        for id in ["", ".", ".."] {
            let refused = Id::new(id).err();
            assert!(matches!(refused, Some(RuntimeError::Invalid { .. })), "{refused:?}");
        }
    }

    #[test]
    fn an_id_is_one_segment_whatever_it_holds() {
        let texts =
            ["a\nb", ".\t.", "\n..", "\t", " ", "..\r", "%2e%2e", "...", "a\\b", "a;b", "\0"];
        for text in texts {
            let operation = |what| Operation::Threads {
                method: Method::GET,
                thread: Some(id(text)),
                what,
                query: Vec::new(),
                body: None,
            };
            for (what, behind) in [(None, ""), (Some("state"), "/state")] {
                let request =
                    operation(what).request(Via::Rest, &Url::parse("http://h/x").unwrap());
                let segment = request.url.path().strip_prefix("/x/threads/").unwrap();
                let segment = segment.strip_suffix(behind).unwrap();
                let read = percent_encoding::percent_decode_str(segment).decode_utf8().unwrap();
                assert_eq!((&*read, segment.contains('/')), (text, false));
                let (_, tunnelled) = asked(&operation(what), Via::Single);
                let path = format!(r#""path":"/threads/{segment}{behind}""#);
                assert!(tunnelled.contains(&path), "{tunnelled}");
            }
        }
    }

    #[test]
    fn an_operation_says_which_thread_it_is_about() {
        let threads = |thread: Option<&'static str>, what| Operation::Threads {
            method: Method::POST,
            thread: thread.map(id),
            what,
            query: Vec::new(),
            body: None,
        };
        let audio = Audio::new("x", "audio/webm");
        let stop = Operation::Stop { agent: id("a"), thread: id("t"), run: Some("r") };
        let run = Operation::Agent { agent: id("a"), what: Streamed::Run, input: "{}".into() };
        for (operation, about) in [
            (stop, "t"),
            (threads(Some("t"), None), "t"),
            (threads(Some("t"), Some("archive")), "t"),
            (threads(Some("clear"), None), "clear"),
            (threads(None, Some("clear")), ""),
            (threads(None, None), ""),
            (Operation::Info, ""),
            (Operation::Transcribe(&audio), ""),
            // Its sender puts the input's there.
            (run, ""),
        ] {
            for via in [Via::Rest, Via::Single] {
                let request = operation.request(via, &Url::parse("http://h/x").unwrap());
                assert_eq!(request.about, HeaderRequest::about_thread(about));
            }
        }
    }

    #[test]
    fn what_is_asked_of_threads_goes_through_the_tunnel_as_it_would_below_the_mount() {
        let operation = Operation::Threads {
            method: Method::DELETE,
            thread: Some(id("a/b")),
            what: None,
            query: vec![("agentId", "x y".into())],
            body: Some("{}".into()),
        };
        let url = "DELETE https://u:p@h/api/x/threads/a%2Fb?key=1&agentId=x+y";
        assert_eq!(asked(&operation, Via::Rest), (url.to_owned(), "{}".to_owned()));
        let envelope = r#"{"method":"resource/request","params":{"path":"/threads/a%2Fb?agentId=x+y","httpMethod":"DELETE"},"body":{}}"#;
        assert_eq!(asked(&operation, Via::Single).1, envelope);
    }

    #[test]
    fn audio_is_a_file_of_a_form_or_base64() {
        let audio = Audio::new(&b"\x00\xff"[..], "audio/webm\r\nX: 1").filename("a\".webm\n");
        let (kind, body) = form(&audio);
        let boundary = kind.to_str().unwrap().split_once("boundary=").unwrap().1;
        let expected = [
            b"--",
            boundary.as_bytes(),
            b"\r\nContent-Disposition: form-data; name=\"audio\"; filename=\"a.webm\"\r\n",
            b"Content-Type: audio/webmX: 1\r\n\r\n\x00\xff\r\n--",
            boundary.as_bytes(),
            b"--\r\n",
        ];
        assert_eq!(body, expected.concat());
        let envelope =
            asked(&Operation::Transcribe(&Audio::new(&b"\x00\xff"[..], "audio/webm")), Via::Single)
                .1;
        let expected = r#"{"method":"transcribe","body":{"audio":"AP8=","mimeType":"audio/webm"}}"#;
        assert_eq!(envelope, expected);
    }
}
