//! What the thread holds, as far as an event can be wrong about it: what a consumer would have to
//! warn of never becomes part of the stream.

use std::collections::{HashMap, HashSet};

use agui_stream::patch::PatchLimits;
use agui_stream::{Class, Fault, OpenItem, Verifier};
use agui_types::event::{
    ActivityDelta, ActivitySnapshot, EncryptedValueSubtype, MessagesSnapshot,
    ReasoningEncryptedValue, TextMessageStart, TextRole, ToolCallResult, ToolCallStart,
};
use agui_types::{
    Event, Json, JsonObject, Message, MessageId, RunAgentInput, SubagentRunId, ToolCallId,
};

use super::EmitError;
use super::shared::Content;

/// The messages and calls of the thread: those of the input, and those of the run so far.
pub(super) struct Holdings {
    messages: HashMap<MessageId, Held>,
    calls: HashMap<ToolCallId, Call>,
    /// The names of the tools that the front end offers.
    offered: HashSet<String>,
}

/// A message.
enum Held {
    /// One of text, whose role and name stand (P-27).
    Text {
        role: TextRole,
        name: Option<String>,
    },
    Tool,
    Reasoning,
    Activity(Activity),
}

struct Activity {
    owner: Option<SubagentRunId>,
    content: Content,
}

/// A tool call.
struct Call {
    name: String,
    parent: Option<MessageId>,
    answered: bool,
}

impl Holdings {
    pub(super) fn of_input(input: &RunAgentInput) -> Self {
        let offered = input.tools.iter().flatten().map(|tool| tool.name.clone()).collect();
        let mut holdings = Self { messages: HashMap::new(), calls: HashMap::new(), offered };
        holdings.add_messages(&input.messages);
        holdings
    }

    /// Whether a call has its result.
    pub(super) fn is_answered(&self, call: &ToolCallId) -> bool {
        self.calls.get(call).is_some_and(|call| call.answered)
    }

    /// Whether a call is there and has no result.
    pub(super) fn is_waiting(&self, call: &ToolCallId) -> bool {
        self.calls.get(call).is_some_and(|call| !call.answered)
    }

    /// Checks what the event says of messages and calls, and carries out an activity's patch, which
    /// is how it is checked.
    pub(super) fn check(&mut self, event: &Event, verifier: &Verifier) -> Result<(), EmitError> {
        match event {
            Event::TextMessageStart(event) => self.check_text(event),
            Event::ReasoningMessageStart(event) => match self.messages.get(&event.message_id) {
                None | Some(Held::Reasoning) => Ok(()),
                Some(other) => Err(taken(&event.message_id, other, "/messageId")),
            },
            Event::ToolCallStart(event) => self.check_call(event),
            Event::ToolCallResult(event) => self.check_result(event),
            Event::ReasoningEncryptedValue(event) => self.check_encrypted_value(event),
            Event::ActivitySnapshot(event) => self.check_activity(event),
            Event::ActivityDelta(event) => self.patch_activity(event),
            Event::MessagesSnapshot(event) => check_snapshot(event, verifier),
            _ => Ok(()),
        }
    }

    /// Takes over what an accepted event adds or changes.
    pub(super) fn take_over(&mut self, event: &Event) {
        match event {
            Event::TextMessageStart(event) => {
                self.messages.entry(event.message_id.clone()).or_insert_with(|| Held::Text {
                    role: event.role.clone().unwrap_or(TextRole::Assistant),
                    name: event.name.clone(),
                });
            }
            Event::ReasoningMessageStart(event) => {
                self.messages.insert(event.message_id.clone(), Held::Reasoning);
            }
            Event::ToolCallStart(event) => self.add_call(event),
            Event::ToolCallResult(event) => {
                self.messages.insert(event.message_id.clone(), Held::Tool);
                if let Some(call) = self.calls.get_mut(&event.tool_call_id) {
                    call.answered = true;
                }
            }
            Event::ActivitySnapshot(event) => {
                let known = self.messages.contains_key(&event.message_id);
                if event.replace != Some(false) || !known {
                    let owner = event.subagent_run_id.clone();
                    self.add_activity(&event.message_id, owner, &event.content);
                }
            }
            Event::MessagesSnapshot(event) => self.reconcile(&event.messages),
            _ => {}
        }
    }

    fn check_text(&self, event: &TextMessageStart) -> Result<(), EmitError> {
        let id = &event.message_id;
        let (role, name) = match self.messages.get(id) {
            None => return Ok(()),
            Some(Held::Text { role, name }) => (role, name),
            Some(other) => return Err(taken(id, other, "/messageId")),
        };
        // C-49: an absent role says assistant.
        let said = event.role.as_ref().unwrap_or(&TextRole::Assistant);
        if said != role {
            let (role, said) = (role.as_str(), said.as_str());
            return Err(disagrees("/role", "role", role, said));
        }
        match &event.name {
            Some(said) if Some(said) != name.as_ref() => {
                let name = name.as_deref().unwrap_or("no name");
                Err(disagrees("/name", "name", name, said))
            }
            _ => Ok(()),
        }
    }

    fn check_call(&self, event: &ToolCallStart) -> Result<(), EmitError> {
        if let Some(call) = self.calls.get(&event.tool_call_id) {
            if call.name != event.tool_call_name {
                let said = &event.tool_call_name;
                return Err(disagrees("/toolCallName", "tool", &call.name, said));
            }
            return match &event.parent_message_id {
                Some(said) if Some(said) != call.parent.as_ref() => {
                    let parent =
                        call.parent.as_ref().map_or("no message", |parent| parent.as_str());
                    Err(disagrees("/parentMessageId", "message", parent, said.as_str()))
                }
                _ => Ok(()),
            };
        }
        let (holder, path) = holder(event);
        match self.messages.get(&holder) {
            None | Some(Held::Text { role: TextRole::Assistant, .. }) => Ok(()),
            Some(other) => Err(taken(&holder, other, path)),
        }
    }

    fn check_result(&self, event: &ToolCallResult) -> Result<(), EmitError> {
        if let Some(held) = self.messages.get(&event.message_id) {
            return Err(taken(&event.message_id, held, "/messageId"));
        }
        match self.calls.get(&event.tool_call_id) {
            Some(call) if self.offered.contains(&call.name) => Err(rule(
                "P-30",
                "/toolCallId",
                "no result of a tool that the front end offers",
                format!("one of {:?}", call.name),
                "leave the call unanswered: the application answers it in the next run's messages",
            )),
            _ => Ok(()),
        }
    }

    fn check_encrypted_value(&self, event: &ReasoningEncryptedValue) -> Result<(), EmitError> {
        let id = event.entity_id.as_str();
        let keeps = match event.subtype {
            EncryptedValueSubtype::ToolCall => self.calls.contains_key(&ToolCallId::from(id)),
            _ => match self.messages.get(&MessageId::from(id)) {
                Some(held) => !matches!(held, Held::Activity(_)),
                None => false,
            },
        };
        if keeps {
            return Ok(());
        }
        let kind = event.subtype.as_str();
        Err(rule(
            "C-60",
            "/entityId",
            format!("a {kind} that can keep the value"),
            format!("{id:?}, which is none"),
            "attach it to a message or call of this thread",
        ))
    }

    fn check_activity(&self, event: &ActivitySnapshot) -> Result<(), EmitError> {
        match self.messages.get(&event.message_id) {
            None => Ok(()),
            Some(Held::Activity(activity)) => {
                // P-52
                if event.replace == Some(false) && event.subagent_run_id != activity.owner {
                    return Err(other_owner("P-52", &activity.owner, &event.subagent_run_id));
                }
                Ok(())
            }
            Some(other) => Err(taken(&event.message_id, other, "/messageId")),
        }
    }

    fn patch_activity(&mut self, event: &ActivityDelta) -> Result<(), EmitError> {
        let Some(Held::Activity(activity)) = self.messages.get_mut(&event.message_id) else {
            return Err(rule(
                "P-47",
                "/messageId",
                "an activity that was made before",
                format!("{:?}, which is none", event.message_id.as_str()),
                "send an ACTIVITY_SNAPSHOT first",
            ));
        };
        if event.subagent_run_id.is_some() && event.subagent_run_id != activity.owner {
            return Err(other_owner("C-77", &activity.owner, &event.subagent_run_id));
        }
        let document = activity.content.document();
        let limits = PatchLimits::default();
        document.apply_to_object(&event.patch, &limits).map_err(EmitError::Patch)
    }

    fn add_call(&mut self, event: &ToolCallStart) {
        if self.calls.contains_key(&event.tool_call_id) {
            return;
        }
        let (holder, _) = holder(event);
        self.messages.entry(holder).or_insert(Held::Text { role: TextRole::Assistant, name: None });
        let (name, parent) = (event.tool_call_name.clone(), event.parent_message_id.clone());
        self.calls.insert(event.tool_call_id.clone(), Call { name, parent, answered: false });
    }

    fn add_activity(&mut self, id: &MessageId, owner: Option<SubagentRunId>, content: &JsonObject) {
        let content = Content::from(Json::from(content.clone()));
        self.messages.insert(id.clone(), Held::Activity(Activity { owner, content }));
    }

    /// `MESSAGES_SNAPSHOT`: what it leaves out is gone, but for activities and reasoning where it
    /// has none of those (C-71).
    fn reconcile(&mut self, messages: &[Message]) {
        let activities = messages.iter().any(|message| matches!(message, Message::Activity(_)));
        let reasoning = messages.iter().any(|message| matches!(message, Message::Reasoning(_)));
        self.messages.retain(|_, held| match held {
            Held::Activity(_) => !activities,
            Held::Reasoning => !reasoning,
            _ => false,
        });
        self.calls.clear();
        self.add_messages(messages);
    }

    fn add_messages(&mut self, messages: &[Message]) {
        for message in messages {
            let (id, role, name) = match message {
                Message::Developer(message) => (&message.id, TextRole::Developer, &message.name),
                Message::System(message) => (&message.id, TextRole::System, &message.name),
                Message::User(message) => (&message.id, TextRole::User, &message.name),
                Message::Assistant(message) => {
                    for call in message.tool_calls.iter().flatten() {
                        let (name, parent) = (call.function.name.clone(), message.id.clone());
                        let held = Call { name, parent: Some(parent), answered: false };
                        self.calls.insert(call.id.clone(), held);
                    }
                    (&message.id, TextRole::Assistant, &message.name)
                }
                Message::Tool(message) => {
                    self.messages.insert(message.id.clone(), Held::Tool);
                    continue;
                }
                Message::Reasoning(message) => {
                    self.messages.insert(message.id.clone(), Held::Reasoning);
                    continue;
                }
                Message::Activity(message) => {
                    let owner = message.subagent_run_id.clone();
                    self.add_activity(&message.id, owner, &message.content);
                    continue;
                }
                _ => continue,
            };
            self.messages.insert(id.clone(), Held::Text { role, name: name.clone() });
        }
        for message in messages {
            if let Message::Tool(result) = message
                && let Some(call) = self.calls.get_mut(&result.tool_call_id)
            {
                call.answered = true;
            }
        }
    }
}

/// The message that holds a new call, and the member that names it.
fn holder(event: &ToolCallStart) -> (MessageId, &'static str) {
    match &event.parent_message_id {
        Some(parent) => (parent.clone(), "/parentMessageId"),
        None => (MessageId::from(event.tool_call_id.as_str()), "/toolCallId"),
    }
}

/// A snapshot says each id once, and leaves nothing out that is still being streamed.
fn check_snapshot(event: &MessagesSnapshot, verifier: &Verifier) -> Result<(), EmitError> {
    let mut ids = HashSet::new();
    let mut calls = HashSet::new();
    for (at, message) in event.messages.iter().enumerate() {
        if let Some(id) = message.id().filter(|id| !ids.insert(id.clone())) {
            return Err(rule(
                "P-28",
                format!("/messages/{at}/id"),
                "an id of the message's own",
                format!("{:?}, which an earlier message has", id.as_str()),
                "give each message an id of its own",
            ));
        }
        if let Message::Assistant(message) = message {
            calls.extend(message.tool_calls.iter().flatten().map(|call| &call.id));
        }
    }
    let reasoning = event.messages.iter().any(|message| matches!(message, Message::Reasoning(_)));
    let left_out = verifier.open_items().into_iter().find(|item| match item {
        OpenItem::Text { message_id, .. } => !ids.contains(message_id),
        OpenItem::ReasoningMessage { message_id, .. } => reasoning && !ids.contains(message_id),
        OpenItem::ToolCall { tool_call_id, .. } => !calls.contains(tool_call_id),
        _ => false,
    });
    match left_out {
        None => Ok(()),
        Some(item) => Err(rule(
            "P-53",
            "/messages",
            "every message that is still open",
            format!("none for the {item}"),
            "restate it in the snapshot, or end it before",
        )),
    }
}

/// P-28: a message id belongs to one message.
fn taken(id: &MessageId, held: &Held, path: &'static str) -> EmitError {
    let kind = match held {
        Held::Text { role, .. } => format!("a message of the role {}", role.as_str()),
        Held::Tool => "a tool message".into(),
        Held::Reasoning => "a reasoning message".into(),
        Held::Activity(_) => "an activity message".into(),
    };
    let found = format!("{:?}, which is {kind}", id.as_str());
    rule("P-28", path, "an id that is free, or of a message of this kind", found, "use another id")
}

/// An activity stays whose it is.
fn other_owner(
    id: &'static str,
    owner: &Option<SubagentRunId>,
    found: &Option<SubagentRunId>,
) -> EmitError {
    let name = |owner: &Option<SubagentRunId>| match owner {
        Some(owner) => format!("{:?}", owner.as_str()),
        None => "the parent agent".to_owned(),
    };
    let expected = format!("the activity's owner, {}", name(owner));
    rule(id, "/subagentRunId", expected, name(found), "attribute the event as the activity is")
}

/// P-27: what reopens an item agrees with what opened it.
fn disagrees(path: &'static str, what: &str, established: &str, said: &str) -> EmitError {
    rule(
        "P-27",
        path,
        format!("the {what} that the item was opened with, {established:?}"),
        format!("{said:?}"),
        "reopen an item as it was opened, or use another id",
    )
}

#[cold]
fn rule(
    rule: &'static str,
    path: impl Into<Box<str>>,
    expected: impl Into<Box<str>>,
    found: impl Into<Box<str>>,
    fix: impl Into<Box<str>>,
) -> EmitError {
    let (expected, found) = (expected.into(), found.into());
    EmitError::Rule(Fault {
        rule,
        class: Class::Sequence,
        event: None,
        path: path.into(),
        message: format!("expected {expected}, found {found}").into(),
        expected,
        found,
        fix: fix.into(),
    })
}
