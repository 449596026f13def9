//! `agui run`: one run of any agent, printed as it streams.

mod exchange;
mod header;
mod input;
mod output;
mod remote;
mod report;
mod result_file;
mod resume;
mod screen;
mod stop;
mod told;
#[cfg(test)]
mod vectors;
mod warnings;

use std::io;
use std::process::ExitCode;

use agui_agent::{BuildError, HttpAgent};
use agui_stream::Warning;
use agui_stream::fold::{Change, Conversation};
use agui_types::Event;
use agui_types::json::Value;

use crate::args::RunArgs;
use crate::failure::Failure;
use exchange::{Ended, Manner, Witness, converse};
use input::Asked;
use output::Output;
use remote::Remote;
use report::{Problem, Report, Verdict};
use result_file::ResultFile;
use screen::{Screen, Shows};
use stop::Stop;
use warnings::Warnings;

/// Runs the agent once.
pub(crate) fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    let agent = agent(args)?;
    let result_file = args.result.as_deref().map(ResultFile::new).transpose()?;
    let Asked { input, open_interrupts } = input::assemble(args)?;
    // Until here a signal ends the program as it ends any.
    let stop = Stop::default();
    stop.on_signals()?;
    let no_threads = |error| Failure::new("the program's threads cannot be started").because(error);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(no_threads)?;

    let shows = if args.json { Shows::Json } else { Shows::Text };
    let mut notes = Notes {
        screen: Screen::new(shows, args.verbose),
        output: Output::start(io::stdout(), io::stderr(), stop.cancel.clone())
            .map_err(no_threads)?,
        warnings: Warnings::default(),
        knows_interrupts: open_interrupts.is_some(),
    };
    let mut conversation = Conversation::new(Vec::new(), Value::Object(Default::default()))
        .with_open_interrupts(open_interrupts.unwrap_or_default());
    let manner =
        Manner { peer: args.max_protocol_version.unwrap_or_default(), linger: args.linger };

    let ended = runtime.block_on(async {
        let cancel = stop.cancel.clone();
        let asked = input.to_json();
        let ended = converse(&agent, manner, &asked, &mut conversation, cancel, &mut notes).await;
        notes.end(ended, &conversation, || how_to_resume(args, &agent, &conversation)).await
    });
    if let Some(file) = result_file {
        let report = Report::new(&ended, &input, &conversation, &notes.warnings);
        file.write(&report.to_text(), &stop)?;
    }
    Ok(ended.verdict.exit_code().into())
}

/// The agent behind the URL.
///
/// Fails where the URL or a header cannot be used. What a header holds is not repeated.
fn agent(args: &RunArgs) -> Result<Remote, Failure> {
    let mut builder = HttpAgent::builder(&args.url).wire(args.wire.form());
    for header in &args.header {
        let (name, value) = header::parse(header)?;
        builder = builder.header(name, value);
    }
    Remote::new(builder).map_err(|error| match error {
        BuildError::Url(_) => Failure::usage(error.to_string())
            .hint("give an absolute one, such as http://127.0.0.1:4100/agents/demo"),
        BuildError::Header { .. } => Failure::usage(error.to_string())
            .hint("a value has no control characters, such as line ends"),
        _ => Failure::new("the request cannot be made").because(error),
    })
}

/// What to type to answer what a run stopped to ask. What may be secret is not repeated.
fn how_to_resume(args: &RunArgs, agent: &Remote, conversation: &Conversation) -> String {
    let Some(file) = &args.result else {
        return "with --result FILE the thread is kept, and --input FILE --resume ID=JSON goes on \
            with it; an agent that keeps its threads takes --thread ID --resume ID=JSON"
            .into();
    };
    let mut words = vec![Some("agui run".into()), resume::quoted(&agent.display_url())];
    for name in args.header.iter().filter_map(|header| header::parse(header).ok()) {
        words.push(Some(format!("--header \"{}: ...\"", name.0)));
    }
    let file = resume::quoted(&file.to_string_lossy());
    words.push(file.map(|file| format!("--input {file} --result {file}")));
    for interrupt in conversation.open_interrupts() {
        let answer = format!("{}={}", interrupt.id, resume::example(interrupt));
        words.push(resume::quoted(&answer).map(|answer| format!("--resume {answer}")));
    }
    let words: Option<Vec<String>> = words.into_iter().collect();
    words.map(|words| format!("answer with {}", words.join(" "))).unwrap_or_else(|| {
        "answer with --input FILE and a `resume` in it that has an entry for each id".into()
    })
}

/// Prints what a run delivers, and keeps its warnings.
struct Notes {
    screen: Screen,
    output: Output,
    warnings: Warnings,
    /// Whether it is known which interrupts are open.
    knows_interrupts: bool,
}

impl Notes {
    /// Tells how the run ended, and waits until all is written: where standard output could not be,
    /// that is how it ended.
    async fn end(
        &mut self,
        mut ended: Ended,
        conversation: &Conversation,
        resume: impl FnOnce() -> String,
    ) -> Ended {
        self.screen.finish(conversation);
        self.settle().await;
        self.output.flush().await;
        let mut silent = false;
        if let Some(error) = self.output.failure() {
            // Whoever stopped reading has had enough.
            silent = error.kind() == io::ErrorKind::BrokenPipe;
            ended.verdict = if silent { Verdict::Cancelled } else { Verdict::Failed };
            ended.problem = Some(Problem::output(error));
        }
        if !silent {
            self.screen.ending(&ended, conversation, self.warnings.omitted(), resume);
            let pieces = self.screen.take();
            self.output.write_last(pieces).await;
        }
        ended
    }
}

impl Witness for Notes {
    fn event(&mut self, event: &Event, changes: &[Change], conversation: &Conversation) {
        self.screen.event(event, changes, conversation);
    }

    fn warning(&mut self, warning: &Warning) {
        if self.warnings.push(warning.clone()) {
            self.screen.warning(warning);
        }
    }

    fn input_warning(&mut self, warning: &Warning) {
        // C-86 judges answers by the open interrupts.
        if warning.rule == "C-86" && !self.knows_interrupts {
            return;
        }
        if self.warnings.push(warning.clone()) {
            self.screen.input_warning(warning);
        }
    }

    fn omitted(&mut self, count: u64) {
        self.warnings.omit(count);
    }

    async fn settle(&mut self) {
        let pieces = self.screen.take();
        if !pieces.is_empty() {
            self.output.write(pieces).await;
        }
    }
}
