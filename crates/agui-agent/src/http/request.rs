//! One request, however often it is made.

use bytes::Bytes;
use http::Method;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::Url;

use super::HeaderRequest;
use crate::RunContext;
use crate::middleware::AgentHeaders;

/// What is sent, and what for.
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) content: Content,
    pub(crate) body: Bytes,
    /// Whether the answer is to be a stream of events.
    pub(crate) for_events: bool,
    /// What a header policy lets through.
    pub(crate) forwarded: HeaderMap,
    pub(crate) position: Option<HeaderValue>,
    pub(crate) about: HeaderRequest,
}

/// What the body is.
pub(crate) enum Content {
    Nothing,
    /// Unless the caller says otherwise.
    Json,
    /// Of this media type, whatever the caller says.
    Other(HeaderValue),
}

impl Request {
    /// A `POST` of JSON that is answered with events (T-10).
    pub(crate) fn for_events(
        url: Url,
        body: String,
        about: HeaderRequest,
        context: &RunContext,
    ) -> Self {
        Self {
            method: Method::POST,
            url,
            content: Content::Json,
            body: body.into(),
            for_events: true,
            forwarded: forwarded(context),
            position: None,
            about,
        }
    }

    /// The request for what follows this position.
    pub(crate) fn behind(mut self, position: Option<&str>) -> Self {
        // What came in a header fits into one.
        self.position = position.and_then(|id| HeaderValue::from_bytes(id.as_bytes()).ok());
        self
    }

    /// All headers but those that are made for each attempt: what is forwarded, over that what the
    /// request is, over that the caller's `own`.
    pub(super) fn headers(&self, accept: &HeaderValue, own: &HeaderMap) -> HeaderMap {
        let mut headers = self.forwarded.clone();
        if self.for_events {
            headers.insert(ACCEPT, accept.clone());
        }
        // A compressor holds events back.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Content::Json = self.content {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        headers.extend(own.clone());
        if let Some(position) = &self.position {
            headers.insert(HeaderName::from_static("last-event-id"), position.clone());
        }
        headers
    }
}

/// The headers that go with this run, where middleware says so.
pub(crate) fn forwarded(context: &RunContext) -> HeaderMap {
    let headers = context.extensions.get::<AgentHeaders>();
    headers.map(|headers| headers.0.clone()).unwrap_or_default()
}

impl Content {
    /// Has the headers say what the body is, where that is not the caller's to say.
    pub(super) fn describe(&self, headers: &mut HeaderMap) {
        match self {
            Self::Json => {}
            Self::Nothing => drop(headers.remove(CONTENT_TYPE)),
            Self::Other(kind) => drop(headers.insert(CONTENT_TYPE, kind.clone())),
        }
    }
}
