//! What is asked of a runtime, and what came of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::net::TcpStream;
use tokio::sync::{Barrier, Semaphore};
use tokio::task::JoinSet;

use crate::client::{Outcome, Script, Target, exchange, watch};
use crate::stream::Answer;

/// Many runs, each on a thread of its own, all asked for at the same moment.
#[derive(Debug)]
pub(crate) struct Load {
    /// From the first request to the end of the last answer.
    pub(crate) took: Duration,
    pub(crate) events: u64,
    /// How many runs did not give all of their events and a `RUN_FINISHED`, and what was the matter
    /// with one of them.
    pub(crate) errors: usize,
    pub(crate) error: Option<String>,
    /// Times to the first event, from the shortest to the longest.
    pub(crate) first: Vec<Duration>,
    /// From the request to the end.
    pub(crate) whole: Vec<Duration>,
    /// Of paced tokens: from being said to being here.
    pub(crate) delays: Vec<Duration>,
}

impl Load {
    pub(crate) fn events_per_second(&self) -> f64 {
        self.events as f64 / self.took.as_secs_f64()
    }
}

/// The value below which so many per cent of the sorted values are.
pub(crate) fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or_default()
}

/// Connections that are opened at once at most.
const OPENING: usize = 128;

/// After this long a measurement is given up.
const PATIENCE: Duration = Duration::from_secs(240);

/// Begins runs on new threads, whose ids have `name` in them. `exact` runs have all the events of the
/// script.
pub(crate) async fn load(
    target: &Target,
    name: &str,
    runs: usize,
    script: &Script,
    exact: bool,
) -> Result<Load> {
    let connections = connect(target, runs).await?;
    let ready = Arc::new(Barrier::new(runs + 1));
    let mut tasks = JoinSet::new();
    for (at, connection) in connections.into_iter().enumerate() {
        let id = format!("{name}-{at:05}");
        let request = target.run(&id, &id, script);
        let ready = Arc::clone(&ready);
        tasks.spawn(async move {
            ready.wait().await;
            exchange(connection, &request).await
        });
    }
    ready.wait().await;
    let began = Instant::now();
    let mut load = Load {
        took: Duration::ZERO,
        events: 0,
        errors: 0,
        error: None,
        first: Vec::with_capacity(runs),
        whole: Vec::with_capacity(runs),
        delays: Vec::new(),
    };
    let expected = exact.then(|| script.events());
    let all = async {
        while let Some(done) = tasks.join_next().await {
            load.count(done?, expected);
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(PATIENCE, all).await.context("the runs take too long")??;
    load.took = began.elapsed();
    load.first.sort_unstable();
    load.whole.sort_unstable();
    load.delays.sort_unstable();
    Ok(load)
}

impl Load {
    fn count(&mut self, outcome: Result<Outcome>, expected: Option<u64>) {
        match outcome.and_then(|outcome| complete(outcome, expected)) {
            Ok(outcome) => {
                self.events += outcome.events;
                self.first.push(outcome.first);
                self.whole.push(outcome.took);
                self.delays.extend(outcome.delays.iter().map(|it| Duration::from_micros(*it)));
            }
            Err(error) => {
                self.errors += 1;
                self.error.get_or_insert_with(|| format!("{error:#}"));
            }
        }
    }
}

/// The outcome, where nothing is missing.
fn complete(outcome: Outcome, expected: Option<u64>) -> Result<Outcome> {
    let last = String::from_utf8_lossy(&outcome.boundary);
    if !last.starts_with("{\"type\":\"RUN_FINISHED\"") {
        bail!("the run ended with {last}");
    }
    if let Some(expected) = expected.filter(|expected| *expected != outcome.events) {
        bail!("the run had {} events instead of {expected}", outcome.events);
    }
    Ok(outcome)
}

async fn connect(target: &Target, count: usize) -> Result<Vec<TcpStream>> {
    let slots = Arc::new(Semaphore::new(OPENING));
    let mut tasks = JoinSet::new();
    for _ in 0..count {
        let (target, slots) = (target.clone(), Arc::clone(&slots));
        tasks.spawn(async move {
            let _slot = slots.acquire().await;
            target.connect().await
        });
    }
    let mut connections = Vec::with_capacity(count);
    while let Some(connection) = tasks.join_next().await {
        connections.push(connection?.context("a connection cannot be opened")?);
    }
    Ok(connections)
}

/// Runs, one after the other on one thread; then how long it takes to read all of the thread, and how
/// many events and bytes that is.
pub(crate) async fn replay(
    target: &Target,
    runs: u32,
    script: &Script,
    passes: u32,
) -> Result<(Duration, u64, u64)> {
    for run in 0..runs {
        let request = target.run("replayed", &format!("run-{run:05}"), script);
        complete(exchange(target.connect().await?, &request).await?, Some(script.events()))?;
    }
    let mut best: Option<Outcome> = None;
    for _ in 0..passes {
        let request = target.watch("replayed", "viewer");
        let outcome = complete(exchange(target.connect().await?, &request).await?, None)?;
        if best.as_ref().is_none_or(|best| outcome.took < best.took) {
            best = Some(outcome);
        }
    }
    let Outcome { took, events, bytes, .. } = best.context("nothing was read")?;
    Ok((took, events, bytes))
}

/// Viewers of a run that says nothing.
#[derive(Debug)]
pub(crate) struct Viewers(Vec<(TcpStream, Answer)>);

impl Viewers {
    /// Begins the run; its own viewer is the first.
    pub(crate) async fn of_a_silent_run(target: &Target) -> Result<Self> {
        let script = Script { silent: true, ..Script::default() };
        let request = target.run("silent", "silent", &script);
        Ok(Self(vec![watch(target.connect().await?, &request).await?]))
    }

    /// More viewers, each of whom has seen how the run began.
    pub(crate) async fn join(&mut self, target: &Target, count: usize) -> Result<()> {
        let mut tasks = JoinSet::new();
        for (at, connection) in connect(target, count).await?.into_iter().enumerate() {
            let request = target.watch("silent", &format!("viewer-{at:05}"));
            tasks.spawn(async move { watch(connection, &request).await });
        }
        while let Some(viewer) = tasks.join_next().await {
            self.0.push(viewer??);
        }
        Ok(())
    }
}
