//! From the bytes of a body to frames.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use memchr::memchr2;

use super::line::{Kind, Line};
use super::{End, Ending, Frame, Limit, LimitExceeded, Limits};

const LF: u8 = b'\n';
const CR: u8 = b'\r';
const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Reads an event stream, cut into reads in whatever way, by the grammar of the HTML standard.
///
/// ```
/// use agui_wire::sse::{Decoder, Limits};
///
/// let mut decoder = Decoder::new(Limits::default());
/// let mut read: &[u8] = b"data: {}\n\ndata: {\"a\":\ndata: 1}\n\ndata: {\"un";
/// while let Some(frame) = decoder.decode(&mut read)? {
///     println!("{}: {}", frame.offset, frame.data);
/// }
/// assert!(read.is_empty());
/// # Ok::<(), agui_wire::sse::LimitExceeded>(())
/// ```
///
/// # What it accepts
///
/// - Lines end with LF, CR or CR LF, in any mixture, also with CR and LF in different reads
///   (T-15). A CR ends its line at once: nothing waits for the LF that may follow.
/// - One byte order mark at the start is skipped.
/// - Comments and unknown fields are skipped. `event`, `id` and `retry` are reported and have
///   no influence on what is dispatched (T-16).
/// - Several `data` lines join with a line feed; one space behind the colon is dropped (T-14).
/// - A blank line dispatches the frame if it has a `data:` line, even an empty one. A line
///   `data` without a colon is an empty line of data, but does not by itself make a frame
///   worth dispatching. (In the HTML standard it does. The reference client ignores the bare
///   line, and a frame of nothing would end the run.)
/// - An `id` with a NUL byte and a `retry` that is not all ASCII digits are ignored.
/// - Bytes that are not UTF-8 become U+FFFD. A character may be split over reads.
///
/// # Cost
///
/// Each byte is looked at once and copied at most once. A frame with one `data` line inside
/// one read is not copied at all. The buffers for the others are kept, so that there is no
/// allocation once the largest frame was seen; they are freed with the decoder.
pub struct Decoder {
    limits: Limits,
    failed: Option<LimitExceeded>,
    /// Bytes of the body consumed by earlier calls.
    offset: u64,
    /// `Some(n)` while the body so far is the first n bytes of a byte order mark.
    bom: Option<usize>,
    /// The last byte was a CR that ended a line: an LF now belongs to it.
    skip_lf: bool,
    line: Line,
    frame: Pending,
    /// Data of the pending frame that could not stay in the input.
    data: Vec<u8>,
    /// Value of an unfinished `id`, `event` or `retry` line.
    value: Vec<u8>,
    /// Data of the dispatched frame, if bytes had to be replaced.
    text: String,
    event: String,
    /// `id` of the pending frame; swapped with the last event ID when that frame is complete.
    id: String,
    last_event_id: String,
    retry: Option<Duration>,
}

impl Decoder {
    /// A decoder at the start of a body. Allocates nothing yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            failed: None,
            offset: 0,
            bom: Some(0),
            skip_lf: false,
            line: Line::default(),
            frame: Pending::default(),
            data: Vec::new(),
            value: Vec::new(),
            text: String::new(),
            event: String::new(),
            id: String::new(),
            last_event_id: String::new(),
            retry: None,
        }
    }

    /// Takes the next frame out of `input` and advances `input` behind it.
    ///
    /// `None` means that `input` is used up and no frame is complete; what it held of the next
    /// one is kept. So call it in a loop for each read. Breaking out early loses nothing: what
    /// was not decoded yet is still in `input`.
    ///
    /// # Errors
    ///
    /// When the body goes past one of the [`Limits`]. Every frame before that has been handed
    /// out. The decoder stays failed: this and every later call, [`finish`](Self::finish)
    /// included, returns the same error, and `input` is left alone.
    pub fn decode<'a, 'i: 'a>(
        &'a mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<Frame<'a>>, LimitExceeded> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let bytes = *input;
        let (used, dispatched) =
            self.scan(bytes).inspect_err(|error| self.failed = Some(*error))?;
        self.offset += used as u64;
        *input = &bytes[used..];
        Ok(dispatched.map(|Dispatched { held }| self.frame(held.map(|range| &bytes[range]))))
    }

    /// Ends the body: returns the last frame if only its blank line is missing, and tells
    /// where the body ended.
    ///
    /// The HTML standard drops an unfinished frame; here it is dispatched, since losing a
    /// terminal event turns a good run into a truncated one (T-9). Whether its data is whole
    /// is for the reader of the data to find out. Of a last line without line end, only `data`
    /// counts: half an `id` could be taken for another one.
    ///
    /// Call it when the body ended in the regular way, not when the connection broke. The
    /// decoder is then ready for another body. As in a browser that reconnects, only
    /// [`last_event_id`](Self::last_event_id) and [`retry`](Self::retry) live on.
    ///
    /// # Errors
    ///
    /// When the decoder has failed before, the same error again.
    pub fn finish(&mut self) -> Result<Ending<'_>, LimitExceeded> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        if self.frame.dispatched {
            self.clear();
        }
        let end = if self.line.len > 0 || self.bom.is_some_and(|seen| seen > 0) {
            End::MidLine
        } else if self.frame.open {
            End::UnterminatedFrame
        } else {
            End::Clean
        };
        if self.line.kind.is_none() && self.line.head() == b"data:" {
            self.open_data(self.line.len, self.line.offset);
        }
        self.frame.dispatched = true;
        self.offset = 0;
        self.bom = Some(0);
        self.skip_lf = false;
        self.line = Line::default();

        let frame = if self.frame.has_colon { Some(self.frame(None)) } else { None };
        Ok(Ending { frame, end })
    }

    /// Where the body is, if that is between two frames: whoever knows what a whole frame looks like
    /// may then take it out of the input without this decoder, and [`skip`](Self::skip) it.
    #[inline]
    pub(crate) fn between_frames(&mut self) -> Option<u64> {
        if self.frame.dispatched {
            self.clear();
        }
        let inside = self.frame.open || self.line.len > 0;
        let settled = self.bom.is_none() && !self.skip_lf && self.failed.is_none();
        (settled && !inside).then_some(self.offset)
    }

    /// Goes past a frame that had no other line than `data`.
    #[inline]
    pub(crate) fn skip(&mut self, bytes: usize) {
        self.offset += bytes as u64;
    }

    /// The last event ID as of the last complete frame, whether or not that had data; empty
    /// when there was none. This protocol does not use it (T-21); it is a position for those
    /// who agreed on one.
    #[must_use]
    pub fn last_event_id(&self) -> &str {
        &self.last_event_id
    }

    /// The reconnection time of the last valid `retry` line. More than fits into 64 bits of
    /// milliseconds reads as the longest time that does.
    #[must_use]
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// The error of a failed decoder.
    #[must_use]
    pub fn error(&self) -> Option<LimitExceeded> {
        self.failed
    }

    /// Reads lines until a frame is complete or the input used up. Returns the bytes used.
    fn scan(&mut self, bytes: &[u8]) -> Result<(usize, Option<Dispatched>), LimitExceeded> {
        if self.frame.dispatched {
            self.clear();
        }
        let mut held = None;
        let mut at = self.begin(bytes);
        while at < bytes.len() {
            let found = match bytes[at] {
                LF | CR => Some(0),
                _ => memchr2(LF, CR, &bytes[at..]),
            };
            let Some(len) = found else {
                self.release(&mut held, bytes);
                if self.line.len == 0 {
                    self.line.offset = self.offset + at as u64;
                }
                self.extend_line(&bytes[at..])?;
                at = bytes.len();
                break;
            };
            let line = at..at + len;
            at = self.step_over_line_end(bytes, line.end);
            if self.line.len > 0 {
                self.extend_line(&bytes[line])?;
                self.end_line();
            } else if len > 0 {
                self.whole_line(bytes, line, &mut held)?;
            } else if self.boundary() {
                return Ok((at, Some(Dispatched { held })));
            }
        }
        self.release(&mut held, bytes);
        Ok((at, None))
    }

    /// Steps over a byte order mark and over the LF of a CR LF that was split.
    fn begin(&mut self, bytes: &[u8]) -> usize {
        if bytes.is_empty() {
            return 0;
        }
        if self.skip_lf {
            self.skip_lf = false;
            return usize::from(bytes[0] == LF);
        }
        let Some(seen) = self.bom else { return 0 };
        let rest = &BOM[seen..];
        if bytes.starts_with(rest) {
            self.bom = None;
            rest.len()
        } else if rest.starts_with(bytes) {
            self.bom = Some(seen + bytes.len());
            bytes.len()
        } else {
            self.bom = None;
            if seen > 0 {
                // It was no byte order mark but the start of a field that nobody knows.
                self.line = Line { kind: Some(Kind::Unknown), len: seen, ..Line::default() };
                self.frame.open(0);
            }
            0
        }
    }

    /// `end` is where the line end starts. Returns where the next line starts.
    fn step_over_line_end(&mut self, bytes: &[u8], end: usize) -> usize {
        if bytes[end] == CR {
            match bytes.get(end + 1) {
                Some(&LF) => return end + 2,
                Some(_) => {}
                None => self.skip_lf = true,
            }
        }
        end + 1
    }

    /// Takes a line that lies in the input as a whole and is not blank.
    fn whole_line(
        &mut self,
        bytes: &[u8],
        line: Range<usize>,
        held: &mut Option<Range<usize>>,
    ) -> Result<(), LimitExceeded> {
        let offset = self.offset + line.start as u64;
        let (kind, value_at) = Kind::of(&bytes[line.clone()]);
        if kind != Kind::Comment {
            self.frame.open(offset);
        }
        self.check(kind, value_at, line.len(), offset)?;
        let value = line.start + value_at..line.end;
        if kind == Kind::Data {
            self.release(held, bytes);
            if self.open_data(value_at, offset) {
                *held = Some(value);
            } else {
                append(&mut self.data, &bytes[value], self.limits.frame_bytes);
            }
        } else {
            self.field(kind, &bytes[value]);
        }
        if kind != Kind::Comment {
            self.frame.bytes += line.len();
        }
        Ok(())
    }

    /// Moves the one data line that was still in the input into the buffer.
    fn release(&mut self, held: &mut Option<Range<usize>>, bytes: &[u8]) {
        if let Some(range) = held.take() {
            append(&mut self.data, &bytes[range], self.limits.frame_bytes);
        }
    }

    /// Takes a piece of a line that is not whole.
    fn extend_line(&mut self, piece: &[u8]) -> Result<(), LimitExceeded> {
        let mut rest = piece;
        let mut settled = false;
        let offset = self.line.offset;
        while self.line.kind.is_none()
            && let Some((byte, tail)) = rest.split_first()
        {
            rest = tail;
            settled = self.line.push(*byte);
        }
        let kind = self.line.kind.unwrap_or(Kind::Unknown);
        if kind != Kind::Comment {
            self.frame.open(offset);
        }
        let len = self.line.len + rest.len();
        self.check(kind, self.line.value_at, len, offset)?;

        let cap = self.limits.frame_bytes;
        let head = self.line.head;
        let head = if settled { &head[self.line.value_at..self.line.len] } else { &[] };
        match kind {
            Kind::Data => {
                if settled {
                    self.open_data(self.line.value_at, offset);
                }
                append(&mut self.data, head, cap);
                append(&mut self.data, rest, cap);
            }
            Kind::Id | Kind::Event | Kind::Retry => {
                if settled {
                    self.value.clear();
                }
                append(&mut self.value, head, cap);
                append(&mut self.value, rest, cap);
            }
            Kind::Comment | Kind::Unknown => {}
        }
        self.line.len = len;
        Ok(())
    }

    /// Ends the line that [`extend_line`](Self::extend_line) has collected.
    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        match line.kind {
            Some(Kind::Data) => {}
            Some(kind) => {
                let value = std::mem::take(&mut self.value);
                self.field(kind, &value);
                self.value = value;
            }
            // So short that its value is empty.
            None => match Kind::of(line.head()) {
                (Kind::Data, value_at) => {
                    self.open_data(value_at, line.offset);
                }
                (kind, _) => self.field(kind, b""),
            },
        }
        if line.kind != Some(Kind::Comment) {
            self.frame.bytes += line.len;
        }
    }

    /// Starts a data line, whose value begins `value_at` bytes into it: in the buffer, behind a
    /// line feed, unless it is the first of its frame, which is what is returned.
    fn open_data(&mut self, value_at: usize, line_offset: u64) -> bool {
        let first = !self.frame.has_data;
        if first {
            self.frame.has_data = true;
            self.frame.data_offset = line_offset + value_at as u64;
        } else {
            append(&mut self.data, b"\n", self.limits.frame_bytes);
        }
        self.frame.has_colon |= value_at > Kind::Data.name().len();
        first
    }

    fn field(&mut self, kind: Kind, value: &[u8]) {
        match kind {
            Kind::Id if !value.contains(&0) => {
                assign(&mut self.id, value);
                self.frame.has_id = true;
            }
            Kind::Event => assign(&mut self.event, value),
            Kind::Retry if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                let millis = value.iter().fold(0u64, |n, digit| {
                    n.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
                });
                self.retry = Some(Duration::from_millis(millis));
            }
            _ => {}
        }
    }

    /// A blank line. Returns whether it dispatches the frame.
    fn boundary(&mut self) -> bool {
        self.frame.complete = true;
        if self.frame.has_id {
            std::mem::swap(&mut self.id, &mut self.last_event_id);
        }
        self.frame.dispatched = self.frame.has_colon;
        if !self.frame.dispatched {
            self.clear();
        }
        self.frame.dispatched
    }

    /// The pending frame, whose data lies in the input or else in the buffer.
    fn frame<'a>(&'a mut self, held: Option<&'a [u8]>) -> Frame<'a> {
        let pending = &self.frame;
        let id = if pending.complete { &self.last_event_id } else { &self.id };
        let id = pending.has_id.then_some(id.as_str());
        let (data, replaced) = text(held.unwrap_or(&self.data), &mut self.text);
        Frame {
            data,
            id,
            last_event_id: id.unwrap_or(&self.last_event_id),
            event: Some(self.event.as_str()).filter(|name| !name.is_empty()),
            offset: pending.offset,
            data_offset: pending.data_offset,
            replaced,
        }
    }

    /// Forgets the frame that was dispatched or had nothing to dispatch.
    fn clear(&mut self) {
        self.frame = Pending::default();
        self.data.clear();
        self.event.clear();
    }

    /// Whether a line of `kind` may be `len` bytes long.
    #[inline]
    fn check(
        &self,
        kind: Kind,
        value_at: usize,
        len: usize,
        offset: u64,
    ) -> Result<(), LimitExceeded> {
        let limits = &self.limits;
        let room = limits.frame_bytes - self.frame.bytes;
        let fits = match kind {
            Kind::Comment => len <= limits.comment_bytes,
            Kind::Id => len.saturating_sub(value_at) <= limits.id_bytes,
            Kind::Event => len.saturating_sub(value_at) <= limits.event_bytes,
            Kind::Data | Kind::Retry | Kind::Unknown => true,
        };
        if fits && (kind == Kind::Comment || (len <= room && len <= limits.line_bytes)) {
            return Ok(());
        }
        Err(self.exceeded(kind, value_at, offset))
    }

    /// The limit that such a line passes first.
    #[cold]
    fn exceeded(&self, kind: Kind, value_at: usize, offset: u64) -> LimitExceeded {
        let Limits { frame_bytes, line_bytes, comment_bytes, id_bytes, event_bytes, .. } =
            self.limits;
        if kind == Kind::Comment {
            return LimitExceeded { limit: Limit::CommentBytes, max: comment_bytes, offset };
        }
        let mut first = (frame_bytes - self.frame.bytes, Limit::FrameBytes, frame_bytes);
        let mut consider = |longest, limit, max| {
            if longest < first.0 {
                first = (longest, limit, max);
            }
        };
        consider(line_bytes, Limit::LineBytes, line_bytes);
        if kind == Kind::Id {
            consider(id_bytes.saturating_add(value_at), Limit::IdBytes, id_bytes);
        }
        if kind == Kind::Event {
            consider(event_bytes.saturating_add(value_at), Limit::EventBytes, event_bytes);
        }
        let (_, limit, max) = first;
        let offset = if limit == Limit::FrameBytes { self.frame.offset } else { offset };
        LimitExceeded { limit, max, offset }
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

/// Shows where the decoder is, not what it holds.
impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder")
            .field("limits", &self.limits)
            .field("offset", &self.offset)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

/// A complete frame: its data lies in the input if `held`, else in the buffer.
struct Dispatched {
    held: Option<Range<usize>>,
}

/// The frame being read.
#[derive(Default)]
struct Pending {
    /// A field line has started.
    open: bool,
    has_data: bool,
    /// One of the data lines had a colon.
    has_colon: bool,
    has_id: bool,
    /// Its blank line was seen.
    complete: bool,
    /// Already handed out: to be cleared before anything else is read.
    dispatched: bool,
    offset: u64,
    data_offset: u64,
    /// What counts for [`Limits::frame_bytes`], without the unfinished line.
    bytes: usize,
}

impl Pending {
    fn open(&mut self, offset: u64) {
        if !self.open {
            self.open = true;
            self.offset = offset;
        }
    }
}

/// Appends without reserving more than `cap`, which the caller has checked to suffice.
fn append(buffer: &mut Vec<u8>, bytes: &[u8], cap: usize) {
    let needed = buffer.len() + bytes.len();
    if needed > buffer.capacity() {
        let doubled = buffer.capacity().saturating_mul(2).max(1024).min(cap);
        buffer.reserve_exact(needed.max(doubled) - buffer.len());
    }
    buffer.extend_from_slice(bytes);
}

/// `bytes` as text, and whether some of them had to be replaced; then it is in `buffer`.
fn text<'a>(bytes: &'a [u8], buffer: &'a mut String) -> (&'a str, bool) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text, false),
        Err(_) => {
            assign(buffer, bytes);
            (buffer, true)
        }
    }
}

fn assign(text: &mut String, bytes: &[u8]) {
    text.clear();
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
}
