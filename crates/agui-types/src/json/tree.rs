//! JSON as a tree, for those who look inside: state under a patch, a document to compare.

use std::fmt;

use indexmap::IndexMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::bridge::serialize_text;
use super::write::{self, Write};
use super::{Cursor, Json, JsonError, Kind};

/// A JSON value as a tree. Members keep their order and numbers their digits, which
/// `serde_json::Value` promises only under switches that hold for a whole program.
///
/// Equality is JSON's: members in any order, numbers by value (`1` equals `1.0`).
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// `null`.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as written.
    Number(Number),
    /// A string.
    String(String),
    /// An array.
    Array(Vec<Value>),
    /// An object; members in the order written.
    Object(IndexMap<String, Value>),
}

impl Value {
    /// Reads a tree from text.
    ///
    /// Fails where the text is not exactly one JSON value or nests deeper than
    /// [`MAX_DEPTH`](super::MAX_DEPTH).
    pub fn parse(text: &str) -> Result<Self, JsonError> {
        let mut cursor = Cursor::new(text);
        let value = Self::read(&mut cursor)?;
        cursor.end()?;
        Ok(value)
    }

    /// Encodes any serialisable value.
    ///
    /// Fails where [`Json::encode`] does.
    pub fn encode<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<Self> {
        Self::try_from(&Json::encode(value)?).map_err(serde::ser::Error::custom)
    }

    /// The tree as compact text.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let mut out = Vec::new();
        self.write(&mut out);
        Json::from_checked(&super::text::into_string(out))
    }

    /// The member of an object, or `None` where there is none or this is no object.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => members.get(name),
            _ => None,
        }
    }

    // The cursor bounds the depth, so the recursion is bounded too.
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, JsonError> {
        Ok(match cursor.kind()? {
            Kind::Null => {
                cursor.null()?;
                Self::Null
            }
            Kind::Bool => Self::Bool(cursor.bool()?),
            Kind::Number => Self::Number(Number(cursor.number()?.into())),
            Kind::String => Self::String(cursor.string()?.into_owned()),
            Kind::Array => {
                cursor.open_array()?;
                let (mut first, mut items) = (true, Vec::new());
                while cursor.next_element(&mut first)? {
                    items.push(Self::read(cursor)?);
                }
                Self::Array(items)
            }
            Kind::Object => {
                cursor.open_object()?;
                let (mut first, mut members) = (true, IndexMap::new());
                while let Some(key) = cursor.next_key(&mut first)? {
                    members.insert(key.into_owned(), Self::read(cursor)?);
                }
                Self::Object(members)
            }
        })
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Number(a), Self::Number(b)) => a == b,
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Array(a), Self::Array(b)) => a == b,
            (Self::Object(a), Self::Object(b)) => a == b,
            _ => false,
        }
    }
}

impl Write for Value {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"null"),
            Self::Bool(value) => value.write(out),
            Self::Number(number) => out.extend_from_slice(number.0.as_bytes()),
            Self::String(text) => write::string(out, text),
            Self::Array(items) => write::array(out, items),
            Self::Object(members) => {
                out.push(b'{');
                for (key, value) in members {
                    write::any_member(out, key, value);
                }
                write::close_object(out);
            }
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_json().fmt(f)
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_text(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::try_from(&Json::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl TryFrom<&Json> for Value {
    type Error = JsonError;

    /// Fails never in practice: a [`Json`] holds one JSON value within the depth.
    fn try_from(json: &Json) -> Result<Self, JsonError> {
        Self::parse(json.as_str())
    }
}

/// A JSON number with the digits it was written with.
///
/// Equal by value: integers of up to 128 bits exactly, everything else as IEEE doubles. A number
/// written with more than 1,000 characters equals only one that is written the same: to find its
/// value would cost more than a comparison may.
#[derive(Clone, Debug)]
pub struct Number(Box<str>);

impl Number {
    /// The digits as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The nearest IEEE double; infinite where the number is too large for one.
    #[must_use]
    pub fn as_f64(&self) -> f64 {
        self.0.parse().unwrap_or(f64::NAN)
    }

    /// The value where it is written as an integer that fits.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        self.0.parse().ok()
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        const LONGEST: usize = 1_000;
        if self.0 == other.0 {
            return true;
        }
        if self.0.len().max(other.0.len()) > LONGEST {
            return false;
        }
        match (self.0.parse::<i128>(), other.0.parse::<i128>()) {
            (Ok(a), Ok(b)) => a == b,
            _ => self.as_f64() == other.as_f64(),
        }
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Self {
        Self(value.to_string().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_keeps_order_and_digits() {
        let text = r#"{"z":1.10,"a":[1e2,-0,true,null,"é\n"],"m":{}}"#;
        assert_eq!(Value::parse(text).unwrap().to_string(), text);
    }

    #[test]
    fn equality_is_by_value() {
        let equal = |a: &str, b: &str| Value::parse(a).unwrap() == Value::parse(b).unwrap();
        assert!(equal("1", "1.0"));
        assert!(equal("1e2", "100"));
        assert!(equal(r#"{"a":1,"b":2}"#, r#"{"b":2.0,"a":1}"#));
        assert!(!equal("9007199254740993", "9007199254740992"));
        assert!(!equal("[1,2]", "[2,1]"));
        assert!(!equal("0", "false"));
        let long = |zeros: usize| format!("1.{}", "0".repeat(zeros));
        assert!(equal("1", &long(998)));
        assert!(!equal("1", &long(999)) && equal(&long(999), &long(999)));
    }
}
