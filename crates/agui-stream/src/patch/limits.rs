//! How much one patch may do.

use agui_types::json::MAX_DEPTH;

/// The limits of applying a patch. What equals a limit passes, one more fails the patch.
///
/// Together they bound what a hostile patch can cost: memory by [`size`](Self::size), which copies
/// would otherwise double with every operation, the stack by [`depth`](Self::depth), and time by
/// [`operations`](Self::operations) and [`shifts`](Self::shifts).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PatchLimits {
    /// Operations in one patch. Default 10,000.
    pub operations: usize,
    /// How deep objects and arrays may nest in the document after an operation. Default, and at
    /// most, [`MAX_DEPTH`]: what is deeper could not be read back from its text.
    pub depth: usize,
    /// Bytes of the document after an operation, and bytes that the values of one patch's `add`,
    /// `replace` and `copy` operations come to, each counted as [`Document::size`] counts. A
    /// document that is already larger may still be changed, but not grow. Default 16 MiB.
    ///
    /// [`Document::size`]: super::Document::size
    pub size: usize,
    /// Elements and members that the operations of one patch move up or down by one place, because
    /// something before them came or went. A value that moves deeper counts with its size, as it is
    /// looked through for how deep it comes. Default 50 million, which takes about a second.
    pub shifts: usize,
}

impl PatchLimits {
    /// Sets [`operations`](Self::operations).
    #[must_use]
    pub const fn with_operations(mut self, operations: usize) -> Self {
        self.operations = operations;
        self
    }

    /// Sets [`depth`](Self::depth).
    #[must_use]
    pub const fn with_depth(mut self, depth: usize) -> Self {
        self.depth = depth;
        self
    }

    /// Sets [`size`](Self::size).
    #[must_use]
    pub const fn with_size(mut self, bytes: usize) -> Self {
        self.size = bytes;
        self
    }

    /// Sets [`shifts`](Self::shifts).
    #[must_use]
    pub const fn with_shifts(mut self, shifts: usize) -> Self {
        self.shifts = shifts;
        self
    }
}

impl Default for PatchLimits {
    fn default() -> Self {
        Self { operations: 10_000, depth: MAX_DEPTH, size: 16 << 20, shifts: 50_000_000 }
    }
}
