//! The tables of `skills/agui/references/protocol.md` have every event and every member.

use std::fs;
use std::path::Path;

use agui_types::event::EventType;

/// A row of the tables that list members.
#[derive(Debug)]
struct Row {
    name: String,
    /// Each member, with `?` behind an optional one.
    members: Vec<String>,
}

fn rows() -> Vec<Row> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../skills/agui/references/protocol.md");
    let page = fs::read_to_string(path).unwrap();
    page.lines().filter_map(row).collect()
}

/// A table's line whose first cell is a name in code, with or without the mark of events that have an
/// owner.
fn row(line: &str) -> Option<Row> {
    let mut cells = line.strip_prefix("| `")?.split(" | ");
    let (name, mark) = cells.next()?.split_once('`')?;
    let mark = mark.trim();
    if !["", "**@**"].contains(&mark) {
        return None;
    }
    let mut members: Vec<String> =
        cells.next()?.split_whitespace().map(|member| member.trim_matches('`').into()).collect();
    if mark == "**@**" {
        members.push("subagentRunId?".into());
    }
    Some(Row { name: name.into(), members })
}

#[test]
fn every_event_has_a_row() {
    let rows = rows();
    let count = |name: &str| rows.iter().filter(|row| row.name == name).count();
    let odd: Vec<&str> =
        EventType::ALL.iter().map(|kind| kind.as_str()).filter(|name| count(name) != 1).collect();
    assert!(odd.is_empty(), "not there, or there more than once: {odd:?}");
}

#[cfg(feature = "schemars")]
#[test]
fn every_row_has_every_member() {
    use std::collections::BTreeSet;

    use agui_types::{Event, RunAgentInput};
    use schemars::schema_for;
    use serde_json::Value;

    let [events, input] = [schema_for!(Event), schema_for!(RunAgentInput)];
    let mut definitions = input.as_value()["$defs"].as_object().unwrap().clone();
    definitions.insert("RunAgentInput".into(), input.to_value());
    definitions.extend(events.as_value()["$defs"].as_object().unwrap().clone());
    let is_event = |definition: &Value| {
        let name = definition["properties"]["type"]["const"].as_str()?;
        EventType::ALL.iter().any(|kind| kind.as_str() == name).then_some(name.to_owned())
    };
    let rows = rows();
    let mut seen = BTreeSet::new();
    for (name, definition) in &definitions {
        let event = is_event(definition);
        let name = event.as_ref().unwrap_or(name);
        let Some(row) = rows.iter().find(|row| row.name == *name) else { continue };
        let required = definition["required"].as_array().cloned().unwrap_or_default();
        let everywhere = ["type", "timestamp", "rawEvent", "metadata"];
        let described: BTreeSet<String> = definition["properties"]
            .as_object()
            .unwrap()
            .keys()
            .filter(|member| event.is_none() || !everywhere.contains(&member.as_str()))
            .map(|member| {
                let required = required.iter().any(|it| it == member);
                format!("{member}{}", if required { "" } else { "?" })
            })
            .collect();
        let told: BTreeSet<String> = row.members.iter().cloned().collect();
        assert_eq!(told, described, "{name}");
        seen.insert(row.name.as_str());
    }
    let all: BTreeSet<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(seen, all, "a row for something that there is not");
}
