//! Threads are found, named, put away and deleted.

use std::sync::Arc;
use std::time::Duration;

use agui_types::event::{RunError, RunFinished};
use agui_types::{Interrupt, InterruptOutcome};

use super::kit::*;
use crate::{Archived, Journal, JournalError, NewRun, PageToken, Tenant, ThreadKey, ThreadQuery};

/// The latest activity comes first, a moment's threads by id; pages go on where the last one ended.
pub async fn lists_are_ordered_and_paged(journal: Arc<dyn Journal>, clock: ManualClock) {
    for thread in ["b", "a", "c", "d.e:ü/ 1"] {
        say(&*journal, thread, "r").await;
    }
    clock.advance(Duration::from_millis(1));
    begin(&*journal, "z", "r").await;
    clock.advance(Duration::from_millis(1));
    say(&*journal, "a", "r2").await;
    let expected = ["a", "z", "d.e:ü/ 1", "c", "b"];
    assert_eq!(list(&*journal, query()).await, expected);
    assert_eq!(list(&*journal, query().limit(5)).await, expected);
    for limit in 1..=6 {
        let mut found = Vec::new();
        let mut token = None;
        let mut pages = 0;
        loop {
            let page = journal.threads(query().limit(limit).after(token)).await.unwrap();
            found.extend(page.threads.iter().map(|info| info.thread.to_string()));
            pages += 1;
            let Some(next) = page.next else { break };
            assert_eq!(page.threads.len(), limit);
            // A client carries it as text.
            token = Some(PageToken::new(next.as_str()));
        }
        assert_eq!(found, expected, "{limit} at a time");
        assert_eq!(pages, expected.len().div_ceil(limit));
    }
    // Naming and archiving is no activity.
    journal.rename(&key("b"), Some("First".into())).await.unwrap();
    assert_eq!(list(&*journal, query()).await, expected);
    for token in ["", "x", "zz.thread", "12345678123456781.t"] {
        let refused = journal.threads(query().after(Some(PageToken::new(token)))).await;
        assert!(matches!(refused, Err(JournalError::PageToken)), "{token:?}");
    }
}

/// By agent, owner, archive, finished runs, and what waits for a person.
pub async fn lists_are_filtered(journal: Arc<dyn Journal>, _: ManualClock) {
    let run = |thread: &str, agent: &str, owner: Option<&str>| {
        let mut run = NewRun::new(Tenant::default(), agent, input(thread, "r", Vec::new()));
        run.owner = owner.map(str::to_owned);
        run
    };
    let finish = async |thread: &str, run: NewRun| {
        let begun = journal.begin(run).await.unwrap();
        journal.finish(&begun.lease, vec![finished(thread, "r")]).await.unwrap();
    };
    finish("a", run("a", "one", Some("ada"))).await;
    finish("b", run("b", "two", Some("bob"))).await;
    finish("c", run("c", "one", None)).await;
    // A later run changes the agent, but not whose the thread is.
    finish("c", run("c", "two", Some("ada"))).await;
    journal.begin(run("d", "one", Some("ada"))).await.unwrap();
    let begun = journal.begin(run("e", "one", Some("ada"))).await.unwrap();
    let asks = InterruptOutcome::new(Interrupt::new("i", "input"));
    let asks = RunFinished::new("e", "r").outcome(asks);
    journal.finish(&begun.lease, vec![asks.into()]).await.unwrap();
    journal.archive(&key("a"), true).await.unwrap();

    assert_eq!(list(&*journal, query()).await, ["e", "d", "c", "b"]);
    assert_eq!(list(&*journal, query().agent("one")).await, ["e", "d"]);
    assert_eq!(list(&*journal, query().agent("two")).await, ["c", "b"]);
    assert_eq!(list(&*journal, query().agent("none")).await, [""; 0]);
    assert_eq!(list(&*journal, query().owner("ada")).await, ["e", "d"]);
    let all = query().archived(Archived::Include);
    assert_eq!(list(&*journal, all.owner("ada")).await, ["e", "d", "a"]);
    assert_eq!(list(&*journal, query().archived(Archived::Only)).await, ["a"]);
    assert_eq!(list(&*journal, query().with_finished_run()).await, ["e", "c", "b"]);
    assert_eq!(list(&*journal, query().waiting()).await, ["e"]);
    let other = ThreadQuery::new(Tenant::new("other"));
    assert_eq!(list(&*journal, other).await, [""; 0]);
    assert_eq!(journal.threads(query().limit(0)).await.unwrap().threads.len(), 1);
}

/// What is known of a thread changes with what is done to it, and nothing is left of a deleted one.
pub async fn threads_are_named_archived_and_deleted(journal: Arc<dyn Journal>, clock: ManualClock) {
    let created = clock.now();
    say(&*journal, "t", "r1").await;
    clock.advance(Duration::from_secs(5));
    let info = journal.rename(&key("t"), Some("Über uns".into())).await.unwrap();
    assert_eq!(info.name.as_deref(), Some("Über uns"));
    let info = journal.archive(&key("t"), true).await.unwrap();
    assert!(info.archived);
    assert_eq!((info.created_at, info.updated_at), (created, created));
    assert_eq!(journal.thread(&key("t")).await.unwrap(), info);
    // A run brings nothing back by itself.
    say(&*journal, "t", "r2").await;
    let info = journal.archive(&key("t"), false).await.unwrap();
    assert!(!info.archived);
    assert_eq!(journal.rename(&key("t"), None).await.unwrap().name, None);
    assert_eq!((info.created_at, info.updated_at), (created, clock.now()));
    assert_eq!((info.runs, info.head), (2, 12));
    journal.rename(&key("t"), Some("again".into())).await.unwrap();

    journal.delete(&key("t")).await.unwrap();
    assert!(matches!(journal.thread(&key("t")).await, Err(JournalError::ThreadNotFound)));
    assert_eq!(list(&*journal, query()).await, [""; 0]);
    let begun = begin(&*journal, "t", "r3").await;
    assert_eq!((begun.thread.runs, begun.thread.name), (1, None));
    journal.finish(&begun.lease, vec![RunError::new("over").into()]).await.unwrap();
    let snapshot = journal.snapshot(&key("t")).await.unwrap();
    assert_eq!(snapshot.messages, [user("r3-user", "Hello")]);
}

/// Clearing removes what it names and nothing else.
pub async fn clearing_keeps_to_its_tenant_and_owner(journal: Arc<dyn Journal>, _: ManualClock) {
    let other = Tenant::new("other");
    for (tenant, thread, owner) in [
        (Tenant::default(), "a", "ada"),
        (Tenant::default(), "b", "bob"),
        (Tenant::default(), "c", "ada"),
        (other.clone(), "a", "ada"),
    ] {
        let run = NewRun::new(tenant, "default", input(thread, "r", Vec::new())).owner(owner);
        journal.begin(run).await.unwrap();
    }
    assert_eq!(journal.clear(&Tenant::default(), Some("nobody")).await.unwrap(), 0);
    assert_eq!(journal.clear(&Tenant::default(), Some("ada")).await.unwrap(), 2);
    assert_eq!(list(&*journal, query()).await, ["b"]);
    assert_eq!(journal.clear(&Tenant::default(), None).await.unwrap(), 1);
    assert_eq!(journal.clear(&Tenant::default(), None).await.unwrap(), 0);
    journal.thread(&ThreadKey::new(other, "a")).await.unwrap();
}

fn query() -> ThreadQuery {
    ThreadQuery::new(Tenant::default())
}

async fn list(journal: &dyn Journal, query: ThreadQuery) -> Vec<String> {
    let page = journal.threads(query).await.expect("threads are listed");
    page.threads.iter().map(|info| info.thread.to_string()).collect()
}
