//! What a token costs on its way through a session, counted in allocations for the thread that runs
//! the test: the growth of its text, whatever is held already.
#![cfg(feature = "session")]

#[path = "../../agui-stream/tests/counting/mod.rs"]
mod counting;

use std::sync::Mutex;

use agui_agent::session::{Session, Update};
use agui_agent::{Agent, EventStream, RunContext};
use agui_stream::fold::Change;
use agui_stream::observe::Observer;
use agui_types::event::{
    Event, RunStarted, TextMessageContent, TextMessageStart, ToolCallArgs, ToolCallStart,
};
use agui_types::message::UserMessage;
use agui_types::{Message, Reading, RunAgentInput};
use counting::{Count, counted};
use futures_util::stream;

/// Gives one run of events that are there already, so that what is counted is the session's.
struct Ready(Mutex<Vec<Event>>);

impl Agent for Ready {
    fn run(&self, input: RunAgentInput, _: RunContext) -> EventStream {
        let events = std::mem::take(&mut *self.0.lock().unwrap());
        let started = RunStarted::new(input.thread_id, input.run_id).into();
        let events = std::iter::once(started).chain(events);
        Box::pin(stream::iter(events.map(|event| Ok(Reading::from(event)))))
    }
}

/// How many tokens are counted, and how many come before.
const TOKENS: usize = 20_000;
const BEFORE: usize = 10;

/// What the tokens cost, in a session with so many messages.
fn cost(history: usize, observed: bool, opener: Event, token: &Event) -> Count {
    struct Watcher;
    impl Observer for Watcher {}

    let mut events = vec![opener];
    events.extend(std::iter::repeat_n(token, BEFORE + TOKENS).cloned());
    let message =
        |at: usize| Message::from(UserMessage::new(format!("h{at}"), "a line of history"));
    let mut session =
        Session::new(Ready(Mutex::new(events))).with_messages((0..history).map(message).collect());
    if observed {
        session.observe(Watcher);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut turn = session.run();
    let mut take = |tokens: usize| {
        runtime.block_on(async {
            let mut left = tokens;
            while left > 0 {
                match turn.next().await {
                    Some(Update::Change(
                        Change::TextAppended { .. } | Change::ArgumentsAppended { .. },
                    )) => left -= 1,
                    Some(Update::Change(_)) => {}
                    other => panic!("{other:?}"),
                }
            }
        });
    };
    take(BEFORE);
    counted(|| take(TOKENS)).1
}

#[test]
fn a_token_costs_the_growth_of_its_text_and_nothing_else() {
    for history in [10, 10_000] {
        for observed in [false, true] {
            let token = TextMessageContent::new("m", "word ").into();
            let count = cost(history, observed, TextMessageStart::new("m").into(), &token);
            // The text comes to 100 kB; it doubles its room from tens of bytes on.
            assert!(count.calls <= 13, "{history} {observed}: {count:?}");
            assert!(count.bytes <= 400_000, "{history} {observed}: {count:?}");
        }
        let fragment = ToolCallArgs::new("c", "[1,2]").into();
        let count = cost(history, false, ToolCallStart::new("c", "tool").into(), &fragment);
        assert!(count.calls <= 13, "{history}: {count:?}");
        assert!(count.bytes <= 400_000, "{history}: {count:?}");
    }
}
