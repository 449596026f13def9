//! The agents that are served.

use std::sync::Arc;

use agui_agent::{Agent, HttpAgent};

use crate::demo;
use crate::failure::Failure;

/// The id of the demo agent.
pub(super) const DEMO: &str = "demo";

/// An agent, and what it is called.
#[derive(Clone)]
pub(super) struct Served {
    pub(super) id: String,
    pub(super) description: String,
    pub(super) agent: Arc<dyn Agent>,
}

/// The demo agent, and those behind a URL.
pub(super) fn served(named: &[(String, String)]) -> Result<Vec<Served>, Failure> {
    let mut agents = vec![Served {
        id: DEMO.into(),
        description: "Shows what an agent can do: say help".into(),
        agent: Arc::new(demo::agent()),
    }];
    for (name, url) in named {
        if agents.iter().any(|agent| agent.id == *name) {
            return Err(Failure::usage(format!("two agents are called {name}")));
        }
        let agent = HttpAgent::new(url).map_err(|error| {
            Failure::usage(format!("the agent {name} cannot be reached so")).because(error)
        })?;
        let description = format!("The agent at {}", agent.display_url());
        agents.push(Served { id: name.clone(), description, agent: Arc::new(agent) });
    }
    Ok(agents)
}
