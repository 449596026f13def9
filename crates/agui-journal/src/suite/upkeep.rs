//! Compaction and retention.

use std::sync::Arc;
use std::time::Duration;

use super::kit::*;
use crate::{
    Cursor, Entry, Journal, JournalError, NewRun, ReadLimit, Retention, Tenant, ThreadKey,
};

/// Fewer events fold to the same; the first and last event of a run keep their positions; there is
/// nothing to do a second time.
pub async fn compaction_keeps_the_conversation_and_the_ends(
    journal: Arc<dyn Journal>,
    clock: ManualClock,
) {
    say(&*journal, "t", "r1").await;
    long_run(&*journal, "t", "r2").await;
    let before = journal.snapshot(&key("t")).await.unwrap();
    let whole = log(&*journal, &key("t")).await;
    clock.advance(Duration::from_secs(60));
    let compacted = journal.compact(Duration::from_secs(60)).await.unwrap();
    assert_eq!((compacted.runs, compacted.events, compacted.more), (2, 1 + 99, false));

    let entries = log(&*journal, &key("t")).await;
    assert_eq!(entries.len(), whole.len() - 100);
    verify_log(&entries);
    let info = journal.thread(&key("t")).await.unwrap();
    assert_eq!(info.bytes, size(&entries));
    assert_eq!(size(&whole) - size(&entries), compacted.bytes);
    let ends = |entries: &[Entry]| {
        let ends = entries.iter().filter(|entry| entry.kind != crate::EntryKind::Event);
        ends.cloned().collect::<Vec<_>>()
    };
    assert_eq!(ends(&entries), ends(&whole));
    assert!(entries.windows(2).all(|pair| pair[0].position < pair[1].position));
    assert_eq!(journal.snapshot(&key("t")).await.unwrap(), before);
    assert_eq!(journal.compact(Duration::ZERO).await.unwrap(), Default::default());

    say(&*journal, "t", "r3").await;
    assert_eq!(journal.compact(Duration::ZERO).await.unwrap().runs, 1);
    verify_log(&log(&*journal, &key("t")).await);
}

/// A run that goes on, or that ended lately, stays as it was written.
pub async fn compaction_spares_what_is_young_or_running(
    journal: Arc<dyn Journal>,
    clock: ManualClock,
) {
    long_run(&*journal, "t", "r1").await;
    let begun = begin(&*journal, "t", "r2").await;
    let events = vec![started("t", "r2"), open("m"), text("m", "a"), text("m", "b")];
    journal.append(&begun.lease, events).await.unwrap();
    let whole = log(&*journal, &key("t")).await;
    clock.advance(Duration::from_secs(59));
    assert_eq!(journal.compact(Duration::from_secs(60)).await.unwrap(), Default::default());
    assert_eq!(log(&*journal, &key("t")).await, whole);
    assert_eq!(journal.compact(Duration::from_secs(59)).await.unwrap().runs, 1);
    let entries = log(&*journal, &key("t")).await;
    assert_eq!(entries[entries.len() - 4..], whole[whole.len() - 4..]);
    journal.append(&begun.lease, vec![close("m")]).await.unwrap();
    journal.finish(&begun.lease, vec![finished("t", "r2")]).await.unwrap();
    verify_log(&log(&*journal, &key("t")).await);
}

/// A position inside a run that was compacted since points nowhere; the ends of the run do, and a
/// reading that began afterwards goes on.
pub async fn a_viewer_inside_a_compacted_run_is_told(
    journal: Arc<dyn Journal>,
    clock: ManualClock,
) {
    long_run(&*journal, "t", "r1").await;
    long_run(&*journal, "t", "r2").await;
    let head = journal.thread(&key("t")).await.unwrap().head;
    let end = head / 2;
    let read = async |from| {
        journal.read(&key("t"), from, ReadLimit { events: 2, bytes: usize::MAX }).await
    };
    let mut old = read(Cursor::START).await.unwrap().next;
    clock.advance(Duration::from_secs(1));
    journal.compact(Duration::ZERO).await.unwrap();
    for position in [1, 2, end - 1, end + 1, end + 2, head - 1] {
        let gone = read(Cursor::after(position)).await;
        assert!(
            matches!(gone, Err(JournalError::PositionUnknown { .. })),
            "{position} of {head}: {gone:?}"
        );
    }
    assert!(matches!(read(old).await, Err(JournalError::PositionUnknown { .. })));
    for position in [0, end, head] {
        read(Cursor::after(position)).await.unwrap();
    }
    old = Cursor::START;
    let mut shown = Vec::new();
    loop {
        let page = read(old).await.unwrap();
        old = page.next;
        shown.extend(page.entries.iter().cloned());
        if page.is_last() {
            break;
        }
    }
    assert_eq!(shown, log(&*journal, &key("t")).await);
}

/// Each bound counts for every tenant by itself, and spares what is running.
pub async fn threads_are_removed_by_age_number_and_size(
    journal: Arc<dyn Journal>,
    clock: ManualClock,
) {
    let second = Duration::from_secs(1);
    let other = ThreadKey::new(Tenant::new("other"), "a");
    let run = NewRun::new(other.tenant.clone(), "default", input("a", "r", Vec::new()));
    let begun = journal.begin(run).await.unwrap();
    journal.finish(&begun.lease, vec![finished("a", "r")]).await.unwrap();
    begin(&*journal, "running", "r").await;
    for thread in ["a", "b", "c", "d"] {
        clock.advance(second);
        say(&*journal, thread, "r").await;
    }
    let remove = async |retention: Retention| {
        let removed = journal.retain(&retention).await.unwrap();
        assert!(!removed.more);
        removed.threads
    };
    assert_eq!(remove(Retention::new()).await, []);
    assert_eq!(remove(Retention::new().idle(second * 4)).await, []);
    // The other tenant's thread, and the first of this one, the running one beside.
    assert_eq!(remove(Retention::new().idle(second * 2)).await, [key("a"), other]);
    assert_eq!(remove(Retention::new().threads(4)).await, []);
    assert_eq!(remove(Retention::new().threads(3)).await, [key("b")]);
    let size = journal.thread(&key("c")).await.unwrap().bytes;
    assert_eq!(remove(Retention::new().bytes(size * 2)).await, []);
    assert_eq!(remove(Retention::new().bytes(size * 2 - 1)).await, [key("c")]);
    assert_eq!(remove(Retention::new().bytes(0)).await, [key("d")]);
    assert_eq!(remove(Retention::new().bytes(0).threads(0).idle(second)).await, []);
    journal.thread(&key("running")).await.unwrap();
}

/// A run of 104 events that one compacted text says as well.
async fn long_run(journal: &dyn Journal, thread: &str, run: &str) {
    let begun = begin(journal, thread, run).await;
    let message = format!("{run}-long");
    journal.append(&begun.lease, vec![started(thread, run), open(&message)]).await.unwrap();
    let deltas = (0..100).map(|at| text(&message, &format!("{at} "))).collect();
    journal.append(&begun.lease, deltas).await.unwrap();
    journal.append(&begun.lease, vec![close(&message)]).await.unwrap();
    journal.finish(&begun.lease, vec![finished(thread, run)]).await.unwrap();
}

fn size(entries: &[Entry]) -> u64 {
    entries.iter().map(|entry| entry.json.len() as u64).sum()
}
