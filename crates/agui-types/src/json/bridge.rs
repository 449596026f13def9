//! JSON text through `serde`, exactly where the format is `serde_json`'s.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde::ser::{Error as _, Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

use super::text::into_string;
use super::write::{self, Write, Written};
use super::{Cursor, JsonError, LexError};

/// Serialises a value by its own JSON text, so that there is one writer only.
///
/// An object is given member by member, so that it can be flattened into another, unless that would
/// change its text: white space and escapes survive only in one piece.
pub(crate) fn serialize_text<T: Write + ?Sized, S: Serializer>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut out = Vec::new();
    value.write(&mut out);
    let text = into_string(out);
    let is_dense = || dense(&text).is_ok_and(|dense| dense == text.as_bytes());
    if text.starts_with('{') && (value.writes_densely() || is_dense()) {
        serialize_members(&text, serializer)
    } else {
        Raw(&text).serialize(serializer)
    }
}

fn serialize_members<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let broken = |error| S::Error::custom(JsonError::from(error));
    let mut map = serializer.serialize_map(None)?;
    let (mut cursor, mut first) = (Cursor::new(text), true);
    cursor.open_object().map_err(broken)?;
    while let Some(name) = cursor.next_key(&mut first).map_err(broken)? {
        map.serialize_entry(&*name, &Raw(cursor.skip().map_err(broken)?))?;
    }
    map.end()
}

/// An object's text without white space and needless escapes around its members.
fn dense(text: &str) -> Result<Vec<u8>, LexError> {
    let (mut cursor, mut first) = (Cursor::new(text), true);
    let mut out = vec![b'{'];
    cursor.open_object()?;
    while let Some(name) = cursor.next_key(&mut first)? {
        write::any_member(&mut out, &name, &Written(cursor.skip()?));
    }
    write::close_object(&mut out);
    Ok(out)
}

/// Deserialises any value as its JSON text.
pub(crate) fn deserialize_text<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<String, D::Error> {
    let raw = <Box<RawValue>>::deserialize(Buffered(deserializer))?;
    Ok(String::from(<Box<str>>::from(raw)))
}

/// One JSON value as text.
struct Raw<'a>(&'a str);

impl Serialize for Raw<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::from_str::<&RawValue>(self.0).map_err(S::Error::custom)?.serialize(serializer)
    }
}

/// A deserialiser that gives raw JSON also where `serde` has buffered a value and its text is gone:
/// in a flattened member, in an untagged or internally tagged enum. The text is then written anew.
struct Buffered<D>(D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Buffered<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(visitor)
    }

    // What raw JSON is asked for by.
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_newtype_struct(name, BufferedVisitor { name, visitor })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

struct BufferedVisitor<V> {
    name: &'static str,
    visitor: V,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for BufferedVisitor<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    /// `serde_json` has the text.
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(map)
    }

    /// Anything else has a value only.
    fn visit_newtype_struct<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<V::Value, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        value.deserialize_newtype_struct(self.name, self.visitor).map_err(D::Error::custom)
    }
}
