//! The tolerant reading of what newer, older, sloppy and hostile peers send.

use agui_types::event::{Custom, EncryptedValueSubtype, StateSnapshot, TextMessageEnd, TextRole};
use agui_types::json::MAX_DEPTH;
use agui_types::read::{FREE_ENTRIES, Finding, FindingKind, Findings, LIST_EXPANSION};
use agui_types::{
    Event, EventReader, FromJson, Json, Message, MessageContent, PatchOp, ReadError, ReadErrorKind,
    Reading, RunAgentInput, RunFinishedOutcome, ToJson, TokenUsage,
};

fn read(text: &str) -> Reading<Event> {
    Event::from_json_tolerant(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn refused(text: &str) -> ReadError {
    match Event::from_json_tolerant(text) {
        Ok(reading) => panic!("{:?} was read from {text}", reading.value),
        Err(error) => error,
    }
}

fn paths(findings: &Findings) -> Vec<&str> {
    findings.iter().map(|finding| &*finding.path).collect()
}

fn is_null(finding: &Finding) -> bool {
    finding.kind == FindingKind::Null
}

#[test]
fn undescribed_members_are_reported_at_any_depth_and_left_out() {
    // C-23, C-27
    let described = [
        r#"{"type":"RUN_STARTED","threadId":"t","runId":"r","input":{"threadId":"t","runId":"r","#,
        r#""messages":[{"role":"assistant","id":"a","toolCalls":[{"type":"function","id":"c","#,
        r#""function":{"name":"f","arguments":"{}"}}]},{"role":"user","id":"u","content":[{"#,
        r#""type":"image","source":{"type":"url","value":"v"}}]}],"resume":[{"#,
        r#""interruptId":"i","status":"resolved","payload":{"kept":1}}]}}"#,
    ]
    .concat();
    // One member more at the end of each described object, the innermost first.
    let mut crowded = described.clone();
    let ends = [
        (r#""arguments":"{}"}"#, "/input/messages/0/toolCalls/0/function/new~1er"),
        (r#""value":"v"}"#, "/input/messages/1/content/0/source/new~1er"),
        (r#""payload":{"kept":1}}"#, "/input/resume/0/new~1er"),
    ];
    for (end, _) in ends {
        let longer = format!(r#"{},"new/er":[ 1.50, null]}}"#, &end[..end.len() - 1]);
        crowded = crowded.replace(end, &longer);
    }
    let outer = (r#"{"type":"RUN_STARTED","#, r#"{"type":"RUN_STARTED","toString":{"a":{}},"#);
    let crowded = crowded.replacen(outer.0, outer.1, 1);

    let reading = read(&crowded);
    assert_eq!(reading.value, read(&described).value);
    assert_eq!(reading.value.to_json(), described);
    let expected: Vec<&str> = ["/toString"].into_iter().chain(ends.map(|(_, path)| path)).collect();
    assert_eq!(paths(&reading.findings), expected);
    let raw = |text: &str| FindingKind::UnknownMember(Json::parse(text).unwrap());
    assert_eq!(reading.findings[0].kind, raw(r#"{"a":{}}"#));
    assert!(reading.findings[1..].iter().all(|it| it.kind == raw("[ 1.50, null]")));
}

#[test]
fn data_is_not_looked_into() {
    // C-30, C-31, C-66: neither `null` nor any name in it is worth a finding.
    let data = r#"{"type":null,"x":[null],"subagentRunId":7}"#;
    for text in [
        format!(r#"{{"type":"CUSTOM","name":"n","value":{data},"metadata":{data}}}"#),
        format!(r#"{{"type":"RAW","event":{data},"rawEvent":{data}}}"#),
        format!(r#"{{"type":"STATE_SNAPSHOT","snapshot":{data}}}"#),
        format!(
            r#"{{"type":"ACTIVITY_SNAPSHOT","messageId":"m","activityType":"a","content":{data}}}"#
        ),
        format!(
            r#"{{"type":"STATE_DELTA","delta":[{{"op":"add","path":"","value":{data},"x":null}}]}}"#
        ),
    ] {
        let reading = read(&text);
        assert_eq!(*reading.findings, [], "{text}");
        assert_eq!(reading.value.to_json(), text);
    }
}

#[test]
fn null_in_an_optional_place_is_reported_and_reads_as_absent() {
    // The retired shapes of section 12 among them: a later stage translates those and refuses the
    // rest (C-28).
    let input = |member: &str| {
        format!(
            r#"{{"type":"RUN_STARTED","threadId":"t","runId":"r","input":{{"threadId":"t","runId":"r","messages":[]{member}}}}}"#
        )
    };
    let part = |part: &str| {
        format!(
            r#"{{"type":"MESSAGES_SNAPSHOT","messages":[{{"role":"user","id":"u","content":[{{"type":"{part}"}}]}}]}}"#
        )
    };
    for (text, path) in [
        (r#"{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"n","parentMessageId":null}"#.into(), "/parentMessageId"),
        (r#"{"type":"TOOL_CALL_CHUNK","parentMessageId":null}"#.into(), "/parentMessageId"),
        (r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":null}"#.into(), "/outcome"),
        (r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","result":null}"#.into(), "/result"),
        (r#"{"type":"SUBAGENT_FINISHED","subagentRunId":"s","result":null}"#.into(), "/result"),
        (r#"{"type":"STEP_STARTED","stepName":"s","rawEvent":null}"#.into(), "/rawEvent"),
        (r#"{"type":"STEP_STARTED","stepName":"s","metadata":null}"#.into(), "/metadata"),
        (r#"{"type":"STEP_STARTED","stepName":"s","timestamp":null}"#.into(), "/timestamp"),
        (r#"{"type":"STEP_STARTED","stepName":"s","subagentRunId":null}"#.into(), "/subagentRunId"),
        (input(r#","forwardedProps":null"#), "/input/forwardedProps"),
        (input(r#","state":null"#), "/input/state"),
        (input(r#","tools":[{"name":"n","description":"d","parameters":null}]"#), "/input/tools/0/parameters"),
        (input(r#","resume":[{"interruptId":"i","status":"cancelled","payload":null}]"#), "/input/resume/0/payload"),
        (part(r#"text","text":"t","metadata":null,"id":"p"#), "/messages/0/content/0/metadata"),
        (part(r#"audio","source":{"type":"url","value":"v"},"metadata":null,"id":"p"#), "/messages/0/content/0/metadata"),
    ] {
        let reading = read(&text);
        assert_eq!(paths(&reading.findings), [path], "{text}");
        assert!(is_null(&reading.findings[0]), "{text}");
        let name = path.rsplit('/').next().unwrap();
        let without = text.replacen(&format!(r#","{name}":null"#), "", 1);
        assert_ne!(without, text);
        assert_eq!(reading.value, read(&without).value);
        assert_eq!(*read(&without).findings, []);
        let error = Event::from_json_exact(&text).unwrap_err();
        assert_eq!((error.kind(), error.path()), (ReadErrorKind::Null, path));
        assert!(text[error.offset()..].starts_with("null"));
    }
}

#[test]
fn a_required_null_is_a_value_and_its_absence_an_error() {
    // C-66
    let event = Event::from(Custom::new("n", Json::parse("null").unwrap()));
    let text = r#"{"type":"CUSTOM","name":"n","value":null}"#;
    assert_eq!(event.to_json(), text);
    assert_eq!(read(text), event.into());
    let state = read(r#"{"type":"STATE_SNAPSHOT","snapshot":null}"#);
    assert_eq!(state, Event::from(StateSnapshot::new(Json::parse("null").unwrap())).into());
    let error = refused(r#"{"type":"CUSTOM","name":"n"}"#);
    assert_eq!((error.kind(), error.path()), (ReadErrorKind::Missing, "/value"));
    let error = refused(r#"{"type":"CUSTOM","name":null,"value":0}"#);
    assert_eq!((error.kind(), error.path()), (ReadErrorKind::WrongType, "/name"));
}

#[test]
fn unknown_members_of_a_union_are_kept_whole() {
    // C-24, C-25, C-26, C-69
    for (text, path, tag) in [
        (
            r#"{"type":"MESSAGES_SNAPSHOT","messages":[{"id":7, "role":"oracle"}]}"#,
            "/messages/0",
            "oracle",
        ),
        (
            r#"{"type":"MESSAGES_SNAPSHOT","messages":[{"role":"tool","id":"i","content":[{"type":"hologram","x":1.0}],"toolCallId":"c"}]}"#,
            "/messages/0/content/0",
            "hologram",
        ),
        (
            r#"{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":[{"type":"video","source":{"type":"tape"}}]}"#,
            "/content/0/source",
            "tape",
        ),
        (
            r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"postponed","until":1e3}}"#,
            "/outcome",
            "postponed",
        ),
        (
            r#"{"type":"SUBAGENT_FINISHED","subagentRunId":"s","outcome":{"type":""}}"#,
            "/outcome",
            "",
        ),
        (
            r#"{"type":"STATE_DELTA","delta":[{"op":"merge" , "path":"no pointer"}]}"#,
            "/delta/0",
            "merge",
        ),
    ] {
        let reading = read(text);
        assert_eq!(paths(&reading.findings), [path], "{text}");
        assert_eq!(reading.findings[0].kind, FindingKind::UnknownVariant(tag.into()));
        assert_eq!(reading.value.to_json(), text);
        let error = Event::from_json_exact(text).unwrap_err();
        assert_eq!(error.kind(), ReadErrorKind::UnknownVariant, "{text}");
        assert!(error.path().starts_with(path), "{error}");
        assert!(text[error.offset()..].starts_with(&format!("\"{tag}\"")), "{error}");
    }
    let Event::RunFinished(event) =
        read(r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"x"}}"#).value
    else {
        panic!("another event");
    };
    assert!(matches!(event.outcome, Some(RunFinishedOutcome::Unknown(it)) if it.tag() == "x"));
    let Event::StateDelta(event) = read(r#"{"type":"STATE_DELTA","delta":[{"op":"x"}]}"#).value
    else {
        panic!("another event");
    };
    assert!(matches!(&event.delta[0].op, PatchOp::Unknown(it) if it.tag() == "x"));
}

#[test]
fn a_union_takes_objects_only() {
    // C-29: not unknown, but malformed.
    let outcome = |outcome: &str| {
        format!(r#"{{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{outcome}}}"#)
    };
    let delta = |delta: &str| format!(r#"{{"type":"STATE_DELTA","delta":{delta}}}"#);
    for (text, path) in [
        (outcome(r#"["success"]"#), "/outcome"),
        (outcome(r#""success""#), "/outcome"),
        (outcome("7"), "/outcome"),
        (delta("[[]]"), "/delta/0"),
        (delta(r#"[{"op":"remove","path":""},"op"]"#), "/delta/1"),
        (delta("{}"), "/delta"),
    ] {
        let error = refused(&text);
        assert_eq!((error.kind(), error.path()), (ReadErrorKind::WrongType, path), "{text}");
    }
}

#[test]
fn an_object_that_does_not_say_what_it_is_is_of_an_unknown_kind() {
    // C-24, C-25, C-26
    for untagged in ["{}", r#"{"x":[{}] ,"y":{}}"#, r#"{"KEY":7}"#, r#"{"x":1,"KEY":{"a":[]}}"#] {
        for (before, key, after, path) in [
            (
                r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":"#,
                "type",
                "}",
                "/outcome",
            ),
            (
                r#"{"type":"STATE_DELTA","delta":[{"op":"test","path":"","value":1},"#,
                "op",
                "]}",
                "/delta/1",
            ),
            (r#"{"type":"MESSAGES_SNAPSHOT","messages":["#, "role", "]}", "/messages/0"),
        ] {
            let text = format!("{before}{}{after}", untagged.replace("KEY", key));
            let reading = read(&text);
            assert_eq!(paths(&reading.findings), [path], "{text}");
            assert_eq!(reading.findings[0].kind, FindingKind::UnknownVariant("".into()));
            assert_eq!(reading.value.to_json(), text);
            let error = Event::from_json_exact(&text).unwrap_err();
            assert_eq!(error.path(), format!("{path}/{key}"), "{text}");
            // What follows is read at the right depth.
            let depth = MAX_DEPTH - 1;
            let nested = "[".repeat(depth) + &"]".repeat(depth);
            let end = text.len() - 1;
            read(&format!("{},\"rawEvent\":{nested}}}", &text[..end]));
            let error = refused(&format!("{},\"rawEvent\":[{nested}]}}", &text[..end]));
            assert_eq!(error.kind(), ReadErrorKind::TooDeep);
        }
    }
}

#[test]
fn unknown_values_of_a_closed_set_are_kept() {
    // C-63, and section 9 for `role` and `status`
    let text = r#"{"type":"TEXT_MESSAGE_START","messageId":"m","role":"narr\u0061tor"}"#;
    let reading = read(text);
    assert_eq!(reading.findings[0].kind, FindingKind::UnknownValue("narrator".into()));
    assert_eq!(reading.findings[0].path, "/role");
    let Event::TextMessageStart(start) = reading.value else { panic!("another event") };
    assert_eq!(start.role, Some(TextRole::Unknown("narrator".into())));
    assert_eq!(Event::from_json_exact(text).unwrap_err().path(), "/role");

    let text = r#"{"type":"REASONING_ENCRYPTED_VALUE","subtype":"memo","entityId":"e","encryptedValue":"v"}"#;
    let Event::ReasoningEncryptedValue(value) = read(text).value else { panic!("another event") };
    assert_eq!(value.subtype, EncryptedValueSubtype::Unknown("memo".into()));
    assert_eq!(value.to_json(), text);
    let error = refused(&text.replace("\"memo\"", "7"));
    assert_eq!((error.kind(), error.path()), (ReadErrorKind::WrongType, "/subtype"));

    let text = r#"{"threadId":"t","runId":"r","messages":[],"resume":[{"interruptId":"i","status":"later"}]}"#;
    let reading = RunAgentInput::from_json_tolerant(text).unwrap();
    assert_eq!(paths(&reading.findings), ["/resume/0/status"]);
    assert_eq!(reading.value.to_json(), text);
}

#[test]
fn an_unknown_event_is_kept_byte_for_byte() {
    // C-22
    let inner = "{ \"kind\":1.10,\r\n\t\"type\" : \"\\u0042EACON\" ,\"n\":[ 1e2 , null,{} ],\"\\u0061\":\"\\ud800\" }";
    for text in [inner.to_owned(), format!(" \r\n{inner}\t ")] {
        let reading = read(&text);
        assert_eq!(reading.value.to_json(), inner);
        assert_eq!(reading.value.type_name(), "BEACON");
        assert_eq!(reading.value.event_type(), None);
        assert_eq!(paths(&reading.findings), [""]);
        assert_eq!(reading.findings[0].kind, FindingKind::UnknownVariant("BEACON".into()));
        let again = read(&reading.value.to_json());
        assert_eq!(again, reading);
        let error = Event::from_json_exact(&text).unwrap_err();
        assert_eq!((error.kind(), error.path()), (ReadErrorKind::UnknownVariant, "/type"));
        assert!(text[error.offset()..].starts_with(r#""\u0042EACON""#));
        assert!(error.to_string().contains("BEACON"), "{error}");
    }
}

#[test]
fn what_is_no_event_is_told_apart_from_what_is_no_json() {
    // T-22
    for (text, path) in [
        ("[]", ""),
        ("7", ""),
        ("null", ""),
        ("\"RUN_ERROR\"", ""),
        ("{}", "/type"),
        (r#"{"type":7}"#, "/type"),
        (r#"{"type":null}"#, "/type"),
        (r#"{"type":["RUN_ERROR"]}"#, "/type"),
        (r#"{"type":""}"#, "/type"),
        (r#"{"message":"m","type":""}"#, "/type"),
    ] {
        let error = refused(text);
        assert_eq!((error.kind(), error.path()), (ReadErrorKind::NotAnEvent, path), "{text}");
        assert_eq!(Event::from_json_exact(text).unwrap_err(), error, "{text}");
    }
    for (text, offset) in [
        ("", 0),
        ("  ", 2),
        ("{", 1),
        (r#"{"type"}"#, 7),
        (r#"{"type":}"#, 8),
        (r#"{"type":"RUN_ERROR","message":"m"} {}"#, 35),
        (r#"{"type":"RUN_ERROR","message":"m",}"#, 34),
        (r#"{"type":"RUN_ERROR","message":"m"#, 32),
        (r#"{"type":"RUN_ERROR","message":"\x"}"#, 31),
        (r#"{"type":7,"message":"m"#, 22),
        (r#"{"type":"BEACON","x":[1,]}"#, 24),
        ("{\"type\":\"RUN_ERROR\",\"message\":\"\u{1}\"}", 31),
        (r#"{"type":"RUN_ERROR","message":"m","x":tru}"#, 38),
        ("\u{feff}{}", 0),
        ("data: {}", 0),
        ("NaN", 0),
        ("{'type':'RUN_ERROR'}", 1),
    ] {
        let error = refused(text);
        assert_eq!((error.kind(), error.offset()), (ReadErrorKind::Syntax, offset), "{text}");
        assert!(error.to_string().contains(&format!("byte {offset}")), "{error}");
        assert_eq!(Event::from_json_exact(text).unwrap_err(), error, "{text}");
    }
}

#[test]
fn a_refusal_names_the_place_the_offset_what_was_expected_and_what_came() {
    // C-28
    let long = "x".repeat(100);
    let shortened = format!("string \"{}…", "x".repeat(59));
    for (text, kind, path, at, expected, found) in [
        (
            r#"{"type":"STEP_STARTED","stepName":true}"#,
            ReadErrorKind::WrongType,
            "/stepName",
            "true",
            "a string",
            "boolean true",
        ),
        (
            r#"{"type":"STEP_STARTED","stepName": [1] }"#,
            ReadErrorKind::WrongType,
            "/stepName",
            "[1]",
            "a string",
            "an array",
        ),
        (
            r#"{"stepName":"s","timestamp":1.5,"type":"STEP_STARTED"}"#,
            ReadErrorKind::InvalidValue,
            "/timestamp",
            "1.5",
            "an integer within ±(2^53 − 1)",
            "1.5",
        ),
        (
            r#"{"type":"STEP_STARTED","stepName":"s","timestamp":1e999}"#,
            ReadErrorKind::InvalidValue,
            "/timestamp",
            "1e999",
            "an integer within ±(2^53 − 1)",
            "1e999",
        ),
        (
            r#"{"type":"STEP_STARTED","stepName":"s","timestamp":"now"}"#,
            ReadErrorKind::WrongType,
            "/timestamp",
            "\"now\"",
            "an integer within ±(2^53 − 1)",
            "string \"now\"",
        ),
        (
            r#"{"type":"REASONING_MESSAGE_START","messageId":"m","role":"assistant"}"#,
            ReadErrorKind::InvalidValue,
            "/role",
            "\"assistant\"",
            "\"reasoning\"",
            "\"assistant\"",
        ),
        (
            r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[]}}"#,
            ReadErrorKind::InvalidValue,
            "/outcome/interrupts",
            "[]",
            "at least one interrupt",
            "an empty array",
        ),
        (
            r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","usage":[{},{"inputTokens":-1}]}"#,
            ReadErrorKind::InvalidValue,
            "/usage/1/inputTokens",
            "-1",
            "an integer between 0 and 2^53 − 1",
            "-1",
        ),
        (
            r#"{"type":"STATE_DELTA","delta":[{"op":"move","path":"/a","from":"b"}]}"#,
            ReadErrorKind::InvalidValue,
            "/delta/0/from",
            "\"b\"",
            "a JSON Pointer",
            "\"b\"",
        ),
        (
            r#"{"type":"ACTIVITY_SNAPSHOT","messageId":"m","activityType":"a","content":[]}"#,
            ReadErrorKind::WrongType,
            "/content",
            "[]",
            "an object",
            "an array",
        ),
        (
            r#"{"type":"STEP_STARTED","stepName":"s","metadata":"m"}"#,
            ReadErrorKind::WrongType,
            "/metadata",
            "\"m\"",
            "an object",
            "string \"m\"",
        ),
        (
            r#"{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":{}}"#,
            ReadErrorKind::WrongType,
            "/content",
            "{}",
            "a string or a list of content parts",
            "an object",
        ),
        (
            &*format!(r#"{{"type":"STEP_STARTED","stepName":"s","timestamp":"{long}"}}"#),
            ReadErrorKind::WrongType,
            "/timestamp",
            "\"xx",
            "an integer within ±(2^53 − 1)",
            &*shortened,
        ),
    ] {
        let error = refused(text);
        assert_eq!((error.kind(), error.path()), (kind, path), "{text}");
        assert!(text[error.offset()..].starts_with(at), "{} in {text}", error.offset());
        assert_eq!((error.expected(), error.found()), (expected, found), "{text}");
        let sentence = error.to_string();
        for part in [path, expected, found] {
            assert!(sentence.contains(part), "{sentence}");
        }
    }
    let error = refused(r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m"}"#);
    assert_eq!(error.to_string(), "/delta: missing: expected the member \"delta\"");
}

#[test]
fn of_a_repeated_member_the_last_one_counts() {
    let text = r#"{"type":"TEXT_MESSAGE_START","messageId":"a","role":"user","role":null,"messageId":"b","name":null,"name":"n"}"#;
    let reading = read(text);
    assert_eq!(
        reading.value.to_json(),
        r#"{"type":"TEXT_MESSAGE_START","messageId":"b","name":"n"}"#
    );
    assert_eq!(paths(&reading.findings), ["/role", "/name"]);
    // Every one of them must be well-formed.
    assert_eq!(
        refused(r#"{"type":"STEP_STARTED","stepName":1,"stepName":"s"}"#).path(),
        "/stepName"
    );
}

#[test]
fn a_second_discriminator_must_agree() {
    for text in [
        r#"{"type":"TEXT_MESSAGE_END","messageId":"m","type":"TEXT_MESSAGE_END"}"#,
        r#"{"messageId":"m","type":"TEXT_MESSAGE_END","type":"TEXT_MESSAGE_END"}"#,
    ] {
        assert_eq!(read(text), Event::from(TextMessageEnd::new("m")).into());
    }
    let text = r#"{"type":"BEACON","type":"BEACON"}"#;
    assert_eq!(read(text).value.to_json(), text);
    for (text, path) in [
        (r#"{"type":"TEXT_MESSAGE_END","messageId":"m","type":"TOOL_CALL_END"}"#, "/type"),
        (r#"{"messageId":"m","type":"TEXT_MESSAGE_END","type":"BEACON"}"#, "/type"),
        (r#"{"type":"BEACON","type":"RUN_ERROR"}"#, "/type"),
        (r#"{"x":{},"type":"BEACON","type":"LANTERN"}"#, "/type"),
        (
            r#"{"type":"MESSAGES_SNAPSHOT","messages":[{"role":"oracle","role":"user"}]}"#,
            "/messages/0/role",
        ),
        (r#"{"type":"STATE_DELTA","delta":[{"op":"remove","path":"","op":"add"}]}"#, "/delta/0/op"),
        (
            r#"{"type":"STATE_DELTA","delta":[{"op":"merge","op":"remove","path":""}]}"#,
            "/delta/0/op",
        ),
    ] {
        let error = refused(text);
        assert_eq!((error.kind(), error.path()), (ReadErrorKind::InvalidValue, path), "{text}");
    }
}

#[test]
fn nesting_is_bounded_wherever_it_is() {
    // The event is one level, what stands before the nested value adds more.
    for (before, after, outside) in [
        (r#"{"type":"RAW","event":"#, "}", 1),
        (r#"{"type":"RAW","event":0,"metadata":{"a":"#, "}}", 2),
        (r#"{"type":"RAW","event":0,"x":"#, "}", 1),
        (r#"{"x":"#, r#","type":"BEACON"}"#, 1),
        (r#"{"type":"STATE_DELTA","delta":[{"op":"add","path":"","value":"#, "}]}", 3),
        (r#"{"type":"STATE_DELTA","delta":[{"op":"remove","path":"","x":"#, "}]}", 3),
        (r#"{"type":"MESSAGES_SNAPSHOT","messages":[{"role":"oracle","x":"#, "}]}", 3),
    ] {
        for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
            let nested = |levels: usize| {
                let inner = format!("{}0{}", open.repeat(levels), close.repeat(levels));
                format!("{before}{inner}{after}")
            };
            let most = MAX_DEPTH - outside;
            read(&nested(most));
            for levels in [most + 1, 10_000] {
                let text = nested(levels);
                let error = refused(&text);
                assert_eq!(error.kind(), ReadErrorKind::TooDeep, "{before}");
                assert_eq!(error.offset(), before.len() + open.len() * most, "{before}");
                assert!(error.to_string().contains("127"), "{error}");
                assert_eq!(Event::from_json_exact(&text).unwrap_err().kind(), error.kind());
            }
        }
    }
    // Unfinished, as a hostile peer would save the trouble of closing.
    assert_eq!(refused(&"[".repeat(1_000_000)).kind(), ReadErrorKind::TooDeep);
    assert_eq!(refused(&r#"{"type":"#.repeat(10_000)).kind(), ReadErrorKind::TooDeep);
}

#[test]
fn findings_are_bounded_but_no_null_is_lost() {
    let event =
        |members: String| format!(r#"{{"type":"TEXT_MESSAGE_END","messageId":"m"{members}}}"#);
    let unknown =
        |count: usize| -> String { (0..count).map(|at| format!(r#","x{at}":{at}"#)).collect() };
    for (count, kept, omitted) in
        [(999, 999, 0), (1_000, 1_000, 0), (1_001, 1_000, 1), (3_000, 1_000, 2_000)]
    {
        assert_eq!(Findings::MOST, 1_000);
        let reading = read(&event(unknown(count)));
        assert_eq!((reading.findings.len(), reading.findings.omitted()), (kept, omitted));
        assert_eq!(reading.findings[kept - 1].path, format!("/x{}", kept - 1));
        assert_eq!(reading.value, Event::from(TextMessageEnd::new("m")));
        assert_eq!(reading.findings.into_iter().count(), kept);
    }
    // After the limit, and beyond it.
    let nulls = r#","subagentRunId":null"#.repeat(1_500);
    let findings = read(&event(unknown(1_001) + &nulls)).findings;
    assert_eq!((findings.len(), findings.omitted()), (2_500, 1));
    assert_eq!(findings.iter().filter(|it| is_null(it)).count(), 1_500);
    assert!(findings.iter().filter(|it| is_null(it)).all(|it| it.path == "/subagentRunId"));

    // Over the parts of one text together.
    let messages: Vec<&str> = vec![r#"{"role":"oracle"}"#; 1_001];
    let text = format!(r#"{{"type":"MESSAGES_SNAPSHOT","messages":[{}]}}"#, messages.join(","));
    let reading = read(&text);
    assert_eq!((reading.findings.len(), reading.findings.omitted()), (1_000, 1));
    assert_eq!(reading.findings[999].path, "/messages/999");
    let kept =
        format!(r#"{{"type":"MESSAGES_SNAPSHOT","messages":[{}]}}"#, messages[1..].join(","));
    assert_eq!(reading.value.to_json(), kept);
}

#[test]
fn what_is_only_counted_is_not_kept() {
    let parts = |unknown: &str, last: &str| {
        let parts = format!("{unknown},").repeat(Findings::MOST) + unknown + "," + last;
        format!(
            r#"{{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":[{parts}]}}"#
        )
    };
    let count = |text: &str| {
        let reading = read(text);
        let Event::ToolCallResult(event) = reading.value else { panic!("{text}") };
        let MessageContent::Parts(parts) = event.content else { panic!("{text}") };
        let untagged = |it: &&Finding| it.kind == FindingKind::UnknownVariant("".into());
        let untagged = reading.findings.iter().filter(untagged).count();
        (parts.len(), untagged, reading.findings.omitted())
    };
    let text = r#"{"type":"text","text":"x"}"#;
    assert_eq!(count(&parts("{}", text)), (1_001, 1_000, 1));
    assert_eq!(count(&parts(r#"{"type":"hologram"}"#, text)), (1_001, 0, 1));
    // The first that does not say what it is decides (P-73), so it is told of wherever it is.
    assert_eq!(count(&parts(r#"{"type":"hologram"}"#, "{}")), (1_000, 1, 1));
    // A retired part still has a meaning (C-84).
    assert_eq!(count(&parts(r#"{"type":"binary"}"#, text)), (1_002, 0, 1));
    // It is the element that goes, not what an unknown kind is a member of.
    let image = r#"{"type":"image","source":{"type":"hologram"}}"#;
    assert_eq!(count(&parts(image, text)), (1_002, 0, 1));
}

#[test]
fn entries_that_say_nothing_are_bounded() {
    let finished = |usage: &str| {
        format!(r#"{{"type":"RUN_FINISHED","threadId":"t","runId":"r","usage":[{usage}]}}"#)
    };
    let list = |entry: &str, count: usize| finished(&vec![entry; count].join(","));
    // Each takes 144 bytes: of 1,500, those beyond the free ones just take 16 times the text.
    assert_eq!((FREE_ENTRIES, LIST_EXPANSION, size_of::<TokenUsage>()), (1_000, 16, 144));
    for (entry, count, accepted) in [
        ("{}", 1_500, true),
        ("{}", 1_501, false),
        (r#"{"model":""}"#, 100_000, true),
        (r#"{"inputTokens":1}"#, 100_000, true),
    ] {
        let text = list(entry, count);
        assert_eq!(Event::from_json_tolerant(&text).is_ok(), accepted, "{entry} {count}");
        assert_eq!(Event::from_json_exact(&text).is_ok(), accepted, "{entry} {count}");
    }
    let error = refused(&list("{}", 2_000));
    assert_eq!((error.kind(), error.path()), (ReadErrorKind::InvalidValue, "/usage"));
    assert_eq!(error.found(), "1501 of them in 4503 bytes");
}

#[test]
fn half_a_character_is_no_reason_to_lose_an_event() {
    // A producer that cuts its text between the halves of a surrogate pair.
    let text = r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"\udc00m","delta":"a\ud83d","metadata":{"a":"\ud83d"},"rawEvent":"\ude00"}"#;
    let Event::TextMessageContent(event) = read(text).value else { panic!("another event") };
    assert_eq!(event.message_id, "\u{fffd}m");
    assert_eq!(event.delta, "a\u{fffd}");
    // Data keeps its halves, for whoever has the other one.
    assert_eq!(event.base.metadata().unwrap().as_str(), r#"{"a":"\ud83d"}"#);
    assert_eq!(event.base.raw_event().unwrap().as_str(), r#""\ude00""#);
    assert_eq!(event.base.raw_event().unwrap().decode::<String>().unwrap(), "\u{fffd}");
    let findings = read(r#"{"type":"STEP_STARTED","stepName":"s","\ud83d":1}"#).findings;
    assert_eq!(paths(&findings), ["/\u{fffd}"]);
    // Whole pairs and escapes are what they say.
    let text = r#"{"type":"STEP_STARTED","stepName":"\ud83d\ude00\u0000\/\\"}"#;
    let Event::StepStarted(event) = read(text).value else { panic!("another event") };
    assert_eq!(event.step_name, "😀\0/\\");
}

#[test]
fn names_with_escapes_are_the_names_they_mean() {
    let text = r#"{"\u0074ype":"TEXT_MESSAG\u0045_END","mess\u0061geId":"m"}"#;
    assert_eq!(read(text), Event::from(TextMessageEnd::new("m")).into());
    assert_eq!(Event::from_json_exact(text).unwrap(), TextMessageEnd::new("m").into());
}

#[test]
fn numbers_survive_where_they_are_data() {
    let digits = "9".repeat(5_000);
    for number in ["1e999", "-1e-999", "1.10", "0.1e+1", "-0", &*digits] {
        let text = format!(
            r#"{{"type":"CUSTOM","name":"n","value":{number},"rawEvent":[{number}],"metadata":{{"n":{number}}}}}"#
        );
        assert_eq!(read(&text).value.to_json(), text);
        assert_eq!(Event::from_json_exact(&text).unwrap().to_json(), text);
    }
}

#[test]
fn ids_and_texts_are_as_long_as_they_are() {
    // C-20
    let mut reader = EventReader::new();
    for length in [0, 1, 256, 257, 1_000_000] {
        let id = "é".repeat(length);
        let text =
            format!(r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":"{id}","delta":"{id}"}}"#);
        for _ in 0..3 {
            let reading = reader.tolerant(&text).unwrap();
            let Event::TextMessageContent(event) = &reading.value else { panic!("another event") };
            assert!(event.message_id == id.as_str() && event.delta == id);
            assert!(reading.value.to_json() == text);
        }
    }
}

#[test]
fn a_finding_says_what_it_is() {
    let text = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","x":1,"outcome":{"type":"odd"},"result":null}"#;
    let sentences: Vec<String> = read(text).findings.iter().map(ToString::to_string).collect();
    assert_eq!(
        sentences,
        ["undescribed member at /x", "unknown kind \"odd\" at /outcome", "null at /result"]
    );
    let findings = read(r#"{"type":"TEXT_MESSAGE_CHUNK","role":"bard"}"#).findings;
    assert_eq!(findings[0].to_string(), "unknown value \"bard\" at /role");
    assert_eq!(read(r#"{"type":"BEACON"}"#).findings[0].to_string(), "unknown kind \"BEACON\"");
}

#[test]
fn an_unknown_message_still_has_an_id_if_it_says_so() {
    for (text, id) in [
        (r#"{"role":"oracle","id":"\u006d"}"#, Some("m")),
        (r#"{"role":"oracle","id":7}"#, None),
        (r#"{"role":"oracle"}"#, None),
        (r#"{"role":"oracle","id":"\ud83d"}"#, Some("\u{fffd}")),
    ] {
        let message = Message::from_json_tolerant(text).unwrap().value;
        assert_eq!(message.id().as_ref().map(|id| id.as_str()), id, "{text}");
    }
}
