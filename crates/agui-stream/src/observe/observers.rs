//! Observers between a stream and its conversation.

use std::any::Any;
use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use agui_types::event::Event;
use agui_types::{Message, ToolCallId};

use super::observer::{BoxError, Mutation, Observer, Reaction};
use super::scene::{Scene, Subject};
use crate::fold::{Applied, Change, Conversation};
use crate::partial::PartialJson;

/// The observers of a conversation, in the order they are asked.
///
/// Whoever drives a run calls [`run_initialized`](Self::run_initialized) before the request is made,
/// [`apply`](Self::apply) with every event, [`run_failed`](Self::run_failed) where the stream broke
/// off, and [`run_finalized`](Self::run_finalized) at the end, in each case. With no observers they do
/// nothing, and `apply` is [`Conversation::apply`].
///
/// An observer that panics has failed in that callback, as if it had said so; it is asked again
/// with the next event.
///
/// Holds the value of the arguments of every open tool call.
#[derive(Default)]
pub struct Observers<'a> {
    list: Vec<Box<dyn Observer + Send + 'a>>,
    arguments: Arguments,
}

/// What came of asking the observers.
#[derive(Debug, Default)]
#[must_use = "observers may have failed"]
pub struct Observed {
    /// Whether one of them [stopped](Mutation::stop) what they were asked about.
    pub stopped: bool,
    /// Which of them failed, in order. That has no other consequence.
    pub errors: Vec<ObserverError>,
}

/// An observer failed in a callback.
#[derive(Debug, thiserror::Error)]
#[error("an observer failed in {callback}")]
pub struct ObserverError {
    /// The callback, by its name in [`Observer`].
    pub callback: &'static str,
    /// What the observer says.
    pub source: BoxError,
}

impl<'a> Observers<'a> {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one, to be asked after those that are there.
    pub fn add(&mut self, observer: impl Observer + Send + 'a) {
        self.list.push(Box::new(observer));
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Says that a run is about to be asked for: behind [`Conversation::begin_exchange`], so that
    /// messages put in place here count as new, and before the request is made from the conversation.
    pub fn run_initialized(
        &mut self,
        conversation: &mut Conversation,
        applied: &mut Applied,
    ) -> Observed {
        self.arguments.clear();
        self.turn(conversation, applied, |turn| {
            turn.ask(None, |observer, scene| {
                let conversation = scene.conversation();
                Some(("on_run_initialized", caught(|| observer.on_run_initialized(conversation))))
            });
        })
    }

    /// Folds one event into a conversation, after the observers were asked about it. `applied` is
    /// emptied first, then filled with what they and the event changed.
    pub fn apply(
        &mut self,
        event: &Event,
        conversation: &mut Conversation,
        applied: &mut Applied,
    ) -> Observed {
        if self.list.is_empty() {
            conversation.apply(event, applied);
            return Observed::default();
        }
        self.turn(conversation, applied, |turn| {
            turn.ask(Some(event), |observer, scene| {
                Some(("on_event", caught(|| observer.on_event(event, scene))))
            });
            if turn.continues_what_is_held(event) {
                turn.ask(Some(event), |observer, scene| kinds!(call observer event scene));
            }
            turn.fold(event);
        })
    }

    /// Says that the run failed. Where the answer is stopped, an observer has dealt with it, and
    /// nothing more is to be made of the failure.
    pub fn run_failed(
        &mut self,
        failure: &(dyn Error + 'static),
        conversation: &mut Conversation,
        applied: &mut Applied,
    ) -> Observed {
        self.turn(conversation, applied, |turn| {
            turn.ask(None, |observer, scene| {
                let conversation = scene.conversation();
                Some(("on_run_failed", caught(|| observer.on_run_failed(failure, conversation))))
            });
        })
    }

    /// Says that the run is over.
    pub fn run_finalized(
        &mut self,
        conversation: &mut Conversation,
        applied: &mut Applied,
    ) -> Observed {
        self.arguments.clear();
        self.turn(conversation, applied, |turn| {
            turn.ask(None, |observer, scene| {
                let conversation = scene.conversation();
                Some(("on_run_finalized", caught(|| observer.on_run_finalized(conversation))))
            });
        })
    }

    fn turn(
        &mut self,
        conversation: &mut Conversation,
        applied: &mut Applied,
        take: impl FnOnce(&mut Turn<'_, 'a>),
    ) -> Observed {
        applied.clear();
        let observed = Observed::default();
        let mut turn =
            Turn { observers: self, conversation, applied, wrote: Wrote::default(), observed };
        take(&mut turn);
        turn.tell_of_changes();
        turn.observed
    }
}

impl fmt::Debug for Observers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observers").field("len", &self.list.len()).finish_non_exhaustive()
    }
}

/// One event, or one stage of a run, before the observers.
struct Turn<'t, 'a> {
    observers: &'t mut Observers<'a>,
    conversation: &'t mut Conversation,
    applied: &'t mut Applied,
    wrote: Wrote,
    observed: Observed,
}

/// What the observers have to be told of.
#[derive(Clone, Copy, Default)]
struct Wrote {
    messages: bool,
    state: bool,
}

impl Turn<'_, '_> {
    /// Asks the observers one after another, each of them in the conversation that the one before
    /// leaves; not those behind one that stops, and none where something was stopped before.
    fn ask(
        &mut self,
        event: Option<&Event>,
        mut call: impl FnMut(&mut dyn Observer, &Scene<'_>) -> Option<(&'static str, Reaction)>,
    ) {
        let Observers { list, arguments } = &mut *self.observers;
        for observer in list {
            if self.observed.stopped {
                return;
            }
            let subject = event.map_or(Subject::None, Subject::of);
            let arguments_so_far = event.and_then(|event| arguments.of(event, self.conversation));
            let scene = Scene::new(self.conversation, subject, arguments_so_far);
            let Some((callback, reaction)) = call(observer.as_mut(), &scene) else {
                return;
            };
            let Mutation { messages, state, stop } = match reaction {
                Ok(mutation) => mutation,
                Err(source) => {
                    self.observed.errors.push(ObserverError { callback, source });
                    continue;
                }
            };
            self.observed.stopped = stop;
            if let Some(messages) = messages
                && !self.conversation.messages().iter().eq(&messages)
            {
                self.conversation.set_messages(messages);
                self.applied.changes.push(Change::MessagesReplaced);
                self.wrote.messages = true;
                arguments.clear();
            }
            if let Some(state) = state
                && *self.conversation.state() != state
            {
                self.conversation.set_state(state);
                self.applied.changes.push(Change::StateReplaced);
                self.wrote.state = true;
            }
        }
    }

    /// Whether what an event continues is there; `true` for events that continue nothing.
    fn continues_what_is_held(&self, event: &Event) -> bool {
        let messages = self.conversation.messages();
        match event {
            Event::TextMessageContent(_)
            | Event::TextMessageEnd(_)
            | Event::ReasoningMessageContent(_)
            | Event::ReasoningMessageEnd(_)
            | Event::ToolCallArgs(_)
            | Event::ToolCallEnd(_) => {
                Scene::new(self.conversation, Subject::of(event), None).message().is_some()
            }
            Event::ActivityDelta(event) => messages.is_activity(&event.message_id),
            _ => true,
        }
    }

    /// Folds the event, unless it was stopped, and tells of what is complete by it.
    fn fold(&mut self, event: &Event) {
        // What the observers have changed; the room is kept.
        let before: Vec<_> = self.applied.changes.drain(..).collect();
        if self.observed.stopped {
            self.conversation.withhold(event, self.applied);
        } else {
            let is_activity = |conversation: &Conversation| match event {
                Event::ActivitySnapshot(event) => {
                    conversation.messages().is_activity(&event.message_id)
                }
                _ => false,
            };
            let was_activity = is_activity(self.conversation);
            self.conversation.apply(event, self.applied);
            self.wrote.messages |= writes_messages(event, self.applied);
            self.wrote.state |= writes_state(event, self.applied);
            let new_activity = !was_activity && is_activity(self.conversation);
            self.tell_of_news(event, new_activity);
        }
        self.applied.changes.splice(..0, before);
        self.observers.arguments.forget(event);
    }

    fn tell_of_news(&mut self, event: &Event, new_activity: bool) {
        let scene = Scene::new(self.conversation, Subject::of(event), None);
        let (message, call) = match event {
            Event::TextMessageEnd(_) | Event::ReasoningMessageEnd(_) => (scene.message(), None),
            Event::ActivitySnapshot(_) if new_activity => (scene.message(), None),
            Event::ToolCallResult(_) => (created(self.conversation, self.applied), None),
            Event::ToolCallEnd(_) => (None, scene.tool_call()),
            _ => return,
        };
        let (conversation, errors) = (&*self.conversation, &mut self.observed.errors);
        for observer in &mut self.observers.list {
            if let Some(message) = message {
                tell("on_new_message", errors, || observer.on_new_message(message, conversation));
            }
            if let Some(call) = call {
                tell("on_new_tool_call", errors, || observer.on_new_tool_call(call, conversation));
            }
        }
    }

    fn tell_of_changes(&mut self) {
        let (conversation, errors) = (&*self.conversation, &mut self.observed.errors);
        if self.wrote.messages {
            for observer in &mut self.observers.list {
                tell("on_messages_changed", errors, || observer.on_messages_changed(conversation));
            }
        }
        if self.wrote.state {
            for observer in &mut self.observers.list {
                tell("on_state_changed", errors, || observer.on_state_changed(conversation));
            }
        }
    }
}

/// What a callback answers; one that panics has failed.
fn caught(call: impl FnOnce() -> Reaction) -> Reaction {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| Err(Panicked::new(&*panic).into()))
}

/// Calls back where there is nothing to answer.
fn tell(callback: &'static str, errors: &mut Vec<ObserverError>, call: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(call)) {
        errors.push(ObserverError { callback, source: Panicked::new(&*panic).into() });
    }
}

/// An observer panicked.
#[derive(Debug, thiserror::Error)]
#[error("it panicked: {0}")]
struct Panicked(String);

impl Panicked {
    fn new(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Self(text.unwrap_or("(no text)").into())
    }
}

/// The message that an event made. Not by its id, which a producer may have used before.
fn created<'a>(conversation: &'a Conversation, applied: &Applied) -> Option<&'a Message> {
    applied.changes.iter().find_map(|change| match change {
        Change::MessageCreated { position, .. } => conversation.messages().get(*position),
        _ => None,
    })
}

fn writes_messages(event: &Event, applied: &Applied) -> bool {
    match event {
        Event::MessagesSnapshot(_) | Event::ActivitySnapshot(_) => true,
        Event::RunStarted(event) => event.input.is_some(),
        // An empty delta is one that was appended.
        Event::TextMessageContent(_)
        | Event::ReasoningMessageContent(_)
        | Event::ToolCallArgs(_) => applied.warnings.is_empty(),
        _ => applied.changes.iter().any(|change| {
            matches!(
                change,
                Change::MessageCreated { .. }
                    | Change::MessageChanged { .. }
                    | Change::MessageReplaced { .. }
                    | Change::ToolCallStarted { .. }
                    | Change::ToolCallChanged { .. }
                    | Change::ActivityPatched { .. }
            )
        }),
    }
}

fn writes_state(event: &Event, applied: &Applied) -> bool {
    match event {
        Event::StateSnapshot(_) => !applied.changes.is_empty(),
        // A patch of tests alone is one that was applied.
        Event::StateDelta(_) => !applied.warnings.iter().any(|warning| warning.rule == "C-67"),
        _ => false,
    }
}

/// The arguments of open tool calls as values. A delta is read once.
#[derive(Default)]
struct Arguments(HashMap<ToolCallId, ReadSoFar>);

#[derive(Default)]
struct ReadSoFar {
    value: PartialJson,
    bytes: usize,
}

impl Arguments {
    /// The arguments as the conversation holds them, where the event is about their growth or end.
    fn of(&mut self, event: &Event, conversation: &Conversation) -> Option<&PartialJson> {
        let id = match event {
            Event::ToolCallArgs(event) => &event.tool_call_id,
            Event::ToolCallEnd(event) => &event.tool_call_id,
            _ => return None,
        };
        let (_, call) = conversation.messages().find_call(id.as_str())?;
        let arguments = &call.function.arguments;
        let read = self.0.entry(id.clone()).or_default();
        if !arguments.is_char_boundary(read.bytes) {
            // They were put in place from outside.
            *read = ReadSoFar::default();
        }
        read.value.push(&arguments[read.bytes..]);
        read.bytes = arguments.len();
        Some(&read.value)
    }

    /// Forgets what an event ends or writes anew.
    fn forget(&mut self, event: &Event) {
        match event {
            Event::ToolCallStart(event) => drop(self.0.remove(&event.tool_call_id)),
            Event::ToolCallEnd(event) => drop(self.0.remove(&event.tool_call_id)),
            Event::RunStarted(_)
            | Event::RunFinished(_)
            | Event::RunError(_)
            | Event::MessagesSnapshot(_) => self.clear(),
            _ => {}
        }
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}
