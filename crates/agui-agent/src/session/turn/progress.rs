//! What happens in a turn, from one update to the next.

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use agui_stream::Ending;
use agui_stream::fold::{Change, Conversation};
use agui_types::json::Value;
use agui_types::{Event, Message, ToolCallId};
use futures_core::Stream;

use super::{Attached, End, Stage};
use crate::session::calls::Calling;
use crate::session::{
    Finished, Session, SessionError, ToolCallContext, ToolOutput, Update, new_id,
};
use crate::{AgentError, Delivered, DeliveryError, RunFailure};

impl Session {
    pub(super) fn poll_update(&mut self, cx: &mut Context<'_>) -> Poll<Option<Update>> {
        loop {
            let Some(active) = &mut self.active else {
                return Poll::Ready(None);
            };
            if let Some(update) = active.told.pop_front() {
                return Poll::Ready(Some(update));
            }
            let cancelled = !active.is_over() && active.cancelled.as_mut().poll(cx).is_ready();
            match &mut active.stage {
                Stage::Over(_) => return Poll::Ready(None),
                Stage::Streaming(delivery) => {
                    let polled = Pin::new(&mut **delivery).poll_next(cx);
                    active.reports.take(&mut active.told);
                    match polled {
                        Poll::Ready(Some(Ok(Delivered::Event(event)))) => self.take_event(event),
                        Poll::Ready(Some(Ok(Delivered::Warning(warning)))) => {
                            active.told.push_back(Update::Warning(warning));
                        }
                        Poll::Ready(Some(Err(error))) => self.stream_broke(error),
                        Poll::Ready(None) => self.end_run(End::Said),
                        // It has had its chance to say that it was stopped.
                        Poll::Pending if cancelled => self.end_run(End::Cancelled),
                        Poll::Pending if active.told.is_empty() => return Poll::Pending,
                        Poll::Pending => {}
                    }
                }
                Stage::Calling { .. } if cancelled => self.cancel_calls(),
                Stage::Calling { todo, current: None, .. } => match todo.pop_front() {
                    Some(call) => self.begin_call(&call),
                    None => self.go_on(),
                },
                Stage::Calling { current: Some(calling), follow_up, .. } => {
                    let answer = ready!(calling.poll(cx));
                    *follow_up |= calling.follow_up;
                    let call = calling.tool_call.clone();
                    self.end_call(&call, answer);
                }
            }
        }
    }

    fn take_event(&mut self, event: Event) {
        let Some(active) = &mut self.active else { return };
        active.delivered = true;
        if let Attached::Yes = active.attached {
            // It restates all there is.
            let mut fresh = Conversation::new(Vec::new(), Value::Object(Default::default()))
                .with_patch_limits(self.patch_limits);
            fresh.begin_exchange(&active.run_id, &[]);
            let before = self.put_in_place(fresh);
            let Some(active) = &mut self.active else { return };
            active.attached = Attached::InPlaceOf(Box::new(before));
        }
        let Some(active) = &mut self.active else { return };
        match &event {
            Event::RunStarted(_) => active.failure = None,
            Event::RunError(error) => {
                let (message, code) = (error.message.clone(), error.code.clone());
                active.failure = Some(RunFailure { message, code });
            }
            _ => {}
        }
        let observed = self.observers.apply(&event, &mut self.conversation, &mut self.applied);
        active.tell_observed(observed);
        active.told.extend(self.applied.warnings.drain(..).map(Update::Warning));
        active.told.extend(self.applied.changes.drain(..).map(Update::Change));
        if is_not_folded(&event) {
            active.told.push_back(Update::Event(event));
        }
    }

    /// Puts another conversation in the place of the one that is held, which it gives.
    fn put_in_place(&mut self, conversation: Conversation) -> Conversation {
        let before = std::mem::replace(&mut self.conversation, conversation);
        if let Some(active) = &mut self.active {
            active.told.extend(all_replaced());
        }
        if !before.messages().is_empty() || !self.messages().is_empty() {
            let observed = self.observers.messages_replaced(&self.conversation);
            self.report(observed);
        }
        if before.state() != self.state() {
            let observed = self.observers.state_replaced(&self.conversation);
            self.report(observed);
        }
        before
    }

    /// Puts back what was held before something was connected to: it is better than a part of what
    /// was to take its place.
    fn put_back(&mut self) {
        let Some(active) = &mut self.active else { return };
        // As if nothing had come.
        match std::mem::replace(&mut active.attached, Attached::Yes) {
            Attached::InPlaceOf(before) => drop(self.put_in_place(*before)),
            other => active.attached = other,
        }
    }

    /// The same, where what came has not got as far as what was held: a message of it is missing, or
    /// its state.
    fn put_back_unless_restated(&mut self) {
        let Some(active) = &self.active else { return };
        let Attached::InPlaceOf(before) = &active.attached else { return };
        let is_held = |message: &Message| {
            message.id().is_none_or(|id| self.messages().find(id.as_str()).is_some())
        };
        let no_state = Value::Object(Default::default());
        let state_came = *self.state() != no_state || *before.state() == no_state;
        if !state_came || !before.messages().iter().all(is_held) {
            self.put_back();
        }
    }

    /// Whether an observer has dealt with it.
    pub(super) fn tell_failed(&mut self, failure: &(dyn std::error::Error + 'static)) -> bool {
        let observed =
            self.observers.run_failed(failure, &mut self.conversation, &mut self.applied);
        let Some(active) = &mut self.active else { return false };
        active.told.extend(self.applied.changes.drain(..).map(Update::Change));
        let dealt_with = observed.stopped;
        active.tell_observed(observed);
        dealt_with
    }

    fn stream_broke(&mut self, error: DeliveryError) {
        if let DeliveryError::Agent(AgentError::Cancelled) = error {
            return self.end_run(End::Cancelled);
        }
        let Some(active) = &mut self.active else { return };
        let nothing_came = !active.delivered;
        if nothing_came
            && error.is_cut_off()
            && matches!(active.attached, Attached::Yes)
            && matches!(error, DeliveryError::Fault(_))
        {
            // An agent that has nothing of the thread gives an empty stream.
            return self.end_run(End::Said);
        }
        let dealt_with = self.tell_failed(&error);
        self.end_run(match error {
            _ if dealt_with => End::Said,
            DeliveryError::Agent(error) if nothing_came => match error {
                AgentError::Decode(_) if !error.is_cut_off() => {
                    End::Failed(SessionError::Rejected(error.into()))
                }
                error => End::Failed(SessionError::NoStream(error)),
            },
            error if error.is_cut_off() => End::CutOff(error),
            error => End::Failed(SessionError::Rejected(error)),
        });
    }

    /// The run is over; calls of front-end tools come next, unless something is amiss.
    pub(super) fn end_run(&mut self, end: End) {
        match end {
            End::Said => {}
            End::Cancelled | End::CutOff(_) => self.put_back_unless_restated(),
            End::Failed(_) => self.put_back(),
        }
        let Some(active) = &mut self.active else { return };
        active.new_messages.extend(self.conversation.new_messages().cloned());
        let observed = self.observers.run_finalized(&mut self.conversation, &mut self.applied);
        active.told.extend(self.applied.changes.drain(..).map(Update::Change));
        active.tell_observed(observed);
        match end {
            End::Said => {
                let attached = !matches!(active.attached, Attached::No);
                let called = !attached && !active.cancel.is_cancelled();
                let ending = match active.attached {
                    Attached::Yes => Ending::Completed,
                    _ => self.conversation.end_exchange(),
                };
                if ending == Ending::Completed && called {
                    let todo = self.to_be_called();
                    if let Some(active) = &mut self.active {
                        active.stage = Stage::Calling { todo, current: None, follow_up: false };
                    }
                } else {
                    self.over(ending, None);
                }
            }
            End::Cancelled => {
                let said = self.conversation.ending();
                self.over(said.unwrap_or(Ending::Cancelled), None);
            }
            End::CutOff(error) => {
                let ending = self.conversation.end_exchange();
                self.over(ending, Some(error));
            }
            End::Failed(error) => active.stage = Stage::Over(Box::new(Err(error))),
        }
    }

    /// Forgets the turn, whatever it was about to do.
    pub(in crate::session) fn let_go(&mut self) {
        if self.active.as_ref().is_some_and(|active| matches!(active.stage, Stage::Streaming(_))) {
            self.put_back_unless_restated();
            // Its stream is dropped before anybody is told.
            self.active = None;
            let observed = self.observers.run_finalized(&mut self.conversation, &mut self.applied);
            self.report(observed);
        }
        self.active = None;
    }

    fn begin_call(&mut self, call: &ToolCallId) {
        let Some(active) = &mut self.active else { return };
        // Never twice: an observer or another handler may have brought an answer.
        if !self.conversation.pending_tool_calls().any(|pending| pending == call) {
            return;
        }
        let Some((_, held)) = self.conversation.messages().find_call(call.as_str()) else {
            return;
        };
        let name = &held.function.name;
        let context = ToolCallContext {
            tool_call_id: call.clone(),
            tool_name: name.clone(),
            thread_id: self.thread_id.clone(),
            run_id: active.run_id.clone(),
            cancel: active.cancel.clone(),
        };
        let tool = self.tools.for_call(name, self.agent_name.as_deref());
        let calling = tool.and_then(|it| Calling::new(it, &held.function.arguments, context));
        let Some(calling) = calling else { return };
        let (tool_call, name) = (call.clone(), name.clone());
        active.told.push_back(Update::ToolStarted { tool_call, name });
        if let Stage::Calling { current, .. } = &mut active.stage {
            *current = Some(Box::new(calling));
        }
    }

    fn end_call(&mut self, call: &ToolCallId, answer: Result<ToolOutput, String>) {
        let (content, error) = match answer {
            Ok(output) => (output.0, None),
            Err(error) => (format!("Error: {error}").into(), Some(error)),
        };
        let answered = self.push_answer(call, content, error.clone());
        let Some(active) = &mut self.active else { return };
        if let Stage::Calling { current, .. } = &mut active.stage {
            *current = None;
        }
        if let Some(message) = answered {
            active.new_messages.push(message.clone());
            let tool_call = call.clone();
            active.told.push_back(Update::ToolFinished { tool_call, message, error });
            active.told.extend(self.applied.changes.drain(..).map(Update::Change));
        }
    }

    /// Answers what is being carried out and what was still to be.
    fn cancel_calls(&mut self) {
        let Some(active) = &mut self.active else { return };
        let Stage::Calling { todo, current, .. } = &mut active.stage else { return };
        let current = current.take().map(|calling| calling.tool_call.clone());
        let open: Vec<_> = current.into_iter().chain(todo.drain(..)).collect();
        for call in open {
            self.end_call(&call, Err("the turn was cancelled".into()));
        }
        self.over(Ending::Cancelled, None);
    }

    /// All calls are answered that can be answered here: the agent is told, in another run.
    fn go_on(&mut self) {
        let waiting =
            self.pending_tool_calls().any(|(_, call)| self.is_offered(&call.function.name));
        let most = self.most_follow_ups;
        let Some(active) = &mut self.active else { return };
        let wanted = matches!(active.stage, Stage::Calling { follow_up: true, .. });
        if !wanted || waiting {
            return self.over(Ending::Completed, None);
        }
        if active.runs > most {
            active.told.push_back(Update::FollowUpRefused);
            return self.over(Ending::Completed, None);
        }
        active.run_id = new_id().into();
        self.begin_run(None, None);
    }

    fn over(&mut self, ending: Ending, cut_off: Option<DeliveryError>) {
        let Some(active) = &mut self.active else { return };
        let mut seen = HashSet::new();
        let messages = self.conversation.messages();
        let mut new_messages = std::mem::take(&mut active.new_messages);
        new_messages.retain(|id| messages.find(id.as_str()).is_some() && seen.insert(id.clone()));
        let nothing = matches!(active.attached, Attached::Yes);
        let runs = match active.attached {
            Attached::InPlaceOf(_) => 1,
            _ => active.runs,
        };
        active.stage = Stage::Over(Box::new(Ok(Finished {
            ending,
            failure: active.failure.take().filter(|_| ending == Ending::Failed),
            result: self.conversation.result().filter(|_| !nothing).cloned(),
            new_messages,
            runs,
            cut_off,
        })));
    }
}

/// That everything is to be read anew.
fn all_replaced() -> [Update; 4] {
    [
        Change::MessagesReplaced,
        Change::StateReplaced,
        Change::InterruptsChanged,
        Change::UsageChanged,
    ]
    .map(Update::Change)
}

/// Whether an event changes nothing in a conversation.
fn is_not_folded(event: &Event) -> bool {
    matches!(
        event,
        Event::Custom(_)
            | Event::Raw(_)
            | Event::StepStarted(_)
            | Event::StepFinished(_)
            | Event::SubagentStarted(_)
            | Event::SubagentFinished(_)
            | Event::SubagentError(_)
            | Event::ReasoningStart(_)
            | Event::ReasoningEnd(_)
    )
}
