//! All journals behave alike, whatever is done to them in whatever order.
#![cfg(feature = "sqlite")]

mod folder;

use std::sync::Arc;
use std::time::Duration;

use agui_journal::suite::ManualClock;
use agui_journal::{
    Archived, BusyPolicy, Cursor, Journal, Lease, MemoryJournal, MemoryLimits, NewRun, ReadLimit,
    Retention, SqliteOptions, Tenant, ThreadKey, ThreadQuery,
};
use agui_stream::Verifier;
use agui_types::event::{
    RunError, RunFinished, RunStarted, StateSnapshot, TextMessageContent, TextMessageEnd,
    TextMessageStart, ToolCallEnd, ToolCallStart,
};
use agui_types::message::UserMessage;
use agui_types::{
    CancelledOutcome, Event, FromJson, Interrupt, InterruptOutcome, Json, ResumeEntry,
    ResumeStatus, RunAgentInput,
};
use folder::Folder;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Begin { tenant: u8, thread: u8, owner: bool, state: Option<u8>, resume: bool, busy: BusyPolicy },
    Append { lease: usize, events: Vec<Kind> },
    Finish { lease: usize, events: Vec<Kind>, end: Kind },
    Renew { lease: usize },
    Stop { tenant: u8, thread: u8, named: bool },
    Recover,
    Advance { millis: u64 },
    Read { tenant: u8, thread: u8, after: u64, events: usize },
    Rename { tenant: u8, thread: u8, named: bool },
    Archive { tenant: u8, thread: u8, archived: bool },
    Delete { tenant: u8, thread: u8 },
    Clear { tenant: u8, owner: bool },
    Compact { millis: u64 },
    Retain { idle: Option<u64>, threads: Option<u64>, bytes: Option<u64> },
    List { tenant: u8, limit: usize, archived: Archived, waiting: bool },
}

/// Events, sound or not where they are put.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Started,
    Open(u8),
    Text(u8),
    Close(u8),
    Call(u8),
    CallEnd(u8),
    State(u8),
    Finished,
    Interrupted,
    Cancelled,
    Failed,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (tenant, thread) = (|| 0..2_u8, || 0..3_u8);
    let kind = prop_oneof![
        2 => Just(Kind::Started),
        4 => (0..2_u8).prop_map(Kind::Open),
        6 => (0..2_u8).prop_map(Kind::Text),
        4 => (0..2_u8).prop_map(Kind::Close),
        2 => (0..2_u8).prop_map(Kind::Call),
        2 => (0..2_u8).prop_map(Kind::CallEnd),
        1 => (0..3_u8).prop_map(Kind::State),
        1 => Just(Kind::Failed),
    ];
    let end = prop_oneof![
        3 => Just(Kind::Finished),
        1 => Just(Kind::Interrupted),
        1 => Just(Kind::Cancelled),
        2 => Just(Kind::Failed),
        1 => Just(Kind::Text(0)),
    ];
    let busy = prop_oneof![Just(BusyPolicy::Refuse), Just(BusyPolicy::Supersede)];
    let archived =
        prop_oneof![Just(Archived::Exclude), Just(Archived::Include), Just(Archived::Only)];
    let events = prop::collection::vec(kind, 0..6);
    let begin = (tenant(), thread(), any::<bool>(), prop::option::of(0..3_u8), any::<bool>(), busy)
        .prop_map(|(tenant, thread, owner, state, resume, busy)| Step::Begin {
            tenant,
            thread,
            owner,
            state,
            resume,
            busy,
        });
    // The run that began last, most of the time.
    let lease = || prop_oneof![4 => Just(0_usize), 1 => 0..4_usize];
    // As an agent does: start, then the rest.
    let sound = events.clone().prop_map(|mut events| {
        events.insert(0, Kind::Started);
        events
    });
    let events = prop_oneof![events, sound];
    let step = prop_oneof![
        6 => begin,
        12 => (lease(), events.clone()).prop_map(|(lease, events)| Step::Append { lease, events }),
        6 => (lease(), events, end)
            .prop_map(|(lease, events, end)| Step::Finish { lease, events, end }),
        1 => lease().prop_map(|lease| Step::Renew { lease }),
        1 => (tenant(), thread(), any::<bool>())
            .prop_map(|(tenant, thread, named)| Step::Stop { tenant, thread, named }),
        1 => Just(Step::Recover),
        2 => (0..2_000_u64).prop_map(|millis| Step::Advance { millis }),
        2 => (tenant(), thread(), 0..40_u64, 1..9_usize).prop_map(|(tenant, thread, after, events)| {
            Step::Read { tenant, thread, after, events }
        }),
        1 => (tenant(), thread(), any::<bool>())
            .prop_map(|(tenant, thread, named)| Step::Rename { tenant, thread, named }),
        1 => (tenant(), thread(), any::<bool>())
            .prop_map(|(tenant, thread, archived)| Step::Archive { tenant, thread, archived }),
        1 => (tenant(), thread()).prop_map(|(tenant, thread)| Step::Delete { tenant, thread }),
        1 => (tenant(), any::<bool>()).prop_map(|(tenant, owner)| Step::Clear { tenant, owner }),
        2 => (0..1_000_u64).prop_map(|millis| Step::Compact { millis }),
        1 => (prop::option::of(0..3_000_u64), prop::option::of(0..3_u64), prop::option::of(0..3_000_u64))
            .prop_map(|(idle, threads, bytes)| Step::Retain { idle, threads, bytes }),
        1 => (tenant(), 1..3_usize, archived, any::<bool>())
            .prop_map(|(tenant, limit, archived, waiting)| {
                Step::List { tenant, limit, archived, waiting }
            }),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..Default::default() })]

    /// The journal in memory and the one in a file answer everything alike, and at every moment the
    /// log of every thread keeps the rules.
    #[test]
    fn journals_behave_alike(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let folder = Folder::new();
            let clock = ManualClock::new();
            let file = SqliteOptions::new(folder.file()).clock(clock.clock()).readers(1);
            let file: Arc<dyn Journal> = Arc::new(file.open().await.unwrap());
            let memory: Arc<dyn Journal> =
                Arc::new(MemoryJournal::with(MemoryLimits::default(), clock.clock()));
            let (mut of_file, mut of_memory) = (Actor::new(file), Actor::new(memory));
            for (at, step) in steps.iter().enumerate() {
                if let Step::Advance { millis } = step {
                    clock.advance(Duration::from_millis(*millis));
                    continue;
                }
                let answer = of_memory.act(at, step).await;
                prop_assert_eq!(of_file.act(at, step).await, answer, "step {}: {:?}", at, step);
            }
            for tenant in 0..2 {
                for thread in 0..3 {
                    let memory = of_memory.whole(tenant, thread).await;
                    prop_assert_eq!(of_file.whole(tenant, thread).await, memory);
                }
            }
            Ok(())
        })?;
    }
}

struct Actor {
    journal: Arc<dyn Journal>,
    leases: Vec<Lease>,
}

impl Actor {
    fn new(journal: Arc<dyn Journal>) -> Self {
        Self { journal, leases: Vec::new() }
    }

    fn lease(&self, lease: usize) -> Option<&Lease> {
        self.leases.iter().rev().nth(lease)
    }

    /// What the journal answers, as text.
    async fn act(&mut self, at: usize, step: &Step) -> String {
        let journal = &self.journal;
        match step {
            Step::Begin { tenant, thread, owner, state, resume, busy } => {
                let said = UserMessage::new(format!("u{}", at / 3), "Hello");
                let thread = format!("t{thread}");
                let mut input = RunAgentInput::new(&*thread, format!("r{at}"), vec![said.into()]);
                input.state = state.map(value);
                input.resume = resume.then(|| vec![ResumeEntry::new("i", ResumeStatus::Resolved)]);
                let mut run = NewRun::new(name(*tenant), "agent", input).busy(*busy);
                run.lease = Duration::from_secs(1);
                run.owner = owner.then(|| "ada".to_owned());
                match journal.begin(run).await {
                    Ok(begun) => {
                        self.leases.push(begun.lease.clone());
                        format!("{begun:?}")
                    }
                    Err(error) => format!("{error:?}"),
                }
            }
            Step::Append { lease, events } => {
                let Some(lease) = self.lease(*lease) else { return String::new() };
                let events = events.iter().map(|kind| kind.event(lease)).collect();
                format!("{:?}", journal.append(lease, events).await)
            }
            Step::Finish { lease, events, end } => {
                let Some(lease) = self.lease(*lease) else { return String::new() };
                let events = events.iter().chain([end]).map(|kind| kind.event(lease)).collect();
                format!("{:?}", journal.finish(lease, events).await)
            }
            Step::Renew { lease } => {
                let Some(lease) = self.lease(*lease) else { return String::new() };
                format!("{:?}", journal.renew(lease).await)
            }
            Step::Stop { tenant, thread, named } => {
                let run = self.leases.last().map(|lease| lease.run().clone());
                let run = run.filter(|_| *named);
                format!("{:?}", journal.request_stop(&key(*tenant, *thread), run.as_ref()).await)
            }
            Step::Recover => format!("{:?}", journal.recover().await),
            Step::Advance { .. } => String::new(),
            Step::Read { tenant, thread, after, events } => {
                let limit = ReadLimit { events: *events, bytes: 500 };
                let key = key(*tenant, *thread);
                // What a cursor knows beside its position is the journal's own business.
                let page = journal.read(&key, Cursor::after(*after), limit).await;
                let page =
                    page.map(|page| (page.entries, page.next.position(), page.head, page.running));
                format!("{page:?}")
            }
            Step::Rename { tenant, thread, named } => {
                let name = named.then(|| format!("name {at}"));
                format!("{:?}", journal.rename(&key(*tenant, *thread), name).await)
            }
            Step::Archive { tenant, thread, archived } => {
                format!("{:?}", journal.archive(&key(*tenant, *thread), *archived).await)
            }
            Step::Delete { tenant, thread } => {
                format!("{:?}", journal.delete(&key(*tenant, *thread)).await)
            }
            Step::Clear { tenant, owner } => {
                let owner = owner.then_some("ada");
                format!("{:?}", journal.clear(&name(*tenant), owner).await)
            }
            Step::Compact { millis } => {
                format!("{:?}", journal.compact(Duration::from_millis(*millis)).await)
            }
            Step::Retain { idle, threads, bytes } => {
                let mut retention = Retention::new();
                retention.idle = idle.map(Duration::from_millis);
                retention.threads = *threads;
                retention.bytes = *bytes;
                format!("{:?}", journal.retain(&retention).await)
            }
            Step::List { tenant, limit, archived, waiting } => {
                let mut query = ThreadQuery::new(name(*tenant)).limit(*limit).archived(*archived);
                query.waiting = *waiting;
                let first = journal.threads(query.clone()).await.unwrap();
                let second = journal.threads(query.after(first.next.clone())).await;
                format!("{first:?} {second:?}")
            }
        }
    }

    /// Everything there is to know of a thread, its log held to the rules.
    async fn whole(&self, tenant: u8, thread: u8) -> String {
        let key = key(tenant, thread);
        let limit = ReadLimit { events: usize::MAX, bytes: usize::MAX };
        let Ok(page) = self.journal.read(&key, Cursor::START, limit).await else {
            return "none".to_owned();
        };
        let mut verifier = Verifier::new();
        for entry in &page.entries {
            let event = Event::from_json_exact(entry.text()).unwrap();
            verifier.push(&event).unwrap();
        }
        if page.running.is_none() {
            verifier.finish().unwrap();
        }
        let info = self.journal.thread(&key).await.unwrap();
        let snapshot = self.journal.snapshot(&key).await.unwrap();
        let facts = self.journal.facts(&key).await.unwrap();
        format!("{:?} {info:?} {snapshot:?} {facts:?}", page.entries)
    }
}

impl Kind {
    fn event(self, lease: &Lease) -> Event {
        let (thread, run) = (&lease.thread().thread, lease.run());
        let message = |at: u8| format!("m{at}");
        let finished = || RunFinished::new(thread, run);
        match self {
            Self::Started => RunStarted::new(thread, run).into(),
            Self::Open(at) => TextMessageStart::new(message(at)).into(),
            Self::Text(at) => TextMessageContent::new(message(at), "word ").into(),
            Self::Close(at) => TextMessageEnd::new(message(at)).into(),
            Self::Call(at) => ToolCallStart::new(format!("c{at}"), "tool").into(),
            Self::CallEnd(at) => ToolCallEnd::new(format!("c{at}")).into(),
            Self::State(at) => StateSnapshot::new(value(at)).into(),
            Self::Finished => finished().into(),
            Self::Interrupted => {
                finished().outcome(InterruptOutcome::new(Interrupt::new("i", "input"))).into()
            }
            Self::Cancelled => finished().outcome(CancelledOutcome::new()).into(),
            Self::Failed => RunError::new("no").into(),
        }
    }
}

fn value(at: u8) -> Json {
    Json::parse(&format!(r#"{{"n":{at}}}"#)).unwrap()
}

fn name(tenant: u8) -> Tenant {
    Tenant::new(format!("tenant {tenant}"))
}

fn key(tenant: u8, thread: u8) -> ThreadKey {
    ThreadKey::new(name(tenant), format!("t{thread}"))
}
