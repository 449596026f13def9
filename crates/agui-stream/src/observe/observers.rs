//! Observers between a stream and its conversation.

use std::any::Any;
use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
/// off, and [`run_finalized`](Self::run_finalized) at the end, in each case; and says what the
/// application did itself: [`added`](Self::added), [`messages_replaced`](Self::messages_replaced),
/// [`state_replaced`](Self::state_replaced). With no observers they do nothing, and `apply` is
/// [`Conversation::apply`].
///
/// An observer that panics has failed in that callback, as if it had said so; it is asked again
/// with the next event.
///
/// Holds the value of the arguments of every open tool call.
#[derive(Default)]
pub struct Observers<'a> {
    list: Vec<Listed<'a>>,
    arguments: Arguments,
}

struct Listed<'a> {
    observer: Box<dyn Observer + Send + 'a>,
    handle: ObserverHandle,
}

/// One observer of a list, to remove it: from anywhere, also from one of its callbacks while a run
/// goes on.
///
/// Dropping the handle removes nothing. Clones are handles of the same observer.
#[derive(Clone, Debug, Default)]
pub struct ObserverHandle(Arc<AtomicBool>);

impl ObserverHandle {
    /// Removes the observer: from the next callback on it is not called any more. It is dropped when
    /// the list is next used, or with it. Removing it again does nothing.
    pub fn remove(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was removed.
    #[must_use]
    pub fn is_removed(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
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

    /// Adds one, to be asked after those that are there. The handle removes it again.
    pub fn add(&mut self, observer: impl Observer + Send + 'a) -> ObserverHandle {
        let handle = ObserverHandle::default();
        self.list.push(Listed { observer: Box::new(observer), handle: handle.clone() });
        handle
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.iter().all(|listed| listed.handle.is_removed())
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
        if self.is_empty() {
            self.list.clear();
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

    /// Says that the application added a message itself, which stands at this position: with
    /// [`on_new_message`](Observer::on_new_message), [`on_new_tool_call`](Observer::on_new_tool_call) for
    /// each call that an assistant message has, and
    /// [`on_messages_changed`](Observer::on_messages_changed).
    pub fn added(&mut self, position: usize, conversation: &Conversation) -> Observed {
        let mut observed = Observed::default();
        let Some(message) = conversation.messages().get(position) else { return observed };
        let errors = &mut observed.errors;
        self.tell("on_new_message", errors, |it| it.on_new_message(message, conversation));
        if let Message::Assistant(message) = message {
            for call in message.tool_calls.iter().flatten() {
                self.tell("on_new_tool_call", errors, |it| it.on_new_tool_call(call, conversation));
            }
        }
        self.tell("on_messages_changed", errors, |it| it.on_messages_changed(conversation));
        observed
    }

    /// Says that the application put other messages in place itself.
    pub fn messages_replaced(&mut self, conversation: &Conversation) -> Observed {
        self.wrote(Wrote { messages: true, state: false }, conversation)
    }

    /// Says that the application put another state in place itself.
    pub fn state_replaced(&mut self, conversation: &Conversation) -> Observed {
        self.wrote(Wrote { messages: false, state: true }, conversation)
    }

    fn wrote(&mut self, wrote: Wrote, conversation: &Conversation) -> Observed {
        let mut observed = Observed::default();
        self.tell_of_changes(wrote, conversation, &mut observed.errors);
        observed
    }

    /// Tells all of them of one thing.
    fn tell(
        &mut self,
        callback: &'static str,
        errors: &mut Vec<ObserverError>,
        mut call: impl FnMut(&mut dyn Observer),
    ) {
        for Listed { observer, handle } in &mut self.list {
            if handle.is_removed() {
                continue;
            }
            let told = catch_unwind(AssertUnwindSafe(|| call(observer.as_mut())));
            if let Err(panic) = told {
                errors.push(ObserverError { callback, source: Panicked::new(&*panic).into() });
            }
        }
    }

    fn tell_of_changes(
        &mut self,
        wrote: Wrote,
        conversation: &Conversation,
        errors: &mut Vec<ObserverError>,
    ) {
        if wrote.messages {
            self.tell("on_messages_changed", errors, |it| it.on_messages_changed(conversation));
        }
        if wrote.state {
            self.tell("on_state_changed", errors, |it| it.on_state_changed(conversation));
        }
    }

    fn turn(
        &mut self,
        conversation: &mut Conversation,
        applied: &mut Applied,
        take: impl FnOnce(&mut Turn<'_, 'a>),
    ) -> Observed {
        applied.clear();
        self.list.retain(|listed| !listed.handle.is_removed());
        let observed = Observed::default();
        let mut turn =
            Turn { observers: self, conversation, applied, wrote: Wrote::default(), observed };
        take(&mut turn);
        let Turn { observers, conversation, wrote, mut observed, .. } = turn;
        observers.tell_of_changes(wrote, conversation, &mut observed.errors);
        observed
    }
}

impl fmt::Debug for Observers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.list.iter().filter(|listed| !listed.handle.is_removed()).count();
        f.debug_struct("Observers").field("len", &len).finish_non_exhaustive()
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
        for Listed { observer, handle } in list {
            if self.observed.stopped {
                return;
            }
            if handle.is_removed() {
                continue;
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
        if let Some(message) = message {
            let tell = |it: &mut dyn Observer| it.on_new_message(message, conversation);
            self.observers.tell("on_new_message", errors, tell);
        }
        if let Some(call) = call {
            let tell = |it: &mut dyn Observer| it.on_new_tool_call(call, conversation);
            self.observers.tell("on_new_tool_call", errors, tell);
        }
    }
}

/// What a callback answers; one that panics has failed.
fn caught(call: impl FnOnce() -> Reaction) -> Reaction {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| Err(Panicked::new(&*panic).into()))
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
