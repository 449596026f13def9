//! Streams written down for people to read, one file each in `transcripts/`: what comes in above the
//! line `---`, what becomes of it below.
//!
//! ```text
//! A title: what the stream shows
//! rules: C-38, P-21
//!
//! state: {"n":1}
//!
//! {"type":"RUN_STARTED","threadId":"t","runId":"r"}
//! # What a remark says goes for the next line.
//! {"type":"TEXT_MESSAGE_END","messageId":"m"}
//! ---
//! 0 RUN_STARTED
//!     run r of thread t starts
//! 1 TEXT_MESSAGE_END is refused
//!     fault C-38 sequence, event 1, at /messageId
//! ...
//! ```
//!
//! Between title and events, each on a line of its own and each optional: `messages`, `state` and
//! `interrupts` that are held before, as JSON; `input`, the run input that the stream answers;
//! `peer`, the version it speaks. Every other line is an event, and stands for one frame as it is.
//!
//! With `AGUI_UPDATE=1` in the environment the part below the line is written anew, to be read and
//! checked before it is kept.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use agui_stream::fold::{Applied, Change, Conversation};
use agui_stream::{Fault, Pipeline, Warning};
use agui_types::json::Value as Tree;
use agui_types::{
    Event, EventReader, FromJson, Interrupt, JsonPointer, Message, RunAgentInput, ToJson,
};
use serde_json::Value;
use serde_json::value::RawValue;

#[test]
fn every_stream_becomes_what_is_written_below_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let update = std::env::var_os("AGUI_UPDATE").is_some_and(|value| value == "1");
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut wrong = Vec::new();
    for file in &files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(file).unwrap();
        let (given, written) = text.split_once("---\n").unwrap_or((&text, ""));
        let found = match Transcript::parse(given) {
            Ok(transcript) => transcript.play(),
            Err(problem) => {
                wrong.push(format!("{name}: {problem}"));
                continue;
            }
        };
        if found == written {
            continue;
        }
        if update {
            fs::write(file, format!("{given}---\n{found}")).unwrap();
        } else {
            wrong.push(format!("{name}: {}", first_difference(written, &found)));
        }
    }
    assert!(files.len() > 100, "{} transcripts", files.len());
    let hint = "AGUI_UPDATE=1 writes what is found";
    assert!(wrong.is_empty(), "{} transcripts differ; {hint}\n{}", wrong.len(), wrong.join("\n"));
}

/// What is above the line.
#[derive(Default)]
struct Transcript {
    messages: Vec<Message>,
    state: Option<Tree>,
    interrupts: Vec<Interrupt>,
    input: Option<RunAgentInput>,
    peer: Option<String>,
    frames: Vec<String>,
}

impl Transcript {
    fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        lines.next().filter(|title| !title.is_empty()).ok_or("the first line is the title")?;
        let rules = lines.next().and_then(|line| line.strip_prefix("rules: "));
        let rules: Vec<&str> = rules.ok_or("the second line is `rules: …`")?.split(", ").collect();
        if let Some(odd) = rules.iter().find(|rule| !is_rule(rule)) {
            return Err(format!("{odd:?} is no rule"));
        }
        let mut this = Self::default();
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let known = ["messages", "state", "interrupts", "input", "peer"];
            match line.split_once(": ").filter(|(name, _)| known.contains(name)) {
                Some((name, value)) if this.frames.is_empty() => this.set(name, value)?,
                _ => this.frames.push(line.into()),
            }
        }
        Ok(this)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let what = |error: &dyn std::error::Error| format!("{name}: {error}");
        match name {
            "messages" => self.messages = list(value).map_err(|error| what(&*error))?,
            "interrupts" => self.interrupts = list(value).map_err(|error| what(&*error))?,
            "state" => self.state = Some(Tree::parse(value).map_err(|error| what(&error))?),
            "input" => {
                let input = RunAgentInput::from_json_exact(value).map_err(|error| what(&error))?;
                self.input = Some(input);
            }
            _ => self.peer = Some(value.into()),
        }
        Ok(())
    }

    /// What becomes of the stream, as it is written below the line.
    fn play(self) -> String {
        let mut conversation = match &self.input {
            Some(input) => Conversation::from_input(input).unwrap(),
            None => {
                let empty = || Tree::Object(Default::default());
                Conversation::new(self.messages, self.state.unwrap_or_else(empty))
            }
        };
        conversation = conversation.with_open_interrupts(self.interrupts);
        let mut pipeline = match self.input {
            Some(input) => Pipeline::for_run(input.thread_id, input.run_id),
            None => Pipeline::new(),
        };
        if let Some(peer) = self.peer {
            pipeline = pipeline.from_peer(peer.parse().unwrap());
        }
        let mut page = String::new();
        let mut failed = false;
        for (at, frame) in self.frames.iter().enumerate() {
            let (mut delivered, mut warnings) = (Vec::new(), Vec::new());
            let verdict = match EventReader::new().tolerant(frame) {
                Ok(reading) => pipeline.push(reading, &mut delivered, &mut warnings),
                Err(error) => Err(pipeline.push_unreadable(&error)),
            };
            failed = verdict.is_err();
            let step = Step { at, frame, delivered, warnings, fault: verdict.err() };
            step.write(&mut conversation, &mut page);
            if failed {
                let rest = self.frames.len() - at - 1;
                if rest > 0 {
                    line(&mut page, 0, &format!("{rest} more are not read"));
                }
                break;
            }
        }
        if !failed && let Err(fault) = pipeline.finish() {
            line(&mut page, 0, "the end of the stream is refused");
            line(&mut page, 1, &spoken_fault(&fault));
        }
        write_conversation(&mut conversation, failed, &mut page);
        page
    }
}

/// A rule's id: `C-38`.
fn is_rule(text: &str) -> bool {
    let digits = text.split_at_checked(2).filter(|(kind, _)| ["P-", "C-", "T-"].contains(kind));
    digits.is_some_and(|(_, number)| number.parse::<u16>().is_ok())
}

fn list<T: FromJson>(text: &str) -> Result<Vec<T>, Box<dyn std::error::Error>> {
    let list: Vec<&RawValue> = serde_json::from_str(text)?;
    list.iter().map(|item| Ok(T::from_json_exact(item.get())?)).collect()
}

/// One frame, and what the pipeline made of it.
struct Step<'a> {
    at: usize,
    frame: &'a str,
    delivered: Vec<Event>,
    warnings: Vec<Warning>,
    fault: Option<Fault>,
}

impl Step<'_> {
    fn write(&self, conversation: &mut Conversation, page: &mut String) {
        let frame: Option<Value> = serde_json::from_str(self.frame).ok();
        let name = frame.as_ref().and_then(|frame| frame["type"].as_str()).unwrap_or("(no event)");
        let tree = |event: &Event| serde_json::from_str::<Value>(&event.to_json()).unwrap();
        let as_it_came = matches!(&*self.delivered, [one] if Some(tree(one)) == frame);
        let becomes = match &*self.delivered {
            _ if self.fault.is_some() => " is refused",
            [] if self.warnings.is_empty() => " becomes nothing",
            [] => " is dropped",
            _ if as_it_came => "",
            _ => " becomes",
        };
        line(page, 0, &format!("{} {name}{becomes}", self.at));
        for warning in &self.warnings {
            line(page, 1, &spoken_warning(warning));
        }
        let mut applied = Applied::default();
        for event in &self.delivered {
            if !as_it_came {
                line(page, 1, &shown(event));
            }
            conversation.apply(event, &mut applied);
            let level = if as_it_came { 1 } else { 2 };
            for change in &applied.changes {
                line(page, level, &spoken_change(change, conversation));
            }
            for warning in &applied.warnings {
                line(page, level, &spoken_warning(warning));
            }
        }
        if let Some(fault) = &self.fault {
            line(page, 1, &spoken_fault(fault));
        }
    }
}

fn write_conversation(conversation: &mut Conversation, failed: bool, page: &mut String) {
    page.push('\n');
    for message in conversation.messages().iter() {
        line(page, 0, &format!("message {}", message.to_json()));
    }
    line(page, 0, &format!("state {}", conversation.state()));
    for interrupt in conversation.open_interrupts() {
        line(page, 0, &format!("open interrupt {}", interrupt.to_json()));
    }
    for call in conversation.pending_tool_calls() {
        line(page, 0, &format!("pending call {call}"));
    }
    for usage in conversation.usage() {
        line(page, 0, &format!("usage {}", usage.to_json()));
    }
    if let Some(result) = conversation.result() {
        line(page, 0, &format!("result {result}"));
    }
    // A stream that breaks a rule in the middle of a run has no ending (C-10).
    let ending = if failed { conversation.ending() } else { Some(conversation.end_exchange()) };
    if let Some(ending) = ending {
        line(page, 0, &format!("ending {ending}"));
    }
}

/// An event, its type in front.
fn shown(event: &Event) -> String {
    let text = event.to_json();
    let name = event.type_name();
    let members = text.strip_prefix(&format!("{{\"type\":\"{name}\""));
    match members.map(|members| members.trim_start_matches(',')) {
        Some("}") | None => name.into(),
        Some(members) => format!("{name} {{{members}"),
    }
}

fn spoken_fault(fault: &Fault) -> String {
    let mut text = format!("fault {} {}", fault.rule, fault.class);
    if let Some(event) = fault.event {
        let _ = write!(text, ", event {event}");
    }
    if !fault.path.is_empty() {
        let _ = write!(text, ", at {}", fault.path);
    }
    text
}

fn spoken_warning(warning: &Warning) -> String {
    match &*warning.path {
        "" => format!("warning {}", warning.rule),
        path => format!("warning {} at {path}", warning.rule),
    }
}

fn spoken_change(change: &Change, conversation: &Conversation) -> String {
    let places = |paths: &[JsonPointer]| {
        let paths: Vec<String> = paths.iter().map(|path| format!("{:?}", path.as_str())).collect();
        if paths.is_empty() { "nowhere".into() } else { format!("at {}", paths.join(", ")) }
    };
    match change {
        Change::MessageCreated { message, position } => {
            format!("message {message} is created at {position}")
        }
        Change::TextAppended { message, bytes } => format!("message {message} grows by {bytes}"),
        Change::TextEnded { message } => format!("message {message} ends"),
        Change::MessageChanged { message } => format!("message {message} changes"),
        Change::MessageReplaced { message } => format!("message {message} is replaced"),
        Change::MessagesReplaced => "all messages are replaced".into(),
        Change::MessageRemoved { message } => format!("message {message} is removed"),
        Change::ToolCallStarted { message, tool_call } => {
            format!("call {tool_call} starts in message {message}")
        }
        Change::ArgumentsAppended { tool_call, bytes, .. } => {
            format!("call {tool_call} grows by {bytes}")
        }
        Change::ToolCallEnded { tool_call, .. } => format!("call {tool_call} ends"),
        Change::ToolCallChanged { tool_call, .. } => format!("call {tool_call} changes"),
        Change::ActivityPatched { message, paths } => {
            format!("activity {message} is patched {}", places(paths))
        }
        Change::StateReplaced => "the state is replaced".into(),
        Change::StatePatched { paths } => format!("the state is patched {}", places(paths)),
        Change::InterruptsChanged => {
            let open: Vec<_> =
                conversation.open_interrupts().iter().map(|it| it.id.as_str()).collect();
            let open = if open.is_empty() { "none".into() } else { open.join(", ") };
            format!("open interrupts are {open}")
        }
        Change::UsageChanged => "usage is reported".into(),
        Change::RunStarted { thread, run } => format!("run {run} of thread {thread} starts"),
        Change::RunEnded { ending } => format!("the run ends: {ending}"),
        other => format!("{other:?}"),
    }
}

fn line(page: &mut String, level: usize, text: &str) {
    let _ = writeln!(page, "{:indent$}{text}", "", indent = level * 4);
}

fn first_difference(written: &str, found: &str) -> String {
    let (mut written, mut found) = (written.lines(), found.lines());
    loop {
        match (written.next(), found.next()) {
            (None, None) => return "they differ in white space".into(),
            (a, b) if a == b => {}
            (a, b) => {
                let [a, b] = [a, b].map(|line| line.unwrap_or("(the end)"));
                return format!("\n  written: {a}\n  found:   {b}");
            }
        }
    }
}
