//! The journal in memory and the one in a file side by side, in whatever order things are done, several
//! at once, also where commits fail, and the process that has the file is killed or closes it. At any
//! moment both give the same pages behind every cursor, and say the same of every thread.
//!
//! Where they differ by contract:
//!
//! - What a process leaves goes on in memory: there the leases are given back and the runs ended, as
//!   opening the file does, and `recover` names them, if the process that opened it is asked.
//! - A commit that fails is an error in the file, and nothing in memory: it is done again in both.
//! - A run that could not be begun may have used up a number: each journal is asked with its own lease.
//! - A cursor knows which form of the log it was read from: each journal is asked with its own.
#![cfg(feature = "sqlite")]

mod folder;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;

use agui_journal::suite::ManualClock;
use agui_journal::{
    Archived, BoxFuture, BusyPolicy, Clock, Cursor, EndedRun, Journal, JournalError, Lease,
    MemoryJournal, MemoryLimits, NewRun, Page, ReadLimit, Retention, SqliteJournal, SqliteOptions,
    Tenant, ThreadKey, ThreadQuery,
};
use agui_stream::Verifier;
use agui_types::event::{
    RunError, RunFinished, RunStarted, StateSnapshot, StepStarted, TextMessageContent,
    TextMessageEnd, TextMessageStart, ToolCallArgs, ToolCallEnd, ToolCallStart,
};
use agui_types::message::UserMessage;
use agui_types::{
    CancelledOutcome, Event, FromJson, Interrupt, InterruptOutcome, Json, ResumeEntry,
    ResumeStatus, RunAgentInput,
};
use folder::Folder;
use proptest::prelude::*;

/// What is asked for at once, and which table refuses it, if one does.
#[derive(Clone, Debug)]
enum Step {
    Together(Vec<Op>, Option<Refusal>),
    Advance(u64),
    Compact(u64),
    Retain { threads: Option<u64>, bytes: Option<u64> },
    Close,
    Kill,
    Compare,
}

#[derive(Clone, Debug)]
enum Op {
    Begin { place: Place, supersede: bool, state: Option<u8>, resume: bool },
    Append { lease: usize, shape: Shape },
    Finish { lease: usize, shape: Shape, end: u8 },
    Renew { lease: usize },
    Release { lease: usize },
    Stop { place: Place },
    Recover,
    Rename { place: Place },
    Archive { place: Place, archived: bool },
    Delete { place: Place },
    Clear { tenant: u8, owner: bool },
}

type Place = (u8, u8);

/// How many texts of what length, and what comes behind them.
#[derive(Clone, Copy, Debug)]
struct Shape(usize, usize, u8);

/// A table that takes nothing, and whether that takes the whole transaction along.
#[derive(Clone, Copy, Debug)]
struct Refusal(&'static str, bool);

const TENANTS: u8 = 2;
const THREADS: u8 = 2;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = || (0..TENANTS, 0..THREADS);
    // The runs that began last, most of the time.
    let lease = || prop_oneof![6 => 0..4_usize, 1 => 4..9_usize];
    let size = prop_oneof![
        8 => Just((1, 1)),
        3 => (0..5_usize, 0..40_usize),
        2 => (200..300_usize, Just(3)),
        2 => (3..40_usize, Just(1_000)),
        1 => (1..4_usize, Just(30_000)),
        1 => Just((1, 70_000)),
    ];
    let shape = (size, 0..9_u8).prop_map(|((count, length), more)| Shape(count, length, more));
    let begin = (place(), any::<bool>(), prop::option::of(0..3_u8), any::<bool>()).prop_map(
        |(place, supersede, state, resume)| Op::Begin { place, supersede, state, resume },
    );
    let op = prop_oneof![
        8 => begin,
        20 => (lease(), shape.clone()).prop_map(|(lease, shape)| Op::Append { lease, shape }),
        6 => (lease(), shape, 0..6_u8)
            .prop_map(|(lease, shape, end)| Op::Finish { lease, shape, end }),
        1 => lease().prop_map(|lease| Op::Renew { lease }),
        1 => lease().prop_map(|lease| Op::Release { lease }),
        1 => place().prop_map(|place| Op::Stop { place }),
        1 => Just(Op::Recover),
        1 => place().prop_map(|place| Op::Rename { place }),
        1 => (place(), any::<bool>()).prop_map(|(place, archived)| Op::Archive { place, archived }),
        2 => place().prop_map(|place| Op::Delete { place }),
        1 => (0..TENANTS, any::<bool>()).prop_map(|(tenant, owner)| Op::Clear { tenant, owner }),
    ];
    let table = prop::sample::select(vec!["recent", "chunks", "folded", "runs", "threads"]);
    let refusal = (table, any::<bool>()).prop_map(|(table, whole)| Refusal(table, whole));
    let refusal = prop_oneof![4 => Just(None), 1 => refusal.prop_map(Some)];
    let together = prop::collection::vec(op, 1..9);
    let step = prop_oneof![
        20 => (together, refusal).prop_map(|(ops, refusal)| Step::Together(ops, refusal)),
        1 => (0..2_000_u64).prop_map(Step::Advance),
        2 => (0..500_u64).prop_map(Step::Compact),
        1 => (prop::option::of(0..3_u64), prop::option::of(0..300_000_u64))
            .prop_map(|(threads, bytes)| Step::Retain { threads, bytes }),
        1 => Just(Step::Close),
        2 => Just(Step::Kill),
        5 => Just(Step::Compare),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("AGUI_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(8),
        failure_persistence: None,
        max_shrink_iters: 300,
        ..Default::default()
    })]

    #[test]
    fn a_file_is_what_memory_is(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut both = Both::new().await;
            for (at, step) in steps.iter().enumerate() {
                both.step(at, step).await;
            }
            both.compare().await;
            both.kill().await;
            both.compare().await;
        });
    }
}

struct Both {
    folder: Folder,
    clock: ManualClock,
    gate: Gate,
    file: SqliteJournal,
    memory: MemoryJournal,
    leases: Vec<Leases>,
    /// What a process has left, and nobody was told about.
    left: Vec<EndedRun>,
    /// Where to read on, in the file and in memory.
    cursors: Vec<(ThreadKey, Cursor, Cursor)>,
}

/// The leases on a run, of the file and of memory.
#[derive(Clone, Debug)]
struct Leases([Lease; 2]);

/// Holds up whoever writes, so that what is asked for meanwhile is one group.
#[derive(Clone, Default)]
struct Gate {
    closed: Arc<Mutex<()>>,
    waits: Arc<AtomicBool>,
}

impl Gate {
    fn clock(&self, clock: &ManualClock) -> Clock {
        let (gate, clock) = (self.clone(), clock.clone());
        Clock::new(move || {
            gate.waits.store(true, Ordering::SeqCst);
            drop(gate.closed.lock().unwrap_or_else(PoisonError::into_inner));
            clock.now()
        })
    }
}

impl Both {
    async fn new() -> Self {
        let (folder, clock, gate) = (Folder::new(), ManualClock::new(), Gate::default());
        let file = open(&folder, gate.clock(&clock)).await;
        let memory = MemoryJournal::with(MemoryLimits::default(), clock.clock());
        let (leases, left, cursors) = Default::default();
        Self { folder, clock, gate, file, memory, leases, left, cursors }
    }

    async fn step(&mut self, at: usize, step: &Step) {
        match step {
            Step::Together(ops, refusal) => self.together(at, ops, *refusal).await,
            Step::Advance(millis) => self.clock.advance(Duration::from_millis(*millis)),
            Step::Compact(millis) => {
                let ended_for = Duration::from_millis(*millis);
                let memory = self.memory.compact(ended_for).await;
                same(&self.file.compact(ended_for).await, &memory, step);
            }
            Step::Retain { threads, bytes } => {
                let mut retention = Retention::new();
                (retention.threads, retention.bytes) = (*threads, *bytes);
                let memory = self.memory.retain(&retention).await;
                same(&self.file.retain(&retention).await, &memory, step);
            }
            Step::Close => {
                self.file.close().await;
                self.file = open(&self.folder, self.gate.clock(&self.clock)).await;
                self.end_left().await;
            }
            Step::Kill => self.kill().await,
            Step::Compare => self.compare().await,
        }
    }

    /// What is in the files now is what a process leaves that is killed now.
    async fn kill(&mut self) {
        let left = Folder::new();
        for end in ["", "-wal"] {
            let [from, to] = [&self.folder, &left].map(|folder| {
                let mut path = folder.file().into_os_string();
                path.push(end);
                path
            });
            std::fs::copy(from, to).unwrap();
        }
        self.file.close().await;
        self.file = open(&left, self.gate.clock(&self.clock)).await;
        self.folder = left;
        self.end_left().await;
    }

    async fn end_left(&mut self) {
        for lease in &self.leases {
            let _ = self.memory.release(&lease.0[MEMORY]).await;
        }
        self.left = self.memory.recover().await.unwrap();
    }

    async fn together(&mut self, at: usize, ops: &[Op], refusal: Option<Refusal>) {
        let mut asked = Vec::new();
        for (number, op) in ops.iter().enumerate() {
            asked.extend(self.ask(at * 10 + number, op).await);
        }
        if let Some(Refusal(table, whole)) = refusal {
            let side = rusqlite::Connection::open(self.folder.file()).unwrap();
            let how = if whole { "ROLLBACK" } else { "ABORT" };
            for (name, what) in [("a", "INSERT"), ("b", "UPDATE"), ("c", "DELETE")] {
                let sql = format!(
                    "CREATE TRIGGER {name} BEFORE {what} ON {table} \
                     BEGIN SELECT RAISE({how}, 'refused'); END"
                );
                side.execute_batch(&sql).unwrap();
            }
            asked = self.ask_both(asked).await;
            side.execute_batch("DROP TRIGGER a; DROP TRIGGER b; DROP TRIGGER c").unwrap();
            // What has failed is not there.
            self.compare().await;
        }
        let refused = self.ask_both(asked).await;
        assert!(refused.is_empty(), "{refused:?}");
    }

    /// Asks the file for everything at once and memory for one thing behind the other. Gives back what
    /// the storage has refused, and memory was not asked for.
    async fn ask_both(&mut self, asked: Vec<Asked>) -> Vec<Asked> {
        let journal = self.file.clone();
        let answers = {
            let gate = self.gate.clone();
            let closed = gate.closed.lock().unwrap_or_else(PoisonError::into_inner);
            gate.waits.store(false, Ordering::SeqCst);
            // Whoever writes waits for the time with this, and finds all the others behind it.
            let first = Lease::new(key((0, 0)), "none".into(), u64::MAX);
            let mut first = Box::pin(async { journal.append(&first, Vec::new()).await });
            let mut answers: Vec<_> = Vec::new();
            let mut cx = Context::from_waker(Waker::noop());
            assert!(first.as_mut().poll(&mut cx).is_pending());
            while !gate.waits.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            let mut waiting: Vec<BoxFuture<'_, Answer>> =
                asked.iter().map(|asked| asked.of(&journal, FILE)).collect();
            for future in &mut waiting {
                assert!(future.as_mut().poll(&mut cx).is_pending());
            }
            drop(closed);
            assert!(matches!(first.await, Err(JournalError::LeaseLost { .. })));
            for future in waiting {
                answers.push(future.await);
            }
            answers
        };
        let mut refused = Vec::new();
        for (asked, answer) in asked.into_iter().zip(answers) {
            if answer.text.contains("Storage") {
                refused.push(asked);
                continue;
            }
            let mut memory = asked.of(&self.memory, MEMORY).await;
            if let Some(ended) = memory.ended {
                self.left.extend(ended);
                memory.text = format!("{:?}", std::mem::take(&mut self.left));
            }
            assert_eq!(answer.text, memory.text, "{asked:?}");
            self.leases.extend(
                answer.lease.zip(memory.lease).map(|(file, memory)| Leases([file, memory])),
            );
        }
        refused
    }

    /// What an operation comes to as things are.
    async fn ask(&self, at: usize, op: &Op) -> Option<Asked> {
        let lease = |lease: usize| self.leases.iter().rev().nth(lease).cloned();
        Some(match op {
            Op::Begin { place, supersede, state, resume } => {
                let key = key(*place);
                let said = UserMessage::new(format!("u{}", at / 3), "Hello");
                let mut input = RunAgentInput::new(key.thread, format!("r{at}"), vec![said.into()]);
                input.state = state.map(value);
                input.resume = resume.then(|| vec![ResumeEntry::new("i", ResumeStatus::Resolved)]);
                let mut run = NewRun::new(key.tenant, "agent", input);
                run.busy = if *supersede { BusyPolicy::Supersede } else { BusyPolicy::Refuse };
                run.lease = Duration::from_secs(1);
                run.owner = (place.1 == 0).then(|| "ada".to_owned());
                Asked::Begin(run)
            }
            Op::Append { lease: number, shape } => {
                let lease = lease(*number)?;
                let (events, _) = self.events(at, &lease.0[MEMORY], *shape).await;
                Asked::Append(lease, events)
            }
            Op::Finish { lease: number, shape, end } => {
                let lease = lease(*number)?;
                let of = &lease.0[MEMORY];
                let (mut events, open) = self.events(at, of, *shape).await;
                if *end < 4 {
                    events.extend(open.map(|open| TextMessageEnd::new(open).into()));
                }
                let finished = RunFinished::new(of.thread().thread.clone(), of.run().clone());
                events.push(match end {
                    0 | 1 => finished.into(),
                    2 => {
                        finished.outcome(InterruptOutcome::new(Interrupt::new("i", "input"))).into()
                    }
                    3 | 4 => finished.outcome(CancelledOutcome::new()).into(),
                    _ => RunError::new("no").into(),
                });
                Asked::Finish(lease, events)
            }
            Op::Renew { lease: number } => Asked::Renew(lease(*number)?),
            Op::Release { lease: number } => Asked::Release(lease(*number)?),
            Op::Stop { place } => Asked::Stop(key(*place)),
            Op::Recover => Asked::Recover,
            Op::Rename { place } => Asked::Rename(key(*place), format!("name {at}")),
            Op::Archive { place, archived } => Asked::Archive(key(*place), *archived),
            Op::Delete { place } => Asked::Delete(key(*place)),
            Op::Clear { tenant, owner } => Asked::Clear(name(*tenant), *owner),
        })
    }

    /// Events that keep the rules, unless the shape says otherwise or another operation comes before
    /// them; and the message that is open behind them.
    async fn events(&self, at: usize, lease: &Lease, shape: Shape) -> (Vec<Event>, Option<String>) {
        let Shape(count, length, more) = shape;
        let mut events: Vec<Event> = Vec::new();
        let Ok(snapshot) = self.memory.snapshot(lease.thread()).await else {
            return (events, None);
        };
        if !snapshot.started && snapshot.running.is_some() {
            let thread = lease.thread().thread.clone();
            events.push(RunStarted::new(thread, lease.run().clone()).into());
        }
        let mut open = snapshot.open.iter().find_map(|event| match event {
            Event::TextMessageStart(start) => Some(start.message_id.to_string()),
            _ => None,
        });
        if count > 0 {
            let message = open.get_or_insert_with(|| {
                let message = format!("m{at}");
                events.push(TextMessageStart::new(&*message).into());
                message
            });
            for number in 0..count {
                let text = format!("{number}{}", "x".repeat(length));
                events.push(TextMessageContent::new(&**message, text).into());
            }
        }
        match more {
            1 => events.extend(open.take().map(|open| TextMessageEnd::new(open).into())),
            2 | 3 => {
                let call = format!("c{at}");
                events.push(ToolCallStart::new(&*call, "tool").into());
                events.push(ToolCallArgs::new(&*call, "{}").into());
                if more == 2 {
                    events.push(ToolCallEnd::new(call).into());
                }
            }
            4 => events.push(StateSnapshot::new(value(at as u8 % 3)).into()),
            5 => events.push(StepStarted::new(format!("s{at}")).into()),
            6 => events.push(TextMessageContent::new("nobody's", "text").into()),
            _ => {}
        }
        (events, open)
    }

    async fn compare(&mut self) {
        for tenant in 0..TENANTS {
            for limit in [1, 50] {
                let mut query = ThreadQuery::new(name(tenant)).limit(limit);
                query.archived = Archived::Include;
                let file = self.file.threads(query.clone()).await;
                same(&file, &self.memory.threads(query).await, &"threads");
            }
            for thread in 0..THREADS {
                self.compare_thread(&key((tenant, thread))).await;
            }
        }
        for (key, of_file, of_memory) in std::mem::take(&mut self.cursors) {
            for limit in LIMITS {
                if let Some((file, memory)) = self.pages(&key, of_file, of_memory, limit).await
                    && self.cursors.len() < 24
                {
                    self.cursors.push((key.clone(), of_file, of_memory));
                    self.cursors.push((key.clone(), file.next, memory.next));
                }
            }
        }
    }

    async fn compare_thread(&mut self, key: &ThreadKey) {
        same(&self.file.thread(key).await, &self.memory.thread(key).await, &"thread");
        same(&self.file.snapshot(key).await, &self.memory.snapshot(key).await, &"snapshot");
        same(&self.file.facts(key).await, &self.memory.facts(key).await, &"facts");
        let Some((page, _)) = self.pages(key, Cursor::START, Cursor::START, ALL).await else {
            return;
        };
        let mut verifier = Verifier::new();
        for entry in &page.entries {
            verifier.push(&Event::from_json_exact(entry.text()).unwrap()).unwrap();
        }
        if page.running.is_none() {
            verifier.finish().unwrap();
        }
        let first = page.entries.first().map_or(0, |entry| entry.position);
        let (few, step) = (first + 12, (page.head.saturating_sub(first) / 12).max(1));
        let positions = (0..first.min(5)).chain(first.saturating_sub(2)..few);
        let positions = positions.chain((few..page.head).step_by(step as usize));
        for position in positions.chain(page.head.saturating_sub(6)..page.head + 3) {
            let cursor = Cursor::after(position);
            for limit in LIMITS {
                if let Some((file, memory)) = self.pages(key, cursor, cursor, limit).await
                    && self.cursors.len() < 16
                {
                    self.cursors.push((key.clone(), file.next, memory.next));
                }
            }
        }
    }

    async fn pages(
        &self,
        key: &ThreadKey,
        of_file: Cursor,
        of_memory: Cursor,
        limit: ReadLimit,
    ) -> Option<(Page, Page)> {
        let file = self.file.read(key, of_file, limit).await;
        let memory = self.memory.read(key, of_memory, limit).await;
        match (file, memory) {
            (Ok(file), Ok(memory)) => {
                let at = |page: &Page| (page.next.position(), page.head, page.running.clone());
                assert_eq!(at(&file), at(&memory), "{key:?} behind {of_file} {limit:?}");
                assert!(file.entries == memory.entries, "{key:?} behind {of_file} {limit:?}");
                Some((file, memory))
            }
            (file, memory) => {
                let said = |page: Result<Page, JournalError>| format!("{:?}", page.map(|_| "page"));
                assert_eq!(said(file), said(memory), "{key:?} behind {of_file} {limit:?}");
                None
            }
        }
    }
}

const FILE: usize = 0;
const MEMORY: usize = 1;

const ALL: ReadLimit = ReadLimit { events: usize::MAX, bytes: usize::MAX };
const LIMITS: [ReadLimit; 4] = [
    ALL,
    ReadLimit { events: 1, bytes: 1 },
    ReadLimit { events: 7, bytes: 400 },
    ReadLimit { events: usize::MAX, bytes: 70_000 },
];

#[derive(Clone, Debug)]
enum Asked {
    Begin(NewRun),
    Append(Leases, Vec<Event>),
    Finish(Leases, Vec<Event>),
    Renew(Leases),
    Release(Leases),
    Stop(ThreadKey),
    Recover,
    Rename(ThreadKey, String),
    Archive(ThreadKey, bool),
    Delete(ThreadKey),
    Clear(Tenant, bool),
}

/// What a journal has answered, as text; and what there is to go on with.
struct Answer {
    text: String,
    lease: Option<Lease>,
    ended: Option<Vec<EndedRun>>,
}

impl Asked {
    fn of<'j>(&self, journal: &'j dyn Journal, which: usize) -> BoxFuture<'j, Answer> {
        let asked = self.clone();
        Box::pin(async move {
            let (mut lease, mut ended) = (None, None);
            let text = match asked {
                Self::Begin(run) => {
                    let begun = journal.begin(run).await;
                    lease = begun.as_ref().ok().map(|begun| begun.lease.clone());
                    let said = |it: agui_journal::Begun| (it.from, it.thread, it.ended);
                    text(&begun.map(said))
                }
                Self::Append(lease, events) => text(&journal.append(&lease.0[which], events).await),
                Self::Finish(lease, events) => text(&journal.finish(&lease.0[which], events).await),
                Self::Renew(lease) => text(&journal.renew(&lease.0[which]).await),
                Self::Release(lease) => text(&journal.release(&lease.0[which]).await),
                Self::Stop(thread) => text(&journal.request_stop(&thread, None).await),
                Self::Recover => match journal.recover().await {
                    Ok(runs) => {
                        let text = format!("{runs:?}");
                        ended = Some(runs);
                        text
                    }
                    Err(error) => format!("{error:?}"),
                },
                Self::Rename(thread, name) => text(&journal.rename(&thread, Some(name)).await),
                Self::Archive(thread, archived) => text(&journal.archive(&thread, archived).await),
                Self::Delete(thread) => text(&journal.delete(&thread).await),
                Self::Clear(tenant, owner) => {
                    text(&journal.clear(&tenant, owner.then_some("ada")).await)
                }
            };
            Answer { text, lease, ended }
        })
    }
}

fn text<T: std::fmt::Debug>(answer: &Result<T, JournalError>) -> String {
    format!("{answer:?}")
}

#[track_caller]
fn same<T: std::fmt::Debug>(file: &T, memory: &T, what: &dyn std::fmt::Debug) {
    let (file, memory) = (format!("{file:?}"), format!("{memory:?}"));
    assert!(file == memory, "{what:?}\n  file: {file:.3000}\nmemory: {memory:.3000}");
}

async fn open(folder: &Folder, clock: Clock) -> SqliteJournal {
    SqliteOptions::new(folder.file()).clock(clock).readers(1).open().await.unwrap()
}

fn value(at: u8) -> Json {
    Json::parse(&format!(r#"{{"n":{at}}}"#)).unwrap()
}

fn name(tenant: u8) -> Tenant {
    Tenant::new(format!("tenant {tenant}"))
}

fn key((tenant, thread): Place) -> ThreadKey {
    ThreadKey::new(name(tenant), format!("t{thread}"))
}
