//! Two runs want the same thread.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agui_agent::{AgentResult, Run};
use agui_journal::EntryKind;
use agui_runtime::{Agents, BusyPolicy};
use common::*;
use http::StatusCode;
use serde_json::{Value, json};

/// How many agents are at work, and how many were at most.
#[derive(Clone, Default)]
struct AtWork(Arc<(AtomicUsize, AtomicUsize)>);

impl AtWork {
    fn begin(&self) -> impl Drop + use<> {
        struct One(AtWork);
        impl Drop for One {
            fn drop(&mut self) {
                self.0.0.0.fetch_sub(1, Ordering::SeqCst);
            }
        }
        let now = self.0.0.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.1.fetch_max(now, Ordering::SeqCst);
        One(self.clone())
    }

    fn most(&self) -> usize {
        self.0.1.load(Ordering::SeqCst)
    }
}

/// Opens all there is to open, and stays, unless the input says "quick".
fn agents(at_work: &AtWork) -> Agents {
    let at_work = at_work.clone();
    let mut agents = Agents::new();
    let agent = move |run: Run| {
        let at_work = at_work.clone();
        async move {
            let _at_work = at_work.begin();
            let quick = run.input().messages.last().and_then(|last| last.id());
            let mut text = run.text().await?;
            text.push("Working").await?;
            if quick.is_none_or(|id| id.as_str() != "quick") {
                let _step = run.step("think").await?;
                let mut call = run.tool_call("search").await?;
                call.args("{").await?;
                std::future::pending::<()>().await;
            }
            AgentResult::Ok(())
        }
    };
    agents.add("default", agent).unwrap();
    agents
}

/// Whoever comes takes the place of whoever is there, on many threads of the machine at once: at no
/// time are two agents at work on the thread, each viewer sees its run begin and end once, and the log
/// keeps the rules and cancels all but the last.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn never_two_runs_at_once() {
    const RUNS: usize = 40;
    for (journal, _folder) in journals().await {
        let at_work = AtWork::default();
        let fixture = Arc::new(fixture_on(agents(&at_work), journal, |builder| {
            builder.busy(BusyPolicy::Supersede)
        }));
        let mut viewers = Vec::new();
        for number in 0..RUNS {
            let fixture = Arc::clone(&fixture);
            viewers.push(tokio::spawn(async move {
                let body = input("t", &format!("r{number}"), &[]);
                ask(&fixture, request("POST", "/agent/default/run", body)).await
            }));
        }
        // The last to come ends by itself; until then somebody is always there.
        let mut last = json!(null);
        while last["runs"] != json!(RUNS) {
            tokio::task::yield_now().await;
            let key = agui_journal::ThreadKey::new(Default::default(), "t");
            last["runs"] =
                json!(fixture.journal.thread(&key).await.map_or(0, |thread| thread.runs));
        }
        let body = input("t", "last", &[("quick", "Go")]);
        let last = ask(&fixture, request("POST", "/agent/default/run", body)).await;
        assert_eq!(last.events().last().unwrap().1["runId"], "last");
        for viewer in viewers {
            let answer = viewer.await.unwrap();
            assert_eq!(answer.status, StatusCode::OK);
            let types = answer.types();
            assert_eq!(
                (types[0].as_str(), types.last().unwrap().as_str()),
                ("RUN_STARTED", "RUN_FINISHED")
            );
            assert_eq!(types.iter().filter(|it| it.starts_with("RUN_")).count(), 2);
        }
        assert_eq!(at_work.most(), 1, "two agents were at work at once");

        let entries = log(&fixture.journal, "t").await;
        let ends: Vec<_> = entries.iter().filter(|entry| entry.kind.is_terminal()).collect();
        assert_eq!(ends.len(), RUNS + 1);
        let (last, cancelled) = ends.split_last().unwrap();
        assert!(cancelled.iter().all(|it| it.text().contains(r#""outcome":{"type":"cancelled"}"#)));
        assert_eq!((last.kind, last.run.as_str()), (EntryKind::Finished, "last"));
        assert!(!last.text().contains("cancelled"));
        fixture.runtime.shutdown().await;
    }
}

/// Everything that the old run had open is closed before its end, its call is answered, and its viewers
/// see that (P-11).
#[tokio::test]
async fn the_run_that_has_to_go_is_closed_and_cancelled() {
    let fixture =
        fixture_of(agents(&AtWork::default()), Arc::default(), |it| it.busy(BusyPolicy::Supersede));
    let mut body = input("t", "old", &[]);
    body["protocolVersion"] = json!("1.0");
    let old = open(&fixture, request("POST", "/agent/default/run", body.clone())).await;
    let (mut seen, old) = read_until(old, "TOOL_CALL_ARGS").await;
    let watching = open(&fixture, request("POST", "/agent/default/connect", body)).await;
    let new = input("t", "new", &[("quick", "Go")]);
    let new = ask(&fixture, request("POST", "/agent/default/run", new)).await;
    assert_eq!(new.types().last().unwrap(), "RUN_FINISHED");

    let mut old = read(old).await;
    seen.push_str(&old.body);
    old.body = seen;
    let types = old.types();
    let closed =
        ["TOOL_CALL_END", "TOOL_CALL_RESULT", "STEP_FINISHED", "TEXT_MESSAGE_END", "RUN_FINISHED"];
    assert_eq!(types[types.len() - 5..], closed);
    assert_eq!(old.events().last().unwrap().1["outcome"], json!({"type": "cancelled"}));
    // Who watches the thread goes on to the next run.
    let watched = read(watching).await;
    assert!(watched.body.starts_with(&old.body));
    let runs: Vec<Value> =
        watched.events().into_iter().map(|(_, event)| event["runId"].clone()).collect();
    assert_eq!(runs.iter().filter(|run| *run == "new").count(), 2);
}
