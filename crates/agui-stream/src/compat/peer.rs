//! What is known of a peer's age.

use std::fmt;
use std::str::FromStr;

/// The newest version a peer is known to speak: a package version such as `0.0.57`, or a protocol
/// version such as `1.0`. By default nothing is known, which means: the current one (C-83).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerVersion([u32; 3]);

impl PeerVersion {
    /// A peer of which nothing is known.
    pub const CURRENT: Self = Self([u32::MAX; 3]);

    /// Whether it takes content in parts: after 0.0.39.
    #[must_use]
    pub fn takes_parts(self) -> bool {
        self > Self([0, 0, 39])
    }

    /// Whether it knows of subagents: after 0.0.57.
    #[must_use]
    pub fn knows_subagents(self) -> bool {
        self > Self([0, 0, 57])
    }

    /// Whether it knows of `protocolVersion`: from 1.0 on (C-80).
    #[must_use]
    pub fn knows_versions(self) -> bool {
        self >= Self([1, 0, 0])
    }
}

impl Default for PeerVersion {
    fn default() -> Self {
        Self::CURRENT
    }
}

impl FromStr for PeerVersion {
    type Err = PeerVersionError;

    /// One to three numbers between dots; what is missing counts as 0 (C-82).
    fn from_str(text: &str) -> Result<Self, PeerVersionError> {
        let error = || PeerVersionError(text.chars().take(60).collect());
        let mut version = [0; 3];
        let mut numbers = text.split('.');
        for component in &mut version {
            let Some(number) = numbers.next() else { break };
            if !number.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(error());
            }
            *component = number.parse().map_err(|_| error())?;
        }
        if numbers.next().is_some() { Err(error()) } else { Ok(Self(version)) }
    }
}

impl fmt::Display for PeerVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::CURRENT {
            return f.write_str("current");
        }
        let [major, minor, patch] = self.0;
        write!(f, "{major}.{minor}.{patch}")
    }
}

/// A text is not a peer's version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a version such as \"0.0.57\" or \"1.0\", found {0:?}")]
pub struct PeerVersionError(String);
