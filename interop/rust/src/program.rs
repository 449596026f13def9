//! A program made of chance that does everything an agent can do with the emitter: right, wrong, and
//! to the bitter end.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use agui_agent::emitter::{
    Activity, CallChunk, Completion, CompletionChunk, EmitError, Emitter, ReasoningMessage,
    ReasoningSpan, State, Step, Subagent, TextMessage, ToolCall,
};
use agui_agent::{Agent, AgentResult, CancellationToken, EventStream, Run, RunContext, RunFailure};
use agui_types::event::{
    ActivityDelta, EncryptedValueSubtype, ReasoningEncryptedValue, TextMessageStart, TextRole,
    ToolCallStart,
};
use agui_types::message::{AssistantMessage, FunctionCall, ToolMessage, UserMessage};
use agui_types::{
    Event, Interrupt, Json, JsonPatch, Message, PatchOp, ResumeEntry, ResumeStatus, RunAgentInput,
    TokenUsage, Tool,
};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};

/// What to do, as bytes: each act takes one for what it is, and as many more as it needs. Any bytes
/// are a program; where they end, the agent returns.
#[derive(Clone, Debug)]
pub struct Program {
    bytes: Vec<u8>,
    refused: Arc<AtomicUsize>,
}

/// Programs are the same that do the same.
impl PartialEq for Program {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Program {
    /// The program that these bytes are.
    #[must_use]
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self { bytes, refused: Arc::default() }
    }

    /// A program of up to 200 bytes: always the same one for a seed.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        // SplitMix64.
        let mut state = seed;
        let mut next = move || {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^ (z >> 31)
        };
        let length = next() % 200;
        Self::from_bytes((0..length).map(|_| next().to_le_bytes()[0]).collect())
    }

    /// An input on which there is something to do: a history with a call and its result, a state, a
    /// tool of the front end, and an answer.
    #[must_use]
    pub fn input(&self) -> RunAgentInput {
        let call = agui_types::ToolCall::new("c0", FunctionCall::new("work", "{}"));
        let messages: Vec<Message> = vec![
            UserMessage::new("u0", "hello").into(),
            AssistantMessage::new("m0").tool_calls(vec![call]).into(),
            ToolMessage::new("t0", "done", "c0").into(),
            UserMessage::new("u1", "and now?").into(),
        ];
        let state = serde_json::json!({ "count": 1, "list": ["a"], "theirs": { "deep": true } });
        RunAgentInput::new("thread", "run", messages)
            .state(state)
            .tools(vec![Tool::new("pick", "Picks.")])
            .context(Vec::new())
            .forwarded_props(serde_json::json!({}))
            .resume(vec![ResumeEntry::new("i0", ResumeStatus::Resolved)])
    }

    /// How often the emitter has said no, over all runs.
    #[must_use]
    pub fn refused(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }

    /// The events of a run, cancelled after so many. One that does not end by itself is cancelled
    /// when it has nothing more to say.
    pub async fn events(&self, cancel_after: Option<usize>) -> Vec<Event> {
        let cancel = CancellationToken::new();
        let context = RunContext::new().with_cancel(cancel.clone());
        let mut stream = self.run(self.input(), context);
        let mut events: Vec<Event> = Vec::new();
        loop {
            if cancel_after == Some(events.len()) {
                cancel.cancel();
            }
            // Nothing here waits for anything but the program itself, which yields now and then.
            let mut idle = 0;
            let next = poll_fn(|cx| match stream.poll_next_unpin(cx) {
                Poll::Pending if idle < 1_000 => {
                    idle += 1;
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
                Poll::Pending => Poll::Ready(None),
                Poll::Ready(next) => Poll::Ready(Some(next)),
            });
            match next.await {
                Some(Some(event)) => events.push(event.expect("an emitter yields no error").value),
                Some(None) => return events,
                None => cancel.cancel(),
            }
        }
    }
}

impl Agent for Program {
    fn run(&self, input: RunAgentInput, context: RunContext) -> EventStream {
        let Self { bytes, refused } = self.clone();
        Box::pin(agui_agent::emitter::stream(input, context, |run| perform(run, bytes, refused)))
    }
}

/// What the program holds open.
enum Handle {
    Text(TextMessage),
    Call(ToolCall),
    Span(ReasoningSpan),
    Thought(ReasoningMessage),
    Step(Step),
    Activity(Activity),
    Subagent(Subagent),
    State(State<Shared>),
    Completion(Box<Completion>),
}

#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
struct Shared {
    count: u64,
    list: Vec<String>,
}

/// The program's bytes, one after another.
struct Bytes(std::vec::IntoIter<u8>);

impl Bytes {
    fn next(&mut self) -> usize {
        self.0.next().unwrap_or_default().into()
    }

    /// One of so many.
    fn below(&mut self, count: usize) -> usize {
        self.next() % count.max(1)
    }

    /// An id of few, so that they meet.
    fn id(&mut self, kind: char) -> String {
        format!("{kind}{}", self.below(4))
    }
}

async fn perform(run: Run, bytes: Vec<u8>, refused: Arc<AtomicUsize>) -> AgentResult {
    let mut bytes = Bytes(bytes.into_iter());
    let mut held: Vec<Handle> = Vec::new();
    while let Some(act) = bytes.0.next() {
        // Refusals are part of the game, but for those that the run is over.
        let done = match act % 16 {
            0..=5 => match open(&run, &held, &mut bytes).await {
                Ok(handle) => {
                    held.push(handle);
                    Ok(())
                }
                Err(error) => Err(error),
            },
            6..=8 => {
                let at = bytes.below(held.len());
                match held.get_mut(at) {
                    Some(handle) => push(handle, &mut bytes).await,
                    None => Ok(()),
                }
            }
            9 | 10 if !held.is_empty() => {
                let handle = held.swap_remove(bytes.below(held.len()));
                end(handle, &mut bytes).await
            }
            11 if !held.is_empty() => {
                drop(held.swap_remove(bytes.below(held.len())));
                Ok(())
            }
            12 => emit(&run, owner(&run, &held, &mut bytes), &mut bytes).await,
            13 => ask(&run, owner(&run, &held, &mut bytes), &mut bytes).await,
            14 => {
                pause().await;
                Ok(())
            }
            // Rare, so that most programs get far.
            15 => match bytes.next() {
                0..=7 => return Err(RunFailure::new("failed").code("WORN_OUT").into()),
                8..=15 => return Err("failed".into()),
                16..=23 => std::panic::resume_unwind(Box::new("panicked")),
                24..=31 => {
                    let clone = run.clone();
                    let mut text = clone.text().await?;
                    text.push("and then for ever").await?;
                    std::future::pending().await
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        };
        match done {
            Ok(()) => {}
            Err(EmitError::RunOver) => return Ok(()),
            Err(_) => drop(refused.fetch_add(1, Ordering::Relaxed)),
        }
    }
    Ok(())
}

/// The run, or one of the subagents held.
fn owner<'h>(run: &'h Run, held: &'h [Handle], bytes: &mut Bytes) -> &'h Emitter {
    let subagents = held.iter().filter_map(|handle| match handle {
        Handle::Subagent(subagent) => Some(&**subagent),
        _ => None,
    });
    let owners: Vec<&Emitter> = std::iter::once(&**run).chain(subagents).collect();
    owners[bytes.below(owners.len())]
}

async fn open(run: &Run, held: &[Handle], bytes: &mut Bytes) -> Result<Handle, EmitError> {
    let owner = owner(run, held, bytes);
    Ok(match bytes.below(14) {
        0 => Handle::Text(owner.text().await?),
        1 => {
            let mut start = TextMessageStart::new(bytes.id('m'));
            if bytes.below(3) == 0 {
                let roles = ["user", "system", "narrator"];
                start = start.role(TextRole::from(roles[bytes.below(3)]));
            }
            Handle::Text(owner.open_text(start).await?)
        }
        2 => Handle::Call(owner.tool_call("work").await?),
        3 => {
            let names = ["work", "pick"];
            let mut start = ToolCallStart::new(bytes.id('c'), names[bytes.below(2)]);
            if bytes.below(2) == 0 {
                let kind = ['m', 'u', 't'][bytes.below(3)];
                start = start.parent_message_id(bytes.id(kind));
            }
            Handle::Call(owner.open_tool_call(start).await?)
        }
        4 => Handle::Span(owner.reasoning().await?),
        5 => {
            let spans = held.iter().rev().find_map(|handle| match handle {
                Handle::Span(span) => Some(span),
                _ => None,
            });
            match spans {
                Some(span) => Handle::Thought(span.message().await?),
                None => Handle::Span(owner.reasoning().await?),
            }
        }
        6 => Handle::Step(owner.step(bytes.id('s')).await?),
        7 => Handle::Activity(owner.activity("plan", &serde_json::json!({ "n": 0 })).await?),
        8 | 9 => Handle::Subagent(owner.subagent("helper").await?),
        10 | 11 => Handle::State(owner.state()?),
        12 => Handle::Completion(Box::new(owner.completion())),
        _ => {
            run.call_frontend_tool("pick", &serde_json::json!({ "from": [1, 2] })).await?;
            Handle::State(owner.state()?)
        }
    })
}

async fn push(handle: &mut Handle, bytes: &mut Bytes) -> Result<(), EmitError> {
    let words =
        ["", "a", "\u{1F30D}", "{\"x\":", "\n", "Grüße, 世界", "line\r\n", "\"\\\u{2028}\0", "1}"];
    let word = words[bytes.below(words.len())];
    match handle {
        Handle::Text(text) => text.push(word).await,
        Handle::Call(call) => call.args(word).await,
        Handle::Thought(thought) if bytes.below(4) == 0 => thought.encrypted_value("x").await,
        Handle::Thought(thought) => thought.push(word).await,
        Handle::Span(span) => span.say(word).await.map(drop),
        Handle::Step(_) => Ok(()),
        Handle::Activity(activity) => match bytes.below(3) {
            0 => activity.replace(&serde_json::json!({ "n": word })).await,
            _ => activity.patch(patch(bytes)).await,
        },
        Handle::Subagent(subagent) => subagent.say(word).await.map(drop),
        Handle::State(state) => {
            let count = bytes.next();
            let change = |shared: &mut Shared| match count % 4 {
                0 => shared.count += 1,
                1 => shared.list.push(word.into()),
                2 => drop(shared.list.pop()),
                _ => shared.list.insert(0, format!("{word}{count}")),
            };
            state.update(change).await
        }
        Handle::Completion(completion) => {
            let mut chunk = CompletionChunk::new();
            match bytes.below(6) {
                0 => chunk = chunk.text(word),
                1 => chunk = chunk.reasoning(word),
                2 => chunk = chunk.text(word).reasoning(word).encrypted_reasoning(word),
                more => {
                    let mut call = CallChunk::new().arguments(word);
                    if bytes.below(2) == 0 {
                        call = call.index(bytes.below(3));
                    }
                    if bytes.below(2) == 0 {
                        call = call.name(["work", "play"][bytes.below(2)]);
                    }
                    if bytes.below(3) == 0 {
                        call = call.id(bytes.id('c'));
                    }
                    chunk = chunk.call(call);
                    if more == 3 {
                        chunk = chunk.text(word).usage(TokenUsage::new().input_tokens(7u32));
                    }
                }
            }
            completion.push(chunk).await
        }
    }
}

async fn end(handle: Handle, bytes: &mut Bytes) -> Result<(), EmitError> {
    match handle {
        Handle::Text(text) => text.end().await.map(drop),
        Handle::Call(call) => match bytes.below(3) {
            0 => call.end().await.map(drop),
            1 => call.result_json(&serde_json::json!({ "ok": true })).await.map(drop),
            _ => call.result("done").await.map(drop),
        },
        Handle::Span(span) => span.end().await,
        Handle::Thought(thought) => thought.end().await.map(drop),
        Handle::Step(step) => step.end().await,
        Handle::Activity(_) => Ok(()),
        Handle::Subagent(subagent) => match bytes.below(4) {
            0 => subagent.finish().await,
            1 => subagent.finish_with(&Json::parse("null").ok()).await,
            2 => {
                let id = bytes.id('i');
                subagent.interrupt(Interrupt::new(id.as_str(), "approval"))?;
                subagent.suspend(vec![id.into()]).await
            }
            _ => subagent.fail("could not").await,
        },
        Handle::State(state) => state.snapshot().await,
        Handle::Completion(completion) => completion.finish().await.map(drop),
    }
}

async fn emit(run: &Run, owner: &Emitter, bytes: &mut Bytes) -> Result<(), EmitError> {
    match bytes.below(10) {
        0 => owner.state_delta(patch(bytes)).await,
        1 => owner.state_snapshot(&serde_json::json!({ "count": 0, "list": [] })).await,
        2 => owner.custom("chance.event", &bytes.next()).await,
        3 => owner.raw(&()).await,
        4 => {
            let kind = ['m', 'u', 'c'][bytes.below(3)];
            let id = bytes.id(kind);
            let value = ReasoningEncryptedValue::new(
                EncryptedValueSubtype::from(["message", "tool-call", "dream"][bytes.below(3)]),
                id,
                "x",
            );
            owner.encrypted_value(value).await
        }
        5 => {
            let delta = ActivityDelta::new(bytes.id('m'), "plan", patch(bytes));
            owner.emit(delta).await
        }
        6 => {
            let ids = (0..bytes.below(3)).map(|_| bytes.id('m')).collect::<Vec<_>>();
            let messages = run.input().messages.iter().cloned();
            let more =
                ids.into_iter().map(|id| AssistantMessage::new(id).content("restated").into());
            owner.messages_snapshot(messages.chain(more).collect()).await
        }
        7 => owner.tool_result(bytes.id('c'), "done").await.map(drop),
        8 => owner.say("a sentence").await.map(drop),
        _ => {
            let event = Event::from(TextMessageStart::new(bytes.id('m')));
            owner.emit(event).await
        }
    }
}

async fn ask(run: &Run, owner: &Emitter, bytes: &mut Bytes) -> Result<(), EmitError> {
    match bytes.below(6) {
        0 => owner.interrupt(Interrupt::new(bytes.id('i'), "approval").message("May I?")),
        1 => run.set_result(&bytes.next()),
        2 => run.answer_as::<Option<bool>>(bytes.id('i')).map(drop),
        3 => {
            owner.add_usage(TokenUsage::new().model(bytes.id('m')).output_tokens(3u32));
            Ok(())
        }
        // Something is waited for and given up.
        _ => {
            let mut said = Box::pin(owner.say("perhaps"));
            let once = poll_fn(|cx| {
                Poll::Ready(match said.as_mut().poll(cx) {
                    Poll::Ready(Err(error)) => Err(error),
                    _ => Ok(()),
                })
            });
            once.await
        }
    }
}

/// Lets others go on.
async fn pause() {
    let mut paused = false;
    let once = poll_fn(|cx| {
        if std::mem::replace(&mut paused, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    });
    once.await;
}

/// A patch that may apply or not.
fn patch(bytes: &mut Bytes) -> JsonPatch {
    let paths = ["", "/n", "/count", "/list/0", "/list/-", "/theirs/deep", "/no/where", "/list"];
    let operations = (0..1 + bytes.below(2)).map(|_| {
        let path = paths[bytes.below(paths.len())].parse().unwrap_or_default();
        let from = paths[bytes.below(paths.len())].parse().unwrap_or_default();
        let value: Json = serde_json::json!([1, "x", {}, null])[bytes.below(4)].clone().into();
        let op = match bytes.below(6) {
            0 | 1 => PatchOp::Add { path, value },
            2 => PatchOp::Replace { path, value },
            3 => PatchOp::Remove { path },
            4 => PatchOp::Move { from, path },
            _ => PatchOp::Test { path, value },
        };
        op.into()
    });
    JsonPatch(operations.collect())
}
