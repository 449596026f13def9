//! Files of an older form are brought up to date when they are opened, and hold what they held.
#![cfg(feature = "sqlite")]

mod folder;

use std::path::Path;
use std::time::Duration;

use agui_journal::{
    Cursor, Facts, Journal, JournalError, Lease, NewRun, Page, ReadLimit, Snapshot, SqliteJournal,
    Tenant, ThreadInfo, ThreadKey,
};
use agui_types::RunAgentInput;
use agui_types::event::{
    Event, RunFinished, RunStarted, TextMessageContent, TextMessageEnd, TextMessageStart,
    ToolCallEnd, ToolCallStart,
};
use agui_types::message::UserMessage;
use folder::Folder;
use rusqlite::{Connection, params};

/// The first form, as it was: an event is a row.
const FIRST: &str = "
    CREATE TABLE threads (
        id INTEGER PRIMARY KEY,
        tenant TEXT NOT NULL,
        thread TEXT NOT NULL,
        name TEXT,
        owner TEXT,
        archived INTEGER NOT NULL DEFAULT 0,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        runs INTEGER NOT NULL DEFAULT 0,
        finished_runs INTEGER NOT NULL DEFAULT 0,
        last_run INTEGER NOT NULL DEFAULT 0,
        head INTEGER NOT NULL DEFAULT 0,
        floor INTEGER NOT NULL,
        bytes INTEGER NOT NULL DEFAULT 0,
        generation INTEGER NOT NULL DEFAULT 0,
        open_interrupts INTEGER NOT NULL DEFAULT 0,
        pending_calls INTEGER NOT NULL DEFAULT 0,
        UNIQUE (tenant, thread)
    ) STRICT;
    CREATE INDEX threads_by_activity ON threads (tenant, updated_at, thread);
    CREATE TABLE runs (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        thread INTEGER NOT NULL,
        run TEXT NOT NULL,
        agent TEXT NOT NULL,
        began_at INTEGER NOT NULL,
        ended_at INTEGER,
        ending TEXT,
        first INTEGER NOT NULL,
        last INTEGER,
        input TEXT,
        compacted INTEGER NOT NULL DEFAULT 0,
        shorter INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX runs_by_place ON runs (thread, last);
    CREATE INDEX runs_going_on ON runs (number) WHERE ended_at IS NULL;
    CREATE INDEX runs_to_compact ON runs (ended_at) WHERE compacted = 0 AND ended_at IS NOT NULL;
    CREATE TABLE events (
        thread INTEGER NOT NULL,
        position INTEGER NOT NULL,
        run INTEGER NOT NULL,
        kind INTEGER NOT NULL,
        json BLOB NOT NULL,
        PRIMARY KEY (thread, position)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE folded (
        thread INTEGER PRIMARY KEY,
        messages TEXT NOT NULL,
        state TEXT NOT NULL,
        interrupts TEXT NOT NULL,
        calls TEXT NOT NULL
    ) STRICT;
    CREATE TABLE floor (position INTEGER NOT NULL) STRICT;
    PRAGMA user_version = 1;
    PRAGMA application_id = 0x61677569;
";

const THREADS: [(&str, &str); 4] =
    [("default", "long"), ("default", "compacted"), ("other", "long"), ("default", "unfinished")];

/// Everything that is read of a thread.
#[derive(Debug, PartialEq)]
struct Seen {
    info: ThreadInfo,
    facts: Facts,
    snapshot: Snapshot,
    page: Page,
    /// Which positions can be read on from.
    places: Vec<bool>,
}

/// Threads of two tenants, a run that was compacted, one that is going on, large events and small
/// ones, and positions that begin behind a thread that was deleted.
#[tokio::test]
async fn a_file_of_the_first_form_reads_the_same() {
    let folder = Folder::new();
    let seen = first_form(folder.file().as_path()).await;
    let file = Connection::open(folder.file()).unwrap();
    let events: i64 = count(&file, "events");
    // A file that cannot be brought up to date stays as it is.
    file.execute_batch("CREATE TABLE recent (other)").unwrap();
    let refused = SqliteJournal::open(folder.file()).await.unwrap_err();
    assert!(matches!(refused, JournalError::Storage { .. }), "{refused:?}");
    assert_eq!((version(&file), count(&file, "events")), (1, events));
    assert!(file.prepare("SELECT * FROM chunks").is_err());
    file.execute_batch("DROP TABLE recent").unwrap();
    drop(file);

    let journal = SqliteJournal::open(folder.file()).await.unwrap();
    let recovered = journal.recover().await.unwrap();
    assert_eq!(recovered.len(), 1);
    for (seen, (tenant, thread)) in seen.iter().zip(THREADS) {
        let now = look(&journal, tenant, thread).await;
        if thread != "unfinished" {
            assert_eq!(now, *seen, "{tenant} {thread}");
            continue;
        }
        let log = &seen.page.entries;
        assert_eq!(now.page.entries[..log.len()], *log);
        // The answer to the call, the end of the message, and of the run.
        assert_eq!((now.page.entries.len() - log.len(), now.page.running), (3, None));
        let said = &seen.snapshot.messages;
        assert!(said.iter().all(|message| now.snapshot.messages.contains(message)));
        assert!(now.info.bytes > seen.info.bytes);
    }
    // And it is a journal like any other.
    let end = long_run(&journal, "default", "unfinished", "next").await;
    finish(&journal, &end).await;
    journal.compact(Duration::ZERO).await.unwrap();
    let after = look(&journal, "default", "unfinished").await;
    assert_eq!(after.info.finished_runs, 2);
    journal.close().await;
    let file = Connection::open(folder.file()).unwrap();
    assert_eq!(version(&file), 2);
    assert!(file.prepare("SELECT * FROM events").is_err());
}

/// Writes a file of the first form; gives what was read of it before.
async fn first_form(path: &Path) -> Vec<Seen> {
    let newer = Folder::new();
    let journal = SqliteJournal::open(newer.file()).await.unwrap();
    let gone = long_run(&journal, "default", "gone", "r").await;
    finish(&journal, &gone).await;
    journal.delete(gone.thread()).await.unwrap();
    for (tenant, thread) in &THREADS[..3] {
        for run in ["r1", "r2"] {
            let lease = long_run(&journal, tenant, thread, run).await;
            finish(&journal, &lease).await;
        }
        if *thread == "compacted" {
            let compacted = journal.compact(Duration::ZERO).await.unwrap();
            assert_eq!(compacted.runs, 4);
        }
    }
    long_run(&journal, "default", "unfinished", "r1").await;
    let mut seen = Vec::new();
    for (tenant, thread) in THREADS {
        seen.push(look(&journal, tenant, thread).await);
    }
    journal.close().await;

    let file = Connection::open(path).unwrap();
    file.execute_batch(FIRST).unwrap();
    file.execute("ATTACH ?1 AS newer", [newer.file().to_str().unwrap()]).unwrap();
    file.execute_batch("BEGIN").unwrap();
    for table in ["threads", "runs", "folded", "floor", "sqlite_sequence"] {
        let sql = format!("DELETE FROM {table}; INSERT INTO {table} SELECT * FROM newer.{table}");
        file.execute_batch(&sql).unwrap();
    }
    for (seen, (tenant, thread)) in seen.iter().zip(THREADS) {
        let id: i64 = file
            .query_row(
                "SELECT id FROM threads WHERE tenant = ?1 AND thread = ?2",
                [tenant, thread],
                |row| row.get(0),
            )
            .unwrap();
        let Seen { info, page, .. } = seen;
        let sizes = params![id, info.head as i64, info.bytes as i64];
        file.execute("UPDATE threads SET head = ?2, bytes = ?3 WHERE id = ?1", sizes).unwrap();
        for entry in &page.entries {
            let kind = match entry.kind {
                agui_journal::EntryKind::Started => 1,
                agui_journal::EntryKind::Finished => 2,
                agui_journal::EntryKind::Failed => 3,
                _ => 0,
            };
            file.execute(
                "INSERT INTO events SELECT ?1, ?2, number, ?3, ?4 FROM runs \
                 WHERE thread = ?1 AND first <= ?2 AND (last IS NULL OR last >= ?2)",
                params![id, entry.position as i64, kind, &*entry.json],
            )
            .unwrap();
        }
        let sql = format!("(SELECT * FROM events WHERE thread = {id})");
        assert_eq!(count(&file, &sql), page.entries.len() as i64);
    }
    file.execute_batch("COMMIT; DETACH newer").unwrap();
    seen
}

async fn look(journal: &SqliteJournal, tenant: &str, thread: &str) -> Seen {
    let key = ThreadKey::new(Tenant::new(tenant), thread);
    let all = ReadLimit { events: usize::MAX, bytes: usize::MAX };
    let page = journal.read(&key, Cursor::START, all).await.unwrap();
    let mut places = Vec::new();
    for position in (0..page.head + 2).step_by(5).chain([page.head, page.head + 1]) {
        let place = journal.read(&key, Cursor::after(position), ReadLimit::default()).await;
        places.push(place.is_ok());
    }
    Seen {
        info: journal.thread(&key).await.unwrap(),
        facts: journal.facts(&key).await.unwrap(),
        snapshot: journal.snapshot(&key).await.unwrap(),
        page,
        places,
    }
}

/// A run with many events, a large one among them, and a message that is open.
async fn long_run(journal: &SqliteJournal, tenant: &str, thread: &str, run: &str) -> Lease {
    let said = UserMessage::new(format!("{run}-said"), "Hello");
    let input = RunAgentInput::new(thread, run, vec![said.into()]);
    let begun = journal.begin(NewRun::new(Tenant::new(tenant), "default", input)).await.unwrap();
    let call = format!("{run}-call");
    let mut events: Vec<Event> = vec![
        RunStarted::new(thread, run).into(),
        ToolCallStart::new(&*call, "search").into(),
        ToolCallEnd::new(&*call).into(),
        TextMessageStart::new(run).into(),
        TextMessageContent::new(run, "x".repeat(100_000)).into(),
    ];
    events.extend((0..300).map(|at| TextMessageContent::new(run, format!("{at} ")).into()));
    journal.append(&begun.lease, events).await.unwrap();
    journal.append(&begun.lease, vec![TextMessageContent::new(run, "last").into()]).await.unwrap();
    begun.lease
}

async fn finish(journal: &SqliteJournal, lease: &Lease) {
    let (thread, run) = (lease.thread().thread.clone(), lease.run().clone());
    let end: Vec<Event> =
        vec![TextMessageEnd::new(run.as_str()).into(), RunFinished::new(thread, run).into()];
    journal.finish(lease, end).await.unwrap();
}

fn count(file: &Connection, table: &str) -> i64 {
    file.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

fn version(file: &Connection) -> i64 {
    file.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}
