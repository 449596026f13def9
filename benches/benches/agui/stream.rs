//! From events to a conversation.

use std::hint::black_box;
use std::rc::Rc;

use agui_stream::fold::Applied;
use agui_stream::patch::{Document, PatchLimits};
use agui_stream::{Conversation, PartialJson, Pipeline, Verifier, compact};
use agui_types::event::{StateDelta, ToolCallArgs, ToolCallStart};
use agui_types::json::Value;
use agui_types::{Event, FromJson, JsonPatch, Message};
use agui_wire::{Decoder, Limits, WireForm};

use crate::data::{Data, READ, number};
use crate::measure::{Case, timed};
use crate::table::Row;
use crate::{floor, peers};

pub(crate) const ROWS: &[Row] = &[
    Row::times("fold W1: Conversation", "fold W1: serde_json and push_str", 1.5),
    Row::times("fold W1: Conversation", "fold W1: ag-ui 0.5", 1.0),
    Row::times("fold W2: Conversation", "fold W2: ag-ui 0.5", 1.0),
    Row::times("fold W3: Conversation", "fold W3: ag-ui 0.5", 1.0),
    Row::times("fold W4: Conversation", "fold W4: ag-ui 0.5", 1.0),
    Row::times("fold 50,000 tokens", "fold 5,000 tokens", 1.2),
    Row::times("fold 500,000 tokens", "fold 5,000 tokens", 1.2),
    Row::times("fold W3 behind 1,000 messages", "fold W3 behind 10 messages", 1.2),
    Row::times("fold W3 behind 10,000 messages", "fold W3 behind 10 messages", 1.2),
    Row::within("verify and fold W1", "", 100.0),
    Row::beside("verify W1", ""),
    Row::beside("pipeline and fold W1", ""),
    Row::times("patch a state of 10 MB", "patch a state of 10 kB", 1.2),
    Row::times("fold a patch of 10 MB", "fold a patch of 10 kB", 1.2),
    Row::times("show 10,000 pieces of arguments", "show 5,000 pieces of arguments", 1.2),
    Row::times("show 20,000 pieces of arguments", "show 10,000 pieces of arguments", 1.2),
    Row::times("fold 10,000 pieces of arguments", "fold 1,000 pieces of arguments", 1.2),
    Row::times("compact 500,000 tokens", "compact 50,000 tokens", 1.2),
    Row::beside("compact W2", ""),
];

pub(crate) fn case(name: &str, data: &Data) -> Option<Case> {
    let (verb, rest) = name.split_once(' ')?;
    let (object, size) = rest.rsplit_once(' ').unwrap_or((rest, ""));
    let first = rest.split([' ', ':']).next()?;
    let tokens = number(first).filter(|_| rest.ends_with("tokens")).map(|it| data.tokens(it));
    let stream = tokens.as_ref().or_else(|| data.stream(first));
    Some(match (verb, object) {
        ("patch", "a state of 10") => patching(state(size)?),
        ("fold", "a patch of 10") => folding_patches(state(size)?),
        ("show", _) => showing(number(first)?),
        ("fold", _) if rest.ends_with("pieces of arguments") => folding_pieces(number(first)?),
        ("fold", _) if rest.ends_with("messages") => {
            let messages = number(rest.split(' ').nth(2)?)?;
            folding(&stream?.body, stream?.len(), data.history(messages))
        }
        ("fold", _) if rest.ends_with("push_str") => {
            let stream = stream?.clone();
            Case::new(stream.len(), stream.body.len(), move || {
                black_box(floor::fold(&stream.texts));
            })
        }
        ("fold", _) if rest.ends_with("ag-ui 0.5") => peers::folding(stream?),
        ("fold", _) => folding(&stream?.body, stream?.len(), Vec::new()),
        ("verify", "and fold") => verifying(data.stream(size)?.events(), true),
        ("verify", _) => verifying(stream?.events(), false),
        ("pipeline", _) => piping(data.stream(size)?.events()),
        ("compact", _) => compacting(stream?.events()),
        _ => return None,
    })
}

/// Everything from the bytes of a body to the conversation they leave.
pub(crate) fn fold(body: &[u8], conversation: &mut Conversation) {
    let mut decoder = Decoder::new(WireForm::Sse, Limits::default());
    let mut pipeline = Pipeline::new();
    let (mut events, mut warnings) = (Vec::new(), Vec::new());
    let mut applied = Applied::default();
    for mut read in black_box(body).chunks(READ) {
        while let Some(decoded) = decoder.decode(&mut read).unwrap() {
            let Some(reading) = decoded.event else { continue };
            pipeline.push(reading, &mut events, &mut warnings).unwrap();
            for event in events.drain(..) {
                conversation.apply(&event, &mut applied);
                black_box(&applied);
            }
        }
    }
    assert!(decoder.finish().unwrap().last.is_none());
    pipeline.finish().unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
}

/// The history is not part of what counts, and neither is taking down the conversation.
pub(crate) fn folding(body: &Rc<[u8]>, events: usize, history: Vec<Message>) -> Case {
    let body = Rc::clone(body);
    Case::timed(events, body.len(), move || {
        let mut conversation = Conversation::new(history.clone(), empty());
        timed(|| fold(&body, &mut conversation))
    })
}

fn verifying(events: Vec<Event>, and_fold: bool) -> Case {
    Case::new(events.len(), 0, move || {
        let mut verifier = Verifier::new();
        let mut conversation = Conversation::new(Vec::new(), empty());
        let mut applied = Applied::default();
        for event in black_box(&events) {
            verifier.push(event).unwrap();
            if and_fold {
                conversation.apply(event, &mut applied);
                black_box(&applied);
            }
        }
        black_box(&conversation);
    })
}

/// All stages, for events that were read already.
fn piping(events: Vec<Event>) -> Case {
    Case::timed(events.len(), 0, move || {
        let events = events.clone();
        let mut conversation = Conversation::new(Vec::new(), empty());
        let mut pipeline = Pipeline::new();
        let (mut out, mut warnings) = (Vec::new(), Vec::new());
        let mut applied = Applied::default();
        timed(|| {
            for event in events {
                pipeline.push(event.into(), &mut out, &mut warnings).unwrap();
                for event in out.drain(..) {
                    conversation.apply(&event, &mut applied);
                    black_box(&applied);
                }
            }
        })
    })
}

fn compacting(events: Vec<Event>) -> Case {
    Case::timed(events.len(), 0, move || {
        let events = events.clone();
        timed(|| compact(events))
    })
}

fn patching(state: Value) -> Case {
    let patches = patches(&state);
    let mut document = Document::new(state);
    Case::new(patches.len(), 0, move || {
        for patch in &patches {
            document.apply(black_box(patch), &PatchLimits::default()).unwrap();
        }
    })
}

fn folding_patches(state: Value) -> Case {
    let patches = patches(&state);
    let deltas: Vec<Event> = patches.into_iter().map(|it| StateDelta::new(it).into()).collect();
    let mut conversation = Conversation::new(Vec::new(), state);
    let mut applied = Applied::default();
    Case::new(deltas.len(), 0, move || {
        for delta in &deltas {
            conversation.apply(black_box(delta), &mut applied);
            assert!(applied.warnings.is_empty());
        }
    })
}

/// The rows of a state about as large as W4's, or ten times or a hundredth of that.
fn state(size: &str) -> Option<Value> {
    let rows = match size {
        "MB" => 75_000,
        "kB" => 75,
        _ => return None,
    };
    let row = |at: usize| {
        format!(
            r#"{{"id":"row-{at}","title":"the title of row {at}","note":"nothing of note about it, but in {} words","done":true,"score":{}}}"#,
            at % 100,
            at % 1000
        )
    };
    let rows: Vec<String> = (0..rows).map(row).collect();
    let text = format!(r#"{{"version":1,"cursor":{{"page":0}},"rows":[{}]}}"#, rows.join(","));
    Some(Value::parse(&text).unwrap())
}

/// A thousand patches of two operations each, at seventy-five rows all over the state.
fn patches(state: &Value) -> Vec<JsonPatch> {
    let Some(Value::Array(rows)) = state.get("rows") else { panic!("there are rows") };
    let step = rows.len() / 75;
    let patch = |at: usize| {
        let text = format!(
            r#"[{{"op":"replace","path":"/rows/{}/score","value":{at}}},{{"op":"replace","path":"/cursor/page","value":{at}}}]"#,
            at * 7 % 75 * step
        );
        JsonPatch::from_json_exact(&text).unwrap()
    };
    (0..1000).map(patch).collect()
}

/// A tool call's arguments, so many pieces of 105 bytes.
fn arguments(pieces: usize) -> Vec<String> {
    let row =
        |at: usize| format!(r#"{{"city":"the \"{at}th\" city","days":[1,2,{at}],"go":true}}"#);
    let rows: Vec<String> = (0..pieces * 2).map(row).collect();
    let text = format!(r#"{{"cities":[{}]}}"#, rows.join(","));
    assert!(text.is_ascii());
    let pieces = text.as_bytes().chunks(105).take(pieces);
    pieces.map(|piece| String::from_utf8_lossy(piece).into_owned()).collect()
}

/// The value is looked at behind each piece, as a view that shows it would.
fn showing(pieces: usize) -> Case {
    let pieces = arguments(pieces);
    Case::timed(pieces.len(), pieces.iter().map(String::len).sum(), move || {
        let mut json = PartialJson::new();
        timed(|| {
            for piece in &pieces {
                json.push(black_box(piece));
                black_box(json.value());
            }
        })
    })
}

fn folding_pieces(pieces: usize) -> Case {
    let pieces = arguments(pieces);
    let bytes = pieces.iter().map(String::len).sum();
    let deltas = pieces.into_iter().map(|piece| ToolCallArgs::new("call", piece).into());
    let deltas: Vec<Event> = deltas.collect();
    Case::new(deltas.len(), bytes, move || {
        let mut conversation = Conversation::new(Vec::new(), empty());
        let mut applied = Applied::default();
        conversation.apply(&ToolCallStart::new("call", "tool").into(), &mut applied);
        for delta in &deltas {
            conversation.apply(black_box(delta), &mut applied);
            assert_eq!(applied.changes.len(), 1);
        }
    })
}

pub(crate) fn empty() -> Value {
    Value::Object(Default::default())
}
