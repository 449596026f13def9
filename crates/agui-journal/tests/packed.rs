//! Where the events of a journal in a file are: in memory and in the rows of groups first, then in
//! chunks. Whoever reads sees none of that.
#![cfg(feature = "sqlite")]

mod folder;
mod saying;

use std::time::Duration;

use agui_journal::{
    Cursor, Entry, Journal, JournalError, Lease, Page, ReadLimit, Retention, SqliteJournal, Tenant,
    ThreadQuery,
};
use agui_types::ToJson;
use agui_types::event::{Event, TextMessageContent};
use folder::Folder;
use saying::{ALL, begin, end, key};

async fn finish(journal: &SqliteJournal, lease: &Lease) {
    journal.finish(lease, end(lease.thread().thread.as_str())).await.unwrap();
}

fn texts(count: usize, length: usize) -> Vec<Event> {
    let text = |at| format!("{at} {}", "x".repeat(length));
    (0..count).map(|at| TextMessageContent::new("m", text(at)).into()).collect()
}

async fn read(journal: &SqliteJournal, thread: &str, after: u64, limit: ReadLimit) -> Page {
    journal.read(&key(thread), Cursor::after(after), limit).await.unwrap()
}

/// Of whatever size the batches are, and wherever a reading begins: it shows what was written, as
/// much as was asked for; and says the same of the thread.
#[tokio::test]
async fn a_log_is_read_from_any_place() {
    let folder = Folder::new();
    let journal = SqliteJournal::open(folder.file()).await.unwrap();
    let first = begin(&journal, "t").await;
    finish(&journal, &first).await;
    let before = read(&journal, "t", 0, ALL).await.entries;

    let lease = begin(&journal, "t").await;
    let mut written: Vec<String> = before.iter().map(|entry| entry.text().to_owned()).collect();
    written.extend(read(&journal, "t", 4, ALL).await.entries.iter().map(|it| it.text().to_owned()));
    // Few, so many that they are packed, some that are large together, one that is, and few again.
    for events in [
        texts(3, 5),
        texts(600, 5),
        texts(7, 1_000),
        texts(90, 1_000),
        texts(1, 200_000),
        texts(5, 5),
    ] {
        written.extend(events.iter().map(|event| event.to_json()));
        journal.append(&lease, events).await.unwrap();
        check(&journal, &written).await;
    }
    finish(&journal, &lease).await;
    let last = read(&journal, "t", written.len() as u64, ALL).await.entries;
    written.extend(last.iter().map(|entry| entry.text().to_owned()));
    check(&journal, &written).await;
    journal.close().await;
    check(&SqliteJournal::open(folder.file()).await.unwrap(), &written).await;
}

async fn check(journal: &SqliteJournal, written: &[String]) {
    let head = written.len();
    let bytes: usize = written.iter().map(String::len).sum();
    let thread = journal.thread(&key("t")).await.unwrap();
    assert_eq!((thread.head, thread.bytes), (head as u64, bytes as u64));
    let listed = journal.threads(ThreadQuery::new(Tenant::default())).await.unwrap();
    assert_eq!(listed.threads, [thread]);
    for limit in [
        ReadLimit::default(),
        ALL,
        ReadLimit { events: 1, bytes: 1 },
        ReadLimit { events: 7, bytes: 400 },
        ReadLimit { events: usize::MAX, bytes: 70_000 },
    ] {
        for after in
            (0..20.min(head)).chain((20..head).step_by(37)).chain(head.saturating_sub(9)..=head)
        {
            let page = read(journal, "t", after as u64, limit).await;
            let got: Vec<&str> = page.entries.iter().map(Entry::text).collect();
            let mut room = limit.bytes;
            let fits = |(at, text): &(usize, &String)| {
                let fits = *at == 0 || (*at < limit.events && text.len() <= room);
                room = room.saturating_sub(text.len());
                fits
            };
            let expected = written[after..].iter().enumerate().take_while(fits);
            let expected: Vec<&str> = expected.map(|(_, text)| text.as_str()).collect();
            assert_eq!(got, expected, "behind {after} of {head}, {limit:?}");
            let positions = (after as u64 + 1..).take(got.len());
            assert!(page.entries.iter().map(|entry| entry.position).eq(positions));
            assert_eq!(page.head, head as u64);
        }
    }
    let beyond = journal.read(&key("t"), Cursor::after(head as u64 + 1), ALL).await;
    assert!(matches!(beyond, Err(JournalError::PositionUnknown { .. })));
}

/// What a run has in no chunk yet counts as everything else does.
#[tokio::test]
async fn what_is_not_packed_counts() {
    let folder = Folder::new();
    let journal = SqliteJournal::open(folder.file()).await.unwrap();
    let ended = begin(&journal, "ended").await;
    finish(&journal, &ended).await;
    let lease = begin(&journal, "t").await;
    journal.append(&lease, texts(10, 100)).await.unwrap();
    let before = read(&journal, "t", 0, ALL).await;
    assert_eq!((before.head, before.entries.len()), (12, 12));
    let sizes = async |thread| journal.thread(&key(thread)).await.unwrap().bytes;
    let (running, whole) = (sizes("t").await, sizes("t").await + sizes("ended").await);

    // By both threads' bytes it is decided whether one has to go.
    let keep = journal.retain(&Retention::new().bytes(whole)).await.unwrap();
    assert_eq!(keep.threads, []);
    let gone = journal.retain(&Retention::new().bytes(whole - 1)).await.unwrap();
    assert_eq!(gone.threads, [key("ended")]);

    let renamed = journal.rename(&key("t"), Some("Name".into())).await.unwrap();
    assert_eq!((renamed.head, renamed.bytes), (12, running));
    // No position comes twice, not even one that a thread had which was never packed.
    journal.delete(&key("t")).await.unwrap();
    let refused = journal.append(&lease, texts(1, 1)).await;
    assert!(matches!(refused, Err(JournalError::LeaseLost { .. })));
    begin(&journal, "t").await;
    assert_eq!(read(&journal, "t", 0, ALL).await.entries[0].position, 13);
}

/// A run that says nothing more keeps what it said last out of the way of those that go on: the rows
/// of groups do not grow without end.
#[tokio::test]
async fn a_silent_run_holds_up_nothing() {
    let folder = Folder::new();
    let journal = SqliteJournal::open(folder.file()).await.unwrap();
    let silent = begin(&journal, "silent").await;
    let busy = begin(&journal, "busy").await;
    let file = rusqlite::Connection::open(folder.file()).unwrap();
    let count = |sql: &str| file.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let mut most = 0;
    for _ in 0..1_000 {
        // Every second time it is packed.
        journal.append(&busy, texts(1, 30_000)).await.unwrap();
        most = most.max(count("SELECT coalesce(sum(length(events)), 0) FROM recent"));
    }
    assert!((4 << 20..9 << 20).contains(&most), "{most}");
    assert_eq!(count("SELECT count(*) FROM chunks WHERE first = 1 AND last = 2"), 1);
    journal.append(&silent, texts(1, 10)).await.unwrap();
    finish(&journal, &silent).await;
    finish(&journal, &busy).await;
    assert_eq!(read(&journal, "silent", 0, ALL).await.entries.len(), 5);
    assert_eq!(read(&journal, "busy", 0, ALL).await.entries.len(), 1_004);
}

/// What was committed and not packed is packed when the file is opened again, and a run is ended
/// behind it; runs of which nothing is left are not missed.
#[tokio::test]
async fn what_was_not_packed_is_found_again() {
    let folder = Folder::new();
    let journal = SqliteJournal::open(folder.file()).await.unwrap();
    let mut logs = Vec::new();
    for thread in ["a", "b", "gone", "done"] {
        let lease = begin(&journal, thread).await;
        for count in [1, 40, 300, 2] {
            journal.append(&lease, texts(count, 20)).await.unwrap();
        }
        if thread == "done" {
            finish(&journal, &lease).await;
        }
        logs.push((thread, read(&journal, thread, 0, ALL).await.entries));
    }
    journal.delete(&key("gone")).await.unwrap();
    journal.close().await;
    let file = rusqlite::Connection::open(folder.file()).unwrap();
    let rows = "SELECT count(*) FROM recent";
    assert!(file.query_row(rows, [], |row| row.get::<_, i64>(0)).unwrap() > 0);
    drop(file);

    let journal = SqliteJournal::open(folder.file()).await.unwrap();
    let ended = journal.recover().await.unwrap();
    assert_eq!(ended.iter().map(|run| run.thread.thread.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    for (thread, log) in logs {
        if thread == "gone" {
            let gone = journal.thread(&key(thread)).await;
            assert!(matches!(gone, Err(JournalError::ThreadNotFound)));
            continue;
        }
        let entries = read(&journal, thread, 0, ALL).await.entries;
        assert_eq!(entries[..log.len()], log);
        // The end of the message, and of the run.
        assert_eq!(entries.len() - log.len(), if thread == "done" { 0 } else { 2 });
        let bytes: usize = entries.iter().map(|entry| entry.json.len()).sum();
        assert_eq!(journal.thread(&key(thread)).await.unwrap().bytes, bytes as u64);
    }
    journal.compact(Duration::ZERO).await.unwrap();
    assert_eq!(read(&journal, "a", 0, ALL).await.entries.len(), 5);
}

/// Bytes that were damaged are named, and take nothing else with them.
#[tokio::test]
async fn damaged_events_are_named() {
    let folder = Folder::new();
    let journal = SqliteJournal::open(folder.file()).await.unwrap();
    for thread in ["bad", "good"] {
        let lease = begin(&journal, thread).await;
        journal.append(&lease, texts(2, 5)).await.unwrap();
        finish(&journal, &lease).await;
    }
    journal.close().await;
    let damages = [
        ("x''", "it has no event"),
        ("substr(events, 1, length(events) - 1)", "an event goes on behind its end"),
        ("x'ffffffffffffffffffffff'", "a number is too large"),
        ("CAST(events || x'00' AS BLOB)", "it has more events than positions"),
        ("x'08fffe'", "an event cannot be read"),
    ];
    for (damage, message) in damages {
        let copy = Folder::new();
        std::fs::copy(folder.file(), copy.file()).unwrap();
        let file = rusqlite::Connection::open(copy.file()).unwrap();
        let sql = format!("UPDATE chunks SET events = {damage} WHERE number = 1");
        file.execute(&sql, []).unwrap();
        drop(file);
        let journal = SqliteJournal::open(copy.file()).await.unwrap();
        let refused = journal.read(&key("bad"), Cursor::START, ALL).await.unwrap_err();
        assert!(matches!(refused, JournalError::Corrupt { .. }), "{refused:?}");
        assert!(refused.to_string().contains(message), "{refused}");
        assert!(matches!(journal.compact(Duration::ZERO).await, Err(JournalError::Corrupt { .. })));
        assert_eq!(read(&journal, "good", 0, ALL).await.entries.len(), 5);
        journal.snapshot(&key("bad")).await.unwrap();
        journal.close().await;
    }
}

/// So are those of runs that were going on: the file is not opened as if they had said less.
#[tokio::test]
async fn damaged_latest_events_are_named() {
    let folder = Folder::new();
    let journal = SqliteJournal::open(folder.file()).await.unwrap();
    let lease = begin(&journal, "t").await;
    journal.append(&lease, texts(2, 10)).await.unwrap();
    journal.close().await;
    let damages = [
        ("UPDATE recent SET events = x'80'", "a number is cut off"),
        ("UPDATE recent SET events = x'01017f'", "a batch goes on behind its end"),
        ("UPDATE recent SET events = x'0101020c7b'", "an event goes on behind its end"),
        ("UPDATE recent SET events = x'01ffffffffffffffffff0100'", "a position is too large"),
        ("DELETE FROM recent WHERE number = 1", "missing from position 1 to 3"),
    ];
    for (damage, message) in damages {
        let copy = Folder::new();
        std::fs::copy(folder.file(), copy.file()).unwrap();
        rusqlite::Connection::open(copy.file()).unwrap().execute(damage, []).unwrap();
        let refused = SqliteJournal::open(copy.file()).await.unwrap_err();
        assert!(matches!(refused, JournalError::Corrupt { .. }), "{damage}: {refused:?}");
        assert!(refused.to_string().contains(message), "{damage}: {refused}");
    }
    // An event that is no text is damage to its thread alone.
    let file = rusqlite::Connection::open(folder.file()).unwrap();
    file.execute("UPDATE recent SET events = x'01010204ff'", []).unwrap();
    drop(file);
    let journal = SqliteJournal::open(folder.file()).await.unwrap();
    let refused = journal.read(&key("t"), Cursor::START, ALL).await.unwrap_err();
    assert!(refused.to_string().contains("an event cannot be read"), "{refused}");
}
