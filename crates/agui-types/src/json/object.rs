//! Open objects: opaque, but for what is merged into them.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::OnceLock;

use indexmap::IndexMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::text::into_string;
use super::write::{self, Write, Written};
use super::{Cursor, Json, JsonError, Kind};

/// A JSON object as text: the protocol's *open* objects (activity content, `responseSchema`,
/// `custom`), whose keys are data. Kept exactly as written, like [`Json`], to which it derefs.
#[derive(Clone)]
pub struct JsonObject(Held);

#[derive(Clone)]
enum Held {
    Text(Json),
    Merged(Box<Merged>),
}

/// An object that others are merged into: taken apart once, so that a merge costs what comes, not
/// what is there. Its text is made again when someone reads it.
#[derive(Clone)]
struct Merged {
    members: IndexMap<Box<str>, Box<str>>,
    /// Empty when something was merged since it was last read.
    text: OnceLock<Json>,
}

impl Merged {
    fn extend(&mut self, newer: &JsonObject) {
        self.text.take();
        for (name, value) in newer.members() {
            self.members.insert(name.into(), value.into());
        }
    }

    fn text(&self) -> &Json {
        self.text.get_or_init(|| {
            let mut out = vec![b'{'];
            for (name, value) in &self.members {
                write::any_member(&mut out, name, &Written(value));
            }
            write::close_object(&mut out);
            Json::from_checked(&into_string(out))
        })
    }
}

impl JsonObject {
    /// The object without members.
    #[must_use]
    pub fn empty() -> Self {
        Self::from_checked(Json::from_checked("{}"))
    }

    /// Takes a text that must be exactly one JSON object.
    ///
    /// Fails where the text is not JSON, or is JSON but no object.
    pub fn parse(text: &str) -> Result<Self, JsonError> {
        Self::try_from(Json::parse(text)?)
    }

    /// `json` must be an object.
    pub(crate) fn from_checked(json: Json) -> Self {
        Self(Held::Text(json))
    }

    /// Encodes a value that serialises as an object.
    ///
    /// Fails where [`Json::encode`] does, and where the value is no object.
    pub fn encode<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<Self> {
        Self::try_from(Json::encode(value)?).map_err(serde::de::Error::custom)
    }

    /// The members in the order written, each value as its exact text. Where a name occurs twice,
    /// both are given; the last one counts.
    pub fn members(&self) -> impl Iterator<Item = (Cow<'_, str>, &str)> {
        let mut cursor = Cursor::new(self.as_str());
        let mut first = true;
        let opened = cursor.open_object().is_ok();
        std::iter::from_fn(move || {
            if !opened {
                return None;
            }
            let key = cursor.next_key(&mut first).ok()??;
            Some((key, cursor.skip().ok()?))
        })
    }

    /// The value of a member, as its exact text.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.members().filter(|(key, _)| key == name).last().map(|(_, value)| value)
    }

    /// Whether there is no member.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members().next().is_none()
    }

    /// Sets members from `newer`, each value whole and without looking inside, the last write
    /// winning; a member that is there keeps its place, a new one goes to the end. This is the
    /// protocol's metadata merge (C-76).
    ///
    /// Costs by the length of `newer`, however large the object has become; reading the object
    /// after a merge makes its text once.
    pub fn merge(&mut self, newer: &Self) {
        if let Held::Text(_) = self.0 {
            let mut merged = Merged { members: IndexMap::new(), text: OnceLock::new() };
            merged.extend(self);
            self.0 = Held::Merged(Box::new(merged));
        }
        if let Held::Merged(merged) = &mut self.0 {
            merged.extend(newer);
        }
    }
}

impl Deref for JsonObject {
    type Target = Json;

    fn deref(&self) -> &Json {
        match &self.0 {
            Held::Text(json) => json,
            Held::Merged(merged) => merged.text(),
        }
    }
}

impl PartialEq for JsonObject {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for JsonObject {}

impl Hash for JsonObject {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl fmt::Debug for JsonObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl fmt::Display for JsonObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl From<JsonObject> for Json {
    fn from(object: JsonObject) -> Self {
        match object.0 {
            Held::Text(json) => json,
            Held::Merged(merged) => merged.text().clone(),
        }
    }
}

impl TryFrom<Json> for JsonObject {
    type Error = JsonError;

    fn try_from(json: Json) -> Result<Self, JsonError> {
        if json.is_object() {
            return Ok(Self::from_checked(json));
        }
        let found = Cursor::new(json.as_str()).kind().map_or("nothing", Kind::name);
        let message = format!("expected an object, found {found}");
        Err(JsonError { message, offset: 0, too_deep: false })
    }
}

impl TryFrom<serde_json::Value> for JsonObject {
    type Error = JsonError;

    fn try_from(value: serde_json::Value) -> Result<Self, JsonError> {
        Self::try_from(Json::from(value))
    }
}

impl From<serde_json::Map<String, serde_json::Value>> for JsonObject {
    fn from(map: serde_json::Map<String, serde_json::Value>) -> Self {
        Self::from_checked(Json::from(serde_json::Value::Object(map)))
    }
}

impl Write for JsonObject {
    fn write(&self, out: &mut Vec<u8>) {
        (**self).write(out);
    }
}

impl Serialize for JsonObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for JsonObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::try_from(Json::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merge_is_per_key_and_the_last_write_wins() {
        // C-76: no recursion, a null is a value, what is there keeps its place.
        let mut held = JsonObject::parse(r#"{"a": {"x": 1}, "b": 2}"#).unwrap();
        held.merge(&JsonObject::parse(r#"{"c":null,"a":{"y":1.0}}"#).unwrap());
        assert_eq!(held.as_str(), r#"{"a":{"y":1.0},"b":2,"c":null}"#);
        held.merge(&JsonObject::parse(r#"{"b":[],"d\n":""}"#).unwrap());
        assert_eq!(held.as_str(), r#"{"a":{"y":1.0},"b":[],"c":null,"d\n":""}"#);
        let mut same = held.clone();
        same.merge(&JsonObject::empty());
        assert_eq!(same, held);
        assert_eq!(Json::from(same), *held);
    }

    #[test]
    fn an_object_is_an_object() {
        assert!(JsonObject::parse("[]").unwrap_err().to_string().contains("an array"));
        assert!(JsonObject::parse("{}").unwrap().is_empty());
        assert_eq!(JsonObject::parse(r#"{"a":1,"a":2}"#).unwrap().get("a"), Some("2"));
    }
}
