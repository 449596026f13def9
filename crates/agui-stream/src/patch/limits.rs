//! How much patches may do.

use agui_types::json::MAX_DEPTH;

/// The limits of applying a patch. What equals a limit passes, one more fails the patch.
///
/// Together they bound what hostile patches can cost: memory by [`size`](Self::size), which copies
/// would otherwise double with every operation, the stack by [`depth`](Self::depth), and time by
/// [`operations`](Self::operations), [`work`](Self::work) and [`work_per_byte`](Self::work_per_byte).
///
/// Most operations cost what they say, and are free. *Work* is what else an operation makes
/// necessary:
///
/// - one step for every [`MOVES_PER_STEP`](Self::MOVES_PER_STEP) elements or members that move by a
///   place because something before them came or went;
/// - one step for each byte that [`Document::size`] counts of a value that is copied, that is replaced or
///   removed, or that moves deeper and is looked through for how deep it comes.
///
/// A document earns work by what was received: [`work_per_byte`](Self::work_per_byte) for each byte
/// of itself when it is made, and of every patch since. What a patch does not need is kept for those
/// that come, up to [`work`](Self::work). So a stream of patches, whether they apply or not, costs
/// in proportion to its length.
///
/// [`Document::size`]: super::Document::size
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PatchLimits {
    /// Operations in one patch. Default 10,000.
    pub operations: usize,
    /// How deep objects and arrays may nest in the document after an operation. Default one less
    /// than [`MAX_DEPTH`], so that the document can be read as the state of a run's input; at most
    /// [`MAX_DEPTH`].
    pub depth: usize,
    /// Bytes of the document after an operation, and bytes that the values of one patch's `add`,
    /// `replace` and `copy` operations come to, each counted as [`Document::size`] counts. A
    /// document that is already larger may still be changed, but not grow. Default 16 MiB.
    ///
    /// [`Document::size`]: super::Document::size
    pub size: usize,
    /// The most work that one patch may make. Default 50 million, which takes up to half a second.
    pub work: usize,
    /// The work that each byte received earns. Default 64.
    pub work_per_byte: usize,
}

impl PatchLimits {
    /// How many moves by one place are a step of work.
    pub const MOVES_PER_STEP: usize = 4;

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

    /// Sets [`work`](Self::work).
    #[must_use]
    pub const fn with_work(mut self, work: usize) -> Self {
        self.work = work;
        self
    }

    /// Sets [`work_per_byte`](Self::work_per_byte).
    #[must_use]
    pub const fn with_work_per_byte(mut self, work: usize) -> Self {
        self.work_per_byte = work;
        self
    }
}

impl Default for PatchLimits {
    fn default() -> Self {
        Self {
            operations: 10_000,
            depth: MAX_DEPTH - 1,
            size: 16 << 20,
            work: 50_000_000,
            work_per_byte: 64,
        }
    }
}
