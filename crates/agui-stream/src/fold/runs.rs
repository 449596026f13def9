//! Runs: their beginning, their end, and what they leave open.

use agui_types::event::{Event, RunError, RunFinished, RunStarted};
use agui_types::{Message, RunFinishedOutcome, TokenUsage, ToolCallId};

use super::change::{Applied, Change};
use super::conversation::Conversation;
use crate::Ending;

impl Conversation {
    /// `RUN_STARTED`. Messages of an echoed input that are not held are taken in, at the end.
    pub(super) fn run_started(&mut self, event: &RunStarted, applied: &mut Applied) {
        self.note_start(event, applied);
        for message in event.input.iter().flat_map(|input| &input.messages) {
            let Some(id) = message.id().filter(|id| self.messages.key(id).is_none()) else {
                continue;
            };
            let position = self.messages.len();
            self.push(message.clone());
            applied.change(Change::MessageCreated { message: id, position });
        }
    }

    /// `RUN_FINISHED`.
    pub(super) fn run_finished(&mut self, event: &RunFinished, applied: &mut Applied) {
        if let Some(RunFinishedOutcome::Success(success)) = &event.outcome {
            self.declare_pending(success.pending_tool_call_ids.as_deref().unwrap_or_default());
        }
        let mut changed = false;
        for answered in std::mem::take(&mut self.answered) {
            changed |= self.open_interrupts.close(&answered);
        }
        match &event.outcome {
            Some(RunFinishedOutcome::Cancelled(_)) => {
                changed |= self.open_interrupts.close_all();
            }
            Some(RunFinishedOutcome::Interrupt(outcome)) => {
                changed = true;
                for interrupt in outcome.interrupts.iter() {
                    self.open_interrupts.open(interrupt);
                    if let Some(call) = &interrupt.tool_call_id {
                        self.pending_answered(call);
                    }
                }
            }
            _ => {}
        }
        if changed {
            applied.change(Change::InterruptsChanged);
        }
        self.note_finish(event, applied);
    }

    /// What remains of an event that is kept from the conversation: which run it is, and how that
    /// ended.
    pub(crate) fn withhold(&mut self, event: &Event, applied: &mut Applied) {
        match event {
            Event::RunStarted(event) => self.note_start(event, applied),
            Event::RunFinished(event) => self.note_finish(event, applied),
            Event::RunError(event) => self.run_error(event, applied),
            _ => {}
        }
    }

    fn note_start(&mut self, event: &RunStarted, applied: &mut Applied) {
        self.ending = None;
        self.pending.begin_run();
        self.usage.begin_run();
        self.answered.clear();
        if let Some((_, answers)) = self.asked.take_if(|(run, _)| *run == event.run_id) {
            self.answered = answers;
        }
        let resume = event.input.iter().flat_map(|input| input.resume.iter().flatten());
        self.answered.extend(resume.map(|entry| entry.interrupt_id.clone()));
        let (thread, run) = (event.thread_id.clone(), event.run_id.clone());
        applied.change(Change::RunStarted { thread, run });
    }

    fn note_finish(&mut self, event: &RunFinished, applied: &mut Applied) {
        let ending = Ending::from(event);
        self.ending = Some(ending);
        self.add_usage(event.usage.as_deref(), applied);
        if ending == Ending::Completed {
            self.result.clone_from(&event.result);
        }
        applied.change(Change::RunEnded { ending });
    }

    /// `RUN_ERROR`, on its own or after the run finished (C-4).
    pub(super) fn run_error(&mut self, event: &RunError, applied: &mut Applied) {
        self.ending = Some(Ending::Failed);
        self.answered.clear();
        self.add_usage(event.usage.as_deref(), applied);
        applied.change(Change::RunEnded { ending: Ending::Failed });
    }

    fn add_usage(&mut self, usage: Option<&[TokenUsage]>, applied: &mut Applied) {
        if let Some(usage) = usage.filter(|usage| !usage.is_empty()) {
            self.usage.report(usage);
            applied.change(Change::UsageChanged);
        }
    }

    /// What a run declares takes the place of what its stream shows; declaring nothing declares
    /// nothing (C-54).
    fn declare_pending(&mut self, declared: &[ToolCallId]) {
        if !declared.is_empty() {
            self.pending.forget_run();
            declared.iter().for_each(|call| self.pending.insert(call));
        }
    }

    /// Takes note of a message that may answer a call.
    pub(super) fn answer(&mut self, message: &Message) {
        if let Message::Tool(message) = message {
            self.pending_answered(&message.tool_call_id);
        }
    }

    pub(super) fn pending_answered(&mut self, call: &ToolCallId) {
        self.pending.remove(call);
    }

    /// A call that is no longer held waits for nothing.
    pub(super) fn drop_pending_without_call(&mut self) {
        let messages = &self.messages;
        self.pending.retain(|call| messages.call_key(call).is_some());
    }
}
