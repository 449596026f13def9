//! The protocol's version.

use std::fmt;
use std::str::FromStr;

use crate::json::write::Write;
use crate::read::{Read, ReadError, Reader};

/// A version as it travels: whatever string the peer declared. [`ProtocolVersion::version`]
/// interprets it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ProtocolVersion(Box<str>);

impl ProtocolVersion {
    /// The version this library declares (C-80, P-80). It reads 1.1 as well; 1.1 is declared once
    /// it is published.
    pub const DECLARED: Version = Version { major: 1, minor: 0 };

    /// Takes any string.
    #[must_use]
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// The string as declared.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The version meant, or `None` where the string is not exactly `MAJOR.MINOR` (C-81).
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        self.0.parse().ok()
    }

    /// Whether a peer that declares this should be met with a warning: it is newer than what this
    /// library declares, or cannot be interpreted (C-81).
    #[must_use]
    pub fn is_newer_or_unclear(&self) -> bool {
        self.version().is_none_or(|version| version > Self::DECLARED)
    }
}

impl From<Version> for ProtocolVersion {
    fn from(version: Version) -> Self {
        Self(version.to_string().into())
    }
}

impl From<&str> for ProtocolVersion {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Read for ProtocolVersion {
    fn read(reader: &mut Reader<'_, '_>) -> Result<Self, ReadError> {
        String::read(reader).map(|text| Self(text.into()))
    }
}

impl Write for ProtocolVersion {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
    }
}

bridge!(ProtocolVersion);

#[cfg(feature = "schemars")]
impl crate::schema::Described for ProtocolVersion {
    fn schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string" })
    }
}

/// `MAJOR.MINOR`, compared numerically per component: 1.10 is newer than 1.9 (C-82).
///
/// Written as decimal digits without leading zeros; each component fits 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version {
    /// The line: another one may be refused (P-82).
    pub major: u32,
    /// Newer minors of the same line are served (P-81).
    pub minor: u32,
}

impl FromStr for Version {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        let component = |digits: &str| {
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            let canonical = digits.len() == 1 || !digits.starts_with('0');
            digits.parse::<u32>().ok().filter(|_| plain && canonical)
        };
        let parsed = text.split_once('.').and_then(|(major, minor)| {
            Some(Self { major: component(major)?, minor: component(minor)? })
        });
        parsed.ok_or_else(|| VersionError(text.into()))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A string is not `MAJOR.MINOR`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a protocol version such as \"1.0\", found {0:?}")]
pub struct VersionError(Box<str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_two_numeric_components_are_a_version() {
        // C-81
        for text in ["1", "1.0.0", "draft", "", ".", "1.", ".1", "1.x", "+1.0", " 1.0", "1.-1"] {
            assert!(text.parse::<Version>().is_err(), "{text:?}");
            assert!(ProtocolVersion::from(text).is_newer_or_unclear(), "{text:?}");
        }
        assert_eq!("1.10".parse(), Ok(Version { major: 1, minor: 10 }));
    }

    #[test]
    fn versions_compare_by_number() {
        // C-82
        let version = |text: &str| text.parse::<Version>().unwrap();
        assert!(version("1.10") > version("1.9"));
        assert!(version("2.0") > version("1.10"));
        assert_eq!(ProtocolVersion::DECLARED.to_string(), "1.0");
        assert!(ProtocolVersion::from("1.1").is_newer_or_unclear());
        assert!(!ProtocolVersion::from("1.0").is_newer_or_unclear());
        assert!(!ProtocolVersion::from("0.59").is_newer_or_unclear());
    }
}
