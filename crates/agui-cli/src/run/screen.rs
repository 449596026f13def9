//! What `agui run` prints: the answer on standard output, what else happens on standard error.

use std::collections::{HashMap, VecDeque};
use std::io::{self, IsTerminal};

use agui_stream::Warning;
use agui_stream::fold::{Change, Conversation};
use agui_types::{Event, Message, MessageId, SubagentRunId, ToJson};

use super::exchange::Ended;
use super::output::{Piece, To};
use super::report::Verdict;
use super::told::{Subagents, about, about_interrupt, about_usage};
use crate::logging::colours;
use crate::terminal::{self, first, shortened};

/// The most characters of an error in a line. A refusal may come with a whole page.
const MOST_OF_AN_ERROR: usize = 2000;

/// How many bytes of a message may wait while another one is being said.
const MOST_WAITING: usize = 400;

/// A message that is not said yet.
struct Waits {
    /// From which byte on.
    from: usize,
    /// It has no more to say.
    ended: bool,
}

/// What goes to standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shows {
    /// The assistant's text.
    Text,
    /// Every event as a line of JSON.
    Json,
}

/// Makes what is printed; somebody else writes it.
///
/// Of messages that are said at the same time one has the floor until it ends, or until another one
/// has waited for long.
pub(super) struct Screen {
    shows: Shows,
    /// A terminal shows the answer without what could control it.
    out_terminal: bool,
    /// Whether to tell what happens beside the text.
    talks: bool,
    dims: bool,
    /// What is printed and not taken yet.
    printed: Vec<Piece>,
    /// The message whose text stands last on standard output, until it ends.
    speaker: Option<MessageId>,
    /// The messages that wait for it to end, in order. Some may have had their turn meanwhile.
    queue: VecDeque<MessageId>,
    waits: HashMap<MessageId, Waits>,
    /// Who was last said to speak; the agent itself at first.
    owner: Option<SubagentRunId>,
    subagents: Subagents,
    /// Whether the last line on standard output is not ended.
    line_open: bool,
    /// Whether an event changed the state.
    state_changed: bool,
}

impl Screen {
    /// `talks`: tells what happens beside the text also where standard error is no terminal.
    pub(super) fn new(shows: Shows, talks: bool) -> Self {
        let (out, err) = (io::stdout(), io::stderr());
        Self {
            shows,
            out_terminal: out.is_terminal(),
            talks: talks || err.is_terminal(),
            dims: colours(&err),
            printed: Vec::new(),
            speaker: None,
            queue: VecDeque::new(),
            waits: HashMap::new(),
            owner: None,
            subagents: Subagents::default(),
            line_open: false,
            state_changed: false,
        }
    }

    /// What was printed since this was last asked.
    pub(super) fn take(&mut self) -> Vec<Piece> {
        std::mem::take(&mut self.printed)
    }

    /// Shows an event, with what it changed.
    pub(super) fn event(&mut self, event: &Event, changes: &[Change], conversation: &Conversation) {
        self.subagents.note(event);
        match (self.shows, event) {
            (Shows::Json, event) => {
                let json = event.to_json();
                let json = if self.out_terminal { terminal::json(&json) } else { json };
                self.print(json + "\n");
            }
            // Messages of an echoed input are nothing that is said now.
            (Shows::Text, Event::RunStarted(_)) => {}
            (Shows::Text, _) => self.text(changes, conversation),
        }
        self.state_changed |= changes
            .iter()
            .any(|change| matches!(change, Change::StateReplaced | Change::StatePatched { .. }));
        if self.talks {
            for line in about(event, changes, conversation, &self.subagents) {
                self.tell(line);
            }
        }
    }

    /// Tells of a warning about the stream, where what happens is told at all.
    pub(super) fn warning(&mut self, warning: &Warning) {
        if self.talks {
            self.tell(format!("warning: {}", first(&warning.to_string(), MOST_OF_AN_ERROR)));
        }
    }

    /// Tells of a warning about what the caller has given.
    pub(super) fn input_warning(&mut self, warning: &Warning) {
        let warning = first(&warning.to_string(), MOST_OF_AN_ERROR);
        self.say_aside(format!("warning: the input is not sent as it is: {warning}"));
    }

    /// Says what still waits to be said, and ends the line.
    pub(super) fn finish(&mut self, conversation: &Conversation) {
        loop {
            self.end();
            self.pass_on(conversation);
            if self.speaker.is_none() {
                break;
            }
        }
    }

    /// Tells how the run ended, where that is not simply with an answer. `omitted` is how many
    /// warnings were not told; `resume` is how to answer what it stopped to ask.
    pub(super) fn ending(
        &mut self,
        ended: &Ended,
        conversation: &Conversation,
        omitted: u64,
        resume: impl FnOnce() -> String,
    ) {
        if omitted > 0 {
            self.say_aside(format!(
                "warning: {omitted} more warnings are counted, and not listed anywhere"
            ));
        }
        if self.talks {
            self.outcome(conversation);
        }
        if ended.verdict == Verdict::Interrupted {
            for interrupt in conversation.open_interrupts() {
                let asks = about_interrupt(interrupt, &self.subagents);
                self.say_aside(format!("interrupted: {asks}"));
            }
            self.say_aside(format!("hint: {}", resume()));
        }
        let Some(problem) = &ended.problem else {
            if ended.verdict == Verdict::Cancelled {
                self.say_aside("cancelled: the agent stopped the run".into());
            }
            return;
        };
        let what = match ended.verdict {
            Verdict::Cancelled => "cancelled",
            Verdict::Failed if &*problem.class == "run-error" => "failed",
            Verdict::Rejected if ended.request.is_none() => "error: the input was not sent",
            Verdict::Rejected => "error: the stream is rejected",
            _ => "error",
        };
        let code = problem.code.as_deref().map(|code| format!(" ({})", shortened(code)));
        let message = first(&problem.message, MOST_OF_AN_ERROR);
        self.say_aside(format!("{what}: {message}{}", code.unwrap_or_default()));
        if let Some(hint) = &problem.hint {
            self.say_aside(format!("hint: {}", first(hint, MOST_OF_AN_ERROR)));
        }
    }

    /// Tells what the run came to beside the text, in short.
    fn outcome(&mut self, conversation: &Conversation) {
        if let Some(result) = conversation.result() {
            self.tell(format!("result: {}", shortened(result.as_str())));
        }
        if self.state_changed {
            let state = conversation.state().to_json();
            self.tell(format!("state at the end: {}", shortened(state.as_str())));
        }
        /// More calls and models than anyone would read.
        const MOST_LISTED: usize = 20;
        for usage in conversation.usage().iter().take(MOST_LISTED) {
            self.tell(about_usage(usage));
        }
        for id in conversation.pending_tool_calls().take(MOST_LISTED) {
            let call = conversation.messages().find_call(id.as_str());
            let name = call.map_or("?".into(), |(_, call)| shortened(&call.function.name));
            let id = shortened(id.as_str());
            self.tell(format!("tool call {name} waits for an answer ({id})"));
        }
    }

    /// Ends the line that is open on standard output.
    fn end(&mut self) {
        self.speaker = None;
        if self.line_open {
            self.print("\n".into());
        }
    }

    fn print(&mut self, text: String) {
        self.line_open = !text.ends_with('\n');
        self.printed.push((To::Out, text));
    }

    /// Tells what happens beside the text, in a dimmed line.
    fn tell(&mut self, line: String) {
        self.aside(if self.dims { format!("\x1b[2m{line}\x1b[0m") } else { line });
    }

    /// Tells something that everyone is told, in a line.
    fn say_aside(&mut self, line: String) {
        self.aside(line);
    }

    /// Prints a line to standard error, where it does not tear one of the answer. What it holds from
    /// elsewhere was made safe before.
    fn aside(&mut self, line: String) {
        if self.out_terminal && self.line_open {
            // The answer goes on in a new line.
            self.print("\n".into());
        }
        self.printed.push((To::Err, line + "\n"));
    }

    fn text(&mut self, changes: &[Change], conversation: &Conversation) {
        for change in changes {
            match change {
                Change::TextAppended { message: id, bytes } => {
                    let text = assistant_text(conversation, id);
                    self.say(id, text.len().saturating_sub(*bytes), conversation);
                }
                // A message that is there all at once comes with a snapshot.
                Change::MessageCreated { message: id, .. }
                    if !assistant_text(conversation, id).is_empty() =>
                {
                    self.say(id, 0, conversation);
                    self.falls_silent(id, conversation);
                }
                Change::TextEnded { message: id } | Change::MessageRemoved { message: id } => {
                    self.falls_silent(id, conversation);
                }
                Change::RunEnded { .. } => self.finish(conversation),
                _ => {}
            }
        }
    }

    /// Says what a message holds from this byte on; at once, or once it is its turn.
    fn say(&mut self, id: &MessageId, from: usize, conversation: &Conversation) {
        let text = assistant_text(conversation, id);
        if from >= text.len() {
            return;
        }
        match &self.speaker {
            Some(speaker) if speaker == id => return self.print_from(text, from),
            Some(_) => {}
            None => return self.speak(id, from, conversation),
        }
        let waits = self.waits.entry(id.clone()).or_insert_with(|| {
            self.queue.push_back(id.clone());
            Waits { from, ended: false }
        });
        waits.ended = false;
        let from = waits.from;
        if text.len() - from >= MOST_WAITING {
            // Its place in the queue is passed over when its turn comes.
            self.waits.remove(id);
            self.speak(id, from, conversation);
        }
    }

    /// Takes the floor, and a line of its own.
    fn speak(&mut self, id: &MessageId, from: usize, conversation: &Conversation) {
        self.end();
        let owner = conversation.messages().find(id.as_str()).and_then(Message::attribution);
        if self.talks && self.owner.as_ref() != owner {
            let name = owner.map_or("the agent".into(), |owner| self.subagents.name(owner));
            self.tell(format!("{name} says:"));
        }
        self.owner = owner.cloned();
        self.speaker = Some(id.clone());
        self.print_from(assistant_text(conversation, id), from);
    }

    /// Takes note that a message has no more to say for now.
    fn falls_silent(&mut self, id: &MessageId, conversation: &Conversation) {
        if self.speaker.as_ref() == Some(id) {
            self.end();
            self.pass_on(conversation);
        } else if let Some(waits) = self.waits.get_mut(id) {
            waits.ended = true;
        }
    }

    /// Gives the floor to who waits for it.
    fn pass_on(&mut self, conversation: &Conversation) {
        while self.speaker.is_none()
            && let Some(id) = self.queue.pop_front()
        {
            let Some(Waits { from, ended }) = self.waits.remove(&id) else { continue };
            self.speak(&id, from, conversation);
            if ended {
                self.end();
            }
        }
    }

    fn print_from(&mut self, text: &str, from: usize) {
        let text = text.get(from..).unwrap_or_default();
        if !text.is_empty() {
            self.print(if self.out_terminal { terminal::text(text) } else { text.into() });
        }
    }
}

/// The text of a message of the assistant's; empty for all others.
fn assistant_text<'a>(conversation: &'a Conversation, id: &MessageId) -> &'a str {
    match conversation.messages().find(id.as_str()) {
        Some(Message::Assistant(message)) => message.content.as_deref().unwrap_or_default(),
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agui_stream::fold::Applied;
    use agui_types::FromJson;
    use agui_types::event::{
        MessagesSnapshot, SubagentFinished, SubagentStarted, TextMessageContent, TextMessageEnd,
        TextMessageStart, ToolCallArgs, ToolCallEnd, ToolCallStart,
    };
    use agui_types::json::Value;
    use agui_types::message::AssistantMessage;

    /// What is printed on standard output and standard error.
    fn printed(events: &[Event], set_up: impl FnOnce(&mut Screen)) -> (String, String) {
        let mut screen = Screen::new(Shows::Text, true);
        (screen.out_terminal, screen.dims) = (false, false);
        set_up(&mut screen);
        let mut conversation = Conversation::new(Vec::new(), Value::Object(Default::default()));
        let mut applied = Applied::default();
        for event in events {
            conversation.apply(event, &mut applied);
            screen.event(event, &applied.changes, &conversation);
        }
        screen.finish(&conversation);
        let printed = screen.take();
        let of = |stream| printed.iter().filter(move |(to, _)| *to == stream);
        let joined = |stream| of(stream).map(|(_, text)| text.as_str()).collect();
        (joined(To::Out), joined(To::Err))
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
    fn every_message_has_lines_of_its_own_and_is_said_as_a_whole() {
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
        assert_eq!(out, "one two\nthree\nfoursix\nfive\n");
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
    fn a_message_waits_for_another_one_but_not_for_long() {
        let long = "x".repeat(MOST_WAITING - 1);
        let mut events = vec![start("a"), start("b"), start("c"), say("a", "one ")];
        events.extend([say("b", &long), end("b"), say("c", "three"), say("a", "two"), end("a")]);
        events.push(say("c", " more"));
        // Those that waited are said in order, and who is not done goes on.
        assert_eq!(printed(&events, |_| {}).0, format!("one two\n{long}\nthree more\n"));

        let mut events = vec![start("a"), start("b"), say("a", "one "), say("b", &long)];
        events.extend([say("b", "y"), say("a", "two"), say("b", "z"), end("b"), end("a")]);
        assert_eq!(printed(&events, |_| {}).0, format!("one \n{long}yz\ntwo\n"));
        assert_eq!(printed(&[start("a"), start("b"), end("a"), say("b", "é")], |_| {}).0, "é\n");
    }

    #[test]
    fn subagents_are_called_by_their_names() {
        let owned = |text: &str, owner: &str| {
            let mut event = Event::from_json_exact(text).unwrap();
            Event::attribute(&mut event, &owner.into());
            event
        };
        let name = "researcher\n\u{202e}";
        let events = [
            SubagentStarted::new("s-1", name).into(),
            owned(r#"{"type":"TEXT_MESSAGE_START","messageId":"a"}"#, "s-1"),
            owned(r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":"found"}"#, "s-1"),
            owned(r#"{"type":"TEXT_MESSAGE_END","messageId":"a"}"#, "s-1"),
            owned(r#"{"type":"STEP_STARTED","stepName":"read"}"#, "s-1"),
            SubagentFinished::new("s-1").into(),
            start("b"),
            say("b", "done"),
            SubagentFinished::new("unheard-of").into(),
        ];
        let (out, err) = printed(&events, |_| {});
        assert_eq!(out, "found\ndone\n");
        let lines = [
            "subagent researcher \u{fffd} starts",
            "researcher \u{fffd} says:",
            "researcher \u{fffd}: step read starts",
            "subagent researcher \u{fffd} ends",
            "the agent says:",
            "subagent unheard-of ends",
        ];
        assert_eq!(err.lines().collect::<Vec<_>>(), lines);
        assert_eq!(printed(&events, |screen| screen.talks = false).1, "");
    }

    #[test]
    fn a_patch_is_told_and_not_what_it_patches() {
        let json = |text: &str| Event::from_json_exact(text).unwrap();
        let mut events: Vec<Event> = vec![
            json(
                r#"{"type":"ACTIVITY_SNAPSHOT","messageId":"p","activityType":"plan\n","content":{"n":[]}}"#,
            ),
            json(
                r#"{"type":"ACTIVITY_DELTA","messageId":"p","activityType":"plan\n","patch":[{"op":"add","path":"/n/0","value":"a"},{"op":"remove","path":"/n/0"}]}"#,
            ),
            json(r#"{"type":"STATE_DELTA","delta":[{"op":"add","path":"/a","value":{"b":1}}]}"#),
        ];
        let (_, err) = printed(&events, |_| {});
        let lines = [
            "activity plan: {\"n\":[]}",
            "activity plan: add /n/0 \"a\"; remove /n/0",
            "state: add /a {\"b\":1}",
        ];
        assert_eq!(err.lines().collect::<Vec<_>>(), lines);
        // So much that it would take minutes, were it written anew for each of them.
        let add = r#"{"type":"ACTIVITY_DELTA","messageId":"p","activityType":"plan","patch":[{"op":"add","path":"/n/-","value":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}]}"#;
        events.extend((0..20_000).map(|_| json(add)));
        let began = std::time::Instant::now();
        assert_eq!(printed(&events, |_| {}).1.lines().count(), 20_003);
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    }

    #[test]
    fn a_terminal_is_not_controlled_by_what_an_agent_says() {
        // C-93
        let evil = "a\x1b]0;title\x07b\u{9b}31mc\r\nd\te";
        let events = [&[start("a"), say("a", evil), end("a")][..], &call("\x1b[2J", evil)].concat();
        let (out, err) = printed(&events, |screen| screen.out_terminal = true);
        assert!(!out.contains(['\x1b', '\x07', '\u{9b}', '\r']), "{out:?}");
        assert!(out.ends_with("c\nd\te\n"), "{out:?}");
        assert!(!err.contains(['\x1b', '\u{9b}']), "{err:?}");
        assert_eq!(printed(&events, |_| {}).0, format!("{evil}\n"), "a pipe gets it as it is");

        let (out, _) = printed(&events, |screen| {
            (screen.out_terminal, screen.shows) = (true, Shows::Json);
        });
        assert!(!out.contains(['\x1b', '\u{9b}']), "{out:?}");
        let said: Vec<Event> =
            out.lines().map(|line| Event::from_json_exact(line).unwrap()).collect();
        assert_eq!(said, events, "JSON stays what it is");
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
}
