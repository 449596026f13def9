//! Agents made by chance, and the streams they come to: a thread a line, as
//! `node/differential/judge.mjs` plays it.
//!
//! An agent opens, feeds, ends and drops whatever the emitter has, for itself and for subagents, asks
//! for much that the emitter has to refuse, and then returns, fails, panics or is cancelled. Its
//! stream has to keep every rule all the same.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agui_agent::emitter::{
    self, Activity, CallChunk, CompletionChunk, EmitError, Emitter, ReasoningMessage,
    ReasoningSpan, Step, Subagent, TextMessage, ToolCall,
};
use agui_agent::{AgentResult, Run, RunContext, RunFailure};
use agui_types::event::{
    EncryptedValueSubtype, ReasoningEncryptedValue, SubagentStarted, TextMessageStart, TextRole,
    ToolCallStart,
};
use agui_types::{
    FromJson, Interrupt, JsonPatch, MessageId, RunAgentInput, ToJson, TokenUsage, ToolCallId,
};
use agui_wire::{Encoder, WireForm};
use anyhow::Context;
use futures_util::StreamExt;
use serde::Serialize;
use serde_json::{Value, json};

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
    messages: Value,
    state: Value,
    exchanges: [Exchange; 1],
    /// How often the emitter said no.
    refused: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Exchange {
    add_messages: [Value; 0],
    input: Value,
    frames: Vec<String>,
    read: usize,
}

impl Thread {
    async fn of(seed: u64) -> anyhow::Result<Self> {
        let mut chance = Chance(seed);
        let messages = Value::from_iter((0..chance.below(3)).map(|at| match chance.below(2) {
            0 => json!({ "id": format!("h{at}"), "role": "user", "content": chance.text() }),
            _ => json!({ "id": format!("h{at}"), "role": "assistant", "content": chance.text() }),
        }));
        let state = chance.state();
        let tools = match chance.below(2) {
            0 => json!([]),
            _ => json!([{ "name": "search", "description": "", "parameters": {} }]),
        };
        let input = json!({
            "threadId": "thread", "runId": "run", "tools": tools, "context": [],
            "forwardedProps": {},
        });
        let mut whole = input.clone();
        whole["messages"] = messages.clone();
        whole["state"] = state.clone();
        let whole = RunAgentInput::from_json_exact(&whole.to_string())?;

        let refused = Arc::new(AtomicUsize::new(0));
        let agent = Agent { refused: Arc::clone(&refused), chance, ..Agent::default() };
        let stream = emitter::stream(whole, RunContext::new(), |run| agent.act(run));
        let mut stream = std::pin::pin!(stream);
        let mut encoder = Encoder::new(WireForm::Sse);
        let mut frames = Vec::new();
        while let Some(event) = stream.next().await {
            let (event, mut frame) = (event?.value, Vec::new());
            let omitted = encoder.encode(&event, None, &mut frame)?;
            anyhow::ensure!(omitted.is_empty(), "{} has no form", event.to_json());
            frames.push(String::from_utf8(frame)?);
        }
        let refused = refused.load(Ordering::Relaxed);
        let exchange = Exchange { add_messages: [], input, frames, read: 1 << 20 };
        Ok(Self { seed, messages, state, exchanges: [exchange], refused })
    }
}

/// What an agent holds open, and what it knows by id.
#[derive(Default)]
struct Agent {
    chance: Chance,
    refused: Arc<AtomicUsize>,
    texts: Vec<TextMessage>,
    calls: Vec<ToolCall>,
    spans: Vec<ReasoningSpan>,
    thoughts: Vec<ReasoningMessage>,
    steps: Vec<Step>,
    activities: Vec<Activity>,
    subagents: Vec<Subagent>,
    written: Vec<MessageId>,
    called: Vec<ToolCallId>,
}

impl Agent {
    async fn act(mut self, run: Run) -> AgentResult {
        for _ in 0..self.chance.below(60) {
            match self.step(&run).await {
                Ok(()) => {}
                Err(EmitError::RunOver) => break,
                Err(_) => {
                    self.refused.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        match self.chance.below(12) {
            0 => Err("it failed".into()),
            1 => {
                let mut failure = RunFailure::new("it failed");
                failure.code = Some("WORN_OUT".into());
                Err(failure.into())
            }
            // A panic of which the hook tells nobody.
            2 => std::panic::resume_unwind(Box::new("it panicked")),
            3 => {
                run.cancellation().cancel();
                std::future::pending().await
            }
            _ => Ok(()),
        }
    }

    async fn step(&mut self, run: &Run) -> Result<(), EmitError> {
        let emitter = self.emitter(run);
        match self.chance.below(100) {
            0..8 => self.open_text(&emitter).await?,
            8..22 => {
                let delta = self.chance.text();
                if let Some(text) = self.chance.of(&mut self.texts) {
                    text.push(delta).await?;
                }
            }
            22..27 => {
                if let Some(text) = self.chance.taken(&mut self.texts)
                    && self.chance.below(3) > 0
                {
                    text.end().await?;
                }
            }
            27..28 => self.written.push(emitter.say(self.chance.text()).await?),
            28..29 => self.complete(&emitter).await?,
            29..36 => self.open_call(&emitter).await?,
            36..44 => {
                let delta = self.chance.text();
                if let Some(call) = self.chance.of(&mut self.calls) {
                    call.args(delta).await?;
                }
            }
            44..50 => {
                if let Some(call) = self.chance.taken(&mut self.calls) {
                    match self.chance.below(4) {
                        0 => drop(call),
                        1 => drop(call.end().await?),
                        _ => self.written.push(call.result(self.chance.text()).await?),
                    }
                }
            }
            50..52 => {
                if let Some(call) = self.chance.of(&mut self.called).cloned() {
                    emitter.tool_result(call, self.chance.text()).await?;
                }
            }
            52..55 => self.spans.push(emitter.reasoning().await?),
            55..57 => {
                let text = self.chance.text();
                if let Some(span) = self.chance.of(&mut self.spans) {
                    self.written.push(span.say(text).await?);
                }
            }
            57..59 => {
                if let Some(span) = self.chance.of(&mut self.spans) {
                    self.thoughts.push(span.message().await?);
                }
            }
            59..62 => {
                let text = self.chance.text();
                if let Some(thought) = self.chance.of(&mut self.thoughts) {
                    thought.push(text).await?;
                }
            }
            62..64 => {
                if let Some(mut thought) = self.chance.taken(&mut self.thoughts) {
                    match self.chance.below(3) {
                        0 => drop(thought),
                        1 => thought.encrypted_value("sealed").await?,
                        _ => drop(thought.end().await?),
                    }
                }
            }
            64..66 => {
                if let Some(span) = self.chance.taken(&mut self.spans)
                    && self.chance.below(2) > 0
                {
                    span.end().await?;
                }
            }
            66..68 => {
                if let Some(call) = self.chance.of(&mut self.called).cloned() {
                    let of = EncryptedValueSubtype::ToolCall;
                    let value = ReasoningEncryptedValue::new(of, call.as_str(), "sealed");
                    emitter.encrypted_value(value).await?;
                }
            }
            68..70 => self.steps.push(emitter.step(self.chance.name()).await?),
            70..72 => {
                if let Some(step) = self.chance.taken(&mut self.steps)
                    && self.chance.below(2) > 0
                {
                    step.end().await?;
                }
            }
            72..74 => emitter.state_snapshot(&self.chance.state()).await?,
            74..77 => emitter.state_delta(self.patch()).await?,
            77..80 => emitter.state::<Value>()?.set(self.chance.state()).await?,
            80..82 => {
                let content = self.chance.state();
                self.activities.push(emitter.activity(self.chance.name(), &content).await?);
            }
            82..86 => {
                let (patch, content) = (self.patch(), self.chance.state());
                let patches = self.chance.below(2) > 0;
                if let Some(activity) = self.chance.of(&mut self.activities) {
                    match patches {
                        true => activity.patch(patch).await?,
                        false => activity.replace(&content).await?,
                    }
                }
            }
            86..89 => {
                let start = SubagentStarted::new(self.chance.id("s"), self.chance.name());
                self.subagents.push(emitter.open_subagent(start).await?);
            }
            89..92 => self.end_subagent().await?,
            92..94 => emitter.custom("app/custom", &self.chance.state()).await?,
            94 => emitter.raw(&self.chance.state()).await?,
            95..97 => {
                let usage = TokenUsage::new().model(self.chance.name()).input_tokens(7);
                run.add_usage(usage);
            }
            97 => run.set_result(&self.chance.state())?,
            98 if self.chance.below(2) == 0 => {
                let state = self.chance.state();
                self.called.push(run.call_frontend_tool("search", &state).await?);
            }
            98 => {
                let mut interrupt = Interrupt::new(self.chance.id("i"), "approval");
                interrupt.tool_call_id = self.chance.of(&mut self.called).cloned();
                run.interrupt(interrupt)?;
            }
            _ => run.messages_snapshot(run.input().messages.clone()).await?,
        }
        Ok(())
    }

    /// The agent itself, or one of its subagents.
    fn emitter(&mut self, run: &Run) -> Emitter {
        match self.chance.below(3) {
            0 => match self.chance.of(&mut self.subagents) {
                Some(subagent) => Emitter::clone(subagent),
                None => Emitter::clone(run),
            },
            _ => Emitter::clone(run),
        }
    }

    /// Of any role, new or once more.
    async fn open_text(&mut self, emitter: &Emitter) -> Result<(), EmitError> {
        let id = match self.chance.below(4) {
            0 => self.chance.of(&mut self.written).cloned(),
            _ => None,
        };
        let mut start = TextMessageStart::new(id.unwrap_or_else(|| self.chance.id("m").into()));
        let roles = [TextRole::Assistant, TextRole::User, TextRole::System, TextRole::Developer];
        start.role = (self.chance.below(3) == 0).then(|| roles[self.chance.below(4)].clone());
        let text = emitter.open_text(start).await?;
        self.written.push(text.id().clone());
        self.texts.push(text);
        Ok(())
    }

    /// What a model's answer becomes, piece by piece.
    async fn complete(&mut self, emitter: &Emitter) -> Result<(), EmitError> {
        let mut completion = emitter.completion();
        for _ in 0..self.chance.below(6) {
            let mut chunk = CompletionChunk::new();
            chunk = match self.chance.below(5) {
                0 => chunk.reasoning(self.chance.text()),
                1 => chunk.encrypted_reasoning("sealed"),
                2 => chunk.text(self.chance.text()),
                _ => {
                    let call = CallChunk::new().index(self.chance.below(2));
                    chunk.call(call.name(self.chance.name()).arguments(self.chance.text()))
                }
            };
            completion.push(chunk).await?;
        }
        // Else it is dropped.
        if self.chance.below(4) > 0 {
            let answer = completion.finish().await?;
            self.written.push(answer.message_id);
            self.called.extend(answer.calls.into_iter().map(|call| call.id));
        }
        Ok(())
    }

    /// In a message or on its own, new or once more.
    async fn open_call(&mut self, emitter: &Emitter) -> Result<(), EmitError> {
        let id = match self.chance.below(6) {
            0 => self.chance.of(&mut self.called).cloned(),
            _ => None,
        };
        let id = id.unwrap_or_else(|| self.chance.id("c").into());
        let mut start = ToolCallStart::new(id, self.chance.name());
        if self.chance.below(2) == 0 {
            start.parent_message_id = self.chance.of(&mut self.written).cloned();
        }
        let call = emitter.open_tool_call(start).await?;
        self.called.push(call.id().clone());
        self.calls.push(call);
        Ok(())
    }

    async fn end_subagent(&mut self) -> Result<(), EmitError> {
        let Some(subagent) = self.chance.taken(&mut self.subagents) else { return Ok(()) };
        match self.chance.below(5) {
            0 => drop(subagent),
            1 => subagent.fail("it failed").await?,
            2 => subagent.suspend(vec!["i0".into()]).await?,
            3 => subagent.finish_with(&self.chance.state()).await?,
            _ => subagent.finish().await?,
        }
        Ok(())
    }

    /// One that may well not apply.
    fn patch(&mut self) -> JsonPatch {
        let value = self.chance.state();
        let patch = match self.chance.below(6) {
            0 => json!([{ "op": "replace", "path": "", "value": value }]),
            1 => json!([{ "op": "add", "path": "/list/-", "value": value }]),
            2 => json!([{ "op": "remove", "path": "/n" }]),
            3 => json!([{ "op": "copy", "from": "/n", "path": "/m" }]),
            4 => json!([{ "op": "test", "path": "/n", "value": 1 }]),
            _ => json!([{ "op": "add", "path": "/n", "value": 1 }]),
        };
        JsonPatch::from_json_exact(&patch.to_string()).expect("a patch")
    }
}

/// SplitMix64.
#[derive(Default)]
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    fn of<'t, T>(&mut self, things: &'t mut [T]) -> Option<&'t mut T> {
        let at = self.below(things.len().max(1));
        things.get_mut(at)
    }

    fn taken<T>(&mut self, things: &mut Vec<T>) -> Option<T> {
        (!things.is_empty()).then(|| things.swap_remove(self.below(things.len())))
    }

    /// One of so few that it may be taken.
    fn id(&mut self, kind: &str) -> String {
        format!("{kind}{}", self.below(20))
    }

    fn name(&mut self) -> &'static str {
        ["search", "plan", "Über", ""][self.below(4)]
    }

    fn text(&mut self) -> &'static str {
        ["", "a", "{\"q\":", "1}", "Grüße, 世界 🌍", "line\nline\r\n", "\"\\\u{2028}\0"]
            [self.below(7)]
    }

    fn state(&mut self) -> Value {
        match self.below(4) {
            0 => json!({}),
            1 => json!({ "n": 1, "list": [] }),
            2 => json!({ "n": null, "list": [1, { "x": [true] }], "text": self.text() }),
            _ => json!({ "list": "none", "number": 1.5e-7 }),
        }
    }
}
