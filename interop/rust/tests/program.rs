//! Whatever an agent does with the emitter, its stream keeps every rule, and a consumer holds it
//! without a warning.

use std::collections::HashSet;

use agui_agent::{CancellationToken, Delivered, RunContext, deliver};
use agui_interop::program::Program;
use agui_stream::Verifier;
use agui_stream::fold::{Applied, Conversation};
use agui_types::{Event, EventReader, EventType, ToJson};
use futures_util::StreamExt;
use proptest::prelude::*;

/// Checks the stream of a program, and gives its events.
fn check(program: &Program, cancel_after: Option<usize>) -> Vec<Event> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let events = runtime.block_on(program.events(cancel_after));

    // Each event is what the schema describes (P-16, P-17), and they come in an order that keeps the
    // rules (P-1 to P-9, P-19 to P-21, P-55 to P-68).
    let mut reader = EventReader::new();
    let mut verifier = Verifier::for_run("thread".into(), "run".into());
    for event in &events {
        let text = event.to_json();
        assert_eq!(reader.exact(&text).as_ref(), Ok(event), "{text}");
        verifier.push(event).unwrap();
    }
    verifier.finish().unwrap();
    let terminal = events.iter().filter(|event| event.is_terminal()).count();
    assert_eq!(terminal, 1, "{events:#?}");

    // Nothing that a consumer would drop, strip or skip.
    let mut conversation = Conversation::from_input(&program.input()).unwrap();
    let mut applied = Applied::default();
    for event in &events {
        conversation.apply(event, &mut applied);
        assert_eq!(applied.warnings, [], "{event:?} in {events:#?}");
    }
    // P-32: what the run says of its open calls is what a consumer finds (C-54).
    if let Some(Event::RunFinished(finished)) = events.last()
        && let Some(agui_types::RunFinishedOutcome::Success(success)) = &finished.outcome
    {
        let pending: Vec<_> = conversation.pending_tool_calls().cloned().collect();
        assert_eq!(success.pending_tool_call_ids.as_ref(), Some(&pending));
    }
    events
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn every_program_makes_a_valid_stream(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        cancel_after in proptest::option::of(0usize..60),
    ) {
        check(&Program::from_bytes(bytes), cancel_after);
    }
}

#[test]
fn every_seed_makes_a_valid_stream() {
    let mut seen = HashSet::new();
    for seed in 0..2_000 {
        seen.extend(check(&Program::from_seed(seed), None).iter().filter_map(Event::event_type));
    }
    // Everything that an agent can emit comes up.
    let missing = EventType::ALL.iter().filter(|kind| !seen.contains(*kind));
    let missing: Vec<_> = missing.map(|kind| kind.as_str()).collect();
    assert_eq!(missing, ["TEXT_MESSAGE_CHUNK", "TOOL_CALL_CHUNK", "REASONING_MESSAGE_CHUNK"]);
    assert_eq!(Program::from_seed(7), Program::from_seed(7));
    assert_ne!(Program::from_seed(7), Program::from_seed(8));
}

#[test]
fn every_seed_is_delivered_without_a_warning() {
    // C-32, C-33: in this process as over any other way.
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for seed in 0..500 {
        let program = Program::from_seed(seed);
        let cancel = CancellationToken::new();
        let context = RunContext::new().with_cancel(cancel.clone());
        let mut delivery = deliver(&program, program.input(), context);
        runtime.block_on(async {
            let mut idle = 0;
            loop {
                let next =
                    std::future::poll_fn(|cx| std::task::Poll::Ready(delivery.poll_next_unpin(cx)));
                match next.await {
                    std::task::Poll::Pending if idle > 1_000 => cancel.cancel(),
                    std::task::Poll::Pending => idle += 1,
                    std::task::Poll::Ready(None) => break,
                    std::task::Poll::Ready(Some(Ok(Delivered::Event(_)))) => {}
                    std::task::Poll::Ready(Some(other)) => panic!("seed {seed}: {other:?}"),
                }
            }
        });
    }
}
