//! From the bytes of a body, in either form, to events.

use std::fmt;

use agui_types::read::Reading;
use agui_types::{Event, EventReader, ReadError, ReadErrorKind};

use crate::decode_error::Source;
use crate::hot::Piece;
use crate::limits::{Limit, LimitExceeded, Limits};
use crate::proto::{self, Frames, Refusal};
use crate::sse::{self, End};
use crate::{DecodeError, DecodeErrorKind, Warning, WireForm, quote};

/// Reads the events of a body, whatever its form and however it is cut into reads.
///
/// ```
/// use agui_wire::{Decoder, Limits, WireForm};
///
/// let mut decoder = Decoder::new(WireForm::Sse, Limits::default());
/// let mut types = Vec::new();
/// let reads = ["data: {\"type\":\"STEP_STARTED\",\"ste", "pName\":\"plan\"}\n\n: keep-alive\n\n"];
/// for read in reads {
///     let mut read = read.as_bytes();
///     while let Some(decoded) = decoder.decode(&mut read)? {
///         types.extend(decoded.event.map(|event| event.value.type_name().to_owned()));
///     }
/// }
/// assert_eq!(types, ["STEP_STARTED"]);
/// assert!(decoder.finish()?.last.is_none());
/// # Ok::<(), agui_wire::DecodeError>(())
/// ```
///
/// Both forms give the same events with the same findings, and the same errors for what they have
/// in common (T-5, T-32). What is only sloppy comes as a [`Warning`] beside the event; what cannot
/// be read ends the stream, after every event before it was handed out.
///
/// # Cost
///
/// A frame inside one read is not copied; the bytes of one that is cut are copied once. An id that
/// repeats is allocated once, so that a delta of text takes a single allocation: the text.
pub struct Decoder {
    form: Form,
    limits: Limits,
    reader: EventReader,
    /// Frames handed out.
    frames: u64,
    /// The last event ended a run.
    ended: bool,
    failed: Option<DecodeError>,
}

// One decoder a connection: the difference in size is of no account.
#[allow(clippy::large_enum_variant)]
enum Form {
    Sse(sse::Decoder),
    Proto(Frames),
}

impl Decoder {
    /// A decoder at the start of a body.
    #[must_use]
    pub fn new(form: WireForm, limits: Limits) -> Self {
        let form = match form {
            WireForm::Sse => Form::Sse(sse::Decoder::new(limits)),
            WireForm::Proto => Form::Proto(Frames::new(limits)),
        };
        Self { form, limits, reader: EventReader::new(), frames: 0, ended: false, failed: None }
    }

    /// Takes the next frame out of `input` and advances `input` behind it.
    ///
    /// `None` means that `input` is used up and no frame is complete; what it held of the next
    /// one is kept. So call it in a loop for each read. Breaking out early loses nothing: what was
    /// not decoded yet is still in `input`.
    ///
    /// # Errors
    ///
    /// When the frame cannot be read or the body goes past a limit. The decoder stays failed: this
    /// and every later call returns the same error, and `input` is left alone.
    pub fn decode<'a, 'i: 'a>(
        &'a mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<Decoded<'a>>, DecodeError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let Self { form, limits, reader, frames, ended, failed } = self;
        let index = *frames;
        let decoded = match form {
            Form::Sse(decoder) => {
                if let Some(offset) = decoder.between_frames()
                    && let Some(piece) = Piece::read(input, limits)
                    && let Some(event) = piece.event(reader)
                {
                    decoder.skip(piece.len);
                    *input = &input[piece.len..];
                    *frames += 1;
                    *ended = false;
                    let event = Some(event.into());
                    let warnings = Vec::new();
                    return Ok(Some(Decoded { event, warnings, frame: index, offset, id: None }));
                }
                match decoder.decode(input) {
                    Ok(None) => return Ok(None),
                    Ok(Some(frame)) => read_text(&frame, index, *ended, reader),
                    Err(exceeded) => Err(too_much(index, exceeded)),
                }
            }
            Form::Proto(decoder) => match decoder.next(input) {
                Ok(None) => return Ok(None),
                Ok(Some(frame)) => {
                    let message = proto::decode(frame.message, reader, limits.list_items);
                    read_message(message, frame.message, frame.offset, index, limits)
                }
                Err(exceeded) => Err(too_much(index, exceeded)),
            },
        };
        match decoded {
            Ok(decoded) => {
                *frames += 1;
                if let Some(event) = &decoded.event {
                    *ended = event.value.is_terminal();
                }
                Ok(Some(decoded))
            }
            Err(error) => {
                *failed = Some(error.clone());
                Err(error)
            }
        }
    }

    /// Ends the body: tells where it ended, and hands out the last frame if only the blank line
    /// behind it is missing.
    ///
    /// Call it when the body ended in the regular way, not when the connection broke. Afterwards
    /// the decoder is at the start of another body.
    ///
    /// # Errors
    ///
    /// When the body ended inside a frame that cannot be read without what is missing
    /// ([`DecodeErrorKind::TruncatedFrame`]), or the last frame cannot be read, or the decoder has
    /// failed before.
    pub fn finish(&mut self) -> Result<Ending<'_>, DecodeError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let index = std::mem::take(&mut self.frames);
        let ended = std::mem::take(&mut self.ended);
        match &mut self.form {
            Form::Sse(decoder) => {
                let sse::Ending { frame, end } = match decoder.finish() {
                    Ok(ending) => ending,
                    Err(exceeded) => return Err(too_much(index, exceeded)),
                };
                let last = match frame {
                    Some(frame) => Some(last_text(&frame, index, ended, &mut self.reader)?),
                    None => None,
                };
                Ok(Ending { last, end })
            }
            Form::Proto(frames) => {
                let ended = std::mem::replace(frames, Frames::new(self.limits));
                let end = End::Clean;
                let Some((offset, cut, held)) = ended.inside() else {
                    return Ok(Ending { last: None, end });
                };
                let kind = DecodeErrorKind::TruncatedFrame;
                let source = Some(Source::Cut(cut));
                Err(DecodeError::new(kind, index, offset, quote::hex(held), source))
            }
        }
    }

    /// The position of the last complete frame that had one: the last event ID of server-sent
    /// events, empty when there was none. Protobuf has no positions.
    #[must_use]
    pub fn last_event_id(&self) -> &str {
        match &self.form {
            Form::Sse(decoder) => decoder.last_event_id(),
            Form::Proto(_) => "",
        }
    }

    /// The form that is read.
    #[must_use]
    pub fn form(&self) -> WireForm {
        match &self.form {
            Form::Sse(_) => WireForm::Sse,
            Form::Proto(_) => WireForm::Proto,
        }
    }
}

/// Shows where the decoder is, not what it holds.
impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder")
            .field("form", &self.form())
            .field("frames", &self.frames)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

/// One frame that was read.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Decoded<'a> {
    /// The event, with what was not recognised in it. `None` where the frame was dropped; then
    /// there is a warning.
    pub event: Option<Reading<Event>>,
    /// What was amiss with the frame; empty, and not allocated, when nothing was.
    pub warnings: Vec<Warning>,
    /// Which frame, counted from 0.
    pub frame: u64,
    /// Where the frame starts: bytes of the body before it.
    pub offset: u64,
    /// The position that the frame carries: the `id` of server-sent events. It is no part of this
    /// protocol (T-21); those who agreed on one may use it.
    pub id: Option<&'a str>,
}

/// The end of a body; see [`Decoder::finish`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Ending<'a> {
    /// The last frame, where the body ended before the blank line behind it.
    pub last: Option<Decoded<'a>>,
    /// Where in the form's grammar the body ended. An unfinished comment line or half an `id` is no
    /// event and no error, but no clean end either.
    pub end: End,
}

fn read_text<'a>(
    frame: &sse::Frame<'a>,
    index: u64,
    ended: bool,
    reader: &mut EventReader,
) -> Result<Decoded<'a>, DecodeError> {
    let mut decoded = Decoded {
        event: None,
        warnings: Vec::new(),
        frame: index,
        offset: frame.offset,
        id: frame.id,
    };
    if frame.replaced {
        decoded.warnings.push(Warning::InvalidUtf8);
    }
    match reader.tolerant(frame.data) {
        Ok(event) => decoded.event = Some(event),
        Err(_) if ended && frame.data.trim_ascii() == "[DONE]" => {
            decoded.warnings.push(Warning::DoneMarker);
        }
        Err(error) => return Err(unreadable_text(frame, index, error)),
    }
    Ok(decoded)
}

/// Reads a frame without the blank line behind it: where it is not whole JSON, it was cut.
fn last_text<'a>(
    frame: &sse::Frame<'a>,
    index: u64,
    ended: bool,
    reader: &mut EventReader,
) -> Result<Decoded<'a>, DecodeError> {
    read_text(frame, index, ended, reader).map_err(|error| match error.kind() {
        DecodeErrorKind::NotJson => error.into_truncated(),
        _ => error,
    })
}

#[cold]
fn unreadable_text(frame: &sse::Frame<'_>, index: u64, error: ReadError) -> DecodeError {
    let quote = quote::shortened(frame.data, error.offset(), QUOTE);
    let kind = match error.kind() {
        ReadErrorKind::Syntax => DecodeErrorKind::NotJson,
        kind => of_read_error(kind),
    };
    let source = Some(Source::Read(error));
    DecodeError::new(kind, index, frame.data_offset, quote, source)
}

#[inline]
fn read_message<'a>(
    decoded: Result<proto::Decoded, Refusal>,
    message: &[u8],
    offset: u64,
    index: u64,
    limits: &Limits,
) -> Result<Decoded<'a>, DecodeError> {
    let refusal = match decoded {
        Ok(proto::Decoded { event, warnings }) => {
            return Ok(Decoded { event, warnings, frame: index, offset, id: None });
        }
        Err(refusal) => refusal,
    };
    let (kind, source) = match refusal {
        Refusal::Proto(error) => (DecodeErrorKind::Proto, Source::Proto(error)),
        Refusal::Read(error) => (of_read_error(error.kind()), Source::Read(error)),
        Refusal::TooManyItems => {
            return Err(too_much(
                index,
                LimitExceeded { limit: Limit::ListItems, max: limits.list_items, offset },
            ));
        }
    };
    let quote = quote::hex(message);
    Err(DecodeError::new(kind, index, offset, quote, Some(source)))
}

fn of_read_error(kind: ReadErrorKind) -> DecodeErrorKind {
    match kind {
        ReadErrorKind::TooDeep => DecodeErrorKind::Limit,
        ReadErrorKind::NotAnEvent => DecodeErrorKind::NotAnEvent,
        _ => DecodeErrorKind::Malformed,
    }
}

#[cold]
fn too_much(index: u64, exceeded: LimitExceeded) -> DecodeError {
    let (kind, source) = (DecodeErrorKind::Limit, Source::Limit(exceeded));
    DecodeError::new(kind, index, exceeded.offset, String::new(), Some(source))
}

/// How many characters of a frame an error quotes.
const QUOTE: usize = 120;
