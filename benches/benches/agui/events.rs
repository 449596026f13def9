//! Reading and writing single events, beside what `serde_json` costs for the same texts.

use std::hint::black_box;
use std::rc::Rc;

use agui_types::{Event, EventReader, FromJson, ToJson};
use serde::de::IgnoredAny;

use crate::data::{Data, Stream};
use crate::floor::{Plain, Tagged, each, parsed, to_writer};
use crate::measure::Case;
use crate::table::Row;

pub(crate) const ROWS: &[Row] = &[
    Row::times("read text: EventReader", "read text: serde_json struct", 1.3),
    Row::times("read text: from_json_tolerant", "read text: serde_json struct", 1.3),
    Row::times("read text: from_json_exact", "read text: serde_json struct", 1.3),
    Row::beside("read text: EventReader", "read text: serde_json enum"),
    Row::beside("read text: EventReader", "read text: serde_json IgnoredAny"),
    Row::times("read W1: EventReader", "read W1: serde_json struct", 1.3),
    Row::beside("read W1: EventReader", "read W1: serde_json IgnoredAny"),
    Row::beside("read W2: EventReader", "read W2: serde_json enum"),
    Row::beside("read W2: EventReader", "read W2: serde_json IgnoredAny"),
    Row::times("write text: write_json", "write text: serde_json struct", 1.0),
    Row::times("write W1: write_json", "write W1: serde_json struct", 1.0),
    Row::times("write W2: write_json", "write W2: serde_json enum", 1.0),
    Row::beside("write text: our type by serde_json", "write text: serde_json struct"),
];

pub(crate) fn case(name: &str, data: &Data) -> Option<Case> {
    let (place, subject) = name.split_once(": ")?;
    let (direction, source) = place.split_once(' ')?;
    let stream = match source {
        "text" => Stream::new(vec![TEXT.to_owned(); 10_000]),
        name => data.stream(name)?.clone(),
    };
    let (events, texts) = (stream.len(), Rc::clone(&stream.texts));
    let bytes = texts.iter().map(String::len).sum();
    let pass: Box<dyn FnMut()> = match (direction, subject) {
        ("read", "EventReader") => {
            let mut reader = EventReader::new();
            Box::new(move || each(&texts, |text| reader.tolerant(text).unwrap()))
        }
        ("read", "from_json_tolerant") => {
            Box::new(move || each(&texts, |text| Event::from_json_tolerant(text).unwrap()))
        }
        ("read", "from_json_exact") => {
            Box::new(move || each(&texts, |text| Event::from_json_exact(text).unwrap()))
        }
        ("read", "serde_json struct") => Box::new(move || each(&texts, parsed::<Plain>)),
        ("read", "serde_json enum") => Box::new(move || each(&texts, parsed::<Tagged>)),
        ("read", "serde_json IgnoredAny") => Box::new(move || each(&texts, parsed::<IgnoredAny>)),
        ("write", "write_json") => writing(stream.events(), |event, out| event.write_json(out)),
        ("write", "serde_json struct") => writing(stream.parsed(parsed::<Plain>), to_writer),
        ("write", "serde_json enum") => writing(stream.parsed(parsed::<Tagged>), to_writer),
        ("write", "our type by serde_json") => writing(stream.events(), to_writer),
        _ => return None,
    };
    Some(Case::new(events, bytes, pass))
}

/// Writes each event into one buffer, which is emptied before.
pub(crate) fn writing<T: 'static>(
    events: Vec<T>,
    mut write: impl FnMut(&T, &mut Vec<u8>) + 'static,
) -> Box<dyn FnMut()> {
    let mut out = Vec::new();
    Box::new(move || {
        for event in &events {
            out.clear();
            write(black_box(event), &mut out);
            black_box(&out);
        }
    })
}

/// A text content event of 157 bytes.
const TEXT: &str = concat!(
    r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"msg_01JQ8Z5T3M9V7K2XN4RB6WDFHC","#,
    r#""delta":"the quick brown fox jumps over the lazy dogs","timestamp":1757000000000}"#,
);
const _: () = assert!(TEXT.len() == 157);
