//! Who may ask, and which agent answers.

use std::future::Future;
use std::sync::Arc;

use agui_agent::{Agent, BoxFuture};
use agui_types::RunAgentInput;
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{Extensions, HeaderValue, StatusCode};
use subtle::ConstantTimeEq;

use crate::panic::caught;
use crate::{Refusal, codes};

/// Asked about each request before anything else of it is looked at.
type Hook<T> = Arc<dyn Fn(Arc<Parts>) -> BoxFuture<'static, Result<T, Refusal>> + Send + Sync>;

/// What is asked of an agent's service, once it is known who asks: what the hook of
/// [`AgentService::permit`](crate::AgentService::permit) decides about.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Asked<'a> {
    /// A run with this input.
    Run(&'a RunAgentInput),
    /// What the agent declares about itself.
    Capabilities,
}

/// Asked whether what is asked for may be.
type Permit =
    Arc<dyn Fn(Arc<Parts>, Asked<'_>) -> BoxFuture<'static, Result<(), Refusal>> + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Access {
    /// Gives what is known about who asks.
    gate: Option<Hook<Extensions>>,
    agent: Choice,
    permit: Option<Permit>,
}

#[derive(Clone)]
enum Choice {
    Always(Arc<dyn Agent>),
    Each(Hook<Arc<dyn Agent>>),
}

impl Access {
    pub(crate) fn open(agent: impl Agent) -> Self {
        Self::of(Choice::Always(Arc::new(agent)))
    }

    pub(crate) fn choosing<F, Fut, A>(choose: F) -> Self
    where
        F: Fn(Arc<Parts>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<A, Refusal>> + Send + 'static,
        A: Agent,
    {
        let choose = move |head| -> BoxFuture<'static, _> {
            let chosen = choose(head);
            Box::pin(async move { chosen.await.map(|agent| Arc::new(agent) as Arc<dyn Agent>) })
        };
        Self::of(Choice::Each(Arc::new(choose)))
    }

    fn of(agent: Choice) -> Self {
        Self { gate: None, agent, permit: None }
    }

    pub(crate) fn restrict<F, Fut>(&mut self, permit: F)
    where
        F: Fn(Arc<Parts>, Asked<'_>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), Refusal>> + Send + 'static,
    {
        self.permit = Some(Arc::new(move |head, asked| Box::pin(permit(head, asked))));
    }

    /// Whether this may be.
    pub(crate) async fn permit(&self, head: &Arc<Parts>, asked: Asked<'_>) -> Result<(), Refusal> {
        let Some(permit) = &self.permit else { return Ok(()) };
        answered(async { permit(Arc::clone(head), asked).await }, "permit a request").await
    }

    pub(crate) fn guard<F, Fut, P>(&mut self, authorize: F)
    where
        F: Fn(Arc<Parts>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<P, Refusal>> + Send + 'static,
        P: Clone + Send + Sync + 'static,
    {
        self.gate = Some(Arc::new(move |head| {
            let principal = authorize(head);
            Box::pin(async move {
                let mut known = Extensions::new();
                known.insert(principal.await?);
                Ok(known)
            })
        }));
    }

    /// The head with what is known about who asks, and the agent; or why there is none.
    pub(crate) async fn admit(&self, head: Parts) -> Result<(Arc<Parts>, Arc<dyn Agent>), Refusal> {
        let mut head = Arc::new(head);
        if let Some(gate) = &self.gate {
            let known = async { gate(Arc::clone(&head)).await };
            let known = answered(known, "authorize a request").await?;
            let mut parts = Arc::unwrap_or_clone(head);
            parts.extensions.extend(known);
            head = Arc::new(parts);
        }
        let agent = match &self.agent {
            Choice::Always(agent) => Arc::clone(agent),
            Choice::Each(choose) => {
                answered(async { choose(Arc::clone(&head)).await }, "choose an agent").await?
            }
        };
        Ok((head, agent))
    }
}

/// What a hook says; one that panics refuses.
async fn answered<T>(
    answer: impl Future<Output = Result<T, Refusal>>,
    what: &str,
) -> Result<T, Refusal> {
    caught(answer).await.unwrap_or_else(|panic| {
        tracing::error!(panic, "a panic while it was to {what}");
        let message = "the server failed before a run began";
        Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, codes::INTERNAL_ERROR, message))
    })
}

/// A hook for [`AgentService::authorize`](crate::AgentService::authorize) that lets in whoever knows
/// a secret: `Authorization: Bearer SECRET`. Anyone else is refused with 401 and a challenge.
///
/// The secret is compared in constant time; how long it is may be learned. An empty secret lets no
/// one in.
///
/// ```
/// # async fn greeter(run: agui_agent::Run) -> agui_agent::AgentResult { Ok(()) }
/// use agui_server::{AgentService, bearer_secret};
///
/// let service = AgentService::new(greeter).authorize(bearer_secret("s3cret"));
/// ```
pub fn bearer_secret(
    secret: impl Into<String>,
) -> impl Fn(Arc<Parts>) -> std::future::Ready<Result<BearerKnown, Refusal>> + Send + Sync + 'static
{
    let secret = secret.into();
    move |head| {
        let known = bearer(&head).is_some_and(|token| {
            !secret.is_empty() && bool::from(token.as_bytes().ct_eq(secret.as_bytes()))
        });
        let challenge = HeaderValue::from_static("Bearer");
        std::future::ready(
            known.then_some(BearerKnown).ok_or_else(|| Refusal::unauthorized(challenge)),
        )
    }
}

/// Who asks knows the secret of [`bearer_secret`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BearerKnown;

/// The token of a request's `Authorization: Bearer TOKEN`; `None` where there is none, or more than
/// one such header.
#[must_use]
pub fn bearer(head: &Parts) -> Option<&str> {
    let mut headers = head.headers.get_all(AUTHORIZATION).iter();
    let (value, None) = (headers.next()?, headers.next()) else {
        return None;
    };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

impl Refusal {
    /// Who asks is not known: 401 with [`UNAUTHORIZED`](codes::UNAUTHORIZED), and how to make
    /// oneself known as `WWW-Authenticate`, such as `Bearer`.
    #[must_use]
    pub fn unauthorized(challenge: HeaderValue) -> Self {
        let message = "this needs to know who asks";
        Self::new(StatusCode::UNAUTHORIZED, codes::UNAUTHORIZED, message)
            .hint("send the credentials that WWW-Authenticate asks for")
            .header(WWW_AUTHENTICATE, challenge)
    }

    /// Who asks is known and may not: 403 with [`FORBIDDEN`](codes::FORBIDDEN).
    #[must_use]
    pub fn forbidden() -> Self {
        Self::new(StatusCode::FORBIDDEN, codes::FORBIDDEN, "who asks may not do this")
    }
}
