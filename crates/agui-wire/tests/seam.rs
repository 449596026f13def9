//! The decoder and the encoder that hide the form, rule by rule.

mod corpus;

use std::error::Error;

use agui_types::event::{RunError, RunFinished, RunStarted, StepStarted};
use agui_types::{Event, ReadErrorKind};
use agui_wire::fuzzing::framed;
use agui_wire::sse::End;
use agui_wire::{
    DecodeError, DecodeErrorKind, Decoder, EncodeErrorKind, Encoder, Limits, Warning, WireForm,
};
use corpus::unhex;

const FORMS: [WireForm; 2] = [WireForm::Sse, WireForm::Proto];

fn body(form: WireForm, events: impl IntoIterator<Item = Event>) -> Vec<u8> {
    let (mut encoder, mut body) = (Encoder::new(form), Vec::new());
    for event in events {
        let omitted = encoder.encode(&event, None, &mut body).expect("a form");
        assert!(omitted.is_empty());
    }
    body
}

/// The types of the events in a body that comes as a whole, all warnings, and how it ended.
fn types(form: WireForm, body: &[u8]) -> (Vec<String>, Vec<Warning>, Result<End, DecodeError>) {
    let mut decoder = Decoder::new(form, Limits::default());
    let (mut types, mut warnings, mut input) = (Vec::new(), Vec::new(), body);
    let mut take = |decoded: agui_wire::Decoded<'_>| {
        types.extend(decoded.event.map(|event| event.value.type_name().to_owned()));
        warnings.extend(decoded.warnings);
    };
    let end = loop {
        match decoder.decode(&mut input) {
            Ok(Some(decoded)) => take(decoded),
            Err(error) => break Err(error),
            Ok(None) => match decoder.finish() {
                Ok(ending) => {
                    ending.last.map(&mut take);
                    break Ok(ending.end);
                }
                Err(error) => break Err(error),
            },
        }
    };
    (types, warnings, end)
}

fn failure(form: WireForm, body: &[u8]) -> DecodeError {
    types(form, body).2.expect_err("a fault")
}

fn run() -> [Event; 3] {
    [
        RunStarted::new("t", "r").into(),
        StepStarted::new("é").into(),
        RunFinished::new("t", "r").into(),
    ]
}

#[test]
fn t1_t5_both_forms_carry_the_same_events_in_order() {
    for form in FORMS {
        let (types, warnings, end) = types(form, &body(form, run()));
        assert_eq!(types, ["RUN_STARTED", "STEP_STARTED", "RUN_FINISHED"], "{form}");
        assert_eq!((warnings, end), (Vec::new(), Ok(End::Clean)));
    }
}

#[test]
fn t27_a_frame_is_a_big_endian_length_and_a_message_and_frames_abut() {
    let one = body(WireForm::Proto, [StepStarted::new("plan").into()]);
    assert_eq!(one[..4], [0, 0, 0, 12]);
    assert_eq!(one.len(), 4 + 12);
    let two = body(WireForm::Proto, [StepStarted::new("plan").into(), RunError::new("").into()]);
    assert_eq!(two[..16], one);
    assert_eq!(two.len(), 16 + 4 + 6);
}

#[test]
fn t28_case_05_frames_are_split_and_joined_by_the_reads() {
    let case = include_str!("data/05-proto-frames-split-and-joined.json");
    let case: serde_json::Value = serde_json::from_str(case).expect("a case");
    let mut decoder = Decoder::new(WireForm::Proto, Limits::default());
    let mut types = Vec::new();
    for read in case["input"]["chunks"].as_array().expect("reads") {
        let read = unhex(read["hex"].as_str().expect("bytes"));
        let mut input = &read[..];
        while let Some(decoded) = decoder.decode(&mut input).expect("valid") {
            types.push(decoded.event.expect("an event").value.type_name().to_owned());
        }
    }
    assert_eq!(serde_json::Value::from(types), case["expect"]["delivered"]);
    assert_eq!(decoder.finish().expect("between frames").end, End::Clean);
}

#[test]
fn t29_the_end_of_a_body_inside_a_frame_is_told_apart_from_any_other_fault() {
    for form in FORMS {
        let whole = body(form, run());
        let first = body(form, [RunStarted::new("t", "r").into()]).len();
        // Only the line end and the blank line may be missing of a frame that is handed out.
        let first = if form == WireForm::Sse { first - 2 } else { first };
        for cut in 0..whole.len() {
            let (types, _, end) = types(form, &whole[..cut]);
            assert_eq!(types.is_empty(), cut < first, "{form} {cut}");
            match end {
                // Server-sent events may lack the blank line, or end inside a field's name.
                Ok(end) => assert!(form == WireForm::Sse || end == End::Clean, "{form} {cut}"),
                Err(error) => {
                    assert_eq!(error.kind(), DecodeErrorKind::TruncatedFrame, "{form} {cut}");
                    assert_eq!(error.frame() as usize, types.len());
                    assert!(error.offset() as usize <= cut);
                }
            }
        }
    }
    let error = failure(WireForm::Sse, b"data: {\"type\":\"STEP_STARTED\",\"stepNa");
    assert_eq!(error.read_error().expect("JSON").kind(), ReadErrorKind::Syntax);
    assert_eq!(error.quote(), "{\"type\":\"STEP_STARTED\",\"stepNa");
    assert!(error.to_string().contains("cut off"), "{error}");
}

#[test]
fn t22_what_is_no_event_is_told_by_kind_place_and_quote() {
    let before = body(WireForm::Sse, [RunStarted::new("t", "r").into()]);
    for (data, kind, path, offset) in [
        ("oops", DecodeErrorKind::NotJson, "", 0),
        ("{\"type\":\"RAW\",}", DecodeErrorKind::NotJson, "", 14),
        ("", DecodeErrorKind::NotJson, "", 0),
        ("{} {}", DecodeErrorKind::NotJson, "", 3),
        ("[1]", DecodeErrorKind::NotAnEvent, "", 0),
        ("null", DecodeErrorKind::NotAnEvent, "", 0),
        ("{}", DecodeErrorKind::NotAnEvent, "/type", 0),
        ("{\"type\":7}", DecodeErrorKind::NotAnEvent, "/type", 8),
        ("{\"type\":\"\"}", DecodeErrorKind::NotAnEvent, "/type", 8),
        ("{\"type\":\"STEP_STARTED\",\"stepName\":7}", DecodeErrorKind::Malformed, "/stepName", 34),
        ("{\"type\":\"STEP_STARTED\"}", DecodeErrorKind::Malformed, "/stepName", 23),
    ] {
        let text = [&before[..], b"id: 1\ndata: ", data.as_bytes(), b"\n\n"].concat();
        let (types, _, end) = types(WireForm::Sse, &text);
        assert_eq!(types, ["RUN_STARTED"], "C-12: {data}");
        let error = end.expect_err(data);
        assert_eq!((error.kind(), error.path(), error.quote()), (kind, path, data), "{data}");
        assert_eq!((error.frame(), error.offset()), (1, before.len() as u64 + 12));
        assert_eq!(error.read_error().expect("a reason").offset(), offset, "{data}");
    }
}

#[test]
fn t22_done_is_a_warning_behind_the_end_of_a_run_and_an_error_before() {
    let done = b"data: [DONE]\n\n".to_vec();
    let started = body(WireForm::Sse, [RunStarted::new("t", "r").into()]);
    for end in [RunFinished::new("t", "r").into(), RunError::new("x").into()] {
        let ended = [&started[..], &body(WireForm::Sse, [end])].concat();
        let (events, warnings, end) = types(WireForm::Sse, &[&ended[..], &done].concat());
        assert_eq!((events.len(), warnings, end), (2, vec![Warning::DoneMarker], Ok(End::Clean)));
        // Also without the blank line, and not once another run has begun.
        let (_, warnings, _) =
            types(WireForm::Sse, &[&ended[..], &done[..done.len() - 1]].concat());
        assert_eq!(warnings, [Warning::DoneMarker]);
        let error = failure(WireForm::Sse, &[&ended[..], &started, &done].concat());
        assert_eq!((error.kind(), error.frame()), (DecodeErrorKind::NotJson, 3));
    }
    let error = failure(WireForm::Sse, &[started, done].concat());
    assert_eq!((error.kind(), error.quote()), (DecodeErrorKind::NotJson, "[DONE]"));
    assert!(error.to_string().contains("[DONE]"), "{error}");
}

#[test]
fn t13_bytes_that_are_not_utf8_are_replaced_with_a_warning_in_text() {
    let text = b"data: {\"type\":\"STEP_STARTED\",\"stepName\":\"a\xffb\"}\n\n";
    let (events, warnings, end) = types(WireForm::Sse, text);
    assert_eq!((events.len(), warnings), (1, vec![Warning::InvalidUtf8]));
    assert!(end.is_ok());
    // Protobuf has strings be UTF-8.
    let message = b"\x7a\x09\x0a\x02\x08\x0e\x12\x03a\xffb";
    let error = failure(WireForm::Proto, &framed(message));
    assert_eq!(error.kind(), DecodeErrorKind::Proto);
    let text = error.source().expect("a reason").to_string();
    assert_eq!(text, "a string that is not UTF-8 at byte 8 of the message");
}

#[test]
fn t16_t21_a_position_is_told_and_means_nothing() {
    let mut text = b"event: x\nretry: 5\n".to_vec();
    let mut encoder = Encoder::new(WireForm::Sse);
    let events = run();
    encoder.encode(&events[0], Some("41"), &mut text).expect("a form");
    encoder.keep_alive(&mut text);
    encoder.encode(&events[1], None, &mut text).expect("a form");
    encoder.encode(&events[2], Some(""), &mut text).expect("a form");
    let mut decoder = Decoder::new(WireForm::Sse, Limits::default());
    let (mut input, mut seen) = (&text[..], Vec::new());
    while let Some(decoded) = decoder.decode(&mut input).expect("valid") {
        assert!(decoded.event.is_some() && decoded.warnings.is_empty());
        seen.push((decoded.frame, decoded.id.map(str::to_owned), decoded.offset));
    }
    let ids: Vec<_> = seen.iter().map(|(_, id, _)| id.as_deref()).collect();
    assert_eq!(ids, [Some("41"), None, Some("")]);
    assert_eq!(seen.iter().map(|(frame, ..)| *frame).collect::<Vec<_>>(), [0, 1, 2]);
    for (_, _, offset) in seen {
        let at = &text[offset as usize..];
        assert!(at.starts_with(b"event:") || at.starts_with(b"data:") || at.starts_with(b"id:"));
    }
    assert_eq!(decoder.last_event_id(), "");
}

#[test]
fn t17_only_text_has_a_sign_of_life() {
    for (form, sign) in [(WireForm::Sse, &b": keep-alive\n\n"[..]), (WireForm::Proto, b"")] {
        let mut body = Vec::new();
        Encoder::new(form).keep_alive(&mut body);
        assert_eq!(body, sign);
        let (events, warnings, end) = types(form, &body);
        assert_eq!((events.len(), warnings.len(), end), (0, 0, Ok(End::Clean)));
    }
}

#[test]
fn t30_an_event_of_a_later_version_is_dropped_with_a_warning() {
    let run = body(WireForm::Proto, run());
    let unknown = framed(&unhex("820202080a"));
    let (events, warnings, end) = types(WireForm::Proto, &[&unknown[..], &run, &unknown].concat());
    assert_eq!(events.len(), 3);
    assert_eq!(warnings, vec![Warning::UnknownEvent { number: 32 }; 2]);
    assert!(end.is_ok());
}

#[test]
fn t31_a_frame_that_does_not_decode_ends_the_stream() {
    let run = body(WireForm::Proto, run());
    let bad = [&framed(b"\xff\x00\x01")[..], &run].concat();
    let mut decoder = Decoder::new(WireForm::Proto, Limits::default());
    let mut input = &bad[..];
    let error = decoder.decode(&mut input).expect_err("bad");
    assert_eq!((error.kind(), error.quote()), (DecodeErrorKind::Proto, "ff0001"));
    let left = input;
    assert_eq!(decoder.decode(&mut input).expect_err("stays failed"), error);
    assert_eq!(input, left, "later frames are not read");
    assert_eq!(decoder.finish().expect_err("stays failed"), error);
}

#[test]
fn t33_unknown_fields_vanish_and_what_is_missing_reads_as_empty() {
    for (message, json) in [
        ("7a0c0a02080e1204706c616e8206", None),
        (
            "7a120a02080e1204706c616e9203056c61746572",
            Some(r#"{"type":"STEP_STARTED","stepName":"plan"}"#),
        ),
        ("7a040a02080e", Some(r#"{"type":"STEP_STARTED","stepName":""}"#)),
        ("42040a020807", Some(r#"{"type":"STATE_DELTA","delta":[]}"#)),
    ] {
        let body = framed(&unhex(message));
        let mut decoder = Decoder::new(WireForm::Proto, Limits::default());
        let decoded = decoder.decode(&mut &body[..]);
        match (decoded, json) {
            (Ok(decoded), Some(json)) => {
                let reading = decoded.expect("a frame").event.expect("an event");
                assert_eq!(agui_types::ToJson::to_json(&reading.value), json);
                assert!(reading.findings.is_empty(), "silently");
            }
            (Err(error), None) => assert_eq!(error.kind(), DecodeErrorKind::Proto),
            (other, _) => panic!("{other:?}"),
        }
    }
}

#[test]
fn t33_what_has_no_form_is_named_and_what_would_change_the_meaning_is_refused() {
    let read = |json: &str| agui_types::EventReader::new().tolerant(json).expect(json).value;
    let mut encoder = Encoder::new(WireForm::Proto);
    for (json, path, what) in [
        (
            r#"{"type":"STATE_DELTA","delta":[{"op":"remove","path":"/a","why":1}]}"#,
            "/delta/0",
            "why",
        ),
        (
            r#"{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":[{"type":"scent"}]}"#,
            "/content/0",
            "scent",
        ),
        (
            r#"{"type":"MESSAGES_SNAPSHOT","messages":[{"role":"robot","id":"r","mood":1}]}"#,
            "/messages/0",
            "mood",
        ),
        (
            r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"paused","by":1}}"#,
            "/outcome",
            "by",
        ),
    ] {
        let omitted = encoder.encode(&read(json), None, &mut Vec::new()).expect("a form");
        assert_eq!(omitted.len(), 1, "{json}");
        assert_eq!(omitted[0].path, path);
        assert!(omitted[0].to_string().contains(what), "{}", omitted[0]);
    }
    let mut out = b"before".to_vec();
    for (json, path, kind) in [
        (r#"{"type":"FUTURE"}"#, "", EncodeErrorKind::UnknownEvent("FUTURE".into())),
        (
            r#"{"type":"STATE_DELTA","delta":[{"op":"remove","path":""},{"op":"merge"}]}"#,
            "/delta/1",
            EncodeErrorKind::UnknownOperation("merge".into()),
        ),
        (
            r#"{"type":"CUSTOM","name":"n","value":{"a":[-1e400]}}"#,
            "/value",
            EncodeErrorKind::Number("-1e400".into()),
        ),
    ] {
        let error = encoder.encode(&read(json), None, &mut out).expect_err(json);
        assert_eq!((error.path(), error.kind()), (path, &kind));
        assert_eq!(out, b"before", "as it was");
        let mut text = Vec::new();
        Encoder::new(WireForm::Sse).encode(&read(json), None, &mut text).expect("text takes all");
    }
    let error = Encoder::new(WireForm::Sse).encode(&run()[0], Some("a\nb"), &mut out);
    let error = error.expect_err("a line feed");
    assert!(matches!(error.kind(), EncodeErrorKind::Position(_)));
    assert_eq!(out, b"before");
}

#[test]
fn a_number_comes_back_in_the_shortest_text_of_its_double() {
    let there = "[7,7.0,-0,0.1,1e300,5e-324,9007199254740993,-1507992826406218.25]";
    let back = "[7,7,-0.0,0.1,1e+300,5e-324,9007199254740992.0,-1507992826406218.2]";
    let there = agui_types::Json::parse(there).expect("JSON");
    let event = agui_types::event::StateSnapshot::new(there).into();
    let body = body(WireForm::Proto, [event]);
    let mut decoder = Decoder::new(WireForm::Proto, Limits::default());
    let decoded = decoder.decode(&mut &body[..]).expect("valid").expect("a frame");
    let Event::StateSnapshot(event) = decoded.event.expect("an event").value else {
        panic!("a snapshot")
    };
    assert_eq!(event.snapshot.as_str(), back);

    // One that is no number in JSON is none, and is told.
    let body = framed(&unhex("3a0f0a020806120911000000000000f87f"));
    let decoded = decoder.decode(&mut &body[..]).expect("valid").expect("a frame");
    assert_eq!(decoded.warnings, [Warning::NoNumber { path: "/snapshot".into() }]);
    let json = agui_types::ToJson::to_json(&decoded.event.expect("an event").value);
    assert_eq!(json, r#"{"type":"STATE_SNAPSHOT","snapshot":null}"#);
}

#[test]
fn a_decoder_is_ready_for_another_body_after_the_end_of_one() {
    for form in FORMS {
        let mut decoder = Decoder::new(form, Limits::default());
        let whole = body(form, run());
        for _ in 0..2 {
            let mut input = &whole[..];
            for frame in 0..3 {
                let decoded = decoder.decode(&mut input).expect("valid").expect("a frame");
                assert_eq!(decoded.frame, frame);
                assert_eq!(decoded.offset == 0, frame == 0);
            }
            assert_eq!(decoder.finish().expect("between frames").end, End::Clean);
        }
    }
}
