//! The framing part of the recorded reference vectors, and the public cases about framing.
//!
//! Each frame's data is parsed as JSON here and compared with the events that the recording,
//! overlaid with what is preferred to it, delivers.

use agui_wire::fuzzing::{Reading, read};
use agui_wire::sse::{Decoder, End, Limit, Limits};
use serde_json::Value;

const VECTORS: &str = include_str!("data/sse-framing.jsonl");

struct Vector {
    label: String,
    reads: Vec<Vec<u8>>,
    outcome: String,
    class: Option<String>,
    delivered: Vec<Value>,
}

impl Vector {
    fn all() -> Vec<Self> {
        let vectors: Vec<_> = VECTORS.lines().map(Self::parse).collect();
        assert_eq!(vectors.len(), 240);
        vectors
    }

    fn parse(line: &str) -> Self {
        let line: Value = serde_json::from_str(line).expect("a vector");
        let field = |name: &str| line["preferred"].get(name).or_else(|| line["expect"].get(name));
        let text = |name: &str| field(name).and_then(Value::as_str).map(str::to_owned);
        Self {
            label: format!("{} {}", line["id"], line["label"]),
            reads: reads(&line["input"]),
            outcome: text("outcome").expect("an outcome"),
            class: text("errorClass"),
            delivered: field("delivered").and_then(Value::as_array).expect("events").clone(),
        }
    }

    fn read(&self) -> Reading {
        read(Limits::default(), self.reads.iter().map(Vec::as_slice))
    }
}

/// The reads of an input: `sseParts`, or `sseB64` with `cutEvery` or `cutAt`.
fn reads(input: &Value) -> Vec<Vec<u8>> {
    if let Some(parts) = input["sseParts"].as_array() {
        return parts.iter().map(part).collect();
    }
    let body = base64(input["sseB64"].as_str().expect("a body"));
    if let Some(size) = input["cutEvery"].as_u64() {
        return body.chunks(size as usize).map(<[u8]>::to_vec).collect();
    }
    let cuts = input["cutAt"].as_array().into_iter().flatten();
    let cuts = cuts.map(|cut| cut.as_u64().expect("an offset") as usize);
    let mut start = 0;
    let mut reads = Vec::new();
    for end in cuts.chain([body.len()]) {
        reads.push(body[start..end].to_vec());
        start = end;
    }
    reads
}

fn part(part: &Value) -> Vec<u8> {
    let text = part.as_str().or_else(|| part["repeat"].as_str()).expect("text");
    text.repeat(part["times"].as_u64().unwrap_or(1) as usize).into_bytes()
}

fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0u32, 0);
    for byte in text.bytes().filter(|byte| *byte != b'=') {
        let digit = DIGITS.iter().position(|digit| *digit == byte).expect("a digit");
        bits = bits << 6 | digit as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}

/// The events of a reading up to the first frame that is not JSON, and whether there is one.
/// Half a surrogate pair reads as U+FFFD, which the recordings have in its place.
fn events(reading: &Reading) -> (Vec<Value>, bool) {
    let mut events = Vec::new();
    for frame in reading.frames() {
        let data = frame.data.replace("\"\\ud83d\"", "\"\u{fffd}\"");
        let data = data.replace("\"\\ude00\"", "\"\u{fffd}\"");
        match serde_json::from_str(&data) {
            Ok(event) => events.push(event),
            Err(_) => return (events, true),
        }
    }
    (events, false)
}

/// Equal, where `<elided N UTF-16 units>` stands for any text of that length.
fn same(seen: &Value, recorded: &Value) -> bool {
    match (seen, recorded) {
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(k, v)| b.get(k).is_some_and(|r| same(v, r)))
        }
        (Value::String(seen), Value::String(recorded)) => {
            let elided = recorded.strip_prefix("<elided ");
            match elided.and_then(|rest| rest.strip_suffix(" UTF-16 units>")) {
                Some(units) => Ok(seen.encode_utf16().count()) == units.parse(),
                None => seen == recorded,
            }
        }
        _ => seen == recorded,
    }
}

#[test]
fn t13_t14_t15_t16_t22_frames_carry_the_recorded_events() {
    let mut classes = std::collections::BTreeMap::new();
    for vector in Vector::all() {
        let Vector { label, outcome, class, delivered, .. } = &vector;
        let reading = vector.read();
        let (events, bad_json) = events(&reading);
        let class = class.as_deref().unwrap_or(outcome);
        *classes.entry(class.to_owned()).or_insert(0) += 1;

        let matching = events.iter().zip(delivered).all(|(seen, event)| same(seen, event));
        assert!(matching, "{label}: {events:?}");
        match class {
            "completed" | "truncated" => {
                assert_eq!(events.len(), delivered.len(), "{label}");
                assert!(!bad_json, "{label}");
            }
            "sse-json" => {
                assert_eq!(events.len(), delivered.len(), "{label}");
                assert!(bad_json, "{label}");
            }
            // Judged above: all that matters here is that the offending event arrives.
            "sequence" | "schema" => assert!(events.len() > delivered.len(), "{label}"),
            "limit" => {
                assert_eq!(events.len(), delivered.len(), "{label}");
                let error = reading.end.expect_err(label);
                let comment = label.contains("comment");
                let limit = if comment { Limit::CommentBytes } else { Limit::FrameBytes };
                assert_eq!((error.limit, error.max), (limit, 10 << 20), "{label}");
                assert_eq!(error.offset, vector.reads[0].len() as u64, "{label}");
                continue;
            }
            other => panic!("{label}: class {other}"),
        }
        assert!(reading.end.is_ok(), "{label}");
    }
    let expected = ["completed", "limit", "schema", "sequence", "sse-json", "truncated"];
    assert!(classes.keys().eq(expected), "{classes:?}");
}

#[test]
fn t9_the_end_of_the_recorded_bodies_is_told_apart() {
    let mut seen = 0;
    for vector in Vector::all() {
        let end = match vector.label.split(['"', ';']).nth(3) {
            Some("no blank line at the end" | "cr at the end") => End::UnterminatedFrame,
            Some("crlf, no blank line at the end") => End::UnterminatedFrame,
            Some("no newline at the end" | "last frame cut in half") => End::MidLine,
            Some("stream ends inside a utf-8 sequence") => End::MidLine,
            Some("lf" | "crlf" | "cr" | "terminal event missing" | "empty body") => End::Clean,
            _ => continue,
        };
        let (_, place) = vector.read().end.expect("within the limits");
        assert_eq!(place, end, "{}", vector.label);
        seen += 1;
    }
    assert!(seen > 40, "{seen}");
}

#[test]
fn t15_the_recorded_bodies_read_the_same_however_they_are_cut() {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for vector in Vector::all() {
        let body = vector.reads.concat();
        let reading = vector.read();
        let whole = read(Limits::default(), [&body[..]]);
        assert!(reading == whole, "{}", vector.label);
        if body.len() < 100_000 {
            assert!(read(Limits::default(), body.chunks(1)) == whole, "{}", vector.label);
        }
        for _ in 0..8 {
            let mut rest = &body[..];
            let scale = (body.len() / 16).max(8) as u64;
            let cuts = std::iter::from_fn(|| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let (read, left) = rest.split_at(rest.len().min((random % scale) as usize));
                let more = !rest.is_empty();
                rest = left;
                more.then_some(read)
            });
            assert!(read(Limits::default(), cuts) == whole, "{}", vector.label);
        }
    }
}

/// The reads of a public case, its frames' event types, and what it expects.
fn case(text: &str) -> (Vec<Vec<u8>>, Vec<String>, Reading, Value) {
    let case: Value = serde_json::from_str(text).expect("a case");
    let reads: Vec<_> =
        case["input"]["chunks"].as_array().expect("reads").iter().map(part).collect();
    let reading = read(Limits::default(), reads.iter().map(Vec::as_slice));
    let (events, bad_json) = events(&reading);
    assert!(!bad_json);
    let types = events.iter().map(|event| event["type"].as_str().expect("a type").to_owned());
    let types = types.collect();
    (reads, types, reading, case["expect"].clone())
}

#[test]
fn t14_t16_case_01_data_without_space_among_other_fields() {
    let (_, types, _, expect) = case(include_str!("data/01-sse-data-without-space.json"));
    assert_eq!(Value::from(types), expect["delivered"]);
}

#[test]
fn t15_case_02_crlf_frames_are_available_at_once() {
    let (reads, types, reading, expect) = case(include_str!("data/02-sse-crlf-frames.json"));
    assert_eq!(Value::from(types), expect["delivered"]);
    assert_eq!(reading.end, Ok((None, End::Clean)));
    let mut decoder = Decoder::default();
    assert!(decoder.decode(&mut &reads[0][..]).expect("valid").is_some());
}

#[test]
fn t14_t17_case_03_keep_alives_several_lines_and_no_last_blank_line() {
    let text = include_str!("data/03-sse-keepalive-multiline-and-unterminated-last-frame.json");
    let (_, types, reading, _) = case(text);
    assert_eq!(types, ["RUN_STARTED", "TEXT_MESSAGE_CHUNK", "RUN_FINISHED"]);
    assert!(matches!(reading.end, Ok((Some(_), End::MidLine))));
}

#[test]
fn case_04_an_endless_frame_hits_the_limit() {
    let text = include_str!("data/04-sse-endless-frame-hits-a-limit.json");
    let (reads, types, reading, expect) = case(text);
    assert_eq!(Value::from(types), expect["delivered"]);
    let error = reading.end.expect_err("endless");
    assert_eq!((error.limit, error.offset), (Limit::FrameBytes, reads[0].len() as u64));
}
