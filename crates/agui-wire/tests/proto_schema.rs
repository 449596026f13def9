//! The tables, the `.proto` and the number ledger say the same, and `prost`, which knows nothing but
//! the `.proto`, reads what we write and writes what we read.

mod corpus;

use std::collections::{BTreeMap, BTreeSet};

use agui_types::{Event, EventReader, EventType, FromJson, ToJson};
use agui_wire::proto::tables::{self, Field, Kind, Label};
use agui_wire::{Decoder, Encoder, Limits, WireForm};
use prost_reflect::prost::Message;
use prost_reflect::{
    Cardinality, DescriptorPool, DynamicMessage, FieldDescriptor, Kind as ProtoKind,
    MessageDescriptor, Value,
};

fn pool() -> DescriptorPool {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/proto");
    let files = protox::compile(["agui.proto"], [folder]).expect("the .proto compiles");
    DescriptorPool::from_file_descriptor_set(files).expect("descriptors")
}

/// All messages of the `.proto`, nested ones too.
fn messages(pool: &DescriptorPool) -> Vec<MessageDescriptor> {
    let ours = pool.all_messages().filter(|message| message.package_name() == "ag_ui");
    ours.collect()
}

/// The name inside the package: `ToolCall.Function`.
fn name(full: &str) -> String {
    full.strip_prefix("ag_ui.").unwrap_or(full).to_owned()
}

/// Members of a real `oneof`; an optional field is a `oneof` of its own behind the scenes.
fn oneof(field: &FieldDescriptor) -> Option<String> {
    let oneof = field.containing_oneof()?;
    (!oneof.is_synthetic()).then(|| oneof.name().to_owned())
}

#[test]
fn the_proto_has_the_numbers_of_the_ledger_and_no_others() {
    let Some(ledger) = corpus::text("proto-bytes/numbers-1.1.txt") else { return };
    let slots = ledger.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let ledger: BTreeSet<String> = slots.map(str::to_owned).collect();
    assert_eq!(ledger.len(), 301);

    let pool = pool();
    let mut ours = BTreeSet::new();
    for message in messages(&pool) {
        let message_name = name(message.full_name());
        for field in message.fields() {
            let oneof = oneof(&field).map(|oneof| format!("{oneof}.")).unwrap_or_default();
            ours.insert(format!("{message_name}.{oneof}{} = {}", field.name(), field.number()));
        }
    }
    for group in pool.all_enums().filter(|group| group.package_name() == "ag_ui") {
        for value in group.values() {
            ours.insert(format!(
                "{}.{} = {}",
                name(group.full_name()),
                value.name(),
                value.number()
            ));
        }
    }
    assert_eq!(ours.difference(&ledger).collect::<Vec<_>>(), [""; 0]);
    assert_eq!(ledger.difference(&ours).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn the_tables_have_the_fields_of_the_proto_and_no_others() {
    let pool = pool();
    let mut tables: BTreeMap<&str, &[Field]> = tables::messages().into_iter().collect();
    assert_eq!(tables.len(), tables::messages().len(), "no table is listed twice");
    for message in messages(&pool) {
        let message_name = name(message.full_name());
        if message_name == "Event" {
            continue;
        }
        let table = tables.remove(message_name.as_str()).expect(&message_name);
        let numbers: Vec<u32> = table.iter().map(|field| field.number).collect();
        assert!(numbers.is_sorted(), "{message_name} is written in ascending order");
        let declared: Vec<(u32, String, Label, String)> =
            message.fields().map(|field| declared(&field)).collect();
        let ours: Vec<_> = table
            .iter()
            .map(|field| (field.number, field.name.to_owned(), field.label, spelled(field.kind)))
            .collect();
        assert_eq!(ours, declared, "{message_name}");
    }
    assert!(tables.is_empty(), "not in the .proto: {tables:?}");
}

fn declared(field: &FieldDescriptor) -> (u32, String, Label, String) {
    let kind = match field.kind() {
        ProtoKind::Message(message) => format!("message {}", name(message.full_name())),
        ProtoKind::Enum(group) => format!("enum {}", name(group.full_name())),
        other => format!("{other:?}").to_lowercase(),
    };
    let label = match field.cardinality() {
        Cardinality::Repeated => Label::Repeated,
        _ if field.supports_presence() => Label::Optional,
        _ => Label::Plain,
    };
    (field.number(), field.name().to_owned(), label, kind)
}

fn spelled(kind: Kind) -> String {
    match kind {
        Kind::String => "string".into(),
        Kind::Bool => "bool".into(),
        Kind::Int64 => "int64".into(),
        Kind::Enum(name) => format!("enum {name}"),
        Kind::Message(name) => format!("message {name}"),
    }
}

#[test]
fn the_envelope_and_the_enums_are_those_of_the_proto() {
    let pool = pool();
    let types = pool.get_enum_by_name("ag_ui.EventType").expect("the types");
    let event = pool.get_message_by_name("ag_ui.Event").expect("the envelope");
    let envelope = tables::envelope();
    assert_eq!(envelope.len(), event.fields().len());
    assert_eq!(envelope.len(), types.values().len());
    assert_eq!(envelope.len(), EventType::ALL.len());
    for (at, (number, kind, enum_number, message)) in envelope.into_iter().enumerate() {
        assert_eq!(number as usize, at + 1, "numbered without a gap");
        let field = event.get_field(number).expect(kind);
        assert_eq!(field.name().to_uppercase(), kind);
        assert_eq!(oneof(&field).as_deref(), Some("event"));
        assert_eq!(field.kind().as_message().expect(kind).name(), message);
        assert_eq!(types.get_value(enum_number as i32).expect(kind).name(), kind);
    }
    let operations = pool.get_enum_by_name("ag_ui.JsonPatchOperationType").expect("operations");
    let names: Vec<String> = operations.values().map(|it| it.name().to_lowercase()).collect();
    assert_eq!(names, tables::patch_operations());
    for (at, operation) in operations.values().enumerate() {
        assert_eq!(operation.number() as usize, at);
    }
}

/// Events of every kind, as far as the corpus is there.
fn events() -> Option<Vec<Event>> {
    let rows = corpus::text("proto-bytes/encode.json")?;
    let rows: Vec<serde_json::Value> = serde_json::from_str(&rows).expect("rows");
    let texts = rows.iter().map(|row| row["event"].to_string());
    let mixed = corpus::unpacked("workloads/w2-mixed.sse.gz")?;
    let mixed = String::from_utf8(mixed).expect("text");
    let lines = mixed.lines().filter_map(|line| line.strip_prefix("data: ").map(str::to_owned));
    let read = |text: String| Event::from_json_exact(&text).expect("an event");
    Some(texts.chain(lines.take(610)).map(read).collect())
}

#[test]
fn prost_reads_what_we_write_and_we_read_what_prost_writes() {
    let Some(events) = events() else { return };
    let envelope = pool().get_message_by_name("ag_ui.Event").expect("the envelope");
    let mut encoder = Encoder::new(WireForm::Proto);
    let mut seen = BTreeSet::new();
    for event in &events {
        let mut body = Vec::new();
        encoder.encode(event, None, &mut body).expect("a form");
        let message = DynamicMessage::decode(envelope.clone(), &body[4..]).expect("decodes");
        assert_eq!(unknown(&message), 0, "{}", event.to_json());
        // The same fields in the same order, but for the members of objects; a member's empty name
        // may be left out.
        let theirs = message.encode_to_vec();
        let nameless = event.to_json().matches("\"\":").count();
        assert_eq!(theirs.len() + 2 * nameless, body.len() - 4, "{}", event.to_json());

        let mut frame = (theirs.len() as u32).to_be_bytes().to_vec();
        frame.extend_from_slice(&theirs);
        let mut decoder = Decoder::new(WireForm::Proto, Limits::default());
        let (ours, theirs) = (&body[..], &frame[..]);
        let [ours, theirs] = [ours, theirs].map(|mut read| {
            let decoded = decoder.decode(&mut read).expect("decodes").expect("a frame");
            let event = decoded.event.expect("an event").value;
            serde_json::from_str::<serde_json::Value>(&event.to_json()).expect("JSON")
        });
        assert_eq!(ours, theirs);
        seen.insert(event.event_type());
    }
    assert_eq!(seen.len(), EventType::ALL.len(), "every type occurs");
}

/// How many fields of a message the `.proto` does not know, inner messages included.
fn unknown(message: &DynamicMessage) -> usize {
    fn inside(value: &Value) -> usize {
        match value {
            Value::Message(message) => unknown(message),
            Value::List(list) => list.iter().map(inside).sum(),
            Value::Map(map) => map.values().map(inside).sum(),
            _ => 0,
        }
    }
    let known: usize = message.fields().map(|(_, value)| inside(value)).sum();
    known + message.unknown_fields().count()
}

#[test]
fn events_of_the_corpus_read_the_same_in_both_forms() {
    // T-5
    let Some(events) = events() else { return };
    let (mut encoder, mut reader) = (Encoder::new(WireForm::Proto), EventReader::new());
    for event in &events {
        let mut body = Vec::new();
        let omitted = encoder.encode(event, None, &mut body).expect("a form");
        assert!(omitted.is_empty(), "{omitted:?}");
        let mut decoder = Decoder::new(WireForm::Proto, Limits::default());
        let decoded = decoder.decode(&mut &body[..]).expect("decodes").expect("a frame");
        let found = decoded.event.expect("an event");
        let again = reader.tolerant(&found.value.to_json()).expect("an event");
        assert_eq!(found.value, again.value);
        assert_eq!(found.findings.len(), 0);
        assert_eq!(found.value.event_type(), event.event_type());
    }
}
