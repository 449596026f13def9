//! Whatever an agent does, its stream is valid and ends with one terminal event.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agui_agent::emitter::{AGENT_PANIC, CAPACITY};
use agui_agent::{
    Agent, AgentExt, AgentResult, CancellationToken, EmitError, EventStream, Run, RunContext,
    RunFailure,
};
use agui_stream::{OpenItem, Verifier};
use agui_types::event::{RunFinished, TextMessageChunk, TextMessageStart, ToolCallStart};
use agui_types::message::UserMessage;
use agui_types::{
    AgentCapabilities, Event, Interrupt, Message, RunAgentInput, RunFinishedOutcome, ToJson,
    TokenUsage,
};
use futures_util::{FutureExt, StreamExt};

fn input() -> RunAgentInput {
    let hello = Message::from(UserMessage::new("u1", "hello"));
    RunAgentInput::new("thread", "run", vec![hello])
}

fn start(agent: &impl Agent) -> EventStream {
    agent.run(input(), RunContext::new())
}

/// Takes the whole stream, which must verify, end once, and end with its last event.
async fn whole(stream: EventStream) -> Vec<Event> {
    let events: Vec<Event> = stream.map(|event| event.unwrap().value).collect().await;
    let mut verifier = Verifier::for_run("thread".into(), "run".into());
    for event in &events {
        verifier.push(event).unwrap_or_else(|fault| panic!("{fault}: {events:#?}"));
    }
    verifier.finish().unwrap();
    assert!(matches!(events[0], Event::RunStarted(_)), "P-1");
    assert_eq!(events.iter().filter(|event| event.is_terminal()).count(), 1);
    assert!(events.last().unwrap().is_terminal());
    events
}

fn types(events: &[Event]) -> Vec<&str> {
    events.iter().map(Event::type_name).collect()
}

fn finished(events: &[Event]) -> &RunFinished {
    match events.last() {
        Some(Event::RunFinished(finished)) => finished,
        other => panic!("expected RUN_FINISHED, found {other:?}"),
    }
}

fn error_code(events: &[Event]) -> (&str, Option<&str>) {
    match events.last() {
        Some(Event::RunError(error)) => (&error.message, error.code.as_deref()),
        other => panic!("expected RUN_ERROR, found {other:?}"),
    }
}

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

mod random {
    //! A property: whatever sequence of emitting calls a program makes, the stream is valid.

    use super::*;
    use agui_agent::emitter::{
        Activity, ReasoningMessage, ReasoningSpan, Step, Subagent, TextMessage, ToolCall,
    };
    use agui_types::{JsonPatch, PatchOp};
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Act {
        Open(u8, u8),
        Push(u8),
        End(u8),
        Drop(u8),
        State,
        Reopen(u8),
        Interrupt,
        Fail,
        Panic,
        Yield,
    }

    enum Handle {
        Text(TextMessage),
        Call(ToolCall),
        Span(ReasoningSpan),
        Thought(ReasoningMessage),
        Step(Step),
        Activity(Activity),
        Subagent(Subagent),
    }

    fn act() -> impl Strategy<Value = Act> {
        prop_oneof![
            8 => (0u8..7, any::<u8>()).prop_map(|(kind, owner)| Act::Open(kind, owner)),
            8 => any::<u8>().prop_map(Act::Push),
            4 => any::<u8>().prop_map(Act::End),
            4 => any::<u8>().prop_map(Act::Drop),
            2 => Just(Act::State),
            2 => any::<u8>().prop_map(Act::Reopen),
            1 => Just(Act::Interrupt),
            1 => Just(Act::Fail),
            1 => Just(Act::Panic),
            2 => Just(Act::Yield),
        ]
    }

    async fn perform(run: Run, acts: Vec<Act>) -> AgentResult {
        let mut held: Vec<Handle> = Vec::new();
        for act in acts {
            match act {
                Act::Open(kind, owner) => {
                    let owners: Vec<_> = held
                        .iter()
                        .filter_map(|handle| match handle {
                            Handle::Subagent(subagent) => Some((**subagent).clone()),
                            _ => None,
                        })
                        .collect();
                    let owner = owners.get(usize::from(owner)).unwrap_or(&run);
                    let handle = match kind {
                        0 => owner.text().await.map(Handle::Text),
                        1 => owner.tool_call("t").await.map(Handle::Call),
                        2 => owner.reasoning().await.map(Handle::Span),
                        3 => owner.step(format!("s{}", held.len() % 3)).await.map(Handle::Step),
                        4 => owner.subagent("sub").await.map(Handle::Subagent),
                        5 => {
                            owner.activity("a", &serde_json::json!({})).await.map(Handle::Activity)
                        }
                        _ => match held.iter().rev().find_map(|handle| match handle {
                            Handle::Span(span) => Some(span),
                            _ => None,
                        }) {
                            Some(span) => span.message().await.map(Handle::Thought),
                            None => continue,
                        },
                    };
                    held.extend(handle);
                }
                Act::Push(at) => {
                    let at = usize::from(at) % held.len().max(1);
                    let pushed = match held.get_mut(at) {
                        Some(Handle::Text(text)) => text.push("x").await,
                        Some(Handle::Call(call)) => call.args("{").await,
                        Some(Handle::Thought(thought)) => thought.push("x").await,
                        Some(Handle::Activity(activity)) => {
                            let add = PatchOp::Add {
                                path: "/x".parse()?,
                                value: agui_types::Json::parse("1")?,
                            };
                            activity.patch([add.into()]).await
                        }
                        Some(Handle::Subagent(subagent)) => subagent.say("x").await.map(drop),
                        _ => Ok(()),
                    };
                    // Refusals are part of the game.
                    let _ = pushed;
                }
                Act::End(at) if !held.is_empty() => {
                    let at = usize::from(at) % held.len();
                    let _ = match held.swap_remove(at) {
                        Handle::Text(text) => text.end().await.map(drop),
                        Handle::Call(call) => call.result("r").await.map(drop),
                        Handle::Span(span) => span.end().await,
                        Handle::Thought(thought) => thought.end().await.map(drop),
                        Handle::Step(step) => step.end().await,
                        Handle::Subagent(subagent) => subagent.finish().await,
                        Handle::Activity(_) => Ok(()),
                    };
                }
                Act::Drop(at) if !held.is_empty() => {
                    drop(held.swap_remove(usize::from(at) % held.len()));
                }
                Act::End(_) | Act::Drop(_) => {}
                Act::State => run.state_delta(JsonPatch::default()).await?,
                Act::Reopen(id) => {
                    let reopened =
                        run.open_text(TextMessageStart::new(format!("m{}", id % 4))).await;
                    held.extend(reopened.map(Handle::Text));
                }
                Act::Interrupt => run.interrupt(Interrupt::new("i", "why"))?,
                Act::Fail => return Err("failed".into()),
                Act::Panic => std::panic::resume_unwind(Box::new("panicked")),
                Act::Yield => tokio::task::yield_now().await,
            }
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        #[test]
        fn every_program_makes_a_valid_stream(
            acts in proptest::collection::vec(act(), 0..60),
            cancel_after in proptest::option::of(0usize..40),
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().build()?;
            runtime.block_on(async {
                let cancel = CancellationToken::new();
                let agent = move |run: Run| perform(run, acts.clone());
                let stream = agent.run(input(), RunContext::new().with_cancel(cancel.clone()));
                let mut seen = 0;
                let stream = stream.inspect(move |_| {
                    seen += 1;
                    if Some(seen) == cancel_after {
                        cancel.cancel();
                    }
                });
                whole(Box::pin(stream)).await;
            });
        }
    }
}
