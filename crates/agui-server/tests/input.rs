//! What an agent gets of an input that is unusual: as much as the protocol describes.

mod common;
#[allow(dead_code)]
#[path = "../../agui-stream/tests/conformance/corpus.rs"]
mod corpus;

use std::sync::mpsc;

use agui_server::{AgentService, codes};
use agui_types::{FromJson, RunAgentInput, ToJson};
use common::{Log, body_text, post, raw};
use futures_util::stream;
use serde_json::{Value, json};
use tower::ServiceExt;

/// The input that the agent got, and what was logged on the way.
async fn received(input: &Value) -> (Value, String) {
    let log = Log::capture();
    let (sender, receiver) = mpsc::channel();
    let agent = raw(move |input: RunAgentInput| {
        sender.send(input.to_json()).unwrap();
        Box::pin(stream::empty())
    });
    let response = AgentService::new(agent).oneshot(post(input.to_string())).await.unwrap();
    let status = response.status();
    assert_eq!(status, 200, "{}", body_text(response).await);
    (serde_json::from_str(&receiver.try_recv().unwrap()).unwrap(), log.text())
}

/// The path and the message of the refusal.
async fn refused(input: &Value) -> (String, String) {
    let agent = raw(|_| unreachable!("nothing of a run begins"));
    let response = AgentService::new(agent).oneshot(post(input.to_string())).await.unwrap();
    assert_eq!(response.status(), 422);
    let body: Value = serde_json::from_str(&body_text(response).await).unwrap();
    let error = &body["error"];
    assert_eq!(error["code"], codes::INVALID_INPUT);
    let text = |member: &str| error[member].as_str().unwrap().to_owned();
    (text("path"), text("message"))
}

fn input(members: Value) -> Value {
    let mut input = json!({
        "threadId": "t", "runId": "r", "messages": [], "tools": [], "context": [],
    });
    let Value::Object(members) = members else {
        panic!("{members} is no object");
    };
    input.as_object_mut().unwrap().extend(members);
    input
}

fn user(parts: Value) -> Value {
    let mut message = json!({"id": "u", "role": "user"});
    message["content"] = parts;
    json!({"messages": [message]})
}

fn without(mut value: Value, pointer: &str) -> Value {
    let (holder, member) = pointer.rsplit_once('/').unwrap();
    let holder = value.pointer_mut(holder).unwrap().as_object_mut().unwrap();
    holder.remove(member).unwrap();
    value
}

#[tokio::test]
async fn a_conforming_input_arrives_as_it_is_and_nothing_is_logged() {
    // P-76, P-77, P-78
    let whole = input(json!({
        "protocolVersion": "1.0",
        "parentRunId": "p",
        "state": {"n": [1, null]},
        "messages": [
            {"id": "1", "role": "developer", "content": "d"},
            {"id": "2", "role": "user", "content": [
                {"type": "text", "text": "see"},
                {"type": "image", "source": {"type": "url", "value": "https://x.example/p.png"}},
                {"type": "document", "source": {"type": "file", "value": "f"}, "metadata": [1]},
            ]},
            {"id": "3", "role": "assistant", "toolCalls": [
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{"}},
            ]},
            {"id": "4", "role": "tool", "toolCallId": "c", "content": "", "error": "no"},
            {"id": "5", "role": "activity", "activityType": "A", "content": {"x": null}},
            {"id": "6", "role": "reasoning", "content": "hm", "encryptedValue": "e"},
        ],
        "tools": [{"name": "f", "description": "d", "parameters": {"type": "object"}}],
        "context": [{"description": "d", "value": "v"}],
        "forwardedProps": [{"any": null}],
        "resume": [{"interruptId": "i", "status": "resolved", "payload": false}],
    }));
    assert_eq!(received(&whole).await, (whole, String::new()));
    // P-75: missing equals empty.
    let least = json!({"threadId": "", "runId": "", "messages": []});
    let read = input(json!({"threadId": "", "runId": ""}));
    assert_eq!(received(&least).await, (read, String::new()));
}

#[tokio::test]
async fn p74_what_is_not_described_is_left_out_with_a_warning_that_names_the_place() {
    let part = json!({"type": "hologram", "data": "s3cret"});
    for (members, kept, path) in [
        (json!({"extra": "s3cret"}), json!({}), "/extra"),
        (
            json!({"messages": [{"id": "1", "role": "narrator", "content": "s3cret"}]}),
            json!({"messages": []}),
            "/messages/0",
        ),
        (
            user(json!([part, {"type": "text", "text": "t"}])),
            user(json!([{"type": "text", "text": "t"}])),
            "/messages/0/content/0",
        ),
        (
            user(json!([{"type": "image", "source": {"type": "carrier", "pigeon": "s3cret"}}])),
            user(json!([])),
            "/messages/0/content/0",
        ),
        (
            json!({"resume": [{"interruptId": "i", "status": "ignored", "payload": "s3cret"}]}),
            json!({"resume": []}),
            "/resume/0",
        ),
    ] {
        let (received, log) = received(&input(members)).await;
        assert_eq!(received, input(kept));
        assert_eq!(log.lines().count(), 1, "{log}");
        assert!(log.contains("WARN") && log.contains(&format!("path={path:?}")), "{log}");
        assert!(!log.contains("s3cret"), "{log}");
    }
}

#[tokio::test]
async fn dated_nulls_read_as_absent_with_a_warning() {
    // Section 12
    let media = |metadata: Value| {
        let source = json!({"type": "url", "value": "https://x.example/p.png"});
        user(json!([{"type": "image", "source": source, "metadata": metadata}]))
    };
    for (members, path) in [
        (json!({"state": null}), "/state"),
        (json!({"forwardedProps": null}), "/forwardedProps"),
        (
            json!({"resume": [{"interruptId": "i", "status": "resolved", "payload": null}]}),
            "/resume/0/payload",
        ),
        (
            json!({"tools": [{"name": "f", "description": "d", "parameters": null}]}),
            "/tools/0/parameters",
        ),
        (media(Value::Null), "/messages/0/content/0/metadata"),
    ] {
        let sent = input(members);
        let (received, log) = received(&sent).await;
        assert_eq!(received, without(sent, path));
        assert!(log.contains("WARN") && log.contains(&format!("path={path:?}")), "{log}");
    }
}

#[tokio::test]
async fn any_other_null_is_refused_naming_it() {
    // P-73, P-17
    for (members, path) in [
        (json!({"parentRunId": null}), "/parentRunId"),
        (json!({"protocolVersion": null}), "/protocolVersion"),
        (json!({"tools": null}), "/tools"),
        (json!({"context": null}), "/context"),
        (json!({"resume": null}), "/resume"),
        (
            user(json!([{"type": "text", "text": "t", "metadata": null}])),
            "/messages/0/content/0/metadata",
        ),
        (
            json!({"messages": [{"id": "a", "role": "assistant", "content": null}]}),
            "/messages/0/content",
        ),
        (
            json!({"resume": [{"interruptId": "i", "status": "resolved", "metadata": null}]}),
            "/resume/0/metadata",
        ),
    ] {
        let message = format!("{path}: expected a value, or the member left out, found null");
        assert_eq!(refused(&input(members)).await, (path.to_owned(), message));
    }
    let (path, _) = refused(&input(json!({"messages": null}))).await;
    assert_eq!(path, "/messages");
}

/// The reported case "user message with media parts".
#[tokio::test]
async fn retired_binary_parts_are_translated_or_refused_when_empty() {
    let binary = |rest: Value| {
        let mut part = json!({"type": "binary", "mimeType": "audio/wav"});
        part.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        input(user(json!([{"type": "text", "text": "hear"}, part])))
    };
    let (got, log) = received(&binary(json!({"data": "UklG"}))).await;
    assert_eq!(
        got["messages"][0]["content"][1],
        json!({"type": "audio", "source": {"type": "data", "value": "UklG", "mimeType": "audio/wav"}})
    );
    assert!(log.contains("WARN") && log.contains("path=\"/messages/0/content/1\""), "{log}");
    // A handle alone is no source of today: left out.
    let (got, log) = received(&binary(json!({"id": "f-1"}))).await;
    assert_eq!(got["messages"][0]["content"].as_array().unwrap().len(), 1);
    assert!(log.contains("WARN"), "{log}");

    for empty in [json!({}), json!({"data": "", "url": null})] {
        let (path, message) = refused(&binary(empty)).await;
        assert_eq!(path, "/messages/0/content/1");
        assert!(message.contains("expected a binary part with an id, a url or data"), "{message}");
    }
    let untyped = json!([{"type": "image", "source": {"type": "data", "value": "AA=="}}]);
    let (path, _) = refused(&input(user(untyped))).await;
    assert_eq!(path, "/messages/0/content/0/source/mimeType");
}

#[tokio::test]
async fn p81_no_version_is_a_reason_to_refuse() {
    for newer in ["1.1", "1.99", "2.0", "draft", ""] {
        let (got, log) = received(&input(json!({"protocolVersion": newer}))).await;
        assert_eq!(got["protocolVersion"], newer);
        assert!(log.contains("rule=\"P-81\"") && log.contains("WARN"), "{newer}: {log}");
    }
    for known in ["1.0", "0.59"] {
        assert_eq!(received(&input(json!({"protocolVersion": known}))).await.1, "");
    }
}

#[tokio::test]
async fn a_client_cannot_fill_the_log() {
    let messages: Vec<Value> = (0..500).map(|_| json!({"role": "narrator"})).collect();
    let (_, log) = received(&input(json!({"messages": messages}))).await;
    assert_eq!(log.lines().count(), 21, "{log}");
    assert!(log.contains("more=480"), "{log}");

    let mut long = input(json!({}));
    long["x".repeat(100_000)] = 1.into();
    let (_, log) = received(&long).await;
    assert!(log.len() < 1_000, "{}", log.len());
}

#[tokio::test]
async fn falsy_answers_are_answers() {
    for payload in [json!(false), json!(0), json!(""), json!({}), json!([])] {
        let entry = json!({"interruptId": "i", "status": "resolved", "payload": payload});
        let sent = input(json!({"resume": [entry]}));
        assert_eq!(received(&sent).await, (sent, String::new()));
    }
}

/// The reported cases of inputs that are read: which are let in, and that nothing of them is lost
/// where they are read and written again.
#[tokio::test]
async fn cases() {
    let Some(cases) = corpus::cases() else { return };
    let mut count = 0;
    for (_, case) in cases {
        if case["input"]["op"] != "parse" {
            continue;
        }
        let (mut results, mut round_trips) = (json!({}), json!({}));
        for input in case["input"]["inputs"].as_array().unwrap() {
            let (label, input) = (input["label"].as_str().unwrap(), &input["value"]);
            let agent = raw(|_| Box::pin(stream::empty()));
            let request = post(input.to_string());
            let response = AgentService::new(agent).oneshot(request).await.unwrap();
            let accepted = response.status() == 200;
            results[label] = if accepted { "accepted" } else { "rejected" }.into();
            if case["expect"]["roundTrip"].get(label).is_some() {
                let read = RunAgentInput::from_json_tolerant(&input.to_string()).unwrap().value;
                let written: Value = serde_json::from_str(&read.to_json()).unwrap();
                round_trips[label] = (written == *input).into();
            }
        }
        let found = json!({"results": results, "roundTrip": round_trips});
        assert_eq!(found, case["expect"], "{}", case["description"]);
        count += 1;
    }
    assert!(count > 0);
}
