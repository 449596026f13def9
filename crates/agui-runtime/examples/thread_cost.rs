//! What a long run and a long thread cost, in this process and without a network:
//! `cargo run --release -p agui-runtime --example thread_cost`.
//!
//! For the journal in memory and the one in a file: the time of a run of 10,000 deltas from its request
//! to its last byte, and of the replay of a thread of 50,000 events; the least of five.

#![expect(clippy::print_stdout, reason = "it says what it measured")]

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agui_agent::{AgentResult, Run};
use agui_journal::{Journal, MemoryJournal, SqliteJournal};
use agui_runtime::{Agents, Runtime, SingleUser};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use tower::ServiceExt;

/// How many deltas a run has.
const DELTAS: usize = 10_000;

/// How many such runs make a thread of 50,000 events.
const RUNS: usize = 5;

async fn talker(run: Run) -> AgentResult {
    let mut text = run.text().await?;
    for _ in 0..DELTAS {
        text.push("a few words ").await?;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::temp_dir().join(format!("agui-cost-{}.sqlite", std::process::id()));
    let journals: [(&str, Arc<dyn Journal>); 2] = [
        ("memory", Arc::new(MemoryJournal::new())),
        ("file", Arc::new(SqliteJournal::open(&file).await?)),
    ];
    for (name, journal) in journals {
        let mut agents = Agents::new();
        agents.add("default", talker)?;
        let runtime = Runtime::builder(agents, journal).authorize(SingleUser).build();
        let (mut run, mut replay) = (Duration::MAX, Duration::MAX);
        for round in 0..RUNS {
            run = run.min(ask(&runtime, "run", round).await?.0);
        }
        let mut bytes = 0;
        for round in 0..5 {
            let (time, size) = ask(&runtime, "connect", round).await?;
            (replay, bytes) = (replay.min(time), size);
        }
        println!(
            "{name}: a run of {DELTAS} deltas {run:?}; a replay of {RUNS} such runs {replay:?}, {bytes} bytes"
        );
    }
    for end in ["", "-wal", "-shm", "-lock"] {
        let _ = std::fs::remove_file(format!("{}{end}", file.display()));
    }
    Ok(())
}

/// One request, its answer read to the end: how long that took, and how many bytes it was.
async fn ask(
    runtime: &Runtime,
    what: &str,
    round: usize,
) -> Result<(Duration, usize), Box<dyn Error>> {
    let body =
        format!(r#"{{"threadId":"t","runId":"r{round}","messages":[],"tools":[],"context":[]}}"#);
    let request = Request::post(format!("/api/copilotkit/agent/default/{what}"))
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body)))?;
    let begun = Instant::now();
    let answer = runtime.service().oneshot(request).await?;
    let bytes = answer.into_body().collect().await?.to_bytes().len();
    Ok((begun.elapsed(), bytes))
}
