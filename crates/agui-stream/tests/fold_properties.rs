//! What holds for every sequence of events, verified or not.

mod shadow;

use agui_stream::fold::{Applied, Conversation};
use agui_types::json::Value;
use agui_types::{Event, EventReader, FromJson, Message, ToJson};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value as Json, json};
use shadow::Shadow;

/// Few ids, so that events meet.
fn id() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("a"), Just("b"), Just("c"), Just("")]
}

fn delta() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just(""), Just("x"), Just("é "), Just("{\"k\":")]
}

fn metadata() -> impl Strategy<Value = Json> {
    prop_oneof![4 => Just(json!(null)), 1 => Just(json!({"k": 1})), 1 => Just(json!({"l": [null]}))]
}

fn patch() -> impl Strategy<Value = Json> {
    let operation = prop_oneof![
        Just(json!({"op": "add", "path": "/k", "value": [1]})),
        Just(json!({"op": "add", "path": "/k/-", "value": {}})),
        Just(json!({"op": "remove", "path": "/k"})),
        Just(json!({"op": "replace", "path": "", "value": {"k": 0}})),
        Just(json!({"op": "replace", "path": "", "value": 7})),
        Just(json!({"op": "move", "from": "/k", "path": "/l"})),
        Just(json!({"op": "copy", "from": "", "path": "/l"})),
        Just(json!({"op": "test", "path": "/k", "value": [1]})),
        Just(json!({"op": "unheard", "path": "/k"})),
    ];
    vec(operation, 0..3).prop_map(Json::from)
}

/// One of the messages, from a few choices.
fn message() -> impl Strategy<Value = Json> {
    (0..9, id(), id(), delta()).prop_map(|(kind, id, other, text)| {
        let call = |id| json!({"id": id, "type": "function", "function": {"name": "n", "arguments": text}});
        let mut message = match kind {
            0 => json!({"role": "user", "content": text}),
            1 => json!({"role": "user", "content": [{"type": "text", "text": text}]}),
            2 => json!({"role": "user", "content": []}),
            3 => json!({"role": "system", "content": text}),
            4 => json!({"role": "assistant", "toolCalls": [call(id), call(other)]}),
            5 => json!({"role": "tool", "toolCallId": other, "content": text}),
            6 => json!({"role": "activity", "activityType": "t", "content": {"k": [1]}}),
            7 => json!({"role": "reasoning", "content": text}),
            _ => json!({"role": "stranger", "more": 1}),
        };
        message["id"] = json!(id);
        message
    })
}

/// One of the events, from a few choices.
fn event() -> impl Strategy<Value = Event> {
    let choices = (
        0..30,
        id(),
        id(),
        delta(),
        metadata(),
        patch(),
        vec(message(), 0..4),
        any::<Option<bool>>(),
    );
    choices.prop_map(|(kind, id, other, delta, metadata, patch, messages, flag)| {
        let item = |kind: &str| {
            json!({"type": kind, "messageId": id, "toolCallId": id, "toolCallName": "n",
                "delta": delta, "parentMessageId": other, "metadata": metadata})
        };
        let finished = |outcome: Json| {
            json!({"type": "RUN_FINISHED", "threadId": "t", "runId": id, "outcome": outcome,
                "usage": [{"inputTokens": 1}]})
        };
        let event = match kind {
            0 | 1 => item("TEXT_MESSAGE_START"),
            2..=4 => item("TEXT_MESSAGE_CONTENT"),
            5 => item("TEXT_MESSAGE_END"),
            6 => item("TEXT_MESSAGE_CHUNK"),
            7 => {
                let mut start = item("REASONING_MESSAGE_START");
                start["role"] = json!("reasoning");
                start
            }
            8 => item("REASONING_MESSAGE_CONTENT"),
            9 => item("REASONING_MESSAGE_END"),
            10..=12 => item("TOOL_CALL_START"),
            13 | 14 => item("TOOL_CALL_ARGS"),
            15 => item("TOOL_CALL_END"),
            16 => json!({"type": "TOOL_CALL_RESULT", "messageId": id, "toolCallId": other, "content": delta}),
            17 => json!({"type": "REASONING_ENCRYPTED_VALUE", "encryptedValue": "v", "entityId": id,
                "subtype": if flag.is_some() { "tool-call" } else { "message" },
                "encryptedValueType": flag.map(|_| "t")}),
            18 => json!({"type": "STATE_DELTA", "delta": patch}),
            19 => json!({"type": "STATE_SNAPSHOT", "snapshot": {"k": [0]}}),
            20 => json!({"type": "MESSAGES_SNAPSHOT", "messages": messages}),
            21 | 22 => json!({"type": "ACTIVITY_SNAPSHOT", "messageId": id, "activityType": "t",
                "content": {"k": [1]}, "replace": flag, "metadata": metadata}),
            23 | 24 => json!({"type": "ACTIVITY_DELTA", "messageId": id, "activityType": "u",
                "patch": patch, "metadata": metadata}),
            25 => json!({"type": "RUN_STARTED", "threadId": "t", "runId": id, "input":
                {"threadId": "t", "runId": id, "messages": messages,
                 "resume": [{"interruptId": other, "status": "resolved"}]}}),
            26 => finished(json!({"type": "success", "pendingToolCallIds": [other]})),
            27 => finished(json!({"type": "cancelled"})),
            28 => finished(json!({"type": "interrupt", "interrupts":
                [{"id": id, "reason": "r", "toolCallId": other}]})),
            _ => json!({"type": "RUN_ERROR", "message": "m"}),
        };
        let text = event.to_string();
        EventReader::new().tolerant(&text).expect("an event").value
    })
}

fn messages() -> impl Strategy<Value = Vec<Message>> {
    let read =
        |message: Json| Message::from_json_tolerant(&message.to_string()).expect("a message").value;
    vec(message().prop_map(read), 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics_and_the_changes_tell_it_all(
        start in messages(),
        events in vec(event(), 0..40),
        read_each in any::<bool>(),
    ) {
        let mut conversation = Conversation::new(start, Value::parse("{}").unwrap());
        let mut shadow = Shadow::new(&conversation);
        let mut unread = conversation.clone();
        let mut applied = Applied::default();
        // A reader cannot tell two messages with one id apart.
        let unique = |conversation: &Conversation| {
            let ids: Vec<_> = conversation.messages().iter().filter_map(Message::id).collect();
            ids.iter().all(|id| ids.iter().filter(|other| *other == id).count() == 1)
        };
        for event in &events {
            if !unique(&conversation) {
                break;
            }
            conversation.apply(event, &mut applied);
            if !unique(&conversation) {
                break;
            }
            let told = shadow.follow(&conversation, &applied);
            prop_assert_eq!(told, None, "{}", event.to_json());
        }
        for event in &events {
            unread.apply(event, &mut applied);
            if read_each {
                let _ = unread.messages().to_vec();
            }
            let messages = unread.messages();
            for message in messages.iter() {
                if let Some(id) = message.id() {
                    let found = messages.find(id.as_str()).and_then(Message::id);
                    prop_assert_eq!(found, Some(id), "every message is found");
                }
                if let Message::Assistant(message) = message {
                    for call in message.tool_calls.iter().flatten() {
                        let found = messages.find_call(call.id.as_str()).map(|(_, call)| &call.id);
                        prop_assert_eq!(found, Some(&call.id), "every call is found");
                    }
                }
                let text = message.to_json();
                prop_assert!(Message::from_json_tolerant(&text).is_ok(), "{text}");
            }
            prop_assert!(unread.new_messages().count() <= messages.len());
        }
        unread.end_exchange();
        prop_assert!(unread.ending().is_some());
    }

    /// When the messages are read makes no difference.
    #[test]
    fn reading_changes_nothing(start in messages(), events in vec(event(), 0..40)) {
        let mut often = Conversation::new(start, Value::parse("{}").unwrap());
        let mut once = often.clone();
        let mut applied = Applied::default();
        for event in &events {
            often.apply(event, &mut applied);
            let _ = often.messages().to_vec();
            once.apply(event, &mut applied);
        }
        prop_assert_eq!(often.messages().to_vec(), once.messages().to_vec());
        prop_assert_eq!(often.state(), once.state());
    }
}
