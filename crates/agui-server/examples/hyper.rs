//! An agent on hyper alone, without axum: `cargo run -p agui-server --example hyper`.
//!
//! This accepts whatever comes, as long as it likes to come: `agui_server::Server` is the loop with
//! limits and an orderly end.

use agui_agent::{AgentResult, Run};
use agui_server::AgentService;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;

async fn greeter(run: Run) -> AgentResult {
    let name = run.prompt().unwrap_or_default().into_owned();
    run.say(format!("Hello, {name}!")).await?;
    Ok(())
}

pub(crate) async fn serve(listener: TcpListener) -> std::io::Result<()> {
    let agent = TowerToHyperService::new(AgentService::new(greeter));
    loop {
        let (stream, _) = listener.accept().await?;
        let agent = agent.clone();
        tokio::spawn(async move {
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), agent);
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection broke off");
            }
        });
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    serve(TcpListener::bind("127.0.0.1:3000").await?).await
}
