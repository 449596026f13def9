//! `/info`, and what is said where something failed that nobody foresaw.

mod common;

use std::sync::Arc;
use std::time::Duration;

use agui_agent::{Agent, BoxFuture, EventStream, RunContext};
use agui_runtime::{Agents, Principal};
use agui_server::Refusal;
use agui_types::{AgentCapabilities, FromJson, RunAgentInput};
use common::*;
use http::request::Parts;
use http::{Request, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};
use tokio::sync::Notify;

/// How an agent declares what it can do.
#[derive(Clone, Copy)]
enum Declares {
    Nothing,
    Something(&'static str),
    Panics,
    Never,
}

impl Agent for Declares {
    fn run(&self, _: RunAgentInput, _: RunContext) -> EventStream {
        Box::pin(futures_util::stream::empty())
    }

    fn capabilities(&self) -> BoxFuture<'_, Option<AgentCapabilities>> {
        Box::pin(async move {
            match self {
                Self::Nothing => None,
                Self::Something(text) => Some(AgentCapabilities::from_json_exact(text).unwrap()),
                Self::Panics => panic!("on purpose"),
                Self::Never => std::future::pending().await,
            }
        })
    }
}

/// checklist 5; drift probe
#[tokio::test(start_paused = true)]
async fn one_agents_failure_to_declare_itself_fails_nothing_else() {
    let mut agents = Agents::new();
    let tools = r#"{"tools":{"supported":true}}"#;
    for (id, declares) in [
        ("default", Declares::Nothing),
        ("tools", Declares::Something(tools)),
        ("empty", Declares::Something("{}")),
        ("panics", Declares::Panics),
        ("never", Declares::Never),
    ] {
        agents.add(id, declares).unwrap();
    }
    let fixture = fixture_of(agents, Arc::new(Notify::new()), |builder| builder);
    let began = tokio::time::Instant::now();
    let answer = get(&fixture, "/info").await;
    assert_eq!(answer.status, StatusCode::OK);
    let agents = answer.json()["agents"].clone();
    assert_eq!(agents["tools"]["capabilities"], json!({"tools": {"supported": true}}));
    assert_eq!(agents["empty"]["capabilities"], json!({}));
    for id in ["default", "panics", "never"] {
        assert_eq!(agents[id]["name"], id);
        assert_eq!(agents[id]["description"], "");
        assert!(agents[id].get("capabilities").is_none(), "{id}");
    }
    assert!(began.elapsed() < Duration::from_secs(5), "a front end waits five seconds");
}

/// checklist 11
#[tokio::test]
async fn info_needs_no_header() {
    let fixture = fixture();
    let bare = Request::get(format!("{BASE}/info")).body(Full::default()).unwrap();
    assert_eq!(ask(&fixture, bare).await.status, StatusCode::OK);
}

/// checklist 9
#[tokio::test]
async fn an_auto_front_end_falls_through_to_a_single_only_mount() {
    use agui_runtime::Transport;
    let single = fixture_with(|builder| builder.transport(Transport::Single));
    let probe = get(&single, "/info").await;
    assert!(!probe.status.is_success());
    let enveloped = ask(&single, envelope("info", Value::Null, Value::Null)).await;
    assert_eq!(enveloped.status, StatusCode::OK);
    let both = fixture();
    let same = ask(&both, envelope("info", Value::Null, Value::Null)).await;
    assert_eq!(enveloped.json(), same.json());
}

/// checklist 65
#[tokio::test]
async fn a_failing_info_says_why_for_people() {
    let source = |_: &Parts, _: &Principal| -> Result<Agents, Refusal> {
        let message = "the list of agents is being changed";
        Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "AGENTS_UNKNOWN", message))
    };
    let fixture = fixture_of(source, Arc::new(Notify::new()), |builder| builder);
    for asked in [
        request("GET", "/info", Value::Null),
        envelope("info", Value::Null, Value::Null),
        request("POST", "/agent/default/run", input("t", "r", &[])),
    ] {
        let answer = ask(&fixture, asked).await;
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(answer.headers["content-type"], "application/json");
        let message = answer.json()["message"].as_str().unwrap().to_owned();
        assert!(message.contains("the list of agents is being changed"), "{message}");
    }
}

/// checklist 66
#[tokio::test]
async fn what_nobody_foresaw_is_not_told() {
    let source = |head: &Parts, _: &Principal| -> Result<Agents, Refusal> {
        if head.method == "GET" || head.method == "POST" {
            panic!("the password is swordfish");
        }
        Ok(Agents::new())
    };
    let fixture = fixture_of(source, Arc::new(Notify::new()), |builder| builder);
    for asked in [
        request("GET", "/info", Value::Null),
        envelope("info", Value::Null, Value::Null),
        request("POST", "/agent/default/suggest", input("t", "r", &[])),
    ] {
        let answer = ask(&fixture, asked).await;
        assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(answer.json(), json!({"error": "internal_error"}));
    }
}

/// checklist 57
#[tokio::test]
async fn a_suggestion_ends_with_its_reader() {
    /// Says when it is dropped.
    struct Dropped(Arc<Notify>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let dropped = Arc::new(Notify::new());
    let tell = Arc::clone(&dropped);
    let fixture = fixture_of_one(move |run: agui_agent::Run| {
        let guard = Dropped(Arc::clone(&tell));
        async move {
            let _guard = guard;
            run.say("So far").await?;
            std::future::pending::<()>().await;
            agui_agent::AgentResult::Ok(())
        }
    });
    let path = "/agent/default/suggest";
    let running = open(&fixture, request("POST", path, input("t", "r", &[]))).await;
    let (_, running) = read_until(running, "So far").await;
    drop(running);
    dropped.notified().await;
    // The thread was never known, nor locked.
    let listed = get(&fixture, "/threads").await.json();
    assert_eq!(listed["threads"], json!([]));
}
