//! Keeping calls of some tools away from the application.

use std::collections::HashSet;
use std::sync::Arc;

use agui_stream::ChunkExpander;
use agui_types::event::EncryptedValueSubtype;
use agui_types::{
    Event, Message, MessageId, Reading, RunAgentInput, RunFinishedOutcome, ToolCallId,
};

use super::events::{Stage, through};
use super::{Middleware, Next};
use crate::{AgentError, EventStream, RunContext};

/// Removes the calls of some tools from the stream, as if they had never been made: their starts,
/// arguments, ends and results, their encrypted values, what snapshots and the outcome say of them,
/// and what names them as its parent. Chunks are spelled out for that.
///
/// An assistant message of a snapshot that held nothing but such calls goes with them. The input is
/// not changed: the agent still sees the tools and their history.
///
/// ```
/// use agui_agent::middleware::ToolFilter;
/// # use agui_agent::{AgentExt, AgentResult, Run};
/// # async fn chat(run: Run) -> AgentResult { run.say("Hello!").await?; Ok(()) }
/// # async fn other(run: Run) -> AgentResult { run.say("Hello!").await?; Ok(()) }
///
/// let careful = chat.with(ToolFilter::deny(["send_mail", "pay"]));
/// let narrow = other.with(ToolFilter::allow(["search"]));
/// # fn serve(agent: impl agui_agent::Agent) {}
/// # serve(careful);
/// # serve(narrow);
/// ```
#[derive(Clone, Debug)]
pub struct ToolFilter {
    names: Arc<HashSet<String>>,
    /// Whether the names are those that pass.
    allow: bool,
}

impl ToolFilter {
    /// Lets calls of these tools pass, and no others.
    pub fn allow<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        Self::new(names, true)
    }

    /// Lets all calls pass but those of these tools.
    pub fn deny<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        Self::new(names, false)
    }

    fn new<S: Into<String>>(names: impl IntoIterator<Item = S>, allow: bool) -> Self {
        Self { names: Arc::new(names.into_iter().map(Into::into).collect()), allow }
    }

    fn passes(&self, name: &str) -> bool {
        self.names.contains(name) == self.allow
    }
}

impl Middleware for ToolFilter {
    fn run(&self, input: RunAgentInput, context: RunContext, next: Next) -> EventStream {
        let mut filter = Filter {
            tools: self.clone(),
            removed: HashSet::new(),
            expander: ChunkExpander::new(),
            expanded: Vec::new(),
        };
        filter.note(&input.messages);
        through(next.run(input, context), filter)
    }
}

struct Filter {
    tools: ToolFilter,
    /// The calls that do not pass.
    removed: HashSet<ToolCallId>,
    expander: ChunkExpander,
    expanded: Vec<Event>,
}

impl Stage for Filter {
    fn push(
        &mut self,
        event: Reading<Event>,
        out: &mut Vec<Reading<Event>>,
    ) -> Result<(), AgentError> {
        let Reading { value, findings } = event;
        let mut expanded = std::mem::take(&mut self.expanded);
        self.expander.push(value, &mut expanded)?;
        let mut findings = Some(findings);
        let last = expanded.len().saturating_sub(1);
        for (at, event) in expanded.drain(..).enumerate() {
            if let Some(event) = self.keep(event) {
                let findings = findings.take_if(|_| at == last).unwrap_or_default();
                out.push(Reading { value: event, findings });
            }
        }
        self.expanded = expanded;
        Ok(())
    }
}

impl Filter {
    /// The event without what belongs to removed calls; `None` where that is all of it.
    fn keep(&mut self, mut event: Event) -> Option<Event> {
        let kept = match &mut event {
            Event::ToolCallStart(start) => self.passes(&start.tool_call_id, &start.tool_call_name),
            Event::ToolCallArgs(args) => !self.removed.contains(&args.tool_call_id),
            Event::ToolCallEnd(end) => !self.removed.contains(&end.tool_call_id),
            Event::ToolCallResult(result) => !self.removed.contains(&result.tool_call_id),
            Event::ReasoningEncryptedValue(value) => {
                let of_call = value.subtype == EncryptedValueSubtype::ToolCall;
                let id = ToolCallId::from(value.entity_id.as_str());
                !(of_call && self.removed.contains(&id))
            }
            Event::SubagentStarted(started) => {
                self.forget_if_removed(&mut started.parent_tool_call_id);
                true
            }
            Event::MessagesSnapshot(snapshot) => {
                self.note(&snapshot.messages);
                self.filter(&mut snapshot.messages);
                true
            }
            Event::RunStarted(started) => {
                if let Some(input) = &mut started.input {
                    self.note(&input.messages);
                    self.filter(&mut input.messages);
                }
                true
            }
            Event::RunFinished(finished) => {
                if let Some(outcome) = &mut finished.outcome {
                    self.filter_outcome(outcome);
                }
                true
            }
            _ => true,
        };
        kept.then_some(event)
    }

    fn passes(&mut self, call: &ToolCallId, name: &str) -> bool {
        let passes = self.tools.passes(name);
        if !passes {
            self.removed.insert(call.clone());
        }
        passes
    }

    /// Takes note of the calls among messages that do not pass.
    fn note(&mut self, messages: &[Message]) {
        for message in messages {
            if let Message::Assistant(message) = message {
                for call in message.tool_calls.iter().flatten() {
                    self.passes(&call.id, &call.function.name);
                }
            }
        }
    }

    fn filter(&self, messages: &mut Vec<Message>) {
        let mut emptied: HashSet<MessageId> = HashSet::new();
        for message in messages.iter_mut() {
            if let Message::Assistant(message) = message
                && let Some(calls) = &mut message.tool_calls
            {
                let before = calls.len();
                calls.retain(|call| !self.removed.contains(&call.id));
                if calls.is_empty() && before > 0 {
                    message.tool_calls = None;
                    if message.content.as_ref().is_none_or(String::is_empty) {
                        emptied.insert(message.id.clone());
                    }
                }
            }
        }
        messages.retain(|message| match message {
            Message::Assistant(message) => !emptied.contains(&message.id),
            Message::Tool(message) => !self.removed.contains(&message.tool_call_id),
            _ => true,
        });
    }

    fn filter_outcome(&self, outcome: &mut RunFinishedOutcome) {
        match outcome {
            RunFinishedOutcome::Success(success) => {
                if let Some(pending) = &mut success.pending_tool_call_ids {
                    pending.retain(|call| !self.removed.contains(call));
                }
            }
            RunFinishedOutcome::Interrupt(interrupted) => {
                let interrupts = interrupted.interrupts.iter().cloned().map(|mut interrupt| {
                    self.forget_if_removed(&mut interrupt.tool_call_id);
                    interrupt
                });
                let interrupts: Vec<_> = interrupts.collect();
                if let Ok(interrupts) = interrupts.try_into() {
                    interrupted.interrupts = interrupts;
                }
            }
            _ => {}
        }
    }

    fn forget_if_removed(&self, call: &mut Option<ToolCallId>) {
        call.take_if(|call| self.removed.contains(call));
    }
}
