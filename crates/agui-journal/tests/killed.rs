//! A process that is killed while it writes: what its viewers were shown is still there.
#![cfg(all(feature = "sqlite", unix))]

mod folder;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use agui_journal::{
    Cursor, Entry, EntryKind, Journal, ReadLimit, SqliteJournal, Tenant, ThreadKey, codes,
};
use agui_stream::Verifier;
use agui_types::{Event, FromJson};
use folder::Folder;

/// Killed behind each event of a run, and behind many that come later, always on the same file: all
/// that was shown is in the log as it was shown, the log keeps the rules, the run has failed once,
/// and the next process writes on at once.
#[tokio::test]
async fn nothing_that_was_shown_is_lost() {
    let folder = Folder::new();
    let mut shown: BTreeMap<u64, String> = BTreeMap::new();
    let until = Instant::now() + Duration::from_secs(60);
    let (mut kills, mut head) = (0, 0);
    // A run has 16 events: every place in it is met twice.
    for lines in (0..32).chain((0..80).map(|at| at * 7 % 37)).chain([97, 211, 400]) {
        if Instant::now() > until {
            break;
        }
        shown.extend(kill_behind(&folder, lines));
        kills += 1;
        let journal = open(&folder).await;
        let recovered = journal.recover().await.unwrap();
        assert!(recovered.len() <= 1, "{recovered:?}");
        assert!(journal.recover().await.unwrap().is_empty());

        let Ok(entries) = log(&journal).await else {
            assert!(shown.is_empty(), "the thread is gone");
            journal.close().await;
            continue;
        };
        for (position, json) in &shown {
            let held = entries.iter().find(|entry| entry.position == *position);
            assert_eq!(held.map(Entry::text), Some(json.as_str()), "position {position}");
        }
        let mut verifier = Verifier::new();
        for entry in &entries {
            verifier.push(&Event::from_json_exact(entry.text()).unwrap()).unwrap();
        }
        verifier.finish().unwrap();
        let lapsed: Vec<_> =
            entries.iter().filter(|entry| entry.kind == EntryKind::Failed).collect();
        assert!(lapsed.iter().all(|entry| entry.text().contains(codes::LEASE_LAPSED)));
        assert!(lapsed.len() <= kills);
        // A writer that was killed before it had begun a run has left none to end.
        let last = entries.last().unwrap();
        let abandoned = last.kind == EntryKind::Failed && last.position > head;
        assert_eq!(recovered.len(), usize::from(abandoned));
        head = last.position;
        let info = journal.thread(&key()).await.unwrap();
        assert!(!info.is_running());
        assert_eq!(info.runs, info.finished_runs);
        journal.close().await;
    }
    assert!(kills >= 20, "only {kills} kills in the time there is");

    // And a process that nobody kills ends its run as it should.
    let journal = open(&folder).await;
    let before = journal.thread(&key()).await.unwrap();
    journal.close().await;
    let mut last = start(&folder, Some(1));
    assert!(last.wait().unwrap().success());
    let journal = open(&folder).await;
    let after = journal.thread(&key()).await.unwrap();
    assert_eq!((after.runs, after.head), (before.runs + 1, before.head + 16));
    assert_eq!(after.last_run.ending, Some(agui_stream::Ending::Completed));
}

/// Starts a writer, reads what it shows, and kills it once it has shown so many events. It goes on
/// writing until the signal arrives, so that it dies anywhere behind them.
fn kill_behind(folder: &Folder, lines: usize) -> BTreeMap<u64, String> {
    let mut writer = start(folder, None);
    let mut output = BufReader::new(writer.stdout.take().unwrap());
    let mut shown = BTreeMap::new();
    let mut line = String::new();
    for _ in 0..lines {
        line.clear();
        assert!(output.read_line(&mut line).unwrap() > 0, "the writer stopped by itself");
        take(&line, &mut shown);
    }
    writer.kill().unwrap();
    writer.wait().unwrap();
    // What it has shown meanwhile counts, but for a line that was cut.
    loop {
        line.clear();
        if output.read_line(&mut line).unwrap() == 0 || !line.ends_with('\n') {
            return shown;
        }
        take(&line, &mut shown);
    }
}

fn take(line: &str, shown: &mut BTreeMap<u64, String>) {
    let (position, json) = line.trim_end().split_once(' ').unwrap();
    let twice = shown.insert(position.parse().unwrap(), json.to_owned());
    assert_eq!(twice, None, "an event was shown twice");
}

fn start(folder: &Folder, runs: Option<u64>) -> Child {
    // Beside this test's own program, in `examples`.
    let mut program: PathBuf = std::env::current_exe().unwrap();
    program.pop();
    program.set_file_name("examples");
    program.push("journal_writer");
    assert!(program.exists(), "build the example `journal_writer` first: cargo test does");
    Command::new(program)
        .arg(folder.file())
        .args(runs.map(|runs| runs.to_string()))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

async fn open(folder: &Folder) -> SqliteJournal {
    SqliteJournal::open(folder.file()).await.unwrap()
}

fn key() -> ThreadKey {
    ThreadKey::new(Tenant::default(), "t")
}

async fn log(journal: &SqliteJournal) -> agui_journal::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    let mut cursor = Cursor::START;
    loop {
        let page = journal.read(&key(), cursor, ReadLimit::default()).await?;
        entries.extend(page.entries.iter().cloned());
        if page.is_last() {
            return Ok(entries);
        }
        cursor = page.next;
    }
}
