//! The command line: every argument and every environment variable, defined once, with its help.

use std::path::PathBuf;
use std::time::Duration;

use crate::logging::LogFormat;
use agui_agent::WireForm;
use agui_agent::runtime::Transport;
use agui_runtime::Agents;
use agui_stream::PeerVersion;
use clap::{
    Args, Parser, Subcommand, ValueEnum, builder::styling::AnsiColor, builder::styling::Styles,
};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const EXAMPLES: &str = "\
Examples:
  agui serve
  agui run http://127.0.0.1:4100/agents/demo help
";

const EXIT_CODES: &str = "\
Exit codes:
  0  completed: the run finished
  1  failed: the agent reported an error (RUN_ERROR), or standard output or the result could not
     be written
  2  usage error: nothing was sent
  3  interrupted: the run stopped to ask something
  4  cancelled: by the agent, with Ctrl-C, or since standard output was closed
  5  truncated: the stream ended before the run did
  6  rejected: the stream breaks the protocol's rules, or the input does and was not sent
  7  connection or HTTP error
";

const SERVE_ENDS: &str = "\
SIGINT or SIGTERM cancels the runs that are going on and ends the server once their clients have been
told, or after 10 seconds. A second signal ends it at once.

Exit codes:
  0    ended by a signal, in order; --check: the configuration can be used
  1    the server cannot do its work: the address is taken, or the run log cannot be opened;
       --check: standard output cannot be written
  2    the configuration or an argument is wrong: nothing was served
  130  ended by a second SIGINT; 143 by a second SIGTERM
";

const RUN_EXAMPLES: &str = "\
Examples:
  agui run http://127.0.0.1:4100/agents/demo hello
  agui run URL \"What is new?\" --header \"Authorization: Bearer $TOKEN\" --state @state.json
  agui run URL --input input.json --json --result result.json
  agui run URL \"Delete it\" --result thread.json
  agui run URL --input thread.json --resume 'ID={\"approved\": true}' --result thread.json
  git diff | agui run URL -
  agui run http://127.0.0.1:4100/api/copilotkit hello --agent default --thread t1
";

const LIMITS: &str = "\
Limits:
  64 MiB of --input, of a FILE in --state or --resume, and of a message from standard input
  10 MiB of one frame of the answer, of one line of it and of one comment
  1,000 warnings, and 1 MiB of them, are told and kept; the others are counted
";

/// The AG-UI protocol on the command line: an agent to talk to, and a client to talk with.
#[derive(Debug, Parser)]
#[command(name = "agui", version, styles = STYLES, after_help = EXAMPLES)]
#[command(max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    #[command(flatten)]
    pub(crate) log: LogArgs,
}

/// What is logged, and how.
#[derive(Debug, Default, Args)]
pub(crate) struct LogArgs {
    /// What to log to standard error: a level (error, warn, info, debug, trace), or a filter such as
    /// `agui_server=debug` [default: warn]
    #[arg(long, global = true, env = "AGUI_LOG", value_name = "FILTER")]
    pub(crate) log: Option<String>,

    /// How to write the log: as lines of text, or of JSON [default: text]
    #[arg(long, global = true, env = "AGUI_LOG_FORMAT", value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(ServeArgs),
    Run(RunArgs),
}

/// Serve agents: the demo agent, a web page to talk to it, and a CopilotKit runtime
///
/// Front ends made with CopilotKit use runtimeUrl="http://127.0.0.1:4100/api/copilotkit". Their
/// threads are kept in the run log: a page that is loaded again goes on where it was.
///
/// Agents, limits, who may do what and everything else can be told in `agui.toml`, which
/// docs/configuration.md describes, and by variables of the environment: AGUI_LISTEN is `listen`,
/// AGUI_LIMITS__BODY is `limits.body`. An argument counts more than a variable, a variable more than
/// the file.
#[derive(Debug, Default, Args)]
#[command(after_help = SERVE_ENDS)]
pub(crate) struct ServeArgs {
    /// The file to read [default: agui.toml in the working directory, where there is one]
    #[arg(long, env = "AGUI_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Judge the configuration, print what it comes to on standard output, without secrets, and serve
    /// nothing
    #[arg(long)]
    pub(crate) check: bool,

    /// Where to listen; port 0 lets the system choose one [default: 127.0.0.1:4100]
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) listen: Option<String>,

    /// An agent behind a URL, to be served under this name beside those of the file, or beside the
    /// demo agent. The first one is the default agent of the CopilotKit runtime where the
    /// configuration names none. Can be repeated
    #[arg(long = "agent", value_name = "NAME=URL", value_parser = named_url)]
    pub(crate) agents: Vec<(String, String)>,

    /// Where the threads of the CopilotKit runtime are kept: an SQLite file, or `memory:` for as long
    /// as the program runs [default: agui.sqlite in the working directory; memory where that cannot be
    /// used, with a warning]
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Option<String>,

    /// A web origin that may call the agents from a browser, such as `https://app.example`, or `*`
    /// for any; pages served from this machine (localhost, 127.0.0.1, `[::1]`) always may. Can be
    /// repeated
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) allow_origin: Vec<String>,

    /// A host name that the server answers to, such as `app.example`. Where it listens on a loopback
    /// address, requests for another name than localhost are refused: they come from a web page that
    /// had its own name lead here. Elsewhere any name is answered to unless some are given. Can be
    /// repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,

    /// How many connections there may be at once; one more takes the place of one that waits for a
    /// request, or is told 503. No more than the limit of open files has room for [default: 512]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) max_connections: Option<String>,

    /// Silence after which a comment keeps the connection alive, such as 15s; 0 sends none
    /// [default: 15s]
    #[arg(long, value_name = "DURATION")]
    pub(crate) keep_alive: Option<String>,
}

/// Run an agent once and print its answer as it streams
///
/// The assistant's text goes to standard output. What else happens (tool calls, steps, state, usage)
/// is told in one line each on standard error, when that is a terminal or with --verbose; what the
/// run stopped to ask, how it failed, and what of your own input is not sent is always told.
///
/// The first Ctrl-C or SIGTERM cancels the run: the connection is closed, and what came is written
/// to the --result. Who does not read what is written is waited for one more second at most. A
/// second one ends the program at once.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
#[command(after_long_help = format!("{RUN_EXAMPLES}\n{EXIT_CODES}\n{LIMITS}"))]
pub(crate) struct RunArgs {
    /// The agent's URL
    pub(crate) url: String,

    /// What to say: appended to the messages as a user message; - reads it from standard input
    #[arg(required_unless_present_any = ["input", "resume"])]
    pub(crate) message: Option<String>,

    /// A whole run input as JSON, from a file or from standard input (-); or the result file of an
    /// earlier run, to go on with its thread, state, tools, context and forwarded properties. A
    /// missing threadId or runId is minted, the other options and MESSAGE are put on top. With a
    /// member openInterrupts, as result files have it, nothing is sent unless `resume` answers all
    /// of them
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,

    /// The URL is that of a CopilotKit runtime, and this is how it is asked: by paths (rest), by
    /// envelopes posted to the URL (single), or by whichever of the two it answers (auto, also
    /// without a value). Unless this or --agent is given, a URL that refuses a run with 400, 404 or
    /// 405 is asked by GET whether it is a runtime that has paths, and then it is
    #[arg(long, value_name = "TRANSPORT", value_enum)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "auto")]
    pub(crate) runtime: Option<RuntimeTransport>,

    /// Which agent of the runtime; says that the URL is a runtime's [default: default]
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// The thread to go on with [default: a new one]. What a runtime holds of it is asked for first
    /// and goes before MESSAGE, unless there is an --input
    #[arg(long, value_name = "ID")]
    pub(crate) thread: Option<String>,

    /// The shared state as JSON, or @FILE to read it from (@- is standard input)
    #[arg(long, value_name = "JSON")]
    pub(crate) state: Option<String>,

    /// The answer to an interrupt of an earlier run: its id and the answer as JSON, or @FILE to read
    /// that from. ID= answers without a value, ID alone cancels. Can be repeated
    #[arg(long, value_name = "ID[=JSON]")]
    pub(crate) resume: Vec<String>,

    /// A header to send with the request. Can be repeated; of a name, the last one is sent. Headers
    /// of the connection and of the body cannot be set
    #[arg(long, value_name = "NAME: VALUE")]
    pub(crate) header: Vec<String>,

    /// The form to ask the agent to answer in; it may answer in server-sent events all the same
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    pub(crate) wire: Wire,

    /// The newest version that the agent is known to speak, such as 0.0.39 or 1.0: what it cannot
    /// take is reshaped or left out [default: the current one]
    #[arg(long, value_name = "VERSION")]
    pub(crate) max_protocol_version: Option<PeerVersion>,

    /// Seconds that the agent has to close the stream, or to start another run on it, once a run has
    /// ended; then it is closed from here, with a warning
    #[arg(long, default_value = "2", value_name = "SECONDS", value_parser = seconds)]
    pub(crate) linger: Duration,

    /// Print every event as one line of JSON on standard output, in place of the text
    #[arg(long)]
    pub(crate) json: bool,

    /// Write what the run came to into FILE as one JSON object, however it ends. A FILE that is there
    /// is replaced as a whole, and keeps its mode and its links
    #[arg(long, value_name = "FILE")]
    pub(crate) result: Option<PathBuf>,

    /// Tell what happens beside the text also when standard error is no terminal
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

/// How a runtime is asked.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum RuntimeTransport {
    /// A path for each thing
    Rest,
    /// Envelopes
    Single,
    /// Whichever it answers
    Auto,
}

impl RuntimeTransport {
    pub(crate) fn transport(self) -> Transport {
        match self {
            Self::Rest => Transport::Rest,
            Self::Single => Transport::Single,
            Self::Auto => Transport::Auto,
        }
    }
}

/// The two forms of a stream of events.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum Wire {
    /// Server-sent events
    #[default]
    Sse,
    /// Frames of protobuf
    Proto,
}

impl Wire {
    pub(crate) fn form(self) -> WireForm {
        match self {
            Self::Sse => WireForm::Sse,
            Self::Proto => WireForm::Proto,
        }
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().and_then(|it| Duration::try_from_secs_f64(it).ok());
    seconds.ok_or_else(|| "expected a number of seconds such as 15 or 0.5".into())
}

/// A name, and the URL of the agent that has it.
fn named_url(text: &str) -> Result<(String, String), String> {
    const EXAMPLE: &str = "expected a name and a URL, such as weather=http://127.0.0.1:8000/agent";
    let (name, url) = text.split_once('=').ok_or(EXAMPLE)?;
    if !is_agent_name(name) {
        return Err(format!("a name has up to 64 letters, digits, -, _ and .; {EXAMPLE}"));
    }
    if matches!(name, "demo" | Agents::DEFAULT) {
        return Err(format!("{name} is taken: the first agent given here is the default one"));
    }
    Ok((name.into(), url.into()))
}

/// Whether an agent may be called this: a name is a part of a path, of a variable of the
/// environment, and of a URL that people type.
pub(crate) fn is_agent_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let whole = !name.is_empty() && name.len() <= 64 && name.chars().all(plain);
    whole && !name.starts_with('.')
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_definitions_agree_with_each_other() {
        super::Cli::command().debug_assert();
    }
}
