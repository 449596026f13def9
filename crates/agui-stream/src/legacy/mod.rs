//! The bridge to the runtime protocol that front ends spoke before AG-UI. Feature `legacy`.

mod event;
mod messages;

use std::collections::{HashMap, HashSet};

use agui_types::event::{
    Event, EventType, StateDelta, StateSnapshot, ToolCallArgs, ToolCallResult,
};
use agui_types::json::Value;
use agui_types::{ContentPart, Message, MessageContent, RunId, ThreadId, ToJson, ToolCallId};
use indexmap::IndexMap;

use crate::Warning;
use crate::patch::{Document, PatchLimits};
use crate::report::quoted;
pub use event::LegacyEvent;

/// Translates the events of a run into those of the runtime protocol from before AG-UI, one at a
/// time.
///
/// Give it verified events, chunks [expanded](crate::ChunkExpander). What the old protocol has no
/// word for is dropped: reasoning, activity, subagents, raw events; the first one of each type is
/// warned of (P-93). State goes out whole with every change, and can only be an object there. A
/// `PredictState` is passed on and not acted on.
///
/// Holds the state, the messages restated last, and the names of all tools called.
///
/// ```
/// use agui_stream::legacy::LegacyBridge;
/// use agui_types::event::TextMessageContent;
///
/// let mut bridge = LegacyBridge::new("t1".into(), "r1".into(), "my-agent");
/// let event = bridge.push(&TextMessageContent::new("m1", "Hello").into(), &mut Vec::new());
/// assert_eq!(
///     serde_json::to_string(&event)?,
///     r#"{"type":"TextMessageContent","messageId":"m1","content":"Hello"}"#
/// );
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct LegacyBridge {
    thread_id: ThreadId,
    run_id: RunId,
    agent_name: String,
    node_name: String,
    running: bool,
    state: Document,
    /// The messages restated last.
    restated: Option<Vec<Message>>,
    /// The calls made since a step began or ended.
    calls: HashSet<ToolCallId>,
    names: HashMap<ToolCallId, String>,
    /// The types that were dropped.
    dropped: HashSet<EventType>,
}

impl LegacyBridge {
    /// A bridge for a run of an agent, as they are to be called on the other side.
    #[must_use]
    pub fn new(thread_id: ThreadId, run_id: RunId, agent_name: impl Into<String>) -> Self {
        Self {
            thread_id,
            run_id,
            agent_name: agent_name.into(),
            node_name: String::new(),
            running: true,
            state: Document::new(Value::Object(IndexMap::new())),
            restated: None,
            calls: HashSet::new(),
            names: HashMap::new(),
            dropped: HashSet::new(),
        }
    }

    /// Translates one event; `None` where nothing is to be said of it. What is lost is told in
    /// `warnings`.
    pub fn push(&mut self, event: &Event, warnings: &mut Vec<Warning>) -> Option<LegacyEvent> {
        Some(match event {
            Event::TextMessageStart(event) => LegacyEvent::TextMessageStart {
                message_id: event.message_id.clone(),
                role: event.role.clone(),
            },
            Event::TextMessageContent(event) => LegacyEvent::TextMessageContent {
                message_id: event.message_id.clone(),
                content: event.delta.clone(),
            },
            Event::TextMessageEnd(event) => {
                LegacyEvent::TextMessageEnd { message_id: event.message_id.clone() }
            }
            Event::ToolCallStart(event) => {
                let (id, name) = (event.tool_call_id.clone(), event.tool_call_name.clone());
                self.calls.insert(id.clone());
                self.names.insert(id.clone(), name.clone());
                LegacyEvent::ActionExecutionStart {
                    action_execution_id: id,
                    action_name: name,
                    parent_message_id: event.parent_message_id.clone(),
                }
            }
            Event::ToolCallArgs(event) => return self.arguments(event, warnings),
            Event::ToolCallEnd(event) => {
                LegacyEvent::ActionExecutionEnd { action_execution_id: event.tool_call_id.clone() }
            }
            Event::ToolCallResult(event) => self.result(event, warnings),
            Event::Custom(event) => {
                self.running = self.running && event.name != "Exit";
                LegacyEvent::MetaEvent { name: event.name.clone(), value: event.value.clone() }
            }
            Event::StateSnapshot(event) => self.snapshot(event, warnings),
            Event::StateDelta(event) => return self.delta(event, warnings),
            Event::MessagesSnapshot(event) => {
                let messages = value_of(&event.messages);
                self.restated = Some(event.messages.clone());
                self.state_message(&self.state_with(messages), true)
            }
            Event::StepStarted(event) => {
                self.node_name.clone_from(&event.step_name);
                self.calls.clear();
                self.state_message(self.state.value(), true)
            }
            Event::StepFinished(_) => {
                self.calls.clear();
                self.state_message(self.state.value(), false)
            }
            Event::RunFinished(_) => return self.finished(),
            Event::RunError(event) => {
                LegacyEvent::RunError { message: event.message.clone(), code: event.code.clone() }
            }
            Event::RunStarted(_) => return None,
            other => {
                let first = other.event_type().filter(|event| self.dropped.insert(*event));
                warnings.extend(first.map(|event| {
                    let lost = format!("{event} has no like in the legacy protocol and is dropped");
                    Warning::new("P-93", "", lost)
                }));
                return None;
            }
        })
    }

    fn arguments(&self, event: &ToolCallArgs, warnings: &mut Vec<Warning>) -> Option<LegacyEvent> {
        if !self.calls.contains(&event.tool_call_id) {
            let call = quoted(event.tool_call_id.as_str());
            let lost = format!(
                "arguments of the tool call {call} are dropped: the legacy protocol ends a call's \
                 arguments where a step begins or ends"
            );
            warnings.push(Warning::new("P-93", "/toolCallId", lost));
            return None;
        }
        Some(LegacyEvent::ActionExecutionArgs {
            action_execution_id: event.tool_call_id.clone(),
            args: event.delta.clone(),
        })
    }

    fn result(&self, event: &ToolCallResult, warnings: &mut Vec<Warning>) -> LegacyEvent {
        let call = quoted(event.tool_call_id.as_str());
        let name = self.names.get(&event.tool_call_id);
        if name.is_none() {
            let unknown = format!("the result of {call} names no tool: no such call was started");
            warnings.push(Warning::new("P-93", "/toolCallId", unknown));
        }
        if let MessageContent::Parts(parts) = &event.content
            && parts.iter().any(|part| !matches!(part, ContentPart::Text(_)))
        {
            let lost = format!("of the result of {call} only the text is kept");
            warnings.push(Warning::new("P-36", "/content", lost));
        }
        LegacyEvent::ActionExecutionResult {
            action_execution_id: event.tool_call_id.clone(),
            action_name: name.map_or(messages::UNKNOWN, String::as_str).to_owned(),
            result: event.content.text().into_owned(),
        }
    }

    fn snapshot(&mut self, event: &StateSnapshot, warnings: &mut Vec<Warning>) -> LegacyEvent {
        match Value::try_from(&event.snapshot) {
            Ok(state @ Value::Object(_)) => self.state = Document::new(state),
            _ => {
                let lost = "the state stays as it was: in the legacy protocol it is an object";
                warnings.push(Warning::new("P-93", "/snapshot", lost));
            }
        }
        self.state_message(self.state.value(), true)
    }

    fn delta(&mut self, event: &StateDelta, warnings: &mut Vec<Warning>) -> Option<LegacyEvent> {
        match self.state.apply_to_object(&event.delta, &PatchLimits::default()) {
            Ok(()) => Some(self.state_message(self.state.value(), true)),
            Err(error) => {
                let path = format!("/delta/{}", error.operation);
                let message = format!("the state stays as it was: {error}");
                warnings.push(Warning::new("C-67", path, message));
                None
            }
        }
    }

    /// Says the state for the last time, where there is one; with the messages, as the old protocol
    /// knows them, where they were restated.
    fn finished(&mut self) -> Option<LegacyEvent> {
        if let Some(restated) = &self.restated {
            self.state = Document::new(self.state_with(value_of(restated)));
            return Some(match messages::convert(restated) {
                Ok(messages) => self.state_message(&self.state_with(messages), false),
                Err(error) => LegacyEvent::RunError { message: error.to_string(), code: None },
            });
        }
        let empty = matches!(self.state.value(), Value::Object(members) if members.is_empty());
        (!empty).then(|| self.state_message(self.state.value(), false))
    }

    fn state_message(&self, state: &Value, active: bool) -> LegacyEvent {
        LegacyEvent::AgentStateMessage {
            thread_id: self.thread_id.clone(),
            agent_name: self.agent_name.clone(),
            node_name: self.node_name.clone(),
            run_id: self.run_id.clone(),
            running: self.running,
            role: "assistant",
            state: state.to_string(),
            active,
        }
    }

    fn state_with(&self, messages: Value) -> Value {
        let mut state = self.state.value().clone();
        if let Value::Object(members) = &mut state {
            members.insert("messages".into(), messages);
        }
        state
    }
}

/// Messages as they are on the wire.
fn value_of(messages: &[Message]) -> Value {
    let value = |message: &Message| Value::parse(&message.to_json()).unwrap_or_default();
    Value::Array(messages.iter().map(value).collect())
}
