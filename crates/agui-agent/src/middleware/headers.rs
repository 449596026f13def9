//! Which headers go on to a remote agent.

use std::fmt;

use agui_types::RunAgentInput;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use super::{Middleware, Next};
use crate::{EventStream, RunContext};

/// The headers of the request that asked for the run: put into [`RunContext::extensions`] by whoever
/// serves it. Values never show in `Debug`.
#[derive(Clone, Default)]
pub struct RequestHeaders(pub HeaderMap);

/// The headers to send to a remote agent with this run: put into [`RunContext::extensions`] by a
/// [`HeaderPolicy`], and sent by an `HttpAgent`, where its own leave the name free. Values never show
/// in `Debug`.
#[derive(Clone, Default)]
pub struct AgentHeaders(pub HeaderMap);

/// Says which headers of the client's request go on to the agent; without it none do.
///
/// What the server [sets](Self::set) beats what the client sent, and what an `HttpAgent` is configured
/// with beats both. Headers that belong to one connection or one body, such as `host`,
/// `content-length` and `connection`, never go on, and neither do `accept`, `cookie` and
/// `proxy-authorization` unless they are named one by one.
///
/// ```
/// use agui_agent::middleware::HeaderPolicy;
/// # use agui_agent::{AgentExt, AgentResult, Run};
/// # async fn remote(run: Run) -> AgentResult { run.say("Hello!").await?; Ok(()) }
///
/// let policy = HeaderPolicy::new()
///     .allow("authorization")
///     .allow_prefix("x-")
///     .set("x-tenant", "acme")?;
/// let agent = remote.with(policy);
/// # fn serve(agent: impl agui_agent::Agent) {}
/// # serve(agent);
/// # Ok::<(), agui_agent::middleware::InvalidHeader>(())
/// ```
#[derive(Clone, Default)]
pub struct HeaderPolicy {
    names: Vec<String>,
    prefixes: Vec<String>,
    set: HeaderMap,
}

impl HeaderPolicy {
    /// No header of the client's goes on.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The header of this name goes on. Case does not matter.
    #[must_use]
    pub fn allow(mut self, name: impl AsRef<str>) -> Self {
        self.names.push(name.as_ref().to_ascii_lowercase());
        self
    }

    /// All headers go on whose name begins like this, such as `x-`. Case does not matter.
    #[must_use]
    pub fn allow_prefix(mut self, prefix: impl AsRef<str>) -> Self {
        self.prefixes.push(prefix.as_ref().to_ascii_lowercase());
        self
    }

    /// Sends this header, whatever the client sent under the name.
    ///
    /// Fails where HTTP does not allow the name or value.
    pub fn set(mut self, name: &str, value: &str) -> Result<Self, InvalidHeader> {
        let name: HeaderName = name.parse().map_err(|_| InvalidHeader("name"))?;
        let mut value: HeaderValue = value.parse().map_err(|_| InvalidHeader("value"))?;
        value.set_sensitive(true);
        self.set.insert(name, value);
        Ok(self)
    }

    /// What goes on of a client's headers.
    #[must_use]
    pub fn apply(&self, client: &HeaderMap) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in client {
            if self.allows(name) && !self.set.contains_key(name) {
                let mut value = value.clone();
                value.set_sensitive(true);
                headers.append(name, value);
            }
        }
        headers.extend(self.set.clone());
        headers
    }

    fn allows(&self, name: &HeaderName) -> bool {
        if NEVER.contains(name) {
            return false;
        }
        let named = self.names.iter().any(|allowed| allowed == name.as_str());
        let begins = || self.prefixes.iter().any(|prefix| name.as_str().starts_with(prefix));
        named || (!ONE_BY_ONE.contains(name) && begins())
    }
}

/// Headers of one connection, one hop or one body.
const NEVER: [HeaderName; 13] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::CONTENT_ENCODING,
    header::ACCEPT_ENCODING,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::UPGRADE,
    header::TE,
    header::TRAILER,
    header::EXPECT,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Headers that a prefix does not mean.
const ONE_BY_ONE: [HeaderName; 3] = [header::ACCEPT, header::COOKIE, header::PROXY_AUTHORIZATION];

impl Middleware for HeaderPolicy {
    fn run(&self, input: RunAgentInput, mut context: RunContext, next: Next) -> EventStream {
        let client = context.extensions.get::<RequestHeaders>();
        let headers = self.apply(client.map_or(&HeaderMap::new(), |headers| &headers.0));
        context.extensions.insert(AgentHeaders(headers));
        next.run(input, context)
    }
}

/// HTTP does not allow a header's name or value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {0} of the header is not one that HTTP allows")]
pub struct InvalidHeader(&'static str);

impl fmt::Debug for HeaderPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeaderPolicy")
            .field("names", &self.names)
            .field("prefixes", &self.prefixes)
            .field("set", &names(&self.set))
            .finish()
    }
}

impl fmt::Debug for RequestHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RequestHeaders").field(&names(&self.0)).finish()
    }
}

impl fmt::Debug for AgentHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AgentHeaders").field(&names(&self.0)).finish()
    }
}

fn names(headers: &HeaderMap) -> Vec<&str> {
    headers.keys().map(HeaderName::as_str).collect()
}
