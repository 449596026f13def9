//! What the tolerant reading met and did not recognise.

use std::fmt;
use std::ops::Deref;

use crate::json::Json;

/// Something in a text that the protocol does not describe. Not an error by itself: a later stage
/// translates it (a retired shape), strips it with a warning (C-22 to C-26), or refuses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where: a JSON Pointer (RFC 6901) into the text that was read.
    pub path: String,
    /// What.
    pub kind: FindingKind,
}

/// What was not recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FindingKind {
    /// A member the protocol does not describe on a closed object, with its value. The value that
    /// was read does not hold it.
    UnknownMember(Json),
    /// An object of a discriminated union (a part, a source, an outcome, a message, a patch
    /// operation) whose discriminator has this value; empty where it has none that is a string. The
    /// value that was read keeps it as the union's `Unknown` variant.
    UnknownVariant(Box<str>),
    /// A string outside a closed set. The value that was read keeps it as the set's `Unknown`
    /// variant.
    UnknownValue(Box<str>),
    /// `null` in the place of an optional member. The value that was read has the member absent.
    Null,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            FindingKind::UnknownMember(_) => f.write_str("undescribed member")?,
            FindingKind::UnknownVariant(tag) => write!(f, "unknown kind {tag:?}")?,
            FindingKind::UnknownValue(value) => write!(f, "unknown value {value:?}")?,
            FindingKind::Null => f.write_str("null")?,
        }
        if self.path.is_empty() {
            return Ok(());
        }
        write!(f, " at {}", self.path)
    }
}

/// The findings of one text, in the order met. Derefs to a slice.
///
/// At most [`Findings::MOST`] undescribed members and unknown variants are kept with their path;
/// more are only counted, so that a hostile text cannot make its reader hold several times its
/// size. Every `null` is kept, since a `null` decides whether the text is acceptable at all, and so is
/// the first object that does not say what it is. Where variants in a list are only counted, the list
/// that was read does not hold them either, but for parts of the retired kind `binary`, which still
/// have a meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    kept: Vec<Finding>,
    uncounted: usize,
    /// An object without a discriminator was met.
    untagged: bool,
}

impl Findings {
    /// How many findings other than `null` one text can have before the rest is only counted.
    pub const MOST: usize = 1_000;

    /// How many were only counted.
    #[must_use]
    pub fn omitted(&self) -> usize {
        self.uncounted
    }

    /// Adds one, or counts it.
    pub fn add(&mut self, finding: Finding) {
        let untagged = matches!(&finding.kind, FindingKind::UnknownVariant(tag) if tag.is_empty());
        let decides = finding.kind == FindingKind::Null || (untagged && !self.untagged);
        self.untagged |= untagged;
        if self.is_full() && !decides {
            self.uncounted += 1;
        } else {
            self.kept.push(finding);
        }
    }

    /// Whether what comes is only counted.
    pub(crate) fn is_full(&self) -> bool {
        self.kept.len() >= Self::MOST
    }

    pub(crate) fn push(&mut self, kind: FindingKind) {
        self.add(Finding { path: String::new(), kind });
    }

    /// Moves the findings since `mark` one level further in.
    pub(crate) fn inside(&mut self, mark: usize, segment: impl fmt::Display) {
        for finding in &mut self.kept[mark..] {
            finding.path = format!("{segment}{}", finding.path);
        }
    }
}

impl Deref for Findings {
    type Target = [Finding];

    fn deref(&self) -> &[Finding] {
        &self.kept
    }
}

impl IntoIterator for Findings {
    type Item = Finding;
    type IntoIter = std::vec::IntoIter<Finding>;

    fn into_iter(self) -> Self::IntoIter {
        self.kept.into_iter()
    }
}
