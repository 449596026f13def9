//! An agent behind a URL.

mod body;
mod builder;
mod headers;
mod request;
mod retry;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use agui_types::{RunAgentInput, ToJson};
use agui_wire::{Limits, Warning};
use http::header::{HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Client, Response, Url};

use crate::retry::is_refused_for_now;
use crate::{Agent, AgentError, EventStream, RetryPolicy, RunContext};
use headers::Provider;

pub(crate) use body::{Whose, shortened};
pub(crate) use request::{Content, Request, forwarded};

pub use builder::{BuildError, HttpAgentBuilder};
pub use headers::HeaderRequest;

/// An agent that is reached by HTTP: one `POST` a run (T-10), the answer a stream of events, in
/// whichever of the two forms the other side answers (T-26).
///
/// Cheap to clone; clones share their connections. Redirects are not followed: a redirected `POST`
/// would lose its body, and credentials would travel to whom they were not given. Answers are asked
/// for uncompressed, since a compressor holds events back.
///
/// ```
/// use agui_agent::HttpAgent;
///
/// # fn main() -> Result<(), agui_agent::BuildError> {
/// let agent = HttpAgent::builder("https://agents.example/chat")
///     .header("authorization", "Bearer s3cret")
///     .build()?;
/// // Neither header values nor credentials in the URL show up in a log.
/// assert!(!format!("{agent:?}").contains("s3cret"));
///
/// // The same agent and the same connections on behalf of someone else.
/// let theirs = agent.with_header("authorization", "Bearer an0ther")?;
/// # let _ = theirs;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct HttpAgent {
    client: Client,
    url: Url,
    connect_url: Option<Url>,
    /// What to ask for where events are to come.
    accept: HeaderValue,
    /// The caller's own.
    headers: HeaderMap,
    provider: Option<Provider>,
    retry: Option<RetryPolicy>,
    idle: Option<Duration>,
    limits: Limits,
    on_warning: OnWarning,
}

impl HttpAgent {
    /// An agent at a URL, with defaults for everything.
    ///
    /// Fails where the URL is not an absolute `http` or `https` one.
    pub fn new(url: impl AsRef<str>) -> Result<Self, BuildError> {
        Self::builder(url).build()
    }

    /// An agent at a URL, to be configured.
    pub fn builder(url: impl AsRef<str>) -> HttpAgentBuilder {
        HttpAgentBuilder::new(url.as_ref())
    }

    /// The same agent with another header, such as the credentials of one of many users. Shares its
    /// connections with this one.
    ///
    /// Fails where the name or the value is not one that HTTP allows.
    pub fn with_header(
        &self,
        name: impl AsRef<str>,
        value: impl AsRef<str>,
    ) -> Result<Self, BuildError> {
        let mut agent = self.clone();
        let (name, value) = headers::parse(name.as_ref(), value.as_ref())?;
        agent.headers.insert(name, value);
        Ok(agent)
    }

    /// The URL without credentials, query and fragment, for messages.
    #[must_use]
    pub fn display_url(&self) -> String {
        display_url(&self.url)
    }

    /// The URL, as it was given.
    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// The events of an answer that is still to come.
    pub(crate) fn events(
        &self,
        response: impl Future<Output = Result<Response, AgentError>> + Send + 'static,
        context: RunContext,
        whose: Whose,
    ) -> EventStream {
        let (limits, on_warning, idle) = (self.limits, self.on_warning.clone(), self.idle);
        Box::pin(body::Events::new(response, limits, on_warning, idle, context, whose))
    }

    /// The whole body of an answer; `None` where it has more bytes than that.
    pub(crate) async fn whole(
        &self,
        mut response: Response,
        most: usize,
    ) -> Result<Option<Vec<u8>>, AgentError> {
        if let Some(encoding) = body::compressed(response.headers()) {
            return Err(AgentError::Compressed { encoding });
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| broken(error, self.idle))? {
            if body.len() + chunk.len() > most {
                return Ok(None);
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Some(body))
    }

    /// Makes the request, again where that is wanted and safe.
    pub(crate) async fn send(self, request: Request) -> Result<Response, AgentError> {
        let mut failures = 0;
        loop {
            let (error, asked) = match self.attempt(&request, failures).await {
                Ok(response) => return Ok(response),
                Err(Attempt::Final(error)) => return Err(error),
                Err(Attempt::NotTakenUp(error, asked)) => (error, asked),
            };
            failures += 1;
            let Some(delay) = self.retry.and_then(|retry| retry.delay(failures, asked)) else {
                return Err(error);
            };
            tracing::debug!(
                url = self.display_url(),
                %error,
                failures,
                ?delay,
                "the agent is asked again"
            );
            tokio::time::sleep(delay).await;
        }
    }

    async fn attempt(&self, request: &Request, failures: u32) -> Result<Response, Attempt> {
        let mut headers = request.headers(&self.accept, &self.headers);
        if let Some(provider) = &self.provider {
            let made = provider.headers(request.about.clone().of_attempt(failures)).await;
            headers.extend(made.map_err(|source| AgentError::Headers { source })?);
        }
        request.content.describe(&mut headers);
        let made = self.client.request(request.method.clone(), request.url.clone());
        let made = made.headers(headers).body(request.body.clone());
        let response = made.send().await.map_err(|error| {
            if !error.is_connect() {
                return Attempt::Final(match broken(error, self.idle) {
                    AgentError::Transport { source } => {
                        AgentError::NoAnswer { url: display_url(&request.url), source }
                    }
                    other => other,
                });
            }
            let (url, source) = (display_url(&request.url), error.without_url().into());
            Attempt::NotTakenUp(AgentError::Connect { url, source }, None)
        })?;
        let status = response.status();
        // 304 sends nobody elsewhere.
        if status.is_redirection() && status.as_u16() != 304 {
            let location = location(&response, &request.url);
            return Err(AgentError::Redirect { status: status.as_u16(), location }.into());
        }
        if !status.is_success() {
            let asked = retry::retry_after(response.headers(), SystemTime::now());
            let error = refusal(response).await;
            return Err(if is_refused_for_now(status.as_u16()) {
                Attempt::NotTakenUp(error, asked)
            } else {
                Attempt::Final(error)
            });
        }
        if request.for_events && matches!(status.as_u16(), 204 | 205) {
            return Err(AgentError::NoBody { status: status.as_u16() }.into());
        }
        Ok(response)
    }
}

/// Why an attempt brought no answer.
enum Attempt {
    /// A run may have begun, or asking again would be no use.
    Final(AgentError),
    /// The other side cannot have begun a run; it may have said when to come back.
    NotTakenUp(AgentError, Option<Duration>),
}

impl From<AgentError> for Attempt {
    fn from(error: AgentError) -> Self {
        Self::Final(error)
    }
}

impl Agent for HttpAgent {
    /// Besides the agent's own headers, [`AgentHeaders`](crate::middleware::AgentHeaders) among the
    /// context's extensions are sent, where the agent's own leave the name free.
    fn run(&self, input: RunAgentInput, context: RunContext) -> EventStream {
        let about = HeaderRequest::new(&input);
        let request = Request::for_events(self.url.clone(), input.to_json(), about, &context);
        self.events(self.clone().send(request), context, Whose::Agents)
    }

    /// Asks at the [connect URL](HttpAgentBuilder::connect_url), where there is one, for what follows
    /// the context's position.
    fn connect(&self, input: RunAgentInput, context: RunContext) -> Option<EventStream> {
        let (url, about) = (self.connect_url.clone()?, HeaderRequest::new(&input));
        let request = Request::for_events(url, input.to_json(), about, &context)
            .behind(context.position.get().as_deref());
        Some(self.events(self.clone().send(request), context, Whose::Agents))
    }
}

impl fmt::Debug for HttpAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.keys().map(HeaderName::as_str).collect();
        f.debug_struct("HttpAgent")
            .field("url", &self.display_url())
            .field("headers", &headers)
            .finish_non_exhaustive()
    }
}

/// Whom to tell of what was amiss with a frame.
#[derive(Clone, Default)]
struct OnWarning(Option<Arc<TellWarning>>);

type TellWarning = dyn Fn(&Warning) + Send + Sync;

impl OnWarning {
    fn tell(&self, warning: &Warning) {
        match &self.0 {
            Some(tell) => tell(warning),
            None => {
                tracing::warn!(%warning, "a frame of the agent's answer is not as it should be");
            }
        }
    }
}

/// A connection that failed, or was silent for too long, once it was made.
fn broken(error: reqwest::Error, idle: Option<Duration>) -> AgentError {
    match idle.filter(|_| error.is_timeout()) {
        Some(after) => AgentError::Idle { after },
        None => AgentError::Transport { source: error.without_url().into() },
    }
}

/// The error for a status outside 2xx, with as much of the body as is kept.
async fn refusal(mut response: Response) -> AgentError {
    let status = response.status().as_u16();
    if let Some(encoding) = body::compressed(response.headers()) {
        return AgentError::Status { status, body: format!("(a body in {encoding})") };
    }
    let mut body = Vec::new();
    while body.len() < AgentError::MOST_BODY {
        // What came before a broken end still says why the request was refused.
        let Ok(Some(chunk)) = response.chunk().await else {
            break;
        };
        body.extend_from_slice(&chunk);
    }
    body.truncate(AgentError::MOST_BODY);
    let body = String::from_utf8_lossy(&body);
    let body = serde_json::from_str::<String>(&body).unwrap_or_else(|_| body.into_owned());
    AgentError::Status { status, body }
}

/// Where a redirect leads to, for messages.
fn location(response: &Response, base: &Url) -> Option<String> {
    let location = response.headers().get(LOCATION)?.to_str().ok()?;
    let url = base.join(location).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    Some(display_url(&url))
}

fn display_url(url: &Url) -> String {
    let mut shown = url.clone();
    // Both fail only for URLs that have no host, which an agent's has.
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    shown.set_query(None);
    shown.set_fragment(None);
    shown.into()
}
