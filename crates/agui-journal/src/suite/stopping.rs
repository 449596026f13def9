//! Runs are asked to stop.

use std::sync::Arc;

use super::kit::*;
use crate::{Journal, Stop, StopOutcome};

/// Whoever runs a run sees that it should stop: while it waits, and when it looks later.
pub async fn a_stop_is_seen(journal: Arc<dyn Journal>, _: ManualClock) {
    let begun = begin(&*journal, "t", "r").await;
    let mut stopped = journal.stopped(&begun.lease);
    assert!(poll(&mut stopped).is_pending());
    let thread = key("t");
    assert_eq!(journal.request_stop(&thread, None).await.unwrap(), StopOutcome::Requested);
    assert_eq!(stopped.await, Stop::Requested);
    assert_eq!(journal.stopped(&begun.lease).await, Stop::Requested);
    assert_eq!(journal.request_stop(&thread, None).await.unwrap(), StopOutcome::AlreadyRequested);
    // It is up to the runner to end it.
    journal.append(&begun.lease, vec![started("t", "r")]).await.unwrap();
    journal.finish(&begun.lease, vec![finished("t", "r")]).await.unwrap();
    assert_eq!(journal.request_stop(&thread, None).await.unwrap(), StopOutcome::NotRunning);

    let next = begin(&*journal, "t", "r2").await;
    let mut stopped = journal.stopped(&next.lease);
    assert!(poll(&mut stopped).is_pending());
    journal.delete(&thread).await.unwrap();
    assert_eq!(stopped.await, Stop::LeaseLost);
}

/// A stop that names a run stops that one only.
pub async fn a_stop_may_name_the_run(journal: Arc<dyn Journal>, _: ManualClock) {
    let begun = begin(&*journal, "t", "r").await;
    let thread = key("t");
    let other = journal.request_stop(&thread, Some(&"other".into())).await.unwrap();
    assert_eq!(other, StopOutcome::NotRunning);
    let mut stopped = journal.stopped(&begun.lease);
    assert!(poll(&mut stopped).is_pending());
    let this = journal.request_stop(&thread, Some(&"r".into())).await.unwrap();
    assert_eq!(this, StopOutcome::Requested);
    assert_eq!(stopped.await, Stop::Requested);
}

/// That there is nothing to stop is no failure.
pub async fn there_may_be_nothing_to_stop(journal: Arc<dyn Journal>, _: ManualClock) {
    let nowhere = journal.request_stop(&key("nowhere"), None).await.unwrap();
    assert_eq!(nowhere, StopOutcome::NotRunning);
    say(&*journal, "t", "r").await;
    let over = journal.request_stop(&key("t"), Some(&"r".into())).await.unwrap();
    assert_eq!(over, StopOutcome::NotRunning);
}
