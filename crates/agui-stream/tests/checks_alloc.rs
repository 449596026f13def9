//! What the stages before the conversation allocate, counted for the thread that runs the test:
//! nothing for an event that comes by the token.

mod counting;

use agui_stream::{ChunkExpander, Pipeline, Verifier};
use agui_types::Event;
use agui_types::event::{
    ReasoningMessageContent, ReasoningMessageStart, RunStarted, TextMessageChunk,
    TextMessageContent, TextMessageStart, ToolCallArgs, ToolCallStart,
};
use counting::counted;

/// How often `run` allocates.
fn calls(run: impl FnOnce()) -> usize {
    counted(run).1.calls
}

const OWNER: &str = "subagent";

fn openers() -> Vec<Event> {
    let mut openers: Vec<Event> = vec![
        RunStarted::new("thread", "run").into(),
        TextMessageStart::new("m").into(),
        ToolCallStart::new("c", "f").subagent_run_id(OWNER).into(),
        ReasoningMessageStart::new("r").into(),
    ];
    // Many others, so that it is not the small case that is measured.
    openers.extend((0..1_000).map(|at| TextMessageStart::new(format!("m{at}")).into()));
    openers
}

fn tokens() -> Vec<Event> {
    let three = || {
        [
            Event::from(TextMessageContent::new("m", "text")),
            ToolCallArgs::new("c", "{}").subagent_run_id(OWNER).into(),
            ReasoningMessageContent::new("r", "thought").into(),
        ]
    };
    (0..1_000).flat_map(|_| three()).collect()
}

#[test]
fn verifying_a_token_allocates_nothing() {
    let mut verifier = Verifier::new();
    for event in openers() {
        verifier.push(&event).unwrap();
    }
    let tokens = tokens();
    let calls = calls(|| tokens.iter().for_each(|event| verifier.push(event).unwrap()));
    assert_eq!(calls, 0);
}

#[test]
fn a_token_goes_through_the_pipeline_without_an_allocation() {
    let (mut pipeline, mut warnings) = (Pipeline::new(), Vec::new());
    let (openers, tokens) = (openers(), tokens());
    let mut out = Vec::with_capacity(openers.len() + tokens.len());
    for event in openers {
        pipeline.push(event.into(), &mut out, &mut warnings).unwrap();
    }
    let calls = calls(|| {
        for event in tokens {
            pipeline.push(event.into(), &mut out, &mut warnings).unwrap();
        }
    });
    assert_eq!(calls, 0);
    assert_eq!(out.len(), out.capacity());
}

#[test]
fn what_is_no_chunk_passes_the_expander_without_an_allocation() {
    let mut expander = ChunkExpander::new();
    let tokens = tokens();
    let mut out = Vec::with_capacity(tokens.len() + 2);
    // Something pending in a lane that none of them closes.
    let chunk = TextMessageChunk::new().message_id("x").subagent_run_id("other").delta("");
    expander.push(chunk.into(), &mut out).unwrap();
    let calls = calls(|| {
        for event in tokens {
            expander.push(event, &mut out).unwrap();
        }
    });
    assert_eq!(calls, 0);
}
