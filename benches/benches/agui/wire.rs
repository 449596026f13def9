//! From bytes to events and back.

use std::convert::Infallible;
use std::hint::black_box;
use std::rc::Rc;

use ag_ui::SseFormatter;
use ag_ui::client::transport::SseDecoder;
use ag_ui::encode::EventStreamFormatter;
use agui_types::Event;
use agui_wire::{Decoder, Encoder, Limits, WireForm, sse};
use eventsource_stream::Eventsource;
use futures_util::{FutureExt, StreamExt, stream};
use memchr::memchr_iter;
use serde::de::IgnoredAny;

use crate::data::{Data, READ, Stream};
use crate::events::writing;
use crate::floor::{Plain, Tagged, each, parsed};
use crate::measure::Case;
use crate::table::Row;

pub(crate) const ROWS: &[Row] = &[
    Row::times("decode W1: Decoder", "decode W1: serde_json struct", 1.0),
    Row::beside("decode W1: Decoder", "decode W1: serde_json IgnoredAny"),
    Row::beside("decode W1: Decoder", "decode W1: memchr over lines"),
    Row::times("decode W1: Decoder", "decode W1: ag-ui 0.5", 0.5),
    Row::beside("decode W2: Decoder", "decode W2: serde_json enum"),
    Row::beside("decode W2: Decoder", "decode W2: serde_json IgnoredAny"),
    Row::times("decode W2: Decoder", "decode W2: ag-ui 0.5", 0.5),
    Row::beside("decode W4: Decoder", "decode W4: serde_json enum"),
    Row::beside("decode W4: Decoder", "decode W4: serde_json IgnoredAny"),
    Row::times("decode W4: Decoder", "decode W4: ag-ui 0.5", 0.5),
    Row::beside("frames W1: sse::Decoder", "frames W1: memchr over lines"),
    Row::times("frames W1: sse::Decoder", "frames W1: eventsource-stream", 0.5),
    Row::times("decode W1: Decoder", "frames W1: eventsource-stream", 0.5),
    Row::times("encode W1: Encoder", "write W1: serde_json struct", 1.0 / 3.0),
    Row::beside("encode W1: Encoder", "encode W1: ag-ui 0.5"),
    Row::beside("encode W2: Encoder", "write W2: serde_json enum"),
    Row::beside("decode W1: Decoder, protobuf", "decode W1: Decoder"),
    Row::beside("decode W2: Decoder, protobuf", "decode W2: Decoder"),
    Row::beside("encode W1: Encoder, protobuf", "encode W1: Encoder"),
    Row::beside("encode W2: Encoder, protobuf", "encode W2: Encoder"),
    Row::within("frame of 8 MiB, text: Decoder", "frame of 8 MiB, text: copying", 50e6),
    Row::within("frame of 8 MiB, state: Decoder", "frame of 8 MiB, state: copying", 50e6),
];

pub(crate) fn case(name: &str, data: &Data) -> Option<Case> {
    let (place, subject) = name.split_once(": ")?;
    if let Some(content) = place.strip_prefix("frame of 8 MiB, ") {
        return large_frame(content, subject);
    }
    let (direction, source) = place.split_once(' ')?;
    let stream = data.stream(source)?;
    let (events, bytes) = (stream.len(), stream.body.len());
    let pass: Box<dyn FnMut()> = match direction {
        "decode" | "frames" => decoding(subject, stream)?,
        "encode" => match subject {
            "Encoder" => encoding(stream.events(), Encoder::new(WireForm::Sse)),
            "Encoder, protobuf" => encoding(stream.events(), Encoder::new(WireForm::Proto)),
            "ag-ui 0.5" => {
                let events = stream.parsed(parsed::<ag_ui::Event>);
                Box::new(move || {
                    for event in &events {
                        drop(black_box(SseFormatter::new().encode(black_box(event)).unwrap()));
                    }
                })
            }
            _ => return None,
        },
        _ => return None,
    };
    Some(Case::new(events, bytes, pass))
}

fn decoding(subject: &str, stream: &Stream) -> Option<Box<dyn FnMut()>> {
    let (texts, body) = (Rc::clone(&stream.texts), Rc::clone(&stream.body));
    Some(match subject {
        "Decoder" => Box::new(move || decode(WireForm::Sse, &body, READ)),
        "Decoder, protobuf" => {
            let mut body = Vec::new();
            let mut encoder = Encoder::new(WireForm::Proto);
            for event in stream.events() {
                encoder.encode(&event, None, &mut body).unwrap();
            }
            Box::new(move || decode(WireForm::Proto, &body, READ))
        }
        "sse::Decoder" => Box::new(move || {
            let mut decoder = sse::Decoder::new(Limits::default());
            for mut read in black_box(&body).chunks(READ) {
                while let Some(frame) = decoder.decode(&mut read).unwrap() {
                    black_box(&frame);
                }
            }
        }),
        "memchr over lines" => Box::new(move || {
            let body = black_box(&body);
            let mut start = 0;
            for end in memchr_iter(b'\n', body) {
                black_box(&body[start..end]);
                start = end + 1;
            }
        }),
        "serde_json struct" => Box::new(move || each(&texts, parsed::<Plain>)),
        "serde_json enum" => Box::new(move || each(&texts, parsed::<Tagged>)),
        "serde_json IgnoredAny" => Box::new(move || each(&texts, parsed::<IgnoredAny>)),
        "ag-ui 0.5" => Box::new(move || {
            let mut decoder = SseDecoder::new();
            for read in black_box(&body).chunks(READ) {
                decoder.push(read).unwrap();
                while let Some(frame) = decoder.next_frame().unwrap() {
                    drop(black_box(frame.into_event().unwrap()));
                }
            }
        }),
        "eventsource-stream" => Box::new(move || {
            let reads = black_box(&body).chunks(READ).map(Ok::<_, Infallible>);
            let mut frames = stream::iter(reads).eventsource();
            // Everything is there already, so that nothing is ever pending.
            while let Some(frame) = frames.next().now_or_never().expect("an event") {
                drop(black_box(frame.unwrap()));
            }
        }),
        _ => return None,
    })
}

fn decode(form: WireForm, body: &[u8], read: usize) {
    let mut decoder = Decoder::new(form, Limits::default());
    for mut read in black_box(body).chunks(read) {
        while let Some(decoded) = decoder.decode(&mut read).unwrap() {
            drop(black_box(decoded.event));
        }
    }
    assert!(decoder.finish().unwrap().last.is_none());
}

fn encoding(events: Vec<Event>, mut encoder: Encoder) -> Box<dyn FnMut()> {
    writing(events, move |event, out| {
        drop(encoder.encode(event, None, out).unwrap());
    })
}

/// One event of 8 MiB that comes in reads of 1 KiB, beside what it costs to put these together.
fn large_frame(content: &str, subject: &str) -> Option<Case> {
    const SIZE: usize = 8 << 20;
    const READ: usize = 1024;
    let event = match content {
        "text" => {
            let delta = "token ".repeat(SIZE / 6);
            format!(r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"{delta}"}}"#)
        }
        "state" => {
            let row = r#"{"id":"row-1","title":"a \"row\"","done":false,"score":42},"#;
            let rows = row.repeat(SIZE / row.len());
            format!(r#"{{"type":"STATE_SNAPSHOT","snapshot":[{}]}}"#, rows.trim_end_matches(','))
        }
        _ => return None,
    };
    let body = agui_bench::body(&[event]);
    let bytes = body.len();
    let pass: Box<dyn FnMut()> = match subject {
        "Decoder" => Box::new(move || decode(WireForm::Sse, &body, READ)),
        "copying" => Box::new(move || {
            let mut copy = Vec::new();
            black_box(&body).chunks(READ).for_each(|read| copy.extend_from_slice(read));
            black_box(&copy);
        }),
        _ => return None,
    };
    Some(Case::new(1, bytes, pass))
}
