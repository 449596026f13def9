//! Writes fields in one pass, though a message's length comes before the message.

use agui_types::Json;
use agui_types::json::{Token, Tokens};

use super::path::{Path, Step};
use crate::encode_error::{EncodeError, EncodeErrorKind, Omission};

/// What an encoder keeps between events, so that a steady stream allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    wide: Vec<Wide>,
    path: Path,
    pub(super) omitted: Vec<Omission>,
}

/// A message whose length takes more than the one byte that was left for it.
#[derive(Debug)]
struct Wide {
    at: usize,
    len: usize,
}

/// Appends the fields of one event to a buffer.
///
/// A length is left one byte. Those that need more are noted, and the bytes are moved apart for all
/// of them at the end, each byte once.
pub(super) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    scratch: &'a mut Scratch,
    /// How many bytes the noted lengths still lack.
    lacking: usize,
}

/// A message that is being written.
#[must_use]
#[derive(Clone, Copy)]
pub(super) struct Open {
    at: usize,
    lacking: usize,
}

impl<'a> Writer<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>, scratch: &'a mut Scratch) -> Self {
        scratch.wide.clear();
        scratch.path.clear();
        scratch.omitted.clear();
        Self { out, scratch, lacking: 0 }
    }

    /// Makes room for the lengths that take more than a byte.
    pub(super) fn finish(self) {
        let Self { out, scratch: Scratch { wide, .. }, lacking } = self;
        if lacking == 0 {
            return;
        }
        wide.sort_unstable_by_key(|wide| wide.at);
        let mut read_end = out.len();
        let mut write_end = read_end + lacking;
        out.resize(write_end, 0);
        for Wide { at, len } in wide.drain(..).rev() {
            write_end -= read_end - (at + 1);
            out.copy_within(at + 1..read_end, write_end);
            let (length, size) = varint_bytes(len as u64);
            write_end -= size;
            out[write_end..write_end + size].copy_from_slice(&length[..size]);
            read_end = at;
        }
    }

    pub(super) fn varint(&mut self, number: u32, value: u64) {
        self.raw_varint(u64::from(number << 3));
        self.raw_varint(value);
    }

    pub(super) fn fixed64(&mut self, number: u32, value: u64) {
        self.raw_varint(u64::from(number << 3 | 1));
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    #[inline]
    pub(super) fn string(&mut self, number: u32, text: &str) {
        self.raw_varint(u64::from(number << 3 | 2));
        self.raw_varint(text.len() as u64);
        self.out.extend_from_slice(text.as_bytes());
    }

    #[inline]
    pub(super) fn open(&mut self, number: u32) -> Open {
        self.raw_varint(u64::from(number << 3 | 2));
        self.out.push(0);
        Open { at: self.out.len(), lacking: self.lacking }
    }

    #[inline]
    pub(super) fn close(&mut self, open: Open) {
        let len = self.out.len() - open.at + (self.lacking - open.lacking);
        let at = open.at - 1;
        if len < 0x80 {
            #[allow(clippy::cast_possible_truncation)]
            let byte = len as u8;
            self.out[at] = byte;
        } else {
            let (_, size) = varint_bytes(len as u64);
            self.lacking += size - 1;
            self.scratch.wide.push(Wide { at, len });
        }
    }

    #[inline]
    fn raw_varint(&mut self, value: u64) {
        if value < 0x80 {
            #[allow(clippy::cast_possible_truncation)]
            let byte = value as u8;
            self.out.push(byte);
        } else {
            let (bytes, size) = varint_bytes(value);
            self.out.extend_from_slice(&bytes[..size]);
        }
    }

    /// Runs `write` one step further in, so that what it reports names the place.
    pub(super) fn inside<T>(&mut self, step: Step, write: impl FnOnce(&mut Self) -> T) -> T {
        self.scratch.path.push(step);
        let value = write(self);
        self.scratch.path.pop();
        value
    }

    /// Notes something that this form has no room for.
    pub(super) fn omit(&mut self, what: impl Into<Box<str>>) {
        let path = self.scratch.path.to_string();
        let what = what.into();
        self.scratch.omitted.push(Omission { path, what });
    }

    /// The error for something that would change the event's meaning if it were left out.
    pub(super) fn refuse(&self, kind: EncodeErrorKind) -> EncodeError {
        EncodeError::at(self.scratch.path.to_string(), kind)
    }

    /// Writes a `google.protobuf.Value` from JSON text, member by member.
    pub(super) fn value(&mut self, number: u32, json: &Json) -> Result<(), EncodeError> {
        let mut tokens = json.tokens();
        let value = self.open(number);
        if let Some(first) = tokens.next() {
            self.value_fields(first, &mut tokens)?;
        }
        self.close(value);
        Ok(())
    }

    /// Writes a `google.protobuf.Struct` from the text of an object.
    pub(super) fn structure(&mut self, number: u32, json: &Json) -> Result<(), EncodeError> {
        let mut tokens = json.tokens();
        let structure = self.open(number);
        if tokens.next() == Some(Token::OpenObject) {
            self.struct_fields(&mut tokens)?;
        }
        self.close(structure);
        Ok(())
    }

    // Recursive, but no deeper than JSON text may nest.
    fn value_fields(
        &mut self,
        first: Token<'_>,
        tokens: &mut Tokens<'_>,
    ) -> Result<(), EncodeError> {
        match first {
            Token::Null => self.varint(1, 0),
            Token::Number(text) => match text.parse::<f64>() {
                Ok(value) if value.is_finite() => self.fixed64(2, value.to_bits()),
                _ => return Err(self.refuse(EncodeErrorKind::Number(text.into()))),
            },
            Token::String(text) => self.string(3, &text),
            Token::Bool(value) => self.varint(4, u64::from(value)),
            Token::OpenObject => {
                let structure = self.open(5);
                self.struct_fields(tokens)?;
                self.close(structure);
            }
            Token::OpenArray => {
                let list = self.open(6);
                while let Some(token) = tokens.next().filter(|token| *token != Token::CloseArray) {
                    let value = self.open(1);
                    self.value_fields(token, tokens)?;
                    self.close(value);
                }
                self.close(list);
            }
            // No value begins with these.
            Token::Key(_) | Token::CloseObject | Token::CloseArray => {}
        }
        Ok(())
    }

    fn struct_fields(&mut self, tokens: &mut Tokens<'_>) -> Result<(), EncodeError> {
        while let Some(Token::Key(name)) = tokens.next() {
            let entry = self.open(1);
            self.string(1, &name);
            let value = self.open(2);
            if let Some(token) = tokens.next() {
                self.value_fields(token, tokens)?;
            }
            self.close(value);
            self.close(entry);
        }
        Ok(())
    }
}

/// The bytes of a varint, and how many there are.
fn varint_bytes(mut value: u64) -> ([u8; 10], usize) {
    let mut bytes = [0; 10];
    let mut size = 0;
    loop {
        #[allow(clippy::cast_possible_truncation)]
        let low = value as u8 & 0x7f;
        value >>= 7;
        if value == 0 {
            bytes[size] = low;
            return (bytes, size + 1);
        }
        bytes[size] = low | 0x80;
        size += 1;
    }
}
