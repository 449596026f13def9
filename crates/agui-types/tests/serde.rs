//! The bridges to `serde`: one form on the wire, whoever writes it.

use agui_types::event::{Custom, RunStarted, StepStarted, TextMessageContent};
use agui_types::json::Value;
use agui_types::{
    Event, FromJson, Json, JsonObject, Message, MessageId, PatchOperation, RunAgentInput,
    Timestamp, ToJson,
};
use serde::{Deserialize, Serialize};

/// Events with everything that could be written in two ways.
fn events() -> Vec<Event> {
    let opaque = Json::parse(r#"{ "n":1.10,"z":[1e2, -0],"\u0061":"\u00e9" }"#).unwrap();
    let object = JsonObject::try_from(opaque.clone()).unwrap();
    let input =
        r#"{"threadId":"t","runId":"r","messages":[{"role":"user","id":"u","content":"é\n"}]}"#;
    vec![
        TextMessageContent::new("m", "a\"\\\n\u{1}é😀\u{2028}")
            .timestamp(Timestamp::new(-1).unwrap())
            .raw_event(opaque.clone())
            .metadata(object)
            .into(),
        Custom::new("n", opaque).subagent_run_id("s").into(),
        RunStarted::new("t", "r")
            .input(Box::new(RunAgentInput::from_json_exact(input).unwrap()))
            .into(),
        Event::from_json_tolerant(r#"{ "type":"BEACON", "x":1.0 }"#).unwrap().value,
    ]
}

#[test]
fn serde_writes_what_we_write() {
    for event in events() {
        let text = event.to_json();
        assert_eq!(serde_json::to_string(&event).unwrap(), text);
        assert_eq!(serde_json::to_vec(&event).unwrap(), text.as_bytes());
        let mut out = b"data: ".to_vec();
        serde_json::to_writer(&mut out, &event).unwrap();
        let mut ours = b"data: ".to_vec();
        event.write_json(&mut ours);
        assert_eq!(out, ours);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_value(&event).unwrap(), value);
    }
}

#[test]
fn text_that_came_from_elsewhere_is_written_in_one_piece() {
    for text in
        [r#"{ "op":"merge", "\u0061":1.0 }"#, r#"{"op":"merge","a":1.0}"#, r#"{"op":"merge"}"#]
    {
        let operation = PatchOperation::from_json_tolerant(text).unwrap().value;
        assert_eq!(serde_json::to_string(&operation).unwrap(), text);
        let message = text.replacen("op", "role", 1);
        let read = Message::from_json_tolerant(&message).unwrap().value;
        assert_eq!(serde_json::to_string(&[read]).unwrap(), format!("[{message}]"));
        let json = Json::parse(text).unwrap();
        assert_eq!(serde_json::to_string(&json).unwrap(), text);
        let object = JsonObject::try_from(json).unwrap();
        assert_eq!(serde_json::to_string(&object).unwrap(), text);
    }
}

#[test]
fn serde_reads_what_we_write() {
    for event in events() {
        let text = event.to_json();
        assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event);
        assert_eq!(serde_json::from_slice::<Event>(text.as_bytes()).unwrap(), event);
        assert_eq!(serde_json::from_reader::<_, Event>(text.as_bytes()).unwrap(), event);
        // Through a tree, where opaque text is written anew.
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let read: Event = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), value);
    }
}

/// Something of a user's with the protocol's types in it.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    position: u64,
    event: Event,
    backlog: Vec<Event>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<MessageId>,
    #[serde(default)]
    messages: Vec<Message>,
    state: Json,
    tree: Value,
    metadata: JsonObject,
    since: Option<Timestamp>,
}

#[test]
fn the_types_go_into_types_of_a_user() {
    let record = Record {
        position: 7,
        event: events().remove(0),
        backlog: events(),
        message_id: Some("m".into()),
        messages: vec![],
        state: Json::parse("[1.10, null]").unwrap(),
        tree: Value::parse(r#"{"z":1.10,"a":null}"#).unwrap(),
        metadata: JsonObject::empty(),
        since: Timestamp::new(5),
    };
    let text = serde_json::to_string(&record).unwrap();
    assert!(text.contains(r#""state":[1.10, null],"tree":{"z":1.10,"a":null},"metadata":{}"#));
    for event in events() {
        assert!(text.contains(&event.to_json()), "{text}");
    }
    assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record);
    let pretty = serde_json::to_string_pretty(&record).unwrap();
    assert_eq!(serde_json::from_str::<Record>(&pretty).unwrap(), record);
}

#[test]
fn serde_reads_tolerantly_and_says_where_it_fails() {
    // C-23: the tolerant reading without its findings.
    let newer = r#"{"type":"STEP_STARTED","stepName":"s","mood":1,"metadata":null}"#;
    assert_eq!(serde_json::from_str::<Event>(newer).unwrap(), StepStarted::new("s").into());
    let error =
        serde_json::from_str::<Event>(r#"{"type":"STEP_STARTED","stepName":7}"#).unwrap_err();
    assert!(error.to_string().contains("/stepName: expected a string, found number 7"), "{error}");
    let error = serde_json::from_str::<Vec<Event>>(r#"[{"type":7}]"#).unwrap_err();
    assert!(error.to_string().contains("/type"), "{error}");
    assert!(serde_json::from_str::<JsonObject>("[]").is_err());
    assert!(serde_json::from_str::<Timestamp>("9007199254740992").is_err());
    let deep = "[".repeat(200) + &"]".repeat(200);
    assert!(serde_json::from_str::<Json>(&deep).is_err());
}

#[derive(Serialize)]
struct Numbers {
    each: Vec<Option<f32>>,
}

#[test]
fn encoding_fails_where_serde_json_does_and_never_makes_what_is_no_json() {
    let keyed_by_bool = std::collections::BTreeMap::from([(vec![1], 1)]);
    assert!(Json::encode(&keyed_by_bool).is_err());
    assert!(JsonObject::encode(&[1]).is_err());
    let nested = |levels: usize| (0..levels).fold(serde_json::json!(0), |inner, _| [inner].into());
    assert!(Json::encode(&nested(127)).is_ok());
    assert!(Json::encode(&nested(128)).unwrap_err().to_string().contains("127 levels"));
    assert_eq!(Json::encode(&Some(1.5)).unwrap().as_str(), "1.5");
    // What serde_json makes null of, in silence.
    assert!(Json::encode(&f64::NAN).unwrap_err().to_string().contains("finite"));
    assert!(JsonObject::encode(&Numbers { each: vec![None, Some(f32::INFINITY)] }).is_err());
    let numbers = JsonObject::encode(&Numbers { each: vec![None, Some(0.5)] }).unwrap();
    assert_eq!(numbers.as_str(), r#"{"each":[null,0.5]}"#);
    assert_eq!(JsonObject::encode(&serde_json::json!({"a": 1})).unwrap().get("a"), Some("1"));
}

/// An event with something of a user's among its members.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Numbered {
    position: u64,
    #[serde(flatten)]
    event: Event,
}

/// What a user's channel carries.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Frame {
    Event(Event),
    Input(Box<RunAgentInput>),
    Beat(u64),
}

/// The same, told apart by a member.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "frame")]
enum Tagged {
    Message(Message),
    State { state: Json },
}

#[test]
fn the_types_can_be_flattened_and_go_into_enums_that_serde_buffers() {
    let event = Event::from(StepStarted::new("s").timestamp(Timestamp::new(5).unwrap()));
    let record = Numbered { position: 1, event: event.clone() };
    let text = r#"{"position":1,"type":"STEP_STARTED","stepName":"s","timestamp":5}"#;
    assert_eq!(serde_json::to_string(&record).unwrap(), text);
    assert_eq!(serde_json::from_str::<Numbered>(text).unwrap(), record);
    assert_eq!(
        serde_json::from_value::<Numbered>(serde_json::to_value(&record).unwrap()).unwrap(),
        record
    );

    // Opaque text goes out as it is, and comes in as an equal value.
    let odd = Numbered { position: 1, event: events().remove(0) };
    let text = serde_json::to_string(&odd).unwrap();
    assert_eq!(text, odd.event.to_json().replacen('{', r#"{"position":1,"#, 1));
    let read: Numbered = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), serde_json::to_value(&odd).unwrap());
    let unknown = r#"{"position":2,"type":"BEACON","x":[1]}"#;
    let read: Numbered = serde_json::from_str(unknown).unwrap();
    assert_eq!(
        serde_json::to_value(&read).unwrap(),
        serde_json::from_str::<serde_json::Value>(unknown).unwrap()
    );

    for (frame, text) in [
        (Frame::Event(event), r#"{"type":"STEP_STARTED","stepName":"s","timestamp":5}"#),
        (
            Frame::Input(Box::new(RunAgentInput::new("t", "r", []))),
            r#"{"threadId":"t","runId":"r","messages":[]}"#,
        ),
        (Frame::Beat(7), "7"),
    ] {
        assert_eq!(serde_json::to_string(&frame).unwrap(), text);
        assert_eq!(serde_json::from_str::<Frame>(text).unwrap(), frame);
    }
    let message = Message::from_json_exact(r#"{"role":"user","id":"u","content":"c"}"#).unwrap();
    for (tagged, text) in [
        (Tagged::Message(message), r#"{"frame":"Message","role":"user","id":"u","content":"c"}"#),
        (
            Tagged::State { state: Json::parse(r#"{"a":[1,null]}"#).unwrap() },
            r#"{"frame":"State","state":{"a":[1,null]}}"#,
        ),
    ] {
        assert_eq!(serde_json::to_string(&tagged).unwrap(), text);
        assert_eq!(serde_json::from_str::<Tagged>(text).unwrap(), tagged);
    }
    let error = serde_json::from_str::<Numbered>(r#"{"position":1,"type":7}"#).unwrap_err();
    assert!(error.to_string().contains("/type"), "{error}");
}
