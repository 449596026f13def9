//! What a request is told that starts no run.

use std::borrow::Cow;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use agui_types::{ReadError, ReadErrorKind};
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body::Body;
use serde::Serialize;
use tokio::time::timeout;

use crate::{ResponseBody, codes};

/// A request that is refused outside the stream (T-4, T-19): an HTTP status and a JSON body.
///
/// The body is `{"error": {"code": …, "message": …}}`, with `path` and `hint` where there is
/// something to say. `Display` is the message.
///
/// ```
/// use agui_server::Refusal;
/// use http::StatusCode;
///
/// let refusal = Refusal::new(StatusCode::NOT_FOUND, "UNKNOWN_AGENT", "nobody hosts \"x\"");
/// assert_eq!(
///     refusal.to_json(),
///     r#"{"error":{"code":"UNKNOWN_AGENT","message":"nobody hosts \"x\""}}"#,
/// );
/// assert_eq!(refusal.into_response().headers()["content-type"], "application/json");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    #[serde(skip)]
    status: StatusCode,
    #[serde(skip)]
    headers: Option<Box<HeaderMap>>,
    #[serde(skip)]
    pub(crate) unread: bool,
    code: Cow<'static, str>,
    message: Cow<'static, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<Cow<'static, str>>,
}

impl Refusal {
    /// A refusal with a status, a code for programs ([`codes`] has ours) and a message for people.
    #[must_use]
    pub fn new(
        status: StatusCode,
        code: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        let (code, message) = (code.into(), message.into());
        Self { status, headers: None, unread: false, code, message, path: None, hint: None }
    }

    /// Names the place in the request's body: a JSON Pointer, `""` for the whole.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Says what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a header to the answer, such as `Retry-After`.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.get_or_insert_default().append(name, value);
        self
    }

    /// The headers that the answer has beside its `Content-Type`; `None` where there are none.
    #[must_use]
    pub fn headers(&self) -> Option<&HeaderMap> {
        self.headers.as_deref()
    }

    /// The HTTP status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The code, for a program to match on.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.code
    }

    /// The body.
    #[must_use]
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Body<'a> {
            error: &'a Refusal,
        }
        // Strings alone: writing them cannot fail.
        serde_json::to_string(&Body { error: self }).unwrap_or_default()
    }

    /// The answer: the status, `Content-Type: application/json`, the headers that were added, the body.
    #[must_use]
    pub fn into_response(self) -> Response<ResponseBody> {
        let mut response = Response::new(ResponseBody::whole(self.to_json()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.extend(self.headers.into_iter().flat_map(|more| *more));
        response
    }

    /// The method is another one than `allow` names.
    pub(crate) fn method(allow: &'static str, hint: &'static str) -> Self {
        let message = format!("only {allow} is answered here");
        Self::new(StatusCode::METHOD_NOT_ALLOWED, codes::METHOD_NOT_ALLOWED, message)
            .hint(hint)
            .header(ALLOW, HeaderValue::from_static(allow))
    }
}

impl From<&ReadError> for Refusal {
    /// What a request's body is told that cannot be read as what it should be: 400 where it is no
    /// JSON or nests too deep, naming the byte; 422 where a described member is malformed, naming
    /// the member.
    fn from(error: &ReadError) -> Self {
        let at = error.offset();
        match error.kind() {
            ReadErrorKind::Syntax => {
                let message = format!("the body is not JSON: {} at byte {at}", error.expected());
                Self::new(StatusCode::BAD_REQUEST, codes::INVALID_JSON, message)
            }
            ReadErrorKind::TooDeep => {
                let message = format!("the body is {} at byte {at}", error.expected());
                Self::new(StatusCode::BAD_REQUEST, codes::NESTED_TOO_DEEP, message)
            }
            _ => Self::malformed(error.to_string(), error.path()),
        }
    }
}

impl Refusal {
    /// The refusal of a request whose body was not read to its end.
    pub(crate) fn unread(mut self) -> Self {
        self.unread = true;
        self
    }

    /// The answer to a request whose body may go on arriving: it is read meanwhile and thrown away,
    /// until nothing came for a second. A client that sends all before it reads the answer would
    /// otherwise see its connection break, and not why.
    pub(crate) fn answer<B>(self, mut body: Pin<Box<B>>) -> Response<ResponseBody>
    where
        B: Body + Send + 'static,
    {
        let unread = self.unread && !body.is_end_stream();
        let response = self.into_response();
        if !unread {
            return response;
        }
        let rest = async move {
            const SILENCE: Duration = Duration::from_secs(1);
            let mut frame =
                async || timeout(SILENCE, poll_fn(|cx| body.as_mut().poll_frame(cx))).await;
            while let Ok(Some(Ok(_))) = frame().await {}
        };
        response.map(|answer| answer.reading(rest))
    }

    /// A described member is malformed.
    pub(crate) fn malformed(message: String, path: &str) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, codes::INVALID_INPUT, message).path(path)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}
