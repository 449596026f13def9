//! How large and how deep a value is.

use agui_types::json::Value;

/// What a value takes of the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    /// Bytes of its compact text, with a comma after the last element or member too: so counted, an
    /// element costs the same wherever it stands.
    pub(super) size: usize,
    /// How deep it nests: 0 for a scalar, 1 for an empty array.
    pub(super) depth: usize,
}

impl Extent {
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self { size: 4, depth: 0 },
            Value::Bool(value) => Self { size: if *value { 4 } else { 5 }, depth: 0 },
            Value::Number(number) => Self { size: number.as_str().len(), depth: 0 },
            Value::String(text) => Self { size: string(text), depth: 0 },
            Value::Array(items) => {
                items.iter().fold(Self { size: 2, depth: 1 }, |all, item| all.around(item, ELEMENT))
            }
            Value::Object(members) => {
                members.iter().fold(Self { size: 2, depth: 1 }, |all, (name, value)| {
                    all.around(value, member(name))
                })
            }
        }
    }

    fn around(self, inner: &Value, overhead: usize) -> Self {
        let inner = Self::of(inner);
        Self { size: self.size + inner.size + overhead, depth: self.depth.max(inner.depth + 1) }
    }
}

/// Whether a value takes no more than so many bytes; looks no further than that.
pub(super) fn fits(value: &Value, room: usize) -> bool {
    left(value, room).is_some()
}

/// What is left of so many bytes after a value.
fn left(value: &Value, room: usize) -> Option<usize> {
    match value {
        Value::Array(items) => items
            .iter()
            .try_fold(room.checked_sub(2)?, |room, item| left(item, room.checked_sub(ELEMENT)?)),
        Value::Object(members) => {
            members.iter().try_fold(room.checked_sub(2)?, |room, (name, value)| {
                left(value, room.checked_sub(member(name))?)
            })
        }
        scalar => room.checked_sub(Extent::of(scalar).size),
    }
}

/// What an array's element takes beside itself: its comma.
pub(super) const ELEMENT: usize = 1;

/// What an object's member takes beside its value: its name, a colon, a comma.
pub(super) fn member(name: &str) -> usize {
    string(name) + 2
}

/// The length of a string in quotes, escapes included.
fn string(text: &str) -> usize {
    let escapes = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 1,
        0..0x20 => 5,
        _ => 0,
    };
    text.len() + 2 + text.bytes().map(escapes).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_the_length_of_the_text_and_a_comma_per_filled_container() {
        for (text, containers, depth) in [
            ("null", 0, 0),
            ("false", 0, 0),
            ("-1.50e3", 0, 0),
            (r#""a\"\\\n\u0001é😀""#, 0, 0),
            ("[]", 0, 1),
            ("{}", 0, 1),
            ("[1,true]", 1, 1),
            (r#"{"k\t":{"":[[]]},"b":null}"#, 3, 4),
        ] {
            let extent = Extent::of(&Value::parse(text).unwrap());
            assert_eq!(extent, Extent { size: text.len() + containers, depth }, "{text}");
            let value = Value::parse(text).unwrap();
            assert!(fits(&value, extent.size) && !fits(&value, extent.size - 1), "{text}");
        }
    }
}
