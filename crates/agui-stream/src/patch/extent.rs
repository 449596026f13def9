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
        Self::within(value, usize::MAX).unwrap_or(Self { size: usize::MAX, depth: usize::MAX })
    }

    /// The same where the value takes no more than so many bytes; looks no further than that.
    pub(super) fn within(value: &Value, room: usize) -> Option<Self> {
        let scalar = |size| (size <= room).then_some(Self { size, depth: 0 });
        let empty = (room >= 2).then_some(Self { size: 2, depth: 1 });
        match value {
            Value::Null => scalar(4),
            Value::Bool(value) => scalar(if *value { 4 } else { 5 }),
            Value::Number(number) => scalar(number.as_str().len()),
            Value::String(text) if text.len() > room => None,
            Value::String(text) => scalar(string(text)),
            Value::Array(items) => {
                items.iter().try_fold(empty?, |all, item| all.around(item, ELEMENT, room))
            }
            Value::Object(members) => members
                .iter()
                .try_fold(empty?, |all, (name, value)| all.around(value, member(name), room)),
        }
    }

    fn around(self, inner: &Value, overhead: usize, room: usize) -> Option<Self> {
        let size = self.size + overhead;
        let inner = Self::within(inner, room.checked_sub(size)?)?;
        Some(Self { size: size + inner.size, depth: self.depth.max(inner.depth + 1) })
    }
}

/// Whether a value takes no more than so many bytes; looks no further than that.
pub(super) fn fits(value: &Value, room: usize) -> bool {
    Extent::within(value, room).is_some()
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
