//! What `agui run` prints: the answer on standard output, what else happens on standard error.

use std::io::{self, IsTerminal, Write};

use agui_stream::Warning;
use agui_stream::fold::{Change, Conversation};
use agui_types::{Event, Interrupt, Message, MessageId, ToJson};

use super::exchange::{Ended, Witness};
use super::report::Verdict;
use crate::colours;

/// The most characters of something in a line on standard error.
const MOST_SHOWN: usize = 200;

const RESUME_HINT: &str = "hint: answer with --input and a `resume` that has an entry for each id: \
    {\"interruptId\": \"...\", \"status\": \"resolved\", \"payload\": ...}";

/// What goes to standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shows {
    /// The assistant's text.
    Text,
    /// Every event as a line of JSON.
    Json,
}

/// Standard output and standard error, in step with each other.
pub(super) struct Screen<O = io::Stdout, E = io::Stderr> {
    out: O,
    err: E,
    shows: Shows,
    /// A terminal shows the answer without what could control it.
    out_terminal: bool,
    /// Whether to tell what happens beside the text.
    talks: bool,
    dims: bool,
    /// The message whose text stands last on standard output, where its line is not ended.
    speaker: Option<MessageId>,
    /// Whether standard output was closed by whoever read it.
    closed: bool,
}

impl Screen {
    /// `talks`: tells what happens beside the text also where standard error is no terminal.
    pub(super) fn new(shows: Shows, talks: bool) -> Self {
        let (out, err) = (io::stdout(), io::stderr());
        let (talks, dims) = (talks || err.is_terminal(), colours(&err));
        let out_terminal = out.is_terminal();
        Self { out, err, shows, out_terminal, talks, dims, speaker: None, closed: false }
    }
}

impl<O: Write, E: Write> Witness for Screen<O, E> {
    fn event(
        &mut self,
        event: &Event,
        changes: &[Change],
        conversation: &Conversation,
    ) -> io::Result<()> {
        let shown = match self.shows {
            Shows::Json => writeln!(self.out, "{}", event.to_json()),
            Shows::Text => self.text(changes, conversation),
        };
        shown.and_then(|()| self.out.flush()).inspect_err(|error| {
            self.closed = error.kind() == io::ErrorKind::BrokenPipe;
        })?;
        if self.talks {
            if let Some(line) = about_event(event) {
                self.tell(&line);
            }
            for line in changes.iter().filter_map(|change| about_change(change, conversation)) {
                self.tell(&line);
            }
        }
        Ok(())
    }

    fn warning(&mut self, warning: &Warning) {
        if self.talks {
            self.tell(&format!("warning: {warning}"));
        }
    }
}

impl<O: Write, E: Write> Screen<O, E> {
    /// Tells how the run ended, where that is not simply with an answer.
    pub(super) fn tell_ending(&mut self, ended: &Ended, conversation: &Conversation) {
        if self.closed || self.end().is_err() {
            // Whoever stopped reading has had enough.
            return;
        }
        if ended.verdict == Verdict::Interrupted {
            for interrupt in conversation.open_interrupts() {
                self.say_aside(&format!("interrupted: {}", about_interrupt(interrupt)));
            }
            self.say_aside(RESUME_HINT);
        }
        for call in conversation.pending_tool_calls() {
            if self.talks {
                self.tell(&format!("tool call {call} waits for an answer"));
            }
        }
        let Some(problem) = &ended.problem else {
            if ended.verdict == Verdict::Cancelled {
                self.say_aside("cancelled: the agent stopped the run");
            }
            return;
        };
        let what = match ended.verdict {
            Verdict::Cancelled => "cancelled",
            Verdict::Failed => "failed",
            Verdict::Rejected if ended.request.is_none() => "error: the input was not sent",
            Verdict::Rejected => "error: the stream is rejected",
            _ => "error",
        };
        let code = problem.code.as_deref().map(|code| format!(" ({code})")).unwrap_or_default();
        self.say_aside(&format!("{what}: {}{code}", problem.message));
        if let Some(hint) = &problem.hint {
            self.say_aside(&format!("hint: {hint}"));
        }
    }

    /// Ends the line that is open on standard output.
    fn end(&mut self) -> io::Result<()> {
        if self.speaker.take().is_some() {
            self.out.write_all(b"\n")?;
        }
        self.out.flush()
    }

    /// Tells what happens beside the text, in a dimmed line.
    fn tell(&mut self, line: &str) {
        let line = harmless(line);
        self.aside(&if self.dims { format!("\x1b[2m{line}\x1b[0m") } else { line });
    }

    /// Tells something that everyone is told, in a line.
    fn say_aside(&mut self, line: &str) {
        self.aside(&harmless(line));
    }

    /// Writes a line to standard error, where it does not tear one of the answer.
    fn aside(&mut self, line: &str) {
        if self.out_terminal {
            // The answer goes on in a new line. A failure shows at the next piece of it.
            let _ = self.end();
        }
        // Where standard error is gone there is nobody left to tell.
        let _ = writeln!(self.err, "{line}");
    }

    fn text(&mut self, changes: &[Change], conversation: &Conversation) -> io::Result<()> {
        for change in changes {
            match change {
                Change::TextAppended { message: id, bytes } => {
                    let text = assistant_text(conversation, id);
                    let new = text.and_then(|text| text.get(text.len().checked_sub(*bytes)?..));
                    self.say(id, new.unwrap_or_default())?;
                }
                // A message that is there all at once comes with a snapshot.
                Change::MessageCreated { message: id, .. } => {
                    self.say(id, assistant_text(conversation, id).unwrap_or_default())?;
                }
                Change::TextEnded { message } if self.speaker.as_ref() == Some(message) => {
                    self.end()?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Appends to the text of a message, which gets a line of its own where another one was open.
    fn say(&mut self, id: &MessageId, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        if self.speaker.as_ref() != Some(id) {
            self.end()?;
            self.speaker = Some(id.clone());
        }
        if self.out_terminal {
            self.out.write_all(harmless(text).as_bytes())
        } else {
            self.out.write_all(text.as_bytes())
        }
    }
}

/// The text of a message of the assistant's.
fn assistant_text<'a>(conversation: &'a Conversation, id: &MessageId) -> Option<&'a str> {
    match conversation.messages().find(id.as_str())? {
        Message::Assistant(message) => message.content.as_deref(),
        _ => None,
    }
}

/// A line about an event that leaves no trace in the conversation.
fn about_event(event: &Event) -> Option<String> {
    Some(match event {
        Event::RunStarted(event) => format!("run {} of thread {}", event.run_id, event.thread_id),
        Event::StepStarted(event) => format!("step {} starts", event.step_name),
        Event::StepFinished(event) => format!("step {} ends", event.step_name),
        Event::SubagentStarted(event) => format!("subagent {} starts", event.name),
        Event::SubagentFinished(event) => format!("subagent {} ends", event.subagent_run_id),
        Event::SubagentError(event) => {
            format!("subagent {} failed: {}", event.subagent_run_id, event.message)
        }
        Event::Custom(event) => {
            format!("custom {}: {}", event.name, shortened(event.value.as_str()))
        }
        Event::Raw(event) => format!("raw: {}", shortened(event.event.as_str())),
        _ => return None,
    })
}

/// A line about what an event changed.
fn about_change(change: &Change, conversation: &Conversation) -> Option<String> {
    let messages = conversation.messages();
    Some(match change {
        Change::ToolCallEnded { tool_call, .. } => {
            let (_, call) = messages.find_call(tool_call.as_str())?;
            let arguments = shortened(&call.function.arguments);
            format!("tool call {} {arguments}", call.function.name)
        }
        Change::MessageCreated { message, .. } => match messages.find(message.as_str())? {
            Message::Tool(answer) => {
                let called = messages.find_call(answer.tool_call_id.as_str());
                let name = called.map_or("?", |(_, call)| &call.function.name);
                format!("tool result of {name}: {}", shortened(&answer.content.text()))
            }
            Message::Activity(activity) => {
                let content = shortened(activity.content.as_str());
                format!("activity {}: {content}", activity.activity_type)
            }
            _ => return None,
        },
        Change::ActivityPatched { message, .. } => match messages.find(message.as_str())? {
            Message::Activity(activity) => {
                let content = shortened(activity.content.as_str());
                format!("activity {}: {content}", activity.activity_type)
            }
            _ => return None,
        },
        Change::TextEnded { message } => match messages.find(message.as_str())? {
            Message::Reasoning(message) => format!("reasoning: {}", shortened(&message.content)),
            _ => return None,
        },
        Change::StateReplaced | Change::StatePatched { .. } => {
            format!("state: {}", shortened(&conversation.state().to_string()))
        }
        _ => return None,
    })
}

/// What an interrupt asks, and its id to answer it by.
fn about_interrupt(interrupt: &Interrupt) -> String {
    let asks = interrupt.message.as_deref().unwrap_or(&interrupt.reason);
    format!("{} ({})", shortened(asks), interrupt.id)
}

/// The beginning of a text, in one line.
fn shortened(text: &str) -> String {
    let line = text.split_whitespace().flat_map(|word| [" ", word]).skip(1).collect::<String>();
    match line.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// The text without what could control a terminal: control characters other than line ends and tabs
/// are shown as U+FFFD.
fn harmless(text: &str) -> String {
    let shown = |c: char| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c };
    text.chars().map(shown).collect()
}
