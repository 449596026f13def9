//! Instances with one thing wrong, or at least changed.

use std::collections::BTreeSet;

use super::node::{Node, Place, Step, pointer};
use super::shape::{Object, Schema, Shape};

/// What was done to an instance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Change {
    /// A value became another value, of any kind.
    Value,
    /// A required member went.
    Missing,
    /// An optional member became `null`.
    Null,
    /// A member came that is not described there.
    Extra,
    /// A discriminator became one that no arm has.
    Tag,
}

pub(crate) struct Mutation {
    pub(crate) change: Change,
    /// Where the change is.
    pub(crate) place: Place,
    pub(crate) instance: Node,
    /// For `Null` and `Extra`: the instance without the member.
    pub(crate) without: Option<Node>,
}

/// Values of every JSON kind.
const KINDS: [&str; 9] = ["null", "true", "7", "1.5", r#""s""#, "[]", "{}", "[7]", r#"{"a":1}"#];

/// Integers at and beyond the bounds, and numbers that are none, or are one all the same.
const INTEGERS: [&str; 12] = [
    "9007199254740991",
    "9007199254740992",
    "-9007199254740991",
    "-9007199254740992",
    "-1",
    "18446744073709551616",
    "1e300",
    "0.5",
    "1.0",
    "1e3",
    "-0",
    r#""0""#,
];

const NO_POINTERS: [&str; 6] = ["a", "a/b", "~0", "/~", "/a~2b", "/a/~"];

/// Names that no definition has, some of them awkward.
const FOREIGN: [&str; 8] =
    ["x", "", "a/b~c~01", "é \"\n", "Type", "constructor", "__proto__", "subAgents"];

impl Schema {
    /// Every change at every described place of some instances of a shape, down to so many steps
    /// from the root. A change that an earlier instance had at the same place, in the same arms, is
    /// not made again.
    pub(crate) fn mutations(
        &self,
        shape: &Shape,
        instances: &[Node],
        depth: usize,
    ) -> Vec<Mutation> {
        let names = self.definitions.values().filter_map(|shape| match shape {
            Shape::Object(object) => Some(object.members.keys().cloned()),
            _ => None,
        });
        let names: BTreeSet<String> = names.flatten().chain(FOREIGN.map(str::to_owned)).collect();
        let (mut found, mut made) = (Vec::new(), BTreeSet::new());
        for root in instances {
            let mut walk = Walk {
                schema: self,
                root,
                depth,
                names: &names,
                arms: Vec::new(),
                made: &mut made,
                found: &mut found,
            };
            walk.visit(shape, root, &mut Vec::new());
        }
        found
    }

    /// The arm of a union that a value belongs to.
    pub(crate) fn arm<'a>(&'a self, arms: &'a [Shape], value: &Node) -> Option<(usize, &'a Shape)> {
        arms.iter().map(|arm| self.resolve(arm)).enumerate().find(|(_, arm)| match (arm, value) {
            (Shape::Text, Node::Leaf(text)) => text.starts_with('"'),
            (Shape::Array { .. }, Node::Array(_)) => true,
            (Shape::Object(object), Node::Object(_)) => {
                object.members.iter().all(|(name, member)| match &member.shape {
                    Shape::OneOf(values) if values.len() == 1 => {
                        value.member(name) == Some(&Node::text(&values[0])) || !member.required
                    }
                    _ => true,
                })
            }
            _ => false,
        })
    }
}

struct Walk<'a> {
    schema: &'a Schema,
    root: &'a Node,
    depth: usize,
    /// Every member name of the schema, and some more.
    names: &'a BTreeSet<String>,
    /// The arms on the way to here.
    arms: Vec<usize>,
    /// The changes made already.
    made: &'a mut BTreeSet<String>,
    found: &'a mut Vec<Mutation>,
}

impl Walk<'_> {
    fn visit(&mut self, shape: &Shape, value: &Node, place: &mut Place) {
        for kind in KINDS {
            self.replace(place, kind, Change::Value);
        }
        match (self.schema.resolve(shape), value) {
            (Shape::OneOf(values), _) => {
                for other in ["", "unknown", &values[0].to_uppercase(), &format!("{} ", values[0])]
                {
                    self.replace(place, &Node::text(other).render(), Change::Value);
                }
            }
            (Shape::Integer { .. }, _) => {
                for integer in INTEGERS {
                    self.replace(place, integer, Change::Value);
                }
            }
            (Shape::Pointer, _) => {
                for pointer in NO_POINTERS {
                    self.replace(place, &Node::text(pointer).render(), Change::Value);
                }
            }
            (Shape::Array { items, .. }, Node::Array(values)) if place.len() < self.depth => {
                for (at, value) in values.iter().enumerate() {
                    place.push(Step::Index(at));
                    self.visit(items, value, place);
                    place.pop();
                }
            }
            (Shape::Union(arms), _) => {
                if let Some((position, arm)) = self.schema.arm(arms, value) {
                    self.arms.push(position);
                    if let Node::Object(members) = value {
                        for tag in members.iter().map(|(name, _)| name).filter(|n| is_tag(n)) {
                            place.push(Step::Member(tag.clone()));
                            self.replace(place, r#""unknown""#, Change::Tag);
                            place.pop();
                        }
                    }
                    self.inside(arm, value, place);
                    self.arms.pop();
                }
            }
            (other, value) => self.inside(other, value, place),
        }
    }

    fn inside(&mut self, shape: &Shape, value: &Node, place: &mut Place) {
        match (shape, value) {
            (Shape::Object(object), Node::Object(_)) => {
                self.members(object, value, place);
            }
            (Shape::Array { .. }, Node::Array(_)) if place.len() < self.depth => {
                self.visit(shape, value, place);
            }
            _ => {}
        }
    }

    fn members(&mut self, object: &Object, value: &Node, place: &mut Place) {
        // Every name of the schema at the root; of the rest, each definition has its own turn.
        let sweep = place.is_empty();
        let foreign: Vec<String> =
            self.names.iter().filter(|name| !object.members.contains_key(*name)).cloned().collect();
        for name in foreign.into_iter().filter(|name| sweep || name.len() < 2) {
            self.edit(place, Change::Extra, Step::Member(name.clone()), |members| {
                members.push((name, Node::leaf(r#"{ "a" : 1.0 }"#)));
            });
        }
        for (name, member) in &object.members {
            let Some(held) = value.member(name) else {
                continue;
            };
            let step = Step::Member(name.clone());
            if member.required {
                self.edit(place, Change::Missing, step.clone(), |members| {
                    members.retain(|(key, _)| key != name);
                });
            } else {
                self.edit(place, Change::Null, step.clone(), |members| {
                    for (_, value) in members.iter_mut().filter(|(key, _)| key == name) {
                        *value = Node::leaf("null");
                    }
                });
            }
            if place.len() < self.depth {
                place.push(step);
                self.visit(&member.shape, held, place);
                place.pop();
            }
        }
    }

    fn replace(&mut self, place: &Place, value: &str, change: Change) {
        if !self.is_new(place, change, value) {
            return;
        }
        let mut instance = self.root.clone();
        *instance.at_mut(place).unwrap() = Node::leaf(value);
        if instance != *self.root {
            let place = place.clone();
            self.found.push(Mutation { change, place, instance, without: None });
        }
    }

    fn edit(
        &mut self,
        place: &Place,
        change: Change,
        step: Step,
        edit: impl FnOnce(&mut Vec<(String, Node)>),
    ) {
        let Step::Member(name) = &step else { unreachable!("members have names") };
        if !self.is_new(place, change, name) {
            return;
        }
        let mut instance = self.root.clone();
        edit(instance.at_mut(place).unwrap().members_mut());
        let mut without = instance.clone();
        without.at_mut(place).unwrap().members_mut().retain(|(key, _)| key != name);
        let without = matches!(change, Change::Null | Change::Extra).then_some(without);
        let place = place.iter().cloned().chain([step]).collect();
        self.found.push(Mutation { change, place, instance, without });
    }

    fn is_new(&mut self, place: &Place, change: Change, what: &str) -> bool {
        self.made.insert(format!("{} {:?} {change:?} {what}", pointer(place), self.arms))
    }
}

fn is_tag(name: &str) -> bool {
    matches!(name, "type" | "role" | "op")
}
