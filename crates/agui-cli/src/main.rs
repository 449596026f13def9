//! The `agui` command: `agui serve` hosts a demo agent and a web page to talk to it, `agui run`
//! talks to any AG-UI agent.
#![forbid(unsafe_code)]

mod args;
mod demo;
mod failure;
#[cfg(test)]
mod pages;
mod run;
mod serve;
mod signals;
mod terminal;

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;

use args::{Cli, Command};
use failure::Failure;

fn main() -> ExitCode {
    let Cli { command, log } = Cli::parse();
    let ended = start_logging(&log).and_then(|()| match command {
        Command::Serve(args) => serve::serve(&args),
        Command::Run(args) => run::run(&args),
    });
    ended.unwrap_or_else(|failure| failure.report())
}

/// Has the log go to standard error.
fn start_logging(filter: &str) -> Result<(), Failure> {
    let filter = EnvFilter::builder().parse(filter).map_err(|error| {
        Failure::usage(format!("{filter:?} is no log filter")).because(error).hint(
            "give --log or AGUI_LOG a level such as info, or targets such as agui_server=debug",
        )
    })?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(colours(&io::stderr()))
        // A log that cannot be written must not end what it tells of.
        .log_internal_errors(false)
        .init();
    Ok(())
}

/// Whether to write colours there: a terminal, and nobody asked for none (<https://no-color.org>).
fn colours(to: &impl IsTerminal) -> bool {
    to.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
