//! Throttle, timeout and retry, by a clock that stands still until everybody waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use agui_agent::middleware::{
    Retry, TIMEOUT_FIRST_EVENT, TIMEOUT_IDLE, TIMEOUT_TOTAL, Throttle, Timeout,
};
use agui_agent::{
    Agent, AgentError, AgentExt, AgentResult, CancellationToken, EventStream, RetryPolicy, Run,
    RunContext,
};
use agui_types::event::TextMessageContent;
use agui_types::{Event, RunAgentInput};
use futures_util::{StreamExt, stream};
use tokio::time::{Instant, sleep};

use super::{FINISHED, STARTED, Script, error_code, input, run, types};

const MS: fn(u64) -> Duration = Duration::from_millis;

/// The texts that went out and when, in milliseconds.
async fn texts(agent: &impl Agent) -> Vec<(u64, String)> {
    let began = Instant::now();
    let mut stream = agent.run(input(), RunContext::new());
    let mut texts = Vec::new();
    while let Some(event) = stream.next().await {
        if let Event::TextMessageContent(content) = event.unwrap().value {
            texts.push((u64::try_from(began.elapsed().as_millis()).unwrap(), content.delta));
        }
    }
    texts
}

#[tokio::test(start_paused = true)]
async fn deltas_are_joined_for_an_interval_and_end_before_anything_else() {
    // C-40
    async fn agent(run: Run) -> AgentResult {
        let mut text = run.text().await?;
        for word in ["a", "b", "c", "d", "e", "f"] {
            text.push(word).await?;
            sleep(MS(22)).await;
        }
        text.push("g").await?;
        text.end().await?;
        Ok(())
    }
    let throttled = agent.with(Throttle::new(MS(50)));
    let went = texts(&throttled).await;
    let joined: Vec<_> = went.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(joined, ["a", "bc", "de", "fg"]);
    // The first at once, then one each interval, the last with the end.
    let times: Vec<u64> = went.iter().map(|(at, _)| *at).collect();
    assert!(times[0] == 0 && (50..53).contains(&times[1]) && times[3] <= 135, "{times:?}");
    let (events, _) = run(&throttled).await;
    assert_eq!(types(&events)[events.len() - 2..], ["TEXT_MESSAGE_END", "RUN_FINISHED"]);
}

#[tokio::test(start_paused = true)]
async fn no_delta_is_held_beyond_its_size_or_for_another_item() {
    async fn agent(run: Run) -> AgentResult {
        let (mut one, mut two) = (run.text().await?, run.text().await?);
        one.push("a").await?;
        one.push("bb").await?;
        one.push("cc").await?;
        two.push("d").await?;
        two.push("e").await?;
        let tagged = TextMessageContent::new(two.id(), "f")
            .metadata(agui_types::JsonObject::parse(r#"{"k":1}"#)?);
        run.emit(tagged).await?;
        two.push("g").await?;
        two.push("hhhhh").await?;
        Ok(())
    }
    let throttled = agent.with(Throttle::new(MS(1_000)).most_bytes(4));
    let joined: Vec<_> = texts(&throttled).await.into_iter().map(|(_, text)| text).collect();
    assert_eq!(joined, ["a", "bbcc", "de", "f", "ghhhhh"]);
    let all: String = texts(&agent).await.into_iter().map(|(_, text)| text).collect();
    assert_eq!(joined.concat(), all);
}

#[tokio::test(start_paused = true)]
async fn an_error_comes_behind_what_was_held() {
    // C-12
    struct Breaks;
    impl Agent for Breaks {
        fn run(&self, input: RunAgentInput, context: RunContext) -> EventStream {
            let begun = Script(vec![
                STARTED,
                r#"{"type":"TEXT_MESSAGE_START","messageId":"m"}"#,
                r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a"}"#,
                r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"b"}"#,
            ]);
            let error = stream::iter([Err(AgentError::Cancelled)]);
            Box::pin(begun.run(input, context).chain(error))
        }
    }
    let (events, error) = run(&Breaks.with(Throttle::new(MS(50)))).await;
    assert_eq!(types(&events)[2..], ["TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CONTENT"]);
    assert!(error.is_some());
}

/// Is silent for so long before its first event, and before each of two more.
#[derive(Clone, Copy)]
struct Slow(u64, u64);

impl Agent for Slow {
    fn run(&self, input: RunAgentInput, context: RunContext) -> EventStream {
        let Slow(first, others) = *self;
        let custom = r#"{"type":"CUSTOM","name":"app.x","value":1}"#;
        let events = Script(vec![STARTED, custom, FINISHED]).run(input, context).enumerate();
        Box::pin(events.then(move |(at, event)| async move {
            sleep(MS(if at == 0 { first } else { others })).await;
            event
        }))
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_takes_too_long_ends_and_says_why() {
    // C-9, C-12, P-1
    let limits = || Timeout::new().first_event(MS(100)).idle(MS(200));
    let (events, _) = run(&Slow(99, 199).with(limits())).await;
    assert_eq!(types(&events), ["RUN_STARTED", "CUSTOM", "RUN_FINISHED"]);

    let began = Instant::now();
    let (events, _) = run(&Slow(500, 0).with(limits())).await;
    assert_eq!((events.len(), error_code(&events).1), (1, Some(TIMEOUT_FIRST_EVENT)));
    assert!(began.elapsed() < MS(110));

    let (events, _) = run(&Slow(0, 500).with(limits())).await;
    assert_eq!((events.len(), error_code(&events).1), (2, Some(TIMEOUT_IDLE)));

    let began = Instant::now();
    let (events, _) = run(&Slow(90, 150).with(limits().total(MS(300)))).await;
    assert_eq!((events.len(), error_code(&events).1), (3, Some(TIMEOUT_TOTAL)));
    assert!((MS(300)..MS(310)).contains(&began.elapsed()));

    async fn hangs(run: Run) -> AgentResult {
        let _text = run.text().await?;
        std::future::pending().await
    }
    let (events, _) = run(&hangs.with(Timeout::new().idle(MS(10)))).await;
    assert_eq!(types(&events), ["RUN_STARTED", "TEXT_MESSAGE_START", "RUN_ERROR"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_over_gets_no_second_end() {
    // P-3
    struct Lingers;
    impl Agent for Lingers {
        fn run(&self, input: RunAgentInput, context: RunContext) -> EventStream {
            let events = Script(vec![STARTED, FINISHED]).run(input, context);
            Box::pin(events.chain(stream::pending()))
        }
    }
    let (events, error) = run(&Lingers.with(Timeout::new().total(MS(10)))).await;
    assert_eq!(types(&events), ["RUN_STARTED", "RUN_FINISHED"]);
    assert!(error.is_none());
}

/// Fails so often before it runs.
struct Fails {
    left: AtomicU32,
    error: fn() -> AgentError,
}

impl Agent for Fails {
    fn run(&self, input: RunAgentInput, context: RunContext) -> EventStream {
        let failing =
            self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        match failing {
            Ok(_) => Box::pin(stream::iter([Err((self.error)())])),
            Err(_) => Script(vec![STARTED, FINISHED]).run(input, context),
        }
    }
}

fn fails(times: u32, error: fn() -> AgentError) -> Arc<Fails> {
    Arc::new(Fails { left: AtomicU32::new(times), error })
}

fn busy() -> AgentError {
    AgentError::Status { status: 503, body: "later".into() }
}

fn broken() -> AgentError {
    AgentError::Status { status: 500, body: "broken".into() }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_did_not_begin_is_asked_for_again() {
    let policy = RetryPolicy::new(2).first_delay(MS(100));
    let began = Instant::now();
    let (events, error) = run(&fails(2, busy).with(Retry::new(policy))).await;
    assert_eq!((events.len(), error.is_none()), (2, true));
    // Half of 100 and 200 at least, all of it at most.
    assert!((MS(150)..MS(305)).contains(&began.elapsed()), "{:?}", began.elapsed());

    let (events, error) = run(&fails(3, busy).with(Retry::new(policy))).await;
    assert!(events.is_empty());
    assert_eq!(error.unwrap().to_string(), "HTTP 503: later");

    // It may have begun.
    let agent = fails(1, broken);
    assert!(run(&Arc::clone(&agent).with(Retry::new(policy))).await.1.is_some());
    let also = |error: &AgentError| matches!(error, AgentError::Status { status: 500, .. });
    assert!(run(&fails(1, broken).with(Retry::new(policy).also(also))).await.1.is_none());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_retried_once_there_was_an_event() {
    struct BreaksLate(Arc<AtomicU32>);
    impl Agent for BreaksLate {
        fn run(&self, input: RunAgentInput, context: RunContext) -> EventStream {
            self.0.fetch_add(1, Ordering::SeqCst);
            let begun = Script(vec![STARTED]).run(input, context);
            Box::pin(begun.chain(stream::iter([Err(busy())])))
        }
    }
    let runs = Arc::new(AtomicU32::new(0));
    let agent = BreaksLate(Arc::clone(&runs)).with(Retry::new(RetryPolicy::new(5)));
    let (events, error) = run(&agent).await;
    assert_eq!((events.len(), error.is_some()), (1, true));
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_the_waiting() {
    let cancel = CancellationToken::new();
    let context = RunContext::new().with_cancel(cancel.clone());
    let agent = fails(1, busy).with(Retry::new(RetryPolicy::new(1)));
    let mut stream = agent.run(input(), context);
    let began = Instant::now();
    let waiting = stream.next();
    cancel.cancel();
    assert!(matches!(waiting.await, Some(Err(AgentError::Cancelled))));
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert!(stream.next().await.is_none());
}
