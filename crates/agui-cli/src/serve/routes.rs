//! What is served where.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use agui_runtime::{NotReady, Operation, Runtime, codes};
use agui_server::Refusal;
use agui_types::AgentCapabilities;
use axum::Router;
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
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
use super::request;

/// Where the CopilotKit runtime is unless the configuration says otherwise.
pub(super) const COPILOTKIT: &str = "/api/copilotkit";

/// What is served, and to whom.
pub(super) struct Routes {
    pub(super) agents: Vec<Served>,
    pub(super) runtime: Runtime,
    /// Where the runtime is.
    pub(super) base_path: String,
    pub(super) hosts: Hosts,
    pub(super) origins: Origins,
}

/// How long a browser may remember what it was allowed.
const PREFLIGHT: Duration = Duration::from_secs(600);

/// Everything that is served.
pub(super) fn router(routes: Routes) -> Router {
    let Routes { agents: served, runtime, base_path, hosts, origins } = routes;
    let mut router = Router::new();
    for Served { id, .. } in &served {
        let pages = origins.clone();
        let service = runtime.endpoint(id.as_str()).websocket(move |origin| pages.allow(origin));
        router = router
            .route_service(&format!("/agents/{id}/capabilities"), service.capabilities())
            .route_service(&format!("/agents/{id}"), service);
    }
    for path in ["", "/", "/{*rest}"] {
        router = router.route_service(&format!("{base_path}{path}"), runtime.service());
    }
    let served = Arc::new(served);
    let (ready, listing) = (runtime.clone(), runtime.clone());
    let unknown = any(move |head: Parts| unknown_agent(head, runtime.clone()));
    router
        .route("/", get(page))
        .route("/health", get(async || as_json(&BTreeMap::from([("status", "ok")]))))
        .route("/ready", get(move || readiness(ready.clone())))
        .route(
            "/agents",
            get(move |head: Parts| agents(head, listing.clone(), Arc::clone(&served))),
        )
        .route("/agents/{agent}", unknown.clone())
        .route("/agents/{agent}/capabilities", unknown)
        .fallback(nothing_here)
        .method_not_allowed_fallback(only_get)
        .layer(cors(origins))
        .layer(middleware::from_fn(without_content))
        .layer(middleware::from_fn_with_state(hosts, host::guard))
        .layer(middleware::from_fn(request::identify))
}

/// `GET /ready`: whether runs can begin. What is wrong with the run log is for the operator, and in
/// the log.
async fn readiness(runtime: Runtime) -> Response {
    let (code, status) = match runtime.ready().await {
        Ok(()) => (StatusCode::OK, "ready"),
        Err(NotReady::ShuttingDown) => (StatusCode::SERVICE_UNAVAILABLE, "shutting down"),
        Err(error) => {
            let error = crate::failure::chain(&error);
            tracing::error!(error, "the server is not ready");
            (StatusCode::SERVICE_UNAVAILABLE, "the run log does not answer")
        }
    };
    (code, as_json(&BTreeMap::from([("status", status)]))).into_response()
}

/// `GET /agents`: who is there, and what they declare.
async fn agents(
    head: Parts,
    runtime: Runtime,
    served: Arc<Vec<Served>>,
) -> Result<impl IntoResponse, Refusal> {
    #[derive(Serialize)]
    struct Listed {
        id: String,
        path: String,
        capabilities: Option<AgentCapabilities>,
    }
    runtime.admit(&head, &Operation::Info).await?;
    let listed = served.iter().map(async |Served { id, agent, .. }| Listed {
        id: id.clone(),
        path: format!("/agents/{id}"),
        capabilities: agent.capabilities().await,
    });
    Ok(as_json(&BTreeMap::from([("agents", join_all(listed).await)])))
}

fn as_json<T: Serialize>(value: &T) -> impl IntoResponse + use<T> {
    // Protocol types and texts: writing them cannot fail.
    let text = serde_json::to_string(value).unwrap_or_default();
    ([(CONTENT_TYPE, "application/json")], text)
}

/// There is no such agent, which those are told who may see which there are.
async fn unknown_agent(head: Parts, runtime: Runtime) -> Refusal {
    if let Err(refusal) = runtime.admit(&head, &Operation::Info).await {
        return refusal;
    }
    // As it was sent: what is percent-encoded need not be text.
    let agent = head.uri.path().split('/').nth(2).unwrap_or_default();
    let message = format!("there is no agent {agent:?} here");
    Refusal::new(StatusCode::NOT_FOUND, codes::UNKNOWN_AGENT, message)
        .hint("GET /agents lists the agents")
}

async fn nothing_here(uri: Uri) -> Refusal {
    let message = format!("there is nothing at {}", uri.path());
    Refusal::new(StatusCode::NOT_FOUND, "NOT_FOUND", message)
        .hint("the page is at /, the agents are listed at /agents")
}

async fn only_get(uri: Uri) -> Refusal {
    let message = format!("only GET is answered at {}", uri.path());
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", message)
}

/// Answers what the layer below answers by itself, which is every `OPTIONS`, as what it is: an answer
/// without content.
async fn without_content(request: Request, next: Next) -> Response {
    let preflight = request.method() == Method::OPTIONS;
    let mut response = next.run(request).await;
    if preflight && response.status() == StatusCode::OK {
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    response
}

/// Which web pages may call, and how: any header of theirs, `Authorization` included. Stands around
/// everything, so that refusals and streams have it too.
fn cors(origins: Origins) -> CorsLayer {
    let credentials = origins.credentials;
    // The page's origin is echoed, also where any may call: with credentials a wildcard is none.
    let allowed = AllowOrigin::predicate(move |origin: &HeaderValue, _| origins.allow(origin));
    CorsLayer::new()
        .allow_origin(allowed)
        .allow_credentials(credentials)
        .allow_methods([Method::GET, Method::HEAD, Method::POST, Method::PATCH, Method::DELETE])
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers([request::REQUEST_ID])
        .max_age(PREFLIGHT)
}
