//! The journal in a file: the contract, and what is its own.
#![cfg(feature = "sqlite")]

mod folder;

use std::sync::Arc;
use std::time::Duration;

use agui_journal::{
    Clock, Cursor, Durability, Follower, Journal, JournalError, NewRun, ReadLimit, SqliteJournal,
    SqliteOptions, Stop, Tenant, ThreadKey, ThreadQuery, Until, codes,
};
use agui_stream::Ending;
use agui_types::event::{
    Event, RunError, RunFinished, RunStarted, TextMessageContent, TextMessageStart,
};
use agui_types::{FromJson, RunAgentInput};
use folder::Folder;

agui_journal::journal_suite!(SqliteJournal, journal);

async fn journal(clock: Clock) -> (Arc<dyn Journal>, Folder) {
    let folder = Folder::new();
    let journal = SqliteOptions::new(folder.file()).clock(clock).open().await.unwrap();
    (Arc::new(journal), folder)
}

fn key(thread: &str) -> ThreadKey {
    ThreadKey::new(Tenant::default(), thread)
}

fn run(thread: &str) -> NewRun {
    NewRun::new(Tenant::default(), "default", RunAgentInput::new(thread, "r", Vec::new()))
}

/// What was acknowledged is there when the file is opened again; a run that was going on has failed,
/// and its thread can be used.
#[tokio::test]
async fn a_file_is_taken_up_again() {
    let folder = Folder::new();
    let journal = SqliteOptions::new(folder.file()).durability(Durability::Power);
    let journal = journal.readers(1).open().await.unwrap();
    let done = journal.begin(run("done")).await.unwrap();
    journal.finish(&done.lease, vec![RunFinished::new("done", "r").into()]).await.unwrap();
    let begun = journal.begin(run("t")).await.unwrap();
    let events = vec![RunStarted::new("t", "r").into(), TextMessageStart::new("m").into()];
    journal.append(&begun.lease, events).await.unwrap();
    journal.rename(&key("t"), Some("Name".into())).await.unwrap();

    // One process at a time.
    let second = SqliteJournal::open(folder.file()).await.unwrap_err();
    assert!(matches!(second, JournalError::Contended { .. }), "{second}");
    let other = journal.clone();
    journal.close().await;
    assert!(matches!(other.recover().await, Err(JournalError::Closed)));
    other.close().await;

    let journal = SqliteJournal::open(folder.file()).await.unwrap();
    let recovered = journal.recover().await.unwrap();
    assert_eq!(recovered.len(), 1);
    assert_eq!((recovered[0].run.as_str(), recovered[0].ending), ("r", Ending::Failed));
    assert!(journal.recover().await.unwrap().is_empty());
    let page = journal.read(&key("t"), Cursor::START, ReadLimit::default()).await.unwrap();
    assert_eq!((page.entries.len(), page.running), (4, None));
    let last = Event::from_json_exact(page.entries[3].text()).unwrap();
    let Event::RunError(error) = last else { panic!("no RUN_ERROR") };
    assert_eq!(error.code.as_deref(), Some(codes::LEASE_LAPSED));
    let late = journal.append(&begun.lease, vec![]).await.unwrap_err();
    assert!(matches!(late, JournalError::LeaseLost { .. }));
    let next = journal.begin(run("t")).await.unwrap();
    assert_eq!((next.from.position(), next.thread.name.as_deref()), (4, Some("Name")));
    assert_eq!(journal.thread(&key("done")).await.unwrap().finished_runs, 1);
}

/// Whatever name a process has for the file: one that opened it beside its owner would end the
/// owner's runs.
#[cfg(unix)]
#[tokio::test]
async fn a_link_to_the_file_is_the_file() {
    let folder = Folder::new();
    let link = folder.file().with_extension("link");
    std::os::unix::fs::symlink(folder.file(), &link).unwrap();
    // It may lead to a file that is not there yet.
    let journal = SqliteJournal::open(&link).await.unwrap();
    let begun = journal.begin(run("t")).await.unwrap();
    for name in [folder.file(), link.clone()] {
        let second = SqliteJournal::open(name).await.unwrap_err();
        assert!(matches!(second, JournalError::Contended { .. }), "{second}");
    }
    let end = vec![RunFinished::new("t", "r").into()];
    journal.finish(&begun.lease, end).await.unwrap();
    journal.close().await;
    let journal = SqliteJournal::open(folder.file()).await.unwrap();
    assert!(journal.recover().await.unwrap().is_empty());
    assert_eq!(journal.thread(&key("t")).await.unwrap().finished_runs, 1);
}

/// A hard link cannot be told from the file: what has two names is refused, whoever has it.
#[cfg(unix)]
#[tokio::test]
async fn a_file_with_two_names_is_refused() {
    let folder = Folder::new();
    let second = folder.file().with_extension("second");
    let journal = SqliteJournal::open(folder.file()).await.unwrap();
    let begun = journal.begin(run("t")).await.unwrap();
    std::fs::hard_link(folder.file(), &second).unwrap();
    let refused = SqliteJournal::open(&second).await.unwrap_err();
    assert!(matches!(&refused, JournalError::Linked { names: 2, .. }), "{refused:?}");
    assert!(refused.to_string().contains("remove the hard links"), "{refused}");
    // Whoever had it before goes on.
    let end = vec![RunFinished::new("t", "r").into()];
    journal.finish(&begun.lease, end).await.unwrap();
    journal.close().await;
    for name in [folder.file(), second.clone()] {
        let refused = SqliteJournal::open(name).await.unwrap_err();
        assert!(matches!(refused, JournalError::Linked { .. }), "{refused:?}");
    }
    std::fs::remove_file(folder.file()).unwrap();
    let journal = SqliteJournal::open(second).await.unwrap();
    assert_eq!(journal.thread(&key("t")).await.unwrap().finished_runs, 1);
}

/// A file of another program, or of a newer version, is left as it is.
#[tokio::test]
async fn a_foreign_file_is_refused() {
    let folder = Folder::new();
    let connection = rusqlite::Connection::open(folder.file()).unwrap();
    connection.execute_batch("CREATE TABLE theirs (x)").unwrap();
    let refused = SqliteJournal::open(folder.file()).await.unwrap_err();
    assert!(matches!(&refused, JournalError::Corrupt { .. }), "{refused}");

    let folder = Folder::new();
    SqliteJournal::open(folder.file()).await.unwrap().close().await;
    let connection = rusqlite::Connection::open(folder.file()).unwrap();
    connection.pragma_update(None, "user_version", 1_000).unwrap();
    drop(connection);
    let newer = SqliteJournal::open(folder.file()).await.unwrap_err();
    assert!(newer.to_string().contains("newer version"), "{newer}");

    let folder = Folder::new();
    std::fs::write(folder.file(), "This is no database, but a text long enough.".repeat(40))
        .unwrap();
    let refused = SqliteJournal::open(folder.file()).await.unwrap_err();
    assert!(matches!(&refused, JournalError::Corrupt { .. }), "{refused}");
}

/// A full disk refuses what does not fit, keeps what was acknowledged, and takes up again once there
/// is room.
#[tokio::test]
async fn a_full_disk_refuses_and_loses_nothing() {
    let folder = Folder::new();
    let journal = SqliteOptions::new(folder.file()).max_pages(80).open().await.unwrap();
    let ballast = journal.begin(run("ballast")).await.unwrap();
    let large = "x".repeat(30_000);
    let text = |delta: &str| TextMessageContent::new("m", delta).into();
    let events = |thread: &str| -> Vec<Event> {
        vec![RunStarted::new(thread, "r").into(), TextMessageStart::new("m").into()]
    };
    journal.append(&ballast.lease, events("ballast")).await.unwrap();
    for _ in 0..5 {
        journal.append(&ballast.lease, vec![text(&large)]).await.unwrap();
    }
    let begun = journal.begin(run("t")).await.unwrap();
    let mut head = journal.append(&begun.lease, events("t")).await.unwrap();
    let mut deltas = 0;
    let full = loop {
        match journal.append(&begun.lease, vec![text(&large)]).await {
            Ok(position) => head = position,
            Err(error) => break error,
        }
        deltas += 1;
        assert!(deltas < 100, "the disk never filled up");
    };
    assert!(matches!(full, JournalError::Full { .. }), "{full:?}");
    let page = journal.read(&key("t"), Cursor::START, ReadLimit { events: 1_000, bytes: 1 << 30 });
    let page = page.await.unwrap();
    assert_eq!((page.head, page.entries.len() as u64), (head, head));
    assert_eq!(page.running.as_ref().map(|run| run.as_str()), Some("r"));

    journal.delete(&key("ballast")).await.unwrap();
    // There is room again, also for the thread folded, which is as large as its text. The message is still open: what was refused has left no trace.
    assert_eq!(journal.append(&begun.lease, vec![text("fits")]).await.unwrap(), head + 1);
    let error = vec![RunError::new("over").into()];
    // The end of the message comes before it.
    assert_eq!(journal.finish(&begun.lease, error).await.unwrap(), head + 3);
    let snapshot = journal.snapshot(&key("t")).await.unwrap();
    let text = serde_json::to_value(&snapshot.messages[0]).unwrap();
    assert_eq!(text["content"].as_str().unwrap().len(), deltas * 30_000 + 4);
}

/// Somebody who holds the file locked for too long is named, and what comes later goes through.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_file_is_contended() {
    let folder = Folder::new();
    let journal = SqliteJournal::open(folder.file()).await.unwrap();
    let begun = journal.begin(run("t")).await.unwrap();
    let other = rusqlite::Connection::open(folder.file()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let started = || vec![RunStarted::new("t", "r").into()];
    let refused = journal.append(&begun.lease, started()).await.unwrap_err();
    assert!(matches!(&refused, JournalError::Contended { .. }), "{refused}");
    journal.thread(&key("t")).await.unwrap();
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(journal.append(&begun.lease, started()).await.unwrap(), 1);
}

/// Many runs at once, each with a viewer: all are written, all is seen, and a future that was
/// dropped has happened as a whole or not at all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_runs_are_written_and_watched_at_once() {
    let folder = Folder::new();
    let journal: Arc<dyn Journal> = Arc::new(SqliteJournal::open(folder.file()).await.unwrap());
    let mut runs = Vec::new();
    for number in 0..40 {
        let journal = Arc::clone(&journal);
        runs.push(tokio::spawn(async move {
            let thread = format!("t{number}");
            let begun = journal.begin(run(&thread)).await.unwrap();
            let mut viewer =
                Follower::new(Arc::clone(&journal), key(&thread), begun.from, Until::Terminal);
            let viewer = tokio::spawn(async move {
                let mut seen = Vec::new();
                while let Some(page) = viewer.next().await {
                    seen.extend(page.unwrap().entries.into_iter().map(|entry| entry.position));
                }
                seen
            });
            let events: Vec<Event> =
                vec![RunStarted::new(&*thread, "r").into(), TextMessageStart::new("m").into()];
            journal.append(&begun.lease, events).await.unwrap();
            for delta in 0..50 {
                let delta = TextMessageContent::new("m", delta.to_string());
                let append = journal.append(&begun.lease, vec![delta.into()]);
                // Some callers lose patience.
                let _ = tokio::time::timeout(Duration::from_micros(number * 50), append).await;
            }
            let error = vec![RunError::new("over").into()];
            let last = journal.finish(&begun.lease, error).await.unwrap();
            assert_eq!(viewer.await.unwrap(), (1..=last).collect::<Vec<_>>());
        }));
    }
    for run in runs {
        run.await.unwrap();
    }
}

#[tokio::test]
async fn a_journal_that_was_closed_is_one_file() {
    let folder = Folder::new();
    let journal = SqliteJournal::open(folder.file()).await.unwrap();
    let begun = journal.begin(run("t")).await.unwrap();
    journal.finish(&begun.lease, vec![RunFinished::new("t", "r").into()]).await.unwrap();
    let snapshot = journal.snapshot(&key("t")).await.unwrap();
    journal.close().await;

    let elsewhere = Folder::new();
    std::fs::copy(folder.file(), elsewhere.file()).unwrap();
    let copy = SqliteJournal::open(elsewhere.file()).await.unwrap();
    assert_eq!(copy.recover().await.unwrap(), []);
    assert_eq!(copy.snapshot(&key("t")).await.unwrap(), snapshot);
    copy.close().await;
}

/// Behind its end a journal answers nothing, since the file may be another process's, and nobody waits
/// for an event that cannot come.
#[tokio::test]
async fn a_closed_journal_answers_nobody() {
    let folder = Folder::new();
    let journal = SqliteJournal::open(folder.file()).await.unwrap();
    let idle = journal.begin(run("idle")).await.unwrap();
    let end = journal.finish(&idle.lease, vec![RunFinished::new("idle", "r").into()]);
    let end = end.await.unwrap();
    let going = journal.begin(run("going")).await.unwrap();
    let started = journal.append(&going.lease, vec![RunStarted::new("going", "r").into()]);
    let started = started.await.unwrap();

    let (idle, going, lease) = (key("idle"), key("going"), going.lease);
    let (at_rest, at_work, stop, ()) = tokio::join!(
        journal.changed(&idle, end),
        journal.changed(&going, started),
        journal.stopped(&lease),
        journal.close(),
    );
    let closed = |error: JournalError| assert!(matches!(error, JournalError::Closed), "{error:?}");
    closed(at_rest.unwrap_err());
    closed(at_work.unwrap_err());
    assert_eq!(stop, Stop::LeaseLost);
    for thread in [&idle, &going] {
        let read = journal.read(thread, Cursor::START, ReadLimit::default());
        closed(read.await.unwrap_err());
        closed(journal.changed(thread, 0).await.unwrap_err());
        closed(journal.snapshot(thread).await.unwrap_err());
        closed(journal.facts(thread).await.unwrap_err());
        closed(journal.thread(thread).await.unwrap_err());
    }
    closed(journal.threads(ThreadQuery::new(Tenant::default())).await.unwrap_err());
    closed(journal.append(&lease, Vec::new()).await.unwrap_err());
}

/// What people say is for the owner of the file; a file that is there keeps its mode.
#[cfg(unix)]
#[tokio::test]
async fn files_are_made_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let mode = |end: &str| {
        let mut path = folder.file().into_os_string();
        path.push(end);
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    let journal = SqliteJournal::open(folder.file()).await.unwrap();
    journal.begin(run("t")).await.unwrap();
    assert_eq!(["", "-wal", "-shm", "-lock"].map(mode), [0o600; 4]);
    journal.close().await;

    let shared = std::fs::Permissions::from_mode(0o640);
    std::fs::set_permissions(folder.file(), shared).unwrap();
    let journal = SqliteJournal::open(folder.file()).await.unwrap();
    assert_eq!(mode(""), 0o640);
    journal.close().await;
}
