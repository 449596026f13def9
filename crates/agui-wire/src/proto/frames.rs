//! Length-prefixed frames out of a body that arrives in pieces.

use crate::decode_error::Cut;
use crate::limits::{Limit, LimitExceeded, Limits};

/// Where the frames of a body begin and end (T-27, T-28).
///
/// A frame inside one read is not copied; one that is cut is collected in a buffer, which is kept.
/// A length beyond the limit is refused on the header, before anything of the frame is held.
#[derive(Debug)]
pub(crate) struct Frames {
    limits: Limits,
    /// Bytes of the body before the frame that is being read.
    offset: u64,
    header: [u8; 4],
    /// How many bytes of the header there are.
    header_len: usize,
    /// The frame's bytes so far, where not all of them came in one read.
    held: Vec<u8>,
    /// The last frame was handed out: it is to be forgotten.
    done: bool,
}

/// A frame without its header.
pub(crate) struct RawFrame<'a> {
    pub(crate) message: &'a [u8],
    /// Bytes of the body before its header.
    pub(crate) offset: u64,
}

const HEADER: usize = 4;

impl Frames {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            offset: 0,
            header: [0; HEADER],
            header_len: 0,
            held: Vec::new(),
            done: false,
        }
    }

    /// Takes the next frame out of `input`, or all of `input` if it holds no whole one.
    pub(crate) fn next<'a, 'i: 'a>(
        &'a mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<RawFrame<'a>>, LimitExceeded> {
        if std::mem::take(&mut self.done) {
            self.offset += (HEADER + self.length()) as u64;
            self.header_len = 0;
            self.held.clear();
        }
        let (header, rest) = input.split_at(input.len().min(HEADER - self.header_len));
        self.header[self.header_len..self.header_len + header.len()].copy_from_slice(header);
        self.header_len += header.len();
        *input = rest;
        if self.header_len < HEADER {
            return Ok(None);
        }
        let length = self.length();
        if length.saturating_add(HEADER) > self.limits.frame_bytes {
            return Err(LimitExceeded {
                limit: Limit::FrameBytes,
                max: self.limits.frame_bytes,
                offset: self.offset,
            });
        }
        let missing = length - self.held.len();
        let (bytes, rest) = input.split_at(input.len().min(missing));
        *input = rest;
        let offset = self.offset;
        if bytes.len() < missing {
            self.hold(bytes, length);
            return Ok(None);
        }
        self.done = true;
        if self.held.is_empty() {
            return Ok(Some(RawFrame { message: bytes, offset }));
        }
        self.hold(bytes, length);
        Ok(Some(RawFrame { message: &self.held, offset }))
    }

    /// The frame that the body is inside: where it begins, how far it got, and what there is of its
    /// message. `None` between frames.
    pub(crate) fn inside(&self) -> Option<(u64, Cut, &[u8])> {
        if self.done || self.header_len == 0 {
            return None;
        }
        let whole = (self.header_len == HEADER).then(|| HEADER + self.length());
        let have = self.header_len + self.held.len();
        Some((self.offset, Cut { have, whole }, &self.held))
    }

    fn length(&self) -> usize {
        u32::from_be_bytes(self.header) as usize
    }

    /// Grows by doubling and never beyond the frame: a peer that announces much and sends little
    /// makes nobody hold more than it sent, twice.
    fn hold(&mut self, bytes: &[u8], length: usize) {
        let needed = self.held.len() + bytes.len();
        if needed > self.held.capacity() {
            let doubled = self.held.capacity().saturating_mul(2).max(1024).min(length);
            self.held.reserve_exact(needed.max(doubled) - self.held.len());
        }
        self.held.extend_from_slice(bytes);
    }
}
