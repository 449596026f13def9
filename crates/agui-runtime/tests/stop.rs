//! A stop reaches whoever is at work, at once.

mod common;

use std::time::{Duration, Instant};

use agui_agent::{Agent, EventStream, HttpAgent, Run, RunContext};
use agui_journal::{Tenant, ThreadKey};
use agui_runtime::Agents;
use agui_types::event::{RunError, RunStarted, StepStarted, ToolCallEnd, ToolCallStart};
use agui_types::{Event, FromJson, RunAgentInput};
use common::*;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

/// The agent behind a URL: says some of a run, then nothing more; tells when its peer has gone.
async fn upstream() -> (String, oneshot::Receiver<Instant>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (gone, told) = oneshot::channel();
    tokio::spawn(async move {
        let (mut peer, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.windows(4).any(|it| it == b"\r\n\r\n") {
            head.push(peer.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1).unwrap();
        let length: usize = length.lines().next().unwrap().trim().parse().unwrap();
        peer.read_exact(&mut vec![0; length]).await.unwrap();
        let events = [
            r#"{"type":"RUN_STARTED","threadId":"t","runId":"r1"}"#,
            r#"{"type":"STEP_STARTED","stepName":"plan"}"#,
            r#"{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}"#,
            r#"{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"look"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"One"}"#,
        ];
        let mut answer = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n".to_owned();
        events.iter().for_each(|event| answer.push_str(&format!("data: {event}\n\n")));
        peer.write_all(answer.as_bytes()).await.unwrap();
        // Nothing more is sent: only the end can come.
        assert_eq!(peer.read(&mut [0; 1]).await.unwrap_or(0), 0);
        let _ = gone.send(Instant::now());
    });
    (url, told)
}

/// By thread and by run: the connection to the agent is closed within a second, everything is closed
/// and answered in the log, the run has one end, cancelled, with its ids, and the next message works at
/// once (P-11).
#[tokio::test]
async fn the_connection_to_the_agent_is_closed_within_a_second() {
    for body in [Value::Null, json!({"runId": "r1"})] {
        for (journal, _folder) in journals().await {
            let (url, gone) = upstream().await;
            let mut agents = Agents::new();
            agents.add("remote", HttpAgent::new(&url).unwrap()).unwrap();
            let quick = |run: Run| async move { Ok(run.say("Hi").await.map(drop)?) };
            agents.add("quick", quick).unwrap();
            let fixture = fixture_on(agents, journal, |builder| builder);
            let mut asked = input("t", "r1", &[("m1", "Go")]);
            asked["protocolVersion"] = json!("1.0");
            let run = open(&fixture, request("POST", "/agent/remote/run", asked)).await;
            let (mut seen, run) = read_until(run, "One").await;

            let stopped_at = Instant::now();
            let stop = request("POST", "/agent/remote/stop/t", body.clone());
            assert_eq!(ask(&fixture, stop).await.json()["stopped"], true);
            // Without waiting for anything.
            let next = input("t", "r2", &[("m2", "And?")]);
            let next = ask(&fixture, request("POST", "/agent/quick/run", next)).await;
            assert_eq!(next.types().last().unwrap(), "RUN_FINISHED");
            let gone = gone.await.unwrap();
            assert!(gone.duration_since(stopped_at) < Duration::from_secs(1));

            let mut answer = read(run).await;
            seen.push_str(&answer.body);
            answer.body = seen;
            let types = answer.types();
            let closed = [
                "TOOL_CALL_END",
                "TOOL_CALL_RESULT",
                "TEXT_MESSAGE_END",
                "STEP_FINISHED",
                "RUN_FINISHED",
            ];
            assert_eq!(types[types.len() - 5..], closed);
            let cancelled = json!({
                "type": "RUN_FINISHED", "threadId": "t", "runId": "r1",
                "outcome": {"type": "cancelled"},
            });
            assert_eq!(answer.events().last().unwrap().1, cancelled);
            let ends = log(&fixture.journal, "t").await;
            assert_eq!(ends.iter().filter(|entry| entry.kind.is_terminal()).count(), 2);
        }
    }
}

/// Says something, waits to be told, and then fails as clients of a remote agent do.
struct Aborting(mpsc::UnboundedSender<Instant>);

impl Agent for Aborting {
    fn run(&self, input: RunAgentInput, context: RunContext) -> EventStream {
        let told = self.0.clone();
        let started = RunStarted::new(&input.thread_id, &input.run_id);
        let begun: [Event; 2] = [started.into(), StepStarted::new("plan").into()];
        let failed = async move {
            context.cancel.cancelled().await;
            told.send(Instant::now()).unwrap();
            RunError::new("aborted").code("abort").into()
        };
        Box::pin(
            stream::iter(begun).chain(stream::once(failed)).map(|event: Event| Ok(event.into())),
        )
    }
}

/// An agent of this process is told at once, and one that fails because it was told was stopped all the
/// same: the log says cancelled.
#[tokio::test]
async fn an_agent_that_fails_because_it_was_stopped_was_stopped() {
    let (told, mut heard) = mpsc::unbounded_channel();
    let fixture = fixture_of_one(Aborting(told));
    let mut asked = input("t", "r1", &[]);
    asked["protocolVersion"] = json!("1.0");
    let run = open(&fixture, request("POST", "/agent/default/run", asked)).await;
    let (_, run) = read_until(run, "STEP_STARTED").await;
    let stopped_at = Instant::now();
    ask(&fixture, request("POST", "/agent/default/stop/t", Value::Null)).await;
    assert!(heard.recv().await.unwrap().duration_since(stopped_at) < Duration::from_secs(1));
    let answer = read(run).await;
    assert_eq!(answer.types(), ["STEP_FINISHED", "RUN_FINISHED"]);
    assert_eq!(answer.events()[1].1["outcome"], json!({"type": "cancelled"}));
}

/// Makes a call, waits to be told, and then finishes with this all the same.
struct Unmoved(&'static str);

impl Agent for Unmoved {
    fn run(&self, input: RunAgentInput, context: RunContext) -> EventStream {
        let started = RunStarted::new(&input.thread_id, &input.run_id);
        let begun: [Event; 3] =
            [started.into(), ToolCallStart::new("c", "pick").into(), ToolCallEnd::new("c").into()];
        let end = self.0;
        let finished = async move {
            context.cancel.cancelled().await;
            Event::from_json_exact(end).unwrap()
        };
        Box::pin(stream::iter(begun).chain(stream::once(finished)).map(|it| Ok(it.into())))
    }
}

/// P-11, P-13: a run that was asked to stop was stopped, also where its agent finishes it in another way
/// meanwhile. Nobody carries its call out afterwards, nobody is asked anything, and what it has used stays
/// known.
#[tokio::test]
async fn a_run_that_finishes_although_it_was_stopped_is_cancelled() {
    for end in [
        r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r1","result":1,"usage":[{"inputTokens":7}]}"#,
        r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r1","outcome":{"type":"success","pendingToolCallIds":["c"]},"usage":[{"inputTokens":7}]}"#,
        r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r1","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"tool_call","toolCallId":"c"}]},"usage":[{"inputTokens":7}]}"#,
    ] {
        let fixture = fixture_of_one(Unmoved(end));
        let mut asked = input("t", "r1", &[]);
        asked["protocolVersion"] = json!("1.0");
        let run = open(&fixture, request("POST", "/agent/default/run", asked)).await;
        let (_, run) = read_until(run, "TOOL_CALL_END").await;
        ask(&fixture, request("POST", "/agent/default/stop/t", Value::Null)).await;
        let answer = read(run).await;
        let cancelled = json!({
            "type": "RUN_FINISHED", "threadId": "t", "runId": "r1",
            "outcome": {"type": "cancelled"}, "usage": [{"inputTokens": 7}],
        });
        let events: Vec<Value> = answer.events().into_iter().map(|(_, event)| event).collect();
        assert_eq!(answer.types(), ["TOOL_CALL_RESULT", "RUN_FINISHED"]);
        assert!(events[0]["content"].as_str().unwrap().contains("stop_requested"), "{events:?}");
        assert_eq!(events[1], cancelled);
        let key = ThreadKey::new(Tenant::default(), "t");
        assert_eq!(fixture.journal.facts(&key).await.unwrap(), Default::default());
        log(&fixture.journal, "t").await;
    }
}
