use std::sync::{Arc, Mutex};

use agui_types::event::{
    Event, RunFinished, RunStarted, StateSnapshot, TextMessageContent, TextMessageEnd,
    TextMessageStart, ToolCallArgs, ToolCallEnd, ToolCallStart,
};
use agui_types::json::Value;
use agui_types::message::UserMessage;
use agui_types::{Interrupt, InterruptOutcome, Json, Message, RunAgentInput, ToJson, TokenUsage};

use super::*;
use crate::fold::{Applied, Change, Conversation};
use crate::{Class, Ending, Fault};

/// What observers were called with, one line each.
type Log = Arc<Mutex<Vec<String>>>;

/// Writes down the text it sees, and answers as it is told.
struct Watcher<F> {
    name: &'static str,
    log: Log,
    answer: F,
}

impl<F: FnMut(&Event, &Scene<'_>) -> Reaction> Observer for Watcher<F> {
    fn on_event(&mut self, event: &Event, scene: &Scene<'_>) -> Reaction {
        let (count, name) = (scene.conversation().messages().len(), event.type_name());
        self.log.lock().unwrap().push(format!("{} {name} {count}", self.name));
        (self.answer)(event, scene)
    }

    fn on_text_message_content(&mut self, _: &TextMessageContent, scene: &Scene<'_>) -> Reaction {
        let text = scene.text().unwrap();
        self.log.lock().unwrap().push(format!("{} content after {text:?}", self.name));
        Ok(Mutation::new())
    }

    fn on_messages_changed(&mut self, _: &Conversation) {
        self.log.lock().unwrap().push(format!("{} messages", self.name));
    }

    fn on_state_changed(&mut self, _: &Conversation) {
        self.log.lock().unwrap().push(format!("{} state", self.name));
    }
}

struct Stage<'a> {
    observers: Observers<'a>,
    conversation: Conversation,
    applied: Applied,
    log: Log,
}

impl<'a> Stage<'a> {
    fn new() -> Self {
        let conversation = Conversation::new(vec![said("u", "hi")], Value::Null);
        let (observers, applied) = (Observers::new(), Applied::default());
        Self { observers, conversation, applied, log: Log::default() }
    }

    fn add(
        &mut self,
        name: &'static str,
        answer: impl FnMut(&Event, &Scene<'_>) -> Reaction + Send + 'a,
    ) {
        self.observers.add(Watcher { name, log: self.log.clone(), answer });
    }

    fn push(&mut self, event: impl Into<Event>) -> Observed {
        self.observers.apply(&event.into(), &mut self.conversation, &mut self.applied)
    }

    fn log(&self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock().unwrap())
    }
}

fn said(id: &str, text: &str) -> Message {
    UserMessage::new(id, text).into()
}

#[test]
fn each_step_is_done_with_all_observers_in_order() {
    let mut stage = Stage::new();
    stage.add("a", |_, _| Ok(Mutation::new()));
    stage.add("b", |_, _| Ok(Mutation::new()));
    let _ = stage.push(TextMessageStart::new("m"));
    let _ = stage.push(TextMessageContent::new("m", "x"));
    let _ = stage.push(TextMessageContent::new("m", ""));
    assert_eq!(
        stage.log(),
        [
            "a TEXT_MESSAGE_START 1",
            "b TEXT_MESSAGE_START 1",
            "a messages",
            "b messages",
            "a TEXT_MESSAGE_CONTENT 2",
            "b TEXT_MESSAGE_CONTENT 2",
            "a content after \"\"",
            "b content after \"\"",
            "a messages",
            "b messages",
            "a TEXT_MESSAGE_CONTENT 2",
            "b TEXT_MESSAGE_CONTENT 2",
            "a content after \"x\"",
            "b content after \"x\"",
            "a messages",
            "b messages",
        ]
    );
}

#[test]
fn an_observer_sees_what_those_before_it_changed() {
    let mut stage = Stage::new();
    stage.add("a", |_, _| Ok(Mutation::new().messages(Vec::new()).state(Value::Bool(true))));
    stage.add("b", |_, _| Ok(Mutation::new()));
    let observed = stage.push(TextMessageStart::new("m"));
    assert!(!observed.stopped && observed.errors.is_empty());
    let log = stage.log();
    assert_eq!(log[..2], ["a TEXT_MESSAGE_START 1", "b TEXT_MESSAGE_START 0"]);
    assert_eq!(log[2..], ["a messages", "b messages", "a state", "b state"]);
    // What observers changed comes before what the event did.
    assert_eq!(
        stage.applied.changes,
        [
            Change::MessagesReplaced,
            Change::StateReplaced,
            Change::MessageCreated { message: "m".into(), position: 0 },
        ]
    );
    // The same state again, and the same messages, are no change.
    stage.conversation.set_messages(Vec::new());
    let _ = stage.push(RunStarted::new("t", "r"));
    assert_eq!(stage.log(), ["a RUN_STARTED 0", "b RUN_STARTED 0"]);
}

#[test]
fn what_is_stopped_goes_no_further() {
    let mut stage = Stage::new();
    stage.add("a", |_, _| Ok(Mutation::new().state(Value::Bool(true)).stop()));
    stage.add("b", |_, _| Ok(Mutation::new()));
    assert!(stage.push(TextMessageStart::new("m")).stopped);
    assert_eq!(stage.log(), ["a TEXT_MESSAGE_START 1", "a state", "b state"]);
    assert_eq!(stage.conversation.messages().len(), 1);
    assert_eq!(stage.applied.changes, [Change::StateReplaced]);
}

#[test]
fn a_failure_is_reported_and_nothing_else() {
    let mut stage = Stage::new();
    stage.add("a", |_, _| Err("broken".into()));
    stage.add("b", |_, _| Ok(Mutation::new()));
    let observed = stage.push(TextMessageStart::new("m"));
    let error = &observed.errors[0];
    assert_eq!((observed.errors.len(), error.callback), (1, "on_event"));
    assert_eq!(std::error::Error::source(error).unwrap().to_string(), "broken");
    assert_eq!(stage.log()[1], "b TEXT_MESSAGE_START 1");
    assert_eq!(stage.conversation.messages().len(), 2);
}

#[test]
fn what_continues_nothing_has_no_callback_of_its_kind() {
    let mut stage = Stage::new();
    stage.add("a", |_, _| Ok(Mutation::new()));
    let _ = stage.push(TextMessageContent::new("gone", "x"));
    assert_eq!(stage.log(), ["a TEXT_MESSAGE_CONTENT 1"]);
    assert_eq!(stage.applied.warnings.len(), 1);
}

#[test]
fn how_a_run_ends_is_noted_although_it_is_stopped() {
    // C-10, C-54
    let mut stage = Stage::new();
    let answers = RunAgentInput::new("t", "r", vec![said("echoed", "x")]);
    stage.add("a", |event, _| {
        let boundary = matches!(event, Event::RunStarted(_) | Event::RunFinished(_));
        Ok(if boundary { Mutation::new().stop() } else { Mutation::new() })
    });
    let _ = stage.push(RunStarted::new("t", "r").input(answers));
    assert_eq!(stage.conversation.messages().len(), 1);
    assert_eq!(stage.applied.changes, [Change::RunStarted { thread: "t".into(), run: "r".into() }]);
    let asked = RunFinished::new("t", "r")
        .outcome(InterruptOutcome::new(Interrupt::new("i", "why")))
        .usage(vec![TokenUsage::new()]);
    assert!(stage.push(asked).stopped);
    assert_eq!(stage.conversation.ending(), Some(Ending::Interrupted));
    assert!(stage.conversation.open_interrupts().is_empty());
    assert_eq!(stage.conversation.usage().len(), 1);
}

/// Writes down the arguments of tool calls.
struct Arguments(Log);

impl Observer for Arguments {
    fn on_tool_call_args(&mut self, event: &ToolCallArgs, scene: &Scene<'_>) -> Reaction {
        let (call, value) = (scene.tool_call().unwrap(), scene.arguments().unwrap().value());
        let value = value.map_or_else(String::new, ToString::to_string);
        let text = &call.function.arguments;
        self.0.lock().unwrap().push(format!("{text} + {} = {value}", event.delta));
        Ok(Mutation::new())
    }

    fn on_tool_call_end(&mut self, _: &ToolCallEnd, scene: &Scene<'_>) -> Reaction {
        let value = scene.arguments().unwrap().value().map(ToString::to_string);
        self.0.lock().unwrap().push(value.unwrap_or_default());
        assert_eq!(scene.message().unwrap().tag(), "assistant");
        Ok(Mutation::new())
    }
}

#[test]
fn arguments_are_read_as_they_grow() {
    // C-50, C-51
    let mut stage = Stage::new();
    stage.observers.add(Arguments(stage.log.clone()));
    let _ = stage.push(ToolCallStart::new("c", "f"));
    for delta in [r#"{"city":"#, r#""Ber"#, "", r#"lin"}"#] {
        let _ = stage.push(ToolCallArgs::new("c", delta));
    }
    let _ = stage.push(ToolCallEnd::new("c"));
    assert_eq!(
        stage.log(),
        [
            r#" + {"city": = "#,
            r#"{"city": + "Ber = {}"#,
            r#"{"city":"Ber +  = {"city":"Ber"}"#,
            r#"{"city":"Ber + lin"} = {"city":"Ber"}"#,
            r#"{"city":"Berlin"}"#,
        ]
    );
    // Opened again, it goes on where it was (C-41).
    let _ = stage.push(ToolCallStart::new("c", "f"));
    let _ = stage.push(ToolCallArgs::new("c", " "));
    assert_eq!(stage.log(), [r#"{"city":"Berlin"} +   = {"city":"Berlin"}"#]);
}

#[test]
fn arguments_that_are_replaced_are_read_anew() {
    let mut stage = Stage::new();
    stage.add("a", |event, scene| {
        if let Event::ToolCallArgs(event) = event
            && event.delta == "3]"
        {
            let mut messages = scene.conversation().messages().to_vec();
            let text = messages[1].to_json().as_str().replace("[1,2", "[8,9");
            messages[1] = agui_types::FromJson::from_json_tolerant(&text).unwrap().value;
            return Ok(Mutation::new().messages(messages));
        }
        Ok(Mutation::new())
    });
    let log = Log::default();
    stage.observers.add(Arguments(log.clone()));
    let _ = stage.push(ToolCallStart::new("c", "f"));
    for delta in ["[1,2", ",", "3]"] {
        let _ = stage.push(ToolCallArgs::new("c", delta));
    }
    assert_eq!(log.lock().unwrap().last().unwrap(), "[8,9, + 3] = [8,9]");
    // Also from outside, between two events.
    stage.conversation.set_messages(Vec::new());
    let _ = stage.push(ToolCallStart::new("c", "f"));
    let _ = stage.push(ToolCallArgs::new("c", "[true]"));
    let _ = stage.push(ToolCallEnd::new("c"));
    assert_eq!(log.lock().unwrap().last().unwrap(), "[true]");
}

/// Deals with failures, if it is told to.
struct Doctor {
    deals: bool,
}

impl Observer for Doctor {
    fn on_run_failed(
        &mut self,
        failure: &(dyn std::error::Error + 'static),
        _: &Conversation,
    ) -> Reaction {
        assert_eq!(failure.downcast_ref::<Fault>().unwrap().rule, "C-38");
        let sorry = Mutation::new().messages(vec![said("s", "sorry")]);
        Ok(if self.deals { sorry.stop() } else { sorry })
    }

    fn on_run_finalized(&mut self, conversation: &Conversation) -> Reaction {
        assert_eq!(conversation.messages().len(), 1);
        Ok(Mutation::new().state(Value::Bool(false)).stop())
    }
}

#[test]
fn an_observer_may_deal_with_a_failed_run() {
    // C-11
    for deals in [true, false] {
        let mut stage = Stage::new();
        stage.observers.add(Doctor { deals });
        let fault = Fault::new("C-38", Class::Sequence, "this", "that", "do");
        let (conversation, applied) = (&mut stage.conversation, &mut stage.applied);
        let observed = stage.observers.run_failed(&fault, conversation, applied);
        assert_eq!(observed.stopped, deals);
        assert_eq!(applied.changes, [Change::MessagesReplaced]);
        let observed = stage.observers.run_finalized(conversation, applied);
        assert!(observed.errors.is_empty());
        assert_eq!(applied.changes, [Change::StateReplaced]);
    }
}

#[test]
fn one_that_is_removed_is_not_called_any_more() {
    let mut stage = Stage::new();
    let log = stage.log.clone();
    let first = stage.observers.add(Watcher {
        name: "first",
        log: log.clone(),
        answer: |_: &Event, _: &Scene<'_>| Ok(Mutation::new()),
    });
    let second: Arc<Mutex<Option<ObserverHandle>>> = Arc::default();
    let removes = Arc::clone(&second);
    stage.add("removes", move |_, _| {
        removes.lock().unwrap().as_ref().unwrap().remove();
        Ok(Mutation::new())
    });
    let added = stage.observers.add(Watcher {
        name: "second",
        log,
        answer: |_: &Event, _: &Scene<'_>| Ok(Mutation::new()),
    });
    *second.lock().unwrap() = Some(added);
    let _ = stage.push(TextMessageStart::new("m"));
    // Not even in the same event: it is behind the one that removes it.
    let expected = [
        "first TEXT_MESSAGE_START 1",
        "removes TEXT_MESSAGE_START 1",
        "first messages",
        "removes messages",
    ];
    assert_eq!(stage.log(), expected);
    first.remove();
    assert!(first.is_removed() && !stage.observers.is_empty());
    let _ = stage.push(TextMessageEnd::new("m"));
    assert_eq!(stage.log(), ["removes TEXT_MESSAGE_END 2"]);
}

#[test]
fn what_the_application_does_is_told() {
    let mut stage = Stage::new();
    stage.add("a", |_, _| Ok(Mutation::new()));
    stage.conversation.push(said("v", "more"));
    assert!(stage.observers.added(1, &stage.conversation).errors.is_empty());
    // There is no such message.
    assert!(stage.observers.added(2, &stage.conversation).errors.is_empty());
    assert!(stage.observers.state_replaced(&stage.conversation).errors.is_empty());
    assert!(stage.observers.messages_replaced(&stage.conversation).errors.is_empty());
    assert_eq!(stage.log(), ["a messages", "a state", "a messages"]);
}

#[test]
fn none_of_them_is_as_if_there_were_none() {
    let mut stage = Stage::new();
    let mut alone = stage.conversation.clone();
    let mut applied = Applied::default();
    assert!(stage.observers.is_empty());
    for event in [
        Event::from(TextMessageStart::new("m")),
        TextMessageContent::new("m", "x").into(),
        TextMessageEnd::new("m").into(),
        StateSnapshot::new(Json::parse("[]").unwrap()).into(),
    ] {
        let observed = stage.push(event.clone());
        assert!(!observed.stopped && observed.errors.is_empty());
        alone.apply(&event, &mut applied);
        assert_eq!(stage.applied, applied);
    }
    assert_eq!(stage.conversation.messages().to_vec(), alone.messages().to_vec());
}

/// Panics wherever it is called.
struct Clumsy;

impl Observer for Clumsy {
    fn on_event(&mut self, _: &Event, _: &Scene<'_>) -> Reaction {
        panic!("on event");
    }

    fn on_text_message_start(&mut self, _: &TextMessageStart, _: &Scene<'_>) -> Reaction {
        panic!("on start");
    }

    fn on_new_message(&mut self, _: &Message, _: &Conversation) {
        panic!("on message");
    }

    fn on_messages_changed(&mut self, _: &Conversation) {
        panic!("on change");
    }

    fn on_run_finalized(&mut self, _: &Conversation) -> Reaction {
        panic!("{}", "at the end");
    }
}

#[test]
fn one_that_panics_has_failed_and_nothing_else_happens() {
    let mut stage = Stage::new();
    stage.observers.add(Clumsy);
    stage.add("behind", |_, _| Ok(Mutation::new()));
    let failed = |observed: Observed| -> Vec<String> {
        assert!(!observed.stopped);
        let chained = |error: &ObserverError| format!("{}: {}", error.callback, error.source);
        observed.errors.iter().map(chained).collect()
    };
    let errors = failed(stage.push(TextMessageStart::new("m")));
    let expected = [
        "on_event: it panicked: on event",
        "on_text_message_start: it panicked: on start",
        "on_messages_changed: it panicked: on change",
    ];
    assert_eq!(errors, expected);
    let errors = failed(stage.push(TextMessageEnd::new("m")));
    assert_eq!(errors[1], "on_new_message: it panicked: on message");
    let (conversation, applied) = (&mut stage.conversation, &mut stage.applied);
    let errors = failed(stage.observers.run_finalized(conversation, applied));
    assert_eq!(errors, ["on_run_finalized: it panicked: at the end"]);
    assert_eq!(stage.conversation.messages().len(), 2);
    let log = ["behind TEXT_MESSAGE_START 1", "behind messages", "behind TEXT_MESSAGE_END 2"];
    assert_eq!(stage.log(), log);
}
