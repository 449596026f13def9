//! What one call of a model answers, as its provider streams it.

use agui_types::event::{TextMessageStart, ToolCallStart};
use agui_types::{Json, MessageId, TokenUsage, ToolCallId};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::request::read;
use super::scope::new_id;
use super::{EmitError, Emitter, ReasoningMessage, ReasoningSpan, TextMessage, ToolCall};

/// One piece of a provider's stream. What it has is taken in this order: reasoning, text, calls.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct CompletionChunk {
    /// More of the reasoning.
    pub reasoning: Option<String>,
    /// A provider's opaque artefact that belongs to the reasoning, such as its signature.
    pub encrypted_reasoning: Option<String>,
    /// More of the text.
    pub text: Option<String>,
    /// More of the tool calls.
    pub calls: Vec<CallChunk>,
    /// The usage so far. Providers count on: a later count takes the place of an earlier one.
    pub usage: Option<TokenUsage>,
}

impl CompletionChunk {
    /// A piece with nothing in it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The piece with this reasoning.
    #[must_use]
    pub fn reasoning(mut self, delta: impl Into<String>) -> Self {
        self.reasoning = Some(delta.into());
        self
    }

    /// The piece with this artefact of the reasoning.
    #[must_use]
    pub fn encrypted_reasoning(mut self, value: impl Into<String>) -> Self {
        self.encrypted_reasoning = Some(value.into());
        self
    }

    /// The piece with this text.
    #[must_use]
    pub fn text(mut self, delta: impl Into<String>) -> Self {
        self.text = Some(delta.into());
        self
    }

    /// The piece with this part of a call, behind those it has.
    #[must_use]
    pub fn call(mut self, call: CallChunk) -> Self {
        self.calls.push(call);
        self
    }

    /// The piece with this usage.
    #[must_use]
    pub fn usage(mut self, usage: TokenUsage) -> Self {
        self.usage = Some(usage);
        self
    }
}

/// A part of a tool call, as a provider streams it. Empty strings count as absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallChunk {
    /// Which of the answer's calls it is, where the provider counts them.
    pub index: Option<usize>,
    /// The call's id, mostly on its first part only. A call that never gets one is given one.
    pub id: Option<String>,
    /// The tool's name, whole, mostly on the first part only.
    pub name: Option<String>,
    /// More of the arguments' text.
    pub arguments: Option<String>,
}

impl CallChunk {
    /// A part with nothing in it, which continues the last call.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The part of the call with this index.
    #[must_use]
    pub fn index(mut self, index: usize) -> Self {
        self.index = Some(index);
        self
    }

    /// The part with the call's id.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// The part with the tool's name.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The part with this much of the arguments.
    #[must_use]
    pub fn arguments(mut self, delta: impl Into<String>) -> Self {
        self.arguments = Some(delta.into());
        self
    }
}

/// What one call of a model answers, turned into events as its pieces come. Made by
/// [`Emitter::completion`].
///
/// All of it becomes one assistant message: the text, and the calls that it holds, each with an id
/// and name before its arguments, as a provider wants to see them again in the history. Text is
/// ended when a call begins, reasoning when either does, and calls, which may come in parallel and
/// mixed, when the answer is [finished](Self::finish).
///
/// A part of a call belongs to the call with its id; else to the latest with its index, unless it
/// names another tool, or names one again although the call's arguments are complete; else to the
/// latest call.
///
/// Dropping it ends what is open and reports the usage.
///
/// ```
/// use agui_agent::emitter::{CallChunk, CompletionChunk};
/// use agui_agent::{AgentResult, Run};
///
/// async fn weather(run: Run) -> AgentResult {
///     let mut answer = run.completion();
///     answer.push(CompletionChunk::new().text("Let me see.")).await?;
///     let call = CallChunk::new().index(0).id("c1").name("get_weather").arguments("{\"city\":");
///     answer.push(CompletionChunk::new().call(call)).await?;
///     let rest = CallChunk::new().index(0).arguments("\"Oslo\"}");
///     answer.push(CompletionChunk::new().call(rest)).await?;
///
///     for call in answer.finish().await?.calls {
///         run.tool_result(call.id, "sunny").await?;
///     }
///     Ok(())
/// }
/// # fn check(agent: impl agui_agent::Agent) {}
/// # check(weather);
/// ```
#[derive(Debug)]
pub struct Completion {
    emitter: Emitter,
    message: MessageId,
    open_reasoning: Option<(ReasoningSpan, ReasoningMessage)>,
    open_text: Option<TextMessage>,
    reasoning: String,
    text: String,
    calls: Vec<Call>,
    usage: Option<TokenUsage>,
}

/// A call on its way.
#[derive(Debug)]
struct Call {
    index: Option<usize>,
    /// The provider's id, where it gave one.
    id: Option<ToolCallId>,
    /// Empty until it comes.
    name: String,
    arguments: String,
    /// How much of the arguments was emitted.
    emitted: usize,
    handle: Option<ToolCall>,
}

/// What a model answered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompletedAnswer {
    /// The assistant message that holds the text and the calls.
    pub message_id: MessageId,
    /// The reasoning; empty where there was none.
    pub reasoning: String,
    /// The text; empty where there was none.
    pub text: String,
    /// The calls, in the order begun.
    pub calls: Vec<CompletedCall>,
}

/// A call that a model made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompletedCall {
    /// Its id.
    pub id: ToolCallId,
    /// The tool.
    pub name: String,
    /// The arguments as generated, which need not be JSON (C-51).
    pub arguments: String,
}

impl CompletedCall {
    /// The arguments as a type. No text at all reads as `{}`, which is how some providers call a
    /// tool without arguments.
    ///
    /// Fails with [`EmitError::Read`] where they are something else: worth a result that tells the
    /// model.
    pub fn arguments<T: DeserializeOwned>(&self) -> Result<T, EmitError> {
        let text = if self.arguments.trim().is_empty() { "{}" } else { &self.arguments };
        let what = || format!("the arguments of {}", self.name);
        // By way of our own reading, which takes lone surrogates.
        let json = Json::parse(text).map_err(|error| EmitError::Read {
            what: what(),
            path: String::new(),
            wanted: std::any::type_name::<T>(),
            problem: error.to_string(),
        })?;
        read(&json, what, "")
    }
}

impl Completion {
    pub(super) fn new(emitter: Emitter) -> Self {
        Self {
            emitter,
            message: new_id().into(),
            open_reasoning: None,
            open_text: None,
            reasoning: String::new(),
            text: String::new(),
            calls: Vec::new(),
            usage: None,
        }
    }

    /// The assistant message that the answer becomes.
    #[must_use]
    pub fn message_id(&self) -> &MessageId {
        &self.message
    }

    /// Takes the next piece of the provider's stream and emits what it means. Not to be called again
    /// for a piece of which the call failed.
    ///
    /// Fails as every emitting does, and where a call's id is one of a call that was made before.
    pub async fn push(&mut self, chunk: CompletionChunk) -> Result<(), EmitError> {
        if let Some(usage) = chunk.usage {
            self.count(usage);
        }
        if let Some(delta) = present(chunk.reasoning) {
            self.think().await?.push(delta.as_str()).await?;
            self.reasoning.push_str(&delta);
        }
        if let Some(value) = present(chunk.encrypted_reasoning) {
            self.think().await?.encrypted_value(value).await?;
        }
        if let Some(delta) = present(chunk.text) {
            self.end_reasoning().await?;
            self.say(&delta).await?;
        }
        for call in chunk.calls {
            self.call(call).await?;
        }
        Ok(())
    }

    /// Ends everything and gives what was answered. A call without a name is none: it is left out,
    /// and the log is told.
    pub async fn finish(mut self) -> Result<CompletedAnswer, EmitError> {
        self.end_reasoning().await?;
        self.end_text().await?;
        let mut calls = Vec::with_capacity(self.calls.len());
        for call in std::mem::take(&mut self.calls) {
            let Some(handle) = call.handle else {
                let (index, id) = (call.index, call.id.as_ref().map(|id| id.as_str()));
                tracing::warn!(index, id, "the model's answer has a call that names no tool");
                continue;
            };
            let id = handle.end().await?;
            calls.push(CompletedCall { id, name: call.name, arguments: call.arguments });
        }
        let (reasoning, text) =
            (std::mem::take(&mut self.reasoning), std::mem::take(&mut self.text));
        Ok(CompletedAnswer { message_id: self.message.clone(), reasoning, text, calls })
    }

    /// The reasoning message, opened where it is not open. Text makes way for it.
    async fn think(&mut self) -> Result<&mut ReasoningMessage, EmitError> {
        self.end_text().await?;
        if self.open_reasoning.is_none() {
            let span = self.emitter.reasoning().await?;
            let message = span.message().await?;
            self.open_reasoning = Some((span, message));
        }
        match &mut self.open_reasoning {
            Some((_, message)) => Ok(message),
            None => Err(EmitError::RunOver),
        }
    }

    async fn say(&mut self, delta: &str) -> Result<(), EmitError> {
        let open = match &mut self.open_text {
            Some(open) => open,
            none => {
                // Behind a call, the message is opened again (C-41).
                let start = TextMessageStart::new(&self.message);
                none.insert(self.emitter.open_text(start).await?)
            }
        };
        open.push(delta).await?;
        self.text.push_str(delta);
        Ok(())
    }

    async fn call(&mut self, chunk: CallChunk) -> Result<(), EmitError> {
        let (id, name) = (present(chunk.id).map(ToolCallId::from), present(chunk.name));
        let at = match self.find(chunk.index, id.as_ref(), name.as_deref()) {
            Some(at) => at,
            None => {
                self.end_reasoning().await?;
                self.end_text().await?;
                self.calls.push(Call::new(chunk.index));
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[at];
        call.index = call.index.or(chunk.index);
        call.id = call.id.take().or(id);
        if let Some(name) = name.filter(|_| call.name.is_empty()) {
            call.name = name;
        }
        call.arguments.push_str(&chunk.arguments.unwrap_or_default());
        call.emit(&self.emitter, &self.message).await
    }

    /// Which call a part belongs to; `None` where it begins one.
    fn find(
        &self,
        index: Option<usize>,
        id: Option<&ToolCallId>,
        name: Option<&str>,
    ) -> Option<usize> {
        if let Some(id) = id
            && let Some(at) = self.calls.iter().position(|call| call.id.as_ref() == Some(id))
        {
            return Some(at);
        }
        let at = match index {
            Some(index) => self.calls.iter().rposition(|call| call.index == Some(index)),
            None => self.calls.len().checked_sub(1),
        }?;
        let call = &self.calls[at];
        // An id that is not the call's, once it has one or was given one, is another call's.
        let other_id = id.is_some() && (call.id.is_some() || call.handle.is_some());
        let other_name = name.is_some_and(|name| {
            !call.name.is_empty() && (call.name != name || is_json(&call.arguments))
        });
        (!other_id && !other_name).then_some(at)
    }

    async fn end_reasoning(&mut self) -> Result<(), EmitError> {
        if let Some((span, message)) = self.open_reasoning.take() {
            message.end().await?;
            span.end().await?;
        }
        Ok(())
    }

    async fn end_text(&mut self) -> Result<(), EmitError> {
        if let Some(text) = self.open_text.take() {
            text.end().await?;
        }
        Ok(())
    }

    /// Takes over the counts that are there.
    fn count(&mut self, newer: TokenUsage) {
        let usage = self.usage.get_or_insert_with(TokenUsage::new);
        usage.provider = newer.provider.or(usage.provider.take());
        usage.model = newer.model.or(usage.model.take());
        usage.input_tokens = newer.input_tokens.or(usage.input_tokens);
        usage.output_tokens = newer.output_tokens.or(usage.output_tokens);
        usage.total_tokens = newer.total_tokens.or(usage.total_tokens);
        usage.reasoning_tokens = newer.reasoning_tokens.or(usage.reasoning_tokens);
        usage.cached_input_tokens = newer.cached_input_tokens.or(usage.cached_input_tokens);
        usage.cache_write_input_tokens =
            newer.cache_write_input_tokens.or(usage.cache_write_input_tokens);
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        // Of the two the message is inside the span.
        if let Some((span, message)) = self.open_reasoning.take() {
            drop(message);
            drop(span);
        }
        if let Some(usage) = self.usage.take() {
            self.emitter.add_usage(usage);
        }
    }
}

impl Call {
    fn new(index: Option<usize>) -> Self {
        let (name, arguments) = (String::new(), String::new());
        Self { index, id: None, name, arguments, emitted: 0, handle: None }
    }

    /// Emits what is known and was not emitted: nothing before the name is known.
    async fn emit(&mut self, emitter: &Emitter, message: &MessageId) -> Result<(), EmitError> {
        if self.name.is_empty() {
            return Ok(());
        }
        let handle = match &mut self.handle {
            Some(handle) => handle,
            none => {
                let id = self.id.clone().unwrap_or_else(|| new_id().into());
                let start = ToolCallStart::new(id, self.name.as_str()).parent_message_id(message);
                none.insert(emitter.open_tool_call(start).await?)
            }
        };
        let rest = &self.arguments[self.emitted..];
        if !rest.is_empty() {
            handle.args(rest).await?;
            self.emitted = self.arguments.len();
        }
        Ok(())
    }
}

fn present(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}
