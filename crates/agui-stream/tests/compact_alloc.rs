//! That compaction is linear work, by what it allocates.

mod counting;

use agui_stream::compact;
use agui_types::event::{
    Custom, MessagesSnapshot, RunFinished, RunStarted, StateDelta, StateSnapshot,
    TextMessageContent, TextMessageEnd, TextMessageStart, ToolCallArgs, ToolCallEnd, ToolCallStart,
};
use agui_types::{Event, FromJson, Json, JsonPatch, Message, Metadata};

use counting::{Count, counted};

#[test]
fn a_delta_costs_no_more_in_a_long_message() {
    let (once, twice) = both(20_000, |count| {
        let mut run = vec![TextMessageStart::new("m").into()];
        run.extend((0..count).map(|_| TextMessageContent::new("m", "token ").into()));
        run.push(TextMessageEnd::new("m").into());
        run
    });
    // The text doubles as it grows; a delta asks for nothing.
    assert!(twice.calls <= once.calls + 10, "{twice:?}");
    assert!(twice.bytes <= 8 * 40_000 * "token ".len(), "{twice:?}");
}

#[test]
fn metadata_of_many_deltas_is_merged_at_once() {
    let (once, twice) = both(2_000, |count| {
        let mut run = vec![TextMessageStart::new("m").into()];
        run.extend((0..count).map(|at| {
            let metadata = Metadata::parse(&format!(r#"{{"key {at}":{at}}}"#)).expect("JSON");
            TextMessageContent::new("m", "").metadata(metadata).into()
        }));
        run.push(TextMessageEnd::new("m").into());
        run
    });
    // In pairs, so that the longer one takes one round more.
    assert!(twice.bytes <= once.bytes * 5 / 2, "{once:?} {twice:?}");
}

#[test]
fn twice_the_stream_is_twice_the_work() {
    let streams: [(&str, Stream); 4] = [
        ("many open at once", |count| {
            let ids = || (0..count).map(|at| format!("m{at}"));
            let mut run: Vec<Event> = Vec::new();
            ids().for_each(|id| run.extend([TextMessageStart::new(id).into(), custom()]));
            ids().for_each(|id| run.extend([TextMessageContent::new(id, "x").into(), custom()]));
            let ends = ids().collect::<Vec<_>>().into_iter().rev();
            run.extend(ends.map(|id| TextMessageEnd::new(id).into()));
            run
        }),
        ("calls in an open message", |count| {
            let mut run: Vec<Event> = vec![TextMessageStart::new("m").into()];
            for at in 0..count {
                run.extend([
                    TextMessageContent::new("m", "x").into(),
                    ToolCallStart::new(format!("c{at}"), "f").parent_message_id("m").into(),
                    ToolCallArgs::new(format!("c{at}"), "{").into(),
                    custom(),
                    ToolCallArgs::new(format!("c{at}"), "}").into(),
                    ToolCallEnd::new(format!("c{at}")).into(),
                ]);
            }
            run.push(TextMessageEnd::new("m").into());
            run
        }),
        ("restated messages between what stays open", |count| {
            let mut run: Vec<Event> = Vec::new();
            for at in 0..count {
                run.extend([
                    TextMessageStart::new(format!("m{at}")).into(),
                    MessagesSnapshot::new(Vec::<Message>::new()).into(),
                    TextMessageContent::new(format!("m{at}"), "x").into(),
                    custom(),
                ]);
            }
            let ends = (0..count).map(|at| TextMessageEnd::new(format!("m{at}")).into());
            run.extend(ends);
            run
        }),
        ("patches", |count| {
            let mut run: Vec<Event> = vec![StateSnapshot::new(json(r#"{"l":[]}"#)).into()];
            let patch = JsonPatch::from_json_exact(r#"[{"op":"add","path":"/l/-","value":1}]"#);
            let patch = patch.expect("a patch");
            for _ in 0..count {
                run.extend([StateDelta::new(patch.clone()).into(), custom()]);
            }
            run
        }),
    ];
    for (name, stream) in streams {
        let (once, twice) = both(1_000, stream);
        assert!(twice.calls <= once.calls * 21 / 10, "{name}: {once:?} {twice:?}");
        assert!(twice.bytes <= once.bytes * 22 / 10, "{name}: {once:?} {twice:?}");
    }
}

/// The events of a run of some size.
type Stream = fn(usize) -> Vec<Event>;

fn custom() -> Event {
    Custom::new("c", json("1")).into()
}

/// What a run of this size takes, and one of twice the size.
fn both(count: usize, run: impl Fn(usize) -> Vec<Event>) -> (Count, Count) {
    let measure = |count| {
        let mut stream: Vec<Event> = vec![RunStarted::new("t", "r").into()];
        stream.extend(run(count));
        stream.push(RunFinished::new("t", "r").into());
        let (compacted, work) = counted(|| compact(stream));
        assert!(matches!(compacted.last(), Some(Event::RunFinished(_))));
        work
    };
    (measure(count), measure(2 * count))
}

fn json(text: &str) -> Json {
    Json::parse(text).expect("JSON")
}
