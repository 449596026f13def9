//! Events that others wrote: the well-formed ones are read without findings and written back as the
//! same JSON values.

mod common;

use agui_types::{Event, EventReader, FromJson, ToJson};
use serde_json::Value;

#[test]
fn the_official_streams_are_read_and_written_back() {
    let Some(folder) = common::corpus("streams") else { return };
    let (mut streams, mut events, mut clean) = (0, 0, 0);
    let mut reader = EventReader::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let file: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        if file["expect"]["outcome"] != "completed" {
            continue;
        }
        streams += 1;
        for event in file["stream"].as_array().unwrap() {
            events += 1;
            let text = event.to_string();
            // Retired types are unknown here: to translate them is a later stage's.
            let reading = reader
                .tolerant(&text)
                .unwrap_or_else(|error| panic!("{}: {error}: {text}", path.display()));
            if reading.findings.is_empty() {
                clean += 1;
                let written = reading.value.to_json();
                assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), *event);
                assert_eq!(Event::from_json_exact(&text).unwrap(), reading.value);
            } else {
                assert!(Event::from_json_exact(&text).is_err(), "{text}");
            }
        }
    }
    assert!(streams >= 30 && clean >= 200 && clean < events, "{streams} {events} {clean}");
}

#[test]
fn the_events_of_the_binary_vectors_are_read_and_written_back() {
    let Some(path) = common::corpus("proto-bytes/encode.json") else { return };
    let rows: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(rows.len() >= 125, "{}", rows.len());
    for row in rows {
        let text = row["event"].to_string();
        let reading = Event::from_json_tolerant(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", row["name"]));
        if reading.findings.is_empty() {
            let written: Value = serde_json::from_str(&reading.value.to_json()).unwrap();
            assert_eq!(written, row["event"], "{}", row["name"]);
        }
    }
}
