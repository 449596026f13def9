//! Routes by envelope: one JSON object that names the operation and holds its body.

use std::borrow::Cow;

use agui_types::json::{JsonObject, read_string};
use http::{Method, Uri};

use super::{Found, Operation, resolve};

/// An operation and the body that is meant for it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Envelope {
    pub(crate) operation: Operation,
    /// The JSON of the body; empty where there is none.
    pub(crate) body: String,
    /// The query that a tunnelled path came with.
    pub(crate) query: Option<String>,
}

/// Why an envelope cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EnvelopeError {
    /// It is no envelope, or lacks something; what and what to send instead.
    #[error("{0}")]
    Malformed(Cow<'static, str>),
    /// What it asks for through `resource/request` is not here.
    #[error("Not found")]
    NotFound,
    /// What it asks for through `resource/request` takes another method.
    #[error("Method not allowed")]
    WrongMethod(&'static str),
}

/// The methods of the protocol between front end and runtime.
const METHODS: [&str; 8] = [
    "info",
    "agent/run",
    "agent/connect",
    "agent/suggest",
    "agent/stop",
    "transcribe",
    "inspector/metadata",
    "resource/request",
];

/// Whether a body is an envelope with a method that is known: sent to a mount that takes none, it
/// gets told so.
pub(crate) fn names_a_method(body: &str) -> bool {
    let envelope = JsonObject::parse(body).ok();
    let method = envelope.as_ref().and_then(|envelope| read_string(envelope.get("method")?));
    method.is_some_and(|method| METHODS.contains(&&*method))
}

impl Envelope {
    /// Opens an envelope. Members that it does not have to have are passed over.
    pub(crate) fn open(text: &str) -> Result<Self, EnvelopeError> {
        // Members stay text: what is inside is for whoever the operation belongs to.
        let envelope = JsonObject::parse(text).map_err(|error| {
            malformed(format!("the body is no envelope, {{\"method\": …, \"params\": …}}: {error}"))
        })?;
        let method = envelope.get("method").and_then(read_string);
        let Some(method) = method.as_deref().filter(|method| !method.is_empty()) else {
            return Err(malformed(format!("\"method\" is missing; it is one of {}", known())));
        };
        let agent = || param(&envelope, "agentId");
        let operation = match method {
            "info" => Operation::Info,
            "agent/run" => Operation::Run { agent: agent()? },
            "agent/connect" => Operation::Connect { agent: agent()? },
            "agent/suggest" => Operation::Suggest { agent: agent()? },
            "agent/stop" => {
                Operation::Stop { agent: agent()?, thread: param(&envelope, "threadId")? }
            }
            "transcribe" => Operation::Transcribe,
            "inspector/metadata" => Operation::InspectorMetadata,
            "resource/request" => return tunnelled(&envelope),
            // Newer front ends ask for it; it is the vendor's.
            "inspector/learning" => return Err(EnvelopeError::NotFound),
            other => {
                let other: String = other.chars().take(80).collect();
                return Err(malformed(format!("no method {other:?}; it is one of {}", known())));
            }
        };
        let required = matches!(
            operation,
            Operation::Run { .. }
                | Operation::Connect { .. }
                | Operation::Suggest { .. }
                | Operation::Transcribe
        );
        let body = body(&envelope);
        if required && body.is_empty() {
            return Err(malformed(format!("\"body\" is missing, which {method} needs")));
        }
        Ok(Self { operation, body, query: None })
    }
}

/// A request to one of the thread routes, as newer front ends send it through the single route.
fn tunnelled(envelope: &JsonObject) -> Result<Envelope, EnvelopeError> {
    let path = param(envelope, "path")?;
    let method = param(envelope, "httpMethod")?;
    let method = Method::from_bytes(method.as_bytes())
        .map_err(|_| malformed("\"params.httpMethod\" is no HTTP method"))?;
    // A path with a host, or one that climbs, is not relative to the mount.
    let uri: Uri = path.parse().map_err(|_| EnvelopeError::NotFound)?;
    let climbs = uri.path().split('/').any(|segment| segment == "..");
    if uri.authority().is_some() || !uri.path().starts_with('/') || climbs {
        return Err(EnvelopeError::NotFound);
    }
    match resolve(&method, uri.path(), "") {
        Found::Operation(operation) if is_resource(&operation) => {
            let query = uri.query().map(str::to_owned);
            Ok(Envelope { operation, body: body(envelope), query })
        }
        Found::WrongMethod(allow) if of_resources(uri.path()) => {
            Err(EnvelopeError::WrongMethod(allow))
        }
        _ => Err(EnvelopeError::NotFound),
    }
}

/// What can be asked for through the tunnel.
fn is_resource(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::ListThreads
            | Operation::ClearThreads
            | Operation::SubscribeThreads
            | Operation::UpdateThread { .. }
            | Operation::DeleteThread { .. }
            | Operation::ArchiveThread { .. }
            | Operation::ThreadMessages { .. }
            | Operation::ThreadEvents { .. }
            | Operation::ThreadState { .. }
            | Operation::Annotate
    )
}

/// Whether a path is of those that the tunnel leads to, whatever its method.
fn of_resources(path: &str) -> bool {
    let first = path.split('/').find(|segment| !segment.is_empty());
    matches!(first, Some("threads" | "annotate"))
}

/// A parameter: a string that is not blank, taken as it is.
fn param(envelope: &JsonObject, name: &str) -> Result<String, EnvelopeError> {
    let params = envelope.get("params").and_then(|params| JsonObject::parse(params).ok());
    let value = params.as_ref().and_then(|params| read_string(params.get(name)?));
    match value {
        Some(value) if !value.trim().is_empty() => Ok(value.into_owned()),
        _ => Err(malformed(format!("\"params.{name}\" is missing, or no string, or blank"))),
    }
}

/// The inner body. A string is taken for the body's text.
fn body(envelope: &JsonObject) -> String {
    match envelope.get("body") {
        None | Some("null") => String::new(),
        Some(value) => read_string(value).unwrap_or(Cow::Borrowed(value)).into_owned(),
    }
}

fn malformed(message: impl Into<Cow<'static, str>>) -> EnvelopeError {
    EnvelopeError::Malformed(message.into())
}

fn known() -> String {
    METHODS.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_in_params_are_taken_as_they_are() {
        let opened = Envelope::open(
            r#"{"method":"agent/stop","params":{"agentId":"a%2Fb","threadId":"t/1"},"more":1}"#,
        )
        .unwrap();
        let stop = Operation::Stop { agent: "a%2Fb".into(), thread: "t/1".into() };
        assert_eq!(opened, Envelope { operation: stop, body: String::new(), query: None });
    }

    #[test]
    fn a_body_may_be_a_value_or_its_text() {
        for body in [r#"{"threadId":"t"}"#, r#""{\"threadId\":\"t\"}""#] {
            let text = format!(
                r#"{{"method":"agent/run","params":{{"agentId":"default"}},"body":{body}}}"#
            );
            assert_eq!(Envelope::open(&text).unwrap().body, r#"{"threadId":"t"}"#);
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        for (text, names) in [
            ("null", "no envelope"),
            ("[]", "no envelope"),
            ("{", "no envelope"),
            ("{}", "\"method\" is missing"),
            (r#"{"method":null}"#, "\"method\" is missing"),
            (r#"{"method":""}"#, "\"method\" is missing"),
            (r#"{"method":7}"#, "\"method\" is missing"),
            (r#"{"method":"Info"}"#, "no method \"Info\""),
            (r#"{"method":"agent/run","body":{}}"#, "params.agentId"),
            (r#"{"method":"agent/run","params":{"agentId":7},"body":{}}"#, "params.agentId"),
            (r#"{"method":"agent/run","params":{"agentId":" "},"body":{}}"#, "params.agentId"),
            (r#"{"method":"agent/run","params":{"agentId":"a"}}"#, "\"body\" is missing"),
            (r#"{"method":"agent/run","params":{"agentId":"a"},"body":null}"#, "\"body\""),
            (r#"{"method":"agent/stop","params":{"agentId":"a"}}"#, "params.threadId"),
            (r#"{"method":"transcribe"}"#, "\"body\" is missing"),
        ] {
            let Err(EnvelopeError::Malformed(message)) = Envelope::open(text) else {
                panic!("{text}");
            };
            assert!(message.contains(names), "{text}: {message}");
        }
    }

    #[test]
    fn the_tunnel_leads_to_the_threads_alone() {
        let open = |path: &str, method: &str| {
            Envelope::open(&format!(
                r#"{{"method":"resource/request","params":{{"path":"{path}","httpMethod":"{method}"}}}}"#
            ))
        };
        let listed = open("/threads?agentId=default", "GET").unwrap();
        assert_eq!(listed.operation, Operation::ListThreads);
        assert_eq!(listed.query.as_deref(), Some("agentId=default"));
        for path in
            ["/info", "/agent/a/run", "/memories", "//h/threads", "threads", "/x/../threads"]
        {
            assert_eq!(open(path, "GET").unwrap_err(), EnvelopeError::NotFound, "{path}");
        }
        let wrong = open("/threads", "PATCH").unwrap_err();
        assert_eq!(wrong, EnvelopeError::WrongMethod("GET"));
    }

    #[test]
    fn only_a_known_method_makes_an_envelope() {
        assert!(names_a_method(r#"{"method":"info"}"#));
        for text in [r#"{"method":"frobnicate"}"#, r#"{"method":7}"#, "{", "[]", "null"] {
            assert!(!names_a_method(text), "{text}");
        }
    }
}
