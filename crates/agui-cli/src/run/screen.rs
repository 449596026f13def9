//! What `agui run` prints: the answer on standard output, what else happens on standard error.

use std::io::{self, IsTerminal, Write};

use agui_stream::Warning;
use agui_stream::fold::{Change, Conversation};
use agui_types::{Event, Interrupt, JsonPointer, Message, MessageId, ToJson};

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
    /// The message whose text stands last on standard output, until it ends.
    speaker: Option<MessageId>,
    /// Whether the last line on standard output is not ended.
    line_open: bool,
    /// Whether standard output was closed by whoever read it.
    closed: bool,
}

impl Screen {
    /// `talks`: tells what happens beside the text also where standard error is no terminal.
    pub(super) fn new(shows: Shows, talks: bool) -> Self {
        let (out, err) = (io::stdout(), io::stderr());
        let (talks, dims) = (talks || err.is_terminal(), colours(&err));
        let out_terminal = out.is_terminal();
        Self {
            out,
            err,
            shows,
            out_terminal,
            talks,
            dims,
            speaker: None,
            line_open: false,
            closed: false,
        }
    }
}

impl<O: Write, E: Write> Witness for Screen<O, E> {
    fn event(
        &mut self,
        event: &Event,
        changes: &[Change],
        conversation: &Conversation,
    ) -> io::Result<()> {
        let shown = match (self.shows, event) {
            (Shows::Json, event) => self.print(&format!("{}\n", event.to_json())),
            // Messages of an echoed input are nothing that is said now.
            (Shows::Text, Event::RunStarted(_)) => Ok(()),
            (Shows::Text, _) => self.text(changes, conversation),
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
        let talks = self.talks;
        for id in conversation.pending_tool_calls().filter(|_| talks) {
            let call = conversation.messages().find_call(id.as_str());
            let name = call.map_or("?", |(_, call)| &call.function.name);
            self.tell(&format!("tool call {name} waits for an answer ({id})"));
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
        self.speaker = None;
        if self.line_open {
            self.print("\n")?;
        }
        self.out.flush()
    }

    fn print(&mut self, text: &str) -> io::Result<()> {
        self.line_open = !text.ends_with('\n');
        if self.out_terminal {
            self.out.write_all(harmless(text).as_bytes())
        } else {
            self.out.write_all(text.as_bytes())
        }
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
        self.print(text)
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
        Change::ActivityPatched { message, paths } => match messages.find(message.as_str())? {
            Message::Activity(activity) => {
                format!("activity {}: {}", activity.activity_type, listed(paths))
            }
            _ => return None,
        },
        Change::TextEnded { message } => match messages.find(message.as_str())? {
            Message::Reasoning(message) => format!("reasoning: {}", shortened(&message.content)),
            _ => return None,
        },
        Change::StateReplaced => {
            format!("state: {}", shortened(conversation.state().to_json().as_str()))
        }
        Change::StatePatched { paths } => format!("state: {}", listed(paths)),
        _ => return None,
    })
}

/// What an interrupt asks, and its id to answer it by.
fn about_interrupt(interrupt: &Interrupt) -> String {
    let asks = interrupt.message.as_deref().unwrap_or(&interrupt.reason);
    format!("{} ({})", shortened(asks), interrupt.id)
}

/// Where a patch changed something.
fn listed(paths: &[JsonPointer]) -> String {
    let paths: Vec<&str> = paths.iter().map(JsonPointer::as_str).collect();
    shortened(&paths.join(" "))
}

/// The beginning of a text, in one line.
fn shortened(text: &str) -> String {
    let mut line = String::new();
    let mut words = text.split_whitespace();
    while let Some(word) = words.next().filter(|_| line.len() <= MOST_SHOWN) {
        line.extend((!line.is_empty()).then_some(' '));
        line.extend(word.chars().take(MOST_SHOWN + 1));
    }
    match line.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if words.next().is_some() => format!("{line} …"),
        None => line,
    }
}

/// The text without what could control a terminal: control characters other than line ends and tabs
/// are shown as U+FFFD.
fn harmless(text: &str) -> String {
    let shown = |c: char| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use agui_stream::fold::Applied;
    use agui_types::event::{
        MessagesSnapshot, TextMessageContent, TextMessageEnd, TextMessageStart, ToolCallArgs,
        ToolCallEnd, ToolCallStart,
    };
    use agui_types::json::Value;
    use agui_types::message::AssistantMessage;

    /// What is printed on standard output and standard error.
    fn printed(
        events: &[Event],
        set_up: impl FnOnce(&mut Screen<Vec<u8>, Vec<u8>>),
    ) -> (String, String) {
        let mut screen = Screen {
            out: Vec::new(),
            err: Vec::new(),
            shows: Shows::Text,
            out_terminal: false,
            talks: true,
            dims: false,
            speaker: None,
            line_open: false,
            closed: false,
        };
        set_up(&mut screen);
        let mut conversation = Conversation::new(Vec::new(), Value::Null);
        let mut applied = Applied::default();
        for event in events {
            conversation.apply(event, &mut applied);
            screen.event(event, &applied.changes, &conversation).unwrap();
        }
        screen.end().unwrap();
        (String::from_utf8(screen.out).unwrap(), String::from_utf8(screen.err).unwrap())
    }

    fn start(id: &str) -> Event {
        TextMessageStart::new(id).into()
    }

    fn say(id: &str, text: &str) -> Event {
        TextMessageContent::new(id, text).into()
    }

    fn end(id: &str) -> Event {
        TextMessageEnd::new(id).into()
    }

    fn call(name: &str, arguments: &str) -> [Event; 3] {
        [
            ToolCallStart::new("c", name).into(),
            ToolCallArgs::new("c", arguments).into(),
            ToolCallEnd::new("c").into(),
        ]
    }

    #[test]
    fn every_message_has_lines_of_its_own() {
        let events = [
            start("a"),
            say("a", "one "),
            say("a", "two"),
            end("a"),
            start("b"),
            say("b", "three\n"),
            end("b"),
            start("c"),
            start("d"),
            say("c", "four"),
            say("d", "five"),
            say("c", "six"),
        ];
        let (out, err) = printed(&events, |_| {});
        assert_eq!(out, "one two\nthree\nfour\nfive\nsix\n");
        assert_eq!(err, "");
    }

    #[test]
    fn a_message_of_a_snapshot_is_printed_once() {
        let message = |id: &str, text: &str| AssistantMessage::new(id).content(text).into();
        let snapshot = MessagesSnapshot::new(vec![message("a", "said"), message("b", "new")]);
        let events = [start("a"), say("a", "said"), end("a"), snapshot.into()];
        assert_eq!(printed(&events, |_| {}).0, "said\nnew\n");
    }

    #[test]
    fn a_terminal_is_not_controlled_by_what_an_agent_says() {
        // C-93
        let evil = "a\x1b]0;title\x07b\u{9b}31mc\r\nd\te";
        let events = [&[start("a"), say("a", evil), end("a")][..], &call("\x1b[2J", evil)].concat();
        let (out, err) = printed(&events, |screen| screen.out_terminal = true);
        assert!(!out.contains(['\x1b', '\x07', '\u{9b}', '\r']), "{out:?}");
        assert!(out.ends_with("c\u{fffd}\nd\te\n"), "{out:?}");
        assert!(!err.contains(['\x1b', '\u{9b}']), "{err:?}");
        assert_eq!(printed(&events, |_| {}).0, format!("{evil}\n"), "a pipe gets it as it is");

        let (out, _) = printed(&events, |screen| {
            (screen.out_terminal, screen.shows) = (true, Shows::Json);
        });
        assert!(!out.contains(['\x1b', '\u{9b}']), "{out:?}");
    }

    #[test]
    fn what_is_told_beside_does_not_tear_the_answer_on_a_terminal() {
        let spoken = [start("a"), say("a", "half "), say("a", "whole"), end("a")];
        let events = [&spoken[..2], &call("f", "{ \"a\":\n1 }"), &spoken[2..]].concat();
        let (out, err) = printed(&events, |screen| screen.out_terminal = true);
        assert_eq!(out, "half \nwhole\n");
        assert_eq!(err, "tool call f { \"a\": 1 }\n");
        assert_eq!(printed(&events, |_| {}).0, "half whole\n");
        let (_, err) = printed(&events, |screen| screen.dims = true);
        assert_eq!(err, "\x1b[2mtool call f { \"a\": 1 }\x1b[0m\n");
        assert_eq!(printed(&events, |screen| screen.talks = false).1, "");
    }

    #[test]
    fn a_line_is_no_longer_than_it_may_be() {
        for text in ["x".repeat(MOST_SHOWN), "é".repeat(MOST_SHOWN)] {
            assert_eq!(shortened(&text), text);
            assert_eq!(shortened(&format!("{text}y")), format!("{text}…"));
        }
        let words = shortened(&"word ".repeat(1_000_000));
        assert!(words.chars().count() <= MOST_SHOWN + 2 && words.ends_with('…'), "{words}");
        assert_eq!(shortened(" a\n  b\tc "), "a b c");
    }
}
