//! What the fuzz targets and property tests call. Not part of the public interface.

use std::time::Duration;

use agui_types::{Event, FromJson, ToJson};

use crate::sse::{Decoder, Encoder, End, Frame, LimitExceeded, Limits};
use crate::{DecodeError, Decoded, EncodeErrorKind, Warning, WireForm};

/// A frame that owns its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedFrame {
    pub data: String,
    pub id: Option<String>,
    pub last_event_id: String,
    pub event: Option<String>,
    pub offset: u64,
    pub data_offset: u64,
    pub replaced: bool,
}

impl From<Frame<'_>> for OwnedFrame {
    fn from(frame: Frame<'_>) -> Self {
        Self {
            data: frame.data.to_owned(),
            id: frame.id.map(str::to_owned),
            last_event_id: frame.last_event_id.to_owned(),
            event: frame.event.map(str::to_owned),
            offset: frame.offset,
            data_offset: frame.data_offset,
            replaced: frame.replaced,
        }
    }
}

/// All that decoding a body brings to light.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The frames that were dispatched by a blank line.
    pub frames: Vec<OwnedFrame>,
    /// How the body ended, with the frame that was left over.
    pub end: Result<(Option<OwnedFrame>, End), LimitExceeded>,
    pub last_event_id: String,
    pub retry: Option<Duration>,
}

impl Reading {
    /// All frames, the one left over included.
    pub fn frames(&self) -> impl Iterator<Item = &OwnedFrame> {
        let last = self.end.as_ref().ok().and_then(|(frame, _)| frame.as_ref());
        self.frames.iter().chain(last)
    }
}

/// Decodes a body that arrives in these reads.
pub fn read<'a>(limits: Limits, reads: impl IntoIterator<Item = &'a [u8]>) -> Reading {
    let mut decoder = Decoder::new(limits);
    let mut frames = Vec::new();
    let mut drain = |mut input: &[u8]| {
        while let Some(frame) = decoder.decode(&mut input)? {
            frames.push(frame.into());
        }
        assert!(input.is_empty(), "the input is used up when no frame is left");
        Ok(())
    };
    let end = reads.into_iter().try_for_each(&mut drain);
    let end = end.and_then(|()| {
        let ending = decoder.finish()?;
        Ok((ending.frame.map(OwnedFrame::from), ending.end))
    });
    if let Err(error) = end {
        assert_eq!(decoder.error(), Some(error));
        assert_eq!(decoder.decode(&mut &b"\n\n"[..]), Err(error), "stays failed");
        assert_eq!(decoder.finish(), Err(error), "stays failed");
    }
    Reading {
        frames,
        end,
        last_event_id: decoder.last_event_id().to_owned(),
        retry: decoder.retry(),
    }
}

/// A second decoder, without limits: slow, short, line by line over the whole body.
pub fn reference(body: &[u8]) -> Reading {
    let mut frames = Vec::new();
    let mut last_event_id = String::new();
    let mut retry = None;

    // The frame so far: its start, the start of its data, its data lines, its fields.
    let mut offset = None;
    let mut data_offset = None;
    let mut data: Vec<&[u8]> = Vec::new();
    let (mut id, mut event) = (None, String::new());
    let mut colon = false;
    let mut end = End::Clean;

    let bom = if body.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
    for (at, line, terminated) in lines(body, bom) {
        if !terminated {
            end = End::MidLine;
        }
        if line.is_empty() {
            if let Some(id) = &id {
                last_event_id = String::clone(id);
            }
            if colon {
                frames.push(frame(&data, id, &last_event_id, &event, offset, data_offset));
            }
            (offset, data_offset, id, colon) = (None, None, None, false);
            data.clear();
            event.clear();
            continue;
        }
        if line[0] == b':' {
            continue;
        }
        offset.get_or_insert(at);
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            None => (line, &b""[..]),
            Some(n) => (&line[..n], line[n + 1..].strip_prefix(b" ").unwrap_or(&line[n + 1..])),
        };
        let text = || String::from_utf8_lossy(value).into_owned();
        match name {
            b"data" if terminated || name.len() < line.len() => {
                data_offset.get_or_insert(at + line.len() - value.len());
                data.push(value);
                colon |= name.len() < line.len();
            }
            b"id" if terminated && !value.contains(&0) => id = Some(text()),
            b"event" if terminated => event = text(),
            b"retry" if terminated => {
                let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
                let millis = digits.then(|| text().parse().unwrap_or(u64::MAX));
                retry = millis.map(Duration::from_millis).or(retry);
            }
            _ => {}
        }
    }
    if end == End::Clean && offset.is_some() {
        end = End::UnterminatedFrame;
    }
    let last = colon.then(|| frame(&data, id, &last_event_id, &event, offset, data_offset));
    Reading { frames, end: Ok((last, end)), last_event_id, retry }
}

fn frame(
    data: &[&[u8]],
    id: Option<String>,
    last_event_id: &str,
    event: &str,
    offset: Option<usize>,
    data_offset: Option<usize>,
) -> OwnedFrame {
    let bytes = data.join(&b"\n"[..]);
    OwnedFrame {
        data: String::from_utf8_lossy(&bytes).into_owned(),
        last_event_id: id.clone().unwrap_or_else(|| last_event_id.to_owned()),
        id,
        event: (!event.is_empty()).then(|| event.to_owned()),
        offset: offset.unwrap_or_default() as u64,
        data_offset: data_offset.unwrap_or_default() as u64,
        replaced: String::from_utf8(bytes).is_err(),
    }
}

/// Where each line starts, its bytes, and whether it has a line end.
fn lines(body: &[u8], mut at: usize) -> Vec<(usize, &[u8], bool)> {
    let mut lines = Vec::new();
    while at < body.len() {
        let rest = &body[at..];
        let len = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
        lines.push((at, &rest[..len.unwrap_or(rest.len())], len.is_some()));
        at += match len {
            None => rest.len(),
            Some(n) if rest[n..].starts_with(b"\r\n") => n + 2,
            Some(n) => n + 1,
        };
    }
    lines
}

/// Any bytes: nothing panics, both decoders agree, and what was decoded encodes again.
pub fn sse_decode(body: &[u8]) {
    let read = read(Limits::default(), [body]);
    assert_eq!(read, reference(body));
    for frame in read.frames() {
        round_trip(&frame.data, frame.id.as_deref());
    }
}

/// A body behind a prefix that says how it is cut and how tight the limits are: the cuts
/// change nothing.
pub fn sse_split(input: &[u8]) {
    let Some((head, rest)) = input.split_first_chunk::<6>() else {
        return;
    };
    let [frame, line, comment, field, cuts, size] = head.map(usize::from);
    let limits = Limits::default()
        .with_frame_bytes(frame)
        .with_line_bytes(line)
        .with_comment_bytes(comment)
        .with_id_bytes(field)
        .with_event_bytes(field);
    let (sizes, body) = rest.split_at(cuts.min(rest.len()));
    let reads = pieces(body, sizes, size + 1);
    for limits in [limits, Limits::default()] {
        let whole = read(limits, [body]);
        assert_eq!(read(limits, reads.iter().copied()), whole);
        assert_eq!(read(limits, body.chunks(1)), whole);
    }
}

/// Encodes a frame and decodes it again.
pub fn round_trip(data: &str, id: Option<&str>) {
    let encoder = id.map_or(Ok(Encoder::new()), |id| Encoder::new().id(id));
    let encoder = encoder.expect("a decoded id has no CR, LF or NUL");
    let mut body = Vec::new();
    encoder.frame(&mut body, data);
    let again = read(Limits::default(), [&body[..]]);
    assert_eq!(again.end, Ok((None, End::Clean)));
    let [frame] = &again.frames[..] else { panic!("one frame, not {:?}", again.frames) };
    assert_eq!(frame.data, data.replace(['\r', '\n'], " "));
    assert_eq!(frame.id.as_deref(), id);
}

// --- both forms ------------------------------------------------------------------------------------

/// All that the decoder of both forms brings to light, spelled out to be compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    pub frames: Vec<SeenFrame>,
    pub end: Result<End, DecodeError>,
    pub last_event_id: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SeenFrame {
    pub event: Option<agui_types::Reading<Event>>,
    pub warnings: Vec<Warning>,
    pub frame: u64,
    pub offset: u64,
    pub id: Option<String>,
}

impl From<Decoded<'_>> for SeenFrame {
    fn from(decoded: Decoded<'_>) -> Self {
        let Decoded { event, warnings, frame, offset, id } = decoded;
        assert!(event.is_some() || !warnings.is_empty(), "what is dropped is told");
        Self { event, warnings, frame, offset, id: id.map(str::to_owned) }
    }
}

/// Decodes a body that arrives in these reads.
pub fn see<'a>(form: WireForm, limits: Limits, reads: impl IntoIterator<Item = &'a [u8]>) -> Seen {
    let mut decoder = crate::Decoder::new(form, limits);
    let mut frames = Vec::new();
    let mut drain = |mut input: &[u8]| {
        while let Some(decoded) = decoder.decode(&mut input)? {
            frames.push(SeenFrame::from(decoded));
        }
        assert!(input.is_empty(), "the input is used up when no frame is left");
        Ok(())
    };
    let end = reads.into_iter().try_for_each(&mut drain);
    let end = end.and_then(|()| {
        let ending = decoder.finish()?;
        frames.extend(ending.last.map(SeenFrame::from));
        Ok(ending.end)
    });
    Seen { frames, end, last_event_id: decoder.last_event_id().to_owned() }
}

/// The events of a body of server-sent events, by way of the framing and of JSON alone.
pub fn see_slowly(body: &[u8], limits: Limits) -> (Vec<Event>, bool) {
    let (mut decoder, mut reader) = (Decoder::new(limits), agui_types::EventReader::new());
    let (mut events, mut input) = (Vec::new(), body);
    let mut read = |frame: Frame<'_>, ended: bool| match reader.tolerant(frame.data) {
        Ok(reading) => Ok(Some(reading.value)),
        Err(_) if ended && frame.data.trim_ascii() == "[DONE]" => Ok(None),
        Err(_) => Err(()),
    };
    let ended = |events: &[Event]| events.last().is_some_and(Event::is_terminal);
    loop {
        match decoder.decode(&mut input) {
            Err(_) => return (events, false),
            Ok(None) => break,
            Ok(Some(frame)) => match read(frame, ended(&events)) {
                Ok(event) => events.extend(event),
                Err(()) => return (events, false),
            },
        }
    }
    let last = decoder.finish().map(|ending| ending.frame.map(|it| read(it, ended(&events))));
    match last {
        Ok(Some(Ok(event))) => {
            events.extend(event);
            (events, true)
        }
        Ok(None) => (events, true),
        Ok(Some(Err(()))) | Err(_) => (events, false),
    }
}

/// A body of either form behind a prefix that says which, how it is cut and how tight the limits
/// are: the cuts change nothing, and nothing is read that is not there.
pub fn seam_split(input: &[u8]) {
    let Some((head, rest)) = input.split_first_chunk::<5>() else {
        return;
    };
    let [flags, frame, line, cuts, size] = head.map(usize::from);
    let form = if flags & 1 == 0 { WireForm::Sse } else { WireForm::Proto };
    let tight =
        Limits::default().with_frame_bytes(frame).with_line_bytes(line).with_list_items(frame % 8);
    let (sizes, body) = rest.split_at(cuts.min(rest.len()));
    let reads = pieces(body, sizes, size + 1);
    for limits in [tight, Limits::default()] {
        let whole = see(form, limits, [body]);
        assert_eq!(see(form, limits, reads.iter().copied()), whole);
        assert_eq!(see(form, limits, body.chunks(1)), whole);
        if form == WireForm::Sse {
            let events: Vec<Event> = whole
                .frames
                .iter()
                .filter_map(|frame| frame.event.as_ref().map(|reading| reading.value.clone()))
                .collect();
            assert_eq!((events, whole.end.is_ok()), see_slowly(body, limits));
        }
    }
}

/// The body cut into these sizes once, then into equal ones.
fn pieces<'b>(body: &'b [u8], sizes: &[u8], then: usize) -> Vec<&'b [u8]> {
    let mut sizes = sizes.iter().map(|size| usize::from(*size));
    let mut left = body;
    std::iter::from_fn(|| {
        let (read, rest) = left.split_at(sizes.next().unwrap_or(then).min(left.len()));
        let more = !left.is_empty();
        left = rest;
        more.then_some(read)
    })
    .collect()
}

/// Any bytes as one message of protobuf: no panic, and what was read is written and read again.
pub fn proto_decode(message: &[u8]) {
    let frame = framed(message);
    let seen = see(WireForm::Proto, Limits::default(), [&frame[..]]);
    for event in seen.frames.iter().filter_map(|frame| frame.event.as_ref()) {
        proto_again(&event.value, &event.value);
        // Whatever was read has a form in JSON, which reads as the same again.
        let json = event.value.to_json();
        let again = Event::from_json_tolerant(&json);
        let again = again.unwrap_or_else(|error| panic!("{json}: {error}"));
        assert_eq!(again.value, event.value);
    }
}

/// Any text as one event: what it becomes on either form reads as the same again.
pub fn proto_round_trip(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let Ok(reading) = Event::from_json_tolerant(text) else { return };
    let event = reading.value;

    let mut body = Vec::new();
    let omitted = crate::Encoder::new(WireForm::Sse).encode(&event, None, &mut body);
    assert_eq!(omitted, Ok(Vec::new()));
    let mut slowly = Vec::new();
    let Ok(()) = Encoder::new().frame_with(&mut slowly, |out| {
        event.write_json(out);
        Ok::<(), std::convert::Infallible>(())
    });
    assert_eq!(body, slowly, "the fast path writes the same");
    let seen = see(WireForm::Sse, Limits::default(), [&body[..]]);
    assert_eq!(seen.frames.len(), 1, "{seen:?}");

    // What has no form is left out once, and the rest stays as it is.
    let mut frame = Vec::new();
    if crate::Encoder::new(WireForm::Proto).encode(&event, None, &mut frame).is_err() {
        assert!(frame.is_empty());
        return;
    }
    let seen = see(WireForm::Proto, Limits::default(), [&frame[..]]);
    if let [SeenFrame { event: Some(read), .. }] = &seen.frames[..] {
        proto_again(&read.value, &read.value);
        return;
    }
    // An enforcing reader would have stripped what cannot be read back: a member that goes with
    // another outcome, a pointer that is none.
    panic!("{}: {seen:?}", event.to_json());
}

/// Writes an event and reads it again.
fn proto_again(event: &Event, expected: &Event) {
    let mut frame = Vec::new();
    let mut encoder = crate::Encoder::new(WireForm::Proto);
    match encoder.encode(event, None, &mut frame) {
        Ok(_) => {
            let seen = see(WireForm::Proto, Limits::default(), [&frame[..]]);
            assert_eq!(seen.end, Ok(End::Clean));
            let [SeenFrame { event: Some(again), .. }] = &seen.frames[..] else {
                panic!("{seen:?}")
            };
            assert_eq!(&again.value, expected);
        }
        Err(error) => {
            assert!(matches!(error.kind(), EncodeErrorKind::UnknownOperation(_)), "{error}");
        }
    }
}

/// The message behind its length.
pub fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes()[..], message].concat()
}
