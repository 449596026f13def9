//! The published schema as a generator needs it: what may stand at each place.

use std::collections::BTreeMap;

use serde_json::Value;

/// What may stand at a place.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// Any JSON value; `null` only where it is said.
    Any { null: bool },
    /// Any string.
    Text,
    /// One of these strings.
    OneOf(Vec<String>),
    /// A string that is a JSON Pointer.
    Pointer,
    /// An integer within these bounds.
    Integer { least: i64, most: i64 },
    /// `true` or `false`.
    Bool,
    /// An object whose members are data.
    Open,
    /// An array of at least so many.
    Array { items: Box<Shape>, least: usize },
    /// One of these objects, or a string or an array.
    Union(Vec<Shape>),
    /// An object with described members.
    Object(Object),
    /// Another definition.
    Definition(String),
}

/// An object with described members.
#[derive(Clone, Debug, Default)]
pub(crate) struct Object {
    pub(crate) members: BTreeMap<String, Member>,
    /// Whether members that are not described are refused.
    pub(crate) closed: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) shape: Shape,
    pub(crate) required: bool,
}

/// The schema's definitions by name.
pub(crate) struct Schema {
    pub(crate) text: Value,
    pub(crate) definitions: BTreeMap<String, Shape>,
}

impl Schema {
    /// Reads the schema; panics at any keyword whose meaning is not known here.
    pub(crate) fn parse(text: &str) -> Self {
        let text: Value = serde_json::from_str(text).unwrap();
        let defs = text["$defs"].as_object().unwrap();
        let definitions =
            defs.iter().map(|(name, schema)| (name.clone(), shape(defs, schema))).collect();
        Self { definitions, text }
    }

    /// What a name stands for.
    pub(crate) fn resolve<'a>(&'a self, shape: &'a Shape) -> &'a Shape {
        match shape {
            Shape::Definition(name) => self.resolve(&self.definitions[name]),
            other => other,
        }
    }

    /// A schema document whose root is this definition.
    pub(crate) fn rooted_at(&self, name: &str) -> Value {
        let mut document = self.text.clone();
        document["$ref"] = format!("#/$defs/{name}").into();
        document
    }
}

type Defs = serde_json::Map<String, Value>;

fn shape(defs: &Defs, schema: &Value) -> Shape {
    const ANNOTATIONS: [&str; 5] =
        ["$anchor", "title", "description", "default", "contentEncoding"];
    let schema = schema.as_object().unwrap();
    let mut keywords: Vec<&str> =
        schema.keys().map(String::as_str).filter(|key| !ANNOTATIONS.contains(key)).collect();
    keywords.sort_unstable();
    match keywords[..] {
        [] => Shape::Any { null: true },
        ["not"] | ["$ref", "not"] => {
            assert_eq!(schema["not"], serde_json::json!({ "type": "null" }));
            if let Some(target) = schema.get("$ref") {
                let name = referred(target);
                assert!(matches!(shape(defs, &defs[&name]), Shape::Any { null: true }), "{name}");
            }
            Shape::Any { null: false }
        }
        ["$ref"] => Shape::Definition(referred(&schema["$ref"])),
        ["const"] => Shape::OneOf(strings(&serde_json::json!([schema["const"]]))),
        ["oneOf"] => {
            let arms = schema["oneOf"].as_array().unwrap();
            Shape::Union(arms.iter().map(|arm| shape(defs, arm)).collect())
        }
        _ => typed(defs, schema, &keywords),
    }
}

fn typed(defs: &Defs, schema: &Defs, keywords: &[&str]) -> Shape {
    match (schema["type"].as_str().unwrap(), keywords) {
        ("string", ["type"]) => Shape::Text,
        ("string", ["enum", "type"]) => Shape::OneOf(strings(&schema["enum"])),
        ("string", ["pattern", "type"]) => {
            assert_eq!(schema["pattern"], "^(/([^/~]|~[01])*)*$");
            Shape::Pointer
        }
        ("integer", ["maximum", "minimum", "type"]) => Shape::Integer {
            least: schema["minimum"].as_i64().unwrap(),
            most: schema["maximum"].as_i64().unwrap(),
        },
        ("boolean", ["type"]) => Shape::Bool,
        ("object", ["additionalProperties", "type"]) => {
            assert_eq!(schema["additionalProperties"], true);
            Shape::Open
        }
        ("array", ["items", "type"] | ["items", "minItems", "type"]) => Shape::Array {
            items: Box::new(shape(defs, &schema["items"])),
            least: schema
                .get("minItems")
                .map_or(0, |least| usize::try_from(least.as_u64().unwrap()).unwrap()),
        },
        ("object", _) => Shape::Object(object(defs, schema, keywords)),
        other => panic!("not known here: {other:?}"),
    }
}

fn object(defs: &Defs, schema: &Defs, keywords: &[&str]) -> Object {
    let known = ["allOf", "properties", "required", "type", "unevaluatedProperties"];
    assert!(keywords.iter().all(|key| known.contains(key)), "{keywords:?}");
    let mut object = Object::default();
    for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        let Shape::Object(part) = shape(defs, &defs[&referred(&part["$ref"])]) else {
            panic!("composed from something that is no object: {part}");
        };
        object.members.extend(part.members);
    }
    for (name, member) in schema["properties"].as_object().unwrap() {
        let required = object.members.get(name).is_some_and(|member| member.required);
        let shape = shape(defs, member);
        object.members.insert(name.clone(), Member { shape, required });
    }
    for name in schema.get("required").map(strings).into_iter().flatten() {
        object.members.get_mut(&name).unwrap().required = true;
    }
    object.closed = match schema.get("unevaluatedProperties") {
        None => false,
        Some(open) => {
            assert_eq!(open, false);
            true
        }
    };
    object
}

fn referred(target: &Value) -> String {
    target.as_str().unwrap().strip_prefix("#/$defs/").unwrap().into()
}

fn strings(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap().into()).collect()
}
