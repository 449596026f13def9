//! The log is read and watched.

use std::sync::Arc;
use std::task::Poll;

use super::kit::*;
use crate::{
    Cursor, Entry, EntryKind, Follower, Journal, JournalError, ReadLimit, ThreadKey, Until,
};

/// At most so many events and bytes, but never nothing where there is something.
pub async fn pages_keep_to_their_limits(journal: Arc<dyn Journal>, _: ManualClock) {
    say(&*journal, "t", "r").await;
    let whole = log(&*journal, &key("t")).await;
    let read = async |from: u64, events, bytes| {
        let limit = ReadLimit { events, bytes };
        journal.read(&key("t"), Cursor::after(from), limit).await.unwrap()
    };
    let page = read(0, 2, usize::MAX).await;
    assert_eq!((page.entries.len(), page.next.position(), page.head), (2, 2, 6));
    assert!(!page.is_last() && page.running.is_none());
    let two = whole[2].json.len() + whole[3].json.len();
    assert_eq!(read(2, 100, two).await.entries, whole[2..4]);
    assert_eq!(read(2, 100, two - 1).await.entries, whole[2..3]);
    assert_eq!(read(2, 0, 0).await.entries, whole[2..3]);
    let last = read(5, 100, usize::MAX).await;
    assert_eq!(last.entries, whole[5..]);
    assert!(last.is_last());
    let behind = read(6, 100, usize::MAX).await;
    assert!(behind.entries.is_empty() && behind.is_last());
    assert_eq!(behind.next.position(), 6);
}

/// There is no place behind a position that was never reached.
pub async fn a_position_that_was_never_reached_is_unknown(
    journal: Arc<dyn Journal>,
    _: ManualClock,
) {
    say(&*journal, "t", "r").await;
    let error = journal.read(&key("t"), Cursor::after(7), ReadLimit::default()).await;
    let error = error.unwrap_err();
    assert!(
        matches!(error, JournalError::PositionUnknown { position: 7, first: 1, head: 6 }),
        "{error:?}"
    );
    let most = journal.read(&key("t"), Cursor::after(u64::MAX), ReadLimit::default()).await;
    assert!(matches!(most, Err(JournalError::PositionUnknown { .. })));
}

/// Whoever waits is woken by the next event, and at once where it is there already.
pub async fn changes_are_waited_for(journal: Arc<dyn Journal>, _: ManualClock) {
    let begun = begin(&*journal, "t", "r").await;
    let thread = key("t");
    let mut first = journal.changed(&thread, 0);
    let mut second = journal.changed(&thread, 1);
    assert!(poll(&mut first).is_pending());
    assert!(poll(&mut second).is_pending());
    journal.append(&begun.lease, vec![started("t", "r")]).await.unwrap();
    first.await.unwrap();
    assert!(poll(&mut second).is_pending());
    journal.changed(&thread, 0).await.unwrap();
    journal.finish(&begun.lease, vec![finished("t", "r")]).await.unwrap();
    second.await.unwrap();
}

/// A run that ends while a viewer catches up, or waits, ends once for it.
pub async fn a_viewer_sees_the_terminal_event_once(journal: Arc<dyn Journal>, _: ManualClock) {
    say(&*journal, "t", "r0").await;
    let begun = begin(&*journal, "t", "r1").await;
    let mut viewer = follower(&journal, begun.from, Until::Terminal);
    {
        let mut next = Box::pin(viewer.next());
        assert!(poll(&mut next).is_pending());
        journal.append(&begun.lease, vec![started("t", "r1"), open("m")]).await.unwrap();
        assert_eq!(next.await.unwrap().unwrap().entries.len(), 2);
    }
    let mut shown = 2;
    journal.append(&begun.lease, vec![close("m")]).await.unwrap();
    journal.finish(&begun.lease, vec![finished("t", "r1")]).await.unwrap();
    say(&*journal, "t", "r2").await;
    let mut terminals = 0;
    while let Some(page) = viewer.next().await {
        let page = page.unwrap();
        shown += page.entries.len();
        terminals += page.entries.iter().filter(|entry| entry.kind.is_terminal()).count();
    }
    assert_eq!((shown, terminals), (4, 1));
    assert_eq!(viewer.cursor().position(), 10);
    assert!(viewer.next().await.is_none());

    // One that was there at the end has nothing more to see.
    let mut late = follower(&journal, Cursor::after(16), Until::Terminal);
    assert!(late.next().await.is_none());
}

/// A newcomer sees all runs, the one that goes on included, and ends when that ends.
pub async fn a_newcomer_sees_all_and_ends(journal: Arc<dyn Journal>, _: ManualClock) {
    say(&*journal, "t", "r0").await;
    let shown = collect(follower(&journal, Cursor::START, Until::Idle)).await;
    assert_eq!(shown, log(&*journal, &key("t")).await);

    let begun = begin(&*journal, "t", "r1").await;
    journal.append(&begun.lease, vec![started("t", "r1")]).await.unwrap();
    let mut viewer = follower(&journal, Cursor::START, Until::Idle);
    let mut shown = viewer.next().await.unwrap().unwrap().entries;
    assert_eq!(shown.len(), 7);
    assert!(poll(&mut Box::pin(viewer.next())).is_pending());
    journal.finish(&begun.lease, vec![finished("t", "r1")]).await.unwrap();
    shown.extend(collect(viewer).await);
    assert_eq!(shown, log(&*journal, &key("t")).await);
    verify_log(&shown);
}

/// From every position on, a viewer sees what is behind it and nothing twice.
pub async fn a_viewer_can_resume_anywhere(journal: Arc<dyn Journal>, _: ManualClock) {
    say(&*journal, "t", "r1").await;
    say(&*journal, "t", "r2").await;
    let whole = log(&*journal, &key("t")).await;
    for position in 0..=whole.len() {
        let viewer = follower(&journal, Cursor::after(position as u64), Until::Idle);
        assert_eq!(collect(viewer).await, whole[position..]);
    }
}

/// A viewer that takes one event at a time, while much is written, is shown all of it.
pub async fn a_slow_viewer_misses_nothing(journal: Arc<dyn Journal>, _: ManualClock) {
    let begun = begin(&*journal, "t", "r").await;
    let slow = ReadLimit { events: 1, bytes: 1 };
    let mut viewer = follower(&journal, begun.from, Until::Terminal).limit(slow);
    journal.append(&begun.lease, vec![started("t", "r"), open("m")]).await.unwrap();
    let mut shown = viewer.next().await.unwrap().unwrap().entries;
    for round in 0..50 {
        let deltas = (0..20).map(|at| text("m", &format!("{round}.{at} "))).collect();
        journal.append(&begun.lease, deltas).await.unwrap();
    }
    journal.append(&begun.lease, vec![close("m")]).await.unwrap();
    journal.finish(&begun.lease, vec![finished("t", "r")]).await.unwrap();
    shown.extend(collect(viewer).await);
    assert_eq!(shown, log(&*journal, &key("t")).await);
    assert_eq!(shown.last().map(|entry| entry.kind), Some(EntryKind::Finished));
    assert_eq!(shown.len(), 1_004);
}

/// A viewer of a thread that goes away is told so: its stream does not just end.
pub async fn viewers_of_a_deleted_thread_get_an_error(journal: Arc<dyn Journal>, _: ManualClock) {
    let begun = begin(&*journal, "t", "r").await;
    journal.append(&begun.lease, vec![started("t", "r")]).await.unwrap();
    let mut viewer = follower(&journal, Cursor::START, Until::Idle);
    viewer.next().await.unwrap().unwrap();
    let mut waiting = Box::pin(viewer.next());
    assert!(poll(&mut waiting).is_pending());
    journal.delete(&key("t")).await.unwrap();
    assert!(matches!(waiting.await, Some(Err(JournalError::ThreadNotFound))));
    assert!(viewer.next().await.is_none());
    // A thread with the same id is another one.
    let mut waiting = journal.changed(&key("t"), 0);
    assert!(matches!(poll(&mut waiting), Poll::Ready(Err(_))) || waiting.await.is_err());
}

/// What a thread is asked that is not there, is refused.
pub async fn an_unknown_thread_is_named_as_such(journal: Arc<dyn Journal>, _: ManualClock) {
    let thread: ThreadKey = key("nowhere");
    let limit = ReadLimit::default();
    let unknown = [
        journal.read(&thread, Cursor::START, limit).await.err(),
        journal.changed(&thread, 0).await.err(),
        journal.snapshot(&thread).await.err(),
        journal.facts(&thread).await.err(),
        journal.thread(&thread).await.err(),
        journal.rename(&thread, None).await.err(),
        journal.archive(&thread, true).await.err(),
        journal.delete(&thread).await.err(),
    ];
    for (at, error) in unknown.into_iter().enumerate() {
        assert!(matches!(error, Some(JournalError::ThreadNotFound)), "{at}: {error:?}");
    }
}

fn follower(journal: &Arc<dyn Journal>, from: Cursor, until: Until) -> Follower {
    Follower::new(Arc::clone(journal), key("t"), from, until)
}

async fn collect(mut viewer: Follower) -> Vec<Entry> {
    let mut entries = Vec::new();
    while let Some(page) = viewer.next().await {
        let page = page.expect("the log is read");
        assert!(!page.entries.is_empty(), "a page has events");
        entries.extend(page.entries);
    }
    entries
}
