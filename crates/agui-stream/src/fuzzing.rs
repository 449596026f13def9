//! What the fuzz targets and property tests call. Not part of the public interface.
//!
//! Each function takes any bytes, and panics where a promise of the crate does not hold.

use std::collections::HashSet;

use agui_types::json::{MAX_DEPTH, Value};
use agui_types::{Event, EventReader, FromJson, JsonPatch, ToJson};

use crate::fold::Applied;
use crate::partial::PartialState;
use crate::patch::{self, Document, PatchLimits};
use crate::{Compactor, Conversation, Fault, PartialJson, Pipeline, Verifier, Warning, compact};

/// Lines of JSON as the events of a stream: whatever they are, what is delivered conforms, goes
/// through a second time unchanged, and takes no more room than its lines account for.
pub fn pipeline(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let (mut reader, mut pipeline) = (EventReader::new(), Pipeline::new());
    let (mut conversation, mut applied) = (conversation(), Applied::default());
    let mut delivered = Vec::new();
    let mut room = LIMITS.size;
    for line in text.lines() {
        let first = delivered.len();
        let mut warnings = Vec::new();
        let verdict = match reader.tolerant(line) {
            Ok(reading) => pipeline.push(reading, &mut delivered, &mut warnings),
            Err(error) => Err(pipeline.push_unreadable(&error)),
        };
        for event in &delivered[first..] {
            conversation.apply(event, &mut applied);
            warnings.append(&mut applied.warnings);
            assert!(warnings.iter().all(|warning| warning.rule != "C-43"), "{warnings:?}");
        }
        check_warnings(&warnings, line);
        // An escape of six bytes is one of three at most; numbers and names stay as they are.
        room += 8 * line.len() + 64;
        assert!(conversation.state().to_string().len() <= room);
        if let Err(fault) = verdict {
            check_fault(&fault);
            assert_eq!(pipeline.finish(), Err(fault));
            break;
        }
    }
    again(&delivered);
}

/// Two texts, a document and a patch: all of it applies or nothing, and a difference leads from one
/// document to the other.
pub fn patch(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Some((document, patch)) = text.split_once('\n') else { return };
    let Ok(before) = Value::parse(document) else { return };
    let Ok(patch) = JsonPatch::from_json_tolerant(patch) else { return };
    for limits in [LIMITS, LIMITS.with_size(64).with_depth(4).with_operations(3).with_work(8)] {
        let mut document = Document::new(before.clone());
        match document.apply(&patch.value, &limits) {
            Ok(()) => {
                assert!(document.size() <= limits.size.max(Document::new(before.clone()).size()));
                leads_to(&before, document.value());
                leads_to(document.value(), &before);
            }
            Err(error) => {
                assert!(error.operation < patch.value.len() && !error.to_string().is_empty());
                assert_eq!(document.value().to_string(), before.to_string());
            }
        }
        assert_eq!(document.size(), Document::new(document.value().clone()).size());
    }
}

fn leads_to(from: &Value, to: &Value) {
    let mut document = Document::new(from.clone());
    let patch = patch::diff(from, to);
    // A difference is larger than either document where names are long, and may take more steps.
    let limits = PatchLimits::default().with_depth(MAX_DEPTH);
    let limits = limits.with_work(usize::MAX).with_work_per_byte(usize::MAX);
    if patch.len() <= limits.operations {
        document.apply(&patch, &limits).expect("a difference applies");
        assert_eq!(document.value(), to);
    }
}

/// A text in pieces of as many characters as the bytes before the first line end say: the pieces
/// change nothing, and what is shown at any time is JSON.
pub fn partial_json(input: &[u8]) {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let (lengths, text) = input.split_at(end);
    let Ok(text) = std::str::from_utf8(text.get(1..).unwrap_or_default()) else { return };
    let mut whole = PartialJson::new();
    whole.push(text);

    let mut cut = PartialJson::new();
    let mut rest = text;
    // What is shown is read as a whole each time, so not after ever so many.
    for length in lengths.iter().cycle().take(128) {
        let length = rest.char_indices().nth(usize::from(*length)).map_or(rest.len(), |it| it.0);
        let (piece, after) = rest.split_at(length);
        rest = after;
        cut.push(piece);
        shows_json(&cut);
    }
    cut.push(rest);
    shows_json(&cut);
    assert_eq!(cut.state(), whole.state());
    assert_eq!(cut.repaired(), whole.repaired());
    match whole.state() {
        PartialState::Complete => assert_eq!(whole.value(), Value::parse(text).ok().as_ref()),
        PartialState::Incomplete => assert!(Value::parse(text).is_err()),
        PartialState::Invalid(error) => assert!(text.is_char_boundary(error.offset())),
    }
}

fn shows_json(partial: &PartialJson) {
    let repaired = partial.repaired();
    match partial.value() {
        Some(value) => assert_eq!(Value::parse(&repaired).as_ref(), Ok(value)),
        None => assert_eq!(repaired, ""),
    }
}

/// Lines of JSON as the events of a stream: compacting them never panics, and what conforms folds to
/// the same afterwards, conforms still, and has not grown.
pub fn compaction(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let mut reader = EventReader::new();
    let readings = text.lines().map_while(|line| reader.tolerant(line).ok());
    let events: Vec<Event> = readings.map(|reading| reading.value).collect();
    let _ = compact(events);

    let events = conforming(text);
    let compacted = compact(events.clone());
    assert!(compacted.len() <= events.len());
    if !ids_are_unique(&events) {
        return;
    }
    assert_eq!(fold(&compacted), fold(&events));
    assert_eq!(compact(compacted.clone()), compacted);

    let mut compactor = Compactor::new().merge_reasoning();
    events.iter().for_each(|event| compactor.push(event.clone()));
    assert_eq!(fold(&compactor.finish()), fold(&events));
}

/// Whether no two messages come to share an id, which P-28 forbids: what a later event means by it
/// is then anyone's guess.
fn ids_are_unique(events: &[Event]) -> bool {
    let (mut conversation, mut applied) = (conversation(), Applied::default());
    events.iter().all(|event| {
        conversation.apply(event, &mut applied);
        let mut ids = HashSet::new();
        conversation.messages().iter().all(|message| ids.insert(message.id()))
    })
}

/// What a stream that keeps the rules comes to, part by part.
fn fold(events: &[Event]) -> [String; 8] {
    let (mut conversation, mut applied) = (conversation(), Applied::default());
    let mut verifier = Verifier::new();
    for event in events {
        verifier.push(event).expect("the rules are kept");
        conversation.apply(event, &mut applied);
    }
    let mut open: Vec<String> =
        verifier.closing_events().iter().map(|event| event.to_json()).collect();
    open.sort_unstable();
    [
        format!("{:?}", conversation.messages().to_vec()),
        conversation.state().to_string(),
        format!("{:?}", conversation.open_interrupts()),
        format!("{:?}", conversation.pending_tool_calls().collect::<Vec<_>>()),
        format!("{:?}", conversation.usage()),
        format!("{:?}", conversation.result()),
        format!("{:?}", conversation.ending()),
        format!("{open:?}"),
    ]
}

/// What a client would deliver of a stream.
fn conforming(text: &str) -> Vec<Event> {
    let (mut reader, mut pipeline) = (EventReader::new(), Pipeline::new());
    let mut delivered = Vec::new();
    for line in text.lines() {
        let Ok(reading) = reader.tolerant(line) else { break };
        if pipeline.push(reading, &mut delivered, &mut Vec::new()).is_err() {
            break;
        }
    }
    delivered
}

/// What was delivered conforms to the schema (C-27) and goes through once more as it is.
fn again(delivered: &[Event]) {
    let mut pipeline = Pipeline::new();
    let mut out = Vec::new();
    for event in delivered {
        let text = event.to_json();
        let read = Event::from_json_exact(&text).expect("what is delivered is described");
        pipeline.push(read.into(), &mut out, &mut Vec::new()).expect("what is delivered conforms");
    }
    assert_eq!(out, delivered);
}

fn check_fault(fault: &Fault) {
    assert!(!fault.rule.is_empty() && !fault.message.is_empty() && !fault.fix.is_empty());
    assert!(fault.path.is_empty() || fault.path.starts_with('/'), "{fault:?}");
}

/// A line cannot bring more warnings than it has bytes for.
fn check_warnings(warnings: &[Warning], line: &str) {
    assert!(warnings.len() <= line.len() + 8, "{} warnings of {line}", warnings.len());
    for warning in warnings {
        assert!(!warning.rule.is_empty() && !warning.message.is_empty());
    }
}

fn conversation() -> Conversation {
    let state = Value::Object(Default::default());
    Conversation::new(Vec::new(), state).with_patch_limits(LIMITS)
}

/// Tight enough to be reached.
const LIMITS: PatchLimits = PatchLimits {
    operations: 1000,
    depth: MAX_DEPTH,
    size: 1 << 16,
    work: 1 << 20,
    work_per_byte: 1 << 10,
};
