//! The headers of a request: fixed ones, and those made for each.

use std::future::ready;
use std::sync::Arc;

use agui_types::{RunAgentInput, RunId, ThreadId};
use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::BuildError;
use crate::{BoxError, BoxFuture};

/// What a request is for which headers are to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeaderRequest {
    /// The thread; empty where the request is about none, as a `RuntimeClient` makes some.
    pub thread_id: ThreadId,
    /// The run; empty where the request is for none.
    pub run_id: RunId,
    /// How many attempts at this request have failed: 0 the first time. With another one, a cached
    /// credential may be worth renewing.
    pub failed_attempts: u32,
}

impl HeaderRequest {
    pub(crate) fn new(input: &RunAgentInput) -> Self {
        let (thread_id, run_id) = (input.thread_id.clone(), input.run_id.clone());
        Self { thread_id, run_id, failed_attempts: 0 }
    }

    /// A request that is not for a run.
    pub(crate) fn about_thread(thread: &str) -> Self {
        Self { thread_id: thread.into(), run_id: "".into(), failed_attempts: 0 }
    }

    pub(super) fn of_attempt(mut self, failures: u32) -> Self {
        self.failed_attempts = failures;
        self
    }
}

/// Names and values, as a provider gives them.
pub(super) type Pairs = Vec<(String, String)>;

/// Makes headers for each request.
#[derive(Clone)]
pub(super) struct Provider(Arc<Provide>);

type Provide = dyn Fn(HeaderRequest) -> BoxFuture<'static, Result<Pairs, BoxError>> + Send + Sync;

impl Provider {
    pub(super) fn sync(
        provide: impl Fn(&HeaderRequest) -> Result<Pairs, BoxError> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(move |request| Box::pin(ready(provide(&request)))))
    }

    pub(super) fn future<Fut>(
        provide: impl Fn(HeaderRequest) -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        Fut: Future<Output = Result<Pairs, BoxError>> + Send + 'static,
    {
        Self(Arc::new(move |request| Box::pin(provide(request))))
    }

    /// Fails where the provider does, and where HTTP does not allow what it gives.
    pub(super) async fn headers(&self, request: HeaderRequest) -> Result<HeaderMap, BoxError> {
        let pairs = (self.0)(request).await?;
        collected(pairs).map_err(Into::into)
    }
}

/// The headers of names and values, a later one of a name taking the place of an earlier one.
pub(super) fn collected(pairs: Pairs) -> Result<HeaderMap, BuildError> {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let (name, value) = parse(&name, &value)?;
        headers.insert(name, value);
    }
    Ok(headers)
}

pub(super) fn parse(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), BuildError> {
    let bad = |what| BuildError::Header { name: shown(name), what };
    let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad("name"))?;
    let mut value = HeaderValue::from_str(value).map_err(|_| bad("value"))?;
    value.set_sensitive(true);
    Ok((parsed, value))
}

/// As much of a name as is one: what follows may be a value, put into the wrong place.
fn shown(name: &str) -> String {
    let end = name.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_')));
    match end {
        Some(end) => format!("{}…", &name[..end]),
        None => name.into(),
    }
}
