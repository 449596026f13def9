//! An agent in an axum application: `cargo run -p agui-server --example axum`.

use agui_agent::{AgentResult, Run};
use axum::Router;

async fn greeter(run: Run) -> AgentResult {
    let name = run.prompt().unwrap_or_default().into_owned();
    run.say(format!("Hello, {name}!")).await?;
    Ok(())
}

pub(crate) fn app() -> Router {
    Router::new().nest("/agents/greeter", agui_server::router(greeter))
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    axum::serve(listener, app()).await
}
