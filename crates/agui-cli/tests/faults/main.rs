//! What a runtime does when something goes wrong: it is killed under load, its disk is full, a
//! reader stalls, an agent misbehaves.
//!
//! A few rounds of each are part of every test run. With `AGUI_SOAK=300` the test of kills goes on for
//! that many seconds, which are hundreds of kills, and the floods are larger. `AGUI_SEED` repeats the
//! random choices of an earlier run, which says its seed.

#![cfg(unix)]
#![allow(clippy::print_stderr, reason = "a seed is told where one runs the test by hand")]

mod agents;
mod chance;
mod full;
mod killed;
mod stalled;
mod upstream;
mod viewer;

#[path = "../support/mod.rs"]
mod support;

use std::time::Duration;

/// How long a soak goes on; `None` where nobody asked for one.
fn soak() -> Option<Duration> {
    let seconds = std::env::var("AGUI_SOAK").ok()?;
    Some(Duration::from_secs(seconds.parse().expect("AGUI_SOAK is a number of seconds")))
}

/// How much memory a process has of the machine, in MiB; `None` where the system does not say.
fn resident(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? / 1024)
}
