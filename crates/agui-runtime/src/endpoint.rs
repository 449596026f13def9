//! An agent of the runtime by itself: a plain AG-UI endpoint.

use std::sync::Arc;

use agui_agent::middleware::Timeout;
use agui_agent::{Agent, AgentExt, BoxFuture, EventStream, RunContext};
use agui_journal::Tenant;
use agui_server::{AgentService, Asked, Refusal};
use agui_types::event::RunError;
use agui_types::{AgentCapabilities, Event, Reading, RunAgentInput};
use futures_util::StreamExt;
use futures_util::stream::iter;
use http::header::WWW_AUTHENTICATE;
use http::request::Parts;
use http::{HeaderValue, StatusCode};

use crate::{Action, Operation, Principal, Runtime, codes};

impl Runtime {
    /// The agent with this id as a plain endpoint, for clients that speak AG-UI and nothing of the
    /// runtime: a run is not kept, and belongs to its request. Its
    /// [capabilities](AgentService::capabilities) come with it.
    ///
    /// Who may do what is decided by the same [`Authorize`](crate::Authorize): it sees a run as
    /// [`Operation::Run`] with the thread of its input, also over a WebSocket, and a look at the
    /// capabilities as [`Operation::Capabilities`]. The runtime's limits on bodies, runs and their
    /// time, its keep-alive and its policy on headers hold here as well, and its
    /// [end](Self::shutdown) cancels the runs.
    ///
    /// An id that no agent has is answered with 404, once it is known who asks.
    #[must_use]
    pub fn endpoint(&self, agent: impl Into<String>) -> AgentService {
        let id: Arc<str> = agent.into().into();
        let settings = &self.0.settings;
        let (choosing, admitting, permitting) = (self.clone(), self.clone(), self.clone());
        let named = Arc::clone(&id);
        AgentService::choosing(move |head| {
            let (runtime, id) = (choosing.clone(), Arc::clone(&named));
            async move { runtime.plain(&head, &id).await }
        })
        .authorize(move |head: Arc<Parts>| {
            let runtime = admitting.clone();
            async move { runtime.principal(&head).await }
        })
        .permit(move |head, asked| {
            let (runtime, agent) = (permitting.clone(), id.to_string());
            let (operation, thread) = match asked {
                Asked::Run(input) => {
                    (Operation::Run { agent }, Some(input.thread_id.as_str().to_owned()))
                }
                _ => (Operation::Capabilities { agent }, None),
            };
            async move { runtime.permit(&head, &operation, thread.as_deref()).await }
        })
        .keep_alive(settings.keep_alive)
        .body_limit(settings.body_limit)
        .cancel_with(self.0.closing.clone())
    }

    /// Asks whether somebody may do this, for routes of the application beside those of the runtime,
    /// such as a list of its agents: who they are, then whether they may.
    pub async fn admit(&self, head: &Parts, operation: &Operation) -> Result<Principal, Refusal> {
        let principal = self.principal(head).await?;
        let action = Action { operation, thread: operation.thread() };
        self.0.settings.authorize.authorize(&principal, action).await?;
        Ok(principal)
    }

    async fn principal(&self, head: &Parts) -> Result<Principal, Refusal> {
        self.0.settings.authorize.authenticate(head).await.map_err(challenged)
    }

    async fn permit(
        &self,
        head: &Parts,
        operation: &Operation,
        thread: Option<&str>,
    ) -> Result<(), Refusal> {
        let principal = head.extensions.get::<Principal>().cloned().unwrap_or_default();
        let action = Action { operation, thread };
        self.0.settings.authorize.authorize(&principal, action).await?;
        let run = matches!(operation, Operation::Run { .. });
        if run && self.0.run_slots.available_permits() == 0 {
            let status = StatusCode::SERVICE_UNAVAILABLE;
            return Err(
                Refusal::new(status, codes::TOO_MANY_RUNS, TOO_MANY).hint("try again in a while")
            );
        }
        Ok(())
    }

    /// The agent, as it is run here.
    async fn plain(&self, head: &Parts, id: &str) -> Result<Counted, Refusal> {
        let principal = head.extensions.get::<Principal>().cloned().unwrap_or_default();
        let settings = &self.0.settings;
        let agents = settings.agents.agents(head, &principal).await?;
        let hosted = agents.get(id).ok_or_else(|| {
            let message = format!("there is no agent {id:?} here");
            Refusal::new(StatusCode::NOT_FOUND, codes::UNKNOWN_AGENT, message)
        })?;
        let agent = Arc::clone(hosted.agent()).with(settings.headers_for(hosted).clone());
        let agent: Arc<dyn Agent> = match settings.run_limits.deadline {
            Some(deadline) => Arc::new(agent.with(Timeout::new().total(deadline))),
            None => Arc::new(agent),
        };
        Ok(Counted { agent, runtime: self.clone(), tenant: Tenant::new(&*principal.tenant) })
    }
}

const TOO_MANY: &str = "too many runs are going on";

/// An agent whose runs count among those of the runtime.
struct Counted {
    agent: Arc<dyn Agent>,
    runtime: Runtime,
    tenant: Tenant,
}

impl Agent for Counted {
    fn run(&self, input: RunAgentInput, context: RunContext) -> EventStream {
        // Between the permission and this another run may have begun.
        let Ok(place) = self.runtime.run_place(&self.tenant) else {
            let error = RunError::new(TOO_MANY).code(codes::TOO_MANY_RUNS);
            return Box::pin(iter([Ok(Reading::from(Event::from(error)))]));
        };
        Box::pin(self.agent.run(input, context).map(move |item| {
            let _ = &place;
            item
        }))
    }

    fn capabilities(&self) -> BoxFuture<'_, Option<AgentCapabilities>> {
        self.agent.capabilities()
    }
}

/// Whoever is not known is told how to be, as HTTP asks for.
fn challenged(refusal: Refusal) -> Refusal {
    let told = refusal.headers().is_some_and(|headers| headers.contains_key(WWW_AUTHENTICATE));
    if refusal.status() != StatusCode::UNAUTHORIZED || told {
        return refusal;
    }
    refusal.header(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
}
