//! A journal in a file whose process died, or whose writes failed, at the moments where most is at
//! stake: what was acknowledged is there, once, and nothing else is.
//!
//! The death of the process is a copy of its files: that is what `kill -9` leaves. A write that fails
//! is a trigger in the file, which takes back the statement or the whole transaction, as SQLite does
//! where the disk is full.
#![cfg(feature = "sqlite")]

mod folder;
mod saying;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};

use agui_journal::{
    BusyPolicy, Clock, Cursor, Entry, Follower, Journal, JournalError, NewRun, SqliteJournal,
    SqliteOptions, Stop, StopOutcome, Tenant, Until,
};
use agui_stream::Verifier;
use agui_types::event::{Event, TextMessageContent};
use agui_types::{FromJson, RunAgentInput};
use folder::Folder;
use rusqlite::Connection;
use saying::{ALL, begin, end, key};

/// How often rows are removed before a test has seen enough.
const ROUNDS: u32 = 2;

fn text(length: usize) -> Vec<Event> {
    vec![TextMessageContent::new("m", "x".repeat(length)).into()]
}

async fn log(journal: &SqliteJournal, thread: &str) -> Vec<Entry> {
    journal.read(&key(thread), Cursor::START, ALL).await.unwrap().entries
}

/// What the process leaves when it is killed now.
fn kill(folder: &Folder) -> Folder {
    let left = Folder::new();
    for end in ["", "-wal"] {
        let file = |folder: &Folder| {
            let mut path = folder.file().into_os_string();
            path.push(end);
            path
        };
        std::fs::copy(file(folder), file(&left)).unwrap();
    }
    left
}

/// A process that died left these logs: they are there, each with an end of its own, and keep the
/// rules.
async fn is_whole(left: &Folder, logs: &[(&str, Vec<Entry>)]) {
    let journal = SqliteJournal::open(left.file()).await.unwrap();
    for (thread, expected) in logs {
        let entries = log(&journal, thread).await;
        assert_eq!(entries.len().min(expected.len()), expected.len(), "{thread}");
        assert!(entries[..expected.len()] == expected[..], "{thread}");
        let mut verifier = Verifier::new();
        for entry in &entries {
            verifier.push(&Event::from_json_exact(entry.text()).unwrap()).unwrap();
        }
        verifier.finish().unwrap();
        let bytes: usize = entries.iter().map(|entry| entry.json.len()).sum();
        let info = journal.thread(&key(thread)).await.unwrap();
        let head = entries.last().map_or(0, |entry| entry.position);
        assert_eq!((info.bytes, info.head, info.is_running()), (bytes as u64, head, false));
    }
    journal.close().await;
}

/// Rows of groups are removed without what was committed last, also where nothing holds that up.
#[tokio::test]
async fn what_is_tidied_up_is_not_needed() {
    let folder = Folder::new();
    let journal = SqliteJournal::open(folder.file()).await.unwrap();
    let file = Connection::open(folder.file()).unwrap();
    let rows = || file.query_row("SELECT count(*) FROM recent", [], |row| row.get::<_, i64>(0));
    let lease = begin(&journal, "t").await;
    let (mut before, mut removed) = (rows().unwrap(), 0);
    // Every second text is packed with the one before it: no run needs a row then.
    while removed < ROUNDS {
        journal.append(&lease, text(30_000)).await.unwrap();
        let now = rows().unwrap();
        if now < before {
            removed += 1;
            let shown = log(&journal, "t").await;
            is_whole(&kill(&folder), &[("t", shown)]).await;
        }
        before = now;
    }
    journal.close().await;
}

/// So it is with runs that begin, say much or little, and end, each at its own pace.
#[tokio::test]
async fn what_many_runs_said_is_tidied_up() {
    let folder = Folder::new();
    let journal = SqliteJournal::open(folder.file()).await.unwrap();
    let file = Connection::open(folder.file()).unwrap();
    let rows = || file.query_row("SELECT count(*) FROM recent", [], |row| row.get::<_, i64>(0));
    let threads = ["a", "b", "c", "d", "e", "f"];
    let mut leases = Vec::new();
    for thread in threads {
        leases.push(begin(&journal, thread).await);
    }
    let (mut before, mut removed) = (rows().unwrap(), 0);
    let mut at = std::env::var("AGUI_SEED").ok().and_then(|it| it.parse().ok()).unwrap_or(1_u64);
    while removed < ROUNDS {
        at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (draw, which) = (at >> 33, (at >> 40) as usize % threads.len());
        if draw % 29 == 0 && threads[which] != "a" {
            journal.finish(&leases[which], end(threads[which])).await.unwrap();
            if draw % 2 == 0 {
                journal.delete(&key(threads[which])).await.unwrap();
            }
            leases[which] = begin(&journal, threads[which]).await;
        } else {
            let length = [1, 20_000, 31_000, 30_000][draw as usize % 4];
            journal.append(&leases[which], text(length)).await.unwrap();
        }
        let now = rows().unwrap();
        if now < before {
            removed += 1;
            let mut logs = Vec::new();
            for thread in threads {
                logs.push((thread, log(&journal, thread).await));
            }
            is_whole(&kill(&folder), &logs).await;
        }
        before = now;
    }
    journal.close().await;
}

/// A commit that fails while it tidies up leaves everything needed that was needed before it.
#[tokio::test]
async fn what_was_not_tidied_up_is_still_needed() {
    let folder = Folder::new();
    let journal = SqliteJournal::open(folder.file()).await.unwrap();
    let file = Connection::open(folder.file()).unwrap();
    let count = |sql: &str| file.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let mut silent = Vec::new();
    for number in 0..40 {
        silent.push(begin(&journal, &format!("t{number}")).await);
    }
    let busy = begin(&journal, "busy").await;
    // With the commit behind which the rows are to be removed, some of those that need them are packed.
    while count("SELECT count(*) FROM chunks WHERE run <= 40") == 0 {
        journal.append(&busy, text(30_000)).await.unwrap();
    }
    assert_eq!(count("SELECT count(*) FROM chunks WHERE run <= 40"), 32);
    // The next one ends a run, and then fails with another one that is packed.
    let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON chunks WHEN NEW.run = 40 \
                  BEGIN SELECT RAISE(ROLLBACK, 'no'); END";
    file.execute_batch(refuse).unwrap();
    let refused = journal.finish(&silent[36], end("t36")).await.unwrap_err();
    assert!(matches!(refused, JournalError::Storage { .. }), "{refused:?}");
    file.execute_batch("DROP TRIGGER refuse").unwrap();
    assert!(journal.thread(&key("t36")).await.unwrap().is_running());

    // What comes next removes the rows of both rounds.
    while count("SELECT min(number) FROM recent") <= 41 {
        journal.append(&busy, text(30_000)).await.unwrap();
    }
    let mut logs = Vec::new();
    for thread in ["t0", "t35", "t36", "t39", "busy"] {
        logs.push((thread, log(&journal, thread).await));
    }
    is_whole(&kill(&folder), &logs).await;
    journal.append(&silent[36], text(5)).await.unwrap();
    journal.finish(&silent[36], end("t36")).await.unwrap();
    journal.close().await;
}

/// A thread that is begun again under the same id is another one: who follows the one before it is
/// not shown it as if it went on, and no place before its beginning is one of it.
#[tokio::test]
async fn a_thread_begun_again_is_another() {
    let folder = Folder::new();
    let journal = SqliteJournal::open(folder.file()).await.unwrap();
    begin(&journal, "t").await;
    let shared: Arc<dyn Journal> = Arc::new(journal.clone());
    let mut viewer = Follower::new(shared, key("t"), Cursor::START, Until::Never);
    let before = viewer.next().await.unwrap().unwrap();
    assert_eq!(before.entries.len(), 2);

    journal.delete(&key("t")).await.unwrap();
    begin(&journal, "t").await;
    let entries = log(&journal, "t").await;
    assert_eq!((entries[0].position, entries.len()), (3, 2));
    for position in [1, 2] {
        let refused = journal.read(&key("t"), Cursor::after(position), ALL).await;
        let unknown = JournalError::PositionUnknown { position, first: 3, head: 4 };
        assert_eq!(format!("{:?}", refused.unwrap_err()), format!("{unknown:?}"));
    }
    let refused = viewer.next().await.unwrap().unwrap_err();
    assert!(matches!(refused, JournalError::PositionUnknown { position: 2, .. }), "{refused:?}");
}

/// Where nothing can be written, whatever writes nothing is done all the same, though it comes together
/// with what fails: a run can be stopped, and leases are kept.
#[tokio::test]
async fn what_writes_nothing_does_not_fail_with_others() {
    let folder = Folder::new();
    let (gate, waits) = (Arc::new(Mutex::new(())), Arc::new(AtomicBool::new(false)));
    let clock = Clock::new({
        let (gate, waits) = (Arc::clone(&gate), Arc::clone(&waits));
        move || {
            waits.store(true, Ordering::SeqCst);
            drop(gate.lock().unwrap());
            1
        }
    });
    let journal = SqliteOptions::new(folder.file()).clock(clock).open().await.unwrap();
    let (writes, other) = (begin(&journal, "writes").await, begin(&journal, "other").await);
    let file = Connection::open(folder.file()).unwrap();
    let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON recent \
                  BEGIN SELECT RAISE(ROLLBACK, 'no'); END";
    file.execute_batch(refuse).unwrap();

    // Whoever writes waits for the time with the first, and finds the others together.
    let mut cx = Context::from_waker(Waker::noop());
    let closed = gate.lock().unwrap();
    waits.store(false, Ordering::SeqCst);
    let mut first = journal.renew(&other);
    assert!(first.as_mut().poll(&mut cx).is_pending());
    while !waits.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
    let mut append = journal.append(&writes, text(5));
    let mut renew = journal.renew(&other);
    let mut stop = journal.request_stop(other.thread(), None);
    assert!(append.as_mut().poll(&mut cx).is_pending());
    assert!(renew.as_mut().poll(&mut cx).is_pending());
    assert!(stop.as_mut().poll(&mut cx).is_pending());
    drop(closed);

    first.await.unwrap();
    let refused = append.await.unwrap_err();
    assert!(matches!(refused, JournalError::Storage { .. }), "{refused:?}");
    renew.await.unwrap();
    assert_eq!(stop.await.unwrap(), StopOutcome::Requested);
    assert_eq!(journal.stopped(&other).await, Stop::Requested);
    file.execute_batch("DROP TRIGGER refuse").unwrap();
    assert_eq!(journal.append(&writes, text(5)).await.unwrap(), 3);
}

/// The runs that another process left are named once, and not before that is committed.
#[tokio::test]
async fn whom_a_crash_has_ended_is_named_though_the_commit_failed() {
    let folder = Folder::new();
    let journal = SqliteJournal::open(folder.file()).await.unwrap();
    begin(&journal, "left").await;
    let left = kill(&folder);
    let journal = SqliteJournal::open(left.file()).await.unwrap();
    let lease = begin(&journal, "t").await;
    let file = Connection::open(left.file()).unwrap();
    let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON chunks \
                  BEGIN SELECT RAISE(ROLLBACK, 'no'); END";
    file.execute_batch(refuse).unwrap();
    journal.release(&lease).await.unwrap();
    let refused = journal.recover().await.unwrap_err();
    assert!(matches!(refused, JournalError::Storage { .. }), "{refused:?}");
    file.execute_batch("DROP TRIGGER refuse").unwrap();
    let named = journal.recover().await.unwrap();
    let named: Vec<_> = named.iter().map(|run| run.thread.thread.as_str()).collect();
    assert_eq!(named, ["left", "t"]);
    assert_eq!(journal.recover().await.unwrap(), []);
}

/// A run of which something cannot be read any more cannot be ended. It holds up no other thread: the
/// file is opened, whoever wants something of that thread is told what is wrong, and it can be deleted.
#[tokio::test]
async fn damage_to_a_run_that_went_on_takes_nothing_else_with_it() {
    for damage in [
        "UPDATE chunks SET events = x'80' WHERE run = 2",
        "UPDATE folded SET messages = '[{' WHERE thread = 1",
        "UPDATE runs SET input = '7' WHERE number = 2",
    ] {
        let folder = Folder::new();
        let journal = SqliteJournal::open(folder.file()).await.unwrap();
        let lease = begin(&journal, "bad").await;
        journal.finish(&lease, end("bad")).await.unwrap();
        let bad = begin(&journal, "bad").await;
        journal.append(&bad, text(40_000)).await.unwrap();
        let good = begin(&journal, "good").await;
        journal.append(&good, text(40_000)).await.unwrap();
        let good = log(&journal, "good").await;
        let left = kill(&folder);
        Connection::open(left.file()).unwrap().execute(damage, []).unwrap();

        let journal = SqliteJournal::open(left.file()).await.unwrap();
        let ended = journal.recover().await.unwrap();
        let ended: Vec<_> = ended.iter().map(|run| run.thread.thread.as_str()).collect();
        assert_eq!(ended, ["good"], "{damage}");
        assert_eq!(log(&journal, "good").await[..3], good[..]);
        let corrupt = |error: JournalError| {
            assert!(matches!(error, JournalError::Corrupt { .. }), "{damage}: {error:?}");
        };
        corrupt(journal.snapshot(&key("bad")).await.unwrap_err());
        for busy in [BusyPolicy::Refuse, BusyPolicy::Supersede] {
            let input = RunAgentInput::new("bad", "r", Vec::new());
            let run = NewRun::new(Tenant::default(), "default", input).busy(busy);
            corrupt(journal.begin(run).await.unwrap_err());
        }
        assert!(journal.thread(&key("bad")).await.unwrap().is_running());
        journal.delete(&key("bad")).await.unwrap();
        begin(&journal, "bad").await;
        journal.close().await;
    }
}
