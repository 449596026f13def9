//! Where events are emitted from: the run itself, or a subagent within it.

use std::sync::Arc;

use agui_types::event::{
    ActivitySnapshot, Custom, MessagesSnapshot, Raw, ReasoningEncryptedValue, ReasoningStart,
    StateDelta, StateSnapshot, StepStarted, SubagentStarted, TextMessageStart, ToolCallResult,
    ToolCallStart,
};
use agui_types::{
    ContentPart, Event, Interrupt, Json, JsonObject, JsonPatch, Message, MessageContent, MessageId,
    SubagentRunId, TokenUsage, ToolCallId,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::channel::{Channel, EmitError};
use super::{Activity, Completion, ReasoningSpan, State, Step, Subagent, TextMessage, ToolCall};

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

    /// Answers a tool call with a value, serialised to text (P-33), and gives the id of the tool
    /// message.
    pub async fn tool_result_json<T: Serialize + ?Sized>(
        &self,
        call: impl Into<ToolCallId>,
        value: &T,
    ) -> Result<MessageId, EmitError> {
        self.tool_result(call, json(value)?.as_str()).await
    }

    /// What one call of a model answers, to be fed with the provider's pieces as they come.
    #[must_use]
    pub fn completion(&self) -> Completion {
        Completion::new(self.clone())
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

    /// The shared state as a type of the application's, to be changed with
    /// [`State::update`]. It begins with the input's state, or `{}`, and what was emitted since.
    ///
    /// Fails with [`EmitError::Read`] where the state cannot be read as a `T`. A `T` with
    /// `#[serde(default)]` can be read from `{}`.
    pub fn state<T: Serialize + DeserializeOwned>(&self) -> Result<State<T>, EmitError> {
        State::open(self.clone())
    }

    /// Replaces the shared state, with any value that serialises.
    pub async fn state_snapshot<T: Serialize + ?Sized>(&self, state: &T) -> Result<(), EmitError> {
        self.emit(StateSnapshot::new(json(state)?)).await
    }

    /// Patches the shared state. The patch is against the input's state, or `{}`, until the first
    /// snapshot (P-46). `agui_stream::patch::diff` makes one from two values, and
    /// [`state`](Self::state) from the changes made to a value.
    ///
    /// Fails with [`EmitError::Patch`] where the patch does not apply: a consumer would skip it
    /// (C-67).
    pub async fn state_delta(&self, patch: impl Into<JsonPatch>) -> Result<(), EmitError> {
        self.emit(StateDelta::new(patch)).await
    }

    /// Restates the conversation: the complete set of messages the agent owns, in order (P-53).
    ///
    /// Fails where an id comes twice (P-28), or a message or call is left out that is still open.
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

    /// Has the run end with the outcome `interrupt`, asking this among others, once the agent
    /// returns `Ok` (P-67). Asked from a subagent it is that subagent's. Asking twice under one id
    /// keeps the later one (P-68).
    ///
    /// Choose an id that the next run can tell again, such as one made from the call to be approved:
    /// the answer comes to it under that id, and it may be another process that gets it (P-69).
    /// [`expires_in`](super::expires_in) says until when it can be answered, and `schema_of` (with
    /// the feature `schemars`) what the answer looks like.
    ///
    /// Fails only when the run is over.
    pub fn interrupt(&self, mut interrupt: Interrupt) -> Result<(), EmitError> {
        if interrupt.subagent_run_id.is_none() {
            interrupt.subagent_run_id.clone_from(&self.owner);
        }
        self.channel.interrupt(interrupt)
    }

    /// Reports token usage of one model call; entries of the same provider and model are added up
    /// in the terminal event (P-85 to P-88).
    pub fn add_usage(&self, usage: TokenUsage) {
        self.channel.add_usage(usage);
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

    /// Emits any event, with this owner's attribution where it has none, and without the optional
    /// members that are `null` (P-17).
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
            _ => omit_nulls(&mut event),
        }
        self.channel.send(self.attributed(event)).await
    }

    /// Emits without waiting, for closing on drop.
    pub(super) fn emit_now(&self, event: impl Into<Event>) {
        self.channel.send_now(self.attributed(event.into()));
    }

    pub(super) fn attributed(&self, mut event: Event) -> Event {
        if let Some(owner) = &self.owner {
            event.attribute(owner);
        }
        event
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

/// P-17: an optional member without a value is left out.
fn omit_nulls(event: &mut Event) {
    if event.base().is_some_and(|base| base.raw_event().is_some_and(Json::is_null))
        && let Some(base) = event.base_mut()
    {
        base.set_raw_event(None);
    }
    match event {
        Event::SubagentFinished(event) => {
            event.result = event.result.take().filter(|result| !result.is_null());
        }
        Event::ToolCallResult(event) => omit_nulls_of_parts(&mut event.content),
        Event::MessagesSnapshot(event) => {
            for message in &mut event.messages {
                match message {
                    Message::User(message) => omit_nulls_of_parts(&mut message.content),
                    Message::Tool(message) => omit_nulls_of_parts(&mut message.content),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

fn omit_nulls_of_parts(content: &mut MessageContent) {
    let MessageContent::Parts(parts) = content else {
        return;
    };
    for metadata in parts.iter_mut().filter_map(ContentPart::metadata_mut) {
        metadata.take_if(|json| json.is_null());
    }
}

pub(super) fn json<T: Serialize + ?Sized>(value: &T) -> Result<Json, EmitError> {
    Json::encode(value).map_err(|error| EmitError::Json(error.to_string()))
}
