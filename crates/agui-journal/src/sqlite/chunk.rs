//! Many events in one row: the form of a chunk.

use std::fmt;
use std::ops::Range;

use rusqlite::{Connection, params};

use super::fault::Failure;
use super::rows::signed;
use crate::entry::EntryKind;

/// How many bytes a chunk has at most, unless it is one event that is larger.
pub(super) const CHUNK: usize = 64 * 1024;

/// Events of one run, one behind the other, on their way into a row of `chunks`.
///
/// The blob has a number for each event and then its JSON text. The number is the length of the text
/// times four, plus the kind of the event; it is written seven bits at a time, the lowest first, in
/// bytes whose highest bit says that more follow. The first event has the position `first`, each one
/// behind it the next, and the last one `last`: in a run that was compacted there is nothing between
/// the last event but one and the last.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    first: u64,
    last: u64,
    events: usize,
    blob: Vec<u8>,
}

impl Chunk {
    /// How many events there are.
    pub(super) fn events(&self) -> usize {
        self.events
    }

    /// What the row will hold.
    pub(super) fn blob(&self) -> &[u8] {
        &self.blob
    }

    /// Whether the event with this position, of so many bytes, belongs here.
    pub(super) fn takes(&self, position: u64, bytes: usize) -> bool {
        let next = self.first + self.events as u64;
        // Only the last event may leave positions out, and it has to leave its chunk readable.
        self.events == 0
            || (self.last + 1 == next && position >= next && self.blob.len() + bytes <= CHUNK)
    }

    /// Adds an event that [belongs here](Self::takes).
    pub(super) fn push(&mut self, position: u64, kind: EntryKind, json: &[u8]) {
        if self.events == 0 {
            self.first = position;
        }
        self.last = position;
        self.events += 1;
        write_number(json.len() as u64 * 4 + write_kind(kind), &mut self.blob);
        self.blob.extend_from_slice(json);
    }

    /// Makes a row of what there is, if there is anything, and begins anew.
    pub(super) fn insert(
        &mut self,
        connection: &Connection,
        thread: i64,
        run: u64,
    ) -> Result<(), Failure> {
        let Self { first, last, events, blob } = std::mem::take(self);
        if events > 0 {
            let mut statement = connection.prepare_cached(
                "INSERT INTO chunks (thread, first, last, run, events) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?;
            statement.execute(params![thread, signed(first), signed(last), signed(run), blob])?;
        }
        Ok(())
    }
}

/// An event of a chunk that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Framed {
    pub(super) position: u64,
    pub(super) kind: EntryKind,
    /// Where its JSON text is in the blob.
    pub(super) json: Range<usize>,
}

/// The events of a chunk, with their positions. Ends behind the first that cannot be read.
pub(super) fn read(
    first: u64,
    last: u64,
    blob: &[u8],
) -> impl Iterator<Item = Result<Framed, Damaged>> {
    let mut frames = Frames::new(blob);
    let mut next = Some(first);
    std::iter::from_fn(move || {
        let position = next.take()?;
        let (kind, json) = match frames.next() {
            Some(Ok(frame)) => frame,
            Some(Err(damaged)) => return Some(Err(damaged)),
            None => return Some(Err(Damaged("it has no event"))),
        };
        let is_last = json.end == blob.len();
        match position.cmp(&last) {
            std::cmp::Ordering::Greater => return Some(Err(Damaged("it ends before it begins"))),
            std::cmp::Ordering::Equal if !is_last => {
                return Some(Err(Damaged("it has more events than positions")));
            }
            _ => {}
        }
        if !is_last {
            next = position.checked_add(1);
        }
        let position = if is_last { last } else { position };
        Some(Ok(Framed { position, kind, json }))
    })
}

/// Kinds and texts, one behind the other. Ends behind the first that cannot be read.
pub(super) struct Frames<'b> {
    blob: &'b [u8],
    at: usize,
}

impl<'b> Frames<'b> {
    pub(super) fn new(blob: &'b [u8]) -> Self {
        Self { blob, at: 0 }
    }

    fn frame(&mut self) -> Result<(EntryKind, Range<usize>), Damaged> {
        let number = read_number(self.blob, &mut self.at)?;
        let kind = read_kind(number);
        let end = usize::try_from(number / 4).ok().and_then(|length| self.at.checked_add(length));
        let end = end.filter(|end| *end <= self.blob.len());
        let end = end.ok_or(Damaged("an event goes on behind its end"))?;
        Ok((kind, std::mem::replace(&mut self.at, end)..end))
    }
}

impl Iterator for Frames<'_> {
    type Item = Result<(EntryKind, Range<usize>), Damaged>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.blob.len() {
            return None;
        }
        let frame = self.frame();
        if frame.is_err() {
            self.at = self.blob.len();
        }
        Some(frame)
    }
}

/// What is wrong with bytes that were to be events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Damaged(pub(super) &'static str);

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// A kind as it is stored, in two bits.
fn write_kind(kind: EntryKind) -> u64 {
    match kind {
        EntryKind::Event => 0,
        EntryKind::Started => 1,
        EntryKind::Finished => 2,
        EntryKind::Failed => 3,
    }
}

/// The kind that the lowest two bits say.
pub(super) fn read_kind(number: u64) -> EntryKind {
    match number % 4 {
        0 => EntryKind::Event,
        1 => EntryKind::Started,
        2 => EntryKind::Finished,
        _ => EntryKind::Failed,
    }
}

/// The text of an event, which has to be one.
pub(super) fn text(json: &[u8]) -> Result<&str, Failure> {
    std::str::from_utf8(json).map_err(|error| Failure::unreadable("an event", error))
}

/// Writes a number seven bits at a time.
pub(super) fn write_number(mut number: u64, out: &mut Vec<u8>) {
    while number > 0x7f {
        // The lowest seven bits, and that more follow.
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads a number at a place, and moves the place behind it.
pub(super) fn read_number(blob: &[u8], at: &mut usize) -> Result<u64, Damaged> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *blob.get(*at).ok_or(Damaged("a number is cut off"))?;
        *at += 1;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            break;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(Damaged("a number is too large"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kinds() -> impl Strategy<Value = EntryKind> {
        use EntryKind::{Event, Failed, Finished, Started};
        prop::sample::select(vec![Started, Event, Finished, Failed])
    }

    fn events() -> impl Strategy<Value = Vec<(EntryKind, Vec<u8>)>> {
        let json = prop::collection::vec(any::<u8>(), 0..300);
        prop::collection::vec((kinds(), json), 1..40)
    }

    fn chunk(first: u64, gap: u64, events: &[(EntryKind, Vec<u8>)]) -> Chunk {
        let mut chunk = Chunk::default();
        for (at, (kind, json)) in events.iter().enumerate() {
            let gap = if at + 1 == events.len() && at > 0 { gap } else { 0 };
            let position = first + at as u64 + gap;
            assert!(chunk.takes(position, json.len()));
            chunk.push(position, *kind, json);
        }
        chunk
    }

    proptest! {
        #[test]
        fn a_chunk_gives_back_what_it_was_given(
            events in events(),
            first in 1..u64::MAX / 2,
            gap in 0..1_000_u64,
        ) {
            let chunk = chunk(first, gap, &events);
            let read: Result<Vec<_>, _> = read(first, chunk.last, &chunk.blob).collect();
            let read = read.unwrap();
            prop_assert_eq!(read.len(), events.len());
            for (at, (framed, (kind, json))) in read.iter().zip(&events).enumerate() {
                let is_last = at + 1 == events.len();
                let position = if is_last { chunk.last } else { first + at as u64 };
                prop_assert_eq!((framed.position, framed.kind), (position, *kind));
                prop_assert_eq!(&chunk.blob[framed.json.clone()], &json[..]);
            }
        }

        /// What is cut off, or turned over, is an error or other events; never a panic, never an
        /// event outside of the bytes there are, never two at one position.
        #[test]
        fn a_damaged_chunk_is_refused_or_read(
            events in events(),
            cut in any::<prop::sample::Index>(),
            flip in any::<prop::sample::Index>(),
            bits in 1..=u8::MAX,
        ) {
            let chunk = chunk(5, 0, &events);
            let (last, mut blob) = (chunk.last, chunk.blob);
            let cut = &blob[..cut.index(blob.len())];
            // Fewer events than positions may be a compacted run.
            check(cut, last)?;
            let at = flip.index(blob.len());
            blob[at] ^= bits;
            check(&blob, last)?;
        }

        #[test]
        fn anything_is_refused_or_read(blob in prop::collection::vec(any::<u8>(), 0..400)) {
            check(&blob, 5)?;
            check(&blob, 20)?;
            check(&blob, u64::MAX)?;
        }

        #[test]
        fn a_number_is_read_as_it_was_written(number in any::<u64>(), shift in 0..64_u32) {
            let number = number >> shift;
            let (mut out, mut at) = (Vec::new(), 0);
            write_number(number, &mut out);
            prop_assert_eq!(read_number(&out, &mut at), Ok(number));
            prop_assert_eq!(at, out.len());
        }
    }

    fn check(blob: &[u8], last: u64) -> Result<(), TestCaseError> {
        let (mut position, mut end) = (4, 0);
        let mut whole = false;
        for framed in read(5, last, blob) {
            prop_assert!(!whole, "something came behind the end");
            let Ok(framed) = framed else {
                whole = true;
                continue;
            };
            prop_assert!(framed.position > position && framed.position <= last);
            prop_assert!(framed.json.start > end || end == 0);
            prop_assert!(framed.json.end <= blob.len());
            (position, end) = (framed.position, framed.json.end);
        }
        prop_assert!(whole || (position == last && end == blob.len()));
        Ok(())
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = |first, last, blob: &[u8]| read(first, last, blob).find_map(Result::err);
        assert_eq!(wrong(1, 1, b""), Some(Damaged("it has no event")));
        assert_eq!(wrong(1, 1, &[0x80]), Some(Damaged("a number is cut off")));
        assert_eq!(wrong(1, 1, &[0xff; 12]), Some(Damaged("a number is too large")));
        assert_eq!(wrong(1, 1, &[8, b'x']), Some(Damaged("an event goes on behind its end")));
        assert_eq!(wrong(2, 1, &[4, b'x']), Some(Damaged("it ends before it begins")));
        let two = [4, b'x', 4, b'y'];
        assert_eq!(wrong(1, 1, &two), Some(Damaged("it has more events than positions")));
        assert_eq!(wrong(1, 2, &two), None);
    }

    /// A chunk ends where the next event would make it larger than it may be, and behind an event
    /// that left positions out.
    #[test]
    fn a_chunk_has_an_end() {
        let mut chunk = Chunk::default();
        assert!(chunk.takes(7, CHUNK * 2));
        chunk.push(7, EntryKind::Event, &vec![b'x'; CHUNK - 10]);
        let room = CHUNK - chunk.blob().len();
        assert!(chunk.takes(8, room) && !chunk.takes(8, room + 1));
        assert!(chunk.takes(9, 1) && !chunk.takes(7, 1));
        chunk.push(9, EntryKind::Finished, b"");
        assert!(!chunk.takes(10, 0));
    }
}
