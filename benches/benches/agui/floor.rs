//! The floors: what anybody gets by deriving, with `serde_json` and nothing else.

use std::collections::HashMap;
use std::hint::black_box;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The events of a token stream.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Plain {
    r#type: String,
    message_id: String,
    delta: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<i64>,
}

/// The events of the mixed stream.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
pub(crate) enum Tagged {
    RunStarted {
        thread_id: String,
        run_id: String,
    },
    RunFinished {
        thread_id: String,
        run_id: String,
    },
    StepStarted {
        step_name: String,
    },
    StepFinished {
        step_name: String,
    },
    StateSnapshot {
        snapshot: serde_json::Value,
    },
    StateDelta {
        delta: Vec<serde_json::Value>,
    },
    ReasoningStart {
        message_id: String,
    },
    ReasoningMessageStart {
        message_id: String,
        role: String,
    },
    ReasoningMessageContent {
        message_id: String,
        delta: String,
    },
    ReasoningMessageEnd {
        message_id: String,
    },
    ReasoningEnd {
        message_id: String,
    },
    TextMessageStart {
        message_id: String,
        role: Option<String>,
    },
    TextMessageContent {
        message_id: String,
        delta: String,
    },
    TextMessageEnd {
        message_id: String,
    },
    ToolCallStart {
        tool_call_id: String,
        tool_call_name: String,
        parent_message_id: Option<String>,
    },
    ToolCallArgs {
        tool_call_id: String,
        delta: String,
    },
    ToolCallEnd {
        tool_call_id: String,
    },
    ToolCallResult {
        message_id: String,
        tool_call_id: String,
        content: String,
    },
    Custom {
        name: String,
        value: serde_json::Value,
    },
}

pub(crate) fn parsed<T: DeserializeOwned>(text: &str) -> T {
    serde_json::from_str(text).expect("an event of this kind")
}

pub(crate) fn to_writer<T: Serialize>(event: &T, out: &mut Vec<u8>) {
    serde_json::to_writer(out, event).expect("a vector takes everything");
}

/// Does something with each, and keeps the compiler from leaving it out.
pub(crate) fn each<T>(texts: &[String], mut decode: impl FnMut(&str) -> T) {
    for text in texts {
        drop(black_box(decode(black_box(text))));
    }
}

/// A text for each id, and nothing of the protocol.
pub(crate) fn fold(texts: &[String]) -> HashMap<String, String> {
    let mut messages: HashMap<String, String> = HashMap::new();
    for text in texts {
        let event: Plain = parsed(black_box(text));
        match messages.get_mut(&event.message_id) {
            Some(message) => message.push_str(&event.delta),
            None => drop(messages.insert(event.message_id, event.delta)),
        }
    }
    messages
}
