//! Configuring an agent behind a URL.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Once};
use std::time::Duration;

use agui_wire::{Limits, Warning, WireForm};
use http::header::HeaderValue;
use reqwest::{Certificate, Client, Identity, Proxy, Url};

use super::headers::{self, HeaderRequest, Pairs, Provider};
use super::{HttpAgent, OnWarning};
use crate::{BoxError, RetryPolicy};

/// Configures an [`HttpAgent`].
#[must_use]
pub struct HttpAgentBuilder {
    url: String,
    connect_url: Option<String>,
    headers: Pairs,
    provider: Option<Provider>,
    connect_timeout: Duration,
    idle_timeout: Option<Duration>,
    retry: Option<RetryPolicy>,
    wire: WireForm,
    limits: Limits,
    on_warning: OnWarning,
    proxy: Option<String>,
    no_proxy: bool,
    roots: Vec<Vec<u8>>,
    only_roots: bool,
    identity: Option<Vec<u8>>,
}

impl HttpAgentBuilder {
    pub(super) fn new(url: &str) -> Self {
        Self {
            url: url.into(),
            connect_url: None,
            headers: Vec::new(),
            provider: None,
            connect_timeout: Duration::from_secs(10),
            idle_timeout: None,
            retry: None,
            wire: WireForm::default(),
            limits: Limits::default(),
            on_warning: OnWarning::default(),
            proxy: None,
            no_proxy: false,
            roots: Vec::new(),
            only_roots: false,
            identity: None,
        }
    }

    /// Where the agent's runs can be [attached to](crate::Agent::connect). Default: nowhere.
    ///
    /// That is no part of the protocol. The request is that of a run, with `Last-Event-ID` where a
    /// position is known; the answer is what follows that position, in the same form as a run's.
    pub fn connect_url(mut self, url: impl Into<String>) -> Self {
        self.connect_url = Some(url.into());
        self
    }

    /// Sends a header with every request. A later value of a name takes the place of an earlier one;
    /// `accept` and `content-type` may be set as well. Values never show up in `Debug`, errors or
    /// logs.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Makes headers for each request, and again for each retry of one: credentials that expire, a
    /// trace. They take the place of fixed ones with the same name. Where it fails nothing is sent
    /// and the run fails with [`AgentError::Headers`](crate::AgentError::Headers).
    ///
    /// There is one maker of headers, this or [`headers_from_async`](Self::headers_from_async).
    pub fn headers_from(
        mut self,
        provide: impl Fn(&HeaderRequest) -> Result<Vec<(String, String)>, BoxError>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.provider = Some(Provider::sync(provide));
        self
    }

    /// Makes headers for each request, as [`headers_from`](Self::headers_from) does, taking the time
    /// it needs:
    ///
    /// ```
    /// # use agui_agent::{BoxError, HttpAgent};
    /// # async fn fresh_token() -> Result<String, BoxError> { Ok(String::new()) }
    /// let agent = HttpAgent::builder("https://agents.example/chat")
    ///     .headers_from_async(|_| async {
    ///         let token = fresh_token().await?;
    ///         Ok(vec![("authorization".into(), format!("Bearer {token}"))])
    ///     })
    ///     .build()?;
    /// # Ok::<(), agui_agent::BuildError>(())
    /// ```
    pub fn headers_from_async<Fut>(
        mut self,
        provide: impl Fn(HeaderRequest) -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        Fut: Future<Output = Result<Vec<(String, String)>, BoxError>> + Send + 'static,
    {
        self.provider = Some(Provider::future(provide));
        self
    }

    /// How long connecting may take, TLS included. Default: 10 s. A run itself may take as long as
    /// it likes.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How long the other side may be silent: until its answer begins, and from one read to the
    /// next. Keep-alive comments count as reads, so a run of any length goes on. Default: for ever,
    /// since an agent may think for long and need not send keep-alives; what is left then is that the
    /// operating system notices a peer that is gone.
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = Some(timeout);
        self
    }

    /// Makes requests that were not taken up again. Default: none is.
    ///
    /// Only where the agent cannot have begun a run: the connection was never made, or the answer is
    /// 408, 425, 429 or 503, which say that the request was not taken up; a `Retry-After` is
    /// honoured. Whatever fails after that, and every other status, is reported at once: a run costs
    /// money and does things.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use agui_agent::{HttpAgent, RetryPolicy};
    ///
    /// let retry = RetryPolicy::new(4).longest_delay(Duration::from_secs(20));
    /// let agent = HttpAgent::builder("https://agents.example/chat").retry(retry).build()?;
    /// # Ok::<(), agui_agent::BuildError>(())
    /// ```
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = Some(policy);
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

    /// Reaches the agent through the proxy at this URL, whose user name and password, if it has
    /// them, are sent to it alone. Default: what `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and
    /// `NO_PROXY` say.
    pub fn proxy(mut self, url: impl Into<String>) -> Self {
        self.proxy = Some(url.into());
        self
    }

    /// Reaches the agent directly, whatever the environment says. Takes the place of a
    /// [proxy](Self::proxy).
    pub fn no_proxy(mut self) -> Self {
        self.no_proxy = true;
        self
    }

    /// Trusts the certificates in this PEM text as well as those of the system: an authority of
    /// one's own.
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.roots.push(pem.into());
        self
    }

    /// Trusts only the [certificates given](Self::root_certificates), and none of the system's.
    pub fn only_given_roots(mut self) -> Self {
        self.only_roots = true;
        self
    }

    /// Shows a certificate of one's own: its PEM text and that of its key, one behind the other.
    pub fn client_certificate(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.identity = Some(pem.into());
        self
    }

    /// Makes the agent.
    ///
    /// Fails where a URL is not an absolute `http` or `https` one, a header's name or value is not
    /// one that HTTP allows, a certificate cannot be read, or the system's TLS roots cannot be
    /// loaded.
    pub fn build(self) -> Result<HttpAgent, BuildError> {
        let url = absolute(&self.url).map_err(BuildError::Url)?;
        let connect_url = self.connect_url.as_deref().map(absolute);
        let connect_url = connect_url.transpose().map_err(BuildError::Url)?;
        let headers = headers::collected(self.headers)?;
        install_tls_provider();
        let mut client = Client::builder()
            .connect_timeout(self.connect_timeout)
            .redirect(reqwest::redirect::Policy::none());
        if let Some(timeout) = self.idle_timeout {
            client = client.read_timeout(timeout);
        }
        if self.no_proxy {
            client = client.no_proxy();
        } else if let Some(proxy) = &self.proxy {
            // The library's own errors repeat the URL, and with it a password.
            let proxy = absolute(proxy).map_err(BuildError::Proxy)?;
            let proxy = Proxy::all(proxy).map_err(|_| BuildError::Proxy("no proxy's".into()))?;
            client = client.proxy(proxy);
        }
        let mut roots = Vec::new();
        for pem in &self.roots {
            let read = Certificate::from_pem_bundle(pem).map_err(BuildError::certificate)?;
            if read.is_empty() {
                return Err(BuildError::Certificate("there is none in the text".into()));
            }
            roots.extend(read);
        }
        client = match self.only_roots {
            true => client.tls_certs_only(roots),
            false => client.tls_certs_merge(roots),
        };
        if let Some(pem) = &self.identity {
            client = client.identity(Identity::from_pem(pem).map_err(BuildError::certificate)?);
        }
        let client = client.build().map_err(|error| BuildError::Client(error.into()))?;
        Ok(HttpAgent {
            client,
            url,
            connect_url,
            // T-11
            accept: HeaderValue::from_static(self.wire.accept()),
            headers,
            provider: self.provider,
            retry: self.retry,
            idle: self.idle_timeout,
            limits: self.limits,
            on_warning: self.on_warning,
        })
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
        /// The header's name; only the beginning of one that is not allowed, as it may hold a value.
        name: String,
        /// `name` or `value`.
        what: &'static str,
    },
    /// The proxy's URL cannot be used.
    #[error("the proxy's URL cannot be used: {0}")]
    Proxy(String),
    /// A certificate, or the key of one, cannot be read.
    #[error("a certificate cannot be read")]
    Certificate(#[source] BoxError),
    /// The HTTP client cannot be made.
    #[error("the HTTP client cannot be made")]
    Client(#[source] BoxError),
}

impl BuildError {
    fn certificate(error: reqwest::Error) -> Self {
        Self::Certificate(error.into())
    }
}

/// An `http` or `https` URL, or why it is none.
fn absolute(url: &str) -> Result<Url, String> {
    let url = Url::parse(url).map_err(|error| error.to_string())?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => Err(format!("expected http or https, found {other}")),
    }
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
