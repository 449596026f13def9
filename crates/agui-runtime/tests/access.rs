//! Who may do what: every route asks, and an endpoint beside the routes does too.

mod common;

use std::sync::{Arc, Mutex};

use agui_agent::BoxFuture;
use agui_runtime::{Action, Anonymous, Authorize, BearerTokens, Operation, Principal};
use agui_server::{Refusal, ResponseBody, bearer};
use bytes::Bytes;
use common::{Answer, Fixture, ask, envelope, fixture_with, input, read, request};
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};
use tower::ServiceExt;

/// What the hook saw: who, the operation, its agent, its thread.
type Saw = (String, String, String, String, String);

/// Lets everybody in who has a token, as the tenant that it names, and notes what is asked.
#[derive(Clone, Default)]
struct Watch {
    saw: Arc<Mutex<Vec<Saw>>>,
    refuses: bool,
}

impl Authorize for Watch {
    fn authenticate<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, Result<Principal, Refusal>> {
        let known = bearer(head).map(|token| Principal::of_tenant(token).named("ada"));
        let refused = || Refusal::unauthorized(HeaderValue::from_static("Bearer"));
        Box::pin(std::future::ready(known.ok_or_else(refused)))
    }

    fn authorize<'a>(
        &'a self,
        principal: &'a Principal,
        action: Action<'a>,
    ) -> BoxFuture<'a, Result<(), Refusal>> {
        let text = |text: Option<&str>| text.unwrap_or("-").to_owned();
        self.saw.lock().unwrap().push((
            principal.tenant.clone(),
            text(principal.name.as_deref()),
            action.operation.to_string(),
            text(action.operation.agent()),
            text(action.thread),
        ));
        Box::pin(std::future::ready(if self.refuses { Err(Refusal::forbidden()) } else { Ok(()) }))
    }
}

/// Every route, by path: method, path, body, and the operation, agent and thread that are asked for.
fn routes() -> Vec<(&'static str, &'static str, Value, &'static str, &'static str, &'static str)> {
    let run = || input("t", "r", &[("m", "hello")]);
    let none = || Value::Null;
    vec![
        ("GET", "/info", none(), "info", "-", "-"),
        ("POST", "/agent/default/run", run(), "agent/run", "default", "t"),
        ("POST", "/agent/default/connect", run(), "agent/connect", "default", "t"),
        ("POST", "/agent/default/suggest", run(), "agent/suggest", "default", "-"),
        ("POST", "/agent/default/stop/t%2F1", none(), "agent/stop", "default", "t/1"),
        ("POST", "/transcribe", json!({}), "transcribe", "-", "-"),
        ("GET", "/threads", none(), "threads/list", "-", "-"),
        ("POST", "/threads/clear", none(), "threads/clear", "-", "-"),
        ("POST", "/threads/subscribe", json!({}), "threads/subscribe", "-", "-"),
        ("PATCH", "/threads/t", json!({"name": "n"}), "threads/update", "-", "t"),
        ("DELETE", "/threads/t", none(), "threads/delete", "-", "t"),
        ("POST", "/threads/t/archive", json!({}), "threads/archive", "-", "t"),
        ("GET", "/threads/t/messages", none(), "threads/messages", "-", "t"),
        ("GET", "/threads/t/events", none(), "threads/events", "-", "t"),
        ("GET", "/threads/t/state", none(), "threads/state", "-", "t"),
        ("GET", "/inspector-metadata", none(), "inspector/metadata", "-", "-"),
        ("GET", "/cpk-debug-events", none(), "debug-events", "-", "-"),
        ("POST", "/annotate", json!({}), "annotate", "-", "-"),
    ]
}

/// Every route that has an envelope: its method, its parameters, its body, and the same.
fn envelopes() -> Vec<(&'static str, Value, Value, &'static str, &'static str, &'static str)> {
    let run = || input("t", "r", &[("m", "hello")]);
    let agent = || json!({"agentId": "default"});
    let tunnel = |method: &str, path: &str| json!({"httpMethod": method, "path": path});
    let (none, tunnelled) = (Value::Null, "resource/request");
    vec![
        ("info", none.clone(), none.clone(), "info", "-", "-"),
        ("agent/run", agent(), run(), "agent/run", "default", "t"),
        ("agent/connect", agent(), run(), "agent/connect", "default", "t"),
        ("agent/suggest", agent(), run(), "agent/suggest", "default", "-"),
        (
            "agent/stop",
            json!({"agentId": "default", "threadId": "t"}),
            none.clone(),
            "agent/stop",
            "default",
            "t",
        ),
        ("transcribe", none.clone(), json!({"audio": ""}), "transcribe", "-", "-"),
        ("inspector/metadata", none.clone(), none.clone(), "inspector/metadata", "-", "-"),
        (tunnelled, tunnel("GET", "/threads?limit=1"), none.clone(), "threads/list", "-", "-"),
        (tunnelled, tunnel("DELETE", "/threads/t"), none, "threads/delete", "-", "t"),
    ]
}

fn known(mut request: Request<Full<Bytes>>) -> Request<Full<Bytes>> {
    request.headers_mut().insert("authorization", HeaderValue::from_static("Bearer acme"));
    request
}

fn watched(refuses: bool) -> (Watch, Fixture) {
    let watch = Watch { refuses, ..Watch::default() };
    let hook = watch.clone();
    (watch, fixture_with(|builder| builder.authorize(hook)))
}

#[tokio::test]
async fn every_route_asks_for_what_it_is() {
    // First who refuses, so that no stream is waited for.
    for refuses in [true, false] {
        let (watch, fixture) = watched(refuses);
        let mut asked: Vec<(Request<Full<Bytes>>, [&str; 3])> = Vec::new();
        for (method, path, body, operation, agent, thread) in routes() {
            asked.push((request(method, path, body), [operation, agent, thread]));
        }
        for (method, params, body, operation, agent, thread) in envelopes() {
            asked.push((envelope(method, params, body), [operation, agent, thread]));
        }
        for (request, [operation, agent, thread]) in asked {
            let what = format!("{} {}", request.method(), request.uri());
            let response = common::open(&fixture, known(request)).await;
            let saw = std::mem::take(&mut *watch.saw.lock().unwrap());
            let expected = ["acme", "ada", operation, agent, thread].map(str::to_owned);
            assert_eq!(saw, [expected.into()], "{what}");
            if refuses {
                assert_eq!(response.status(), StatusCode::FORBIDDEN, "{what}");
                assert_eq!(read(response).await.json()["error"], "FORBIDDEN", "{what}");
            } else {
                assert_ne!(response.status(), StatusCode::FORBIDDEN, "{what}");
            }
        }
    }
}

#[tokio::test]
async fn no_route_answers_who_is_not_known() {
    let (watch, fixture) = watched(false);
    for (method, path, body, ..) in routes() {
        let answer = ask(&fixture, request(method, path, body)).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{method} {path}");
        assert_eq!(answer.headers["www-authenticate"], "Bearer", "{method} {path}");
    }
    for (method, params, body, ..) in envelopes() {
        let answer = ask(&fixture, envelope(method, params, body)).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{method}");
    }
    assert!(watch.saw.lock().unwrap().is_empty());
}

async fn plain(fixture: &Fixture, agent: &str, request: Request<Full<Bytes>>) -> Answer {
    read(fixture.runtime.endpoint(agent).oneshot(request).await.unwrap()).await
}

async fn capabilities(
    fixture: &Fixture,
    agent: &str,
    request: Request<Full<Bytes>>,
) -> Response<ResponseBody> {
    fixture.runtime.endpoint(agent).capabilities().oneshot(request).await.unwrap()
}

#[tokio::test]
async fn a_plain_endpoint_asks_as_the_routes_do() {
    let run = || request("POST", "/x", input("t", "r", &[("m", "hello")]));
    let look = || request("GET", "/x", Value::Null);
    let (watch, fixture) = watched(false);
    let taken = || std::mem::take(&mut *watch.saw.lock().unwrap());
    let saw = |operation: &str, agent: &str, thread: &str| -> Vec<Saw> {
        vec![["acme", "ada", operation, agent, thread].map(str::to_owned).into()]
    };

    let answer = plain(&fixture, "default", known(run())).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert!(answer.body.contains("You said: hello") && answer.body.contains("RUN_FINISHED"));
    assert_eq!(taken(), saw("agent/run", "default", "t"));
    let declared = capabilities(&fixture, "default", known(look())).await;
    assert_eq!(declared.status(), StatusCode::NOT_FOUND);
    assert_eq!(read(declared).await.json()["error"]["code"], "NO_CAPABILITIES");
    assert_eq!(taken(), saw("agent/capabilities", "default", "-"));
    let parts = known(look()).into_parts().0;
    fixture.runtime.admit(&parts, &Operation::Info).await.unwrap();
    assert_eq!(taken(), saw("info", "-", "-"));
    let nobody = plain(&fixture, "nobody", known(run())).await;
    assert_eq!(
        (nobody.status, &nobody.json()["error"]["code"]),
        (StatusCode::NOT_FOUND, &json!("UNKNOWN_AGENT"))
    );

    // Who is not known learns nothing, not even which agents there are.
    for agent in ["default", "nobody"] {
        let answer = plain(&fixture, agent, run()).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{agent}");
        assert_eq!(answer.headers["www-authenticate"], "Bearer");
        let looked = capabilities(&fixture, agent, look()).await;
        assert_eq!(looked.status(), StatusCode::UNAUTHORIZED, "{agent}");
    }
    assert!(taken().is_empty());

    let (_, fixture) = watched(true);
    assert_eq!(plain(&fixture, "default", known(run())).await.status, StatusCode::FORBIDDEN);
    let looked = capabilities(&fixture, "default", known(look())).await;
    assert_eq!(looked.status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn anonymous_people_chat_and_see_no_threads() {
    let fixture = fixture_with(|builder| builder.authorize(Anonymous));
    for (method, path, body, operation, ..) in routes() {
        let answer = common::open(&fixture, request(method, path, body)).await;
        let closed = operation.starts_with("threads/") && operation != "threads/subscribe"
            || operation == "debug-events";
        let refused = answer.status() == StatusCode::FORBIDDEN;
        assert_eq!(refused, closed, "{method} {path}: {}", answer.status());
    }
    let run = request("POST", "/x", input("t", "r", &[("m", "hello")]));
    assert_eq!(plain(&fixture, "default", run).await.status, StatusCode::OK);
}

#[tokio::test]
async fn tenants_do_not_see_each_other() {
    let tokens = BearerTokens::new()
        .accept("a", Principal::of_tenant("a"))
        .accept("b", Principal::of_tenant("b"));
    let fixture = fixture_with(|builder| builder.authorize(tokens));
    let of = |token: &'static str, mut request: Request<Full<Bytes>>| {
        let value = HeaderValue::from_str(&format!("Bearer {token}")).unwrap();
        request.headers_mut().insert("authorization", value);
        request
    };
    let run = || request("POST", "/agent/default/run", input("t", "r", &[("m", "hello")]));
    assert_eq!(ask(&fixture, of("a", run())).await.status, StatusCode::OK);
    let threads = async |token| {
        let answer = ask(&fixture, of(token, request("GET", "/threads", Value::Null))).await;
        answer.json()["threads"].as_array().unwrap().len()
    };
    assert_eq!((threads("a").await, threads("b").await), (1, 0));
    let clear = of("b", request("POST", "/threads/clear", Value::Null));
    ask(&fixture, clear).await;
    assert_eq!(threads("a").await, 1);
}

#[tokio::test]
async fn a_plain_endpoint_keeps_the_limits_of_the_runtime() {
    let fixture = fixture_with(|builder| {
        builder.most_runs(1).body_limit(2_000).deadline(std::time::Duration::from_millis(200))
    });
    let run = |agent: &str| {
        let request = request("POST", "/x", input("t", "r", &[("m", "hello")]));
        fixture.runtime.endpoint(agent).oneshot(request)
    };
    let first = run("deaf").await.unwrap();
    let (_, first) = common::read_until(first, "TOOL_CALL_ARGS").await;
    let second = read(run("default").await.unwrap()).await;
    assert_eq!(second.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(second.json()["error"]["code"], "TOO_MANY_RUNS");
    // Its time is over, and its place is free again.
    assert!(read(first).await.body.contains("TIMEOUT_TOTAL"));
    assert_eq!(run("default").await.unwrap().status(), StatusCode::OK);

    let long = "x".repeat(2_000);
    let large = request("POST", "/x", input("t", "r", &[("m", &long)]));
    let refused = plain(&fixture, "default", large).await;
    assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
}
