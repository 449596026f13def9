//! The agents that the runtime hosts.

use std::fmt;
use std::sync::Arc;

use agui_agent::{Agent, BoxFuture};
use agui_server::Refusal;
use http::request::Parts;
use indexmap::IndexMap;

use crate::{ForwardHeaders, Principal};

/// Agents by id, in the order they were added.
///
/// ```
/// use agui_agent::{AgentResult, Run};
/// use agui_runtime::Agents;
///
/// async fn greeter(run: Run) -> AgentResult {
///     run.say("Hello!").await?;
///     Ok(())
/// }
///
/// let mut agents = Agents::new();
/// agents.add("default", greeter)?.describe("Greets everybody");
/// assert!(agents.add("a/b", greeter).is_err());
/// # Ok::<(), agui_runtime::AgentIdError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Agents(IndexMap<String, Hosted>);

impl Agents {
    /// The id that a front end uses which names none.
    pub const DEFAULT: &'static str = "default";

    /// The longest id, in bytes.
    pub const LONGEST_ID: usize = 256;

    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an agent, or replaces the one with this id.
    ///
    /// Fails where the id is empty, longer than [`LONGEST_ID`](Self::LONGEST_ID) bytes, or holds
    /// what a front end cannot put into a path: `/`, `?`, `#`, `%`, white space at its ends, a
    /// control character.
    pub fn add(
        &mut self,
        id: impl Into<String>,
        agent: impl Agent,
    ) -> Result<&mut Hosted, AgentIdError> {
        let id = id.into();
        check(&id)?;
        let hosted = Hosted { agent: Arc::new(agent), description: String::new(), headers: None };
        Ok(self.0.entry(id).insert_entry(hosted).into_mut())
    }

    /// The agent with this id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&Hosted> {
        self.0.get(id)
    }

    /// All of them, with their ids.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Hosted)> {
        self.0.iter().map(|(id, hosted)| (id.as_str(), hosted))
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// An agent and what is said about it.
#[derive(Clone)]
pub struct Hosted {
    pub(crate) agent: Arc<dyn Agent>,
    pub(crate) description: String,
    pub(crate) headers: Option<ForwardHeaders>,
}

impl Hosted {
    /// Says in a sentence what the agent is for. Default: the empty string.
    pub fn describe(&mut self, description: impl Into<String>) -> &mut Self {
        self.description = description.into();
        self
    }

    /// Says which headers of a request this agent gets. Default: as the runtime has it for
    /// [all](crate::RuntimeBuilder::headers).
    pub fn forward(&mut self, policy: ForwardHeaders) -> &mut Self {
        self.headers = Some(policy);
        self
    }

    /// The agent.
    #[must_use]
    pub fn agent(&self) -> &Arc<dyn Agent> {
        &self.agent
    }

    /// What the agent is for.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }
}

impl fmt::Debug for Hosted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosted").field("description", &self.description).finish_non_exhaustive()
    }
}

/// An id that a front end could not address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an agent cannot be called {id:?}: {reason}")]
pub struct AgentIdError {
    /// The id, shortened.
    pub id: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

fn check(id: &str) -> Result<(), AgentIdError> {
    let reason = if id.is_empty() {
        "an id is not empty"
    } else if id.len() > Agents::LONGEST_ID {
        "an id has at most 256 bytes"
    } else if id.contains(['/', '?', '#', '%', '\\']) {
        "front ends put ids into paths, so / ? # % and \\ cannot be in one"
    } else if id.trim() != id || id.contains(char::is_control) {
        "an id has no control characters and no white space around it"
    } else if id == "." || id == ".." {
        "a path cannot hold that"
    } else {
        return Ok(());
    };
    Err(AgentIdError { id: id.chars().take(60).collect(), reason })
}

/// Where the agents come from: always the same, or chosen for each request.
///
/// A closure from the request's head and the principal to agents is one.
pub trait AgentSource: Send + Sync + 'static {
    /// The agents for this request. What fails is answered as it is.
    fn agents<'a>(
        &'a self,
        head: &'a Parts,
        principal: &'a Principal,
    ) -> BoxFuture<'a, Result<Arc<Agents>, Refusal>>;
}

impl AgentSource for Agents {
    fn agents<'a>(
        &'a self,
        _: &'a Parts,
        _: &'a Principal,
    ) -> BoxFuture<'a, Result<Arc<Agents>, Refusal>> {
        Box::pin(std::future::ready(Ok(Arc::new(self.clone()))))
    }
}

impl AgentSource for Arc<Agents> {
    fn agents<'a>(
        &'a self,
        _: &'a Parts,
        _: &'a Principal,
    ) -> BoxFuture<'a, Result<Arc<Agents>, Refusal>> {
        Box::pin(std::future::ready(Ok(Arc::clone(self))))
    }
}

impl<F> AgentSource for F
where
    F: Fn(&Parts, &Principal) -> Result<Agents, Refusal> + Send + Sync + 'static,
{
    fn agents<'a>(
        &'a self,
        head: &'a Parts,
        principal: &'a Principal,
    ) -> BoxFuture<'a, Result<Arc<Agents>, Refusal>> {
        Box::pin(std::future::ready(self(head, principal).map(Arc::new)))
    }
}

#[cfg(test)]
mod tests {
    use agui_agent::{AgentResult, Run};

    use super::*;

    async fn nothing(_: Run) -> AgentResult {
        Ok(())
    }

    #[test]
    fn ids_that_cannot_be_addressed_are_refused() {
        let mut agents = Agents::new();
        for id in ["default", "a b", "café", "__proto__", &"x".repeat(256)] {
            assert!(agents.add(id, nothing).is_ok(), "{id}");
        }
        for id in ["", "a/b", "a?", "#", "50%", " a", "a\n", "..", &"x".repeat(257)] {
            assert!(agents.add(id, nothing).is_err(), "{id}");
        }
        assert!(agents.get("constructor").is_none());
    }
}
