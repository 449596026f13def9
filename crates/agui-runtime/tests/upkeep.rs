//! What keeps the run log usable, and whether it is.

mod common;

use std::time::Duration;

use agui_journal::Retention;
use agui_runtime::{NotReady, Upkeep};
use common::{Fixture, ask, fixture, get, input, open, read, read_until, request};

async fn run(fixture: &Fixture, thread: &str) {
    let body = input(thread, "r", &[("m", "hello")]);
    let answer = ask(fixture, request("POST", "/agent/default/run", body)).await;
    assert!(answer.body.contains("RUN_FINISHED"));
}

async fn threads(fixture: &Fixture) -> Vec<String> {
    let answer = get(fixture, "/threads").await;
    let listed = answer.json()["threads"].clone();
    listed.as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_round_removes_and_compacts_what_the_policy_says() {
    let fixture = fixture();
    for thread in ["a", "b", "c"] {
        run(&fixture, thread).await;
    }
    let mut policy = Upkeep::default();
    let kept = fixture.runtime.keep_up(&policy).await.unwrap();
    assert_eq!((kept.removed, kept.compacted, kept.more), (0, 0, false));
    assert_eq!(threads(&fixture).await.len(), 3);

    policy.retention = Retention::new().threads(2);
    policy.compact_after = Some(Duration::ZERO);
    let kept = fixture.runtime.keep_up(&policy).await.unwrap();
    assert_eq!((kept.removed, kept.more), (1, false));
    assert!(!threads(&fixture).await.contains(&"a".to_owned()));
    // What was compacted once is left alone.
    let again = fixture.runtime.keep_up(&policy).await.unwrap();
    assert_eq!((again.removed, again.compacted), (0, 0));
}

#[tokio::test]
async fn rounds_go_on_until_the_runtime_ends() {
    let fixture = fixture();
    for thread in ["a", "b"] {
        run(&fixture, thread).await;
    }
    let mut policy = Upkeep::default();
    policy.every = Duration::ZERO;
    policy.retention = Retention::new().threads(1);
    let kept = tokio::spawn(fixture.runtime.clone().upkeep(policy));
    while threads(&fixture).await.len() > 1 {
        tokio::task::yield_now().await;
    }
    run(&fixture, "c").await;
    while threads(&fixture).await != ["c"] {
        tokio::task::yield_now().await;
    }
    fixture.runtime.shutdown().await;
    kept.await.unwrap();
}

#[tokio::test]
async fn a_runtime_that_ends_is_not_ready() {
    let fixture = fixture();
    fixture.runtime.ready().await.unwrap();
    fixture.runtime.shutdown().await;
    assert!(matches!(fixture.runtime.ready().await, Err(NotReady::ShuttingDown)));
}

/// An empty id is an id: asking whether the runtime is ready stops nobody's run.
#[tokio::test]
async fn being_asked_whether_it_is_ready_stops_no_run() {
    let fixture = fixture();
    let body = input("", "", &[("m", "hello")]);
    let begun = open(&fixture, request("POST", "/agent/waiting/run", body)).await;
    let (_, begun) = read_until(begun, "TEXT_MESSAGE_CONTENT").await;
    fixture.runtime.ready().await.unwrap();
    fixture.go.notify_one();
    let events = read(begun).await.events();
    assert!(events.iter().any(|(_, event)| event["delta"] == ", two"), "{events:?}");
    assert_eq!(events.last().unwrap().1["type"], "RUN_FINISHED");
}
