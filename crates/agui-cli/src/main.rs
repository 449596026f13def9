//! The `agui` command: `agui serve` hosts a demo agent and a web page to talk to it, `agui run`
//! talks to any AG-UI agent.
#![forbid(unsafe_code)]

mod args;
mod demo;
mod failure;
mod logging;
#[cfg(test)]
mod pages;
mod run;
mod serve;
mod signals;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};

fn main() -> ExitCode {
    let Cli { command, log } = Cli::parse();
    let ended = match command {
        // What is logged, and how, may stand in the configuration.
        Command::Serve(args) => serve::serve(&args, &log),
        Command::Run(args) => logging::start_as(&log).and_then(|()| run::run(&args)),
    };
    ended.unwrap_or_else(|failure| failure.report())
}
