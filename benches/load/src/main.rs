//! Many runs at once against a CopilotKit runtime, ours or another, over plain HTTP/1 on loopback.
//!
//! `figures` takes everything that docs/performance.md shows of the runtime, `url` measures a runtime
//! that somebody else started, `serve` is the runtime that the figures are taken of.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "figures are its output")]

mod client;
mod figures;
mod measure;
mod serve;
mod servers;
mod stream;
mod table;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use client::Script;

#[derive(Debug, Parser)]
#[command(name = "agui-load", about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Take all figures of the runtime, beside the npm package's, and print them as tables
    Figures(FiguresArgs),
    /// Measure a runtime that is running
    Url(UrlArgs),
    /// Serve the runtime that is measured: its one agent says what the request asks for
    Serve(ServeArgs),
}

#[derive(Debug, clap::Args)]
struct FiguresArgs {
    /// The folder whose `node_modules` has the npm package, as `copilotkit-runtime-1.69`
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../../interop/node"))]
    npm: PathBuf,

    /// How often each is measured; the best one counts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    passes: u32,

    /// Only the tables with this in their name: throughput, latency, viewers, start, replay
    #[arg(long)]
    only: Option<String>,
}

#[derive(Debug, clap::Args)]
struct UrlArgs {
    /// The runtime's URL, such as `http://127.0.0.1:4100/api/copilotkit`
    url: String,

    /// The agent to run
    #[arg(long, default_value = "default")]
    agent: String,

    /// How many runs at once
    #[arg(long, default_value_t = 100)]
    runs: usize,

    /// How many tokens the agent is asked for in each run, where it heeds `forwardedProps`
    #[arg(long, default_value_t = 100)]
    tokens: u32,

    /// Milliseconds from one token to the next; 0 for as fast as it can
    #[arg(long, default_value_t = 0)]
    every: u32,

    /// What the user says in each run, for agents that heed that
    #[arg(long, default_value = "hello")]
    say: String,
}

#[derive(Debug, clap::Args)]
struct ServeArgs {
    /// Where the log is: a file, or `memory:`
    #[arg(long, default_value = "memory:")]
    journal: PathBuf,
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    raise_open_files().context("the limit of open files cannot be raised")?;
    match cli.command {
        Command::Figures(args) => {
            alone()?.block_on(figures::take(&args.npm, args.passes, args.only.as_deref()))
        }
        Command::Url(args) => {
            let UrlArgs { url, agent, runs, tokens, every, say } = args;
            let script = Script { tokens, every, silent: false, say };
            alone()?.block_on(figures::of_url(&url, &agent, runs, script))
        }
        Command::Serve(args) => {
            let threads = tokio::runtime::Runtime::new()?;
            threads.block_on(serve::serve(&args.journal))
        }
    }
}

/// The generator has one thread, so that the server it shares the machine with has the others.
fn alone() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Lets this program, and those it starts, have as many files open as the system allows.
fn raise_open_files() -> std::io::Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}
