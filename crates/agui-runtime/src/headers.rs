//! Which headers of a request go on to the agent.

use agui_agent::middleware::{AgentHeaders, Middleware, Next, RequestHeaders};
use agui_agent::{EventStream, RunContext};
use agui_types::RunAgentInput;
use http::{HeaderMap, HeaderName};

/// Chooses the headers of a request that reach the agent it is for.
///
/// By default those are `Authorization` and every `X-…` header but the ones that proxies and
/// platforms add. Cookies never pass, unless they are allowed by name. What the operator has
/// configured for an agent wins over what a client sent, whatever the letter case: that is the
/// agent's part.
///
/// ```
/// use agui_runtime::ForwardHeaders;
/// use http::HeaderMap;
///
/// let mut request = HeaderMap::new();
/// request.insert("authorization", "Bearer x".parse()?);
/// request.insert("x-tenant", "acme".parse()?);
/// request.insert("x-forwarded-for", "10.0.0.9".parse()?);
/// request.insert("cookie", "s=1".parse()?);
///
/// let passed = ForwardHeaders::new().deny("X-Tenant").choose(&request);
/// assert_eq!(passed.len(), 1);
/// assert_eq!(passed["authorization"], "Bearer x");
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForwardHeaders {
    allow: Vec<String>,
    deny: Vec<String>,
    deny_prefixes: Vec<String>,
    platform: bool,
}

/// What proxies and platforms add, which is no business of an agent's.
const PLATFORM: [&str; 11] = [
    "x-forwarded-for",
    "x-forwarded-proto",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-server",
    "x-real-ip",
    "x-amzn-trace-id",
    "x-cloud-trace-context",
    "x-cache",
    "x-served-by",
    "x-request-id",
];

/// The same by how they begin.
const PLATFORM_PREFIXES: [&str; 6] =
    ["x-amz-", "x-azure-", "x-fastly-", "x-vercel-", "x-middleware-", "x-copilotcloud-"];

/// Headers that belong to one connection or to its body; they never pass.
const HOP: [&str; 12] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "accept",
];

impl ForwardHeaders {
    /// `Authorization` and `X-…`, without what platforms add.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets this header pass. The first one allowed turns the policy around: only what is allowed
    /// passes then, `Authorization` included. Blank names count for nothing.
    #[must_use]
    pub fn allow(mut self, name: impl AsRef<str>) -> Self {
        self.allow.extend(named(name.as_ref()));
        self
    }

    /// Holds this header back, also where it is allowed.
    #[must_use]
    pub fn deny(mut self, name: impl AsRef<str>) -> Self {
        self.deny.extend(named(name.as_ref()));
        self
    }

    /// Holds back what begins like this.
    #[must_use]
    pub fn deny_prefix(mut self, prefix: impl AsRef<str>) -> Self {
        self.deny_prefixes.extend(named(prefix.as_ref()));
        self
    }

    /// Lets pass what platforms add (`X-Forwarded-For`, `X-Vercel-…` and such). Default: no.
    #[must_use]
    pub fn platform_headers(mut self, pass: bool) -> Self {
        self.platform = pass;
        self
    }

    /// The headers that go on.
    #[must_use]
    pub fn choose(&self, request: &HeaderMap) -> HeaderMap {
        let mut passed = HeaderMap::new();
        for (name, value) in request {
            if self.passes(name) {
                passed.append(name.clone(), value.clone());
            }
        }
        passed
    }

    fn passes(&self, name: &HeaderName) -> bool {
        // Header names are lower case here.
        let name = name.as_str();
        let begins =
            |prefixes: &[String]| prefixes.iter().any(|prefix| name.starts_with(&**prefix));
        if HOP.contains(&name)
            || self.deny.iter().any(|it| it == name)
            || begins(&self.deny_prefixes)
        {
            return false;
        }
        if !self.allow.is_empty() {
            return self.allow.iter().any(|it| it == name);
        }
        let platform = PLATFORM.contains(&name)
            || PLATFORM_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        (name == "authorization" || name.starts_with("x-")) && (self.platform || !platform)
    }
}

/// Around an agent, the policy chooses from the [`RequestHeaders`] of a run's context.
impl Middleware for ForwardHeaders {
    fn run(&self, input: RunAgentInput, mut context: RunContext, next: Next) -> EventStream {
        let request = context.extensions.get::<RequestHeaders>();
        let chosen = request.map(|request| self.choose(&request.0)).unwrap_or_default();
        context.extensions.insert(AgentHeaders(chosen));
        next.run(input, context)
    }
}

/// A name as it is compared; nothing where it is blank.
fn named(name: &str) -> Option<String> {
    let name = name.trim().to_ascii_lowercase();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(policy: &ForwardHeaders) -> Vec<&'static str> {
        let names = [
            "authorization",
            "x-tenant",
            "x-forwarded-for",
            "x-vercel-id",
            "x-copilotcloud-public-api-key",
            "cookie",
            "accept-language",
            "content-length",
            "host",
        ];
        let mut request = HeaderMap::new();
        for name in names {
            request.insert(name, "v".parse().unwrap());
        }
        let passed = policy.choose(&request);
        names.into_iter().filter(|name| passed.contains_key(*name)).collect()
    }

    #[test]
    fn what_passes_is_chosen_as_the_policy_says() {
        let policy = ForwardHeaders::new();
        assert_eq!(passed(&policy), ["authorization", "x-tenant"]);
        assert_eq!(passed(&policy.clone().deny("X-Tenant ")), ["authorization"]);
        assert_eq!(passed(&policy.clone().deny_prefix("X-T")), ["authorization"]);
        assert_eq!(passed(&policy.clone().allow(" ")), ["authorization", "x-tenant"]);
        let allow = policy.clone().allow("X-Tenant").allow("accept-language");
        assert_eq!(passed(&allow), ["x-tenant", "accept-language"]);
        assert_eq!(passed(&allow.deny("Accept-Language")), ["x-tenant"]);
        let allow = policy.clone().allow("Cookie").allow("host").allow("x-vercel-id");
        assert_eq!(passed(&allow), ["x-vercel-id", "cookie"]);
        assert_eq!(passed(&policy.platform_headers(true)).len(), 5);
    }
}
