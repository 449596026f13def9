//! One instance of each definition, with everything in it, written as the types write it.
//!
//! `data/instances.jsonl` was generated from the schema and is checked in: these tests need nothing
//! else. The values in it are ours.

use std::collections::BTreeSet;

use agui_types::ReadErrorKind;
use agui_types::event::EventType;
use agui_types::read::FindingKind;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::definitions::{Readings, definitions};
use super::node::Node;
use super::shape::Shape;
use super::{current, each_definition};

const INSTANCES: &str = include_str!("../data/instances.jsonl");

#[derive(Serialize, Deserialize)]
struct Line {
    definition: String,
    /// The members that must be there.
    required: BTreeSet<String>,
    instance: Box<RawValue>,
}

fn lines() -> Vec<Line> {
    INSTANCES.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Calls back with every checked-in instance and its readings.
fn each_instance(mut check: impl FnMut(&Line, &str, Readings)) {
    let definitions = definitions();
    for line in lines() {
        let found = definitions.iter().find(|it| it.name == line.definition).unwrap();
        check(&line, line.instance.get(), found.readings.unwrap());
    }
}

#[test]
fn every_definition_has_its_instance() {
    let here: BTreeSet<String> = lines().into_iter().map(|line| line.definition).collect();
    let readable = definitions().into_iter().filter(|it| it.readings.is_some());
    let expected: BTreeSet<String> = readable.map(|it| it.name.to_owned()).collect();
    assert_eq!(here, expected);
    for event in EventType::ALL {
        let tag = format!("\"type\":\"{event}\"");
        assert!(INSTANCES.contains(&tag), "{event}");
    }
    for role in ["developer", "system", "assistant", "user", "tool", "activity", "reasoning"] {
        assert!(INSTANCES.contains(&format!("\"instance\":{{\"role\":\"{role}\"")), "{role}");
    }
}

#[test]
fn an_instance_is_written_as_it_was_read() {
    // P-17, C-20, C-30, C-31
    each_instance(|line, text, readings| {
        let name = &line.definition;
        let value = (readings.exact)(text)
            .unwrap_or_else(|refusal| panic!("{name}: {}: {text}", refusal.text));
        assert_eq!(value.json(), text, "{name}");
        if let Some(tolerant) = readings.tolerant {
            let (tolerated, findings) = tolerant(text).unwrap();
            assert_eq!(*findings, [], "{name}");
            assert!(tolerated.same(&*value), "{name}");
            assert_eq!(tolerated.json(), text, "{name}");
        }
    });
}

#[test]
fn a_member_has_the_field_of_its_name() {
    // Each string begins with the name of its member; the field shows in the debug output.
    let mut fields = 0;
    each_instance(|line, text, readings| {
        let (Some(Node::Object(members)), true) = (Node::shallow(text), is_typed(line)) else {
            return;
        };
        let debug = (readings.exact)(text).unwrap().debug();
        for (name, value) in members {
            if !value.render().starts_with(&format!("\"{name} ")) {
                continue;
            }
            let field = if name == "type" { "kind".into() } else { snake_case(&name) };
            let required = debug.contains(&format!("{field}: \"{name} "));
            let optional = debug.contains(&format!("{field}: Some(\"{name} "));
            assert!(required || optional, "{}: {field} in {debug}", line.definition);
            fields += 1;
        }
    });
    assert!(fields > 120, "{fields}");
}

#[test]
fn members_come_in_any_order_and_with_any_white_space() {
    each_instance(|line, text, readings| {
        let (Some(Node::Object(mut members)), true) = (Node::shallow(text), is_typed(line)) else {
            return;
        };
        let value = (readings.exact)(text).unwrap();
        for _ in 0..members.len() {
            members.rotate_left(1);
            let turned = Node::Object(members.clone()).render();
            let read = (readings.exact)(&turned).unwrap();
            assert!(read.same(&*value), "{}: {turned}", line.definition);
        }
        let spaced: Vec<String> = members
            .iter()
            .map(|(name, value)| {
                let name = Node::text(name).render();
                format!("\r\n\t{name} :\n {} ", value.render())
            })
            .collect();
        let spaced = format!(" {{{}}} ", spaced.join(","));
        let read = (readings.exact)(&spaced).unwrap();
        assert!(read.same(&*value), "{}: {spaced}", line.definition);
    });
}

#[test]
fn each_member_is_required_or_can_be_left_out_and_is_never_null() {
    // P-17, C-28
    let (mut required, mut optional) = (0, 0);
    each_instance(|line, text, readings| {
        let (Some(Node::Object(members)), true) = (Node::shallow(text), is_typed(line)) else {
            return;
        };
        for (at, (name, value)) in members.iter().enumerate() {
            let context = format!("{}: {name}", line.definition);
            let path = format!("/{name}");
            let mut without = members.clone();
            without.remove(at);
            let without = Node::Object(without).render();
            let mut nulled = members.clone();
            nulled[at].1 = Node::leaf("null");
            let nulled = Node::Object(nulled).render();
            if line.required.contains(name) {
                required += 1;
                let refusal = (readings.exact)(&without).err().expect(&context);
                let kinds = [Some(ReadErrorKind::Missing), Some(ReadErrorKind::NotAnEvent)];
                assert!(kinds.contains(&refusal.kind), "{context}: {}", refusal.text);
                assert_eq!(refusal.path, path, "{context}");
                continue;
            }
            optional += 1;
            let rest = (readings.exact)(&without).expect(&context);
            assert_eq!(rest.json(), without, "{context}");
            let refusal = (readings.exact)(&nulled).err().expect(&context);
            assert_eq!((refusal.kind, &refusal.path), (Some(ReadErrorKind::Null), &path));
            let (tolerated, findings) = (readings.tolerant.unwrap())(&nulled).expect(&context);
            assert_eq!((&findings[0].path, &findings[0].kind), (&path, &FindingKind::Null));
            assert!(tolerated.same(&*rest), "{context}");

            // Where a name comes twice, the last one counts.
            let member = format!("{{{}:{},", Node::text(name).render(), value.render());
            let twice = nulled.replacen('{', &member, 1);
            let (tolerated, _) = (readings.tolerant.unwrap())(&twice).expect(&context);
            assert!(tolerated.same(&*rest), "{context}: {twice}");
        }
    });
    assert!(required > 150 && optional > 150, "{required} required, {optional} optional");
}

#[test]
fn a_member_that_is_not_described_is_refused_or_reported() {
    // C-23: at the end, and before everything else, the discriminator included.
    each_instance(|line, text, readings| {
        let Some(tolerant) = readings.tolerant.filter(|_| is_typed(line)) else {
            return;
        };
        if !text.starts_with('{') || line.definition == "JsonPatchOperation" {
            return;
        }
        let value = (readings.exact)(text).unwrap();
        let raw = r#"{ "deep" : [1.0, null] }"#;
        let empty = text == "{}";
        let first =
            text.replacen('{', &format!("{{\"x/~\":{raw}{}", if empty { "" } else { "," }), 1);
        let comma = if empty { "" } else { "," };
        let last = format!("{}{comma}\"x/~\":{raw}}}", &text[..text.len() - 1]);
        for text in [first, last] {
            let refusal = (readings.exact)(&text).err().expect(&text);
            assert_eq!(refusal.kind, Some(ReadErrorKind::UnknownMember), "{text}");
            assert_eq!(refusal.path, "/x~1~0");
            assert!(text[refusal.offset..].starts_with(raw), "{text}");
            let (tolerated, findings) = tolerant(&text).expect(&text);
            assert!(tolerated.same(&*value), "{text}");
            assert_eq!(findings.len(), 1);
            assert_eq!(findings[0].path, "/x~1~0");
            let FindingKind::UnknownMember(json) = &findings[0].kind else { panic!("{text}") };
            assert_eq!(json.as_str(), raw);
        }
    });
}

fn snake_case(name: &str) -> String {
    name.chars().fold(String::new(), |mut snake, c| {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
        snake
    })
}

/// Whether an instance that is an object has described members: text alone has an order.
fn is_typed(line: &Line) -> bool {
    !matches!(&*line.definition, "Metadata" | "State")
}

#[test]
fn the_checked_in_instances_are_those_of_the_schema() {
    let Some(schema) = current() else { return };
    let mut fresh = String::new();
    each_definition(&schema, |name, shape, readings| {
        let required = |object: &super::shape::Object| {
            let required = object.members.iter().filter(|(_, member)| member.required);
            required.map(|(name, _)| name.clone()).collect()
        };
        let instances = schema.full(shape);
        let largest = instances.iter().max_by_key(|instance| instance.render().len()).unwrap();
        let arm = match schema.resolve(shape) {
            Shape::Union(arms) => schema.arm(arms, largest).unwrap().1,
            other => other,
        };
        let required = match arm {
            Shape::Object(object) => required(object),
            _ => BTreeSet::new(),
        };
        let written = (readings.exact)(&largest.render()).unwrap().json();
        let instance = RawValue::from_string(written).unwrap();
        let line = Line { definition: name.into(), required, instance };
        fresh += &serde_json::to_string(&line).unwrap();
        fresh.push('\n');
    });
    if std::env::var_os("AGUI_UPDATE").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/instances.jsonl");
        std::fs::write(path, &fresh).unwrap();
    } else {
        assert!(fresh == INSTANCES, "AGUI_UPDATE=1 writes them anew");
    }
}
