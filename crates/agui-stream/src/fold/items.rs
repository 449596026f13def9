//! Text, reasoning and tool calls.

use agui_types::event::{
    EncryptedValueSubtype, EventBase, ReasoningEncryptedValue, ReasoningMessageStart,
    TextMessageStart, TextRole, ToolCallArgs, ToolCallEnd, ToolCallResult, ToolCallStart,
};
use agui_types::message::{
    AssistantMessage, DeveloperMessage, FunctionCall, ReasoningMessage, SystemMessage, ToolMessage,
    UserMessage,
};
use agui_types::{Message, MessageId, ToolCall, ToolCallId};

use super::change::{Applied, Change};
use super::conversation::Conversation;
use super::edit;
use super::index::Place;
use super::messages::Messages;
use super::sequence::Key;

impl Conversation {
    /// `TEXT_MESSAGE_START`: makes the message, or goes on with the one that is there, whose role
    /// and name stand (C-41).
    pub(super) fn text_start(&mut self, event: &TextMessageStart, applied: &mut Applied) {
        let id = &event.message_id;
        self.start(id, &event.base, applied, || {
            macro_rules! message {
                ($message:expr) => {{
                    let mut message = $message;
                    message.name = event.name.clone();
                    message.subagent_run_id = event.subagent_run_id.clone();
                    message.into()
                }};
            }
            match event.role {
                Some(TextRole::Developer) => message!(DeveloperMessage::new(id, "")),
                Some(TextRole::System) => message!(SystemMessage::new(id, "")),
                Some(TextRole::User) => message!(UserMessage::new(id, "")),
                // C-49
                _ => message!(AssistantMessage::new(id).content("")),
            }
        });
    }

    /// `REASONING_MESSAGE_START`.
    pub(super) fn reasoning_start(&mut self, event: &ReasoningMessageStart, applied: &mut Applied) {
        let id = &event.message_id;
        self.start(id, &event.base, applied, || {
            let mut message = ReasoningMessage::new(id, "");
            message.subagent_run_id = event.subagent_run_id.clone();
            message.into()
        });
    }

    fn start(
        &mut self,
        id: &MessageId,
        base: &EventBase,
        applied: &mut Applied,
        make: impl FnOnce() -> Message,
    ) {
        if self.messages.key(id).is_none() {
            let position = self.messages.len();
            self.messages.push(make());
            applied.change(Change::MessageCreated { message: id.clone(), position });
        }
        if let Some(key) = self.text_key(id, applied) {
            self.merge_metadata(key, id, base, applied);
        }
    }

    /// `TEXT_MESSAGE_CONTENT`, `REASONING_MESSAGE_CONTENT`: appends (C-40).
    pub(super) fn text_content(
        &mut self,
        id: &MessageId,
        delta: &str,
        base: &EventBase,
        applied: &mut Applied,
    ) {
        let Some(key) = self.text_key(id, applied) else {
            return;
        };
        if let Some(message) = self.messages.at_mut(key) {
            edit::append(message, delta);
            if !delta.is_empty() {
                applied.change(Change::TextAppended { message: id.clone(), bytes: delta.len() });
            }
        }
        self.merge_metadata(key, id, base, applied);
    }

    /// `TEXT_MESSAGE_END`, `REASONING_MESSAGE_END`.
    pub(super) fn text_end(&mut self, id: &MessageId, base: &EventBase, applied: &mut Applied) {
        if let Some(key) = self.text_key(id, applied) {
            self.merge_metadata(key, id, base, applied);
            applied.change(Change::TextEnded { message: id.clone() });
        }
    }

    /// The message that streamed text belongs to; a warning where there is none.
    fn text_key(&self, id: &MessageId, applied: &mut Applied) -> Option<Key> {
        let Some(key) = self.messages.key(id) else {
            let message = format!(
                "the text of {id:?} is dropped: no such message is held, as after a \
                 MESSAGES_SNAPSHOT that leaves it out while it is open"
            );
            applied.warn("C-71", "/messageId", message);
            return None;
        };
        if let None | Some(Message::Activity(_) | Message::Unknown(_)) = self.messages.plain(key) {
            let role = self.messages.role(key);
            let message = format!(
                "the text of {id:?} is dropped: the id is taken by a message of role {role:?}, \
                 which has no text; use an id of its own"
            );
            applied.warn("P-28", "/messageId", message);
            return None;
        }
        Some(key)
    }

    /// `TOOL_CALL_START`: adds the call to the assistant message it names, or to one of its own. A
    /// call that is there already goes on (C-41).
    pub(super) fn tool_call_start(&mut self, event: &ToolCallStart, applied: &mut Applied) {
        let id = &event.tool_call_id;
        let held = self.messages.call_key(id);
        if !self.messages.is_answered(id) {
            self.pending.insert(id);
        }
        let call = held.unwrap_or_else(|| self.add_call(event, applied));
        self.merge_call_metadata(call, &event.base, applied);
    }

    fn add_call(&mut self, event: &ToolCallStart, applied: &mut Applied) -> Place {
        let holder = self.holder(event, applied);
        let function = FunctionCall::new(event.tool_call_name.as_str(), "");
        let call = ToolCall::new(&event.tool_call_id, function);
        let key = self.messages.add_call(holder, call);
        if let Some((message, call)) = self.messages.call_mut(key) {
            let (message, tool_call) = (message.clone(), call.id.clone());
            applied.change(Change::ToolCallStarted { message, tool_call });
        }
        key
    }

    /// The message that is to hold a new call: the assistant message that is named, made where no
    /// message has that id; else one that takes its id from the call.
    fn holder(&mut self, event: &ToolCallStart, applied: &mut Applied) -> Key {
        let is_assistant =
            |messages: &Messages, key| matches!(messages.plain(key), Some(Message::Assistant(_)));
        let own = MessageId::from(event.tool_call_id.as_str());
        let mut id = &own;
        if let Some(parent) = &event.parent_message_id {
            match self.messages.key(parent) {
                Some(key) if is_assistant(&self.messages, key) => return key,
                Some(key) => {
                    let role = self.messages.role(key);
                    let message = format!(
                        "the message {parent:?} has the role {role:?} and holds no calls; the call \
                         {own:?} gets an assistant message of its own"
                    );
                    applied.warn("P-28", "/parentMessageId", message);
                }
                None => id = parent,
            }
        }
        match self.messages.key(id) {
            Some(key) if is_assistant(&self.messages, key) => return key,
            Some(_) => warn_of_id_used_twice(id, "/toolCallId", applied),
            None => {}
        }
        let mut message = AssistantMessage::new(id);
        message.subagent_run_id = event.subagent_run_id.clone();
        let position = self.messages.len();
        applied.change(Change::MessageCreated { message: id.clone(), position });
        self.messages.push(message.into())
    }

    /// `TOOL_CALL_ARGS`: appends, whatever it is (C-51).
    pub(super) fn tool_call_args(&mut self, event: &ToolCallArgs, applied: &mut Applied) {
        let (id, delta) = (&event.tool_call_id, &event.delta);
        let Some(key) = self.call_key(id, applied) else {
            return;
        };
        if let Some((message, call)) = self.messages.call_mut(key) {
            call.function.arguments.push_str(delta);
            if !delta.is_empty() {
                let (message, tool_call) = (message.clone(), id.clone());
                applied.change(Change::ArgumentsAppended {
                    message,
                    tool_call,
                    bytes: delta.len(),
                });
            }
        }
        self.merge_call_metadata(key, &event.base, applied);
    }

    /// `TOOL_CALL_END`.
    pub(super) fn tool_call_end(&mut self, event: &ToolCallEnd, applied: &mut Applied) {
        let Some(key) = self.call_key(&event.tool_call_id, applied) else {
            return;
        };
        self.merge_call_metadata(key, &event.base, applied);
        if let Some((message, call)) = self.messages.call_mut(key) {
            let (message, tool_call) = (message.clone(), call.id.clone());
            applied.change(Change::ToolCallEnded { message, tool_call });
        }
    }

    /// The call that streamed arguments belong to; a warning where there is none.
    fn call_key(&self, id: &ToolCallId, applied: &mut Applied) -> Option<Place> {
        let key = self.messages.call_key(id);
        if key.is_none() {
            let message = format!(
                "the arguments of {id:?} are dropped: no message holds such a call, as after a \
                 MESSAGES_SNAPSHOT that leaves it out while it is open"
            );
            applied.warn("C-71", "/toolCallId", message);
        }
        key
    }

    /// `TOOL_CALL_RESULT`: makes a tool message, behind the call and the results that are there
    /// (C-52); at the end, where nobody made the call.
    pub(super) fn tool_call_result(&mut self, event: &ToolCallResult, applied: &mut Applied) {
        let (id, call) = (&event.message_id, &event.tool_call_id);
        if self.messages.key(id).is_some() {
            warn_of_id_used_twice(id, "/messageId", applied);
        }
        let mut message = ToolMessage::new(id, event.content.clone(), call);
        message.subagent_run_id = event.subagent_run_id.clone();
        if let Some(metadata) = event.base.metadata() {
            edit::merge(&mut message.metadata, metadata, applied);
        }
        let position = self.insert_result(message);
        self.pending_answered(call);
        applied.change(Change::MessageCreated { message: id.clone(), position });
    }

    /// Puts a result where it belongs, and says where that is.
    pub(super) fn insert_result(&mut self, message: ToolMessage) -> usize {
        let holder = self.messages.call_key(&message.tool_call_id);
        let position = holder.map_or(self.messages.len(), |(key, _)| self.messages.behind(key));
        self.messages.insert(position, message.into());
        position
    }

    /// `REASONING_ENCRYPTED_VALUE`: stored with its target, to be returned as it is (C-59).
    pub(super) fn encrypted_value(
        &mut self,
        event: &ReasoningEncryptedValue,
        applied: &mut Applied,
    ) {
        let id = event.entity_id.as_str();
        let change = match event.subtype {
            EncryptedValueSubtype::Message => {
                let message = MessageId::from(id);
                let key = self.messages.key(&message);
                let target = key.and_then(|key| self.messages.at_mut(key));
                target
                    .and_then(edit::encrypted_mut)
                    .map(|target| (target, Change::MessageChanged { message }))
            }
            EncryptedValueSubtype::ToolCall => {
                let key = self.messages.call_key(&ToolCallId::from(id));
                let target = key.and_then(|key| self.messages.call_mut(key));
                target.map(|(message, call)| {
                    let (message, tool_call) = (message.clone(), call.id.clone());
                    let target = (&mut call.encrypted_value, &mut call.encrypted_value_type);
                    (target, Change::ToolCallChanged { message, tool_call })
                })
            }
            // Enforcement removes an unknown one (C-63).
            _ => None,
        };
        let Some(((value, value_type), change)) = change else {
            let kind = event.subtype.as_str();
            let message = format!(
                "the encrypted value is dropped: there is no {kind} {id:?} that could keep it"
            );
            return applied.warn("C-60", "/entityId", message);
        };
        *value = Some(event.encrypted_value.clone());
        // A value without a type leaves no type behind (C-64).
        value_type.clone_from(&event.encrypted_value_type);
        applied.change(change);
    }

    fn merge_metadata(
        &mut self,
        key: Key,
        id: &MessageId,
        base: &EventBase,
        applied: &mut Applied,
    ) {
        let Some(newer) = base.metadata() else {
            return;
        };
        if let Some(held) = self.messages.at_mut(key).and_then(edit::metadata_mut)
            && edit::merge(held, newer, applied)
        {
            applied.change(Change::MessageChanged { message: id.clone() });
        }
    }

    /// A call's metadata is its own and not its message's (C-76).
    fn merge_call_metadata(&mut self, key: Place, base: &EventBase, applied: &mut Applied) {
        let Some(newer) = base.metadata() else {
            return;
        };
        if let Some((message, call)) = self.messages.call_mut(key)
            && edit::merge(&mut call.metadata, newer, applied)
        {
            let (message, tool_call) = (message.clone(), call.id.clone());
            applied.change(Change::ToolCallChanged { message, tool_call });
        }
    }
}

fn warn_of_id_used_twice(id: &MessageId, path: &str, applied: &mut Applied) {
    let message = format!("the message id {id:?} is now used twice; use another one");
    applied.warn("P-28", path, message);
}
