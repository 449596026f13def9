//! What a union keeps of a kind it does not know.

use std::fmt;

use crate::json::{Cursor, JsonError};
use crate::{Json, JsonObject};

/// A member of a discriminated union that this version of the protocol does not describe: the value
/// of its discriminator and its whole JSON text, byte for byte.
#[derive(Clone, PartialEq, Eq)]
pub struct Unknown {
    tag: Box<str>,
    json: Json,
}

impl Unknown {
    /// Takes an object and finds its discriminator, such as `type` or `role`.
    ///
    /// Fails where the object has no such member or it holds no string.
    pub fn new(object: JsonObject, discriminator: &str) -> Result<Self, JsonError> {
        let tag = object.get(discriminator).unwrap_or_default();
        let tag = Cursor::new(tag).string()?.into();
        Ok(Self { tag, json: object.into() })
    }

    /// The discriminator's value; empty where the object has none that is a string.
    #[must_use]
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// The whole object.
    #[must_use]
    pub fn json(&self) -> &Json {
        &self.json
    }

    pub(crate) fn from_parts(tag: &str, json: Json) -> Self {
        Self { tag: tag.into(), json }
    }
}

impl fmt::Debug for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.json.fmt(f)
    }
}
