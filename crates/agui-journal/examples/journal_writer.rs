//! Writes runs into a journal in a file and says on standard output what a viewer of it was shown:
//! `POSITION JSON`, a line for each event. Made to be killed at any moment.
//!
//! ```text
//! journal_writer FILE [RUNS]
//! ```
#![allow(clippy::print_stdout, reason = "what it shows is its output")]

use std::io::Write as _;
use std::sync::Arc;

use agui_journal::{Follower, Journal, NewRun, SqliteJournal, Tenant, Until};
use agui_types::RunAgentInput;
use agui_types::event::{
    Event, RunFinished, RunStarted, StepFinished, StepStarted, TextMessageContent, TextMessageEnd,
    TextMessageStart,
};
use agui_types::message::UserMessage;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("usage: journal_writer FILE [RUNS]")?;
    let runs: u64 = arguments.next().map_or(Ok(u64::MAX), |runs| runs.parse())?;
    let journal: Arc<dyn Journal> = Arc::new(SqliteJournal::open(file).await?);
    let mut number = journal.thread(&key()).await.map_or(0, |thread| thread.runs);
    let last = number.saturating_add(runs);
    while number < last {
        number += 1;
        write(&journal, number).await?;
    }
    Ok(())
}

fn key() -> agui_journal::ThreadKey {
    agui_journal::ThreadKey::new(Tenant::default(), "t")
}

/// One run, each event shown once it is in the log.
async fn write(journal: &Arc<dyn Journal>, number: u64) -> Result<(), Failure> {
    let run = format!("r{number}");
    let said = UserMessage::new(format!("u{number}"), "Hello");
    let input = RunAgentInput::new("t", &*run, vec![said.into()]);
    let begun = journal.begin(NewRun::new(Tenant::default(), "default", input)).await?;
    let mut viewer = Follower::new(Arc::clone(journal), key(), begun.from, Until::Terminal);
    let message = format!("m{number}");
    let mut events: Vec<Event> = vec![
        RunStarted::new("t", &*run).into(),
        StepStarted::new("talk").into(),
        TextMessageStart::new(&*message).into(),
    ];
    events.extend((0..10).map(|at| TextMessageContent::new(&*message, format!("{at} ")).into()));
    events.push(TextMessageEnd::new(&*message).into());
    events.push(StepFinished::new("talk").into());
    for event in events {
        journal.append(&begun.lease, vec![event]).await?;
        show(&mut viewer).await?;
    }
    journal.finish(&begun.lease, vec![RunFinished::new("t", &*run).into()]).await?;
    show(&mut viewer).await
}

async fn show(viewer: &mut Follower) -> Result<(), Failure> {
    let Some(page) = viewer.next().await else { return Ok(()) };
    let mut out = std::io::stdout().lock();
    for entry in page?.entries {
        writeln!(out, "{} {}", entry.position, entry.text())?;
    }
    out.flush()?;
    Ok(())
}
