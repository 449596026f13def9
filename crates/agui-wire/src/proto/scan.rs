//! Protobuf's own grammar: varints, fields, groups.

use super::fault::{Fault, Problem};

/// A field's value, as far as its wire type says what it is.
#[derive(Clone, Copy)]
pub(super) enum Raw<'b> {
    Varint(u64),
    /// A varint of more than ten bytes: fine where nobody reads it.
    LongVarint(&'b [u8]),
    /// Eight bytes, little-endian.
    Fixed64(u64),
    Bytes(&'b [u8]),
    /// Four bytes or a group, which no field of ours has.
    Other,
}

/// How deep groups may nest. There is none in our messages, so all of them are skipped.
const MAX_GROUPS: usize = 100;

/// The encoding of one message, or of several that are to be merged: their fields one after the
/// other, as protobuf merges.
#[derive(Default)]
pub(super) struct Pieces<'b> {
    first: &'b [u8],
    more: Vec<&'b [u8]>,
}

impl<'b> Pieces<'b> {
    pub(super) fn new(piece: &'b [u8]) -> Self {
        Self { first: piece, more: Vec::new() }
    }

    /// The fields of one encoding.
    pub(super) fn fields_of(piece: &'b [u8]) -> Fields<'b, 'b> {
        Fields { rest: piece, more: [].iter() }
    }

    /// Adds an encoding to be merged. A caller bounds how many.
    pub(super) fn add(&mut self, piece: &'b [u8]) {
        self.more.push(piece);
    }

    /// Where the first of them begins.
    pub(super) fn start(&self) -> &'b [u8] {
        self.first
    }

    /// The fields of all of them.
    pub(super) fn fields(&self) -> Fields<'_, 'b> {
        Fields { rest: self.first, more: self.more.iter() }
    }
}

/// The fields of a message that are left to be read.
pub(super) struct Fields<'p, 'b> {
    rest: &'b [u8],
    more: std::slice::Iter<'p, &'b [u8]>,
}

impl<'b> Fields<'_, 'b> {
    /// The next field's number and value.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<(u32, Raw<'b>)>, Fault> {
        while self.rest.is_empty() {
            match self.more.next() {
                Some(piece) => self.rest = piece,
                None => return Ok(None),
            }
        }
        // One byte of tag and one of length: nearly every field.
        if let [tag @ ..0x80, len @ ..0x80, rest @ ..] = self.rest
            && tag & 7 == LENGTH_DELIMITED as u8
            && *tag > 7
            && let Some((bytes, rest)) = rest.split_at_checked(usize::from(*len))
        {
            self.rest = rest;
            return Ok(Some((u32::from(tag >> 3), Raw::Bytes(bytes))));
        }
        field(&mut self.rest).map(Some)
    }
}

/// Whether these bytes are the fields of some message.
pub(super) fn is_message(mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        if field(&mut bytes).is_err() {
            return false;
        }
    }
    true
}

fn field<'b>(rest: &mut &'b [u8]) -> Result<(u32, Raw<'b>), Fault> {
    let at = *rest;
    let (number, wire_type) = tag(rest)?;
    if wire_type == END_GROUP {
        return Err(Fault::malformed(Problem::GroupEnd, at));
    }
    if wire_type == START_GROUP {
        skip_group(rest, number)?;
        return Ok((number, Raw::Other));
    }
    Ok((number, value(rest, wire_type)?))
}

const LENGTH_DELIMITED: u32 = 2;
const START_GROUP: u32 = 3;
const END_GROUP: u32 = 4;

#[inline]
fn tag(rest: &mut &[u8]) -> Result<(u32, u32), Fault> {
    let at = *rest;
    let tag = u32::try_from(varint(rest)?);
    match tag {
        Ok(tag) if tag >> 3 != 0 => Ok((tag >> 3, tag & 7)),
        _ => Err(Fault::malformed(Problem::FieldNumber, at)),
    }
}

/// The value of a field that is no group.
#[inline]
fn value<'b>(rest: &mut &'b [u8], wire_type: u32) -> Result<Raw<'b>, Fault> {
    match wire_type {
        0 => {
            if let Ok(value) = varint(rest) {
                return Ok(Raw::Varint(value));
            }
            let last = rest.iter().position(|byte| *byte < 0x80);
            let len = last.map_or(usize::MAX, |last| last + 1);
            take(rest, len).map(Raw::LongVarint)
        }
        1 => {
            let bytes = take(rest, 8)?;
            let bytes = bytes.first_chunk().copied().unwrap_or_default();
            Ok(Raw::Fixed64(u64::from_le_bytes(bytes)))
        }
        LENGTH_DELIMITED => {
            let at = *rest;
            let len = varint(rest)?;
            let len = usize::try_from(len).map_err(|_| Fault::malformed(Problem::Length, at))?;
            take(rest, len).map(Raw::Bytes)
        }
        5 => take(rest, 4).map(|_| Raw::Other),
        _ => Err(Fault::malformed(Problem::WireType, rest)),
    }
}

fn skip_group(rest: &mut &[u8], number: u32) -> Result<(), Fault> {
    let start = *rest;
    let mut open = vec![number];
    while let Some(innermost) = open.last() {
        let at = *rest;
        if at.is_empty() {
            return Err(Fault::malformed(Problem::GroupOpen, start));
        }
        let (number, wire_type) = tag(rest)?;
        match wire_type {
            END_GROUP if number == *innermost => drop(open.pop()),
            END_GROUP => return Err(Fault::malformed(Problem::GroupEnd, at)),
            START_GROUP if open.len() == MAX_GROUPS => {
                return Err(Fault::malformed(Problem::GroupDepth, at));
            }
            START_GROUP => open.push(number),
            _ => drop(value(rest, wire_type)?),
        }
    }
    Ok(())
}

fn take<'b>(rest: &mut &'b [u8], len: usize) -> Result<&'b [u8], Fault> {
    match rest.split_at_checked(len) {
        Some((bytes, left)) => {
            *rest = left;
            Ok(bytes)
        }
        None => Err(Fault::malformed(Problem::Length, rest)),
    }
}

/// Reads up to ten bytes of seven bits, the lowest first. More bits than 64 are cut off, as
/// protobuf's own readers do; needlessly long ones are read.
#[inline]
fn varint(rest: &mut &[u8]) -> Result<u64, Fault> {
    if let [byte @ 0..0x80, left @ ..] = *rest {
        *rest = left;
        return Ok(u64::from(*byte));
    }
    long_varint(rest)
}

fn long_varint(rest: &mut &[u8]) -> Result<u64, Fault> {
    let mut value = 0;
    for (at, byte) in rest.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if *byte < 0x80 {
            *rest = &rest[at + 1..];
            return Ok(value);
        }
    }
    Err(Fault::malformed(Problem::Varint, rest))
}
