//! An instance as it is generated: the described levels as a tree, everything below as raw text.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A place in an instance: member names and indexes on the way to it.
pub(crate) type Place = Vec<Step>;

/// One step further in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    Member(String),
    Index(usize),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    /// Raw text: a scalar, or a value whose inside is not described.
    Leaf(String),
    Array(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl Node {
    pub(crate) fn leaf(text: impl Into<String>) -> Self {
        Self::Leaf(text.into())
    }

    /// A string, escaped as little as JSON allows.
    pub(crate) fn text(text: &str) -> Self {
        Self::Leaf(serde_json::to_string(text).unwrap())
    }

    /// An object with its members as raw text; `None` for anything else.
    pub(crate) fn shallow(text: &str) -> Option<Self> {
        let Members(members) = parse(text).ok()?;
        let raw = |(name, raw): (String, &RawValue)| (name, Self::leaf(raw.get()));
        Some(Self::Object(members.into_iter().map(raw).collect()))
    }

    pub(crate) fn render(&self) -> String {
        self.render_marking(&[]).0
    }

    /// The text, and where the value at a place begins in it.
    pub(crate) fn render_marking(&self, place: &[Step]) -> (String, Option<usize>) {
        let (mut out, mut mark) = (String::new(), None);
        self.write(&mut out, Some(place), &mut mark);
        (out, mark)
    }

    fn write(&self, out: &mut String, place: Option<&[Step]>, mark: &mut Option<usize>) {
        if place.is_some_and(<[Step]>::is_empty) {
            *mark = Some(out.len());
        }
        let further = |step: &Step| match place?.split_first()? {
            (first, rest) if first == step => Some(rest),
            _ => None,
        };
        match self {
            Self::Leaf(text) => out.push_str(text),
            Self::Array(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    item.write(out, further(&Step::Index(at)), mark);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (at, (name, value)) in members.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    out.push_str(&serde_json::to_string(name).unwrap());
                    out.push(':');
                    value.write(out, further(&Step::Member(name.clone())), mark);
                }
                out.push('}');
            }
        }
    }

    pub(crate) fn at_mut(&mut self, place: &[Step]) -> Option<&mut Self> {
        let Some((first, rest)) = place.split_first() else {
            return Some(self);
        };
        let inner = match (self, first) {
            (Self::Array(items), Step::Index(at)) => items.get_mut(*at),
            (Self::Object(members), Step::Member(name)) => {
                members.iter_mut().find(|(key, _)| key == name).map(|(_, value)| value)
            }
            _ => None,
        };
        inner?.at_mut(rest)
    }

    pub(crate) fn members_mut(&mut self) -> &mut Vec<(String, Node)> {
        match self {
            Self::Object(members) => members,
            other => panic!("no object: {other:?}"),
        }
    }

    pub(crate) fn member(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => {
                members.iter().find(|(key, _)| key == name).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// Reorders the members of every described object.
    pub(crate) fn reordered(&self, order: &mut impl FnMut(&mut Vec<(String, Self)>)) -> Self {
        match self {
            Self::Leaf(text) => Self::Leaf(text.clone()),
            Self::Array(items) => {
                Self::Array(items.iter().map(|item| item.reordered(order)).collect())
            }
            Self::Object(members) => {
                let mut members: Vec<_> = members
                    .iter()
                    .map(|(name, value)| (name.clone(), value.reordered(order)))
                    .collect();
                order(&mut members);
                Self::Object(members)
            }
        }
    }

    /// The same instance with its members in the order in which `written` has them, provided that
    /// `written` holds exactly the same members and, byte for byte, the same raw values.
    pub(crate) fn ordered_like(&self, written: &str) -> Result<Self, String> {
        match self {
            Self::Leaf(text) if text == written => Ok(Self::leaf(written)),
            Self::Leaf(text) => Err(format!("{text} was written as {written}")),
            Self::Array(items) => {
                let elements: Vec<&RawValue> = parse(written)?;
                if elements.len() != items.len() {
                    return Err(format!("{} elements in {written}", items.len()));
                }
                let pairs = items.iter().zip(elements);
                let items: Result<_, String> =
                    pairs.map(|(item, element)| item.ordered_like(element.get())).collect();
                Ok(Self::Array(items?))
            }
            Self::Object(members) => {
                let Members(found) = parse(written)?;
                if found.len() != members.len() {
                    return Err(format!("{} members in {written}", members.len()));
                }
                let members: Result<_, String> = found
                    .into_iter()
                    .map(|(name, raw)| {
                        let member = self.member(&name).ok_or(format!("{name} came in"))?;
                        Ok((name, member.ordered_like(raw.get())?))
                    })
                    .collect();
                Ok(Self::Object(members?))
            }
        }
    }
}

/// A place as a JSON Pointer.
pub(crate) fn pointer(place: &[Step]) -> String {
    place
        .iter()
        .map(|step| match step {
            Step::Member(name) => format!("/{}", name.replace('~', "~0").replace('/', "~1")),
            Step::Index(at) => format!("/{at}"),
        })
        .collect()
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| format!("{error} in {text}"))
}

/// The members of an object in the order written, a repeated name repeated.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;

        impl<'de> Visitor<'de> for Collect {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }

        deserializer.deserialize_map(Collect).map(Members)
    }
}
