//! Why a stream of events broke off, and how an agent says that its run failed.

use std::time::Duration;

use agui_stream::Fault;
use agui_wire::{DecodeError, DecodeErrorKind};

/// Any error, as agents return it: `?` turns every error type into one.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What an agent function returns: `Ok(())` finishes the run, an error ends it as `RUN_ERROR`.
///
/// The error's own text is the message that the front end is told, so an error from deep inside
/// (a file name, an upstream's words) reaches it as well: return a [`RunFailure`] where that must
/// not be. The log gets the error with its sources.
pub type AgentResult = Result<(), BoxError>;

/// A failure that an agent reports with a code: the run ends with `RUN_ERROR` carrying both.
///
/// Any other error works as well; its text becomes the message and there is no code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RunFailure {
    /// What went wrong, for a person.
    pub message: String,
    /// What went wrong, for a program.
    pub code: Option<String>,
}

impl RunFailure {
    /// A failure without a code.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: None }
    }

    /// The failure with a code.
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }
}

/// A stream of events broke off: the agent could not be reached, or what it sent is no AG-UI.
///
/// A run that reports `RUN_ERROR` is no such error: that is a well-formed end (C-10). Nor is a body
/// that ends without a terminal event: only whoever checks the rules can tell.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// No connection: the name does not resolve, nothing listens, TLS fails, or it took too long.
    #[error("cannot connect to {url}")]
    Connect {
        /// Where to, without credentials and query.
        url: String,
        /// Why not.
        source: BoxError,
    },
    /// The connection failed before an answer began: it was closed, or what came is no HTTP.
    #[error("the connection to {url} failed before an answer came")]
    NoAnswer {
        /// Where to, without credentials and query.
        url: String,
        /// How.
        source: BoxError,
    },
    /// The answer sends the request elsewhere, where it is not taken: a redirected `POST` would lose
    /// its body, and credentials would travel to whom they were not given.
    #[error(
        "HTTP {status}: the agent redirects {}, which is not followed",
        location.as_deref().map_or("without a Location".into(), |url| format!("to {url}"))
    )]
    Redirect {
        /// The HTTP status.
        status: u16,
        /// Where to, without credentials, query and fragment; `None` where the answer does not say,
        /// or names no place that a request could go to.
        location: Option<String>,
    },
    /// The agent refused the request with a status outside 2xx (T-19).
    #[error("HTTP {status}{}{body}", if body.is_empty() { "" } else { ": " })]
    Status {
        /// The HTTP status.
        status: u16,
        /// The body, at most the first [`AgentError::MOST_BODY`] bytes of it; a body that is one
        /// JSON string is given without its quotes.
        body: String,
    },
    /// The answer is of another media type and held no event.
    #[error("the answer is {found}, not an event stream, and holds no event")]
    ContentType {
        /// The `Content-Type`, or a note that there is none.
        found: String,
    },
    /// The answer is compressed, which was not asked for.
    #[error(
        "the answer is compressed ({encoding}), which was not asked for: have the server, or the \
         proxy before it, leave event streams as they are"
    )]
    Compressed {
        /// The `Content-Encoding`.
        encoding: String,
    },
    /// A status that allows no body, such as 204, in place of a stream.
    #[error("HTTP {status} without a body")]
    NoBody {
        /// The HTTP status.
        status: u16,
    },
    /// A frame cannot be read: it is not JSON, no event, an event with a malformed member, or
    /// passes a limit on hostile input (T-22, T-29, T-31, C-28).
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The connection failed after the answer began.
    #[error("the connection failed while the stream was read")]
    Transport {
        /// How.
        source: BoxError,
    },
    /// The other side was silent for longer than it may be.
    #[error("nothing came for {after:?}")]
    Idle {
        /// How long it may be silent.
        after: Duration,
    },
    /// The headers of the request could not be made; nothing was sent.
    #[error("the headers of the request could not be made")]
    Headers {
        /// Why not.
        source: BoxError,
    },
    /// The runtime that the agent is one of refused the request, or gave no information of itself.
    #[cfg(feature = "http")]
    #[error(transparent)]
    Runtime(Box<crate::runtime::RuntimeError>),
    /// Middleware found that the stream breaks a rule.
    #[error(transparent)]
    Rule(Box<Fault>),
    /// The caller cancelled the run.
    #[error("the run was cancelled")]
    Cancelled,
}

impl AgentError {
    /// How much of the body of a refusal is kept, in bytes: 64 KiB.
    pub const MOST_BODY: usize = 64 * 1024;

    /// The class of the failure in one word, as the reference client's failures are classed:
    /// `transport`, `http`, `truncated`, `sse-json`, `frame-shape`, `schema`, `proto-decode`,
    /// `limit`, `abort`, or the class of a broken rule.
    #[must_use]
    pub fn class(&self) -> &'static str {
        use DecodeErrorKind as Kind;
        match self {
            Self::Connect { .. }
            | Self::NoAnswer { .. }
            | Self::Compressed { .. }
            | Self::NoBody { .. }
            | Self::Transport { .. }
            | Self::Idle { .. }
            | Self::Headers { .. } => "transport",
            Self::Status { .. } | Self::Redirect { .. } => "http",
            Self::ContentType { .. } => "truncated",
            Self::Decode(error) => match error.kind() {
                Kind::NotJson => "sse-json",
                // A frame of text is cut where its JSON is.
                Kind::TruncatedFrame if error.read_error().is_some() => "sse-json",
                Kind::TruncatedFrame => "truncated",
                Kind::NotAnEvent => "frame-shape",
                Kind::Limit => "limit",
                Kind::Proto => "proto-decode",
                _ => "schema",
            },
            #[cfg(feature = "http")]
            Self::Runtime(error) => error.class(),
            Self::Rule(fault) => fault.class.as_str(),
            Self::Cancelled => "abort",
        }
    }

    /// Whether the stream was cut off: its body ended inside a frame, or its connection failed or
    /// fell silent once there was an answer. What its frames said until then stands (C-12, T-9).
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        match self {
            Self::Decode(error) => error.kind() == DecodeErrorKind::TruncatedFrame,
            Self::Transport { .. } | Self::Idle { .. } => true,
            _ => false,
        }
    }

    /// The JSON Pointer of the member at fault; empty where no member is.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            Self::Decode(error) => error.path(),
            Self::Rule(fault) => &fault.path,
            _ => "",
        }
    }
}

impl From<Fault> for AgentError {
    fn from(fault: Fault) -> Self {
        Self::Rule(Box::new(fault))
    }
}
