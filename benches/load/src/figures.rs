//! The tables of docs/performance.md about the runtime.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::client::{Script, Target};
use crate::measure::{Load, Viewers, load, percentile, replay};
use crate::servers::{Kind, Places, Server};
use crate::table::{Table, kib, mib, ms, number, times};

/// Takes all figures and prints them as they come. What is compared takes turns, and of each the best
/// pass counts.
pub(crate) async fn take(npm: &Path, passes: u32, only: Option<&str>) -> Result<()> {
    let places = Places::new(npm)?;
    let mut kinds = vec![Kind::Memory, Kind::Sqlite];
    if places.has_npm() {
        kinds.push(Kind::Npm);
    } else {
        println!("skipped: the npm package is not in {}: npm ci there first", npm.display());
    }
    let wanted = |name: &str| only.is_none_or(|only| name.contains(only));
    if wanted("throughput") {
        throughput(&kinds, &places, passes).await?;
    }
    if wanted("latency") {
        latency(&kinds, &places).await?;
    }
    if wanted("viewers") {
        viewers(&kinds, &places).await?;
    }
    if wanted("start") {
        start(&kinds, &places, passes).await?;
    }
    if wanted("replay") {
        replays(&kinds, &places, passes).await?;
    }
    Ok(())
}

/// Measures a runtime that is there.
pub(crate) async fn of_url(url: &str, agent: &str, runs: usize, script: Script) -> Result<()> {
    let target = Target::new(url, agent).await?;
    // Threads of their own each time, for logs that outlive a process.
    let name = format!("load-{}", crate::serve::now());
    let load = load(&target, &name, runs, &script, false).await?;
    let columns =
        ["runs", "events/s", "first event p50, ms", "p99, ms", "run p50, ms", "p99, ms", "errors"];
    let table = Table::begin(url, &columns);
    table.row(&[
        runs.to_string(),
        number(load.events_per_second()),
        ms(percentile(&load.first, 50)),
        ms(percentile(&load.first, 99)),
        ms(percentile(&load.whole, 50)),
        ms(percentile(&load.whole, 99)),
        load.errors.to_string(),
    ]);
    if let Some(error) = load.error {
        println!("\none of the errors: {error}");
    }
    Ok(())
}

/// How many runs at once, and how many tokens each of them has: about as many events in all, as far as
/// the npm package allows for it.
const LOADS: [(usize, u32); 4] = [(1, 4_996), (100, 296), (1_000, 56), (5_000, 16)];

/// Runs that say as much as they can.
async fn throughput(kinds: &[Kind], places: &Places, passes: u32) -> Result<()> {
    let columns = [
        "",
        "runs",
        "events each",
        "events/s",
        "to npm",
        "first event p50, ms",
        "p99, ms",
        "errors",
    ];
    let table = Table::begin("Events per second", &columns);
    for (runs, tokens) in LOADS {
        let script = Script { tokens, ..Script::default() };
        let mut best: Vec<Option<Load>> = kinds.iter().map(|_| None).collect();
        for _ in 0..passes {
            for (kind, best) in kinds.iter().zip(&mut best) {
                let server = warm(*kind, places).await?;
                let load = load(&server.target, "load", runs, &script, true).await?;
                server.stop().await?;
                let better = best.as_ref().is_none_or(|best| {
                    (best.errors, -best.events_per_second())
                        > (load.errors, -load.events_per_second())
                });
                if better {
                    *best = Some(load);
                }
            }
        }
        let npm = kinds.iter().position(|kind| *kind == Kind::Npm);
        let npm = npm.and_then(|at| best[at].as_ref()).map(Load::events_per_second);
        for (kind, load) in kinds.iter().zip(&best) {
            let load = load.as_ref().context("nothing was measured")?;
            let rate = load.events_per_second();
            table.row(&[
                kind.name().into(),
                runs.to_string(),
                script.events().to_string(),
                number(rate),
                npm.map_or_else(String::new, |npm| times(rate, npm)),
                ms(percentile(&load.first, 50)),
                ms(percentile(&load.first, 99)),
                load.errors.to_string(),
            ]);
        }
    }
    Ok(())
}

/// Runs that say a token from time to time: how long it takes until it is there.
async fn latency(kinds: &[Kind], places: &Places) -> Result<()> {
    const EVERY: u32 = 50;
    let columns = [
        "",
        "runs",
        "events/s asked for",
        "came",
        "p50, ms",
        "p90, ms",
        "p99, ms",
        "longest, ms",
        "errors",
    ];
    let table = Table::begin("From the agent to the client", &columns);
    for (runs, tokens) in [(1, 100), (100, 100), (1_000, 60)] {
        let script = Script { tokens, every: EVERY, ..Script::default() };
        for kind in kinds {
            let server = warm(*kind, places).await?;
            let load = load(&server.target, "load", runs, &script, true).await?;
            server.stop().await?;
            let at = |percent| ms(percentile(&load.delays, percent));
            table.row(&[
                kind.name().into(),
                runs.to_string(),
                number(runs as f64 * 1e3 / f64::from(EVERY)),
                number(load.delays.len() as f64 / load.took.as_secs_f64()),
                at(50),
                at(90),
                at(99),
                at(100),
                load.errors.to_string(),
            ]);
        }
    }
    Ok(())
}

/// Viewers of a run that says nothing.
async fn viewers(kinds: &[Kind], places: &Places) -> Result<()> {
    /// Who is there before anything is measured, so that what the first ones cost is not counted.
    const FIRST: usize = 100;
    const MORE: usize = 1_500;
    let columns = ["", "viewers", "KiB each", "to npm", "MiB in all"];
    let table = Table::begin("Memory of a viewer who sees nothing", &columns);
    let mut measured = Vec::new();
    for kind in kinds {
        let server = warm(*kind, places).await?;
        let mut viewers = Viewers::of_a_silent_run(&server.target).await?;
        viewers.join(&server.target, FIRST).await?;
        let before = settled(&server).await?;
        viewers.join(&server.target, MORE).await?;
        let after = settled(&server).await?;
        measured.push((kind, after.saturating_sub(before) as f64 / MORE as f64, after));
        server.stop().await?;
    }
    let npm = measured.iter().find(|(kind, ..)| **kind == Kind::Npm).map(|(_, each, _)| *each);
    for (kind, each, all) in measured {
        let ratio = npm.map_or_else(String::new, |npm| times(each, npm));
        table.row(&[kind.name().into(), MORE.to_string(), kib(each), ratio, mib(all)]);
    }
    Ok(())
}

/// From the start of a process to its first answer, and what it holds then.
async fn start(kinds: &[Kind], places: &Places, passes: u32) -> Result<()> {
    let columns = ["", "first answer, best, ms", "median, ms", "idle, MiB"];
    let table = Table::begin("Start", &columns);
    let npm = kinds.contains(&Kind::Npm).then_some(Kind::Npm);
    for kind in [Kind::AguiMemory, Kind::AguiSqlite].into_iter().chain(npm) {
        let mut times = Vec::new();
        let mut idle = Vec::new();
        for _ in 0..passes * 3 {
            let server = Server::start(kind, places).await?;
            times.push(server.started);
            idle.push(settled(&server).await?);
            server.stop().await?;
        }
        times.sort_unstable();
        idle.sort_unstable();
        table.row(&[
            kind.name().into(),
            ms(times[0]),
            ms(percentile(&times, 50)),
            mib(idle[idle.len() / 2]),
        ]);
    }
    Ok(())
}

/// A long thread, read from its beginning.
async fn replays(kinds: &[Kind], places: &Places, passes: u32) -> Result<()> {
    const RUNS: u32 = 50;
    let script = Script { tokens: 996, ..Script::default() };
    let columns = ["", "events written", "events replayed", "MiB", "ms"];
    let table = Table::begin("Replay of a thread", &columns);
    for kind in kinds {
        let server = warm(*kind, places).await?;
        let (took, events, bytes) = replay(&server.target, RUNS, &script, passes).await?;
        server.stop().await?;
        let written = u64::from(RUNS) * script.events();
        table.row(&[
            kind.name().into(),
            number(written as f64),
            number(events as f64),
            mib(bytes),
            ms(took),
        ]);
    }
    Ok(())
}

/// A runtime that has run before: what is compiled while it runs is compiled.
async fn warm(kind: Kind, places: &Places) -> Result<Server> {
    let server = Server::start(kind, places).await?;
    let script = Script { tokens: 100, ..Script::default() };
    for round in 0..3 {
        let load = load(&server.target, &format!("warm-{round}"), 20, &script, true).await?;
        let error = load.error.unwrap_or_default();
        ensure!(load.errors == 0, "{} cannot run an agent: {error}", kind.name());
    }
    Ok(server)
}

/// The memory of a server that has had the time to tidy up.
async fn settled(server: &Server) -> Result<u64> {
    tokio::time::sleep(Duration::from_millis(500)).await;
    server.resident()
}
