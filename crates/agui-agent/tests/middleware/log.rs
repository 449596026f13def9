//! What the log is told.

use agui_agent::middleware::EventLog;
use agui_agent::{Agent, AgentExt, AgentResult, Run, RunContext, RunFailure};
use futures_util::StreamExt;
use tracing::Level;

use crate::logged::logged;

use super::{STARTED, Script, input, run};

async fn secretive(run: Run) -> AgentResult {
    run.say("s3cret").await?;
    Ok(())
}

#[test]
fn a_run_is_logged_without_its_content() {
    let agent = secretive.with(EventLog::new());
    let log = logged(Level::INFO, run(&agent));
    assert_eq!(log.lines().count(), 2, "{log}");
    assert!(log.contains(r#"a run begins thread="t" run="r" messages=1"#), "{log}");
    assert!(log.contains(r#"ending="completed" events=5"#), "{log}");
    let log = logged(Level::DEBUG, run(&agent));
    assert!(log.contains(r#"kind="TEXT_MESSAGE_CONTENT""#), "{log}");
    assert!(!log.contains("s3cret") && !log.contains("hello"), "{log}");
    // Asked for everything, it tells everything.
    assert!(logged(Level::TRACE, run(&agent)).contains("s3cret"));
}

#[test]
fn every_ending_is_told() {
    let fails = |_: Run| async { Err(RunFailure::new("no").into()) };
    let log = logged(Level::INFO, run(&fails.with(EventLog::new())));
    assert!(log.contains(r#"ending="failed" events=2"#), "{log}");

    let cut = Script(vec![STARTED]).with(EventLog::new());
    assert!(logged(Level::INFO, run(&cut)).contains(r#"ending="truncated" events=1"#));

    let left = async {
        let mut stream = secretive.with(EventLog::new()).run(input(), RunContext::new());
        stream.next().await.unwrap().unwrap();
    };
    let log = logged(Level::INFO, left);
    assert!(log.contains(r#"ending="abandoned" events=1"#), "{log}");
}
