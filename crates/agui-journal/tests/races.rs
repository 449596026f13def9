//! Readers beside a writer that appends, packs, ends, compacts, deletes and begins again the same
//! threads: whatever moment a reader meets, it sees what is committed, all of it, once and in order.
#![cfg(feature = "sqlite")]

mod folder;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agui_journal::{
    Cursor, Entry, Follower, Journal, JournalError, NewRun, ReadLimit, SqliteJournal, Tenant,
    ThreadKey, ThreadQuery, Until,
};
use agui_stream::Verifier;
use agui_types::event::{
    Event, RunError, RunFinished, RunStarted, TextMessageContent, TextMessageEnd, TextMessageStart,
};
use agui_types::{FromJson, RunAgentInput};
use folder::Folder;

/// What was acknowledged: by position, as it was written.
type Written = Arc<Mutex<BTreeMap<u64, String>>>;

const ALL: ReadLimit = ReadLimit { events: usize::MAX, bytes: usize::MAX };

fn key() -> ThreadKey {
    ThreadKey::new(Tenant::default(), "t")
}

async fn begin(journal: &dyn Journal, run: &str) -> agui_journal::Begun {
    let input = RunAgentInput::new("t", run, Vec::new());
    journal.begin(NewRun::new(Tenant::default(), "default", input)).await.unwrap()
}

/// How many events a run has, and of what length: some never leave memory before they end, some are
/// packed by their number, some by their size.
const RUNS: [(usize, usize); 6] = [(3, 5), (300, 5), (700, 3), (40, 2_000), (1, 5), (90, 900)];

/// One run; says of each event that it is in the log only once it is.
async fn write(
    journal: &dyn Journal,
    run: &str,
    (count, length): (usize, usize),
    head: &AtomicU64,
) {
    let begun = begin(journal, run).await;
    let message = format!("m{run}");
    let mut events: Vec<Event> =
        vec![RunStarted::new("t", run).into(), TextMessageStart::new(&*message).into()];
    for at in 0..count {
        events
            .push(TextMessageContent::new(&*message, format!("{at}{}", "x".repeat(length))).into());
        if at % 3 == 0 {
            let position = journal.append(&begun.lease, std::mem::take(&mut events)).await.unwrap();
            head.store(position, Ordering::SeqCst);
        }
    }
    let position = if count % 2 == 0 {
        events.push(TextMessageEnd::new(message).into());
        events.push(RunFinished::new("t", run).into());
        journal.finish(&begun.lease, events).await.unwrap()
    } else {
        events.push(RunError::new("over").into());
        journal.finish(&begun.lease, events).await.unwrap()
    };
    head.store(position, Ordering::SeqCst);
}

/// Followers and readers of a log that only grows: each follower is shown exactly the log, and nothing
/// that was acknowledged is missing in what anybody is shown later.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whoever_reads_sees_the_log() {
    let folder = Folder::new();
    let journal: Arc<dyn Journal> = Arc::new(SqliteJournal::open(folder.file()).await.unwrap());
    let head = Arc::new(AtomicU64::new(0));
    let over = Arc::new(AtomicBool::new(false));
    write(&*journal, "r", (1, 1), &head).await;
    let mut followers = Vec::new();
    for limit in [
        ReadLimit::default(),
        ALL,
        ReadLimit { events: 1, bytes: 1 },
        ReadLimit { events: 9, bytes: 3_000 },
    ] {
        let follower = Follower::new(Arc::clone(&journal), key(), Cursor::START, Until::Never);
        let mut follower = follower.limit(limit);
        followers.push(tokio::spawn(async move {
            let mut seen: Vec<Entry> = Vec::new();
            loop {
                let next = tokio::time::timeout(Duration::from_secs(30), follower.next()).await;
                let page = next.expect("a follower was not woken").unwrap().unwrap();
                seen.extend(page.entries);
                let last = seen.last().unwrap();
                if last.kind.is_terminal() && last.run.as_str() == "last" {
                    return seen;
                }
            }
        }));
    }
    let mut readers = Vec::new();
    for number in 0..3_u64 {
        let (journal, head, over) = (Arc::clone(&journal), Arc::clone(&head), Arc::clone(&over));
        readers.push(tokio::spawn(async move {
            let mut at = number;
            let mut looks = 0_u64;
            while !over.load(Ordering::SeqCst) {
                let known = head.load(Ordering::SeqCst);
                let info = journal.thread(&key()).await.unwrap();
                let listed = journal.threads(ThreadQuery::new(Tenant::default())).await.unwrap();
                let snapshot = journal.snapshot(&key()).await.unwrap();
                assert!(info.head >= known && listed.threads[0].head >= info.head, "{known}");
                assert!(snapshot.position >= info.head, "{} {}", snapshot.position, info.head);
                at = (at * 7 + 13) % (known + 1);
                let limit = ReadLimit { events: 40, bytes: 9_000 };
                let page = journal.read(&key(), Cursor::after(at), limit).await.unwrap();
                assert!(page.head >= snapshot.position);
                let positions = page.entries.iter().map(|entry| entry.position);
                assert!(positions.eq((at + 1..).take(page.entries.len())), "behind {at}");
                assert!(!page.entries.is_empty() || at >= known);
                let end = journal.read(&key(), Cursor::after(known), ALL).await.unwrap();
                assert_eq!(known + end.entries.len() as u64, end.head);
                journal.changed(&key(), known.saturating_sub(1)).await.unwrap();
                looks += 1;
            }
            looks
        }));
    }
    for round in 0..12 {
        write(&*journal, &format!("r{round}"), RUNS[round % RUNS.len()], &head).await;
    }
    over.store(true, Ordering::SeqCst);
    write(&*journal, "last", (1, 1), &head).await;
    let log = journal.read(&key(), Cursor::START, ALL).await.unwrap();
    assert_eq!(log.head, head.load(Ordering::SeqCst));
    for follower in followers {
        let seen = follower.await.unwrap();
        assert_eq!(seen.len(), log.entries.len());
        assert!(seen == log.entries);
    }
    for reader in readers {
        assert!(reader.await.unwrap() > 0);
    }
}

/// Compaction, deletion and a thread under the same id: a follower is shown what was written, or the
/// compacted form of whole runs, and an error where it cannot go on; never another thread, never a place
/// twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_follower_never_goes_on_in_another_log() {
    let folder = Folder::new();
    let journal: Arc<dyn Journal> = Arc::new(SqliteJournal::open(folder.file()).await.unwrap());
    let over = Arc::new(AtomicBool::new(false));
    let head = AtomicU64::new(0);
    let gone: Written = Written::default();
    let mut followers = Vec::new();
    for number in 0..5 {
        let (journal, over, gone) = (Arc::clone(&journal), Arc::clone(&over), Arc::clone(&gone));
        followers.push(tokio::spawn(async move {
            let mut ended = [0_u32; 3];
            let until = if number % 2 == 0 { Until::Idle } else { Until::Never };
            while !over.load(Ordering::SeqCst) {
                let limit =
                    [ReadLimit::default(), ALL, ReadLimit { events: 3, bytes: 1_000 }][number % 3];
                let mut follower =
                    Follower::new(Arc::clone(&journal), key(), Cursor::START, until).limit(limit);
                let mut seen: Vec<Entry> = Vec::new();
                let end = loop {
                    match follower.next().await {
                        None => break None,
                        Some(Ok(page)) => seen.extend(page.entries),
                        Some(Err(error)) => break Some(error),
                    }
                };
                let mut verifier = Verifier::new();
                for entry in &seen {
                    verifier.push(&Event::from_json_exact(entry.text()).unwrap()).unwrap();
                }
                assert!(seen.is_sorted_by(|a, b| a.position < b.position));
                // The name of the first run says which thread it was.
                let threads: std::collections::BTreeSet<_> = seen
                    .iter()
                    .map(|entry| entry.run.as_str().split('-').next().unwrap())
                    .collect();
                assert!(threads.len() <= 1, "{threads:?}");
                for entry in &seen {
                    let known = gone.lock().unwrap().get(&entry.position).cloned();
                    assert!(known.is_none_or(|known| threads.contains(&*known)));
                }
                match end {
                    None => {
                        verifier.finish().unwrap();
                        ended[0] += 1;
                    }
                    Some(JournalError::ThreadNotFound) => {
                        ended[1] += 1;
                        tokio::task::yield_now().await;
                    }
                    Some(JournalError::PositionUnknown { .. }) => ended[2] += 1,
                    Some(error) => panic!("{error:?}"),
                }
            }
            ended
        }));
    }
    for thread in 0..10 {
        for run in 0..4 {
            let shape = RUNS[(thread + run) % RUNS.len()];
            write(&*journal, &format!("{thread}-{run}"), shape, &head).await;
            if run % 2 == 1 {
                journal.compact(Duration::ZERO).await.unwrap();
            }
        }
        // A run that goes on when its thread is deleted.
        let begun = begin(&*journal, &format!("{thread}-x")).await;
        let started = RunStarted::new("t", format!("{thread}-x"));
        let last = journal.append(&begun.lease, vec![started.into()]).await.unwrap();
        let entries = journal.read(&key(), Cursor::START, ALL).await.unwrap().entries;
        assert_eq!(entries.last().unwrap().position, last);
        journal.delete(&key()).await.unwrap();
        let mut gone = gone.lock().unwrap();
        for entry in entries {
            gone.insert(entry.position, thread.to_string());
        }
    }
    over.store(true, Ordering::SeqCst);
    write(&*journal, "z-0", (1, 1), &head).await;
    journal.delete(&key()).await.unwrap();
    let mut sum = [0; 3];
    for follower in followers {
        for (sum, ended) in sum.iter_mut().zip(follower.await.unwrap()) {
            *sum += ended;
        }
    }
    assert!(sum[0] > 0 && sum[1] > 0, "{sum:?}");
}
