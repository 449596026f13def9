//! What the fuzz targets and property tests call. Not part of the public interface.

use std::time::Duration;

use crate::sse::{Decoder, Encoder, End, Frame, LimitExceeded, Limits};

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
    // `sizes` once, then equal pieces. Empty reads occur.
    let mut sizes = sizes.iter().map(|size| usize::from(*size));
    let mut left = body;
    let reads = std::iter::from_fn(|| {
        let size = sizes.next().unwrap_or(size + 1);
        let (read, rest) = left.split_at(size.min(left.len()));
        (!left.is_empty()).then(|| {
            left = rest;
            read
        })
    });
    let reads: Vec<&[u8]> = reads.collect();
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
