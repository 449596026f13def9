//! Why a patch was not applied.

use std::fmt;

use agui_types::{JsonError, JsonPointer};

/// A patch was not applied; the document is what it was before (C-67).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchError {
    /// Which operation failed, counted from 0.
    pub operation: usize,
    /// Its `op`.
    pub op: String,
    /// The pointer that is at fault: the operation's `path`, or its `from`.
    pub pointer: JsonPointer,
    /// As much of that pointer as leads somewhere, at the time of the operation.
    pub exists: JsonPointer,
    /// What is wrong.
    pub kind: PatchErrorKind,
}

/// What is wrong with an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatchErrorKind {
    /// The object has no such member.
    NoMember,
    /// The step into the array is no index: not decimal digits, or with a leading zero, or `-`
    /// where nothing is added.
    NotAnIndex,
    /// The index lies outside the array.
    OutOfRange {
        /// How many elements the array has.
        len: usize,
    },
    /// The way leads through a value that holds nothing.
    NotAContainer {
        /// What it is, such as `a number`.
        found: &'static str,
    },
    /// A value cannot move into itself.
    IntoItself,
    /// The value is not the one tested for.
    TestFailed {
        /// What it is, shortened.
        found: String,
    },
    /// The operation's value is no JSON that a tree can hold.
    NotJson(JsonError),
    /// The patch leaves something other than an object where there has to be one (P-50).
    NotAnObject,
    /// More operations than [`PatchLimits::operations`](super::PatchLimits::operations).
    TooManyOperations {
        /// The limit.
        limit: usize,
    },
    /// Deeper than [`PatchLimits::depth`](super::PatchLimits::depth).
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// Larger than [`PatchLimits::size`](super::PatchLimits::size).
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// More work than [`PatchLimits::work`](super::PatchLimits::work) allows, or than what was
    /// received has earned.
    TooMuchWork {
        /// What the patch was allowed.
        limit: usize,
    },
}

impl PatchError {
    /// The step after the last one that leads somewhere; `None` where the whole pointer does.
    fn missing(&self) -> Option<(String, bool)> {
        let rest = self.pointer.as_str().get(self.exists.as_str().len()..)?;
        let rest: JsonPointer = rest.parse().ok()?;
        let mut steps = rest.steps();
        let step = steps.next()?.into_owned();
        Some((step, steps.next().is_none()))
    }
}

impl fmt::Display for PatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operation, op, pointer, exists, kind } = self;
        write!(f, "operation {operation} ({op} {pointer:?}): ")?;
        let (step, last) = self.missing().unwrap_or_default();
        let place = match exists.as_str() {
            "" => "the document".to_owned(),
            path => format!("{path:?}"),
        };
        match kind {
            PatchErrorKind::NoMember if last && op == "replace" => {
                write!(f, "{place} has no member {step:?}; only \"add\" creates one")
            }
            PatchErrorKind::NoMember if last => write!(f, "{place} has no member {step:?}"),
            PatchErrorKind::NoMember => {
                write!(f, "{place} has no member {step:?}; add it before what is inside it")
            }
            PatchErrorKind::NotAnIndex if step == "-" => {
                write!(
                    f,
                    "\"-\" names the place after the last element of {place}; only adding can"
                )
            }
            PatchErrorKind::NotAnIndex => write!(
                f,
                "{place} is an array and {step:?} no index; an index is decimal digits without a \
                 leading zero"
            ),
            PatchErrorKind::OutOfRange { len } => {
                write!(f, "{place} has {len} elements, so there is no place {step}")
            }
            PatchErrorKind::NotAContainer { found } => {
                write!(f, "{place} is {found} and has no {step:?} in it; replace it first")
            }
            PatchErrorKind::IntoItself => {
                write!(f, "a value cannot move into itself; copy it instead")
            }
            PatchErrorKind::TestFailed { found } => {
                write!(f, "{place} is {found}, which is not what was tested for")
            }
            PatchErrorKind::NotJson(_) => write!(f, "its value cannot be read"),
            PatchErrorKind::NotAnObject => {
                write!(f, "the document has to stay an object")
            }
            PatchErrorKind::TooManyOperations { limit } => {
                write!(f, "a patch may have {limit} operations; send a snapshot instead")
            }
            PatchErrorKind::TooDeep { limit } => {
                write!(f, "the document would nest deeper than {limit} levels")
            }
            PatchErrorKind::TooLarge { limit } => {
                write!(f, "the document, or what the patch writes, would exceed {limit} bytes")
            }
            PatchErrorKind::TooMuchWork { limit } => write!(
                f,
                "the patch makes more work than the {limit} steps that what was received allows; \
                 change long lists at their end, copy and replace less at a time, or send a snapshot"
            ),
        }
    }
}

impl std::error::Error for PatchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            PatchErrorKind::NotJson(error) => Some(error),
            _ => None,
        }
    }
}
