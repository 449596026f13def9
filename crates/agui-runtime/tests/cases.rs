//! The cases from public reports that concern a runtime. Those of a client or of one agent's server
//! are proved there.
//!
//! The cases are read from `../cases` beside the folder that `AGUI_CORPUS` names.

mod common;
#[allow(dead_code)]
#[path = "../../agui-stream/tests/conformance/corpus.rs"]
mod corpus;
#[path = "../../agui-agent/tests/logged/mod.rs"]
mod logged;

use std::sync::{Arc, Mutex};

use agui_agent::HttpAgent;
use agui_runtime::{ForwardHeaders, Transport};
use axum::routing::post;
use common::*;
use corpus::Verdicts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use logged::logged;
use serde_json::Value;
use tokio::net::TcpListener;
use tracing::Level;

#[test]
fn cases() {
    let Some(cases) = corpus::cases() else { return };
    let mut verdicts = Verdicts::new("cases-runtime");
    let mut judged = 0;
    for (name, case) in cases {
        if case["kind"] != "http" {
            continue;
        }
        let mut found = Vec::new();
        let log = logged(Level::WARN, async {
            if case["input"].get("mount").is_some() {
                routing(&case, &mut found).await;
            } else if case["input"].get("inbound").is_some() {
                forwarding(&case, &mut found).await;
            } else {
                behind_the_runtime(&case, &mut found).await;
            }
        });
        let wants_warning = case["expect"]["responses"]
            .as_array()
            .is_some_and(|responses| responses.iter().any(|it| it["logsWarning"] == true));
        if wants_warning && !log.contains("envelope") {
            found.push(format!("no warning is logged: {log}"));
        }
        verdicts.note(&name, &found);
        judged += 1;
    }
    verdicts.settle();
    assert!(judged >= 3, "{judged} cases of kind http");
}

/// What each request to a mount is answered with.
async fn routing(case: &Value, found: &mut Vec<String>) {
    let mount = &case["input"]["mount"];
    assert_eq!(
        (mount["basePath"].as_str(), mount["mode"].as_str()),
        (Some(BASE), Some("multi-route"))
    );
    let fixture = fixture_with(|builder| builder.transport(Transport::Rest));
    let requests = case["input"]["requests"].as_array().unwrap();
    let expected = case["expect"]["responses"].as_array().unwrap();
    assert_eq!(requests.len(), expected.len());
    for (asked, expected) in requests.iter().zip(expected) {
        let path = asked["path"].as_str().unwrap().strip_prefix(BASE).unwrap();
        let method = asked["method"].as_str().unwrap();
        let answer = ask(&fixture, request(method, path, asked["body"].clone())).await;
        let mut note =
            |what: String| found.push(format!("{method} {path}: {what}: {}", answer.body));
        for (name, value) in expected.as_object().unwrap() {
            match name.as_str() {
                "status" if *value == answer.status.as_u16() => {}
                "status" => note(format!("{} instead of {value}", answer.status)),
                "json" => {
                    for (member, value) in value.as_object().unwrap() {
                        if answer.json()[member] != *value {
                            note(format!("{member} is not {value}"));
                        }
                    }
                }
                "jsonHas" => {
                    for path in value.as_array().unwrap() {
                        let pointer = format!("/{}", path.as_str().unwrap().replace('.', "/"));
                        if answer.json().pointer(&pointer).is_none() {
                            note(format!("there is no {path}"));
                        }
                    }
                }
                "noCode" if answer.json().get("code").is_none() => {}
                // Of all requests together: see `cases`.
                "logsWarning" => {}
                _ => note(format!("{name}: {value} is not met, or nobody knows what it is")),
            }
        }
    }
}

/// Which headers reach an agent behind the runtime.
async fn forwarding(case: &Value, found: &mut Vec<String>) {
    let (agent, arrived) = recording_agent().await;
    let input = &case["input"];
    for variant in input["variants"].as_array().unwrap() {
        let label = variant["label"].as_str().unwrap();
        let configured = variant.get("agentHeaders").unwrap_or(&input["agent"]["headers"]);
        let mut builder = HttpAgent::builder(&agent);
        for (name, value) in configured.as_object().unwrap() {
            builder = builder.header(name, value.as_str().unwrap());
        }
        let mut policy = ForwardHeaders::new();
        let listed = |list: &str| variant["forwardHeaders"][list].as_array().cloned();
        for name in listed("allow").unwrap_or_default() {
            policy = policy.allow(name.as_str().unwrap());
        }
        for name in listed("deny").unwrap_or_default() {
            policy = policy.deny(name.as_str().unwrap());
        }
        let mut agents = agui_runtime::Agents::new();
        agents.add("default", builder.build().unwrap()).unwrap();
        let fixture = fixture_of(agents, Arc::default(), |builder| builder.headers(policy));

        let mut asked = request("POST", "/agent/default/run", input_of(label));
        for (name, value) in input["inbound"].as_object().unwrap() {
            let name: HeaderName = name.parse().unwrap();
            asked
                .headers_mut()
                .insert(name, HeaderValue::from_str(value.as_str().unwrap()).unwrap());
        }
        let answer = ask(&fixture, asked).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);

        let arrived = arrived.lock().unwrap().take().expect("the agent was asked");
        let expected: HeaderMap = case["expect"]["outbound"][label]
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, value)| {
                let value = HeaderValue::from_str(value.as_str().unwrap()).unwrap();
                (name.parse::<HeaderName>().unwrap(), value)
            })
            .collect();
        for name in input["inbound"].as_object().unwrap().keys() {
            let got: Vec<_> = arrived.get_all(name).iter().collect();
            let wanted: Vec<_> = expected.get_all(name).iter().collect();
            if got != wanted {
                found.push(format!("{label}: {name} is {got:?} and not {wanted:?}"));
            }
        }
        if arrived.get_all("authorization").iter().count() != 1 {
            found.push(format!("{label}: not exactly one Authorization"));
        }
    }
}

/// What a viewer is told when the agent behind the runtime answers with an error.
async fn behind_the_runtime(case: &Value, found: &mut Vec<String>) {
    let input = &case["input"];
    let status = u16::try_from(input["status"].as_u64().unwrap()).unwrap();
    let status = StatusCode::from_u16(status).unwrap();
    let media_type = input["responseType"].as_str().unwrap().to_owned();
    let body = input["responseBody"].as_str().unwrap().to_owned();
    let refused = (status, [("content-type", media_type)], body);
    let url = served(axum::Router::new().route("/", post(|| async { refused }))).await;

    let fixture = fixture_of_one(HttpAgent::new(&url).unwrap());
    let answer = run(&fixture, "default", input_of("t")).await;
    let expected = &case["expect"]["viaRuntime"];
    let (_, last) = answer.events().pop().unwrap();
    if last["type"] != expected["type"] {
        found.push(format!("the run ends with {last}"));
    }
    for part in expected["messageContains"].as_array().unwrap() {
        if !last["message"].as_str().unwrap_or_default().contains(part.as_str().unwrap()) {
            found.push(format!("{part} is not in {last}"));
        }
    }
}

fn input_of(thread: &str) -> Value {
    input(thread, "r", &[("m", "hello")])
}

/// The headers of the last request that came.
type Arrived = Arc<Mutex<Option<HeaderMap>>>;

/// An agent on a socket that has nothing to say, and the headers that it was asked with.
async fn recording_agent() -> (String, Arrived) {
    let arrived = Arrived::default();
    let noted = Arc::clone(&arrived);
    let answer = move |headers: HeaderMap, body: String| {
        let body: Value = serde_json::from_str(&body).unwrap();
        *noted.lock().unwrap() = Some(headers);
        let (thread, run) = (&body["threadId"], &body["runId"]);
        let frame = |kind: &str| {
            format!("data: {{\"type\":\"{kind}\",\"threadId\":{thread},\"runId\":{run}}}\n\n")
        };
        let frames = frame("RUN_STARTED") + &frame("RUN_FINISHED");
        async move { ([("content-type", "text/event-stream")], frames) }
    };
    (served(axum::Router::new().route("/", post(answer))).await, arrived)
}

async fn served(app: axum::Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    url
}
