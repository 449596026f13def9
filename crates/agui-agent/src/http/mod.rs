//! An agent behind a URL.

mod body;

use std::fmt;
use std::sync::{Arc, Once};
use std::time::Duration;

use agui_types::{RunAgentInput, ToJson};
use agui_wire::{Limits, Warning, WireForm};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, Url};

use crate::{Agent, AgentError, BoxError, EventStream, RunContext};

/// An agent that is reached by HTTP: one `POST` a run (T-10), the answer a stream of events, in
/// whichever of the two forms the other side answers (T-26).
///
/// Cheap to clone; clones share their connections. Redirects are not followed: a redirected `POST`
/// would lose its body, and credentials would travel to whom they were not given.
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
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct HttpAgent {
    client: Client,
    url: Url,
    headers: HeaderMap,
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
        HttpAgentBuilder {
            url: url.as_ref().into(),
            headers: Vec::new(),
            connect_timeout: Duration::from_secs(10),
            wire: WireForm::default(),
            limits: Limits::default(),
            on_warning: OnWarning::default(),
        }
    }

    /// The URL without credentials, query and fragment, for messages.
    #[must_use]
    pub fn display_url(&self) -> String {
        display_url(&self.url)
    }

    async fn post(self, body: String) -> Result<Response, AgentError> {
        let url = self.display_url();
        let request = self.client.post(self.url).headers(self.headers).body(body);
        let response = request.send().await.map_err(|error| {
            let error = error.without_url();
            if error.is_connect() || error.is_timeout() {
                AgentError::Connect { url, source: error.into() }
            } else {
                AgentError::Transport { source: error.into() }
            }
        })?;
        let status = response.status();
        if !status.is_success() {
            return Err(refusal(response).await);
        }
        if matches!(status.as_u16(), 204 | 205) {
            return Err(AgentError::NoBody { status: status.as_u16() });
        }
        Ok(response)
    }
}

impl Agent for HttpAgent {
    fn run(&self, input: RunAgentInput, context: RunContext) -> EventStream {
        let (limits, on_warning) = (self.limits, self.on_warning.clone());
        let response = self.clone().post(input.to_json());
        Box::pin(body::events(response, limits, on_warning, context.cancel))
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

/// Configures an [`HttpAgent`].
#[must_use]
pub struct HttpAgentBuilder {
    url: String,
    headers: Vec<(String, String)>,
    connect_timeout: Duration,
    wire: WireForm,
    limits: Limits,
    on_warning: OnWarning,
}

impl HttpAgentBuilder {
    /// Sends a header with every run. A later value of a name takes the place of an earlier one;
    /// `accept` and `content-type` may be set as well. Values never show up in `Debug`, errors or
    /// logs.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// How long connecting may take. Default: 10 s. A run itself may take as long as it likes.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// The form to ask for (T-11). Default: server-sent events, and nothing else. With protobuf
    /// both are asked for, and the other side has the choice; the answer's `Content-Type` decides
    /// how it is read. An `accept` [header](Self::header) takes the place of this.
    pub fn wire(mut self, form: WireForm) -> Self {
        self.wire = form;
        self
    }

    /// What to do about a frame that is not as it should be and no reason to stop: one that had to
    /// be dropped, bytes that had to be replaced. Default: `tracing` is told, at level `WARN`.
    /// Called while the stream is polled, before the frame's event.
    pub fn on_warning(mut self, tell: impl Fn(&Warning) + Send + Sync + 'static) -> Self {
        self.on_warning = OnWarning(Some(Arc::new(tell)));
        self
    }

    /// The limits on the answer. Default: those of [`Limits::default`].
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Makes the agent.
    ///
    /// Fails where the URL is not an absolute `http` or `https` one, a header's name or value is
    /// not one that HTTP allows, or the system's TLS roots cannot be loaded.
    pub fn build(self) -> Result<HttpAgent, BuildError> {
        let url = Url::parse(&self.url).map_err(|error| BuildError::Url(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            let problem = format!("expected http or https, found {}", url.scheme());
            return Err(BuildError::Url(problem));
        }
        let mut headers = HeaderMap::new();
        // T-10, T-11
        headers.insert(ACCEPT, HeaderValue::from_static(self.wire.accept()));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in self.headers {
            let bad = |what| BuildError::Header { name: name.clone(), what };
            let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad("name"))?;
            let mut value = HeaderValue::from_str(&value).map_err(|_| bad("value"))?;
            value.set_sensitive(true);
            headers.insert(parsed, value);
        }
        install_tls_provider();
        let client = Client::builder()
            .connect_timeout(self.connect_timeout)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| BuildError::Client(error.into()))?;
        let (limits, on_warning) = (self.limits, self.on_warning);
        Ok(HttpAgent { client, url, headers, limits, on_warning })
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

impl fmt::Debug for HttpAgentBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpAgentBuilder").finish_non_exhaustive()
    }
}

/// An [`HttpAgent`] cannot be made as configured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The URL cannot be used.
    #[error("the agent's URL cannot be used: {0}")]
    Url(String),
    /// HTTP does not allow the header.
    #[error("the {what} of the header {name:?} is not one that HTTP allows")]
    Header {
        /// The header's name, as given.
        name: String,
        /// `name` or `value`.
        what: &'static str,
    },
    /// The HTTP client cannot be made.
    #[error("the HTTP client cannot be made")]
    Client(#[source] BoxError),
}

/// The error for a status outside 2xx, with as much of the body as is kept.
async fn refusal(mut response: Response) -> AgentError {
    let status = response.status().as_u16();
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

fn display_url(url: &Url) -> String {
    let mut shown = url.clone();
    // Both fail only for URLs that have no host, which an agent's has.
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    shown.set_query(None);
    shown.set_fragment(None);
    shown.into()
}

/// The client is built without a TLS provider of its own; ring is ours, unless the program has
/// chosen one.
fn install_tls_provider() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Fails where the program has chosen already, which is as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
