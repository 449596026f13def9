//! The two readings of protocol JSON, and what they report.
//!
//! The **tolerant** reading takes what a newer or sloppier peer sends: it fails only where a
//! described value is malformed, and hands back everything it did not recognise as [`Finding`]s
//! with their paths, so that a later stage can translate, strip or refuse it. The **exact** reading
//! accepts what the published schema accepts and fails at the first thing it would report.

mod error;
mod finding;
mod ids;
mod leaf;
mod reader;

pub use error::{ReadError, ReadErrorKind};
pub use finding::{Finding, FindingKind, Findings};
pub use ids::EventReader;
pub(crate) use reader::{Discriminator, Members, Read, Reader};

use crate::json::write::Write;

/// How many entries of a list are free, whatever room they take: [`LIST_EXPANSION`] holds for those
/// beyond.
pub const FREE_ENTRIES: usize = 1_000;

/// How many times the text of a list its entries may take in memory, in both readings. A list that
/// takes more, such as thousands of `{}` for usage, is refused as [`ReadErrorKind::InvalidValue`];
/// entries that say anything come nowhere near.
pub const LIST_EXPANSION: usize = 16;

/// A value as the tolerant reading gives it, with what was not recognised around it.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading<T> {
    /// The value.
    pub value: T,
    /// What was not recognised, in the order met; empty for a conforming text.
    pub findings: Findings,
}

impl<T> From<T> for Reading<T> {
    /// A value made in this process, about which there is nothing to report.
    fn from(value: T) -> Self {
        Self { value, findings: Findings::default() }
    }
}

/// A protocol value that can be read from JSON text. Sealed: the protocol's types have it.
pub trait FromJson: sealed::Sealed + Sized {
    /// Reads what any peer may send. See the [module](self) for the two readings.
    ///
    /// Fails where the text is not JSON, nests too deep, or a described member is missing or holds
    /// a value of the wrong type (C-28).
    fn from_json_tolerant(text: &str) -> Result<Reading<Self>, ReadError>;

    /// Reads what the published schema accepts and nothing else.
    ///
    /// Fails also at the first undescribed member, unknown union member or closed-set value, and
    /// `null` in the place of an optional member.
    fn from_json_exact(text: &str) -> Result<Self, ReadError>;
}

/// A protocol value that can be written as JSON text. Sealed: the protocol's types have it.
///
/// Absent members are left out, never written as `null` (P-17), and there is no white space.
pub trait ToJson: sealed::Sealed {
    /// Appends the JSON text to a buffer.
    fn write_json(&self, out: &mut Vec<u8>);

    /// The JSON text.
    fn to_json(&self) -> String {
        let mut out = Vec::new();
        self.write_json(&mut out);
        crate::json::into_string(out)
    }
}

impl<T: Read + sealed::Sealed> FromJson for T {
    fn from_json_tolerant(text: &str) -> Result<Reading<Self>, ReadError> {
        Reader::tolerant(text, None)
    }

    fn from_json_exact(text: &str) -> Result<Self, ReadError> {
        Reader::exact(text, None)
    }
}

impl<T: Write + sealed::Sealed> ToJson for T {
    fn write_json(&self, out: &mut Vec<u8>) {
        self.write(out);
    }
}

pub(crate) mod sealed {
    /// Keeps the protocol's traits to the protocol's types.
    pub trait Sealed {}
}
