//! An agent for the users of a web application: who asks is known, pages of another origin may call,
//! clients have limits, and Ctrl-C ends what runs in order.
//!
//! ```sh
//! cargo run -p agui-server --example full
//! curl -N http://127.0.0.1:3000/agents/greeter -H 'Authorization: Bearer token-of-ann' \
//!   -H 'Accept: text/event-stream' -H 'Content-Type: application/json' \
//!   -d '{"threadId":"t","runId":"r","messages":[]}'
//! ```

use std::sync::Arc;
use std::time::Duration;

use agui_agent::{AgentResult, CancellationToken, Run};
use agui_server::{AgentService, Refusal, Server, ServerLimits, bearer};
use axum::Router;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method};
use tokio::net::TcpListener;
use tower_http::cors::CorsLayer;

#[derive(Clone)]
struct User {
    name: String,
}

/// Where users would be looked up.
async fn authorize(head: Arc<Parts>) -> Result<User, Refusal> {
    match bearer(&head) {
        Some("token-of-ann") => Ok(User { name: "Ann".into() }),
        Some("token-of-a-guest") => Err(Refusal::forbidden()),
        _ => Err(Refusal::unauthorized(HeaderValue::from_static("Bearer"))),
    }
}

async fn greeter(run: Run) -> AgentResult {
    let user = run.context().extensions.get::<User>();
    let name = user.map_or("whoever you are", |user| &user.name);
    run.say(format!("Hello, {name}!")).await?;
    Ok(())
}

/// Pages of this origin may call, with these methods and headers. It has to be around the service: a
/// browser asks for leave without saying who it is.
fn cors() -> CorsLayer {
    CorsLayer::new()
        .allow_origin(HeaderValue::from_static("https://app.example"))
        .allow_methods([Method::GET, Method::POST])
        .allow_headers([AUTHORIZATION, CONTENT_TYPE])
        .max_age(Duration::from_secs(600))
}

pub(crate) fn app(shutdown: CancellationToken) -> Router {
    let service = AgentService::new(greeter).authorize(authorize);
    let service = service.body_limit(1024 * 1024).cancel_with(shutdown);
    Router::new().nest("/agents/greeter", service.into_router()).layer(cors())
}

/// Serves until `shutdown` is cancelled.
pub(crate) async fn serve(listener: TcpListener, shutdown: CancellationToken) {
    let mut limits = ServerLimits::default();
    limits.connections = 1000;
    let server = Server::new(listener).limits(limits).shutdown_with(shutdown.clone());
    let cut_off = server.serve(app(shutdown)).await;
    if cut_off > 0 {
        tracing::warn!(cut_off, "some clients did not take the end of their answers");
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stop.cancel();
        }
    });
    serve(TcpListener::bind("127.0.0.1:3000").await?, shutdown).await;
    Ok(())
}
