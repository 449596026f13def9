//! Properties of both forms over generated events, messages and bodies.

mod corpus;
mod generated;

use agui_types::event::{ReasoningMessageContent, TextMessageContent, ToolCallArgs};
use agui_types::{Event, EventReader, SubagentRunId, ToJson};
use agui_wire::fuzzing::{self, framed, see, see_slowly};
use agui_wire::sse::Limits;
use agui_wire::{Encoder, WireForm};
use generated::event;
use proptest::prelude::*;
use serde_json::{Value, json};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn t5_an_event_reads_back_the_same_on_either_form(event in event()) {
        fuzzing::proto_round_trip(event.to_string().as_bytes());
    }

    #[test]
    fn t5_what_the_binary_form_keeps_is_what_the_event_said(event in event()) {
        // A retired part arrives as the document that it is sent as.
        prop_assume!(!event.to_string().contains("\"binary\""));
        let read = EventReader::new().tolerant(&event.to_string()).expect("an event").value;
        let mut frame = Vec::new();
        let omitted = Encoder::new(WireForm::Proto).encode(&read, None, &mut frame).expect("a form");
        let seen = see(WireForm::Proto, Limits::default(), [&frame[..]]);
        let back = seen.frames[0].event.as_ref().expect("an event");
        if omitted.is_empty() {
            let expected = kept(serde_json::from_str(&read.to_json()).expect("JSON"));
            let found = kept(serde_json::from_str(&back.value.to_json()).expect("JSON"));
            prop_assert_eq!(corpus::differences("", &expected, &found), Vec::<String>::new());
        }
    }

    #[test]
    fn t31_any_message_is_an_event_or_a_named_fault(message in prop::collection::vec(any::<u8>(), 0..200)) {
        fuzzing::proto_decode(&message);
    }

    #[test]
    fn t31_a_spoilt_message_is_an_event_or_a_named_fault(
        event in event(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4u8), 1..4),
    ) {
        let read = EventReader::new().tolerant(&event.to_string()).expect("an event").value;
        let mut frame = Vec::new();
        let mut encoder = Encoder::new(WireForm::Proto);
        prop_assume!(encoder.encode(&read, None, &mut frame).is_ok());
        let mut message = frame.split_off(4);
        for (at, byte, change) in changes {
            let at = at.index(message.len().max(1)).min(message.len());
            match change {
                0 if at < message.len() => message[at] = byte,
                1 if at < message.len() => drop(message.remove(at)),
                2 => message.insert(at, byte),
                _ => message.extend_from_within(at..),
            }
        }
        fuzzing::proto_decode(&message);
    }

    #[test]
    fn t15_t28_cuts_change_nothing_on_either_form(
        events in prop::collection::vec(event(), 0..4),
        tail in prop_oneof![Just(Vec::new()), prop::collection::vec(any::<u8>(), 0..6), Just(b"data: [DONE]\n\n".to_vec())],
        sizes in prop::collection::vec(any::<u8>(), 0..20),
        limits in any::<[u8; 2]>(),
        flags in 0..2u8,
        size in any::<u8>(),
    ) {
        let form = if flags == 0 { WireForm::Sse } else { WireForm::Proto };
        let mut body = Vec::new();
        let mut encoder = Encoder::new(form);
        for event in &events {
            let read = EventReader::new().tolerant(&event.to_string()).expect("an event").value;
            let _ = encoder.encode(&read, None, &mut body);
        }
        body.extend_from_slice(&tail);
        let mut input = vec![flags, limits[0], limits[1], sizes.len() as u8, size];
        input.extend_from_slice(&sizes);
        input.extend_from_slice(&body);
        fuzzing::seam_split(&input);
    }

    #[test]
    fn the_fast_path_reads_what_the_full_parser_reads(lines in prop::collection::vec(line(), 0..8)) {
        let body = lines.concat();
        let seen = see(WireForm::Sse, Limits::default(), [&body[..]]);
        let events: Vec<Event> =
            seen.frames.iter().filter_map(|it| it.event.as_ref().map(|it| it.value.clone())).collect();
        prop_assert_eq!((events, seen.end.is_ok()), see_slowly(&body, Limits::default()));
    }

    #[test]
    fn the_fast_path_writes_what_the_full_writer_writes(
        id in any::<String>(), delta in any::<String>(), owner in proptest::option::of("[a-z]"),
    ) {
        let mut text = TextMessageContent::new(id.as_str(), delta.as_str());
        let mut reasoning = ReasoningMessageContent::new(id.as_str(), delta.as_str());
        let mut arguments = ToolCallArgs::new(id.as_str(), delta.as_str());
        let owner = owner.map(SubagentRunId::new);
        text.subagent_run_id = owner.clone();
        reasoning.subagent_run_id = owner.clone();
        arguments.subagent_run_id = owner;
        for event in [Event::from(text), reasoning.into(), arguments.into()] {
            let mut body = b"data: 1\n\n".to_vec();
            Encoder::new(WireForm::Sse).encode(&event, None, &mut body).expect("a form");
            let full = format!("data: 1\n\ndata: {}\n\n", event.to_json());
            prop_assert_eq!(String::from_utf8(body).expect("text"), full);
        }
    }

    #[test]
    fn the_fast_path_stops_at_the_same_limits(line in line(), max in 0..200usize) {
        let body = [&line[..], b"data: {\"type\":\"RUN_ERROR\",\"message\":\"\"}\n\n"].concat();
        for limits in [
            Limits::default().with_frame_bytes(max),
            Limits::default().with_line_bytes(max),
        ] {
            let seen = see(WireForm::Sse, limits, [&body[..]]);
            prop_assert_eq!(seen.clone(), see(WireForm::Sse, limits, body.chunks(1)));
            let events = seen.frames.iter().filter(|it| it.event.is_some()).count();
            prop_assert_eq!((events, seen.end.is_ok()), {
                let (events, clean) = see_slowly(&body, limits);
                (events.len(), clean)
            });
        }
    }
}

/// What the binary form keeps of an event: optional lists only if they are not empty, an echoed
/// input with all its lists, optional values only if they are not null.
fn kept(mut event: Value) -> Value {
    fn prune(value: &mut Value, names: &[&str]) {
        let Some(object) = value.as_object_mut() else { return };
        object.retain(|name, value| {
            !(names.contains(&name.as_str())
                && matches!(value, Value::Array(list) if list.is_empty()))
        });
    }
    prune(&mut event, &["usage"]);
    if let Some(outcome) = event.get_mut("outcome").filter(|it| it["type"] != "interrupt") {
        prune(outcome, &["pendingToolCallIds", "interruptIds", "interrupts"]);
    }
    if let Some(input) = event.get_mut("input").and_then(Value::as_object_mut) {
        for list in ["tools", "context", "resume"] {
            input.entry(list).or_insert_with(|| json!([]));
        }
    }
    fn prune_messages(messages: Option<&mut Value>) {
        for message in messages.and_then(Value::as_array_mut).into_iter().flatten() {
            prune(message, &["toolCalls"]);
            // Only user and tool messages are known to have parts.
            if message["role"] == "robot" {
                prune(message, &["content"]);
            }
        }
    }
    prune_messages(event.get_mut("input").and_then(|input| input.get_mut("messages")));
    prune_messages(event.get_mut("messages"));
    event
}

/// Frames that are, or nearly are, of the shape that the fast path takes.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let piece = |text: &'static str| Just(text.as_bytes().to_vec());
    let kind = prop_oneof![
        4 => piece("data: {\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\""),
        2 => piece("data: {\"type\":\"TOOL_CALL_ARGS\",\"toolCallId\":\""),
        2 => piece("data: {\"type\":\"REASONING_MESSAGE_CONTENT\",\"messageId\":\""),
        1 => piece("data:{\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\""),
        1 => piece("data: {\"type\":\"TEXT_MESSAGE_CONTENT\", \"messageId\":\""),
        1 => piece(": x\nid: 7\ndata: {\"type\":\"TOOL_CALL_ARGS\",\"toolCallId\":\""),
        1 => piece("\u{feff}data: {\"type\":\"TOOL_CALL_ARGS\",\"toolCallId\":\""),
        1 => piece("data: {\"type\":\"TOOL_CALL_END\",\"toolCallId\":\""),
    ];
    let inner = prop_oneof![
        4 => "[a-z ]{0,20}".prop_map(String::into_bytes),
        1 => any::<String>().prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..4),
        1 => piece("a\\n\\u00e9"),
        1 => "(\\\\[\"\\\\/bfnrtux]|\\\\u(d83d|de00|0041|00)|[a\"])*".prop_map(String::into_bytes),
        1 => piece("é☕😀"),
        1 => Just(vec![0xc2]),
    ];
    let middle = prop_oneof![
        6 => piece("\",\"delta\":\""),
        1 => piece("\",\"delta\": \""),
        1 => piece("\",\"x\":1,\"delta\":\""),
    ];
    let end = prop_oneof![
        6 => piece("\"}\n\n"),
        1 => piece("\"}\r\n\r\n"),
        1 => piece("\"}\n"),
        1 => piece("\"}"),
        1 => piece("\"} \n\n"),
        1 => piece("\",\"timestamp\":1}\n\n"),
        1 => piece("\"}\ndata: \n\n"),
        1 => piece("\"}\r\r"),
    ];
    (kind, inner.clone(), middle, inner, end)
        .prop_map(|(kind, id, middle, delta, end)| [kind, id, middle, delta, end].concat())
}

#[test]
fn nesting_is_bounded_alike_on_either_form() {
    use agui_types::json::MAX_DEPTH;
    // The event is a level itself, and so is each list and object on the way.
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    for (before, after, around) in [
        (r#"{"type":"STATE_SNAPSHOT","snapshot":"#, "}", 1),
        (r#"{"type":"STATE_DELTA","delta":[{"op":"add","path":"/a","value":"#, "}]}", 3),
    ] {
        let deepest = format!("{before}{}{after}", nested(MAX_DEPTH - around));
        let event = EventReader::new().tolerant(&deepest).expect("just deep enough").value;
        fuzzing::proto_round_trip(deepest.as_bytes());
        let too_deep = format!("{before}{}{after}", nested(MAX_DEPTH - around + 1));
        assert!(EventReader::new().tolerant(&too_deep).is_err());

        // One level more, in bytes: a list around the innermost value's encoding cannot be had from
        // an event, so the value itself is made too deep.
        let mut frame = Vec::new();
        Encoder::new(WireForm::Proto).encode(&event, None, &mut frame).expect("a form");
        let deeper: agui_types::Json = agui_types::Json::parse(&nested(MAX_DEPTH)).expect("JSON");
        let deeper: Event = agui_types::event::StateSnapshot::new(deeper).into();
        frame.clear();
        Encoder::new(WireForm::Proto).encode(&deeper, None, &mut frame).expect("a form");
        let seen = see(WireForm::Proto, Limits::default(), [&frame[..]]);
        let error = seen.end.expect_err("too deep");
        assert_eq!(error.kind(), agui_wire::DecodeErrorKind::Limit);
        assert_eq!(error.path(), "/snapshot");
    }
}

#[test]
fn groups_and_values_may_not_nest_without_end() {
    // A value in a list in a value, as deep as 64 KiB can say.
    let mut value = vec![0x08, 0x00];
    for _ in 0..10_000 {
        for tag in [0x0a, 0x32] {
            let mut outer = vec![tag];
            let mut length = value.len();
            while length >= 0x80 {
                outer.push((length & 0x7f) as u8 | 0x80);
                length >>= 7;
            }
            outer.push(length as u8);
            outer.extend_from_slice(&value);
            value = outer;
        }
        if value.len() > 1 << 16 {
            break;
        }
    }
    fuzzing::proto_decode(&value);
    let groups = [0x9b, 0x06].repeat(100_000);
    let seen = see(WireForm::Proto, Limits::default(), [&framed(&groups)[..]]);
    let error = seen.end.expect_err("groups");
    assert_eq!(
        error.proto_error().expect("a fault").problem,
        agui_wire::proto::Problem::GroupDepth
    );
}
