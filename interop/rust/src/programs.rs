//! The streams of agents made by chance: a thread a line, as `node/differential/judge.mjs` plays it.

use std::io::Write;

use agui_interop::program::Program;
use agui_types::{Json, Message, RunAgentInput, ToJson};
use agui_wire::{Encoder, WireForm};
use anyhow::Context;
use serde::Serialize;

pub(crate) async fn write(from: u64, seeds: u64) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    for seed in from..from + seeds {
        let thread = Thread::of(seed).await.with_context(|| format!("seed {seed}"))?;
        serde_json::to_writer(&mut out, &thread)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

#[derive(Serialize)]
struct Thread {
    seed: u64,
    messages: Vec<Message>,
    state: Option<Json>,
    exchanges: [Exchange; 1],
    /// How often the emitter said no.
    refused: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Exchange {
    add_messages: [Message; 0],
    /// What is asked beside the thread's messages and state.
    input: RunAgentInput,
    frames: Vec<String>,
    read: usize,
}

impl Thread {
    async fn of(seed: u64) -> anyhow::Result<Self> {
        let program = Program::from_seed(seed);
        let mut input = program.input();
        let mut encoder = Encoder::new(WireForm::Sse);
        let mut frames = Vec::new();
        for event in program.events(None).await {
            let mut frame = Vec::new();
            let omitted = encoder.encode(&event, None, &mut frame)?;
            anyhow::ensure!(omitted.is_empty(), "{} has no form", event.to_json());
            frames.push(String::from_utf8(frame)?);
        }
        let (messages, state) = (std::mem::take(&mut input.messages), input.state.take());
        let exchange = Exchange { add_messages: [], input, frames, read: 1 << 20 };
        Ok(Self { seed, messages, state, exchanges: [exchange], refused: program.refused() })
    }
}
