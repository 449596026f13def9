//! What a request is answered.

use agui_server::ResponseBody;
use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use serde::Serialize;

/// A response whose body is ready.
pub(crate) type Answer = Response<ResponseBody>;

/// Any value as JSON.
pub(crate) fn json<T: Serialize + ?Sized>(status: StatusCode, value: &T) -> Answer {
    // Texts, numbers and protocol types: writing them cannot fail.
    let text = serde_json::to_vec(value).unwrap_or_default();
    let mut answer = json_body(ResponseBody::whole(Bytes::from(text)));
    *answer.status_mut() = status;
    answer
}

/// A body that is JSON, with status 200.
pub(crate) fn json_body(body: ResponseBody) -> Answer {
    let mut answer = Response::new(body);
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// A status and nothing more.
pub(crate) fn empty(status: StatusCode) -> Answer {
    let mut answer = Response::new(ResponseBody::whole(Bytes::new()));
    *answer.status_mut() = status;
    answer
}

/// What went wrong, as a front end reads it: `error` is what it may match, `message` is for a
/// person.
#[derive(Debug, Serialize)]
pub(crate) struct Problem<'a> {
    pub(crate) error: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) details: Option<&'a str>,
}

impl<'a> Problem<'a> {
    pub(crate) fn new(error: &'a str) -> Self {
        Self { error, code: None, message: None, details: None }
    }

    pub(crate) fn message(mut self, message: &'a str) -> Self {
        self.message = Some(message);
        self
    }

    pub(crate) fn code(mut self, code: &'a str) -> Self {
        self.code = Some(code);
        self
    }

    pub(crate) fn details(mut self, details: &'a str) -> Self {
        self.details = Some(details);
        self
    }

    pub(crate) fn with(self, status: StatusCode) -> Answer {
        json(status, &self)
    }
}

pub(crate) fn not_found() -> Answer {
    Problem::new("Not found").with(StatusCode::NOT_FOUND)
}

pub(crate) fn wrong_method(allow: &'static str) -> Answer {
    let mut answer = Problem::new("Method not allowed").with(StatusCode::METHOD_NOT_ALLOWED);
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    answer
}

pub(crate) fn unknown_agent(id: &str) -> Answer {
    let id: String = id.chars().take(80).collect();
    let message = format!("there is no agent {id:?} here");
    Problem::new("Agent not found").message(&message).with(StatusCode::NOT_FOUND)
}

/// What nobody foresaw. What it was is in the log, not in the answer.
pub(crate) fn internal() -> Answer {
    Problem::new("internal_error").with(StatusCode::INTERNAL_SERVER_ERROR)
}

/// An answer that no cache keeps.
pub(crate) fn uncached(mut answer: Answer) -> Answer {
    let value = HeaderValue::from_static("no-store, private");
    answer.headers_mut().insert(CACHE_CONTROL, value);
    answer
}
