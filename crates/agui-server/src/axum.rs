//! The thin layer for `axum`.

use agui_agent::Agent;
use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};

use crate::{AgentService, Refusal};

/// An `axum` router for an agent: `POST /` runs it, `GET /capabilities` says what it declares.
///
/// Shorthand for [`AgentService::into_router`] with the defaults. Nest it where the agent should be
/// found:
///
/// ```
/// # async fn greeter(run: agui_agent::Run) -> agui_agent::AgentResult { Ok(()) }
/// let app: axum::Router = axum::Router::new().nest("/agents/greeter", agui_server::router(greeter));
/// ```
pub fn router(agent: impl Agent) -> Router {
    AgentService::new(agent).into_router()
}

impl AgentService {
    /// An `axum` router: `POST /` runs the agent, `GET /capabilities` says what it declares.
    pub fn into_router(self) -> Router {
        Router::new().route_service("/capabilities", self.capabilities()).route_service("/", self)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        Refusal::into_response(self).map(Body::new)
    }
}
