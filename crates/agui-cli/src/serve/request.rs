//! One request: its id, and the line that the log has of it.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use http_body::{Frame, SizeHint};
use tracing::{Instrument, Span};

/// The header with a request's id, both ways.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The longest id that is taken over, in bytes.
const LONGEST: usize = 128;

/// Gives a request its id, which its answer has too, and everything the log says of it: the one that
/// it came with, where that is letters, digits, `-`, `_`, `.`, `:`, `+`, `/` and `=`, or a new one.
/// Then a line a request: what was asked for and how it was answered, nothing of what was said.
pub(super) async fn identify(mut request: Request, next: Next) -> Response {
    let came = Instant::now();
    let id = taken_over(&request).unwrap_or_else(minted);
    request.headers_mut().insert(REQUEST_ID, id.clone());
    // An error's span: a line of any level is to name its request.
    let span = tracing::error_span!("request", id = id.to_str().unwrap_or_default());
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let mut response = next.run(request).instrument(span.clone()).await;
    response.headers_mut().insert(REQUEST_ID, id);
    let (status, milliseconds) = (response.status().as_u16(), came.elapsed().as_millis());
    span.in_scope(|| tracing::info!(%method, path, status, milliseconds, "answered"));
    response.map(|body| Body::new(Spanned { body, span }))
}

fn taken_over(request: &Request) -> Option<HeaderValue> {
    let mut ids = request.headers().get_all(REQUEST_ID).iter();
    let (id, None) = (ids.next()?, ids.next()) else { return None };
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:+/=".contains(byte);
    let sane = (1..=LONGEST).contains(&id.len()) && id.as_bytes().iter().all(plain);
    sane.then(|| id.clone())
}

fn minted() -> HeaderValue {
    let id = uuid::Uuid::now_v7().to_string();
    // Digits and dashes.
    HeaderValue::from_str(&id).unwrap_or(HeaderValue::from_static("unknown"))
}

/// A body that is made in the span of its request: a run goes on while its answer is read.
struct Spanned {
    body: Body,
    span: Span,
}

impl HttpBody for Spanned {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Self { body, span } = &mut *self;
        let _entered = span.enter();
        Pin::new(body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Spanned {
    fn drop(&mut self) {
        // A run that is given up because its client left says so as it is dropped.
        let _entered = self.span.enter();
        self.body = Body::empty();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_sane_id_is_taken_over() {
        let taken = |ids: &[&str]| {
            let mut request = Request::new(Body::empty());
            for id in ids {
                request.headers_mut().append(REQUEST_ID, HeaderValue::from_str(id).unwrap());
            }
            taken_over(&request).is_some()
        };
        for id in ["a", "0196f1c2-7a4e", "Root=1-67891233-abc/x+y:1", &"x".repeat(LONGEST)] {
            assert!(taken(&[id]), "{id}");
        }
        for id in ["", "a b", "a\"b", "a;b", "é", "{}", &"x".repeat(LONGEST + 1)] {
            assert!(!taken(&[id]), "{id}");
        }
        assert!(!taken(&[]) && !taken(&["a", "b"]));
        assert_ne!(minted(), minted());
    }
}
