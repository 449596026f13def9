//! `agui run`: one run of any agent, printed as it streams.

mod exchange;
mod input;
mod remote;
mod report;
mod result_file;
mod screen;
#[cfg(test)]
mod vectors;

use std::io;
use std::process::ExitCode;

use agui_agent::{BuildError, CancellationToken, HttpAgent};
use agui_stream::Warning;
use agui_stream::fold::{Change, Conversation};
use agui_types::Event;
use agui_types::json::Value;

use crate::args::RunArgs;
use crate::failure::Failure;
use crate::signals::Signals;
use exchange::{Ended, Witness, converse};
use input::Asked;
use remote::Remote;
use report::Report;
use result_file::ResultFile;
use screen::{Screen, Shows};

/// Runs the agent once.
pub(crate) fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    let agent = agent(args)?;
    let result_file = args.result.as_deref().map(ResultFile::new).transpose()?;
    let Asked { input, open_interrupts } = input::assemble(args)?;
    let shows = if args.json { Shows::Json } else { Shows::Text };
    let mut notes = Notes {
        screen: Screen::new(shows, args.verbose),
        warnings: Vec::new(),
        knows_interrupts: open_interrupts.is_some(),
    };
    let mut conversation = Conversation::new(Vec::new(), Value::Object(Default::default()))
        .with_open_interrupts(open_interrupts.unwrap_or_default());
    let peer = args.max_protocol_version.unwrap_or_default();

    let ended = in_runtime(async |cancel| {
        converse(&agent, peer, &input, &mut conversation, cancel, &mut notes).await
    })?;
    notes.screen.tell_ending(&ended, &conversation);
    if let Some(file) = result_file {
        let report = Report::new(&ended, &conversation, &notes.warnings);
        file.write(&report.to_text())?;
    }
    Ok(ended.verdict.exit_code().into())
}

/// The agent behind the URL.
///
/// Fails where the URL or a header cannot be used. What a header holds is not repeated.
fn agent(args: &RunArgs) -> Result<Remote, Failure> {
    let mut builder = HttpAgent::builder(&args.url).wire(args.wire.form());
    for header in &args.header {
        let Some((name, value)) = header.split_once(':') else {
            return Err(Failure::usage("a --header has no colon")
                .hint("give a name and a value: --header \"Authorization: Bearer ...\""));
        };
        builder = builder.header(name.trim(), value.trim());
    }
    Remote::new(builder).map_err(|error| match error {
        BuildError::Url(_) => Failure::usage(error.to_string())
            .hint("give an absolute one, such as http://127.0.0.1:4100/agents/demo"),
        BuildError::Header { .. } => Failure::usage(error.to_string()),
        _ => Failure::new("the request cannot be made").because(error),
    })
}

/// Talks until the run is over. The first signal cancels the run, the second one ends the program at
/// once.
fn in_runtime(talk: impl AsyncFnOnce(CancellationToken) -> Ended) -> Result<Ended, Failure> {
    // The thread that writes may be held up by whoever reads; signals are taken in another.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::new("the program's threads cannot be started").because(error))?;
    runtime.block_on(async {
        let mut signals = Signals::new().map_err(Failure::no_signals)?;
        let cancel = CancellationToken::new();
        let on_signal = cancel.clone();
        tokio::spawn(async move {
            signals.next().await;
            on_signal.cancel();
            let code = signals.next().await;
            std::process::exit(code.into());
        });
        Ok(talk(cancel).await)
    })
}

/// Prints what a run delivers, and keeps its warnings.
struct Notes {
    screen: Screen,
    warnings: Vec<Warning>,
    /// Whether it is known which interrupts are open.
    knows_interrupts: bool,
}

impl Witness for Notes {
    fn event(
        &mut self,
        event: &Event,
        changes: &[Change],
        conversation: &Conversation,
    ) -> io::Result<()> {
        self.screen.event(event, changes, conversation)
    }

    fn warning(&mut self, warning: &Warning) {
        // C-86 judges answers by the open interrupts.
        if warning.rule == "C-86" && !self.knows_interrupts {
            return;
        }
        self.screen.warning(warning);
        self.warnings.push(warning.clone());
    }
}
