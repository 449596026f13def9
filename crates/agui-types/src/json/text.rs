//! Opaque JSON: carried as the text it arrived as.

use std::borrow::Cow;
use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::bridge::{deserialize_text, serialize_text};
use super::finite;
use super::write::Write;
use super::{Cursor, LexError, LexProblem, Token};

/// One JSON value as text, kept exactly as it was written: digits of numbers, order of members,
/// escapes and white space included.
///
/// Two values are equal when their texts are. Decode one with [`Json::decode`], make one with
/// [`Json::encode`], [`Json::parse`] or the `json!` macro of `serde_json` and `Json::from`.
///
/// ```
/// use agui_types::Json;
///
/// let json = Json::parse(r#"{"price": 1.10}"#)?;
/// assert_eq!(json.as_str(), r#"{"price": 1.10}"#);
/// assert_eq!(json.decode::<serde_json::Value>()?["price"], 1.1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json(Box<str>);

impl Json {
    /// Takes a text that must be exactly one JSON value; white space around it is dropped.
    ///
    /// Fails where the text is not JSON or nests deeper than [`MAX_DEPTH`](super::MAX_DEPTH).
    pub fn parse(text: &str) -> Result<Self, JsonError> {
        let mut cursor = Cursor::new(text);
        let raw = cursor.skip()?;
        cursor.end()?;
        Ok(Self(raw.into()))
    }

    /// Encodes any serialisable value.
    ///
    /// Fails where `serde_json` does (a map whose keys are not strings, a failing `Serialize`), where
    /// a number is infinite or no number, which `serde_json` writes as `null`, and where the value
    /// nests deeper than [`MAX_DEPTH`](super::MAX_DEPTH).
    pub fn encode<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<Self> {
        let text = serde_json::to_string(value)?;
        if text.contains("null") {
            finite::check(value)?;
        }
        Self::try_from(text).map_err(serde::ser::Error::custom)
    }

    /// Decodes into any deserialisable type. A lone surrogate escape reads as U+FFFD.
    pub fn decode<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(&without_lone_surrogates(&self.0))
    }

    /// The value's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// How deep objects and arrays nest: 0 for a scalar, 1 for an empty array.
    #[must_use]
    pub fn depth(&self) -> usize {
        let (mut depth, mut deepest) = (0, 0);
        for token in self.tokens() {
            match token {
                Token::OpenObject | Token::OpenArray => depth += 1,
                Token::CloseObject | Token::CloseArray => depth -= 1,
                _ => {}
            }
            deepest = deepest.max(depth);
        }
        deepest
    }

    /// Whether the value is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        &*self.0 == "null"
    }

    /// Whether the value is an object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.0.starts_with('{')
    }

    /// `text` must be one JSON value without white space around it.
    pub(crate) fn from_checked(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Write for Json {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0.as_bytes());
    }

    fn writes_densely(&self) -> bool {
        false
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_text(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::try_from(deserialize_text(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl TryFrom<String> for Json {
    type Error = JsonError;

    /// [`Json::parse`] without copying, unless there is white space around the value.
    fn try_from(text: String) -> Result<Self, JsonError> {
        let mut cursor = Cursor::new(&text);
        let raw = cursor.skip()?;
        cursor.end()?;
        if raw.len() < text.len() {
            return Ok(Self(raw.into()));
        }
        Ok(Self(text.into()))
    }
}

impl From<serde_json::Value> for Json {
    /// The value's text. A value built deeper than [`MAX_DEPTH`](super::MAX_DEPTH), which no text
    /// that was read can be, is written all the same, and refused by whoever reads it.
    fn from(value: serde_json::Value) -> Self {
        Self(value.to_string().into())
    }
}

/// A text is not the JSON it was taken for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} at byte {offset}")]
pub struct JsonError {
    pub(super) message: String,
    pub(super) offset: usize,
    pub(super) too_deep: bool,
}

impl JsonError {
    /// Whether the text may well be JSON, but nests deeper than [`MAX_DEPTH`](super::MAX_DEPTH).
    #[must_use]
    pub fn is_too_deep(&self) -> bool {
        self.too_deep
    }

    /// The byte offset in the text at which it stops making sense.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }
}

impl From<LexError> for JsonError {
    fn from(error: LexError) -> Self {
        let too_deep = error.problem == LexProblem::TooDeep;
        Self { message: error.problem.to_string(), offset: error.offset, too_deep }
    }
}

impl fmt::Display for LexProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Eof(what) => write!(f, "expected {what}, found the end of the text"),
            Self::Expected(what) => write!(f, "expected {what}"),
            Self::TooDeep => write!(f, "nested deeper than {} levels", super::MAX_DEPTH),
        }
    }
}

/// What the writers produce is UTF-8: every piece of it was a `str`.
pub(crate) fn into_string(out: Vec<u8>) -> String {
    String::from_utf8(out)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Writes U+FFFD in place of each surrogate escape without its partner, which `serde_json` refuses.
fn without_lone_surrogates(text: &str) -> Cow<'_, str> {
    if !text.contains("\\u") {
        return Cow::Borrowed(text);
    }
    let unit_at = |at: usize| {
        let escape = text.as_bytes().get(at..at + 6)?;
        let digits = escape.strip_prefix(b"\\u").and_then(|hex| std::str::from_utf8(hex).ok())?;
        u32::from_str_radix(digits, 16).ok()
    };
    let mut clean = String::new();
    let (mut copied, mut at) = (0, 0);
    while let Some(step) = memchr::memchr(b'\\', &text.as_bytes()[at..]) {
        at += step;
        match unit_at(at) {
            Some(0xd800..0xdc00) if matches!(unit_at(at + 6), Some(0xdc00..0xe000)) => at += 12,
            Some(0xd800..0xe000) => {
                clean.push_str(&text[copied..at]);
                clean.push_str("\\ufffd");
                at += 6;
                copied = at;
            }
            Some(_) => at += 6,
            None => at += 2,
        }
    }
    if clean.is_empty() {
        return Cow::Borrowed(text);
    }
    clean.push_str(&text[copied..]);
    Cow::Owned(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_survives_serde_both_ways() {
        let text = r#"{"n":1.10,"z":[1e2,"\u00e9",{"b":null,"a":-0}]}"#;
        let json: Json = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&json).unwrap(), text);
        let value = serde_json::to_value(&json).unwrap();
        assert_eq!(
            serde_json::from_value::<Json>(value.clone())
                .unwrap()
                .decode::<serde_json::Value>()
                .unwrap(),
            value
        );
    }

    #[test]
    fn a_lone_surrogate_decodes_as_the_replacement_character() {
        for (text, expected) in [
            (r#""a\ud83d""#, "a\u{fffd}"),
            (r#""\ude00\ud83d\ude00""#, "\u{fffd}😀"),
            (r#""\\ud83d""#, "\\ud83d"),
            (r#""\ud83d\n\u0041""#, "\u{fffd}\nA"),
        ] {
            assert_eq!(Json::parse(text).unwrap().decode::<String>().unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn the_depth_is_that_of_the_innermost() {
        for (text, depth) in [("1", 0), ("\"[[\"", 0), ("[]", 1), (r#"{"a":[{}],"b":{}}"#, 3)] {
            assert_eq!(Json::parse(text).unwrap().depth(), depth, "{text}");
        }
    }

    #[test]
    fn a_text_is_one_value() {
        assert!(Json::parse("1 2").is_err());
        assert_eq!(Json::parse(" [1] ").unwrap().as_str(), "[1]");
    }

    #[test]
    fn what_is_no_json_number_is_refused() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let error = Json::encode(&vec![Some(("x", value))]).unwrap_err();
            assert!(error.to_string().contains("finite"), "{error}");
            assert!(Json::encode(&(value as f32)).is_err());
        }
        assert_eq!(Json::encode(&(None::<f64>, 1.5, ())).unwrap().as_str(), "[null,1.5,null]");
    }
}
