//! A file that is full at any moment: whoever cannot be written is told so, nothing of it is there,
//! everything else is, and it goes on once there is room.
#![cfg(feature = "sqlite")]

mod folder;

use std::sync::Arc;

use agui_journal::suite::ManualClock;
use agui_journal::{
    Cursor, Entry, Follower, Journal, JournalError, Lease, MemoryJournal, MemoryLimits, NewRun,
    ReadLimit, Result, SqliteJournal, SqliteOptions, Tenant, ThreadKey, Until,
};
use agui_types::RunAgentInput;
use agui_types::event::{
    Event, RunFinished, RunStarted, TextMessageContent, TextMessageEnd, TextMessageStart,
};
use folder::Folder;

const ALL: ReadLimit = ReadLimit { events: usize::MAX, bytes: usize::MAX };
const THREADS: [&str; 3] = ["a", "b", "c"];

fn key(thread: &str) -> ThreadKey {
    ThreadKey::new(Tenant::default(), thread)
}

/// What is done, on which of the threads.
#[derive(Clone, Copy, Debug)]
enum Act {
    Begin,
    /// So many texts, of so many bytes each.
    Say(usize, usize),
    End,
}

/// Everything that a commit may have to do: begin, add to the row of a group, pack by number, by size,
/// what is larger than a chunk, and end.
const ACTS: [(usize, Act); 24] = [
    (0, Act::Begin),
    (0, Act::Say(3, 10)),
    (1, Act::Begin),
    (1, Act::Say(1, 9_000)),
    (0, Act::Say(300, 5)),
    (1, Act::Say(1, 20_000)),
    (1, Act::Say(1, 9_000)),
    (2, Act::Begin),
    (0, Act::Say(1, 10)),
    (2, Act::Say(1, 70_000)),
    (1, Act::Say(1, 10)),
    (0, Act::End),
    (0, Act::Begin),
    (2, Act::Say(2, 16_000)),
    (0, Act::Say(20, 1_000)),
    (1, Act::End),
    (0, Act::Say(20, 1_000)),
    (2, Act::Say(5, 10)),
    (1, Act::Begin),
    (0, Act::End),
    (1, Act::Say(5, 10)),
    (2, Act::End),
    (1, Act::Say(1, 40_000)),
    (1, Act::End),
];

/// A run with its lease in the file and that in memory, as far as it has come.
struct Run {
    file: Lease,
    memory: Lease,
    started: bool,
}

#[tokio::test]
async fn a_file_may_be_full_at_any_moment() {
    let (mut refused, mut reopened) = ([0; ACTS.len()], 0);
    for pages in (70..190).step_by(8) {
        let folder = Folder::new();
        let clock = ManualClock::new();
        let options = || SqliteOptions::new(folder.file()).clock(clock.clock()).readers(1);
        let mut file = options().max_pages(pages).open().await.unwrap();
        let memory = MemoryJournal::with(MemoryLimits::default(), clock.clock());
        let mut ballast = ballast(&file, &memory).await;
        let mut runs: [Option<Run>; 3] = [None, None, None];
        let mut viewers: Vec<(usize, Follower, Vec<Entry>)> = Vec::new();
        for (number, (thread, act)) in ACTS.into_iter().enumerate() {
            loop {
                match act_on(act, &file, &memory, (number, thread), &mut runs).await {
                    Ok(()) => break,
                    Err(error) => assert!(matches!(error, JournalError::Full { .. }), "{error:?}"),
                }
                refused[number] += 1;
                same(&file, &memory).await;
                if std::mem::take(&mut ballast) {
                    file.delete(&key("ballast")).await.unwrap();
                    memory.delete(&key("ballast")).await.unwrap();
                    continue;
                }
                // There is no room, and none is made: whoever opens the file gives it more.
                reopened += 1;
                file.close().await;
                // What it was closed with may be too much to be packed in the room there was.
                match options().max_pages(pages).open().await {
                    Ok(again) => again.close().await,
                    Err(error) => assert!(matches!(error, JournalError::Full { .. }), "{error:?}"),
                }
                file = options().open().await.unwrap();
                viewers.clear();
                for run in runs.iter_mut().filter_map(Option::take) {
                    memory.release(&run.memory).await.unwrap();
                }
                memory.recover().await.unwrap();
                same(&file, &memory).await;
                break;
            }
            if let Act::Begin = act
                && runs[thread].is_some()
                && viewers.iter().all(|(of, ..)| *of != thread)
            {
                let shared: Arc<dyn Journal> = Arc::new(file.clone());
                let viewer =
                    Follower::new(shared, key(THREADS[thread]), Cursor::START, Until::Idle);
                viewers.push((thread, viewer, Vec::new()));
            }
        }
        same(&file, &memory).await;
        for (thread, mut viewer, mut seen) in viewers {
            while let Some(page) = viewer.next().await {
                seen.extend(page.unwrap().entries);
            }
            assert!(seen == log(&file, THREADS[thread]).await.unwrap(), "{thread}");
        }
        if ballast {
            file.delete(&key("ballast")).await.unwrap();
            memory.delete(&key("ballast")).await.unwrap();
        }
        file.close().await;
        let file = options().open().await.unwrap();
        assert_eq!(file.recover().await.unwrap(), []);
        same(&file, &memory).await;
    }
    // It was met where a run begins, goes on and ends, and where there was no room left at all.
    let met = |acts: fn(Act) -> bool| {
        ACTS.iter().zip(refused).filter(|((_, act), _)| acts(*act)).map(|(_, met)| met).sum::<u32>()
    };
    assert!(met(|act| matches!(act, Act::Say(..))) > 5, "{refused:?}");
    assert!(met(|act| matches!(act, Act::End)) > 2, "{refused:?}");
    assert!(reopened > 2, "{reopened}");
}

/// A thread that takes room, and has a run going on.
async fn ballast(file: &SqliteJournal, memory: &MemoryJournal) -> bool {
    for journal in [file as &dyn Journal, memory] {
        let lease = begin(journal, "ballast", "r").await.unwrap();
        let mut events: Vec<Event> =
            vec![RunStarted::new("ballast", "r").into(), TextMessageStart::new("m").into()];
        events.push(TextMessageContent::new("m", "x".repeat(100_000)).into());
        journal.append(&lease, events).await.unwrap();
    }
    true
}

async fn begin(journal: &dyn Journal, thread: &str, run: &str) -> Result<Lease> {
    let input = RunAgentInput::new(thread, run, Vec::new());
    let begun = journal.begin(NewRun::new(Tenant::default(), "default", input)).await?;
    Ok(begun.lease)
}

/// Does it in the file, and where that was done, in memory.
async fn act_on(
    act: Act,
    file: &SqliteJournal,
    memory: &MemoryJournal,
    (number, at): (usize, usize),
    runs: &mut [Option<Run>; 3],
) -> Result<()> {
    let thread = THREADS[at];
    if let Act::Begin = act {
        let id = format!("r{number}");
        let lease = begin(file, thread, &id).await?;
        let memory = begin(memory, thread, &id).await.unwrap();
        runs[at] = Some(Run { file: lease, memory, started: false });
        return Ok(());
    }
    // The run was ended when the file was opened again.
    let Some(run) = &mut runs[at] else { return Ok(()) };
    let (id, message) = (run.file.run().clone(), format!("m{}", run.file.run()));
    let mut events: Vec<Event> = Vec::new();
    if !run.started {
        events.push(RunStarted::new(thread, id.clone()).into());
        events.push(TextMessageStart::new(&*message).into());
    }
    match act {
        Act::Begin => {}
        Act::Say(count, length) => {
            let text = |_| TextMessageContent::new(&*message, "x".repeat(length)).into();
            events.extend((0..count).map(text));
            let head = file.append(&run.file, events.clone()).await?;
            assert_eq!(memory.append(&run.memory, events).await.unwrap(), head);
            run.started = true;
        }
        Act::End => {
            events.push(TextMessageEnd::new(&*message).into());
            events.push(RunFinished::new(thread, id).into());
            let head = file.finish(&run.file, events.clone()).await?;
            assert_eq!(memory.finish(&run.memory, events).await.unwrap(), head);
            runs[at] = None;
        }
    }
    Ok(())
}

async fn log(journal: &dyn Journal, thread: &str) -> Result<Vec<Entry>> {
    Ok(journal.read(&key(thread), Cursor::START, ALL).await?.entries)
}

async fn same(file: &SqliteJournal, memory: &MemoryJournal) {
    for thread in THREADS.into_iter().chain(["ballast"]) {
        let text = |log: Result<Vec<Entry>>| format!("{log:?}");
        assert!(text(log(file, thread).await) == text(log(memory, thread).await), "{thread}");
        let key = key(thread);
        let of_file = (file.thread(&key).await, file.snapshot(&key).await);
        let of_memory = (memory.thread(&key).await, memory.snapshot(&key).await);
        assert!(format!("{of_file:?}") == format!("{of_memory:?}"), "{thread}");
    }
}
