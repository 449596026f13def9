//! A session with agents in this process: turns, endings, interrupts, cancelling, keeping.
#![cfg(feature = "session")]

mod scripted;

use std::sync::{Arc, Mutex};

use agui_agent::session::{Finished, Request, SavedSession, Session, SessionError, Turn, Update};
use agui_agent::session::{decline, resolve};
use agui_agent::{Agent, AgentError, AgentResult, DeliveryError, EventStream, Run, RunContext};
use agui_stream::Ending;
use agui_stream::fold::{Change, Conversation};
use agui_stream::observe::{Mutation, Observer, Reaction, Scene};
use agui_types::event::{TextMessageContent, TextMessageStart};
use agui_types::json::Value;
use agui_types::message::UserMessage;
use agui_types::{Interrupt, Message, RunAgentInput, ToJson, TokenUsage};
use futures_util::StreamExt;
use scripted::{Answer, Scripted, ids, said};

/// Both may travel between threads, with the futures of the one that has any.
#[test]
fn everything_is_send() {
    fn is_send<T: Send>(_: &T) {}
    fn is_send_and_sync<T: Send + Sync>() {}
    let mut session = Session::new(Scripted::new([Answer::completed(&[])]));
    is_send(&session);
    let mut turn = session.run();
    is_send(&turn);
    is_send(&turn.next());
    is_send(&turn.finish());
    is_send_and_sync::<Update>();
    is_send_and_sync::<Finished>();
    is_send_and_sync::<SessionError>();
    is_send_and_sync::<SavedSession>();
    is_send_and_sync::<Request>();
    is_send_and_sync::<agui_agent::session::Tools>();
    #[cfg(feature = "http")]
    is_send_and_sync::<agui_agent::HttpAgent>();
}

async fn echo(run: Run) -> AgentResult {
    let said = run.prompt().unwrap_or_default().into_owned();
    let mut text = run.text().await?;
    for word in said.split_inclusive(' ') {
        text.push(word).await?;
    }
    text.end().await?;
    run.state_snapshot(&serde_json::json!({ "said": said })).await?;
    run.custom("app.done", &1).await?;
    let mut usage = TokenUsage::new();
    usage.input_tokens = Some(2u32.into());
    run.add_usage(usage);
    run.set_result(&"fine")?;
    Ok(())
}

#[tokio::test]
async fn a_turn_tells_what_changes_and_the_session_can_be_read_meanwhile() {
    let mut session = Session::new(echo);
    let mut turn = session.send("hello there");
    let (mut seen, mut growing) = (Vec::new(), Vec::new());
    while let Some(update) = turn.next().await {
        match update {
            Update::Change(change @ Change::TextAppended { .. }) => {
                growing.push(turn.appended(&change).unwrap().to_owned());
            }
            Update::Change(Change::MessageCreated { position, .. }) => {
                seen.push(format!("message {position}"));
            }
            Update::Change(Change::RunStarted { .. }) => seen.push("started".into()),
            Update::Change(Change::RunEnded { ending }) => seen.push(ending.to_string()),
            Update::Change(Change::StateReplaced) => seen.push(turn.state().to_string()),
            Update::Event(event) => seen.push(event.type_name().into()),
            _ => {}
        }
    }
    let state = r#"{"said":"hello there"}"#;
    assert_eq!(seen, ["message 0", "started", "message 1", state, "CUSTOM", "completed"]);
    assert_eq!(growing, ["hello ", "there"]);
    let finished = turn.finish().await.unwrap();
    assert!(finished.is_completed() && finished.failure.is_none() && finished.cut_off.is_none());
    assert_eq!((finished.runs, finished.new_messages.len()), (1, 1));
    assert_eq!(finished.result.unwrap().as_str(), r#""fine""#);
    assert_eq!(finished.ending.to_string(), "completed");

    // The next turn goes on from there, without anything being read of it.
    assert!(!session.is_busy());
    let finished = session.send("again").finish().await.unwrap();
    assert!(finished.is_completed());
    assert_eq!(session.messages().len(), 4);
    assert_eq!(session.usage()[0].input_tokens, Some(4u32.into()));
    #[derive(serde::Deserialize)]
    struct State {
        said: String,
    }
    assert_eq!(session.state_as::<State>().unwrap().said, "again");
}

#[tokio::test]
async fn a_request_holds_the_conversation_and_what_the_application_says() {
    // C-80, P-77
    let agent = Scripted::new([Answer::completed(&[]), Answer::completed(&[])]);
    let asked = agent.asked();
    let mut session = Session::new(agent)
        .with_thread_id("thread-1")
        .with_messages(vec![UserMessage::new("old", "once").into()])
        .with_state(Value::parse(r#"{"n":1}"#).unwrap())
        .with_context(vec![agui_types::Context::new("where", "here")]);
    let _ = session.send("now").finish().await.unwrap();
    session.set_state(&serde_json::json!([2])).unwrap();
    session.push(UserMessage::new("more", "and"));
    let request = Request::new()
        .run_id("run-2")
        .parent_run_id("run-1")
        .forwarded_props(agui_types::Json::parse("7").unwrap());
    let _ = session.start(request).finish().await.unwrap();

    let asked = asked.lock().unwrap();
    assert_eq!(ids(&asked[0].messages)[0], "old");
    assert_eq!(asked[0].messages.len(), 2);
    assert_ne!(asked[0].run_id, asked[1].run_id);
    let first = asked[0].to_json();
    for part in [
        r#""threadId":"thread-1""#,
        r#""protocolVersion":"1.0""#,
        r#""state":{"n":1},"tools":[],"context":[{"description":"where","value":"here"}],"forwardedProps":{}"#,
    ] {
        assert!(first.contains(part), "{part} in {first}");
    }
    let second = asked[1].to_json();
    for part in [r#""runId":"run-2""#, r#""parentRunId":"run-1""#, r#""state":[2]"#] {
        assert!(second.contains(part), "{part} in {second}");
    }
    assert!(second.contains(r#""forwardedProps":7"#), "{second}");
    assert_eq!(asked[1].messages.len(), 3);
}

#[tokio::test]
async fn the_five_endings() {
    // C-10, C-11, C-13, C-14, C-15, T-9
    async fn ending(answer: Answer) -> (Finished, Session) {
        let mut session = Session::new(Scripted::new([answer]));
        let finished = session.run().finish().await.unwrap();
        (finished, session)
    }
    let (finished, _) = ending(Answer::completed(&[])).await;
    assert_eq!((finished.ending, finished.runs), (Ending::Completed, 1));

    let (finished, session) = ending(Answer::interrupted(&["i"])).await;
    assert_eq!(finished.ending, Ending::Interrupted);
    assert_eq!(session.open_interrupts().len(), 1);

    let (finished, _) = ending(Answer::of(&[
        r#"{"type":"RUN_STARTED","threadId":"$thread","runId":"$run"}"#,
        r#"{"type":"RUN_FINISHED","threadId":"$thread","runId":"$run","outcome":{"type":"cancelled"}}"#,
    ]))
    .await;
    assert_eq!(finished.ending, Ending::Cancelled);

    let (finished, _) =
        ending(Answer::of(&[r#"{"type":"RUN_ERROR","message":"no money","code":"billing"}"#]))
            .await;
    assert_eq!(finished.ending, Ending::Failed);
    assert_eq!(finished.to_string(), "failed: no money");
    assert_eq!(finished.failure.unwrap().code.as_deref(), Some("billing"));

    let (finished, session) = ending(Answer::of(&[
        r#"{"type":"RUN_STARTED","threadId":"$thread","runId":"$run"}"#,
        r#"{"type":"TEXT_MESSAGE_START","messageId":"m"}"#,
        r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"so f"}"#,
    ]))
    .await;
    assert_eq!(finished.ending, Ending::Truncated);
    assert!(matches!(finished.cut_off, Some(DeliveryError::Fault(_))), "{finished:?}");
    // C-12
    assert_eq!(said(session.messages().find("m").unwrap()), "so f");
}

#[tokio::test]
async fn a_connection_that_dies_behind_the_end_takes_nothing_away() {
    let broken = || AgentError::Transport { source: "reset".into() };
    let answer = Answer::completed(&[]).then(broken);
    let mut session = Session::new(Scripted::new([answer]));
    let finished = session.run().finish().await.unwrap();
    assert_eq!(finished.ending, Ending::Completed);
    assert!(finished.cut_off.is_some());

    let answer = Answer::of(&[r#"{"type":"RUN_STARTED","threadId":"$thread","runId":"$run"}"#]);
    let mut session = Session::new(Scripted::new([answer.then(broken)]));
    let finished = session.run().finish().await.unwrap();
    assert_eq!(finished.ending, Ending::Truncated);
    assert_eq!(finished.cut_off.unwrap().class(), "transport");
}

#[tokio::test]
async fn what_has_no_ending_is_an_error_that_says_why() {
    // C-10, C-12, C-38
    let content = r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"ghost","delta":"x"}"#;
    let mut session = Session::new(Scripted::new([Answer::completed(&[content])]));
    let error = session.send("hi").finish().await.unwrap_err();
    assert_eq!(error.class(), "sequence");
    assert!(matches!(error, SessionError::Rejected(DeliveryError::Fault(_))), "{error:?}");
    // What was said stays, and can be said again by just running.
    assert_eq!((session.messages().len(), session.is_busy()), (1, false));

    let refused = || AgentError::Status { status: 401, body: "no".into() };
    let mut session = Session::new(Scripted::new([Answer::of(&[]).then(refused)]));
    let error = session.send("hi").finish().await.unwrap_err();
    assert_eq!(error.class(), "http");
    assert!(matches!(error, SessionError::NoStream(AgentError::Status { status: 401, .. })));
}

#[tokio::test]
async fn open_interrupts_are_answered_all_or_nothing_is_sent() {
    // C-85, C-86, C-87, C-88
    let agent = Scripted::new([
        Answer::interrupted(&["i", "j"]),
        Answer::completed(&[]),
        Answer::completed(&[]),
    ]);
    let asked = agent.asked();
    let mut session = Session::new(agent);
    let _ = session.send("delete it").finish().await.unwrap();
    let open = session.open_interrupts().to_vec();

    for answers in [Vec::new(), vec![decline(&open[0])]] {
        let before = session.save();
        let request = Request::new().text("well?").resume(answers);
        let mut turn = session.start(request);
        assert!(turn.next().await.is_none());
        let error = turn.finish().await.unwrap_err();
        assert_eq!(error.class(), "interrupts");
        let SessionError::Refused(fault) = error else { panic!("{error:?}") };
        assert!(fault.message.contains('j'), "{fault}");
        assert_eq!(session.save(), before, "nothing has changed");
    }
    let error = session.send("well?").finish().await.unwrap_err();
    assert_eq!(error.class(), "interrupts");

    let answers = [resolve(&open[0], &false).unwrap(), resolve(&open[1], &()).unwrap()];
    let finished = session.resume(answers).finish().await.unwrap();
    assert_eq!(finished.ending, Ending::Completed);
    assert!(session.open_interrupts().is_empty());
    assert_eq!(asked.lock().unwrap().len(), 2);
    let resume = asked.lock().unwrap()[1].resume.clone().unwrap();
    assert_eq!(resume[0].to_json(), r#"{"interruptId":"i","status":"resolved","payload":false}"#);
    assert_eq!(resume[1].to_json(), r#"{"interruptId":"j","status":"resolved"}"#);
    assert!(session.send("next").finish().await.unwrap().is_completed());
}

#[tokio::test]
async fn an_expired_interrupt_can_only_be_given_up() {
    // C-87
    let agent = Scripted::new([Answer::completed(&[])]);
    let mut saved = Session::new(Scripted::new([])).save();
    saved.open_interrupts = vec![Interrupt::new("i", "why").expires_at("2001-01-01T00:00:00Z")];
    let mut session = Session::restore(agent, saved).unwrap();
    let open = session.open_interrupts()[0].clone();
    let error = session.resume([resolve(&open, &true).unwrap()]).finish().await.unwrap_err();
    assert_eq!(error.class(), "interrupts");
    assert!(session.resume([decline(&open)]).finish().await.unwrap().is_completed());
}

/// Starts to answer, and never comes to an end.
async fn endless(run: Run) -> AgentResult {
    let mut text = run.text().await?;
    text.push("so").await?;
    std::future::pending::<()>().await;
    Ok(())
}

async fn until_text(turn: &mut Turn<'_>) {
    while let Some(update) = turn.next().await {
        if matches!(update, Update::Change(Change::TextAppended { .. })) {
            return;
        }
    }
    panic!("no text came");
}

#[tokio::test]
async fn a_turn_that_is_let_go_of_stays_and_none_begins_beside_it() {
    let mut session = Session::new(endless);
    let mut turn = session.send("a");
    until_text(&mut turn).await;
    drop(turn);
    assert!(session.is_busy());

    let mut turn = session.send("b");
    assert!(turn.next().await.is_none());
    assert!(matches!(turn.finish().await, Err(SessionError::Busy)));
    assert!(matches!(session.connect().finish().await, Err(SessionError::Busy)));
    assert!(matches!(session.run_tools().finish().await, Err(SessionError::Busy)));
    assert_eq!(session.messages().len(), 2, "nothing was added");

    session.cancel();
    let finished = session.turn().unwrap().finish().await.unwrap();
    assert_eq!(finished.ending, Ending::Cancelled);
    assert!(!session.is_busy() && session.turn().is_none());
}

#[tokio::test]
async fn cancelling_ends_a_turn_at_once_and_keeps_what_came() {
    // C-12, C-13, C-14, C-89
    let mut session = Session::new(endless);
    let mut turn = session.send("a");
    until_text(&mut turn).await;
    let cancel = turn.cancellation();
    let (finished, ()) = tokio::join!(turn.finish(), async { cancel.cancel() });
    let finished = finished.unwrap();
    assert_eq!((finished.ending, finished.new_messages.len()), (Ending::Cancelled, 1));
    assert_eq!(said(session.messages().last().unwrap()), "so");

    // An agent that does not look, and has nothing to say.
    struct Deaf;
    impl Agent for Deaf {
        fn run(&self, _: RunAgentInput, _: RunContext) -> EventStream {
            Box::pin(futures_util::stream::pending())
        }
    }
    let mut session = Session::new(Deaf);
    let turn = session.send("a");
    let cancel = turn.cancellation();
    let (finished, ()) = tokio::join!(turn.finish(), async { cancel.cancel() });
    assert_eq!(finished.unwrap().ending, Ending::Cancelled);
    assert_eq!(session.conversation().ending(), None, "nothing is invented");

    // Before it began.
    let mut session = Session::new(endless);
    let turn = session.send("a");
    turn.cancel();
    assert_eq!(turn.finish().await.unwrap().ending, Ending::Cancelled);
}

#[tokio::test]
async fn a_turn_is_a_stream() {
    let mut session = Session::new(echo);
    let updates: Vec<Update> = session.send("a").collect().await;
    assert!(updates.len() > 5);
    // It is over, and still there.
    assert!(session.turn().unwrap().finish().await.unwrap().is_completed());
}

/// Writes down when it is called, and changes what its name says.
struct Watcher(&'static str, Arc<Mutex<Vec<String>>>);

impl Observer for Watcher {
    fn on_run_initialized(&mut self, conversation: &Conversation) -> Reaction {
        self.note(&format!("initialized {}", conversation.messages().len()));
        let mut messages = conversation.messages().to_vec();
        Ok(match self.0 {
            "adds" => {
                messages.push(UserMessage::new("added", "by an observer").into());
                Mutation::new().messages(messages)
            }
            _ => Mutation::new(),
        })
    }

    fn on_text_message_start(&mut self, _: &TextMessageStart, _: &Scene<'_>) -> Reaction {
        match self.0 {
            "panics" => panic!("oh"),
            "fails" => Err("no".into()),
            _ => Ok(Mutation::new()),
        }
    }

    fn on_text_message_content(&mut self, _: &TextMessageContent, _: &Scene<'_>) -> Reaction {
        Ok(if self.0 == "silences" { Mutation::new().stop() } else { Mutation::new() })
    }

    fn on_run_failed(
        &mut self,
        failure: &(dyn std::error::Error + 'static),
        _: &Conversation,
    ) -> Reaction {
        self.note(&format!("failed: {failure}"));
        Ok(if self.0 == "heals" { Mutation::new().stop() } else { Mutation::new() })
    }

    fn on_run_finalized(&mut self, conversation: &Conversation) -> Reaction {
        self.note(&format!("finalized {}", conversation.messages().len()));
        Ok(Mutation::new())
    }
}

impl Watcher {
    fn note(&self, what: &str) {
        self.1.lock().unwrap().push(format!("{} {what}", self.0));
    }
}

#[tokio::test]
async fn observers_watch_and_intervene_and_may_fail() {
    let notes: Arc<Mutex<Vec<String>>> = Arc::default();
    let mut session = Session::new(echo);
    for name in ["adds", "fails", "panics", "silences"] {
        session.observe(Watcher(name, Arc::clone(&notes)));
    }
    let mut turn = session.send("secret");
    let mut failures = Vec::new();
    while let Some(update) = turn.next().await {
        if let Update::ObserverFailed(error) = update {
            failures.push(format!("{error}: {}", error.source));
        }
    }
    assert!(turn.finish().await.unwrap().is_completed());
    let expected = [
        "an observer failed in on_text_message_start: no",
        "an observer failed in on_text_message_start: it panicked: oh",
    ];
    assert_eq!(failures, expected);
    assert_eq!(notes.lock().unwrap()[1], "fails initialized 2");
    assert_eq!(notes.lock().unwrap()[7], "silences finalized 3");
    assert_eq!(session.messages().get(1).unwrap().id().unwrap(), "added");
    // The echo's text was kept from the conversation.
    assert_eq!(said(session.messages().last().unwrap()), "");
}

#[tokio::test]
async fn an_observer_may_deal_with_a_failure() {
    for (name, healed) in [("heals", true), ("watches", false)] {
        let notes: Arc<Mutex<Vec<String>>> = Arc::default();
        let refused = || AgentError::Status { status: 500, body: String::new() };
        let agent = Scripted::new([Answer::of(&[]).then(refused)]);
        let mut session = Session::new(agent).with_observer(Watcher(name, Arc::clone(&notes)));
        let ended = session.run().finish().await;
        assert_eq!(ended.is_ok(), healed, "{ended:?}");
        if let Ok(finished) = ended {
            // No success is made of it (C-15).
            assert_eq!(finished.ending, Ending::Truncated);
        }
        assert_eq!(notes.lock().unwrap()[1], format!("{name} failed: HTTP 500"));
        assert_eq!(notes.lock().unwrap()[2], format!("{name} finalized 0"));
    }
}

#[tokio::test]
async fn a_conversation_is_kept_and_taken_up_again() {
    let call = [
        r#"{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"ask","parentMessageId":"a"}"#,
        r#"{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{\"é\": 1.0}"}"#,
        r#"{"type":"TOOL_CALL_END","toolCallId":"c"}"#,
        r#"{"type":"REASONING_ENCRYPTED_VALUE","subtype":"tool-call","entityId":"c","encryptedValue":"v"}"#,
        r#"{"type":"STATE_SNAPSHOT","snapshot":{"n":1.50}}"#,
        r#"{"type":"ACTIVITY_SNAPSHOT","messageId":"p","activityType":"plan","content":{"a":[1]}}"#,
    ];
    let agent = Scripted::new([Answer::completed(&call), Answer::interrupted(&["i"])]);
    let mut session = Session::new(agent);
    let _ = session.send("x").finish().await.unwrap();
    let _ = session.send("y").finish().await.unwrap();
    let saved = session.save();
    assert_eq!(ids(&saved.messages)[1..3], ["a", "p"]);
    assert_eq!((saved.open_interrupts.len(), saved.pending_tool_calls.len()), (1, 1));
    assert_eq!(saved.state.as_str(), r#"{"n":1.50}"#);

    let text = serde_json::to_string(&saved).unwrap();
    let read: SavedSession = serde_json::from_str(&text).unwrap();
    assert_eq!(read, saved);
    let agent = Scripted::new([Answer::completed(&[])]);
    let asked = agent.asked();
    let mut restored = Session::restore(agent, read).unwrap();
    assert_eq!(restored.save(), saved);
    assert_eq!(restored.thread_id(), session.thread_id());
    let error = restored.send("z").finish().await.unwrap_err();
    assert_eq!(error.class(), "interrupts");
    let open = restored.open_interrupts()[0].clone();
    let _ = restored.resume([decline(&open)]).finish().await.unwrap();
    // C-59, C-75, C-88
    let sent = asked.lock().unwrap()[0].to_json();
    assert!(sent.contains(r#""encryptedValue":"v""#) && !sent.contains("activity"), "{sent}");

    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let mut saved = saved;
    if let Ok(state) = agui_types::Json::parse(&deep) {
        saved.state = state;
        assert!(Session::restore(Scripted::new([]), saved).is_err());
    }
}

#[tokio::test]
async fn nothing_of_the_conversation_shows_in_debug() {
    let mut session = Session::new(echo);
    let mut turn = session.send("s3cret");
    turn.next().await;
    assert!(!format!("{turn:?}").contains("s3cret"), "{turn:?}");
}

#[tokio::test]
async fn connecting_takes_the_agents_history_over() {
    // T-9, C-33
    let replay = Answer::of(&[
        r#"{"type":"RUN_STARTED","threadId":"$thread","runId":"r1"}"#,
        r#"{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"u","role":"user","content":"before"}]}"#,
        r#"{"type":"RUN_FINISHED","threadId":"$thread","runId":"r1"}"#,
        r#"{"type":"RUN_STARTED","threadId":"$thread","runId":"r2"}"#,
        r#"{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"ask"}"#,
        r#"{"type":"TOOL_CALL_END","toolCallId":"c"}"#,
        r#"{"type":"RUN_FINISHED","threadId":"$thread","runId":"r2"}"#,
    ]);
    let held = || vec![Message::from(UserMessage::new("mine", "only here"))];
    let mut session = Session::new(Scripted::new([]).connecting([replay])).with_messages(held());
    let mut turn = session.connect();
    let mut replaced = false;
    while let Some(update) = turn.next().await {
        replaced |= matches!(update, Update::Change(Change::MessagesReplaced));
    }
    let finished = turn.finish().await.unwrap();
    assert!(replaced && finished.is_completed());
    assert_eq!(ids(&session.messages().to_vec()), ["u", "c"]);
    assert_eq!(session.pending_tool_calls().count(), 1, "not carried out");

    // Nothing there: nothing changes.
    let agent = Scripted::new([]).connecting([Answer::of(&[])]);
    let mut session = Session::new(agent).with_messages(held());
    let finished = session.connect().finish().await.unwrap();
    assert_eq!((finished.ending, finished.runs), (Ending::Completed, 0));
    assert_eq!(ids(&session.messages().to_vec()), ["mine"]);

    // A replay that breaks a rule: what was held is back.
    let broken = Answer::of(&[
        r#"{"type":"RUN_STARTED","threadId":"$thread","runId":"r1"}"#,
        r#"{"type":"MESSAGES_SNAPSHOT","messages":[]}"#,
        r#"{"type":"TEXT_MESSAGE_END","messageId":"ghost"}"#,
    ]);
    let mut session = Session::new(Scripted::new([]).connecting([broken])).with_messages(held());
    let error = session.connect().finish().await.unwrap_err();
    assert_eq!(error.class(), "sequence");
    assert_eq!(ids(&session.messages().to_vec()), ["mine"]);

    // There is no such thing.
    let error = Session::new(echo).connect().finish().await.unwrap_err();
    assert!(matches!(error, SessionError::NothingToConnectTo));
}

/// A part of what is connected to takes nothing away.
#[tokio::test]
async fn what_is_held_stays_until_it_is_restated() {
    // T-9, C-12
    const STARTED: &str = r#"{"type":"RUN_STARTED","threadId":"$thread","runId":"r1"}"#;
    const MESSAGES: &str = r#"{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"mine","role":"user","content":"x"},{"id":"new","role":"user","content":"y"}]}"#;
    const STATE: &str = r#"{"type":"STATE_SNAPSHOT","snapshot":{"n":2}}"#;
    let held = |answer: Answer| {
        Session::new(Scripted::new([]).connecting([answer]))
            .with_messages(vec![Message::from(UserMessage::new("mine", "only here"))])
            .with_state(Value::parse(r#"{"n":1}"#).unwrap())
    };
    let broken = || AgentError::Transport { source: "reset".into() };
    for (events, restated) in [
        (&[STARTED][..], false),
        (&[STARTED, MESSAGES][..], false),
        (&[STARTED, STATE][..], false),
        (&[STARTED, STATE, MESSAGES][..], true),
    ] {
        let mut session = held(Answer::of(events).then(broken));
        let finished = session.connect().finish().await.unwrap();
        assert_eq!((finished.ending, finished.runs), (Ending::Truncated, u32::from(restated)));
        assert!(finished.cut_off.is_some());
        let expected: &[&str] = if restated { &["mine", "new"] } else { &["mine"] };
        assert_eq!(ids(&session.messages().to_vec()), expected);
        assert_eq!(session.state().to_string(), if restated { r#"{"n":2}"# } else { r#"{"n":1}"# });
    }

    // The same where it is let go of from here, before the rest was looked at.
    let mut session = held(Answer::of(&[STARTED, STATE, MESSAGES]));
    let mut turn = session.connect();
    let replaced =
        |update: Option<Update>| matches!(update, Some(Update::Change(Change::MessagesReplaced)));
    while !replaced(turn.next().await) {}
    assert!(turn.messages().is_empty());
    assert!(session.detach() && !session.detach());
    assert_eq!(ids(&session.messages().to_vec()), ["mine"]);
    assert_eq!(session.state().to_string(), r#"{"n":1}"#);
}

#[tokio::test]
async fn a_client_refuses_before_sending_what_does_not_cover_every_interrupt() {
    // cases 25 and 26
    let mut saved = Session::new(Scripted::new([])).save();
    saved.open_interrupts =
        ["a", "b", "c", "d", "e", "f"].map(|id| Interrupt::new(id, "r")).to_vec();
    let agent = Scripted::new([Answer::completed(&[])]);
    let asked = agent.asked();
    let mut session = Session::restore(agent, saved).unwrap();
    let open = session.open_interrupts().to_vec();
    let payloads = ["false", "0", r#""""#, "{}", "[]"];
    let mut answers: Vec<_> = open
        .iter()
        .zip(payloads)
        .map(|(open, payload)| resolve(open, &agui_types::Json::parse(payload).unwrap()).unwrap())
        .collect();
    assert!(session.resume(answers.clone()).finish().await.is_err());
    answers.push(decline(&open[5]));
    assert!(session.resume(answers).finish().await.unwrap().is_completed());
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 1);
    let sent: Vec<_> = asked[0].resume.iter().flatten().map(ToJson::to_json).collect();
    for (at, payload) in payloads.iter().enumerate() {
        let expected = format!(r#""status":"resolved","payload":{payload}}}"#);
        assert!(sent[at].ends_with(&expected), "{}", sent[at]);
    }
    assert_eq!(sent[5], r#"{"interruptId":"f","status":"cancelled"}"#);
}
