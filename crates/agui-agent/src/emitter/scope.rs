//! Where events are emitted from: the run itself, or a subagent within it.

use std::ops::Deref;
use std::sync::Arc;

use agui_types::event::{
    ActivitySnapshot, Custom, MessagesSnapshot, Raw, ReasoningEncryptedValue, ReasoningStart,
    StateDelta, StateSnapshot, StepStarted, SubagentStarted, TextMessageStart, ToolCallResult,
    ToolCallStart,
};
use agui_types::{
    Event, Interrupt, InterruptId, Json, JsonObject, JsonPatch, Message, MessageContent, MessageId,
    ResumeEntry, RunAgentInput, SubagentRunId, TokenUsage, ToolCallId,
};
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::channel::{Channel, EmitError};
use super::{Activity, ReasoningSpan, Step, Subagent, TextMessage, ToolCall};

/// One run, as the agent sees it: the input, and the means to emit events, which it derefs to.
///
/// Cloning is cheap; a clone may be moved into another task, where it emits into the same stream
/// until the run is over.
#[derive(Clone)]
pub struct Run {
    input: Arc<RunAgentInput>,
    emitter: Emitter,
    cancel: CancellationToken,
}

impl Run {
    pub(super) fn new(
        input: RunAgentInput,
        channel: Arc<Channel>,
        cancel: CancellationToken,
    ) -> Self {
        let emitter = Emitter { channel, owner: None };
        Self { input: Arc::new(input), emitter, cancel }
    }

    /// What the agent was asked.
    #[must_use]
    pub fn input(&self) -> &RunAgentInput {
        &self.input
    }

    /// The text of the last message, where a user wrote it; parts other than text are left out.
    #[must_use]
    pub fn prompt(&self) -> Option<std::borrow::Cow<'_, str>> {
        match self.input.messages.last()? {
            Message::User(message) => Some(message.content.text()),
            _ => None,
        }
    }

    /// The answer that the input brings to an interrupt of an earlier run (P-69).
    #[must_use]
    pub fn answer(&self, interrupt: &InterruptId) -> Option<&ResumeEntry> {
        self.input.resume.iter().flatten().find(|entry| entry.interrupt_id == *interrupt)
    }

    /// Cancelled when the run is to stop. An agent need not watch it: its future is dropped then.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Has the run end with the outcome `interrupt`, asking this among others, once the agent
    /// returns `Ok` (P-67). Asking twice under one id keeps the later one.
    ///
    /// Fails only when the run is over.
    pub fn interrupt(&self, interrupt: Interrupt) -> Result<(), EmitError> {
        self.emitter.channel.interrupt(interrupt)
    }

    /// Sets the run's return value, for `RUN_FINISHED.result`. A `null` is no result and is left
    /// out (P-17).
    ///
    /// Fails where the value cannot be written as JSON.
    pub fn set_result<T: Serialize + ?Sized>(&self, result: &T) -> Result<(), EmitError> {
        let json = json(result)?;
        if !json.is_null() {
            self.emitter.channel.set_result(json);
        }
        Ok(())
    }

    /// Reports token usage of one model call; entries of the same provider and model are added up
    /// in the terminal event (P-85 to P-88).
    pub fn add_usage(&self, usage: TokenUsage) {
        self.emitter.channel.add_usage(usage);
    }
}

impl Deref for Run {
    type Target = Emitter;

    fn deref(&self) -> &Emitter {
        &self.emitter
    }
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { input, .. } = self;
        f.debug_struct("Run")
            .field("thread_id", &input.thread_id)
            .field("run_id", &input.run_id)
            .finish_non_exhaustive()
    }
}

/// Emits events for one owner: the parent agent, or a subagent, whose id is then put on every event
/// that can carry it.
///
/// Every method that emits waits while [`CAPACITY`](super::CAPACITY) events are waiting for the
/// consumer, and fails where the run is over or the event would break a rule.
#[derive(Clone)]
pub struct Emitter {
    pub(super) channel: Arc<Channel>,
    pub(super) owner: Option<SubagentRunId>,
}

impl Emitter {
    /// Emits a whole text message of the assistant and gives its id.
    pub async fn say(&self, text: impl Into<String>) -> Result<MessageId, EmitError> {
        let mut message = self.text().await?;
        message.push(text).await?;
        message.end().await
    }

    /// Opens a text message of the assistant, with an id of its own.
    pub async fn text(&self) -> Result<TextMessage, EmitError> {
        self.open_text(TextMessageStart::new(new_id())).await
    }

    /// Opens a text message with a chosen id, role or name; or reopens one (C-41).
    pub async fn open_text(&self, start: TextMessageStart) -> Result<TextMessage, EmitError> {
        TextMessage::open(self.clone(), start).await
    }

    /// Opens a call of a tool, with an id of its own and no message named to hold it.
    pub async fn tool_call(&self, name: impl Into<String>) -> Result<ToolCall, EmitError> {
        self.open_tool_call(ToolCallStart::new(new_id(), name)).await
    }

    /// Opens a tool call with a chosen id or parent message; or reopens one (C-41).
    pub async fn open_tool_call(&self, start: ToolCallStart) -> Result<ToolCall, EmitError> {
        ToolCall::open(self.clone(), start).await
    }

    /// Answers a tool call, whose arguments are complete, and gives the id of the tool message.
    pub async fn tool_result(
        &self,
        call: impl Into<ToolCallId>,
        content: impl Into<MessageContent>,
    ) -> Result<MessageId, EmitError> {
        let message_id = MessageId::from(new_id());
        self.emit(ToolCallResult::new(&message_id, call, content)).await?;
        Ok(message_id)
    }

    /// Opens a span of reasoning.
    pub async fn reasoning(&self) -> Result<ReasoningSpan, EmitError> {
        ReasoningSpan::open(self.clone(), ReasoningStart::new(new_id())).await
    }

    /// Attaches a provider's opaque artefact to a message or tool call.
    pub async fn encrypted_value(&self, value: ReasoningEncryptedValue) -> Result<(), EmitError> {
        self.emit(value).await
    }

    /// Opens a step. Its name must not be open already for this owner (P-19).
    pub async fn step(&self, name: impl Into<String>) -> Result<Step, EmitError> {
        Step::open(self.clone(), StepStarted::new(name)).await
    }

    /// Replaces the shared state, with any value that serialises.
    pub async fn state_snapshot<T: Serialize + ?Sized>(&self, state: &T) -> Result<(), EmitError> {
        self.emit(StateSnapshot::new(json(state)?)).await
    }

    /// Patches the shared state. The patch is against the input's state, or `{}`, until the first
    /// snapshot (P-46). `agui_stream::patch::diff` makes one from two values.
    ///
    /// Whether the patch applies is not checked: one that does not is skipped by the consumer, with
    /// a warning (C-67).
    pub async fn state_delta(&self, patch: impl Into<JsonPatch>) -> Result<(), EmitError> {
        self.emit(StateDelta::new(patch)).await
    }

    /// Restates the conversation: the complete set of messages the agent owns, in order (P-53).
    pub async fn messages_snapshot(&self, messages: Vec<Message>) -> Result<(), EmitError> {
        self.emit(MessagesSnapshot::new(messages)).await
    }

    /// Creates an activity message, whose content must serialise as an object.
    pub async fn activity<T: Serialize + ?Sized>(
        &self,
        activity_type: impl Into<String>,
        content: &T,
    ) -> Result<Activity, EmitError> {
        let content = JsonObject::encode(content).map_err(|e| EmitError::Json(e.to_string()))?;
        let snapshot = ActivitySnapshot::new(new_id(), activity_type, content);
        Activity::open(self.clone(), snapshot).await
    }

    /// Announces a subagent invocation with an id of its own, spawned by this owner.
    pub async fn subagent(&self, name: impl Into<String>) -> Result<Subagent, EmitError> {
        self.open_subagent(SubagentStarted::new(new_id(), name)).await
    }

    /// Announces a subagent invocation with a chosen id, description or parent. Where no parent
    /// subagent is given it is this owner.
    pub async fn open_subagent(&self, start: SubagentStarted) -> Result<Subagent, EmitError> {
        Subagent::open(self, start).await
    }

    /// Emits an application's own event. Unprefixed names belong to the protocol (P-89).
    pub async fn custom<T: Serialize + ?Sized>(
        &self,
        name: impl Into<String>,
        value: &T,
    ) -> Result<(), EmitError> {
        self.emit(Custom::new(name, json(value)?)).await
    }

    /// Emits a provider's own event, untranslated.
    pub async fn raw<T: Serialize + ?Sized>(&self, event: &T) -> Result<(), EmitError> {
        self.emit(Raw::new(json(event)?)).await
    }

    /// Emits any event as it is, with this owner's attribution where it has none.
    ///
    /// Fails also for the events that begin and end a run and for chunks, which are
    /// [reserved](EmitError::Reserved), and for events of an unknown type.
    pub async fn emit(&self, event: impl Into<Event>) -> Result<(), EmitError> {
        let mut event = event.into();
        match &event {
            Event::RunStarted(_) | Event::RunFinished(_) | Event::RunError(_) => {
                return Err(EmitError::Reserved("a run boundary"));
            }
            Event::TextMessageChunk(_)
            | Event::ToolCallChunk(_)
            | Event::ReasoningMessageChunk(_) => return Err(EmitError::Reserved("a chunk")),
            // P-16: only shapes the protocol describes are emitted.
            Event::Unknown(_) => return Err(EmitError::Reserved("an event of an unknown type")),
            _ => {}
        }
        if let Some(owner) = &self.owner {
            event.attribute(owner);
        }
        self.channel.send(event).await
    }

    /// Emits without waiting, for closing on drop.
    pub(super) fn emit_now(&self, event: impl Into<Event>) {
        let mut event = event.into();
        if let Some(owner) = &self.owner {
            event.attribute(owner);
        }
        self.channel.send_now(event);
    }
}

impl std::fmt::Debug for Emitter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Emitter").field("owner", &self.owner).finish_non_exhaustive()
    }
}

/// A fresh id: a UUID of version 7.
pub(super) fn new_id() -> String {
    Uuid::now_v7().to_string()
}

fn json<T: Serialize + ?Sized>(value: &T) -> Result<Json, EmitError> {
    Json::encode(value).map_err(|error| EmitError::Json(error.to_string()))
}
