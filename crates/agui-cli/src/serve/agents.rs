//! The agents that are served.

use std::sync::Arc;

use agui_agent::Agent;
use agui_runtime::ForwardHeaders;

/// The id of the demo agent.
pub(super) const DEMO: &str = "demo";

/// An agent, and what it is called.
#[derive(Clone)]
pub(super) struct Served {
    pub(super) id: String,
    pub(super) description: String,
    pub(super) agent: Arc<dyn Agent>,
    /// Which headers of a request it gets.
    pub(super) headers: ForwardHeaders,
}
