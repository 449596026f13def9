//! The life of a run: what is opened is closed, and there is one end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agui_agent::emitter::{AGENT_PANIC, CAPACITY, RUN_DEADLINE};
use agui_agent::{
    Agent, AgentExt, AgentResult, CancellationToken, EmitError, Run, RunContext, RunFailure,
};
use agui_stream::OpenItem;
use agui_types::event::{RunFinished, TextMessageChunk, TextMessageStart, ToolCallStart};
use agui_types::{AgentCapabilities, Event, Interrupt, RunFinishedOutcome, ToJson, TokenUsage};
use futures_util::{FutureExt, StreamExt};

use super::{error_code, finished, input, start, types, whole};

#[tokio::test]
async fn a_run_is_opened_and_finished_for_the_agent() {
    // P-1, P-5, P-6, P-7, P-80
    async fn agent(run: Run) -> AgentResult {
        assert_eq!(run.prompt().as_deref(), Some("hello"));
        run.say("hi").await?;
        Ok(())
    }
    let events = whole(start(&agent)).await;
    assert_eq!(
        types(&events),
        [
            "RUN_STARTED",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "RUN_FINISHED"
        ]
    );
    let started =
        r#"{"type":"RUN_STARTED","threadId":"thread","runId":"run","protocolVersion":"1.0"}"#;
    assert_eq!(events[0].to_json(), started);
    assert_eq!(finished(&events).outcome, None);
}

#[tokio::test]
async fn a_closure_is_an_agent_and_so_is_an_arc_of_one() {
    let closure = |run: Run| async move {
        run.say("hi").await?;
        Ok(())
    };
    let agent: Arc<dyn Agent> = Arc::new(closure.with_capabilities(AgentCapabilities::new()));
    assert!(agent.capabilities().await.is_some());
    assert_eq!(whole(start(&agent)).await.len(), 5);
}

#[tokio::test]
async fn handles_may_be_open_at_the_same_time_and_close_when_dropped() {
    // P-9, C-42
    async fn agent(run: Run) -> AgentResult {
        let step = run.step("work").await?;
        let span = run.reasoning().await?;
        let mut thought = span.message().await?;
        let mut text = run.text().await?;
        let call = ToolCallStart::new("c1", "search").parent_message_id(text.id());
        let mut call = run.open_tool_call(call).await?;
        let subagent = run.subagent("helper").await?;
        let mut theirs = subagent.text().await?;
        text.push("a").await?;
        theirs.push("b").await?;
        call.args("{").await?;
        thought.push("c").await?;
        call.args("}").await?;
        text.push("d").await?;
        drop((step, text, call));
        Ok(())
    }
    let events = whole(start(&agent)).await;
    let ends = events.iter().filter(|event| {
        event.type_name().ends_with("_END") || event.type_name().ends_with("_FINISHED")
    });
    // text twice, call, reasoning message, span, step, run
    assert_eq!(ends.count(), 7, "{:?}", types(&events));
    // The subagent never said that it succeeded.
    let subagent = events.iter().find_map(|event| match event {
        Event::SubagentError(error) => Some(error),
        _ => None,
    });
    assert_eq!(subagent.unwrap().code.as_deref(), Some(OpenItem::SUBAGENT_DROPPED));
    // P-61: what a subagent emits carries its id, from its start to its end.
    let id = &subagent.unwrap().subagent_run_id;
    assert_eq!(events.iter().filter(|event| event.attribution() == Some(id)).count(), 3);
}

#[tokio::test]
async fn calls_left_open_are_named_when_the_run_finishes() {
    // P-31, P-32
    async fn agent(run: Run) -> AgentResult {
        for id in ["c1", "c2", "c3"] {
            let mut call = run.open_tool_call(ToolCallStart::new(id, "pick")).await?;
            call.args_json(&serde_json::json!({ "id": id })).await?;
            if id == "c2" {
                call.result("done").await?;
            }
        }
        Ok(())
    }
    let events = whole(start(&agent)).await;
    let outcome = finished(&events).outcome.as_ref().unwrap();
    assert_eq!(outcome.to_json(), r#"{"type":"success","pendingToolCallIds":["c1","c3"]}"#);
}

#[tokio::test]
async fn a_run_may_stop_to_ask() {
    // P-67, P-68
    async fn agent(run: Run) -> AgentResult {
        run.interrupt(Interrupt::new("i1", "approval").message("first"))?;
        run.interrupt(Interrupt::new("i2", "approval"))?;
        run.interrupt(Interrupt::new("i1", "approval").message("second"))?;
        run.set_result(&"never lost")?;
        Ok(())
    }
    let events = whole(start(&agent)).await;
    let Some(RunFinishedOutcome::Interrupt(outcome)) = &finished(&events).outcome else {
        panic!("{events:?}")
    };
    let asked: Vec<_> = outcome.interrupts.iter().map(|asked| asked.id.as_str()).collect();
    assert_eq!(asked, ["i2", "i1"]);
    assert_eq!(outcome.interrupts[1].message.as_deref(), Some("second"));
}

#[tokio::test]
async fn result_and_usage_are_part_of_the_end() {
    // P-17, P-85
    async fn agent(run: Run) -> AgentResult {
        run.set_result(&serde_json::json!({ "answer": 42 }))?;
        run.set_result(&())?; // a null is no result
        for tokens in [1u32, 2] {
            run.add_usage(TokenUsage::new().model("m").input_tokens(tokens));
        }
        Ok(())
    }
    let events = whole(start(&agent)).await;
    assert_eq!(finished(&events).result.as_ref().unwrap().as_str(), r#"{"answer":42}"#);
    assert_eq!(finished(&events).usage.as_ref().unwrap()[0].input_tokens, Some(3u32.into()));
}

#[tokio::test]
async fn an_error_ends_the_run_with_its_text_and_code() {
    async fn agent(run: Run) -> AgentResult {
        run.add_usage(TokenUsage::new().input_tokens(1u32));
        let mut text = run.text().await?;
        text.push("half").await?;
        Err(RunFailure::new("out of luck").code("LUCK").into())
    }
    let events = whole(start(&agent)).await;
    assert_eq!(error_code(&events), ("out of luck", Some("LUCK")));
    assert_eq!(events[events.len() - 2].type_name(), "TEXT_MESSAGE_END");

    let plain = |_: Run| async { Err("plain".into()) };
    assert_eq!(error_code(&whole(start(&plain)).await), ("plain", None));
}

#[tokio::test]
async fn a_panic_ends_the_run_and_its_text_stays_inside() {
    async fn agent(run: Run) -> AgentResult {
        run.say("one").await?;
        let _open = run.text().await?;
        panic!("secret detail");
    }
    let events = whole(start(&agent)).await;
    assert_eq!(error_code(&events), ("the agent panicked", Some(AGENT_PANIC)));

    let early = |_: Run| -> std::future::Ready<AgentResult> { panic!("before the first await") };
    assert_eq!(error_code(&whole(start(&early)).await).1, Some(AGENT_PANIC));
}

#[tokio::test]
async fn an_error_that_panics_ends_the_run_all_the_same() {
    use std::fmt;

    /// Panics while it is read, or while it is dropped.
    #[derive(Debug)]
    struct Bomb {
        read: bool,
    }
    impl fmt::Display for Bomb {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            assert!(!self.read, "read");
            f.write_str("said before the bang")
        }
    }
    impl Drop for Bomb {
        fn drop(&mut self) {
            assert!(self.read, "dropped");
        }
    }
    impl std::error::Error for Bomb {}

    let fails = |read| {
        let agent = move |run: Run| async move {
            run.say("one").await?;
            Err(Bomb { read }.into())
        };
        let stream = start(&agent);
        async move { whole(stream).await }
    };
    assert_eq!(error_code(&fails(true).await), ("the agent panicked", Some(AGENT_PANIC)));
    assert_eq!(error_code(&fails(false).await), ("said before the bang", None));

    /// What a panic carries panics as well, when it is dropped.
    struct Payload;
    impl Drop for Payload {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let agent = |run: Run| async move {
        run.say("one").await?;
        std::panic::panic_any(Payload)
    };
    assert_eq!(error_code(&whole(start(&agent)).await).1, Some(AGENT_PANIC));
}

#[tokio::test]
async fn a_cancelled_run_closes_what_is_open_and_is_no_success() {
    // P-11, P-13
    async fn agent(run: Run) -> AgentResult {
        run.set_result(&1)?;
        let mut text = run.text().await?;
        text.push("waiting").await?;
        std::future::pending::<()>().await;
        Ok(())
    }
    let cancel = CancellationToken::new();
    let mut stream = agent.run(input(), RunContext::new().with_cancel(cancel.clone()));
    let mut events = Vec::new();
    for _ in 0..3 {
        events.push(stream.next().await.unwrap().unwrap().value);
    }
    cancel.cancel();
    let rest: Vec<Event> = stream.map(|event| event.unwrap().value).collect().await;
    assert_eq!(types(&rest), ["TEXT_MESSAGE_END", "RUN_FINISHED"]);
    let end = r#"{"type":"RUN_FINISHED","threadId":"thread","runId":"run","outcome":{"type":"cancelled"}}"#;
    assert_eq!(rest[1].to_json(), end);
}

#[tokio::test]
async fn dropping_the_stream_drops_the_agent() {
    struct Witness(Arc<AtomicBool>);
    impl Drop for Witness {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let dropped = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&dropped);
    let agent = move |run: Run| {
        let witness = Witness(Arc::clone(&seen));
        async move {
            let _witness = witness;
            let _text = run.text().await?;
            std::future::pending::<AgentResult>().await
        }
    };
    let mut stream = start(&agent);
    stream.next().await.unwrap().unwrap();
    assert!(!dropped.load(Ordering::SeqCst));
    drop(stream);
    assert!(dropped.load(Ordering::SeqCst));
}

#[tokio::test]
async fn an_event_that_would_break_the_stream_is_refused_and_the_run_goes_on() {
    // C-39, P-16, P-20
    async fn agent(run: Run) -> AgentResult {
        let first = run.open_text(TextMessageStart::new("m1")).await?;
        let again = run.open_text(TextMessageStart::new("m1")).await;
        assert!(
            matches!(again, Err(EmitError::Rule(ref fault)) if fault.rule == "C-39"),
            "{again:?}"
        );
        let boundary = run.emit(RunFinished::new("thread", "run")).await;
        assert!(matches!(boundary, Err(EmitError::Reserved(_))));
        let chunk = run.emit(TextMessageChunk::new().message_id("m2")).await;
        assert!(matches!(chunk, Err(EmitError::Reserved(_))));
        let step = run.step("same").await?;
        assert!(run.step("same").await.is_err());
        step.end().await?;
        first.end().await?;
        run.say("still going").await?;
        Ok(())
    }
    let events = whole(start(&agent)).await;
    assert_eq!(finished(&events).outcome, None);
}

#[tokio::test]
async fn a_slow_consumer_slows_the_agent() {
    let agent = |run: Run| async move {
        let mut text = run.text().await?;
        loop {
            text.push("x").await?;
        }
    };
    let mut stream = start(&agent);
    for _ in 0..10 * CAPACITY {
        // The agent never finishes, so this would not return if it ran ahead without bound.
        stream.next().now_or_never().unwrap().unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_clone_may_emit_from_another_task_until_the_run_is_over() {
    let (late, mut lates) = tokio::sync::mpsc::unbounded_channel();
    let agent = move |run: Run| {
        let late = late.clone();
        async move {
            let clone = run.clone();
            let said = tokio::spawn(async move {
                let mut text = clone.text().await.unwrap();
                for _ in 0..3 * CAPACITY {
                    text.push("x").await.unwrap();
                }
                clone
            });
            let clone = said.await?;
            late.send(clone)?;
            Ok(())
        }
    };
    let events = whole(start(&agent)).await;
    assert_eq!(events.len(), 3 * CAPACITY + 4);
    let run = lates.recv().await.unwrap();
    assert_eq!(run.say("too late").await, Err(EmitError::RunOver));
}

#[tokio::test]
async fn waiting_producers_are_served_in_order_and_one_at_a_time() {
    let agent = |run: Run| async move {
        let writers = (0..4 * CAPACITY).map(|at| {
            let run = run.clone();
            async move { run.custom("app.turn", &at).await }
        });
        futures_util::future::try_join_all(writers).await?;
        Ok(())
    };
    let events = whole(start(&agent)).await;
    let turns: Vec<usize> = events
        .iter()
        .filter_map(|event| match event {
            Event::Custom(custom) => Some(custom.value.decode().unwrap()),
            _ => None,
        })
        .collect();
    assert_eq!(turns, (0..4 * CAPACITY).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_producer_that_gives_up_hands_its_turn_on() {
    let agent = |run: Run| async move {
        for at in 0..CAPACITY {
            run.custom("app.fill", &at).await?;
        }
        let mut first = Box::pin(run.custom("app.first", &1));
        let mut second = Box::pin(run.custom("app.second", &2));
        assert!((&mut first).now_or_never().is_none());
        assert!((&mut second).now_or_never().is_none());
        tokio::task::yield_now().await; // room for one, for which the first is woken
        drop(first);
        second.await?;
        Ok(())
    };
    let events = whole(start(&agent)).await;
    assert_eq!(events.len(), CAPACITY + 3);
    assert_eq!(finished(&events).outcome, None);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_passes_its_deadline_fails() {
    // P-9
    async fn agent(run: Run) -> AgentResult {
        assert!(run.deadline().is_some());
        let mut text = run.text().await?;
        text.push("so far").await?;
        std::future::pending().await
    }
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(5);
    let context = RunContext::new().with_deadline(deadline.into_std());
    let began = tokio::time::Instant::now();
    let events = whole(agent.run(input(), context)).await;
    assert_eq!(began.elapsed().as_secs(), 5);
    assert_eq!(error_code(&events).1, Some(RUN_DEADLINE));
    assert_eq!(events[events.len() - 2].type_name(), "TEXT_MESSAGE_END");
}

#[tokio::test]
async fn an_agent_finds_what_surrounds_its_run() {
    #[derive(Clone, Debug, PartialEq)]
    struct Asker(&'static str);
    async fn agent(run: Run) -> AgentResult {
        assert_eq!(run.context().extensions.get::<Asker>(), Some(&Asker("secret name")));
        Ok(())
    }
    let context = RunContext::new().with_extension(Asker("secret name"));
    assert!(!format!("{context:?}").contains("secret name"));
    assert_eq!(finished(&whole(agent.run(input(), context)).await).outcome, None);
}

mod hostile {
    //! Panics whose payload panics.

    use super::*;

    struct PanicsOnDrop;
    impl Drop for PanicsOnDrop {
        fn drop(&mut self) {
            panic!("in Drop");
        }
    }

    #[tokio::test]
    async fn a_panic_with_something_that_panics_ends_the_run() {
        let late = |_: Run| async { std::panic::panic_any(PanicsOnDrop) };
        assert_eq!(error_code(&whole(start(&late)).await).1, Some(AGENT_PANIC));
        let early =
            |_: Run| -> std::future::Ready<AgentResult> { std::panic::panic_any(PanicsOnDrop) };
        assert_eq!(error_code(&whole(start(&early)).await).1, Some(AGENT_PANIC));
        let dropped = |run: Run| async move {
            let _held = Panicker;
            run.say("one").await?;
            std::future::pending().await
        };
        struct Panicker;
        impl Drop for Panicker {
            fn drop(&mut self) {
                std::panic::panic_any(PanicsOnDrop);
            }
        }
        let mut stream = start(&dropped);
        stream.next().await.unwrap().unwrap();
        drop(stream);
    }
}

#[tokio::test]
async fn many_calls_cost_by_their_number() {
    // P-32: compared each with each, these would take minutes.
    const CALLS: usize = 50_000;
    async fn agent(run: Run) -> AgentResult {
        for at in 0..CALLS {
            run.open_tool_call(ToolCallStart::new(format!("c{at}"), "work")).await?.end().await?;
        }
        for at in 0..CALLS - 1 {
            run.tool_result(format!("c{at}"), "").await?;
        }
        Ok(())
    }
    let mut stream = start(&agent);
    let mut last = None;
    while let Some(event) = stream.next().await {
        last = Some(event.unwrap().value);
    }
    let outcome = finished(&[last.unwrap()]).outcome.as_ref().unwrap().to_json();
    assert_eq!(outcome, format!(r#"{{"type":"success","pendingToolCallIds":["c{}"]}}"#, CALLS - 1));
}

#[test]
fn what_agents_hold_may_move_between_threads() {
    fn sendable<T: Send + Sync + 'static>() {}
    use agui_agent::emitter;
    sendable::<Run>();
    sendable::<RunContext>();
    sendable::<EmitError>();
    sendable::<RunFailure>();
    sendable::<emitter::Emitter>();
    sendable::<emitter::Activity>();
    sendable::<emitter::Answer<String>>();
    sendable::<emitter::Completion>();
    sendable::<emitter::CompletedAnswer>();
    sendable::<emitter::ReasoningMessage>();
    sendable::<emitter::ReasoningSpan>();
    sendable::<emitter::State<String>>();
    sendable::<emitter::Step>();
    sendable::<emitter::Subagent>();
    sendable::<emitter::TextMessage>();
    sendable::<emitter::ToolCall>();
    sendable::<agui_agent::AgentError>();
    sendable::<agui_agent::DeliveryError>();
    fn movable<T: Send + 'static>() {}
    movable::<agui_agent::EventStream>();
    movable::<agui_agent::Delivery>();
}
