//! How much a peer may send before the decoder gives up on it.

use std::fmt;

/// The limits of a decoder. Sizes are in bytes as they are on the wire.
///
/// A size equal to the limit passes, one byte more fails. What is counted never depends on
/// how the body was cut into reads. Frames that fit may come without end, and so may comments
/// and blank lines: keep-alives trip nothing, at whatever cadence (T-16).
///
/// Together they bound the memory of a decoder: it holds at most `frame_bytes` of the frame being
/// read, plus two ids and an event name, and the old block of a buffer while that grows. Only a
/// frame of server-sent events that is not valid UTF-8 takes more: its text once again, with three
/// bytes for each that had to be replaced.
///
/// One more limit has no field, since the types set it: JSON nests at most
/// [`MAX_DEPTH`](agui_types::json::MAX_DEPTH) levels, in either form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// One frame. Server-sent events: all its lines together, that is field names, values and
    /// fields that are not known, but neither comments nor line ends. Protobuf: header and message,
    /// judged by the length in the header. Default 10 MiB, as in the reference client.
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
    /// Elements of the lists in one protobuf frame (messages, tool calls, parts, patch operations
    /// and so on, but not those inside JSON values), and occurrences of a message to be merged with
    /// an earlier one. Two bytes can spell an element that takes some hundreds in memory. Default
    /// 262,144.
    pub list_items: usize,
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

    /// Sets [`list_items`](Self::list_items).
    #[must_use]
    pub const fn with_list_items(mut self, items: usize) -> Self {
        self.list_items = items;
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
            list_items: 1 << 18,
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
    /// [`Limits::list_items`].
    ListItems,
}

impl Limit {
    fn subject(self) -> &'static str {
        match self {
            Self::FrameBytes => "frame",
            Self::LineBytes => "line",
            Self::CommentBytes => "comment line",
            Self::IdBytes => "id line",
            Self::EventBytes => "event line",
            Self::ListItems => "list",
        }
    }

    fn fix(self) -> &'static str {
        match self {
            Self::FrameBytes => "the sender must end its frames sooner",
            Self::ListItems => "the sender must send shorter lists",
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
            Self::ListItems => "list_items",
        })
    }
}

/// The body went past one of the [`Limits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the {} that starts at byte {offset} of the body exceeds {limit} = {max}: {}, or the limit be raised",
    limit.subject(),
    limit.fix()
)]
#[non_exhaustive]
pub struct LimitExceeded {
    /// Which limit. When several are exceeded, the one that was passed first.
    pub limit: Limit,
    /// Its value.
    pub max: usize,
    /// Where the thing that is too long starts: the line, or the frame for [`Limit::FrameBytes`] and
    /// [`Limit::ListItems`].
    pub offset: u64,
}
