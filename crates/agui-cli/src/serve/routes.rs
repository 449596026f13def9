//! What is served where.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agui_agent::CancellationToken;
use agui_runtime::Runtime;
use agui_server::{AgentService, Refusal};
use agui_types::AgentCapabilities;
use axum::Router;
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use futures_util::future::join_all;
use serde::Serialize;
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

use super::agents::Served;
use super::host::{self, Hosts};
use super::origin::Origins;
use super::page::page;

/// Where the demo agent is.
pub(super) const DEMO: &str = "/agents/demo";

/// Where the CopilotKit runtime is.
pub(super) const COPILOTKIT: &str = "/api/copilotkit";

/// What is served, and to whom.
pub(super) struct Routes {
    pub(super) agents: Vec<Served>,
    pub(super) runtime: Runtime,
    pub(super) hosts: Hosts,
    pub(super) origins: Origins,
}

/// How long a browser may remember what it was allowed.
const PREFLIGHT: Duration = Duration::from_secs(600);

/// Everything that is served. Once `shutdown` is cancelled, so are the runs.
pub(super) fn router(routes: Routes, keep_alive: Duration, shutdown: &CancellationToken) -> Router {
    let Routes { agents: served, runtime, hosts, origins } = routes;
    let mut router = Router::new();
    for Served { id, agent, .. } in &served {
        let pages = origins.clone();
        let service = AgentService::new(Arc::clone(agent))
            .keep_alive(keep_alive)
            .websocket(move |origin| pages.allow(origin))
            .cancel_with(shutdown.clone());
        router = router
            .route_service(&format!("/agents/{id}/capabilities"), service.capabilities())
            .route_service(&format!("/agents/{id}"), service);
    }
    for path in ["", "/", "/{*rest}"] {
        router = router.route_service(&format!("{COPILOTKIT}{path}"), runtime.service());
    }
    let served = Arc::new(served);
    router
        .route("/", get(page))
        .route("/health", get(async || as_json(&BTreeMap::from([("status", "ok")]))))
        .route("/agents", get(move || agents(Arc::clone(&served))))
        .route("/agents/{agent}", any(unknown_agent))
        .route("/agents/{agent}/capabilities", any(unknown_agent))
        .fallback(nothing_here)
        .method_not_allowed_fallback(only_get)
        .layer(cors(origins))
        .layer(middleware::from_fn_with_state(hosts, host::guard))
        .layer(middleware::from_fn(log))
}

/// `GET /agents`: who is there, and what they declare.
async fn agents(served: Arc<Vec<Served>>) -> impl IntoResponse {
    #[derive(Serialize)]
    struct Listed {
        id: String,
        path: String,
        capabilities: Option<AgentCapabilities>,
    }
    let listed = served.iter().map(async |Served { id, agent, .. }| Listed {
        id: id.clone(),
        path: format!("/agents/{id}"),
        capabilities: agent.capabilities().await,
    });
    as_json(&BTreeMap::from([("agents", join_all(listed).await)]))
}

fn as_json<T: Serialize>(value: &T) -> impl IntoResponse + use<T> {
    // Protocol types and texts: writing them cannot fail.
    let text = serde_json::to_string(value).unwrap_or_default();
    ([(CONTENT_TYPE, "application/json")], text)
}

async fn unknown_agent(uri: Uri) -> Refusal {
    // As it was sent: what is percent-encoded need not be text.
    let agent = uri.path().split('/').nth(2).unwrap_or_default();
    let message = format!("there is no agent {agent:?} here");
    Refusal::new(StatusCode::NOT_FOUND, "UNKNOWN_AGENT", message)
        .hint("GET /agents lists the agents")
}

async fn nothing_here(uri: Uri) -> Refusal {
    let message = format!("there is nothing at {}", uri.path());
    Refusal::new(StatusCode::NOT_FOUND, "NOT_FOUND", message)
        .hint(format!("the page is at /, the agents are listed at /agents, one is at {DEMO}"))
}

async fn only_get(uri: Uri) -> Refusal {
    let message = format!("only GET is answered at {}", uri.path());
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", message)
}

/// Which web pages may call, and how: any header of theirs, `Authorization` included.
fn cors(origins: Origins) -> CorsLayer {
    let allowed = AllowOrigin::predicate(move |origin: &HeaderValue, _| origins.allow(origin));
    CorsLayer::new()
        .allow_origin(allowed)
        .allow_methods([Method::GET, Method::POST, Method::PATCH, Method::DELETE])
        .allow_headers(AllowHeaders::mirror_request())
        .max_age(PREFLIGHT)
}

/// A line a request: what was asked for and how it was answered, nothing of what was said.
async fn log(request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let came = Instant::now();
    let response = next.run(request).await;
    let (status, milliseconds) = (response.status().as_u16(), came.elapsed().as_millis());
    tracing::info!(%method, path, status, milliseconds, "answered");
    response
}
