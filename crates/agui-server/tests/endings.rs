//! However the agent's stream ends, its runs end honestly.

mod common;

use std::io;
use std::sync::mpsc;
use std::task::Poll;
use std::time::Duration;

use agui_agent::{Agent, AgentError, AgentResult, CancellationToken, EventStream, Run};
use agui_server::{AgentService, codes};
use agui_types::Event;
use agui_types::event::{
    ReasoningMessageStart, ReasoningStart, RunError, RunFinished, StepStarted, SubagentStarted,
    ToolCallStart,
};
use common::{
    INPUT, Item, Log, body_text, custom, emits, events, finished, post, raw, started, text,
    text_start, types,
};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tower::ServiceExt;

async fn answer(agent: impl Agent) -> Vec<Value> {
    let response = AgentService::new(agent).oneshot(post(INPUT)).await.unwrap();
    assert_eq!(response.status(), 200);
    events(&body_text(response).await)
}

fn wire(event: Event) -> Value {
    serde_json::to_value(event).unwrap()
}

fn run_error(code: &str, message: &str) -> Value {
    json!({"type": "RUN_ERROR", "message": message, "code": code})
}

/// These events and then this end.
fn then(events: Vec<Event>, end: impl Fn() -> EventStream + Send + Sync + 'static) -> impl Agent {
    raw(move |_| {
        let items: Vec<Item> = events.iter().cloned().map(|event| Ok(event.into())).collect();
        Box::pin(stream::iter(items).chain(end()))
    })
}

fn fails(error: impl Fn() -> AgentError + Send + Sync + 'static) -> impl Agent {
    then(vec![started(), text_start("m"), text("m", "Hel")], move || {
        Box::pin(stream::iter([Err(error())]))
    })
}

fn panics() -> EventStream {
    Box::pin(stream::poll_fn(|_| -> Poll<Option<Item>> { panic!("s3cret") }))
}

#[tokio::test]
async fn t9_an_agent_that_returns_without_a_terminal_event_is_truncated() {
    let log = Log::capture();
    let events = answer(emits(vec![started(), text_start("m"), text("m", "Hel")])).await;
    assert_eq!(
        events,
        [
            wire(started()),
            wire(text_start("m")),
            wire(text("m", "Hel")),
            json!({"type": "TEXT_MESSAGE_END", "messageId": "m"}),
            run_error(codes::RUN_TRUNCATED, "the agent stopped before its run had ended"),
        ]
    );
    assert!(log.text().contains("T-9"), "{}", log.text());
}

#[tokio::test]
async fn t9_an_agent_that_emits_nothing_is_truncated() {
    // P-1, C-2: a stream may consist of RUN_ERROR.
    let truncated = run_error(codes::RUN_TRUNCATED, "the agent stopped before its run had ended");
    assert_eq!(answer(emits(vec![])).await, [truncated]);
}

#[tokio::test]
async fn t20_an_agent_that_panics_after_three_events_fails_its_run() {
    let log = Log::capture();
    let three = vec![started(), text_start("m"), text("m", "Hel")];
    let events = answer(then(three, panics)).await;
    assert_eq!(
        events[3..],
        [
            json!({"type": "TEXT_MESSAGE_END", "messageId": "m"}),
            run_error(codes::AGENT_PANIC, "the agent panicked"),
        ]
    );
    assert!(log.text().contains("the agent's stream panicked panic=\"s3cret\""), "{}", log.text());
}

#[tokio::test]
async fn t20_an_agent_that_panics_before_its_stream_fails_its_run() {
    let events = answer(raw(|_| panic!("no stream"))).await;
    assert_eq!(events, [run_error(codes::AGENT_PANIC, "the agent panicked")]);
}

#[tokio::test]
async fn an_agent_that_panics_while_it_is_dropped_does_no_harm() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("while dropped");
        }
    }
    let agent = raw(|_| {
        let bomb = Bomb;
        let events: [Item; 2] = [Ok(started().into()), Ok(custom("a").into())];
        Box::pin(stream::iter(events).chain(stream::poll_fn(move |_| {
            let _held = &bomb;
            panic!("while polled")
        })))
    });
    let events = answer(agent).await;
    assert_eq!(events[2..], [run_error(codes::AGENT_PANIC, "the agent panicked")]);
}

#[tokio::test]
async fn t20_an_error_in_the_middle_of_the_stream_fails_the_run() {
    let log = Log::capture();
    let transport = || AgentError::Transport { source: io::Error::other("reset by peer").into() };
    let events = answer(fails(transport)).await;
    assert_eq!(
        events[3..],
        [
            json!({"type": "TEXT_MESSAGE_END", "messageId": "m"}),
            run_error(codes::AGENT_FAILED, "the connection to the agent failed"),
        ]
    );
    let log = log.text();
    assert!(log.contains("class=\"transport\""), "{log}");
    assert!(log.contains("reset by peer"), "{log}");
}

#[tokio::test]
async fn a_remote_agents_refusal_is_passed_on_but_not_logged() {
    let log = Log::capture();
    let body = format!("{{\"error\":\"token expired\"}}{}", "x".repeat(1000));
    let refused = move || AgentError::Status { status: 401, body: body.clone() };
    let events = answer(fails(refused)).await;
    let message = events[4]["message"].as_str().unwrap();
    let expected = "the agent refused the run: HTTP 401: {\"error\":\"token expired\"}xxx";
    assert!(message.starts_with(expected), "{message}");
    assert_eq!(message.len(), "the agent refused the run: ".len() + 500);
    assert!(log.text().contains("detail=\"HTTP 401\""), "{}", log.text());
    assert!(!log.text().contains("token expired"));
}

#[tokio::test]
async fn where_a_remote_agent_is_stays_out_of_the_stream() {
    let log = Log::capture();
    let connect = || AgentError::Connect {
        url: "http://10.0.0.7:9/agent".into(),
        source: io::Error::other("connection refused").into(),
    };
    let events = answer(fails(connect)).await;
    assert_eq!(events[4], run_error(codes::AGENT_FAILED, "the agent cannot be reached"));
    assert!(log.text().contains("cannot connect to http://10.0.0.7:9/agent: connection refused"));
}

#[tokio::test]
async fn p11_an_agent_that_was_cancelled_ends_as_cancelled() {
    let events = answer(fails(|| AgentError::Cancelled)).await;
    assert_eq!(
        events[3..],
        [
            json!({"type": "TEXT_MESSAGE_END", "messageId": "m"}),
            json!({
                "type": "RUN_FINISHED", "threadId": "t", "runId": "r",
                "outcome": {"type": "cancelled"},
            }),
        ]
    );
    // Before the run began there is nothing to finish.
    let events =
        answer(then(vec![], || Box::pin(stream::iter([Err(AgentError::Cancelled)])))).await;
    assert_eq!(events, [run_error(codes::CANCELLED, "the run was cancelled before it had begun")]);
}

#[tokio::test]
async fn an_event_that_breaks_a_rule_ends_the_run_and_nothing_after_it_goes_out() {
    let log = Log::capture();
    let agent = emits(vec![started(), text("nobody", "lost"), custom("never"), finished()]);
    let events = answer(agent).await;
    assert_eq!(types_of(&events), ["RUN_STARTED", "RUN_ERROR"]);
    assert_eq!(events[1]["code"], codes::RULE_BROKEN);
    let message = events[1]["message"].as_str().unwrap();
    assert!(
        message.starts_with("the agent broke a rule of the protocol: event 1/messageId: "),
        "{message}"
    );
    assert!(message.contains("nobody") && message.ends_with("(C-38)"), "{message}");
    assert!(log.text().contains("C-38"), "{}", log.text());
}

#[tokio::test]
async fn p5_a_run_of_another_thread_is_not_passed_on() {
    let other = agui_types::event::RunStarted::new("other", "r").into();
    let events = answer(emits(vec![other, finished()])).await;
    assert_eq!(types_of(&events), ["RUN_ERROR"]);
    assert!(events[0]["message"].as_str().unwrap().ends_with("(C-17)"));
}

#[tokio::test]
async fn p9_whatever_is_open_is_closed_innermost_first() {
    let open: Vec<Event> = vec![
        started(),
        StepStarted::new("plan").into(),
        SubagentStarted::new("s", "helper").into(),
        ReasoningStart::new("span").subagent_run_id("s").into(),
        ReasoningMessageStart::new("thought").subagent_run_id("s").into(),
        ToolCallStart::new("c", "look").subagent_run_id("s").into(),
        text_start("m"),
    ];
    let events = answer(emits(open)).await;
    let message = "the agent stopped before its run had ended";
    assert_eq!(
        events[7..],
        [
            json!({"type": "TEXT_MESSAGE_END", "messageId": "m"}),
            json!({"type": "TOOL_CALL_END", "toolCallId": "c", "subagentRunId": "s"}),
            json!({"type": "REASONING_MESSAGE_END", "messageId": "thought", "subagentRunId": "s"}),
            json!({"type": "REASONING_END", "messageId": "span", "subagentRunId": "s"}),
            json!({"type": "STEP_FINISHED", "stepName": "plan"}),
            json!({
                "type": "SUBAGENT_ERROR", "subagentRunId": "s",
                "message": "the subagent stopped before it said how it ended",
                "code": "SUBAGENT_DROPPED",
            }),
            run_error(codes::RUN_TRUNCATED, message),
        ]
    );
}

#[tokio::test]
async fn an_ended_run_gets_no_second_terminal_event() {
    let log = Log::capture();
    let whole = vec![started(), finished()];
    let expected = [wire(started()), wire(finished())];
    assert_eq!(answer(then(whole.clone(), panics)).await, expected);
    let error = || -> EventStream { Box::pin(stream::iter([Err(AgentError::Cancelled)])) };
    assert_eq!(answer(then(whole.clone(), error)).await, expected);
    let late = || -> EventStream { Box::pin(stream::iter([Ok(custom("late").into())])) };
    assert_eq!(answer(then(whole.clone(), late)).await, expected);
    let log = log.text();
    assert_eq!(log.matches("the agent failed after its run had ended").count(), 3, "{log}");
    assert!(log.contains("C-3"), "{log}");
}

#[tokio::test]
async fn p3_the_agents_own_late_run_error_and_further_runs_are_passed_on() {
    let late = RunError::new("after all").into();
    let second = agui_types::event::RunStarted::new("t", "r2").into();
    let end = RunFinished::new("t", "r2").into();
    let events = answer(emits(vec![started(), finished(), late, second, end])).await;
    assert_eq!(
        types_of(&events),
        ["RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "RUN_STARTED", "RUN_FINISHED"]
    );
}

#[tokio::test]
async fn a_second_run_that_is_cut_off_is_ended_too() {
    let second = agui_types::event::RunStarted::new("t", "r2").into();
    let events = answer(emits(vec![started(), finished(), second])).await;
    assert_eq!(types_of(&events), ["RUN_STARTED", "RUN_FINISHED", "RUN_STARTED", "RUN_ERROR"]);
}

#[tokio::test]
async fn the_agents_stream_is_dropped_at_a_failure_not_at_the_end_of_the_body() {
    struct Dropped(mpsc::Sender<()>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.send(()).unwrap();
        }
    }
    let (sender, dropped) = mpsc::channel();
    let agent = raw(move |_| {
        let held = Dropped(sender.clone());
        let broken: [Item; 2] = [Ok(started().into()), Ok(started().into())];
        Box::pin(stream::iter(broken).chain(stream::poll_fn(move |_| {
            let _held = &held;
            unreachable!("a broken stream is not polled again")
        })))
    });
    let mut body = AgentService::new(agent).oneshot(post(INPUT)).await.unwrap().into_body();
    let chunk = http_body_util::BodyExt::frame(&mut body).await.unwrap().unwrap();
    let chunk = String::from_utf8(chunk.into_data().unwrap().to_vec()).unwrap();
    assert_eq!(types(&chunk), ["RUN_STARTED", "RUN_ERROR"]);
    dropped.try_recv().unwrap();
}

#[tokio::test]
async fn a_closure_that_fails_or_panics_ends_its_run_itself() {
    let failing = |_: agui_agent::Run| async { Err("no luck".into()) };
    let events = answer(failing).await;
    assert_eq!(types_of(&events), ["RUN_STARTED", "RUN_ERROR"]);
    assert_eq!(events[1]["message"], "no luck");
    let panicking = |_: agui_agent::Run| async { panic!("no luck") };
    assert_eq!(answer(panicking).await[1]["code"], codes::AGENT_PANIC);
}

fn types_of(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn p11_runs_end_as_cancelled_with_the_token_they_are_served_with() {
    async fn waits(run: Run) -> AgentResult {
        let mut text = run.text().await?;
        text.push("Hel").await?;
        std::future::pending().await
    }
    let cancel = CancellationToken::new();
    let service = AgentService::new(waits).cancel_with(cancel.clone());
    let response = service.clone().oneshot(post(INPUT)).await.unwrap();
    let going_on = body_text(response);
    let cancelling = async {
        // After the body has been polled: the run is going on.
        tokio::task::yield_now().await;
        cancel.cancel();
    };
    let (body, ()) = tokio::join!(going_on, cancelling);
    let ends = ["TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED"];
    assert_eq!(types(&body)[2..], ends);
    assert_eq!(events(&body)[4]["outcome"], json!({"type": "cancelled"}));

    let later = service.oneshot(post(INPUT)).await.unwrap();
    let body = body_text(later).await;
    assert_eq!(types(&body), ["RUN_STARTED", "RUN_FINISHED"]);
    assert_eq!(events(&body)[1]["outcome"], json!({"type": "cancelled"}));
}

#[tokio::test(start_paused = true)]
async fn p11_an_agent_that_takes_no_notice_of_its_cancellation_is_ended() {
    let deaf = |events: Vec<Event>| then(events, || Box::pin(stream::pending()));
    // P-1: there is no outcome of a run that never began.
    let unbegun = vec![run_error(codes::CANCELLED, "the run was cancelled before it had begun")];
    let begun = vec![
        wire(started()),
        wire(text_start("m")),
        json!({"type": "TEXT_MESSAGE_END", "messageId": "m"}),
        json!({
            "type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": {"type": "cancelled"}
        }),
    ];
    for (emitted, expected) in [(vec![], unbegun), (vec![started(), text_start("m")], begun)] {
        let cancel = CancellationToken::new();
        let service = AgentService::new(deaf(emitted)).keep_alive(None).cancel_with(cancel.clone());
        let response = service.oneshot(post(INPUT)).await.unwrap();
        let began = tokio::time::Instant::now();
        let cancelling = async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            cancel.cancel();
        };
        let (body, ()) = tokio::join!(body_text(response), cancelling);
        assert_eq!(events(&body), expected);
        assert_eq!(began.elapsed(), Duration::from_secs(60) + AgentService::PATIENCE);
    }

    // One that talks on is heard no longer either.
    let chatter = then(vec![started()], || {
        Box::pin(stream::repeat_with(|| Ok(custom("a").into())).then(async |event| {
            tokio::time::sleep(Duration::from_millis(100)).await;
            event
        }))
    });
    let cancel = CancellationToken::new();
    cancel.cancel();
    let response = AgentService::new(chatter).cancel_with(cancel).oneshot(post(INPUT)).await;
    let body = body_text(response.unwrap()).await;
    let (first, last) = (&events(&body)[0], events(&body).pop().unwrap());
    assert_eq!((first, &last["outcome"]), (&wire(started()), &json!({"type": "cancelled"})));
}

#[tokio::test]
async fn an_error_that_panics_ends_the_run_all_the_same() {
    /// Panics while it is read, or while it is dropped.
    #[derive(Debug)]
    struct Bomb {
        read: bool,
    }
    impl std::fmt::Display for Bomb {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            assert!(!self.read, "read");
            f.write_str("gone")
        }
    }
    impl Drop for Bomb {
        fn drop(&mut self) {
            assert!(self.read, "dropped");
        }
    }
    impl std::error::Error for Bomb {}

    let fails = async |read| {
        let error = move || AgentError::Transport { source: Bomb { read }.into() };
        answer(fails(error)).await.pop().unwrap()
    };
    assert_eq!(fails(true).await, run_error(codes::AGENT_PANIC, "the agent panicked"));
    let failed = run_error(codes::AGENT_FAILED, "the connection to the agent failed");
    assert_eq!(fails(false).await, failed);

    // What a panic carries panics as well, when it is dropped.
    let agent = then(vec![started()], || {
        Box::pin(stream::poll_fn(|_| std::panic::panic_any(Bomb { read: false })))
    });
    let last = answer(agent).await.pop().unwrap();
    assert_eq!(last, run_error(codes::AGENT_PANIC, "the agent panicked"));
}
