//! The runtime that is measured.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agui_agent::{AgentResult, CancellationToken, Run};
use agui_journal::{Clock, Journal, MemoryJournal, MemoryLimits, SqliteJournal};
use agui_runtime::{Agents, Runtime, SingleUser};
use agui_server::{Server, ServerLimits};
use agui_types::event::{TextMessageContent, TextMessageEnd, TextMessageStart};
use anyhow::Result;
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::time::{MissedTickBehavior, interval};

/// As many threads and connections as a measurement has.
const MOST: usize = 20_000;

/// Serves on a port of the system's choice until it is told to stop; the runtime's URL is the first
/// line on standard output.
pub(crate) async fn serve(journal: &Path) -> Result<()> {
    let log: Arc<dyn Journal> = if journal.as_os_str() == "memory:" {
        let limits = MemoryLimits::new().threads(MOST);
        Arc::new(MemoryJournal::with(limits, Clock::default()))
    } else {
        Arc::new(SqliteJournal::open(journal).await?)
    };
    let mut agents = Agents::new();
    agents.add(Agents::DEFAULT, scripted)?;
    let runtime = Runtime::builder(agents, log).authorize(SingleUser).build();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    writeln!(std::io::stdout(), "http://{address}/api/copilotkit")?;

    let shutdown = CancellationToken::new();
    let mut limits = ServerLimits::default();
    limits.connections = MOST;
    let server = Server::new(listener).limits(limits).shutdown_with(shutdown.clone());
    tokio::select! {
        _ = server.serve(runtime.service()) => {}
        stop = tokio::signal::ctrl_c() => stop?,
    }
    Ok(())
}

/// What the request asks the agent for, in `forwardedProps`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Asked {
    tokens: u32,
    /// Milliseconds from one token to the next; 0 for as fast as it can.
    every: u64,
    /// Nothing but the beginning, and no end.
    silent: bool,
}

/// Says the tokens asked for; where they are paced, each is the time at which it was said, in
/// microseconds since 1970.
async fn scripted(run: Run) -> AgentResult {
    let props = run.input().forwarded_props.as_ref();
    let Asked { tokens, every, silent } =
        props.map(|props| serde_json::from_str(props.as_str())).transpose()?.unwrap_or_default();
    if silent {
        run.cancellation().cancelled().await;
        return Ok(());
    }
    run.emit(TextMessageStart::new("m1")).await?;
    if every > 0 {
        let mut timer = interval(Duration::from_millis(every));
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        timer.tick().await;
        for _ in 0..tokens {
            timer.tick().await;
            run.emit(TextMessageContent::new("m1", now().to_string())).await?;
        }
    } else {
        for _ in 0..tokens {
            run.emit(TextMessageContent::new("m1", "token")).await?;
        }
    }
    run.emit(TextMessageEnd::new("m1")).await?;
    Ok(())
}

/// Microseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
