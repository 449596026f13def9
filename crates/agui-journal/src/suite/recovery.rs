//! Runs whose runner is gone.

use std::sync::Arc;
use std::time::Duration;

use agui_stream::Ending;
use agui_types::event::{Event, RunError};

use super::kit::*;
use crate::{Cursor, Follower, Journal, JournalError, Stop, StopOutcome, Until, codes};

const LEASE: Duration = Duration::from_secs(30);

/// What it has open is closed, it fails with the code, its viewers see that, and once only.
pub async fn a_lapsed_run_ends_as_failed_once(journal: Arc<dyn Journal>, clock: ManualClock) {
    let begun = begin(&*journal, "t", "r").await;
    let lasting = journal.begin(new_run(input("u", "u", Vec::new())).lease(LEASE * 10)).await;
    let lasting = lasting.unwrap();
    let events = vec![started("t", "r"), open("m"), text("m", "half")];
    journal.append(&begun.lease, events).await.unwrap();
    let mut stopped = journal.stopped(&begun.lease);
    assert!(poll(&mut stopped).is_pending());
    let mut viewer = Follower::new(Arc::clone(&journal), key("t"), begun.from, Until::Terminal);
    assert_eq!(viewer.next().await.unwrap().unwrap().entries.len(), 3);

    clock.advance(LEASE - Duration::from_millis(1));
    assert_eq!(journal.recover().await.unwrap(), []);
    clock.advance(Duration::from_millis(1));
    let recovered = journal.recover().await.unwrap();
    assert_eq!(recovered.len(), 1);
    let ended = &recovered[0];
    assert_eq!((ended.run.as_str(), ended.ending, ended.position), ("r", Ending::Failed, 5));
    assert_eq!(ended.thread, key("t"));
    assert_eq!(journal.recover().await.unwrap(), []);
    assert_eq!(stopped.await, Stop::LeaseLost);
    let late = journal.append(&begun.lease, vec![text("m", "late")]).await.unwrap_err();
    assert!(matches!(late, JournalError::LeaseLost { .. }));

    let page = viewer.next().await.unwrap().unwrap();
    assert_eq!(types(&page.entries), ["TEXT_MESSAGE_END", "RUN_ERROR"]);
    let Event::RunError(error) = event(&page.entries[1]) else { panic!("no RUN_ERROR") };
    assert_eq!(error.code.as_deref(), Some(codes::LEASE_LAPSED));
    assert!(viewer.next().await.is_none());
    verify_log(&log(&*journal, &key("t")).await);
    let info = journal.thread(&key("t")).await.unwrap();
    assert_eq!(info.last_run.ending, Some(Ending::Failed));
    assert_eq!(info.last_run.ended_at, Some(clock.now()));
    say(&*journal, "t", "r2").await;
    journal.renew(&lasting.lease).await.unwrap();
}

/// A lease that was given back has lapsed: the next run need not wait, and the one that was left is
/// ended for it.
pub async fn a_released_lease_has_lapsed(journal: Arc<dyn Journal>, _clock: ManualClock) {
    let begun = begin(&*journal, "t", "r").await;
    journal.append(&begun.lease, vec![started("t", "r"), open("m")]).await.unwrap();
    journal.release(&begun.lease).await.unwrap();
    let next = begin(&*journal, "t", "r2").await;
    let ended = next.ended.unwrap();
    assert_eq!((ended.run.as_str(), ended.ending), ("r", Ending::Failed));
    let late = journal.release(&begun.lease).await.unwrap_err();
    assert!(matches!(late, JournalError::LeaseLost { .. }));
    let alone = begin(&*journal, "u", "r").await;
    journal.release(&alone.lease).await.unwrap();
    assert_eq!(journal.recover().await.unwrap().len(), 1);
    verify_log(&log(&*journal, &key("t")).await);
}

/// Renewing makes a lease good for as long again; so does appending. One that nobody has taken away
/// can be renewed late.
pub async fn a_renewed_lease_does_not_lapse(journal: Arc<dyn Journal>, clock: ManualClock) {
    let begun = begin(&*journal, "t", "r").await;
    clock.advance(LEASE / 2);
    journal.renew(&begun.lease).await.unwrap();
    clock.advance(LEASE - Duration::from_millis(1));
    assert_eq!(journal.recover().await.unwrap(), []);
    journal.append(&begun.lease, vec![started("t", "r")]).await.unwrap();
    clock.advance(LEASE - Duration::from_millis(1));
    assert_eq!(journal.recover().await.unwrap(), []);
    clock.advance(LEASE);
    journal.renew(&begun.lease).await.unwrap();
    assert_eq!(journal.recover().await.unwrap(), []);
    journal.finish(&begun.lease, vec![finished("t", "r")]).await.unwrap();
}

/// A runner that died before its first event does not take the user's message with it.
pub async fn a_run_without_events_keeps_what_was_said(
    journal: Arc<dyn Journal>,
    clock: ManualClock,
) {
    let begun = begin(&*journal, "t", "r").await;
    clock.advance(LEASE);
    assert_eq!(journal.recover().await.unwrap().len(), 1);
    let entries = log(&*journal, &key("t")).await;
    assert_eq!(types(&entries), ["RUN_STARTED", "RUN_ERROR"]);
    verify_log(&entries);
    let snapshot = journal.snapshot(&key("t")).await.unwrap();
    assert_eq!(snapshot.messages, [user("r-user", "Hello")]);
    let late = journal.finish(&begun.lease, vec![RunError::new("late").into()]).await;
    assert!(matches!(late, Err(JournalError::LeaseLost { .. })));
}

/// Whoever wants to begin the next run, or to stop this one, need not wait for a recovery.
pub async fn the_next_run_and_a_stop_recover_too(journal: Arc<dyn Journal>, clock: ManualClock) {
    let first = begin(&*journal, "t", "r1").await;
    journal.append(&first.lease, vec![started("t", "r1"), open("m")]).await.unwrap();
    clock.advance(LEASE);
    let second = begin(&*journal, "t", "r2").await;
    let ended = second.ended.expect("the lapsed run was ended");
    assert_eq!((ended.run.as_str(), ended.ending), ("r1", Ending::Failed));
    journal.append(&second.lease, vec![started("t", "r2")]).await.unwrap();
    clock.advance(LEASE);
    let stop = journal.request_stop(&key("t"), None).await.unwrap();
    assert_eq!(stop, StopOutcome::NotRunning);
    assert_eq!(journal.recover().await.unwrap(), []);
    let shown = Follower::new(Arc::clone(&journal), key("t"), Cursor::START, Until::Idle);
    let mut shown = shown;
    let page = shown.next().await.unwrap().unwrap();
    let ends = page.entries.iter().filter(|entry| entry.kind.is_terminal()).count();
    assert_eq!(ends, 2);
    assert!(shown.next().await.is_none());
    verify_log(&page.entries);
}
