//! What an observer is, and what it may answer.

use std::error::Error;

use agui_types::event::{
    ActivityDelta, ActivitySnapshot, Custom, Event, MessagesSnapshot, Raw, ReasoningEncryptedValue,
    ReasoningEnd, ReasoningMessageContent, ReasoningMessageEnd, ReasoningMessageStart,
    ReasoningStart, RunError, RunFinished, RunStarted, StateDelta, StateSnapshot, StepFinished,
    StepStarted, SubagentError, SubagentFinished, SubagentStarted, TextMessageContent,
    TextMessageEnd, TextMessageStart, ToolCallArgs, ToolCallEnd, ToolCallResult, ToolCallStart,
};
use agui_types::json::Value;
use agui_types::{Message, ToolCall};

use super::Scene;
use crate::Conversation;

/// Watches a run as its events are folded, and may intervene.
///
/// Every callback has a body that does nothing. Those that return a [`Reaction`] are called before
/// what they are about takes place; the others tell of what has happened. In the order of one event:
///
/// 1. [`on_event`](Self::on_event);
/// 2. the callback of the event's kind; not where the message or call that the event continues is
///    not held;
/// 3. the event is folded, unless it was [stopped](Mutation::stop);
/// 4. [`on_new_message`](Self::on_new_message), [`on_new_tool_call`](Self::on_new_tool_call);
/// 5. [`on_messages_changed`](Self::on_messages_changed), then
///    [`on_state_changed`](Self::on_state_changed), each at most once, where the event or an observer
///    wrote them.
///
/// Each step is done with all observers, in the order they were added, before the next one. An
/// observer sees what those before it have changed.
pub trait Observer {
    /// A run is about to be asked for. What is put in place here is part of the request, which is to
    /// be made afterwards; there is nothing to stop.
    fn on_run_initialized(&mut self, conversation: &Conversation) -> Reaction {
        let _ = conversation;
        Ok(Mutation::new())
    }

    /// Any event, before the callback of its kind.
    fn on_event(&mut self, event: &Event, scene: &Scene<'_>) -> Reaction {
        let _ = (event, scene);
        Ok(Mutation::new())
    }

    kinds!(callbacks);

    /// The run failed: a stream that breaks a rule or is cut off, a connection that is lost. A run
    /// that says so itself is no such failure, but an [`on_run_error`](Self::on_run_error) (C-10).
    ///
    /// Whoever [stops](Mutation::stop) it has dealt with it: nothing more is made of it.
    fn on_run_failed(
        &mut self,
        failure: &(dyn Error + 'static),
        conversation: &Conversation,
    ) -> Reaction {
        let _ = (failure, conversation);
        Ok(Mutation::new())
    }

    /// The last callback of a run, however it ended; there is nothing to stop.
    fn on_run_finalized(&mut self, conversation: &Conversation) -> Reaction {
        let _ = conversation;
        Ok(Mutation::new())
    }

    /// A message is complete: its text ended, it is a tool's result, or an activity that was not
    /// there before.
    fn on_new_message(&mut self, message: &Message, conversation: &Conversation) {
        let _ = (message, conversation);
    }

    /// A tool call's arguments are complete (C-50), though not necessarily valid (C-51).
    fn on_new_tool_call(&mut self, call: &ToolCall, conversation: &Conversation) {
        let _ = (call, conversation);
    }

    /// Messages were written, if only with an empty delta.
    fn on_messages_changed(&mut self, conversation: &Conversation) {
        let _ = conversation;
    }

    /// The state was written, if only with an empty patch.
    fn on_state_changed(&mut self, conversation: &Conversation) {
        let _ = conversation;
    }
}

/// What an observer answers: what it changes, or that it failed. A failure is reported and changes
/// nothing; the run goes on.
pub type Reaction = Result<Mutation, BoxError>;

/// Any error, as observers return it: `?` turns every error type into one.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// What an observer changes. A new one changes nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mutation {
    pub(super) messages: Option<Vec<Message>>,
    pub(super) state: Option<Value>,
    pub(super) stop: bool,
}

impl Mutation {
    /// Changes nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts these messages in the place of those that are held.
    #[must_use]
    pub fn messages(mut self, messages: Vec<Message>) -> Self {
        self.messages = Some(messages);
        self
    }

    /// Puts this state in the place of the one that is held.
    #[must_use]
    pub fn state(mut self, state: Value) -> Self {
        self.state = Some(state);
        self
    }

    /// Ends the matter: observers behind this one are not asked, there are no further callbacks about
    /// it but of what was changed, and the event is kept from the conversation: from its messages,
    /// its state, its open interrupts and pending calls. Which run it is, how it ended, its result
    /// and its usage are noted all the same.
    #[must_use]
    pub fn stop(mut self) -> Self {
        self.stop = true;
        self
    }
}
