//! How much a peer may send before the decoder gives up on it.

use std::fmt;

/// The limits of a [`Decoder`](super::Decoder), in bytes as they are on the wire.
///
/// A size equal to the limit passes, one byte more fails. What is counted never depends on
/// how the body was cut into reads. Frames that fit may come without end, and so may comments
/// and blank lines: keep-alives trip nothing, at whatever cadence (T-16).
///
/// Together they bound the memory of a decoder: it holds at most `frame_bytes` of the frame being
/// read, plus two ids and an event name, and the old block of a buffer while that grows. Only a
/// frame that is not valid UTF-8 takes more: its text once again, with three bytes for each that
/// had to be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// All lines of one frame together: field names, values, fields that are not known, but
    /// neither comments nor line ends. Default 10 MiB, as in the reference client.
    pub frame_bytes: usize,
    /// One field line, without its line end. Default 10 MiB, so that a frame may be one line.
    pub line_bytes: usize,
    /// One comment line, colon included, without its line end. Comments are never stored;
    /// this is what ends a comment that does not end. Default 10 MiB, as in the reference.
    pub comment_bytes: usize,
    /// The value of an `id` line. Default 64 KiB.
    pub id_bytes: usize,
    /// The value of an `event` line. Default 64 KiB.
    pub event_bytes: usize,
}

impl Limits {
    /// Sets [`frame_bytes`](Self::frame_bytes).
    #[must_use]
    pub const fn with_frame_bytes(mut self, bytes: usize) -> Self {
        self.frame_bytes = bytes;
        self
    }

    /// Sets [`line_bytes`](Self::line_bytes).
    #[must_use]
    pub const fn with_line_bytes(mut self, bytes: usize) -> Self {
        self.line_bytes = bytes;
        self
    }

    /// Sets [`comment_bytes`](Self::comment_bytes).
    #[must_use]
    pub const fn with_comment_bytes(mut self, bytes: usize) -> Self {
        self.comment_bytes = bytes;
        self
    }

    /// Sets [`id_bytes`](Self::id_bytes).
    #[must_use]
    pub const fn with_id_bytes(mut self, bytes: usize) -> Self {
        self.id_bytes = bytes;
        self
    }

    /// Sets [`event_bytes`](Self::event_bytes).
    #[must_use]
    pub const fn with_event_bytes(mut self, bytes: usize) -> Self {
        self.event_bytes = bytes;
        self
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            frame_bytes: 10 << 20,
            line_bytes: 10 << 20,
            comment_bytes: 10 << 20,
            id_bytes: 64 << 10,
            event_bytes: 64 << 10,
        }
    }
}

/// One of the [`Limits`]. Prints the name of its field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Limit {
    /// [`Limits::frame_bytes`].
    FrameBytes,
    /// [`Limits::line_bytes`].
    LineBytes,
    /// [`Limits::comment_bytes`].
    CommentBytes,
    /// [`Limits::id_bytes`].
    IdBytes,
    /// [`Limits::event_bytes`].
    EventBytes,
}

impl Limit {
    fn subject(self) -> &'static str {
        match self {
            Self::FrameBytes => "frame",
            Self::LineBytes => "line",
            Self::CommentBytes => "comment line",
            Self::IdBytes => "id line",
            Self::EventBytes => "event line",
        }
    }

    fn fix(self) -> &'static str {
        match self {
            Self::FrameBytes => "the sender must end every frame with a blank line",
            _ => "the sender must end the line sooner",
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FrameBytes => "frame_bytes",
            Self::LineBytes => "line_bytes",
            Self::CommentBytes => "comment_bytes",
            Self::IdBytes => "id_bytes",
            Self::EventBytes => "event_bytes",
        })
    }
}

/// The body went past one of the [`Limits`]: the only way in which decoding can fail, as the
/// grammar gives a meaning to any other sequence of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the SSE {} that starts at byte {offset} of the body exceeds {limit} = {max}: {}, or the limit be raised",
    limit.subject(),
    limit.fix()
)]
#[non_exhaustive]
pub struct LimitExceeded {
    /// Which limit. When several are exceeded, the one that was passed first.
    pub limit: Limit,
    /// Its value.
    pub max: usize,
    /// Where the thing that is too long starts: the frame for [`Limit::FrameBytes`], as in
    /// [`Frame::offset`](super::Frame::offset), else the line.
    pub offset: u64,
}
