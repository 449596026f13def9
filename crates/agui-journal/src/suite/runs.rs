//! Runs begin, are written, and end.

use std::sync::Arc;

use agui_stream::Ending;
use agui_types::event::{
    Event, RunError, RunStarted, StateDelta, TextMessageChunk, TextMessageContent,
};
use agui_types::{FromJson, Json, ToJson};

use super::kit::*;
use crate::{BusyPolicy, EntryKind, Journal, JournalError, NewRun, Tenant, ThreadKey};

/// Events are numbered without a gap, kept byte for byte, and known by what they are to their run.
pub async fn events_are_numbered_and_kept(journal: Arc<dyn Journal>, clock: ManualClock) {
    let begun = begin(&*journal, "t", "r").await;
    assert_eq!(begun.from.position(), 0);
    assert_eq!(begun.thread.created_at, clock.now());
    assert!(begun.thread.is_running());
    let append = |events| journal.append(&begun.lease, events);
    assert_eq!(append(vec![started("t", "r")]).await.unwrap(), 1);
    let strange = r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"\u00e9\n<&\"","metadata":{"b":1,"a":1.0}}"#;
    let strange = Event::from_json_exact(strange).unwrap();
    assert_eq!(append(vec![open("m"), strange.clone(), close("m")]).await.unwrap(), 4);
    assert_eq!(append(Vec::new()).await.unwrap(), 4);
    let end = vec![finished("t", "r")];
    assert_eq!(journal.finish(&begun.lease, end).await.unwrap(), 5);

    let entries = log(&*journal, &key("t")).await;
    assert_eq!(entries.iter().map(|entry| entry.position).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert!(entries.iter().all(|entry| entry.run.as_str() == "r"));
    assert_eq!(entries[2].text(), strange.to_json());
    let kinds: Vec<_> = entries.iter().map(|entry| entry.kind).collect();
    use EntryKind::{Event as Between, Finished, Started};
    assert_eq!(kinds, [Started, Between, Between, Between, Finished]);
    verify_log(&entries);

    let thread = journal.thread(&key("t")).await.unwrap();
    assert_eq!((thread.runs, thread.finished_runs, thread.head), (1, 1, 5));
    assert_eq!(thread.bytes, entries.iter().map(|entry| entry.json.len() as u64).sum::<u64>());
    assert_eq!(thread.last_run.ending, Some(Ending::Completed));
}

/// `RUN_STARTED` gets the input, with those messages only that the log does not hold yet.
pub async fn the_input_is_kept_with_the_messages_that_are_new(
    journal: Arc<dyn Journal>,
    _: ManualClock,
) {
    say(&*journal, "t", "r1").await;
    let said = vec![
        user("r1-user", "Hello"),
        user("r1-answer", "an id that the log knows"),
        user("new", "And you?"),
    ];
    let mut second = input("t", "r2", said);
    second.parent_run_id = Some("r1".into());
    second.forwarded_props = Some(Json::parse(r#"{"a" : 1.0}"#).unwrap());
    let begun = journal.begin(new_run(second.clone())).await.unwrap();
    journal.append(&begun.lease, vec![started("t", "r2")]).await.unwrap();
    journal.finish(&begun.lease, vec![finished("t", "r2")]).await.unwrap();

    let entries = log(&*journal, &key("t")).await;
    let Event::RunStarted(first) = event(&entries[0]) else { panic!("no start") };
    assert_eq!(first.input.unwrap().messages, [user("r1-user", "Hello")]);
    let Event::RunStarted(echo) = event(&entries[6]) else { panic!("no start") };
    second.messages.drain(..2);
    assert_eq!(*echo.input.unwrap(), second);
    verify_log(&entries);
}

/// An `input` that the agent has put into its `RUN_STARTED` stays as it is.
pub async fn an_agents_own_echo_is_kept(journal: Arc<dyn Journal>, _: ManualClock) {
    let begun = begin(&*journal, "t", "r").await;
    let own: Event = RunStarted::new("t", "r").input(input("t", "r", Vec::new())).into();
    journal.append(&begun.lease, vec![own.clone()]).await.unwrap();
    assert_eq!(log(&*journal, &key("t")).await[0].text(), own.to_json());
}

/// A state other than the thread's is in the log before anything patches it.
pub async fn a_state_that_the_client_brings_is_restated(journal: Arc<dyn Journal>, _: ManualClock) {
    let run = async |run: &str, state: Option<&str>| {
        let mut input = input("t", run, Vec::new());
        input.state = state.map(|state| Json::parse(state).unwrap());
        let begun = journal.begin(new_run(input)).await.unwrap();
        let patch = r#"{"type":"STATE_DELTA","delta":[{"op":"replace","path":"/n","value":2}]}"#;
        let patch = Event::from_json_exact(patch).unwrap();
        assert!(matches!(patch, Event::StateDelta(StateDelta { .. })));
        journal.append(&begun.lease, vec![started("t", run), patch]).await.unwrap();
        journal.finish(&begun.lease, vec![finished("t", run)]).await.unwrap();
        let entries = log(&*journal, &key("t")).await;
        let from = begun.from.position();
        let of_run: Vec<_> = entries.into_iter().filter(|entry| entry.position > from).collect();
        types(&of_run)
    };
    let plain = ["RUN_STARTED", "STATE_DELTA", "RUN_FINISHED"];
    let restated = ["RUN_STARTED", "STATE_SNAPSHOT", "STATE_DELTA", "RUN_FINISHED"];
    assert_eq!(run("r1", Some(r#"{"n":1}"#)).await, restated);
    // The thread's own, written another way.
    assert_eq!(run("r2", Some(r#"{ "n": 2.0 }"#)).await, plain);
    assert_eq!(run("r3", None).await, plain);
    assert_eq!(run("r4", Some(r#"{"n":3,"more":true}"#)).await, restated);
    let snapshot = journal.snapshot(&key("t")).await.unwrap();
    assert_eq!(snapshot.state.as_str(), r#"{"n":2,"more":true}"#);
}

/// A thread with a run refuses another one, and names the run.
pub async fn a_busy_thread_refuses(journal: Arc<dyn Journal>, _: ManualClock) {
    let begun = begin(&*journal, "t", "r1").await;
    let refused = journal.begin(new_run(input("t", "r2", Vec::new()))).await.unwrap_err();
    assert!(matches!(refused, JournalError::ThreadBusy { run } if run.as_str() == "r1"));
    begin(&*journal, "other", "r2").await;
    journal.append(&begun.lease, vec![started("t", "r1")]).await.unwrap();
    journal.finish(&begun.lease, vec![finished("t", "r1")]).await.unwrap();
    assert_eq!(journal.thread(&key("t")).await.unwrap().runs, 1);
    begin(&*journal, "t", "r2").await;
}

/// The run that was superseded is closed and cancelled, and its lease is lost.
pub async fn a_run_may_be_superseded(journal: Arc<dyn Journal>, _: ManualClock) {
    let old = begin(&*journal, "t", "r1").await;
    journal.append(&old.lease, vec![started("t", "r1"), open("m")]).await.unwrap();
    let new = new_run(input("t", "r2", Vec::new())).busy(BusyPolicy::Supersede);
    let new = journal.begin(new).await.unwrap();
    let ended = new.ended.expect("the old run ended");
    assert_eq!((ended.run.as_str(), ended.ending, ended.position), ("r1", Ending::Cancelled, 4));
    assert_eq!(new.from.position(), 4);
    let late = journal.append(&old.lease, vec![text("m", "late")]).await.unwrap_err();
    assert!(matches!(late, JournalError::LeaseLost { run } if run.as_str() == "r1"));
    journal.append(&new.lease, vec![started("t", "r2")]).await.unwrap();
    journal.finish(&new.lease, vec![finished("t", "r2")]).await.unwrap();

    let entries = log(&*journal, &key("t")).await;
    verify_log(&entries);
    assert_eq!(types(&entries)[2..4], ["TEXT_MESSAGE_END", "RUN_FINISHED"]);
    assert!(entries[3].text().contains(r#""outcome":{"type":"cancelled"}"#));
    // Nothing to supersede is no obstacle.
    let third = new_run(input("t", "r3", Vec::new())).busy(BusyPolicy::Supersede);
    assert_eq!(journal.begin(third).await.unwrap().ended, None);
}

/// The event at fault is named; those before it are in the log; the run goes on.
pub async fn what_breaks_a_rule_is_refused_and_what_came_before_is_kept(
    journal: Arc<dyn Journal>,
    _: ManualClock,
) {
    let begun = begin(&*journal, "t", "r").await;
    let early = journal.append(&begun.lease, vec![open("m")]).await.unwrap_err();
    assert!(matches!(&early, JournalError::Rule { accepted: 0, .. }), "{early}");
    let events = vec![started("t", "r"), open("m"), text("other", "lost"), close("m")];
    let refused = journal.append(&begun.lease, events).await.unwrap_err();
    let JournalError::Rule { accepted: 2, fault } = &refused else { panic!("{refused}") };
    assert_eq!(fault.rule, "C-38");
    let open_still = journal.finish(&begun.lease, vec![finished("t", "r")]).await.unwrap_err();
    assert!(matches!(&open_still, JournalError::Rule { accepted: 0, .. }), "{open_still}");
    assert_eq!(journal.append(&begun.lease, vec![close("m")]).await.unwrap(), 3);
    journal.finish(&begun.lease, vec![finished("t", "r")]).await.unwrap();
    verify_log(&log(&*journal, &key("t")).await);
}

/// A batch in which an event has no place is refused as a whole.
pub async fn what_has_no_place_is_refused(journal: Arc<dyn Journal>, _: ManualClock) {
    let begun = begin(&*journal, "t", "r").await;
    let refuse = async |events: Vec<Event>, ends: bool, at: usize| {
        let refused = match ends {
            false => journal.append(&begun.lease, events).await,
            true => journal.finish(&begun.lease, events).await,
        };
        let refused = refused.unwrap_err();
        assert!(
            matches!(&refused, JournalError::Misplaced { event, .. } if *event == at),
            "{refused:?}"
        );
    };
    let chunk = || TextMessageChunk::new().message_id("m").delta("x").into();
    refuse(vec![started("t", "r"), chunk()], false, 1).await;
    refuse(vec![started("t", "other")], false, 0).await;
    refuse(vec![started("t", "r"), started("t", "r")], false, 1).await;
    refuse(vec![started("t", "r"), finished("t", "r")], false, 1).await;
    refuse(vec![started("t", "r")], true, 0).await;
    refuse(vec![finished("t", "r"), finished("t", "r")], true, 0).await;
    refuse(Vec::new(), true, 0).await;
    assert_eq!(journal.thread(&key("t")).await.unwrap().head, 0);
    journal.append(&begun.lease, vec![started("t", "r")]).await.unwrap();
    refuse(vec![started("t", "r")], false, 0).await;
    let other = vec![Event::from(RunStarted::new("elsewhere", "r"))];
    refuse(other, false, 0).await;
    journal.finish(&begun.lease, vec![finished("t", "r")]).await.unwrap();
}

/// An agent that fails at once does not take the user's message with it.
pub async fn a_run_that_failed_before_it_began_keeps_what_was_said(
    journal: Arc<dyn Journal>,
    _: ManualClock,
) {
    let begun = begin(&*journal, "t", "r").await;
    let error = RunError::new("no model").code("AGENT_FAILED");
    assert_eq!(journal.finish(&begun.lease, vec![error.into()]).await.unwrap(), 2);
    let entries = log(&*journal, &key("t")).await;
    assert_eq!(types(&entries), ["RUN_STARTED", "RUN_ERROR"]);
    assert_eq!(entries[1].kind, EntryKind::Failed);
    let snapshot = journal.snapshot(&key("t")).await.unwrap();
    assert_eq!(snapshot.messages, [user("r-user", "Hello")]);
}

/// Once its run is over, or its thread gone, a lease is good for nothing.
pub async fn a_lease_is_lost_with_its_run(journal: Arc<dyn Journal>, _: ManualClock) {
    let lost = async |begun: &crate::Begun| {
        let lease = &begun.lease;
        let append = journal.append(lease, vec![text("m", "late")]).await.unwrap_err();
        assert!(matches!(append, JournalError::LeaseLost { .. }), "{append:?}");
        let finish = journal.finish(lease, vec![RunError::new("late").into()]).await.unwrap_err();
        assert!(matches!(finish, JournalError::LeaseLost { .. }), "{finish:?}");
        let renew = journal.renew(lease).await.unwrap_err();
        assert!(matches!(renew, JournalError::LeaseLost { .. }), "{renew:?}");
        assert_eq!(journal.stopped(lease).await, crate::Stop::LeaseLost);
    };
    let begun = say(&*journal, "t", "r1").await;
    lost(&begun).await;
    let deleted = begin(&*journal, "t", "r2").await;
    journal.delete(&key("t")).await.unwrap();
    lost(&deleted).await;
    // Not even on a thread with the same id, for a run with the same id.
    begin(&*journal, "t", "r2").await;
    lost(&deleted).await;
}

/// An interrupt is answered by a run with the id of the one that asked.
pub async fn a_run_id_may_come_twice(journal: Arc<dyn Journal>, _: ManualClock) {
    say(&*journal, "t", "r").await;
    let again = begin(&*journal, "t", "r").await;
    journal.append(&again.lease, vec![started("t", "r")]).await.unwrap();
    journal.finish(&again.lease, vec![finished("t", "r")]).await.unwrap();
    let entries = log(&*journal, &key("t")).await;
    assert_eq!(entries.len(), 8);
    verify_log(&entries);
}

/// A thread that is deleted and begun again goes on counting.
pub async fn positions_never_come_twice(journal: Arc<dyn Journal>, _: ManualClock) {
    say(&*journal, "t", "r1").await;
    journal.delete(&key("t")).await.unwrap();
    let begun = say(&*journal, "t", "r2").await;
    assert_eq!(begun.from.position(), 0);
    let positions: Vec<_> =
        log(&*journal, &key("t")).await.iter().map(|entry| entry.position).collect();
    assert_eq!(positions, [7, 8, 9, 10, 11, 12]);
    let old = crate::Cursor::after(6);
    let gone = journal.read(&key("t"), old, crate::ReadLimit::default()).await.unwrap_err();
    assert!(matches!(gone, JournalError::PositionUnknown { position: 6, first: 7, head: 12 }));
}

/// The same thread id of two tenants is two threads.
pub async fn tenants_are_apart(journal: Arc<dyn Journal>, _: ManualClock) {
    say(&*journal, "t", "r").await;
    let other = Tenant::new("other");
    let other_key = ThreadKey::new(other.clone(), "t");
    let unknown = journal.thread(&other_key).await.unwrap_err();
    assert!(matches!(unknown, JournalError::ThreadNotFound));
    let run = NewRun::new(other.clone(), "default", input("t", "r", Vec::new()));
    let begun = journal.begin(run).await.unwrap();
    let mut content = TextMessageContent::new("m", "x");
    content.delta.push('y');
    let events = vec![started("t", "r"), open("m"), content.into(), close("m")];
    journal.append(&begun.lease, events).await.unwrap();
    assert_eq!(log(&*journal, &key("t")).await.len(), 6);
    assert_eq!(log(&*journal, &other_key).await.len(), 4);
    assert_eq!(journal.clear(&other, None).await.unwrap(), 1);
    assert_eq!(log(&*journal, &key("t")).await.len(), 6);
}
