//! Why a runtime did not do what it was asked.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use agui_types::{JsonError, JsonObject};

use super::info::{flag, string};
use crate::AgentError;
use crate::http::shortened;

/// A runtime did not do what it was asked. Its own words are in the messages.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// It gives no information of itself, so that nothing else can be asked.
    #[error(transparent)]
    Discovery(Arc<DiscoveryError>),
    /// It has no agent with this id (404).
    #[error("the runtime has no such agent: {message}")]
    UnknownAgent {
        /// What it says.
        message: String,
    },
    /// It has no such thread (404).
    #[error("the runtime has no such thread: {message}")]
    UnknownThread {
        /// What it says.
        message: String,
    },
    /// A run is going on on the thread (409): connect to it, stop it, or wait for its end.
    #[error("the thread is busy: {message}")]
    Busy {
        /// What it says.
        message: String,
    },
    /// It does not take what was sent (400), or an id cannot be sent.
    #[error("the runtime does not take the request: {message}")]
    Invalid {
        /// What it says.
        message: String,
    },
    /// It does not do this, as its information says, or as it says when it is asked (422, 501).
    #[error("the runtime does not offer {what}{}{message}", if message.is_empty() { "" } else { ": " })]
    NotOffered {
        /// What was asked for.
        what: &'static str,
        /// What it says; empty where it was not asked.
        message: String,
    },
    /// Audio was not turned into text.
    #[error("the audio was not transcribed: {message}")]
    Transcription {
        /// Why not, for a program: `invalid_audio_format`, `rate_limited`, …
        code: String,
        /// What it says.
        message: String,
        /// Whether trying again may help.
        retryable: bool,
    },
    /// The answer is not what it should be.
    #[error("the runtime's answer cannot be used: {problem}")]
    Unreadable {
        /// Which member of the answer is amiss, and how.
        problem: String,
    },
    /// The answer is larger than it may be.
    #[error("the runtime's answer has more than {most} bytes")]
    TooLarge {
        /// How many bytes it may have.
        most: usize,
    },
    /// It cannot be reached, refuses for another reason, or its connection failed.
    #[error(transparent)]
    Request(#[from] AgentError),
}

impl RuntimeError {
    /// The class of the failure in one word, as [`AgentError::class`].
    #[must_use]
    pub fn class(&self) -> &'static str {
        match self {
            Self::Discovery(error) => {
                let last = error.single.as_deref().or(error.rest.as_deref());
                last.map_or("transport", Self::class)
            }
            Self::UnknownAgent { .. }
            | Self::UnknownThread { .. }
            | Self::Busy { .. }
            | Self::Invalid { .. }
            | Self::NotOffered { .. }
            | Self::Transcription { .. } => "http",
            Self::Unreadable { .. } => "schema",
            Self::TooLarge { .. } => "limit",
            Self::Request(error) => error.class(),
        }
    }

    /// The refusal that an error of HTTP is; `what` was asked for.
    pub(super) fn of(error: AgentError, what: &'static str) -> Self {
        let AgentError::Status { status, body } = &error else { return Self::Request(error) };
        let Some(words) = Words::of(body) else { return Self::Request(error) };
        let message = words.message();
        match (status, &*words.error) {
            (400, _) => Self::Invalid { message },
            (404, "Agent not found") => Self::UnknownAgent { message },
            (404, "Thread not found") => Self::UnknownThread { message },
            (409, _) => Self::Busy { message },
            (422 | 501, _) => Self::NotOffered { what, message },
            _ => Self::Request(error),
        }
    }

    /// The failure to transcribe that an error of HTTP is.
    pub(super) fn of_transcription(error: AgentError) -> Self {
        if let AgentError::Status { body, .. } = &error
            && let Some(words) = Words::of(body)
            && let Some(retryable) = words.retryable
        {
            let (message, code) = (words.message(), words.error);
            return Self::Transcription { code, message, retryable };
        }
        Self::of(error, "transcription")
    }

    pub(super) fn unreadable(what: &str, error: impl fmt::Display) -> Self {
        Self::Unreadable { problem: format!("{what}: {error}") }
    }
}

impl From<JsonError> for RuntimeError {
    fn from(error: JsonError) -> Self {
        Self::unreadable("it is no JSON", error)
    }
}

impl From<RuntimeError> for AgentError {
    fn from(error: RuntimeError) -> Self {
        match error {
            RuntimeError::Request(error) => error,
            error => Self::Runtime(Box::new(error)),
        }
    }
}

/// A runtime gives no information of itself: what each attempt to get it came to.
#[derive(Debug)]
pub struct DiscoveryError {
    /// The runtime's URL, without credentials and query.
    pub url: String,
    /// What `GET …/info` came to; `None` where that was not asked.
    pub rest: Option<Box<RuntimeError>>,
    /// What the envelope `info` came to; `None` where that was not asked.
    pub single: Option<Box<RuntimeError>>,
}

impl fmt::Display for DiscoveryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} gives no information as a runtime does", self.url)?;
        if let Some(error) = &self.rest {
            write!(f, "; to GET …/info: {}", in_full(error))?;
        }
        if let Some(error) = &self.single {
            write!(f, "; to the envelope `info`: {}", in_full(error))?;
        }
        Ok(())
    }
}

impl Error for DiscoveryError {}

/// An error with its causes, in one line.
fn in_full(error: &RuntimeError) -> String {
    /// How much of a refusal's body is shown, in characters.
    const MOST: usize = 200;
    if let RuntimeError::Request(AgentError::Status { status, body }) = error {
        let message = Words::of(body).map_or_else(|| body.trim().into(), |words| words.message());
        let shown = shortened(&message, MOST);
        return format!("HTTP {status}: {shown}").trim_end_matches(": ").into();
    }
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}

/// What a runtime says with a refusal: an object with at least `error` or `message`.
struct Words {
    error: String,
    message: Option<String>,
    details: Option<String>,
    retryable: Option<bool>,
}

impl Words {
    fn of(body: &str) -> Option<Self> {
        let body = JsonObject::parse(body).ok()?;
        let (error, message) = (string(&body, "error"), string(&body, "message"));
        if error.is_none() && message.is_none() {
            return None;
        }
        Some(Self {
            error: error.unwrap_or_default(),
            message,
            details: string(&body, "details"),
            retryable: flag(&body, "retryable"),
        })
    }

    /// The words for a person.
    fn message(&self) -> String {
        let message = self.message.as_ref().filter(|message| !message.trim().is_empty());
        match (message, &self.details) {
            (Some(message), _) => message.clone(),
            (None, Some(details)) => format!("{}: {details}", self.error),
            (None, None) => self.error.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, body: &str) -> RuntimeError {
        RuntimeError::of(AgentError::Status { status, body: body.into() }, "threads")
    }

    #[test]
    fn a_refusal_is_named_and_keeps_the_runtimes_words() {
        for (status, body, class, says) in [
            (
                404,
                r#"{"error":"Agent not found","message":"no \"x\""}"#,
                "no such agent",
                "no \"x\"",
            ),
            (404, r#"{"error":"Thread not found"}"#, "no such thread", "Thread not found"),
            (409, r#"{"error":"Thread busy","message":"wait"}"#, "busy", "wait"),
            (400, r#"{"error":"Invalid request body","details":"at 3"}"#, "not take", "body: at 3"),
            (400, r#"{"error":"invalid_request","message":" "}"#, "not take", "invalid_request"),
            (422, r#"{"error":"cloud only"}"#, "not offer threads", "cloud only"),
            (501, r#"{"message":"never"}"#, "not offer threads", "never"),
        ] {
            let error = of(status, body);
            let shown = error.to_string();
            assert!(shown.contains(class) && shown.contains(says), "{shown}");
            assert_eq!(error.class(), "http");
        }
    }

    #[test]
    fn any_other_refusal_stays_what_it_is() {
        for (status, body) in [
            (404, r#"{"error":"Not found"}"#),
            (404, "<html>"),
            (409, "busy"),
            (400, r#"{"error":7}"#),
            (401, r#"{"error":"no"}"#),
            (503, r#"{"error":"no"}"#),
        ] {
            let error = AgentError::from(of(status, body));
            assert!(
                matches!(&error, AgentError::Status { status: found, .. } if *found == status),
                "{error:?}"
            );
        }
    }

    #[test]
    fn both_attempts_are_told_and_long_answers_cut() {
        let request = |status, body: &str| {
            Some(Box::new(RuntimeError::Request(AgentError::Status { status, body: body.into() })))
        };
        let error = DiscoveryError {
            url: "http://h/".into(),
            rest: request(405, r#"{"error":"Method not allowed"}"#),
            single: request(500, &"x".repeat(201)),
        };
        let shown = error.to_string();
        assert!(shown.contains("info: HTTP 405: Method not allowed;"), "{shown}");
        assert!(shown.ends_with(&format!("`info`: HTTP 500: {}…", "x".repeat(200))), "{shown}");
        assert_eq!(RuntimeError::Discovery(Arc::new(error)).class(), "http");
        let empty =
            DiscoveryError { url: "http://h/".into(), rest: request(401, ""), single: None };
        assert!(empty.to_string().ends_with("info: HTTP 401"), "{empty}");
    }
}
