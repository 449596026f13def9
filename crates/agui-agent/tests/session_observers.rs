//! Observers of a session: the recorded runs with a subscriber, from end to end, with an observer
//! that does what the script says; and adding and removing them while a turn goes on.
//!
//! The vectors are read from `AGUI_CORPUS`, or from `../shared/conformance` beside the repository.
#![cfg(feature = "session")]

#[path = "../../agui-stream/tests/conformance/compare.rs"]
mod compare;
#[allow(dead_code)]
#[path = "../../agui-stream/tests/conformance/corpus.rs"]
mod corpus;
#[path = "../../agui-stream/tests/conformance/recorder.rs"]
mod recorder;
mod scripted;

use std::error::Error;
use std::sync::{Arc, Mutex, OnceLock};

use agui_agent::session::{Finished, FrontendTool, Request, Session, SessionError, Update};
use agui_agent::{Agent, DeliveryError, EventStream, RunContext};
use agui_stream::fold::Change;
use agui_stream::observe::{Mutation, Observer, ObserverHandle, Reaction, Scene};
use agui_stream::{Conversation, Ending};
use agui_types::event::TextMessageContent;
use agui_types::message::{AssistantMessage, FunctionCall, UserMessage};
use agui_types::{Event, EventReader, Message, RunAgentInput, ToJson, ToolCall};
use corpus::{Vector, vectors};
use futures_util::stream;
use recorder::{Judge, Recorder, compared, messages, tree, value};
use scripted::{Answer, Scripted, ids, said};
use serde_json::{Value, json};

#[tokio::test]
async fn subscribers() {
    file("subscribers", "subscribers-session", 150, |_| true).await;
}

/// Without a script: only watched.
#[tokio::test]
async fn runs_that_are_watched() {
    for (name, count) in [("valid-simple", 80), ("valid-rich", 15), ("chunks", 30)] {
        file(name, &format!("{name}-observed"), count, |vector| {
            vector.expected()[0].get("subscriberCalls").is_some()
        })
        .await;
    }
}

/// The caller lets go before the run has ended; the observers are told that it is over for them.
#[tokio::test]
async fn detaching() {
    file("http", "http-detached", 10, |vector| vector.input.get("detachAfterChunk").is_some())
        .await;
}

async fn file(name: &str, deviations: &str, count: usize, wanted: fn(&Vector) -> bool) {
    let Some(vectors) = vectors(name) else { return };
    let mut judge = Judge::new(name, deviations);
    for vector in vectors.iter().filter(|vector| wanted(vector)) {
        let expected = vector.expected().remove(0);
        let recorder = Recorder::new(&vector.input["subscriberScript"], class);
        let calls = recorder.calls.clone();
        let differences = run(vector, &expected, recorder).await;
        judge.note(vector, &expected, differences, &calls.lock().unwrap());
    }
    judge.settle(count);
}

fn class(failure: &(dyn Error + 'static)) -> Option<&'static str> {
    failure.downcast_ref::<DeliveryError>().map(DeliveryError::class)
}

/// An agent in this process that gives recorded events one by one, as tolerantly read as from
/// elsewhere.
struct Recorded {
    events: Vec<Value>,
    asked: Arc<Mutex<Option<RunAgentInput>>>,
    /// After so many it waits for ever.
    stops_at: Option<usize>,
}

impl Agent for Recorded {
    fn run(&self, input: RunAgentInput, _: RunContext) -> EventStream {
        *self.asked.lock().unwrap() = Some(input);
        let mut reader = EventReader::new();
        let events = self.events.iter().take(self.stops_at.unwrap_or(usize::MAX));
        let items: Vec<_> =
            events.map(|event| Ok(reader.tolerant(&event.to_string()).unwrap())).collect();
        if self.stops_at.is_some() {
            return Box::pin(futures_util::StreamExt::chain(
                stream::iter(items),
                stream::pending(),
            ));
        }
        Box::pin(stream::iter(items))
    }
}

/// Takes one run from its request to its end; what differs from the recording. An observer before
/// the scripted one that only watches must change nothing.
async fn run(vector: &Vector, expected: &Value, recorder: Recorder) -> Vec<String> {
    let input = &vector.input;
    let events = input["events"].as_array().unwrap().clone();
    let asked: Arc<Mutex<Option<RunAgentInput>>> = Arc::default();
    let stops_at = input["detachAfterChunk"].as_u64().map(|at| at as usize);
    let agent = Recorded { events, asked: Arc::clone(&asked), stops_at };
    let delivered: Arc<Mutex<Vec<Value>>> = Arc::default();
    let thrown = recorder.thrown.clone();
    let state = input["initial"].get("state").cloned().unwrap_or_else(|| json!({}));
    let mut session = Session::new(agent)
        .with_thread_id("thread-1")
        .with_messages(messages(&input["initial"]["messages"]))
        .with_state(tree(&state))
        .with_observer(Delivered(Arc::clone(&delivered)))
        .with_observer(recorder);

    let mut errors = Vec::new();
    let mut turn = session.start(Request::new().run_id("run-1"));
    let mut take = |update| {
        if let Update::ObserverFailed(error) = update {
            errors.push(error.to_string());
        }
    };
    let ended = if stops_at.is_some() {
        while let std::task::Poll::Ready(Some(update)) = futures_util::poll!(Box::pin(turn.next()))
        {
            take(update);
        }
        assert_eq!(
            (session.detach(), session.is_busy(), session.turn().is_none()),
            (true, false, true)
        );
        None
    } else {
        while let Some(update) = turn.next().await {
            take(update);
        }
        Some(turn.finish().await)
    };

    let new = match &ended {
        Some(Ok(finished)) => finished.new_messages.clone(),
        _ => session.conversation().new_messages().cloned().collect(),
    };
    let result = session.conversation().result().map(|result| value(result.as_str()));
    let written = |texts: &mut dyn Iterator<Item = String>| -> Value {
        texts.map(|text| value(&text)).collect()
    };
    let found = json!({
        "outcome": match &ended {
            Some(Err(_) | Ok(Finished { cut_off: Some(_), .. })) => "failed",
            _ => "completed",
        },
        "runOutcome": match session.conversation().ending() {
            Some(Ending::Completed) => "success",
            Some(Ending::Interrupted) => "interrupt",
            Some(Ending::Cancelled) => "cancelled",
            Some(Ending::Failed) => "error",
            _ => "none",
        },
        "delivered": std::mem::take(&mut *delivered.lock().unwrap()),
        "messages": written(&mut session.messages().iter().map(ToJson::to_json)),
        "state": value(&session.state().to_string()),
        "newMessages": new.iter().map(|id| id.as_str()).collect::<Vec<_>>(),
        "pendingInterrupts": written(&mut session.open_interrupts().iter().map(ToJson::to_json)),
        "result": result,
        "request": asked.lock().unwrap().take().map(|input| value(&input.to_json())),
    });
    let thrown = *thrown.lock().unwrap();
    compared(input, expected, &found, &errors, thrown)
}

/// Writes down what is delivered.
struct Delivered(Arc<Mutex<Vec<Value>>>);

impl Observer for Delivered {
    fn on_event(&mut self, event: &Event, _: &Scene<'_>) -> Reaction {
        self.0.lock().unwrap().push(value(&event.to_json()));
        Ok(Mutation::new())
    }
}

// --- by hand -----------------------------------------------------------------------------------------

type Log = Arc<Mutex<Vec<String>>>;

/// Writes down the calls that are about text, messages, the state and the ends of a run. Says, and
/// does, what its fields say.
#[derive(Default)]
struct Watcher {
    name: &'static str,
    log: Log,
    /// Removes itself, with the handle that is put here, when the first piece of text comes.
    leaves: Option<Arc<OnceLock<ObserverHandle>>>,
}

impl Watcher {
    fn note(&self, what: &str) {
        self.log.lock().unwrap().push(format!("{} {what}", self.name));
    }
}

impl Observer for Watcher {
    fn on_run_initialized(&mut self, _: &Conversation) -> Reaction {
        self.note("initialized");
        Ok(Mutation::new())
    }

    fn on_text_message_content(&mut self, event: &TextMessageContent, _: &Scene<'_>) -> Reaction {
        self.note(&event.delta);
        if let Some(handle) = &self.leaves {
            handle.get().unwrap().remove();
        }
        Ok(Mutation::new())
    }

    fn on_run_failed(&mut self, failure: &(dyn Error + 'static), _: &Conversation) -> Reaction {
        self.note(&format!("failed: {failure}"));
        Ok(Mutation::new())
    }

    fn on_run_finalized(&mut self, _: &Conversation) -> Reaction {
        self.note("finalized");
        Ok(Mutation::new())
    }

    fn on_new_message(&mut self, message: &Message, _: &Conversation) {
        self.note(&format!("new {}", message.tag()));
    }

    fn on_new_tool_call(&mut self, call: &ToolCall, _: &Conversation) {
        self.note(&format!("new call {}", call.id));
    }

    fn on_messages_changed(&mut self, conversation: &Conversation) {
        self.note(&format!("messages {}", conversation.messages().len()));
    }

    fn on_state_changed(&mut self, conversation: &Conversation) {
        self.note(&format!("state {}", conversation.state()));
    }
}

fn watcher(name: &'static str, log: &Log) -> Watcher {
    Watcher { name, log: Arc::clone(log), leaves: None }
}

fn taken(log: &Log) -> Vec<String> {
    std::mem::take(&mut *log.lock().unwrap())
}

fn two_words() -> Scripted {
    Scripted::new([Answer::completed(&[
        r#"{"type":"TEXT_MESSAGE_START","messageId":"m"}"#,
        r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"one"}"#,
        r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"two"}"#,
        r#"{"type":"TEXT_MESSAGE_END","messageId":"m"}"#,
    ])])
}

#[tokio::test]
async fn an_observer_is_removed_between_two_events() {
    let log = Log::default();
    let mut session = Session::new(two_words());
    let gone = session.observe(watcher("gone", &log));
    session.observe(watcher("stays", &log));
    let mut turn = session.run();
    while let Some(update) = turn.next().await {
        if let Update::Change(Change::TextAppended { .. }) = update {
            // From anywhere, and again.
            let handle = gone.clone();
            std::thread::spawn(move || handle.remove()).join().unwrap();
            gone.remove();
        }
    }
    assert!(turn.finish().await.unwrap().is_completed());
    assert!(gone.is_removed());
    let log = taken(&log);
    let of = |name| log.iter().filter(|line| line.starts_with(name)).cloned().collect::<Vec<_>>();
    assert_eq!(of("gone"), ["gone initialized", "gone messages 1", "gone one", "gone messages 1"]);
    assert_eq!(of("stays").last().unwrap(), "stays finalized");
    assert!(of("stays").contains(&"stays two".to_owned()));
    assert_eq!(said(session.messages().last().unwrap()), "onetwo");
}

#[tokio::test]
async fn an_observer_removes_itself_and_others_while_it_is_called() {
    let log = Log::default();
    let mut session = Session::new(two_words());
    let own: Arc<OnceLock<ObserverHandle>> = Arc::default();
    let leaves = Watcher { name: "leaves", log: Arc::clone(&log), leaves: Some(Arc::clone(&own)) };
    let handle = session.observe(leaves);
    own.set(handle).unwrap();
    // The first one that is asked removes the second before it is asked.
    let other: Arc<OnceLock<ObserverHandle>> = Arc::default();
    let removes =
        Watcher { name: "removes", log: Arc::clone(&log), leaves: Some(Arc::clone(&other)) };
    session.observe(removes);
    other.set(session.observe(watcher("removed", &log))).unwrap();
    assert!(session.run().finish().await.unwrap().is_completed());
    let text: Vec<_> = taken(&log)
        .into_iter()
        .filter(|line| line.ends_with("one") || line.ends_with("two"))
        .collect();
    assert_eq!(text, ["leaves one", "removes one", "removes two"]);
}

#[tokio::test]
async fn what_is_removed_is_dropped_when_the_list_is_next_used() {
    let log = Log::default();
    let mut session = Session::new(two_words());
    let handle = session.observe(watcher("gone", &log));
    assert_eq!(Arc::strong_count(&log), 2);
    drop(handle.clone());
    assert!(!handle.is_removed(), "dropping a handle removes nothing");
    handle.remove();
    assert!(session.run().finish().await.unwrap().is_completed());
    assert_eq!((Arc::strong_count(&log), taken(&log).len()), (1, 0));
}

#[tokio::test]
async fn observers_are_told_what_the_application_does_itself() {
    let log = Log::default();
    let answers = [Answer::calls(&[("c", "ask", "{}")]), Answer::completed(&[])];
    let mut session =
        Session::new(Scripted::new(answers)).with_tool(FrontendTool::without_handler("ask", ""));
    session.observe(watcher("w", &log));
    session.set_messages(vec![UserMessage::new("u", "hi").into()]);
    session.set_state(&json!({"n": 1})).unwrap();
    let mut called = AssistantMessage::new("a");
    called.tool_calls = Some(vec![ToolCall::new("old", FunctionCall::new("tool", "{}"))]);
    session.push(called);
    let expected =
        ["w messages 1", r#"w state {"n":1}"#, "w new assistant", "w new call old", "w messages 2"];
    assert_eq!(taken(&log), expected);

    assert!(session.send("go").finish().await.unwrap().is_completed());
    let log_of_turn = taken(&log);
    // What is said comes before the run that it is said to.
    assert_eq!(log_of_turn[..3], ["w new user", "w messages 3", "w initialized"]);
    let call = session.pending_tool_calls().next().unwrap().1.id.clone();
    assert!(session.answer(&call, "yes"));
    assert!(!session.answer(&call, "again"));
    assert_eq!(taken(&log), ["w new tool", "w messages 5"]);
}

#[tokio::test]
async fn what_a_tool_answers_is_told_as_well() {
    let log = Log::default();
    let answers = [Answer::calls(&[("c", "ask", "{}")]), Answer::completed(&[])];
    let tool = FrontendTool::new("ask", "", |_: Value, _| async { Ok("fine") });
    let mut session = Session::new(Scripted::new(answers)).with_tool(tool);
    session.observe(watcher("w", &log));
    assert!(session.send("go").finish().await.unwrap().is_completed());
    let log = taken(&log);
    let at = log.iter().position(|line| line == "w new tool").unwrap();
    let expected = ["w finalized", "w new tool", "w messages 3", "w initialized"];
    assert_eq!(log[at - 1..at + 3], expected);
}

/// Panics where it has nothing to answer.
struct Clumsy;

impl Observer for Clumsy {
    fn on_messages_changed(&mut self, _: &Conversation) {
        panic!("oh");
    }
}

#[tokio::test]
async fn one_that_panics_outside_of_a_turn_takes_nothing_with_it() {
    let log = Log::default();
    let mut session = Session::new(two_words());
    session.observe(Clumsy);
    session.observe(watcher("w", &log));
    session.push(UserMessage::new("u", "hi"));
    session.set_messages(Vec::new());
    assert_eq!(taken(&log), ["w new user", "w messages 1", "w messages 0"]);
    let mut turn = session.send("hi");
    let mut failed = 0;
    while let Some(update) = turn.next().await {
        failed += usize::from(matches!(update, Update::ObserverFailed(_)));
    }
    // The message that is said, the one that opens, its two pieces.
    assert_eq!(failed, 4);
}

/// Puts a message in place before a run is asked for.
struct Adds;

impl Observer for Adds {
    fn on_run_initialized(&mut self, _: &Conversation) -> Reaction {
        Ok(Mutation::new().messages(vec![UserMessage::new("added", "").into()]))
    }
}

/// What is connected to is asked with what observers put in place, and if nothing comes, that stays.
#[tokio::test]
async fn observers_are_asked_before_connecting() {
    let asked: Arc<Mutex<Vec<RunAgentInput>>> = Arc::default();
    struct Nothing(Arc<Mutex<Vec<RunAgentInput>>>);
    impl Agent for Nothing {
        fn run(&self, _: RunAgentInput, _: RunContext) -> EventStream {
            unreachable!("it is connected to")
        }
        fn connect(&self, input: RunAgentInput, _: RunContext) -> Option<EventStream> {
            let asked = Arc::clone(&self.0);
            // Nothing is asked before it is polled.
            Some(Box::pin(stream::poll_fn(move |_| {
                asked.lock().unwrap().push(input.clone());
                std::task::Poll::Ready(None)
            })))
        }
    }
    let mut session = Session::new(Nothing(Arc::clone(&asked))).with_observer(Adds);
    let mut turn = session.connect();
    let update = turn.next().await;
    assert!(matches!(update, Some(Update::Change(Change::MessagesReplaced))), "{update:?}");
    assert!(turn.finish().await.unwrap().is_completed());
    let asked = asked.lock().unwrap();
    assert_eq!((asked.len(), ids(&asked[0].messages)), (1, vec!["added".to_owned()]));
    assert_eq!(ids(&session.messages().to_vec()), ["added"]);
}

/// A replay that fails is taken back before the observers are told that it is over.
#[tokio::test]
async fn a_replay_that_fails_ends_with_what_was_held_before() {
    let log = Log::default();
    let broken = Answer::of(&[
        r#"{"type":"RUN_STARTED","threadId":"$thread","runId":"r1"}"#,
        r#"{"type":"TEXT_MESSAGE_END","messageId":"ghost"}"#,
    ]);
    let mut session = Session::new(Scripted::new([]).connecting([broken]))
        .with_messages(vec![UserMessage::new("u", "hi").into()]);
    session.observe(watcher("w", &log));
    assert_eq!(session.connect().finish().await.unwrap_err().class(), "sequence");
    let log = taken(&log);
    assert_eq!(log[..2], ["w initialized", "w messages 0"]);
    assert!(log[2].starts_with("w failed: "), "{log:?}");
    assert_eq!(log[3..], ["w messages 1", "w finalized"]);
}

/// A run that is refused after the observers were told of it is finalized as well.
#[tokio::test]
async fn a_run_that_is_refused_on_the_way_is_over_for_observers() {
    // C-85
    let log = Log::default();
    let mut saved = Session::new(Scripted::new([])).save();
    let mut called = AssistantMessage::new("a");
    called.tool_calls = Some(vec![ToolCall::new("c", FunctionCall::new("ask", "{}"))]);
    saved.messages = vec![called.into()];
    saved.pending_tool_calls = vec!["c".into()];
    saved.open_interrupts = vec![agui_types::Interrupt::new("i", "why")];
    let tool = FrontendTool::new("ask", "", |_: Value, _| async { Ok("fine") });
    let mut session = Session::restore(Scripted::new([]), saved).unwrap().with_tool(tool);
    session.observe(watcher("w", &log));
    let error = session.run_tools().finish().await.unwrap_err();
    assert!(matches!(error, SessionError::Refused(_)), "{error:?}");
    assert!(!session.is_busy());
    let log = taken(&log);
    let expected = ["w initialized", "w failed: nothing was sent", "w finalized"];
    assert_eq!(log[log.len() - 3..], expected, "{log:?}");
    // The tool's answer is there to be sent with the next run.
    assert_eq!(session.messages().len(), 2);
}
