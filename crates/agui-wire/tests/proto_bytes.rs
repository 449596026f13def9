//! The recorded bytes of the binary form: what the reference writes (T-34) and how it reads.

mod corpus;

use agui_types::read::{FindingKind, Reading};
use agui_types::{Event, EventReader, FromJson, ReadError, ToJson};
use agui_wire::{DecodeErrorKind, Decoder, EncodeError, Encoder, Limits, Warning, WireForm};
use serde_json::Value;

use corpus::{Verdicts, base64, differences, hex, unhex, vectors};

/// What one message without its header gives.
struct Read {
    event: Option<Reading<Event>>,
    warnings: Vec<Warning>,
    error: Option<agui_wire::DecodeError>,
}

fn decode(message: &[u8]) -> Read {
    let mut body = (message.len() as u32).to_be_bytes().to_vec();
    body.extend_from_slice(message);
    decode_frame(&body)
}

fn decode_frame(body: &[u8]) -> Read {
    let mut decoder = Decoder::new(WireForm::Proto, Limits::default());
    let mut input = body;
    match decoder.decode(&mut input) {
        Ok(decoded) => {
            let decoded = decoded.expect("a whole frame");
            Read { event: decoded.event, warnings: decoded.warnings, error: None }
        }
        Err(error) => Read { event: None, warnings: Vec::new(), error: Some(error) },
    }
}

/// The message, without its header.
fn encode(event: &Event) -> Result<Vec<u8>, EncodeError> {
    let mut body = Vec::new();
    let omitted = Encoder::new(WireForm::Proto).encode(event, None, &mut body)?;
    assert!(omitted.is_empty(), "{omitted:?}");
    let (header, message) = body.split_at(4);
    assert_eq!(header, (message.len() as u32).to_be_bytes());
    Ok(message.to_vec())
}

fn written(event: &Event) -> Value {
    serde_json::from_str(&event.to_json()).expect("an event is JSON")
}

/// How decoding differs from reading this JSON, which is what decoding should yield: value,
/// findings and error are those of the JSON form (T-5, T-32).
fn unlike_json(json: &Value, read: &Read) -> Vec<String> {
    let expected = EventReader::new().tolerant(&json.to_string());
    match (expected, &read.event, &read.error) {
        (Ok(expected), Some(found), _) => {
            let mut all = differences("event", &written(&expected.value), &written(&found.value));
            if expected.value.event_type() != found.value.event_type() {
                all.push("another type".into());
            }
            let (expected, found) = (findings(&expected), findings(found));
            if expected != found {
                all.push(format!("findings: expected {expected:?}, found {found:?}"));
            }
            all
        }
        (Err(expected), None, Some(error)) => {
            let same = |found: &ReadError| {
                (found.kind(), found.path()) == (expected.kind(), expected.path())
            };
            if error.kind() == DecodeErrorKind::Malformed && error.read_error().is_some_and(same) {
                return Vec::new();
            }
            vec![format!("expected {expected}, found {error}: {:?}", error.read_error())]
        }
        (Ok(_), None, error) => vec![format!("expected {json}, found {error:?}")],
        (Err(error), _, _) => vec![format!("expected {error}, found {:?}", read.event)],
    }
}

fn findings(reading: &Reading<Event>) -> Vec<(String, FindingKind)> {
    let mut findings: Vec<_> =
        reading.findings.iter().map(|it| (it.path.clone(), it.kind.clone())).collect();
    findings.sort_by(|a, b| a.0.cmp(&b.0));
    findings
}

fn rows(name: &str) -> Option<Vec<Value>> {
    let text = corpus::text(&format!("proto-bytes/{name}.json"))?;
    Some(serde_json::from_str(&text).expect("rows"))
}

#[test]
fn t34_every_event_is_encoded_to_the_recorded_bytes() {
    let Some(rows) = rows("encode") else { return };
    let mut verdicts = Verdicts::new("proto-encode");
    for row in &rows {
        let name = row["name"].as_str().expect("a name");
        let mut all = Vec::new();
        // As it stands in the file, whose order of members counts.
        let event = Event::from_json_exact(&source(name)).expect(name);
        match encode(&event) {
            Ok(bytes) if hex(&bytes) == row["hex"] => {}
            other => all.push(format!("expected {}, found {other:?}", row["hex"])),
        }
        verdicts.note(name, &all);
    }
    verdicts.settle(125);
}

/// The text of an event in `encode.json`.
fn source(name: &str) -> String {
    let text = corpus::text("proto-bytes/encode.json").expect("was there");
    let line = text.lines().find(|line| line.contains(&format!("{{\"name\": \"{name}\"")));
    #[derive(serde::Deserialize)]
    struct Row<'a> {
        #[serde(borrow)]
        event: &'a serde_json::value::RawValue,
    }
    let line = line.expect(name).trim_end_matches(',');
    let row: Row<'_> = serde_json::from_str(line.trim()).expect("a row");
    row.event.get().to_owned()
}

#[test]
fn t33_the_recorded_bytes_decode_to_their_events() {
    let Some(rows) = rows("encode") else { return };
    let mut verdicts = Verdicts::new("proto-encode-back");
    for row in &rows {
        let name = row["name"].as_str().expect("a name");
        let read = decode(&unhex(row["hex"].as_str().expect("bytes")));
        let event = row.get("decodesTo").unwrap_or(&row["event"]);
        let mut all = unlike_json(event, &read);
        all.extend(read.warnings.iter().map(|warning| format!("warned: {warning}")));
        verdicts.note(name, &all);
    }
    verdicts.settle(125);
}

#[test]
fn t30_t31_t33_bytes_as_they_may_come_are_judged_as_recorded() {
    let Some(rows) = rows("decode") else { return };
    let mut verdicts = Verdicts::new("proto-decode");
    for row in &rows {
        let name = row["name"].as_str().expect("a name");
        let read = decode(&unhex(row["hex"].as_str().expect("bytes")));
        let mut all = match row["result"].as_str().expect("a result") {
            "event" => unlike_json(&row["event"], &read),
            "unknown-event" => not_unknown(&read),
            "error" if read.error.is_some() => Vec::new(),
            other => vec![format!("expected {other}, found {:?}", read.event)],
        };
        let unknown = usize::from(row["result"] == "unknown-event");
        let warnings = row["warns"].as_u64().unwrap_or(0) as usize + unknown;
        if read.warnings.len() != warnings {
            all.push(format!("expected {warnings} warnings, found {:?}", read.warnings));
        }
        verdicts.note(name, &all);
    }
    verdicts.settle(54);
}

fn not_unknown(read: &Read) -> Vec<String> {
    match &read.warnings[..] {
        [Warning::UnknownEvent { .. }] if read.event.is_none() && read.error.is_none() => {
            Vec::new()
        }
        _ => vec![format!("expected an unknown event, found {:?} {:?}", read.event, read.error)],
    }
}

#[test]
fn t30_t31_t33_recorded_messages_decode_as_recorded() {
    let Some(vectors) = vectors("proto") else { return };
    let mut verdicts = Verdicts::new("proto-vectors-decode");
    for vector in vectors.iter().filter(|vector| vector.kind == "decode") {
        let read = decode(&base64(vector.input["messageB64"].as_str().expect("bytes")));
        let expected = vector.expected();
        let all = match expected["outcome"].as_str().expect("an outcome") {
            "decoded" => unlike_json(&expected["event"], &read),
            "unknown-event" => not_unknown(&read),
            "failed" if read.error.is_some() => Vec::new(),
            other => vec![format!("expected {other}, found {:?}", read.event)],
        };
        verdicts.note(&vector.id, &all);
    }
    verdicts.settle(75);
}

#[test]
fn t5_t34_recorded_events_encode_in_both_forms() {
    let Some(vectors) = vectors("proto") else { return };
    let mut verdicts = Verdicts::new("proto-vectors-encode");
    for vector in vectors.iter().filter(|vector| vector.kind == "encode") {
        verdicts.note(&vector.id, &unlike_encoding(&vector.event_text(), &vector.expected()));
    }
    verdicts.settle(72);
}

fn unlike_encoding(event: &str, expected: &Value) -> Vec<String> {
    let refused = expected.get("protoError").is_some();
    let text = event;
    let event = match EventReader::new().tolerant(text) {
        Ok(reading) => reading.value,
        Err(_) if refused => return Vec::new(),
        Err(error) => return vec![format!("expected an encoding, found {error}")],
    };
    let mut all = Vec::new();

    let mut body = Vec::new();
    let encoded = Encoder::new(WireForm::Sse).encode(&event, None, &mut body);
    assert_eq!(encoded, Ok(Vec::new()));
    let payload = |text: &str| -> Option<Value> {
        serde_json::from_str(text.strip_prefix("data: ")?.strip_suffix("\n\n")?).ok()
    };
    let found = payload(std::str::from_utf8(&body).expect("text")).expect("one frame");
    let sse = payload(expected["sse"].as_str().expect("text")).expect("one frame");
    all.extend(differences("sse", &sse, &found));

    body.clear();
    match Encoder::new(WireForm::Proto).encode(&event, None, &mut body) {
        Ok(_) if refused => all.push("expected a refusal".into()),
        Ok(_) => {
            all.extend(unlike_json(&expected["decoded"], &decode_frame(&body)));
            // The recorded bytes must be accepted too.
            let sample = base64(expected["protoB64"].as_str().expect("bytes"));
            all.extend(unlike_json(&expected["decoded"], &decode_frame(&sample)));
            if sample != body && !has_number_like_name(text) {
                all.push(format!("bytes: expected {}, found {}", hex(&sample), hex(&body)));
            }
        }
        Err(_) if refused => {}
        Err(error) => all.push(format!("expected an encoding, found {error}")),
    }
    all
}

/// Whether an object has a member named like a number, which JavaScript moves to the front.
fn has_number_like_name(json: &str) -> bool {
    json.split('"').skip(1).step_by(2).any(|text| text.parse::<u32>().is_ok())
}
