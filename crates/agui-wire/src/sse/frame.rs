//! What the decoder hands out.

/// One dispatched frame, borrowed from the input or from the decoder's buffers.
///
/// Comments and blank lines around a frame are not part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Frame<'a> {
    /// The values of the `data` lines, joined with a line feed (T-14).
    ///
    /// May be empty: a `data:` line without a value does dispatch a frame. Borrowed from the
    /// input when it is one line inside one read and valid UTF-8.
    pub data: &'a str,
    /// The `id` that this very frame carried. Empty when it carried an empty one, which
    /// resets the last event ID.
    pub id: Option<&'a str>,
    /// The last event ID: this frame's `id`, else that of the last frame which had one;
    /// empty when there was none.
    pub last_event_id: &'a str,
    /// The `event` name, `None` when absent or empty. Means nothing in this protocol (T-16).
    pub event: Option<&'a str>,
    /// Where the frame starts: bytes of the body before the first byte of its first line
    /// that is no comment. A byte order mark counts as part of the body.
    pub offset: u64,
    /// Where `data` starts: bytes of the body before the first byte of the value of the
    /// first `data` line. While `data` is a single line, the byte `data[n]` came from
    /// `data_offset + n` (unless bytes were [replaced](Self::replaced) before it).
    pub data_offset: u64,
    /// Whether `data` was not valid UTF-8. Each maximal ill-formed piece then became one
    /// U+FFFD, as in a browser and in [`String::from_utf8_lossy`].
    pub replaced: bool,
}

/// What the end of the body left over; see [`Decoder::finish`](super::Decoder::finish).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ending<'a> {
    /// The last frame, when the body ended before the blank line that dispatches it.
    pub frame: Option<Frame<'a>>,
    /// Where in the grammar the body ended.
    pub end: End,
}

/// Where in the grammar a body ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// Between frames (the place where a well-behaved producer stops), or before the first.
    Clean,
    /// Behind the end of a field line, before the blank line. The frame may be whole.
    UnterminatedFrame,
    /// Inside a line, which may have lost bytes. It may be a comment.
    MidLine,
}
