//! What observers cost, counted in allocations for the thread that runs the test: nothing where there
//! are none, and nothing for a token where they change nothing.

mod counting;

use agui_stream::fold::{Applied, Conversation};
use agui_stream::observe::{Observer, Observers};
use agui_types::event::{Event, TextMessageContent, TextMessageStart, ToolCallArgs, ToolCallStart};
use agui_types::json::Value;
use counting::counted;

/// The calls of the allocator that a thousand of these events take.
fn cost(event: &Event, mut apply: impl FnMut(&Event, &mut Conversation, &mut Applied)) -> usize {
    let mut conversation = Conversation::new(Vec::new(), Value::Null);
    let mut applied = Applied::default();
    for opener in [
        Event::from(TextMessageStart::new("m")),
        ToolCallStart::new("c", "f").into(),
        // What comes first makes room.
        event.clone(),
    ] {
        apply(&opener, &mut conversation, &mut applied);
    }
    let ((), count) =
        counted(|| (0..1_000).for_each(|_| apply(event, &mut conversation, &mut applied)));
    count.calls
}

fn observed(mut observers: Observers<'_>, event: &Event) -> usize {
    cost(event, |event, conversation, applied| {
        assert!(observers.apply(event, conversation, applied).errors.is_empty());
    })
}

#[test]
fn none_cost_nothing_and_one_that_only_watches_a_token_neither() {
    struct Watcher;
    impl Observer for Watcher {}
    let mut watched = Observers::new();
    watched.add(Watcher);

    let token = Event::from(TextMessageContent::new("m", "token "));
    let alone = cost(&token, |event, conversation, applied| conversation.apply(event, applied));
    assert_eq!(observed(Observers::new(), &token), alone);
    assert_eq!(observed(watched, &token), alone);

    let delta = Event::from(ToolCallArgs::new("c", "[1,"));
    let alone = cost(&delta, |event, conversation, applied| conversation.apply(event, applied));
    assert_eq!(observed(Observers::new(), &delta), alone);
}
