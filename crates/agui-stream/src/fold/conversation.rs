//! A conversation as its events leave it.

use agui_types::event::Event;
use agui_types::json::Value;
use agui_types::message::ToolMessage;
use agui_types::{
    Interrupt, InterruptId, Json, JsonError, Message, MessageId, ResumeEntry, RunAgentInput, RunId,
    TokenUsage, ToolCallId,
};

use super::change::{Applied, Change};
use super::interrupts::OpenInterrupts;
use super::messages::Messages;
use super::pending::Pending;
use super::usage::Usage;
use crate::Ending;
use crate::patch::{Document, PatchLimits};

/// A conversation: its messages and its state, and what the run at hand leaves open.
///
/// [`apply`](Self::apply) folds one event into it. Everything can be read at any time. It lives
/// through many exchanges, each of which [`begin_exchange`](Self::begin_exchange) opens: messages,
/// state, open interrupts, unanswered calls and usage stay, while the result, the ending and what
/// counts as a new message start over.
///
/// The events have to be verified and expanded: nothing is checked here a second time, and what
/// does not fit is left out with a warning, never a panic.
#[derive(Clone, Debug)]
pub struct Conversation {
    pub(super) messages: Messages,
    pub(super) state: Document,
    pub(super) limits: PatchLimits,
    pub(super) open_interrupts: OpenInterrupts,
    pub(super) pending: Pending,
    pub(super) usage: Usage,
    pub(super) result: Option<Json>,
    pub(super) ending: Option<Ending>,
    /// The run that was asked for, and the interrupts that it answers.
    pub(super) asked: Option<(RunId, Vec<InterruptId>)>,
    /// The interrupts that the run at hand answers.
    pub(super) answered: Vec<InterruptId>,
}

impl Conversation {
    /// A conversation with a history and a state; `{}` is the state of one that has none.
    #[must_use]
    pub fn new(messages: Vec<Message>, state: Value) -> Self {
        let mut conversation = Self {
            messages: messages.into_iter().collect(),
            state: Document::new(state),
            limits: PatchLimits::default(),
            open_interrupts: OpenInterrupts::default(),
            pending: Pending::default(),
            usage: Usage::default(),
            result: None,
            ending: None,
            asked: None,
            answered: Vec::new(),
        };
        conversation.messages.begin_exchange();
        conversation
    }

    /// The conversation that a run continues, for whoever has only its input: the history and the
    /// state it is asked with, an absent state being `{}`.
    ///
    /// Fails where the state nests deeper than a tree may.
    pub fn from_input(input: &RunAgentInput) -> Result<Self, JsonError> {
        let state = input.state.as_ref().map(Value::try_from).transpose()?;
        let state = state.unwrap_or_else(|| Value::Object(Default::default()));
        let mut conversation = Self::new(input.messages.clone(), state);
        let resume = input.resume.as_deref().unwrap_or_default();
        conversation.begin_exchange(&input.run_id, resume);
        Ok(conversation)
    }

    /// Sets the limits of the patches that come as deltas.
    #[must_use]
    pub fn with_patch_limits(mut self, limits: PatchLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the interrupts that an earlier run left open.
    #[must_use]
    pub fn with_open_interrupts(mut self, interrupts: Vec<Interrupt>) -> Self {
        self.open_interrupts = interrupts.into_iter().collect();
        self
    }

    /// Sets the calls that earlier runs left for the application to answer, in the order made. Those
    /// that no message holds, or that one answers, are left out.
    #[must_use]
    pub fn with_pending_tool_calls(mut self, calls: impl IntoIterator<Item = ToolCallId>) -> Self {
        for call in calls {
            if self.messages.call_key(&call).is_some() && !self.messages.is_answered(&call) {
                self.pending.insert(&call);
            }
        }
        self
    }

    /// Sets what earlier runs have used.
    #[must_use]
    pub fn with_usage(mut self, usage: Vec<TokenUsage>) -> Self {
        self.usage = usage.into();
        self
    }

    /// Opens the next exchange: a request for `run`, whose answers are `resume`, and the events it
    /// brings. The interrupts that the answers name are closed once that run finishes.
    pub fn begin_exchange(&mut self, run: &RunId, resume: &[ResumeEntry]) {
        self.messages.begin_exchange();
        self.usage.begin_run();
        self.result = None;
        self.ending = None;
        let answers = resume.iter().map(|entry| entry.interrupt_id.clone());
        self.asked = Some((run.clone(), answers.collect()));
        self.answered.clear();
    }

    /// Folds one event in. `applied` is emptied first, then filled with what changed.
    pub fn apply(&mut self, event: &Event, applied: &mut Applied) {
        applied.clear();
        match event {
            Event::TextMessageContent(event) => {
                self.text_content(&event.message_id, &event.delta, &event.base, applied);
            }
            Event::ToolCallArgs(event) => self.tool_call_args(event, applied),
            Event::TextMessageStart(event) => self.text_start(event, applied),
            Event::TextMessageEnd(event) => self.text_end(&event.message_id, &event.base, applied),
            Event::ToolCallStart(event) => self.tool_call_start(event, applied),
            Event::ToolCallEnd(event) => self.tool_call_end(event, applied),
            Event::ToolCallResult(event) => self.tool_call_result(event, applied),
            Event::ReasoningMessageStart(event) => self.reasoning_start(event, applied),
            Event::ReasoningMessageContent(event) => {
                self.text_content(&event.message_id, &event.delta, &event.base, applied);
            }
            Event::ReasoningMessageEnd(event) => {
                self.text_end(&event.message_id, &event.base, applied);
            }
            Event::ReasoningEncryptedValue(event) => self.encrypted_value(event, applied),
            Event::StateSnapshot(event) => self.state_snapshot(event, applied),
            Event::StateDelta(event) => self.state_delta(event, applied),
            Event::MessagesSnapshot(event) => self.messages_snapshot(event, applied),
            Event::ActivitySnapshot(event) => self.activity_snapshot(event, applied),
            Event::ActivityDelta(event) => self.activity_delta(event, applied),
            Event::RunStarted(event) => self.run_started(event, applied),
            Event::RunFinished(event) => self.run_finished(event, applied),
            Event::RunError(event) => self.run_error(event, applied),
            Event::TextMessageChunk(_)
            | Event::ToolCallChunk(_)
            | Event::ReasoningMessageChunk(_) => {
                let name = event.type_name();
                applied.warn("C-43", "", format!("{name} was not expanded, and is left out"));
            }
            // Steps, subagents, spans of reasoning, RAW and CUSTOM change nothing that is held here.
            _ => {}
        }
    }

    /// Says that the events of this exchange have ended, and how: where the last run has not said
    /// so itself, or there was none, they were cut off (C-14, C-15).
    pub fn end_exchange(&mut self) -> Ending {
        *self.ending.get_or_insert(Ending::Truncated)
    }

    /// Adds a message of the application's own, such as the user's next one or the answer to a
    /// front-end call.
    pub fn push(&mut self, message: Message) {
        self.answer(&message);
        self.messages.push(message);
    }

    /// Adds the application's answer to a call right behind the message that holds it and the answers
    /// that are there already, as a `TOOL_CALL_RESULT` would (section 11); at the end where no message
    /// holds the call. `applied` is emptied first, then filled with what changed.
    ///
    /// Returns the position of the answer among the messages.
    pub fn push_result(&mut self, message: ToolMessage, applied: &mut Applied) -> usize {
        applied.clear();
        let (id, call) = (message.id.clone(), message.tool_call_id.clone());
        let position = self.insert_result(message);
        self.pending_answered(&call);
        applied.change(Change::MessageCreated { message: id, position });
        position
    }

    /// Replaces the history.
    pub fn set_messages(&mut self, messages: Vec<Message>) {
        messages.iter().for_each(|message| self.answer(message));
        self.messages.set(messages);
        self.drop_pending_without_call();
    }

    /// Replaces the state.
    pub fn set_state(&mut self, state: Value) {
        self.state = Document::new(state);
    }

    /// The messages, in order.
    #[must_use]
    pub fn messages(&self) -> &Messages {
        &self.messages
    }

    /// The ids of the messages that this exchange brought, in order.
    pub fn new_messages(&self) -> impl Iterator<Item = &MessageId> {
        self.messages.new_ids()
    }

    /// The state.
    #[must_use]
    pub fn state(&self) -> &Value {
        self.state.value()
    }

    /// The interrupts nobody has answered, in the order they were raised.
    ///
    /// A run that finishes closes those that its `resume` names, and raises its own; a cancelled
    /// one closes all (C-89). A run that fails changes none of them.
    #[must_use]
    pub fn open_interrupts(&self) -> &[Interrupt] {
        self.open_interrupts.list()
    }

    /// The tool calls that were made and not answered, in the order made: those a finished run says
    /// are pending, and where it says nothing those that its stream shows (C-54). A call that an
    /// interrupt is about waits for the interrupt's answer and is not among them.
    ///
    /// They stay until a tool message answers them, which the application owes (C-55). Only a run
    /// that has completed asks for them to be carried out.
    pub fn pending_tool_calls(&self) -> impl ExactSizeIterator<Item = &ToolCallId> {
        self.pending.iter()
    }

    /// Those of the [`pending_tool_calls`](Self::pending_tool_calls) that the run at hand has made, or
    /// the last one where none is going on.
    pub fn pending_tool_calls_of_run(&self) -> impl Iterator<Item = &ToolCallId> {
        self.pending.of_run()
    }

    /// Whether a tool message answers a call.
    #[must_use]
    pub fn is_answered(&self, call: &ToolCallId) -> bool {
        self.messages.is_answered(call)
    }

    /// What all runs folded here have used, one entry for each provider and model.
    #[must_use]
    pub fn usage(&self) -> &[TokenUsage] {
        self.usage.entries()
    }

    /// The result of the last run of this exchange that finished with success; `None` where it had
    /// none.
    #[must_use]
    pub fn result(&self) -> Option<&Json> {
        self.result.as_ref()
    }

    /// How the last run of this exchange ended; `None` while one is going on, and before the first.
    #[must_use]
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }
}
