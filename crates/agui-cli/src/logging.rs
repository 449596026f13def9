//! The log: what of it, how, and that it goes to standard error.

use std::io::{self, IsTerminal};

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

use crate::args::LogArgs;
use crate::failure::Failure;

/// How the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines of text.
    #[default]
    Text,
    /// Lines of JSON.
    Json,
}

/// What is logged where nobody says.
pub(crate) const USUAL: &str = "warn";

/// Reads a filter: a level, or targets with theirs.
pub(crate) fn filter(text: &str) -> Result<EnvFilter, ParseError> {
    EnvFilter::builder().parse(text)
}

/// Has the log go to standard error as the arguments and the environment say.
pub(crate) fn start_as(args: &LogArgs) -> Result<(), Failure> {
    start(args.log.as_deref().unwrap_or(USUAL), args.log_format.unwrap_or_default())
}

/// Has the log go to standard error.
pub(crate) fn start(text: &str, format: LogFormat) -> Result<(), Failure> {
    let filter = filter(text).map_err(|error| {
        Failure::usage(format!("{text:?} is no log filter")).because(error).hint(
            "give --log or AGUI_LOG a level such as info, or targets such as agui_server=debug",
        )
    })?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(colours(&io::stderr()))
        // A log that cannot be written must not end what it tells of.
        .log_internal_errors(false);
    match format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
    Ok(())
}

/// Whether to write colours there: a terminal, and nobody asked for none (<https://no-color.org>).
pub(crate) fn colours(to: &impl IsTerminal) -> bool {
    to.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
