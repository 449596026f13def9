//! The types against the published JSON Schema, definition by definition: what the schema accepts
//! is read exactly and written back byte for byte, what it refuses is refused at its place, and
//! what the types write validates.
//!
//! The instances are generated from the schema, so that nothing in it can be forgotten; a test of its
//! own proves that nothing was. One instance of each definition is checked in, so that much of this
//! holds on a machine without the schema.

#[path = "../common/mod.rs"]
mod common;
mod definitions;
#[cfg(feature = "schemars")]
mod derived;
mod generate;
mod instances;
mod mutate;
mod node;
mod shape;

use std::collections::BTreeSet;

use agui_types::event::EventType;
use agui_types::read::{Finding, FindingKind};
use agui_types::{ReadErrorKind, ToJson};
use jsonschema::Validator;
use serde_json::Value;

use common::corpus;
use definitions::{Definition, Readings, definitions};
use mutate::{Change, Mutation};
use node::{Node, Step, pointer};
use shape::{Schema, Shape};

/// The published schema, or `None` on a machine without it.
fn published(name: &str) -> Option<Schema> {
    let path = corpus("schema")?.join(name);
    Some(Schema::parse(&std::fs::read_to_string(path).unwrap()))
}

fn current() -> Option<Schema> {
    published("agui-1.1.schema.json")
}

fn validator(schema: &Schema, name: &str) -> Validator {
    jsonschema::validator_for(&schema.rooted_at(name)).unwrap()
}

/// Calls back with every definition that can be read, its shape and its readings.
fn each_definition(schema: &Schema, mut check: impl FnMut(&str, &Shape, Readings)) {
    for Definition { name, readings } in definitions() {
        if let Some(readings) = readings {
            check(name, &schema.definitions[name], readings);
        }
    }
}

#[test]
fn there_is_a_type_for_every_definition() {
    let Some(schema) = current() else { return };
    let ours: BTreeSet<&str> = definitions().iter().map(|definition| definition.name).collect();
    let theirs: BTreeSet<&str> = schema.definitions.keys().map(String::as_str).collect();
    assert_eq!(ours, theirs);
    assert_eq!((theirs.len(), definitions().len()), (98, 98));
    assert_eq!(definitions().iter().filter(|definition| definition.readings.is_none()).count(), 3);

    let Shape::OneOf(types) = &schema.definitions["EventType"] else { panic!("no list") };
    let ours: Vec<&str> = EventType::ALL.iter().map(|known| known.as_str()).collect();
    assert_eq!((&ours, ours.len()), (&types.iter().map(String::as_str).collect(), 31));
}

#[test]
fn what_the_schema_accepts_is_read_and_written_back_byte_for_byte() {
    // P-17, C-20, C-21, C-30, C-31, C-40
    let Some(schema) = current() else { return };
    let mut seen = 0;
    each_definition(&schema, |name, shape, readings| {
        let validator = validator(&schema, name);
        for (turn, instance) in schema.instances(shape).iter().enumerate() {
            let text = instance.render();
            assert!(is_valid(&validator, &text), "{name}: the generator is wrong: {text}");
            round_trip(name, readings, &validator, instance);
            same_in_any_order(name, readings, instance, turn);
            seen += 1;
        }
    });
    assert!(seen > 5_000, "{seen} instances");
}

/// Exact reading accepts; what is written has every member, every raw value as it was, and
/// validates; an instance in the order of writing comes back byte for byte; the tolerant reading
/// gives the same value and has nothing to report.
fn round_trip(name: &str, readings: Readings, validator: &Validator, instance: &Node) {
    let text = instance.render();
    let value = (readings.exact)(&text)
        .unwrap_or_else(|refusal| panic!("{name}: {} in {text}", refusal.text));
    let written = value.json();
    let ordered = instance
        .ordered_like(&written)
        .unwrap_or_else(|lost| panic!("{name}: {lost}\n{text}\n{written}"));
    assert_eq!(ordered.render(), written, "{name}");
    assert!(is_valid(validator, &written), "{name}: {written}");
    let again = (readings.exact)(&written).unwrap();
    assert!(again.same(&*value), "{name}: {written}");
    assert_eq!(again.json(), written, "{name}");

    if let Some(tolerant) = readings.tolerant {
        let (tolerated, findings) = tolerant(&text).unwrap();
        assert!(tolerated.same(&*value), "{name}: {text}");
        assert_eq!(*findings, [], "{name}: {text}");
    }
}

/// Puts the members of an object in another order.
type Order<'a> = &'a mut dyn FnMut(&mut Vec<(String, Node)>);

/// Members in reverse, shuffled, and with the discriminator last: the same value.
fn same_in_any_order(name: &str, readings: Readings, instance: &Node, seed: usize) {
    let value = (readings.exact)(&instance.render()).unwrap();
    let mut state = seed as u64;
    let mut orders: [Order<'_>; 3] = [
        &mut |members| members.reverse(),
        &mut |members| shuffle(members, &mut state),
        &mut |members| members.sort_by_key(|(name, _)| matches!(&**name, "type" | "role" | "op")),
    ];
    for order in &mut orders {
        let text = instance.reordered(order).render();
        let read = (readings.exact)(&text)
            .unwrap_or_else(|refusal| panic!("{name}: {} in {text}", refusal.text));
        assert!(read.same(&*value), "{name}: {text}");
    }
}

#[test]
fn what_the_schema_refuses_is_refused_at_its_place() {
    // C-23, C-24, C-26, C-28, C-29, C-68, T-22
    let Some(schema) = current() else { return };
    let (mut accepted, mut refused) = (0, 0);
    each_definition(&schema, |name, shape, readings| {
        let validator = validator(&schema, name);
        // The insides of the events are those of the definitions that have their own turn.
        let depth = if name == "Event" { 1 } else { usize::MAX };
        let instances = [schema.full(shape), vec![schema.least(shape)]].concat();
        for mutation in schema.mutations(shape, &instances, depth) {
            let text = mutation.instance.render();
            if is_valid(&validator, &text) {
                accepted += 1;
                (readings.exact)(&text)
                    .unwrap_or_else(|refusal| panic!("{name}: {} in {text}", refusal.text));
            } else {
                refused += 1;
                refused_at_its_place(name, readings, &mutation);
            }
        }
    });
    assert!(accepted > 1_000 && refused > 10_000, "{accepted} accepted, {refused} refused");
}

fn refused_at_its_place(name: &str, readings: Readings, mutation: &Mutation) {
    let Mutation { change, place, instance, .. } = mutation;
    let (text, offset) = instance.render_marking(place);
    let Err(refusal) = (readings.exact)(&text) else {
        panic!("{name}: {change:?} at {} was accepted: {text}", pointer(place));
    };
    let context = format!("{name}: {change:?} at {}: {refusal:?}\n{text}", pointer(place));
    // A value that became an object or an array may be refused for what it holds or lacks.
    let at = pointer(place);
    let above = at.starts_with(&refusal.path)
        && matches!(at.as_bytes().get(refusal.path.len()), None | Some(b'/'));
    let below = *change == Change::Value && refusal.path.starts_with(&at);
    assert!(above || below, "{context}");

    let Some(kind) = refusal.kind else { return };
    if refusal.path == at && kind != ReadErrorKind::Missing && offset.is_some() {
        assert_eq!(Some(refusal.offset), offset, "{context}");
    }
    let expected = match change {
        Change::Missing => [ReadErrorKind::Missing, ReadErrorKind::NotAnEvent],
        Change::Null => [ReadErrorKind::Null; 2],
        Change::Extra => [ReadErrorKind::UnknownMember; 2],
        Change::Tag => [ReadErrorKind::UnknownVariant, ReadErrorKind::InvalidValue],
        Change::Value => [kind; 2],
    };
    assert!(expected.contains(&kind), "{context}");
    tolerated_or_not(readings, mutation, &text, kind, &context);
}

/// What only the exact reading refuses, the tolerant reading reports; what is malformed it refuses
/// for the same reason.
fn tolerated_or_not(
    readings: Readings,
    mutation: &Mutation,
    text: &str,
    kind: ReadErrorKind,
    context: &str,
) {
    let Some(tolerant) = readings.tolerant else {
        return;
    };
    if mutation.change == Change::Value && kind == ReadErrorKind::UnknownMember {
        // `{"a":1}` has a member too many and lacks others: two faults.
        return;
    }
    let at = pointer(&mutation.place);
    match kind {
        ReadErrorKind::Null | ReadErrorKind::UnknownMember | ReadErrorKind::UnknownVariant => {
            let (value, findings) =
                tolerant(text).unwrap_or_else(|refusal| panic!("{} {context}", refusal.text));
            let [Finding { path, kind, .. }] = &*findings else { panic!("{findings:?} {context}") };
            match (&mutation.without, kind) {
                (Some(without), FindingKind::Null) => {
                    assert_eq!((path, mutation.change), (&at, Change::Null), "{context}");
                    assert!(value.same(&*(readings.exact)(&without.render()).unwrap()));
                }
                (Some(without), FindingKind::UnknownMember(raw)) => {
                    assert_eq!((path, mutation.change), (&at, Change::Extra), "{context}");
                    assert_eq!(raw.as_str(), r#"{ "a" : 1.0 }"#, "{context}");
                    assert!(value.same(&*(readings.exact)(&without.render()).unwrap()));
                }
                (None, FindingKind::UnknownVariant(_) | FindingKind::UnknownValue(_)) => {
                    assert!(at.starts_with(path), "{context}");
                    kept_whole(mutation, &value.json(), context);
                }
                (None, FindingKind::Null) => assert_eq!(path, &at, "{context}"),
                other => panic!("{other:?} {context}"),
            }
        }
        _ => match tolerant(text) {
            Err(refusal) => assert_eq!(refusal.kind, Some(kind), "{context}"),
            // An object that does not say what it is: of no kind the protocol describes.
            Ok((value, findings)) => {
                let [Finding { path, kind: FindingKind::UnknownVariant(tag) }] = &*findings else {
                    panic!("tolerated: {findings:?} {context}")
                };
                assert!(tag.is_empty() && at.starts_with(path), "{context}");
                kept_whole(mutation, &value.json(), context);
            }
        },
    }
}

/// What is not recognised in a union or a closed set is still there, in the value and in what it
/// writes.
fn kept_whole(mutation: &Mutation, written: &str, context: &str) {
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert_eq!(value(written), value(&mutation.instance.render()), "{context}");
}

#[test]
fn nothing_in_the_schema_is_left_out() {
    let Some(schema) = current() else { return };
    let mut seen = BTreeSet::new();
    for (name, shape) in &schema.definitions {
        for instance in schema.instances(shape) {
            cover(&schema, shape, &instance, name, &mut seen);
        }
    }
    let mut expected = BTreeSet::new();
    for (name, shape) in &schema.definitions {
        expect(shape, name, &mut expected);
    }
    let missed: Vec<_> = expected.difference(&seen).collect();
    assert!(missed.is_empty(), "{missed:?}");
    // Counted by hand from the published file, so that the walk itself cannot miss a part of it.
    let count = |suffix: &str| expected.iter().filter(|fact| fact.ends_with(suffix)).count();
    let own: usize = schema.text["$defs"]
        .as_object()
        .unwrap()
        .values()
        .map(|schema| schema["properties"].as_object().map_or(0, serde_json::Map::len))
        .sum();
    assert!(count(" present") >= own, "{} of {own}", count(" present"));
    for event in EventType::ALL {
        assert!(expected.iter().any(|fact| fact.ends_with(&format!(".type = {event}"))), "{event}");
    }
    for role in ["developer", "system", "assistant", "user", "tool", "activity", "reasoning"] {
        let fact = |fact: &&String| fact.ends_with(&format!("Message.role = {role}"));
        assert!(expected.iter().any(|it| fact(&it)), "{role}");
    }
}

/// The facts that an instance shows: members present and absent, values of closed sets, arms.
fn cover(schema: &Schema, shape: &Shape, value: &Node, at: &str, seen: &mut BTreeSet<String>) {
    match (shape, value) {
        (Shape::Definition(name), _) => cover(schema, &schema.definitions[name], value, name, seen),
        (Shape::OneOf(_), Node::Leaf(text)) => {
            let text: String = serde_json::from_str(text).unwrap();
            seen.insert(format!("{at} = {text}"));
        }
        (Shape::Bool | Shape::Any { .. }, Node::Leaf(text)) => {
            seen.insert(format!("{at} = {}", kind(text)));
        }
        (Shape::Array { items, .. }, Node::Array(values)) => {
            seen.insert(format!("{at} of {}", values.len().min(2)));
            for value in values {
                cover(schema, items, value, &format!("{at}[]"), seen);
            }
        }
        (Shape::Union(arms), _) => {
            let (position, _) = schema.arm(arms, value).unwrap();
            seen.insert(format!("{at} | {position}"));
            cover(schema, &arms[position], value, at, seen);
        }
        (Shape::Object(object), Node::Object(_)) => {
            for (name, member) in &object.members {
                let at = format!("{at}.{name}");
                let there = if value.member(name).is_some() { "present" } else { "absent" };
                seen.insert(format!("{at} {there}"));
                if let Some(value) = value.member(name) {
                    cover(schema, &member.shape, value, &at, seen);
                }
            }
        }
        _ => {}
    }
}

/// The facts that instances of a shape must show between them.
fn expect(shape: &Shape, at: &str, facts: &mut BTreeSet<String>) {
    match shape {
        Shape::OneOf(values) => facts.extend(values.iter().map(|value| format!("{at} = {value}"))),
        Shape::Bool => facts.extend(["true", "false"].map(|value| format!("{at} = {value}"))),
        Shape::Any { null } => {
            let kinds = ["true", "false", "a number", "a string", "an array", "an object"];
            let null = null.then_some("null");
            facts.extend(kinds.into_iter().chain(null).map(|kind| format!("{at} = {kind}")));
        }
        Shape::Array { items, least } => {
            facts.extend((*least..=2).map(|length| format!("{at} of {length}")));
            expect(items, &format!("{at}[]"), facts);
        }
        Shape::Union(arms) => {
            for (position, arm) in arms.iter().enumerate() {
                facts.insert(format!("{at} | {position}"));
                expect(arm, at, facts);
            }
        }
        Shape::Object(object) => {
            for (name, member) in &object.members {
                let at = format!("{at}.{name}");
                facts.insert(format!("{at} present"));
                if !member.required {
                    facts.insert(format!("{at} absent"));
                }
                expect(&member.shape, &at, facts);
            }
        }
        // A definition has its facts under its own name.
        Shape::Definition(_) | Shape::Text | Shape::Pointer | Shape::Integer { .. } => {}
        Shape::Open => {}
    }
}

fn kind(text: &str) -> &'static str {
    match text.as_bytes()[0] {
        b'n' => "null",
        b't' => "true",
        b'f' => "false",
        b'"' => "a string",
        b'[' => "an array",
        b'{' => "an object",
        _ => "a number",
    }
}

#[test]
fn the_1_0_schema_lacks_only_the_type_of_encrypted_values() {
    // C-64
    let (Some(newer), Some(older)) = (current(), published("agui-1.0.schema.json")) else {
        return;
    };
    let mut stripped = newer.text.clone();
    let mut removed = Vec::new();
    for (name, schema) in stripped["$defs"].as_object_mut().unwrap() {
        let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
        if properties.is_some_and(|members| members.remove("encryptedValueType").is_some()) {
            removed.push(name.clone());
        }
    }
    let holders = [
        "BaseMessage",
        "ReasoningEncryptedValueEvent",
        "ReasoningMessage",
        "ToolCall",
        "ToolMessage",
    ];
    removed.sort();
    assert_eq!(removed, holders);
    stripped["$id"] = older.text["$id"].clone();
    assert_eq!(stripped, older.text);

    // What is written without one is 1.0.
    for name in ["Message", "ToolCall", "ReasoningEncryptedValueEvent"] {
        let validator = validator(&older, name);
        let all = definitions();
        let readings = all.iter().find(|it| it.name == name).unwrap().readings.unwrap();
        for instance in older.full(&older.definitions[name]) {
            round_trip(name, readings, &validator, &instance);
        }
        for instance in newer.full(&newer.definitions[name]) {
            let text = instance.render();
            let typed = text.contains("encryptedValueType");
            assert_eq!(is_valid(&validator, &text), !typed, "{text}");
        }
    }
}

#[test]
fn the_unwritten_is_absent() {
    // P-17: nothing optional is written that was not set, by construction too.
    let event = agui_types::event::TextMessageChunk::new();
    assert_eq!(event.to_json(), r#"{"type":"TEXT_MESSAGE_CHUNK"}"#);
}

fn is_valid(validator: &Validator, text: &str) -> bool {
    validator.is_valid(&serde_json::from_str(text).unwrap())
}

fn shuffle<T>(items: &mut [T], state: &mut u64) {
    for at in (1..items.len()).rev() {
        // SplitMix64: the same order in every run.
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let pick = usize::try_from((z ^ (z >> 31)) % (at as u64 + 1)).unwrap();
        items.swap(at, pick);
    }
}

#[test]
fn places_are_json_pointers() {
    let place = [Step::Member("a/b~".into()), Step::Index(3)];
    assert_eq!(pointer(&place), "/a~1b~0/3");
}
