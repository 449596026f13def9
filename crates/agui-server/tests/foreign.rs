//! What other people's agents send goes out as the protocol describes it, or not at all.

mod common;

use agui_agent::Agent;
use agui_server::{AgentService, codes};
use common::{INPUT, Item, Log, body_text, events, post, raw, sent};
use futures_util::stream;
use serde_json::{Value, json};
use tower::ServiceExt;

const STARTED: &str = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#;
const FINISHED: &str = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#;

/// An agent whose stream is read from these texts, as a remote one's is.
fn remote(texts: &[&str]) -> impl Agent {
    let events: Vec<_> = texts.iter().map(|text| sent(text)).collect();
    raw(move |_| {
        let items: Vec<Item> = events.iter().cloned().map(Ok).collect();
        Box::pin(stream::iter(items))
    })
}

async fn answer(texts: &[&str]) -> Vec<Value> {
    let response = AgentService::new(remote(texts)).oneshot(post(INPUT)).await.unwrap();
    events(&body_text(response).await)
}

fn parsed(texts: &[&str]) -> Vec<Value> {
    texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect()
}

#[tokio::test]
async fn p16_events_of_an_unknown_type_are_left_out_with_a_warning() {
    let log = Log::capture();
    let events = answer(&[STARTED, r#"{"type":"SHINY","x":"s3cret"}"#, FINISHED]).await;
    assert_eq!(events, parsed(&[STARTED, FINISHED]));
    let log = log.text();
    assert!(
        log.contains("WARN") && log.contains("SHINY") && log.contains("rule=\"C-22\""),
        "{log}"
    );
    assert!(log.contains("event=1") && !log.contains("s3cret"), "{log}");
}

#[tokio::test]
async fn p16_undescribed_members_are_stripped_with_a_warning() {
    let log = Log::capture();
    let shiny = r#"{"type":"CUSTOM","name":"a","value":{"any":1},"shiny":"s3cret"}"#;
    let unknown_role = r#"{"type":"MESSAGES_SNAPSHOT","messages":[
        {"id":"1","role":"narrator","content":"s3cret"},{"id":"2","role":"assistant"}]}"#;
    let events = answer(&[STARTED, shiny, unknown_role, FINISHED]).await;
    let custom = r#"{"type":"CUSTOM","name":"a","value":{"any":1}}"#;
    let snapshot = r#"{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"2","role":"assistant"}]}"#;
    assert_eq!(events, parsed(&[STARTED, custom, snapshot, FINISHED]));
    let log = log.text();
    assert!(log.contains("path=\"/shiny\"") && log.contains("path=\"/messages/0\""), "{log}");
    assert!(!log.contains("s3cret"), "{log}");
}

#[tokio::test]
async fn c84_retired_shapes_are_translated() {
    let log = Log::capture();
    let events = answer(&[
        STARTED,
        r#"{"type":"THINKING_START"}"#,
        r#"{"type":"THINKING_END"}"#,
        r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":null,"result":null}"#,
    ])
    .await;
    let id = events[1]["messageId"].as_str().unwrap();
    let span = |name: &str| json!({"type": name, "messageId": id});
    assert_eq!(events[1..3], [span("REASONING_START"), span("REASONING_END")]);
    assert_eq!(events[3], serde_json::from_str::<Value>(FINISHED).unwrap());
    assert!(log.text().contains("THINKING_START is retired"), "{}", log.text());
}

#[tokio::test]
async fn c28_null_in_an_optional_place_breaks_a_rule() {
    let events =
        answer(&[STARTED, r#"{"type":"CUSTOM","name":"a","value":1,"metadata":null}"#]).await;
    assert_eq!(events.len(), 2);
    assert_eq!(events[1]["code"], codes::RULE_BROKEN);
    let message = events[1]["message"].as_str().unwrap();
    assert!(message.contains("event 1/metadata") && message.contains("C-28"), "{message}");
}

#[tokio::test]
async fn c43_chunks_go_out_as_they_came() {
    let texts = [
        STARTED,
        r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"Hel"}"#,
        r#"{"type":"TEXT_MESSAGE_CHUNK","delta":"lo"}"#,
        r#"{"type":"TOOL_CALL_CHUNK","toolCallId":"c","toolCallName":"look","delta":"{}"}"#,
        r#"{"type":"REASONING_MESSAGE_CHUNK","messageId":"x","delta":"hm"}"#,
        FINISHED,
    ];
    assert_eq!(answer(&texts).await, parsed(&texts));
}

#[tokio::test]
async fn c44_c45_chunks_are_verified_all_the_same() {
    for (chunk, rule) in [
        (r#"{"type":"TEXT_MESSAGE_CHUNK","delta":"whose?"}"#, "C-44"),
        (r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","role":"user","delta":"!"}"#, "C-45"),
        (r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"!"}"#, "C-38"),
    ] {
        let first = r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"Hi"}"#;
        let texts = if rule == "C-44" { vec![STARTED, chunk] } else { vec![STARTED, first, chunk] };
        let events = answer(&texts).await;
        assert_eq!(events.len(), texts.len(), "{events:?}");
        let error = events.last().unwrap();
        assert_eq!(
            (&error["type"], &error["code"]),
            (&json!("RUN_ERROR"), &json!(codes::RULE_BROKEN))
        );
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(rule), "{message}");
        assert!(message.contains(&format!("event {}", texts.len() - 1)), "{message}");
    }
}

#[tokio::test]
async fn p24_what_chunks_left_open_is_not_closed_by_explicit_events() {
    let events = answer(&[
        STARTED,
        r#"{"type":"STEP_STARTED","stepName":"s"}"#,
        r#"{"type":"TEXT_MESSAGE_START","messageId":"explicit"}"#,
        r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"ended","delta":"a"}"#,
        r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"open","delta":"b"}"#,
    ])
    .await;
    assert_eq!(
        events[5..7],
        [
            json!({"type": "TEXT_MESSAGE_END", "messageId": "explicit"}),
            json!({"type": "STEP_FINISHED", "stepName": "s"}),
        ]
    );
    assert_eq!(events[7]["code"], codes::RUN_TRUNCATED);
    assert_eq!(events.len(), 8);
    // The stream is one that a client takes.
    let mut pipeline = agui_stream::Pipeline::for_run("t".into(), "r".into());
    for event in &events {
        let reading = sent(&event.to_string());
        pipeline.push(reading, &mut Vec::new(), &mut Vec::new()).unwrap();
    }
    pipeline.finish().unwrap();
}

#[tokio::test]
async fn a_remote_agent_cannot_fill_the_log() {
    let log = Log::capture();
    let shiny = r#"{"type":"CUSTOM","name":"a","value":1,"shiny":1}"#;
    let long = format!(r#"{{"type":"CUSTOM","name":"a","value":1,"{}":1}}"#, "long".repeat(9_000));
    let mut texts = vec![STARTED, &long];
    texts.extend([shiny; 100]);
    texts.push(FINISHED);
    assert_eq!(answer(&texts).await.len(), 103);
    let log = log.text();
    assert_eq!(log.matches("C-23").count(), 20, "{log}");
    assert!(log.contains("more=81"), "{log}");
    assert!(log.len() < 10_000, "{}", log.len());
}
