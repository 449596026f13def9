//! A reader that knows a conversation only by the changes it is told.

use std::collections::HashMap;

use agui_stream::fold::{Applied, Change, Conversation};
use agui_types::Message;

/// The ids and the length of the text of each message, and of each call's arguments.
pub(crate) struct Shadow {
    messages: Vec<(String, usize)>,
    arguments: HashMap<String, usize>,
    state: String,
    open: usize,
    runs: u64,
}

impl Shadow {
    pub(crate) fn new(conversation: &Conversation) -> Self {
        Self {
            messages: texts(conversation),
            arguments: arguments(conversation),
            state: conversation.state().to_string(),
            open: conversation.open_interrupts().len(),
            runs: 0,
        }
    }

    /// Follows the changes; says where the conversation is then another one.
    pub(crate) fn follow(
        &mut self,
        conversation: &Conversation,
        applied: &Applied,
    ) -> Option<String> {
        let mut state_told = false;
        let mut interrupts_told = false;
        for change in &applied.changes {
            match change {
                Change::MessageCreated { message, position } => {
                    if *position > self.messages.len() {
                        return Some(format!("{change:?} lies behind the end"));
                    }
                    self.messages.insert(*position, (message.to_string(), 0));
                    self.read_again(conversation, message.as_str());
                }
                Change::MessageReplaced { message } => {
                    self.read_again(conversation, message.as_str());
                }
                Change::MessageRemoved { message } => {
                    let at = self.messages.iter().position(|(id, _)| *message == id.as_str());
                    let Some(at) = at else {
                        return Some(format!("{change:?} was not there"));
                    };
                    self.messages.remove(at);
                }
                Change::TextAppended { message, bytes } => {
                    let text = self.messages.iter_mut().find(|(id, _)| *message == id.as_str());
                    let Some((_, length)) = text else {
                        return Some(format!("{change:?} was not there"));
                    };
                    *length += bytes;
                }
                Change::ToolCallStarted { tool_call, .. } => {
                    self.arguments.insert(tool_call.to_string(), 0);
                }
                Change::ArgumentsAppended { tool_call, bytes, message } => {
                    let holder = conversation.messages().find_call(tool_call.as_str());
                    if holder.is_none_or(|(holder, _)| holder.id != *message) {
                        return Some(format!("{change:?} is not held there"));
                    }
                    *self.arguments.entry(tool_call.to_string()).or_default() += bytes;
                }
                Change::StateReplaced | Change::StatePatched { .. } => state_told = true,
                Change::InterruptsChanged => interrupts_told = true,
                Change::RunStarted { .. } => self.runs += 1,
                _ => {}
            }
        }
        let held = conversation.state().to_string();
        if held != self.state && !state_told {
            return Some("the state changed in silence".into());
        }
        self.state = held;
        if conversation.open_interrupts().len() != self.open && !interrupts_told {
            return Some("the interrupts changed in silence".into());
        }
        self.open = conversation.open_interrupts().len();
        let found = texts(conversation);
        if self.messages != found {
            return Some(format!("told {:?}, found {found:?}", self.messages));
        }
        let found = arguments(conversation);
        self.arguments.retain(|call, _| found.contains_key(call));
        (self.arguments != found).then(|| format!("told {:?}, found {found:?}", self.arguments))
    }

    /// What a message that is new or replaced brings with it.
    fn read_again(&mut self, conversation: &Conversation, id: &str) {
        // An id that is used twice is found once.
        let found = texts(conversation);
        for (at, message) in
            self.messages.iter_mut().enumerate().filter(|(_, (other, _))| other == id)
        {
            if let Some((_, length)) = found.get(at).filter(|(other, _)| other == id) {
                message.1 = *length;
            } else if let Some((_, length)) = found.iter().find(|(other, _)| other == id) {
                message.1 = *length;
            }
        }
        self.arguments.extend(arguments(conversation));
    }
}

fn texts(conversation: &Conversation) -> Vec<(String, usize)> {
    let text = |message: &Message| match message {
        Message::Developer(message) => message.content.len(),
        Message::System(message) => message.content.len(),
        Message::Reasoning(message) => message.content.len(),
        Message::Assistant(message) => message.content.as_deref().unwrap_or_default().len(),
        Message::User(message) => message.content.text().len(),
        Message::Tool(message) => message.content.text().len(),
        _ => 0,
    };
    let messages = conversation.messages().iter();
    messages
        .map(|message| (message.id().map(|id| id.to_string()).unwrap_or_default(), text(message)))
        .collect()
}

fn arguments(conversation: &Conversation) -> HashMap<String, usize> {
    let mut all = HashMap::new();
    for message in conversation.messages().iter() {
        if let Message::Assistant(message) = message {
            for call in message.tool_calls.iter().flatten() {
                all.entry(call.id.to_string()).or_insert(call.function.arguments.len());
            }
        }
    }
    all
}
