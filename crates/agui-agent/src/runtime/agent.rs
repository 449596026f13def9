//! One agent of a runtime.

use std::fmt;
use std::sync::Arc;

use agui_types::{AgentCapabilities, RunAgentInput, ToJson};
use serde::Deserialize;

use super::operation::{Id, Operation, Streamed, quoted};
use super::{RuntimeClient, RuntimeError};
use crate::http::{HeaderRequest, Request, Whose, forwarded};
use crate::{Agent, AgentError, BoxFuture, EventStream, RunContext};

/// One agent of a runtime, to be [run](Agent::run) like any other, and
/// [connected to](Agent::connect). Cheap to clone.
///
/// A run that the runtime does not take fails with [`AgentError::Runtime`]: the thread is
/// [busy](RuntimeError::Busy), there is [no such agent](RuntimeError::UnknownAgent), or the input is
/// [not taken](RuntimeError::Invalid).
#[derive(Clone)]
pub struct RuntimeAgent {
    client: RuntimeClient,
    id: Arc<str>,
}

impl RuntimeAgent {
    pub(super) fn new(client: RuntimeClient, id: Arc<str>) -> Self {
        Self { client, id }
    }

    /// Its id in the runtime.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The runtime that it is one of.
    #[must_use]
    pub fn runtime(&self) -> &RuntimeClient {
        &self.client
    }

    /// Stops what goes on on a thread, where it is this run, or whichever run it is. The run's stream
    /// is ended by the runtime then, for everybody who watches it.
    ///
    /// `false` where there was nothing to stop. Older runtimes do not look at `run`.
    ///
    /// Fails as [what is asked of threads](RuntimeClient::delete_thread) does.
    pub async fn stop(&self, thread: &str, run: Option<&str>) -> Result<bool, RuntimeError> {
        #[derive(Deserialize)]
        struct Stopped {
            stopped: bool,
        }
        let (agent, thread) = (Id::new(&self.id)?, Id::new(thread)?);
        let stop = Operation::Stop { agent, thread, run };
        let stopped: Stopped = self.client.answer(&stop, "stopping").await?;
        Ok(stopped.stopped)
    }

    /// A run that nothing is kept of, for proposals of what to say next: no thread is made, and none
    /// is busy. Its last item is [`RuntimeError::NotOffered`] where the runtime has no such runs.
    pub fn suggest(&self, input: &RunAgentInput, context: RunContext) -> EventStream {
        self.stream(Streamed::Suggest, input, context)
    }

    fn stream(&self, what: Streamed, input: &RunAgentInput, context: RunContext) -> EventStream {
        let (client, agent) = (self.client.clone(), Arc::clone(&self.id));
        let (about, forwarded) = (HeaderRequest::new(input), forwarded(&context));
        let mut input = input.to_json();
        let position = context.position.get().filter(|_| what == Streamed::Connect);
        if let Some(position) = &position {
            // For those who do not see the header.
            input.pop();
            input.push_str(&format!(",\"lastSeenEventId\":{}}}", quoted(position)));
        }
        let response = async move {
            let agent = Id::new(&agent)?;
            if what == Streamed::Suggest {
                client.offered(|it| it.suggestions, "suggestions").await?;
            }
            let operation = Operation::Agent { agent, what, input };
            let request = operation.request(client.via().await?, &client.base);
            let request = Request { forwarded, about, ..request }.behind(position.as_deref());
            let response = client.http.clone().send(request).await;
            response.map_err(|error| AgentError::from(RuntimeError::of(error, what.name())))
        };
        self.client.http.events(response, context, Whose::Runtimes(None))
    }
}

impl Agent for RuntimeAgent {
    fn run(&self, input: RunAgentInput, context: RunContext) -> EventStream {
        self.stream(Streamed::Run, &input, context)
    }

    /// What the thread holds, and what goes on on it, from the context's position on; nothing, where
    /// the runtime has not seen the thread.
    fn connect(&self, input: RunAgentInput, context: RunContext) -> Option<EventStream> {
        Some(self.stream(Streamed::Connect, &input, context))
    }

    /// What the runtime says that it declares.
    fn capabilities(&self) -> BoxFuture<'_, Option<AgentCapabilities>> {
        Box::pin(async {
            let info = self.client.info().await.ok()?;
            info.agents.get(&*self.id)?.capabilities.clone()
        })
    }
}

impl fmt::Debug for RuntimeAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeAgent").field("id", &self.id).field("client", &self.client).finish()
    }
}
