//! Each retired shape, and what is none.

use agui_types::{Event, EventReader, ToJson};

use super::{Boundary, PeerVersion};
use crate::{Fault, Pipeline, Warning};

/// Sends events through a boundary: what they become, and the warnings.
fn translate(texts: &[&str]) -> (Vec<String>, Vec<Warning>) {
    let (mut boundary, mut warnings) = (Boundary::new(), Vec::new());
    let events = texts
        .iter()
        .map(|text| {
            let reading = EventReader::new().tolerant(text).unwrap();
            boundary.push(reading, &mut warnings).unwrap().event.to_json()
        })
        .collect();
    (events, warnings)
}

/// Sends events through everything, from a peer.
fn run(peer: PeerVersion, texts: &[&str]) -> (Result<(), Fault>, Vec<String>, Vec<Warning>) {
    let mut pipeline = Pipeline::new().from_peer(peer);
    let (mut out, mut warnings) = (Vec::new(), Vec::new());
    let verdict = texts.iter().try_for_each(|text| match EventReader::new().tolerant(text) {
        Ok(reading) => pipeline.push(reading, &mut out, &mut warnings),
        Err(error) => Err(pipeline.push_unreadable(&error)),
    });
    (verdict, out.iter().map(Event::to_json).collect(), warnings)
}

/// Whether a `null` in this event is taken for absent.
fn takes_null(event: &str) -> bool {
    let started = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#;
    let events = if event.contains("RUN_STARTED") { vec![event] } else { vec![started, event] };
    let (verdict, events, warnings) = run(PeerVersion::CURRENT, &events);
    match verdict {
        Ok(()) => {
            assert!(!events.concat().contains("null"), "{events:?}");
            assert_eq!(warnings.len(), 1, "{warnings:?}");
            true
        }
        Err(fault) => {
            assert_eq!(fault.rule, "C-28", "{event}: {fault}");
            false
        }
    }
}

#[test]
fn thinking_becomes_reasoning() {
    // C-84
    let (events, warnings) = translate(&[
        r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
        r#"{"type":"THINKING_START","title":"Plan","metadata":{"k":1}}"#,
        r#"{"type":"THINKING_TEXT_MESSAGE_START","rawEvent":null}"#,
        r#"{"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"a\"b","timestamp":1}"#,
        r#"{"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"c"}"#,
        r#"{"type":"THINKING_TEXT_MESSAGE_END"}"#,
        r#"{"type":"THINKING_END"}"#,
    ]);
    let id = |text: &str| text.split("\"messageId\":\"").nth(1).unwrap()[..36].to_owned();
    let (span, message) = (id(&events[1]), id(&events[2]));
    assert_ne!(span, message);
    assert_eq!(
        events[1..],
        [
            format!(r#"{{"type":"REASONING_START","messageId":"{span}","metadata":{{"k":1}}}}"#),
            format!(
                r#"{{"type":"REASONING_MESSAGE_START","role":"reasoning","messageId":"{message}"}}"#
            ),
            format!(
                r#"{{"type":"REASONING_MESSAGE_CONTENT","messageId":"{message}","delta":"a\"b","timestamp":1}}"#
            ),
            format!(
                r#"{{"type":"REASONING_MESSAGE_CONTENT","messageId":"{message}","delta":"c"}}"#
            ),
            format!(r#"{{"type":"REASONING_MESSAGE_END","messageId":"{message}"}}"#),
            format!(r#"{{"type":"REASONING_END","messageId":"{span}"}}"#),
        ]
    );
    // P-93: the title is lost, and said to be; C-84: each kind is told of once.
    let about: Vec<_> = warnings.iter().map(|it| (it.event.unwrap(), it.path.as_str())).collect();
    assert_eq!(
        about,
        [(1, "/title"), (1, ""), (2, ""), (2, "/rawEvent"), (3, ""), (5, ""), (6, "")]
    );
}

#[test]
fn invented_ids_are_the_same_on_every_path_and_differ_between_runs() {
    // C-33, P-28
    let thinking = |run: &str| {
        let started = format!(r#"{{"type":"RUN_STARTED","threadId":"t","runId":"{run}"}}"#);
        let start = r#"{"type":"THINKING_START"}"#;
        translate(&[&started, start, start]).0[1..].to_vec()
    };
    assert_eq!(thinking("r"), thinking("r"));
    let ids: std::collections::BTreeSet<String> =
        ["r", "s", ""].into_iter().flat_map(thinking).collect();
    assert_eq!(ids.len(), 6);
    let (id, shape) = (thinking("r").remove(0), "xxxxxxxx-xxxx-8xxx-xxxx-xxxxxxxxxxxx");
    let id = id.split('"').nth(7).unwrap();
    assert_eq!(id.len(), shape.len());
    assert!(
        id.chars().zip(shape.chars()).all(|(a, b)| match b {
            'x' => a.is_ascii_hexdigit(),
            b => a == b,
        }),
        "{id}"
    );
}

#[test]
fn a_retired_event_has_to_be_well_formed() {
    // C-28, C-38
    let start = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#;
    let content = r#"{"type":"THINKING_TEXT_MESSAGE_CONTENT"}"#;
    let fault = run(PeerVersion::CURRENT, &[start, content]).0.unwrap_err();
    assert_eq!((fault.rule, &*fault.path, fault.event), ("C-28", "/delta", Some(1)));
    let orphan = r#"{"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"x"}"#;
    let (verdict, _, warnings) = run(PeerVersion::CURRENT, &[start, orphan]);
    assert_eq!(verdict.unwrap_err().rule, "C-38");
    assert!(warnings[0].message.contains("invented"), "{warnings:?}");
}

#[test]
fn dated_nulls_read_as_absent_and_no_others() {
    // C-84, C-28
    for event in [
        r#"{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","parentMessageId":null}"#,
        r#"{"type":"TOOL_CALL_CHUNK","toolCallId":"c","toolCallName":"f","parentMessageId":null}"#,
        r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":null}"#,
        r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","result":null}"#,
        r#"{"type":"CUSTOM","name":"n","value":1,"rawEvent":null}"#,
        r#"{"type":"RUN_STARTED","threadId":"t","runId":"r","input":{"threadId":"t","runId":"r","messages":[],"forwardedProps":null}}"#,
        r#"{"type":"RUN_STARTED","threadId":"t","runId":"r","input":{"threadId":"t","runId":"r","messages":[],"state":null}}"#,
        r#"{"type":"RUN_STARTED","threadId":"t","runId":"r","input":{"threadId":"t","runId":"r","messages":[],"resume":[{"interruptId":"i","status":"resolved","payload":null}]}}"#,
        r#"{"type":"RUN_STARTED","threadId":"t","runId":"r","input":{"threadId":"t","runId":"r","messages":[],"tools":[{"name":"n","description":"d","parameters":null}]}}"#,
        r#"{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"m","role":"user","content":[{"type":"image","source":{"type":"url","value":"u"},"metadata":null}]}]}"#,
    ] {
        assert!(takes_null(event), "{event}");
    }
    for event in [
        r#"{"type":"TEXT_MESSAGE_START","messageId":"m","name":null}"#,
        r#"{"type":"CUSTOM","name":"n","value":1,"metadata":null}"#,
        r#"{"type":"CUSTOM","name":"n","value":1,"subagentRunId":null}"#,
        r#"{"type":"RUN_STARTED","threadId":"t","runId":"r","parentRunId":null}"#,
        r#"{"type":"RUN_STARTED","threadId":"t","runId":"r","input":{"threadId":"t","runId":"r","messages":[],"tools":null}}"#,
        r#"{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"m","role":"user","content":[{"type":"text","text":"","metadata":null}]}]}"#,
        r#"{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":"","role":null}"#,
        r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","usage":null}"#,
    ] {
        assert!(!takes_null(event), "{event}");
    }
}

#[test]
fn a_null_that_may_be_one_is_kept() {
    // C-66: required members of any type hold null as data.
    let (events, warnings) = translate(&[
        r#"{"type":"CUSTOM","name":"n","value":null}"#,
        r#"{"type":"STATE_SNAPSHOT","snapshot":null}"#,
    ]);
    assert!(events.iter().all(|event| event.contains("null")), "{events:?}");
    assert!(warnings.is_empty());
}

/// What becomes of the parts of a message in a snapshot, through everything.
fn parts(parts: &str) -> (String, Vec<Warning>) {
    let started = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#;
    let snapshot = format!(
        r#"{{"type":"MESSAGES_SNAPSHOT","messages":[{{"role":"user","id":"m","content":[{parts}]}}]}}"#
    );
    let (verdict, events, warnings) = run(PeerVersion::CURRENT, &[started, &snapshot]);
    verdict.unwrap();
    let content = events[1].split_once("\"content\":[").unwrap().1;
    (content.trim_end_matches("]}]}").to_owned(), warnings)
}

#[test]
fn binary_parts_become_media_parts() {
    // C-84
    for (mime, kind) in [
        ("image/png", "image"),
        ("audio/wav", "audio"),
        ("video/mp4", "video"),
        ("application/pdf", "document"),
        ("IMAGE/PNG", "document"),
        ("image", "document"),
        ("", "document"),
    ] {
        let binary = format!(r#"{{"type":"binary","mimeType":"{mime}","data":"AA","url":"u"}}"#);
        let media = format!(
            r#"{{"type":"{kind}","source":{{"type":"data","value":"AA","mimeType":"{mime}"}}}}"#
        );
        let (found, warnings) = parts(&binary);
        assert_eq!(found, media);
        assert_eq!((warnings.len(), &*warnings[0].path), (1, "/messages/0/content/0"));
    }
    let url = r#"{"type":"binary","mimeType":"image/png","data":"","url":"u","filename":"f"}"#;
    assert_eq!(
        parts(url).0,
        r#"{"type":"image","source":{"type":"url","value":"u","mimeType":"image/png"},"metadata":{"filename":"f"}}"#
    );
}

#[test]
fn a_binary_part_that_no_media_part_can_hold_is_stripped() {
    // C-84, C-26, P-93
    for part in [
        r#"{"type":"binary","mimeType":"image/png","id":"file-1"}"#,
        r#"{"type":"binary","mimeType":"image/png","data":"","url":""}"#,
        r#"{"type":"binary","data":"AA"}"#,
        r#"{"type":"binary","mimeType":"image/png","data":7}"#,
    ] {
        let (found, warnings) = parts(part);
        assert_eq!(found, "", "{part}");
        let rules: Vec<_> = warnings.iter().map(|it| it.rule).collect();
        assert_eq!(rules, ["C-84", "C-26"]);
    }
}

#[test]
fn a_binary_part_beside_the_media_part_it_restates_is_stripped() {
    let media = r#"{"type":"image","source":{"type":"data","value":"AA","mimeType":"image/png"}}"#;
    let binary = r#"{"type":"binary","mimeType":"image/png","data":"AA"}"#;
    assert_eq!(parts(&format!("{binary},{media},{binary}")).0, media);
    assert_eq!(parts(&format!("{binary},{binary}")).0, format!("{media},{media}"));
    let named = r#"{"type":"binary","mimeType":"image/png","data":"AA","filename":"f"}"#;
    assert!(parts(&format!("{media},{named}")).0.ends_with(r#""metadata":{"filename":"f"}}"#));
}

#[test]
fn an_old_peer_has_no_subagents() {
    // P-92, P-93
    let texts = [
        r#"{"type":"RUN_STARTED","threadId":"t","runId":"r","input":{"threadId":"t","runId":"r","messages":[{"id":"m","role":"system","content":"","subagentRunId":"a"}]}}"#,
        r#"{"type":"SUBAGENT_STARTED","subagentRunId":"a","name":"n"}"#,
        r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"c","delta":"x"}"#,
        r#"{"type":"CUSTOM","name":"n","value":{"subagentRunId":"kept"},"subagentRunId":"a"}"#,
        r#"{"type":"CUSTOM","name":"n","value":1,"subagentRunId":null}"#,
        r#"{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"m","role":"assistant","subagentRunId":"a"}]}"#,
        r#"{"type":"SUBAGENT_FINISHED","subagentRunId":"a"}"#,
        r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"r","subagentRunId":"a"}]}}"#,
    ];
    let (verdict, events, warnings) = run("0.0.57".parse().unwrap(), &texts);
    verdict.unwrap();
    assert_eq!(events.concat().matches("subagentRunId").count(), 1, "{events:?}");
    assert!(!events.concat().contains("SUBAGENT_"));
    // The owner still told the lanes of chunks apart: the first CUSTOM closes nothing.
    assert!(events[3].contains("CUSTOM") && events[4].contains("TEXT_MESSAGE_END"), "{events:?}");
    let dropped = warnings.iter().filter(|it| it.message.starts_with("dropped SUBAGENT_")).count();
    assert_eq!(dropped, 2, "{warnings:?}");

    let (verdict, ..) = run("0.0.58".parse().unwrap(), &texts);
    assert_eq!(&*verdict.unwrap_err().path, "/subagentRunId");
}

#[test]
fn a_refused_event_of_an_old_peer_still_ends_the_shorthand() {
    let texts = [
        r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
        r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"c","delta":"x"}"#,
        r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","usage":null}"#,
    ];
    let (verdict, events, _) = run("0.0.45".parse().unwrap(), &texts);
    assert_eq!(verdict.unwrap_err().rule, "C-28");
    assert!(events.last().unwrap().contains("TEXT_MESSAGE_END"));
    let (_, events, _) = run(PeerVersion::CURRENT, &texts);
    assert!(events.last().unwrap().contains("TEXT_MESSAGE_CONTENT"));
}

#[test]
fn a_peer_version_is_up_to_three_numbers() {
    // C-82, C-83
    let version = |text: &str| text.parse::<PeerVersion>();
    assert_eq!(version("1.0"), version("1.0.0"));
    assert_eq!(version("1"), version("1.0.0"));
    assert!(version("0.0.9").unwrap() < version("0.0.10").unwrap());
    assert!(version("0.0.57").unwrap() < version("0.1").unwrap());
    assert!(version("99.0.0").unwrap() < PeerVersion::default());
    for text in ["", "1.", ".1", "1.0.0.0", "v1", "1.0-beta", "-1", "4294967296"] {
        let error = version(text).unwrap_err();
        assert!(error.to_string().contains(&format!("{text:?}")), "{error}");
    }
    for (text, parts, subagents, versions) in [
        ("0.0.39", false, false, false),
        ("0.0.40", true, false, false),
        ("0.0.57", true, false, false),
        ("0.0.58", true, true, false),
        ("0.9", true, true, false),
        ("1.0", true, true, true),
    ] {
        let peer = version(text).unwrap();
        let knows = (peer.takes_parts(), peer.knows_subagents(), peer.knows_versions());
        assert_eq!(knows, (parts, subagents, versions), "{text}");
    }
}
