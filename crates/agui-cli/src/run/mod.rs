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
mod thread;
mod told;
#[cfg(test)]
mod vectors;
mod warnings;

use std::io;
use std::process::ExitCode;

use agui_agent::runtime::Transport;
use agui_agent::{BuildError, HttpAgent};
use agui_runtime::Agents;
use agui_stream::Warning;
use agui_stream::fold::{Change, Conversation};
use agui_types::Event;
use agui_types::json::Value;
use clap::ValueEnum;

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
    let mut agent = agent(args)?;
    let result_file = args.result.as_deref().map(ResultFile::new).transpose()?;
    let mut asked = input::assemble(args)?;
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
        knows_interrupts: false,
    };
    let mut conversation = Conversation::new(Vec::new(), Value::Object(Default::default()));

    let ended = runtime.block_on(async {
        let mut ended = ask(args, &agent, &mut asked, &mut conversation, &stop, &mut notes).await;
        // What refuses a run for such a reason has not begun one.
        if agent.runtime().is_none()
            && matches!(ended.refused, Some(400 | 404 | 405))
            && agent.is_runtime().await
        {
            ended = ask(args, &agent, &mut asked, &mut conversation, &stop, &mut notes).await;
        }
        notes.end(ended, &conversation, || how_to_resume(args, &agent, &conversation)).await
    });
    if let Some(file) = result_file {
        let report = Report::new(&ended, &asked.input, &conversation, &notes.warnings);
        file.write(&report.to_text(), &stop)?;
    }
    Ok(ended.verdict.exit_code().into())
}

/// Has one run be made, on top of what a runtime holds of the thread.
async fn ask(
    args: &RunArgs,
    agent: &Remote,
    asked: &mut Asked,
    conversation: &mut Conversation,
    stop: &Stop,
    notes: &mut Notes,
) -> Ended {
    let manner =
        Manner { peer: args.max_protocol_version.unwrap_or_default(), linger: args.linger };
    if let Some(agent) = agent.runtime()
        && args.thread.is_some()
        && args.input.is_none()
    {
        let cancel = stop.cancel.clone();
        let taken_up = thread::take_up(agent, manner, asked, args.state.is_none(), cancel).await;
        if let Err(ended) = taken_up {
            return ended;
        }
    }
    notes.knows_interrupts = asked.open_interrupts.is_some();
    *conversation = Conversation::new(Vec::new(), Value::Object(Default::default()))
        .with_open_interrupts(asked.open_interrupts.clone().unwrap_or_default());
    let (input, cancel) = (asked.input.to_json(), stop.cancel.clone());
    let ended = converse(agent, manner, &input, conversation, cancel, notes).await;
    let goes_on = ended.request.is_some() && conversation.ending().is_none();
    if stop.cancel.is_cancelled() && goes_on {
        let id = |name| match asked.input.get(name) {
            Some(Value::String(id)) => id.as_str(),
            _ => "",
        };
        agent.stop(id("threadId"), id("runId")).await;
    }
    ended
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
    let agent = Remote::new(builder).map_err(|error| match error {
        BuildError::Url(_) => Failure::usage(error.to_string())
            .hint("give an absolute one, such as http://127.0.0.1:4100/agents/demo"),
        BuildError::Header { .. } => Failure::usage(error.to_string())
            .hint("a value has no control characters, such as line ends"),
        _ => Failure::new("the request cannot be made").because(error),
    })?;
    let name = args.agent.as_deref().unwrap_or(Agents::DEFAULT);
    Ok(match args.runtime {
        Some(runtime) => agent.in_runtime(runtime.transport(), name),
        None if args.agent.is_some() => agent.in_runtime(Transport::Auto, name),
        None => agent,
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
    if let Some(runtime) = args.runtime.and_then(|it| it.to_possible_value()) {
        words.push(Some(format!("--runtime={}", runtime.get_name())));
    }
    if let Some(name) = &args.agent {
        words.push(resume::quoted(name).map(|name| format!("--agent {name}")));
    }
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
        // The same input may be sent to the same URL as that of a runtime.
        if self.warnings.kept().contains(warning) {
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
