//! A runtime: many agents behind one URL, their threads, and what it says of itself, over the
//! protocol that CopilotKit front ends speak.
//!
//! [`RuntimeClient`] is the other end of such a front end. `agui serve` is a runtime, so is any
//! program with `agui-runtime`, and so is what `@copilotkit/runtime` mounts.
//!
//! ```no_run
//! use agui_agent::runtime::RuntimeClient;
//! use agui_agent::session::Session;
//!
//! # async fn converse() -> Result<(), Box<dyn std::error::Error>> {
//! let runtime = RuntimeClient::new("http://127.0.0.1:4100/api/copilotkit")?;
//! for (id, agent) in &runtime.info().await?.agents {
//!     println!("{id}: {}", agent.description);
//! }
//!
//! // What the thread holds already, and then something new.
//! let mut session = Session::new(runtime.agent("default")).with_thread_id("thread-7");
//! let _ = session.connect().finish().await?;
//! let _ = session.send("hello").finish().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Transports
//!
//! A runtime is mounted with a path for each thing it does ([`Transport::Rest`]), or with one URL that
//! envelopes are posted to ([`Transport::Single`]). Unless told which, a client finds out
//! ([`Transport::Auto`]), as front ends do: `GET …/info`, and where that is answered with anything but
//! JSON and a status of 2xx, the envelope `info`. What came of it is kept, and whoever wants to know
//! while it is being found out waits for the same answer. An attempt that failed is not kept: the next
//! one who needs it asks again.
//!
//! # Letting go, and stopping
//!
//! A run belongs to the runtime. Cancelling a turn, or dropping a stream, lets go of the connection
//! and no more: the run goes on, and [`connect`](crate::Agent::connect) takes it up again.
//! [`RuntimeAgent::stop`] ends it, for everybody who watches.

mod agent;
mod discovery;
mod error;
mod info;
mod operation;
mod threads;
mod transcribe;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use agui_types::Json;
use reqwest::Url;
use tokio::sync::watch;

use crate::http::Request;
use crate::{AgentError, BuildError, HttpAgent};
use discovery::{Discovery, Found};
use info::Via;
use operation::Operation;

pub use agent::RuntimeAgent;
pub use discovery::ConnectionStatus;
pub use error::{DiscoveryError, RuntimeError};
pub use info::{AgentInfo, RuntimeInfo, ThreadEndpoints};
pub use threads::{ListThreads, MessageRow, ThreadPage, ThreadRow, ToolCallRow};
pub use transcribe::{Audio, Transcription};

/// How requests to a runtime are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// A path for each thing: `GET …/info`, `POST …/agent/ID/run`.
    Rest,
    /// Envelopes, posted to the runtime's URL.
    Single,
    /// Whichever of the two the runtime answers, `Rest` first.
    #[default]
    Auto,
}

/// A runtime behind a URL.
///
/// Cheap to clone; clones share their connections and what they know of the runtime. See the
/// [module](self).
#[derive(Clone)]
pub struct RuntimeClient {
    http: HttpAgent,
    /// Without a slash at its end.
    base: Url,
    transport: Transport,
    answer_timeout: Duration,
    discovery: Arc<Discovery>,
}

impl RuntimeClient {
    /// How long an answer that is no stream may take unless another time is set: 30 s.
    pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

    /// The most bytes that a runtime's information may have: 4 MiB.
    pub const MOST_INFO: usize = 4 << 20;

    /// The most bytes that any other answer may have that is no stream, such as the events of a
    /// thread: 64 MiB.
    pub const MOST_ANSWER: usize = 64 << 20;

    /// The runtime at a URL, with defaults for everything. One slash at the URL's end is of no
    /// account.
    ///
    /// Fails where the URL is not an absolute `http` or `https` one.
    pub fn new(url: impl AsRef<str>) -> Result<Self, BuildError> {
        HttpAgent::new(url).map(Self::over)
    }

    /// The runtime at the URL of this agent, reached as this agent is: with its headers, retries,
    /// timeouts, limits, proxy and certificates.
    ///
    /// ```
    /// use agui_agent::runtime::{RuntimeClient, Transport};
    /// use agui_agent::{HttpAgent, RetryPolicy};
    ///
    /// let http = HttpAgent::builder("https://app.example/api/copilotkit")
    ///     .header("authorization", "Bearer s3cret")
    ///     .retry(RetryPolicy::new(3))
    ///     .build()?;
    /// let runtime = RuntimeClient::over(http).with_transport(Transport::Rest);
    /// # Ok::<(), agui_agent::BuildError>(())
    /// ```
    #[must_use]
    pub fn over(http: HttpAgent) -> Self {
        let mut base = http.url().clone();
        if let Ok(mut segments) = base.path_segments_mut() {
            segments.pop_if_empty();
        }
        Self {
            http,
            base,
            transport: Transport::default(),
            answer_timeout: Self::ANSWER_TIMEOUT,
            discovery: Arc::default(),
        }
    }

    /// How requests are made. Default: [`Transport::Auto`].
    #[must_use]
    pub fn with_transport(mut self, transport: Transport) -> Self {
        self.transport = transport;
        self.discovery = Arc::default();
        self
    }

    /// How long an answer that is no stream may take, retries and all. Default:
    /// [`ANSWER_TIMEOUT`](Self::ANSWER_TIMEOUT). Streams have an
    /// [idle timeout](crate::HttpAgentBuilder::idle_timeout).
    #[must_use]
    pub fn with_answer_timeout(mut self, timeout: Duration) -> Self {
        self.answer_timeout = timeout;
        self
    }

    /// The same runtime with another header, such as the credentials of one of many users, who may be
    /// told other things: nothing is known of the runtime yet. Shares the connections of this one.
    ///
    /// Fails where the name or the value is not one that HTTP allows.
    pub fn with_header(
        &self,
        name: impl AsRef<str>,
        value: impl AsRef<str>,
    ) -> Result<Self, BuildError> {
        let http = self.http.with_header(name, value)?;
        Ok(Self { http, discovery: Arc::default(), ..self.clone() })
    }

    /// The URL without credentials, query and fragment, for messages.
    #[must_use]
    pub fn display_url(&self) -> String {
        self.http.display_url()
    }

    /// What the runtime says of itself: asked for once, and kept.
    ///
    /// Fails where it says nothing, with what each attempt to ask came to.
    pub async fn info(&self) -> Result<Arc<RuntimeInfo>, RuntimeError> {
        Ok(self.find(false).await?.info)
    }

    /// What the runtime says of itself now, over whichever transport it answers now. What was known
    /// before is forgotten, also where this fails.
    pub async fn refresh(&self) -> Result<Arc<RuntimeInfo>, RuntimeError> {
        Ok(self.find(true).await?.info)
    }

    /// The transport that is used: `None` as long as it has to be found out.
    #[must_use]
    pub fn transport(&self) -> Option<Transport> {
        let found = self.discovery.found().map(|found| found.via);
        found.or(self.forced()).map(|via| match via {
            Via::Rest => Transport::Rest,
            Via::Single => Transport::Single,
        })
    }

    /// Whether the runtime gave its information, as it is now and as it changes. Nothing is asked for
    /// it.
    #[must_use]
    pub fn status(&self) -> watch::Receiver<ConnectionStatus> {
        self.discovery.status()
    }

    /// One of its agents. Whether there is such a one shows when it is asked something.
    #[must_use]
    pub fn agent(&self, id: impl Into<Arc<str>>) -> RuntimeAgent {
        RuntimeAgent::new(self.clone(), id.into())
    }

    fn forced(&self) -> Option<Via> {
        match self.transport {
            Transport::Rest => Some(Via::Rest),
            Transport::Single => Some(Via::Single),
            Transport::Auto => None,
        }
    }

    /// The transport; where it has to be found out, that is done.
    async fn via(&self) -> Result<Via, RuntimeError> {
        match self.forced() {
            Some(via) => Ok(via),
            None => Ok(self.find(false).await?.via),
        }
    }

    async fn find(&self, afresh: bool) -> Result<Found, RuntimeError> {
        let found = self.discovery.find(afresh, self.discover()).await;
        found.map_err(RuntimeError::Discovery)
    }

    async fn discover(&self) -> Result<Found, DiscoveryError> {
        let failed = |rest: Option<RuntimeError>, single: Option<RuntimeError>| DiscoveryError {
            url: self.display_url(),
            rest: rest.map(Box::new),
            single: single.map(Box::new),
        };
        let mut by_rest = None;
        if self.transport != Transport::Single {
            match self.say(Via::Rest).await {
                // JSON of whatever kind says that there are paths.
                Ok(said) => {
                    let found = Found::read(&said, Via::Rest);
                    return found.map_err(|error| failed(Some(error), None));
                }
                Err(error) if self.transport == Transport::Rest => {
                    return Err(failed(Some(error), None));
                }
                Err(error) => by_rest = Some(error),
            }
        }
        let said = self.say(Via::Single).await;
        let found = said.and_then(|said| Found::read(&said, Via::Single));
        found.map_err(|error| failed(by_rest, Some(error)))
    }

    /// The runtime's information as it comes, which is JSON.
    async fn say(&self, via: Via) -> Result<Json, RuntimeError> {
        let request = Operation::Info.request(via, &self.base);
        let said = self.ask(request, Self::MOST_INFO, |error| RuntimeError::of(error, "info"));
        Ok(Json::parse(&said.await?)?)
    }

    /// The whole answer to a request, as text.
    async fn ask(
        &self,
        request: Request,
        most: usize,
        refusal: impl FnOnce(AgentError) -> RuntimeError,
    ) -> Result<String, RuntimeError> {
        let answered = async {
            let response = self.http.clone().send(request).await.map_err(refusal)?;
            let body = self.http.whole(response, most).await?;
            let body = body.ok_or(RuntimeError::TooLarge { most })?;
            String::from_utf8(body).map_err(|error| RuntimeError::unreadable("the text", error))
        };
        match tokio::time::timeout(self.answer_timeout, answered).await {
            Ok(answer) => answer,
            Err(_) => Err(AgentError::Idle { after: self.answer_timeout }.into()),
        }
    }
}

/// Shows no header values and no credentials.
impl fmt::Debug for RuntimeClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeClient")
            .field("url", &self.display_url())
            .field("transport", &self.transport)
            .field("status", &*self.status().borrow())
            .finish_non_exhaustive()
    }
}
