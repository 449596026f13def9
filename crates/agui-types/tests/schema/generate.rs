//! Instances of a shape: every alternative at every place at least once.

use super::node::Node;
use super::shape::{Object, Schema, Shape};

/// Values of every JSON kind, written in ways that only survive as text. None of them is `null`.
const OPAQUE: [&str; 18] = [
    "1.10",
    "1e2",
    "-0",
    "-0.0",
    "1E+05",
    "123456789012345678901234567890",
    "0.1234567890123456789",
    "true",
    "false",
    r#""""#,
    r#""\u00e9\ud83d\ude00\/\u0000""#,
    r#""日本 😀 e\u0301""#,
    "[]",
    "[ 1 ,\t2,\r\n[ ] ]",
    "{}",
    r#"{ "b" : 1, "a" : { "z":null, "\u0061":[ ] } , "":{} }"#,
    r#"{"a":1,"a":2}"#,
    r#"{"type":"TEXT_MESSAGE_END","role":"user","op":"add","__proto__":{"constructor":0}}"#,
];

/// Objects whose members are data.
const OPEN: [&str; 4] = [
    "{}",
    r#"{"ag-ui":null}"#,
    r#"{ "n":1.10 , "\u0061" :[1e2 ,-0],"é":{"b":{},"a":"\u2028"} }"#,
    r#"{"type":7,"a":1,"a":2}"#,
];

/// Strings of every kind, none of them with more escapes than JSON requires.
const TEXTS: [&str; 5] = [
    "x",
    "",
    "\"\\/\u{8}\u{c}\n\r\t\u{0}\u{1f}\u{7f}",
    "é日本😀e\u{301}\u{200d}\u{2028}\u{fffd}",
    "a text that is longer than eight bytes and ends in a quote\"",
];

const POINTERS: [&str; 5] = ["", "/", "/a/0", "/~0~1/é \"\\", "//-"];

impl Schema {
    /// Instances in which every alternative of every place occurs: each optional member alone, each
    /// union arm, each enum value, each kind of opaque value; and those with every member there.
    pub(crate) fn instances(&self, shape: &Shape) -> Vec<Node> {
        let mut all = self.each(shape);
        all.extend(self.full(shape));
        all
    }

    /// The instance with the least in it.
    pub(crate) fn least(&self, shape: &Shape) -> Node {
        match self.resolve(shape) {
            Shape::Union(arms) => self.least(&arms[0]),
            Shape::Array { items, least } => Node::Array(vec![self.least(items); *least]),
            Shape::Object(object) => Node::Object(self.required_only(object)),
            other => self.each(other).swap_remove(0),
        }
    }

    /// The instances with the most in them: every member, every arm of a union in turn.
    pub(crate) fn full(&self, shape: &Shape) -> Vec<Node> {
        match self.resolve(shape) {
            Shape::Any { .. } => vec![Node::leaf(OPAQUE[15])],
            Shape::Open => vec![Node::leaf(OPEN[2])],
            Shape::Text => vec![Node::text(TEXTS[2]), Node::text(TEXTS[3])],
            Shape::Union(arms) => arms.iter().flat_map(|arm| self.full(arm)).collect(),
            Shape::Array { items, .. } => {
                self.full(items).into_iter().map(|item| Node::Array(vec![item])).collect()
            }
            Shape::Object(object) => {
                let each: Vec<(&String, Vec<Node>)> = object
                    .members
                    .iter()
                    .map(|(name, member)| (name, self.full_member(name, &member.shape)))
                    .collect();
                // As many instances as the richest member has alternatives.
                let most = each.iter().map(|(_, values)| values.len()).max().unwrap_or(1);
                (0..most)
                    .map(|turn| {
                        let member = |(name, values): &(&String, Vec<Node>)| {
                            ((*name).clone(), values[turn % values.len()].clone())
                        };
                        Node::Object(each.iter().map(member).collect())
                    })
                    .collect()
            }
            other => self.each(other),
        }
    }

    /// As [`Schema::full`], with strings that begin with the member's name.
    fn full_member(&self, name: &str, shape: &Shape) -> Vec<Node> {
        match self.resolve(shape) {
            Shape::Text => {
                [TEXTS[2], TEXTS[3]].map(|text| Node::text(&format!("{name} {text}"))).into()
            }
            other => self.full(other),
        }
    }

    fn each(&self, shape: &Shape) -> Vec<Node> {
        match self.resolve(shape) {
            Shape::Any { null } => {
                let null = null.then_some("null");
                OPAQUE.into_iter().chain(null).map(Node::leaf).collect()
            }
            Shape::Text => TEXTS.map(Node::text).into(),
            Shape::OneOf(values) => values.iter().map(|value| Node::text(value)).collect(),
            Shape::Pointer => POINTERS.map(Node::text).into(),
            Shape::Integer { least, most } => {
                [*least, *most, 0, 1_700_000_000_000].map(|n| Node::leaf(n.to_string())).into()
            }
            Shape::Bool => vec![Node::leaf("true"), Node::leaf("false")],
            Shape::Open => OPEN.map(Node::leaf).into(),
            Shape::Array { items, least } => {
                let empty = (*least == 0).then(|| Node::Array(Vec::new()));
                let each = self.each(items).into_iter().map(|item| Node::Array(vec![item]));
                let least = Node::Array(vec![self.least(items); 2]);
                let all = Node::Array(self.full(items));
                empty.into_iter().chain(each).chain([least, all]).collect()
            }
            Shape::Union(arms) => arms.iter().flat_map(|arm| self.each(arm)).collect(),
            Shape::Object(object) => {
                let base = self.required_only(object);
                let mut all = vec![Node::Object(base.clone())];
                for (name, member) in &object.members {
                    for value in self.each(&member.shape) {
                        let mut members = base.clone();
                        members.retain(|(key, _)| key != name);
                        members.push((name.clone(), value));
                        all.push(Node::Object(members));
                    }
                }
                all
            }
            Shape::Definition(_) => unreachable!("resolved above"),
        }
    }

    fn required_only(&self, object: &Object) -> Vec<(String, Node)> {
        let required = object.members.iter().filter(|(_, member)| member.required);
        required.map(|(name, member)| (name.clone(), self.least(&member.shape))).collect()
    }
}
